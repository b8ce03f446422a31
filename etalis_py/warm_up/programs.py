"""Small programs that call every kernel as large inputs do: Numba compiles a kernel for the types it is called with.

There are two halves, for two processes (``warming``), which take about equally long.  One has most of the rules; the
other has the column readers and the largest loops, including that of consuming joins.  Each half finds what the other
has compiled, so the first one comes to these joins last.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import numpy as np
import pyarrow as pa

from etalis_py.engine.engine import Engine
from etalis_py.engine.inputs import columns_of
from etalis_py.engine.program import compile
from etalis_py.events import Event
from etalis_py.events.clock import Clock
from etalis_py.executors.columns.arguments import spelled_doubles
from etalis_py.executors.columns.executor import ColumnExecutor
from etalis_py.executors.columns.kernels import joining, sliding
from etalis_py.executors.columns.kernels.parsing import DECIMAL
from etalis_py.executors.columns.recursion import in_room
from etalis_py.executors.columns.store import ColumnGoalStore, Keys
from etalis_py.executors.columns.window_groups import spelled_results
from etalis_py.kernel.batch import Batch, Columns
from etalis_py.kernel.tabular import of_columns
from etalis_py.streams import read_stream
from etalis_py.streams.columns.canonical import plain_literals
from etalis_py.streams.columns.csv_cells import cut_csv
from etalis_py.streams.columns.flat_form import batch_of
from etalis_py.streams.columns.gather_terms import guesses, respelled
from etalis_py.streams.columns.statements import usual_statements
from etalis_py.streams.columns.times import formatted_times, spelled_spans, steps_of

_XSD = "http://www.w3.org/2001/XMLSchema#"
_SEQ = "SELECT ?x ?y WHERE { { { ?c <urn:p> ?x } SEQ { ?c <urn:p> ?y } FILTER (?x < ?y * 2 && ?x != ?y) } WITHIN PT9S }"
_THREE = "{ ?c <urn:p> ?x } SEQ { ?c <urn:p> ?y } SEQ { ?c <urn:q> ?z }"
CONSUMING: tuple[tuple[str, str], ...] = (
    ("SELECT ?x ?y WHERE { { ?c <urn:p> ?x } EQUALS { ?c <urn:q> ?y } }", "recent"),
    (_SEQ, "recent"),
    ("SELECT ?x ?y WHERE { { ?c <urn:p> ?x } SEQ { ?c <urn:p> ?y } FILTER (STR(?x) < STR(?y)) }", "chronological"),
    ("SELECT ?x ?y WHERE { { ?c <urn:p> ?x } OPTIONALSEQ { ?c <urn:q> ?y } }", "recent"),
    ("SELECT ?x ?y WHERE { { ?c <urn:p> ?x } EQUALSOPTIONAL { ?c <urn:q> ?y } }", "recent"),
)
PROGRAMS: tuple[tuple[str, str], ...] = (
    ("CONSTRUCT { ?c <urn:r> ?x } WHERE { ?c <urn:p> ?x } SELECT ?x WHERE { ?c <urn:r> ?x }", "unrestricted"),
    ("SELECT (COUNT(*) AS ?s) WHERE { ?c <urn:p> ?x } WITHIN PT5S", "unrestricted"),
    ("SELECT (SUM(?x) AS ?s) WHERE { ?c <urn:p> ?x } WITHIN 3 EVENTS", "unrestricted"),
    ("SELECT ?c (MAX(?x) AS ?s) WHERE { ?c <urn:p> ?x } WITHIN PT5S GROUP BY ?c", "unrestricted"),
    ("SELECT ?c (AVG(?x) AS ?s) (COUNT(*) AS ?n) WHERE { ?c <urn:p> ?x } GROUP BY ?c", "unrestricted"),
    ("SELECT ?c (AVG(?x) AS ?s) WHERE { ?c <urn:p> ?x } GROUP BY ?c ORDER BY ?s LIMIT 1", "unrestricted"),
    ("SELECT (COUNT(DISTINCT ?x) AS ?s) (SAMPLE(?x) AS ?t) WHERE { ?c <urn:p> ?x } WITHIN 3 EVENTS", "unrestricted"),
    ("SELECT ?x WHERE { { ?c <urn:p> ?x } SEQ NOT { ?c <urn:q> ?y } WITHIN PT2S }", "unrestricted"),
    ("SELECT ?c ?n WHERE { { ?c <urn:p> ?x } REPEAT 2 OR MORE BY ?c GAP 3 s MAXIMAL AS (COUNT(*) AS ?n) }", "recent"),
    (
        "SELECT ?c ?s WHERE { { ?c <urn:p> ?x } REPEAT 2 OR MORE BY ?c WHERE (?x > PREVIOUS(?x)) MAXIMAL "
        "AS (SUM(?x) AS ?s, MIN(?x) AS ?l) }",
        "recent",
    ),
    (
        "SELECT ?c ?n WHERE { { ?c <urn:p> ?x } REPEAT 1 OR MORE BY ?c UNTIL { ?c <urn:q> ?y } AS (COUNT(*) AS ?n) }",
        "recent",
    ),
    ("SELECT ?l WHERE { { ?c <urn:p> ?x } REPEAT 2 BY ?c NOT { ?c <urn:q> ?y } AS (MIN(?x) AS ?l) }", "unrestricted"),
    (_SEQ, "unrestricted"),
    ("SELECT ?x WHERE { { ?c <urn:p> ?x } SEQ { ?c <urn:p> ?y } SEQ { ?d <urn:q> ?y } } WITHIN PT9S", "unrestricted"),
    (f"SELECT (SUM(?x) AS ?s) WHERE {{ {_THREE} }} GROUP BY ?c", "unrestricted"),
    (f"SELECT (MAX(?x) AS ?m) WHERE {{ {_THREE} }} WITHIN PT5S GROUP BY ?c", "unrestricted"),
    ("SELECT ?x ?y WHERE { { ?c <urn:p> ?x } NEXT { ?c <urn:p> ?y } FILTER (?x < ?y) }", "unrestricted"),
    ("SELECT DISTINCT ?x ?d WHERE { { ?c <urn:p> ?x } AND { ?d <urn:q> ?y } FILTER (?x > 2) }", "unrestricted"),
    ("SELECT ?x ?y WHERE { { ?c <urn:p> ?x } OVERLAPS { ?c <urn:q> ?y } }", "unrestricted"),
    ("SELECT ?x ?y WHERE { { ?c <urn:p> ?x } OPTIONAL { ?c <urn:q> ?y } }", "unrestricted"),
    ("SELECT ?x WHERE { { ?c <urn:p> ?x } UNION { ?c <urn:q> ?x } }", "unrestricted"),
    ("SELECT ?x WHERE { EVENT { ?c <urn:p> ?x } }", "unrestricted"),
    *CONSUMING,
)


def _events() -> Iterator[Event]:
    """A few hundred events: some simultaneous, some with two triples, with numbers of every kind and texts."""
    kinds = ("integer", "decimal", "double", "double", "dateTime")
    for n in range(240):
        value = ("7", f"{n}.50", f"{n}.12345678901234567890123", "1e300", "2026-01-01T00:00:00Z")[n % 5]
        number = f'"{n % 17}"^^<{_XSD}integer>' if n < 120 else f'"{value}"^^<{_XSD}{kinds[n % 5]}>'
        triples = [(f"<urn:c{n % 3}>", "<urn:p>" if n % 4 else "<urn:q>", number)]
        if n % 50 == 0:
            triples.append((f"<urn:c{n % 3}>", "<urn:q>", '"text"'))
        yield Event(
            (n // 3 * 3 - n % 2) * 1_000_000, (n // 3 * 3) * 1_000_000, tuple(triples), "<urn:s>" if n % 2 else ""
        )


def _forms() -> Iterator[Columns]:
    """Events as readers and others supply them: with dictionaries and without."""
    events = list(_events())
    yield Batch(events, events[-1].end).columns
    plain = [event._replace(stream="") for event in events]
    batch = batch_of(plain)
    texts = [
        column.cast(pa.string()) if name in "spo" else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    yield columns_of(pa.record_batch(texts, names=batch.schema.names))


def _run(query: str, policy: str, columns: Columns) -> None:
    engine = Engine(compile(query), policy=policy, executor="columns")
    for first in range(0, len(columns), 60):
        matches = engine.push_all(columns.rows(first, first + 60))
        of_columns(matches)
        list(matches)
        for stage in engine._stages:
            if isinstance(stage.executor, ColumnExecutor):
                stage.executor.forget_terms()
    engine.snapshot()
    engine.close()


def _spell() -> None:
    """Kernels that only some spellings need."""
    plain_literals(pa.array(['"1"']))
    respelled(pa.array(['"1"@EN']))
    for line in (b'1,"a"\n', b'1,"say ""a"""\n'):
        guesses(cut_csv(line, 1, ",", [True, True]).column(1))


