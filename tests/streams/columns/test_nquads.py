"""N-Quads in columns give the events, the messages and the counts of the reader of rows, whatever the document."""

from __future__ import annotations

import io
from itertools import count
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from etalis_rules.terms import literal, parts
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py.events.clock import render_datetime
from etalis_py.events.statement_lines import parse_line
from etalis_py.streams import StreamError, documents, read_stream
from etalis_py.streams.columns import elements, nquads, scanning, time_kernels
from etalis_py.streams.columns.gather_terms import respelled
from etalis_py.streams.columns.lines import CONSTANTS
from tests.draws import examples, seeds

from .documents import FROM, PROV, PUNCTUATE, TO, XSD, drawn
from .reading import Refused, outcome

TERMS = [
    "<urn:a>", "<urn:b>", "<http://example.org/a?b=%20#c>", "<urn:ä>", "<urn:\u0080>", "<urn:\ue000>", "<urn:\uffef>",
    "<urn:\ufff0>", "<urn:\ufdd0>", "<urn:\U0001f600>", "<http://a:99999/>", '"1"', f'"1"^^<{XSD}integer>',
    '"ä \\" \\\\ \\n"', '"x"@en', '"x"@EN', '"x"@zh-Hant-TW', '"x"@en-001', '"x"@a-b', '"x"@en-', '"x"@en-GB-en',
    f'"x"^^<{XSD}string>', "_:b1", "_:b.1", '"\\u0061"', '"\\U00110000"', '"\\u0001"', '"\\\'"', "<>", "12",
    '"\x7f"', '"\\uD800"',
]  # fmt: skip


def check(text: str, **options: Any) -> None:
    """Both readers give the same items, counts and errors, in the same order."""

    def seen(bulk: bool) -> Any:
        refused, clock = Refused(), count(1000)
        options["dead_letters"] = refused

        def open_text() -> Any:
            source = io.BytesIO(text.encode("utf-8", "surrogateescape"))
            return read_stream(source, format="nq", now=lambda: next(clock), **options)

        return outcome(open_text, bulk=bulk), refused.errors

    assert seen(bulk=True) == seen(bulk=False)


def both(text: str, **options: Any) -> list[Any]:
    """The events, which both readers give."""
    check(text, **options)
    return list(read_stream(io.BytesIO(text.encode()), format="nq", now=lambda: 0, **options))


