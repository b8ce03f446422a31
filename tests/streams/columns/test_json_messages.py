"""Messages of a topic in columns give the events, positions, dead letters and counts of messages one by one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import run
from etalis_py.events import Event
from etalis_py.streams import Stream, StreamError, kafka
from etalis_py.streams.columns.flat_form import batch_of, events_of
from etalis_py.streams.kafka import read_kafka
from etalis_py.streams.waiting import Placed, Waiting
from etalis_py.testing.connectors import MemorySink, stored
from tests.draws import examples

from ..fake_topic import Message, client
from .reading import Refused
from .test_json_lines import MORE, ODD, TIMES, TRIPLES, VALUES

SINGLE, MANY = 10**9, 2
MAPPINGS: list[dict[str, Any]] = [
    {"subject": ":{a}", "predicate": ":p", "object": "{b}", "time": "{time}"},
    {"subject": ":{a}", "predicate": ":p", "object": "{b}"},
    {"subject": ":{a}", "predicate": ":p", "object": "{b}", "time": "{time}", "retract": "{t}"},
    {"subject": ":{a.x}", "predicate": ":p", "object": "{b}", "time": "{time}"},
    {"subject": ":s", "predicate": ":p", "object": "{a[].x}", "time": "{time}"},
    {"subject": "_:{a}", "predicate": ":p", "object": "{b}", "time": "{time}"},
    {"subject": ":{a}", "predicate": ":p", "object": "{b}", "time": "{time}", "graph": ":{b}", "stream": ":{a}"},
    {"subject": ":s", "predicate": ":p", "object": "{b}", "time": "{time}", "rest": True},
    {"subject": "_:row", "predicate": ":p", "object": "{b}", "time": "{time}", "rest": True},
    {"subject": "_:row", "predicate": ":p", "object": "_:{b}", "time": "{time}"},
]


@contextmanager
def opened(portions: Sequence[Sequence[Message]], partitions: int, many: int, **options: Any) -> Iterator[Stream]:
    """The stream of a topic, read in columns where ``many`` messages are there at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "confluent_kafka", client(portions, partitions))
        patch.setattr(kafka, "MANY", many)
        with read_kafka("kafka://h:1/t?until=now", time_unit="us", **options) as stream:
            yield stream


def outcome(portions: Sequence[Sequence[Message]], partitions: int, many: int, **options: Any) -> tuple[Any, ...]:
    """Everything that can be seen of a topic, and every position on the way."""
    refused = Refused()
    if options["on_error"] == "skip":
        options["dead_letters"] = refused
    items: list[Any] = []
    error = ""
    with opened(portions, partitions, many, **options) as stream:
        try:
            stream.track()
            for chunk in stream.chunks(large=True):
                items += events_of(chunk) if isinstance(chunk, pa.RecordBatch) else chunk
        except StreamError as failure:
            error = str(failure)
    places = []
    for _ in items:
        stream.confirm(1)
        places.append(stored(stream.places()))
    return items, places, stream.counters, stream.clock, error, refused.errors


@st.composite
def topics(draw: st.DrawFn, records: st.SearchStrategy[dict[str, Any]]) -> tuple[list[list[Message]], int]:
    """Messages of up to three partitions in portions; most are usual."""
    partitions = draw(st.integers(1, 3))
    offsets = [0] * partitions
    portions = []
    for _ in range(draw(st.integers(1, 4))):
        portion = []
        for _ in range(draw(st.integers(0, 8))):
            number = draw(st.integers(0, partitions - 1))
            odd = draw(st.integers(0, 19)) == 0
            text = draw(st.sampled_from([*ODD, "{\n}", "\n"])) if odd else json.dumps(draw(records))
            value: bytes | None = text.encode("utf-8", "surrogateescape")
            more: list[tuple[str, bytes | None]] = []
            if draw(st.integers(0, 9)) == 0:
                more = [("trace", b"1"), ("retract", draw(st.sampled_from([b"", b"true", b"false", b"maybe"])))]
            if draw(st.integers(0, 19)) == 0:
                value = None
            stamp = draw(st.sampled_from([(0, -1), (1, 7)]))
            portion.append(Message(number, offsets[number], value, more, stamp))
            offsets[number] += draw(st.sampled_from([1, 1, 3]))
        if draw(st.integers(0, 3)) == 0:
            portion.append(Message(draw(st.integers(0, partitions - 1)), ends=True))
        portions.append(portion)
    portions.append([ended(number, offset) for number, offset in enumerate(offsets)])
    return portions, partitions


