"""The temporal relations, each defined in one line, and everything that follows from the line.

A relation compares the bounds of the left interval [a, a'] with those of the right interval [b, b']; no interval is
empty, so a ≤ a' and b ≤ b'.  Which side ends last, the interval of the joined solution, how long it can be, the test in
Python or in the notation of the rules: all of it is read off the definition, by looking at every order that four
bounds can have.

>>> Op.OVERLAPS.comparisons
(('a', '<', 'b'), ('b', '<', "a'"), ("a'", '<', "b'"))
>>> Op.OVERLAPS in RIGHT_LAST, hull(Op.OVERLAPS), longest(Op.OVERLAPS, 2, 3)
(True, ('a', "b'"), 5)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from itertools import product

Test = Callable[[int, int, int, int], bool]
"""A condition on a, a', b and b'."""
BOUNDS = ("a", "a'", "b", "b'")
ENDLESS = 2**62
"""A length of time longer than any stream."""


class _Defined(StrEnum):
    """An operator with the comparisons that define it.  It is spelt like its value, as ids of rules are made of it."""

    comparisons: tuple[tuple[str, str, str], ...]

    def __new__(cls, value: str, definition: str = "") -> _Defined:
        member = str.__new__(cls, value)
        member._value_ = value
        member.comparisons = tuple(_comparison(part) for part in definition.split(", ") if part)
        return member

    def __repr__(self) -> str:
        return repr(self.value)


def _comparison(text: str) -> tuple[str, str, str]:
    left, op, right = text.split()
    return left, op, right


class Op(_Defined):
    """How a join relates its two sides in time."""

    AND = "and"
    SEQ = "seq", "a' < b"
    NEXT = "next", "a' < b"
    EQUALS = "equals", "a = b, a' = b'"
    MEETS = "meets", "a < b, a' = b, a' < b'"
    OVERLAPS = "overlaps", "a < b, b < a', a' < b'"
    STARTS = "starts", "a = b, a' < b'"
    DURING = "during", "b < a, a' < b'"
    FINISHES = "finishes", "b < a, a' = b'"
    PAR = "par", "a <= b', b <= a'"


class OuterOp(_Defined):
    """How the optional right side of an outer join relates to its mandatory left side in time."""

    OPTIONAL = "optional", "b' <= a'"
    OPTIONALSEQ = "optionalseq", "b' < a"
    EQUALSOPTIONAL = "equalsoptional", "b = a, b' = a'"
    MINUS = "minus", "b' <= a'"
    EXISTS = "exists", "b' <= a'"


Relation = Op | OuterOp
_WORDS: Mapping[Op, str] = {
    Op.AND: "both, in any order",
    Op.SEQ: "left ends before right starts",
    Op.NEXT: "right is the first that starts after left has ended",
    Op.EQUALS: "both have the same interval",
    Op.MEETS: "right starts when left ends",
    Op.OVERLAPS: "right starts before left ends, and ends after it",
    Op.STARTS: "both start together, left ends first",
    Op.DURING: "left lies inside right",
    Op.FINISHES: "both end together, right starts first",
    Op.PAR: "they share an instant",
}
_PYTHON = {"<": "<", "<=": "<=", "=": "=="}
# Four bounds can come in no more orders than these numbers show.
_ORDERS = [(a, e, b, f) for a, e, b, f in product(range(4), repeat=4) if a <= e and b <= f]


def relation_of(word: str) -> Relation | None:
    """The relation that is written so, in capitals; None if the word is none."""
    return next((op for op in (*Op, *OuterOp) if op.upper() == word), None)


def words(op: Op) -> str:
    """The relation in words, of ``left`` and ``right``."""
    return _WORDS[op]


def formula(op: Relation) -> str:
    """The definition as it is printed: ``a < b, a′ = b, a′ < b′``."""
    return ", ".join(" ".join(part) for part in op.comparisons).replace("'", "′").replace("<=", "≤")


def sources(op: Relation, bounds: Mapping[str, str]) -> list[str]:
    """The comparisons in Python, with this source for each of the four bounds."""
    return [f"{bounds[x]} {_PYTHON[test]} {bounds[y]}" for x, test, y in op.comparisons]


@cache
def holds(op: Relation) -> Test:
    """Whether the relation holds between [a, a'] and [b, b'], as a function of the four."""
    test = " and ".join(sources(op, dict(zip(BOUNDS, "aebf", strict=True)))) or "True"
    made: Test = eval(f"lambda a, e, b, f: {test}")
    return made


def _always(op: Relation, test: Test) -> bool:
    """Whether the test follows from the relation."""
    relation = holds(op)
    return all(test(*order) for order in _ORDERS if relation(*order))


def _those(test: Test) -> frozenset[Relation]:
    """The operators whose relation implies the test."""
    return frozenset(op for op in (*Op, *OuterOp) if _always(op, test))


RIGHT_LAST = _those(lambda a, e, b, f: e < f)
"""The right side ends after the left one, so the left one waits."""
LEFT_LAST = _those(lambda a, e, b, f: f < e)
TOGETHER = _those(lambda a, e, b, f: e == f)
"""Both sides end at the same instant, so neither waits."""
EITHER_LAST = frozenset(Op) - RIGHT_LAST - TOGETHER
"""The joins in which either side may end last, so both wait."""
APART = _those(lambda a, e, b, f: e < b)
"""The left side is over before the right one starts."""
OPTIONAL_FIRST = frozenset(op for op in OuterOp if op in LEFT_LAST)
"""The outer joins whose optional side is over first, and is written first."""
IN_TURN = _those(lambda a, e, b, f: e < b or f < a)
"""One side is over before the other one starts."""
NEAREST = frozenset({Op.NEXT})
"""The joins in which a left side takes the first right one alone, and has then been answered."""
SAME_INTERVAL = _those(lambda a, e, b, f: a == b and e == f)
AT_ONCE = frozenset(op for op in (*Op, *OuterOp) if holds(op)(0, 0, 0, 0))
"""Both sides may be the same point in time."""
ASKED = frozenset({OuterOp.MINUS, OuterOp.EXISTS})
"""The outer joins whose right side is only asked for: it is no part of the solutions."""


@cache
def hull(op: Relation) -> tuple[str, str]:
    """The bounds of a joined solution; ``min`` or ``max`` where the relation leaves open which side gives them."""
    if _always(op, lambda a, e, b, f: a <= b):
        start, ends = "a", ("a'", "b'")
    elif _always(op, lambda a, e, b, f: b <= a):
        start, ends = "b", ("b'", "a'")
    else:
        start, ends = "min", ("a'", "b'")
    last = {"a'": _always(op, lambda a, e, b, f: f <= e), "b'": _always(op, lambda a, e, b, f: e <= f)}
    return start, next((end for end in ends if last[end]), "max")


@cache
def _longest(op: Relation) -> Callable[[int, int], int] | None:
    """The first of these bounds on the length of the hull that follows from the relation."""
    forms: tuple[Callable[[int, int], int], ...] = (
        min,
        lambda left, right: right,
        lambda left, right: left,
        lambda left, right: left + right,
    )
    for form in forms:
        if _always(op, lambda a, e, b, f, form=form: max(e, f) - min(a, b) <= form(e - a, f - b)):  # type: ignore[misc]
            return form
    return None


def longest(op: Relation, left: int, right: int) -> int:
    """The longest hull of sides that last at most so long, by the relation alone; ``ENDLESS`` if it sets no limit."""
    form = _longest(op)
    return ENDLESS if form is None else form(left, right)
