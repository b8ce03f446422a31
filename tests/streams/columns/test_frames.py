"""Frames as streams: the flat form, a mapping over native columns, and what is said of a table that is neither."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from etalis_rules.terms import XSD, literal
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import ipc, parquet

from etalis_py import Engine, compile, run
from etalis_py.events import Event, spelling
from etalis_py.streams import Clock, StreamError, read_stream
from etalis_py.streams.columns import canonical
from etalis_py.streams.columns.frames import _Rows
from etalis_py.streams.columns.mapped_tables import _comparable
from etalis_py.streams.columns.native_literals import plain
from etalis_py.streams.csv_mapping import read_mapping
from tests.draws import examples

from .reading import outcome

FLAT = {"end": [1, 2], "s": ["<urn:a>", "<urn:a>"], "p": ["<urn:p>"] * 2, "o": ['"1"', "<urn:b>"]}
PRICES = {
    "at": [datetime(2026, 1, 31, 10, 0, second, tzinfo=UTC) for second in (0, 7)],
    "company": ["acme", "b b"],
    "price": [10, 12],
}
MAPPING = {"subject": ":{company}", "predicate": ":price", "object": "{price}", "time": "{at}"}
EX = "http://example.org/"


def price(company: str, value: int, time: int) -> Event:
    triple = (f"<{EX}{company}>", f"<{EX}price>", literal(str(value), XSD + "integer"))
    return Event(time, time, (triple,))


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame, lambda c: pa.table(c).to_reader()])
def test_any_frame_is_read_by_a_mapping(make) -> None:
    stream = read_stream(make(PRICES), mapping=MAPPING)
    start = 1_769_853_600_000_000
    assert list(stream) == [price("acme", 10, start), price("b%20b", 12, start + 7_000_000)]
    assert stream.clock == Clock("datetime")
    assert stream.counters.events == 2


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
def test_the_flat_form_is_read_as_it_is(make) -> None:
    stream = read_stream(make(FLAT), name="urn:s")
    assert list(stream) == [
        Event(1, 1, (("<urn:a>", "<urn:p>", '"1"'),), "<urn:s>"),
        Event(2, 2, (("<urn:a>", "<urn:p>", "<urn:b>"),), "<urn:s>"),
    ]
    assert stream.clock == Clock("integer", "us")


@pytest.mark.parametrize("key", ["time", "start"])
def test_a_frame_with_the_keys_of_json_lines_is_refused(key: str, tmp_path: Path) -> None:
    """Its triples were a text, and the query found nothing in them; a list of dicts is read as JSON lines are."""
    frame = pd.DataFrame({key: [1, 2], "triples": [":c :p 5 .", ":c :p 6 ."]})
    frame.to_parquet(tmp_path / "a.parquet")
    for rows in (frame, pl.from_pandas(frame), tmp_path / "a.parquet"):
        with pytest.raises(StreamError, match="its rows have a time and triples, as JSON lines do") as raised:
            run("SELECT ?x { ?c :p ?x }", rows)
    assert raised.value.source == str(tmp_path / "a.parquet")
    named = [match["x"] for match in run("SELECT ?x { ?c :triples ?x }", frame, time=key, subject="triples")]
    assert named == [":c :p 5 .", ":c :p 6 ."]
    if key == "time":
        assert [match["x"] for match in run("SELECT ?x { ?c :p ?x }", frame.to_dict("records"))] == [5, 6]


def test_a_compiled_loop_tells_the_same_literals_as_the_pattern() -> None:
    xsd = "http://www.w3.org/2001/XMLSchema#"
    texts = ["", "1", "a b", 'a"b', "a\\b", "ä", "~", "\x7f", "\t", "1^^", '"', '""']
    tails = ["", *(f"^^<{xsd}{name}>" for name in ("integer", "double", "date", "int", "string", "dates")), "@en", "^^"]
    terms = [f'"{text}"{tail}' for text in texts for tail in tails] + ["", '"', "<urn:a>", '"a', f'a"^^<{xsd}date>']
    expected = [re.match(spelling.LITERAL, term) is not None and "\n" not in term for term in terms]
    assert canonical.plain_literals(pa.array(terms)).tolist() == expected
    assert canonical.plain_literals(pa.array(["cut off", *terms])[1:]).tolist() == expected


def test_terms_of_the_flat_form_become_canonical() -> None:
    terms = [f'"a"^^<{XSD}string>', '"\\u0061"', '"x"@EN', "_:b", '"ä"']
    frame = pa.table(
        {"end": range(5), "s": ["<urn:a>"] * 5, "p": ["<urn:p>"] * 5, "o": pa.array(terms).dictionary_encode()}
    )
    assert [event.triples[0][2] for event in read_stream(frame)] == ['"a"', '"a"', '"x"@en', "_:b", '"ä"']


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"s": ["acme", "<urn:a>"]}, "the table:1: 'acme' is no subject in N-Triples spelling"),
        ({"o": ["12", "<urn:a>"]}, "the table:1: '12' is no object"),
        ({"o": ["<urn:a>", "<urn:a> . <urn:s> <urn:p> <urn:o>"]}, "the table:2: '<urn:a> . <urn:s> "),
        ({"o": [1, 2]}, "the column 'o' is of type int64, but terms are texts"),
        ({"p": ["<urn:p>", None]}, "the table:2: there is no predicate"),
        ({"end": ["1", "2"]}, "the column 'end' is of type string"),
        ({"end": [1, None]}, "the table:2: the time 'end' is null"),
        ({"start": [1, 3]}, "the table:2: the event ends before it starts"),
        ({"end": pa.array([1500, 2001], pa.timestamp("ns"))}, "the table:1: the time 'end' is 1970"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_flat_frame_is_said(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(StreamError) as caught:
        list(read_stream(pa.table(FLAT | change)))
    assert str(caught.value).startswith((reason, f"the table: {reason}"))


def test_what_is_no_frame_of_events_shows_a_mapping_that_works() -> None:
    with pytest.raises(StreamError, match="it has no end, no s, no p, no o") as caught:
        list(read_stream(pa.table(PRICES)))
    shown = eval(caught.value.hint.partition("mapping=")[2].splitlines()[0])
    assert [event.triples for event in read_stream(pa.table(PRICES), mapping=shown)] == [
        price("acme", 10, 0).triples,
        price("b%20b", 12, 0).triples,
    ]


def test_no_batch_of_a_parquet_file_carries_the_texts_of_the_batches_before(tmp_path) -> None:
    size, path = 100_000, tmp_path / "many.parquet"
    texts = [f'"{n} of many texts that are all different"' for n in range(size)]
    table = {"end": range(size), "s": ["<urn:a>"] * size, "p": ["<urn:p>"] * size, "o": texts}
    parquet.write_table(pa.table({name: list(column) for name, column in table.items()}), path)
    found = []
    with read_stream(path) as stream:
        for chunk in stream.chunks(large=True):
            for name in "spo":
                column = chunk.column(name)
                if pa.types.is_dictionary(column.type):
                    assert len(column.dictionary) <= len(column)
            assert pa.types.is_dictionary(chunk.column("s").type)
            found += chunk.column("o").to_pylist()
    assert found == texts


@pytest.mark.parametrize("write", ["parquet", "file", "stream"])
def test_files_of_columns(write: str, tmp_path) -> None:
    table = pa.table(PRICES)
    path = tmp_path / ("prices.parquet" if write == "parquet" else "prices.arrow")
    if write == "parquet":
        parquet.write_table(table, path)
    else:
        with (ipc.new_file if write == "file" else ipc.new_stream)(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=1)
    expected = list(read_stream(table, mapping=MAPPING))
    assert list(read_stream(path, mapping=MAPPING)) == expected
    with path.open("rb") as file:
        assert list(read_stream(file, mapping=MAPPING)) == expected
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StreamError, match=r"prices\.(parquet|arrow)"):
        list(read_stream(path, mapping=MAPPING))


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        (pa.array([0.5, 1.0]), "'event' is of type double"),
        (pa.array(["a", "b"]), "'event' is of type string"),
        (pa.array([1, None]), "no number in the column 'event'"),
    ],
)
def test_events_are_numbered_by_whole_numbers(numbers: pa.Array, reason: str) -> None:
    with pytest.raises(StreamError, match=reason):
        list(read_stream(pa.table({**FLAT, "event": numbers})))


@pytest.mark.parametrize("number", [1e300, -1e300, 1e17, float("inf"), float("nan")])
def test_a_number_that_no_time_is_leaves_its_row_out(number: float) -> None:
    table = pa.table({"at": [1.5, number]})
    mapping = {"time": "{at}", "subject": "<urn:a>", "predicate": "<urn:p>", "object": "<urn:b>"}
    stream = read_stream(table, mapping=mapping, on_error="skip")
    assert [event.end for event in stream] == [1_500_000]
    assert stream.counters.errors == 1
    with pytest.raises(StreamError, match="the time cannot be read"):
        list(read_stream(table, mapping=mapping))


NATIVE = {
    "whole": (st.integers(-(2**40), 2**40), pa.int64()),
    "text": (st.sampled_from(["acme", "12", "", " ", "a b", "ä", 'say "x"', "2026-01-31", "1/4"]), pa.string()),
    "real": (st.sampled_from([1.5, -0.25, 7.0, 1e300, float("nan")]), pa.float64()),
    "decimal": (st.sampled_from([Decimal("1.50"), Decimal("7.00")]), pa.decimal128(9, 2)),
    "moment": (st.integers(-(2**60), 2**60), pa.timestamp("us", "UTC")),
    "local": (st.integers(0, 2**61), pa.timestamp("ns")),
    "day": (st.integers(-100_000, 100_000), pa.date32()),
    "yes": (st.booleans(), pa.bool_()),
}  # fmt: skip


@settings(max_examples=examples(2 / 5))
@given(data=st.data())
def test_a_frame_gives_what_its_rows_give(data: st.DataObject) -> None:
    names = st.sampled_from(list(NATIVE))
    size = data.draw(st.integers(0, 12))
    table = pa.table(
        {
            name: pa.array(data.draw(st.lists(st.none() | values, min_size=size, max_size=size)), kind)
            for name, (values, kind) in NATIVE.items()
        }
    )
    times = data.draw(st.lists(names.map("{{{}}}".format), min_size=1, max_size=2))
    objects = names.flatmap(
        lambda n: st.sampled_from([f"{{{n}}}", f'"{{{n}}}"^^xsd:decimal', f"<urn:{{{n}}}>", f"x{{{n}}}"])
    )
    mapping = {
        "time": times,
        "triple": [
            {"subject": f"<urn:{{{data.draw(names)}}}>", "predicate": "<urn:p>", "object": data.draw(objects)},
            {"predicate": "<urn:p>", "object": data.draw(objects)},
        ],
    }

    def by_rows() -> Any:
        stream = read_stream(table, mapping=mapping, on_error="skip")
        context, read = stream._contexts[0], read_mapping(mapping)
        native = {n: plain(table.column(n).combine_chunks()) for n in read.used}
        stream._items = _Rows(native, 1, read, context)(range(size))
        return stream

    assert outcome(by_rows, bulk=False) == outcome(
        lambda: read_stream(table, mapping=mapping, on_error="skip"), bulk=True
    )


def test_a_program_runs_over_a_frame() -> None:
    program = compile("SELECT ?x ?y { { ?c :price ?x } SEQ { ?d :price ?y } }")
    (match,) = run(program, pl.DataFrame(PRICES), mapping=MAPPING)
    assert (match["x"], match["y"], match.end) == (10, 12, "2026-01-31T10:00:07Z")
    with pytest.raises(StreamError, match="mapping="):
        Engine(program).push_all(pd.DataFrame(PRICES))


def test_a_time_of_two_columns_may_have_numbers() -> None:
    frame = pa.table({"t": [1, 1, 1], "u": [5, 6, 7], "company": ["a"] * 3, "price": [1] * 3})
    items = list(read_stream(frame, mapping=MAPPING | {"time": "{t}{u}"}, clock=Clock("integer")))
    assert [item.end for item in items] == [15_000_000, 16_000_000, 17_000_000]


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (pd.DataFrame({"at": [1, 2], "c": ["a", "b"], "v": [1, "x"]}), "Conversion failed for column v"),
        (pd.DataFrame([[1, "a", 2, 3]], columns=["at", "c", "v", "v"]), "Duplicate column names found"),
    ],
    ids=["values of several types", "two columns of one name"],
)
def test_columns_that_arrow_cannot_take_are_told_with_what_to_do(frame: pd.DataFrame, told: str) -> None:
    with pytest.raises(StreamError, match=rf"^the table: its columns cannot be taken: .*{told}.*\n  give each a name"):
        run("SELECT ?x { ?c :v ?x }", frame, time="at", subject="c")


def test_a_row_of_a_frame_without_a_time_is_told_how_to_be_left_out() -> None:
    frame = pd.DataFrame({"at": pd.to_datetime(["2026-01-01", None]), "c": ["a", "b"], "v": [1, 2]})
    mapping = {"time": "{at}", "subject": ":{c}", "predicate": ":v", "object": "{v}"}
    with pytest.raises(StreamError, match=r'the table:2: the time is empty\n.*\n.*on_error="skip" of read_stream'):
        list(run("SELECT ?x { ?c :v ?x }", frame, mapping=mapping))
    found = run("SELECT ?x { ?c :v ?x }", read_stream(frame, mapping=mapping, on_error="skip"))
    assert [m["x"] for m in found] == [1]


NESTED = pa.table(
    {
        "at": [1, 2],
        "c": ["a", "b"],
        "v": [3, 4],
        "inside": [{"x": 1}, {"x": 2}],
        "many": [[1, 2], []],
        "raw": [b"x", b"y"],
    }
)


@pytest.mark.parametrize("named", [{"time": "at", "subject": "c"}, {"mapping": {**MAPPING, "rest": True}}, {}])
@pytest.mark.parametrize("file", [True, False])
@pytest.mark.filterwarnings("ignore:.*there is no mapping")
def test_columns_without_literals_are_left_out_and_told(named: dict[str, Any], file: bool, tmp_path: Path) -> None:
    """As lists in JSON are; a column that a mapping names is an error."""
    table: Any = NESTED
    if "mapping" in named:
        table = NESTED.rename_columns(["at", "company", "price", "inside", "many", "raw"])
    if file:
        parquet.write_table(table, tmp_path / "nested.parquet")
        table = tmp_path / "nested.parquet"
    for executor in ("rows", "columns"):
        found = run("SELECT ?x { ?c ?p ?x FILTER (isNumeric(?x)) }", table, executor=executor, **named)
        assert [m["x"] for m in found] == [3, 4]
        [told] = found.warnings
        assert told.endswith(
            "'inside' is a column of struct<x: int64>, whose values are no literals, and is left out, "
            "as are many, raw; make columns of values of it"
        )
    wanted = {"time": "{at}", "subject": ":k", "predicate": ":v", "object": "{inside}"}
    with pytest.raises(StreamError, match="the column 'inside' cannot be used: values of type struct<x: int64>"):
        list(run("SELECT ?x { ?c ?p ?x }", table, mapping=wanted))


@pytest.mark.parametrize("name", [f"decimal{bits}" for bits in (32, 64, 128, 256) if hasattr(pa, f"decimal{bits}")])
def test_decimals_of_every_size_are_literals(name: str) -> None:
    values = pa.array([Decimal("1.50"), None], getattr(pa, name)(5, 2))
    table = pa.table({"at": [1, 2], "c": ["a", "b"], "v": values})
    found = run("SELECT ?x { ?c :v ?x }", table, time="at", subject="c")
    assert [m.bindings["x"] for m in found] == [literal("1.5", XSD + "decimal")]


def test_a_column_of_periods_is_left_out_and_told() -> None:
    """Pandas makes Arrow's integers of them, which count months; those of ``arrow.bool8`` are truth values."""
    months = pd.DataFrame({"at": [1, 2], "c": ["a", "b"], "v": pd.period_range("2024-01", periods=2, freq="M")})
    found = run("SELECT ?x { ?c :v ?x }", months.assign(w=1), time="at", subject="c")
    assert list(found) == []
    assert "'v' is a column of extension<pandas.period" in found.warnings[0]
    wanted = {"time": "{at}", "subject": ":{c}", "predicate": ":v", "object": "{v}"}
    with pytest.raises(StreamError, match=r"the column 'v' cannot be used: values of type extension<pandas\.period"):
        list(run("SELECT ?x { ?c :v ?x }", months, mapping=wanted))
    truths = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8()))
    table = pa.table({"at": [1, 2, 3], "c": ["a", "b", "c"], "v": truths})
    assert [m["x"] for m in run("SELECT ?x { ?c :v ?x }", table, time="at", subject="c")] == [True, False]


