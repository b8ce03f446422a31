"""What a server logs, written as ``--log`` says: by the server itself, and by the processes of its programs."""

from __future__ import annotations

import logging
import sys
import traceback
from copy import copy

from etalis_py.cli.log import JsonLog, LogKind


class JsonHandler(logging.Handler):
    """Writes each record as one object, with the traceback of its exception if it has one."""

    def __init__(self, log: JsonLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        shown = ""
        if record.exc_info and record.exc_info[1] is not None:
            shown = "".join(traceback.format_exception(record.exc_info[1])).strip()
            record = copy(record)
            record.exc_info = record.exc_text = None
        self._log.record(_level(record.levelno), self.format(record), shown)


def _level(number: int) -> str:
    if number >= logging.ERROR:
        return "error"
    return "warning" if number >= logging.WARNING else "info"


def write_log(kind: LogKind) -> None:
    """Log warnings and errors of this process, and of those that it forks, to standard error."""
    if kind == "text":
        logging.basicConfig(level=logging.WARNING, format="etalis: %(message)s", stream=sys.stderr)
        return
    if not isinstance(sys.stderr, JsonLog):
        sys.stderr = JsonLog(sys.stderr)  # what libraries print and Python warns of is a message, too
    sys.stderr.take()
    handler = JsonHandler(sys.stderr)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler], force=True)
