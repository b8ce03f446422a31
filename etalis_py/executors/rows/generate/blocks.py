"""Generated code for the steps of a rule, and for nodes with one body goal.

Every node has a Python list of the solutions that are new in this instant.  A *block* reads the lists of the node's
body goals and fills the node's own; the blocks of an instant follow one another in the order of the strata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, assert_never

from etalis_rules import algebra as alg
from etalis_rules import operators
from etalis_rules import program as ir
from etalis_rules.clock import is_decided_by_key, shown_within
from etalis_rules.lateness import ANY_TIME, latenesses
from etalis_rules.sides import looked_up

from etalis_py.executors.rows.generate.frames import Frame
from etalis_py.executors.rows.generate.layout import Layout
from etalis_py.executors.rows.generate.provenance import Provenance
from etalis_py.executors.rows.generate.runtime_objects import (
    GoalBuckets,
    GoalStoreSpec,
    LongestOf,
    LookUp,
    Need,
    OfFamily,
    OfInstant,
    OfOutput,
    OfRuntime,
)
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.values import SparqlError
from etalis_py.values.expressions import GlobalNames
from etalis_py.values.limits import Limits


@dataclass(slots=True)
class Code:
    """The state that all blocks of one program share while they are written, with the needs collected so far.

    ``late`` are the nodes whose solutions may end before the instant in which they are known.  ``numbering`` has the
    numbers of goal stores that exist; new ones get the numbers after ``last``.
    """

    nodes: dict[str, ir.Node]
    layouts: dict[str, Layout]
    late: frozenset[str] = frozenset()
    limits: Limits = Limits()  # noqa: RUF009 - frozen
    names: GlobalNames = field(default_factory=GlobalNames)
    explain: bool = False
    journaled: bool = False
    families: Mapping[str, tuple[bool, ...]] = field(default_factory=dict)
    """For each family, which of its parameters are numbers."""
    positions: tuple[int, ...] = ()
    """For each output the number that its reports bear; empty if that is always the number of the output."""
    numbering: Mapping[tuple[str, str], int] = field(default_factory=dict)
    last: int = 0
    numbers: dict[str, int] = field(default_factory=dict)
    needs: dict[str, Need] = field(default_factory=dict)
    stores: dict[tuple[str, str], GoalStoreSpec] = field(default_factory=dict)
    emptied: dict[str, dict[str, str]] = field(default_factory=dict)
    """The sets and dictionaries that are emptied at the end of an instant: their names, by the node that fills them."""
    latenesses: dict[str, int] = field(default_factory=dict)
    """How long after their end the solutions of each node may become known; made when it is first asked for."""
    at_end: frozenset[str] | None = None  # those that may have solutions at the end of the stream, once asked for
    single: set[str] = field(default_factory=set)
    """Lists that hold exactly one solution in the function being written."""
    at_most_one: set[str] = field(default_factory=set)
    """Lists that hold one solution or none, and to which nothing is added."""
    items: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """For some of these lists, the local names that the items of their solution have as well."""

    def __post_init__(self) -> None:
        self.numbers = {name: i for i, name in enumerate(self.nodes)}
        self.names.use("SparqlError", SparqlError)
        self.need("look_back", OfRuntime("look_back"))
        self.emptied = {
            "set": {"seen": "seen", "seen in stream": "in_stream", "whole": "whole_events"},
            "dict": {"made": "made"},
        }

    def new(self, node: str) -> str:
        """The list of a node's new solutions."""
        return f"n{self.numbers[node]}"

    def most(self, node: str) -> str:
        """The variable with the number of new solutions at which a node is checked against the limits again."""
        return f"m{self.numbers[node]}"

    def position(self, number: int) -> int:
        """The number that reports of an output have."""
        return self.positions[number] if self.positions else number

    def is_late(self, node: str) -> bool:
        """Whether solutions of this node may end before the instant in which they become known."""
        return node in self.late

    def lateness(self, node: str) -> int:
        """How long after their end the solutions of this node may become known."""
        self.latenesses = self.latenesses or latenesses(self.nodes)
        return self.latenesses[node]

    def log(self, w: Writer, name: str, source: str, side: int = 0) -> None:
        """Write the line that records in the journal the solutions an operator took from its ``side``-th input."""
        if self.journaled:
            w(f"{self.journal}.append(({name!r}, t, {source}, {side}))")

    def guard(self, w: Writer, *lists: str) -> AbstractContextManager[None]:
        """A block that runs only if there is a solution in one of these lists."""
        return nullcontext() if self.single.intersection(lists) else w.block(f"if {' or '.join(lists)}:")

    def is_short(self, source: str) -> bool:
        """Whether a list holds one solution or none, in the function being written."""
        return source in self.single or source in self.at_most_one

    @contextmanager
    def changing(self, lists: Iterable[str]) -> Iterator[None]:
        """While the rounds of a recursion are written: these lists are found empty by later rounds."""
        single, at_most_one = self.single, self.at_most_one
        self.single, self.at_most_one = single.difference(lists := set(lists)), at_most_one - lists
        yield
        self.single, self.at_most_one = single, at_most_one

    @contextmanager
    def each(self, w: Writer, variable: str, source: str) -> Iterator[str]:
        """A block for each solution of a list; gives the statement that goes on to the next one.

        ``variable`` is empty where only names of the solution's items are read.
        """
        if self.is_short(source):
            # A loop over a tuple makes an iterator, which takes as long as two look-ups in dictionaries.
            with w.block(f"while {'True' if source in self.single else source}:"):
                if variable:
                    w(f"{variable} = {source}[0]")
                yield "break"
                w("break")
        else:
            with w.block(f"for {variable} in {source}:"):
                yield "continue"

    def provenance(self, node: str, *parts: str) -> str:
        """Source of the provenance of a solution, or nothing when explanations are off."""
        if not self.explain:
            return ""
        return f"{self.names.use('Because', Provenance)}({node!r}, ({''.join(f'{part}, ' for part in parts)}))"

    # --- names of run-time objects ---

    def need(self, name: str, need: Need) -> str:
        """A name for a run-time object."""
        self.needs[name] = need
        return name

    def helper(self, kind: str, node: str, need: Need) -> str:
        """A name for a run-time object that belongs to a node."""
        return self.need(f"{kind}{self.numbers[node]}", need)

    def of_runtime(self, name: str) -> str:
        """A name for an object that every program has."""
        return self.need(name, OfRuntime(name))

    @property
    def journal(self) -> str:
        return self.of_runtime("journal")

    def store(self, node: str, side: str) -> GoalStoreSpec:
        """The goal store of one side of a node."""
        store = self.stores.get((node, side))
        if store is None:
            waiting, certain, bound = operators.waiting_at(self.nodes[node], side)
            number = self.numbering.get((node, side))
            if number is None:
                number = self.last = self.last + 1
            key = tuple(2 + waiting.columns.index(name) for name in certain)
            parameter = ir.parameter_of(bound)
            lasting = None if parameter is None else LongestOf(*parameter)
            shown = self.shown_within(node) if self.is_decided_by_key(node) else None
            limit = next((b.longest for b in (bound, shown) if b is not None), None)
            first = shown is not None
            store = GoalStoreSpec(number, node, side, self.layouts[waiting.node], key, limit, lasting, first)
            self.stores[node, side] = store
        return store

    def longest(self, node: str, bound: alg.Bound | None) -> str:
        """Source of how long a goal of this node is kept; empty if it is kept for ever."""
        if parameter := ir.parameter_of(bound):
            return f"{self.helper('longest', node, LongestOf(*parameter))}[0]"
        return "" if bound is None else str(bound.longest)

    def shown_within(self, node: str) -> alg.Bound | None:
        """How long an optional solution is still shown with a left of this node, if something says how long."""
        return None if self.is_late(node) else shown_within(node, self.nodes)

    def is_decided_by_key(self, name: str) -> bool:
        """Whether the first goal of a key tells that a left of this outer node has a partner."""
        return is_decided_by_key(self.nodes[name])

    def goals(self, node: str, side: str) -> str:
        """A name for the buckets of the store."""
        self.store(node, side)
        return self.helper(side, node, GoalBuckets(node, side, "buckets"))

    def edges(self, node: str, side: str) -> str:
        """A name for the edges of its buckets."""
        self.store(node, side)
        return self.helper(f"E{side}", node, GoalBuckets(node, side, "edges"))

    def is_new(self, node: str, columns: Sequence[str], end: str = "x[0]", start: str = "x[1]") -> str:
        """Source of a test that a solution which may become known late was not known before; it is then remembered.

        ``columns`` are the sources of what tells it from others with its interval.  It is remembered for as long as
        an equal one may become known.
        """
        store = self.stores.get((node, "S"))
        if store is None:
            number = self.numbering.get((node, "S"))
            if number is None:
                number = self.last = self.last + 1
            longest = self.lateness(node)
            layout = Layout(tuple(f"~{i}" for i in range(len(columns))), ())
            key = tuple(range(2, layout.width))
            store = GoalStoreSpec(number, node, "S", layout, key, None if longest >= ANY_TIME else longest)
            self.stores[node, "S"] = store
        insert = self.helper("S", node, GoalBuckets(node, "S", "insert_new"))
        why = [self.provenance(node)] if self.explain else []
        known = f"({', '.join([end, start, *columns, *why])})"
        if not self.journaled:
            return f"{insert}({known})"
        return f"({insert}(g := {known}) and not {self.journal}.append(({store.number}, g)))"

    def of_instant(self, kind: str, node: str, what: Literal["set", "dict"], key: str = "") -> str:
        """A name for a set or dictionary that is empty between instants; ``key`` tells two of a node apart."""
        name = self.helper(kind, node, OfInstant(what))
        self.emptied[what].setdefault(node + key, name)
        return name

    def filled(self, key: str) -> str:
        """A name for a set or dictionary of the instant that belongs to no node."""
        what: Literal["set", "dict"] = "set" if key in self.emptied["set"] else "dict"
        return self.need(self.emptied[what][key], OfInstant(what))


