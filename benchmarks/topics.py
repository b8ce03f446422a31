"""A million JSON messages from topic to topic, with a checkpoint each second: messages a second, every answer checked.

    python -m benchmarks.topics [--messages 1000000] [--every 100] [--rounds 1] [--nested] [--steps]
                                [--topics 1] [--given='--lateness 10s']

A real broker (as ``make test-kafka`` fetches it) has the messages in three partitions before the clock starts.  Each is
a plain JSON object, read by a mapping; one in ``--every`` matches, and the match goes to a second topic in a
transaction.  With ``--nested`` the values are inside objects, beside others that nobody asks for, and times are ISO
text.  With ``--topics`` they lie in several topics, and ``--given`` has more options of the run.  The run is ``etalis
run --checkpoint`` in a process of its own.  Afterwards the second topic is read as its
consumers read it, committed messages only: every match must be there, and each once.

Two figures are printed.  *With the broker's share* is messages over wall-clock time, from the start of the process to
its end, while the broker has the same cores.  *Without* is messages over the processor time of the run's process and
its threads, which is what one core makes of it; the time to start Python and to load the engine is in both.
``--steps`` also says what this processor time went into (``topic_steps``).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer

from tests.kafka.broker import PARTITIONS, Broker

QUERY = "SELECT ?s ?x { ?s <urn:price> ?x FILTER(?x < {limit}) }"
MAPPING = 'time = "{at}"\n[[triple]]\nsubject = "<urn:{id}>"\npredicate = "<urn:price>"\nobject = "{price}"\n'
NESTED = MAPPING.replace("{id}", "{firm.id}").replace("{price}", "{quote.price}")
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Result:
    messages: int
    matches: int
    seconds: float
    processor: float
    checkpoints: int
    steps: dict[str, float]

    @property
    def with_broker(self) -> float:
        return self.messages / self.seconds

    @property
    def without_broker(self) -> float:
        return self.messages / self.processor


def price_of(number: int, every: int) -> int:
    """The price in a message: one in ``every`` is below ten."""
    return number % 10 if number % every == 0 else 10 + number % 990


def time_of(number: int, *, nested: bool) -> int | str:
    """The time in a message: a thousand to an instant."""
    seconds = number // 1000
    return (EPOCH + timedelta(seconds=seconds)).isoformat() if nested else seconds


def value_of(number: int, every: int, *, nested: bool) -> dict[str, Any]:
    """What is in a message."""
    firm, at, price = f"s{number % 997}", time_of(number, nested=nested), price_of(number, every)
    if not nested:
        return {"id": firm, "at": at, "price": price, "venue": "XWBO"}
    quote = {"price": price, "currency": "EUR", "sizes": [100, 200]}
    return {"firm": {"id": firm, "seat": {"city": "Vienna"}}, "at": at, "quote": quote, "venue": "XWBO"}


def fill(broker: Broker, topics: Sequence[str], count: int, every: int, *, nested: bool = False) -> None:
    """Messages in turn over the partitions, and a thousand in turn over the topics."""
    producer = Producer(
        {
            "bootstrap.servers": broker.servers,
            "linger.ms": 50,
            "topic.metadata.propagation.max.ms": 30000,
            "enable.idempotence": True,  # else a batch that is sent again may come behind the next one
        }
    )
    for number in range(count):
        value = value_of(number, every, nested=nested)
        topic = topics[number // 1000 % len(topics)]
        while True:
            try:
                producer.produce(topic, json.dumps(value).encode(), partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(60):
        raise SystemExit("the broker did not take all messages")


def committed(broker: Broker, topic: str) -> list[dict[str, Any]]:
    """The committed messages of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.servers,
            "group.id": f"look-{time.monotonic_ns()}",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    found: list[dict[str, Any]] = []
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        message: Any
        for message in consumer.consume(10_000, 0.5):
            if message.error() is None:
                found.append(json.loads(message.value()))
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
    consumer.close()
    return found


def check(found: Sequence[dict[str, Any]], count: int, every: int, *, nested: bool = False) -> None:
    """Every match once, and no other."""
    ids = {one["id"] for one in found}
    if len(ids) < len(found):
        raise SystemExit(f"{len(found) - len(ids)} matches are there twice")
    got = Counter((one["bindings"]["s"], one["bindings"]["x"], one["end"]) for one in found)
    wanted = Counter(
        (f"urn:s{number % 997}", price_of(number, every), _as_given(time_of(number, nested=nested)))
        for number in range(count)
        if price_of(number, every) < limit_of(every)
    )
    if got != wanted:
        raise SystemExit(f"{(wanted - got).total()} matches are missing, {(got - wanted).total()} are wrong")


def limit_of(every: int) -> int:
    return 10 if every > 1 else 1000


def _as_given(time: int | str) -> int | str:
    """A time as a match has it."""
    return time.replace("+00:00", "Z") if isinstance(time, str) else time


def measure(
    broker: Broker,
    folder: Path,
    count: int,
    every: int,
    sources: Sequence[str],
    name: str,
    *,
    nested: bool = False,
    given: Sequence[str] = (),
) -> Result:
    """One run from topics to a topic; ``given``: more options of the run."""
    (folder / "mapping.toml").write_text(NESTED if nested else MAPPING)
    *ticks, alerts = (f"kafka://{broker.servers}/{topic}" for topic in (*sources, name))
    query, steps = QUERY.replace("{limit}", str(limit_of(every))), folder / f"{name}.steps.json"
    command = [sys.executable, "-m", "benchmarks.topic_steps", str(steps)]
    command += ["run", "-q", query, *(part for topic in ticks for part in ("-s", f"{topic}?until=now"))]
    command += ["-m", "mapping.toml", "-o", alerts, "--checkpoint", name, "--checkpoint-every", "1s", *given]
    used, began = _processor(), time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    seconds, used = time.perf_counter() - began, _processor() - used
    found = committed(broker, name)
    check(found, count, every, nested=nested)
    (last,) = (folder / name).glob("checkpoint-*")
    checkpoints = int(last.name.partition("-")[2])
    return Result(count, len(found), seconds, used, checkpoints, json.loads(steps.read_text()))


def _processor() -> float:
    """The processor time of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.topics", description="messages a second, from topic to topic"
    )
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--every", type=int, default=100, help="one message in so many matches (default: 100)")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--nested", action="store_true", help="values inside objects, times as ISO text")
    parser.add_argument("--steps", action="store_true", help="say what the processor time went into")
    parser.add_argument("--topics", type=int, default=1, help="how many topics the messages lie in (default: 1)")
    parser.add_argument("--given", default="", help="more options of the run, such as '--lateness 10s'")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="etalis-topics-") as name:
        folder = Path(name)
        broker = Broker(folder)
        try:
            ticks = [f"ticks{number}" for number in range(options.topics)]
            fill(broker, ticks, options.messages, options.every, nested=options.nested)
            print("messages   matches  seconds  checkpoints  messages/s with the broker's share  without")
            for number in range(options.rounds):
                target, more = f"alerts{number}", {"nested": options.nested, "given": options.given.split()}
                r = measure(broker, folder, options.messages, options.every, ticks, target, **more)
                print(
                    f"{r.messages:9,}  {r.matches:8,}  {r.seconds:7.2f}  {r.checkpoints:11}"
                    f"  {r.with_broker:34,.0f}  {r.without_broker:7,.0f}"
                )
                if options.steps:
                    print("; ".join(f"{step} {spent:.2f} s" for step, spent in r.steps.items()))
        finally:
            broker.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
