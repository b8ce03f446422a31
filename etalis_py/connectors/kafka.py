"""``kafka://host:port/topic`` as a sink: each match a JSON message with its id as the key, exactly once.

With a checkpoint the messages of one portion are a transaction; consumers that read committed messages only
(``isolation.level=read_committed``) see each match once.  The transaction also moves the offset of a consumer group of
the run's own, ``etalis-RUN``, which says afterwards whether it was committed.

After ``?``: ``config=FILE``, the settings of the client, as for a topic that is read; ``bindings=terms`` writes terms
with their types, as ``etalis run`` does, instead of plain values.  Needs confluent-kafka: the extra ``kafka``.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import msgspec

from etalis_py.connectors.plain import plain_record, plain_value
from etalis_py.connectors.registry import Request, missing
from etalis_py.connectors.tokens import Numbered
from etalis_py.events.errors import SinkError
from etalis_py.streams.json_terms import json_term
from etalis_py.streams.kafka import parse_topic
from etalis_py.streams.sinks import Match

if TYPE_CHECKING:
    from etalis_py.streams.columns.results import Results

PATIENCE = 30.0


class KafkaSink(Numbered):
    """A producer with the transactional id of the run: another process with the same id takes its place."""

    def __init__(self, address: str, *, terms: bool) -> None:
        topic = parse_topic(address)
        if topic.framing is not None:
            raise SinkError("matches are written as JSON without framing", target=topic.url,
                            hint="leave registry= and schemas= out")  # fmt: skip
        super().__init__(topic.url)
        try:
            import confluent_kafka
        except ImportError:
            missing("confluent-kafka", "kafka", self.name, sink=True)
        self._kafka, self._topic, self._terms = confluent_kafka, topic, terms
        self._settings = {"bootstrap.servers": topic.servers, "log_level": 0, **topic.config}
        self._producer: Any = None
        self._reader: Any = None

    def _failure(self, error: Any) -> SinkError:
        causes = getattr(error, "args", None)
        cause = causes[0] if causes and hasattr(causes[0], "str") else None
        silent = cause is not None and cause.code() == self._kafka.KafkaError._TIMED_OUT
        reason = "the broker does not answer" if silent else f"Kafka says: {error if cause is None else cause.str()}"
        return SinkError(reason, target=self.name, hint="start the broker, or check the address")

    def _group(self) -> str:
        return f"etalis-{self.run}"

    def _place(self, number: int = -1001) -> Any:
        return self._kafka.TopicPartition(self._topic.name, 0, number)

    def _started(self) -> Any:
        if self._producer is None:
            try:
                self._producer = self._kafka.Producer(
                    {**self._settings, "transactional.id": self._group(), "compression.type": "lz4"}
                )
                self._producer.init_transactions(PATIENCE)
            except self._kafka.KafkaException as error:
                self._producer = None
                raise self._failure(error) from None
        return self._producer

    def at(self) -> int:
        """The offset of the run's own group counts its portions."""
        self._started()  # a transaction of an earlier process is aborted, or complete, from now on
        try:
            if self._reader is None:
                self._reader = self._kafka.Consumer({**self._settings, "group.id": self._group()})
            return max(0, int(self._committed().offset))
        except self._kafka.KafkaException as error:
            raise self._failure(error) from None

    def _committed(self) -> Any:
        """The place of the group; for a moment after its first use, no broker may know who keeps it."""
        known = self._kafka.KafkaError
        passing = (known.NOT_COORDINATOR, known.COORDINATOR_NOT_AVAILABLE, known.COORDINATOR_LOAD_IN_PROGRESS)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                (place,) = self._reader.committed([self._place()], PATIENCE)
                return place
            except self._kafka.KafkaException as error:
                if error.args[0].code() not in passing or time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def record_of(self, match: Match) -> Any:
        """The key and the value of the message."""
        record = match.to_dict()
        return [match.id, msgspec.json.encode(record if self._terms else plain_record(record)).decode()]

    def write_results(self, results: Results) -> bool:
        """Take matches in columns; returns False if they have to come one by one."""
        if results.variables == ("boolean",):
            return False
        from etalis_py.streams.columns.rendering import json_objects  # takes a while to import

        binding = json_term if self._terms else _plain
        self._held += map(list, zip(results.ids.to_pylist(), json_objects(results, binding), strict=True))
        return True

    def put(self, records: list[Any], number: int) -> None:
        producer = self._started()  # from here on no other process can commit as this run
        self.check_free(self.at(), number)
        try:
            producer.begin_transaction()
            for key, value in records:
                while True:
                    try:
                        producer.produce(self._topic.name, value, key=key)
                        break
                    except BufferError:  # the broker is slower than we are: wait for it
                        producer.poll(0.1)
            metadata = self._reader.consumer_group_metadata()
            producer.send_offsets_to_transaction([self._place(number)], metadata, PATIENCE)
            producer.commit_transaction(PATIENCE)
        except self._kafka.KafkaException as error:
            self._producer = None  # the next one takes its place, and aborts the transaction
            raise self._failure(error) from None

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._producer = None


def _plain(term: str) -> Any:
    return plain_value(json_term(term))


def open_sink(address: str, request: Request) -> KafkaSink:
    split = urlsplit(address)
    given = dict(parse_qsl(split.query))
    bindings = given.pop("bindings", "plain")
    if bindings not in ("plain", "terms"):
        raise SinkError(f"bindings={bindings} is unknown", target=address, hint="bindings=plain or bindings=terms")
    parse_topic(address.partition("?")[0])  # an address without a host would be put together in another way
    query = "&".join(f"{name}={value}" for name, value in given.items())
    return KafkaSink(urlunsplit(split._replace(query=query)), terms=bindings == "terms")
