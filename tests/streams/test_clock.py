"""Time spellings and microseconds: the definitions of XML Schema 1.1 Part 2 and the spellings of streams."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from decimal import Decimal
from itertools import count
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etalis_py import Event, event, run
from etalis_py.connectors import connect
from etalis_py.events.clock import (
    MAX_TIME,
    MIN_TIME,
    UNITS,
    Clock,
    TimeError,
    clock_of,
    parse_datetime,
    parse_duration,
    parse_interval,
    parse_number,
    render_datetime,
)
from etalis_py.streams import Stream, read_stream
from etalis_py.testing.connectors import Memory


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00", 0),
        ("1970-01-01", 0),
        ("1970-01-02Z", 86_400_000_000),
        ("1969-12-31T24:00:00Z", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T19:00:00-05:00", 0),
        ("1970-01-01T00:00:00.000001Z", 1),
        ("1970-01-01T00:00:00.1000000000Z", 100_000),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("2000-02-29T00:00:00Z", 951_782_400_000_000),
        ("2011-03-11T05:46:24Z", 1_299_822_384_000_000),
        ("0000-03-01T00:00:00Z", -62_162_035_200_000_000),
        ("-0001-03-01T00:00:00Z", -62_193_657_600_000_000),
        ("12000-01-01T00:00:00Z", 316_516_204_800_000_000),
    ],
)
def test_datetime_to_microseconds(text: str, us: int) -> None:
    from datetime import datetime, timedelta

    assert parse_datetime(text) == us
    if text[:2] in ("19", "20") and "T" in text and "24:" not in text:
        naive = datetime.fromisoformat(text.replace("Z", "+00:00").replace(".1000000000", ".100000"))
        epoch = datetime.fromisoformat("1970-01-01T00:00:00" + ("+00:00" if naive.tzinfo else ""))
        assert (naive - epoch) // timedelta(microseconds=1) == us


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("2016-13-01T00:00:00Z", "no such day", 5),
        ("2015-02-29", "no such day", 5),
        ("1900-02-29", "no such day", 5),
        ("2016-03-01T25:00:00Z", "no such time of day", 11),
        ("2016-03-01T24:00:01Z", "no such time of day", 11),
        ("2016-03-01T13:00:60Z", "no such time of day", 11),
        ("2016-03-01T13:00:00.0000001Z", "finer than a microsecond", 26),
        ("2016-03-01T13:00:00+15:00", "at most 14:00", 19),
        ("2016-03-01T13:00Z", "expected an xsd:dateTime", 10),
        ("t1", "expected an xsd:dateTime", 0),
        ("300000-01-01T00:00:00Z", "more than 146,000 years", 0),
    ],
)
def test_what_is_no_datetime_says_what_and_where(text: str, reason: str, position: int) -> None:
    with pytest.raises(TimeError, match=reason) as caught:
        parse_datetime(text)
    assert caught.value.position == position


@given(st.integers(MIN_TIME, MAX_TIME))
def test_datetime_round_trip(us: int) -> None:
    assert parse_datetime(render_datetime(us)) == us


@given(st.integers(MIN_TIME, MAX_TIME), st.sampled_from(["ns", "us", "ms", "s"]))
def test_integer_clock_round_trip(us: int, unit: str) -> None:
    clock = Clock("integer", unit)
    assert clock.parse(clock.render(us)) == us


@given(st.integers(-(10**7), 10**7), st.sampled_from(sorted(UNITS)))
def test_whole_numbers_are_printed_as_they_came(number: int, unit: str) -> None:
    clock = Clock("integer", unit)
    if unit == "ns":
        number *= 1000
    assert clock.render(clock.parse(number)) == number == clock.render(clock.parse(str(number)))


def test_units() -> None:
    assert [parse_number(3_000, unit) for unit in ("ns", "us", "ms", "s", "min", "h", "d")] == [
        3,
        3_000,
        3_000_000,
        3_000_000_000,
        180_000_000_000,
        10_800_000_000_000,
        259_200_000_000_000,
    ]
    assert parse_number("0.1") == 100_000
    assert parse_number(Decimal("1.5"), "min") == 90_000_000
    assert parse_number("-0.5") == -500_000


def test_nanoseconds_that_are_no_whole_microseconds_are_refused() -> None:
    with pytest.raises(TimeError, match="1500 ns is not a whole number of microseconds"):
        parse_number(1500, "ns")


def test_an_unknown_unit_is_refused_with_the_known_ones() -> None:
    with pytest.raises(TimeError, match="expected one of ns, us, ms, s, min, h, d"):
        Clock("integer", "week")


def test_the_first_time_tells_the_clock() -> None:
    assert clock_of("17", "ms") == Clock("integer", "ms")
    assert clock_of(17) == Clock("integer", "s")
    assert clock_of("2016-03-01T13:00:00Z") == Clock("datetime")


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("10", 10_000_000),
        ("10s", 10_000_000),
        ("5 min", 300_000_000),
        ("250ms", 250_000),
        ("1.5h", 5_400_000_000),
        ("PT10S", 10_000_000),
        ("P1DT2H3M4.5S", 93_784_500_000),
        ("P1W", 604_800_000_000),
        ("1 week", 604_800_000_000),
        ("2 Hours", 7_200_000_000),
        ("-PT1S", -1_000_000),
    ],
)
def test_durations(text: str, us: int) -> None:
    assert parse_duration(text) == us


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "10 months", "10 fortnights", "P1Y", "s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(TimeError, match="expected a duration"):
        parse_duration(text)


def test_intervals() -> None:
    start = parse_datetime("2016-03-01T13:00:00Z")
    assert parse_interval("2016-03-01T13:00:00Z/2016-03-01T13:00:10Z") == (start, start + 10_000_000)
    assert parse_interval("2016-03-01T13:00:00Z/PT10S") == (start, start + 10_000_000)
    assert parse_interval("PT10S/2016-03-01T13:00:00Z") == (start - 10_000_000, start)
    assert parse_interval("2016-03-01T13:00:00Z") == (start, start)
    assert parse_interval("3/5", Clock("integer", "ms")) == (3000, 5000)


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_fractions_of_seconds_before_1970_come_back_as_they_were_given(executor: Literal["rows", "columns"]) -> None:
    given = [event(":c :p 1", [-3.5, -1.25]), event(":c :p 2", -0.5), event(":c :p 3", [-0.000001, 0.5])]
    matches = run("SELECT ?x { ?c :p ?x }", given, executor=executor)
    assert [(m.start, m.end) for m in matches] == [("-3.5", "-1.25"), ("-0.5", "-0.5"), ("-0.000001", "0.5")]


def test_second_60_of_the_requirements_document_is_the_next_minute() -> None:
    start = parse_datetime("2016-03-01T13:00:50Z")
    assert parse_interval("2016-03-01T13:00:50Z/2016-03-01T13:00:60Z") == (start, start + 10_000_000)


def test_interval_errors_point_into_the_whole_interval() -> None:
    with pytest.raises(TimeError, match="ends before it starts"):
        parse_interval("5/3", Clock("integer"))
    with pytest.raises(TimeError, match="no such day") as caught:
        parse_interval("2016-03-01/2016-03-32")
    assert caught.value.position == 16
    with pytest.raises(TimeError, match="needs a start or an end"):
        parse_interval("PT1S/PT2S")


def test_times_of_arrival_go_on_while_the_clock_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is set back by an hour after the second event, and events come every ten seconds."""
    wall, steady = iter([5000, 5010, 1420, 1430, 9000]), iter([0, 10, 20, 30, 40])
    monkeypatch.setattr(time, "time_ns", lambda: next(wall) * 10**9)
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(steady) * 10**9)
    lines = "".join(f'{{"triples": ":c :p {number} ."}}\n' for number in range(5))
    events = list(read_stream(io.BytesIO(lines.encode()), format="jsonl"))
    assert [event.end // 10**6 for event in events] == [5000, 5010, 5020, 5030, 9000]


def set_clock(monkeypatch: pytest.MonkeyPatch, wall: int, steady: int) -> None:
    """Every look at the wall clock shows a second more, and every one at the other clock ten."""
    seconds, passed = count(wall), count(steady, 10)
    monkeypatch.setattr(time, "time_ns", lambda: next(seconds) * 10**9)
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(passed) * 10**9)


