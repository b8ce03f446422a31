"""``--log json``: what is said on standard error as JSON, an object a line, for programs that collect logs.

Python writes a traceback line by line.  So an error that nobody catches is taken where Python would show it (``take``),
and becomes one object like any other message.
"""

from __future__ import annotations

import io
import json
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Literal, TextIO

from etalis_py.events.clock import render_datetime

LogKind = Literal["text", "json"]
_AT_A_PLACE = re.compile(r"[^\n]*:\d+:\d+: (error|warning): ")


class JsonLog(io.TextIOBase):
    """Takes what is printed; each message becomes ``{"time", "level", "message"}``, also one of several lines.

    That of an error which nobody expected also has its ``traceback``.

    >>> log = JsonLog(sys.stdout, now=lambda: 0.0)
    >>> print("etalis: warning: goals are kept for ever", file=log)
    {"time": "1970-01-01T00:00:00Z", "level": "warning", "message": "goals are kept for ever"}
    >>> print("hot.rq:1:18: error: the text ends here", file=log)
    {"time": "1970-01-01T00:00:00Z", "level": "error", "message": "hot.rq:1:18: error: the text ends here"}
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

    def record(self, level: str, message: str, traceback: str = "") -> None:
        """Write a message; one that begins as a warning is one, and one that points at a query has a level itself."""
        message = message.removeprefix("etalis: ")
        if level == "info" and (pointed := _AT_A_PLACE.match(message)):
            level = pointed[1]
        if message.startswith("warning: "):
            level, message = "warning", message.removeprefix("warning: ")
        entry = {"time": render_datetime(int(self._now() * 1e6)), "level": level, "message": message}
        if traceback:
            entry["traceback"] = traceback
        self._to.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self._to.flush()

    def uncaught(self, error: BaseException | None, said: str = "") -> None:
        """Write an error that nobody has caught; ``said`` is what else is known of it."""
        if error is not None:
            reason = "".join(traceback.format_exception_only(error)).strip()
            shown = "".join(traceback.format_exception(error)).strip()
            self.record("error", f"{said}{reason}", shown)

    def take(self) -> None:
        """From now on take the errors that end the process or a thread, or that cannot be raised."""
        sys.excepthook = lambda kind, error, trace: self.uncaught(error)
        threading.excepthook = lambda of: self.uncaught(of.exc_value, "in a thread: ")
        sys.unraisablehook = lambda of: self.uncaught(of.exc_value, f"{of.err_msg or 'an error was ignored'}: ")

    def flush(self) -> None:
        self._to.flush()


@contextmanager
def log_as(kind: LogKind) -> Iterator[None]:
    """Standard error as ``text``, which it is, or as ``json``."""
    if kind == "text":
        yield
        return
    before = sys.excepthook, threading.excepthook, sys.unraisablehook
    log = JsonLog(sys.stderr)
    log.take()
    try:
        with redirect_stderr(log):
            yield
    finally:
        sys.excepthook, threading.excepthook, sys.unraisablehook = before


def say_error(text: str) -> None:
    """Say why the command ends."""
    if isinstance(sys.stderr, JsonLog):
        sys.stderr.record("error", text)
    else:
        print(text, file=sys.stderr)


def say_uncaught(error: Exception) -> bool:
    """Say that a defect ends the command, if messages are objects; Python itself says it as text."""
    if not isinstance(sys.stderr, JsonLog):
        return False
    sys.stderr.uncaught(error)
    return True
