"""How often, and after what pauses, something outside is tried again that may work later."""

from __future__ import annotations

import time
from collections.abc import Iterator

TRIES = 6
LONGEST_ASKED = 60.0
"""Seconds: whoever asks for a longer pause is asked again after these."""
_FIRST = 0.5


def pauses() -> Iterator[float]:
    """The seconds to wait before each try.

    >>> list(pauses())
    [0.0, 0.5, 1.0, 2.0, 4.0, 8.0]
    """
    yield 0.0
    for number in range(TRIES - 1):
        yield _FIRST * 2**number


def asked_pause(retry_after: str | None) -> float:
    """The seconds that the header ``Retry-After`` of an answer asks for: a number, or the time to come back at.

    0 if there is none, or none that can be read.

    >>> asked_pause("7"), asked_pause("3600"), asked_pause("Wed, 21 Oct 2015 07:28:00 GMT"), asked_pause("soon")
    (7.0, 60.0, 0.0, 0.0)
    """
    said = (retry_after or "").strip()
    if said.isascii() and said.isdigit():
        return min(float(said), LONGEST_ASKED)
    from email.utils import parsedate_to_datetime  # takes a while to import

    try:
        seconds = parsedate_to_datetime(said).timestamp() - time.time()
    except (ValueError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), LONGEST_ASKED)
