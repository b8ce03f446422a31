"""What is there at once in topics is few steps, with a lateness, corrections, an end and several topics, too."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest

from etalis_py import Engine, Event, event
from etalis_py.engine.driver import Driver
from etalis_py.streams import Stream, merge
from etalis_py.streams.kafka import read_kafka
from tests.streams.fake_topic import Message, client

QUERY = "SELECT ?x ?y { { ?c :p ?x } SEQ { ?c :p ?y } FILTER (?y = ?x + 2) }"
COUNT, PARTITIONS = 600, 2


def topic(monkeypatch: pytest.MonkeyPatch, numbers: Sequence[int], name: str, mixed: int) -> Stream:
    """A topic with one event for each of the numbers, some of them in reversed order."""
    numbers = [one for begin in range(0, len(numbers), mixed) for one in reversed(numbers[begin : begin + mixed])]
    messages = [
        Message(n % PARTITIONS, n // PARTITIONS, f'{{"time": {one}, "triples": ":c{one % 2} :p {one} ."}}'.encode())
        for n, one in enumerate(numbers)
    ]
    portions = [sorted(messages[at : at + 300], key=Message.partition) for at in range(0, len(messages), 300)]
    portions.append([Message(one, len(messages), ends=True) for one in range(PARTITIONS)])
    monkeypatch.setitem(sys.modules, "confluent_kafka", client(portions, PARTITIONS))
    return read_kafka(f"kafka://h/{name}?until=now", in_order=False if mixed > 1 else None, name="<urn:s>")


def expected(until: int) -> list[str]:
    engine = Engine(QUERY)
    events: list[Event] = [event(f":c{n % 2} :p {n}", n, stream="urn:s") for n in range(until)]
    return sorted(match.id for match in (*engine.push_all(events), *engine.close()))


@pytest.mark.parametrize(
    ("given", "until", "topics", "mixed"),
    [
        ({}, None, 1, 1),
        ({"lateness": 600_000_000}, None, 1, 7),
        ({"revise": 600_000_000}, None, 1, 7),
        ({}, 399, 1, 1),
        ({"lateness": 600_000_000}, 399, 2, 7),
        ({}, None, 2, 1),
        ({"revise": 600_000_000}, None, 2, 7),
    ],
)
def test_few_steps_and_the_same_matches(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], until: int | None, topics: int, mixed: int
) -> None:
    """With a lateness and with corrections the partitions are read as they come, mixed."""
    streams = [topic(monkeypatch, range(part, COUNT, topics), f"t{part}", mixed) for part in range(topics)]
    end = None if until is None else until * 1_000_000
    with merge(streams) if topics > 1 else streams[0] as stream:
        steps = list(Driver(Engine(QUERY, **given), stream, until=end).steps())
    net: dict[str, int] = {}
    for step in steps:
        assert not step.late
        for match in step.matches:
            net[match.id] = net.get(match.id, 0) + (-1 if match.retracted else 1)
    assert sorted(id for id, count in net.items() if count) == expected(COUNT if until is None else until + 1)
    assert {*net.values()} <= {0, 1}
    assert len(steps) < 60
