"""The command line in a folder of its own: inside this process, and as a process where that is the point."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli import in_process

COMMAND = [sys.executable, "-m", "etalis_py.cli.main"]

RISING = """\
PREFIX : <http://example.org/>
SELECT ?company ?low ?high
WHERE { { { ?company :price ?low } SEQ { ?company :price ?high } } WITHIN PT1H FILTER (?high > ?low) }
"""
RISES = [("10", "12", 1, 3), ("10", "11", 1, 5)]  # what it finds in ticks.jsonl: low, high, start, end


def tick(time: object, price: object, company: str = "acme") -> str:
    """One line of a stream: a price of a company."""
    spelled = time if isinstance(time, int) else f'"{time}"'
    return f'{{"time": {spelled}, "triples": "@prefix : <http://example.org/> . :{company} :price {price} ."}}\n'


def rows(text: str) -> list[tuple[str, str, int, int]]:
    """The matches of the rising query in jsonl, briefly: low, high, start, end."""
    found = [json.loads(line) for line in text.splitlines()]
    return [(m["bindings"]["low"]["value"], m["bindings"]["high"]["value"], m["start"], m["end"]) for m in found]


@dataclass(frozen=True)
class Folder:
    """A working folder with ``rising.rq`` and ``ticks.jsonl`` in it."""

    path: Path

    def write(self, name: str, text: str) -> Path:
        (self.path / name).write_text(text, encoding="utf-8")
        return self.path / name

    def read(self, name: str) -> str:
        return (self.path / name).read_text(encoding="utf-8")

    def etalis(
        self, *arguments: str, input: str = "", code: int = 0, defect: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run the command inside this process; it must end with the exit code, and with a trace only for a defect."""
        return _ended(in_process.run(arguments, self.path, input), code, defect=defect)

    def process(self, *arguments: str, input: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
        """The same in a process of its own."""
        options = {"cwd": self.path, "input": input, "capture_output": True, "text": True, "timeout": 60}
        return _ended(subprocess.run([*COMMAND, *arguments], **options), code)  # type: ignore[call-overload]

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[str]:
        """Start the command with pipes, for a conversation."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        environment = os.environ | {"PYTHONUNBUFFERED": ""}
        return subprocess.Popen([*COMMAND, *arguments], cwd=self.path, text=True, env=environment, **pipes)  # type: ignore[call-overload,no-any-return]


def until_it_listens(process: subprocess.Popen[str]) -> None:
    """Wait until a command has taken the signals that stop it for itself."""
    status = Path(f"/proc/{process.pid}/status")
    while not int(status.read_text().split("SigCgt:")[1].split()[0], 16) >> (signal.SIGTERM - 1) & 1:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def _ended(
    done: subprocess.CompletedProcess[str], code: int, *, defect: bool = False
) -> subprocess.CompletedProcess[str]:
    assert ("Traceback" in done.stderr) == defect, done.stderr
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write("rising.rq", RISING)
    made.write("ticks.jsonl", tick(1, 10) + tick(3, 12) + tick(5, 11))
    return made
