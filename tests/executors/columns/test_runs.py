"""REPEAT in columns, where a step depends on two elements: the runs, ids and order of rows, also if rows go on."""

from __future__ import annotations

import pytest

from etalis_py import Engine, compile
from etalis_py.kernel.batch import Batch
from tests.draws import length, seeds
from tests.engine.judge import agree
from tests.executors.columns.judge import all_in_columns, in_columns_after_each_part, run_operator
from tests.executors.columns.keyed_events import STREAMS, XSD, drawn
from tests.oracle.strategies import Case
from tests.oracle.traces import queries

P = "PREFIX : <urn:x:> "
SHAPES = {
    "three": "SELECT * { { ?u :p ?x } REPEAT 3 BY ?u }",
    "a range": "SELECT * { { ?u :p ?x } REPEAT 2 TO 4 BY ?u AS (COUNT(*) AS ?n) }",
    "or more": "SELECT * { { ?u :p ?x } REPEAT 2 OR MORE BY ?u AS (COUNT(*) AS ?n) }",
    "by two": "SELECT ?u ?x ?n { { ?u :p ?x } REPEAT 2 TO 3 BY ?u ?x AS (COUNT(*) AS ?n) }",
    "by nothing": "SELECT ?n { { ?u :p ?x } REPEAT 2 TO 3 AS (COUNT(*) AS ?n) }",
    "by what may be unbound": "SELECT ?u ?y ?n { { ?u :p ?x OPTIONAL { ?u :q ?y } } REPEAT 2 BY ?u ?y "
    "AS (COUNT(*) AS ?n) }",
    "rising": "SELECT * { { ?u :p ?x } REPEAT 2 TO 3 BY ?u WHERE (?x > PREVIOUS(?x)) "
    "AS (FIRST(?x) AS ?a, LAST(?x) AS ?b) }",
    "equal": "SELECT * { { ?u :p ?x } REPEAT 2 BY ?u WHERE (?x = PREVIOUS(?x)) }",
    "equal or larger by text": "SELECT * { { ?u :p ?x } REPEAT 2 TO 3 BY ?u "
    "WHERE (STR(?x) >= STR(PREVIOUS(?x)) || sameTerm(?x, PREVIOUS(?x))) AS (LAST(?x) AS ?b) }",
    "within": "SELECT * { { ?u :p ?x } REPEAT 2 TO 3 BY ?u AS (COUNT(*) AS ?n) } WITHIN 4 s",
    "or more within": "SELECT * { { ?u :p ?x } REPEAT 1 OR MORE BY ?u AS (COUNT(*) AS ?n, SUM(?x) AS ?s) } WITHIN 5 s",
    "with a gap": "SELECT * { { ?u :p ?x } REPEAT 2 TO 3 BY ?u GAP 2 s AS (COUNT(*) AS ?n) }",
    "without": "SELECT * { { ?u :p ?x } REPEAT 2 TO 3 BY ?u NOT { ?u :q ?y } AS (COUNT(*) AS ?n) }",
    "without anything": "SELECT * { { ?u :p ?x } REPEAT 2 NOT { ?v :q ?y } }",
    "the longest": "SELECT * { { ?u :p ?x } REPEAT 2 OR MORE BY ?u LONGEST AS (COUNT(*) AS ?n, FIRST(?x) AS ?a) }",
    "the longest without": "SELECT * { { ?u :p ?x } REPEAT 2 OR MORE BY ?u NOT { ?u :q 1 } LONGEST "
    "AS (COUNT(*) AS ?n) }",
    "the longest of at most three": "SELECT * { { ?u :p ?x } REPEAT 2 TO 3 BY ?u LONGEST "
    "AS (COUNT(*) AS ?n, SUM(?x) AS ?s) }",
    "the longest rising": "SELECT * { { ?u :p ?x } REPEAT 2 OR MORE BY ?u GAP 5 s WHERE (?x >= PREVIOUS(?x)) LONGEST "
    "AS (COUNT(*) AS ?n, FIRST(?x) AS ?a) }",
    "aggregates": "SELECT * { { ?u :p ?x } REPEAT 2 TO 4 BY ?u AS (SUM(?x) AS ?s, AVG(?x) AS ?m, MIN(?x) AS ?l, "
    "MAX(?x) AS ?g, COUNT(?x) AS ?c, SAMPLE(?x) AS ?e) }",
    "aggregates of what may be unbound": "SELECT * { { ?u :p ?x OPTIONAL { ?u :q ?y } } REPEAT 2 TO 3 BY ?u "
    "AS (SUM(?y) AS ?s, MIN(?y) AS ?l, COUNT(?y) AS ?c, SAMPLE(?y) AS ?e) }",
    "filtered": "SELECT ?u ?n { { ?u :p ?x FILTER (?x > 1) } REPEAT 2 OR MORE BY ?u LONGEST "
    "AS (COUNT(*) AS ?n) FILTER (?n > 2) }",
    "joined": "SELECT * { { { ?u :p ?x } REPEAT 2 BY ?u AS (MAX(?x) AS ?n) } SEQ { ?u :q ?n } }",
    "derived": "CONSTRUCT { ?u :two ?n } { { ?u :p ?x } REPEAT 2 BY ?u AS (SUM(?x) AS ?n) } "
    "SELECT * { { ?u :two ?n } SEQ { ?u :p ?x } }",
    "of runs": "SELECT * { { { ?u :p ?x } REPEAT 2 BY ?u AS (COUNT(*) AS ?n) } REPEAT 2 BY ?u AS (SUM(?n) AS ?m) }",
}
ONE_HALF = f'"0.5"^^<{XSD}decimal>'


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_runs_are_those_of_the_definition(shape: str, stream: str) -> None:
    for seed in seeds(2):
        agree(Case(queries(P + SHAPES[shape]), tuple(drawn(seed, 18, stream))), executor="columns")


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_ids_and_order_are_those_of_rows(shape: str, stream: str) -> None:
    """Also where rows and columns take turns, and the open runs go from one to the other."""
    all_in_columns(P + SHAPES[shape], [drawn(len(shape), length(150), stream)])


