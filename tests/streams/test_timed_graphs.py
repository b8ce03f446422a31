"""A graph of one quad with its time on the next line has a short way through the reader: it changes nothing."""

from __future__ import annotations

import io

import pytest
from etalis_rules.terms import XSD
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py.events.clock import parse_datetime
from etalis_py.events.statement_lines import split_lines
from etalis_py.streams import DeadLetters, read_stream
from etalis_py.streams.timing import GENERATED_AT_TIME
from tests.draws import examples

GRAPHS = st.sampled_from(["<urn:g1>", "<urn:g2>", "<urn:g3>", "_:g"])
USUAL = st.integers(0, 3).map(lambda second: f'"2026-01-31T10:00:0{second}Z"^^<{XSD}dateTime>')
UNUSUAL = st.sampled_from(
    [
        f'"{lexical}"^^<{XSD}dateTime>'
        for lexical in (
            "2026-01-31T10:00:00.25Z",
            "2026-01-31T10:00:01.000001Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T24:00:01Z",
            "2026-02-30T10:00:00Z",
            "2026-01-31T10:61:00Z",
            "2026-01-31T10:00:60Z",
            "2026-01-31T10:00:00+01:00",
        )
    ]
    + [f'"5"^^<{XSD}integer>', '"soon"', "<urn:x>"]
)
TIMES = st.one_of(USUAL, USUAL, USUAL, UNUSUAL)
QUADS = st.builds(lambda n, g: f'<urn:a> <urn:p> "{n}" {g} .', st.integers(0, 3), GRAPHS)
STAMPS = st.builds(lambda g, t: f"{g} {GENERATED_AT_TIME} {t} .", GRAPHS, TIMES)
ELEMENTS = st.builds(
    lambda g, n, t: f'<urn:a> <urn:p> "{n}" {g} .\n{g} {GENERATED_AT_TIME} {t} .', GRAPHS, st.integers(0, 3), TIMES
)
SAID = st.builds(lambda g: f"{g} <urn:by> <urn:me> .", GRAPHS)
PUNCTUATIONS = st.builds(lambda g: f"{g} <http://www.w3.org/ns/rsp#punctuate> <http://www.w3.org/ns/rsp#now> .", GRAPHS)
DOCUMENTS = st.lists(
    st.one_of(ELEMENTS, ELEMENTS, ELEMENTS, QUADS, STAMPS, SAID, PUNCTUATIONS), min_size=3, max_size=12
).map(lambda parts: "\n".join(parts).split("\n"))


class Refused(DeadLetters):
    """Keeps what was refused."""

    def __init__(self) -> None:
        self.errors: list[tuple[str, int, str]] = []

    def refused(self, error: object) -> None:
        self.errors.append((error.reason, error.line, error.text))  # type: ignore[attr-defined]


def read(text: str, step: int = 1, **options: object) -> tuple[list, list, object]:
    refused = Refused()
    stream = read_stream(
        io.BytesIO(text.encode()), format="nq", on_error="skip", dead_letters=refused, now=lambda: 7, **options
    )
    items = list(stream)
    return items, [(reason, (line + step - 1) // step, text) for reason, line, text in refused.errors], stream.counters


@given(DOCUMENTS)
@settings(max_examples=examples(8 / 3))
def test_the_short_way_finds_what_the_long_way_finds(lines: list[str]) -> None:
    """An empty line between the quad and the time takes the short way away."""
    assert read("\n".join(lines) + "\n") == read("\n\n".join(lines) + "\n", step=2)


def test_the_usual_element_takes_the_short_way() -> None:
    text = f'<urn:a> <urn:p> "1" <urn:g> .\n<urn:g> {GENERATED_AT_TIME} "2026-01-31T10:00:00Z"^^<{XSD}dateTime> .\n'
    rows = split_lines(text, GENERATED_AT_TIME)
    assert [row[:4] for row in rows] == [("<urn:a>", "<urn:p>", '"1"', "<urn:g>")]
    (event,), errors, counters = read(text)
    assert (event.start, event.triples, event.graph) == (
        parse_datetime("2026-01-31T10:00:00Z"),
        (("<urn:a>", "<urn:p>", '"1"'),),
        "<urn:g>",
    )
    assert (errors, counters.events, counters.triples) == ([], 1, 1)


@pytest.mark.parametrize("predicate", ["arrival", ["arrival"], "urn:other"])
def test_another_time_predicate_is_another_time(predicate: str | list[str]) -> None:
    text = f'<urn:a> <urn:p> "1" <urn:g> .\n<urn:g> {GENERATED_AT_TIME} "2026-01-31T10:00:00Z"^^<{XSD}dateTime> .\n'
    (event,), _, _ = read(text, time_predicate=predicate)
    assert event.start == 7
    assert len(event.triples) == 2