def ended(number: int, offset: int) -> Message:
    """The news that a partition is read to its end, which is this offset."""
    return Message(number, offset, ends=True)


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@settings(max_examples=examples(1 / 3))
@given(data=st.data())
def test_statements_in_columns_are_those_of_messages_one_by_one(on_error: str, data: st.DataObject) -> None:
    times = data.draw(st.sampled_from([TIMES[:2], [1, 2, 3, 4, 5], TIMES]))
    record = st.builds(
        lambda time, triples, more: {"time": time, "triples": triples} | more,
        st.sampled_from(times),
        st.sampled_from(TRIPLES[:3]) | st.sampled_from(TRIPLES),
        st.sampled_from(MORE),
    )
    portions, partitions = data.draw(topics(record))
    many, single = (outcome(portions, partitions, many, on_error=on_error) for many in (MANY, SINGLE))
    assert many == single


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("on_error", ["stop", "skip"])
@settings(max_examples=examples(1 / 6))
@given(data=st.data())
def test_objects_in_columns_are_those_of_messages_one_by_one(
    on_error: str, mapping: dict[str, Any], data: st.DataObject
) -> None:
    values = data.draw(st.sampled_from([VALUES[:2], VALUES[4:6], [*VALUES, [{"x": 1}, {"x": 2}]]]))
    times = data.draw(st.sampled_from([[1, 2, 3, 4, 5], TIMES]))
    record = st.fixed_dictionaries(
        {"time": st.sampled_from(times), "a": st.sampled_from(values), "b": st.sampled_from(values)},
        optional={"t": st.sampled_from(["", "true", "perhaps"])},
    )
    portions, partitions = data.draw(topics(record))
    many, single = (outcome(portions, partitions, many, on_error=on_error, mapping=mapping) for many in (MANY, SINGLE))
    assert many == single


def message(number: int, offset: int, time: int, value: int = 0) -> Message:
    text = f'{{"time": {time}, "a": "c{number}", "b": {value or offset}}}'
    return Message(number, offset, text.encode())


