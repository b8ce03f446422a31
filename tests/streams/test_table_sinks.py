"""Matches as Parquet, Arrow and SQLite; and JSON lines and CSV from columns, which are those of match by match."""

from __future__ import annotations

import errno
import io
import os
import sqlite3
from datetime import UTC, date, datetime, time, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from etalis_py import Engine, Event, compile, event, run
from etalis_py.cli.outputs import Outlet
from etalis_py.kernel.matches import Matches
from etalis_py.kernel.tabular import results
from etalis_py.streams import Clock, SinkError, open_sink, read_stream, write_tables

SELECT = "SELECT ?x ?c { ?c :p ?x OPTIONAL { ?c :q ?y } }"
FAR = [
    ("2026-01-31T10:00:00Z", "dateTime"),
    ("9999-12-31T23:00:00-05:00", "dateTime"),
    ("-0044-03-15T12:00:00", "dateTime"),
    ("P1000000000D", "dayTimeDuration"),
]
EVENTS = [
    event(":acme :p 1", 1),
    event(":acme :p 2", 2),
    event(':b :p "a, \\"b\\"\\n"@en', 3),
    event(":b :p 1.5", (3, 4)),
]


def matches(query: Any = SELECT, events: list[Event] = EVENTS, **options: Any) -> Matches:
    engine = Engine(compile(query), **options)
    first = engine.push_all(events)
    return Matches(first.shapes, [*first.reports, *engine.close().reports])


def read(path: Path) -> pa.Table:
    return parquet.read_table(path) if path.suffix == ".parquet" else ipc.open_file(str(path)).read_all()


def write(found: Matches, format: str, path: Path, how: str, **options: Any) -> None:
    with open_sink(format, path, **options) as sink:
        if how == "columns":
            for one in results(found):
                sink.write_results(one)  # type: ignore[attr-defined]
        else:
            for match in found:
                sink.write(match)


@pytest.mark.parametrize("how", ["columns", "rows"])
@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_a_file_holds_the_table(format: str, how: str, tmp_path: Path) -> None:
    found = matches(events=EVENTS[:2])
    path = tmp_path / f"matches.{format}"
    write(found, format, path, how, columns={"q1": ["x", "c"]})
    assert read(path).to_pylist() == found.to_arrow().to_pylist()
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_a_column_becomes_wider_when_it_must(format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_tables, "ROWS", 1)
    path = tmp_path / f"matches.{format}"
    write(matches(), format, path, "rows", columns={"q1": ["x", "c"]})
    assert read(path).column("x").to_pylist() == ["1", "2", 'a, "b"\n', "1.5"]
    write(matches(events=[EVENTS[0], EVENTS[3]]), format, path, "rows", columns={"q1": ["x", "c"]})
    assert [float(x) for x in read(path).column("x").to_pylist()] == [1, 1.5]
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("how", ["columns", "rows"])
def test_what_is_constructed_can_be_read_again(how: str, tmp_path: Path) -> None:
    found = matches("CONSTRUCT { ?c :was ?x . ?c a :Thing } WHERE { ?c :p ?x }", EVENTS[:2])
    write(found, "parquet", tmp_path / "c.parquet", how)
    again = [triple for each in read_stream(tmp_path / "c.parquet") for triple in each.triples]
    assert again == [triple for match in found for triple in match.triples or ()]


@pytest.mark.parametrize("how", ["columns", "rows"])
@pytest.mark.parametrize("render", [Clock().render, None])
def test_a_database_has_a_table_for_each_query(how: str, render: Any, tmp_path: Path) -> None:
    found = matches([SELECT, "CONSTRUCT { ?c :was ?x . ?c a :T } WHERE { ?c :p ?x }"], EVENTS[:2], render=render)
    for _ in range(2):  # the second run writes nothing new
        write(found, "sqlite", tmp_path / "m.sqlite", how, columns={"q1": ["x", "c"]})
    with sqlite3.connect(tmp_path / "m.sqlite") as database:
        rows = database.execute("SELECT x, c, start FROM q1 ORDER BY x").fetchall()
        first: Any = "1970-01-01T00:00:01Z" if render else 1
        assert rows[0] == (1, "http://example.org/acme", first)
        assert database.execute("SELECT count(*) FROM q2").fetchone() == (4,)


def test_no_match_is_an_empty_file(tmp_path: Path) -> None:
    write(matches(events=[]), "parquet", tmp_path / "m.parquet", "rows", columns={"q1": ["x", "c"]})
    assert read(tmp_path / "m.parquet").column_names == ["x", "c", "start", "end", "id"]


