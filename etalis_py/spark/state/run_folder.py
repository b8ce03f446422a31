"""A streaming run that is called again with further events: the contents of its folder, and one such call.

========== =======================================================================================================
events/    one Parquet file for each call
updates/   the same for updates of the background, if the run has them
state/     the checkpoint of Spark's stream
matches/   one folder of Parquet files for each batch of the stream, written again when a batch is repeated
job.msgpack what the last call ran, as the shards keep it as well: programs, parts, routing
etalis.json the number of shards, which is fixed; the last batch whose matches have been reported, and the calls that
            have reported theirs; the time reached; how rows are read and how far back corrections reach, which are
            fixed as well
========== =======================================================================================================

A call that fails after taking its events loses nothing: the next one continues with them.  Matches are returned until
the caller confirms them, so after a failure some may be returned again, with the same ids.  Events that the next call
is given once more are not taken again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession

from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.schema import EVENTS, MATCHES
from etalis_py.spark.input.update_rows import UPDATES, write_updates
from etalis_py.spark.pipeline import Planned, Programs, planned_matches
from etalis_py.spark.plan.checkpoint_match import (
    ADVICE,
    JobIdentity,
    check_same_job,
    decoded,
    other_horizon,
    other_reading,
)
from etalis_py.spark.plan.options import Matching, MatchOptions
from etalis_py.streams.updates import Updates

META = "etalis.json"
JOB = "job.msgpack"
_BEFORE_META = {"events", "events.part", "updates", "updates.part", f"{META}.part"}
"""What a first call may have written when it is killed before it says what the folder is."""


class Continued(msgspec.Struct):
    """The state that a call takes over from earlier calls.  ``over``: every instant before this time is over.

    ``updates``: the background changes while it runs.  ``reading``: how rows became events, if a call knew it.
    ``revise``: the horizon of corrections in microseconds; None in older folders, which do not say it.  ``confirmed``:
    how many calls have reported their matches, each of which has a file of events; None in older folders.
    """

    shards: int
    told: int = -1
    over: int | None = None
    updates: bool = False
    reading: Mapping[str, str] = {}
    revise: int | None = None
    confirmed: int | None = None


def read_state(folder: Path) -> Continued | None:
    """The state in the folder of a run; None in a new folder."""
    try:
        return msgspec.json.decode((folder / META).read_bytes(), type=Continued)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise SparkError(
            f"checkpoint={str(folder)!r} is a file, and a run keeps a folder: give a name that is free"
        ) from None
    except msgspec.MsgspecError as error:
        raise SparkError(
            f"{folder / META} is damaged ({error}): restore the folder from a copy, or take a new one and replay the "
            "stream"
        ) from None


def refuse_other_files(folder: Path) -> None:
    """Refuse a new run in a folder of something else, such as a checkpoint of the local engine."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set[str]()
    if others := names - _BEFORE_META:
        raise SparkError(f"{folder} has other files in it, as {min(others)}: name an empty or a new folder")


def same_shards(folder: Path, state: Continued, shards: int) -> None:
    """Refuse another number of shards: a checkpoint fixes it."""
    if state.shards != shards:
        raise SparkError(
            f"the checkpoint {folder} was made with {state.shards} shards, now {shards} are asked for: go on with "
            f"{state.shards}, or make a folder for {shards} of it with etalis checkpoint"
        )


def same_updates(folder: Path, state: Continued, updates: bool) -> None:
    """Refuse updates in only one of them: a checkpoint fixes whether there are any, since they are a second source."""
    if state.updates and not updates:
        raise SparkError(
            f"the checkpoint {folder} was made with updates of the background: give them again, those that are new; "
            "an empty file where there are none"
        )
    if updates and not state.updates:
        raise SparkError(
            f"the checkpoint {folder} was made without updates of the background: go on without them, or start from a "
            "new folder and replay the stream"
        )


def same_reading(folder: Path, state: Continued, reading: Mapping[str, str]) -> None:
    """Refuse rows that are read in another way: goals of the one reading would meet events of the other."""
    if differing := list(other_reading(state.reading, reading)):
        raise SparkError(f"the checkpoint {folder} does not belong to these events: {'; '.join(differing)}; {ADVICE}")