def too_long(bound: alg.Bound, start: str, end: str, names: GlobalNames) -> str:
    """Source that is true when an interval is longer than the bound."""
    if not bound.is_fixed:
        return f"{end} > {names.constant(bound, bound.after)}({start})"
    return f"{end} - {start} > {bound.micros}"


def in_time(bound: alg.Bound, start: str, end: str, names: GlobalNames) -> str:
    """Source that is true when an interval is no longer than the bound."""
    if not bound.is_fixed:
        return f"not {too_long(bound, start, end, names)}"
    return f"{end} - {start} <= {bound.micros}"


def lasts(parameter: str, frame: Frame) -> str:
    """Source that is true when the solution lasts no longer than the value of a parameter."""
    return f"{frame.end} - {frame.start} <= {frame.values[parameter]}"


def emit_steps(
    w: Writer, code: Code, node: str, steps: tuple[ir.Step, ...], frame: Frame, skip: str, then: Callable[[], None]
) -> None:
    """Write the steps in order; a look-up with several answers opens a loop, in which the later steps are nested.

    ``then`` writes the code for solutions that pass.  ``skip`` is the statement that abandons a solution (``continue``
    inside a loop).
    """
    for i, step in enumerate(steps):
        match step:
            case ir.Condition(expression):
                with w.block("try:"), w.block(f"if not {frame.emitter().test(expression)}:"):
                    w(skip)
                with w.block("except SparqlError:"):
                    w(skip)
            case ir.Duration(bound):
                with w.block(f"if {too_long(bound, frame.start, frame.end, code.names)}:"):
                    w(skip)
            case ir.Lasting(parameter):
                with w.block(f"if not {lasts(parameter, frame)}:"):
                    w(skip)
            case ir.Assign(variable, expression):
                _assign(w, frame, variable, expression, f"a{code.numbers[node]}_{i}")
            case ir.Background() | ir.Parameters():
                tag = f"{code.numbers[node]}_{i}"
                if isinstance(step, ir.Background):
                    _background(w, code, node, step, steps[i + 1 :], frame, tag)
                else:
                    _parameters(w, code, step, frame, tag, skip)
                depth = w.depth
                w.depth += 1
                emit_steps(w, code, node, steps[i + 1 :], frame, "continue", then)
                w.depth = depth
                return
            case _:
                assert_never(step)
    then()


