"""What there is to say about the operators of EP-SPARQL: how they are written, what they relate, what they show, how
long their matches last."""

from __future__ import annotations

from .nodes import (
    Combined,
    EventGroup,
    Exists,
    GraphGroup,
    Group,
    Minus,
    Optional,
    Pattern,
    Repeat,
    SeqNot,
    SeqOptional,
    Skip,
    Start,
    StreamGroup,
    WindowGroup,
    Within,
)
from .terms import FORWARD, IN_TURN, OF_ONE_SIDE, SEEING_LEFT, SEEING_RIGHT, Duration, Operator, Var

AFTER_A_GROUP = frozenset({"WITHIN", "REPEAT", "SKIP", "DISJOINT", "THROTTLE"})
"""The words that may follow a group and take it alone."""
WAITS = (
    "a match takes in the time that SEQ NOT … WITHIN waits, and the silence of GAP that ends a run of MAXIMAL; to "
    "bound a run alone, compare the times of its elements: "
    "AS (FIRST(?t) AS ?from, LAST(?t) AS ?to) FILTER (?to - ?from < …)"
)
"""Why a match lasts as long as something waits (``shortest_match``)."""


def keyword(node: object) -> str:
    """An operator that relates solutions in time, as it is written; empty for any other node."""
    match node:
        case Combined() if node.operator not in (Operator.AND, Operator.UNION):
            return str(node.operator.value)
        case SeqNot():
            return "SEQ NOT"
        case SeqOptional():
            return "SEQ OPTIONAL"
        case Repeat():
            return "REPEAT"
        case Skip(kind=kind):
            return f"SKIP {kind}" if kind in ("PAST", "TO") else kind
    return ""


def mandatory_parts(pattern: object) -> tuple[object, ...]:
    """The parts of which each solution of a pattern has one, from the first to the last; none for a group."""
    match pattern:
        case GraphGroup(_, inner) | StreamGroup(_, inner) | WindowGroup(_, inner):
            return (inner,)
        case EventGroup(inner) | Within(inner) | Skip(inner):
            return (inner,)
        case Combined(operator, left, right) if operator not in OF_ONE_SIDE:
            return (left,) if operator is Operator.NOT else (left, right)
        case SeqNot(left, _, right) | SeqOptional(left, _, right):
            return (left,) if right is None else (left, right)
    return ()


def word_of(node: object) -> str:
    """Any operator that a node of the rules may come from, as it is written; empty for any other node."""
    match node:
        case Optional() | Minus() | Exists():
            return type(node).__name__.upper()
        case Combined(operator):
            return str(operator.value)
    return keyword(node)


def alone(pattern: object) -> object:
    """What stands alone in a group, perhaps in more braces; any other pattern as it is."""
    while isinstance(pattern, Group) and len(pattern.elements) == 1:
        pattern = pattern.elements[0]
    return pattern


def is_start(pattern: object) -> bool:
    """Whether a pattern is START alone."""
    return isinstance(alone(pattern), Start)


def is_only_forward(node: object) -> bool:
    """Whether an operator decides what is next, absent, repeated or skipped, so that it only follows a stream."""
    return isinstance(node, SeqNot | SeqOptional | Repeat | Skip) or (
        isinstance(node, Combined) and node.operator in FORWARD
    )


def sides(node: object) -> tuple[tuple[Pattern, bool], ...]:
    """The patterns that an operator relates, in their order, each with whether its variables come into scope."""
    match node:
        case Combined(operator, left, right):
            return (left, True), (right, operator is not Operator.NOT)
        case SeqNot(left, absent, right):
            return (left, True), (absent, False), *(() if right is None else ((right, True),))
        case SeqOptional(left, optionals, right):
            every = (left, *optionals) if right is None else (left, *optionals, right)
            return tuple((side, True) for side in every)
        case Within(pattern) | Skip(pattern):
            return ((pattern, True),)
        case Repeat(pattern, absent=absent, until=until):
            gone = () if absent is None else ((absent, False),)
            return (pattern, False), *gone, *(() if until is None else ((until, True),))
    return ()


def seen_by_filters(node: object) -> tuple[tuple[Pattern, tuple[Pattern, ...]], ...]:
    """The patterns that an operator relates, each with the other ones whose variables its own filters may read."""
    match node:
        case Combined(operator, left, right):
            seen = (right,) if operator in SEEING_RIGHT else ()
            return (left, seen), (right, (left,) if operator in SEEING_LEFT else ())
        case SeqNot(left, absent, right):
            return (left, ()), (absent, (left,)), *(() if right is None else ((right, ()),))
        case SeqOptional(left, optionals, right):
            parts = tuple((part, (left, *optionals[:n])) for n, part in enumerate(optionals))
            return (left, ()), *parts, *(() if right is None else ((right, ()),))
    return tuple((side, ()) for side, _ in sides(node))


def shown(node: object) -> tuple[Var, ...]:
    """The variables that an operator itself brings into scope."""
    return (*node.by, *(c.variable for c in node.columns)) if isinstance(node, Repeat) else ()


def microseconds(duration: Duration | None) -> int | None:
    """The length in microseconds; None of a number of events, and of months, which the calendar counts."""
    months, micros = (duration and duration.length) or (1, 0)
    return None if months else micros


def shortest_match(pattern: object) -> int:
    """Microseconds that every match of a pattern lasts because something waits for a time to pass."""
    match alone(pattern):
        case SeqNot(left, _, None, bound):
            return shortest_match(left) + (microseconds(bound) or 0)
        case SeqNot(left, _, right) | SeqOptional(left, _, right):
            return shortest_match(left) + shortest_match(right)
        case Combined(operator, left, right) if operator in IN_TURN:
            return shortest_match(left) + shortest_match(right)
        case Repeat(most=None, condition=None, absent=None, gap=gap, maximal=True):
            return microseconds(gap) or 0
        case Within(inner) | Skip(inner) | Combined(Operator.NOT, inner):
            return shortest_match(inner)
        case Group(elements):
            return max(map(shortest_match, elements), default=0)
    return 0
