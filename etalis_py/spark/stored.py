"""A shard in Spark's state store: a snapshot, the journals since then, and the events that wait.

========= ============ ===========================================================================================
state     kind         holds
========= ============ ===========================================================================================
head      value        version, mark, shards, level, the sizes of snapshot and journal
snapshot  list         the engine's snapshot in pieces
journal   list         one entry a batch: the version and mark it leads to, the mark it starts from, the journal
waiting   list         events whose instant is not over, as MessagePack
========= ============ ===========================================================================================

A version counts the batches of a shard.  After a failed attempt a worker may hold a version of which the store knows
nothing, or another one of the same number; so each version has a random mark, and a live engine is used only when both
agree.  An older engine catches up by the journals, if they begin where it stands.  A snapshot is written when the
journals have become larger than the last one: what is written is in proportion to what happened.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec

from etalis_py.engine.snapshots import SnapshotError
from etalis_py.spark.shard import Shard
from etalis_py.spark.spec import SparkError

HEAD = "version long, mark string, shards int, level int, snapshot_bytes long, journal_bytes long"
PIECES = "data binary"
JOURNAL = "version long, mark string, base string, data binary"

PIECE = 4 << 20
LEAST = 1 << 20  # journals below this size never cause a snapshot
MOST_LIVE = 256  # shards that a worker process keeps

_LIVE: OrderedDict[tuple[str, int], tuple[int, str, Shard]] = OrderedDict()
"""The live shards of this worker process, by run and slot: ``version``, ``mark``, shard.  Only a cache: see above."""


class StoredShard:
    """The state of the group that Spark is at, and how a shard comes out of it and goes back."""

    def __init__(self, handle: Any) -> None:
        self.head = handle.getValueState("head", HEAD)
        self.snapshot = handle.getListState("snapshot", PIECES)
        self.journal = handle.getListState("journal", JOURNAL)
        self.waiting = handle.getListState("waiting", PIECES)
        self.version = 0
        self.mark = ""
        self.sizes = (0, 0)
        self._had_waiting = False

    def load(self, key: tuple[str, int], fresh: Callable[[], Shard], level: int) -> Shard:
        """The shard as it was stored; taken out of the cache, so that a failed attempt leaves nothing there."""
        cached = _LIVE.pop(key, None)
        head = self.head.get()
        if head is None:
            self.version, self.mark, self.sizes, self._had_waiting = 0, "", (0, 0), False
            return fresh()
        version, mark, shards, stored_level, *sizes = head
        self.version, self.mark, self.sizes = version, mark, (sizes[0], sizes[1])
        if cached is not None and cached[:2] == (version, mark):
            self._had_waiting = bool(cached[2].waiting)
            return cached[2]
        shard = self._caught_up(cached) if cached is not None else None
        if shard is None:
            shard = fresh()
            self._check(shard, shards, stored_level, level)
            self._rebuild(shard)
        shard.waiting = [_event(x) for (data,) in self.waiting.get() for x in msgspec.msgpack.decode(data)]
        self._had_waiting = bool(shard.waiting)
        return shard

    def _check(self, shard: Shard, shards: int, stored_level: int, level: int) -> None:
        part = shard.part
        if shards != part.shards or stored_level != level:
            raise SparkError(
                f"the checkpoint was made with {shards} shards for {', '.join(part.queries)}, now there are "
                f"{part.shards}: go on with {shards}, or start from a new checkpoint folder and replay the stream"
            )

    def _caught_up(self, cached: tuple[int, str, Shard]) -> Shard | None:
        """An older live engine with the journals since its version, if they begin where it stands."""
        version, mark, shard = cached
        if version >= self.version:
            return None
        entries = [entry for entry in self.journal.get() if entry[0] > version]
        if len(entries) != self.version - version or entries[0][2] != mark:
            return None
        for _, _, _, data in entries:
            shard.engine.apply_journal(bytes(data))
        return shard

    def _rebuild(self, shard: Shard) -> None:
        pieces = [bytes(data) for (data,) in self.snapshot.get()]
        entries = list(self.journal.get())
        sizes = (sum(map(len, pieces)), sum(len(entry[3]) for entry in entries))
        if sizes != self.sizes or (entries and entries[-1][1] != self.mark):
            raise SparkError(
                f"the stored state of shard {shard.number} of {', '.join(shard.part.queries)} is incomplete: expected "
                f"{self.sizes} bytes of snapshot and journal, found {sizes}; restore the checkpoint folder from a "
                "copy, or start from a new one and replay the stream"
            )
        try:
            if pieces:
                shard.engine.restore(b"".join(pieces))
            for entry in entries:
                shard.engine.apply_journal(bytes(entry[3]))
        except (SnapshotError, KeyError) as error:
            raise SparkError(
                f"the checkpoint does not belong to this program (shard {shard.number} of "
                f"{', '.join(shard.part.queries)}): {error}; go on with the program it was made by, or start from a "
                "new checkpoint folder and replay the stream"
            ) from None

    def save(self, key: tuple[str, int], shard: Shard, level: int) -> None:
        """Store what happened since ``load``, and keep the shard for the next batch."""
        before, version, mark = self.mark, self.version + 1, uuid.uuid4().hex
        journal = shard.engine.take_journal()
        snapshot_bytes, journal_bytes = self.sizes[0], self.sizes[1] + len(journal)
        if journal_bytes > max(LEAST, snapshot_bytes):
            data = shard.engine.snapshot()
            self.snapshot.put([(data[i : i + PIECE],) for i in range(0, len(data), PIECE)])
            self.journal.clear()
            snapshot_bytes, journal_bytes = len(data), 0
        else:
            self.journal.appendValue((version, mark, before, journal))
        if shard.waiting:
            self.waiting.put([(data,) for data in _packed(shard.waiting)])
        elif self._had_waiting:
            self.waiting.clear()
        self.head.update((version, mark, shard.part.shards, level, snapshot_bytes, journal_bytes))
        self.version, self.mark, self.sizes = version, mark, (snapshot_bytes, journal_bytes)
        _LIVE[key] = (version, mark, shard)
        while len(_LIVE) > MOST_LIVE:
            _LIVE.popitem(last=False)


def _packed(events: list[Any]) -> list[bytes]:
    return [msgspec.msgpack.encode(events[i : i + 10_000]) for i in range(0, len(events), 10_000)]


def _event(raw: list[Any]) -> Any:
    start, end, triples, stream, graph = raw
    return start, end, tuple(tuple(t) for t in triples), stream, graph