def test_what_has_no_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="the folder does not exist"):
        open_sink("parquet", tmp_path / "none" / "m.parquet")
    with pytest.raises(SinkError, match="the folder does not exist"):
        open_sink("sqlite", tmp_path / "none" / "m.sqlite")
    with pytest.raises(SinkError, match="one file"):
        open_sink("parquet", "-")
    (tmp_path / "m.sqlite").write_text("this is no database, whatever its name says" * 50)
    with pytest.raises(SinkError, match="not a SQLite database"):
        open_sink("sqlite", tmp_path / "m.sqlite")


@pytest.mark.parametrize("how", ["columns", "rows"])
def test_a_table_in_a_folder_that_cannot_be_written_is_named_with_the_reason(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(path: Path, *_: Any) -> None:
        detail = f"Failed to open local file '{path}'. Detail: [errno {errno.EROFS}] Read-only file system"
        raise OSError(errno.EROFS, detail)

    monkeypatch.setattr(parquet, "ParquetWriter", read_only)
    with pytest.raises(SinkError) as caught:
        write(matches(), "parquet", tmp_path / "m.parquet", how)
    assert str(caught.value) == f"{tmp_path / 'm.parquet'}: {os.strerror(errno.EROFS)}"


def test_a_database_in_a_folder_that_cannot_be_written_tells_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(path: str) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(sqlite3, "connect", connect)
    monkeypatch.setattr(os, "access", lambda path, mode: (Path(path), mode) != (tmp_path, os.W_OK))
    with pytest.raises(SinkError) as caught:
        open_sink("sqlite", tmp_path / "m.sqlite")
    assert (caught.value.reason, caught.value.hint) == ("the folder cannot be written", "choose another place")
    (tmp_path / "m.sqlite").touch()
    with pytest.raises(SinkError, match="not a SQLite database that can be written: unable to open"):
        open_sink("sqlite", tmp_path / "m.sqlite")


@pytest.mark.parametrize("format", ["jsonl", "csv"])
@pytest.mark.parametrize("render", [None, Clock().render])
@pytest.mark.parametrize(
    "query",
    [
        SELECT,
        "CONSTRUCT { ?c :was ?x . ?c a :T } WHERE { ?c :p ?x }",
        "ASK { ?c :p ?x }",
        "SELECT ?y { ?c :p ?x OPTIONAL { ?c :q ?y } }",
    ],
)
def test_columns_are_written_as_rows_are(format: str, render: Any, query: str) -> None:
    found = matches(query, render=render)
    if format == "csv" and found.shapes[0].output.form == "construct":
        return
    texts = []
    for columns in (False, True):
        text = io.StringIO()
        variables = list(found.shapes[0].output.variables) or None
        with open_sink(format, text, variables=variables) as sink:
            if not (columns and all(sink.write_results(one) for one in results(found))):  # type: ignore[attr-defined]
                for match in found:
                    sink.write(match)
        texts.append(text.getvalue())
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ('"0.0"^^xsd:decimal', "0"),
        ('"0.0000001"^^xsd:decimal', "0.0000001"),
        ('"100"^^xsd:decimal', "100"),
        ('"INF"^^xsd:double', "INF"),
        ('"NaN"^^xsd:double', "NaN"),
        ('"2026-01-31T10:00:00.50+01:00"^^xsd:dateTime', "2026-01-31T09:00:00.5Z"),
        ('"2026-01-31T10:00:00"^^xsd:dateTime', "2026-01-31T10:00:00"),
        ('"12026-01-31T10:00:00Z"^^xsd:dateTime', "12026-01-31T10:00:00Z"),
        ('"2026-01-31"^^xsd:date', "2026-01-31"),
        ("true", "true"),
    ],
)
def test_values_before_the_first_text_have_the_spelling_of_their_type(
    literal: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = matches(events=[event(f":a :p {literal}", 1), event(':b :p "text"', 2)])
    monkeypatch.setattr(write_tables, "ROWS", 1)
    path = tmp_path / "matches.parquet"
    write(found, "parquet", path, "rows", columns={"q1": ["x", "c"]})
    assert read(path).column("x").to_pylist() == [text, "text"]


def test_integers_become_doubles_whether_or_not_the_first_double_comes_later() -> None:
    """Beside a double an integer is the nearest double, even where none has its value."""
    events = [event(f":a :p {number}", time) for time, number in enumerate((2**53 + 1, 2**63 - 1, "1.5e0"))]
    expected = [float(2**53 + 1), float(2**63 - 1), 1.5]
    assert matches(events=events).to_arrow()["x"].to_pylist() == expected
    assert run(SELECT, iter(events)).to_arrow()["x"].to_pylist() == expected


def test_a_database_has_texts_for_times_that_python_does_not_have(tmp_path: Path) -> None:
    """Such as 9999-12-31T23:00 in New York, which stands for "never" and is in the year 10000 in UTC."""
    far = [event(f':a :p "{literal}"^^xsd:{kind}', "2026-01-31T10:00:00Z") for literal, kind in FAR]
    write(matches("SELECT ?x { ?c :p ?x }", far[:2]), "sqlite", tmp_path / "m.db", "rows")
    rows = sqlite3.connect(tmp_path / "m.db").execute('SELECT x, "end" FROM q1').fetchall()
    assert sorted(rows) == [("10000-01-01T04:00:00Z", "2026-01-31T10:00:00Z"), ("2026-01-31T10:00:00Z",) * 2]


def test_values_that_python_does_not_have_are_texts() -> None:
    far = [event(f':a :p "{literal}"^^xsd:{kind}', "0000-12-31T10:00:00Z") for literal, kind in FAR]
    found = [record["x"] for record in matches(events=far).to_dicts()]
    assert sorted(map(str, found)) == sorted(
        map(str, [*(text for text, _ in FAR[1:]), datetime(2026, 1, 31, 10, tzinfo=UTC)])
    )
    assert {record["end"] for record in matches(events=far).to_dicts()} == {"0000-12-31T10:00:00Z"}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("date", "2026-01-31", date(2026, 1, 31)),
        ("date", "2026-01-31+02:00", "2026-01-31+02:00"),
        ("date", "12026-01-31", "12026-01-31"),
        ("time", "12:30:00.5", time(12, 30, 0, 500_000)),
        ("time", "00:30:00+02:00", time(0, 30, tzinfo=timezone(timedelta(hours=2)))),
        ("dateTime", "2026-01-31T12:00:00+02:00", datetime(2026, 1, 31, 10, tzinfo=UTC)),
        ("dateTime", "2026-01-31T12:00:00", datetime(2026, 1, 31, 12)),
        ("dayTimeDuration", "-PT1H", timedelta(hours=-1)),
        ("yearMonthDuration", "P1Y2M", "P1Y2M"),
        ("duration", "P1M1D", "P1M1D"),
    ],
)
def test_a_match_has_times_of_the_standard_library(kind: str, text: str, value: object) -> None:
    (match,) = run("SELECT ?x { ?c :p ?x }", [event(f':a :p "{text}"^^xsd:{kind}', 1)])
    assert match["x"] == value
    assert getattr(match["x"], "tzinfo", None) == getattr(value, "tzinfo", None)


