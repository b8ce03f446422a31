"""``Engine.push`` with what a program has in its hands: one dict, one row, with the names of two of its columns."""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import pandas as pd
import pytest

from etalis_py import Engine, event, run

QUERY = "SELECT ?card ?city ?amount { EVENT { ?card :city ?city ; :amount ?amount } }"
ROWS = [
    {"at": 1, "card": "c1", "city": "Wien", "amount": 10},
    {"at": 2, "card": "c1", "city": "Graz", "amount": 500},
]
RIGHT = [("Wien", 10, 1), ("Graz", 500, 2)]


class Payment(NamedTuple):
    at: int
    card: str
    city: str
    amount: int


@dataclass(frozen=True)
class Paid:
    at: int
    card: str
    city: str
    amount: int


def rows_of_sqlite() -> Any:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    connection.execute("CREATE TABLE t (at, card, city, amount)")
    connection.executemany("INSERT INTO t VALUES (:at, :card, :city, :amount)", ROWS)
    return connection.execute("SELECT * FROM t")


RECORDS: dict[str, Callable[[], Any]] = {
    "dicts": lambda: ROWS,
    "rows of SQL": rows_of_sqlite,
    "rows of a frame": lambda: [row for _, row in pd.DataFrame(ROWS).iterrows()],
    "named tuples": lambda: [Payment(**row) for row in ROWS],  # type: ignore[arg-type]
    "named tuples of a frame": lambda: pd.DataFrame(ROWS).itertuples(index=False),
    "dataclasses": lambda: [Paid(**row) for row in ROWS],  # type: ignore[arg-type]
}


def said(matches: Any) -> list[tuple[Any, ...]]:
    return [(m["city"], m["amount"], m.end) for m in matches]


@pytest.mark.parametrize("subject", ["card", None])
@pytest.mark.parametrize("given", RECORDS.values(), ids=RECORDS)
def test_a_record_is_pushed_by_the_columns_that_are_named(given: Callable[[], Any], subject: str | None) -> None:
    engine = Engine(QUERY)
    found = [match for row in given() for match in engine.push(row, time="at", subject=subject)]
    assert said([*found, *engine.close()]) == RIGHT
    assert said(run(QUERY, given(), time="at", subject=subject)) == RIGHT


def test_pushed_one_by_one_or_together_records_have_the_same_matches() -> None:
    for subject in ("card", None):
        one, other = Engine(QUERY), Engine(QUERY)
        singly = [m for row in ROWS for m in one.push(row, time="at", subject=subject)]
        together = other.push_all(ROWS, time="at", subject=subject)
        assert [*singly, *one.close()] == [*together, *other.close()]


def test_records_of_several_kinds_may_be_pushed_in_turn() -> None:
    engine = Engine("SELECT ?x ?y { { ?a :price ?x } SEQ { ?a :volume ?y } }")
    rows = [{"at": 1, "sym": "A", "price": 3}, {"at": 2, "sym": "A", "volume": 7}, {"at": 3, "sym": "A", "price": 5}]
    found = [match for row in rows for match in engine.push(row, time="at", subject="sym")]
    assert [(m["x"], m["y"]) for m in [*found, *engine.close()]] == [(3, 7)]


def test_a_mapping_is_read_anew_only_when_it_is_another_one() -> None:
    engine = Engine("SELECT ?x { :c1 :p ?x }")
    mapping = {"time": "{at}", "subject": ":{card}", "predicate": ":p", "object": "{amount}"}
    found = [*engine.push(ROWS[0], mapping=mapping)]
    mapping["object"] = "{city}"
    found += engine.push(ROWS[1], mapping=mapping)
    assert [m["x"] for m in [*found, *engine.close()]] == [10, "Graz"]


def test_pushed_records_show_their_times_as_they_are_spelled() -> None:
    for spelled, shown in (
        (datetime(2026, 3, 2, 8), "2026-03-02T08:00:00Z"),
        ("2026-03-02 08:00:00", "2026-03-02T08:00:00Z"),
        (1_769_853_600_000, 1_769_853_600_000),
    ):
        engine = Engine(QUERY)
        found = [*engine.push({**ROWS[0], "at": spelled}, time="at", subject="card"), *engine.close()]
        assert [m.end for m in found] == [shown]