def test_integers_beyond_64_bits_are_told_with_what_to_do() -> None:
    frame = pd.DataFrame({"at": [1, 2], "c": ["a", "b"], "v": pd.Series([1, 2**70], dtype=object)})
    with pytest.raises(StreamError, match=r"does not fit into 64 bits\n  make decimals of it"):
        run("SELECT ?x { ?c :v ?x }", frame, time="at", subject="c")
    frame["v"] = frame["v"].map(Decimal)
    assert [m["x"] for m in run("SELECT ?x { ?c :v ?x }", frame, time="at", subject="c")] == [1, 2**70]


@pytest.mark.parametrize("column", ["at", "v"])
def test_datetimes_among_dates_do_not_lose_their_time_of_day(column: str) -> None:
    """Arrow takes a column for dates if its first value is one."""
    mixed = pd.Series([date(2026, 1, 1), pd.NaT, datetime(2026, 1, 2, 10)], dtype=object)
    frame = pd.DataFrame({"at": [1, 2, 3], "c": ["a"] * 3, "v": [1, 2, 3]}).assign(**{column: mixed})
    with pytest.raises(StreamError, match=rf"the column '{column}' has dates and datetimes"):
        run("SELECT ?x { ?c :v ?x }", frame, time="at", subject="c")
    days = frame.assign(at=[1, 2, 3], v=pd.Series([date(2026, 1, 1), pd.NaT, None], dtype=object))
    found = run("SELECT ?x { ?c :v ?x }", days, time="at", subject="c")
    assert [m.bindings["x"] for m in found] == [literal("2026-01-01", XSD + "date")]