def same_horizon(folder: Path, state: Continued, revise: int) -> None:
    """Refuse another horizon of corrections: the state only has the input within the one of before."""
    for differing in other_horizon(state.revise, revise):
        raise SparkError(f"the checkpoint {folder} does not belong to this run: {differing}; {ADVICE}")


def put_updates(folder: Path, name: str, updates: Updates) -> None:
    """Write the updates of a call beside its events, even if there are none."""
    kept = folder / "updates"
    kept.mkdir(exist_ok=True)
    write_updates(folder / "updates.part", updates, first=int(Path(name).stem) << 40)
    (folder / "updates.part").rename(kept / name)


def write_state(folder: Path, state: Continued) -> None:
    _write_at_once(folder / META, msgspec.json.encode(state))


def _write_at_once(file: Path, data: bytes) -> None:
    """Write a file that is there as a whole or not at all."""
    part = file.with_name(file.name + ".part")
    part.write_bytes(data)
    part.rename(file)


def next_file(folder: Path) -> Path:
    """The file for the events of this call; they are written beside it first."""
    events = folder / "events"
    events.mkdir(parents=True, exist_ok=True)
    return events / f"{len(list(events.glob('*.parquet'))):06d}.parquet"


def address(path: Path) -> str:
    """The path by which Spark reads just this file or folder.

    It takes ``*``, ``?``, brackets, braces and backslashes of a path for a pattern, and a relative path for one below
    the folder in which its JVM was started, which this process may have left since.
    """
    return re.sub(r"[][{}*?\\]", r"\\\g<0>", str(path.absolute()))


def unconfirmed(folder: Path, confirmed: int) -> list[Path]:
    """The files with the events of calls that have failed after taking them."""
    return sorted((folder / "events").glob("*.parquet"))[confirmed:]


def plan_stream(
    spark: SparkSession, program: Programs, folder: Path, options: MatchOptions, at_once: int | None = None
) -> Planned:
    """The stream over the events in the folder, if the folder belongs to this program.

    ``at_once``: the number of files in a batch (default: all).
    """
    read = spark.readStream.schema(EVENTS)
    if at_once is not None:
        read = read.option("maxFilesPerTrigger", at_once)
    frame = read.parquet(address(folder / "events"))
    if (folder / "updates").is_dir():
        changes = spark.readStream.schema(UPDATES)
        if at_once is not None:
            changes = changes.option("maxFilesPerTrigger", at_once)
        options["updates"] = changes.parquet(address(folder / "updates"))
    planned = planned_matches(program, frame, Matching(**options))
    before = _last_job(folder)
    if before is not None:
        check_same_job(before, planned.job, f"the checkpoint {folder}")
    return planned


def _last_job(folder: Path) -> JobIdentity | None:
    """What the last call ran; None if there was none, or an older version has run it."""
    file = folder / JOB
    try:
        return decoded(file.read_bytes())
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise SparkError(f"{file} is damaged ({error}): delete it; the state of each shard says the same") from None


def go_on(spark: SparkSession, folder: Path, planned: Planned, reported: int) -> DataFrame:
    """Run the stream over the new events, to their end; returns the unreported matches."""
    kept = folder.absolute() / "matches"

    def keep(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(kept / f"{number:06d}"))

    query = (
        planned.rows.writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(folder.absolute() / "state"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
        if planned.watch is not None:  # Spark's listener may be called too late, when the session is gone
            for progress in query.recentProgress:
                planned.watch.look(progress)
    finally:
        query.stop()
    _write_at_once(folder / JOB, planned.job.encoded())
    new = [address(path) for number, path in batches(folder) if number > reported]
    return spark.read.schema(MATCHES).parquet(*new) if new else spark.createDataFrame([], MATCHES)


def batches(folder: Path) -> list[tuple[int, Path]]:
    """The batches whose matches are in the folder."""
    return sorted((int(path.name), path) for path in (folder / "matches").glob("*") if path.name.isdigit())
