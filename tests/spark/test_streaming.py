"""On a streaming DataFrame: the same match ids however the stream is cut, ordered, interrupted and resumed."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession

from etalis_py import Event, compile
from etalis_py.events.clock import Length
from etalis_py.spark import EVENTS, SparkError, matches, run_on_spark
from etalis_py.spark.input.schema import END_OF_STREAM
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.options import RunOptions
from etalis_py.spark.state.executor_folder import executor_folder
from tests.oracle import printing
from tests.oracle.strategies import Case
from tests.spark.drawing import DRAWN, is_accepted
from tests.spark.programs import (
    PROGRAMS,
    SECOND,
    SHARDED,
    embedded,
    expected,
    expected_solutions,
    ids_by_program,
    solutions,
    stream,
    write_batches,
)

pytestmark = pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")

THE_END = [Event(60 * SECOND, 60 * SECOND, ((END_OF_STREAM,) * 3,))]
SOME = {
    name: PROGRAMS[name]
    for name in ("seq", "recent", "absence", "two levels", "tagged", "counts", "total", "never", "deadline and runs")
}


def run(
    spark: SparkSession,
    folder: Path,
    programs: Mapping[str, Any],
    *,
    shards: int = 2,
    lateness: int = 0,
    then: Callable[[DataFrame], DataFrame] = lambda found: found,
    metrics: bool = False,
    every: str = "",
    background: Any = None,
) -> list[Row]:
    """One run over the files that are new in ``folder/in``; all rows of the file sink.

    ``every``: for ever, with this trigger.
    """
    events = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    options = {"shards": shards, "lateness": lateness, "metrics": metrics, "background": background}
    found = then(matches(programs, events, **options))
    query = (
        found.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "out"))
        .trigger(**({"processingTime": every} if every else {"availableNow": True}))
        .start()
    )
    query.awaitTermination()
    return spark.read.schema(found.schema).parquet(str(folder / "out")).collect()


def cut(events: Sequence[Event], pieces: int, seed: int) -> list[list[Event]]:
    """Batches of uneven sizes; instants are cut in two."""
    rng = random.Random(seed)
    places = sorted(rng.randrange(len(events)) for _ in range(pieces - 1))
    return [list(events[a:b]) for a, b in zip([0, *places], [*places, len(events)], strict=True)]


@pytest.mark.parametrize(("shards", "pieces"), [(1, 2), (3, 4)])
def test_any_cut_finds_what_the_embedded_engine_finds(
    spark: SparkSession, tmp_path: Path, shards: int, pieces: int
) -> None:
    programs = PROGRAMS if shards == 3 else SOME
    events = stream(20 + shards)
    write_batches(tmp_path / "in", [*cut(events, pieces, shards), THE_END])
    # A cut instant needs no lateness: the watermark is the greatest time seen, and what ends at it may still come.
    rows = run(spark, tmp_path, programs, shards=shards)
    assert ids_by_program(rows) == expected(programs, events)
    assert solutions(rows) == expected_solutions(programs, events)


def test_what_is_later_than_the_lateness_is_a_dead_letter(spark: SparkSession, tmp_path: Path) -> None:
    def at(second: int, predicate: str) -> Event:
        return Event(second * SECOND, second * SECOND, (("<urn:a>", predicate, "<urn:b>"),))

    first, second, late = [at(1, "<urn:p>"), at(20, "<urn:r>")], [at(40, "<urn:p>")], at(2, "<urn:q>")
    write_batches(tmp_path / "in", [first, second, [late], THE_END])
    rows = run(spark, tmp_path, {"": SHARDED["seq"]}, lateness=SECOND)
    assert [(r["kind"], r["end"], r["detail"]) for r in rows] == [
        ("dead_letter", 2 * SECOND, "came after its instant was over")
    ]


def test_a_quiet_shard_moves_on_by_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    """The last event of one key is reported when others let time pass, without any end of the stream.

    So is what did not come: the timer of a shard fires without an event in it.
    """
    names = [f"<urn:x{n}>" for n in range(8)]
    first = [Event(SECOND, SECOND, ((name, "<urn:p>", "<urn:b>"),)) for name in names]
    second = [Event(2 * SECOND, 2 * SECOND, ((name, "<urn:q>", "<urn:b>"),)) for name in names]
    later = [Event(n * SECOND, n * SECOND, ((names[0], "<urn:p>", "<urn:b>"),)) for n in (10,)]
    write_batches(tmp_path / "in", [first, second, later])
    absent = "SELECT * { ?x <urn:p> ?y } SEQ NOT { ?x <urn:r> ?z } WITHIN 3 SECONDS"
    programs = {"seq": SHARDED["seq"], "absent": absent}
    rows = run(spark, tmp_path, programs, shards=4)
    assert ids_by_program(rows) == expected(programs, [*first, *second])
    assert sorted(r["end"] for r in rows) == [2 * SECOND] * 8 + [4 * SECOND] * 8


def test_a_further_level_moves_on_by_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    """Its own triple patterns see derived events only, and yet time passes there."""
    text = (
        "CONSTRUCT { ?y <urn:d> ?x } { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } "
        "CONSTRUCT { ?z <urn:e> ?x } { ?x <urn:d> ?y } SEQ { ?x <urn:d> ?z } SELECT * { ?x <urn:e> ?y . ?x <urn:e> ?z }"
    )
    assert [r.part.level for r in plan(text, 2, None, "rdfs", None)[1]] == [1, 2, 3]
    events = stream(91)
    later = [Event(n * SECOND, n * SECOND, (("<urn:z>", "<urn:p>", "<urn:z>"),)) for n in (50, 60)]
    write_batches(tmp_path / "in", [events, later[:1], later[1:]])
    rows = run(spark, tmp_path, {"": text})
    assert rows
    assert sorted(r["id"] for r in rows) == embedded(text, [*events, *later])


def test_a_run_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(41)
    batches = [*cut(events, 3, 41), THE_END]
    write_batches(tmp_path / "in", batches[:2])
    run(spark, tmp_path, SOME)
    write_batches(tmp_path / "in", batches[2:], first=2)
    assert ids_by_program(run(spark, tmp_path, SOME)) == expected(SOME, events)


def test_another_number_of_shards_or_other_rules_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Whichever shard gets an event: here one that is not in the checkpoint, and one that had no event before."""
    text = SHARDED["seq"]
    first, second = (next(e for e in stream(42) if shard_of_event(e, 3) == n) for n in (0, 2))
    write_batches(tmp_path / "in", [[first]])
    run(spark, tmp_path, {"": text}, shards=2)
    write_batches(tmp_path / "in", [[second._replace(start=90 * SECOND, end=90 * SECOND)]], first=1)
    with pytest.raises(Exception, match=r"no state for shard 2 of q1|made with 2 shards, now there are 3"):
        run(spark, tmp_path, {"": text}, shards=3)
    with pytest.raises(Exception, match=r"does not belong to this program: q1 has become another query"):
        run(spark, tmp_path, {"": SHARDED["optional"]}, shards=2)
    run(spark, tmp_path, {"": text}, shards=2)