def _read() -> None:
    """The column readers."""
    quads = "".join(
        f'<urn:a> <urn:p> "{n}" <urn:g{n}> .\n'
        f'<urn:g{n}> <http://www.w3.org/ns/prov#generatedAtTime> "2026-01-01T00:00:{n % 60:02}Z"^^<{_XSD}dateTime> .\n'
        for n in range(200)
    )
    lines = "".join(f'{{"time": {n}, "triples": "<urn:a> <urn:p> {n}, {n} ."}}\n' for n in range(200))
    for text, format in ((quads, "nq"), (lines, "jsonl")):
        with read_stream(BytesIO(text.encode()), format=format) as stream:
            for chunk in stream.chunks(large=True):
                assert len(chunk)


def _recur() -> None:
    """The largest loop: rules that feed themselves."""
    nothing, none = np.zeros(0, np.int64), np.zeros(0, np.bool_)
    terms, keys, sources = np.zeros((0, 2), np.int32), np.zeros((2, 1), np.int64), np.zeros((2, 4), np.int64)
    fixed = np.zeros(2, np.bool_), nothing, nothing, terms, none, keys, sources, none
    store = ColumnGoalStore(Keys(1), 2, 0, None)
    in_room(joining.BEFORE, joining.UNBOUNDED, 1, fixed, store, store)


