"""The file system, as checkpoints and durable files need it: what was written stays written.

Tests put a disk in its place that loses power at every one of these calls.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import IO

from etalis_py.events.errors import sink_error


class Disk:
    """Each method has finished its work on the disk itself when it returns, except ``remove``."""

    def put(self, path: Path, data: bytes) -> None:
        """A file with this content: after a crash there is all of it, or what was there before."""
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            self._sync_folder(path.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise sink_error(error, str(path)) from None

    def write_at(self, path: Path, offset: int, data: bytes) -> None:
        """Write into a file from a place on, and end it there; a crash may leave any part of it."""
        try:
            new = not path.exists()
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
            with open(descriptor, "wb") as file:
                file.truncate(offset)
                file.seek(offset)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if new:
                self._sync_folder(path.parent)
        except OSError as error:
            raise sink_error(error, str(path)) from None

    def size(self, path: Path) -> int | None:
        """The length of a file; None if there is none."""
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return None

    def read(self, path: Path, start: int = 0, length: int = -1) -> bytes:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(length)

    def names(self, folder: Path) -> list[str]:
        return sorted(os.listdir(folder)) if folder.is_dir() else []

    def make(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._sync_folder(folder.parent)
        except OSError as error:
            raise sink_error(error, str(folder)) from None

    def remove(self, path: Path) -> None:
        """Remove a file that nobody needs; it may come back after a crash."""
        with contextlib.suppress(FileNotFoundError):
            path.unlink()

    def lock(self, path: Path) -> IO[bytes] | None:
        """Lock a file until it is closed; None if another process holds it."""
        file = path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return file

    def _sync_folder(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
