"""Dead letters, the input that could not be used: a JSON-lines file with one object for each refused part."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from etalis_rules.messages import in_characters

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

    While it is open, no other run may write to the file: each would write over the entries of the other.

    An entry is ``{"source", "line", "reason", "text"}`` for a part that could not be read, and ``{"reason", "time",
    "triples", "graph", "stream"}`` for an event that came too late: the latter can be read back as a stream.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.count = 0
        self.failed = False  # an entry could not be written
        self._file: IO[bytes] | None = None
        self._length = 0  # of the file, as far as it is ours
        if self.path.is_dir():
            raise SinkError("this is a folder", target=str(path), hint="name a file, such as one in it")
        if not self.path.parent.is_dir():
            raise SinkError("the folder does not exist", target=str(path), hint="create it or choose another place")

    def refused(self, error: StreamError) -> None:
        """Write what could not be read, and where it is."""
        source, reason = in_characters(error.source), in_characters(error.reason)
        self._write({"source": source, "line": error.line, "reason": reason, "text": error.text})

    def late(self, event: Event, reason: str) -> None:
        """Write an event that the engine did not take."""
        self._write(late_record(event, reason))

    def _write(self, record: dict[str, Any]) -> None:
        try:
            if self._file is None:
                self._file = self._opened()
            line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
            self._file.write(line)
            self._file.flush()
            self._length += len(line)
        except SinkError:
            self.failed = True
            raise
        except OSError as error:
            self.failed = True
            # The rest of the buffer cannot be written at the end either.
            with suppress(OSError):
                self.close()
            raise sink_error(error, str(self.path)) from None
        self.count += 1

    def _opened(self) -> IO[bytes]:
        """The file, locked, with what is ours in it and nothing behind that."""
        import fcntl  # POSIX only

        file = self.path.open("ab")
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file  # a pipe or a device, which many may write to
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise SinkError(
                "another run writes its dead letters to this file",
                target=str(self.path),
                hint="name another file, or start this run again when the other one has ended",
            ) from None
        file.truncate(self._length)
        return file

    def begin(self) -> None:
        """Begin a run with checkpoints: as its other outputs, the file must be empty, or not be there."""
        size = self.path.stat().st_size if self.path.is_file() else 0
        if size > self._length:
            raise SinkError(
                f"this file has {size:,} bytes already, which no checkpoint knows of",
                target=str(self.path),
                hint="move it away, or name another file; a run with a checkpoint begins with an empty one",
            )

    def synchronised(self) -> int:
        """The length of the file, all of which is on the disk; 0 if it is a pipe or a device."""
        if self._file is None:
            return self._length
        try:
            opened = os.fstat(self._file.fileno())
            if not stat.S_ISREG(opened.st_mode):
                return 0
            os.fsync(self._file.fileno())
            there = self.path.stat() if self.path.exists() else None
        except OSError as error:
            raise sink_error(error, str(self.path)) from None
        self._check_in_place(opened, there)
        return self._length

    def _check_in_place(self, opened: os.stat_result, there: os.stat_result | None) -> None:
        """Refuse to say that a checkpoint can go on with the file if something else has changed or moved it."""
        size = 0 if there is None else there.st_size
        if there is None or not os.path.samestat(there, opened) or size != self._length:
            raise SinkError(
                f"this file of dead letters has {size:,} bytes, and the run has written {self._length:,}: something "
                f"else writes to it, or has moved or emptied it",
                target=str(self.path),
                hint="put back the file that the run wrote, or begin anew with an empty checkpoint folder and a file "
                "that nothing else writes to",
            )

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
        self._length = length
        try:
            self._file = self._opened()
        except SinkError:
            raise
        except OSError as error:
            raise sink_error(error, str(self.path)) from None

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def __enter__(self) -> DeadLetters:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
