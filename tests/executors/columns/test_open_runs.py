"""REPEAT … MAXIMAL and UNTIL in columns: the runs, ids and order of rows, also where rows go on in the middle."""

from __future__ import annotations

import pytest

from etalis_py import Engine, Event, compile
from etalis_py.kernel.batch import Batch
from tests.draws import length, seeds
from tests.engine.judge import agree
from tests.executors.columns.judge import all_in_columns, in_columns_after_each_part
from tests.executors.columns.keyed_events import MIXED, SECOND, STREAMS, drawn
from tests.oracle.strategies import Case
from tests.oracle.traces import queries

P = "PREFIX : <urn:x:> "
SHAPES = {
    "counted": "SELECT ?u ?n { { ?u :p ?x } REPEAT 1 OR MORE BY ?u GAP 4 s MAXIMAL AS (COUNT(*) AS ?n) }",
    "at least two": "SELECT ?u ?n { { ?u :p ?x } REPEAT 2 OR MORE BY ?u GAP 3 s MAXIMAL AS (COUNT(*) AS ?n) }",
    "first and last": "SELECT * { { ?u :p ?x } REPEAT 1 OR MORE BY ?u GAP 4 s MAXIMAL "
    "AS (FIRST(?x) AS ?a, LAST(?x) AS ?b) }",
    "nothing shown": "SELECT * { { ?u :p ?x } REPEAT 1 OR MORE BY ?u GAP 4 s MAXIMAL }",
    "by two": "SELECT ?u ?x ?n { { ?u :p ?x } REPEAT 1 OR MORE BY ?u ?x GAP 5 s MAXIMAL AS (COUNT(*) AS ?n) }",
    "by nothing": "SELECT ?n { { ?u :p ?x } REPEAT 1 OR MORE GAP 1 s MAXIMAL AS (COUNT(*) AS ?n) }",
    "by what may be unbound": "SELECT ?u ?y ?n { { ?u :p ?x OPTIONAL { ?u :q ?y } } REPEAT 1 OR MORE BY ?u ?y "
    "GAP 4 s MAXIMAL AS (COUNT(*) AS ?n) }",
    "filtered": "SELECT ?u ?n { { ?u :p ?x FILTER (?x > 1) } REPEAT 1 OR MORE BY ?u GAP 6 s MAXIMAL "
    "AS (COUNT(*) AS ?n) FILTER (?n > 1) }",
    "computed": "SELECT ?u ?m { { ?u :p ?x } REPEAT 1 OR MORE BY ?u GAP 4 s MAXIMAL AS (LAST(?x) AS ?n) "
    "BIND (?n + 1 AS ?m) }",
    "joined": "SELECT * { { { ?u :p ?x } REPEAT 1 OR MORE BY ?u GAP 2 s MAXIMAL AS (COUNT(*) AS ?n) } "
    "SEQ { ?u :q ?n } }",
    "derived": "CONSTRUCT { ?u :over ?n } { { ?u :p ?x } REPEAT 1 OR MORE BY ?u GAP 3 s MAXIMAL AS (COUNT(*) AS ?n) } "
    "SELECT * { { ?u :over ?n } SEQ { ?u :p ?x } }",
    "without a gap": "SELECT ?u ?n { { ?u :p ?x } REPEAT 2 OR MORE BY ?u MAXIMAL AS (COUNT(*) AS ?n) }",
    "rising": "SELECT * { { ?u :p ?x } REPEAT 2 OR MORE BY ?u WHERE (?x > PREVIOUS(?x)) MAXIMAL "
    "AS (COUNT(*) AS ?n, FIRST(?x) AS ?a, LAST(?x) AS ?b) }",
    "equal": "SELECT * { { ?u :p ?x } REPEAT 1 OR MORE BY ?u WHERE (?x = PREVIOUS(?x)) MAXIMAL AS (LAST(?x) AS ?b) }",
    "rising by text, within a gap": "SELECT * { { ?u :p ?x } REPEAT 1 OR MORE BY ?u GAP 4 s "
    "WHERE (STR(?x) >= STR(PREVIOUS(?x)) && isLiteral(?x)) MAXIMAL AS (COUNT(*) AS ?n) }",
    "rising by nothing": "SELECT ?n { { ?u :p ?x } REPEAT 1 OR MORE WHERE (?x >= PREVIOUS(?x)) MAXIMAL "
    "AS (COUNT(*) AS ?n) }",
    "by the value": "SELECT ?x ?n { { ?u :p ?x } REPEAT 1 OR MORE BY ?x WHERE (?u = PREVIOUS(?u)) MAXIMAL "
    "AS (COUNT(*) AS ?n) }",
    "where a value may be unbound": "SELECT ?u ?n { { ?u :p ?x OPTIONAL { ?u :q ?y } } REPEAT 1 OR MORE BY ?u "
    "WHERE (?x > PREVIOUS(?x) || BOUND(?y) || COALESCE(PREVIOUS(?y), 0) = 0) MAXIMAL "
    "AS (COUNT(*) AS ?n, LAST(?y) AS ?l) }",
    "where one alone decides": "SELECT ?u ?n { { ?u :p ?x } REPEAT 1 OR MORE BY ?u WHERE (?x > 1) MAXIMAL "
    "AS (COUNT(*) AS ?n) }",
    "aggregates": "SELECT * { { ?u :p ?x } REPEAT 1 OR MORE BY ?u GAP 5 s WHERE (?x >= PREVIOUS(?x)) MAXIMAL "
    "AS (SUM(?x) AS ?s, AVG(?x) AS ?m, MIN(?x) AS ?l, MAX(?x) AS ?g, COUNT(?x) AS ?c, SAMPLE(?x) AS ?e) }",
    "aggregates of long runs": "SELECT * { { ?u :p ?x } REPEAT 1 OR MORE BY ?u GAP 15 s MAXIMAL "
    "AS (SUM(?x) AS ?s, AVG(?x) AS ?m, MAX(?x) AS ?g, COUNT(*) AS ?c, FIRST(?x) AS ?f) }",
    "aggregates of what may be unbound": "SELECT * { { ?u :p ?x OPTIONAL { ?u :q ?y } } "
    "REPEAT 1 OR MORE GAP 3 s MAXIMAL "
    "AS (SUM(?y) AS ?s, MIN(?y) AS ?l, COUNT(?y) AS ?c, SAMPLE(?y) AS ?e) }",
    "a total that is compared": "SELECT * { { { ?u :p ?x } REPEAT 1 OR MORE BY ?u GAP 2 s MAXIMAL AS (SUM(?x) AS ?n) } "
    "SEQ { ?u :q ?n } }",
    "until": "SELECT * { { ?u :p ?x } REPEAT 1 OR MORE BY ?u UNTIL { ?u :q ?y } AS (COUNT(*) AS ?n, SUM(?x) AS ?s) }",
    "until, at least two": "SELECT * { { ?u :p ?x } REPEAT 2 OR MORE BY ?u WHERE (?x >= PREVIOUS(?x)) "
    "UNTIL { ?u :q ?y } AS (FIRST(?x) AS ?a, LAST(?x) AS ?b, MAX(?x) AS ?g) }",
    "until, within a gap": "SELECT * { { ?u :p ?x } REPEAT 1 OR MORE BY ?u GAP 3 s UNTIL { ?u :q ?y FILTER (?y < 3) } "
    "AS (COUNT(*) AS ?n, AVG(?x) AS ?m) }",
    "until, by nothing": "SELECT * { { ?u :p ?x } REPEAT 1 OR MORE UNTIL { ?v :q ?y } AS (COUNT(*) AS ?n) }",
    "until, by two": "SELECT * { { ?u :p ?x } REPEAT 1 OR MORE BY ?u ?x UNTIL { ?u :q ?x } AS (COUNT(*) AS ?n) }",
    "until what may be unbound": "SELECT * { { ?u :p ?x OPTIONAL { ?u :q ?z } } REPEAT 1 OR MORE BY ?u ?z "
    "UNTIL { ?u :q ?z } AS (COUNT(*) AS ?n) }",
    "until, joined": "SELECT * { { { ?u :p ?x } REPEAT 1 OR MORE BY ?u UNTIL { ?u :q ?y } AS (MAX(?x) AS ?n) } "
    "SEQ { ?u :q ?n } }",
    "of runs": "SELECT * { { { ?u :p ?x } REPEAT 1 OR MORE BY ?u GAP 2 s MAXIMAL AS (COUNT(*) AS ?n) } "
    "REPEAT 1 OR MORE BY ?u GAP 9 s MAXIMAL AS (COUNT(*) AS ?m) }",
}


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_runs_are_those_of_the_definition(shape: str, stream: str) -> None:
    for seed in seeds(3):
        agree(Case(queries(P + SHAPES[shape]), tuple(drawn(seed, 18, stream))), executor="columns")


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_ids_and_order_are_those_of_rows(shape: str, stream: str) -> None:
    """Also where rows and columns take turns, and the open runs go from one to the other."""
    all_in_columns(P + SHAPES[shape], (drawn(seed, length(150), stream) for seed in seeds(2)))


