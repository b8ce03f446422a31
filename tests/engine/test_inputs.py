"""What a newcomer gives to ``run`` and an engine in the first minute: taken and right, or refused with what to give."""

from __future__ import annotations

import csv
import io
import re
import sqlite3
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from etalis_py import Engine, Event, compile, event, read_stream, run
from etalis_py.streams import Punctuation

QUERY = "SELECT ?x { ?c :p ?x }"
MAPPING = {"time": "{at}", "subject": ":{c}", "predicate": ":p", "object": "{x}"}
ROWS: list[dict[str, Any]] = [{"at": 1, "c": "a", "x": 1}, {"at": 2, "c": "b", "x": 2}]
EVENTS = [event(":a :p 1", 1), event(":b :p 2", 2)]
RIGHT = [(1, 1), (2, 2)]
FLAT = pd.DataFrame(
    {
        "end": [1_000_000],
        "s": ["<urn:a>"],
        "p": ["<http://example.org/p>"],
        "o": ['"7"^^<http://www.w3.org/2001/XMLSchema#integer>'],
    }
)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ('{"time": 1, "triples": ":a :p 1 ."}\n', '{"time": 2, "triples": ":b :p 2 ."}\n')
    Path("t.jsonl").write_text("".join(lines))
    Path("part1.jsonl").write_text(lines[0])
    Path("part2.jsonl").write_text(lines[1])
    Path("t.csv").write_text("at,c,x\n1,a,1\n2,b,2\n")
    Path("q.rq").write_text(QUERY)


