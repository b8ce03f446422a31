"""Applies changes among the events of a shard: updates of the background, and queries that come and go.

A change travels and waits like an event, and is applied before the first event that ends at its time or later; an
update at t has the time t + 1, because it holds from the first instant after t.  So every shard applies it at the same
position in the stream, however the stream is cut into batches.  If its time is already over, it holds from the
watermark on, in all shards and levels alike.

A shard whose background changes has its own copy, because another shard of the same process may be further ahead.

State: the engine's, whose snapshot has the difference from the initial background.  A journal consists of the engine's
journals with the changes between them, because a change may give other rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import msgspec
from etalis_compiler.diagnostics import QueryError

from etalis_py.engine.engine import Engine
from etalis_py.engine.program import Program
from etalis_py.kernel.batch import Columns
from etalis_py.kernel.options import EngineOptions
from etalis_py.kernel.position import NEVER
from etalis_py.knowledge import KnowledgeError
from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.schema import STANDING, UPDATE
from etalis_py.spark.output.answers import Answer, Row
from etalis_py.spark.plan.family_shards import own_of
from etalis_py.spark.plan.replan_after_update import check_routes
from etalis_py.spark.plan.spec import ProgramSpec, engine_of
from etalis_py.spark.shard.shard import AFTER_THE_END, Plain, Shard
from etalis_py.streams import StreamError
from etalis_py.streams.updates import graph_named, stated

BEGINNING = NEVER + 1
"""The time of a change that holds from the first instant that is not over yet."""

Change = tuple[str, ...]
"""An update (graph, added, removed), or a query (name, text)."""


class ChangingEngine(Engine):
    """An engine whose journals include the changes between its events."""

    def __init__(self, program: Program | None = None, **options: Unpack[EngineOptions]) -> None:
        self._between: list[bytes | Change] = []  # the journals and changes before the engine's own journal
        super().__init__(program, **options)

    def take_change(self, *change: str) -> None:
        """Make a change; ``StreamError`` or ``KnowledgeError`` means that an update was refused."""
        if self.options.journal:
            self._between.append(super().take_journal())
        self._change(*change)
        if self.options.journal:
            self._between.append(change)
            self.updates.clear()  # it is in the journal as a change

    def _change(self, *change: str) -> None:
        graph, add, remove = change
        self.update(graph_named(graph), stated(add), stated(remove))

    # --- state ---

    def take_journal(self) -> bytes:
        journal = msgspec.msgpack.encode([*self._between, super().take_journal()])
        self._between.clear()
        return journal

    def forget_journal(self) -> None:
        self._between.clear()
        super().forget_journal()

    @property
    def journal_entries(self) -> int:
        return super().journal_entries + sum(map(_size, self._between)) // 40

    def apply_journal(self, data: bytes, *, fitted: bool = False) -> None:
        for entry in msgspec.msgpack.decode(data):
            if isinstance(entry, bytes):
                super().apply_journal(entry, fitted=fitted)
            else:
                self._change(*entry)
        self.updates.clear()

    def _restore(self, state: dict[str, Any], fitted: bool) -> None:
        if fitted and self.options.changes:  # the background and its changes are as before
            self._go_to_version(state)
        super()._restore(state, fitted)


class ChangingShard(Shard):
    """A shard with changes among its events."""

    engine: ChangingEngine

    def _engine(self, spec: ProgramSpec, *, journal: bool, revise: int) -> Engine:
        self._spec = spec
        self._held: list[Plain] = []  # changes after the last event so far
        self.overdue = 0  # updates whose time was already over on arrival
        return self._changing(spec, journal=journal)

    def _changing(self, spec: ProgramSpec, *, journal: bool) -> ChangingEngine:
        part = self.part
        own, share = own_of(part, self.number), (self.number, part.shards)
        engine = engine_of(
            spec, part.queries, live=part.live, share=share, journal=journal, own=own, kind=ChangingEngine
        )
        assert isinstance(engine, ChangingEngine)
        return engine

    @staticmethod
    def newest_of(events: Sequence[Plain]) -> int:
        return Shard.newest_of([event for event in events if not is_change(event)])

    def reads_at_once(self, size: int) -> bool:
        return not any(map(is_change, self.waiting)) and super().reads_at_once(size)

    def wait(self, events: Sequence[Plain], over: int = NEVER) -> list[Row]:
        """Keep events; a change whose time is over holds from the watermark on, the same in all shards and levels."""
        changes = [event for event in events if is_change(event)]
        if not changes:
            return super().wait(events, over)
        events = [event for event in events if not is_change(event)]
        if self.engine.finished:
            return [*(self._refused(change, AFTER_THE_END) for change in changes), *super().wait(events, over)]
        now = over if over == NEVER else over + (self.part.level - 1) * 1000
        self.overdue += sum(BEGINNING < change[1] < now for change in changes)
        self.waiting += [(change[0], max(change[1], now), *change[2:]) for change in changes]
        return super().wait(events, over)

    def push(self, events: Sequence[Plain]) -> list[Answer]:
        changed = any(map(is_change, events))
        if not (changed or self._held):
            return super().push(events)
        if changed:
            events = sorted(events, key=_in_turn)
        rows: list[Answer] = []
        first = 0
        for place, event in enumerate(events):
            if not is_change(event):
                rows += self._apply_held()
                continue
            rows += super().push(events[first:place]) if first < place else []
            self._held.append(event)
            first = place + 1
        return rows + (super().push(events[first:]) if first < len(events) else [])

    def take(self, columns: Columns) -> list[Answer]:
        return [*self._apply_held(), *super().take(columns)]

    def settle(self, *, ended: bool = False) -> list[Answer]:
        """Apply changes after the last event; at the end of the stream only updates, as new queries have no answers."""
        if ended:
            self._held = [change for change in self._held if _predicate(change) == UPDATE]
        return self._apply_held()

    def metric(self, **more: int | str) -> Row:
        if not self._spec.updates:
            return super().metric(**more)
        version = self.engine.knowledge.version
        return super().metric(background_version=version, overdue_updates=self.overdue, **more)

    def _apply_held(self) -> list[Answer]:
        """Apply the changes before the next event: the instants before their time are over."""
        rows: list[Answer] = []
        for change in self._held:
            end = change[1]
            if end - 1 > self.engine.closed_at and end > BEGINNING:
                rows += self._rows(self.engine.advance(end - 1))
            rows += self._taken(change)
        self._held.clear()
        return rows

    def _taken(self, change: Plain) -> list[Row]:
        """Make a change; returns a dead letter if it is refused."""
        ((graph, _, texts),) = change[2]
        add, remove = msgspec.json.decode(texts)
        before = self.engine.rules
        try:
            self.engine.take_change(graph, add, remove)
        except (StreamError, KnowledgeError) as error:
            # Every shard refuses the change, but only one reports that.
            return [] if self.number else [self._refused(change, str(error))]
        except QueryError as error:
            raise SparkError(f"an update of the background makes a program impossible: {error}") from error
        if self.engine.rules != before or self.engine.has_windows:
            check_routes(self._spec, self.part, self.engine)
        return []

    def _refused(self, change: Plain, why: str) -> Row:
        ((name, predicate, _),) = change[2]
        known = None if change[1] == BEGINNING else change[1] - (predicate == UPDATE)
        query, stream = (None, name) if predicate == UPDATE else (name, None)
        why = f"this update of the background is left out: {why}" if predicate == UPDATE else why
        return ("dead_letter", self.name, query, None, None, None, None, known, known, stream, False, self.number, why)


def is_change(event: Plain) -> bool:
    """Whether it is a change instead of an event."""
    return _predicate(event) in (STANDING, UPDATE)


def _predicate(event: Plain) -> str:
    return event[2][0][1]


def _in_turn(event: Plain) -> tuple[int, int, int, str]:
    """Changes come before the events of their time: first updates by number, then removed and added queries."""
    (_, predicate, text), *_ = event[2]
    if predicate == UPDATE:
        return event[1], 0, event[0], text
    if predicate == STANDING:
        return event[1], 2 if text else 1, 0, ""
    return event[1], 3, 0, ""


def _size(entry: bytes | Change) -> int:
    return len(entry) if isinstance(entry, bytes) else sum(map(len, entry))


__all__ = ["BEGINNING", "ChangingEngine", "ChangingShard", "is_change"]
