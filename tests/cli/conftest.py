"""The real command line: ``etalis`` as a process of its own in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "etalis_py.cli.main"]

RISING = """\
PREFIX : <http://example.org/>
SELECT ?company ?low ?high
WHERE { { { ?company :price ?low } SEQ { ?company :price ?high } } WITHIN PT1H FILTER (?high > ?low) }
"""


def tick(time: object, price: object, company: str = "acme") -> str:
    """One line of a stream: a price of a company."""
    spelled = time if isinstance(time, int) else f'"{time}"'
    return f'{{"time": {spelled}, "triples": "@prefix : <http://example.org/> . :{company} :price {price} ."}}\n'


@dataclass(frozen=True)
class Folder:
    """A working folder with ``rising.rq`` and ``ticks.jsonl`` in it."""

    path: Path

    def write(self, name: str, text: str) -> Path:
        (self.path / name).write_text(text, encoding="utf-8")
        return self.path / name

    def read(self, name: str) -> str:
        return (self.path / name).read_text(encoding="utf-8")

    def etalis(self, *arguments: str, input: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run the command; it must end with the exit code, and never with a trace."""
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=self.path, input=input, capture_output=True, text=True, timeout=60
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[str]:
        """Start the command with pipes, for a conversation."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        environment = os.environ | {"PYTHONUNBUFFERED": ""}
        return subprocess.Popen([*COMMAND, *arguments], cwd=self.path, text=True, env=environment, **pipes)  # type: ignore[call-overload,no-any-return]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write("rising.rq", RISING)
    made.write("ticks.jsonl", tick(1, 10) + tick(3, 12) + tick(5, 11))
    return made
