"""What the clauses of a REPEAT ask of the runs that are kept: which of them may go on, and what is counted of each."""

from __future__ import annotations

from .algebra import AggregateCall, looks_back, operators
from .program import Run


def counted(node: Run) -> tuple[AggregateCall, ...]:
    """The aggregates that need an accumulator: not COUNT(*), FIRST and LAST of the result; those of WHERE come last."""
    return (*(a for a in node.aggregates if not is_plain(a)), *node.totals)


def is_plain(a: AggregateCall) -> bool:
    """Whether the length of a run, its first and its last element say it."""
    return a.takes_element or (a.name == "COUNT" and a.operand is None and not a.distinct)


def keeps_longest_alone(node: Run) -> bool:
    """Whether the longest run that ends in an element is the only one that needs to be kept."""
    return node.longest and node.most is None and not sees_beginning(node) and looks_back(node.condition) == 1


def sees_beginning(node: Run) -> bool:
    """Whether a step depends on more of the run than its last elements."""
    return bool(node.totals) or any("FIRST" in operators(e) for e in node.condition)
