"""Files that grow while they are read."""

from __future__ import annotations

import os
import threading
from typing import IO


class Follow:
    """How to follow a growing file: how often to look, and how to stop."""

    __slots__ = ("poll", "stopped")

    def __init__(self, poll: float = 0.1) -> None:
        self.poll = poll
        self.stopped = threading.Event()

    def stop(self) -> None:
        self.stopped.set()


class FollowedFile:
    """A file whose end is only a pause: ``read1`` waits for more until following is stopped.

    A file that became shorter was truncated; reading on would give nonsense, so it is an error.  So it is if another
    file has its name, as after a rotation of logs: nothing more would come.
    """

    def __init__(self, file: IO[bytes], follow: Follow) -> None:
        self._file, self._follow = file, follow

    def read1(self, size: int) -> bytes:
        while True:
            # Check first whether to stop, then read once more: so everything written before the stop is still taken.
            stopped = self._follow.stopped.is_set()
            replaced = self._is_replaced()
            data = self._file.read(size)
            if data or stopped:
                return data
            if replaced:
                raise OSError("another file took its place while it was followed; start again to read that one")
            if os.fstat(self._file.fileno()).st_size < self._file.tell():
                raise OSError("the file became shorter while it was followed; start again from its new beginning")
            self._follow.stopped.wait(self._follow.poll)

    read = read1

    def _is_replaced(self) -> bool:
        """Whether another file has the name by now; none may have it between the two steps of a rotation."""
        try:
            return not os.path.samestat(os.stat(self._file.name), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return False

    def seek(self, offset: int) -> None:
        self._file.seek(offset)

    def close(self) -> None:
        self._file.close()