@pytest.mark.parametrize("shape", ["by nothing", "rising", "aggregates of long runs", "until", "until, by nothing"])
def test_columns_go_on_after_a_batch_in_which_elements_overlap(shape: str) -> None:
    assert in_columns_after_each_part(P + SHAPES[shape], MIXED[1]) == [True, False, True]


def test_runs_from_two_elements_of_an_instant_are_two_runs() -> None:
    """Both go on: rows once extended only the first of them."""
    events = [Event(t * SECOND, t * SECOND, ((f"<urn:x:{s}>", "<urn:x:p>", ONE),), "", "") for t, s in TWO_AT_ONCE]
    for executor in ("rows", "columns"):
        engine = Engine(P + SHAPES["by nothing"], executor=executor)
        matches = [*engine.push_all(events), *engine.close()]
        assert [match["n"] for match in matches] == [3, 3, 1]


ONE = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
TWO_AT_ONCE = ((1, "a"), (1, "b"), (2, "a"), (3, "a"), (9, "a"))


def test_a_silence_is_over_without_an_event() -> None:
    """Runs of two keys, each reported at the end of its silence, long before the next event."""
    engine = Engine(P + SHAPES["counted"], executor="columns")
    events = [
        Event(t * SECOND, t * SECOND, ((f"<urn:x:{s}>", "<urn:x:p>", ONE),), "", "")
        for t, s in ((1, "a"), (3, "a"), (4, "b"), (100, "a"), (101, "b"))
    ]
    matches = engine.push_all(Batch(events, events[-1].end).columns)
    assert [(m.start_us // SECOND, m.end_us // SECOND, m["n"]) for m in matches] == [(1, 7, 2), (4, 8, 1)]


@pytest.mark.parametrize(
    "shape",
    [
        "REPEAT 1 TO 3 BY ?u GAP 4 s MAXIMAL",
        "REPEAT 1 OR MORE BY ?u NOT { ?u :q ?x } GAP 4 s MAXIMAL",
        "REPEAT 1 TO 3 BY ?u UNTIL { ?u :q ?y }",
        "REPEAT 1 OR MORE BY ?u NOT { ?u :q 3 } UNTIL { ?u :q ?y }",
        "REPEAT 1 OR MORE BY ?u ?x UNTIL { ?u :q ?y }",
        "REPEAT 1 OR MORE BY ?u GAP 4 s MAXIMAL WHERE (?x > FIRST(?x))",
        "REPEAT 1 OR MORE BY ?u MAXIMAL WHERE (?x > PREVIOUS(?x, 2))",
        "REPEAT 1 OR MORE BY ?u GAP 4 s MAXIMAL AS (COUNT(DISTINCT ?x) AS ?s)",
    ],
)
def test_other_runs_are_those_of_rows(shape: str) -> None:
    text = str(compile(f"{P}SELECT ?u {{ {{ ?u :p ?x }} {shape} }}").explain())
    assert "(a REPEAT" in text.partition("in rows: ")[2]


def test_explain_says_when_columns_run_it() -> None:
    text = str(compile(P + SHAPES["counted"]).explain())
    assert (
        "runs in columns, as long as elements of the REPEAT that agree on its BY variables come one after another"
        in text
    )
