"""N-Quads in columns give the events, the messages and the counts of the reader of rows, whatever the document."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py.streams import read_stream
from etalis_py.streams.clock import render_datetime
from etalis_py.streams.columns import moments, nquads, scanning
from etalis_py.streams.columns.lines import CONSTANTS, canonical_literal
from etalis_py.streams.quads import parse_line

from .reading import outcome

PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"
XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS = [
    "<urn:a>", "<urn:b>", "<http://example.org/a?b=%20#c>", "<urn:ä>", "<http://a:99999/>", '"1"',
    f'"1"^^<{XSD}integer>', '"ä \\" \\\\ \\n"', '"x"@en', '"x"@EN', f'"x"^^<{XSD}string>',
    "_:b1", "_:b.1", '"\\u0061"', "<>", "12", '"\x7f"',
]  # fmt: skip
TIMES = [
    '"{}"^^<XSDdateTime>',
    '"{}"^^<XSDdateTimeStamp>',
    '"{}"',
    '"2026-02-30T10:00:00Z"^^<XSDdateTime>',
    '"17"^^<XSDinteger>',
    "<urn:x>",
]
ODD = [
    "", " ", "# a comment", "# @message", "MESSAGE", "nonsense", "<urn:a> <urn:p> .", '<urn:g1> <urn:note> "about" .',
    "<urn:x> <urn:p> <urn:y> .", f'<urn:g2> {PROV} "2026-01-01T00:00:00Z"^^<{XSD}dateTime> .',
    "<urn:g1> <http://www.w3.org/ns/rsp#punctuate> <http://www.w3.org/ns/rsp#now> .", "_:g <urn:p> <urn:o> _:g .",
    f'_:g {PROV} "2026-01-01T00:00:00.5Z"^^<{XSD}dateTime> .',
]  # fmt: skip


def check(text: str, **options: Any) -> None:
    def open_text() -> Any:
        return read_stream(
            io.BytesIO(text.encode("utf-8", "surrogateescape")), format="nq", now=lambda: 1000, **options
        )

    assert outcome(open_text, bulk=True) == outcome(open_text, bulk=False)


@st.composite
def documents(draw: st.DrawFn) -> str:
    lines = []
    number = draw(st.integers(0, 3))
    spelling = draw(st.sampled_from([TIMES[0]] * 4 + TIMES[2:5:2]))
    for _ in range(draw(st.integers(1, 12))):
        number += draw(st.integers(0, 2))
        graph = f"<urn:g{number}>"
        term = st.sampled_from(TERMS[:8]) | st.sampled_from(TERMS)
        quads = [
            f"<urn:{draw(st.sampled_from('ab'))}> <urn:p> {draw(term)} {graph} ."
            for _ in range(draw(st.integers(1, 3)))
        ]
        usual = draw(st.integers(0, 9)) > 0
        literal = (spelling if usual else draw(st.sampled_from(TIMES))).replace("XSD", XSD)
        moment = render_datetime(1_767_225_600_000_000 + 250_000 * number)
        time = [f"{graph} {PROV} {literal.format(moment)} ."] if draw(st.integers(0, 9)) else []
        lines += [*quads, *time] if draw(st.integers(0, 9)) else [*time, *quads]
        if not draw(st.integers(0, 5)):
            lines.append(draw(st.sampled_from(ODD)))
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    return end.join(lines) + draw(st.sampled_from(["", end]))


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@settings(max_examples=60)
@given(text=documents(), block=st.sampled_from([64, 300, 1 << 20]), few=st.sampled_from([1, 2, 64]))
def test_columns_read_what_rows_read(on_error: str, text: str, block: int, few: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nquads, "BLOCK", block)
        patch.setattr(nquads, "_FEW", few)
        check(text, on_error=on_error)


LINES = st.builds(
    lambda terms, gaps, end: "".join(t + g for t, g in zip(terms, gaps, strict=False)) + end,
    st.lists(st.sampled_from(TERMS), min_size=2, max_size=5),
    st.lists(st.sampled_from([" ", " ", "  ", "\t", ""]), min_size=5, max_size=5),
    st.sampled_from([".", " . ", "", ". x"]),
)


@settings(max_examples=200)
@given(line=LINES)
def test_a_usual_line_is_one_that_the_parser_takes(line: str) -> None:
    at = scanning.np.zeros(9, "int64")
    data = scanning.np.frombuffer(line.encode() + b"\n\0\0\0\0", "uint8")
    if scanning._statement(data, 0, *CONSTANTS, at) >= 0:
        terms = [line.encode()[at[k] : at[k + 1]].decode() for k in (0, 2, 4, 6)]
        if at[8]:
            terms[2] = canonical_literal(terms[2])
        assert parse_line(line) == tuple(terms)


@given(micros=st.integers(-62_167_219_200_000_000, 253_402_300_799_999_999))
def test_a_usual_time_is_its_microseconds(micros: int) -> None:
    text = render_datetime(micros).encode()
    data = scanning.np.frombuffer(text + b" .\n\0\0\0\0", "uint8")
    assert moments.date(data, 0, len(text)) == micros


def test_bytes_that_are_no_text_are_reported_with_their_line() -> None:
    text = "".join(
        f'<urn:a> <urn:p> "{i}" <urn:g{i}> .\n<urn:g{i}> {PROV} "2026-01-01T00:00:0{i}Z"^^<{XSD}dateTime> .\n'
        for i in range(5)
    )
    check(text.replace('"3"', '"\udcff"'), on_error="skip")
    check(text.replace('"3"', '"\udcff"'))


@pytest.mark.parametrize("clock", ["dates", "numbers"])
def test_a_large_document_goes_through_columns(clock: str) -> None:
    def time(i: int) -> str:
        return f'"{i}"^^<{XSD}integer>' if clock == "numbers" else f'"{render_datetime(i * 250_000)}"^^<{XSD}dateTime>'

    text = "".join(f'<urn:a> <urn:p> "{i}" <urn:g{i}> .\n<urn:g{i}> {PROV} {time(i)} .\n' for i in range(5000))
    stream = read_stream(io.BytesIO(text.encode()), format="nq")
    chunks = list(stream.chunks(large=True))
    assert [type(chunk).__name__ for chunk in chunks] == ["list", "RecordBatch", "list"]
    assert stream.counters.events == 5000
    check(text)
