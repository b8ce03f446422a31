"""A shard of windowed queries: the embedded ``WindowEngine`` with a journal, as the operators drive any shard.

The journal of an engine of windows is its input.  Windows slide: what they hold is what came lately, so the items are
all there is to write, and taking them again gives the same state.  Whoever catches up moves the windows over the items
but answers nothing, unless later answers depend on it (ISTREAM, DSTREAM, consumption, a query that feeds another).  A
snapshot replaces the journals when these have become larger (``stored``), that is, about whenever the windows have
taken in their content once more: what is kept and repeated is in proportion to the windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from etalis_rules import program as ir

from etalis_py.engine.engine import NEVER
from etalis_py.engine.matches import Matches
from etalis_py.engine.snapshots import SnapshotError
from etalis_py.events import Event
from etalis_py.spark.parts import Part
from etalis_py.spark.shard import Plain, Row, Shard
from etalis_py.spark.spec import ProgramSpec
from etalis_py.spark.windows import WindowSpec, fingerprint, window_engine_of
from etalis_py.windows.engine import WindowCounters, WindowEngine

SNAPSHOT = b"ETALIS-WINDOW-SHARD\x01"
JOURNAL = b"ETALIS-WINDOW-JOURNAL\x01"
_PUSH, _ADVANCE, _CLOSE = 0, 1, 2
Entry = tuple[int, list[Event], int]
"""What was done: which, with these events or this time."""

_entries = msgspec.msgpack.Decoder(tuple[str, list[Entry], tuple[int, int]])
_state = msgspec.msgpack.Decoder(tuple[str, bool, bytes])


class JournaledWindows:
    """A ``WindowEngine`` with the methods by which a shard and its state know an ``Engine``.

    Before its first event time does not pass: queries are registered when the first event comes.
    """

    def __init__(self, engine: WindowEngine, identity: str, *, journal: bool = False) -> None:
        self.engine = engine
        self.identity = identity
        self.journaling = journal
        self._journal: list[tuple[int, list[Plain], int]] = []

    # --- what a shard asks of an engine ---

    @property
    def outputs(self) -> tuple[ir.Output, ...]:
        return self.engine.outputs

    @property
    def finished(self) -> bool:
        return self.engine.finished

    @property
    def counters(self) -> WindowCounters:
        return self.engine.counters

    @property
    def dead_letters(self) -> list[Event]:
        return self.engine.dead_letters

    @property
    def closed_at(self) -> int:
        """Everything up to here is over."""
        return self.engine.closed_at

    def count(self) -> WindowCounters:
        return self.engine.count()

    def push_all(self, events: Iterable[Plain]) -> Matches:
        taken = list(events)
        if self.journaling:
            self._journal.append((_PUSH, taken, 0))
        return self.engine.push_all(map(Event._make, taken))

    def advance(self, t: int) -> Matches:
        if self.engine.closed_at == NEVER:
            return Matches([], [])
        if self.journaling:
            self._journal.append((_ADVANCE, [], t))
        return self.engine.advance(t)

    def close(self) -> Matches:
        if self.journaling:
            self._journal.append((_CLOSE, [], 0))
        return self.engine.close()

    def next_time(self) -> int | None:
        """When there may be something to say next, without any further event."""
        return None if self.finished or self.closed_at == NEVER else self.engine.next_time()

    # --- state ---

    def snapshot(self) -> bytes:
        """The state of the engine, with the queries that it belongs to."""
        return SNAPSHOT + msgspec.msgpack.encode([self.identity, self.finished, self.engine.snapshot()])

    def restore(self, data: bytes) -> None:
        identity, finished, state = _read(data, SNAPSHOT, _state)
        self._check(identity)
        self.engine.restore(state)
        self.engine.finished = finished
        self._journal.clear()

    def take_journal(self) -> bytes:
        """The input since the last call, and what has been counted."""
        counters = self.engine.counters
        entry = [self.identity, self._journal, [counters.evaluations, counters.matches]]
        self._journal = []
        return JOURNAL + msgspec.msgpack.encode(entry)

    @property
    def journal_entries(self) -> int:
        return sum(len(events) + 1 for _, events, _ in self._journal)

    def forget_journal(self) -> None:
        self._journal = []

    @contextmanager
    def without_journal(self) -> Iterator[None]:
        """What is taken inside is told by a snapshot."""
        kept, self.journaling = self.journaling, False
        try:
            yield
        finally:
            self.journaling = kept

    def apply_journal(self, data: bytes) -> None:
        """Take the input of another engine that stood where this one stands."""
        identity, entries, counts = _read(data, JOURNAL, _entries)
        self._check(identity)
        engine = self.engine
        engine.repeating = True
        for kind, events, t in entries:
            if kind == _PUSH:
                engine.push_all(events)
            elif kind == _ADVANCE:
                engine.advance(t)
            else:
                engine.close()
        engine.repeating = False
        engine.dead_letters.clear()  # told by whoever wrote the journal
        engine.counters.evaluations, engine.counters.matches = counts

    def _check(self, identity: str) -> None:
        if identity != self.identity:
            names = ", ".join(o.query for o in self.outputs)
            raise SnapshotError(f"the windows, patterns or reports of {names} are others than those it was made with")


def _read(data: bytes, magic: bytes, decoder: Any) -> Any:
    if data[: len(magic)] != magic:
        raise SnapshotError("these bytes are no state of windows in this version; replay the stream")
    try:
        return decoder.decode(data[len(magic) :])
    except (msgspec.DecodeError, msgspec.ValidationError) as fault:
        raise SnapshotError(f"the state is damaged ({fault}); replay the stream") from fault


class WindowShard(Shard):
    """A shard whose engine has windows."""

    engine: JournaledWindows

    def __init__(self, spec: WindowSpec, part: Part, number: int, *, journal: bool = False) -> None:
        super().__init__(spec, part, number, journal=journal)  # type: ignore[arg-type]
        if part.shards == 1:
            # One evaluation after the other, each in its own order.
            self._arranged = frozenset(part.reports)

    def _engine_of(self, spec: WindowSpec, part: Part, journal: bool) -> JournaledWindows:  # type: ignore[override]
        return JournaledWindows(window_engine_of(spec, part.queries), fingerprint(spec, part.queries), journal=journal)

    def next_due(self) -> int | None:
        """The end of the first instant that waits, or the next time at which windows may be reported."""
        return min((t for t in (super().next_due(), self.engine.next_time()) if t is not None), default=None)

    def metric(self, **more: int) -> Row:
        """Also how many items are kept: those in the windows, and those that wait for one."""
        return super().metric(items=self.engine.count().items, **more)


def shard_of(spec: ProgramSpec | WindowSpec, part: Part, number: int, *, journal: bool = False) -> Shard:
    """The shard that a part of a program runs in."""
    kind = WindowShard if isinstance(spec, WindowSpec) else Shard
    return kind(spec, part, number, journal=journal)
