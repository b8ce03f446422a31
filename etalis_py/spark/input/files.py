"""Cuts files that may grow into pieces that can be read again, and finds the bytes that are new since an offset.

An offset maps each file to the number of its bytes that were taken.  JSON lines may be appended to: only whole lines
are taken.  A file of another format is taken as a whole, so it has to appear complete (write it under a name that
begins with ``.`` or ``_``, then rename it) and may not change afterwards.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from etalis_py.streams import StreamError
from etalis_py.streams.sources import format_of

BLOCK = 1 << 20
PIECE = 64 << 20
OPENING = 16 << 10  # to open a file takes about as long as to read this much
TASKS = 64

Taken = Mapping[str, int]
Piece = tuple[str, int, int]


def grows(path: str, format: str) -> bool:
    """Whether this file may be appended to while it is read: only uncompressed JSON lines may."""
    return (format or format_of(path)) == "jsonl" and not path.lower().endswith(".gz")


def listing(path: str) -> list[str]:
    """The files of a folder, a pattern or a name, sorted by name; hidden files are left out."""
    paths = sorted(glob.glob(os.path.join(path, "*") if os.path.isdir(path) else path))
    if not paths and not glob.has_magic(path):
        # A folder may be empty, but a path that does not exist is a mistake.
        if not os.path.isdir(path):
            raise StreamError("there is no such file or folder", source=path, hint="it must be seen by every worker")
        return []
    return [os.path.abspath(p) for p in paths if os.path.isfile(p) and os.path.basename(p)[0] not in "._"]


def available(path: str, format: str, start: Taken) -> dict[str, int]:
    """The offset up to which each file can be read now; ``start`` is the offset of what was taken before."""
    return {file: _length(file, format, start.get(file, 0)) for file in listing(path)}


def _length(file: str, format: str, taken: int) -> int:
    size = os.path.getsize(file)
    if size < taken or (size > taken > 0 and not grows(file, format)):
        raise StreamError(
            f"the file had {taken} bytes when it was read and now has {size}",
            source=file,
            hint="only JSON lines may be appended to; write what is new to a new file",
        )
    return size if size == taken or not grows(file, format) else _whole_lines(file, taken, size)


def _whole_lines(file: str, taken: int, size: int) -> int:
    """The end of the last whole line; a last line without a line break counts if it is a whole JSON object."""
    with Path(file).open("rb") as opened:
        end, tail = size, b""
        while end > taken:
            begin = max(taken, end - BLOCK)
            opened.seek(begin)
            block = opened.read(end - begin)
            cut = block.rfind(b"\n") + 1
            tail = block[cut:] + tail
            if cut:
                break
            end = begin
    try:
        whole = not tail.strip() or isinstance(msgspec.json.decode(tail), dict)
    except (msgspec.DecodeError, UnicodeDecodeError):
        whole = False
    return size if whole else size - len(tail)


def up_to(start: Taken, available: Taken, most: int | None) -> dict[str, int]:
    """The next offset: everything available, but at most ``most`` more files; deleted files are forgotten."""
    kept = {file: taken for file, taken in start.items() if file in available}
    new = [file for file in available if available[file] > kept.get(file, 0)]
    return kept | {file: available[file] for file in new[:most]}


def pieces(start: Taken, end: Taken, format: str, size: int = PIECE) -> list[Piece]:
    """The pieces of files between two offsets; a long file of lines is cut into several."""
    every: list[Piece] = []
    for file, last in end.items():
        first = start.get(file, 0)
        step = size if grows(file, format) else last - first
        every += [(file, begin, min(begin + step, last)) for begin in range(first, last, max(step, 1))]
    return every


def tasks(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Pieces by the task that reads them: a task costs as much as a megabyte, so small files share one.

    As long as the pieces suffice for 64 tasks of a megabyte, there are that many and no more.
    """
    costs = [OPENING + last - first for _, first, last in pieces]
    most = min(PIECE, max(BLOCK, sum(costs) // TASKS))
    found: list[list[Piece]] = []
    room = 0
    for piece, cost in zip(pieces, costs, strict=True):
        if cost > room:
            found.append([])
            room = most
        found[-1].append(piece)
        room -= cost
    return found


class PieceLines:
    """The lines that begin in a piece of a file, as a byte stream."""

    def __init__(self, piece: Piece) -> None:
        self.name, begin, self._end = piece
        self._file = Path(self.name).open("rb")  # noqa: SIM115 (closed below)
        if begin:
            # A line that began earlier belongs to the previous piece.
            self._file.seek(begin - 1)
            self._file.readline()
        self._at = self._file.tell()

    def read1(self, size: int) -> bytes:
        """A block of whole lines; empty at the end."""
        left = self._end - self._at
        if left <= 0:
            return b""
        block = self._file.read(min(left, BLOCK))
        if not block:
            raise OSError("the file became shorter after it was planned to be read")
        if not block.endswith(b"\n"):
            block += self._file.readline()
        self._at += len(block)
        return block

    read = read1

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> PieceLines:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


__all__ = ["Piece", "PieceLines", "Taken", "available", "grows", "listing", "pieces", "tasks", "up_to"]
