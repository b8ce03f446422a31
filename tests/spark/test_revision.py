"""Corrections on Spark: the net ids are those of the embedded engine over the corrected input."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from etalis_py import Event
from etalis_py.events import Retraction
from etalis_py.events.clock import Length
from etalis_py.kernel.position import NEVER
from etalis_py.spark import events_from_events, matches, run_on_spark
from etalis_py.spark.output.answers import single
from etalis_py.spark.pipeline import plan
from etalis_py.spark.shard import deferred
from etalis_py.spark.shard.shard import Shard
from tests.draws import examples
from tests.spark.by_hand import routed
from tests.spark.programs import PROGRAMS, SECOND, SHARDED, embedded, stream, write_batches
from tests.spark.test_faults import deadly
from tests.spark.test_streaming import THE_END, cut

pytestmark = pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")

HORIZON = 100 * SECOND
ALL = PROGRAMS | {
    "window": "SELECT ?x (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT5S] "
    "{ WINDOW :w { ?x <urn:p> ?y } } GROUP BY ?x"
}


def corrected(events: Sequence[Event], seed: int) -> tuple[list[Event], list[Event]]:
    """The events with some that come late, and some withdrawn, stated otherwise or again; what holds then."""
    rng = random.Random(seed)
    items: list[tuple[float, Event]] = []
    net: list[Event] = []
    stated: set[Any] = set()

    def is_new(event: Event) -> bool:
        occurrences = {(event.start, event.end, t) for t in event.triples}
        before = not stated.isdisjoint(occurrences)
        stated.update(occurrences)
        return not before

    for i, event in enumerate(filter(is_new, events)):
        fate = rng.randrange(6)
        items.append((i + (rng.randrange(30) if fate == 0 else 0), event))
        if fate != 1:
            net.append(event)
            continue
        later = i + rng.randrange(40) + 0.5
        gone = Retraction(event.start, event.end, event.triples)
        for item in (gone, event, gone, event)[: rng.randrange(1, 5)]:
            items.append((later, item))
            later += 0.01 + rng.randrange(2)
        if items[-1][1] is event:
            net.append(event)
        s, p, _ = event.triples[0]
        other = event._replace(triples=((s, p, f"<urn:x{rng.randrange(5)}>"),))
        if rng.randrange(2) and is_new(other):
            items.append((later + 0.1, other))
            net.append(other)
    return [e for _, e in sorted(items, key=lambda item: item[0])], net


def net_of(rows: Iterable[Any]) -> list[str]:
    """The ids that were reported and not taken back."""
    signs: dict[str, int] = {}
    for row in rows:
        assert row["kind"] != "dead_letter", row
        if row["kind"] == "match":
            signs[row["id"]] = signs.get(row["id"], 0) + (-1 if row["retracted"] else 1)
    assert set(signs.values()) <= {0, 1}
    return sorted(name for name, sign in signs.items() if sign)


# --- without Spark: shards by hand ------------------------------------------------------------------------------


class ByHand:
    """A streaming run, a micro-batch at a time; each shard is stored after it, and sometimes comes out of the store."""

    def __init__(self, program: str, shards: int) -> None:
        self.specs, self.parts = plan(program, shards, None, "rdfs", None)
        self.over = self.newest = NEVER
        self.came = 0
        self.shards = {(p.part.number, n): self.fresh(p, n) for p in self.parts for n in range(p.part.shards)}
        self.journals: dict[tuple[int, int], list[bytes]] = {key: [] for key in self.shards}
        self.rows: list[dict[str, Any]] = []

    def fresh(self, part: Any, number: int) -> Shard:
        return Shard(self.specs[part.part.program], part.part, number, journal=True, revise=HORIZON)

    def take(self, batch: Sequence[Event], *, ended: bool = False, rebuild: bool = False) -> None:
        self.newest = max([self.newest, *(e.end for e in batch)])
        numbered = [*enumerate(batch, self.came)]
        self.came += len(batch)
        said = [(n, e) for n, e in numbered if not isinstance(e, Retraction)]
        gone = [(n, e.withdrawn()) for n, e in numbered if isinstance(e, Retraction)]
        derived: list[tuple[Any, Event]] = []
        for part in sorted(self.parts, key=lambda p: p.part.level):
            takes = [(row, e) for row, e in derived if row[2] in part.part.takes]
            for number in range(part.part.shards):
                key = part.part.number, number
                if rebuild:
                    self.rebuild(part, number)
                shard = self.shards[key]
                found = shard.wait(plain(said, part, number), self.over)
                mine = [(row[10], name(e, row[3])) for row, e in takes for e in routed([e], part, number)]
                found += shard.wait([e for back, e in mine if not back])
                found += shard.withdraw(plain(gone, part, number), self.over)
                found += shard.withdraw([e for back, e in mine if back])
                rows = [*found, *(shard.finish() if ended else shard.close_before(self.newest - part.part.level))]
                self.journals[key].append(shard.engine.take_journal())
                for row in single(rows):
                    if row[0] == "event":
                        derived.append((row, Event(row[7], row[8], row[5], row[9] or "")))
                    else:
                        self.rows.append({"kind": row[0], "id": row[3], "retracted": row[10], "detail": row[12]})
        self.over = self.newest

    def rebuild(self, part: Any, number: int) -> None:
        key = part.part.number, number
        old, shard = self.shards[key], self.fresh(part, number)
        for journal in self.journals[key]:
            shard.engine.apply_journal(journal)
        copy = self.fresh(part, number)
        copy.engine.restore(shard.engine.snapshot())
        copy.waiting, copy.withdrawals = old.waiting, old.withdrawals
        self.shards[key] = copy


def plain(events: Iterable[tuple[int, Event]], part: Any, shard: int) -> list[Any]:
    return [(*e, n) for n, event in events for e in routed([event], part, shard)]


def name(event: Event, identifier: str) -> Any:
    return tuple(event._replace(graph=identifier))


@settings(max_examples=examples(1 / 5))
@given(st.sampled_from(sorted(ALL)), st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 5), st.data())
def test_shards_take_back_what_did_not_hold(which: str, seed: int, shards: int, pieces: int, data: Any) -> None:
    items, net = corrected(stream(seed, 30), seed)
    run = ByHand(ALL[which], shards)
    for batch in cut(items, pieces, seed):
        run.take(batch, rebuild=data.draw(st.booleans(), label="rebuilt"))
    run.take([], ended=True)
    assert net_of(run.rows) == embedded(ALL[which], net)


def test_what_is_older_than_the_horizon_is_a_dead_letter_in_every_shard() -> None:
    run = ByHand(SHARDED["seq"], 2)
    old = [Event(t * SECOND, t * SECOND, ((f"<urn:x{n}>", "<urn:p>", "<urn:y>"),)) for n in range(4) for t in (1, 2)]
    run.take([*old[::2], Event(300 * SECOND, 300 * SECOND, (("<urn:x0>", "<urn:q>", "<urn:y>"),))])
    run.take([*old[1::2], *(Retraction._make(e) for e in old[::2])])
    reasons = [row["detail"] for row in run.rows if row["kind"] == "dead_letter"]
    assert (
        sorted(reasons)
        == ["came after its instant was over"] * 4
        + ["withdraws what never was, or what may no longer be corrected"] * 4
    )


# --- on Spark ---------------------------------------------------------------------------------------------------

STREAMED = ("absence", "two levels")


def test_a_stream_whose_workers_are_killed(spark: SparkSession, tmp_path: Path) -> None:
    deaths = [("loaded", 3), ("stored", 6)]
    rows = net_whose_workers_are_killed(spark, tmp_path, STREAMED, 2, 30, deaths)
    assert all((tmp_path / "places" / f"{place}.{number}").exists() for place, number in deaths)
    assert any(row["retracted"] for row in rows)


@pytest.mark.nightly
@settings(max_examples=examples(2 / 15), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    st.lists(st.sampled_from(sorted(ALL)), min_size=1, max_size=3, unique=True),
    st.integers(0, 10**6),
    st.integers(10, 50),
    st.lists(st.tuples(st.sampled_from(("loaded", "stored")), st.integers(1, 4)), min_size=1, max_size=2, unique=True),
)
def test_drawn_streams_whose_workers_are_killed(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    which: list[str],
    seed: int,
    split: int,
    deaths: list[tuple[str, int]],
) -> None:
    net_whose_workers_are_killed(spark, tmp_path_factory.mktemp("killed"), which, seed, split, deaths)


def net_whose_workers_are_killed(
    spark: SparkSession, folder: Path, which: Iterable[str], seed: int, split: int, deaths: list[tuple[str, int]]
) -> list[Any]:
    """The rows of a corrected stream in two batches; who dies is followed, and the net ids are the embedded ones."""
    places = folder / "places"
    places.mkdir()
    items, net = corrected(stream(seed), seed)
    programs = {name: ALL[name] for name in which}
    write_batches(folder / "in", [items[:split], [*items[split:], *THE_END]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deferred, "Deferred", deadly(places, deaths))
        rows = streamed(spark, folder, programs, HORIZON)
    for place, number in deaths:
        if (places / f"{place}.{number}").exists():
            assert (places / f"{place}.{number + 1}").exists(), f"nobody came to {place} after a death there"
    for name, text in programs.items():
        assert net_of(row for row in rows if row["program"] == name) == embedded(text, net), name
    return rows


def streamed(spark: SparkSession, folder: Path, programs: Any, revise: int) -> list[Any]:
    from etalis_py.spark import EVENTS

    events = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    reported = matches(programs, events, shards=2, revise=revise)
    query = (
        reported.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "out"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return spark.read.schema(reported.schema).parquet(str(folder / "out")).collect()


def test_a_batch_is_corrected_as_a_whole(spark: SparkSession) -> None:
    items, net = corrected(stream(8), 8)
    programs = {which: ALL[which] for which in (*STREAMED, "window")}
    rows = matches(programs, events_from_events(spark, items), shards=2).collect()
    assert not any(row["retracted"] for row in rows)
    for which, text in programs.items():
        assert net_of(row for row in rows if row["program"] == which) == embedded(text, net), which


@pytest.mark.parametrize("revise", [HORIZON, timedelta(microseconds=HORIZON), f"{HORIZON // SECOND} seconds"])
def test_a_run_with_late_events_and_corrections_of_nothing(spark: SparkSession, revise: Length) -> None:
    events = stream(9)
    wrong = Retraction(5 * SECOND, 5 * SECOND, (("<urn:never>", "<urn:p>", "<urn:was>"),))
    again = [Retraction._make(events[10]), events[10]]
    items = [*events[:40], *events[45:], *again, *events[40:45], wrong]
    result = run_on_spark(ALL["recent"], items, spark=spark, shards=2, lateness="0 s", revise=revise)
    assert sorted(m.id for m in result.matches) == embedded(ALL["recent"], events)
    assert result.late == [wrong]
    assert isinstance(result.late[0], Retraction)


def test_a_stream_goes_on_with_the_horizon_of_before(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", [stream(3)[:20]])
    streamed(spark, tmp_path, SHARDED["seq"], HORIZON)
    write_batches(tmp_path / "in", [stream(3)[20:]], 1)
    with pytest.raises(Exception, match="it was made with revise=100 s, and is run with revise=1 s now"):
        streamed(spark, tmp_path, SHARDED["seq"], SECOND)


def test_what_is_withdrawn_by_a_later_dataframe_came_before_it(spark: SparkSession) -> None:
    events = stream(3, 12)
    wrong = events[7]
    together = events_from_events(spark, events).union(events_from_events(spark, [Retraction._make(wrong)]))
    rows = matches(SHARDED["seq"], together, shards=1).collect()
    assert not [row for row in rows if row["kind"] == "dead_letter"]
    assert sorted(row["id"] for row in rows) == embedded(SHARDED["seq"], [e for e in events if e is not wrong])
