"""The goals of a bucket that nothing has refused: of A and C without an N between, where A alone tells which N count.

Definition.  An N refuses a goal x of A if it starts after x has ended, agrees with it, and satisfies the condition
together with it, if there is one.  A solution of C completes the goals that no N refuses of those which ended before it
started.  Of each bucket the goals that were not refused so far are remembered, and up to which time the N have been
compared with each: a goal that is refused is not looked at again, and no N is compared with a goal twice.  A solution
of C that starts before one that asked already is compared as if nothing were remembered.

Cost: of a search, the goals that no N has refused (with a policy, those it passes) and the N that are new to them.
State: about 16 bytes for each of these goals, built when a bucket with many goals is searched.

>>> goals = [(end, end, value) for end, value in enumerate((5, 1, 7, 2))]
>>> absent = [(2, 2, 4), (3, 3, 6)]
>>> memory = {}
>>> open_goals(memory, "k", goals, 9, lambda x: absent, lambda x, n: n[2] < x[2])
[(1, 1, 1), (3, 3, 2)]
>>> list(open_places(memory, "k", goals, 9, lambda x: absent, lambda x, n: n[2] < x[2], True))
[3, 1]
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from etalis_py.executors.rows.run.first_fitting import place_of

Solution = tuple[Any, ...]
AbsentOf = Callable[[Solution], Sequence[Solution] | None]
"""The N that agree with a goal, in the order of their ends."""
Refuses = Callable[[Solution, Solution], bool]
"""Whether the condition holds for a goal and an N."""
_LONG_AGO = -(1 << 63)


class _Open:
    """The goals of one bucket that ended before ``until`` and were not refused, and the time up to which the N that
    ended before it have been compared with each.
    """

    def __init__(self) -> None:
        self.goals: list[Solution] = []
        self.compared: list[int] = []
        self.until = _LONG_AGO

    def take_in(self, bucket: Sequence[Solution], begun: int) -> None:
        """Take in the goals that ended before a time, and forget those that have expired: they were the first."""
        expired = bisect_left(self.goals, (bucket[0][0],))
        del self.goals[:expired], self.compared[:expired]
        first = bisect_left(bucket, (self.until,))
        new = bucket[first : bisect_left(bucket, (begun,), first)]
        self.goals += new
        self.compared += [_LONG_AGO] * len(new)
        self.until = begun


def _asked(memory: dict[Any, _Open], key: Any, bucket: Sequence[Solution], begun: int) -> _Open:
    """What is remembered of a bucket, for a solution that starts at this time; of an earlier one, nothing is."""
    known = memory.get(key)
    if known is None:
        known = memory[key] = _Open()
    elif begun < known.until:
        known = _Open()
    known.take_in(bucket, begun)
    return known


def _is_refused(x: Solution, compared: int, begun: int, absent: AbsentOf, refuses: Refuses) -> bool:
    """Whether an N that ended within [compared, begun) refuses a goal."""
    bucket, end = absent(x), x[0]
    if not bucket or bucket[-1][0] < compared or bucket[-1][0] <= end:
        return False
    for place in range(bisect_left(bucket, (max(compared, end + 1),)), len(bucket)):
        n = bucket[place]
        if n[0] >= begun:
            return False
        if n[1] > end and refuses(x, n):
            return True
    return False


def open_goals(
    memory: dict[Any, _Open], key: Any, bucket: Sequence[Solution], begun: int, absent: AbsentOf, refuses: Refuses
) -> list[Solution]:
    """The goals in the bucket of a key that a solution which starts at ``begun`` completes, in their order."""
    known = _asked(memory, key, bucket, begun)
    pairs = zip(known.goals, known.compared, strict=True)
    known.goals = [x for x, compared in pairs if not _is_refused(x, compared, begun, absent, refuses)]
    known.compared = [begun] * len(known.goals)
    return known.goals


def open_places(
    memory: dict[Any, _Open],
    key: Any,
    bucket: Sequence[Solution],
    begun: int,
    absent: AbsentOf,
    refuses: Refuses,
    latest: bool,
) -> Iterator[int]:
    """The places of these goals in the bucket, the latest (or earliest) first.

    The goals may change as soon as a place has been given.
    """
    known = _asked(memory, key, bucket, begun)
    goals, compared = known.goals, known.compared
    i = len(goals) - 1 if latest else 0
    while 0 <= i < len(goals):
        x = goals[i]
        place = None if _is_refused(x, compared[i], begun, absent, refuses) else place_of(bucket, x)
        if place is None:  # refused, or taken by another solution
            del goals[i], compared[i]
        else:
            compared[i] = begun
            yield place
            i += not latest
        i -= latest
