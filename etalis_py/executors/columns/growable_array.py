"""Arrays that grow: unused room takes no memory, and where the system allows it, growing copies nothing."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

_LEAST = 1 << 20
"""Arrays of at least this many bytes get memory pages of their own, which the system can enlarge in place."""
_HUGE = 1 << 22
"""From this many bytes on the system is asked for huge pages, as numpy does."""


def zeros(length: int, kind: type, width: int | None = None) -> np.ndarray:
    """An array of zeros, whose memory is returned to the system as soon as nothing refers to it."""
    return GrowableArray(length, kind, width).array


def free_slots(count: int, kind: type) -> np.ndarray:
    """An empty hash table with ``count`` slots, all -1."""
    slots = zeros(count, kind)
    slots[:] = -1
    return slots


class GrowableArray:
    """An array of zeros that can grow.

    >>> numbers = GrowableArray(2, np.int32)
    >>> numbers.array[1] = 5
    >>> numbers.grow(4)
    >>> numbers.array.tolist()
    [0, 5, 0, 0]
    """

    def __init__(self, length: int, kind: type, width: int | None = None) -> None:
        """With ``width`` it is a matrix with that many columns."""
        self.kind = np.dtype(kind)
        self.width = width
        self._pages: mmap.mmap | None = None
        self.array = self._made(length)

    def grow(self, length: int) -> None:
        """Grow to ``length`` rows, of which the first are the existing ones.

        If something else still refers to the old array, that array stays valid, and the rows are copied.
        """
        held, pages = self.array, self._pages
        if pages is not None:
            self.array = np.zeros(0, self.kind)
            del held
            try:
                pages.resize(self._bytes(length))
            except (BufferError, OSError, SystemError):  # something refers to it, or the system cannot do it
                held = self._view(pages)
            else:
                self.array = self._view(pages)
                return
        self.array = self._made(length)
        self.array[: len(held)] = held

    def _made(self, length: int) -> np.ndarray:
        size = self._bytes(length)
        if size < _LEAST or not hasattr(mmap, "MAP_ANONYMOUS"):
            self._pages = None
            shape = length if self.width is None else (length, self.width)
            return np.zeros(shape, self.kind)
        self._pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if size >= _HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
            self._pages.madvise(mmap.MADV_HUGEPAGE)
        return self._view(self._pages)

    def _view(self, pages: mmap.mmap) -> np.ndarray:
        array: np.ndarray[Any, Any] = np.frombuffer(pages, self.kind)
        return array if self.width is None else array.reshape(-1, self.width)

    def _bytes(self, length: int) -> int:
        return length * self.kind.itemsize * (1 if self.width is None else self.width)
