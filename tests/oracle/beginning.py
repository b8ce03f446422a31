"""START, literally: a point that precedes every event, also those of its own time.

Half a microsecond before the time at which the stream starts there is nothing, so that is where it ends; what it is
joined with begins at the time itself.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from .solutions import Solution
from .ties import Moment

if TYPE_CHECKING:
    from .patterns import Place


def beginning(place: Place) -> list[Solution]:
    """One solution, if there is an event: the stream starts with the least start of those of the first time."""
    events = [(int(end), start) for *_, start, end in place.dataset.default.facts if end is not None]
    if not events:
        return []
    _, t = min(events)
    before = t - Fraction(1, 2)
    if isinstance(t, Moment):
        t = Moment(t, 0)  # before the first event of its time
    return [Solution((), t, before, before)]  # type: ignore[arg-type]
