"""Absence and NEXT (docs/semantics.md, Absence, NEXT, REPEAT), literally.

N sees the whole stream, whatever was consumed: its solutions are those without a policy.  The filters at the top level
of N's group, and of the right group of NEXT, see the joined solution at the interval of N, or of the right side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from . import patterns, policies
from .beginning import answers_before
from .plan import Condition, Refused, Without, variables
from .solutions import AFTER, Solution, combine, compatible, strictly_before
from .ties import decided_at
from .times import duration, shift

if TYPE_CHECKING:
    from .patterns import Place


def timed(*sides: Sequence[Solution]) -> None:
    """Sides that may be timeless are refused."""
    if any(s.timeless for side in sides for s in side):
        raise Refused("a side of NOT, NEXT or REPEAT is timeless")


def in_stream(solutions: Sequence[Solution]) -> list[Solution]:
    """Those that are known before the stream has ended, or have no time."""
    return [s for s in solutions if s.timeless or s.known != AFTER]


def without(plan: Without, place: Place) -> list[Solution]:
    """The three kinds of absence."""
    left = answers_before(plan.left, place)
    absent = in_stream(patterns.answers(plan.absent, replace(place, policy="unrestricted")))
    timed(left, absent)
    if plan.deadline or plan.right is not None:
        left = in_stream(left)
    if plan.deadline:
        late = [at_deadline(a, plan.deadline) for a in left]
        fits = [
            not _inside(_seen(plan, absent, a, place), a, a.end, d.end + 1)  # type: ignore[operator]
            for a, d in zip(left, late, strict=True)
        ]
        return [d for d, fit in zip(late, fits, strict=True) if fit]
    if plan.right is None:
        return [p for p in left if not _inside(_seen(plan, absent, p, place), p, p.start, p.end)]
    return _gap(plan, left, absent, place)


def across(left: Solution, right: Solution, when: tuple[Condition, ...], place: Place) -> bool:
    """Whether the conditions hold on the joined solution, at the interval of the right one."""
    both = combine(left, right)
    return place.fulfils(both._replace(start=right.start, end=right.end, known=right.known), when)


def _seen(plan: Without, absent: list[Solution], left: Solution, place: Place) -> list[Solution]:
    """The N that are absent for this solution of the left: those that its conditions let through."""
    return [n for n in absent if compatible(n.mu, left.mu) and across(left, n, plan.across, place)]


def _inside(absent: list[Solution], mu: Solution, after: int | None, before: int | None) -> bool:
    """Whether some N compatible with μ starts after the one time and ends before the other."""
    assert after is not None
    assert before is not None
    return any(compatible(n.mu, mu.mu) and n.start > after and n.end < before for n in absent)  # type: ignore[operator]


def at_deadline(a: Solution, deadline: str) -> Solution:
    """⟨μ, a, a′ + d⟩, which is known at its end."""
    parsed = duration(deadline)
    assert parsed is not None
    assert a.end is not None
    end = decided_at(int(shift(ceil(a.end), *parsed)), a.start)  # START ends just before a time
    return a._replace(end=end, known=end)


def _gap(plan: Without, left: list[Solution], absent: list[Solution], place: Place) -> list[Solution]:
    """``A SEQ NOT N SEQ C``: that no N lies in the gap is part of what makes a candidate."""
    assert plan.right is not None
    right = in_stream(patterns.answers(plan.right, place))
    timed(right)

    def fits(a: Solution, c: Solution) -> bool:
        if not (compatible(a.mu, c.mu) and strictly_before(a, c)):
            return False
        seen = _seen(plan, absent, a, place)
        return not _inside(seen, combine(a, c), a.end, c.start) and place.fulfils(combine(a, c), plan.when)

    if place.policy == "unrestricted":
        return [combine(a, c) for a in left for c in right if fits(a, c)]
    names = variables(plan.left), variables(plan.right)
    return [combine(left[i], right[j]) for i, j in policies.consumed(left, right, fits, place.policy, *names)]


def next_of(
    right: list[Solution], a: Solution, b: Solution, fits: Callable[[Solution, Solution], bool] = lambda a, b: True
) -> bool:
    """Whether b is the first of B after a: no other one compatible with a, that fits it, starts after a and ends before
    b.
    """

    def follows(o: Solution) -> bool:
        return compatible(o.mu, a.mu) and strictly_before(a, o) and fits(a, o)

    return follows(b) and not any(o.end < b.end and follows(o) for o in right)  # type: ignore[operator]
