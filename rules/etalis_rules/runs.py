"""What the clauses of a REPEAT ask of runs: when one is reported, which may go on, and what is counted of each."""

from __future__ import annotations

from .algebra import AggregateCall, looks_back, operators
from .program import Node, Run


def reported_when(node: Node) -> str:
    """The clause by which something else than its last element decides when a run is over; empty without one."""
    if not isinstance(node, Run):
        return ""
    return "MAXIMAL" if node.maximal else "" if node.until is None else "UNTIL"


def chosen_by(node: Node) -> str:
    """The clause that chooses among the runs with one last element; empty without one."""
    return reported_when(node) or ("LONGEST" if isinstance(node, Run) and node.longest else "")


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
