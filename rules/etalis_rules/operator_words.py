"""What a node does, in words: for explain, why and messages."""

from __future__ import annotations

from typing import assert_never

from .algebra import Bound
from .clock import is_start_by_itself
from .program import (
    Absence,
    Chain,
    Closure,
    Group,
    Join,
    Leaf,
    Map,
    Node,
    Outer,
    Recall,
    Record,
    Run,
    Skip,
    Slice,
    Start,
    Union,
)
from .relations import Op, words

ONE_EVENT = "EVENT: what one event says"


def keyword(node: Node) -> str:
    """The operator as it is written; empty where no single word stands for it."""
    match node:
        case Join(deadline=Bound()) | Absence(optional=True):
            return "SEQ OPTIONAL"
        case Join() | Outer():
            return node.op.upper()
        case Absence():
            return "NOT" if node.right is None and node.deadline is None else "SEQ NOT"
        case Run():
            return "REPEAT"
        case Skip():
            return "SKIP" if node.length is None else "THROTTLE"
    return ""


def reported_when(node: Node) -> str:
    """The clause by which something else than its last element decides when a run is over; empty without one."""
    if not isinstance(node, Run):
        return ""
    return "MAXIMAL" if node.maximal else "" if node.until is None else "UNTIL"


def chosen_by(node: Node) -> str:
    """The clause that chooses among the runs with one last element; empty without one."""
    return reported_when(node) or ("LONGEST" if isinstance(node, Run) and node.longest else "")


def why_in_words(node: Node) -> str:
    """Why a solution of a node holds, given those that it is made of."""
    match node:
        case Join(op=Op.AND):
            return "joined"
        case Join(deadline=Bound()):
            return "SEQ OPTIONAL: the optional part came in time"
        case Join(op=op):
            return f"{op.upper()}: {words(op)}"
        case Outer(op=outer):
            return outer.upper()
        case Absence() if is_start_by_itself(node):
            return "START by itself: the stream starts at this time"
        case Absence(optional=True, deadline=None):
            return "SEQ OPTIONAL: nothing of the optional part lies between them"
        case Absence(optional=True):
            return "SEQ OPTIONAL … WITHIN: nothing of the optional part came in time"
        case Absence(deadline=None, right=None):
            return "NOT: nothing that is excluded lies inside"
        case Absence(deadline=None):
            return "SEQ NOT: nothing that is excluded lies between them"
        case Absence():
            return "SEQ NOT … WITHIN: nothing that is excluded came in time"
        case Run(maximal=True):
            return "REPEAT … MAXIMAL: each is the next of the one before, and no other one goes on from either end"
        case Run(until=None):
            return "REPEAT: each is the next of the one before"
        case Run():
            return "REPEAT … UNTIL: each is the next of the one before, and then came what ends the run"
        case Start():
            return "START: the stream begins"
        case Skip(length=None):
            return "SKIP: it begins after what the last one kept says"
        case Skip():
            return "THROTTLE: the last one kept ended long enough before"
        case Map():
            return "joined with the background"
        case Group(window=None):
            return "aggregated over solutions that are not kept, for the query has no window"
        case Group():
            return "aggregated over"
        case Record():
            return ONE_EVENT
        case Leaf() | Union() | Chain() | Recall() | Closure() | Slice():
            return "derived"
        case _:
            assert_never(node)


def window_in_words(node: Node) -> str:
    """What a node does with its window; ``{0}`` stands for the limit, ``≤ 5 s``, ``{1}`` for its length, ``5 s``."""
    match node:
        case Map():
            return "passes what lasts {0}"
        case Group():
            return "counts the last {1}"
        case Run(maximal=True):
            return "ends runs after a silence of {1}"
        case Run():
            return "makes runs that last {0}, and drops those that last longer"
    if isinstance(node, Join) and node.deadline is not None:
        return "joins what ends {0} after its left side, and drops the goals that are older"
    if isinstance(node, Absence) and node.deadline is not None:
        return "keeps what waits for its deadline, {1} each"
    return "joins what lasts {0}, and drops the goals that are older"
