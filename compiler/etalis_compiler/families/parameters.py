"""The rules of a family: markers become columns, and a relation of parameters binds them.

A solution of a node with a parameter below it carries the name of its query in the column ``$``, and the parameters
that are read above it in ``$0``, ``$1`` and so on.  A leaf with markers sees the triples of every query of the family
and is joined with the relation on the terms of the event; from there on ``$`` is one more join variable, so that goals,
consumption and absence belong to one query.  Nodes without a parameter below them are shared by all.  The length of a
window is a parameter, too: a solution must last no longer than its query's window, and goals are kept for the longest
window of all.

    { :c12 :price ?a } SEQ { :c7 :price ?b } FILTER (?b > ?a * 1.3)
    left(~$0, ~a) → { … parameters: ~$0 = place 1; $, $2 } → SEQ on $ → FILTER (?b > ?a * ?$2)
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar, assert_never

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.operators import Pairing, decides_for_good
from etalis_rules.relations import OuterOp
from etalis_rules.terms import XSD
from etalis_rules.traversal import transform, walk

from .looked_up import bound_by, is_reached, plain_steps, stacked
from .windows import relaxed

T = TypeVar("T")

NAME = "$"
"""The column of the query's name."""
_ORDER = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class NoParameters(Exception):
    """Raised if the rules of a query cannot be rewritten with parameters."""


@dataclass(frozen=True, slots=True)
class Parameterized:
    """The nodes and the output of a family, and the parameters that they read."""

    nodes: dict[str, ir.Node]
    output: ir.Output
    used: frozenset[int]


class _Carrying(NamedTuple):
    """A rewritten node, and its additional columns."""

    node: str
    columns: tuple[str, ...]


def length_of(micros: int) -> str:
    """The term that stands for the length of a window."""
    return f'"{micros}"^^<{XSD}integer>'


def column_of(parameter: int) -> str:
    """The name of a parameter's column."""
    return f"{NAME}{parameter}"


def parameterized(rules: ir.Rules, family: str, markers: Mapping[str, int]) -> Parameterized:
    """The rules of one query with its markers as parameters; raises ``NoParameters`` if that is impossible."""
    (output,) = rules.outputs
    if (
        output.source is None
        or output.late is not None
        or output.form not in ("select", "construct", "ask", "describe")
    ):
        raise NoParameters
    if output.timeless is not None and not _is_plain(output):
        raise NoParameters
    made = [n for t in output.template for n in (t.subject, t.predicate, t.object)]
    if any(isinstance(n, alg.Var) and not alg.is_visible(n.name) for n in made):
        raise NoParameters
    rewriter = _Rewriter(dict(rules.nodes), family, markers)
    if rewriter.read(output.order):
        raise NoParameters
    wanted = rewriter.read((output.template,))
    whole = relaxed(rewriter.before, output.source.node, rewriter.length, family)
    source = rewriter.carrying(whole, wanted)
    template = rewriter.written(output.template)
    columns = (*output.source.columns, *source.columns)
    shared = replace(
        output,
        query=family,
        source=ir.Ref(source.node, columns),
        template=template,
        timeless=rewriter.written(output.timeless),
    )
    return Parameterized(rewriter.nodes, shared, frozenset(rewriter.used))


def _is_plain(output: ir.Output) -> bool:
    """Whether an output reports timeless solutions as they are, and derives no triples before the stream starts."""
    arranged = output.distinct or output.order or output.limit is not None or output.offset
    return output.form != "construct" and not arranged


def _constant(node: object) -> str:
    """The term of a node that may be a marker: a constant, or the length of a window."""
    if isinstance(node, alg.Const):
        return node.term
    return length_of(node.micros) if isinstance(node, alg.Bound) and not (node.months or node.events) else ""


_VARYING = (ir.Leaf, ir.Record, ir.Map, ir.Join, ir.Absence, ir.Outer, ir.Group, ir.Run, ir.Slice)
"""The nodes in which a constant may differ between the queries of a family."""


