"""``kafka://host:port[,host:port]/topic``: a topic as one stream of events.  Without a port it is 9092.

Every partition is read, from its oldest message, without a consumer group: a run starts over, as with a file, or goes
on from the offsets in its checkpoint.  One that is added is noticed within half a minute.  The partitions are merged in
order of time.  While somebody writes, the events behind the end of a partition come a little later than the others of
their time, so an event waits for them: a second, or as long as the patience is if that is shorter.  Nothing waits in a
topic of one partition, nor if the events are not to be put in order (``in_order=False``).  A message without a time has
that of Kafka.  JSON messages that are there at once are read in columns, if they are many.

A message with a header ``retract`` (empty, ``true`` or ``1``) withdraws what it states, for the time that it states.
In a tombstone (a message without a value), that header contains the message to withdraw.

After ``?``, joined by ``&``:

=================== ================================================================================================
``from=now``        only messages from now on
``until=now``       only messages up to now; the stream then has an end
``format=trig``     each message is a document of this format (default: a JSON line)
``registry=URL``    messages are framed by a schema registry, and are Avro or JSON: see ``framed``
``schemas=FOLDER``  the same, with the schemas in a folder: ``7.avsc``, ``8.json``
``config=FILE``     a file of ``name=value`` lines for the client: security.protocol, sasl.mechanism and so on
=================== ================================================================================================

Needs the package confluent-kafka: the extra ``kafka``.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import parse_qsl, urlsplit

from etalis_rules.terms import iri

from etalis_py.events import Event, Retraction
from etalis_py.events.errors import StreamError, check_no_password
from etalis_py.garbage import few_collections
from etalis_py.streams.framed import Framed, framing_of
from etalis_py.streams.messages import Messages
from etalis_py.streams.options import ReadOptions, StreamOptions
from etalis_py.streams.origin import Origin
from etalis_py.streams.partitions import BEGINNING, Offset, Partitions
from etalis_py.streams.sources import FORMATS, SLICE, Burst, Patience, now
from etalis_py.streams.stream import Stream, items_of
from etalis_py.streams.timing import Idle
from etalis_py.streams.waiting import NEVER, Placed, Waiting

if TYPE_CHECKING:
    from etalis_py.streams.columns.json_messages import JsonMessages
    from etalis_py.streams.columns.merge_in_order import Chunk

PATIENCE = 10.0
AT_ONCE = 10_000
HOLD = 1.0  # seconds that an event waits for earlier ones of other partitions
LOOK_EVERY = 30.0  # seconds between two looks for new partitions
MANY = 200  # messages at once for which columns pay
MOST_WAITING = 20_000
RETRACT = "retract"
_NOT_IN_SERVER = re.compile(r"[\s;|\\]")
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
    framing: Framed | None = None


def parse_topic(url: str) -> Topic:
    """The parts of an address.

    >>> topic = parse_topic("kafka://a:9092,b:9092/ticks?until=now&format=trig")
    >>> topic.servers, topic.name, topic.until_now, topic.format
    ('a:9092,b:9092', 'ticks', True, 'trig')
    """
    check_no_password(url)
    try:
        split = urlsplit(url)
        for server in split.netloc.rpartition("@")[2].split(",") if split.netloc else ():
            _check_server(server.strip())
    except ValueError as error:
        raise StreamError(f"this is not the address of a topic: {error}", source=url, hint=_EXAMPLE) from None
    name = split.path.strip("/")
    if split.scheme != "kafka" or not split.netloc or not name or "/" in name or split.fragment:
        raise StreamError("this is not the address of a topic", source=url, hint=_EXAMPLE)
    if "@" in split.netloc:
        hint = "put sasl.username=… and sasl.password=… into a file, and add ?config=FILE"
        raise StreamError("the address of a topic has no place for a user", source=url, hint=hint)
    given = dict(parse_qsl(split.query, keep_blank_values=True))
    format = given.pop("format", "jsonl")
    if format not in FORMATS or format == "csv":
        raise StreamError(f"messages of format {format!r} cannot be read", source=url, hint="jsonl, nq, trig, ttl, …")
    ends = {key: given.pop(key, "") for key in ("from", "until")}
    config = _read_config(given.pop("config", ""))
    framing = framing_of(given.pop("registry", ""), given.pop("schemas", ""))
    if framing is not None and format != "jsonl":
        raise StreamError(f"framed messages are JSON, not {format}", source=url, hint="leave format= out")
    wrong = next(iter([*given, *(f"{key}={value}" for key, value in ends.items() if value not in ("", "now"))]), "")
    if wrong:
        hint = "known are from=now, until=now, format=…, registry=URL, schemas=FOLDER and config=FILE"
        raise StreamError(f"this address says {wrong!r}", source=url, hint=hint)
    return Topic(url, split.netloc, name, bool(ends["from"]), bool(ends["until"]), format, config, framing)


def _check_server(server: str) -> None:
    """ValueError if this is not one broker: the client takes what it cannot read for one that does not answer.

    >>> _check_server("[::1]:9092"), _check_server("localhost")
    (None, None)
    """
    if _NOT_IN_SERVER.search(server):
        raise ValueError(f"{server!r} is no host: several of them have commas between them, a:9092,b:9092")
    if server.count(":") > 1 and "[" not in server:
        raise ValueError(f"{server!r} has more than one colon: an IPv6 address stands in brackets, [::1]:9092")
    split = urlsplit(f"//{server}")
    if not split.hostname:
        raise ValueError(f"{server!r} names no host")
    if split.port == 0:
        raise ValueError("port 0 is none")


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
    messages = Messages(replace(given, name=stream), topic.framing)
    patience = None if given.idle is None else Patience(given.idle)
    idle = HOLD if given.idle is None else given.idle
    reader = _Reader(topic, messages, patience, 0.0 if given.in_order is False else min(HOLD, idle))
    return Stream(
        items_of(reader.chunks),
        name=stream,
        source=url,
        contexts=[messages.context],
        close=reader.close,
        bulk=reader.chunks,
        patience=() if patience is None else (patience,),
        origin=Origin("connected", address, topic.format, drain=reader.drain),
    )


class _Reader:
    """A consumer of all partitions, and the events of each partition that wait for the others.

    State: these events, the partitions that are read to their end, and those that are far ahead; for what has arrived
    in the last ``hold`` seconds, when it did and the latest time of an event then.
    """

    def __init__(self, topic: Topic, messages: Messages, patience: Patience | None, hold: float) -> None:
        try:
            import confluent_kafka
        except ImportError:
            raise StreamError(
                "Kafka needs the package confluent-kafka, which is not installed",
                source=topic.url,
                hint="install it with: pip install 'etalis-py[kafka]'",
            ) from None
        self._kafka, self._topic, self._messages, self._patience = confluent_kafka, topic, messages, patience
        self._hold, self._up_to = hold, NEVER
        self._arrived: deque[tuple[float, int]] = deque()
        self._failure: BaseException | None = None  # raised when what came before it has been given
        self._draining = False
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
            raise self._failure_of(error) from None
        try:
            self._tracker = messages.context.tracker = self._looked_up()
        except StreamError:
            self._consumer.close()
            raise

    def _failure_of(self, error: object) -> StreamError:
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
        self._numbers, self._waiting = numbers, Waiting(numbers)
        ends = {number: self._end_of(number) for number in numbers} if topic.from_now or topic.until_now else {}
        begins = ends if topic.from_now else dict.fromkeys(numbers, BEGINNING)
        return Partitions(begins, ends if topic.until_now else None)

    def _assign(self) -> None:
        """Begin to read where the run begins, or where another process was; partitions after its end are left out."""
        self._ends = self._tracker.ends
        if self._ends:
            self._numbers = sorted(self._ends)
            self._waiting = Waiting(self._numbers)
        self._look_at = time.monotonic() + LOOK_EVERY
        places = [
            self._kafka.TopicPartition(self._topic.name, number, self._tracker.next[number][0])
            for number in self._numbers
        ]
        self._half_used = {(number, offset): done for number, (offset, done) in self._tracker.next.items() if done}
        self._consumer.assign(places)

    def _notice_partitions(self) -> None:
        """Read partitions that were added to the topic meanwhile, from their beginning, unless the run has an end."""
        if self._ends or time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_EVERY
        try:
            there = self._consumer.list_topics(self._topic.name, timeout=1.0).topics[self._topic.name].partitions
        except self._kafka.KafkaException:
            return  # the broker is away: the next look sees them
        if fresh := sorted(there.keys() - {*self._numbers}):
            self._numbers += fresh
            self._waiting.add_partitions(fresh)
            self._tracker.add(fresh)
            added = [self._kafka.TopicPartition(self._topic.name, number, BEGINNING) for number in fresh]
            self._consumer.incremental_assign(added)

    def _end_of(self, number: int) -> int:
        try:
            partition = self._kafka.TopicPartition(self._topic.name, number)
            return int(self._consumer.get_watermark_offsets(partition, timeout=PATIENCE)[1])
        except self._kafka.KafkaException as error:
            raise self._failure_of(error) from None

    def close(self) -> None:
        self._consumer.close()

    def drain(self) -> None:
        """Read no more, and wait for no partition."""
        self._draining = True

    def chunks(self) -> Iterator[Chunk]:
        """Events, silences and bursts, many at a time."""
        self._assign()
        while True:
            gathers = self._patience is not None and self._patience.gathers
            if gathers:
                yield [Burst(True)]
            read_out = self._numbers if self._draining else self._read_out
            if (next_ones := self._waiting.take(read_out, self._waited_for())) is not None:
                chunk, places = next_ones
                self._tracker.mark_all(places)
                yield chunk
            if gathers:
                yield [Burst(False)]
            if self._failure is not None:
                raise self._failure
            if self._draining or (self._ends and len(self._read_out) == len(self._numbers)):
                return
            self._notice_partitions()
            self._hold_back()
            # One call for the first message, which may take long, and one for those behind it.
            first = self._next()
            if first is None:
                if self._patience is not None and (self._patience.hurried or self._is_silent()):
                    self._patience.hurried = False
                    yield [Idle(now())]
                elif gathers:
                    yield [Burst(False)]  # there may be something to do between two steps
                continue
            with few_collections():  # a message counts as one that may be in a cycle
                self._take([first, *self._consumer.consume(AT_ONCE, 0)])
            if self._holds:
                self._arrived.append((time.monotonic(), self._waiting.latest))

    def _is_silent(self) -> bool:
        """Whether there is nothing to read: a broker that is slow to give what it has is no silence."""
        return not self._waiting and self._read_out.issuperset(self._numbers)

    @property
    def _holds(self) -> bool:
        """Whether partitions are waited for that are read to their end, because somebody may be writing."""
        return bool(self._hold) and not self._ends and self._failure is None and not self._draining

    def _waited_for(self) -> int | None:
        """The time after which events wait for partitions at their end: the latest that had arrived ``hold`` ago."""
        if not self._holds:
            return None
        before = time.monotonic() - self._hold
        while self._arrived and self._arrived[0][0] <= before:
            _, self._up_to = self._arrived.popleft()
        return self._up_to

    def _next(self) -> Any:
        """The next message, or None after a pause, which ends early for somebody in a hurry."""
        end = time.monotonic() + self._pause()
        while True:
            rest = max(0.0, end - time.monotonic())
            message = self._consumer.poll(min(rest, SLICE))
            if message is not None or rest <= SLICE or (self._patience is not None and self._patience.hurried):
                return message

    def _pause(self) -> float:
        """How long to wait for a message."""
        seconds = 1.0 if self._patience is None else self._patience.seconds()
        if not self._is_silent():
            seconds = max(seconds, SLICE)  # what falls due does so in a silence
        if self._arrived and self._waiting:
            seconds = min(seconds, max(0.0, self._arrived[0][0] + self._hold - time.monotonic()))
        return seconds

    # --- messages as they come ---

    def _take(self, messages: Sequence[Any]) -> None:
        """Take messages: the first ones, or few, one by one, and many in columns.  What comes after one that cannot be
        read is left.
        """
        told = self._for_the_run(messages)
        try:
            for place, message in enumerate(told):
                if len(told) - place >= MANY and (columns := self._messages.columns()) is not None:
                    self._take_in_columns(told[place:], columns)
                    return
                self._waiting.add(self._events_of(message))
        except StreamError as error:
            self._failure = error

    def _for_the_run(self, messages: Sequence[Any]) -> Sequence[Any]:
        """The messages that are for the run."""
        if len(messages) >= MANY and all(message.error() is None for message in messages):
            # Within a partition offsets rise, so the last one says whether all are before the end of the run.
            last = {message.partition(): message.offset() for message in messages}
            if all(number not in self._ends or offset < self._ends[number] for number, offset in last.items()):
                self._read_out -= {number for number in last if not self._ends}
                return messages
        return [message for message in messages if self._says_something(message)]

    def _says_something(self, message: Any) -> bool:
        """Whether a message is for the run; if it says that its partition is read to its end, this is noted.

        A broker may say so before it gives messages that it has acknowledged: then the end of the run is not there yet.
        """
        number, error = message.partition(), message.error()
        if error is not None:
            if error.code() == self._kafka.KafkaError._PARTITION_EOF:
                if message.offset() >= self._ends.get(number, 0):
                    self._read_out.add(number)
                return False
            raise self._failure_of(error)
        if number in self._ends and message.offset() >= self._ends[number]:
            self._read_out.add(number)
            return False
        if not self._ends:
            self._read_out.discard(number)
        return True

    def _events_of(self, message: Any) -> list[Placed]:
        """The events of a message, each with the place behind it; without those that were used already."""
        value, retracts = said(message.value(), message.headers())
        if value is None:
            return []
        number, offset = message.partition(), message.offset()
        kind, stamp = message.timestamp()
        arrival = None if kind == self._kafka.TIMESTAMP_NOT_AVAILABLE else stamp * 1000
        place = f"{self._topic.url}, partition {number}, offset {offset}"
        self._tracker.at = number, offset
        events = list(self._messages.events(value, place=place, arrival=arrival, retract=retracts))
        used = self._half_used.pop((number, offset), 0)
        return [
            (event, (number, offset, done) if done < len(events) else (number, offset + 1, 0))
            for done, event in enumerate(events, 1)
            if done > used
        ]

    def _take_in_columns(self, messages: Sequence[Any], columns: JsonMessages) -> None:
        import numpy as np

        from etalis_py.streams.columns.json_messages import in_columns, in_rows

        alone: dict[int, list[Placed]] = {}

        def by_places(places: Sequence[int]) -> Iterator[Event]:
            for place in places:
                alone[place] = self._events_of(messages[place])
                yield from (event for event, _ in alone[place])

        values, without = self._messages.decoded([message.value() or b"" for message in messages])
        read = columns.read(values, self._with_more(messages) + without, by_places)
        behind = np.zeros((len(messages), 3), np.int64)  # a message with several events was read alone
        behind[:, 0] = [message.partition() for message in messages]
        behind[:, 1] = [message.offset() + 1 for message in messages]
        if any(isinstance(event, Retraction) for placed in alone.values() for event, _ in placed):
            ordered = [(place, [(event, _offset(behind[place]))]) for place, event in in_rows(read)]
            ordered += alone.items()
            ordered.sort(key=itemgetter(0))
            self._waiting.add([one for _, placed in ordered for one in placed])
        else:
            batch, place = in_columns(read)
            behind = behind[place]
            for one, placed in alone.items():
                if len(placed) > 1:
                    behind[place == one] = [at for _, at in placed]
            self._waiting.add_columns(batch, behind)
        self._failure = read.failure

    def _with_more(self, messages: Sequence[Any]) -> list[int]:
        """The places of messages of which not only the value matters, or a part of which has been used already."""
        given = [place for place, message in enumerate(messages) if message.headers()]
        more = [place for place in given if any(name == RETRACT for name, _ in messages[place].headers())]
        if self._half_used:
            places = ((message.partition(), message.offset()) for message in messages)
            more += [place for place, at in enumerate(places) if at in self._half_used]
        return more

    def _hold_back(self) -> None:
        """Pause partitions that are far ahead of the others."""
        full = {number for number, count in self._waiting.counts().items() if count > MOST_WAITING}
        self._consumer.pause([self._kafka.TopicPartition(self._topic.name, n) for n in full - self._paused])
        self._consumer.resume([self._kafka.TopicPartition(self._topic.name, n) for n in self._paused - full])
        self._paused = full


def _offset(place: Any) -> Offset:
    number, offset, done = place.tolist()
    return number, offset, done


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
