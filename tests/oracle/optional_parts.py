"""SEQ OPTIONAL, literally: every choice of the parts that come, and no part that fits where one is left
out.

``place.policy`` consumes nothing here: under a consuming policy the operator is a union (``plan.alternatives``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING

from . import patterns
from .absence import across, at_deadline, in_stream, timed
from .beginning import answers_before
from .plan import Condition, Optionally, alternatives
from .solutions import Solution, combine, compatible, strictly_before

if TYPE_CHECKING:
    from .patterns import Place

Parts = Sequence[list[Solution]]


def optionally(plan: Optionally, place: Place) -> list[Solution]:
    if place.policy != "unrestricted":
        return patterns.answers(alternatives(plan), place)
    left = in_stream(answers_before(plan.left, place))
    parts = [in_stream(patterns.answers(part, place)) for part, _ in plan.parts]
    timed(left, *parts)
    if plan.right is None:
        return [s for a in left for s in _in_time(plan, a, parts[0], place)]
    right = in_stream(patterns.answers(plan.right, place))
    timed(right)
    return [s for a in left for c in right for s in _between(plan, a, parts, c, place)]


def _in_time(plan: Optionally, a: Solution, part: list[Solution], place: Place) -> list[Solution]:
    """A with each B that ends by the deadline, or A alone at the deadline."""
    ((_, when),) = plan.parts
    alone = at_deadline(a, plan.deadline)
    came = [
        combine(a, b)
        for b in part
        if compatible(a.mu, b.mu) and strictly_before(a, b) and across(a, b, when, place) and b.end <= alone.end  # type: ignore[operator]
    ]
    return came or [alone]


def _between(plan: Optionally, a: Solution, parts: Parts, c: Solution, place: Place) -> Iterator[Solution]:
    for chosen in product(*((None, *part) for part in parts)):
        row = (a, *chosen, c)
        whole = _in_order(row)
        if whole is None:
            continue
        conditions = {i: when for i, (_, when) in enumerate(plan.parts, 1)}
        came = ((i, b) for i, b in enumerate(chosen, 1) if b is not None)
        left_out = [i for i, b in enumerate(chosen, 1) if b is None]
        if all(across(_before(row, i), b, conditions[i], place) for i, b in came) and not any(
            _fits(b, i, row, whole, conditions[i], place) for i in left_out for b in parts[i - 1]
        ):
            yield whole


def _in_order(row: Sequence[Solution | None]) -> Solution | None:
    """The joined solution of the parts that came, if each is over before the next begins and all are compatible."""
    came = [s for s in row if s is not None]
    whole = came[0]
    for before, after in pairwise(came):
        if not (strictly_before(before, after) and compatible(whole.mu, after.mu)):
            return None
        whole = combine(whole, after)
    return whole


def _before(row: Sequence[Solution | None], place: int) -> Solution:
    """The joined solution of what came to the left of a place."""
    whole = _in_order(row[:place])
    assert whole is not None
    return whole


def _fits(
    b: Solution, i: int, row: Sequence[Solution | None], whole: Solution, when: tuple[Condition, ...], place: Place
) -> bool:
    """Whether this one might have come at place i, in the gap between the neighbours that came."""
    before = next(s for s in reversed(row[:i]) if s is not None)
    after = next(s for s in row[i:] if s is not None)
    in_gap = strictly_before(before, b) and strictly_before(b, after)
    return in_gap and compatible(b.mu, whole.mu) and across(_before(row, i), b, when, place)
