"""The goals of a bucket as a tree, for a policy that takes the latest (or earliest) one whose value fits.

Definition.  Of ``?x < ?y`` an arriving ?y takes the latest goal whose value lies below its own.  The goals are the
leaves of a tree, in the order of the bucket; each node has the value of its subtree that fits first, here the lowest.
A search goes from the end of the leaves up to a subtree with a value that fits, and down to the last one there.  A goal
that has left the bucket is taken out of the tree when a search finds it.  NaN never fits.  If the values are not all of
one kind, or not of that of the arriving one, all goals of the bucket are candidates.

Cost: of a search, the logarithm of the goals; of a goal, as much when it comes and when it has gone.  State: about 30
bytes a goal, built when a search has looked at some goals in vain.

>>> from operator import lt
>>> goals = [(end, end, value) for end, value in enumerate((9, 2, 7, 5, 8, 1, 4))]
>>> tree = FirstFitting(2, lt, latest=True, passed=2)
>>> list(tree.candidates(goals, 6))
[3, 1]
>>> del goals[3]
>>> list(tree.candidates(goals, 6)), list(tree.candidates(goals, "a"))
([1], [3, 2, 1, 0])
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import le, lt
from typing import Any

from etalis_py.executors.rows.run.bands import KINDS

Solution = tuple[Any, ...]
Fits = Callable[[Any, Any], bool]
"""``lt``, ``le``, ``gt`` or ``ge``: whether the value of a goal fits an arriving one."""

_BITS = 4
_WIDE = 1 << _BITS
"""So many children a node of the tree has."""
_SPARE = 64  # so many goals that have left the bucket are kept, however few others there are


class FirstFitting:
    """The tree of one bucket.  It takes in the goals that the bucket got since the last search; new ones come last.

    The value of a goal is at a ``place`` of it, and ``fits`` says whether it fits that of an arriving solution.  The
    first ``passed`` goals in the order of the policy have been looked at when the tree is searched.  The values of the
    leaves are the lowest of the ``levels``; ``None`` stands for one that never fits.  ``_newest`` are the goals that
    ended when the latest did, by identity: others that ended then may still come.
    """

    def __init__(self, place: int, fits: Fits, *, latest: bool, passed: int) -> None:
        self._place, self._fits, self._latest, self._passed = place, fits, latest, passed
        self._best: Callable[[Iterable[Any]], Any] = min if fits in (lt, le) else max
        self._clear()
        self._alike = True

    def _clear(self) -> None:
        self._kind: type | None = None
        self._goals: list[Solution | None] = []
        self._levels: list[list[Any]] = [[]]
        self._newest: dict[int, Solution] = {}

    def candidates(self, bucket: Sequence[Solution], value: Any) -> Iterable[int]:
        """The places of the goals whose values fit this one, in the order of the policy, and perhaps more.

        Those that are passed anyway may be missing.  The goals may change as soon as a place has been given.
        """
        kind, latest = KINDS.get(value.__class__), self._latest
        if kind is not None and self._take_in(bucket, kind):
            return self._places(bucket, value)
        return range(len(bucket) - self._passed - 1, -1, -1) if latest else range(self._passed, len(bucket))

    def _take_in(self, bucket: Sequence[Solution], kind: type) -> bool:
        """Take in the new goals; whether the values of all goals are of this kind."""
        if len(self._goals) > 2 * len(bucket) + _SPARE:
            self._clear()
        if not self._goals:
            self._kind = kind
        if kind is not self._kind or not self._alike:
            return False
        for goal in self._new(bucket):
            value = goal[self._place]
            if KINDS.get(value.__class__) is not kind:
                self._clear()
                self._alike = False
                return False
            self._append(goal, value if value == value else None)
        return True

    def _new(self, bucket: Sequence[Solution]) -> list[Solution]:
        """The goals of the bucket that are not in the tree, without the newest ones if they are passed anyway."""
        newest, count = self._newest, len(bucket) - self._passed if self._latest else len(bucket)
        if not newest:
            return list(bucket[:count])
        last = next(iter(newest.values()))[0]
        return [goal for goal in bucket[bisect_left(bucket, (last,)) : count] if id(goal) not in newest]

    def _append(self, goal: Solution, value: Any) -> None:
        if self._newest and goal[0] != next(iter(self._newest.values()))[0]:
            self._newest.clear()
        self._newest[id(goal)] = goal
        place = len(self._goals)
        self._goals.append(goal)
        levels = self._levels
        levels[0].append(value)
        for height in range(1, len(levels)):
            place >>= _BITS
            level = levels[height]
            if place == len(level):
                level.append(value)
            elif value is not None and (level[place] is None or self._is_better(value, level[place])):
                level[place] = value
            else:
                return
        if len(levels[-1]) > _WIDE:
            levels.append([self._best_of(levels[-1][:_WIDE]), self._best_of(levels[-1][_WIDE:])])

    def _is_better(self, value: Any, other: Any) -> bool:
        return bool(self._best((value, other)) is value)

    def _best_of(self, values: list[Any]) -> Any:
        fitting = [value for value in values if value is not None]
        return self._best(fitting) if fitting else None

    def _take_out(self, place: int) -> None:
        self._goals[place] = None
        best = None
        for level, above in zip(self._levels, [*self._levels[1:], None], strict=True):
            level[place] = best
            if above is None:
                return
            first = place & -_WIDE
            best = self._best_of(level[first : first + _WIDE])
            place >>= _BITS
            if best is not None and best == above[place]:
                return

    def _places(self, bucket: Sequence[Solution], value: Any) -> Iterator[int]:
        leaf = len(self._goals) if self._latest else -1
        while (found := self._next(leaf, value)) is not None:
            leaf = found
            goal = self._goals[leaf]
            assert goal is not None
            place = place_of(bucket, goal)
            if place is None:
                self._take_out(leaf)
            else:
                yield place

    def _next(self, place: int, value: Any) -> int | None:
        """The next leaf after this one, in the order of the policy, whose value fits."""
        fits, top = self._fits, len(self._levels) - 1
        for height, level in enumerate(self._levels):
            found = None
            for i in self._siblings(place, len(level), height == top):
                if (best := level[i]) is not None and fits(best, value):
                    found = i
                    break
            if found is not None:
                return self._descend(height, found, value)
            place >>= _BITS
        return None

    def _siblings(self, place: int, count: int, is_top: bool) -> range:
        """The nodes of a level after this one, in the order of the policy, that have the same parent."""
        if self._latest:
            return range(place - 1, -1 if is_top else (place & -_WIDE) - 1, -1)
        return range(place + 1, count if is_top else min((place | (_WIDE - 1)) + 1, count))

    def _descend(self, height: int, place: int, value: Any) -> int:
        """The first leaf of a subtree, in the order of the policy, whose value fits."""
        fits = self._fits
        for level in reversed(self._levels[:height]):
            first = place << _BITS
            last = min(first + _WIDE, len(level))
            for i in range(last - 1, first - 1, -1) if self._latest else range(first, last):
                if (best := level[i]) is not None and fits(best, value):
                    place = i
                    break
        return place


def place_of(bucket: Sequence[Solution], goal: Solution) -> int | None:
    """Where a goal is in a bucket; None if it has left it."""
    end = goal[0]
    for place in range(bisect_left(bucket, (end,)), len(bucket)):
        other = bucket[place]
        if other is goal:
            return place
        if other[0] != end:
            break
    return None
