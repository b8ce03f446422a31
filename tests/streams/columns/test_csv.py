"""CSV in columns gives the events, the messages and the counts of the reader of rows, whatever the file."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py.streams import Clock, StreamError, draft_times, read_stream
from etalis_py.streams.columns import delimited
from etalis_py.streams.columns.csv_cells import cut_csv
from etalis_py.streams.columns.gather_terms import guesses
from etalis_py.streams.csv_rows import LONGEST_CELL, csv_rows
from etalis_py.streams.templates import guess
from tests.draws import examples

from .reading import outcome

MAPPINGS: dict[str, dict[str, Any]] = {
    "one triple": {"subject": "<urn:{a}>", "predicate": "<urn:p>", "object": "{b}", "time": "{t}"},
    "several": {
        "time": ["{t}", "{u}"],
        "graph": "<urn:g{a}>",
        "missing": ["n/a"],
        "triple": [
            {"subject": "<urn:{a}/{b}>", "predicate": "<urn:p>", "object": '"{b}"@en'},
            {"predicate": "<urn:{b}>", "object": "x{a} {b}"},
            {"predicate": "<urn:p>", "object": '"{b}"@en'},
        ],
    },
    "formatted": {
        "subject": ":{a}", "predicate": ":p", "object": '"{b}"^^xsd:decimal', "time": "{t}", "time_format": "%d.%m.%Y",
        "stream": "<urn:s{b}>",
    },
    "local": {
        "subject": ":{a}", "predicate": ":p", "object": ":{b}", "time": "{t} {u}", "time_format": "%d.%m.%Y %H:%M:%S",
        "time_zone": "Europe/Vienna",
    },
    "blank": {"subject": "_:{a}", "predicate": ":p", "object": "{b}", "time": "{t}"},
    "nodes": {
        "time": "{t}", "rest": True, "missing": ["n/a"],
        "triple": [
            {"subject": "_:row", "predicate": ":z", "object": '"{b}"@en'},
            {"predicate": ":c", "object": ":{a}"},
        ],
    },
    "arriving": {"subject": ":{a}", "predicate": ":p", "object": "{b}"},
}  # fmt: skip
CELLS = [
    "acme",
    "12",
    "01",
    "1.50",
    "-.5",
    "1e5",
    "",
    " ",
    "n/a",
    "a b",
    " 7",
    "ä",
    "\x85",
    "x\ty",
    'say ""x""',
    "<>",
    "12 000",
    "\x1c1",
]
TIMES = [
    "5", "6", "7.5", "-3", "99999999999999", "1/4", "", "soon", "2026-01-31", "2026-02-30", "2026-01-31T10:00:00Z",
    "2026-01-31T10:00:00", "2026-01-31T10:00:00.25+01:00", "31.01.2026", "1.2.2026", "30.02.2026", "10:00:00",
    "02:30:00",
]  # fmt: skip
ONE = MAPPINGS["one triple"]
ENDS = ["\n", "\r\n", "\r", "\n\n", ",extra\n", '"\n', ',"quo\nted"\n', "\0\n"]


def check(text: str, mapping: dict[str, Any], **options: Any) -> None:
    def open_text() -> Any:
        return read_stream(
            io.BytesIO(text.encode()), format="csv", mapping=mapping, now=lambda: 1000, time_unit="us", **options
        )

    assert outcome(open_text, bulk=True) == outcome(open_text, bulk=False)


@pytest.mark.parametrize("name", MAPPINGS)
@pytest.mark.parametrize("on_error", ["stop", "skip"])
@settings(max_examples=examples(2 / 5))
@given(data=st.data())
def test_columns_read_what_rows_read(name: str, on_error: str, data: st.DataObject) -> None:
    cells = st.sampled_from(CELLS)
    times = st.sampled_from(data.draw(st.sampled_from([TIMES, TIMES[:3], TIMES[8:11], TIMES[13:16]])))
    usual = st.sampled_from(["\n"] * 20 + ENDS)
    row = st.tuples(cells, cells, times, times, usual).map(
        lambda r: ",".join(f'"{c}"' if '"' in c else c for c in r[:4]) + r[4]
    )
    rows = data.draw(st.lists(row, max_size=12))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "PART", data.draw(st.sampled_from([40, delimited.PART])))
        check("a,b,t,u\n" + "".join(rows), MAPPINGS[name], on_error=on_error)


LONG = LONGEST_CELL + 1


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize("size", [200_000, LONGEST_CELL, LONG])
@pytest.mark.parametrize("quoted", [True, False])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_long_cell_is_read_up_to_a_limit(
    on_error: str, size: int, quoted: bool, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "ready", lambda: compiled)
    text = "a,b,t,u\n1,2,5,x\n2,3,6," + ('"' + "x" * size + '"' if quoted else "x" * size) + "\n3,4,7,x\n"

    def open_text() -> Any:
        return read_stream(io.BytesIO(text.encode()), format="csv", mapping=ONE, on_error=on_error)

    found = outcome(open_text, bulk=True)
    assert found == outcome(open_text, bulk=False)
    assert len(found[0]) == (3 if size < LONG else 2 if on_error == "skip" else 1)


@pytest.mark.parametrize(
    "line", ["", "7,8,9,10,11", '"7\n7",8,9,10', "7,8", '"7",7,8,9', "4,5,6,7\r4,5,7,8", "\ufeff1,2,3,4"]
)
def test_until_loops_are_compiled_the_rows_are_the_same(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "ready", lambda: False)
    text = "a,b,t,u\n1,2,3,4\n2,3,4,5\n" + line + "\n5,6,soon,8\n6,7,8,9"
    check(text, ONE, on_error="skip")
    check(text.replace(line + "\n", ""), MAPPINGS["several"], on_error="skip")


def test_a_time_that_is_none_is_refused_without_trying_every_format(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    monkeypatch.setattr(draft_times, "_first_form", lambda texts, forms: tried.append(texts))
    rows = "".join(f"a,{n},{n if n < 10 else f'n/a {n}'}\n" for n in range(200))
    check("a,b,t\n" + rows, ONE, on_error="skip")
    assert not tried


@pytest.mark.parametrize("end", ["", " ", "e5", "E-12", "e", ".", ".5", "x", "\u00e9", '"', "\\", "\t"])
def test_texts_are_taken_for_the_numbers_that_they_look_like(end: str) -> None:
    heads = ["", " ", "+", "-", ".", "1", "-12", "+.", "1.", "1.5", "-.5", "1.5e3", "a", "5 6", "--1"]
    texts = [head + end for head in heads]
    found, sure = guesses(pa.array(texts))
    for text, literal, certain in zip(texts, found.to_pylist(), sure.to_pylist(), strict=True):
        assert literal == (guess(text) if certain else "")
        assert certain == (
            text.isascii() and text.isprintable() and text == text.strip() != "" and not {*text} & {*'"\\'}
        )


def test_cells_that_all_differ_are_those_of_rows() -> None:
    rows = "".join(f"c{n},{n if n % 3 else n / 4},{n}\n" if n % 1000 else ' ,"n/a ",7\n' for n in range(1, 12_000))
    check("a,b,t\n" + rows, ONE | {"missing": ["n/a"], "graph": "<urn:g:{t}>"})


@settings(max_examples=examples(2))
@given(
    text=st.lists(st.sampled_from(["a", "é", ",", '"', '""', "\r", "\n", "\r\n", '","', "\0"]), max_size=20),
    used=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_rows_are_cut_as_the_csv_module_cuts_them(text: list[str], used: tuple[bool, ...]) -> None:
    lines = "".join(text) + "\n"
    cells = cut_csv(lines.encode(), 1, ",", used)
    columns = [cells.column(place).to_pylist() if given else None for place, given in enumerate(used)]
    whole = lines.encode()[: cells.rest].decode()
    expected = list(csv_rows([(whole, 1)], ","))
    assert len(cells.rows) == len(expected)
    for n, row in enumerate(expected):
        found = list(csv_rows([(cells.row(n)[0].decode(), cells.row(n)[1])], ","))
        assert [(one.line, str(one.cells)) for one in found] == [(row.line, str(row.cells))]
        assert bool(cells.odd[n]) == (not isinstance(row.cells, list) or len(row.cells) < 3)
        for column, cell in zip(columns, row.cells if not cells.odd[n] else (), strict=False):
            assert column is None or column[n] == cell
    if cells.rest < len(lines.encode()):
        (open_row,) = csv_rows([(lines.encode()[cells.rest :].decode(), cells.rest_line)], ",")
        assert "unexpected end of data" in str(open_row.cells)


def test_rows_that_are_none_have_no_others_read_with_them() -> None:
    rows = [f"a,{n},{n},{n}" if n % 10 else "7,8" for n in range(3000)]
    text = "a,b,t,u\n" + "\n".join(rows) + "\n"
    handed, read = [], delimited.one_row

    def counted(lines: str, number: int, delimiter: str) -> Any:
        handed.append(len(lines))
        return read(lines, number, delimiter)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "one_row", counted)
        stream = read_stream(io.BytesIO(text.encode()), format="csv", mapping=ONE, on_error="skip")
        assert sum(map(len, stream.chunks(large=True))) == 2700
    assert len(handed) == 301  # and the first row, which shows what the times are
    assert sum(handed) < 2000


@pytest.mark.parametrize("block", [100, 1000])
def test_a_row_that_two_blocks_share_stays_in_columns(block: int) -> None:
    text = "a,b,t\n" + "".join(f'"a\n{n}","say ""{n}""",{n}\n' for n in range(400))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "BLOCK", block)
        check(text, ONE)
        chunks = list(read_stream(io.BytesIO(text.encode()), format="csv", mapping=ONE).chunks(large=True))
    assert sum(len(chunk) for chunk in chunks if not isinstance(chunk, list)) == 399