class Plain:
    """An object with attributes, which is no record."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.row = row


class Model(Plain):
    """Has its values as a model of pydantic has them."""

    def model_dump(self) -> dict[str, Any]:
        return self.row


async def later() -> AsyncIterator[dict[str, Any]]:
    for row in ROWS:
        yield row


@dataclass(frozen=True)
class Given:
    """What is given (by a function, since iterators are used up), with which mapping, and with what as the program."""

    what: Callable[[], Any]
    mapping: Any = None
    program: Callable[[], Any] = lambda: QUERY


def opened(name: str, mode: str = "r") -> Any:
    return Path(name).open(mode)


def rows_of_sqlite() -> Any:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    connection.execute("CREATE TABLE t (at, c, x)")
    connection.executemany("INSERT INTO t VALUES (:at, :c, :x)", ROWS)
    return connection.execute("SELECT * FROM t")


TAKEN = {
    "events": Given(lambda: EVENTS),
    "a tuple of events": Given(lambda: tuple(EVENTS)),
    "a generator of events": Given(lambda: (one for one in EVENTS)),
    "a stream": Given(lambda: read_stream("t.jsonl")),
    "the name of a file": Given(lambda: "t.jsonl"),
    "a path": Given(lambda: Path("t.jsonl")),
    "a pattern": Given(lambda: "part*.jsonl"),
    "a binary file": Given(lambda: opened("t.jsonl", "rb")),
    "bytes as a file": Given(lambda: io.BytesIO(Path("t.jsonl").read_bytes())),
    "objects like JSON lines": Given(lambda: [{"time": n, "triples": f":a :p {n} ."} for n in (1, 2)]),
    "a CSV file": Given(lambda: "t.csv", MAPPING),
    "the rows of a CSV reader": Given(lambda: csv.DictReader(opened("t.csv")), MAPPING),
    "dicts": Given(lambda: ROWS, MAPPING),
    "dicts in the wrong order": Given(lambda: ROWS[::-1], MAPPING),
    "a generator of dicts": Given(lambda: (row for row in ROWS), MAPPING),
    "rows of SQL": Given(rows_of_sqlite, MAPPING),
    "models of pydantic": Given(lambda: [Model(row) for row in ROWS], MAPPING),
    "rows of a frame": Given(lambda: [row for _, row in pd.DataFrame(ROWS).iterrows()], MAPPING),
    "a frame of pandas": Given(lambda: pd.DataFrame(ROWS), MAPPING),
    "a frame of polars": Given(lambda: pl.DataFrame(ROWS), MAPPING),
    "an Arrow table": Given(lambda: pa.Table.from_pylist(ROWS), MAPPING),
    "an Arrow reader": Given(lambda: pa.Table.from_pylist(ROWS).to_reader(), MAPPING),
    "an Arrow batch": Given(lambda: pa.RecordBatch.from_pylist(ROWS), MAPPING),
}


@pytest.mark.filterwarnings("ignore:the records. not in order of time")
@pytest.mark.parametrize("given", TAKEN.values(), ids=TAKEN)
def test_what_is_taken_is_right(given: Given) -> None:
    assert [(m["x"], m.start) for m in run(QUERY, given.what(), mapping=given.mapping)] == RIGHT
    engine = Engine(QUERY)
    found = engine.push_all(given.what(), mapping=given.mapping)
    assert [(m["x"], m.start) for m in (*found, *engine.close())] == RIGHT


def test_what_is_empty_has_no_match() -> None:
    for nothing in ([], (), iter(()), FLAT[:0], {"a": 1}.keys() - {"a"}):
        assert list(run(QUERY, nothing)) == []
    for nothing in ([], iter(()), pd.DataFrame(ROWS)[:0]):
        assert list(run(QUERY, nothing, mapping=MAPPING)) == []


def test_a_frame_of_the_flat_form_needs_no_mapping() -> None:
    for frame in (FLAT, pa.Table.from_pandas(FLAT), pl.DataFrame(FLAT.to_dict("list"))):
        assert [m["x"] for m in run(QUERY, frame)] == [7]


def test_an_index_with_times_and_without_a_name_is_told() -> None:
    frame = pd.DataFrame({"c": ["a"], "x": [1]}, pd.to_datetime(["2026-01-30"]))
    advice = "the index has times, but no name: frame.rename_axis('at') gives it one, and it is the time"
    with pytest.warns(UserWarning, match=re.escape(advice)):
        run("SELECT ?x { ?c :x ?x }", frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [match] = run("SELECT ?x { ?c :x ?x }", frame.rename_axis("at"), time="at", subject="c")
    assert match.start == "2026-01-30T00:00:00Z"


REFUSED = {
    "no such file": (Given(lambda: "nofile.csv"), "nofile.csv: there is no such file\n  check the path of the stream"),
    "no such path": (Given(lambda: Path("nofile.nq")), "nofile.nq: there is no such file"),
    "no file of a pattern": (Given(lambda: "no*.nq"), "no file matches this pattern\n  check the path"),
    "a folder": (Given(lambda: "."), "this is a folder\n  name its files with a pattern"),
    "the name of no file": (Given(lambda: ""), "a stream is given by the name of its file"),
    "statements": (Given(lambda: ":a :p 1"), "statements become an event by event(':a :price 3', 5)"),
    "the text of a file": (Given(lambda: Path("t.csv").read_text(), MAPPING), "io.BytesIO(text.encode())"),
    "an address of Kafka without a topic": (Given(lambda: "kafka://h"), "write kafka://host:9092/topic"),
    "the address of a file": (Given(lambda: "file:///data/a%20b.nq"), "give the path alone: /data/a b.nq"),
    "an address of another kind": (Given(lambda: "ftp://h/x.nq"), "known are files, patterns, -, http(s)://, tcp://"),
    "a container with a mapping": (Given(lambda: "http://h/s/", MAPPING), "leave the mapping out"),
    "a query": (Given(lambda: QUERY), "the query comes first: run(query, stream)"),
    "a program": (Given(lambda: compile(QUERY)), "the program comes first: run(program, stream)"),
    "a single event": (Given(lambda: EVENTS[0]), "put it into a list, [event(…)]"),
    "a dict": (
        Given(lambda: ROWS[0]),
        "put it into a list, [record], with the names of their columns, as time='at', subject=",
    ),
    "a dict of columns": (
        Given(lambda: {"at": [1, 2], "c": ["a", "b"], "x": [1, 2]}, MAPPING),
        "its values are lists, so it has columns: make a table of it, pyarrow.table(columns) or pandas.DataFrame(col",
    ),
    "a frame without columns": (Given(pd.DataFrame), "this table has no columns"),
    "None": (Given(lambda: None), "expected a stream of events, found None (NoneType): give a list of event("),
    "a number": (Given(lambda: 42), "expected a stream of events, found 42 (int): give a list of event("),
    "bytes": (Given(lambda: b"data"), "read_stream(io.BytesIO(data), format=…)"),
    "a function": (Given(lambda: test_what_is_empty_has_no_match), "found <function tes"),
    "a class": (Given(lambda: Event), "expected a stream of events, found <class 'etali"),
    "a text file": (Given(lambda: opened("t.jsonl")), "open it in binary mode ('rb')"),
    "a text as a file": (Given(lambda: io.StringIO("x")), "open it in binary mode ('rb')"),
    "names of files": (
        Given(lambda: ["a.nq", "b.nq"]),
        "several by a pattern or as merge([read_stream(…), read_stream(…)])",
    ),
    "a generator of texts": (Given(lambda: iter([":a :p 1"])), "event(':a :price 3', 5) makes one of statements"),
    "tuples": (Given(lambda: [(1, "a", "p", 1)]), "(1, 'a', 'p', 1) (tuple) is no event: give event(':a :price 3', 5)"),
    "tuples like events": (Given(lambda: [(1, 1, (), "", "")]), "is no event: give event(':a :price 3', 5)"),
    "tuples with a mapping": (Given(lambda: [(1, "a", 1)], MAPPING), "[dict(zip(names, row)) for row in rows]"),
    "numbers": (Given(lambda: [1, 2]), "1 (int) is no event: give a list of event("),
    "an asynchronous iterator": (Given(later), "async for row in rows: engine.push(row, time=…, subject=…)"),
    "objects": (Given(lambda: [Plain(ROWS[0])], MAPPING), "for objects: [vars(row) for row in rows]"),
    "an iterator of objects": (
        Given(lambda: iter([Plain(ROWS[0])]), MAPPING),
        "for objects: [vars(row) for row in rows]",
    ),
    "dicts and something else": (Given(lambda: [*ROWS, 5], MAPPING), "the records:3: 5 (int) has no values by name"),
    "dicts with other keys": (
        Given(lambda: [{**row, "y": 1} for row in ROWS], {**MAPPING, "object": "{z}"}),
        "the mapping uses 'z', which no record has",
    ),
    "a dict with a list in it": (
        Given(lambda: [{"at": 1, "c": "a", "x": [1]}], MAPPING),
        "'x' is a list\n",
    ),
    "a dict with an object in it": (
        Given(lambda: [{"at": 1, "c": "a", "x": object()}], MAPPING),
        "which has no literal\n",
    ),
    "a dict whose time is none": (
        Given(lambda: [{"at": "soon", "c": "a", "x": 1}], MAPPING),
        "the time cannot be read",
    ),
    "events with a mapping": (Given(lambda: EVENTS, MAPPING), "events are taken as they are: leave the mapping out"),
    "a stream with a mapping": (
        Given(lambda: read_stream("t.csv", mapping=MAPPING), MAPPING),
        "not for a stream that is open",
    ),
    "streams": (Given(lambda: [read_stream("t.jsonl")]), "several streams are merged by time"),
    "frames": (
        Given(lambda: [pd.DataFrame(ROWS)], MAPPING),
        "give one table alone, several by the names of their streams",
    ),
    "a frame with other columns": (
        Given(lambda: pd.DataFrame(ROWS), {**MAPPING, "object": "{y}"}),
        "uses the column 'y', which the file does not have\n  the columns are at, c, x",
    ),
    "a flat frame without objects": (Given(lambda: FLAT.drop(columns="o")), "it has no o, so its rows are not triples"),
    "a series": (Given(lambda: pd.Series([1, 2])), "Series is no table: make a frame of it"),
    "a series of polars": (Given(lambda: pl.Series([1, 2])), "Series is no table: make a frame of it"),
    "an array": (Given(lambda: np.array([1, 2])), "ndarray is no table: make a frame of it"),
    "an Arrow array": (Given(lambda: pa.array([1])), "Int64Array is no table: make a frame of it"),
    "no mapping as a mapping": (
        Given(lambda: pd.DataFrame(ROWS), 5),
        "a mapping is the path of a TOML file, or a dict such as",
    ),
    "a mapping that is no file": (
        Given(lambda: ROWS, "no.toml"),
        "no.toml: there is no such file\n  check the path of the mapping",
    ),
    "a misspelt mapping": (Given(lambda: ROWS, {**MAPPING, "objekt": "{x}"}), "unknown key 'objekt' in a mapping"),
    "the arguments swapped": (Given(lambda: QUERY, None, lambda: EVENTS), "it comes first, as in run(query, stream)"),
    "a frame as a query": (
        Given(lambda: QUERY, None, lambda: pd.DataFrame(ROWS)),
        "it comes first, as in run(query, stream)",
    ),
    "a dict as a query": (Given(lambda: [], None, lambda: {"q": QUERY}), "expected a program, its text or its file"),
    "bytes as a query": (
        Given(lambda: [], None, lambda: b"SELECT"),
        "expected a program, its text or its file, found b'SELECT' (bytes)",
    ),
    "no query": (Given(lambda: [], None, lambda: 5), "expected a program, its text or its file, found 5 (int)"),
    "files swapped": (
        Given(lambda: "q.rq", None, lambda: "t.jsonl"),
        "t.jsonl:1:1: error: unexpected '{'; expected a query",
    ),
}


@pytest.mark.parametrize(("given", "told"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_told_what_to_give(given: Given, told: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        list(run(given.program(), given.what(), mapping=given.mapping))
    assert told in str(refused.value)
    with pytest.raises((TypeError, ValueError)) as refused:
        Engine(given.program()).push_all(given.what(), mapping=given.mapping)
    assert told in str(refused.value)


def test_a_query_that_is_a_missing_file_is_told_so() -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no query file qq\.rq; a query text must contain a brace"):
        run("qq.rq", [])


def test_an_iterator_is_not_touched_before_the_run_begins() -> None:
    seen = []

    def events() -> Iterator[Event]:
        for one in EVENTS:
            seen.append(one)
            yield one

    begun = run(QUERY, events())
    assert seen == []
    assert [m["x"] for m in begun] == [1, 2]


def test_what_push_does_not_take_is_shown_on_one_line() -> None:
    with pytest.raises(
        TypeError, match=r"^push takes one event, .*\(DataFrame\); push_all takes several, .*$"
    ) as refused:
        Engine(QUERY).push(pd.DataFrame(ROWS))  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)


def test_push_takes_an_event_or_a_dict_with_a_mapping() -> None:
    engine = Engine(QUERY)
    engine.push(EVENTS[0])
    found = engine.push(ROWS[1], mapping=MAPPING)
    assert [(m["x"], m.start) for m in (*found, *engine.close())] == RIGHT


@pytest.mark.parametrize("wrong", [None, 5, "t.jsonl", [EVENTS[0]], (1, 1, (), "", ""), pd.DataFrame(ROWS)])
@pytest.mark.parametrize("options", [{}, {"executor": "columns"}, {"revise": 1_000_000}, {"lateness": 1_000_000}])
def test_push_refuses_anything_else(wrong: Any, options: Any) -> None:
    engine = Engine(QUERY, **options)
    for _ in range(2):
        with pytest.raises(
            TypeError, match=r"(?s)push takes one event, .* one dict with time=… and subject=…, .* not .* push_all"
        ):
            engine.push(wrong)
        engine.push(EVENTS[0])
    with pytest.raises(ValueError, match="no mapping says what they mean"):
        engine.push(ROWS[0])
    with pytest.raises(TypeError, match="leave the mapping out"):
        engine.push(EVENTS[1], mapping=MAPPING)


def test_an_item_in_the_middle_that_is_no_event_is_named() -> None:
    with pytest.raises(TypeError, match=r"item 2 of the events is none: 'x' is a text, not an event"):
        Engine(QUERY).push_all([EVENTS[0], "x"])
    with pytest.raises(TypeError, match=r"item 2 of the events is a Punctuation: tell the engine with advance\(time\)"):
        Engine(QUERY).push_all([EVENTS[0], Punctuation(5)])


def test_a_live_stream_is_for_run_alone() -> None:
    with pytest.raises(
        TypeError, match=r"is a live stream, which need not end: run\(query, stream\) gives its matches"
    ):
        Engine(QUERY).push_all(read_stream("t.jsonl", idle=1.0))


def test_time_that_a_stream_says_has_passed_passes_in_push_all() -> None:
    Path("p.jsonl").write_text('{"time": 1, "triples": ":a :p 1 ."}\n{"punctuate": 5}\n')
    engine = Engine(QUERY)
    assert [m["x"] for m in engine.push_all("p.jsonl")] == [1]
    assert engine.push_all([event(":a :p 3", 4)]) == []
    assert engine.counters.late == 1


def test_the_prefixes_of_the_query_are_known_in_its_stream() -> None:
    query = "PREFIX shop: <http://shop/> SELECT ?x { ?c shop:p ?x }"
    rows = [{"at": 1, "c": "a", "x": 1}]
    assert [m["x"] for m in run(query, rows, mapping={**MAPPING, "predicate": "shop:p"})] == [1]


def test_matches_show_times_as_what_was_pushed_spells_them() -> None:
    for given in (
        [{**ROWS[0], "at": "2026-01-30T10:00:00Z"}],
        pd.DataFrame([{**ROWS[0], "at": pd.Timestamp("2026-01-30 10:00")}]),
    ):
        engine = Engine(QUERY)
        found = [*engine.push_all(given, mapping=MAPPING), *engine.close()]
        assert [m.start for m in found] == ["2026-01-30T10:00:00Z"]
    milliseconds = [{**ROWS[0], "at": 1_769_767_200_000}]
    assert [m.start for m in run(QUERY, milliseconds, mapping={**MAPPING, "time_unit": "ms"})] == [1_769_767_200_000]


@pytest.mark.parametrize("wrong", [None, "soon", 2.5])
@pytest.mark.parametrize("options", [{}, {"revise": 1_000_000}])
def test_a_time_that_is_none_does_not_break_the_engine(wrong: Any, options: Any) -> None:
    engine = Engine(QUERY, **options)
    engine.push(EVENTS[0])
    with pytest.raises(TypeError, match=r"advance\(t\) is a time in whole microseconds, such as .*, not "):
        engine.advance(wrong)
    assert [m["x"] for m in (*engine.advance(np.int64(1_500_000)), *engine.close())] == [1]  # type: ignore[arg-type]


def test_options_of_an_engine_that_are_of_the_wrong_type_are_told() -> None:
    with pytest.raises(TypeError, match=r"start is a time in whole microseconds, such as .*, not 'now' \(str\)"):
        Engine(QUERY, start="now")  # type: ignore[arg-type]
    for start in (5_000_000, datetime(1970, 1, 1, 0, 0, 5), "1970-01-01T01:00:05+01:00"):
        assert Engine(QUERY, start=start).options.start == 5_000_000
    with pytest.raises(TypeError, match=r"the background is the paths of files, .*, not 3 \(int\)"):
        Engine(QUERY, background=3)


def test_a_stream_of_a_number_is_told_what_to_give() -> None:
    with pytest.raises(TypeError, match=r"a stream is read from a path, .*, not from 4 \(int\)"):
        read_stream(4)


def test_columns_of_a_file_that_is_not_there_are_named_in_vain() -> None:
    for name, told in (
        ("nofile.csv", "there is no such file"),
        (".", "this is a folder"),
        ("no*.csv", "no file matches"),
    ):
        with pytest.raises(ValueError, match=told):
            run(QUERY, name, time="at", subject="c")


# --- rows without a mapping ---

PAID = [
    {"at": 1, "card": "c1", "city": "Wien", "amount": 10},
    {"at": 2, "card": "c1", "city": "Graz", "amount": 500},
    {"at": 3, "card": "c2", "city": "Linz", "amount": 7},
]
PAID_QUERY = "SELECT ?city ?amount { ?row :city ?city ; :amount ?amount }"
PAID_RIGHT = [("Wien", 10, 1), ("Graz", 500, 2), ("Linz", 7, 3)]


def paid_file() -> str:
    pd.DataFrame(PAID).to_csv("paid.csv", index=False)
    return "paid.csv"


def cursor_of_tuples() -> Any:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (at, card, city, amount)")
    connection.executemany("INSERT INTO t VALUES (:at, :card, :city, :amount)", PAID)
    return connection.execute("SELECT * FROM t")


UNMAPPED: dict[str, Callable[[], Any]] = {
    "dicts": lambda: PAID,
    "an iterator of dicts": lambda: iter(PAID),
    "the rows of a CSV reader": lambda: csv.DictReader(opened(paid_file())),
    "a cursor of SQL": cursor_of_tuples,
    "a frame of pandas": lambda: pd.DataFrame(PAID),
    "a frame of polars": lambda: pl.DataFrame(PAID),
    "a table": lambda: pa.Table.from_pylist(PAID),
    "a reader of batches": lambda: pa.Table.from_pylist(PAID).to_reader(1),
    "a CSV file": paid_file,
}


@pytest.mark.parametrize("given", UNMAPPED.values(), ids=UNMAPPED)
def test_rows_are_read_by_the_columns_that_are_named(given: Callable[[], Any]) -> None:
    """A record is a row, so its columns join with no other row's; by card, they do."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = list(run(PAID_QUERY, given(), time="at", subject=None))
        assert [(m["city"], m["amount"], m.start) for m in found] == PAID_RIGHT
        assert [m["x"] for m in run("SELECT ?x { :c1 :amount ?x }", given(), time="at", subject="card")] == [10, 500]
        engine = Engine(PAID_QUERY)
        pushed = [*engine.push_all(given(), time="at", subject=None), *engine.close()]
        assert [(m["city"], m["amount"], m.start) for m in pushed] == PAID_RIGHT


