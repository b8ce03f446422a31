"""Ties by a column: events of one time have the order of their values, whatever their source's is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Event, compile, event, run
from etalis_py.events import Retraction
from etalis_py.kernel.stored import SnapshotError
from etalis_py.streams import read_stream
from tests.draws import examples
from tests.engine.judge import run as run_case
from tests.oracle import evaluation
from tests.oracle.strategies import Case
from tests.oracle.traces import at, in_short, queries

SEQ = "<http://example.org/seq>"
NEXT = "SELECT ?x ?y { { ?c :p ?x } NEXT { ?c :p ?y } }"
TABLE = pa.table({"at": [1, 1, 2, 2], "c": ["c"] * 4, "p": [20, 10, 40, 30], "no": [2, 1, 10, 9]})
NAMED: dict[str, Any] = {"time": "at", "subject": "c"}


def judged(text: str, *events: Event) -> Any:
    """The answer by the definitions, which the engine gives as well, in whichever order the events come."""
    case = Case(queries(text), events)
    [expected] = evaluation(case.program, events, ties="<urn:seq>").answers.values()
    backwards = sorted(events[::-1], key=lambda e: e.end)  # noqa: C415 - events of one time keep their order
    for order in (events, tuple(backwards)):
        [actual] = run_case(Case(case.program, order), ties="seq").values()
        assert in_short(actual) == in_short(expected)
    return in_short(expected)


def pairs(matches: Any) -> list[tuple[Any, Any]]:
    return [(match["x"], match["y"]) for match in matches]


# --- the order ---


def test_the_next_one_has_the_next_value() -> None:
    events = [at(1, "c p 3 ; c seq 3"), at(1, "c p 1 ; c seq 1"), at(1, "c p 2 ; c seq 2"), at(2, "c p 4 ; c seq 0")]
    assert judged(NEXT, *events) == [("x=1 y=2", 1, 1), ("x=2 y=3", 1, 1), ("x=3 y=4", 1, 2)]


def test_events_with_equal_values_are_simultaneous() -> None:
    events = [at(1, "c p 1 ; c seq 1"), at(1, "c p 2 ; c seq 01"), at(1, "c p 3 ; c seq 2")]
    assert judged(NEXT, *events) == [("x=1 y=3", 1, 1), ("x=2 y=3", 1, 1)]
    assert judged("SELECT ?x ?y { { ?c :p ?x FILTER (?x = 1) } EQUALS { ?c :p ?y } }", *events) == [
        ("x=1 y=1", 1, 1),
        ("x=1 y=2", 1, 1),
    ]


def test_an_event_without_a_value_comes_last() -> None:
    events = [at(1, "c p 1"), at(1, "c p 2 ; c seq 9"), at(1, "c p 3")]
    assert judged(NEXT, *events) == [("x=2 y=1", 1, 1), ("x=2 y=3", 1, 1)]


def test_of_several_values_the_least_counts() -> None:
    events = [at(1, "c p 1 ; c seq 3 ; d seq 7"), at(1, "c p 2 ; c seq 9 ; c seq 2")]
    assert judged(NEXT, *events) == [("x=2 y=1", 1, 1)]


@pytest.mark.parametrize(
    ("lesser", "greater"),
    [("9", "10"), ("-1.5", "1e-3"), ('"10"', '"9"'), ('"Z"', '"a"'), ('"z"', '"é"'), ("99", '"1"'), ("<urn:b>", "1")],
)
def test_values_are_ordered_as_by_order_by(lesser: str, greater: str) -> None:
    events = [event(f":c :p 2 ; :seq {greater}", 1), event(f":c :p 1 ; :seq {lesser}", 1)]
    assert pairs(run(NEXT, events, ties="seq")) == [(1, 2)]


def test_the_same_event_twice_is_one() -> None:
    twice = [event(":c :p 1 ; :seq 1", 1), event(":c :p 1 ; :seq 1", 1), event(":c :p 1 ; :seq 2", 1)]
    assert len(run("SELECT ?x { ?c :p ?x }", twice, ties="seq").collect()) == 2
    assert pairs(run(NEXT, twice, ties="seq")) == [(1, 1)]


QUERIES = (
    NEXT,
    "SELECT ?x ?y { { ?c :p ?x } SEQ { ?c :p ?y FILTER (?y > ?x) } }",
    "SELECT ?x ?y { { ?c :p ?x } SEQ NOT { ?c :p 1 } SEQ { ?c :p ?y } }",
    "SELECT ?c ?x ?y { { ?c :p ?v } REPEAT 2 TO 3 BY ?c MAXIMAL AS (FIRST(?v) AS ?x, LAST(?v) AS ?y) }",
    "SELECT ?x ?y { { { ?c :p ?x } SEQ { ?d :p ?y } } DISJOINT }",
)
ROWS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from("cd"), st.integers(0, 3)), max_size=10)


@pytest.mark.parametrize("query", QUERIES)
@settings(max_examples=examples(0.3))
@given(ROWS, st.randoms())
def test_it_is_as_if_the_times_were_numbered_anew(query: str, rows: list[tuple[int, str, int]], random: Any) -> None:
    rows.sort(key=lambda row: row[0])
    coarse = [event(f":{c} :p {x} ; :seq {n}", t) for n, (t, c, x) in enumerate(rows)]
    random.shuffle(coarse)
    coarse.sort(key=lambda e: e.end)
    fine = [event(f":{c} :p {x} ; :seq {n}", n) for n, (_, c, x) in enumerate(rows)]
    found = [
        sorted(tuple(match.values()) for match in run(query, events, ties=ties))
        for events, ties in ((coarse, "seq"), (fine, None))
    ]
    assert found[0] == found[1]


# --- the column ---


@pytest.mark.parametrize("given", [TABLE, TABLE.to_pylist(), iter(TABLE.to_pylist())])
def test_a_table_and_rows(given: Any) -> None:
    assert pairs(run(NEXT, given, ties="no", **NAMED)) == [(10, 20), (20, 30), (30, 40)]


def test_rows_that_are_pushed() -> None:
    engine, whole = Engine(NEXT, ties="no"), Engine(NEXT, ties="no")
    matches = [m for row in TABLE.to_pylist() for m in engine.push(row, **NAMED)]
    for found in ([*matches, *engine.close()], [*whole.push_all(TABLE, **NAMED), *whole.close()]):
        assert pairs(found) == [(10, 20), (20, 30), (30, 40)]


def test_a_column_that_the_mapping_calls_otherwise() -> None:
    mapping = {
        "time": "{at}",
        "triple": [
            {"subject": ":{c}", "predicate": ":p", "object": "{p}"},
            {"predicate": "<urn:order>", "object": "{no}"},
        ],
    }
    for name in ("no", "<urn:order>"):
        assert pairs(run(NEXT, TABLE, mapping=mapping, ties=name)) == [(10, 20), (20, 30), (30, 40)]
    with pytest.raises(ValueError, match="no row has a property of this name; the columns that have one are no, p"):
        run(NEXT, TABLE, mapping=mapping, ties="order")


def test_names_with_prefixes() -> None:
    text = "PREFIX : <urn:x:> PREFIX e: <http://example.org/> SELECT ?x ?y { { ?c e:p ?x } NEXT { ?c e:p ?y } }"
    events = [event(":c :p 2 ; :seq 2 ; <urn:x:seq> 3", 1), event(":c :p 1 ; :seq 1 ; <urn:x:seq> 4", 1)]
    assert pairs(run(text, events, ties="e:seq")) == [(1, 2)]
    assert pairs(run(text, events, ties="seq")) == pairs(run(text, events, ties="<urn:x:seq>")) == [(2, 1)]
    with pytest.raises(ValueError, match="the program has no prefix f:; declare it, or write <…>"):
        run(text, events, ties="f:seq")


def test_a_name_that_is_no_end_of_an_iri() -> None:
    table = TABLE.rename_columns(["at", "c", "p", "Trade No."])
    assert pairs(run(NEXT, table, ties="Trade No.", **NAMED))[0] == (10, 20)


def test_several_streams_are_ordered_together() -> None:
    text = "SELECT ?x ?y { STREAM :one { ?c :p ?x } SEQ STREAM :two { ?c :p ?y } }"
    one = pa.table({"at": [1], "c": ["c"], "p": [1], "no": [1]})
    two = pa.table({"at": [1], "c": ["c"], "p": [2], "no": [2]})
    assert pairs(run(text, {"two": two, "one": one}, ties="no", **NAMED)) == [(1, 2)]


def test_columns_that_no_row_has() -> None:
    with pytest.raises(ValueError, match=r"ties='noo': no row has .* are no, p; did you mean no\?"):
        run(NEXT, TABLE, ties="noo", **NAMED)
    with pytest.raises(ValueError, match="this column says what its rows are about"):
        run(NEXT, TABLE, ties="c", **NAMED)
    events = [event(":c :p 1 ; :sequence 1", 1)]
    matches = run(NEXT, events, ties="sequense")
    assert not list(matches)
    [warning] = matches.warnings
    assert warning.startswith("the predicate :sequense never occurred; did you mean :sequence?")


def test_a_mapping_for_each_stream_must_agree(tmp_path: Any) -> None:
    (tmp_path / "a.csv").write_text("at,c,p,no\n1,c,1,1\n")
    streams = {
        name: read_stream(
            str(tmp_path / "a.csv"),
            mapping={"time": "{at}", "triple": [{"subject": ":{c}", "predicate": f":{name}", "object": "{no}"}]},
        )
        for name in ("one", "two")
    }
    from etalis_py.streams import merge

    with pytest.raises(ValueError, match="give it the same in all of them"):
        run(NEXT, merge(list(streams.values())), ties="no")


# --- the run ---

GIVEN = [event(f":c :p {x} ; :seq {x}", t) for t, x in ((1, 2), (1, 1), (2, 5), (2, 3), (2, 4))]
ALL = [(1, 2), (2, 3), (3, 4), (4, 5)]


def test_the_order_of_arrival_does_not_matter() -> None:
    late = [GIVEN[2], GIVEN[0], GIVEN[4], GIVEN[1], GIVEN[3]]
    assert pairs(run(NEXT, late, ties="seq", lateness="5 seconds")) == ALL


def test_a_correction_takes_its_place() -> None:
    engine = Engine(NEXT, ties="seq", revise="10 seconds")
    engine.push_all([event(":c :p 1 ; :seq 1", 1), event(":c :p 3 ; :seq 3", 1), event(":c :p 4 ; :seq 0", 3)])
    between = event(":c :p 2 ; :seq 2", 1)
    assert [(m.retracted, m["x"], m["y"]) for m in engine.push(between)] == [(True, 1, 3), (False, 1, 2), (False, 2, 3)]
    gone = engine.push(Retraction._make(between))
    assert [(m.retracted, m["x"], m["y"]) for m in gone] == [(True, 1, 2), (True, 2, 3), (False, 1, 3)]


@pytest.mark.parametrize("place", range(len(GIVEN)))
def test_a_snapshot_goes_on_within_a_time(place: int) -> None:
    program = compile(NEXT)
    one, other = Engine(program, ties="seq"), Engine(program, ties=SEQ)
    matches = [*one.push_all(GIVEN[:place])]
    other.restore(one.snapshot())
    assert pairs([*matches, *other.push_all(GIVEN[place:]), *other.close()]) == ALL
    with pytest.raises(SnapshotError, match=f"ties='{SEQ}'"):
        Engine(program, ties="source").restore(one.snapshot())


def test_many_events_of_one_place() -> None:
    many = [event(f":c :p {n} ; :seq {n % 2}", 1) for n in range(5000)]
    assert len(run("SELECT ?x { ?c :p ?x }", many, ties="seq").collect()) == 5000
