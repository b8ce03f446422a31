"""What the lowering of all operators shares: the two halves of a pattern, its context above, the nodes so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NamedTuple

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.lateness import ANY_TIME, lateness
from etalis_rules.operators import reads_stream, variables
from etalis_rules.records import cuts_solutions
from etalis_rules.steps import bound_by

from ..knowledge import KnowledgeSummary

Names = frozenset[str]

MARK = ".e"
"""The prefix of hidden variables for what an EXISTS in an expression finds for a solution."""


class LoweringContext(NamedTuple):
    """The context above a pattern: the variables that are read there, the filters, and the bound on the duration."""

    needed: Names
    conditions: tuple[alg.Expr, ...] = ()
    bound: alg.Bound | None = None

    @property
    def steps(self) -> tuple[ir.Step, ...]:
        return steps(self.conditions, self.bound)


class Lowered(NamedTuple):
    """The two halves of a pattern; ``late`` are timeless solutions that are only known when the stream has ended."""

    timed: ir.Ref | None
    timeless: alg.Pattern | None
    late: alg.Pattern | None = None


Lowering = Callable[[alg.Pattern, LoweringContext, "NodeBuilder"], Lowered]


@dataclass(slots=True)
class NodeBuilder:
    """Collects the nodes of a program; equal nodes become one."""

    lowering: Lowering
    summary: KnowledgeSummary
    policy: str = "unrestricted"
    query: str = ""
    nodes: dict[str, ir.Node] = field(default_factory=dict)
    serial: int = 0
    in_block: bool = False
    """Whether the pattern being lowered is part of a block, which drops blank nodes itself."""
    keeps_blank_nodes: bool = False
    """Whether the terms that the pattern's blank nodes match are needed later; a rule that makes nodes reads them."""
    marks: Iterator[int] = field(default_factory=lambda: count(1))
    """Numbers for the marks of EXISTS; if two had the same name, a join of their solutions would compare them."""
    _latenesses: dict[str, int] = field(default_factory=dict)
    derived_late: Callable[[ir.Leaf | ir.Record], int] = lambda _: 0
    """How long after their end the events that rules derive for a node may become known, in microseconds."""
    deciding: bool = False
    """Whether the pattern being lowered is part of one that decides for good what is next or absent."""

    def lower(
        self,
        pattern: alg.Pattern,
        needed: Names,
        conditions: tuple[alg.Expr, ...] = (),
        bound: alg.Bound | None = None,
    ) -> Lowered:
        """The nodes for a pattern under filters and a bound on its duration; ``needed``: variables read above."""
        outside, self.deciding = self.deciding, self.deciding or decides_for_good(pattern)
        part = self.lowering(pattern, LoweringContext(needed, conditions, bound), self)
        self.deciding = outside
        return part

    def apart(self) -> NodeBuilder:
        """A builder for the same background with an empty set of nodes."""
        return NodeBuilder(self.lowering, self.summary, derived_late=self.derived_late, deciding=self.deciding)

    def observing(self) -> NodeBuilder:
        """A builder for patterns that are only tested: it shares the nodes, and consumes nothing."""
        return replace(self, policy="unrestricted", serial=0, in_block=False, keeps_blank_nodes=False)

    @property
    def drops_blank_nodes(self) -> bool:
        """Whether nodes leave out blank nodes, which do not affect consumption; inside a block they join its parts."""
        return self.consuming and not self.in_block and not self.keeps_blank_nodes

    def orders(self, name: str) -> bool:
        """Whether candidates are ordered by this variable; hidden triple terms and dropped blank nodes do not count."""
        return not name.startswith(alg.TRIPLE_TERM) and not (self.drops_blank_nodes and name.startswith("_:"))

    def ordering(self, pattern: alg.Pattern) -> Names:
        """The variables by which the solutions of a pattern are ordered."""
        return frozenset(filter(self.orders, alg.scope(pattern)))

    @contextmanager
    def sides(self, policy: str) -> Iterator[None]:
        """A context in which the sides of an operator are lowered; if its policy consumes, they drop blank nodes."""
        kept = self.keeps_blank_nodes
        self.keeps_blank_nodes = kept and not policy
        yield
        self.keeps_blank_nodes = kept

    @property
    def consuming(self) -> bool:
        return self.policy != "unrestricted"

    def add(self, node: ir.Node) -> ir.Ref:
        """The node in its canonical form, as seen from the query (columns carry the query's variable names)."""
        if reads_stream(node) and (late := self.derived_late(node)):
            node = replace(node, in_time=True) if self.deciding else replace(node, late=late)
        if self.consuming and reads_stream(node):
            # A leaf consumes nothing and can be shared; its columns keep their alphabetical order.
            head = tuple(sorted(node.head))
            others = [name for name in dict.fromkeys(variables(node)) if name not in head]
            order = {name: f"~{i}" for i, name in enumerate((*head, *others))}
            return self._store(alg.rename(replace(node, head=head), order), head)
        if self.consuming:
            self.serial += 1
            other: Any = node  # only what reads the stream has no owner
            head = tuple(sorted(node.head))
            return self._store(replace(other, head=head, owner=f"{self.query}#{self.serial}"), head)
        names: Iterable[str] = dict.fromkeys(variables(node))
        if cuts_solutions(node):
            names = sorted(names)  # LIMIT and GROUP_CONCAT inside EVENT take solutions in the order of the names
        order = {name: f"~{i}" for i, name in enumerate(names)}
        head = tuple(sorted(node.head, key=lambda n: int(order[n][1:])))
        node = replace(node, head=head)
        return self._store(alg.rename(node, order), head)

    def late(self, *refs: ir.Ref | None) -> int:
        """How long after their end the solutions of some of these nodes may become known, in microseconds."""
        return max((self._lateness_of(ref.node) for ref in refs if ref is not None), default=0)

    def _lateness_of(self, name: str) -> int:
        known = self._latenesses.get(name)
        if known is None:
            node = self.nodes[name]
            known = self._latenesses[name] = lateness(node, self.late(*ir.refs(node)))
        return known

    def kept_for(self, bound: alg.Bound | None, *refs: ir.Ref | None) -> alg.Bound | None:
        """How long solutions of these nodes are kept for each other, in whole solutions of at most this length.

        What is known late finds partners that ended, and so may have begun, as much earlier.  None: for ever.
        """
        late = self.late(*refs)
        if bound is None or late >= ANY_TIME:
            return None
        return replace(bound, micros=bound.micros + late) if late else bound

    def _store(self, node: ir.Node, columns: tuple[str, ...]) -> ir.Ref:
        identifier = ir.identify(node)
        self.nodes.setdefault(identifier, node)
        return ir.Ref(identifier, columns)


