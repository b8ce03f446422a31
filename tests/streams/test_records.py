"""Dicts and other rows with names as a stream: the same events as a frame, or a CSV file, of the same rows."""

from __future__ import annotations

import csv
import io
import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from etalis_py import Event, run
from etalis_py.events import Retraction
from etalis_py.streams import StreamError, read_stream

MAPPING = {"time": "{at}", "subject": ":{name}", "predicate": ":p", "object": "{value}"}
VIENNA = timezone(timedelta(hours=1))
TEN = 1_769_767_200_000_000  # 2026-01-30T10:00:00Z


def events(given: Any, mapping: Any = MAPPING, **options: Any) -> list[Event]:
    return [item for item in read_stream(given, mapping=mapping, **options) if isinstance(item, Event)]


@pytest.mark.parametrize(
    "value",
    [
        1,
        -(2**62),
        1.5,
        7.0,
        1e300,
        math.inf,
        Decimal("1.50"),
        True,
        "text",
        'with "quotes"\n',
        "12",
        "",
        datetime(2026, 1, 30, 10),
        datetime(2026, 1, 30, 10, 0, 0, 250_000, tzinfo=UTC),
        datetime(2026, 1, 30, 11, tzinfo=VIENNA),
        date(2026, 1, 30),
        time(10, 30),
        timedelta(minutes=90),
        None,
    ],
    ids=repr,
)
def test_a_value_has_the_literal_that_it_has_in_a_frame(value: Any) -> None:
    rows = [{"at": 1, "name": "a", "value": value}, {"at": 2, "name": "b", "value": value}]
    assert events(rows) == events(pa.Table.from_pylist(rows))


@pytest.mark.parametrize(
    ("value", "alike"),
    [
        (np.int64(5), 5),
        (np.float64(1.5), 1.5),
        (np.bool_(True), True),
        (np.str_("text"), "text"),
        (np.datetime64("2026-01-30T10:00", "us"), datetime(2026, 1, 30, 10)),
        (np.datetime64("2026-01-30T10:00"), datetime(2026, 1, 30, 10)),
        (np.datetime64("2026-01-30"), datetime(2026, 1, 30)),
        (np.timedelta64(90, "m"), timedelta(minutes=90)),
        (pd.Timestamp("2026-01-30 11:00", tz="Europe/Vienna"), datetime(2026, 1, 30, 10, tzinfo=UTC)),
        (pd.Timedelta(minutes=90), timedelta(minutes=90)),
        (math.nan, None),
        (np.float64("nan"), None),
        (Decimal("NaN"), None),
        (Decimal("sNaN"), None),
        (pd.NaT, None),
        (pd.NA, None),
        (np.float32("nan"), None),
        (np.datetime64("NaT"), None),
        (np.timedelta64("NaT"), None),
    ],
    ids=repr,
)
def test_values_of_numpy_and_pandas_are_those_of_python(value: Any, alike: Any) -> None:
    first, second = ([{"at": 1, "name": "a", "value": one}] for one in (value, alike))
    assert events(first) == events(second)


@pytest.mark.parametrize(
    "value",
    [
        pd.Timestamp("2026-01-30 10:00:00.000000999"),
        pd.Timestamp("2026-01-30 11:00:00.000000999", tz="Europe/Vienna"),
        pd.Timedelta(5, "ns"),
    ],
    ids=repr,
)
def test_nanoseconds_are_those_of_a_frame(value: Any) -> None:
    frame = pd.DataFrame([{"at": 1, "name": "a", "value": value}])
    assert events(frame.to_dict("records")) == events(frame)


def test_a_time_finer_than_a_microsecond_is_refused_as_in_a_frame() -> None:
    frame = pd.DataFrame([{"at": pd.Timestamp("2026-01-30 10:00:00.000000999"), "name": "a", "value": 1}])
    for given in (frame, frame.to_dict("records")):
        with pytest.raises(StreamError, match="times finer than a microsecond cannot be kept; round them"):
            events(given)


def test_a_missing_value_of_pandas_needs_no_mapping() -> None:
    rows = [{"at": 1, "name": "a", "value": pd.NA}, {"at": 2, "name": "b", "value": 7}]
    found = run("SELECT ?name ?value { ?name :value ?value }", rows, time="at", subject="name")
    assert [match["value"] for match in found] == [7]


@pytest.mark.parametrize("key", ["retract", "retracted"])
@pytest.mark.parametrize("missing", [None, pd.NA, math.nan, np.float32("nan"), pd.NaT], ids=repr)
def test_a_record_without_a_word_on_it_withdraws_nothing(key: str, missing: Any) -> None:
    """As in a frame, where a column of true and false has a gap."""
    rows = [{"at": 1, "name": "a", "value": 5, key: missing}, {"at": 2, "name": "b", "value": 7, key: False}]
    made = events(rows)
    assert [event.triples[0][2][1] for event in made] == ["5", "7"]
    assert not any(isinstance(event, Retraction) for event in made)


@pytest.mark.parametrize("tags", [["x", "y"], ("x", "y"), np.array(["x", "y"]), np.array(["x"])], ids=repr)
def test_a_tuple_and_an_array_are_lists(tags: Any) -> None:
    rows: list[Any] = [{"at": 1, "name": "a", "value": 1}, {"at": 2, "name": "b", "value": 2, "tags": tags}]
    for given in (rows, iter(rows), rows[::-1]):
        found = run("SELECT ?value { ?name :value ?value }", given, time="at", subject="name")
        assert {match["value"] for match in found} == {1, 2}
        assert "'tags' is a list and left out" in "".join(found.warnings)
    by_tag = {"time": "{at}", "subject": ":{name}", "predicate": ":tag", "object": "{tags[]}"}
    assert [e.triples[0][2] for e in events(rows, by_tag)] == [f'"{tag}"' for tag in tags]