@pytest.mark.parametrize("name", UNMAPPED)
def test_what_is_not_named_is_drafted_and_told_in_one_line(name: str) -> None:
    told = r"there is no mapping, so one is drafted: time \{at\}, subject :\{card\}$"
    with pytest.warns(UserWarning, match=told):
        assert [m["x"] for m in run("SELECT ?x { :c1 :amount ?x }", UNMAPPED[name]())] == [10, 500]


def test_an_engine_drafts_nothing_because_the_next_rows_might_be_drafted_differently() -> None:
    for given, told in (
        (PAID, "give the names of their columns, as time='at', subject='card', or mapping=…"),
        (iter(PAID), "give records with the names of their columns, as time='at', subject='card', or mapping=…"),
        (pd.DataFrame(PAID), "give a mapping, for example mapping={'time': '{at}'"),
        (paid_file(), "a CSV stream needs a mapping from columns to triples"),
    ):
        with pytest.raises((TypeError, ValueError), match=re.escape(told)):
            Engine(PAID_QUERY).push_all(given)
    with pytest.raises(TypeError, match=r"name both columns, as time='at', subject='sensor'"):
        Engine(PAID_QUERY).push_all(PAID, time="at")


NAMED_WRONGLY: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no such column": (PAID, {"time": "when"}, "the records: there is no column 'when' for the time"),
    "a column nearly named": (pd.DataFrame(PAID), {"subject": "crad"}, "did you mean 'card'?"),
    "a mapping besides": (PAID, {"time": "at", "mapping": MAPPING}, "leave time= and subject= out"),
    "events": (EVENTS, {"time": "at"}, "events are taken as they are"),
    "an open file": (io.BytesIO(b"at,x"), {"time": "at"}, "columns are named for the path of a file"),
    "triples": ("t.jsonl", {"time": "at"}, "these lines have their triples"),
    "a pattern": ("part*.jsonl", {"time": "at"}, "part1.jsonl: these lines have their triples"),
}