@pytest.mark.parametrize("seeds", [range(60 * n, 60 * n + 60) for n in seeds(4)], ids=str)
def test_columns_read_what_rows_read_in_any_order_and_shape(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds:
        text, options = drawn(seed)
        chosen = Random(seed)
        monkeypatch.setattr(nquads, "BLOCK", chosen.choice([64, 300, 2000, 1 << 20]))
        monkeypatch.setattr(nquads, "_FEW", chosen.choice([1, 2, 64]))
        remembered = chosen.choice([3, 10, 100_000])
        monkeypatch.setattr(documents, "REMEMBERED", remembered)
        monkeypatch.setattr(elements, "REMEMBERED", remembered)
        check(text, **options)


def quad(graph: str, value: int) -> str:
    return f'<urn:a> <urn:p> "{value}" <urn:{graph}> .\n'


def time(graph: str, second: int, predicate: str = PROV) -> str:
    return f'<urn:{graph}> {predicate} "2026-01-01T00:00:{second:02}Z"^^<{XSD}dateTime> .\n'


def seconds(events: list[Any]) -> list[tuple[int, str]]:
    """The time and the first object of each event."""
    return [((event.end - 1_767_225_600_000_000) // 1_000_000, event.triples[0][2]) for event in events]


def test_a_piece_has_the_last_time_of_its_graph() -> None:
    text = quad("g", 1) + time("g", 1) + quad("h", 2) + time("h", 2)
    text += quad("g", 3) + time("g", 5) + quad("h", 4) + quad("g", 6)
    assert seconds(both(text)) == [(1, '"1"'), (2, '"2"'), (5, '"3"'), (2, '"4"'), (5, '"6"')]


def test_a_graph_goes_on_after_statements_about_others() -> None:
    text = time("g", 1) + quad("g", 1) + '<urn:x> <urn:q> "1" .\n<urn:y> <urn:q> "2" .\n' + quad("g", 2)
    timed = [one for one in both(text) if one.graph]
    assert seconds(timed) == [(1, '"1"'), (1, '"2"')]


def test_a_time_is_remembered_for_as_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "REMEMBERED", 2)
    monkeypatch.setattr(elements, "REMEMBERED", 2)
    begin, others = quad("g", 1) + time("g", 1), [quad(f"h{n}", n) + time(f"h{n}", n) for n in range(2, 4)]
    (again,) = (event for event in both(begin + others[0] + quad("g", 9)) if event.triples[0][2] == '"9"')
    assert seconds([again]) == [(1, '"9"')]
    (late,) = (event for event in both(begin + "".join(others) + quad("g", 9)) if event.triples[0][2] == '"9"')
    assert late.end == 0  # the time of its arrival


@pytest.mark.parametrize("fault", ["\udcff", f"<urn:g> {PUNCTUATE} <urn:x> .", "nonsense"])
def test_what_is_complete_before_a_fault_is_given(fault: str) -> None:
    text = quad("g", 1) + time("g", 1) + quad("h", 2) + time("h", 2) + fault + "\n" + quad("i", 3) + time("i", 3)
    check(text)
    stream = read_stream(io.BytesIO(text.encode("utf-8", "surrogateescape")), format="nq")
    assert seconds([next(stream)]) == [(1, '"1"')]
    with pytest.raises(StreamError, match=":5: "):
        list(stream)


def test_intervals_and_other_predicates_stay_in_columns() -> None:
    text = "".join(quad(f"g{n}", n) + time(f"g{n}", n, FROM) + time(f"g{n}", n + 1, TO) for n in range(50))
    chunks = list(
        read_stream(io.BytesIO(text.encode()), format="nq", start_predicate=FROM, end_predicate=TO).chunks(large=True)
    )
    assert sum(len(chunk) for chunk in chunks if not isinstance(chunk, list)) >= 49
    check(text, start_predicate=FROM, end_predicate=TO)


LINES = st.builds(
    lambda terms, gaps, end: "".join(t + g for t, g in zip(terms, gaps, strict=False)) + end,
    st.lists(st.sampled_from(TERMS), min_size=2, max_size=5),
    st.lists(st.sampled_from([" ", " ", "  ", "\t", ""]), min_size=5, max_size=5),
    st.sampled_from([".", " . ", "", ". x"]),
)


@settings(max_examples=examples(4 / 3))
@given(line=LINES)
def test_a_usual_line_is_one_that_the_parser_takes(line: str) -> None:
    at = scanning.np.zeros(9, "int64")
    data = scanning.np.frombuffer(line.encode() + b"\n\0\0\0\0", "uint8")
    if scanning._statement(data, 0, *CONSTANTS, at) >= 0:
        terms = [line.encode()[at[k] : at[k + 1]].decode() for k in (0, 2, 4, 6)]
        if at[8]:
            terms[2] = literal(*parts(terms[2]))
        assert parse_line(line) == tuple(terms)


@given(micros=st.integers(-62_167_219_200_000_000, 253_402_300_799_999_999))
def test_a_usual_time_is_its_microseconds(micros: int) -> None:
    text = render_datetime(micros).encode()
    data = scanning.np.frombuffer(text + b" .\n\0\0\0\0", "uint8")
    assert time_kernels.date(data, 0, len(text)) == micros


ODD = '\0\1\b\t\n\f\r"\\\x1f\x7f\x80\u07ff\u0800\uffff\U00010000\U0010ffff'
CHARACTERS = st.one_of(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"\\'),
    st.sampled_from(ODD).map(lambda c: f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08X}"),
    st.characters(exclude_categories=["Cs"]).map(lambda c: f"\\U{ord(c):08x}"),
    st.sampled_from([f"\\{c}" for c in "tbnrf\"'\\"]),
)


@settings(max_examples=examples(1))
@given(
    st.lists(
        st.tuples(
            st.lists(CHARACTERS, max_size=9), st.sampled_from(["", "@en", "@en-GB", "@ZH-Hant", f"^^<{XSD}decimal>"])
        ),
        min_size=1,
    )
)
def test_literals_are_respelled_as_terms_are(drawn: list[tuple[list[str], str]]) -> None:
    literals = [f'"{"".join(text)}"{ending}' for text, ending in drawn]
    assert respelled(pa.array(literals)).to_pylist() == [literal(*parts(text)) for text in literals]


def test_bytes_that_are_no_text_are_reported_with_their_line() -> None:
    text = "".join(
        f'<urn:a> <urn:p> "{i}" <urn:g{i}> .\n<urn:g{i}> {PROV} "2026-01-01T00:00:0{i}Z"^^<{XSD}dateTime> .\n'
        for i in range(5)
    )
    check(text.replace('"3"', '"\udcff"'), on_error="skip")
    check(text.replace('"3"', '"\udcff"'))


@pytest.mark.parametrize("clock", ["dates", "numbers"])
def test_a_large_document_goes_through_columns(clock: str) -> None:
    def moment(i: int) -> str:
        return f'"{i}"^^<{XSD}integer>' if clock == "numbers" else f'"{render_datetime(i * 250_000)}"^^<{XSD}dateTime>'

    text = "".join(f'<urn:a> <urn:p> "{i}" <urn:g{i}> .\n<urn:g{i}> {PROV} {moment(i)} .\n' for i in range(5000))
    stream = read_stream(io.BytesIO(text.encode()), format="nq")
    chunks = list(stream.chunks(large=True))
    # The last graph is only complete at the end.
    assert {type(chunk).__name__ for chunk in chunks[:-1]} == {"RecordBatch"}
    assert len(chunks) <= 4
    assert len(chunks[-1]) == 1
    assert stream.counters.events == 5000
    check(text)


def test_a_graph_as_long_as_many_blocks_is_read_in_time_that_grows_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nquads, "BLOCK", 1000)
    cut, scanned = nquads.cut, list[int]()

    def counting(parts: Any, *more: Any) -> Any:
        scanned.append(sum(map(len, parts)))
        return cut(parts, *more)

    monkeypatch.setattr(nquads, "cut", counting)
    text = time("g", 1) + "".join(quad("g", n) for n in range(5000)) + quad("h", 1) + time("h", 1)
    assert len(both(text)[0].triples) == 5000
    assert sum(scanned) < 4 * len(text)
