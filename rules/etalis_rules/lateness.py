"""What may become known after its end: rows of aggregates, what rules derive from them, and all that is made of these.

The row of a group ends with the last of its contributions.  It is reported when it changes, and that may be because
something left the group, long after.  A rule that makes an event of such a row derives it of the past.

The leaves and EVENTs for which rules derive such events are ``late``: that is how long after their end these may become
known, in microseconds.  It follows from the rules beside them, so it is no part of their ids.  Below an operator that
decides at the end of each instant what is next or absent they are ``in_time`` instead, and leave such events out.
"""

from __future__ import annotations

from collections.abc import Mapping

from .algebra import VOLATILE, has_exists, operators
from .program import Group, Leaf, Node, Record, refs

ANY_TIME = 1 << 62
"""More microseconds than lie between any two times."""


def reports_late(node: Node) -> bool:
    """Whether it may have solutions that end before the instant in which they are known, though none of its inputs has.

    The row of an aggregate has the hull of its contributing solutions; it may change because old ones left the window.
    What a rule derives from such a row is seen by leaves that are ``late``.
    """
    return bool(node.late) if isinstance(node, Leaf | Record) else isinstance(node, Group)


def lateness(node: Node, below: int) -> int:
    """How long after their end its solutions may become known, in microseconds; ``below``: those of its inputs.

    The row of a group changes when something enters the group, and in other instants if something may leave it, or the
    rows that LIMIT lets through, or if HAVING or SELECT asks for the time, chance or other occurrences.  What is in a
    window has ended since it opened.  Without GROUP BY there is one group, which everything enters.
    """
    if isinstance(node, Leaf | Record):
        return node.late
    if not isinstance(node, Group):
        return below
    asked = (*node.having, *(expression for _, expression in node.extends))
    asks = any(has_exists(e) or operators(e) & VOLATILE for e in asked)
    leaves = node.window is not None and not node.window.events
    cut = node.limit is not None or bool(node.offset)
    if not (cut or (node.keys and (leaves or asks))):
        return below
    return node.window.longest if node.window is not None and leaves else ANY_TIME


def late_nodes(nodes: Mapping[str, Node]) -> frozenset[str]:
    """Nodes whose solutions may end before the instant in which they are known: aggregates and all nodes above them."""
    late: set[str] = set()
    grew = True
    while grew:
        grew = False
        for name, node in nodes.items():
            if name not in late and (reports_late(node) or any(ref.node in late for ref in refs(node))):
                late.add(name)
                grew = True
    return frozenset(late)


def latenesses(nodes: Mapping[str, Node]) -> dict[str, int]:
    """How long after their end the solutions of each node may become known, in microseconds."""
    found = dict.fromkeys(nodes, 0)
    grew = True
    while grew:
        grew = False
        for name, node in nodes.items():
            longest = lateness(node, max((found[ref.node] for ref in refs(node)), default=0))
            if longest > found[name]:
                found[name] = longest
                grew = True
    return found
