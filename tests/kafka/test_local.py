"""``etalis run --stream kafka://…`` with the local engine, and the broker that Spark is tested with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from etalis_py import Event
from etalis_py.streams import DeadLetters, Idle, StreamError
from etalis_py.streams.kafka import parse_topic, read_kafka
from tests.kafka.broker import PARTITIONS, Broker, broker
from tests.processes import PATIENCE
from tests.streams.test_framed import avro, framed

__all__ = ["broker"]
AVRO = {"type": "record", "name": "R", "fields": [
    {"name": "at", "type": "long"}, {"name": "id", "type": "string"}, {"name": "value", "type": "int"},
]}  # fmt: skip
confluent_kafka = pytest.importorskip("confluent_kafka", reason="needs the extra kafka")


def line(n: int) -> str:
    return f'{{"time": {n}, "triples": "<urn:c> <urn:p> {n} ."}}'


def send(broker: Broker, topic: str, values: Sequence[str | bytes], partition: int | None = None) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.servers, "topic.metadata.propagation.max.ms": 30000}
    )
    for n, value in enumerate(values):
        message = value.encode() if isinstance(value, str) else value
        producer.produce(topic, message, partition=n % PARTITIONS if partition is None else partition)
    assert producer.flush(30) == 0


def address(broker: Broker, topic: str, more: str = "") -> str:
    return f"kafka://{broker.servers}/{topic}{more}"


def test_partitions_are_merged_in_the_order_of_time(broker: Broker) -> None:
    """However the messages lie: by turns, then a block in each partition; what is there now, twice the same."""
    send(broker, "merged", [line(n) for n in range(30)])
    for partition in range(PARTITIONS):
        send(broker, "merged", [line(n) for n in range(30 + partition, 3000, PARTITIONS)], partition)
    for _ in range(2):
        with read_kafka(address(broker, "merged", "?until=now")) as stream:
            found = [item for item in stream if isinstance(item, Event)]
        assert [event.end for event in found] == [n * 1_000_000 for n in range(3000)]
        assert {event.stream for event in found} == {f"<kafka://{broker.servers}/merged>"}
        assert stream.clock.kind == "integer"
        assert stream.counters.events == 3000


def test_one_partition_far_ahead_does_not_fill_the_memory(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etalis_py.streams.kafka.MOST_WAITING", 100)
    send(broker, "ahead", [line(n) for n in range(5000)], 0)
    send(broker, "ahead", [line(n) for n in range(0, 5000, 50)], 1)
    with read_kafka(address(broker, "ahead", "?until=now")) as stream:
        ends = [item.end for item in stream if isinstance(item, Event)]
    assert ends == sorted(ends)
    assert len(ends) == 5100


def test_what_comes_later_is_followed(broker: Broker) -> None:
    send(broker, "live", [line(1)])
    with read_kafka(address(broker, "live"), idle=0.2, name="<urn:s>") as stream:
        items = iter(stream)
        first = next(item for item in items if isinstance(item, Event))
        assert (first.end, first.stream) == (1_000_000, "<urn:s>")
        assert isinstance(next(items), Idle)
        send(broker, "live", [line(2), '{"triples": "<urn:a> <urn:p> 3 ."}'])
        # They may lie in two partitions, which are read in any order.
        later = [next(item for item in items if isinstance(item, Event)) for _ in range(2)]
        second, third = sorted(later, key=lambda e: e.end)
        assert second.end == 2_000_000
        assert abs(third.end - time.time_ns() // 1000) < 60_000_000, "the time of Kafka"
    with read_kafka(address(broker, "live", "?from=now&until=now")) as stream:
        assert [item for item in stream if isinstance(item, Event)] == []


def test_what_cannot_be_read_is_named_or_left_out_and_kept(broker: Broker, tmp_path: Path) -> None:
    send(broker, "bad", [line(1), "nonsense", line(3)], 0)
    with (
        pytest.raises(StreamError, match=r"/bad\?until=now, partition 0, offset 1:1: this is not JSON"),
        read_kafka(address(broker, "bad", "?until=now")) as stream,
    ):
        list(stream)
    with DeadLetters(tmp_path / "dead.jsonl") as dead:
        options = {"on_error": "skip", "dead_letters": dead}
        with read_kafka(address(broker, "bad", "?until=now"), **options) as stream:  # type: ignore[arg-type]
            assert len([item for item in stream if isinstance(item, Event)]) == 2
            assert stream.counters.errors == 1
    assert "offset 1" in json.loads((tmp_path / "dead.jsonl").read_text())["source"]


def run(folder: Path, url: str, *more: str) -> subprocess.CompletedProcess[str]:
    (folder / "q.rq").write_text("SELECT ?x ?y { { ?c <urn:p> ?x } SEQ { ?c <urn:p> ?y } FILTER (?y = ?x + 1) }")
    command = [str(Path(sys.executable).with_name("etalis")), "run", "q.rq", "--stream", url, *more]
    return subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, check=False, timeout=120)


def test_the_command_line(broker: Broker, tmp_path: Path) -> None:
    send(broker, "ticks", [line(n) for n in range(5)])
    done = run(tmp_path, address(broker, "ticks", "?until=now"), "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["x,y,start,end", *(f"{n},{n + 1},{n},{n + 1}" for n in range(4))]


def test_no_event_is_late_while_all_partitions_are_written(broker: Broker) -> None:
    """The times are those of the writer, whose messages reach the partitions one after the other."""
    send(broker, "written", [line(0)])

    def write() -> None:
        for begin in range(1, 600, 20):
            send(broker, "written", [line(n) for n in range(begin, begin + 20)])

    with read_kafka(address(broker, "written"), idle=0.5) as stream:
        items = iter(stream)
        assert next(item for item in items if isinstance(item, Event)).end == 0
        writer = threading.Thread(target=write)
        writer.start()
        ends = [next(item for item in items if isinstance(item, Event)).end for _ in range(600)]
        writer.join()
    assert ends == [n * 1_000_000 for n in range(1, 601)]


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("kafka://127.0.0.1:1/t", 1, "the broker does not answer"),
        ("kafka://127.0.0.1:1/t?untill=now", 1, "known are from=now, until=now"),
        ("kafka://127.0.0.1:1", 1, "write kafka://host:9092/topic"),
        ("{servers}/never-written", 1, "the topic cannot be read"),
    ],
)
def test_mistakes(broker: Broker, tmp_path: Path, url: str, code: int, said: str) -> None:
    done = run(tmp_path, url.replace("{servers}", f"kafka://{broker.servers}"))
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_and_its_settings(tmp_path: Path) -> None:
    (tmp_path / "c.properties").write_text("# who we are\nsecurity.protocol = SSL\n\nsasl.mechanism=PLAIN\n")
    found = parse_topic(f"kafka://h:1/t?config={tmp_path}/c.properties")
    assert found.config == {"security.protocol": "SSL", "sasl.mechanism": "PLAIN"}
    assert "SSL" not in repr(found), "settings may be secrets"
    (tmp_path / "c.properties").write_text("nothing\n")
    with pytest.raises(StreamError, match=r"c\.properties:1: expected name=value"):
        parse_topic(f"kafka://h:1/t?config={tmp_path}/c.properties")


def test_framed_messages_are_read_by_a_mapping(broker: Broker, tmp_path: Path) -> None:
    """Few and many (in columns); what cannot be decoded is in the dead letters, each once and with its place."""
    (tmp_path / "7.avsc").write_text(json.dumps(AVRO))
    (tmp_path / "8.json").write_text("{}")
    mapping = {"time": "{at}", "triple": [{"subject": "<urn:{id}>", "predicate": "<urn:p>", "object": "{value}"}]}
    for topic, count in (("framed-few", 20), ("framed-many", 3000)):
        values = [{"at": n, "id": f"c{n % 3}", "value": n} for n in range(count)]
        send(broker, topic, [framed(7, avro(AVRO, one)) if n % 2 else framed(8, json.dumps(one).encode())
                             for n, one in enumerate(values)])  # fmt: skip
        send(broker, topic, [framed(9, b"{}"), b"{}", framed(7, b"\x05")], 0)
        letters = DeadLetters(tmp_path / f"{topic}.letters")
        url = address(broker, topic, f"?until=now&schemas={tmp_path}")
        with read_kafka(url, mapping=mapping, on_error="skip", dead_letters=letters) as stream:
            events = [item for item in stream if isinstance(item, Event)]
        assert [event.end for event in events] == [n * 1_000_000 for n in range(count)]
        integer = "http://www.w3.org/2001/XMLSchema#integer"
        assert [event.triples[0][2] for event in events] == [f'"{n}"^^<{integer}>' for n in range(count)]
        refused = [json.loads(one) for one in letters.path.read_text().splitlines()]
        first = -(-count // PARTITIONS)
        assert [(one["reason"], one["source"].partition(", ")[2]) for one in refused] == [
            (f"{tmp_path} has no schema 9", f"partition 0, offset {first}"),
            ("this message has no number of a schema", f"partition 0, offset {first + 1}"),
            ("this is no message of schema 7: it ends too early", f"partition 0, offset {first + 2}"),
        ]


def test_a_partition_that_is_added_is_read_from_its_beginning(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with from=now: what is in it came after the run began."""
    admin = pytest.importorskip("confluent_kafka.admin")
    monkeypatch.setattr("etalis_py.streams.kafka.LOOK_EVERY", 0.2)
    send(broker, "grows", [line(n) for n in range(6)])
    found: set[int] = set()
    with read_kafka(address(broker, "grows", "?from=now"), idle=0.2) as stream:
        items = iter(stream)
        while not isinstance(next(items), Idle):
            """It stands at the end."""
        client = admin.AdminClient({"bootstrap.servers": broker.servers})
        client.create_partitions([admin.NewPartitions("grows", PARTITIONS + 2)])["grows"].result(30)
        send(broker, "grows", [line(10), line(11)], PARTITIONS + 1)
        send(broker, "grows", [line(12)], 0)
        until = time.monotonic() + PATIENCE
        while found != {10, 11, 12} and time.monotonic() < until:
            item = next(items)
            found |= {item.end // 1_000_000} if isinstance(item, Event) else set()
    assert found == {10, 11, 12}
