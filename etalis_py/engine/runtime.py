"""What the generated functions of a program call and fill: reports, the sets of an instant, operators, limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from etalis_compiler.rewrites.push_windows import longest
from etalis_compiler.stratify import output_id
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.calendar import add_months
from etalis_rules.terms import FALSE, TRUE

from etalis_py.engine.closure import PathClosure
from etalis_py.engine.frames import decode_or_none
from etalis_py.engine.grouping import Grouping
from etalis_py.engine.running import Running, is_running
from etalis_py.engine.slicing import Slicing, canonical_key
from etalis_py.engine.state import Because, Solution, State, rebuilt
from etalis_py.engine.values import SparqlError

Fresh = Callable[[Solution], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Limits:
    """What an engine does before it gives up, loudly.

    ``goals``: open goals and other remembered solutions.  ``derivations``: new solutions of one node in one instant.
    ``rounds``: rounds of a recursion within an instant.  ``matches``: rows reported in one instant.
    """

    goals: int = 50_000_000
    derivations: int = 10_000_000
    rounds: int = 100_000
    matches: int = 10_000_000


class LimitExceeded(RuntimeError):
    """A program went beyond a limit; the engine's state is no longer consistent and it must be closed."""


class Context:
    """What an expression outside generated code may ask for."""

    def __init__(self, now: int) -> None:
        self.now = now

    def exists(self, pattern: alg.Pattern, mu: dict[str, str], start: int, end: int) -> bool:
        raise SparqlError("EXISTS cannot stand here")


