"""What the clock decides, or the end of the stream, rather than an event; and how long goals wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeGuard

from .algebra import Bound, Const
from .lateness import reports_late
from .program import (
    Absence,
    Condition,
    Duration,
    Group,
    Join,
    Longest,
    Map,
    Node,
    Outer,
    Ref,
    Run,
    Slice,
    Start,
    Union,
    made_from,
    refs,
)
from .relations import ASKED, TOGETHER
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


def is_aggregation(node: Node) -> TypeGuard[Group]:
    """Whether its rows sum up the solutions of another node."""
    return isinstance(node, Group)


def answers_untimed(node: Node) -> bool:
    """Whether it may have rows without a time when the stream has ended: over nothing, or the background alone."""
    return is_aggregation(node) and (not node.keys or node.background is not None)


def passed_on_untimed(node: Node) -> Iterable[Ref]:
    """The inputs whose rows without a time a node takes at the end of the stream.

    One that compares them with the stream does not: what it has kept is no longer all that came.
    """
    if isinstance(node, Map | Union | Group | Slice):
        return refs(node)
    return (node.left,) if isinstance(node, Outer) and node.right is None else ()


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


def is_decided_by_key(node: Node) -> TypeGuard[Outer]:
    """Whether a left of an outer node has a partner as soon as its key has a goal that is over in time."""
    if not isinstance(node, Outer) or node.right is None or node.condition or node.bound is not None:
        return False
    shared = set(node.left.columns) & set(node.right.columns)
    return (shared & set(node.scope) if node.scope else shared) <= set(node.certain)


def shown_within(name: str, nodes: Mapping[str, Node]) -> Bound | None:
    """How long after its end an optional solution is still shown; None if for ever, or if nothing says how long.

    A WITHIN around an OPTIONAL refuses the pairs that last too long, but a left whose partners are all too old has
    partners and is not reported alone.  So of each key the first goal has to be kept as well.  A left that becomes
    known after its end may look for goals that are older than those of its instant: then nothing says how long.
    """
    node = nodes[name]
    if not isinstance(node, Outer) or node.right is None or node.bound is not None or node.policy:
        return None
    bounds = [step.bound for step in node.steps if isinstance(step, Duration) and not isinstance(step.bound, Longest)]
    if not bounds or node.op in ASKED or node.op in TOGETHER or _knows_late(name, nodes):
        return None
    return min(bounds, key=lambda bound: bound.longest)


def _knows_late(name: str, nodes: Mapping[str, Node]) -> bool:
    """Whether solutions of the node, or of one below it, may be known after they end."""
    below = [name]
    for one in below:
        node = nodes.get(one)
        if node is not None and (reports_late(node) or ends_with_stream(node)):
            return True
        below += [part for part in (() if node is None else made_from(node)) if part not in below]
    return False