@pytest.mark.parametrize(("given", "named", "told"), NAMED_WRONGLY.values(), ids=NAMED_WRONGLY)
def test_columns_that_cannot_be_named_are_told(given: Any, named: dict[str, Any], told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(told)):
        list(run(PAID_QUERY, given, **named))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: run(QUERY, ROWS, tiem="at"), "run has no option 'tiem'; did you mean 'time'?"),
        (lambda: run(QUERY, EVENTS, latness=5), "run has no option 'latness'; did you mean 'lateness'?"),
        (lambda: Engine(QUERY, backgroud=[]), "Engine has no option 'backgroud'; did you mean 'background'?"),
        (lambda: Engine(QUERY).push({"at": 1}, subjct="c"), "push has no option 'subjct'; did you mean 'subject'?"),
        (lambda: Engine(QUERY).push_all([], tim="c"), "push_all has no option 'tim'; did you mean 'time'?"),
        (lambda: read_stream("t.csv", maping={}), "read_stream has no option 'maping'; did you mean 'mapping'?"),
        (lambda: Engine(QUERY, checkpoint="run/"), "Engine has no option 'checkpoint'; there are background, "),
    ],
)
def test_an_option_that_is_not_known_is_refused_with_the_one_that_is_meant(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(TypeError, match=re.escape(told)):
        call()
