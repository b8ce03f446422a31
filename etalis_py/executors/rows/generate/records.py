"""Generated code for EVENT: each event is looked at once, whole, for all columns of its pattern.

A pattern that is read like a row of a table (``columns_of``) is straight code; any other is evaluated backwards over
the triples of the event and the background.  The event at hand is in ``start triples stream graph``, its end in ``t``
or, where a rule derived it of the past, in ``end``.  Nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from itertools import product

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.records import Column, columns_of

from etalis_py.events import Triple
from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.frames import Frame
from etalis_py.executors.rows.generate.layout import Layout
from etalis_py.executors.rows.generate.provenance import Provenance
from etalis_py.executors.rows.generate.runtime_objects import OfRecord
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.executors.rows.run.goals import Solution, rebuilt
from etalis_py.sparql import EventSource, Source, prepare
from etalis_py.sparql.whole_events import Moment, over_one_event
from etalis_py.values.time import TIMELESS_END

Evaluate = Callable[..., list[Solution]]
"""From the end, start, triples, stream and graph of an event to solutions."""


def feed_event(
    w: Writer, code: Code, nodes: Mapping[str, ir.Record], later: Mapping[str, str], because: str = "", end: str = "t"
) -> None:
    """Give the event at hand to these nodes; ``later`` are the lists for the next round of a recursion.

    ``because`` is the source of the provenance of an event that a rule derived, ``end`` where its end stands.
    """
    straight = {name: columns for name, node in nodes.items() if (columns := columns_of(node)) is not None}
    if straight:
        _read_once(w)
    if any(node.late for node in nodes.values()):
        w("whole = ' '.join(sorted(map(' '.join, triples)))")
    for name, node in nodes.items():
        more = f", {because}" if because and code.explain else ""
        more += ", now=t" if end != "t" else ""
        new = later.get(name, code.new(name))
        tests = _tests(node)
        if node.late:
            tests.append(code.is_new(name, ("whole", "stream", "graph"), end, "start"))
        with w.block(f"if {' and '.join(tests)}:") if tests else nullcontext():
            if name in straight:
                _straight(w, code, name, node, straight[name], new, because, end)
            else:
                w(f"{new} += {code.helper('event', name, OfRecord(name))}({end}, start, triples, stream, graph{more})")


def _tests(node: ir.Record) -> list[str]:
    """Tests that an event is of the stream and the graph that the pattern names."""
    tests = [f"stream == {node.stream!r}"] if node.stream else []
    if node.graph is not None:
        tests.append(alg.spelled(node.graph, lambda _: "graph", "graph == {!r}".format))
    return tests


def _read_once(w: Writer) -> None:
    """Write the code that indexes an event: by predicate if it is like one row of a table, else by subject as well.

    It is like one row if it has one subject, and one object for each predicate.
    """
    w("s = triples[0][0]", "row = {p: o for x, p, o in triples if x == s}", "table = None")
    with w.block("if len(row) != len(triples):"):
        w("table = {}")
        with w.block("for s, p, o in dict.fromkeys(triples):"):
            w("table.setdefault(s, {}).setdefault(p, []).append(o)")


def _straight(
    w: Writer,
    code: Code,
    name: str,
    node: ir.Record,
    pattern: tuple[str, tuple[Column, ...]],
    new: str,
    because: str,
    end: str,
) -> None:
    """The solutions of a pattern of columns: at most one if the event is one row, else a product for each subject."""
    subject, columns = pattern
    cells = [(predicate, f"o{i}") for i, (predicate, _) in enumerate(columns)]
    terms = {subject: "s"}
    tests = []
    if graph := alg.variable_of(node.graph):
        if graph == subject:
            tests.append("graph == s")
        terms.setdefault(graph, "graph")
    for (_, cell), (_, node_) in zip(cells, columns, strict=True):
        if constant := alg.constant_of(node_):
            tests.append(f"{cell} == {constant!r}")
        elif (name_ := alg.variable_of(node_)) in terms:
            tests.append(f"{cell} == {terms[name_]}")
        else:
            terms[name_] = cell
    frame = Frame(code.names, terms, start="start", end=end)
    if code.explain:
        made = code.names.use("Because", Provenance)
        parts = [f"{made}('event', (s, {p!r}, {cell}, start, t, stream))" for p, cell in cells]
        frame.provenance = code.provenance(name, *([because] if because else parts))
    append = f"{new}.append({frame.solution(code.layouts[name])})"
    with w.block("if table is None:"):
        there = [f"({cell} := row.get({p!r})) is not None" for p, cell in cells]
        with w.block(f"if {' and '.join([*there, *tests])}:"):
            w(append)
    with w.block("else:"), w.block("for s, said in table.items():"):
        found = ", ".join(f"said.get({p!r}, ())" for p, _ in cells)
        names = ", ".join(cell for _, cell in cells)
        loop = w.block(f"for {names}, in {code.names.use('product', product)}({found}):")
        with loop, w.block(f"if {' and '.join(tests)}:") if tests else nullcontext():
            w(append)


def evaluator(
    name: str,
    node: ir.Record,
    layout: Layout,
    background: Source,
    closure: Callable[[Iterable[Triple]], Iterable[Triple]] | None,
    *,
    explain: bool,
) -> Evaluate:
    """The solutions of a pattern over an event; ``closure`` adds what follows from its triples."""
    prepared = prepare(over_one_event(node.pattern), timed=True, of_event=True)
    graph_name = alg.variable_of(node.graph)

    def evaluate(
        t: int,
        start: int,
        triples: tuple[Triple, ...],
        stream: str,
        graph: str,
        because: Provenance | None = None,
        now: int | None = None,
    ) -> list[Solution]:
        whole = dict.fromkeys(triples if closure is None else closure(triples))
        source = EventSource(background, whole, start, t)
        provenance: tuple[Provenance, ...] = ()
        if explain:
            read = (Provenance("event", (*triple, start, t, stream)) for triple in dict.fromkeys(triples))
            provenance = (Provenance(name, tuple(read) if because is None else (because,)),)
        solutions = []
        for mu, _, end in prepared.solve({}, source, None, Moment(t if now is None else now, (start, t))):
            if end == TIMELESS_END or (graph_name and mu.get(graph_name, graph) != graph):
                continue
            terms = {**mu, graph_name: graph} if graph_name else mu
            row = rebuilt(layout, (t, start, *(terms.get(column, "") for column in node.head)))
            solutions.append((*row, *provenance))
        return solutions

    return evaluate