class Runtime:
    """The objects behind the names in generated code; one for each loaded set of rules."""

    def __init__(
        self,
        rules: ir.Rules,
        state: State,
        limits: Limits,
        operands: Callable[[ir.Group], list[Any]],
        entailed: Callable[[tuple[str, str, str]], Iterable[tuple[str, str, str]]] | None = None,
        journaling: bool = False,
        running: Callable[[ir.Group], Running] | None = None,
    ) -> None:
        self.rules = rules
        self.state = state
        self.limits = limits
        self.operands = operands
        self.reports: list[tuple[int, int, list[Solution]]] = []
        self.seen: set[Any] = state.instant_set("seen")
        self.seen_in_stream: set[Any] = state.instant_set("seen in stream")
        self.made: dict[str, Any] = state.instant_dict("made")
        self.entailed = entailed or (lambda triple: (triple,))
        self.journaling = journaling
        self.running = running
        names = [output_id(output.query) for output in rules.outputs]
        recursive = {name for stratum in rules.strata if len(stratum) > 1 for name in stratum}
        self.rounds = frozenset(number for number, name in enumerate(names) if name in recursive)
        """The outputs whose rows come round by round."""

    @property
    def remembers(self) -> bool:
        """Does anything look back at single occurrences?"""
        nodes = (node for _, node in self.rules.nodes)
        return any(
            isinstance(n, ir.Recall) or (isinstance(n, (ir.Outer, ir.Group)) and n.leaves) for n in nodes
        ) or any(o.form == "describe" or o.late is not None for o in self.rules.outputs)

    # --- limits ---

    def too_many(self, node: str) -> None:
        raise LimitExceeded(
            f"more than {self.limits.derivations} solutions of {self.describe(node)} in one instant; "
            "add a WITHIN or a join variable, or raise Limits(derivations=…)"
        )

    def too_deep(self, node: str) -> None:
        raise LimitExceeded(
            f"the recursion through {self.describe(node)} did not end within {self.limits.rounds} rounds of one "
            "instant; make its rules derive finitely many triples, or raise Limits(rounds=…)"
        )

    def describe(self, node: str) -> str:
        """The queries that a node belongs to, for messages."""
        nodes = dict(self.rules.nodes)
        users = []
        for output in self.rules.outputs:
            stack = [] if output.source is None else [output.source.node]
            while stack:
                here = stack.pop()
                if here == node:
                    users.append(output.query)
                    break
                stack.extend(ref.node for ref in ir.refs(nodes[here]))
        return f"query {', '.join(users)}" if users else node.removeprefix("out:")

    # --- instants ---

    def remember(self, s: str, p: str, o: str, start: int, t: int, stream: str) -> None:
        """Add an occurrence to the history, for what is evaluated backwards."""
        self.state.history.add(start, t, ((s, p, o),), stream)
        if self.journaling:
            self.state.journal.append(("", t, [(s, p, o, start, stream)]))

    # --- operators that are objects ---

    def operator(self, name: str, node: ir.Node) -> Callable[[int, list[Solution]], list[Solution]]:
        """``advance`` of the node's operator, which is made on first use and kept with the state."""
        state = self.state
        match node:
            case ir.Group():
                group = state.groups.get(name)
                if group is None and self.running is not None and is_running(node) and not state.explain:
                    group = state.groups[name] = self.running(node)
                if group is None:
                    because = (lambda parts: Because(name, tuple(parts))) if state.explain else None
                    group = Grouping(node, node.child.columns, self.operands(node), because, state.look_back)
                    state.groups[name] = group
                return self._carrying(name, group.advance)
            case ir.Closure():
                closure = state.closures.get(name)
                if closure is None:
                    closure = state.closures[name] = self._closure(node)
                return self._reordered(name, node, closure)
            case ir.Slice():
                sliced = state.slices.get(name)
                if sliced is None:
                    sliced = Slicing(
                        node.child.columns, node.canonical, node.distinct, node.order, node.limit, node.offset
                    )
                    state.slices[name] = sliced
                return self._projected(name, node, sliced)
            case ir.Recall():
                return self._recall(name, node)
        raise TypeError(f"not an operator: {node!r}")

    def _carrying(
        self, name: str, advance: Callable[[int, list[Solution]], list[Solution]]
    ) -> Callable[[int, list[Solution]], list[Solution]]:
        """The rows with the decoded values that the rules above read."""
        layout = self.state.layouts[name]
        if not layout.values:
            return advance
        return lambda t, rows: [rebuilt(layout, x) for x in advance(t, rows)]

    def _closure(self, node: ir.Closure) -> PathClosure:
        bound = node.bound
        forward = backward = None
        if isinstance(node.background, alg.PathPattern):
            source, target = _ends(node.background)
            ahead = self.state.lookup(node.background, (source,), (target,))
            behind = self.state.lookup(node.background, (target,), (source,))
            forward = lambda term: dict.fromkeys([term, *(row[0] for row in ahead((term,), 0))])  # noqa: E731
            backward = lambda term: dict.fromkeys([term, *(row[0] for row in behind((term,), 0))])  # noqa: E731
        if bound is None:
            return PathClosure(None, None, forward, backward)
        return PathClosure(lambda start, end: end <= _limit(start, bound), longest(bound), forward, backward)

    def _reordered(
        self, name: str, node: ir.Closure, closure: PathClosure
    ) -> Callable[[int, list[Solution]], list[Solution]]:
        """The edge's columns as (from, to), the head's as they stand."""
        source, target = node.ends
        i, j = 2 + node.edge.columns.index(source), 2 + node.edge.columns.index(target)
        flip = node.head.index(source) > node.head.index(target)

        layout = self.state.layouts[name]
        explain = self.state.explain

        def advance(t: int, edges: list[Solution]) -> list[Solution]:
            made = []
            for p in closure.advance(t, [(x[0], x[1], x[i], x[j], *(x[-1:] if explain else ())) for x in edges]):
                row = rebuilt(layout, (p[0], p[1], p[3], p[2]) if flip else p[:4])
                made.append((*row, p[-1]) if explain else row)
            return made

        return advance

    def _projected(self, name: str, node: ir.Slice, sliced: Slicing) -> Callable[[int, list[Solution]], list[Solution]]:
        layout = self.state.layouts[name]
        places = [2 + node.child.columns.index(c) if c in node.child.columns else -1 for c in node.head]
        explain = self.state.explain

        def advance(t: int, rows: list[Solution]) -> list[Solution]:
            made = []
            for x in sliced.advance(t, rows):
                row = (x[0], x[1], *(x[i] if i > 0 else "" for i in places))
                carried = [decode_column(node, x, c) for c in layout.values]
                made.append((*row, *carried, x[-1]) if explain else (*row, *carried))
            return made

        return advance

    def _recall(self, name: str, node: ir.Recall) -> Callable[[int, list[Solution]], list[Solution]]:
        layout = self.state.layouts[name]
        columns = node.child.columns
        explain = self.state.explain
        look_back = self.state.look_back

        def advance(t: int, rows: list[Solution]) -> list[Solution]:
            made = []
            for x in rows:
                terms = {c: x[2 + i] for i, c in enumerate(columns)}
                terms[node.mark] = TRUE if look_back(node.pattern, terms, x[0], t) else FALSE
                row = rebuilt(layout, (x[0], x[1], *(terms.get(c, "") for c in node.head)))
                made.append((*row, x[-1]) if explain else row)
            return made

        return advance

    # --- reports ---

    def arrangement(self, number: int) -> Callable[[int, list[Solution]], list[Solution]] | None:
        """DISTINCT, ORDER BY, LIMIT and OFFSET of an output, or None when its rows are only sorted."""
        output = self.rules.outputs[number]
        assert output.source is not None
        if not (output.distinct or output.order or output.limit is not None or output.offset):
            return None
        key = "out:" + output.query
        found = self.state.slices.get(key)
        if found is None:
            found = Slicing(
                output.source.columns,
                tuple(sorted(output.variables)),
                output.distinct,
                output.order,
                output.limit,
                output.offset,
            )
            self.state.slices[key] = found
        return found.advance

    def settle(self, first: int) -> None:
        """Put the reports of an instant, from ``first`` on, into the order of the program; rows into canonical order.

        They were made stratum by stratum, and in a recursion round by round.
        """
        reports = self.reports
        made, t = reports[first:], reports[-1][1]
        found: dict[int, list[list[Solution]]] = {}
        for number, _, rows in made:
            found.setdefault(number, []).append(rows)
        del reports[first:]
        for number in sorted(found):
            parts = found[number]
            rows = parts[0]
            if len(parts) > 1 or number in self.rounds:
                rows = sorted((row for part in parts for row in part), key=self.sort_key(number))
            reports.append((number, t, rows))

    def sort_key(self, number: int) -> Callable[[Solution], Any] | None:
        output = self.rules.outputs[number]
        assert output.source is not None
        return canonical_key(output.source.columns, tuple(sorted(output.variables)))

    def making(self, output: ir.Output) -> Making | None:
        """How the rule of an output makes blank nodes; None where its template has none."""
        assert output.source is not None
        return making(output, output.source.columns, self.made)


