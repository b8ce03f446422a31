"""What each kind of node does with its inputs.  Analyses loop over inputs, so that they need not know the kinds.

>>> from etalis_rules.program import Join, Ref
>>> from etalis_rules.relations import Op
>>> left, right = inputs(Join((), Op.SEQ, Ref("a", ()), Ref("b", ()), ()))
>>> left.earlier, right.earlier
(True, False)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from .program import (
    Absence,
    Assign,
    Background,
    Closure,
    Group,
    Join,
    Leaf,
    Map,
    Node,
    Outer,
    Parameters,
    Recall,
    Record,
    Ref,
    Rules,
    Run,
    Slice,
    Union,
)
from .relations import LEFT_LAST, RIGHT_LAST, Op
from .roles import Role


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a node.

    ``earlier``: its solutions end strictly before those that they take part in, or decide on.  ``negative``: the node
    must see all of an instant's solutions of this input before it decides, for this reason; empty where more solutions
    of the input only make more of the node.
    """

    ref: Ref
    role: Role = Role.SIDE
    earlier: bool = False
    negative: str = ""


_CONSUMES = "a consuming policy"


def inputs(node: Node) -> tuple[Input, ...]:
    """The inputs of a node, in the order of its parts."""
    match node:
        case Leaf() | Record():
            return ()
        case Map():
            return (Input(node.child),)
        case Union():
            return tuple(Input(ref) for ref in node.branches)
        case Closure():
            return (Input(node.edge),)
        case Join():
            used = _CONSUMES if node.policy else ""
            left = Input(node.left, earlier=node.op in RIGHT_LAST, negative=used)
            return left, Input(node.right, negative=used), *_past(node.leaves)
        case Outer():
            left = Input(node.left, negative=_CONSUMES if node.policy else "")
            if node.right is None:
                return left, *_past(node.leaves)
            right = Input(node.right, Role.OPTIONAL, node.op in LEFT_LAST, negative=node.op.upper())
            return left, right, *_past(node.leaves)
        case Absence():
            used = _CONSUMES if node.policy else ""
            left = Input(node.left, earlier=node.right is not None or node.deadline is not None, negative=used)
            absent = Input(node.absent, Role.ABSENT, node.deadline is None, "the NOT of a deadline")
            if node.right is None:
                return left, absent
            return left, absent, Input(node.right, negative=used), *_past(node.leaves)
        case Run():
            child = Input(node.child)
            return (child,) if node.absent is None else (child, Input(node.absent, Role.ABSENT, earlier=True))
        case Recall():
            return Input(node.child), *_past(node.leaves)
        case Group():
            return Input(node.child, negative="an aggregate or LIMIT"), *_past(node.leaves)
        case Slice():
            return (Input(node.child, negative="an aggregate or LIMIT"),)
        case _:
            assert_never(node)


def _past(leaves: tuple[str, ...]) -> tuple[Input, ...]:
    return tuple(Input(Ref(leaf, ()), Role.PAST, negative="EXISTS") for leaf in leaves)


def decides_for_good(node: Node) -> bool:
    """Whether it decides at the end of an instant what is next or absent, and never again."""
    if isinstance(node, Join):
        return node.op is Op.NEXT
    return isinstance(node, Run) or any(part.role is Role.ABSENT for part in inputs(node))


def reports_late(node: Node) -> bool:
    """Whether its solutions may end before the instant in which they are known.

    The row of an aggregate has the hull of its contributing solutions; it may change because old ones left the window.
    """
    return isinstance(node, Group)


def computes(node: Node) -> bool:
    """Whether it may make terms longer than those it is given."""
    if isinstance(node, Map):
        return any(isinstance(step, Assign) for step in node.steps)
    return isinstance(node, Group)


def multiplies(node: Node) -> bool:
    """Whether it may make more solutions than it is given."""
    if isinstance(node, Map):
        return any(isinstance(step, Background | Parameters) for step in node.steps)
    if isinstance(node, Absence):
        return node.right is not None and not node.policy
    alone = isinstance(node, (Union, Group, Slice, Recall))  # a group has a row for each of its keys
    return not alone and not (isinstance(node, Join) and node.policy)


def looks_back(rules: Rules) -> bool:
    """Whether some rule looks back at single occurrences."""
    if any(output.form == "describe" or output.late is not None for output in rules.outputs):
        return True
    return any(part.role is Role.PAST for _, node in rules.nodes for part in inputs(node))
