"""Descriptions of the run-time objects that generated code needs.

Writing the functions of a program has no side effects.  Wherever their source uses an object of the run time, the plan
has its name and one of these values; the executor finds or creates the objects when it loads the plan
(``Runtime.provide``).  Library functions need no such value: they are part of the plan themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from etalis_rules import algebra as alg

from etalis_py.executors.rows.generate.layout import Layout


@dataclass(frozen=True, slots=True)
class GoalStoreSpec:
    """A goal store: which solutions wait there, in which layout, by which columns and for how long at most.

    ``lasting``: as long as the longest window of a family.  ``first``: the first goal of each key stays.  ``number``
    stands for it in the journal.  ``extend`` is the source of a function that adds the values computed when a goal is
    inserted; empty if there are none.
    """

    number: int
    node: str
    side: str
    layout: Layout
    key: tuple[int, ...]
    longest: int | None
    lasting: LongestOf | None = None
    first: bool = False
    extend: str = ""


@dataclass(frozen=True, slots=True)
class GoalBuckets:
    """The buckets of a goal store, or their edges or orders, or its function ``insert_new`` or ``fitting``."""

    node: str
    side: str
    part: Literal["buckets", "edges", "orders", "insert_new", "fitting"]


@dataclass(frozen=True, slots=True)
class Deadline:
    """A part of the deadlines at which the goals of a node are due."""

    node: str
    bound: alg.Bound
    part: Literal["queue", "take", "add"]


@dataclass(frozen=True, slots=True)
class OfInstant:
    """A set or dictionary that is empty between instants."""

    kind: Literal["set", "dict"]


@dataclass(frozen=True, slots=True)
class LookUp:
    """A look-up in the background: from the terms of ``known`` to rows of ``wanted``."""

    pattern: alg.Pattern
    known: tuple[str, ...]
    wanted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MinusLookUp:
    """Whether the background holds a compatible solution that shares a bound variable."""

    pattern: alg.Pattern
    shared: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OfOperator:
    """A reference, in generated code, to one method of a stateful operator (an aggregation, runs or a path)."""

    node: str
    part: Literal[
        "advance",
        "interrupt",
        "partitions",
        "begun",
        "count",
        "waiting",
        "begin",
        "to_end",
        "fall_due",
        "at_end",
        "ends",
        "begins",
        "groups",
        "order",
        "reported",
        "fresh",
    ] = "advance"


@dataclass(frozen=True, slots=True)
class OfRecord:
    """The function that evaluates the pattern of an EVENT over one event."""

    node: str


@dataclass(frozen=True, slots=True)
class OfOutput:
    """A reference to one of the four functions that prepare an output's rows for reporting."""

    number: int
    part: Literal["arrange", "applied", "fresh", "split"]


@dataclass(frozen=True, slots=True)
class OfFamily:
    """A look-up in the parameters of a family: by their equal constants, and by the comparison ``op`` with a number."""

    family: str
    equal: tuple[int, ...] = ()
    compared: int = 0
    op: str = ""


@dataclass(frozen=True, slots=True)
class LongestOf:
    """The greatest parameter of a family at this place: the only item of a list that is kept up to date."""

    family: str
    place: int


@dataclass(frozen=True, slots=True)
class OfRuntime:
    """A method or list of the run time, by its name there."""

    name: str


Need: TypeAlias = (
    GoalBuckets
    | Deadline
    | OfInstant
    | LookUp
    | MinusLookUp
    | OfOperator
    | OfRecord
    | OfOutput
    | OfFamily
    | LongestOf
    | OfRuntime
)
