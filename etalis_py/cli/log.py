"""``--log json``: what is said on standard error as JSON, an object a line, for programs that collect logs."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, redirect_stderr
from typing import Literal, TextIO

from etalis_py.events.clock import render_datetime

LogKind = Literal["text", "json"]


class JsonLog(io.TextIOBase):
    """Takes what is printed; each message becomes ``{"time", "level", "message"}``, also one of several lines.

    >>> log = JsonLog(sys.stdout, now=lambda: 0.0)
    >>> print("etalis: warning: goals are kept for ever", file=log)
    {"time": "1970-01-01T00:00:00Z", "level": "warning", "message": "goals are kept for ever"}
    """

    def __init__(self, to: TextIO, now: Callable[[], float] = time.time) -> None:
        self._to, self._now = to, now
        self._begun = ""

    def write(self, text: str) -> int:
        self._begun += text
        if self._begun.endswith("\n"):
            message, self._begun = self._begun.strip("\n"), ""
            if message:
                self.record("info", message)
        return len(text)

    def record(self, level: str, message: str) -> None:
        """Write a message; one that begins as a warning is one."""
        message = message.removeprefix("etalis: ")
        if message.startswith("warning: "):
            level, message = "warning", message.removeprefix("warning: ")
        entry = {"time": render_datetime(int(self._now() * 1e6)), "level": level, "message": message}
        self._to.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self._to.flush()

    def flush(self) -> None:
        self._to.flush()


def log_as(kind: LogKind) -> AbstractContextManager[object]:
    """Standard error as ``text``, which it is, or as ``json``."""
    return redirect_stderr(JsonLog(sys.stderr)) if kind == "json" else nullcontext()


def say_error(text: str) -> None:
    """Say why the command ends."""
    if isinstance(sys.stderr, JsonLog):
        sys.stderr.record("error", text)
    else:
        print(text, file=sys.stderr)
