"""Dead letters, the input that could not be used: a JSON-lines file with one object for each refused part."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Literal

from etalis_py.events import Event, Retraction
from etalis_py.events.clock import render_datetime
from etalis_py.events.errors import SinkError, StreamError, sink_error


def late_record(event: Event, reason: str) -> dict[str, Any]:
    """The record of an event that the engine did not take; its times are dateTimes, whatever the stream's clock."""
    record: dict[str, Any] = {"reason": reason, "time": [render_datetime(event.start), render_datetime(event.end)]}
    record["triples"] = [" ".join(triple) + " ." for triple in event.triples]
    record |= {"graph": event.graph, "stream": event.stream}
    return record | {"retract": True} if isinstance(event, Retraction) else record


class DeadLetters:
    """A dead-letter file, opened at the first entry (so no entry, no file) and flushed after each.

    An entry is ``{"source", "line", "reason", "text"}`` for a part that could not be read, and ``{"reason", "time",
    "triples", "graph", "stream"}`` for an event that came too late: the latter can be read back as a stream.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.count = 0
        self.failed = False  # an entry could not be written
        self._file: IO[str] | None = None
        self._mode: Literal["w", "a"] = "w"
        if not self.path.parent.is_dir():
            raise SinkError("the folder does not exist", target=str(path), hint="create it or choose another place")

    def refused(self, error: StreamError) -> None:
        self._write({"source": error.source, "line": error.line, "reason": error.reason, "text": error.text})

    def late(self, event: Event, reason: str) -> None:
        """Write an event that the engine did not take."""
        self._write(late_record(event, reason))

    def _write(self, record: dict[str, Any]) -> None:
        try:
            if self._file is None:
                self._file = self.path.open(self._mode, encoding="utf-8")
            self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            self.failed = True
            # The rest of the buffer cannot be written at the end either.
            with suppress(OSError):
                self.close()
            raise sink_error(error, str(self.path)) from None
        self.count += 1

    def synchronised(self) -> int:
        """The length of the file, all of which is on the disk."""
        if self._file is None:
            return 0 if self._mode == "w" else self.path.stat().st_size
        try:
            os.fsync(self._file.fileno())
            return os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise sink_error(error, str(self.path)) from None

    def go_on(self, length: int | None) -> None:
        """Go on in the file of an earlier process, after its first bytes."""
        if not length:
            return
        size = self.path.stat().st_size if self.path.is_file() else 0
        if size < length:
            raise SinkError(
                f"this file has {size:,} bytes, and the checkpoint was made when it had {length:,}",
                target=str(self.path),
                hint="put back the file that the run wrote",
            )
        os.truncate(self.path, length)
        self._mode = "a"

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def __enter__(self) -> DeadLetters:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
