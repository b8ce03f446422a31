"""``kafka://host:port[,host:port]/topic``: a topic as one stream of events.

Every partition is read, from its oldest message, without a consumer group: a run starts over, as with a file, or goes
on from the offsets in its checkpoint.  The partitions are merged in order of time while there is more to read in all of
them; one that is read to its end does not hold the others up.  A message without a time has that of Kafka.

A message with a header ``retract`` (empty, ``true`` or ``1``) withdraws what it states, for the time that it states.
In a tombstone (a message without a value), that header contains the message to withdraw.

After ``?``, joined by ``&``:

=================== ================================================================================================
``from=now``        only messages from now on
``until=now``       only messages up to now; the stream then has an end
``format=trig``     each message is a document of this format (default: a JSON line)
``config=FILE``     a file of ``name=value`` lines for the client: security.protocol, sasl.mechanism and so on
=================== ================================================================================================

Needs the package confluent-kafka: the extra ``kafka``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack
from urllib.parse import parse_qsl, urlsplit

from etalis_rules.terms import iri

from etalis_py.events import Event
from etalis_py.streams.elements import Item
from etalis_py.streams.errors import StreamError
from etalis_py.streams.messages import Messages
from etalis_py.streams.options import ReadOptions, StreamOptions
from etalis_py.streams.origin import Origin
from etalis_py.streams.partitions import Offset, Partitions
from etalis_py.streams.sources import FORMATS, Burst, Patience, now
from etalis_py.streams.stream import Stream
from etalis_py.streams.timing import Idle

PATIENCE = 10.0
AT_ONCE = 1_000
MOST_WAITING = 20_000
RETRACT = "retract"
_EXAMPLE = "write kafka://host:9092/topic"


@dataclass(frozen=True, slots=True)
class Topic:
    """The parts of a ``kafka://`` address."""

    url: str
    servers: str
    name: str
    from_now: bool = False
    until_now: bool = False
    format: str = "jsonl"
    config: dict[str, str] = field(default_factory=dict, repr=False)


def parse_topic(url: str) -> Topic:
    """The parts of an address.

    >>> topic = parse_topic("kafka://a:9092,b:9092/ticks?until=now&format=trig")
    >>> topic.servers, topic.name, topic.until_now, topic.format
    ('a:9092,b:9092', 'ticks', True, 'trig')
    """
    split = urlsplit(url)
    name = split.path.strip("/")
    if split.scheme != "kafka" or not split.netloc or not name or "/" in name:
        raise StreamError("this is not the address of a topic", source=url, hint=_EXAMPLE)
    given = dict(parse_qsl(split.query, keep_blank_values=True))
    format = given.pop("format", "jsonl")
    if format not in FORMATS or format == "csv":
        raise StreamError(f"messages of format {format!r} cannot be read", source=url, hint="jsonl, nq, trig, ttl, …")
    ends = {key: given.pop(key, "") for key in ("from", "until")}
    config = _read_config(given.pop("config", ""))
    wrong = next(iter([*given, *(f"{key}={value}" for key, value in ends.items() if value not in ("", "now"))]), "")
    if wrong:
        hint = "known are from=now, until=now, format=… and config=FILE"
        raise StreamError(f"this address says {wrong!r}", source=url, hint=hint)
    return Topic(url, split.netloc, name, bool(ends["from"]), bool(ends["until"]), format, config)


def _read_config(file: str) -> dict[str, str]:
    if not file:
        return {}
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise StreamError(f"the settings of the client cannot be read: {error.strerror}", source=file) from None
    settings = {}
    for number, line in enumerate(lines, 1):
        name, equals, value = line.partition("=")
        if line.strip() and not line.lstrip().startswith("#"):
            if not equals:
                raise StreamError("expected name=value", source=file, line=number, text=line)
            settings[name.strip()] = value.strip()
    return settings


def read_kafka(url: str, **options: Unpack[StreamOptions]) -> Stream:
    """The events of a topic, without an end unless the address says ``until=now``.

    ``options`` are those of ``read_stream`` that apply to messages.  ``name``: the IRI of the stream (default: the
    address); ``idle``: seconds of silence until an ``Idle`` is yielded (default: one).
    """
    topic = parse_topic(url)
    options.setdefault("idle", 1.0)
    given = replace(ReadOptions(**options), format=topic.format)
    address = f"kafka://{topic.servers}/{topic.name}"
    stream = given.name or iri(address)
    messages = Messages(replace(given, name=stream))
    patience = None if given.idle is None else Patience(given.idle)
    reader = _Reader(topic, messages, patience)
    return Stream(
        reader.items(),
        name=stream,
        source=url,
        contexts=[messages.context],
        close=reader.close,
        patience=() if patience is None else (patience,),
        origin=Origin("connected", address, topic.format),
    )


