"""A client of Kafka that gives portions of messages as a test has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

END_OF_PARTITION = -191


@dataclass(slots=True)
class Message:
    """A message, or, with ``ends``, the news that its partition is read to its end."""

    number: int
    place: int = 0
    content: bytes | None = None
    more: list[tuple[str, bytes | None]] = field(default_factory=list)
    stamp: tuple[int, int] = (0, -1)
    ends: bool = False

    def partition(self) -> int:
        return self.number

    def offset(self) -> int:
        return self.place

    def error(self) -> Any:
        return SimpleNamespace(code=lambda: END_OF_PARTITION) if self.ends else None

    def value(self) -> bytes | None:
        return self.content

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return self.more or None

    def timestamp(self) -> tuple[int, int]:
        return self.stamp


def client(portions: Sequence[Sequence[Message]], partitions: int) -> Any:
    """What stands for the module ``confluent_kafka``: a topic that ends where each partition has the last message."""
    ends = dict.fromkeys(range(partitions), 0)
    for portion in portions:
        for message in portion:
            if not message.ends:
                ends[message.number] = message.place + 1

    class Consumer:
        def __init__(self, settings: dict[str, object]) -> None:
            self._portions: list[list[Message]] = []
            self._rest: list[Message] = []

        def list_topics(self, name: str, timeout: float) -> Any:
            topic = SimpleNamespace(error=None, partitions=dict.fromkeys(range(partitions)))
            return SimpleNamespace(topics={name: topic})

        def get_watermark_offsets(self, partition: tuple[str, int], timeout: float) -> tuple[int, int]:
            return 0, ends[partition[1]]

        def assign(self, places: Sequence[tuple[str, int, int]]) -> None:
            begins = {number: offset for _, number, offset in places}
            self._portions = [
                [one for one in portion if one.ends or one.place >= begins[one.number]] for portion in portions
            ]

        def poll(self, timeout: float) -> Message | None:
            while not self._rest and self._portions:
                self._rest = self._portions.pop(0)
            return self._rest.pop(0) if self._rest else None

        def consume(self, most: int, timeout: float) -> list[Message]:
            given, self._rest = self._rest[:most], self._rest[most:]
            return given

        def pause(self, places: object) -> None: ...

        def resume(self, places: object) -> None: ...

        def close(self) -> None: ...

    return SimpleNamespace(
        Consumer=Consumer,
        KafkaException=RuntimeError,
        KafkaError=SimpleNamespace(_PARTITION_EOF=END_OF_PARTITION),
        TopicPartition=lambda *parts: parts,
        OFFSET_END=-1,
        OFFSET_BEGINNING=-2,
        TIMESTAMP_NOT_AVAILABLE=0,
    )
