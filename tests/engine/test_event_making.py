"""Events made by hand: times as Python users have them, canonical terms, and what cannot be an event."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from etalis_py import Engine, Event, event, run
from etalis_py.streams import read_stream

XSD = "http://www.w3.org/2001/XMLSchema#"
TEN = 1_769_767_200_000_000  # 2026-01-30T10:00:00Z
VIENNA = timezone(timedelta(hours=1))
A, P, ONE = "<urn:a>", "<urn:p>", f'"1"^^<{XSD}integer>'


# --- times ---


@pytest.mark.parametrize(
    ("given", "micros"),
    [
        (5, 5_000_000),
        (-5, -5_000_000),
        (0.1, 100_000),
        (2.5, 2_500_000),
        (1769767200.25, TEN + 250_000),
        (1769767200.1234567, TEN + 123_457),  # as time.time() gives it: to the microsecond
        (1e-7, 0),
        (Decimal("0.1"), 100_000),
        (np.int64(5), 5_000_000),
        (np.float64(0.1), 100_000),
        (np.float32(0.1), 100_000),
        ("2026-01-30T10:00:00Z", TEN),
        ("2026-01-30T11:00:00+01:00", TEN),
        ("2026-01-30", TEN - 36_000_000_000),
        (datetime(2026, 1, 30, 10), TEN),
        (datetime(2026, 1, 30, 10, tzinfo=UTC), TEN),
        (datetime(2026, 1, 30, 11, tzinfo=VIENNA), TEN),
        (date(2026, 1, 30), TEN - 36_000_000_000),
        (pd.Timestamp("2026-01-30 10:00"), TEN),
        (pd.Timestamp("2026-01-30 11:00:00.5", tz="Europe/Vienna"), TEN + 500_000),
        (np.datetime64("2026-01-30T10:00"), TEN),
        (np.datetime64("2026-01-30T10:00:00.000001000", "ns"), TEN + 1),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999), 253_402_300_799_999_999),
    ],
    ids=repr,
)
def test_a_time_is_a_number_of_seconds_or_a_date(given: Any, micros: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert event(":a :p 1", given)[:2] == (micros, micros)


def test_a_pair_of_times_is_an_interval() -> None:
    for pair in ((1, 2.5), [1, 2.5]):
        assert event(":a :p 1", pair)[:2] == (1_000_000, 2_500_000)
    days = (date(2026, 1, 29), datetime(2026, 1, 30, 10))
    assert event(":a :p 1", days)[:2] == (TEN - 34 * 3_600_000_000, TEN)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "a number of seconds or a date, such as 5, 2.5, '2026-01-31T10:00:00Z', datetime.now"),
        (True, "not True (bool)"),
        (b"5", "not b'5' (bytes)"),
        ({}, "not {} (dict)"),
        (time(10), "not datetime.time(10, 0) (time)"),
        (timedelta(1), "not datetime.timedelta(days=1) (timedelta)"),
        (np.timedelta64(1, "s"), "(timedelta64)"),
        (Fraction(1, 3), "given as Decimal or float"),
        (float("nan"), "not nan"),
        (float("-inf"), "not -inf"),
        (1e300, "expected a number of microseconds of at most 64 bits"),
        (Decimal("1e-7"), "round it to microseconds"),
        (10**18, "more than 146,000 years from 1970 in the unit s; in ns it would be"),
        (10**30, "more than 146,000 years from 1970"),
        ("soon", "expected an xsd:dateTime such as 2016-03-01T13:00:00Z"),
        (pd.NaT, "leave out what has no time"),
        (np.datetime64("NaT"), "leave out what has none"),
        (pd.Timestamp(1), "round it with .floor('us')"),
        (np.datetime64(1, "ns"), "round others with .astype('datetime64[us]')"),
        ((1, 2, 3), "an interval has two times, a start and an end, not 3"),
        ((2, 1), "the event starts at 2 and ends before, at 1: swap the two"),
        ((1, "2026-01-30"), "an interval is between two numbers or between two dates"),
    ],
)  # fmt: skip
def test_any_other_time_is_told_what_to_give(given: Any, told: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        event(":a :p 1", given)
    assert told in str(refused.value)


def test_seconds_beyond_the_year_9999_are_told_with_the_unit_that_makes_sense() -> None:
    told = "the time of an event is in seconds, and this one is after the year 9999; in ms it would be in the year 2026"
    with pytest.warns(UserWarning, match=told):
        assert event(":a :p 1", 1_769_767_200_000).end == TEN * 1000


def test_they_are_told_once_however_many_events_a_line_makes() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for n in range(5):
            event(":a :p 1", 1_769_767_200_000 + n)
    assert len(told) == 1


def test_so_are_those_of_a_stream(tmp_path: Any) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(
        '{"time": 1769767200000, "triples": ":a :p 1 ."}\n{"time": 1769767200001, "triples": ":a :p 1 ."}\n'
    )
    told = "in the year 58051; in ms it would be 2026-01-30T10:00:00.001Z; name the unit of its times with time_unit="
    matches = run("SELECT ?x { ?c :p ?x }", file)
    assert len(list(matches)) == 2
    assert [told in warning for warning in matches.warnings] == [True]
    for right in (read_stream(file, time_unit="ms"), [event(":a :p 1", 10**11)]):
        matches = run("SELECT ?x { ?c :p ?x }", right)
        assert len(list(matches)) > 0
        assert matches.warnings == ()


@pytest.mark.parametrize("given", ["2026-01-30T10:00:00Z", datetime(2026, 1, 30, 10), pd.Timestamp("2026-01-30 10:00")])
def test_matches_show_dates_if_the_events_were_timed_by_dates(given: Any) -> None:
    dated, shown = event(":a :p 1", given), "2026-01-30T10:00:00Z"
    query = "SELECT ?x { ?c :p ?x }"
    assert [m.end for m in run(query, [dated])] == [shown]
    assert [m.end for m in run(query, iter([dated]))] == [shown]
    for options in ({}, {"executor": "columns"}, {"revise": 1_000_000}):
        one, all_ = Engine(query, **options), Engine(query, **options)
        assert [m.end for m in (*one.push(dated), *one.close())] == [shown]
        assert [m.end for m in (*all_.push_all([dated]), *all_.close())] == [shown]
    assert run(query, [dated]).to_arrow().column("end").to_pylist() == [datetime(2026, 1, 30, 10, tzinfo=UTC)]
    assert [m.end for m in run(query, [dated], render=str)] == [str(TEN)]


def test_numbers_are_shown_as_numbers() -> None:
    assert [m.end for m in run("SELECT ?x { ?c :p ?x }", [event(":a :p 1", 5), event(":a :p 1", 5.5)])] == [5, "5.5"]


def test_a_dated_event_is_an_event() -> None:
    dated, plain = event(":a :p 1", "1970-01-01T00:00:05Z"), event(":a :p 1", 5)
    assert dated == plain
    assert hash(dated) == hash(plain)
    assert type(dated._replace(stream="<urn:s>")) is type(dated)
    assert pickle.loads(pickle.dumps(dated)) == copy.deepcopy(dated) == dated


# --- names and terms ---


@pytest.mark.parametrize("name", ["http://example.org/s", "<http://example.org/s>", ":s"])
def test_a_stream_is_named_with_or_without_brackets(name: str) -> None:
    query = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?c :p ?x } }"
    for named in (event(":a :p 1", 1, stream=name), Event(1_000_000, 1_000_000, event(":a :p 1", 1).triples, name)):
        assert named.stream == "<http://example.org/s>"
        assert [m["x"] for m in run(query, [named])] == [1]
    assert event(":a :p 1", 1, graph=name).graph == "<http://example.org/s>"


def test_what_is_no_name_is_told_what_to_write() -> None:
    with pytest.raises(ValueError, match=r'write "http://example.org/prices", or ":prices"'):
        event(":a :p 1", 1, stream="prices")
    with pytest.raises(
        TypeError, match=r'the stream of an event is named by an IRI, such as "http://example.org/x", not 5'
    ):
        event(":a :p 1", 1, stream=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Invalid IRI code point"):
        event(":a :p 1", 1, stream="<http://example org/>")


def test_a_final_full_stop_may_be_written() -> None:
    assert event(":a :p 1 .", 1) == event(":a :p 1", 1) == event(":a :p 1.", 1)


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        (f'"x"^^<{XSD}string>', '"x"'),
        ('"x"@EN', '"x"@en'),
        ('"x"@en-GB', '"x"@en-gb'),
        ('"caf\\u00e9"', '"café"'),
        ('"a\tb"', '"a\\tb"'),
        ("<urn:\\u00e9>", "<urn:é>"),
        ('<<( <urn:a> <urn:p> "x"@EN )>>', '<<( <urn:a> <urn:p> "x"@en )>>'),
        ('"01"^^<http://www.w3.org/2001/XMLSchema#integer>', '"01"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        ('"x y"', '"x y"'),
        ("_:b0", "_:b0"),
    ],
)
def test_terms_become_canonical(given: str, canonical: str) -> None:
    for _ in range(2):  # the second time it is remembered
        assert Event(1, 1, ((A, P, given),)).triples == ((A, P, canonical),)
        assert Event(1, 1, [[A, P, given]]).triples == ((A, P, canonical),)  # type: ignore[arg-type]


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize(("one", "other"), [(f'"x"^^<{XSD}string>', '"x"'), ('"x"@EN', '"x"@en')])
def test_different_spellings_of_a_term_join(one: str, other: str, executor: Any) -> None:
    events = [Event(n, n, ((A, f"<http://example.org/{p}>", o),)) for n, p, o in ((1, "p", one), (2, "q", other))]
    query = "SELECT ?x { { ?c :p ?x } SEQ { ?c :q ?x } }"
    assert len(list(run(query, events, executor=executor))) == 1


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ((1, 1, ":a :p 1"), "Turtle text is taken by event(':a :price 3', 5)"),
        ((1, 1, None), "an event has a tuple of triples, each of three terms"),
        ((1, 1, (A, P, ONE)), "for a single triple write ((s, p, o),)"),
        ((1, 1, ((A, P),)), "is no triple"),
        ((1, 1, ((A, P, ONE, ONE),)), "is no triple"),
        ((1, 1, ((A, P, 1),)), "1 (int) is no term in N-Triples spelling: write <http://example.org/acme>"),
        ((1, 1, ((A, P, ["x"]),)), "['x'] (list) is no term"),
        ((1, 1, (("acme", P, ONE),)), "'acme' is no subject in N-Triples spelling"),
        ((1, 1, (("<acme>", P, ONE),)), "No scheme found in an absolute IRI"),
        ((1, 1, (('"x"', P, ONE),)), "is no subject in N-Triples spelling"),
        ((1, 1, ((A, "_:p", ONE),)), "is no predicate in N-Triples spelling"),
        ((1, 1, ((A, P, ""),)), "it is empty"),
        ((1, 1, ((A, P, '"x" . <urn:a> <urn:p> "y"'),)), "is no object in N-Triples spelling"),
        ((1, 1, ((A, P, '"\ud800"'),)), "half of a surrogate pair, '\\ud800', which is no character"),
        ((1, 1, ((A, P, ONE),), "prices"), 'write "http://example.org/prices"'),
        ((1, 1, ((A, P, ONE),), "<urn:s>", "_:b c"), "is no graph in N-Triples spelling"),
        ((1.5, 2, ((A, P, ONE),)), "the start of an event is a whole number of microseconds, not 1.5 (float)"),
        ((1, "2", ((A, P, ONE),)), "the end of an event is a whole number of microseconds, not '2' (str)"),
        ((1, True, ((A, P, ONE),)), "not True (bool)"),
        ((1, 2**62 + 1, ((A, P, ONE),)), "is more than 146,000 years from 1970: it is in microseconds"),
        ((-(2**62) - 1, 1, ((A, P, ONE),)), "is more than 146,000 years from 1970"),
        ((10**40, 10**40, ((A, P, ONE),)), "is more than 146,000 years from 1970"),
    ],
)
def test_what_cannot_be_an_event_is_refused_where_it_is_made(fields: Any, told: str) -> None:
    for _ in range(2):
        with pytest.raises((TypeError, ValueError)) as refused:
            Event(*fields)
        assert told in str(refused.value)


def test_half_of_a_surrogate_pair_is_refused_in_turtle_too() -> None:
    with pytest.raises(ValueError, match="half of a surrogate pair"):
        event(':a :p "\ud800"', 1)


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_times_at_both_ends_are_compared_like_any_others(executor: Any) -> None:
    first, last = -(2**62), 2**62

    def item(end: int, predicate: str) -> Event:
        return Event(end, end, ((A, f"<http://example.org/{predicate}>", ONE),))

    near = "SELECT ?c { { { ?c :p ?x } SEQ { ?c :q ?y } } WITHIN 5 SECONDS }"
    absent = "SELECT ?c { { ?c :p ?x } SEQ NOT { ?c :q ?y } WITHIN 2 SECONDS }"

    def spans(query: str, *events: Event) -> list[Any]:
        return [(m.start_us, m.end_us) for m in run(query, events, executor=executor)]

    assert spans(near, item(first, "p"), item(first + 5, "q")) == [(first, first + 5)]
    assert spans(near, item(last - 2, "p"), item(last, "q")) == [(last - 2, last)]
    assert spans(near, item(first, "p"), item(last, "q")) == []
    assert spans(absent, item(first, "p"), item(first + 5, "q")) == []
    assert spans(absent, item(last - 2, "p"), item(last, "q")) == []
    assert spans(absent, item(last, "p")) == [(last, last + 2_000_000)]


def test_numbers_of_numpy_become_numbers() -> None:
    made = Event(np.int64(1), np.int64(2), ((A, P, ONE),))  # type: ignore[arg-type]
    assert [type(made.start), type(made.end)] == [int, int]


@pytest.mark.parametrize("text", [":a :p 1", ":a :p 1.", ":a :p 1 .\n", ":a :p 1 # one", ":a :p 1 . # one"])
def test_the_last_full_stop_and_a_comment_may_be_there_or_not(text: str) -> None:
    assert event(text, 1) == event(":a :p 1", 1)


def test_a_term_that_no_parser_takes_is_told() -> None:
    with pytest.raises(ValueError, match="a term or a comment has more than 16,777,216 bytes"):
        event(f':a :p "{"x" * 17_000_000}"', 1)


@pytest.mark.parametrize(
    ("triples", "told"),
    [
        (":a price 3", "':a price 3' is not Turtle: price is not a valid predicate"),
        (":a :price", "is not a valid RDF object; statements are as :acme :price 10 . :acme a :Firm"),
        (":a :price 3 .\n:b price 4 .", "is not Turtle: line 2: price is not a valid predicate"),
    ],
)
def test_what_is_no_turtle_is_not_placed_where_the_prefixes_end(triples: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        event(triples, 1)