def _assign(w: Writer, frame: Frame, variable: str, expression: alg.Expr, temporary: str) -> None:
    if isinstance(expression, alg.Var):
        frame.terms[variable] = frame.terms.get(expression.name, "''")
        if expression.name in frame.values:
            frame.set_value(variable, frame.values[expression.name], unsure=expression.name in frame.unsure)
        return
    with w.block("try:"):
        w(f"{temporary} = {frame.emitter().term(expression)}")
    with w.block("except SparqlError:"):
        w(f"{temporary} = ''")
    frame.terms[variable] = temporary
    frame.values.pop(variable, None)


def _background(
    w: Writer, code: Code, node: str, step: ir.Background, later: Sequence[ir.Step], frame: Frame, tag: str
) -> None:
    """``for b in lookup(bindings, t):`` — the body is indented by the caller."""
    pattern, read = looked_up(step, later, frame.terms)
    known, binds = sorted(read & frame.terms.keys()), step.binds
    wanted = tuple(sorted({*binds, *known}))
    lookup = code.need(f"B{tag}", LookUp(pattern, tuple(known), wanted))
    arguments = ", ".join(frame.terms[name] for name in known)
    row = f"b{tag}"
    w(f"for {row} in {lookup}(({arguments}{',' if known else ''}), t):")
    for i, name in enumerate(wanted):
        # A look-up may bind a variable that was unbound before; the value that is carried for it is then stale.
        frame.terms[name] = f"{row}[{i}]"
        if name in binds or name in frame.unsure:
            frame.values.pop(name, None)
    if code.explain:
        frame.provenance = code.provenance(node, frame.provenance or "x[-1]", f"Because('background', {row}[-1])")