@dataclass(frozen=True, slots=True)
class Making:
    """A CONSTRUCT rule that makes new nodes, and what it must know to come to an end.

    It is not applied to a solution with a node that would not be there, in this instant, without the rule itself: so
    new nodes do not lead to ever newer ones.  ``labels`` are those of its template.
    """

    labels: tuple[str, ...]
    nodes: Fresh
    rule: str
    places: tuple[int, ...]
    made: dict[str, Any]
    """Which rules led to a node that was made in this instant."""

    def applied(self, rows: list[Solution]) -> list[Solution]:
        """The solutions to which the rule is applied."""
        made, rule = self.made, self.rule
        if not made:
            return rows
        return [x for x in rows if not any(rule in made.get(x[i], ()) for i in self.places)]

    def fresh(self, x: Solution) -> tuple[str, ...]:
        """The nodes that the rule makes for a solution."""
        made = self.made
        makers = frozenset((self.rule,)).union(*(made.get(x[i], ()) for i in self.places))
        nodes = self.nodes(x)
        made.update(dict.fromkeys(nodes, makers))
        return nodes


def making(output: ir.Output, columns: tuple[str, ...], made: dict[str, Any]) -> Making | None:
    """How a rule makes blank nodes; ``made`` is emptied when the instant is over."""
    found = fresh_nodes_of(output, columns)
    if found is None:
        return None
    places = tuple(2 + columns.index(v) for v in sorted(output.variables) if v in columns)
    return Making(*found, output.query, places, made)


def fresh_nodes_of(output: ir.Output, columns: tuple[str, ...]) -> tuple[tuple[str, ...], Fresh] | None:
    """The labels of a template's blank nodes, and a function from a solution to the nodes it gets."""
    labels = tuple(
        dict.fromkeys(
            n.name
            for t in output.template
            for n in (t.subject, t.predicate, t.object)
            if isinstance(n, alg.Var) and n.name.startswith("_:") and n.name not in columns
        )
    )
    if not labels:
        return None
    # μ is what the query shows of the solution: its source may carry more columns.
    order = [2 + columns.index(v) for v in sorted(output.variables) if v in columns]

    def fresh(x: Solution) -> tuple[str, ...]:
        key = (output.query, x[0], x[1], *(x[i] for i in order))
        return tuple(fresh_node(label, *key) for label in labels)

    return labels, fresh


def fresh_node(label: str, *key: object) -> str:
    """The blank node of a template for one solution: a hash of the rule, μ and the interval."""
    return "_:d" + blake2b(repr((label, *key)).encode(), digest_size=12).hexdigest()


def decode_column(node: ir.Slice, x: Solution, column: str) -> object:
    """The value of a column of the sliced solution."""
    if column not in node.child.columns:
        return None
    return decode_or_none(x[2 + node.child.columns.index(column)])


def _limit(start: int, bound: alg.Bound) -> int:
    return (add_months(start, bound.months) if bound.months else start) + bound.micros


def _ends(pattern: alg.PathPattern) -> tuple[str, str]:
    assert isinstance(pattern.subject, alg.Var)
    assert isinstance(pattern.object, alg.Var)
    return pattern.subject.name, pattern.object.name
