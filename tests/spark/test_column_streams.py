"""The operator of a stream takes large batches in columns, with the state of rows (without Spark)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import etalis_py.executors.columns.executor
from etalis_py import Event
from etalis_py.spark.input.packed_rows import packer
from etalis_py.spark.input.schema import END, EVENT, ITEM, LAST, PASSED
from etalis_py.spark.output.wire import wire_of
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.checkpoint_match import identity_of
from etalis_py.spark.plan.parts import RoutedPart
from etalis_py.spark.plan.slots import by_slot
from etalis_py.spark.shard import shard, streaming
from etalis_py.spark.shard.shard import TOO_LATE, Shard
from etalis_py.spark.shard.streaming import LevelTask, ShardProcessor
from etalis_py.spark.state import shard_in_store
from etalis_py.spark.state.store_layout import declared
from tests.spark.by_hand import routed
from tests.spark.programs import SECOND, SHARDED, embedded, stream
from tests.spark.test_column_shards import SCHEMA, row, whole
from tests.spark.test_events import PROGRAMS as RECORDS
from tests.spark.test_events import readings
from tests.spark.test_stored import Store

NAMES = ("seq", "recent", "within", "two positions", "optional", "counts", "absence")
SLOT = 0


class Run:
    """One shard of a program, batch after batch, as Spark calls it."""

    def __init__(self, text: str) -> None:
        specs, parts = plan(text, 1, None, "rdfs", None)
        [only] = parts
        self.part = replace(only, part=replace(only.part, order=()))
        slots = by_slot([self.part.part], 1)
        assert list(slots) == [SLOT]
        tables = wire_of([self.part.part], [""]).tables
        self.work = LevelTask(specs, slots, 1, "run", False, identity_of(specs, parts, 1, 1, {}), 0, tables, 0)
        self.store = Store()
        self.processor = self.made()
        self.open(self.store)
        self.processor.begin()
        self.watermark = 0
        self.rows: list[dict[str, object]] = []

    def made(self) -> Any:
        return ShardProcessor(self.work)

    def open(self, store: Any) -> None:
        self.processor.open(SimpleNamespace(registerTimer=lambda due: None), declared(store))

    def batch(self, rows: Sequence[dict[str, object]]) -> None:
        chunks = pa.Table.from_pylist(list(rows), SCHEMA).to_batches(max_chunksize=9)
        frames: Iterator[pd.DataFrame] = (batch.to_pandas() for batch in packer([SLOT])(chunks))
        timers = SimpleNamespace(getCurrentWatermarkInMs=lambda: self.watermark)
        for frame in self.processor.take((SLOT,), frames, timers):
            for r in frame.to_dict("records"):
                self.rows.append({"kind": "match", **r, "detail": None} if pd.isna(r["row"]) else json.loads(r["row"]))
        ends = [r["end"] for r in rows if r["mark"] in (EVENT, ITEM)]
        self.watermark = max([self.watermark, *(end // 1000 for end in ends)])  # type: ignore[operator]

    @property
    def ids(self) -> list[str]:
        return sorted(str(r["id"]) for r in self.rows if r["id"] is not None and r["detail"] is None)


def rows_of(part: RoutedPart, events: Sequence[Event]) -> list[dict[str, object]]:
    """Neighbours change places, so that batches are not in order."""
    rows = [(whole if part.items else row)(SLOT, event) for event in routed(events, part, 0)]
    return [*rows[1::2], *rows[::2]]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were taken in columns each time; batches of more than five are large."""
    sizes: list[int] = []
    take = Shard.take
    monkeypatch.setattr(Shard, "take", lambda own, columns: sizes.append(len(columns)) or take(own, columns))
    monkeypatch.setattr(streaming, "AT_ONCE", 16)
    monkeypatch.setattr(shard_in_store, "LEAST", 10 * shard_in_store.ENTRY)
    monkeypatch.setattr(shard, "LARGE", 6)
    monkeypatch.setattr(etalis_py.executors.columns.executor, "ready", lambda: True)
    monkeypatch.setattr(etalis_py.executors.columns.executor, "ENOUGH", 1)
    return sizes