def _parameters(w: Writer, code: Code, step: ir.Parameters, frame: Frame, tag: str, skip: str) -> None:
    """``for q in rows of the parameters that match:`` — the body is indented by the caller."""
    terms = [frame.terms[name] for name, _ in step.equal]
    key = "None" if not terms else terms[0] if len(terms) == 1 else f"({', '.join(terms)})"
    equal = tuple(place for _, place in step.equal)
    row = f"q{tag}"
    if step.compared:
        ((variable, op, place),) = step.compared
        if variable:
            with w.block("try:"):
                w(f"v = {frame.emitter().value(alg.Var(variable))}")
            with w.block("except SparqlError:"):
                w(skip)
        else:
            w(f"v = {frame.end} - {frame.start}")
        candidates = code.need(f"P{tag}", OfFamily(step.family, equal, place, op))
        w(f"for {row} in {candidates}({key}, v):")
    elif terms:
        w(f"for {row} in {code.need(f'P{tag}', OfFamily(step.family, equal))}({key}, ()):")
    else:
        w(f"for {row} in {code.need(f'P{tag}', OfFamily(step.family))}():")
    is_numeric = code.families[step.family]
    for name, place in step.binds:
        frame.terms[name] = f"{row}[{place}]"
        frame.values.pop(name, None)
        if place and is_numeric[place - 1]:
            frame.set_value(name, f"{row}[{1 + len(is_numeric) + place}]")


@contextmanager
def parted(w: Writer, code: Code, number: int, source: str) -> Iterator[None]:
    """Divide the reports of a family among its queries: the body handles the ``rows`` of one query at a time."""
    split, reports = code.need(f"split{number}", OfOutput(number, "split")), code.of_runtime("reports")
    with w.block(f"if {source}:"), w.block(f"for number, rows in {split}(t, {source}):"):
        w(f"{reports}.append((number, t, rows))")
        yield


def single_pass(w: Writer, code: Code, name: str, node: ir.Map, source: str) -> None:
    """Write the block of a Map, which takes each new solution of the child through the steps."""
    layout = code.layouts[name]
    frame = Frame(code.names)
    plain = all(isinstance(s, ir.Condition | ir.Duration) for s in node.steps)
    items = code.items.get(source) if plain and not node.distinct else None
    frame.read(node.child, code.layouts[node.child.node], items or "x")
    if items:
        frame.start = items[1]
    if code.is_late(name):
        frame.end = "x[0]"
    out = code.new(name)
    if code.explain:
        frame.provenance = "x[-1]"
    if node.distinct and not node.steps:
        _distinct(w, code, name, node, source, frame)
        return
    conditions = [s for s in node.steps if isinstance(s, ir.Condition)]
    durations = [s for s in node.steps if isinstance(s, ir.Duration)]
    if plain:
        tests = [f"not ({too_long(d.bound, frame.start, frame.end, code.names)})" for d in durations]
        emitter = frame.emitter()
        tests += [emitter.test(c.expression) for c in conditions]
        same = not code.explain and not node.at_end and _identical(node, layout, code)
        solution = "x" if same else _result(node, frame, layout)
        if code.is_short(source):
            _one_or_none(w, code, out, solution, source, tests, may_fail=bool(conditions))
            named = tuple(_made(node, frame).items(layout))
            if items and all(map(str.isidentifier, named)):
                code.items[out] = named
            return
        comprehension(w, out, solution, f"for x in {source}", tests)
        return
    with w.block(f"for x in {source}:"):
        made = partial(_result, node, frame, layout)
        emit_steps(w, code, name, node.steps, frame, "continue", lambda: w(f"{out}.append({made()})"))


