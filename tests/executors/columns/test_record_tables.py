"""Tables whose rows are events stay tables: EVENT reads their columns, with the matches that their triples have."""

from __future__ import annotations

import random
from functools import cache
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

from etalis_py import Engine, compile, run
from etalis_py.engine.inputs import in_columns
from etalis_py.events import Event
from etalis_py.kernel.batch import InColumns, Records
from etalis_py.streams import read_stream
from tests.executors.columns.judge import rule_executors

pytestmark = pytest.mark.usefixtures("forgetful")

P, Q, R = "<urn:p>", "<urn:q>", "<urn:r>"
MAPPING = {
    "time": "{at}",
    "triple": [
        {"subject": "<urn:{s}>", "predicate": P, "object": "{x}"},
        {"predicate": Q, "object": "<urn:{y}>"},
        {"predicate": R, "object": "{z}"},
    ],
}
NAMED = {**MAPPING, "stream": "<urn:{s}>", "graph": "<urn:{y}>"}
NODES = {**MAPPING, "triple": [{**MAPPING["triple"][0], "subject": "_:row"}, *MAPPING["triple"][1:]]}  # type: ignore[index]
QUERIES = {
    "columns": "SELECT * { EVENT { ?s <urn:p> ?x ; <urn:r> ?z } }",
    "a filter": "SELECT ?s ?y { EVENT { ?s <urn:p> ?x ; <urn:q> ?y ; <urn:r> ?z FILTER (?x > 1 && ?z < 3) } }",
    "a constant": "SELECT * { EVENT { ?s <urn:p> 1 ; <urn:q> ?y } }",
    "one variable twice": "SELECT * { EVENT { ?s <urn:p> ?x ; <urn:r> ?x } }",
    "the subject as a value": "SELECT * { EVENT { ?s <urn:q> ?s ; <urn:p> ?x } }",
    "one column twice": "SELECT * { EVENT { ?s <urn:p> ?x , ?z } }",
    "a predicate that no column has": "SELECT * { EVENT { ?s <urn:p> ?x ; <urn:t> ?z } }",
    "next": "SELECT * { EVENT { ?s <urn:p> ?x ; <urn:q> ?y } NEXT EVENT { ?s <urn:p> ?z } FILTER (?z > ?x) }",
    "joined by a value": "SELECT * { EVENT { ?s <urn:q> ?y } SEQ EVENT { ?t <urn:q> ?y ; <urn:p> ?x } WITHIN 2 s }",
    "not": "SELECT * { { EVENT { ?s <urn:p> ?x } SEQ EVENT { ?s <urn:p> ?z } } NOT { EVENT { ?s <urn:r> 2 } } }",
    "distinct": "SELECT DISTINCT ?x { EVENT { ?s <urn:p> ?x ; <urn:r> ?z } }",
    "an aggregate": "SELECT ?y (SUM(?x) AS ?n) { EVENT { ?s <urn:p> ?x ; <urn:q> ?y } WITHIN 3 s } GROUP BY ?y",
    "optional": "SELECT * { EVENT { ?s <urn:p> ?x OPTIONAL { ?s <urn:r> ?z } } }",
    "an optional group": "SELECT * { EVENT { ?s <urn:p> ?x OPTIONAL { ?s <urn:r> ?z ; <urn:q> ?y } } }",
    "an optional constant": "SELECT * { EVENT { ?s <urn:q> ?y OPTIONAL { ?s <urn:p> 1 ; <urn:r> ?z } } }",
    "two optional parts": (
        "SELECT * { EVENT { ?s <urn:p> ?x OPTIONAL { ?s <urn:r> ?z } OPTIONAL { ?s <urn:q> ?y } } SEQ "
        "EVENT { ?t <urn:r> ?z OPTIONAL { ?t <urn:t> ?w } } WITHIN 2 s }"
    ),
    "an optional filter": "SELECT * { EVENT { ?s <urn:p> ?x OPTIONAL { ?s <urn:r> ?z FILTER (?z > ?x) } } }",
    "one optional variable twice": (
        "SELECT * { EVENT { ?s <urn:q> ?y OPTIONAL { ?s <urn:p> ?x } OPTIONAL { ?s <urn:r> ?x } } }"
    ),
    "not exists": "SELECT * { EVENT { ?s <urn:p> ?x FILTER NOT EXISTS { ?s <urn:r> 2 } } }",
    "exists": "SELECT * { EVENT { ?s <urn:p> ?x FILTER EXISTS { ?s <urn:q> ?y ; <urn:r> ?x } } }",
    "minus": "SELECT * { EVENT { ?s <urn:q> ?y MINUS { ?s <urn:p> ?x ; <urn:r> ?x } } }",
    "minus before a column": "SELECT * { EVENT { ?s <urn:q> ?y MINUS { ?s <urn:r> ?x } ?s <urn:p> ?x } }",
    "minus and optional": "SELECT * { EVENT { ?s <urn:q> ?y OPTIONAL { ?s <urn:p> ?x } MINUS { ?s <urn:r> 1 } } }",
    "a group beside": "SELECT * { EVENT { ?s <urn:p> ?x ; <urn:r> ?z } SEQ { ?s <urn:q> ?y } }",
    "a rule": "CONSTRUCT { ?s <urn:p> ?z } WHERE { EVENT { ?s <urn:r> ?z } } SELECT * { EVENT { ?s <urn:p> ?x } }",
    "a stream": "SELECT * { STREAM <urn:a> { EVENT { ?s <urn:p> ?x ; <urn:r> ?z } } }",
    "a graph": "SELECT * { EVENT ?g { ?s <urn:p> ?x ; <urn:q> ?y } }",
    "one graph": "SELECT * { EVENT <urn:b> { ?s <urn:p> ?x } }",
    "the graph as a value": "SELECT * { EVENT ?y { ?s <urn:q> ?y } }",
}
FROM_TRIPLES = {
    "an optional filter",
    "one optional variable twice",
    "a group beside",
    "a rule",
    "minus before a column",
}