@pytest.mark.parametrize("shape", ["three", "without", "aggregates"])
def test_columns_go_on_after_a_batch_in_which_elements_overlap(shape: str) -> None:
    assert in_columns_after_each_part(P + SHAPES[shape], ONE_HALF) == [True, False, True]


def test_runs_that_are_too_old_are_dropped() -> None:
    engine = Engine(P + SHAPES["or more within"], executor="columns")
    events = list(drawn(1, 400, "apart"))
    engine.push_all(Batch(events, events[-1].end).columns)
    held = run_operator(engine).window
    assert 0 < len(held) < 12


@pytest.mark.parametrize(
    "shape",
    [
        "REPEAT 3 BY ?u WHERE (?x > FIRST(?x))",
        "REPEAT 3 BY ?u WHERE (?x > PREVIOUS(?x, 2))",
        "REPEAT 3 BY ?u WHERE (SUM(?x) < 9)",
        "REPEAT 2 OR MORE BY ?u LONGEST AS (SUM(?x) AS ?s)",
        "REPEAT 3 BY ?u AS (COUNT(DISTINCT ?x) AS ?s)",
        "REPEAT 3 BY ?u ?x NOT { ?u :q ?y }",
    ],
)
def test_other_runs_are_those_of_rows(shape: str) -> None:
    text = str(compile(f"{P}SELECT ?u {{ {{ ?u :p ?x }} {shape} }}").explain())
    assert "row by row in a REPEAT" in text


def test_explain_says_when_columns_run_it() -> None:
    text = str(compile(P + SHAPES["three"]).explain())
    assert "as long as elements of the REPEAT that agree on its BY variables come one after another" in text
