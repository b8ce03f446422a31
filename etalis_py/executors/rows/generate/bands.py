"""Generated code that narrows a bucket to the goals between two bounds (see ``rows.run.bands``)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.operators import Pairing, relation
from etalis_rules.relations import NEAREST
from etalis_rules.sides import Split, sides_of, split

from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.hoisting import stored_position
from etalis_py.executors.rows.generate.inserting import stored
from etalis_py.executors.rows.generate.runtime_objects import GoalBuckets
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.executors.rows.run.bands import narrowed

FEW = 32
"""So many goals are all looked at."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The n-th condition on a pair bounds the value at a place of the waiting goal; ``op`` as in ``Split``."""

    number: int
    op: str
    place: int

    def source(self, bisect: str) -> str:
        """Source of the bound with its value and class, which ``hoist_arriving`` has computed."""
        return f"({self.place}, {bisect}, v{self.number}, c{self.number})"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Two bounds on the goals of one side of a node."""

    node: str
    side: str
    lower: Bound
    upper: Bound

    def narrow(self, w: Writer, code: Code) -> None:
        """Write the code that leaves in ``b``, the bucket of ``k``, the goals that may lie within the bounds."""
        store = code.helper(f"B{self.side}", self.node, GoalBuckets(self.node, self.side, "bands"))
        left, right = code.names.use("bisect_left", bisect_left), code.names.use("bisect_right", bisect_right)
        first, end = right if self.lower.op == ">" else left, left if self.upper.op == "<" else right
        with w.block(f"if len(b) > {FEW}:"):
            find = code.names.use("narrowed", narrowed)
            w(f"b = {find}({store}, k, b, {self.lower.source(first)}, {self.upper.source(end)})")


def bounds_of(code: Code, name: str, node: Pairing, waiting: ir.Ref, conditions: Sequence[alg.Expr]) -> Bounds | None:
    """The first lower and the first upper bound among the conditions on a pair, if there are both.

    Only the oldest goals may leave the bucket, and new ones come last: so there is no policy, and nothing is late.
    """
    if node.policy or relation(node) in NEAREST or code.is_late(name):
        return None
    arriving = node.left if waiting is node.right else node.right
    assert arriving is not None
    lower = upper = None
    sides = sides_of(waiting, arriving, node.certain)
    extra = {e: number for number, e in enumerate(stored(code, name, waiting))}
    for number, condition in enumerate(conditions):
        parted = split(condition, sides)
        place = None if parted is None else _place(code, waiting, extra, parted)
        if parted is None or place is None:
            continue
        bound = Bound(number, parted.op, place)
        if parted.op in (">", ">="):
            lower = lower or bound
        elif parted.op in ("<", "<="):
            upper = upper or bound
        if lower and upper:
            return Bounds(name, "G" if waiting is node.left else "H", lower, upper)
    return None


def _place(code: Code, waiting: ir.Ref, extra: Mapping[alg.Expr, int], parted: Split) -> int | None:
    """Where a goal has the value that is compared, given the numbers of stored ones; None if it is not stored."""
    layout = code.layouts[waiting.node]
    if parted.waiting in extra:
        return stored_position(layout, extra[parted.waiting])
    variable = alg.variable_of(parted.waiting)
    if not variable:
        return None
    column = layout.head[waiting.columns.index(variable)]
    return layout.value(column) if column in layout.values else None