@dataclass(slots=True)
class _Rewriter:
    before: dict[str, ir.Node]
    family: str
    markers: Mapping[str, int]
    nodes: dict[str, ir.Node] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)

    # --- markers ---

    def read(self, part: object) -> frozenset[int]:
        """The parameters whose markers stand in expressions, templates or bounds."""
        constants = map(_constant, walk(part))
        return frozenset(self.markers[term] for term in constants if term in self.markers)

    def written(self, part: T) -> T:
        """The part with columns in place of markers."""

        def named(node: object) -> object:
            if isinstance(node, alg.Const) and node.term in self.markers:
                self.used.add(self.markers[node.term])
                return alg.Var(column_of(self.markers[node.term]))
            if isinstance(node, ir.Duration) and (length := self.length(node.bound)) is not None:
                self.used.add(length)
                return ir.Lasting(column_of(length))
            return None

        return transform(part, named)

    def length(self, bound: alg.Bound | None) -> int | None:
        """The parameter that a bound stands for."""
        return None if bound is None else self.markers.get(_constant(bound))

    def kept(self, bound: alg.Bound | None) -> alg.Bound | None:
        """The bound on how long goals are kept; for a parameter, the longest window of all queries."""
        length = self.length(bound)
        return bound if length is None else ir.Longest(family=self.family, place=length + 1)

    def varies(self, name: str) -> bool:
        """Whether a marker stands in this node or below it."""
        node = self.before[name]
        own = bool(self.read(node))
        if own and not isinstance(node, _VARYING):
            raise NoParameters
        return own or any(self.varies(ref.node) for ref in ir.refs(node))

    # --- rewriting ---

    def add(self, node: ir.Node) -> str:
        name = ir.identify(node)
        self.nodes.setdefault(name, node)
        return name

    def same(self, name: str) -> _Carrying:
        """A node that is shared by all queries of the family."""
        stack = [name]
        while stack:
            here = stack.pop()
            node = self.before[here]
            self.nodes[here] = node
            stack.extend(ir.made_from(node))
        return _Carrying(name, ())

    def plain_or_carrying(self, name: str, wanted: frozenset[int], force: bool) -> _Carrying:
        return self.carrying(name, wanted) if force or self.varies(name) else self.same(name)

    def carrying(self, name: str, wanted: frozenset[int]) -> _Carrying:
        """The node with the name of the query and these parameters in each of its solutions."""
        node = self.before[name]
        # Without keys, an aggregation has a row for each query that never had a solution.
        if not self.varies(name) and not (isinstance(node, ir.Group) and not node.keys):
            self.same(name)
            return self._joined(ir.Ref(name, node.head), node.head, (), wanted, ())
        match node:
            case ir.Leaf():
                return self._leaf(node, node.head, (), wanted)
            case ir.Record():
                return self._event(node, wanted)
            case ir.Map():
                return self._map(node, wanted)
            case ir.Join():
                return self._join(node, wanted)
            case ir.Absence():
                return self._absence(node, wanted)
            case ir.Union():
                return self._union(node, wanted)
            case ir.Outer():
                return self._outer(node, wanted)
            case ir.Group():
                return self._group(node, wanted)
            case ir.Run():
                return self._run(node, wanted)
            case ir.Slice():
                return self._slice(node, wanted)
            case ir.Recall() | ir.Closure() | ir.Start() | ir.Skip() | ir.Chain():
                raise NoParameters
            case _:
                assert_never(node)

    def _columns(self, wanted: frozenset[int]) -> tuple[str, ...]:
        self.used |= wanted
        return (NAME, *map(column_of, sorted(wanted)))

    def _leaf(
        self, leaf: ir.Leaf, head: tuple[str, ...], steps: tuple[ir.Step, ...], wanted: frozenset[int]
    ) -> _Carrying:
        """A leaf that sees the triples of all queries, joined with those that have their constants; then the steps."""
        if isinstance(leaf.predicate, alg.Const) and leaf.predicate.term in self.markers:
            raise NoParameters
        own = tuple(sorted(self.read((leaf.subject, leaf.object))))
        columns = (*leaf.head, *map(column_of, own))
        seen = replace(leaf, head=columns, subject=self.written(leaf.subject), object=self.written(leaf.object))
        # The parameters get names that do not depend on the family, so that equal leaves of several families are one.
        names = {column: f"~{i}" for i, column in enumerate(columns)}
        others = [n.name for n in walk(seen) if isinstance(n, alg.Var) and n.name not in names]
        names |= {name: f"~{len(columns) + i}" for i, name in enumerate(dict.fromkeys(others))}
        equal = tuple((column_of(k), k + 1) for k in own)
        return self._joined(ir.Ref(self.add(alg.rename(seen, names)), columns), head, steps, wanted, equal)

    def _event(self, node: ir.Record, wanted: frozenset[int]) -> _Carrying:
        """An EVENT with the constants of all queries as columns, joined with those that have them."""
        own = tuple(sorted(self.read(node)))
        if not isinstance(node.pattern, alg.BGP) or self.read(node.graph):
            raise NoParameters  # in a part of the pattern a constant decides about the other parts
        columns = (*node.head, *map(column_of, own))
        child = ir.Ref(self.add(self.written(replace(node, head=columns))), columns)
        equal = tuple((column_of(k), k + 1) for k in own)
        return self._joined(child, node.head, (), wanted, equal)

    def _joined(
        self,
        child: ir.Ref,
        head: tuple[str, ...],
        steps: tuple[ir.Step, ...],
        wanted: frozenset[int],
        equal: tuple[tuple[str, int], ...],
    ) -> _Carrying:
        """A join of a node with the parameters, before the first step that reads one.

        If the node has no constant of a query, a look-up in the background may find it.
        """
        known = set(child.columns)
        before: list[ir.Step] = []
        rest: list[ir.Step] = []  # the steps after the look-up of the parameters, which they need
        for place, step in enumerate(steps):
            read = self.read(step)
            if read and isinstance(step, ir.Condition | ir.Duration):
                rest.append(step)
                continue
            # If the leaf has a constant, most events match no query.
            open_ = read and isinstance(step, ir.Background) and not equal and is_reached(step, known, self.markers)
            if (read and not open_) or (equal and isinstance(step, ir.Background)):
                rest += steps[place:]
                break
            if read and isinstance(step, ir.Background):
                free = [k for k in sorted(read) if column_of(k) not in known]
                equal = tuple((column_of(k), k + 1) for k in free)
                step = self.written(step)
                step = replace(step, binds=tuple(sorted({*step.binds, *map(column_of, free)})))
            known.update(bound_by(step))
            before.append(step)
        binds = [(NAME, 0)]
        binds += [(column_of(k), k + 1) for k in sorted(self.read(tuple(rest)) | wanted) if column_of(k) not in known]
        compared = next((c for s in rest if (c := self._compared(s, known)) is not None), None)
        parameters = ir.Parameters(self.family, equal, tuple(binds), () if compared is None else (compared,))
        columns = self._columns(wanted)
        every = (*before, parameters, *self.written(tuple(rest)))
        return _Carrying(self.add(ir.Map((*head, *columns), child, every)), columns)

    def _compared(self, step: ir.Step, known: Container[str]) -> tuple[str, str, int] | None:
        """``variable op place`` if a step compares a column, or the duration, with a numeric parameter."""
        if isinstance(step, ir.Duration) and (length := self.length(step.bound)) is not None:
            return "", "<=", length + 1
        if not isinstance(step, ir.Condition):
            return None
        match step.expression:
            case alg.Apply(op, (alg.Var(name), alg.Const(term))) if op in _ORDER:
                pass
            case alg.Apply(op, (alg.Const(term), alg.Var(name))) if op in _ORDER:
                op = _ORDER[op]
            case _:
                return None
        if name not in known or term not in self.markers or "^^" not in term:
            return None
        return name, op, self.markers[term] + 1

    def _map(self, node: ir.Map, wanted: frozenset[int]) -> _Carrying:
        below = self.before[node.child.node]
        node = replace(node, steps=tuple(s for step in node.steps for s in self._taken_apart(step)))
        looks_up = any(isinstance(step, ir.Background) and self.read(step) for step in node.steps)
        plain = isinstance(below, ir.Map) and self.varies(node.child.node) and not (below.distinct or node.distinct)
        if looks_up and plain and isinstance(below, ir.Map):
            return self._map(stacked(node, below), wanted)  # so the look-up may come before the tests below
        read = self.read(node.steps)
        if isinstance(below, ir.Leaf) and self.varies(node.child.node) and not (node.distinct or node.at_end):
            leaf = alg.rename(below, dict(zip(below.head, node.child.columns, strict=True)))
            if len(frozenset(node.child.columns)) == len(below.head) and self._is_apart(below, node.child.columns):
                return self._leaf(leaf, node.head, node.steps, wanted)
        if not self.varies(node.child.node):
            if node.distinct or node.at_end:
                raise NoParameters
            self.same(node.child.node)
            return self._joined(node.child, node.head, node.steps, wanted, ())
        child = self.carrying(node.child.node, read | wanted)
        columns = self._columns(wanted)
        ref = ir.Ref(child.node, (*node.child.columns, *child.columns))
        return _Carrying(
            self.add(replace(node, head=(*node.head, *columns), child=ref, steps=self.written(node.steps))), columns
        )

    def _taken_apart(self, step: ir.Step) -> tuple[ir.Step, ...]:
        """Split a look-up with markers into look-ups of plain triples, in which a constant may become a column."""
        if not isinstance(step, ir.Background) or not self.read(step):
            return (step,)
        parts = plain_steps(step, self.markers)
        if parts is None:
            raise NoParameters
        return parts

    def _is_apart(self, leaf: ir.Leaf, columns: tuple[str, ...]) -> bool:
        """Whether a leaf can be renamed: none of its hidden variables has the name of one of these columns."""
        hidden = {n.name for n in walk(leaf) if isinstance(n, alg.Var)} - frozenset(leaf.head)
        return hidden.isdisjoint(columns)

    def _join(self, node: ir.Join, wanted: frozenset[int]) -> _Carrying:
        if node.leaves or self.read(node.deadline) or any(isinstance(s, ir.Background) for s in node.steps):
            raise NoParameters
        # A join that takes goals, or decides what is next, must do so for each query by itself.
        apart = bool(node.policy) or decides_for_good(node)
        left, right = (apart or self.varies(ref.node) for ref in (node.left, node.right))
        if not (left or right):
            return self._shared_join(node, wanted)
        tests = self._tests(node)
        read = self.read((node.condition, tests)) | wanted
        one = self.plain_or_carrying(node.left.node, read if left else frozenset(), left)
        two = self.plain_or_carrying(node.right.node, frozenset() if left else read, right)
        columns = self._columns(wanted)
        whole = replace(
            node,
            head=(*node.head, *columns),
            left=ir.Ref(one.node, (*node.left.columns, *one.columns)),
            right=ir.Ref(two.node, (*node.right.columns, *two.columns)),
            certain=(*node.certain, NAME) if left and right else node.certain,
            steps=self.written(tests),
            bound=self.kept(node.bound),
            condition=self.written(node.condition),
        )
        return _Carrying(self.add(whole), columns)

    def _tests(self, node: Pairing) -> tuple[ir.Step, ...]:
        """The steps, and the bound if it is a parameter."""
        if node.bound is None or self.length(node.bound) is None:
            return node.steps
        return (*node.steps, ir.Duration(node.bound))

    def _shared_join(self, node: ir.Join, wanted: frozenset[int]) -> _Carrying:
        """A join that all queries share, and then the conditions in which they differ."""
        steps = self._tests(node)
        first = next(i for i, step in enumerate(steps) if self.read(step))
        self.same(node.left.node)
        self.same(node.right.node)
        bound = [s.variable for s in steps[:first] if isinstance(s, ir.Assign)]
        columns = tuple(sorted({*node.left.columns, *node.right.columns, *bound}))
        shared = replace(node, head=columns, steps=steps[:first], bound=self.kept(node.bound))
        return self._joined(ir.Ref(self.add(shared), columns), node.head, steps[first:], wanted, ())

    def _absence(self, node: ir.Absence, wanted: frozenset[int]) -> _Carrying:
        if node.leaves or self.read(node.deadline) or any(isinstance(s, ir.Background) for s in node.steps):
            raise NoParameters
        tests = node.steps if node.right is None else self._tests(node)
        read = self.read((node.condition, tests)) | wanted
        left = self.carrying(node.left.node, read)
        absent = self.plain_or_carrying(node.absent.node, frozenset(), False)
        columns = self._columns(wanted)
        whole = replace(
            node,
            head=(*node.head, *columns),
            left=ir.Ref(left.node, (*node.left.columns, *left.columns)),
            absent=ir.Ref(absent.node, (*node.absent.columns, *absent.columns)),
            shared=(*node.shared, NAME) if absent.columns else node.shared,
            steps=self.written(tests),
            bound=self.kept(node.bound),
            condition=self.written(node.condition),
        )
        if node.right is not None:
            # A policy consumes goals for one query only.
            right = self.plain_or_carrying(node.right.node, frozenset(), bool(node.policy))
            both = (*node.certain, NAME) if right.columns else node.certain
            whole = replace(whole, right=ir.Ref(right.node, (*node.right.columns, *right.columns)), certain=both)
        return _Carrying(self.add(whole), columns)

    def _union(self, node: ir.Union, wanted: frozenset[int]) -> _Carrying:
        columns = self._columns(wanted)
        branches = tuple(ir.Ref(self.carrying(r.node, wanted).node, (*r.columns, *columns)) for r in node.branches)
        return _Carrying(self.add(replace(node, head=(*node.head, *columns), branches=branches)), columns)

    def _outer(self, node: ir.Outer, wanted: frozenset[int]) -> _Carrying:
        """Rewrite an outer node; each query also has an optional side of its own, unless that is the same for all."""
        if node.leaves or node.policy or self.read(node.bound):
            raise NoParameters
        if node.background is not None and self.read(node.background):
            step = ir.Background(node.background, ())
            if node.op is OuterOp.MINUS or plain_steps(step, self.markers) != (step,):
                raise NoParameters
        left = self.carrying(node.left.node, self.read((node.background, node.condition, node.steps)) | wanted)
        columns = self._columns(wanted)
        whole = replace(
            node,
            head=(*node.head, *columns),
            left=ir.Ref(left.node, (*node.left.columns, *left.columns)),
            background=self.written(node.background),
            condition=self.written(node.condition),
            steps=self.written(node.steps),
        )
        if node.right is not None:
            right = self.plain_or_carrying(node.right.node, frozenset(), False)
            certain = (*node.certain, NAME) if right.columns else node.certain
            whole = replace(whole, right=ir.Ref(right.node, (*node.right.columns, *right.columns)), certain=certain)
        return _Carrying(self.add(whole), columns)

    def _group(self, node: ir.Group, wanted: frozenset[int]) -> _Carrying:
        """Rewrite an aggregation so that each query has its own groups.

        The name of the query becomes one more key.  So do its parameters, which divide no group, as the name implies
        them.
        """
        if node.background is not None or node.leaves or self.read(node.window):
            raise NoParameters
        rest = (node.aggregates, node.having, node.extends, node.order)
        columns = self._columns(self.read(rest) | wanted)
        child = self.carrying(node.child.node, self.read(rest) | wanted)
        aggregates, having, extends, order = self.written(rest)
        whole = replace(
            node,
            head=(*node.head, *columns),
            child=ir.Ref(child.node, (*node.child.columns, *child.columns)),
            keys=(*node.keys, *columns),
            aggregates=aggregates,
            having=having,
            extends=extends,
            order=order,
        )
        return _Carrying(self.add(whole), columns)

    def _slice(self, node: ir.Slice, wanted: frozenset[int]) -> _Carrying:
        """Rewrite a slice; DISTINCT, ORDER BY and LIMIT apply to each query by itself."""
        child = self.carrying(node.child.node, self.read(node.order) | wanted)
        columns = self._columns(wanted)
        ref = ir.Ref(child.node, (*node.child.columns, *child.columns))
        whole = replace(node, head=(*node.head, *columns), child=ref, order=self.written(node.order))
        return _Carrying(self.add(whole), columns)

    def _run(self, node: ir.Run, wanted: frozenset[int]) -> _Carrying:
        """Rewrite a REPEAT so that each query has its own runs, and decides by itself what is next."""
        if self.read((node.bound, node.gap, node.absent)):
            raise NoParameters
        rest = (node.condition, node.aggregates, node.totals)
        columns = self._columns(self.read(rest) | wanted)

        def own(ref: ir.Ref) -> ir.Ref:
            return ir.Ref(self.carrying(ref.node, self.read(rest) | wanted).node, (*ref.columns, *columns))

        condition, aggregates, totals = self.written(rest)
        whole = replace(
            node,
            head=(*node.head, *columns),
            child=own(node.child),
            absent=None if node.absent is None else own(node.absent),
            until=None if node.until is None else own(node.until),
            keys=(*node.keys, *columns),
            condition=condition,
            aggregates=aggregates,
            totals=totals,
        )
        return _Carrying(self.add(whole), columns)
