"""A table as background: CSV, JSON, Parquet, frames, dicts and rows of SQL, beside whatever else is background."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from etalis_py import Engine, event, reference_table, run, table_updates
from etalis_py.knowledge import load
from etalis_py.streams import StreamError

LIMITS: list[dict[str, Any]] = [
    {"sku": "p1", "name": "bolt", "limit": 100},
    {"sku": "p2", "name": "nut", "limit": 5},
    {"sku": "p3", "name": "bolt", "limit": None},
]
SOLD = [{"at": 1, "order": "o1", "sku": "p1", "amount": 90}, {"at": 2, "order": "o2", "sku": "p2", "amount": 7}]
BY_VALUE = """SELECT ?order ?name {
  EVENT { ?order :sku ?p ; :amount ?x } ?row :sku ?p ; :limit ?l ; :name ?name FILTER (?x > ?l)
}"""
BY_SUBJECT = "SELECT ?x { EVENT { ?p :amount ?x } ?p :limit ?l FILTER (?x > ?l) }"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(LIMITS).astype({"limit": "Int64"})
    frame.to_csv("limits.csv", index=False)
    frame.to_csv("limits.tsv", index=False, sep="\t")
    frame.to_json("limits.json", orient="records")
    frame.to_json("limits.jsonl", orient="records", lines=True)
    parquet.write_table(pa.Table.from_pylist(LIMITS), "limits.parquet")


def cursor() -> Any:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (sku, name, 'limit')")
    connection.executemany("INSERT INTO t VALUES (:sku, :name, :limit)", LIMITS)
    return connection.execute("SELECT * FROM t")


TABLES: dict[str, Callable[[], Any]] = {
    "CSV": lambda: "limits.csv",
    "a path": lambda: Path("limits.csv"),
    "tabs": lambda: "limits.tsv",
    "a JSON array": lambda: "limits.json",
    "JSON lines": lambda: "limits.jsonl",
    "Parquet": lambda: "limits.parquet",
    "a frame of pandas": lambda: pd.DataFrame(LIMITS).astype({"limit": "Int64"}),
    "a frame of polars": lambda: pl.DataFrame(LIMITS),
    "an Arrow table": lambda: pa.Table.from_pylist(LIMITS),
    "dicts": lambda: LIMITS,
    "a generator of dicts": lambda: (row for row in LIMITS),
    "a cursor of SQL": cursor,
}


@pytest.mark.filterwarnings("ignore:.* is drafted")
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_is_background(table: Callable[[], Any]) -> None:
    """The key is the subject of a row and one of its properties, so events find the row by either."""
    found = run(BY_VALUE, SOLD, time="at", subject="order", background=table())
    assert [(m["order"].rsplit("/")[-1], m["name"]) for m in found] == [("o2", "nut")]
    assert [m["x"] for m in run(BY_SUBJECT, SOLD, time="at", subject="sku", background=table())] == [7]


def test_the_draft_is_told_in_one_line() -> None:
    with pytest.warns(UserWarning, match=r"limits\.csv: there is no mapping, so one is drafted: subject :\{sku\}$"):
        Engine(BY_SUBJECT, background="limits.csv")


@pytest.mark.filterwarnings("error")
def test_a_table_beside_other_background_with_its_subject_or_a_mapping() -> None:
    firms = [("<http://example.org/p2>", "<http://example.org/of>", "<http://example.org/acme>")]
    mapping = {"subject": ":{sku}", "predicate": ":limit", "object": "{limit}"}
    query = "SELECT ?x ?firm { EVENT { ?p :amount ?x } ?p :limit ?l ; :of ?firm FILTER (?x > ?l) }"
    for table in (reference_table("limits.csv", subject="sku"), reference_table(LIMITS, mapping=mapping)):
        found = run(query, SOLD, time="at", subject="sku", background=[table, firms])
        assert [m["x"] for m in found] == [7]


def test_rows_without_a_key_are_nodes_of_their_own_the_same_in_each_run() -> None:
    prices = [{"from": 1, "to": 5, "rate": 3}, {"from": 5, "to": 9, "rate": 4}]
    one, other = reference_table(prices, subject=None), reference_table(pd.DataFrame(prices), subject=None)
    assert sorted(one) == sorted(other)
    assert len({s for s, _, _ in one}) == 2
    with pytest.warns(UserWarning, match="subject a node of its own for each row"):
        assert sorted(reference_table(prices)) == sorted(one)


def test_a_date_of_a_reference_table_is_a_property() -> None:
    since = [{"sku": "p1", "since": "2026-01-01"}, {"sku": "p2", "since": "2026-02-01"}]
    assert sum(p.endswith("since>") for _, p, _ in reference_table(since, subject="sku")) == 2


def test_a_mapping_with_a_time_is_refused_for_background() -> None:
    mapping = {"time": "{since}", "subject": ":{sku}", "predicate": ":limit", "object": "{limit}"}
    with pytest.raises(ValueError, match="a background has no times\n  leave time out of the mapping"):
        reference_table(LIMITS, mapping=mapping)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a column that is not there": (lambda: reference_table("limits.csv", subject="skuu"), "did you mean 'sku'?"),
    "a number": (lambda: reference_table(5), "a table is a file, a frame, a list of dicts or a cursor of SQL, not 5"),
    "a file of triples": (lambda: reference_table("firms.ttl"), "firms.ttl: this is no table"),
    "no file": (lambda: reference_table("no.csv"), "there is no such file"),
    "an event": (lambda: Engine(BY_SUBJECT, background=[event(":a :p 1", 1)]), "is not a triple"),
    "a table for load": (lambda: load("limits.csv"), "a table is given as it is, as background="),
}


@pytest.mark.parametrize(("given", "told"), WRONG.values(), ids=WRONG)
def test_what_is_no_table_is_told(given: Callable[[], Any], told: str) -> None:
    Path("firms.ttl").write_text("@prefix : <urn:> . :a :b :c .")
    with pytest.raises((TypeError, ValueError)) as refused:
        given()
    assert told in str(refused.value)


def test_background_is_also_the_text_of_turtle() -> None:
    text = ":p1 :limit 100 . :p2 :limit 5 ."
    assert [m["x"] for m in run(BY_SUBJECT, SOLD, time="at", subject="sku", background=text)] == [7]
    assert len(load("@prefix s: <urn:s> .\ns:a s:b [ s:c 1 ] .").graph()) == 2
    with pytest.raises(ValueError, match="the Turtle text, line 2, column"):
        load(":a :b :c .\n:a :b .")


def test_json_ld_stays_rdf() -> None:
    Path("a.json").write_text('{"@id": "http://example.org/p2", "http://example.org/limit": 5}')
    assert [m["x"] for m in run(BY_SUBJECT, SOLD, time="at", subject="sku", background="a.json")] == [7]


def test_updates_are_about_a_key_which_events_find() -> None:
    limits = [{"t": 1, "sku": "p1", "limit": 3}, {"t": 2, "sku": "p2", "limit": 4}]
    with pytest.warns(UserWarning, match="subject :{sku}"):
        changed = list(table_updates(limits))
    assert [update.add[0][0] for update in changed] == ["<http://example.org/p1>", "<http://example.org/p2>"]


def test_updates_that_would_replace_nothing_are_refused() -> None:
    limits = [{"t": 1, "dev": "a", "limit": 3}, {"t": 2, "dev": "a", "limit": 4}]
    with pytest.raises(StreamError, match="name it: updates=table_updates\\(rows, time=…, subject=…\\)"):
        list(run("SELECT ?x { ?s :limit ?x }", [event(":a :p 1", 1)], updates=limits))
    assert len(list(table_updates(limits, time="t", subject=None))) == 2