def shard_of_event(event: Event, shards: int) -> int:
    """The shard in which ``seq`` wants an event; -1 for one that it does not want, or wants in several."""
    [[s, p, _], *more] = event.triples
    return -1 if more or p not in ("<urn:p>", "<urn:q>") else crc32(s.encode()) % shards


def test_a_program_goes_on_with_queries_added_and_removed(spark: SparkSession, tmp_path: Path) -> None:
    """A user's own job: the new query begins with what happens from now on."""
    one, two, three = (
        f"REGISTER QUERY {name} AS SELECT * {{ ?x <urn:p> ?y }} SEQ {{ ?x <urn:{p}> ?z }}"
        for name, p in (("one", "q"), ("two", "r"), ("three", "p"))
    )
    events = stream(43, 80)
    first, second = events[:40], [e for e in events[40:] if e.end > events[39].end]
    # What ends at the last instant waits; so an event that nobody asks for closes the first half.
    write_batches(tmp_path / "in", [first, []])
    before = run(spark, tmp_path, {"": f"{one} {two}"})
    write_batches(tmp_path / "in", [second, THE_END], first=2)
    rows = run(spark, tmp_path, {"": f"{two} {three}"})
    found = {name: sorted(r["id"] for r in rows if r["query"] == name) for name in ("one", "two", "three")}
    last = first[-1].end
    assert {r["query"] for r in before} == {"one", "two"}
    assert found["one"] == embedded(one, [e for e in first if e.end < last])
    assert found["two"] == embedded(two, [*first, *second])
    # Of the open instant the new query sees what the others had asked for: here all that it asks for itself.
    assert found["three"] == embedded(three, [*(e for e in first if e.end == last), *second])