def table(seed: int, size: int = 60) -> pa.Table:
    """Rows with few values, some of them missing, and some rows equal; up to four of one time."""
    draw = random.Random(seed)
    rows = []
    for n in range(size):
        row: dict[str, Any] = {"at": n // draw.choice((1, 2, 4))}
        row |= {name: draw.choice((*values, None)) for name, values in {"s": "abc", "y": "abc"}.items()}
        row |= {name: draw.choice((1, 2, 3, None)) for name in "xz"}
        rows.append(dict(rows[-1]) if rows and draw.random() < 0.2 else row)
    rows.sort(key=lambda row: row["at"])
    types = pa.schema([("at", pa.int64()), *((name, pa.string()) for name in "sy"), *((n, pa.int64()) for n in "xz")])
    return pa.Table.from_pylist(rows, schema=types)


DRAWN = ((1, MAPPING), (2, NAMED), (3, NAMED), (4, NODES))
"""Seeds of tables, each with its mapping."""


@cache
def drawn(place: int) -> tuple[pa.Table, list[Event]]:
    """A drawn table, and its events one by one."""
    seed, mapping = DRAWN[place]
    frame = table(seed)
    return frame, list(read_stream(frame, mapping=mapping))


@cache
def drawn_parts(place: int, size: int) -> list[list[Event] | InColumns]:
    """A drawn table in batches of so many rows, which are the same for every query."""
    return parts(drawn(place)[0], DRAWN[place][1], size)


def parts(frame: pa.Table, mapping: Any, size: int) -> list[list[Event] | InColumns]:
    """The table in batches of so many rows, as an engine with EVENT is given it."""
    stream = read_stream(pa.table(frame).to_reader(max_chunksize=size), mapping=mapping)
    return [c if isinstance(c, list) else in_columns(c) for c in stream.chunks(large=True, as_records=True)]


@pytest.mark.parametrize("what", QUERIES)
def test_the_matches_are_those_of_the_triples(what: str) -> None:
    program = compile(QUERIES[what])
    for place, (_, mapping) in enumerate(DRAWN):
        rows = Engine(program, executor="rows")
        events = drawn(place)[1]
        expected = [m.to_dict() for m in [*rows.push_all(events), *rows.close()]]
        for size in (1, 5, 1000):
            engine = Engine(program, executor="columns")
            given = drawn_parts(place, size)
            found = [m.to_dict() for part in given for m in engine.push_all(part)]
            assert [*found, *(m.to_dict() for m in engine.close())] == expected
        assert any(isinstance(part, Records) for part in given)
        assert engine.counters.triples == rows.counters.triples
        (executor,) = rule_executors(engine)
        assert (executor.reads == "records") == (what not in FROM_TRIPLES)
        assert what == "a predicate that no column has" or mapping is not NAMED or expected


def test_equal_rows_of_one_time_are_one_event_and_rows_that_differ_in_an_unread_column_are_two() -> None:
    frame = pa.table({"at": [1, 1, 1, 2], "s": ["a"] * 4, "x": [1] * 4, "y": ["b", "b", "c", "b"], "z": [2] * 4})
    engine = Engine(compile(QUERIES["columns"]), executor="columns")
    matches = [*chain.from_iterable(engine.push_all(part) for part in parts(frame, MAPPING, 9)), *engine.close()]
    assert len(matches) == 3


def test_a_stream_says_the_same_of_its_rows() -> None:
    frame = table(4)
    streams = [read_stream(frame, mapping=NAMED) for _ in range(2)]
    flat, records = (list(s.chunks(large=True, as_records=one)) for s, one in zip(streams, (False, True), strict=True))
    assert not isinstance(flat[-1], list)
    assert "p" in flat[-1].schema.names
    assert "p" not in records[-1].schema.names
    assert streams[0].counters == streams[1].counters


@pytest.mark.parametrize(
    "second",
    [
        {"subject": "<urn:{y}>", "predicate": Q, "object": "{z}"},
        {"predicate": P, "object": "{z}"},
        {"predicate": "<urn:{y}>", "object": "{z}"},
    ],
)
def test_rows_that_are_no_records_become_triples(second: dict[str, str]) -> None:
    mapping = {"time": "{at}", "triple": [MAPPING["triple"][0], second]}  # type: ignore[index]
    assert not any(isinstance(part, Records) for part in parts(table(5), mapping, 1000))


@pytest.mark.filterwarnings("ignore:.*not in order of time")
def test_a_table_that_is_not_in_order_is_sorted() -> None:
    frame = table(6)
    turned = frame.take(pa.array(range(len(frame) - 1, -1, -1)))
    query = "SELECT ?s ?x { EVENT { ?s <urn:p> ?x ; <urn:r> ?z } }"
    found, expected = (
        sorted(str(m) for m in run(query, given, mapping=MAPPING, executor="columns")) for given in (turned, frame)
    )
    assert found == expected
    assert found
