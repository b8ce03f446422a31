"""What the clock decides, or the end of the stream, rather than an event; and how long goals wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeGuard

from .algebra import Bound, Const
from .program import Absence, Condition, Join, Longest, Map, Node, Run, Start
from .terms import FALSE

NEVER = (Condition(Const(FALSE)),)
"""A condition that nothing fulfils."""


def deadline(node: Node) -> Bound | None:
    """How long after its left side a node decides that something is absent."""
    return node.deadline if isinstance(node, Absence) else None


def reports_what_is_over(node: Node) -> TypeGuard[Run]:
    """Whether it reports a run once, when something has ended it."""
    return isinstance(node, Run) and node.maximal


def ends_by_clock(node: Node) -> bool:
    """Whether it reports a run when no element has come for a time."""
    return reports_what_is_over(node) and node.gap is not None


def ends_with_stream(node: Node) -> bool:
    """Whether it has runs that only the end of the stream ends."""
    return reports_what_is_over(node) and node.gap is None


def is_start(node: Node) -> bool:
    """Whether it is the start of the stream."""
    return isinstance(node, Start)


def has_start(nodes: Iterable[Node]) -> bool:
    """Whether some rule needs to know when the stream starts."""
    return any(map(is_start, nodes))


def is_made_of_start(node: Node, nodes: Mapping[str, Node]) -> bool:
    """Whether its only solution is the start of the stream."""
    while isinstance(node, Map):
        node = nodes[node.child.node]
    return is_start(node)


def as_written(node: Node, nodes: Mapping[str, Node]) -> Node:
    """The node with the lengths that the query gives: after START, which ends a microsecond early, they are longer."""
    if not isinstance(node, Join | Absence) or not is_made_of_start(nodes[node.left.node], nodes):
        return node
    return replace(node, bound=_shorter(node.bound), deadline=_shorter(node.deadline))


def _shorter(bound: Bound | None) -> Bound | None:
    return bound and replace(bound, micros=bound.micros - 1)


def is_start_by_itself(node: Node) -> bool:
    """Whether it is the time at which the stream starts: START with a deadline at once, which nothing can keep away."""
    return isinstance(node, Absence) and node.left == node.absent and node.condition == NEVER


def is_timed(node: Node) -> bool:
    """Whether it may report something at a time without an event."""
    return is_start(node) or deadline(node) is not None or ends_by_clock(node)


def waits(node: Join | Absence) -> Bound | None:
    """How long after its end the left side waits at most; None if without end."""
    if not isinstance(node, Join) or node.deadline is None:
        return node.bound
    if node.bound is None or isinstance(node.bound, Longest):
        return node.deadline
    return min(node.bound, node.deadline, key=lambda bound: (bound.months, bound.micros))
