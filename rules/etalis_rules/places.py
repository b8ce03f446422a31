"""Ties told apart: events of one time in an order, by a clock that counts places within the times of the source.

With ``ties`` an event is at (time, place), and the relations in time go by both, but lengths go by the times alone.  So
rules run by a finer clock, in which 4,096 ticks are one microsecond of the source:

    time of the source        │ 10:00:00.000000          │ 10:00:00.000001
    tick of the finer clock   │ 0  1  2  3  …       4095 │ 0  1  …
                              START  the events, in order  what the clock decides at that time

No operator knows of it.  What it compares are ticks, which are in the order of (time, place).  Every length says itself
what lies so long after a tick (``SourceBound``): the last tick of that time of the source, so that ``end ≤
bound.after(start)`` holds exactly if it holds of the times.  And what the rules calculate with is time of the source,
as functions of the interval that have the argument ``SOURCE`` give it.

>>> first, second = tick(10, 1), tick(10, 2)
>>> first < second, source_time(first) == source_time(second) == 10
(True, True)
>>> length = SourceBound(micros=5)
>>> [tick(15, 7) <= length.after(second), tick(16, 1) <= length.after(second)]
[True, False]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .algebra import INTERVAL, Apply, Bound, Const, Expr
from .calendar import DAY, add_months
from .program import Node, Rules, Skip
from .traversal import transform

_BITS = 12
LAST = (1 << _BITS) - 1
"""The place after all events of a time, and so the greatest number of events that it may have, plus one."""
FURTHEST = (1 << (63 - _BITS)) - 1
"""Ticks fit in 64 bits for times that are less than so many microseconds away from 1970: until 2041."""
_FIRST, _END = -(1 << 63), (1 << 63) - 1  # the ends of int64 are no ticks: they stand for no time at all

SOURCE = (Const("source"),)
"""The arguments of a function of the interval, or of NOW, that gives a time of the source."""


def tick(time: int, place: int) -> int:
    """The tick of a time and a place."""
    return (time << _BITS) + place


def last_tick(time: int) -> int:
    """The last tick of a time; times beyond all others stay what they are."""
    return tick(time, LAST) if -FURTHEST < time < FURTHEST else time


def source_time(ticks: int) -> int:
    """The time of the source at a tick."""
    return ticks if ticks in (_FIRST, _END) else ticks >> _BITS


@dataclass(frozen=True, slots=True)
class SourceBound(Bound):
    """A length that counts by the times of the source."""

    @property
    def is_fixed(self) -> bool:
        return False

    @property
    def longest(self) -> int:
        return (self.micros + self.months * 31 * DAY + 1) << _BITS

    def after(self, t: int) -> int:
        return tick(add_months(t >> _BITS, self.months) + self.micros, LAST)

    def before(self, t: int) -> int:
        return tick(add_months((t >> _BITS) - self.micros, -self.months), LAST)


def goes_by_place(after: Expr) -> bool:
    """Whether what SKIP goes by is a bound of the match itself, which has a place."""
    return isinstance(after, Apply) and after.op in INTERVAL and not after.args


def skips_by_place(node: Node) -> bool:
    """Whether a node is no SKIP that goes on after another time than a bound of the match."""
    return not isinstance(node, Skip) or node.after is None or goes_by_place(node.after)


def in_places(rules: Rules) -> Rules:
    """The rules by the finer clock."""
    return transform(rules, _in_places)


def _in_places(node: Any) -> Any:
    match node:
        case Bound(micros, months, events=0):
            return SourceBound(micros, months)
        case Apply(op, ()) if op in INTERVAL or op == "NOW":
            return replace(node, args=SOURCE)
        case Skip(after=after) if after is not None and goes_by_place(after):
            return node
    return None
