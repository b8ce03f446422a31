"""A file, or a folder of parts, that only ever holds what is committed: exactly once.

    write ──▶ text in memory ── prepare ──▶ token: the text and its place ── commit ──▶ the file

The text is in the checkpoint before it is in the file, and its place says where it goes: whoever commits the token
again writes the same bytes to the same place.  So a reader who follows the file never sees anything taken back.  A
folder gets one part per checkpoint, which appears when it is complete.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from etalis_py.connectors.held import CheckpointedText
from etalis_py.events.errors import SinkError, resolved
from etalis_py.streams.outputs import part_numbers
from etalis_py.streams.sinks import Format, TextSink

GUARANTEE = "exactly once"


class Disk(Protocol):
    """What is asked of the file system: see ``durable.disk``."""

    def put(self, path: Path, data: bytes) -> None: ...
    def write_at(self, path: Path, offset: int, data: bytes) -> None: ...
    def size(self, path: Path) -> int | None: ...
    def names(self, folder: Path) -> list[str]: ...
    def make(self, folder: Path) -> None: ...


class DurableFile(CheckpointedText):
    """A file of lines; ``format`` must need nothing after its last match.  State: the text since the last token."""

    guarantee = GUARANTEE

    def __init__(self, path: str, format: Format, disk: Disk) -> None:
        super().__init__(path, format)
        self._path, self._disk = resolved(path), disk
        self._end = 0

    def recover(self, token: Any | None) -> None:
        size = self._disk.size(self._path)
        if token is None:
            if size:
                raise SinkError(
                    f"this file has {size:,} bytes already, which no checkpoint knows of",
                    target=self.name,
                    hint="move it away, or name another file; a run with a checkpoint begins with an empty one",
                )
            return
        begin, end = token["offset"], token["offset"] + len(token["text"])
        if (size or 0) < begin or (size or 0) > end:
            raise SinkError(
                f"this file has {size or 0:,} bytes, and the checkpoint was made when it had {end:,}",
                target=self.name,
                hint="put back the file that the run wrote, or begin anew with an empty checkpoint folder and file",
            )
        self._write(token)
        if end:
            self._text.go_on()

    def prepare(self) -> Any:
        return {"offset": self._end, "text": self._held.take()}

    def commit(self, token: Any) -> None:
        size = self._disk.size(self._path) or 0
        if size != self._end:
            raise SinkError(
                f"this file has {size:,} bytes, and the run has written {self._end:,}: something else writes to it, "
                f"or has moved or emptied it",
                target=self.name,
                hint="put back the file that the run wrote, or begin anew with an empty checkpoint folder and a file "
                "that nothing else writes to; of a sink that is a folder (out/) parts may be taken away",
            )
        self._write(token)

    def _write(self, token: Any) -> None:
        end = token["offset"] + len(token["text"])
        if token["text"] or self._disk.size(self._path) is None:
            self._disk.write_at(self._path, token["offset"], token["text"])
        self._end = end


class DurableFolder(CheckpointedText):
    """A folder of files ``part-00000.jsonl``, …: each has the matches between two checkpoints."""

    guarantee = GUARANTEE

    def __init__(self, folder: str, suffix: str, format: Format, disk: Disk) -> None:
        super().__init__(folder, format)
        self._folder, self._suffix, self._disk = resolved(folder), suffix, disk
        self._format, self._number = format, 0

    def recover(self, token: Any | None) -> None:
        self._disk.make(self._folder)
        parts = part_numbers(self._disk.names(self._folder))
        if token is None:
            if parts:
                raise SinkError(
                    f"this folder has {parts[min(parts)]} already, which no checkpoint knows of",
                    target=self.name,
                    hint="name an empty or a new folder",
                )
            return
        after = [number for number in parts if number > token["number"]]
        if after:
            raise SinkError(
                f"{parts[min(after)]} was written after the checkpoint was made",
                target=self.name,
                hint="the checkpoint is an old one: remove this part and those after it, or put back the newest",
            )
        self._write(token)

    def finish(self) -> None:
        if self._number == 0 and not self._held:  # there is one part at least, as without checkpoints
            self._held.write(self._format.begin())

    def prepare(self) -> Any:
        self._held.write(self._format.end() if self._held else "")
        self._text = TextSink(self._format, self._held)
        return {"number": self._number, "text": self._held.take()}

    def commit(self, token: Any) -> None:
        part = self._part(token["number"])
        if token["text"] and token["number"] == self._number and self._disk.size(part) is not None:
            raise SinkError(
                f"{part.name} is there already, and this run has not written it: something else writes to this folder",
                target=self.name,
                hint="begin anew with an empty checkpoint folder, and a folder that nothing else writes to",
            )
        self._write(token)

    def _write(self, token: Any) -> None:
        if token["text"]:
            self._disk.put(self._part(token["number"]), token["text"])
        self._number = token["number"] + bool(token["text"])

    def _part(self, number: int) -> Path:
        return self._folder / f"part-{number:05d}.{self._suffix}"
