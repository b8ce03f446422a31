"""REPEAT … MAXIMAL, literally: runs that can grow at neither end, and when that is certain."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from etalis_compiler import ast

from .solutions import AFTER, Instant, Solution
from .ties import decided_at
from .times import duration, shift

Numbers = tuple[int, ...]


def maximal(chosen: Sequence[Numbers], members: Sequence[Solution], is_run: Callable[[Numbers], bool]) -> list[Numbers]:
    """Those of the runs that no element can be put before or after."""

    def grows(run: Numbers) -> bool:
        return any(is_run((i, *run)) or is_run((*run, i)) for i in range(len(members)))

    return [run for run in chosen if not grows(run)]


def over(
    run: Numbers,
    members: Sequence[Solution],
    following: Sequence[Solution],
    absent: Sequence[Solution],
    written: ast.Repeat,
) -> tuple[int, Instant]:
    """The end of a maximal run's solution, and when it is known; ``following``: the next ones of its last element."""
    last = members[run[-1]]
    assert last.end is not None
    if len(run) == written.most:
        return last.end, last.end
    times = [x.end for x in following if x.end is not None]
    times += [n.end for n in absent if n.start > last.end]  # type: ignore[operator, misc]
    if written.gap is not None:
        parsed = duration(written.gap.lexical)
        assert parsed is not None
        times.append(decided_at(int(shift(last.end, *parsed)), last.end))
    return (min(times), min(times)) if times else (last.end, AFTER)
