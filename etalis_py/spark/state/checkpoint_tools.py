"""Offline tools for the folder of a continued run (``run_folder``): describe it, or move it to more or fewer shards.

Spark has a public way to read its state (``format("statestore")``) but none to write it, and the goals of a shard could
not be divided without its rules anyway.  But the folder keeps every event that the run has taken.  So a move runs these
events once more, call by call, into a new folder.  The standing matches there must have the same ids as in the old
folder, or the new one is removed.  This takes as long as running the events, however few goals are left, and works for
every kind of rule, even one without a key.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from etalis_rules.durations import seconds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.schema import MATCHES
from etalis_py.spark.input.watermarks import micros
from etalis_py.spark.pipeline import Programs, plan
from etalis_py.spark.plan.checkpoint_match import JobIdentity, decoded
from etalis_py.spark.plan.options import JobSettings
from etalis_py.spark.plan.shard_classes import shard_kind
from etalis_py.spark.plan.slots import by_slot, numbers_of
from etalis_py.spark.plan.windows import WindowOptions
from etalis_py.spark.shard.shard import Shard
from etalis_py.spark.state.run_folder import Continued, address, batches, go_on, plan_stream, read_state, write_state
from etalis_py.spark.state.shard_in_store import Head, StoredShard
from etalis_py.spark.state.store_layout import States

_PLAIN = re.compile(r"[\w/.,:=@+-]+")
_OPERATOR = "transformWithStateInPandasExec"


@dataclass(frozen=True, slots=True)
class ShardState:
    """The stored state of one shard.  ``goals`` and ``waits`` are only counted if the program is given."""

    level: int
    part: int
    shard: int
    batches: int
    snapshot_bytes: int
    journal_bytes: int
    goals: int | None = None
    waiting: int | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint: ``position`` is the time before which everything is over, in microseconds."""

    folder: Path
    job: JobIdentity
    position: int | None
    calls: int
    events: int
    bytes: int
    matches: int
    shards: tuple[ShardState, ...]

    def lines(self) -> Iterator[str]:
        """The checkpoint as text."""
        job = self.job
        divided = f"{_many(job.shards, 'shard')} in {_many(job.partitions, 'partition')}"
        yield f"{self.folder}: made by etalis-py {job.package}, {divided}"
        for program in job.programs:
            queries = dict.fromkeys(q for stage in job.stages if stage.program == program.name for q in stage.reports)
            name = f" {program.name}" if program.name else ""
            yield f"  program{name}: {', '.join(queries)}; policy {program.policy}"
        over = "nothing is over yet" if self.position is None else f"over before {seconds(self.position)} s"
        yield f"  position: {_many(self.calls, 'call')}, {_many(self.events, 'event')}, {over}"
        yield f"  matches that stand: {self.matches:,}; bytes in all: {self.bytes:,}"
        for s in self.shards:
            held = "" if s.goals is None else f", {_many(s.goals, 'goal')}, {_many(s.waiting or 0, 'event')} waiting"
            yield (
                f"  level {s.level}, part {s.part}, shard {s.shard}: {_many(s.batches, 'batch')}, "
                f"{s.snapshot_bytes:,} + {s.journal_bytes:,} bytes of snapshot and journal{held}"
            )


def describe(
    spark: SparkSession, folder: str | Path, program: Programs | None = None, asked: JobSettings | None = None
) -> Checkpoint:
    """Describe a checkpoint.  With the program (and the options that it ran with) its state is read and counted."""
    root = Path(folder)
    state = state_of(root)
    job, shards = _stored(spark, root, program, asked or JobSettings())
    files = sorted((root / "events").glob("*.parquet"))
    events = sum(pq.ParquetFile(file).metadata.num_rows for file in files)
    size = sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
    standing = _standing(spark, root).count()
    return Checkpoint(root, job, state.over, len(files), events, size, standing, tuple(shards))


