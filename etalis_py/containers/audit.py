"""The audit: one line of JSON for each request that writes, or that tries to."""

from __future__ import annotations

import logging
from logging.handlers import WatchedFileHandler
from pathlib import Path

import msgspec

from etalis_py.events.clock import render_datetime

from .access import Caller

_LOG = logging.getLogger("etalis.containers.audit")


class Audit:
    """Writes the lines to a file; one that was moved away (logrotate) is created again."""

    def __init__(self, file: Path | None) -> None:
        self._handler = None if file is None else WatchedFileHandler(file, encoding="utf-8")

    def note(self, time: int, caller: Caller, method: str, path: str, status: int) -> None:
        """A request has been answered."""
        if self._handler is None:
            return
        line = {
            "time": render_datetime(time),
            "client": caller.address,
            "token": None if caller.token is None else caller.token.name,
            "method": method,
            "path": path,
            "status": status,
        }
        text = msgspec.json.encode(line).decode()
        self._handler.handle(_LOG.makeRecord(_LOG.name, logging.INFO, "", 0, text, (), None))

    def close(self) -> None:
        if self._handler is not None:
            self._handler.close()
