"""A shard of a batch takes columns and gives columns: the rows are those of the row executor, the ids the engine's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pytest

import etalis_py.executors.columns.executor
from etalis_py import Event, compile
from etalis_py.spark.input.schema import BETWEEN, END, EVENT, ITEM, LAST, PASSED, RETRACT
from etalis_py.spark.output.answers import single
from etalis_py.spark.output.wire import wire_of
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.parts import RoutedPart
from etalis_py.spark.plan.slots import by_slot
from etalis_py.spark.shard import batch
from etalis_py.spark.shard.batch import FedShard, batch_operator
from etalis_py.spark.shard.shard import Shard
from tests.spark.by_hand import public, routed
from tests.spark.programs import GLOBAL, SHARDED, embedded, stream
from tests.spark.test_events import PROGRAMS as RECORDS
from tests.spark.test_events import readings

SCHEMA = pa.schema(
    [
        *((name, pa.int32()) for name in ("slot", "mark")),
        *((name, pa.int64()) for name in ("start", "end")),
        *((name, pa.string()) for name in ("stream", "s", "p", "o", "passed")),
        ("arrived", pa.int64()),
    ]
)
ONE_LEVEL = {
    name: text
    for name, text in {**SHARDED, "no key": GLOBAL["no key"], "limit": GLOBAL["limit"]}.items()
    if {part.part.level for part in plan(compile(text), 3, None, "rdfs", None)[1]} == {1}
}


def row(slot: int, event: Event, mark: int = EVENT, passed: str | None = None) -> dict[str, object]:
    start, end, ((s, p, o),), stream, _ = event
    return dict(zip(SCHEMA.names, (slot, mark, start, end, stream, s, p, o, passed, None), strict=True))


def whole(slot: int, event: Event) -> dict[str, object]:
    """The row of a whole event."""
    start, end, triples, stream, graph = event
    text = graph + "".join(BETWEEN + term for triple in triples for term in triple)
    return dict(zip(SCHEMA.names, (slot, ITEM, start, end, stream, None, None, None, text, None), strict=True))


def rows_of(slot: int, part: RoutedPart, number: int, events: Iterable[Event]) -> list[dict[str, object]]:
    last = dict.fromkeys(SCHEMA.names) | {"slot": slot, "mark": END, "start": LAST, "end": LAST}
    return [*((whole if part.items else row)(slot, e) for e in routed(events, part, number)), last]


def run(text: str, events: Sequence[Event]) -> list[dict[str, object]]:
    """What the operator gives for three shards that share a partition."""
    specs, parts = plan(compile(text), 3, None, "rdfs", None)
    slots = by_slot([part.part for part in parts], 1)
    by_number = {part.part.number: part for part in parts}
    rows = [r for s, (part, n) in slots.items() for r in rows_of(s, by_number[part.number], n, events)]
    chunks = pa.Table.from_pylist(rows, SCHEMA).to_batches(max_chunksize=7)
    wire = wire_of([part.part for part in parts], [""])
    found = [
        public(one, wire)
        for made in batch_operator(specs, slots, wire, metrics=False)(chunks)
        for one in made.to_pylist(maps_as_pydicts="strict")
    ]
    return sorted(found, key=lambda one: (one["shard"], one["query"] or ""))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows shards took in columns each time; a batch is small."""
    sizes: list[int] = []
    take = Shard.take
    monkeypatch.setattr(Shard, "take", lambda shard, columns: sizes.append(len(columns)) or take(shard, columns))
    monkeypatch.setattr(batch, "AT_ONCE", 20)
    monkeypatch.setattr(etalis_py.executors.columns.executor, "ready", lambda: True)
    return sizes


def executor(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    enough = 1 if name == "columns" else 1 << 30
    monkeypatch.setattr(etalis_py.executors.columns.executor, "ENOUGH", enough)


@pytest.mark.parametrize("name", ONE_LEVEL)
def test_columns_give_what_rows_give(monkeypatch: pytest.MonkeyPatch, taken: list[int], name: str) -> None:
    text, events = ONE_LEVEL[name], stream(len(name), 80)
    executor(monkeypatch, "rows")
    wanted = run(text, events)
    executor(monkeypatch, "columns")
    found = run(text, events)
    assert found == wanted
    assert sorted(str(one["id"]) for one in found) == embedded(text, events)
    assert not taken or max(taken) < 20 + 7


@pytest.mark.parametrize("name", ["record", "next", "policy", "by the object", "graph", "counts", "absence"])
def test_whole_events_give_the_same_in_columns(monkeypatch: pytest.MonkeyPatch, taken: list[int], name: str) -> None:
    text, events = RECORDS[name], readings(len(name), 80)
    executor(monkeypatch, "rows")
    wanted = run(text, events)
    taken.clear()
    executor(monkeypatch, "columns")
    found = run(text, events)
    assert found == wanted
    assert sorted(str(one["id"]) for one in found) == embedded(text, events)
    assert found
    assert sum(taken) > 0


def test_most_of_them_run_in_columns(monkeypatch: pytest.MonkeyPatch, taken: list[int]) -> None:
    executor(monkeypatch, "columns")
    for name in ("seq", "recent", "within", "two positions", "tagged", "optional", "no key"):
        taken.clear()
        run(ONE_LEVEL[name], stream(3))
        assert sum(taken) > 0, name


def test_what_is_withdrawn_makes_the_rest_of_a_shard_run_in_rows(
    monkeypatch: pytest.MonkeyPatch, taken: list[int]
) -> None:
    """The second event is gone; a row that an earlier level hands on passes through."""
    executor(monkeypatch, "columns")
    specs, [part] = plan(compile(SHARDED["seq"]), 1, None, "rdfs", None)
    first, gone, after, last = (
        Event(t, t, ((f"<urn:{s}>", f"<urn:{p}>", "<urn:o>"),))
        for t, s, p in ((1, "a", "p"), (2, "b", "p"), (3, "b", "q"), (4, "a", "q"))
    )
    given = [row(0, first), row(0, first, PASSED, '{"kind":"match","id":"before"}')]
    later = [row(0, gone, RETRACT), row(0, gone), row(0, after), row(0, last)]
    fed = FedShard(Shard(specs[0], part.part, 0, corrected=True))
    found = []
    for some in (given, later):
        fed.hold(pa.RecordBatch.from_pylist(some, SCHEMA))
        found += fed.release()
    found += fed.shard.finish()
    assert taken == [1]
    assert [one[3] for one in single(found)] == ["before", *embedded(SHARDED["seq"], [first, after, last])]
