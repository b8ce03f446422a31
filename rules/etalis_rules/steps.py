"""The steps on the solutions of a node: its conditions, and the variables that they bind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .algebra import Expr, scope
from .program import Assign, Background, Condition, Step
from .traversal import Name


def conditions_of(steps: Iterable[Step]) -> tuple[Expr, ...]:
    """The conditions among some steps."""
    return tuple(step.expression for step in steps if isinstance(step, Condition))


def first_conditions(steps: Iterable[Step]) -> tuple[tuple[Expr, ...], tuple[Step, ...]]:
    """The conditions before any other step, and the steps after them."""
    every = tuple(steps)
    first = next((i for i, step in enumerate(every) if not isinstance(step, Condition)), len(every))
    return conditions_of(every[:first]), every[first:]


def bound_by(steps: Iterable[Step]) -> Iterator[Name]:
    """The variables that steps bind, except to parameters."""
    for step in steps:
        if isinstance(step, Assign):
            yield step.variable
        elif isinstance(step, Background):
            yield from sorted(scope(step.pattern))