def _slide() -> None:
    """Sliding windows."""
    nothing, none = np.zeros(0, np.int64), np.zeros(0, np.bool_)
    at, ask, slots = np.zeros(9, np.int64), np.full(11, -1, np.int64), np.zeros(0, np.int32)
    facts, lists, sums, members, links, orders, answer = (np.zeros((0, n), np.int64) for n in (8, 2, 5, 2, 7, 3, 0))
    arrays = facts, lists, sums, members, slots, links, orders, nothing, nothing, answer
    sliding.slide(at, ask, nothing, nothing, none, *arrays)
    spelled_results(nothing, nothing, True, 0, DECIMAL)
    spelled_doubles(np.ones(1))


def _look() -> None:
    """Joins and aggregates over what windows hold."""
    columns = Batch([event._replace(stream="<urn:s>") for event in _events()], 0).columns
    where = "FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT3S SLIDE PT1S] WHERE { WINDOW <urn:w> { ?c <urn:p> ?x"
    _run(f"SELECT DISTINCT ?c {where} . ?d ?r ?x }} }}", "unrestricted", columns)
    _run(f"SELECT ?c (SUM(?x + 1) AS ?n) (MAX(STR(?x)) AS ?m) {where} }} }} GROUP BY ?c", "unrestricted", columns)


def rules() -> None:
    """The rules."""
    forms = list(_forms())
    for query, policy in PROGRAMS:
        for columns in forms:
            _run(query, policy, columns)
    _spell()


def others() -> None:
    """Readers and the largest loops."""
    _read()
    usual_statements(pa.array(["<urn:a> <urn:p> <urn:b> ."]))
    spelled_spans(pa.array(["1"]), Clock("integer"))
    formatted_times(pa.array(["1.2.2026"]), steps_of("%d.%m.%Y"))
    _recur()
    _run(*CONSUMING[0], next(_forms()))
    _slide()
    _look()
