"""A background that changes by the rows of a table: each row replaces what the thing had in its columns before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from etalis_py import reference_table, run, table_updates
from tests.cli.conftest import Folder

LIMITS = [{"sku": "p1", "limit": 100, "unit": "kg"}, {"sku": "p2", "limit": 5, "unit": "kg"}]
CHANGES: list[dict[str, Any]] = [
    {"at": 2, "sku": "p2", "limit": 50},
    {"at": 2, "sku": "p3", "limit": 1},
    {"at": 4, "sku": "p2", "limit": 7},
]
SOLD = [{"at": n, "sku": sku, "amount": 10} for n in range(1, 7) for sku in ("p2", "p3")]
QUERY = "SELECT ?p ?x { EVENT { ?p :amount ?x . ?p :limit ?l FILTER (?x > ?l) } }"
RIGHT = [("p2", 1), ("p2", 2), ("p3", 3), ("p3", 4), ("p2", 5), ("p3", 5), ("p2", 6), ("p3", 6)]


def over(updates: Any, **options: Any) -> list[tuple[str, Any]]:
    background = reference_table(LIMITS, subject="sku")
    matches = run(QUERY, SOLD, time="at", subject="sku", background=background, updates=updates, **options)
    return [(m["p"].rsplit("/")[-1], m.end) for m in matches]


def in_a_file() -> Path:
    pd.DataFrame(CHANGES).to_csv("changes.csv", index=False)
    return Path("changes.csv")


TABLES: dict[str, Callable[[], Any]] = {
    "dicts": lambda: CHANGES,
    "a frame": lambda: pd.DataFrame(CHANGES),
    "a file": in_a_file,
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_row_holds_from_after_its_time_and_replaces_the_one_before(table: Callable[[], Any]) -> None:
    """As with other updates, an update at t holds from the first instant after t."""
    assert over(table_updates(table(), time="at", subject="sku")) == RIGHT
    with pytest.warns(UserWarning, match=r"one is drafted: time \{at\}, subject :\{sku\}$"):
        assert over(table()) == RIGHT


def test_what_a_row_does_not_say_stays() -> None:
    query = "SELECT ?u { EVENT { :p2 :amount ?x ; :unit ?u } }"
    background = reference_table(LIMITS, subject="sku")
    changes = [{"at": 2, "sku": "p2", "limit": 50, "unit": None}]
    updates = table_updates(changes, time="at", subject="sku")
    matches = run(query, SOLD, time="at", subject="sku", background=background, updates=updates)
    assert [m["u"] for m in matches] == ["kg"] * 6


def test_rows_may_be_given_by_a_mapping_and_are_put_in_order() -> None:
    mapping = {"time": "{at}", "subject": ":{sku}", "predicate": ":limit", "object": "{limit}"}
    with pytest.warns(UserWarning, match="not in order of time, so sorted first"):
        assert over(table_updates(CHANGES[::-1], mapping=mapping)) == RIGHT


def test_dicts_of_turtle_are_no_table() -> None:
    turtle = [{"time": 2, "add": ":p2 :limit 50 .", "remove": ":p2 :limit 5 ."}]
    assert over(turtle) == [("p2", 1), ("p2", 2)]


def test_the_command_takes_a_table(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    pd.DataFrame(LIMITS).to_csv(folder.path / "limits.csv", index=False)
    pd.DataFrame(SOLD).to_csv(folder.path / "sold.csv", index=False)
    pd.DataFrame(CHANGES).to_csv(folder.path / "changes.csv", index=False)
    options = ("-s", "sold.csv", "--time", "at", "--subject", "sku", "-b", "limits.csv", "-f", "csv")
    done = folder.etalis("run", "-q", QUERY, *options, "--background-stream", "changes.csv")
    assert [line.split(",")[0].rsplit("/")[-1] for line in done.stdout.splitlines()[1:]] == [p for p, _ in RIGHT]
    assert "changes.csv: there is no mapping, so one is drafted: time {at}, subject :{sku}" in done.stderr
    spark = folder.etalis(
        "run", "-q", QUERY, *options, "--background-stream", "changes.csv", "--engine", "spark", code=2
    )
    assert "--background-stream with a table is for the local engine" in spark.stderr
