"""A shard in Spark's state store (``store_layout``): a snapshot, the journals since then, and the events that wait.

Every shard has a head from the first batch on (``begin``).  A shard without one did not exist when the run began, or
its state is lost: in both cases matches would be missing, so both are refused.

A version counts the batches of a shard.  After a failed attempt a worker may hold a version that the store does not
know, or a different one with the same number; so each version has a random mark, and a live engine is used only if both
agree.  An older engine catches up with the journals, if they begin at its version.  A snapshot is written once the
journals have become larger than the last one: so the amount written is proportional to the amount of change.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from etalis_py.kernel.stored import SnapshotError
from etalis_py.spark.errors import SparkError
from etalis_py.spark.plan.checkpoint_match import ADVICE, JobIdentity, check_same_job, decoded
from etalis_py.spark.shard.shard import Shard
from etalis_py.spark.state.live_shards import Live, LiveShards, journals_begin
from etalis_py.spark.state.store_layout import States

PIECE = 4 << 20
LEAST = 1 << 20  # journals smaller than this never cause a snapshot
ENTRY = 40  # least bytes of a journal entry: a journal that is surely too long is not even begun

RESTORE = "restore the checkpoint folder from a copy, or start from a new one and replay the stream"

_LIVE = LiveShards()
"""The live shards of this worker process."""


class Head(NamedTuple):
    """The columns of ``states.HEAD``."""

    version: int
    mark: str
    job: str
    snapshot_bytes: int = 0
    snapshot_sum: int = 0
    journal_bytes: int = 0
    waiting_sum: int = 0


class StoredShard:
    """The state of the current group: loads a shard from it and saves it again."""

    def __init__(self, states: States, job: JobIdentity) -> None:
        self.job = job
        self.digest = job.digest
        self.head, self.made_by, self.snapshot, self.journal, self.waiting = states
        self.now = Head(0, "", self.digest)
        self.loaded = ""
        self._had_waiting = False

    @property
    def version(self) -> int:
        return self.now.version

    @property
    def sizes(self) -> tuple[int, int]:
        """The bytes of the snapshot and of the journals."""
        return self.now.snapshot_bytes, self.now.journal_bytes

    def usage(self) -> dict[str, int | str]:
        """For the metrics: how the shard was loaded, by which worker process, and how many shards that one holds."""
        snapshot, journal = self.sizes
        numbers = {"version": self.version, "snapshot_bytes": snapshot, "journal_bytes": journal}
        return {**numbers, "loaded": self.loaded, "worker": os.getpid(), "held": len(_LIVE)}

    def begin(self) -> None:
        """Store the state of a shard before its first event."""
        self.head.update(tuple(Head(0, "", self.digest)))
        self.made_by.update((self.job.encoded(),))

    # --- loading ---

    def load(self, key: tuple[str, int], fresh: Callable[[], Shard], size: int = 0) -> Shard:
        """The shard as it was stored; taken out of the cache, so that a failed attempt leaves nothing there.

        If there are so many events that their journal might outgrow the snapshot, they are taken without one.
        ``size``: the most events that come next.
        """
        shard = self._loaded(key, fresh, size)
        self._had_waiting = bool(shard.waiting or shard.withdrawals)
        shard.room = self._room // ENTRY
        return shard

    def _loaded(self, key: tuple[str, int], fresh: Callable[[], Shard], size: int) -> Shard:
        cached = _LIVE.pop(key, None)
        head = self.head.get()
        if head is None:
            raise SparkError(
                f"the checkpoint has no state for {_name(fresh())}: it was begun with fewer shards or with another "
                f"program, or its state is lost; go on with what it was begun with, or {RESTORE}"
            )
        self.now = Head(*head)
        self.loaded = "live"
        if self.now.job == self.digest and cached is not None:
            if cached[:2] == (self.now.version, self.now.mark):
                return cached.shard
            self.loaded, shard = "caught up", self._caught_up(cached)
        else:
            shard = None
        if shard is None:
            if self.now.job != self.digest:
                self.compare()
            self.loaded, shard = "restored" if self.version else "new", fresh()
            with shard.engine.into_rows() if 2 * size <= self._room // ENTRY else nullcontext():
                self._rebuild(key, shard)
        stored = self._waiting(shard)
        shard.waiting = [event for event, gone in stored if not gone]
        shard.withdrawals = [event for event, gone in stored if gone]
        return shard

    def compare(self) -> None:
        """Refuse the state of another job, unless this one can continue with it."""
        stored = self.made_by.get()
        try:
            before = None if stored is None else decoded(bytes(stored[0]))
        except msgspec.MsgspecError:
            before = None
        if before is None:
            raise SparkError(f"the checkpoint does not say which program it was made by; {RESTORE}")
        check_same_job(before, self.job)

    def _caught_up(self, cached: Live) -> Shard | None:
        """Bring an older live engine up to date by the journals since its version; None if that is impossible."""
        version, mark, shard, _ = cached
        if version >= self.version:
            return None
        entries = [entry for entry in self.journal.get() if entry[0] > version]
        if len(entries) != self.version - version or entries[0][2] != mark:
            return None
        for entry in entries:
            shard.engine.apply_journal(self._journal_of(shard, entry))
        return shard

    def _rebuild(self, key: tuple[str, int], shard: Shard) -> None:
        pieces = [bytes(data) for (data,) in self.snapshot.get()]
        entries = list(self.journal.get())
        _LIVE.drop_replaced(key, {self.now.mark, *(mark for entry in entries for mark in entry[1:3])})
        sizes = (sum(map(len, pieces)), sum(len(entry[4]) for entry in entries))
        if sizes != self.sizes or (entries and entries[-1][1] != self.now.mark):
            raise SparkError(
                f"the stored state of {_name(shard)} is incomplete: expected {self.sizes} bytes of snapshot and "
                f"journal, found {sizes}; {RESTORE}"
            )
        if _sum(pieces) != self.now.snapshot_sum:
            raise _damaged(shard, "its snapshot has another checksum than when it was written")
        journals = [self._journal_of(shard, entry) for entry in entries]
        # The goals of other programs are left out, and the background is the current one.
        fitted = self.now.job != self.digest
        try:
            if pieces:
                shard.engine.restore(b"".join(pieces), fitted=fitted)
            for data in journals:
                shard.engine.apply_journal(data, fitted=fitted)
        except (SnapshotError, LookupError, TypeError, ValueError) as error:
            raise SparkError(
                f"the checkpoint does not belong to this program ({_name(shard)}): {error}; {ADVICE}"
            ) from error

    @staticmethod
    def _journal_of(shard: Shard, entry: Any) -> bytes:
        data = bytes(entry[4])
        if crc32(data) != entry[3]:
            raise _damaged(shard, f"its journal of batch {entry[0]} has another checksum than when it was written")
        return data

    def _waiting(self, shard: Shard) -> list[tuple[Any, bool]]:
        pieces = [bytes(data) for (data,) in self.waiting.get()]
        if _sum(pieces) != self.now.waiting_sum:
            raise _damaged(shard, "the events that wait in it are not those that were written")
        return [_event(x) for data in pieces for x in msgspec.msgpack.decode(data)]

    # --- saving ---

    @property
    def _room(self) -> int:
        """The bytes of journal that may still be added to the snapshot."""
        return max(LEAST, self.now.snapshot_bytes) - self.now.journal_bytes

    def save(self, key: tuple[str, int], shard: Shard) -> None:
        """Store what happened since ``load``, and keep the shard for the next batch."""
        before, version, mark = self.now, self.version + 1, uuid.uuid4().hex
        changed = before.job != self.digest
        room, journal = self._room, b""
        anew = changed or shard.unjournaled or ENTRY * shard.engine.journal_entries > room
        if anew:
            shard.engine.forget_journal()
        else:
            journal = shard.engine.take_journal()
        if anew or len(journal) > room:
            data = shard.engine.snapshot()
            shard.unjournaled = False
            _put(self.snapshot, [data[i : i + PIECE] for i in range(0, len(data), PIECE)])
            self.journal.clear()
            now = Head(version, mark, self.digest, len(data), crc32(data))
            journals_begin(key, version)
        else:
            self.journal.appendValue((version, mark, before.mark, crc32(journal), journal))
            size = before.journal_bytes + len(journal)
            now = Head(version, mark, self.digest, before.snapshot_bytes, before.snapshot_sum, size)
        if changed:
            self.made_by.update((self.job.encoded(),))
        waiting = _packed([*shard.waiting, *((*event[:5], True, *event[5:]) for event in shard.withdrawals)])
        if waiting:
            _put(self.waiting, waiting)
        elif self._had_waiting:
            self.waiting.clear()
        self.now = now._replace(waiting_sum=_sum(waiting))
        self.head.update(tuple(self.now))
        _LIVE.keep(key, Live(version, mark, shard, sum(self.sizes)))


def _put(state: Any, pieces: Sequence[bytes]) -> None:
    """Put pieces into a list one at a time: what is put at once is one message, and Spark copies it several times.

    Spark's JVM of a gigabyte has no room for four messages of 48 MB.  It then breaks the connection of the worker.
    """
    first, *others = pieces
    state.put([(first,)])
    for piece in others:
        state.appendValue((piece,))


def _name(shard: Shard) -> str:
    """The name of a shard in errors."""
    program = f" (program {shard.name})" if shard.name else ""
    return f"shard {shard.number} of {', '.join(shard.part.queries)}{program}"


def _damaged(shard: Shard, what: str) -> SparkError:
    return SparkError(f"the stored state of {_name(shard)} is damaged: {what}; {RESTORE}")


def _sum(pieces: Iterable[bytes]) -> int:
    """One checksum of all pieces; 0 for none."""
    total = 0
    for piece in pieces:
        total = crc32(piece, total)
    return total


def _packed(events: list[Any]) -> list[bytes]:
    return [msgspec.msgpack.encode(events[i : i + 10_000]) for i in range(0, len(events), 10_000)]


def _event(raw: list[Any]) -> tuple[Any, bool]:
    """A waiting event, and whether it is a withdrawal: if so, ``True`` comes before the arrival number."""
    start, end, triples, stream, graph, *more = raw
    gone = bool(more) and more[0] is True  # and not the number 1
    return (start, end, tuple(tuple(t) for t in triples), stream, graph, *more[gone:]), gone
