"""``--sink kafka://…``: every match once, for consumers that read what is committed."""

from __future__ import annotations

import json
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from etalis_py import event, run
from etalis_py.connectors.registry import open_sink
from etalis_py.streams import SinkError
from etalis_py.testing.connectors import check_sink
from tests.cli import in_process
from tests.kafka.broker import Broker, broker

__all__ = ["broker"]
confluent_kafka = pytest.importorskip("confluent_kafka", reason="needs the extra kafka")

QUERY = "SELECT ?x { ?c :p ?x }"
EVENTS = [event(f":c :p {at}", at) for at in range(40)]


def committed(broker: Broker, topic: str) -> list[dict[str, Any]]:
    """The messages of a topic that are committed."""
    settings = {"bootstrap.servers": broker.servers, "group.id": "test", "isolation.level": "read_committed",
                "enable.partition.eof": True, "auto.offset.reset": "earliest"}  # fmt: skip
    consumer = confluent_kafka.Consumer(settings)
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in partitions])
    messages: list[dict[str, Any]] = []
    ended: set[int] = set()
    end = time.monotonic() + 30
    while len(ended) < len(partitions) and time.monotonic() < end:
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error() is not None:
            ended.add(message.partition())
            continue
        record = json.loads(message.value())
        assert message.key().decode() == record["id"]
        messages.append(record)
    consumer.close()
    return sorted(messages, key=lambda record: record["end"])


def test_kafka_keeps_the_contract(broker: Broker) -> None:
    address = f"kafka://{broker.servers}/contract"
    check_sink(lambda: open_sink(address), lambda: [one["id"] for one in committed(broker, "contract")])


def test_every_match_is_there_once_over_restarts(broker: Broker, tmp_path: Path) -> None:
    for count in (7, 3, 100):
        sink = open_sink(f"kafka://{broker.servers}/restarts")
        with run(QUERY, EVENTS, checkpoint=tmp_path / "ck", checkpoint_every=0, sink=sink) as matches:
            list(islice(matches, count))
    assert [one["bindings"]["x"] for one in committed(broker, "restarts")] == list(range(40))


def test_the_command_writes_to_a_topic(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text("".join(f'{{"time": {at}, "triples": ":c :p {at} ."}}\n' for at in range(5)))
    done = in_process.run(["run", "-q", QUERY, "-s", "s.jsonl", "-o", f"kafka://{broker.servers}/command"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [one["bindings"]["x"] for one in committed(broker, "command")] == list(range(5))


def test_a_broker_that_is_not_there_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etalis_py.connectors.kafka.PATIENCE", 2.0)
    with pytest.raises(SinkError, match="the broker does not answer\n  start the broker, or check the address"):
        open_sink("kafka://127.0.0.1:1/topic").recover(None)


def test_a_group_that_no_broker_keeps_yet_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker says so right after the first use of a group; every other error is told at once."""
    sink: Any = open_sink("kafka://127.0.0.1:1/topic")
    errors = confluent_kafka.KafkaError
    says = [errors.NOT_COORDINATOR, errors.COORDINATOR_LOAD_IN_PROGRESS, None, errors.GROUP_AUTHORIZATION_FAILED]

    class Reader:
        def committed(self, places: list[Any], timeout: float) -> list[Any]:
            code = says.pop(0)
            if code is not None:
                raise confluent_kafka.KafkaException(errors(code))
            return [confluent_kafka.TopicPartition("topic", 0, 7)]

    sink._reader = Reader()
    monkeypatch.setattr(type(sink), "_started", lambda self: None)
    assert sink.at() == 7
    with pytest.raises(SinkError, match="Group authorization failed"):
        sink.at()
