"""How often, and after what pauses, something outside is tried again that may work later."""

from __future__ import annotations

from collections.abc import Iterator

TRIES = 6
_FIRST = 0.5


def pauses() -> Iterator[float]:
    """The seconds to wait before each try.

    >>> list(pauses())
    [0.0, 0.5, 1.0, 2.0, 4.0, 8.0]
    """
    yield 0.0
    for number in range(TRIES - 1):
        yield _FIRST * 2**number
