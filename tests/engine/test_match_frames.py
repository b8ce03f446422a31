"""Matches as tables: native types, times as the stream has them, and what is constructed can be read again."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, compile, event
from etalis_py.kernel.matches import Matches, python_value
from etalis_py.streams import Clock, read_stream
from etalis_py.streams.columns.results import text_of, values_of
from etalis_py.values import Duration, encode
from tests.draws import examples


def matches(query: str | list[str], *events: Any, **options: Any) -> Matches:
    engine = Engine(compile(query), **options)
    engine.push_all(list(events))
    return engine.close()


def test_rows_have_native_types() -> None:
    found = matches("SELECT ?x ?c ?n { ?c :price ?x OPTIONAL { ?c :name ?n } }", event(":acme :price 10", 1))
    table = found.to_arrow()
    assert table.to_pylist() == [
        {"x": 10, "c": "http://example.org/acme", "n": None, "start": 1, "end": 1, "id": found[0].id}
    ]
    assert found.to_pandas()["x"].tolist() == [10]
    assert found.to_polars()["x"].dtype == pl.Int64
    assert pa.table(found) == table


@pytest.mark.parametrize(("query", "answer"), [("ASK { ?c :price ?x }", True), ("ASK { ?c :name ?x }", False)])
def test_the_answer_of_ask_is_a_truth_value(query: str, answer: bool) -> None:
    table = matches(query, event(":acme :price 10", 1)).to_arrow()
    assert table.column("boolean").to_pylist() == [answer]


def test_times_are_timestamps_where_the_stream_has_dates() -> None:
    moment = "2026-01-31T10:00:00Z"
    query = 'SELECT ?t { ?c :at ?t . FILTER (?t != "x") }'
    found = matches(
        query, event(f':a :at "{moment}"^^<http://www.w3.org/2001/XMLSchema#dateTime>', moment), render=Clock().render
    )
    assert found.to_arrow().to_pylist()[0]["t"] == datetime(2026, 1, 31, 10, tzinfo=UTC)
    assert found.to_arrow().to_pylist()[0]["end"] == datetime(2026, 1, 31, 10, tzinfo=UTC)


def test_several_queries_are_told_apart() -> None:
    queries = ["SELECT ?x { ?c :p ?x }", "SELECT ?y { ?c :q ?y }"]
    found = matches(queries, event(":c :p 1 ; :q true", 1))
    table = found.to_arrow()
    assert table.column_names == ["query", "x", "y", "start", "end", "id"]
    assert [(r["query"], r["x"], r["y"]) for r in table.to_pylist()] == [("q1", 1, None), ("q2", None, True)]
    assert found.to_arrow(query="q2").column_names == ["y", "start", "end", "id"]
    with pytest.raises(KeyError, match="there is no query q3; there are q1, q2"):
        found.to_arrow(query="q3")


def test_what_is_constructed_is_a_stream_again() -> None:
    found = matches("CONSTRUCT { ?c :was ?x . ?c a :Thing } WHERE { ?c :p ?x }", event(":c :p 1", 1))
    again = list(read_stream(found))
    assert [(e.end, t) for e in again for t in e.triples] == [(1, t) for t in found[0].triples]


def test_no_match_has_the_columns_alone() -> None:
    assert matches("SELECT ?x { ?c :p ?x }").to_arrow().column_names == ["x", "start", "end", "id"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2**63 - 1], pa.int64()),
        ([2**63, 1], pa.string()),
        ([1, Decimal("1.5")], pa.decimal128(38, 18)),
        ([1, Decimal("1.5"), 2.5], pa.float64()),
        ([True, False], pa.bool_()),
        ([1, True], pa.string()),
        ([Duration(0, 5)], pa.string()),
        ([date(2026, 1, 31)], pa.date32()),
        ([datetime(2026, 1, 31), datetime(2026, 1, 31, tzinfo=UTC)], pa.string()),
    ],
)
def test_the_type_of_a_column_is_that_of_its_values(values: list[Any], kind: pa.DataType) -> None:
    spelled = {date: "date", datetime: "dateTime"}
    terms = [
        f'"{value.isoformat()}"^^<http://www.w3.org/2001/XMLSchema#{spelled[type(value)]}>'
        if type(value) in spelled
        else encode(value)
        for value in values
    ]
    assert values_of(pa.array(terms)).type == kind


NUMBERS = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=examples(1 / 3))
@given(
    terms=st.lists(
        st.none() | st.one_of(NUMBERS, st.floats(allow_nan=False), st.booleans(), st.text()).map(encode), max_size=6
    )
)
def test_values_are_those_of_a_match(terms: list[str | None]) -> None:
    column = values_of(pa.array(terms, pa.string()))
    for term, value in zip(terms, column.to_pylist(), strict=True):
        if term is None:
            assert value is None
        elif column.type == pa.string():
            assert value == text_of(term)
        else:
            assert value == (float(python_value(term)) if column.type == pa.float64() else python_value(term))
