"""Generated code that narrows a bucket to the goals between two bounds (see ``rows.run.bands``)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.operators import Pairing, relation
from etalis_rules.relations import NEAREST
from etalis_rules.sides import sides_of, split

from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.frames import Frame, Named
from etalis_py.executors.rows.generate.inserting import orders_of, place_of_value, stored
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.executors.rows.run.bands import narrowed
from etalis_py.values import ORDERED
from etalis_py.values.implied_bounds import implied_bounds

FEW = 32
"""So many goals are all looked at."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A condition bounds the value at a place of the waiting goal; ``op`` as in ``Split``.

    Its value and its class are ``v`` and ``c`` with the ``name``.  ``hoist_arriving`` has computed them, unless the
    bound is only implied: then ``computed`` is their source.
    """

    name: str
    op: str
    place: int
    computed: str = ""

    def source(self, bisect: str) -> str:
        """Source of the bound with its value and class."""
        return f"({self.place}, {bisect}, v{self.name}, c{self.name})"

    def compute(self, w: Writer, code: Code) -> None:
        """Write the code that computes the value and the class of an implied bound; one that is an error has none."""
        if self.computed:
            value, kind = f"v{self.name}", f"c{self.name}"
            with w.block("try:"):
                w(f"{value} = {self.computed}", f"{kind} = {value}.__class__")
            with w.block("except SparqlError:"):
                w(f"{value} = {kind} = None")
            w(f"if {kind} not in {code.names.use('ORDERED', ORDERED)}: {kind} = None")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Two bounds on the goals of one side of a node."""

    node: str
    side: str
    lower: Bound
    upper: Bound

    def narrow(self, w: Writer, code: Code) -> None:
        """Write the code that leaves in ``b``, the bucket of ``k``, the goals that may lie within the bounds."""
        store = orders_of(code, self.node, self.side)
        left, right = code.names.use("bisect_left", bisect_left), code.names.use("bisect_right", bisect_right)
        first, end = right if self.lower.op == ">" else left, left if self.upper.op == "<" else right
        with w.block(f"if len(b) > {FEW}:"):
            self.lower.compute(w, code)
            self.upper.compute(w, code)
            find = code.names.use("narrowed", narrowed)
            w(f"b = {find}({store}, k, b, {self.lower.source(first)}, {self.upper.source(end)})")


def bounds_of(
    code: Code, name: str, node: Pairing, waiting: ir.Ref, solution: Named, conditions: Sequence[alg.Expr]
) -> Bounds | None:
    """The first lower and the first upper bound among the conditions on a pair, if there are both.

    Only the oldest goals may leave the bucket, and new ones come last: so there is no policy, and nothing is late.
    """
    if node.policy or relation(node) in NEAREST or code.is_late(name):
        return None
    lower = upper = None
    for bound in _each_bound(code, name, node, waiting, solution, conditions):
        if bound.op in (">", ">="):
            lower = lower or bound
        else:
            upper = upper or bound
        if lower and upper:
            return Bounds(name, "G" if waiting is node.left else "H", lower, upper)
    return None


def _each_bound(
    code: Code, name: str, node: Pairing, waiting: ir.Ref, solution: Named, conditions: Sequence[alg.Expr]
) -> Iterator[Bound]:
    """The bounds by conditions that compare the two sides, then those that other conditions imply."""
    arriving = node.left if waiting is node.right else node.right
    assert arriving is not None
    sides = sides_of(waiting, arriving, node.certain)
    extra = stored(code, name, waiting)
    parted = [split(condition, sides) for condition in conditions]
    for number, found in enumerate(parted):
        place = None if found is None else place_of_value(code, waiting, extra, found)
        if found is not None and place is not None and found.op not in ("=", "!="):
            yield Bound(str(number), found.op, place)
    alone = Frame(code.names)
    alone.read(arriving, code.layouts[arriving.node], solution)
    for condition in (condition for condition, found in zip(conditions, parted, strict=True) if found is None):
        for implied in implied_bounds(condition):
            found = split(implied.comparison(), sides)
            place = None if found is None else place_of_value(code, waiting, extra, found)
            if found is not None and place is not None:
                which = "_least" if found.op == ">=" else "_most"
                yield Bound(which, found.op, place, alone.emitter().value(found.arriving))