def decides_for_good(pattern: alg.Pattern) -> bool:
    """Whether it decides at the end of an instant what is next or absent, and never again; of SEQ OPTIONAL, each half.

    The half of SEQ OPTIONAL in which the optional part comes must see the same events as the one in which it does not.
    """
    return alg.is_seq_optional(pattern) or bool(alg.only_forward(pattern))


def reads(conditions: Iterable[alg.Expr]) -> Names:
    return frozenset().union(*map(alg.variables, conditions))


def guard(pattern: alg.Pattern | None, conditions: tuple[alg.Expr, ...]) -> alg.Pattern | None:
    return None if pattern is None else alg.filtered(pattern, conditions)


def steps(conditions: Iterable[alg.Expr], bound: alg.Bound | None = None) -> tuple[ir.Step, ...]:
    tests: list[ir.Step] = [] if bound is None else [ir.Duration(bound)]
    return (*tests, *map(ir.Condition, conditions))


def map_ref(ref: ir.Ref | None, wanted: Names, b: NodeBuilder, steps: tuple[ir.Step, ...]) -> ir.Ref | None:
    """The node, with steps after it."""
    if ref is None or not steps:
        return ref
    columns = frozenset(ref.columns) | frozenset(bound_by(steps))
    if b.consuming:  # the mark of an EXISTS must not decide the order of candidates
        head = frozenset(name for name in columns if not name.startswith(MARK))
    else:
        head = columns & wanted
    return b.add(ir.Map(tuple(sorted(head)), ref, steps))


def mapped(part: Lowered, above: LoweringContext, b: NodeBuilder) -> Lowered:
    """The part under the filters and the bound above it."""
    timed = map_ref(part.timed, above.needed, b, above.steps)
    return Lowered(timed, guard(part.timeless, above.conditions), guard(part.late, above.conditions))


def unite(refs: list[ir.Ref], wanted: Names, b: NodeBuilder, distinct: bool = False) -> ir.Ref | None:
    """One node for several branches."""
    if not refs:
        return None
    if len(refs) == 1 and not distinct:
        return refs[0]
    columns = frozenset().union(*(r.columns for r in refs))
    return b.add(ir.Union(tuple(sorted(columns & wanted)), tuple(refs), distinct))


def look_up(ref: ir.Ref, pattern: alg.Pattern, above: LoweringContext, b: NodeBuilder) -> ir.Ref:
    """A timed solution joined with timeless ones, looked up when it arrives."""
    if pattern == alg.UNIT:
        return map_ref(ref, above.needed, b, above.steps) or ref
    step = ir.Background(pattern, tuple(sorted(alg.scope(pattern) - frozenset(ref.columns))))
    return map_ref(ref, above.needed, b, (step, *above.steps)) or ref
