"""Headless Chromium by its own protocol: navigate, evaluate, press keys, take pictures."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from itertools import count
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import connect

from tests.processes import PATIENCE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One tab of a browser with a profile of its own."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM
        profile = folder / "profile"
        command = [
            CHROMIUM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
        ]
        command += [
            "--disable-background-networking",
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
            "about:blank",
        ]
        self.log = (folder / "browser.log").open("wb")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        port = self._port(profile / "DevToolsActivePort")
        tab = next(t for t in httpx.get(f"http://127.0.0.1:{port}/json").json() if t["type"] == "page")
        self._connection = connect(tab["webSocketDebuggerUrl"], max_size=None)
        self._socket = self._connection.__enter__()
        self._numbers = count(1)
        self.console: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def _port(self, file: Path) -> int:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if file.exists() and (text := file.read_text()):
                return int(text.splitlines()[0])
            time.sleep(0.05)
        raise TimeoutError("the browser did not start")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(30))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        if message["method"] == "Runtime.exceptionThrown":
            self.console.append(str(parameters["exceptionDetails"]))
        elif message["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.console.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif message["method"] == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def size(self, width: int, height: int, *, mobile: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def dark(self, dark: bool) -> None:
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def go(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def until(self, expression: str, seconds: float = PATIENCE) -> Any:
        """Wait until the expression is truthy; its value."""
        deadline = time.monotonic() + seconds
        while True:
            value = self.evaluate(expression)
            if value:
                return value
            if time.monotonic() > deadline:
                text = self.evaluate("document.body.innerText")
                raise AssertionError(f"never became true: {expression}\n{text[:3000]}\n{self.console}")
            time.sleep(0.1)

    def text(self, selector: str = "body") -> str:
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def click(self, selector: str) -> None:
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def fill(self, selector: str, text: str) -> None:
        field = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{field}.value = {json.dumps(text)}; {field}.dispatchEvent(new Event('input'))")

    def press(self, key: str, times: int = 1) -> None:
        codes = {"Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""), " ": (32, " ")}
        code, text = codes[key]
        for _ in range(times):
            self.call(
                "Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, text=text
            )
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    def mouse(self, kind: str, x: float, y: float) -> None:
        button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def picture(self, file: Path, *, whole: bool = True) -> None:
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        file.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        self._connection.__exit__(None, None, None)
        self.process.kill()  # asked to end, it takes ten seconds at times; its profile is thrown away
        self.process.wait(10)
        self.log.close()