class _Reader:
    """A consumer of all partitions, and the events of each partition that wait for the others."""

    def __init__(self, topic: Topic, messages: Messages, patience: Patience | None) -> None:
        try:
            import confluent_kafka
        except ImportError:
            raise StreamError(
                "Kafka needs the package confluent-kafka, which is not installed",
                source=topic.url,
                hint="install it with: pip install 'etalis-py[kafka]'",
            ) from None
        self._kafka, self._topic, self._messages, self._patience = confluent_kafka, topic, messages, patience
        self._waiting: dict[int, deque[tuple[Event, Offset]]] = {}
        self._read_out: set[int] = set()
        self._paused: set[int] = set()
        settings = {
            "bootstrap.servers": topic.servers,
            "group.id": "etalis",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "log_level": 0,
            "max.poll.interval.ms": 86_400_000,  # slow readers are not thrown out
            **topic.config,
        }
        try:
            self._consumer = confluent_kafka.Consumer(settings)
        except (confluent_kafka.KafkaException, TypeError, ValueError) as error:
            raise self._failure(error) from None
        try:
            self._tracker = messages.context.tracker = self._looked_up()
        except StreamError:
            self._consumer.close()
            raise

    def _failure(self, error: object) -> StreamError:
        causes = getattr(error, "args", None)
        return StreamError(f"Kafka says: {causes[0] if causes else error}", source=self._topic.url)

    def _looked_up(self) -> Partitions:
        """The partitions, and where reading begins and ends: with until=now later messages are left out."""
        kafka, topic = self._kafka, self._topic
        try:
            metadata = self._consumer.list_topics(topic.name, timeout=PATIENCE).topics[topic.name]
        except kafka.KafkaException as error:
            reason = error.args[0].str() if error.args else error
            hint = "start the broker, or check the address"
            raise StreamError(f"the broker does not answer ({reason})", source=topic.url, hint=hint) from None
        if metadata.error is not None:
            hint = "check its name; a topic is made when somebody first writes to it"
            raise StreamError(f"the topic cannot be read: {metadata.error.str()}", source=topic.url, hint=hint)
        numbers = sorted(metadata.partitions)
        self._waiting = {number: deque() for number in numbers}
        ends = {number: self._end_of(number) for number in numbers} if topic.from_now or topic.until_now else {}
        begins = ends if topic.from_now else dict.fromkeys(numbers, kafka.OFFSET_BEGINNING)
        return Partitions(begins, ends if topic.until_now else None)

    def _assign(self) -> None:
        """Begin to read where the run begins, or where another process was."""
        places = [
            self._kafka.TopicPartition(self._topic.name, number, offset)
            for number, (offset, _) in self._tracker.next.items()
        ]
        self._ends = self._tracker.ends
        self._half_used = {(number, offset): done for number, (offset, done) in self._tracker.next.items() if done}
        self._consumer.assign(places)

    def _end_of(self, number: int) -> int:
        try:
            partition = self._kafka.TopicPartition(self._topic.name, number)
            return int(self._consumer.get_watermark_offsets(partition, timeout=PATIENCE)[1])
        except self._kafka.KafkaException as error:
            raise self._failure(error) from None

    def close(self) -> None:
        self._consumer.close()

    def items(self) -> Iterator[Item]:
        self._assign()
        while True:
            gathers = self._patience is not None and self._patience.gathers
            if gathers:
                yield Burst(True)
            yield from self._in_order()
            if gathers:
                yield Burst(False)
            if self._ends and len(self._read_out) == len(self._waiting):
                return
            self._hold_back()
            # One call for the first message, which may take long, and one for those behind it.
            first = self._consumer.poll(1.0 if self._patience is None else self._patience.seconds())
            if first is None:
                if self._patience is not None:
                    yield Idle(now())
                continue
            for message in (first, *self._consumer.consume(AT_ONCE, 0)):
                self._take(message)

    def _in_order(self) -> Iterator[Event]:
        """The events that certainly come next: the earliest of the heads, while no head is missing for comparison."""
        while all(self._waiting[n] or n in self._read_out for n in self._waiting):
            heads = [(events[0][0].end, number) for number, events in self._waiting.items() if events]
            if not heads:
                return
            event, behind = self._waiting[min(heads)[1]].popleft()
            self._tracker.mark(behind)
            yield event

    def _take(self, message: Any) -> None:
        number, error = message.partition(), message.error()
        if error is not None:
            if error.code() == self._kafka.KafkaError._PARTITION_EOF:
                self._read_out.add(number)
                return
            raise self._failure(error)
        if number in self._ends and message.offset() >= self._ends[number]:
            self._read_out.add(number)
            return
        if not self._ends:
            self._read_out.discard(number)
        value, retracts = said(message.value(), message.headers())
        if value is None:
            return
        kind, stamp = message.timestamp()
        arrival = None if kind == self._kafka.TIMESTAMP_NOT_AVAILABLE else stamp * 1000
        offset = message.offset()
        place = f"{self._topic.url}, partition {number}, offset {offset}"
        self._tracker.at = number, offset
        events = list(self._messages.events(value, place=place, arrival=arrival, retract=retracts))
        used = self._half_used.pop((number, offset), 0)
        self._waiting[number] += (
            (event, (number, offset, done) if done < len(events) else (number, offset + 1, 0))
            for done, event in enumerate(events, 1)
            if done > used
        )

    def _hold_back(self) -> None:
        """Pause partitions that are far ahead of the others."""
        full = {number for number, events in self._waiting.items() if len(events) > MOST_WAITING}
        self._consumer.pause([self._kafka.TopicPartition(self._topic.name, n) for n in full - self._paused])
        self._consumer.resume([self._kafka.TopicPartition(self._topic.name, n) for n in self._paused - full])
        self._paused = full


def said(value: bytes | None, headers: Iterable[tuple[str, bytes | None]] | None) -> tuple[bytes | None, bool]:
    """The content of a message, if any, and whether the message withdraws it.

    >>> said(b"x", [("retract", b"true")]), said(None, [("retract", b"x")]), said(None, None), said(b"x", [])
    ((b'x', True), (b'x', True), (None, False), (b'x', False))
    """
    given = [content or b"" for name, content in headers or () if name == RETRACT]
    if not given:
        return value, False
    if value is None:
        return given[-1] or None, True
    if given[-1].strip().lower() not in (b"", b"true", b"1", b"false", b"0"):
        shown = given[-1].decode("utf-8", "backslashreplace")
        raise StreamError(
            f"the header {RETRACT!r} of a message says {shown!r}", hint="leave it empty, or write true or false"
        )
    return value, given[-1].strip().lower() not in (b"false", b"0")


__all__ = ["Topic", "parse_topic", "read_kafka"]
