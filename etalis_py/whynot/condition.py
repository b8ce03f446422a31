"""One condition of a plan, and helpers for all kinds: the intervals of both sides, and the keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from etalis_rules import algebra as alg

from etalis_py.whynot.plan_shapes import Change, Path, changed
from etalis_py.whynot.titles import Titles

_START, _END = alg.Apply("GETSTARTTIME"), alg.Apply("GETENDTIME")


@dataclass(frozen=True, slots=True)
class Gap:
    """Where nothing may lie: strictly between two marks, or until ``bound`` after the first.

    An empty mark stands for the solution's own start or end.
    """

    first: str = ""
    last: str = ""
    bound: alg.Bound | None = None


@dataclass(frozen=True, slots=True)
class PlanCondition:
    """Something that a plan demands of its solutions.

    ``kind`` is one of filter, absence, existence, window, order, interval, relation, key, term, column, values, stream,
    minus, repeat, gap, longest, maximal, until or skip.  ``node`` is the node it belongs to, ``mark`` the prefix of the
    names of its marks, ``about`` the part of the plan that the measure needs: the expression, the bound, the variable,
    the constant, the node, the pattern of the blockers.  ``sees`` are the variables in scope at its place, ``gap`` is
    where an operator allows no solution of the part that decides.
    """

    kind: str
    text: str
    node: Path
    change: Change
    mark: str
    marks: tuple[str, ...] = ()
    about: Any = None
    operator: str = ""
    sees: frozenset[str] = frozenset()
    gap: Gap | None = None

    @property
    def certain(self) -> tuple[str, ...]:
        """The marks of every solution of the node; the values of the others may be errors, and their times missing."""
        gap = () if self.gap is None else (self.gap.first, self.gap.last)
        return tuple(name for name in self.marks if name in ("in", "n", *gap))

    def taken_from(self, plan: alg.Pattern) -> alg.Pattern:
        """The plan without this condition, with its marks."""
        shown = tuple(self.mark + m for m in self.marks)
        return changed(plan, self.node, self.change, shown)


def timed(child: alg.Pattern, mark: str, side: str) -> alg.Pattern:
    """The pattern with the interval of each solution."""
    return alg.Extend(alg.Extend(child, f"{mark}{side}s", _START), f"{mark}{side}e", _END)


def keys_of(pattern: Any, path: Path, numbers: Iterator[int], titles: Titles) -> Iterator[PlanCondition]:
    """The variables that both sides of a node share."""
    sides = [part.field for part in reversed(alg.parts(pattern)) if part.binds]
    one, other = (alg.scope(getattr(pattern, side)) for side in sides)
    for name in sorted(one & other):
        for side in sides:
            mark = f".why{next(numbers)}."

            def apart(p: alg.Pattern, m: str = mark, v: str = name, s: str = side) -> alg.Pattern:
                return replace(p, **{s: alg.rename(getattr(p, s), {v: m + "k"})})

            title = titles.node(alg.Var(name))
            yield PlanCondition("key", title, path, apart, mark, ("k",), (name, getattr(pattern, side)))