@pytest.mark.parametrize("line", ["", "7,8,9,10,11", '"7\n7",8,9,10', "7,8", '"7"7,8,9,10'])
def test_an_unusual_line_does_not_take_its_neighbours_out_of_columns(line: str) -> None:
    rows = [f"a,{n},{n},{n}" for n in range(300)]
    text = "a,b,t,u\n" + "\n".join([*rows[:150], line, *rows[150:]]) + "\n"
    mapping = MAPPINGS["one triple"]
    stream = read_stream(io.BytesIO(text.encode()), format="csv", mapping=mapping, on_error="skip")
    assert [type(chunk).__name__ for chunk in stream.chunks(large=True)] == ["list", "RecordBatch"]
    check(text, mapping, on_error="skip")


@pytest.mark.parametrize(
    "header", ['"a","b",t,u\n', "\ufeffa, b,t,u\n", "\na,b,t,u\n", "a,b,t,t,u\n", "x,y\n", '"a\nb",b\n', ""]
)
def test_odd_headers(header: str) -> None:
    check(header + "1,2,3,4\n2,3,4,5,6\n", MAPPINGS["one triple"])


def test_columns_without_a_header_and_tabs() -> None:
    check("1;2;3\n", MAPPINGS["one triple"] | {"columns": ["a", "b", "t"], "delimiter": ";"})