THE_END = {**dict.fromkeys(SCHEMA.names), "slot": SLOT, "mark": END, "start": LAST, "end": LAST}


@pytest.mark.parametrize("name", NAMES)
def test_batches_of_any_size_find_what_one_engine_finds(taken: list[int], name: str) -> None:
    """Large batches and small ones in turn; the last one ends the stream and has events of its own.

    Every other batch is taken by a worker that knows nothing.
    """
    in_batches(taken, SHARDED[name], stream(len(name), 120))


@pytest.mark.parametrize("name", ["record", "next", "policy", "by the object", "graph", "counts", "absence"])
def test_so_do_batches_of_whole_events(taken: list[int], name: str) -> None:
    text, events = RECORDS[name], readings(len(name), 120)
    in_batches(taken, text, events)
    assert embedded(text, events)


def in_batches(taken: list[int], text: str, events: Sequence[Event]) -> None:
    run = Run(text)
    cuts = [0, 40, 43, 80, 81, len(events)]
    for number, (first, last) in enumerate(itertools.pairwise(cuts)):
        if number % 2:
            shard_in_store._LIVE.clear()
        last_rows = [THE_END] if last == len(events) else []
        # An instant is not cut by a batch boundary, or the rest of it would be late.
        some = [e for e in events if edge(events, first) <= e.end < edge(events, last)]
        run.batch([*rows_of(run.part, some), *last_rows])
    assert run.ids == embedded(text, events)
    assert taken
    assert max(taken) <= 16 * max(len(event.triples) for event in events)


def edge(events: Sequence[Event], place: int) -> int:
    return events[place].end if place < len(events) else LAST


@pytest.mark.parametrize("size", [1, 20])
def test_what_ends_before_1970_waits_for_the_end(taken: list[int], size: int) -> None:
    """There is no watermark before, so no shard takes its own events for the newest."""
    run = Run(SHARDED["seq"])
    later = [Event(n - 5 * SECOND, n - 5 * SECOND, (("<urn:a>", "<urn:q>", f"<urn:{n}>"),)) for n in range(size)]
    early = [Event(n - 8 * SECOND, n - 8 * SECOND, (("<urn:a>", "<urn:p>", f"<urn:{n}>"),)) for n in range(size)]
    for some in (later, early):
        run.batch(rows_of(run.part, some))
        assert not run.rows
    run.batch([THE_END])
    assert run.ids == embedded(SHARDED["seq"], [*early, *later]) != []
    assert len(run.ids) == len(run.rows)


def test_what_is_late_or_waits_or_passes_is_told_from_a_large_batch(taken: list[int]) -> None:
    run = Run(SHARDED["seq"])
    early = [Event(t * SECOND, t * SECOND, (("<urn:a>", "<urn:p>", f"<urn:{t}>"),)) for t in range(1, 31)]
    run.batch(rows_of(run.part, early))
    assert sum(taken) == 29  # the newest instant waits
    late = Event(5 * SECOND, 5 * SECOND, (("<urn:a>", "<urn:p>", "<urn:late>"),))
    more = [Event(t * SECOND, t * SECOND, (("<urn:a>", "<urn:q>", f"<urn:{t}>"),)) for t in range(31, 61)]
    passing = row(SLOT, late, PASSED, '{"kind":"match","id":"before","detail":"passed"}')
    run.batch([row(SLOT, late), passing, *rows_of(run.part, more), THE_END])
    assert run.ids == embedded(SHARDED["seq"], [*early, *more])
    others = [(r["kind"], r["id"], r["detail"], r["end"]) for r in run.rows if r["detail"] is not None]
    assert others[0][:3] == ("match", "before", "passed")
    assert others[1:] == [("dead_letter", None, TOO_LATE, 5 * SECOND)]