def test_a_record_whose_times_are_of_another_kind_is_refused() -> None:
    engine = Engine(QUERY)
    engine.push(ROWS[0], time="at", subject="card")
    with pytest.raises(ValueError, match=r"the record: .*time"):
        engine.push({**ROWS[1], "at": datetime(2026, 3, 2), "more": 1}, time="at", subject="card")
    assert said(engine.close()) == RIGHT[:1]


WRONG: dict[str, tuple[Any, dict[str, Any], str]] = {
    "one column alone": (ROWS[0], {"time": "at"}, "name both columns"),
    "no such column": (ROWS[0], {"time": "when", "subject": "card"}, "there is no column 'when' for the time"),
    "a mapping besides": (ROWS[0], {"time": "at", "mapping": {}}, "leave time= and subject= out"),
    "an event": (event(":a :p 1", 1), {"time": "at", "subject": None}, "events are taken as they are"),
    "a frame": (pd.DataFrame(ROWS), {"time": "at", "subject": None}, "push_all takes several"),
    "several records": (ROWS, {"time": "at", "subject": None}, "push_all takes several"),
    "a number as a name": (ROWS[0], {"time": 5, "subject": "card"}, "time= is the name of a column, not 5"),
    "a list as a name": (ROWS[0], {"time": "at", "subject": ["card"]}, "subject= is the name of a column"),
    "no name at all": (ROWS[0], {}, "the names of their columns, as time='at', subject='card'"),
}


@pytest.mark.parametrize(("given", "named", "told"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_pushed_is_told(given: Any, named: dict[str, Any], told: str) -> None:
    engine = Engine(QUERY)
    with pytest.raises((TypeError, ValueError)) as refused:
        engine.push(given, **named)
    assert told in str(refused.value)
    if isinstance(given, dict) and "mapping" not in named and named:
        with pytest.raises((TypeError, ValueError)) as refused:
            list(run(QUERY, [given], **named)) if len(named) > 1 else engine.push_all([given], **named)
        assert told in str(refused.value)


# --- iterators without any name ---


def test_an_iterator_of_records_is_drafted_by_its_first_one() -> None:
    file = io.StringIO("at,card,city,amount\n1,c1,Wien,10\n2,c1,Graz,500\n")
    for rows in (iter(ROWS), csv.DictReader(file), rows_of_sqlite()):
        with pytest.warns(UserWarning, match=r"one is drafted: time \{at\}, subject :\{card\}$"):
            assert said(run(QUERY, rows)) == RIGHT


def test_drafted_records_of_an_iterator_show_their_times_as_they_are_spelled() -> None:
    rows = ({**row, "at": f"2026-03-02 08:00:0{row['at']}"} for row in ROWS)
    with pytest.warns(UserWarning, match="one is drafted"):
        assert [m.end for m in run(QUERY, rows)] == ["2026-03-02T08:00:01Z", "2026-03-02T08:00:02Z"]


def test_an_iterator_of_records_is_not_touched_before_the_run_begins() -> None:
    seen = []

    def rows() -> Iterator[dict[str, Any]]:
        for row in ROWS:
            seen.append(row)
            yield row

    begun = run(QUERY, rows())
    assert seen == []
    with pytest.warns(UserWarning, match="one is drafted"):
        assert said(begun) == RIGHT


def test_a_table_without_rows_has_no_match() -> None:
    nothing = pd.DataFrame(ROWS)[:0]
    assert list(run(QUERY, nothing, time="at", subject="card")) == []
    assert list(run(QUERY, nothing)) == []
    with pytest.raises(ValueError, match="there is no column 'when' for the time"):
        list(run(QUERY, nothing, time="when", subject="card"))


def test_matches_of_several_calls_are_added() -> None:
    engine = Engine(QUERY)
    first, second = (engine.push(row, time="at", subject="card") for row in ROWS)
    assert said(first + second + engine.close()) == RIGHT
