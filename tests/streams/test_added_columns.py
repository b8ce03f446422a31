"""What a table adds to the variables of its queries has columns of its own, whatever the variables are called."""

import csv
import io
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from etalis_py import event, run
from etalis_py.cli.main import main
from etalis_py.connectors.sqlite import Database
from etalis_py.streams import SinkError, open_sink

EVENTS = [event(":a :p 5", 1), event(":b :p 6", 2)]
ADDED = ["query", "id", "match_id", "start", "end", "interval_start", "retracted"]
PLAIN = "SELECT ?x { ?c :p ?x }"


def read(path: Path) -> pa.Table:
    return parquet.read_table(path) if path.suffix == ".parquet" else ipc.open_file(str(path)).read_all()


def written(path: Path, queries: list[str], *more: str) -> Path:
    lines = [f'{{"time": {time}, "triples": ":c :p {x} ."}}\n' for time, x in ((1, 5), (2, 6))]
    (path.parent / "stream.jsonl").write_text("".join(lines))
    asked = [part for query in queries for part in ("-q", query)]
    assert not main(["run", *asked, "-s", str(path.parent / "stream.jsonl"), "-o", str(path), *more])
    return path


def told(rows: list[dict[str, Any]], name: str) -> list[Any]:
    """The values of ?NAME and of ?x, and all that is not one of them."""
    return [[row.get(name), row.get("x"), set(row.values()) - {row.get(name), row.get("x")}] for row in rows]


@pytest.mark.parametrize("name", ADDED)
def test_two_queries_share_what_is_added(name: str) -> None:
    found = run([f"SELECT ?{name} {{ ?c :p ?{name} }}", PLAIN], EVENTS)
    ids = {match.query: match.id for match in run([f"SELECT ?{name} {{ ?c :p ?{name} }}", PLAIN], EVENTS[:1])}
    table = found.to_arrow()
    assert table[name].to_pylist() == [5, None, 6, None]
    assert table["x"].to_pylist() == [None, 5, None, 6]
    first = told(table.to_pylist(), name)[:2]
    assert first == [[5, None, {"q1", 1, ids["q1"]}], [None, 5, {"q2", 1, ids["q2"]}]]


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize("name", ADDED)
def test_so_do_files(name: str, format: str, tmp_path: Path) -> None:
    queries = [f"SELECT ?{name} {{ ?c :p ?{name} }}", PLAIN]
    table = read(written(tmp_path / f"m.{format}", queries))
    assert table.to_pylist() == run(queries, EVENTS).to_arrow().select(table.column_names).to_pylist()
    assert len(table.column_names) == len({*table.column_names}) == 6


def test_variables_called_as_all_that_is_added() -> None:
    query = "SELECT " + " ".join(f"({n} AS ?{name})" for n, name in enumerate(ADDED)) + " { ?c :p 5 }"
    row = run([query, "SELECT ?y { ?c :p ?y FILTER (?y > 5) }"], EVENTS).to_arrow().to_pylist()[0]
    assert [row[name] for name in ADDED] == list(range(len(ADDED)))
    assert {text for text in row.values() if isinstance(text, str)} > {"q1"}


def test_csv_of_revised_matches_with_a_variable_called_so() -> None:
    text = io.StringIO()
    with open_sink("csv", text, variables=["retracted"], revised=True) as sink:
        for match in run("SELECT ?retracted { ?c :p ?retracted }", EVENTS):
            sink.write(match)
    head, *rows = csv.reader(io.StringIO(text.getvalue(), newline=""))
    assert head == ["retracted", "start", "end", "match_retracted"]
    assert rows == [["5", "1", "1", ""], ["6", "2", "2", ""]]


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_without_a_match_the_columns_are_the_same(format: str, tmp_path: Path) -> None:
    nothing = [f"{PLAIN[:-1]} FILTER (?x > 9) }}", "SELECT ?start { ?c :p ?start FILTER (?start > 9) }"]
    for queries in (nothing, nothing[:1], nothing[1:]):
        table = read(written(tmp_path / f"m.{format}", queries))
        some = [query.replace("> 9", "> 4") for query in queries]
        assert not len(table)
        assert table.column_names == read(written(tmp_path / f"n.{format}", some)).column_names


def test_triples_that_nothing_constructs_can_be_read_back(tmp_path: Path) -> None:
    query = "CONSTRUCT { ?c :q ?x } { ?c :p ?x FILTER (?x > 9) }"
    path = written(tmp_path / "m.parquet", [query])
    assert list(run("SELECT ?x { ?c :q ?x }", path)) == []
    assert {"s", "p", "o", "start", "end"} < set(read(path).column_names)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"q1": ["x", "X"]}, "the columns x and X of q1 are one in SQLite"),
        ({"q1": ["Start"]}, "the columns Start and start of q1 are one in SQLite"),
        ({"alert": ["x"], "Alert": ["y"]}, "the queries alert and Alert are one table in SQLite"),
        ({"sqlite_1": ["x"]}, "SQLite keeps names such as sqlite_1 to itself"),
    ],
)
def test_names_that_are_one_for_sqlite_are_refused(columns: dict[str, list[str]], message: str, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match=message):
        open_sink("sqlite", tmp_path / "m.sqlite", columns=columns)
    with pytest.raises(SinkError, match=message):
        Database(str(tmp_path / "m.sqlite"), columns)
    assert not (tmp_path / "m.sqlite").exists()


def test_sqlite_has_the_rows_of_a_rule_whose_variables_differ_in_case(tmp_path: Path) -> None:
    path = written(tmp_path / "m.sqlite", ["CONSTRUCT { ?c :q ?x, ?X } { ?c :p ?x BIND (?x + 1 AS ?X) }"])
    assert sqlite3.connect(path).execute("SELECT count(*) FROM q1").fetchone() == (4,)


def test_a_row_with_a_variable_called_id_is_removed_by_the_id_of_its_match(tmp_path: Path) -> None:
    found = run("SELECT ?id { ?c :p ?id }", EVENTS, revise="10 s")
    database = Database(str(tmp_path / "m.sqlite"), {"q1": ["id"]})
    database.recover(None)
    steps: list[Any] = [list(found)]
    one = steps[0][0]
    for matches in (steps[0], [_TakenBack(one)]):
        database.write(matches)
        database.commit(database.prepare())
    assert sqlite3.connect(tmp_path / "m.sqlite").execute("SELECT id FROM q1").fetchall() == [(6,)]


class _TakenBack:
    """A match that is taken back."""

    retracted = True

    def __init__(self, match: Any) -> None:
        self._match = match

    def __getattr__(self, name: str) -> Any:
        return getattr(self._match, name)


def test_rows_of_a_part_of_the_queries_have_the_names_of_all() -> None:
    queries = ["SELECT ?start { ?c :p ?start FILTER (?start > 9) }", PLAIN]
    table = run(queries, EVENTS).to_arrow()
    assert table.column_names == ["x", "interval_start", "interval_end", "id"]
    assert table["interval_start"].to_pylist() == [1, 2]


def test_each_row_says_its_query_where_another_query_matches_late() -> None:
    events = [event(f":c :p {x}", x) for x in range(3000)]
    found = run([PLAIN, "SELECT ?y { ?c :p ?y FILTER (?y > 2990) }"], iter(events))
    table = found.to_arrow()
    assert table.column_names == ["query", "x", "y", "start", "end", "id"]
    assert table["query"].value_counts().to_pylist() == [
        {"values": "q1", "counts": 3000},
        {"values": "q2", "counts": 9},
    ]
