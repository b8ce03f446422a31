"""A query's own empty prefix begins the names of columns, wherever its records and its background come from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from etalis_py import Engine, compile, reference_table, run, table_updates

OWN = "http://shop.test/"
HOT = f"PREFIX : <{OWN}> SELECT ?d {{ ?d :temp ?x FILTER (?x > 6) }}"
ABOVE = f"PREFIX : <{OWN}> SELECT ?d {{ ?d :temp ?x ; :limit ?l FILTER (?x > ?l) }}"
OTHER = "PREFIX : <http://o.test/> PREFIX o: <http://o.test/> REGISTER QUERY other AS SELECT ?d { ?d o:temp ?x }"
ROWS = [{"t": 1, "dev": "a", "temp": 5}, {"t": 2, "dev": "b", "temp": 7}]
LIMITS = [{"dev": "a", "limit": 3}, {"dev": "b", "limit": 9}]
MAPPING = {"time": "{t}", "subject": ":{dev}", "predicate": ":temp", "object": "{temp}"}


def pushed(query: str | Engine, push: Callable[[Engine], Any]) -> list[str]:
    """The devices of the matches when an engine of the query is given records."""
    engine = query if isinstance(query, Engine) else Engine(query)
    return [match.bindings["d"] for match in [*push(engine), *engine.close()]]


def one_by_one(engine: Engine, rows: list[dict[str, Any]] = ROWS, **options: Any) -> list[Any]:
    return [match for row in rows for match in engine.push(row, **options)]


@pytest.mark.parametrize("named", [{"time": "t", "subject": "dev"}, {"mapping": MAPPING}])
def test_records_that_are_pushed(named: Mapping[str, Any]) -> None:
    expected = [f"<{OWN}b>"]
    assert [match.bindings["d"] for match in run(HOT, ROWS, **named)] == expected
    assert pushed(HOT, lambda engine: one_by_one(engine, **named)) == expected
    for given in (ROWS, iter(ROWS), pd.DataFrame(ROWS)):
        assert pushed(HOT, lambda engine, given=given: engine.push_all(given, **named)) == expected


def test_statements_of_a_file_that_is_pushed(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text("".join(json.dumps({"time": i, "triples": f":{d} :temp {7 * i} ."}) + "\n" for i, d in [(1, "b")]))
    assert pushed(HOT, lambda engine: engine.push_all(file)) == [f"<{OWN}b>"]


def test_a_program_that_is_added_to_an_empty_engine() -> None:
    engine = Engine()
    engine.add(HOT)
    assert pushed(engine, lambda engine: one_by_one(engine, time="t", subject="dev")) == [f"<{OWN}b>"]


def test_a_program_that_is_added_leaves_the_names_as_they_were() -> None:
    """Else the records of a running engine would change their names."""
    engine = Engine(HOT)
    assert not one_by_one(engine, ROWS[:1], time="t", subject="dev")
    engine.add(OTHER)
    assert pushed(engine, lambda engine: one_by_one(engine, ROWS[1:], time="t", subject="dev")) == [f"<{OWN}b>"]
    mapping = MAPPING | {"time": "{t}0", "predicate": "o:temp"}
    engine = Engine(HOT)
    engine.add(OTHER)
    assert pushed(engine, lambda engine: one_by_one(engine, mapping=mapping)) == [f"<{OWN}a>", f"<{OWN}b>"]


def test_the_only_program_left_has_its_own_names() -> None:
    engine = Engine("PREFIX : <http://other.test/> SELECT ?d { ?d :temp ?x }", journal=False)
    assert not one_by_one(engine, ROWS[:1], time="t", subject="dev")
    engine.remove(*engine.programs)
    engine.add(HOT)
    assert pushed(engine, lambda engine: one_by_one(engine, ROWS[1:], time="t", subject="dev")) == [f"<{OWN}b>"]


def table(path: Path) -> Any:
    path.write_text(pd.DataFrame(LIMITS).to_csv(index=False), encoding="utf-8")
    return path


@pytest.mark.filterwarnings("ignore:.*there is no mapping:UserWarning")
@pytest.mark.parametrize(
    "given",
    [
        lambda path: LIMITS,
        lambda path: iter(LIMITS),
        lambda path: pd.DataFrame(LIMITS),
        table,
        lambda path: [table(path)],
        lambda path: reference_table(LIMITS, subject="dev", prefixes=compile(ABOVE).prefixes),
    ],
)
def test_tables_in_the_background(given: Callable[[Path], Any], tmp_path: Path) -> None:
    rows = {"time": "t", "subject": "dev"}
    for query in (ABOVE, compile(ABOVE)):
        background = given(tmp_path / "limits.csv")
        assert [m.bindings["d"] for m in run(query, ROWS, background=background, **rows)] == [f"<{OWN}a>"]
    assert pushed(
        Engine(ABOVE, background=given(tmp_path / "limits.csv")), lambda engine: engine.push_all(ROWS, **rows)
    ) == [f"<{OWN}a>"]


@pytest.mark.filterwarnings("ignore:.*there is no mapping:UserWarning")
def test_tables_of_updates() -> None:
    updates = [{"time": 1, **limit} for limit in LIMITS]
    later = [row | {"t": 5 + n} for n, row in enumerate(ROWS)]
    given = table_updates(updates, time="time", subject="dev", prefixes=compile(ABOVE).prefixes)
    matches = run(ABOVE, later, time="t", subject="dev", updates=list(given))
    assert [match.bindings["d"] for match in matches] == [f"<{OWN}a>"]
    limits = f"PREFIX : <{OWN}> SELECT ?l {{ ?row :limit ?l . ?d :temp ?x }}"
    assert len([*run(limits, later, time="t", subject="dev", updates=updates)]) == 4, "the table as it is"


def test_why_not_reads_by_them() -> None:
    rows = [{"time": row["t"], "triples": f":{row['dev']} :temp {row['temp']} ."} for row in ROWS]
    report = compile(HOT).why_not(rows, where="?d = :a")
    assert "5 > 6 fails by 1" in str(report)