def _one_or_none(
    w: Writer, code: Code, out: str, solution: str, source: str, tests: list[str], *, may_fail: bool
) -> None:
    """``comprehension`` over one solution: its result has one or none, too."""
    passed = source if solution == "x" else f"({solution},)"
    w(f"(x,) = {source}")
    with w.block("try:") if may_fail else nullcontext():
        w(f"{out} = {passed} if {' and '.join(tests)} else ()" if tests else f"{out} = {passed}")
    if may_fail:
        with w.block("except SparqlError:"):
            w(f"{out} = ()")
    (code.single if source in code.single and not tests else code.at_most_one).add(out)


def _result(node: ir.Map, frame: Frame, layout: Layout) -> str:
    """Source of the solution of a Map."""
    return _made(node, frame).solution(layout)


def _made(node: ir.Map, frame: Frame) -> Frame:
    """The frame of that solution; under AT END it is a point."""
    return replace(frame, start=frame.end) if node.at_end else frame


def _identical(node: ir.Map, layout: Layout, code: Code) -> bool:
    """Whether solutions of the child can be passed on as they are: same columns, and no decoded values."""
    child = code.layouts[node.child.node]
    return node.child.columns == layout.head and len(child.values) == len(layout.values) == 0


def comprehension(w: Writer, out: str, solution: str, loop: str, tests: list[str]) -> None:
    """``out += [solution …]``, or element by element if a condition raises an error."""
    if not tests:
        w(f"{out} += [{solution} {loop}]")
        return
    with w.block("try:"):
        w(f"{out} += [{solution} {loop} if {' and '.join(tests)}]")
    with w.block("except SparqlError:"), w.block(f"{loop}:"):
        with w.block("try:"), w.block(f"if {' and '.join(tests)}:"):
            w(f"{out}.append({solution})")
        with w.block("except SparqlError:"):
            w("continue")


def _distinct(w: Writer, code: Code, name: str, node: ir.Map, source: str, frame: Frame) -> None:
    """Write the block of a Map with DISTINCT: of equal solutions of an instant, in all columns, one passes."""
    layout = code.layouts[name]
    width = code.layouts[node.child.node].width
    if code.is_late(name):
        new = code.is_new(name, [f"x[{i}]" for i in range(2, width)])
        w(f"{code.new(name)} += [{frame.solution(layout)} for x in {source} if {new}]")
        return
    seen = code.of_instant("seen", name, "set")
    with w.block(f"for x in {source}:"):
        w(f"k = x[1:{width}]")
        with w.block(f"if k not in {seen}:"):
            w(f"{seen}.add(k)", f"{code.new(name)}.append({frame.solution(layout)})")


def union(w: Writer, code: Code, name: str, node: ir.Union, sources: list[tuple[ir.Ref, str]]) -> None:
    """Write the block of a Union: every branch in turn, with its columns in the order of the head."""
    layout = code.layouts[name]
    out = code.new(name)
    late = code.is_late(name)
    seen = code.of_instant("seen", name, "set") if node.distinct and not late else ""
    for ref, source in sources:
        frame = Frame(code.names)
        frame.read(ref, code.layouts[ref.node], "x")
        if late:
            frame.end = "x[0]"
        if code.explain:
            frame.provenance = "x[-1]"
        if not node.distinct:
            comprehension(w, out, frame.solution(layout), f"for x in {source}", [])
            continue
        terms = [frame.terms.get(c, "''") for c in layout.head]
        if late:
            w(f"{out} += [{frame.solution(layout)} for x in {source} if {code.is_new(name, terms)}]")
            continue
        columns = ", ".join(terms)
        with w.block(f"for x in {source}:"):
            w(f"k = (x[1], {columns})")
            with w.block(f"if k not in {seen}:"):
                w(f"{seen}.add(k)", f"{out}.append({frame.solution(layout)})")