def test_many_messages_are_one_batch() -> None:
    """The first one shows what is made of it, the others come in columns, merged in order of time."""
    portion = [message(n % 2, n // 2, n) for n in range(100)]
    ends = [ended(0, 60), ended(1, 60)]
    with opened([portion, ends], 2, 50, mapping=MAPPINGS[0]) as stream:
        chunks = list(stream.chunks(large=True))
    batches = [chunk for chunk in chunks if isinstance(chunk, pa.RecordBatch)]
    assert sum(map(len, batches)) == 100
    assert [event.end for batch in batches for event in events_of(batch)] == list(range(100))


@pytest.mark.parametrize("many", [MANY, SINGLE])
def test_an_end_that_is_told_too_early_is_none(many: int) -> None:
    """Else the messages of this partition would come after later ones of the other."""
    first, second = ([message(p, n, n + 30 * p) for n in range(20)] for p in range(2))
    portions = [[ended(0, 0), *second, ended(1, 20)], first, [ended(0, 20)]]
    items = outcome(portions, 2, many, on_error="stop", mapping=MAPPINGS[0])[0]
    assert [event.end for event in items] == [*range(20), *range(30, 50)]


def test_a_message_in_the_middle_of_a_list_is_gone_on_with(tmp_path: Path) -> None:
    """Its elements are several events; a run that stopped within them goes on with the next one."""
    portion = [
        Message(0, n, f'{{"time": {n}, "a": [{{"x": {2 * n}}}, {{"x": {2 * n + 1}}}]}}'.encode()) for n in range(9)
    ]
    values: list[int] = []
    for _ in range(6):
        with (
            opened([portion, [ended(0, 60)]], 1, MANY, mapping=MAPPINGS[4]) as stream,
            run("SELECT ?x { ?s :p ?x }", stream, checkpoint=tmp_path / "ck", checkpoint_every=0) as matches,
        ):
            for match, _ in zip(matches, range(4), strict=False):
                values.append(match["x"])
    assert sorted(set(values)) == list(range(18))


def two_partitions() -> list[list[Message]]:
    """One is far ahead of the other in time; the values are 1 to 60, and 100 to 159."""
    first, second = ([message(p, n, n + 30 * p, n + 1 + 99 * p) for n in range(60)] for p in range(2))
    portions = [part[at : at + 10] for at in range(0, 60, 10) for part in (first, second)]
    return [*portions, [ended(0, 60), ended(1, 60)]]


@pytest.mark.parametrize("many", [MANY, SINGLE])
def test_a_caller_goes_on_after_each_stop(many: int, tmp_path: Path) -> None:
    """Only the last match before each stop comes again."""
    values: list[int] = []
    for _ in range(8):
        with (
            opened(two_partitions(), 2, many, mapping=MAPPINGS[0]) as stream,
            run("SELECT ?x { ?s :p ?x }", stream, checkpoint=tmp_path / "ck", checkpoint_every=0) as matches,
        ):
            values += [match["x"] for match in islice(matches, 25)]
    assert set(values) == {*range(1, 61), *range(100, 160)}
    assert len(values) <= 127


@pytest.mark.parametrize("options", [{}, {"lateness": "30 us"}, {"revise": "90 us"}, {"until": 1000}], ids=str)
@pytest.mark.parametrize("many", [MANY, SINGLE])
def test_a_sink_has_every_match_once_after_each_stop(many: int, options: dict[str, Any], tmp_path: Path) -> None:
    kept: list[str] = []
    ids: set[str] = set()
    for _ in range(6):
        with (
            opened(two_partitions(), 2, many, mapping=MAPPINGS[0]) as stream,
            run(
                "SELECT ?x { ?s :p ?x }",
                stream,
                checkpoint=tmp_path / "ck",
                checkpoint_every=0,
                sink=MemorySink(kept),
                **options,
            ) as matches,
        ):
            ids |= {match.id for match in islice(matches, 70)}
    assert sorted(kept) == sorted(ids)
    assert len(ids) == 120


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_a_bad_message_among_many(on_error: str) -> None:
    """What comes before it is given; it is named by its position."""
    portion = [message(0, n, n) for n in range(50)]
    portion[20].content = b'{"time": '
    items, places, _, _, error, refused = outcome(
        [portion, [ended(0, 60)]], 1, MANY, on_error=on_error, mapping=MAPPINGS[0]
    )
    assert "partition 0, offset 20" in (error or refused[0])
    assert len(items) == (20 if on_error == "stop" else 49)
    assert places[19][0]["mark"][2]["next"] == [[0, 20, 0]]


# --- the merge ---

Arrival: TypeAlias = tuple[list[Placed], set[int], int | None, bool]


@st.composite
def waits(draw: st.DrawFn) -> list[Arrival]:
    """Events as they come, the partitions that are read to their end then, the time after which these are waited for,
    and whether they come in columns.
    """
    offsets = [0, 0, 0]
    steps = []
    for _ in range(draw(st.integers(1, 8))):
        placed: list[Placed] = []
        for _ in range(draw(st.integers(0, 6))):
            number, end = draw(st.integers(0, 2)), draw(st.integers(0, 9))
            triples = tuple(("<urn:s>", "<urn:p>", f'"{n}"') for n in range(draw(st.integers(1, 2))))
            offsets[number] += 1
            placed.append((Event._make((end, end, triples, "<urn:t>", "")), (number, offsets[number], 0)))
        up_to = draw(st.none() | st.integers(-1, 10))
        steps.append((placed, draw(st.sets(st.integers(0, 2))), up_to, draw(st.booleans())))
    return [*steps, ([], {0, 1, 2}, None, False)]


def taken(steps: Iterable[Arrival], *, columns: bool) -> list[list[Placed]]:
    waiting = Waiting(range(3))
    given: list[list[Placed]] = []
    for placed, read_out, up_to, in_columns in steps:
        if columns and in_columns and placed:
            waiting.add_columns(batch_of(event for event, _ in placed), np.array([behind for _, behind in placed]))
        else:
            waiting.add(placed)
        chunk = waiting.take(read_out, up_to)
        if chunk is None:
            given.append([])
            continue
        events, places = chunk
        if isinstance(events, pa.RecordBatch):
            events, places = list(events_of(events)), [tuple(place) for place in places.tolist()]
        given.append(list(zip(events, places, strict=True)))
    return given


@settings(max_examples=examples(2))
@given(waits())
def test_partitions_are_merged_alike_in_columns_and_in_rows(steps: list[Arrival]) -> None:
    assert taken(steps, columns=True) == taken(steps, columns=False)
