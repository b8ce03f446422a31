"""Tables of Delta and Iceberg: the same ids as from any other source, in batch and as streams (``make test-lakes``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import etalis_py as api
from etalis_py import Event
from etalis_py.spark import events_from_columns, events_from_rows, iri, matches
from etalis_py.spark.input.catalyst_filters import flat_events
from etalis_py.spark.input.shards_that_scan import prunes
from tests.spark.programs import PROGRAMS, embedded, expected, ids_by_program, stream

pytestmark = pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")

SOME = {name: PROGRAMS[name] for name in ("seq", "recent", "within", "absence", "tagged", "counts", "rules", "total")}
FLAT = "start long, end long, s string, p string, o string"
READINGS = "at timestamp, machine string, status string, temp double"
RISES = 'SELECT ?machine ?was ?is { EVENT { ?machine :temp ?was } NEXT EVENT { ?machine :status "hot" ; :temp ?is } }'
BEGIN = datetime(2026, 3, 2, 8, tzinfo=UTC)
Reading = tuple[datetime, str, str, float]


@dataclass(frozen=True, slots=True)
class Lake:
    """A catalog of tables of one format."""

    spark: SparkSession
    format: str
    prefix: str
    names: Iterator[int]

    def made(self, columns: str, *, by: str = "", having: str = "") -> str:
        """A new table, with partitions ``by`` some columns and ``having`` a property."""
        name = f"{self.prefix}t{next(self.names)}"
        partitions = f" PARTITIONED BY ({by})" if by else ""
        properties = f" TBLPROPERTIES ({having})" if having else ""
        self.spark.sql(f"CREATE TABLE {name} ({columns}) USING {self.format}{partitions}{properties}")
        return name


@pytest.fixture(params=["delta", "iceberg"], scope="module")
def lake(request: pytest.FixtureRequest, lakes: SparkSession) -> Lake:
    return Lake(lakes, request.param, {"delta": "", "iceberg": "ice.db."}[request.param], count())


def triples_of(events: Sequence[Event]) -> pa.Table:
    rows = [(e.start, e.end, *triple) for e in events for triple in e.triples]
    return pa.table(dict(zip(("start", "end", "s", "p", "o"), zip(*rows, strict=True), strict=True)))


def readings(minutes: int) -> list[Reading]:
    """Three machines, each read every ten seconds, in turn hot."""
    rows = []
    for n in range(6 * minutes):
        at = BEGIN + timedelta(seconds=10 * n)
        rows += [(at, f"m{m}", "hot" if (n + m) % 4 == 0 else "ok", float(n % 7 + m)) for m in range(3)]
    return rows


def wanted(rows: Sequence[Reading], text: str = RISES) -> list[api.Match]:
    table = pa.Table.from_pylist([dict(zip(("at", "machine", "status", "temp"), row, strict=True)) for row in rows])
    return sorted(api.run(text, table, time="at", subject="machine"), key=lambda match: match.id)


def by_minute(found: Sequence[api.Match]) -> dict[int, int]:
    minutes = [(match.end_us - int(BEGIN.timestamp()) * 1_000_000) // 60_000_000 for match in found]
    return {minute: minutes.count(minute) for minute in minutes}


def minute_counts(found: DataFrame) -> DataFrame:
    """How many of these matches there are in each minute."""
    counted = found.groupBy(F.window("end", "1 minute")).count()
    return counted.select(F.minute("window.start").alias("minute"), "count")


def append(lake: Lake, name: str, rows: Sequence[Reading], schema: str = READINGS) -> None:
    lake.spark.createDataFrame(rows, schema).coalesce(1).writeTo(name).append()


def remove_files(table: DataFrame, but: str) -> None:
    """Remove all files of a table whose path is without this text."""
    names = [urlsplit(row[0]).path for row in table.select(F.input_file_name()).distinct().collect()]
    paths = [name if Path(name).exists() else unquote(name) for name in names]  # only Delta's are addresses
    others = [path for path in paths if but not in unquote(path)]
    assert 0 < len(others) < len(paths)
    for path in others:
        Path(path).unlink()


# --- batches ---


def test_a_table_of_triples_has_the_ids_of_the_embedded_engine(lake: Lake) -> None:
    """Also where shards read the table themselves, and by slices of time."""
    events, name = stream(3, 90), lake.made(FLAT)
    single = [Event(e.start, e.end, (triple,)) for e in events for triple in e.triples]
    lake.spark.createDataFrame(triples_of(events)).writeTo(name).append()
    table = lake.spark.read.table(name)
    assert ids_by_program(matches(SOME, table, shards=3).collect()) == expected(SOME, single)
    assert prunes(flat_events(table))
    found = matches(SOME["within"], table, shards=2, slices=3)
    assert "Exchange" not in found._jdf.queryExecution().executedPlan().toString()
    assert ids_by_program(found.collect()) == {"": embedded(SOME["within"], single)}


def test_what_was_deleted_is_not_read(lake: Lake) -> None:
    """The files still hold it: a list beside them says what was deleted."""
    beside = {"delta": "delta.enableDeletionVectors = true", "iceberg": "'write.delete.mode' = 'merge-on-read'"}
    events, name = stream(4), lake.made(FLAT, having=beside[lake.format])
    lake.spark.createDataFrame(triples_of(events)).coalesce(1).writeTo(name).append()
    lake.spark.sql(f"DELETE FROM {name} WHERE o = '<urn:x1>'")
    left = [Event(e.start, e.end, (t,)) for e in events for t in e.triples if t[2] != "<urn:x1>"]
    table = lake.spark.read.table(name)
    assert ids_by_program(matches(SOME, table, shards=2).collect()) == expected(SOME, left)


def test_partitions_that_no_query_asks_for_are_not_read(lake: Lake) -> None:
    """Their files may be gone.  The query chooses the partitions by its constants."""
    events, name = stream(5), lake.made(FLAT, by="p")
    lake.spark.createDataFrame(triples_of(events)).writeTo(name).append()
    table = lake.spark.read.table(name)
    text = "SELECT * { ?x <urn:r> ?y } NEXT { ?x <urn:r> ?z }"
    single = [Event(e.start, e.end, (triple,)) for e in events for triple in e.triples]
    remove_files(table, "<urn:r>")
    assert ids_by_program(matches(text, table, shards=2).collect()) == {"": embedded(text, single)}
    with pytest.raises(Exception, match=r"FAILED_READ_FILE|NotFoundException|File does not exist"):
        matches(SOME["seq"], table, shards=2).collect()


def test_a_filter_on_the_day_reads_only_its_files(lake: Lake) -> None:
    rows, name = readings(3), lake.made(f"{READINGS}, day string", by="day")
    another = [(at + timedelta(days=1), *cells) for at, *cells in rows]
    days = [(*row, row[0].strftime("%Y-%m-%d")) for row in (*rows, *another)]
    append(lake, name, days, f"{READINGS}, day string")
    table = lake.spark.read.table(name)
    remove_files(table, "day=2026-03-02")
    events = events_from_rows(table.where("day = '2026-03-02'").drop("day"), time="at", subject="machine")
    found = matches(RISES, events, shards=2, typed={"was": "double", "is": "double"}).where("kind = 'match'")
    assert [(row.id, row.was) for row in found.orderBy("id").collect()] == [(m.id, m["was"]) for m in wanted(rows)]
    assert dict(map(tuple, minute_counts(found).collect())) == by_minute(wanted(rows))


# --- streams ---


def written(found: DataFrame, folder: Path) -> list[object]:
    """All rows of the sink after a run over what is new."""
    writer = found.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    writer.outputMode("append").trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
    return found.sparkSession.read.schema(found.schema).parquet(str(folder / "out")).collect()


def test_a_table_as_a_stream_is_counted_by_the_minute(lake: Lake, tmp_path: Path) -> None:
    """Through a restart: it goes on after the version of the table that it has read."""
    rows, name = readings(6), lake.made(READINGS)
    last = [(BEGIN + timedelta(hours=hours), "m9", "ok", 0.0) for hours in (1, 2)]

    def counts() -> DataFrame:
        events = events_from_rows(lake.spark.readStream.table(name), time="at", subject="machine")
        found = matches(RISES, events, shards=2, lateness="5 seconds", typed=True).where("kind = 'match'")
        return minute_counts(found)

    append(lake, name, rows[:40])
    append(lake, name, rows[40:70])
    before = written(counts(), tmp_path)
    append(lake, name, rows[70:])
    for row in last:
        append(lake, name, [row])
        after = written(counts(), tmp_path)
    assert len(before) < len(after)
    assert dict(map(tuple, after)) == by_minute(wanted(rows))  # type: ignore[arg-type]


# --- sinks ---


def uncommitted(checkpoint: Path) -> Path:
    """The file that says that the last batch is done, removed as if the driver had ended when the sink had the batch.

    The next run does this batch once more, and writes the file again.
    """
    files = (checkpoint / "commits").iterdir()
    last = max((file for file in files if file.name.isdigit()), key=lambda file: int(file.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    return last


@pytest.mark.parametrize("typed", [True, False])
def test_a_table_as_the_sink_has_each_match_once(lake: Lake, tmp_path: Path, typed: bool) -> None:
    """Although the query ends between two batches, and once when the table has a batch that the checkpoint has not."""
    rows, name, checkpoint = readings(4), lake.made(READINGS), tmp_path / "checkpoint"
    sink = f"{lake.prefix}t{next(lake.names)}"
    last = [(BEGIN + timedelta(hours=hours), "m9", "ok", 0.0) for hours in (1, 2)]

    def run() -> list[str]:
        events = events_from_rows(lake.spark.readStream.table(name), time="at", subject="machine")
        found = matches(RISES, events, shards=2, lateness="5 seconds", typed=typed)
        writer = found.writeStream.format(lake.format).partitionBy("kind").trigger(availableNow=True)
        writer.option("checkpointLocation", str(checkpoint)).toTable(sink).awaitTermination()
        table = lake.spark.read.table(sink)
        assert table.where("kind != 'match'").count() == 0
        return [row.id for row in table.orderBy("id").collect()]

    append(lake, name, rows[:36])
    before = run()
    append(lake, name, rows[36:])
    append(lake, name, last[:1])
    after = run()
    last_batch = uncommitted(checkpoint)
    assert run() == after
    assert last_batch.exists()
    append(lake, name, last[1:])
    assert run() == [match.id for match in wanted(rows)]
    assert 0 < len(before) < len(after)


# --- change feeds ---

UPDATES = (("update_preimage", "update_postimage"), ("update_before", "update_after"))
FEED = "delta.enableChangeDataFeed = true"

PAIRS = "SELECT ?m ?t ?u { { ?m :temp ?t } NEXT { ?m :temp ?u } }"
ASKED = "SELECT ?m ?t ?u { EVENT { ?m :temp ?t } NEXT EVENT { ?m :temp ?u } }"


def changed(lake: Lake, name: str) -> list[Reading]:
    """Change a table in three versions; what it then holds."""
    rows = readings(2)
    append(lake, name, rows)
    lake.spark.sql(f"UPDATE {name} SET temp = 99.5 WHERE machine = 'm1' AND status = 'hot'")
    lake.spark.sql(f"DELETE FROM {name} WHERE machine = 'm2' AND temp > 4")
    return [
        (at, m, status, 99.5 if (m, status) == ("m1", "hot") else temp)
        for at, m, status, temp in rows
        if not (m == "m2" and temp > 4)
    ]


def triples_in(feed: DataFrame) -> DataFrame:
    """One triple of each row."""
    subject, predicate = iri("machine", "http://example.org/"), F.lit("<http://example.org/temp>")
    return events_from_columns(feed, s=subject, p=predicate, o="temp", time="at", changes="_change_type")


def feeds(lake: Lake, name: str) -> Iterator[DataFrame]:
    """The change feed of a table; Iceberg's with updates, and with deletions and insertions instead."""
    if lake.format == "delta":
        yield lake.spark.read.option("readChangeFeed", "true").option("startingVersion", 0).table(name)
        return
    for same in ("compute_updates => true, identifier_columns => array('at', 'machine'), ", ""):
        view = f"changes_{len(same)}"
        table = name.removeprefix("ice.")
        lake.spark.sql(f"CALL ice.system.create_changelog_view(table => '{table}', {same}changelog_view => '{view}')")
        yield lake.spark.read.table(view)


