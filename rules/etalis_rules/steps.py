"""What a rule does after its body has matched: the steps on its solutions, and what they test and bind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .algebra import Bound, Expr, Pattern, scope
from .traversal import Name, Text


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter conjunct: an error counts as false."""

    expression: Expr


@dataclass(frozen=True, slots=True)
class Assign:
    """BIND: an error leaves the variable unbound."""

    variable: Name
    expression: Expr


@dataclass(frozen=True, slots=True)
class Duration:
    """end − start ≤ bound."""

    bound: Bound


@dataclass(frozen=True, slots=True)
class Background:
    """A join with the background knowledge as it is at the end of the solution."""

    pattern: Pattern
    binds: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Parameters:
    """A join with the parameters of a family: one row for each query that differs from the others in constants only.

    ``family`` names it.  A row has the name of its query in place 0, then its constants.  ``equal`` are the variables
    that a row's places must equal, ``binds`` those that get their terms from it.  ``compared`` is the comparison
    ``variable op place`` by which rows are found in the order of their numbers; it is tested again afterwards.  If the
    variable is empty, the duration is compared.
    """

    family: Text
    equal: tuple[tuple[Name, int], ...]
    binds: tuple[tuple[Name, int], ...]
    compared: tuple[tuple[Name, Text, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Lasting:
    """end − start ≤ a parameter in microseconds: a window whose length differs between queries."""

    parameter: Name


Step = Condition | Assign | Duration | Background | Parameters | Lasting


@dataclass(frozen=True, slots=True)
class Longest(Bound):
    """The longest window of a family's queries: it determines when goals expire, and refuses nothing.

    ``place`` is that of the lengths in the relation of parameters.  Treated like any other bound it is unlimited.
    """

    micros: int = 2**62
    family: Text = ""
    place: int = 0


def conditions_of(steps: Iterable[Step]) -> tuple[Expr, ...]:
    """The conditions among some steps."""
    return tuple(step.expression for step in steps if isinstance(step, Condition))


def equal_parameter(steps: Iterable[Step]) -> tuple[Name, int] | None:
    """The first variable that has to equal a parameter, and its place; None if none has to."""
    return next((step.equal[0] for step in steps if isinstance(step, Parameters) and step.equal), None)


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