def lines_of(first: int, last: int) -> list[bytes]:
    return [f'{{"triples": ":c :p {number} ."}}\n'.encode() for number in range(first, last)]


def read_lines(lines: list[bytes]) -> Stream:
    return read_stream(io.BytesIO(b"".join(lines)), format="jsonl")


def read_messages(lines: list[bytes]) -> Stream:
    return connect(Memory(lines), "memory://x")


@pytest.mark.parametrize("read", [read_lines, read_messages])
def test_times_of_arrival_go_on_in_a_process_whose_clock_is_behind(
    read: Callable[[list[bytes]], Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the next process is an hour behind, as after a start without a network; then it is set."""
    set_clock(monkeypatch, 5000, 0)
    first = read(lines_of(0, 3))
    first.track()
    before = [event.end for event in first if isinstance(event, Event)]
    first.confirm(len(before))
    (place,) = first.places()
    set_clock(monkeypatch, 1400, 70_000)
    second = read(lines_of(0, 6))
    second.track([place])
    after = [event.end for event in second if isinstance(event, Event)]
    assert len(before) == len(after) == 3
    assert before == sorted(before)
    assert before[-1] < after[0] < after[1] < after[2] < before[-1] + 100_000_000
    assert after[2] - after[1] == 10_000_000


@pytest.mark.parametrize("read", [read_lines, read_messages])
def test_the_clock_of_another_process_that_is_right_is_followed(
    read: Callable[[list[bytes]], Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, 9000, 0)
    stream = read(lines_of(0, 2))
    stream.track([{"items": 0, "reports": 0, "mark": None, "clock": None, "arrived": 5_000_000_000}])
    assert [event.end // 10**6 for event in stream if isinstance(event, Event)] == [9000, 9010]