def test_an_infinite_decimal_is_refused() -> None:
    with pytest.raises(StreamError, match=r"'value' is Decimal\('-Infinity'\), which no xsd:decimal is"):
        events([{"at": 1, "name": "a", "value": Decimal("-Infinity")}])


def test_numbers_of_any_size_are_integers() -> None:
    (only,) = events([{"at": 1, "name": "a", "value": 10**30}])
    assert only.triples[0][2] == f'"{10**30}"^^<http://www.w3.org/2001/XMLSchema#integer>'


@pytest.mark.parametrize(
    "at",
    [
        "2026-01-30T10:00:00Z",
        datetime(2026, 1, 30, 10),
        datetime(2026, 1, 30, 11, tzinfo=VIENNA),
        pd.Timestamp("2026-01-30 10:00"),
        np.datetime64("2026-01-30T10:00", "ms"),
        np.datetime64("2026-01-30T10"),
        1_769_767_200,
        1_769_767_200.0,
        np.int64(1_769_767_200),
        Decimal("1769767200"),
        "1769767200",
    ],
    ids=repr,
)
def test_times_are_read_by_a_mapping_and_without_one(at: Any) -> None:
    assert [e[:2] for e in events([{"at": at, "name": "a", "value": 1}])] == [(TEN, TEN)]
    assert [e[:2] for e in events([{"time": at, "triples": ":a :p 1 ."}], None)] == [(TEN, TEN)]
    interval = [{"start": at, "end": at, "triples": ":a :p 1 ."}]
    assert [e[:2] for e in events(interval, None)] == [(TEN, TEN)]


def test_a_float_counts_to_the_microsecond_in_dicts_and_frames() -> None:
    rows = [{"at": 1769767200.1234567, "name": "a", "value": 1}]
    for given in (rows, pd.DataFrame(rows)):
        assert [e.end for e in events(given)] == [TEN + 123_457]
    milliseconds = [{"at": 1769767200123.5, "name": "a", "value": 1}]
    for given in (milliseconds, pd.DataFrame(milliseconds)):
        assert [e.end for e in events(given, {**MAPPING, "time_unit": "ms"})] == [TEN + 123_500]


def test_a_csv_reader_gives_what_its_file_gives(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('at,name,value\n1,a,10\n2,b,"x, y"\n3,c,\n4,d,2.50\n')
    with file.open() as text:
        assert events(csv.DictReader(text)) == events(file)


def test_a_key_inside_an_object_is_named_with_a_point() -> None:
    rows = [{"at": 1, "sensor": {"id": "a"}, "value": 1}]
    (only,) = events(rows, {**MAPPING, "subject": ":{sensor.id}"})
    assert only.triples[0][0] == "<http://example.org/a>"


def test_a_record_may_withdraw_and_punctuate() -> None:
    rows: list[Any] = [
        {"time": 1, "triples": ":a :p 1 ."},
        {"time": 1, "triples": ":a :p 1 .", "retract": True},
        {"punctuate": 2.0},
    ]
    kinds = [type(item).__name__ for item in read_stream(rows)]
    assert kinds == ["Event", "Retraction", "Punctuation"]


def test_a_list_is_put_in_order_and_an_iterator_is_not() -> None:
    rows = [{"at": n, "name": "a", "value": n} for n in (2, 1)]
    with pytest.warns(UserWarning, match="the records: not in order of time, so sorted first"):
        assert [e.end for e in events(rows, in_order=True)] == [1_000_000, 2_000_000]
    assert [e.end for e in events(iter(rows), in_order=True)] == [2_000_000, 1_000_000]


def test_records_are_read_one_by_one() -> None:
    taken = []

    def rows() -> Any:
        for n in (1, 2, 3):
            taken.append(n)
            yield {"at": n, "name": "a", "value": n}

    stream = read_stream(rows(), mapping=MAPPING)
    assert taken == []
    assert next(stream).end == 1_000_000  # type: ignore[union-attr]
    assert taken == [1]


def test_a_wrong_record_is_named_with_its_number() -> None:
    rows = [{"at": 1, "name": "a", "value": 1}, {"at": "soon", "name": "b", "value": 1}]
    with pytest.raises(StreamError, match=r"the records:2: the time cannot be read: .*\n.*'at': 'soon'"):
        events(rows)
    with pytest.raises(StreamError, match=r"the records:1: 'value' is .*surrogate"):
        events([{"at": 1, "name": "a", "value": "\ud800"}])


def test_keys_that_no_record_has_are_told() -> None:
    rows = [{"at": 1, "nam": "a", "value": 1}]
    with pytest.raises(StreamError, match=r"the mapping uses 'name', which no record has\n  did you mean nam\?"):
        events(rows)
    with pytest.warns(UserWarning, match="the records: no event was made of it; the mapping uses name"):
        assert events(iter(rows)) == []


def test_a_key_that_some_records_lack_is_a_missing_value() -> None:
    rows = [{"at": 1, "name": "a"}, {"at": 2, "name": "b", "value": 1}]
    assert [e.end for e in events(rows)] == [2_000_000]


def test_a_file_is_still_a_file() -> None:
    assert [e.end for e in events(io.BytesIO(b"at,name,value\n1,a,1\n"))] == [1_000_000]
