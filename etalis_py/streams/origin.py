"""What a stream is read from, as far as another process must know it to go on reading.

| kind | read again |
|---|---|
| `file` | from its beginning; it must not have changed |
| `followed` | from where it was left; it may have grown |
| `connected` | from a position that its connector knows |
| `given` | from its beginning: a table, or records, that the program gives again |
| `passing` | not at all: a pipe or a socket, whose sender decides |
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Literal

from etalis_py.events.errors import StreamError
from etalis_py.streams.options import ReadOptions
from etalis_py.streams.sources import OpenedInput

PART = 1 << 16  # bytes of a file by which it is known


@dataclass(frozen=True, slots=True)
class Origin:
    """The kind of a source, how it is spelled, and its format; ``path`` is that of a file."""

    kind: Literal["file", "followed", "given", "passing", "connected"]
    name: str
    format: str = ""
    path: str = ""
    committed: Callable[[Any], None] | None = field(default=None, compare=False)
    """Called with a mark from which another process would go on."""
    pressing: Callable[[], bool] | None = field(default=None, compare=False)
    """Whether nothing more comes before ``committed`` is called."""
    sent_again: bool = False
    """Whether the sender repeats what was not ``committed``, in its own order."""
    drain: Callable[[], object] | None = field(default=None, compare=False)
    """Makes it give what it holds back for other parts, and end; None where nothing is held back."""

    @property
    def again(self) -> bool:
        """Whether the same items come when it is read again."""
        return self.kind != "passing"

    @property
    def identity(self) -> dict[str, Any]:
        """What must be the same when another process goes on; a file may lie in another folder."""
        return {"kind": self.kind, "name": os.path.basename(self.path) or self.name, "format": self.format}

    def check_trackable(self) -> None:
        """Refuse a source of which the same items do not come again."""
        if self.kind == "followed" and self.format not in ("jsonl", "csv"):
            raise StreamError(
                "while this file is followed, silences decide where one graph ends, and they do not come again",
                source=self.name,
                hint="with a checkpoint follow JSON lines or CSV, or read this file without following it",
            )

    def mark(self, start: int | None) -> dict[str, Any]:
        """What shows later whether a file is still the same: its size, and a digest of its beginning and its end.

        ``start``: of a followed file, the place up to which it was read.
        """
        if not self.path:
            return {}
        try:
            with Path(self.path).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                end = size if self.kind == "file" else min(size, start or 0)
                return {"size": end, "digest": _digest(file, end)}
        except OSError as error:
            raise StreamError(f"cannot be read: {error.strerror or error}", source=self.name) from None

    def check_same(self, mark: dict[str, Any]) -> None:
        """Refuse to go on in a file that is not the same any more."""
        if not self.path or not mark:
            return
        hint = "give the same file, or begin anew with an empty checkpoint folder"
        try:
            with Path(self.path).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                digest = _digest(file, mark["size"])
        except OSError as error:
            raise StreamError(f"cannot be read: {error.strerror or error}", source=self.name, hint=hint) from None
        if self.kind == "file" and size != mark["size"]:
            raise StreamError(
                f"this file had {mark['size']:,} bytes when the run began, and has {size:,} now",
                source=self.name,
                hint=f"{hint}; a file that grows is read with --follow",
            )
        if size < mark["size"]:
            raise StreamError(
                f"the run has read {mark['size']:,} bytes of this file, and it has only {size:,} now",
                source=self.name,
                hint=hint,
            )
        if digest != mark["digest"]:
            raise StreamError("this is not the file that the run has read: its content differs", source=self.name,
                              hint=hint)  # fmt: skip


def _digest(file: IO[bytes], end: int) -> str:
    """Of the first bytes before a place in a file, and of the last."""
    digest = blake2b(digest_size=16)
    for start in (0, max(0, end - PART)):
        file.seek(start)
        digest.update(file.read(min(PART, end - start)))
    return digest.hexdigest()


def origin_of(source: OpenedInput, format: str, options: ReadOptions) -> Origin:
    """The origin of an opened source."""
    path = source.file_path
    if path:
        return Origin("followed" if options.follow is not None else "file", source.name, format, path)
    return Origin("passing" if options.live or not source.is_file else "file", source.name, format)
