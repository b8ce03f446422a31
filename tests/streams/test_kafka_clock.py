"""Time that passes on a topic while nothing comes, with a consumer that says what the test has it say."""

from __future__ import annotations

import queue
import sys
import time
from types import SimpleNamespace

import pytest

from etalis_py import run
from etalis_py.streams import Idle, merge
from etalis_py.streams.kafka import read_kafka

ABSENT = "SELECT ?o { ?o :placed ?x } SEQ NOT { ?o :shipped ?y } WITHIN 500 ms"
END_OF_PARTITION = -191


class Message:
    """A message of one partition; without a value, the news that the partition is read to its end."""

    def __init__(self, value: str | None, partition: int = 0) -> None:
        self._value, self._partition = value, partition

    def partition(self) -> int:
        return self._partition

    def error(self) -> object:
        return None if self._value is not None else SimpleNamespace(code=lambda: END_OF_PARTITION)

    def value(self) -> bytes:
        return (self._value or "").encode()

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 0, -1

    def offset(self) -> int:
        return 0


class Consumer:
    """A consumer of two partitions; ``waits`` are the timeouts of its polls."""

    def __init__(self, settings: dict[str, object]) -> None:
        self.messages: queue.Queue[Message] = queue.Queue()
        self.waits: list[float] = []
        consumers.append(self)

    def list_topics(self, name: str, timeout: float) -> object:
        return SimpleNamespace(topics={name: SimpleNamespace(error=None, partitions={0: None, 1: None})})

    def poll(self, timeout: float) -> Message | None:
        self.waits.append(timeout)
        try:
            return self.messages.get(timeout=timeout)
        except queue.Empty:
            return None

    def consume(self, most: int, timeout: float) -> list[Message]:
        return []

    def assign(self, partitions: object) -> None: ...

    pause = resume = assign

    def close(self) -> None: ...


consumers: list[Consumer] = []


@pytest.fixture(autouse=True)
def _client(monkeypatch: pytest.MonkeyPatch) -> None:
    client = SimpleNamespace(
        Consumer=Consumer,
        KafkaException=RuntimeError,
        KafkaError=SimpleNamespace(_PARTITION_EOF=END_OF_PARTITION),
        TopicPartition=lambda *parts: parts,
        OFFSET_END=-1,
        OFFSET_BEGINNING=-2,
        TIMESTAMP_NOT_AVAILABLE=0,
    )
    monkeypatch.setitem(sys.modules, "confluent_kafka", client)  # type: ignore[arg-type]
    consumers.clear()


def placed(order: str, at: int) -> str:
    return f'{{"time": {at}, "triples": ":{order} :placed 1 ."}}'


def test_a_deadline_falls_due_while_no_message_comes() -> None:
    """The poll after the silence is as long as is left until the deadline, not as the next silence."""
    with read_kafka("kafka://h:1/orders", idle=0.3) as stream:
        (consumer,) = consumers
        matches = run(ABSENT, stream)
        for message in (Message(None, 1), Message(placed("a", 100)), Message(None, 0)):
            consumer.messages.put(message)
        began = time.monotonic()
        match = next(matches)
        assert (match["o"], match.end) == ("http://example.org/a", "100.5")
        assert time.monotonic() - began > 0.49
        assert max(consumer.waits) <= 0.3
        assert 0 < consumer.waits[-1] < 0.25
        for message in (Message(placed("b", 200)), Message(None, 0)):
            consumer.messages.put(message)
        assert next(matches).start == 200


def test_a_silent_topic_does_not_hold_another_up() -> None:
    with merge([read_kafka(f"kafka://h:1/{name}", idle=0.3) for name in ("orders", "news")]) as merged:
        consumer = consumers[0]
        for number in range(2):
            consumers[1].messages.put(Message(None, number))
        consumer.messages.put(Message(None, 1))
        for n in range(50):
            consumer.messages.put(Message(placed("a", n)))
        consumer.messages.put(Message(None, 0))
        began = time.monotonic()
        assert [next(merged).end for _ in range(50)] == [n * 1_000_000 for n in range(50)]
        assert 0.29 < time.monotonic() - began < 50 * 0.3
        assert isinstance(next(merged), Idle)
