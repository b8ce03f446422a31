"""The goals of a bucket in the order of their values, for conditions with a lower and an upper bound.

Definition.  Of ``?y > ?x && ?y < ?x + 3`` the one condition bounds what a goal x gives from above (``?x < ?y``), the
other from below (``?x + 3 > ?y``).  The goals are sorted by the value that is bounded from below.  If that also sorts
the values that are bounded from above, those that pass both conditions stand together, and two binary searches find
them.  They are given in the order of the bucket.  A value that is not of the kind that is looked for leaves its goal
among the candidates; NaN passes no bound.

Cost: of a search, two binary searches and the goals found; of a goal, a binary search and a move in a list.  State:
about 50 bytes a goal, built when a bucket is first searched.

>>> from bisect import bisect_left
>>> goals = [(end, end, end * 10, end * 10 + 25) for end in range(1, 100)]
>>> bands = {}
>>> narrowed(bands, "k", goals, (3, bisect_right, 52, int), (2, bisect_left, 30, int))
[]
>>> narrowed(bands, "k", goals, (3, bisect_right, 45, int), (2, bisect_left, 40, int))
[(3, 3, 30, 55)]
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from etalis_py.values import ORDERED

Solution = tuple[Any, ...]
Bound = tuple[int, Callable[[list[Any], Any], int], Any, type | None]
"""The place in a goal of the value that is bounded, what finds the bound among sorted values, the bound and its class.

Of a bound from below, the first value that passes it is found; of one from above, the first that does not.  The class
is None if its values have no order.
"""

KINDS: dict[type | None, type | None] = {kind: Decimal if kind is int else kind for kind in ORDERED} | {None: None}
"""By class, what its values are ordered with: integers and decimals are exact, so Python compares them as SPARQL does.
"""
_SPARE = 64  # so few expired goals are kept, however few others there are


@dataclass(slots=True)
class _Ordered:
    """Goals whose two values have the same kinds, sorted by the value ``from_below``; and their places in the bucket.

    ``together``: this sorts the values ``from_above``, too; otherwise no search is possible, and nothing is sorted.
    """

    from_below: list[Any] = field(default_factory=list)
    from_above: list[Any] = field(default_factory=list)
    goals: list[tuple[int, Solution]] = field(default_factory=list)
    together: bool = True

    def insert(self, below: Any, above: Any, goal: tuple[int, Solution]) -> None:
        if not self.together:
            self.goals.append(goal)
            return
        i = bisect_right(self.from_below, below)
        others = self.from_above
        if (i and others[i - 1] > above) or (i < len(others) and others[i] < above):
            self.together = False
        self.from_below.insert(i, below)
        others.insert(i, above)
        self.goals.insert(i, goal)


class Band:
    """The goals of one bucket.  It takes in those that the bucket got since the last search, and no others may go than
    the oldest.
    """

    def __init__(self) -> None:
        self._ordered: dict[tuple[type | None, type | None], _Ordered] = {}
        self.count = 0
        self._last: Solution = ()

    def take_in(self, bucket: Sequence[Solution], below: int, above: int) -> None:
        """Take in the goals at the end of the bucket that are not here; the values are at these places of a goal."""
        new = len(bucket)
        while new and bucket[new - 1] is not self._last:
            new -= 1
        if not new or self.count > 2 * len(bucket) + _SPARE:
            self._ordered.clear()
            new = self.count = 0
        for goal in bucket[new:]:
            one, other = goal[below], goal[above]
            self.count += 1
            kinds = KINDS.get(one.__class__), KINDS.get(other.__class__)
            if None in kinds:
                kinds, one, other = (None, None), self.count, self.count
            elif one != one or other != other:
                continue
            ordered = self._ordered.get(kinds)
            if ordered is None:
                ordered = self._ordered[kinds] = _Ordered()
            ordered.insert(one, other, (self.count, goal))
        self._last = bucket[-1]

    def candidates(self, bucket: Sequence[Solution], below: Bound, above: Bound) -> Sequence[Solution]:
        """The goals that may pass both bounds, in the order of the bucket; the bucket itself if they are many."""
        (_, first, least, of_least), (_, end, most, of_most) = below, above
        kinds = KINDS[of_least], KINDS[of_most]
        if None in kinds:
            return bucket
        chosen: list[tuple[int, Solution]] = []
        for others, ordered in self._ordered.items():
            if others != kinds:
                low, high = 0, len(ordered.goals)
            elif not ordered.together:
                return bucket
            else:
                low, high = first(ordered.from_below, least), end(ordered.from_above, most)
            if 2 * (len(chosen) + high - low) > len(bucket):
                return bucket
            chosen += ordered.goals[low:high]
        chosen.sort(key=_place)
        oldest = bucket[0][0]
        return [goal for _, goal in chosen if goal[0] >= oldest]


def _place(goal: tuple[int, Solution]) -> int:
    return goal[0]


def narrowed(
    bands: dict[Any, Band], key: Any, bucket: Sequence[Solution], below: Bound, above: Bound
) -> Sequence[Solution]:
    """The goals of the bucket of a key that may pass a bound from below and one from above, and perhaps more."""
    least, most = below[2], above[2]
    if least != least or most != most:
        return ()
    band = bands.get(key)
    if band is None:
        band = bands[key] = Band()
    band.take_in(bucket, below[0], above[0])
    return band.candidates(bucket, below, above)
