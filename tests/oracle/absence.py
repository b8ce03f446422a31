"""Absence and NEXT (DESIGN §4.15 and §4.16), literally.

N sees the whole stream, whatever was consumed: its solutions are those without a policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from . import patterns, policies
from .plan import Refused, Without, variables
from .solutions import Solution, combine, compatible, strictly_before
from .times import duration, shift

if TYPE_CHECKING:
    from .patterns import Place


def timed(*sides: Sequence[Solution]) -> None:
    """Sides that may be timeless are refused."""
    if any(s.timeless for side in sides for s in side):
        raise Refused("a side of NOT, NEXT or REPEAT is timeless")


def without(plan: Without, place: Place) -> list[Solution]:
    """The three kinds of absence."""
    left = patterns.answers(plan.left, place)
    absent = patterns.answers(plan.absent, replace(place, policy="unrestricted"))
    timed(left, absent)
    if plan.deadline:
        late = [_at_deadline(a, plan.deadline) for a in left]
        return [d for a, d in zip(left, late, strict=True) if not _inside(absent, a, a.end, d.end + 1)]  # type: ignore[operator]
    if plan.right is None:
        return [p for p in left if not _inside(absent, p, p.start, p.end)]
    return _gap(plan, left, absent, place)


def _inside(absent: list[Solution], mu: Solution, after: int | None, before: int | None) -> bool:
    """Whether some N compatible with μ starts after the one time and ends before the other."""
    assert after is not None
    assert before is not None
    return any(compatible(n.mu, mu.mu) and n.start > after and n.end < before for n in absent)  # type: ignore[operator]


def _at_deadline(a: Solution, deadline: str) -> Solution:
    """⟨μ, a, a′ + d⟩, which is known at its end."""
    parsed = duration(deadline)
    assert parsed is not None
    assert a.end is not None
    end = int(shift(a.end, *parsed))
    return a._replace(end=end, known=end)


def _gap(plan: Without, left: list[Solution], absent: list[Solution], place: Place) -> list[Solution]:
    """``A SEQ NOT N SEQ C``: that no N lies in the gap is part of what makes a candidate."""
    assert plan.right is not None
    right = patterns.answers(plan.right, place)
    timed(right)

    def fits(a: Solution, c: Solution) -> bool:
        if not (compatible(a.mu, c.mu) and strictly_before(a, c)):
            return False
        return not _inside(absent, combine(a, c), a.end, c.start) and place.fulfils(combine(a, c), plan.when)

    if place.policy == "unrestricted":
        return [combine(a, c) for a in left for c in right if fits(a, c)]
    names = variables(plan.left), variables(plan.right)
    return [combine(left[i], right[j]) for i, j in policies.consumed(left, right, fits, place.policy, *names)]


def next_of(right: list[Solution], a: Solution, b: Solution) -> bool:
    """Whether b is the first of B after a: no other one compatible with a starts after a and ends before b."""
    if not strictly_before(a, b):
        return False
    return not any(compatible(o.mu, a.mu) and strictly_before(a, o) and o.end < b.end for o in right)  # type: ignore[operator]