def test_a_frame_has_dates_after_the_year_9999() -> None:
    found = run("SELECT ?x { ?c :p ?x }", [event(':a :p "12026-01-31"^^xsd:date', 1)])
    assert str(found.to_pandas()["x"].iloc[0]).startswith("12026-01-31")


TRIO = "CONSTRUCT { ?c :was ?x ; a :Thing ; :q ?x } WHERE { ?c :p ?x }"


def test_what_is_constructed_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part has whole instants, with about so many triples in all; other queries come as they are."""
    monkeypatch.setattr("etalis_py.kernel.matches.TRIPLES", 10)
    events = [event(f":a{i} :p {i}", i // 2) for i in range(30)]
    found = matches(TRIO, events)
    parts = list(found.parts())
    assert max(len(part) for part in parts) == 4  # two instants with six triples each
    assert [match.id for part in parts for match in part] == [match.id for match in found]
    assert [len(part) for part in matches(events=events).parts()] == [30]
    assert list(matches(TRIO, []).parts()) == [[]]


@pytest.mark.parametrize("format", ["jsonl", "trig", "parquet", "sqlite"])
def test_parts_are_written_as_the_whole(format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [event(f":a{i % 7} :p {i}", i // 2) for i in range(1_000)]
    written = []
    for triples in (1 << 16, 800):
        monkeypatch.setattr("etalis_py.kernel.matches.TRIPLES", triples)
        path = tmp_path / f"{triples}.{format}"
        with Outlet(open_sink(format, path)) as outlet:
            outlet.write_all(matches(TRIO, events))
        if format == "sqlite":
            written.append(sqlite3.connect(path).execute("SELECT * FROM q1 ORDER BY id, number").fetchall())
        else:
            written.append(read(path).to_pylist() if format == "parquet" else path.read_text())
    assert written[0] == written[1]
    assert written[0]


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_a_pipe_is_not_replaced_by_a_table(format: str, tmp_path: Path) -> None:
    """Nor is a device: a run of the administrator to /dev/null would make it a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(SinkError, match=f"this is a pipe or a device, and {format} is written to a file"):
        open_sink(format, pipe)
    assert pipe.is_fifo()
