"""The C allocator of a server: freed memory goes back to the system.

The allocator of glibc keeps an arena for each thread, and once a large block has been freed it takes blocks of that
size from the arenas, where a small block behind one pins it for ever.  So a server that is sent large bodies keeps
growing for hours.  Here there are few arenas, and large blocks always come from the system and go back to it.
"""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # the parameter numbers of mallopt(3)
_LARGE = 128 * 1024


def return_memory() -> bool:
    """Configure the allocator of this process where the system supports it; returns whether it does."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return all([mallopt(_ARENA_MAX, 2), mallopt(_MMAP_THRESHOLD, _LARGE), mallopt(_TRIM_THRESHOLD, _LARGE)])
