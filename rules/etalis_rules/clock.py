"""What is decided by the clock, or by the end of the stream, rather than by an event."""

from __future__ import annotations

from typing import TypeGuard

from .algebra import Bound
from .program import Absence, Node, Run, Start


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


def is_timed(node: Node) -> bool:
    """Whether it may report something at a time without an event."""
    return isinstance(node, Start) or deadline(node) is not None or ends_by_clock(node)