def test_a_time_that_has_no_literals_is_told_by_its_type() -> None:
    days = pd.DataFrame({"at": pd.period_range("2026-01-01", periods=2, freq="D"), "c": ["a", "b"], "v": [1, 2]})
    with pytest.raises(StreamError, match=r"(?s)the column 'at' is of type extension<pandas\.period.*to_timestamp\(\)"):
        run("SELECT ?x { ?c :v ?x }", days, time="at", subject="c")
    found = run("SELECT ?x { ?c :v ?x }", days.assign(at=days["at"].dt.to_timestamp()), time="at", subject="c")
    assert [m.start for m in found] == ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]


def test_a_lazy_frame_is_to_be_collected() -> None:
    lazy = pl.DataFrame({"at": [1], "c": ["a"], "v": [1]}).lazy()
    with pytest.raises(TypeError, match=r"a LazyFrame of polars has no rows yet: give frame\.collect\(\)"):
        run("SELECT ?x { ?c :v ?x }", lazy, time="at", subject="c")


def test_a_table_with_many_columns_is_not_compared_pair_by_pair() -> None:
    """Triples are compared where their predicates may be the same: each pair of 300 columns would be 45,000 columns."""
    wide = [{"subject": ":{c}", "predicate": f":p{i}", "object": f"{{v{i}}}"} for i in range(300)]
    assert _comparable(read_mapping({"time": "{at}", "triple": wide})) == []
    mixed = [
        {"subject": ":{c}", "predicate": predicate, "object": f"{{v{i}}}"}
        for i, predicate in enumerate((":p", ":q", ":p", ":{c}", ":q"))
    ]
    mapping = {"time": "{at}", "triple": mixed}
    assert _comparable(read_mapping(mapping)) == [(2, 0), (3, 0), (3, 1), (3, 2), (4, 1), (4, 3)]
    table = pa.table({"at": [1, 2, 3], "c": ["p", "q", "r"]} | {f"v{i}": [1, 1, 1 + i] for i in range(5)})
    query = "SELECT ?s ?p ?o { ?s ?p ?o }"
    columns, rows = (run(query, read_stream(table, mapping=mapping), executor=way) for way in ("columns", "rows"))
    found = [m.bindings for m in columns]
    assert found == [m.bindings for m in rows]
    assert len(found) == 2 + 2 + 5