def test_a_large_file_goes_through_columns() -> None:
    rows = "".join(f"c{i % 50},{i * 7 % 1000},{i}\n" for i in range(20_000))
    found, counters, clock, _ = outcome(
        lambda: read_stream(io.BytesIO(b"a,b,t\n" + rows.encode()), format="csv", mapping=MAPPINGS["one triple"]),
        bulk=True,
    )
    assert (len(found), counters.triples, clock.unit) == (20_000, 20_000, "s")


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize("bad", [b"3,4,7,\xff\n", b"3,4,7,ok\n\xc3,4,8,ok\n", b"3,4,soon,\xff\n"])
def test_a_row_that_is_not_utf_8_is_refused_also_where_nobody_maps_it(on_error: Any, bad: bytes) -> None:
    data = b"a,b,t,unused\n1,2,5,ok\n2,3,6,ok\n" + bad

    def open_bytes() -> Any:
        return read_stream(io.BytesIO(data), format="csv", mapping=ONE, on_error=on_error)

    in_columns = outcome(open_bytes, bulk=True)
    assert in_columns == outcome(open_bytes, bulk=False)
    assert in_columns[1].errors == (on_error == "skip") or "is not UTF-8" in in_columns[3]


@pytest.mark.parametrize("block", [1, 40, 1 << 22])
def test_a_line_that_is_not_utf_8_is_counted_after_returns_and_loses_no_line_before_it(block: int) -> None:
    """A carriage return alone ends a line: the bad one is line 4, and line 3 is read."""
    data = b"a,b,t\n1,2,5\r3,4,6\r\xff,4,7\n5,6,8\n7,8,soon\n"
    letters: list[tuple[int, str]] = []

    class Letters:
        def refused(self, error: StreamError) -> None:
            letters.append((error.line, error.reason.partition(":")[0]))

    def open_bytes() -> Any:
        return read_stream(io.BytesIO(data), format="csv", mapping=ONE, on_error="skip", dead_letters=Letters())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "BLOCK", block)
        for bulk in (True, False):
            letters.clear()
            items = outcome(open_bytes, bulk=bulk)[0]
            assert len(items) == 3
            assert letters == [(4, "byte 1 of the line is not UTF-8"), (6, "the time cannot be read")]


def test_the_mark_of_utf_8_is_dropped_only_at_the_beginning_of_a_file() -> None:
    data = "\ufeffa,b,t\n\ufeff,x,5\n\ufeffy,x,6\n"
    with pytest.MonkeyPatch.context() as patch:
        for block in (1, 1 << 22):
            patch.setattr(delimited, "BLOCK", block)
            check(data, ONE)
            items = list(read_stream(io.BytesIO(data.encode()), format="csv", mapping=ONE))
            assert [item.triples[0][0] for item in items] == ["<urn:%EF%BB%BF>", "<urn:%EF%BB%BFy>"]


def test_a_time_format_has_no_place_in_a_stream_timed_by_numbers() -> None:
    text = "a,b,t\n1,2,31.01.2026\n"
    check(text, MAPPINGS["formatted"], clock=Clock("integer"))
    with pytest.raises(StreamError, match="makes dates, and the clock of this stream counts plain numbers"):
        list(
            read_stream(
                io.BytesIO(text.encode()), format="csv", mapping=MAPPINGS["formatted"], clock=Clock("integer")
            ).chunks(large=True)
        )


@pytest.mark.parametrize("block", [1, 20, 1 << 22])
def test_a_return_alone_ends_a_line_in_messages(block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "BLOCK", block)
        text = "a,b,t\n1,2,5\r2,3,6\n1,2,soon\n"
        check(text, ONE)
        with pytest.raises(StreamError, match="<input>:4: "):
            list(read_stream(io.BytesIO(text.encode()), format="csv", mapping=ONE).chunks(large=True))
