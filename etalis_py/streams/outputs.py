"""Where text goes: standard output, a file (atomic), or a folder of rolling files.

Any error of the system is raised as ``SinkError``; if the reader has closed the pipe, as ``ClosedPipe``.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Iterable
from typing import IO, Protocol

from etalis_py.events.errors import SinkError, resolved, sink_error


class TextOutput(Protocol):
    """A place for text.  ``close`` makes it final; ``abandon`` leaves nothing half-written behind."""

    name: str

    def write(self, text: str) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...

    def full(self) -> bool:
        """Whether it is time to finish this file and continue in the next."""
        ...


class StandardOutput:
    """Standard output, or another open text file that is not ours to close."""

    def __init__(self, file: IO[str] | None = None) -> None:
        self._file = sys.stdout if file is None else file
        self.name = "standard output" if file is None else str(getattr(file, "name", "output"))

    def write(self, text: str) -> None:
        try:
            self._file.write(text)
        except OSError as error:
            raise self._failed(error) from None

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> SinkError:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            # The rest of the buffer cannot be written either; without this the interpreter would try again at its end,
            # and complain.
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, self._file.fileno())
            os.close(devnull)
        return sink_error(error, self.name)

    def close(self) -> None:
        self.flush()

    def abandon(self) -> None:
        self.flush()

    def full(self) -> bool:
        return False


class FileOutput:
    """A file that appears under its name when it is complete (a temporary file beside it, then a rename).

    With ``live`` it is written in place instead, so that others can follow it.
    """

    def __init__(self, path: str | os.PathLike[str], *, live: bool = False) -> None:
        # A link stays a link, and a pipe or a device is never replaced by a file.
        self._path = resolved(path)
        self.name = str(path)
        live = live or (self._path.exists() and not self._path.is_file())
        self._temporary = self._path if live else self._path.with_name(f".{self._path.name}.{os.getpid()}.tmp")
        if self._path.is_dir():
            raise SinkError("this is a folder", target=self.name, hint="end the name with / to write files into it")
        try:
            self._file = self._temporary.open("w", encoding="utf-8", newline="")
        except OSError as error:
            raise sink_error(error, self.name) from None

    def write(self, text: str) -> None:
        try:
            self._file.write(text)
        except OSError as error:
            raise sink_error(error, self.name) from None

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError as error:
            raise sink_error(error, self.name) from None

    def close(self) -> None:
        try:
            self._file.flush()
            with contextlib.suppress(OSError):  # a pipe or a device cannot be synchronised
                os.fsync(self._file.fileno())
            self._file.close()
            if self._temporary != self._path:
                os.replace(self._temporary, self._path)
        except OSError as error:
            self.abandon()
            raise sink_error(error, self.name) from None

    def abandon(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        if self._temporary != self._path:
            with contextlib.suppress(OSError):
                self._temporary.unlink()

    def full(self) -> bool:
        return False


class FolderOutput:
    """Files ``part-00000.suffix``, ``part-00001.suffix``, … in a folder, each complete when it appears.

    The next one is begun after ``megabytes``, or when one has been open for ``seconds``.  Existing parts stay, and
    numbering continues after them.
    """

    def __init__(
        self, folder: str | os.PathLike[str], suffix: str, *, megabytes: float = 64, seconds: float = 60
    ) -> None:
        self._folder = resolved(folder)
        self.name = str(folder)
        self._suffix, self._limit, self._seconds = suffix, int(megabytes * 1_000_000), seconds
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise sink_error(error, self.name) from None
        self._number = max(part_numbers(path.name for path in self._folder.iterdir()), default=-1) + 1
        self._part: FileOutput | None = None
        self._size, self._opened = 0, 0.0

    def write(self, text: str) -> None:
        if self._part is None:
            self._part = FileOutput(self._folder / f"part-{self._number:05d}.{self._suffix}")
            self._number += 1
            self._size, self._opened = 0, time.monotonic()
        self._part.write(text)
        self._size += len(text)

    def flush(self) -> None:
        if self._part is not None:
            self._part.flush()

    def full(self) -> bool:
        if self._part is None:
            return False
        return self._size >= self._limit or time.monotonic() - self._opened >= self._seconds

    def close(self) -> None:
        """Complete the open part; a later write begins the next."""
        if self._part is not None:
            part, self._part = self._part, None
            part.close()

    def abandon(self) -> None:
        if self._part is not None:
            part, self._part = self._part, None
            part.abandon()


_PART = re.compile(r"part-([0-9]+)\.")


def part_numbers(names: Iterable[str]) -> dict[int, str]:
    """The parts among the files of a folder, by their numbers, which names sort by only up to 99,999."""
    return {int(part[1]): name for name in names if (part := _PART.match(name))}


def open_output(target: str | os.PathLike[str] | IO[str], suffix: str, *, live: bool = False) -> TextOutput:
    """``-`` is standard output; a name that ends with ``/`` (or is a folder) a folder of parts; else a file."""
    if not isinstance(target, (str, os.PathLike)):
        return StandardOutput(target)
    name = os.fspath(target)
    if name == "-":
        return StandardOutput()
    if name.endswith(("/", os.sep)) or os.path.isdir(name):
        return FolderOutput(name, suffix)
    return FileOutput(name, live=live)
