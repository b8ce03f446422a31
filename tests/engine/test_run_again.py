"""The matches of a run used twice, and what a run shows of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from etalis_py import Event, event, run
from etalis_py.engine.running import Run
from etalis_py.streams import StreamError

QUERIES = [
    "REGISTER QUERY prices AS SELECT ?x { ?c :p ?x }",
    "REGISTER QUERY pairs AS SELECT ?x ?y { { ?c :p ?x } SEQ { ?c :p ?y } }",
]
EVENTS = [event(f":c :p {n}", n) for n in (1, 2, 3)]
TAKEN = r"have been taken already; to use them several times, keep them: matches = run\(…\)\.collect\(\)"
TABLES: dict[str, Callable[[Run], Any]] = {
    "to_arrow": lambda matches: matches.to_arrow(),
    "to_pandas": lambda matches: matches.to_pandas(),
    "to_polars": lambda matches: matches.to_polars(),
}


def begun() -> Run:
    return run(QUERIES[0], EVENTS)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_is_given_again(table: Callable[[Run], Any]) -> None:
    matches = begun()
    first, again = table(matches), table(matches)
    assert first.equals(again)
    assert len(again) == 3
    assert list(again["x"]) == list(first["x"])


def test_one_table_after_the_other() -> None:
    matches = begun()
    assert matches.to_pandas()["x"].tolist() == matches.to_polars()["x"].to_list() == [1, 2, 3]


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_of_matches_that_are_gone_is_refused(table: Callable[[Run], Any]) -> None:
    matches = begun()
    assert len(list(matches)) == 3
    with pytest.raises(ValueError, match=TAKEN):
        table(matches)
    with pytest.raises(ValueError, match=TAKEN):
        matches.collect()
    assert list(matches) == []  # as with any iterator


def test_matches_that_went_into_a_table_are_not_iterated() -> None:
    matches = begun()
    matches.to_arrow()
    with pytest.raises(ValueError, match=TAKEN):
        list(matches)
    with pytest.raises(ValueError, match=TAKEN):
        matches.collect()


def test_another_query_after_a_table_needs_the_matches_collected() -> None:
    matches = run(QUERIES, EVENTS)
    assert len(matches.to_arrow(query="prices")) == 3
    with pytest.raises(ValueError, match=TAKEN):
        matches.to_arrow(query="pairs")
    matches = run(QUERIES, EVENTS)
    matches.collect()
    assert [len(matches.to_arrow(query=query)) for query in ("prices", "pairs", "prices")] == [3, 3, 3]


def test_collected_matches_are_there_as_often_as_wanted() -> None:
    matches = begun()
    collected = matches.collect()
    assert matches.collect() is collected
    assert [m["x"] for m in matches] == [m["x"] for m in matches] == [1, 2, 3]
    assert matches.to_pandas()["x"].tolist() == [1, 2, 3]


def test_the_rest_is_collected_or_tabulated_after_some_were_taken() -> None:
    """All three matches come in one step, so the rest is in the middle of it."""
    for rest in (
        lambda matches: [m["x"] for m in matches.collect()],
        lambda matches: matches.to_arrow()["x"].to_pylist(),
        lambda matches: [m["x"] for m in matches],
    ):
        matches = begun()
        assert next(matches)["x"] == 1
        assert rest(matches) == [2, 3]


def test_a_run_without_matches_has_an_empty_table_whenever_it_is_asked() -> None:
    matches = run("SELECT ?x { ?c :q ?x }", EVENTS)
    assert list(matches) == []
    for _ in range(2):
        assert matches.to_arrow().column_names == ["x", "start", "end", "id"]
        assert matches.to_pandas().empty
    matches = run("SELECT ?x { ?c :q ?x }", EVENTS)
    assert list(matches) == list(matches.collect()) == []


def test_after_an_error_in_the_input_the_run_says_that_it_has_ended() -> None:
    def events() -> Iterator[Event]:
        yield from EVENTS
        raise StreamError("a bad line")

    matches = run(QUERIES[0], events())
    with pytest.raises(StreamError, match="a bad line"):
        matches.collect()
    for _ in range(2):
        with pytest.raises(ValueError, match="this run has ended with an error"):
            matches.to_pandas()


def test_where_nobody_types_a_run_says_what_it_is_and_does_nothing_for_it() -> None:
    matches = run(QUERIES, EVENTS)
    told = "<Run of prices, pairs over a list: 0 events, 0 matches so far; iterate over it, or take all with .collect()"
    assert repr(matches).startswith(told)
    assert len(matches.collect()) == 6
    assert repr(matches) == "<Run of prices, pairs over a list: 3 events, 6 matches so far; ended>"
    many = [f"REGISTER QUERY q{n} AS SELECT ?x {{ ?c :p{n} ?x }}" for n in range(1000)]
    assert repr(run(many, EVENTS)).startswith("<Run of q0, q1, q2, … (1,000 queries) over a list: 0 events")


def test_a_run_names_the_file_that_it_reads(tmp_path: Any) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text("")
    assert f"over {file}: 0 events" in repr(run(QUERIES[0], file))