def test_the_change_feed_as_a_batch_is_the_table_as_it_is(lake: Lake) -> None:
    name = lake.made(READINGS, having=FEED)
    left = changed(lake, name)
    kinds = set()
    for feed in feeds(lake, name):
        kinds |= {row[0].lower() for row in feed.select("_change_type").distinct().collect()}
        events = events_from_rows(feed, time="at", subject="machine", changes="_change_type")
        found = matches(ASKED, events, shards=2, revise="1 hour")
        assert ids_by_program(found.collect()) == {"": [match.id for match in wanted(left, ASKED)]}
        found = matches(PAIRS, triples_in(feed), shards=2)
        assert ids_by_program(found.collect()) == {"": [match.id for match in wanted(left, PAIRS)]}
    assert kinds in ({"insert", "delete", *names} for names in UPDATES)


def test_the_change_feed_as_a_stream_takes_matches_back(lakes: SparkSession, tmp_path: Path) -> None:
    """Iceberg streams only what is appended."""
    lake = Lake(lakes, "delta", "feed_", count())
    name = lake.made(READINGS, having=FEED)
    first = readings(2)

    def standing() -> set[str]:
        reader = lake.spark.readStream.option("readChangeFeed", "true").option("startingVersion", 0)
        events = events_from_rows(
            reader.option("maxFilesPerTrigger", 1).table(name), time="at", subject="machine", changes="_change_type"
        )
        found = matches(ASKED, events, shards=2, lateness="5 seconds", revise="2 days")
        rows = written(found.where("kind != 'metric'"), tmp_path)
        assert {row.kind for row in rows} == {"match"}  # type: ignore[attr-defined]
        stated = [row.id for row in rows if not row.retracted]  # type: ignore[attr-defined]
        gone = [row.id for row in rows if row.retracted]  # type: ignore[attr-defined]
        return {id for id in stated if stated.count(id) > gone.count(id)}

    append(lake, name, first)
    append(lake, name, [(BEGIN + timedelta(hours=1), "m9", "ok", 0.0)])
    append(lake, name, [(BEGIN + timedelta(hours=2), "m9", "ok", 0.0)])
    before = standing()
    assert before == {match.id for match in wanted(first, ASKED)}
    lake.spark.sql(f"UPDATE {name} SET temp = 99.5 WHERE machine = 'm1' AND status = 'hot'")
    lake.spark.sql(f"DELETE FROM {name} WHERE machine = 'm2' AND temp > 4")
    append(lake, name, [(BEGIN + timedelta(hours=3), "m9", "ok", 0.0)])
    rows = lake.spark.read.table(name).where("machine != 'm9'").orderBy("at").collect()
    left = [(row.at.replace(tzinfo=row.at.tzinfo or UTC), row.machine, row.status, row.temp) for row in rows]
    after = {match.id for match in wanted(left, ASKED)}
    assert {id for id in standing() if id in before | after} == after
    assert before - after