def move(
    spark: SparkSession, folder: str | Path, output: str | Path, shards: int, program: Programs, asked: JobSettings
) -> Checkpoint:
    """Make a checkpoint for another number of shards in a new folder, and read it back.  The old one stays as it is."""
    root, target = Path(folder), Path(output)
    state = state_of(root)
    if any(number > state.told for number, _ in batches(root)):
        raise SparkError(f"the matches of the last call in {root} have not been handed out: run it once more before")
    if target.exists():
        raise SparkError(f"{target} is there already: give a folder that is not")
    try:
        # With their modification times, since Spark takes files in that order.
        shutil.copytree(root / "events", target / "events")
        if state.updates:
            shutil.copytree(root / "updates", target / "updates")
        lateness = -(-micros("lateness", asked.lateness or 0) // 1000) * 1000
        go_on(spark, target, plan_stream(spark, program, target, asked.matching(shards, lateness), at_once=1), -1)
        same_matches(spark, root, target, shards)
        last = max((number for number, _ in batches(target)), default=-1)
        # Written last: a folder without it is not a checkpoint.
        revise = micros("revise", asked.revise)
        write_state(target, Continued(shards, last, state.over, state.updates, state.reading, revise))
        return describe(spark, target, program, asked)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def state_of(folder: Path) -> Continued:
    """The state of the run in a folder; raises ``SparkError`` if there is none."""
    state = read_state(folder)
    if state is None or not (folder / "state" / "commits").is_dir():
        raise SparkError(
            f"{folder} is not a checkpoint of etalis run --checkpoint, with or without Spark, or of run_on_spark"
        )
    return state


def _standing(spark: SparkSession, folder: Path) -> DataFrame:
    """The matches that have not been taken back, with their multiplicities."""
    kept = [address(path) for _, path in batches(folder)]
    rows = spark.read.schema(MATCHES).parquet(*kept) if kept else spark.createDataFrame([], MATCHES)
    times = F.sum(F.when(F.col("retracted"), -1).otherwise(1)).alias("times")
    standing = rows.where("kind = 'match'").groupBy("program", "query", "id").agg(times)
    return standing.where("times > 0")


def same_matches(spark: SparkSession, before: Path, after: Path, shards: int) -> None:
    """Refuse a folder whose standing matches differ from those of the folder before."""
    was, now = _standing(spark, before), _standing(spark, after)
    missing, extra = was.exceptAll(now).count(), now.exceptAll(was).count()
    if missing or extra:
        raise SparkError(
            f"its events in {_many(shards, 'shard')} have other matches: {missing:,} are missing and {extra:,} more; "
            "give the program, the background and the options of every call; a checkpoint whose program has changed on "
            "the way cannot be moved"
        )


# --- the stored state ------------------------------------------------------------------------------------------------


class _Read:
    """One state of a group, read offline."""

    def __init__(self, rows: Iterable[tuple[Any, ...]], *, single: bool) -> None:
        self._rows, self._single = list(rows), single

    def get(self) -> Any:
        return (self._rows[0] if self._rows else None) if self._single else self._rows


def _stored(
    spark: SparkSession, folder: Path, program: Programs | None, asked: JobSettings
) -> tuple[JobIdentity, list[ShardState]]:
    """The job that the state belongs to, and its shards."""
    with _plainly_named(folder.absolute() / "state") as place:
        return _read_state(spark, folder, place, program, asked)


def _read_state(
    spark: SparkSession, folder: Path, place: str, program: Programs | None, asked: JobSettings
) -> tuple[JobIdentity, list[ShardState]]:
    operators = spark.read.format("state-metadata").load(place).where(F.col("operatorName") == _OPERATOR)
    levels = sorted({row["operatorId"] for row in operators.collect()})
    wanted = States._fields if program is not None else ("head", "job")
    read = [{kind: _read(spark, place, kind, operator) for kind in wanted} for operator in levels]
    made_by = next((row for kinds in read for row in kinds["job"].values()), None)
    if made_by is None:
        raise SparkError(f"{folder} has no state: restore it from a copy")
    job = decoded(bytes(made_by[0][0]))
    engines = {} if program is None else _shards(spark, program, asked, job)
    stores = []
    for kinds in read:
        for slot, rows in kinds["head"].items():
            head = Head(*rows[0])
            part, number = numbers_of(slot)
            level = next(stage.level for stage in job.stages if stage.number == part)
            shard = ShardState(level, part, number, head.version, head.snapshot_bytes, head.journal_bytes)
            if slot in engines:
                states = States(*(_Read(kinds[k].get(slot, ()), single=k in ("head", "job")) for k in States._fields))
                engine = engines[slot]
                loaded = StoredShard(states, job).load((place, slot), lambda engine=engine: engine)  # type: ignore[misc]
                goals = loaded.engine.counters.kept().goals
                shard = replace(shard, goals=goals, waiting=len(loaded.waiting))
            stores.append(shard)
    return job, sorted(stores, key=lambda s: (s.level, s.part, s.shard))


@contextmanager
def _plainly_named(folder: Path) -> Iterator[str]:
    """The folder under a name that Spark finds: it looks for the state of ``my run`` in ``my%20run``."""
    if _PLAIN.fullmatch(str(folder)):
        yield str(folder)
        return
    with tempfile.TemporaryDirectory(prefix="etalis-") as name:
        link = Path(name) / "state"
        link.symlink_to(folder, target_is_directory=True)
        yield str(link)


def _read(spark: SparkSession, place: str, kind: str, operator: int) -> dict[int, list[tuple[Any, ...]]]:
    """The rows of one kind of state, by slot."""
    options = {"stateVarName": kind, "operatorId": str(operator)}
    frame = spark.read.format("statestore").options(**options).load(place)
    column = "list_element" if "list_element" in frame.columns else "value"
    rows: dict[int, list[tuple[Any, ...]]] = {}
    for row in frame.select("key.slot", f"{column}.*").collect():
        rows.setdefault(int(row[0]), []).append(tuple(row[1:]))
    if kind == "journal":
        for entries in rows.values():
            entries.sort()
    return rows


def _shards(spark: SparkSession, program: Programs, asked: JobSettings, job: JobIdentity) -> dict[int, Shard]:
    """An empty shard for each slot of the job."""
    revise = micros("revise", asked.revise)
    options = WindowOptions(updates=any(p.updates for p in job.programs), corrected=bool(revise))
    specs, parts = plan(
        program, job.shards, asked.background, asked.entailment, asked.policy, options, limits=asked.limits
    )
    slots = by_slot([routed.part for routed in parts], job.partitions)
    return {
        slot: shard_kind(specs[part.program], part)(specs[part.program], part, number, journal=True, revise=revise)
        for slot, (part, number) in slots.items()
    }


def _many(count: int, what: str) -> str:
    plural = "es" if what.endswith("ch") else "s"
    return f"{count:,} {what}{plural * (count != 1)}"


__all__ = ["Checkpoint", "ShardState", "describe", "move", "same_matches", "state_of"]
