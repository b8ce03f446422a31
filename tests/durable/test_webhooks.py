"""Webhooks with a real web server: what it gets, and how often."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from etalis_py.connectors.registry import Request, open_sink
from etalis_py.streams import SinkError
from etalis_py.testing.connectors import check_sink, some_matches
from tests.cli import in_process

QUERY = "SELECT ?x { ?c :p ?x }"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


class Receiver:
    """A web server that keeps what is posted, and first gives the answers that it is told to give."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[Any] = []
        self.answers: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                code = receiver.answers.pop(0) if receiver.answers else 204
                if code == 204:
                    receiver.bodies.append(body)
                    receiver.headers.append(self.headers)
                self.send_response(code)
                self.send_header("content-length", "0")
                self.send_header("location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"webhook+http://127.0.0.1:{self.server.server_address[1]}/hook"

    def ids(self) -> list[str]:
        return [json.loads(body)["id"] for body in self.bodies]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


def test_a_webhook_keeps_the_contract(receiver: Receiver) -> None:
    check_sink(lambda: open_sink(receiver.address), receiver.ids)


def test_a_webhook_gets_json_with_a_signature(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETALIS_WEBHOOK_SECRET", "s")
    sink = open_sink(receiver.address, Request())
    sink.write(some_matches(1))
    sink.commit(sink.prepare())
    (body,), (headers,) = receiver.bodies, receiver.headers
    record = json.loads(body)
    assert record["bindings"] == {"x": 0}
    assert headers["idempotency-key"] == record["id"]
    assert headers["x-etalis-signature"] == "sha256=" + hmac.new(b"s", body, hashlib.sha256).hexdigest()


def test_a_webhook_gets_cloudevents(receiver: Receiver) -> None:
    sink = open_sink(receiver.address + "?as=cloudevents")
    sink.write(some_matches(1))
    sink.commit(sink.prepare())
    record = json.loads(receiver.bodies[0])
    assert record["specversion"] == "1.0"
    assert record["id"] == record["data"]["id"]


def test_a_receiver_that_is_busy_is_asked_again(receiver: Receiver) -> None:
    receiver.answers = [503, 429]
    sink = open_sink(receiver.address)
    sink._sleep = lambda seconds: None  # type: ignore[attr-defined]
    sink.write(some_matches(2))
    sink.commit(sink.prepare())
    assert len(receiver.ids()) == 2


@pytest.mark.parametrize("code", [400, 404, 302])
def test_a_receiver_that_refuses_is_an_error_at_once(receiver: Receiver, code: int) -> None:
    receiver.answers = [code]
    sink = open_sink(receiver.address)
    sink.write(some_matches(1))
    with pytest.raises(SinkError, match=f"the answer was {code}"):
        sink.commit(sink.prepare())
    assert receiver.bodies == []


def test_the_command_posts_matches(receiver: Receiver, folder: Path) -> None:
    (folder / "s.jsonl").write_text("".join(f'{{"time": {at}, "triples": ":c :p {at} ."}}\n' for at in range(3)))
    done = in_process.run(["run", "-q", QUERY, "-s", "s.jsonl", "-o", receiver.address], folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(body)["bindings"]["x"] for body in receiver.bodies] == [0, 1, 2]
