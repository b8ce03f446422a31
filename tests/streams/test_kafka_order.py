"""Partitions of a topic while somebody writes: an event waits for the earlier ones of partitions that are read out."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence

import pytest

from etalis_py import Event
from etalis_py.streams import Idle
from etalis_py.streams.kafka import read_kafka
from tests.streams.fake_topic import Message, client


def at(number: int, place: int, time: int) -> Message:
    return Message(number, place, f'{{"time": {time}, "triples": ":a :p {time} ."}}'.encode())


def ended(number: int) -> Message:
    return Message(number, ends=True)


BEHIND = [[at(0, 0, 1), ended(0), ended(1)], [at(0, 1, 4), ended(0)], [at(1, 0, 2), ended(1)], [at(0, 2, 5), ended(0)]]
"""The second partition gets its first message when the other one is further."""


def live(
    monkeypatch: pytest.MonkeyPatch, portions: Sequence[Sequence[Message]], partitions: int, **given: object
) -> Iterator[object]:
    """The times of the events of a topic, and its silences."""
    monkeypatch.setitem(sys.modules, "confluent_kafka", client(portions, partitions))
    with read_kafka("kafka://h/t", **given) as stream:  # type: ignore[arg-type]
        for item in stream:
            if isinstance(item, Event):
                yield item.end // 1_000_000
            elif isinstance(item, Idle):
                yield "silence"


def first(items: Iterator[object], count: int) -> list[object]:
    return [next(items) for _ in range(count)]


def test_events_come_in_order_though_their_partitions_are_read_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is silent before all have come."""
    assert first(live(monkeypatch, BEHIND, 2, idle=0.3), 5) == [1, 2, 4, 5, "silence"]


def test_many_at_once_wait_in_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [
        [ended(0), ended(1)],
        [at(0, n, 2 * n) for n in range(300)],
        [at(1, n, 2 * n + 1) for n in range(300)],
        [ended(0), ended(1)],
    ]
    assert first(live(monkeypatch, many, 2, idle=0.3), 601) == [*range(600), "silence"]


def test_a_broker_that_is_slow_to_give_what_it_has_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the end of each partition says that there is nothing; else time would pass, and what comes would be late."""
    fake = client([[at(0, 0, 1), ended(1)], [at(0, 1, 2), ended(0)]], 2)
    stalls = iter(range(2))

    class Slow(fake.Consumer):  # type: ignore[misc,name-defined]
        def poll(self, timeout: float) -> Message | None:
            stalled = not self._rest and len(self._portions) == 1 and next(stalls, None) is not None
            return None if stalled else super().poll(timeout)

    fake.Consumer = Slow
    monkeypatch.setitem(sys.modules, "confluent_kafka", fake)
    with read_kafka("kafka://h/t", idle=0.01) as stream:
        assert [type(next(stream)).__name__ for _ in range(3)] == ["Event", "Event", "Idle"]


def test_who_allows_for_late_events_gets_them_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert first(live(monkeypatch, BEHIND, 2, idle=0.3, in_order=False), 4) == [1, 4, 2, 5]


def test_one_partition_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etalis_py.streams.kafka.HOLD", 1e6)
    assert first(live(monkeypatch, [[at(0, 0, 1)], [at(0, 1, 2)]], 1, idle=1e6), 2) == [1, 2]


def test_no_event_waits_longer_than_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that stays silent does not hold the others up, and what it says later comes as it is."""
    portions = [[at(0, 0, 1), ended(0), ended(1)], [], [at(0, 1, 3), ended(0)]]
    assert first(live(monkeypatch, portions, 2, idle=0.1), 3) == [1, 3, "silence"]


def test_what_cannot_be_read_is_said_behind_what_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etalis_py.streams.kafka.HOLD", 1e6)
    items = live(monkeypatch, [[at(0, 0, 1), ended(0), ended(1)], [Message(0, 1, b"broken")]], 2, idle=1e6)
    assert next(items) == 1
    with pytest.raises(ValueError, match="this is not JSON"):
        next(items)


def test_a_topic_that_is_drained_gives_what_it_holds_back_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first partition has nothing yet, so nobody knows what it will have."""
    monkeypatch.setattr("etalis_py.streams.kafka.HOLD", 1e6)
    portions = [[at(1, 0, 4), at(1, 1, 6), ended(0), ended(1)], [at(2, 0, 5), ended(2)]]
    monkeypatch.setitem(sys.modules, "confluent_kafka", client(portions, 3))
    with read_kafka("kafka://h/t", idle=1e6) as stream:

        def stop() -> None:
            stream.drain()
            stream.hurry()

        threading.Timer(0.2, stop).start()
        assert [item.end // 1_000_000 for item in stream if isinstance(item, Event)] == [4, 5, 6]
