"""The objects that the generated functions of a program call and fill: reports, sets of an instant, operators,
limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from etalis_compiler.stratify import output_id
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.records import narrowed, needs_schema
from etalis_rules.terms import FALSE, TRUE

from etalis_py.events import Triple
from etalis_py.executors.rows.generate.plan import GeneratedFunctions, RowPlan, load_functions
from etalis_py.executors.rows.generate.provenance import Provenance
from etalis_py.executors.rows.generate.records import Evaluate, evaluator
from etalis_py.executors.rows.generate.runtime_objects import (
    Deadline,
    GoalBuckets,
    LongestOf,
    LookUp,
    MinusLookUp,
    Need,
    OfFamily,
    OfInstant,
    OfOperator,
    OfOutput,
    OfRecord,
    OfRuntime,
)
from etalis_py.executors.rows.generate.writer import load
from etalis_py.executors.rows.run.closure import PathClosure
from etalis_py.executors.rows.run.family_relation import Families
from etalis_py.executors.rows.run.goals import Solution, estimated_bytes, rebuilt
from etalis_py.executors.rows.run.housekeeping import Housekeeping
from etalis_py.executors.rows.run.maximal import MaximalRuns
from etalis_py.executors.rows.run.operands import OperatorCode, group_operator, loaded
from etalis_py.executors.rows.run.per_query import SlicingPerQuery, advance_of_slicing, slicing_of
from etalis_py.executors.rows.run.runs import Run, RunFunctions, Runs, result
from etalis_py.executors.rows.run.skipping import Skipping
from etalis_py.executors.rows.run.slicing import Slicing, canonical_key, is_arranged, slicing_of_output
from etalis_py.executors.rows.run.state import State
from etalis_py.executors.rows.run.until import EndedRuns
from etalis_py.kernel.templates import Making, making
from etalis_py.knowledge.event_closure import EventClosure
from etalis_py.values import SparqlError, decode_or_none
from etalis_py.values.errors import LimitExceeded

Advance = Callable[[int, list[Solution]], list[Solution]]


class ExpressionContext:
    """The context of expressions outside generated code."""

    def __init__(self, now: int) -> None:
        self.now = now

    def exists(self, pattern: alg.Pattern, mu: dict[str, str], start: int, end: int) -> bool:
        raise SparqlError("EXISTS is not allowed here")


WholeEvent = tuple[int, frozenset[Triple], str, str, int]
"""The start, the triples, the stream, the graph and the end of an event."""
"""An event of the instant: its start, triples, stream and graph."""


class Runtime:
    """The objects behind the names in generated code; one for each loaded set of rules."""

    def __init__(
        self,
        rules: ir.Rules,
        plan: RowPlan,
        state: State,
        house: Housekeeping,
        closure: EventClosure | None = None,
        journaling: bool = False,
        families: Families | None = None,
        places: Sequence[int] | None = None,
    ) -> None:
        """``places``: for each output the number of its reports, if these are not all the outputs of a program."""
        self.rules = rules
        self.plan = plan
        self.state = state
        self.limits = house.limits
        self.house = house
        self.reports: list[tuple[int, int, list[Solution]]] = []
        self.makers: dict[str, Any] = {}
        self.arrived: list[tuple[int, tuple[Triple, ...], str, str]] = []
        """The events of the instant at hand, whole, for programs with EVENT."""
        self.closure = closure
        self.entailed = (lambda triple: (triple,)) if closure is None else closure.of_triple
        self.journaling = journaling
        names = [output_id(output.query) for output in rules.outputs]
        recursive = {name for stratum in rules.strata if len(stratum) > 1 for name in stratum}
        self.families = families
        if places is None:
            places = range(len(names)) if families is None else families.positions
        self.numbers = dict(zip(places, range(len(names)), strict=True))
        """The outputs by the numbers of their reports."""
        self.rounds = frozenset(place for place, name in zip(places, names, strict=True) if name in recursive)
        """The outputs whose rows come round by round."""
        self.scope: dict[str, Any] = {**plan.objects, "look_back": state.look_back}

    # --- what generated code needs ---

    def functions(self) -> GeneratedFunctions:
        """The functions of the plan, with everything they need."""
        self._prepare()
        return load_functions(self.plan, self.scope)

    def advance_of_node(self) -> Callable[..., list[Solution]]:
        """The function of a plan for one node."""
        self._prepare()
        load(self.plan.source, self.scope)
        advance: Callable[..., list[Solution]] = self.scope["advance"]
        return advance

    def _prepare(self) -> None:
        """Provide the objects that the plan needs."""
        for store in self.plan.stores:
            goals = self.state.store(store)
            goals.lasting = None if store.lasting is None else self.provide(store.lasting)
            goals.key, goals.extend = store.key, loaded(store.extend, "extend", self.scope)
            if goals.layout != store.layout:
                goals.lay_out(store.layout)
        scope = {**self.scope, **{name: self.provide(need) for name, need in self.plan.needs.items()}}
        self.scope = scope | {"made": self.makers}

    def provide(self, need: Need) -> Any:
        """The object that a plan asks for: the existing one, or a new one."""
        state = self.state
        match need:
            case GoalBuckets(node, side, part):
                return getattr(state.stores[node, side], part)
            case Deadline(node, bound, part):
                return getattr(state.deadlines(node, bound), part)
            case OfInstant(kind):
                return set() if kind == "set" else {}
            case LookUp(pattern, known, wanted):
                return state.lookup(pattern, known, wanted)
            case MinusLookUp(pattern, shared):
                return state.minus_lookup(pattern, shared)
            case OfOperator(name, "advance"):
                return self.operator(name, state.nodes[name])
            case OfOperator(name, "at_end"):
                return self._finishing(name)
            case OfOperator(name, "begins"):
                return state.beginning(name).begins
            case OfOperator(name, "ends"):
                return self.ends_of(name)
            case OfOperator(name, part):
                of = state.nodes[name]
                return getattr(self._group(name, of) if isinstance(of, ir.Group) else self.runs_of(name), part)
            case OfRecord(name):
                return self._over_event(name)
            case OfOutput(number, "arrange"):
                arranged = self.arrangement(number)
                return None if arranged is None else arranged.advance
            case OfOutput(number, "split"):
                assert self.families is not None
                return self.families.split(self.rules.outputs[number], self.arrangement_of_family(number))
            case OfFamily(family, equal, compared, op):
                assert self.families is not None
                return self.families.access(family, equal, compared, op)
            case LongestOf(family, place):
                assert self.families is not None
                return self.families.relations[family].longest(place)
            case OfOutput(number, part):
                return getattr(self._making(number), part)
            case OfRuntime(name):
                return getattr(self, name)

    @property
    def journal(self) -> Any:
        return self.state.journal

    @property
    def alarm(self) -> list[int]:
        return self.state.alarm

    @property
    def look_back(self) -> Any:
        return self.state.look_back

    # --- limits ---

    def weigh(self, node: str, solutions: list[Solution]) -> int:
        """Raise an error if a node has too many or too large solutions in this instant.

        Returns the number of solutions at which to check again.
        """
        count, limits = len(solutions), self.limits
        if count > limits.derivations:
            self.too_many(node)
        size = estimated_bytes(solutions)
        if size > limits.bytes:
            self.too_large(node, count, size)
        self.house.arise(count, size, solutions[-1][0])
        return min(2 * count, limits.derivations)

    def weigh_runs(self, node: str, count: int, some: Sequence[Run]) -> int:
        """Raise an error if so many runs of an instant, such as these, are too many or too large."""
        if count > self.limits.derivations:
            raise LimitExceeded(
                f"more than {self.limits.derivations} runs of {self.describe(node)} in one instant: where elements "
                "have one time, each of them may be next; order them by ties=…, tell them apart by another BY "
                "variable, or raise Limits(derivations=…)"
            )
        size = estimated_bytes(some) * count // len(some)
        if size > self.limits.bytes:
            self.too_large(node, count, size)
        return min(2 * count, self.limits.derivations)

    def too_many(self, node: str) -> None:
        raise LimitExceeded(
            f"more than {self.limits.derivations} solutions of {self.describe(node)} in one instant; "
            "add a WITHIN or a join variable, or raise Limits(derivations=…)"
        )

    def too_large(self, node: str, count: int, size: int) -> None:
        raise LimitExceeded(
            f"the {count} solutions of {self.describe(node)} in one instant take about {size} bytes, the limit is "
            f"{self.limits.bytes}; make them fewer or their texts shorter, or raise Limits(bytes=…)"
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
        """Add an occurrence to the history, for backward evaluation."""
        self.state.history.add(start, t, ((s, p, o),), stream)
        if self.journaling:
            self.state.journal.append(("", t, [(s, p, o, start, stream)]))

    def follows_from_one(self, event: WholeEvent, events: Iterable[WholeEvent]) -> bool:
        """Whether the triples of an event follow from one of the events of this instant that has its interval."""
        assert self.closure is not None
        start, triples, _, _, end = event
        same = (said for begun, said, _, _, ended in events if (begun, ended) == (start, end))
        return any(set(triples) <= set(self.closure.of(said)) for said in same)

    def _over_event(self, name: str) -> Evaluate:
        """The function that evaluates the pattern of an EVENT."""
        node, state = narrowed(self.rules, name), self.state
        closure = self.closure.of if needs_schema(node) and self.closure is not None else None
        return evaluator(name, node, state.layouts[name], state.background, closure, explain=state.explain)

    # --- operators that are objects ---

    def operator(self, name: str, node: ir.Node) -> Callable[[int, list[Solution]], list[Solution]]:
        """``advance`` of the node's operator, which is created on first use and kept with the state."""
        state = self.state
        match node:
            case ir.Group():
                return self._carrying(name, self._group(name, node).advance)
            case ir.Run():
                return self._carrying(name, self.runs_of(name).advance)
            case ir.Closure():
                closure = state.closures.get(name)
                if closure is None:
                    closure = state.closures[name] = self._closure(name, node)
                return self._reordered(name, node, closure)
            case ir.Slice():
                sliced = state.slices.get(name)
                if sliced is None or isinstance(sliced, Skipping):
                    sliced = state.slices[name] = slicing_of(node)
                return self._projected(name, node, advance_of_slicing(sliced, node))
            case ir.Skip():
                skipping = state.slices.get(name)
                if not isinstance(skipping, Skipping):
                    skipping = state.slices[name] = Skipping(node)
                return self._projected(name, node, skipping.advance)
            case ir.Recall():
                return self._recall(name, node)
        raise TypeError(f"not an operator: {node!r}")

    def _group(self, name: str, node: ir.Group) -> Any:
        group = self.state.groups.get(name)
        if group is None:
            code, explain, standing = self.plan.operators[name], self.state.explain, self.state.standing(node)
            group = self.state.groups[name] = group_operator(name, node, code, self.scope, standing, explain=explain)
        return group

    def _carrying(
        self, name: str, advance: Callable[[int, list[Solution]], list[Solution]]
    ) -> Callable[[int, list[Solution]], list[Solution]]:
        """A function like ``advance`` whose rows carry the decoded values that rules above the node read."""
        layout = self.state.layouts[name]
        if not layout.values:
            return advance
        return lambda t, rows: [rebuilt(layout, x) for x in advance(t, rows)]

    def runs_of(self, name: str) -> Runs:
        """The operator of a REPEAT, which is created on first use and kept with the state."""
        runs = self.state.runs.get(name)
        if runs is None:
            node, explain = self.state.nodes[name], self.state.explain
            assert isinstance(node, ir.Run)
            weigh = partial(self.weigh_runs, name)
            runs = runs_operator(name, node, self.plan.operators[name], self.scope, weigh, explain=explain)
            self.state.runs[name] = runs
            if isinstance(runs, MaximalRuns) and node.gap is not None:
                runs.alarm = self.state.alarm
                self.state.timers[name] = runs
        return runs

    def ends_of(self, name: str) -> Advance:
        """The function of a REPEAT … UNTIL that takes what ends runs."""
        runs = self.runs_of(name)
        assert isinstance(runs, EndedRuns)
        return self._carrying(name, runs.ends)

    def _finishing(self, name: str) -> Callable[[int], list[Solution]]:
        """The function that gives what an operator has at the end: its last runs, or rows over nothing."""
        node = self.state.nodes[name]
        operator: Any = self._group(name, node) if isinstance(node, ir.Group) else self.runs_of(name)
        carried = self._carrying(name, lambda t, rows: rows)
        return lambda t: carried(t, operator.at_end(t))

    def _closure(self, name: str, node: ir.Closure) -> PathClosure:
        bound = node.bound
        forward = backward = None
        if isinstance(node.background, alg.PathPattern):
            source, target = _ends(node.background)
            ahead = self.state.lookup(node.background, (source,), (target,))
            behind = self.state.lookup(node.background, (target,), (source,))
            forward = lambda term: dict.fromkeys([term, *(row[0] for row in ahead((term,), 0))])  # noqa: E731
            backward = lambda term: dict.fromkeys([term, *(row[0] for row in behind((term,), 0))])  # noqa: E731
        within = None if bound is None else lambda start, end: end <= bound.after(start)
        longest = None if bound is None else bound.longest
        return PathClosure(within, longest, forward, backward, partial(self.weigh, name))

    def _reordered(
        self, name: str, node: ir.Closure, closure: PathClosure
    ) -> Callable[[int, list[Solution]], list[Solution]]:
        """The closure's ``advance`` with the node's order of columns: that of the edges, and that of the pairs."""
        source, target = node.ends
        i, j = 2 + node.edge.columns.index(source), 2 + node.edge.columns.index(target)
        flip = node.head.index(source) > node.head.index(target)

        layout = self.state.layouts[name]
        explain = self.state.explain

        def advance(t: int, edges: list[Solution]) -> list[Solution]:
            solutions = []
            for p in closure.advance(t, [(x[0], x[1], x[i], x[j], *(x[-1:] if explain else ())) for x in edges]):
                row = rebuilt(layout, (p[0], p[1], p[3], p[2]) if flip else p[:4])
                solutions.append((*row, p[-1]) if explain else row)
            return solutions

        return advance

    def _projected(self, name: str, node: ir.Slice | ir.Skip, slicing: Advance) -> Advance:
        layout = self.state.layouts[name]
        places = [2 + node.child.columns.index(c) if c in node.child.columns else -1 for c in node.head]
        explain = self.state.explain

        def advance(t: int, rows: list[Solution]) -> list[Solution]:
            solutions = []
            for x in slicing(t, rows):
                row = (x[0], x[1], *(x[i] if i > 0 else "" for i in places))
                carried = [decode_column(node, x, c) for c in layout.values]
                if explain:
                    because = Provenance(name, (x[-1],)) if isinstance(node, ir.Skip) else x[-1]
                    solutions.append((*row, *carried, because))
                else:
                    solutions.append((*row, *carried))
            return solutions

        return advance

    def _recall(self, name: str, node: ir.Recall) -> Callable[[int, list[Solution]], list[Solution]]:
        layout = self.state.layouts[name]
        columns = node.child.columns
        explain = self.state.explain
        look_back = self.state.look_back

        def advance(t: int, rows: list[Solution]) -> list[Solution]:
            solutions = []
            for x in rows:
                terms = {c: x[2 + i] for i, c in enumerate(columns)}
                terms[node.mark] = TRUE if look_back(node.pattern, terms, x[0], t) else FALSE
                row = rebuilt(layout, (x[0], x[1], *(terms.get(c, "") for c in node.head)))
                solutions.append((*row, x[-1]) if explain else row)
            return solutions

        return advance

    # --- reports ---

    def arrangement(self, number: int) -> Slicing | None:
        """DISTINCT, ORDER BY, LIMIT and OFFSET of an output, or None if its rows are only sorted."""
        output = self.rules.outputs[number]
        if not is_arranged(output):
            return None
        sliced = self.state.slices.setdefault("out:" + output.query, slicing_of_output(output))
        assert isinstance(sliced, Slicing)
        return sliced

    def arrangement_of_family(self, number: int) -> Callable[[str, int, list[Solution]], list[Solution]] | None:
        """DISTINCT, ORDER BY, LIMIT, OFFSET and ASK for each query of a family, by its name; None if there are none."""
        output = self.rules.outputs[number]
        if not is_arranged(output) and output.form != "ask":
            return None
        sliced = self.state.slices.setdefault("out:" + output.query, SlicingPerQuery(slicing_of_output(output)))
        assert isinstance(sliced, SlicingPerQuery)
        return sliced.answer if output.form == "ask" else sliced.advance

    def settle(self, first: int) -> None:
        """Put the reports of an instant, which begin at ``first``, into the order of the program.

        They were created stratum by stratum, and in a recursion round by round.  The rows of a recursion are merged
        into one report per output, in canonical order.
        """
        reports = self.reports
        unsettled, t = reports[first:], reports[-1][1]
        by_output: dict[int, list[list[Solution]]] = {}
        for number, _, rows in unsettled:
            by_output.setdefault(number, []).append(rows)
        del reports[first:]
        for number in sorted(by_output):
            parts = by_output[number]
            rows = parts[0]
            if len(parts) > 1 or number in self.rounds:
                rows = sorted((row for part in parts for row in part), key=self.sort_key(number))
            reports.append((number, t, rows))

    def output_of(self, number: int) -> ir.Output:
        """The output whose rows are reported under a number."""
        if number in self.numbers:
            return self.rules.outputs[self.numbers[number]]
        assert self.families is not None
        return self.families.shapes.of_number(number)

    def sort_key(self, number: int) -> Callable[[Solution], Any] | None:
        """The canonical order of the rows that are reported under a number."""
        output = self.output_of(number)
        assert output.source is not None
        return canonical_key(output.source.columns, tuple(sorted(output.variables)))

    def _making(self, number: int) -> Making | None:
        """How the rule of an output makes blank nodes; None if its template has none."""
        output = self.rules.outputs[number]
        assert output.source is not None
        return making(output, output.source.columns, self.makers)


def decode_column(node: ir.Slice | ir.Skip, x: Solution, column: str) -> object:
    """The value of a column of the sliced solution."""
    if column not in node.child.columns:
        return None
    return decode_or_none(x[2 + node.child.columns.index(column)])


def _ends(pattern: alg.PathPattern) -> tuple[str, str]:
    assert isinstance(pattern.subject, alg.Var)
    assert isinstance(pattern.object, alg.Var)
    return pattern.subject.name, pattern.object.name


def runs_operator(
    name: str,
    node: ir.Run,
    code: OperatorCode,
    scope: Mapping[str, Any],
    weigh: Callable[[int, Sequence[Run]], int],
    *,
    explain: bool,
) -> Runs:
    """The operator of runs with the functions that its clauses ask for."""
    because = (lambda parts: Provenance(name, parts)) if explain else None
    operands = [loaded(text, "operand", scope) for text in code.operands]
    row = loaded(code.row, "row", {"result": result})
    operator = MaximalRuns if node.maximal else Runs if node.until is None else EndedRuns
    step = loaded(code.step, "step", scope)
    return operator(node, RunFunctions(step, operands, row, code.may_be_unbound, because, weigh))
