"""START, literally: a point that precedes every event, also those of its own time.

Half a microsecond before the time at which the stream starts there is nothing, so that is where it ends; what it is
joined with begins at the time itself.  Where it stands by itself, nothing comes after it, so it is that time: a
solution has a time of the clock.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from . import patterns
from .plan import Beginning, Plan, Union
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


def answers_before(left: Plan, place: Place) -> list[Solution]:
    """The solutions of the left side of a sequence, which may be START, or a UNION with it."""
    match left:
        case Beginning():
            return beginning(place)
        case Union(one, other):
            return answers_before(one, place) + answers_before(other, place)
    return patterns.answers(left, place)


def start_by_itself(place: Place) -> list[Solution]:
    """The time at which the stream starts, as a point."""
    return [s._replace(end=s.start, known=s.start) for s in beginning(place)]  # type: ignore[arg-type]
