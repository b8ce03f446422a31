"""The folder of a run: one file per checkpoint, of which the newest counts.

    ETALIS-RUN \\x01 | length of the body, 8 bytes | 16 bytes of BLAKE2b over the body | body, MessagePack

    checkpoint-00000012     written beside it, synchronised and renamed: there is all of it or nothing
    lock                    held by the process that runs in the folder

A file that is cut off or damaged is recognised and named.  The run does not fall back to an older checkpoint by
itself: the sink may already hold what came after it.  No path of the folder is in its files, so it can be moved.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import msgspec

from etalis_py.durable.disk import Disk
from etalis_py.durable.errors import CheckpointError

MAGIC = b"ETALIS-RUN"
FORMAT = 1
_LENGTH, _SUM = 8, 16
_HEAD = len(MAGIC) + 1 + _LENGTH + _SUM
_NAME = re.compile(r"checkpoint-(\d{8,})")

Checkpoint = Mapping[str, Any]


def written(data: Checkpoint) -> bytes:
    try:
        body = msgspec.msgpack.encode(data)
    except (TypeError, OverflowError) as error:
        raise CheckpointError(
            f"a position of a source or a token of the sink is no plain data, which is integers of 64 bits, other "
            f"numbers, texts, bytes, lists and dicts: {error}"
        ) from None
    return MAGIC + bytes([FORMAT]) + len(body).to_bytes(_LENGTH, "big") + _digest(body) + body


def read(raw: bytes, name: str) -> dict[str, Any]:
    """What was written; ``CheckpointError`` names the file and says what is wrong with it."""
    if not MAGIC.startswith(raw[: len(MAGIC)]):
        raise CheckpointError(f"{name} is no checkpoint of a run{_ANEW}")
    if len(raw) <= len(MAGIC):
        raise CheckpointError(f"{name} is cut off: it has {len(raw)} bytes{_ANEW}")
    version = raw[len(MAGIC)]
    if version != FORMAT:
        raise CheckpointError(
            f"{name} has the format {version}, this version of etalis-py reads {FORMAT}: go on with the version that "
            f"wrote it, or begin anew with an empty folder"
        )
    body = raw[_HEAD:]
    length = int.from_bytes(raw[len(MAGIC) + 1 : len(MAGIC) + 1 + _LENGTH], "big")
    if len(raw) < _HEAD or len(body) != length:
        raise CheckpointError(f"{name} is cut off: it has {len(body):,} of {length:,} bytes{_ANEW}")
    if raw[_HEAD - _SUM : _HEAD] != _digest(body):
        raise CheckpointError(f"{name} is damaged: its checksum does not match its {length:,} bytes{_ANEW}")
    return dict(msgspec.msgpack.decode(body))


_ANEW = "; restore the folder from a copy together with what the run wrote, or begin anew with an empty folder"


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=_SUM).digest()


class Folder:
    """A folder with the checkpoints of one run; at most one process has it open."""

    def __init__(self, path: str | os.PathLike[str], disk: Disk | None = None) -> None:
        self.path, self.disk = Path(path), disk or Disk()
        self._lock: IO[bytes] | None = None

    def open(self) -> None:
        """Make the folder, if need be, and lock it; refuse one with other files in it."""
        self.disk.make(self.path)
        if (self.path / "state.json").exists() or (self.path / "offsets").exists():
            raise CheckpointError(
                f"{self.path} is the checkpoint of a run on Spark: add --engine spark, or name another folder"
            )
        others = [name for name in self.disk.names(self.path) if not (_NAME.search(name) or name == "lock")]
        if others and not self.numbers():
            raise CheckpointError(f"{self.path} has other files in it, as {others[0]}: name an empty or a new folder")
        self._lock = self.disk.lock(self.path / "lock")
        if self._lock is None:
            raise CheckpointError(f"another run is at work in {self.path}: end it first, or name another folder")

    def numbers(self) -> list[int]:
        """The numbers of the checkpoints, the newest last."""
        matches = (_NAME.fullmatch(name) for name in self.disk.names(self.path))
        return sorted(int(match[1]) for match in matches if match)

    def newest(self) -> dict[str, Any] | None:
        numbers = self.numbers()
        if not numbers:
            return None
        file = self._file(numbers[-1])
        try:
            return read(self.disk.read(file), str(file))
        except OSError as error:
            raise CheckpointError(f"{file} cannot be read: {error.strerror or error}") from None

    def write(self, data: Checkpoint) -> int:
        """Write a checkpoint under its number; returns its bytes."""
        raw = written(data)
        self.disk.put(self._file(data["number"]), raw)
        return len(raw)

    def forget_before(self, number: int) -> None:
        for other in self.numbers():
            if other < number:
                self.disk.remove(self._file(other))

    def bytes(self) -> int:
        return sum(self.disk.size(self._file(number)) or 0 for number in self.numbers())

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _file(self, number: int) -> Path:
        return self.path / f"checkpoint-{number:08d}"