@settings(max_examples=1, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    st.lists(DRAWN.filter(is_accepted), min_size=8, max_size=8),
    st.integers(1, 8),
    st.integers(0, 1_000_000),
)
def test_drawn_programs_in_one_query(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, cases: list[Case], shards: int, seed: int
) -> None:
    events = sorted((e for case in cases for e in case.events), key=lambda e: e.end)
    # The watermark begins at 1970: what ends there is over before the first batch.
    events = [Event(e.start + 60 * SECOND, e.end + 60 * SECOND, e.triples, e.stream, e.graph) for e in events]
    programs = {str(n): compile(printing.program(c.program) + "\n", policy=c.policy) for n, c in enumerate(cases)}
    wanted = {str(n): embedded(printing.program(c.program), events, policy=c.policy) for n, c in enumerate(cases)}
    folder = tmp_path_factory.mktemp("drawn")
    write_batches(folder / "in", [*cut(events, 3, seed), [THE_END[0]._replace(start=90 * SECOND, end=90 * SECOND)]])
    assert ids_by_program(run(spark, folder, programs, shards=shards)) == {n: ids for n, ids in wanted.items() if ids}


def killer(marker: Path, nth: int) -> Callable[[DataFrame], DataFrame]:
    """Ends the Python worker at its n-th frame, once."""

    def once(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            count = len(list(marker.parent.glob(marker.name + ".*")))
            (marker.parent / f"{marker.name}.{count}").touch()
            if count == nth and not marker.exists():
                marker.touch()
                os._exit(1)
            yield frame

    return lambda frame: frame.mapInPandas(once, frame.schema)


def test_a_killed_worker_loses_nothing_and_doubles_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Nor does any order of arrival within the lateness."""
    events = stream(31)
    rng = random.Random(31)
    late = sorted(events, key=lambda e: e.end + rng.randrange(5 * SECOND))
    assert late != events
    write_batches(tmp_path / "in", [*cut(late, 4, 31), THE_END])
    marker = tmp_path / "killed"
    rows = run(spark, tmp_path, SOME, lateness=5 * SECOND, then=killer(marker, 3))
    assert marker.exists()
    assert ids_by_program(rows) == expected(SOME, events)


def test_run_on_spark_goes_on_in_its_folder(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(61)
    first, second = events[:30], events[30:]
    found = run_on_spark(SHARDED["seq"], first, spark=spark, shards=2, checkpoint=tmp_path / "run").matches
    found += run_on_spark(SHARDED["seq"], second, spark=spark, shards=2, checkpoint=tmp_path / "run").matches
    # The last instant is open: the stream may go on.
    last = events[-1].end
    assert sorted(m.id for m in found) == embedded(SHARDED["seq"], [e for e in events if e.end < last])
    with pytest.raises(ValueError, match="made with 2 shards, now 3"):
        run_on_spark(SHARDED["seq"], second, spark=spark, shards=3, checkpoint=tmp_path / "run")


@pytest.mark.parametrize("lateness", [5 * SECOND, "5 s", timedelta(seconds=5)])
def test_run_on_spark_takes_lengths_of_time(spark: SparkSession, lateness: Length) -> None:
    triples = (("<urn:a>", "<urn:p>", "<urn:b>"),)
    *events, too_late = (Event(at * SECOND, at * SECOND, triples) for at in (20, 30, 26, 10))
    result = run_on_spark("SELECT ?x { ?x <urn:p> ?y }", [*events, too_late], spark=spark, shards=1, lateness=lateness)
    assert ([m.end for m in result.matches], result.late) == ([20, 26, 30], [too_late])


@pytest.mark.parametrize("option", ["lateness", "revise"])
def test_run_on_spark_refuses_what_is_no_length(option: str) -> None:
    options: RunOptions = {"lateness": "5 parsecs"} if option == "lateness" else {"revise": "5 parsecs"}
    with pytest.raises(SparkError, match=f"{option}='5 parsecs'"):
        run_on_spark("SELECT ?x { ?x <urn:p> ?y }", [], **options)


def test_the_workers_of_an_executor_share_a_folder(spark: SparkSession) -> None:
    """By which they tell each other whose copies of a shard can no longer catch up."""

    def folder(chunks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"folder": [str(executor_folder())] * len(list(chunks))})

    rows = spark.range(4, numPartitions=2).mapInArrow(folder, "folder string").collect()
    [name] = {row.folder for row in rows}
    assert Path(name).is_dir()
    assert executor_folder() is None, "the driver is no worker"
