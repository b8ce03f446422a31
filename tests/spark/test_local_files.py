"""Parquet files of this machine are read without Spark where both read them alike, and say the same of their rows."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import etalis_py.spark.input.shards_that_scan
import etalis_py.spark.shard.time_slices
from etalis_py import Event
from etalis_py.spark import SparkError, matches
from etalis_py.spark.input.arrow_filters import asked_of, keys_in, own_of, wrong_in
from etalis_py.spark.input.catalyst_filters import keys_of, scanned
from etalis_py.spark.input.expressions import all_of
from etalis_py.spark.input.local_files import NEVER, FileReader, LocalFiles, RowGroup, local_files, runs_of
from etalis_py.spark.input.local_scans import _lean, groups_of, local_operator
from etalis_py.spark.input.nulls import is_wrong
from etalis_py.spark.output.wire import wire_of
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.parts import RoutedPart, ShardPart
from tests.spark.by_hand import public
from tests.spark.programs import SHARDED, embedded, ids_by_program, stream
from tests.streams.test_foreign_files import with_a_wrong_histogram

TEXT = SHARDED["seq"]
COLUMNS = ("end", "start", "stream", "s", "p", "o")


def table(events: Sequence[Event]) -> pa.Table:
    rows = [(e.end, e.start, e.stream, *triple) for e in events for triple in e.triples]
    return pa.table(dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))


def found(frame: DataFrame, shards: int = 2) -> list[str]:
    return ids_by_program(matches(TEXT, frame, shards=shards).collect())[""]


def shuffled(frame: DataFrame) -> bool:
    return "Exchange" in matches(TEXT, frame, shards=2)._jdf.queryExecution().executedPlan().toString()


# --- which files ---------------------------------------------------------------------------------------------------

KINDS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "as it is": lambda rows: rows,
    "large strings": lambda rows: rows.set_column(3, "s", rows.column("s").cast(pa.large_string())),
    "dictionaries": lambda rows: rows.set_column(
        5, "o", rows.column("o").cast(pa.dictionary(pa.int8(), pa.large_string()))
    ),
    "no start and no stream": lambda rows: rows.drop_columns(["start", "stream"]),
    "a stream that is null": lambda rows: rows.set_column(2, "stream", pa.nulls(len(rows), pa.string())),
    "more columns": lambda rows: rows.append_column("more", [list(map(float, range(len(rows))))]),
    "other order": lambda rows: rows.select([*reversed(COLUMNS)]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_read_whatever_its_columns(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    events = [e._replace(start=e.end, stream="") for e in stream(21, 120)]
    rows = KINDS[kind](table(events))
    folder = tmp_path / "größe 100% #1"
    folder.mkdir()
    half = len(rows) // 2
    pq.write_table(rows.slice(0, half), folder / "a.parquet", row_group_size=20)
    pq.write_table(rows.slice(half), folder / "b.parquet", use_dictionary=False, compression="zstd")
    file = spark.read.parquet(str(folder))
    read = local_files(file)
    assert read is not None
    assert read.paths == (str(folder / "a.parquet"), str(folder / "b.parquet"))
    assert found(file) == embedded(TEXT, events)


CHANGES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "fewer columns": lambda file: file.select("end", "s", "p", "o"),
    "other names": lambda file: file.selectExpr("end", "start", "s AS o", "o AS s", "p"),
    "the end as start": lambda file: file.withColumn("start", F.col("end")),
    "a column that nobody reads": lambda file: file.withColumn("more", F.col("end") + 1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_columns_may_be_chosen_and_renamed(spark: SparkSession, tmp_path: Path, change: str) -> None:
    pq.write_table(table(stream(22, 100)), tmp_path / "events.parquet")
    file = CHANGES[change](spark.read.parquet(str(tmp_path)))
    assert local_files(file) is not None
    assert found(file) == found(file.where("length(p) > 0")) != []


OTHERS: dict[str, Callable[[SparkSession, Path], DataFrame]] = {
    "a filter": lambda spark, path: spark.read.parquet(str(path)).where("end > 0"),
    "an expression": lambda spark, path: spark.read.parquet(str(path)).withColumn("end", F.col("end") + 1),
    "a limit": lambda spark, path: spark.read.parquet(str(path)).limit(10_000),
    "another format": lambda spark, path: _written(spark, path, "orc"),
    "folders as a column": lambda spark, path: _written(spark, path, "parquet", "p"),
    "folders that nobody reads": lambda spark, path: _written(spark, path, "parquet", "start"),
    "broken files passed over": lambda spark, path: spark.read.option("ignoreCorruptFiles", "true").parquet(str(path)),
    "rows in memory": lambda spark, path: spark.read.parquet(str(path)).cache(),
    "a computed time": lambda spark, path: spark.read.parquet(str(path)).withColumn("end", F.timestamp_micros("end")),
    "times as Spark writes them": lambda spark, path: _written(spark, path, "parquet", times=True),
    "numbers of another size": lambda spark, path: _narrow(spark, path),
    "a column that is missing": lambda spark, path: _without_stream(spark, path),
    "another compression": lambda spark, path: _lz4(spark, path),
    "durations, of which Spark knows nothing": lambda spark, path: _durations(spark, path),
    "a file twice": lambda spark, path: spark.read.parquet(str(path), str(path / "events.parquet")),
    "times of an old calendar": lambda spark, path: _marked(spark, path, "org.apache.spark.legacyDateTime", ""),
    "times of an old Spark": lambda spark, path: _marked(spark, path, "org.apache.spark.version", "2.4.8"),
}


def _written(spark: SparkSession, path: Path, format: str, *by: str, times: bool = False) -> DataFrame:
    file = spark.read.parquet(str(path))
    file = file.withColumn("end", F.timestamp_micros("end")).drop("start") if times else file
    file.coalesce(1).write.partitionBy(*by).format(format).save(str(path / "again"))
    return spark.read.schema(file.schema).format(format).load(str(path / "again"))


def _narrow(spark: SparkSession, path: Path) -> DataFrame:
    rows = pq.read_table(path / "events.parquet")
    narrow = rows.set_column(1, "start", (pa.array(range(len(rows)), pa.int32())))
    pq.write_table(narrow, path / "events.parquet")
    return spark.read.schema("end long, start long, s string, p string, o string").parquet(str(path))


def _without_stream(spark: SparkSession, path: Path) -> DataFrame:
    pq.write_table(pq.read_table(path / "events.parquet").drop_columns(["stream"]), path / "more.parquet")
    schema = spark.read.parquet(str(path / "events.parquet")).schema
    return spark.read.schema(schema).parquet(str(path / "more.parquet"))


def _lz4(spark: SparkSession, path: Path) -> DataFrame:
    pq.write_table(pq.read_table(path / "events.parquet"), path / "events.parquet", compression="lz4")
    return spark.read.parquet(str(path))


def _durations(spark: SparkSession, path: Path) -> DataFrame:
    rows = pq.read_table(path / "events.parquet")
    lasting = pa.array(range(len(rows)), pa.duration("us"))
    pq.write_table(rows.set_column(COLUMNS.index("o"), "o", lasting), path / "events.parquet")
    return spark.read.parquet(str(path))


def _marked(spark: SparkSession, path: Path, name: str, value: str) -> DataFrame:
    rows = pq.read_table(path / "events.parquet")
    pq.write_table(rows.replace_schema_metadata({name: value}), path / "events.parquet")
    return spark.read.parquet(str(path))


@pytest.mark.parametrize("why", OTHERS)
def test_what_is_more_than_its_files_is_read_by_spark(spark: SparkSession, tmp_path: Path, why: str) -> None:
    pq.write_table(table(stream(23, 60)), tmp_path / "events.parquet")
    file = OTHERS[why](spark, tmp_path)
    assert local_files(file) is None
    assert matches(TEXT, file, shards=1).count() >= 0


def test_times_that_spark_computes_anew_are_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    rows = table(stream(23, 20))
    pq.write_table(
        rows.set_column(0, "end", rows.column("end").cast(pa.timestamp("us", "UTC"))), tmp_path / "a.parquet"
    )
    setting = "spark.sql.parquet.datetimeRebaseModeInRead"
    file = spark.read.parquet(str(tmp_path))
    assert local_files(file) is not None
    spark.conf.set(setting, "LEGACY")
    try:
        assert local_files(file) is None
    finally:
        spark.conf.unset(setting)


def test_rows_that_are_kept_in_memory_meanwhile_are_not_read_again(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(table(stream(23, 20)), tmp_path / "events.parquet")
    file = spark.read.parquet(str(tmp_path))
    assert local_files(file) is not None
    file.cache()
    try:
        assert local_files(file) is None
    finally:
        file.unpersist()


def test_a_file_that_tells_of_others_is_not_read(spark: SparkSession, tmp_path: Path) -> None:
    events, told = stream(23, 60), list[pq.FileMetaData]()
    pq.write_table(table(events), tmp_path / "events.parquet", metadata_collector=told)
    told[0].set_file_path("events.parquet")
    pq.write_metadata(table(events).schema, tmp_path / "_metadata", told)
    file = spark.read.parquet(str(tmp_path))
    read = local_files(file)
    assert read is not None
    assert read.paths == (str(tmp_path / "events.parquet"),)
    assert found(file) == embedded(TEXT, events)


def test_a_file_is_hidden_where_spark_takes_it_for_hidden(spark: SparkSession, tmp_path: Path) -> None:
    """A name that begins with _ is hidden, but not where it says what a column is, even if it is no folder's."""
    events = stream(23, 60)
    rows = table(events)
    pq.write_table(rows.slice(0, 30), tmp_path / "_day=1.parquet")
    pq.write_table(rows.slice(30), tmp_path / "events.parquet")
    pq.write_table(rows, tmp_path / "_events.parquet")
    pq.write_table(rows, tmp_path / ".events=1.parquet")
    file = spark.read.parquet(str(tmp_path))
    assert local_files(file) is not None
    assert found(file) == embedded(TEXT, events)


def test_files_that_are_gone_or_broken_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(table(stream(23, 60)), tmp_path / "events.parquet")
    file = spark.read.parquet(str(tmp_path))
    (tmp_path / "events.parquet").write_bytes(b"PAR1 and no more PAR1")
    assert local_files(file) is None
    (tmp_path / "events.parquet").unlink()
    assert local_files(file) is None


TYPES: dict[str, tuple[str, pa.DataType, Callable[[int], Any]]] = {
    "instants": ("end", pa.timestamp("us", tz="UTC"), lambda n: n),
    "times without a zone": ("start", pa.timestamp("us"), lambda n: n),
    "longs": ("o", pa.int64(), lambda n: n % 5 - 2),
    "integers": ("o", pa.int32(), lambda n: n % 5 - 2),
    "doubles": ("o", pa.float64(), lambda n: (0.1, 2.0, 1e300, float("nan"), -0.0)[n % 5]),
    "floats": ("o", pa.float32(), lambda n: (0.5, 2.0, 1e30, float("inf"))[n % 4]),
    "booleans": ("o", pa.bool_(), lambda n: n % 3 == 0),
}


@pytest.mark.parametrize("kind", TYPES)
def test_values_of_other_types_are_those_that_spark_reads(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    name, type_, value = TYPES[kind]
    rows = table(stream(28, 80))
    values = rows.column(name).cast(type_) if name != "o" else pa.array(map(value, range(len(rows))), type_)
    rows = rows.set_column(COLUMNS.index(name), name, values)
    pq.write_table(rows, tmp_path / "events.parquet", row_group_size=30)
    file = spark.read.parquet(str(tmp_path))
    assert local_files(file) is not None
    mine, theirs = (matches(TEXT, frame, shards=2).collect() for frame in (file, file.where("length(p) > 0")))
    assert ids_by_program(mine) == ids_by_program(theirs) != {}


# --- pieces --------------------------------------------------------------------------------------------------------


def group(first: int, last: int, number: int = 0) -> RowGroup:
    return RowGroup("", number, 1, 1, first, last, False)


def test_pieces_that_overlap_are_read_together() -> None:
    pieces = [group(*ends) for ends in ((0, 4), (1, 2), (3, 5), (5, 6), (6, 6), (6, 9), (8, 9), (11, 12))]
    assert [len(run) for run in runs_of(pieces)] == [3, 1, 1, 2, 1]
    assert [len(run) for run in runs_of([group(NEVER, 2**63 - 1), group(3, 4), group(5, 6)])] == [3]
    assert runs_of([]) == []


def test_a_slice_reads_the_pieces_of_its_time() -> None:
    pieces = [group(n, n + 9, n) for n in range(0, 60, 10)]
    part = ShardPart(0, 0, 3, ("q",), ("q",), begins=(20, 41), overlap=5)
    read = [[piece.number for piece in groups_of(pieces, part, shard)] for shard in range(3)]
    assert read == [[0, 10], [10, 20, 30, 40], [30, 40, 50]]


def test_an_empty_file_is_no_piece(tmp_path: Path) -> None:
    rows = table(stream(23, 60))
    pq.write_table(rows.slice(0, 0), tmp_path / "a.parquet")
    pq.write_table(rows, tmp_path / "b.parquet")
    read = LocalFiles(tuple(str(tmp_path / name) for name in ("a.parquet", "b.parquet")), {n: n for n in COLUMNS})
    assert [piece.path for piece in FileReader(read).groups] == [read.paths[1]]


def test_a_column_has_the_same_form_in_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file has codes, in another there are too many terms for these."""
    monkeypatch.setattr("etalis_py.streams.columns.files.LARGEST_DICTIONARY", 2_000)
    rows = table(stream(23, 60)).select(["end", "s", "p", "o", "stream"])
    coded = rows.set_column(1, "s", rows.column("s").combine_chunks().dictionary_encode())
    many = pa.table({"end": range(200), "s": [f"<urn:{n:040}>" for n in range(200)], "p": ["<urn:p>"] * 200})
    many = many.append_column("o", [["<urn:o>"] * 200]).append_column("stream", [[None, "<urn:s>"] * 100])
    pq.write_table(coded, tmp_path / "a.parquet")
    pq.write_table(many, tmp_path / "b.parquet")
    read = LocalFiles(
        tuple(str(tmp_path / name) for name in ("a.parquet", "b.parquet")), {n: n for n in many.schema.names}
    )
    reader = FileReader(read)
    batches = list(reader.batches(reader.groups, ("end", "start", "s", "p", "o", "stream")))
    assert pa.Table.from_batches(batches).column("s").type == pa.string()
    assert "" in pa.Table.from_batches(batches).column("stream").to_pylist()


def test_few_rows_do_not_keep_the_terms_of_a_piece() -> None:
    terms = pa.array([f"<urn:{n}>" for n in range(1_000)])
    column = pa.DictionaryArray.from_arrays(pa.array([7, 990, 7], pa.int32()), terms)
    lean = _lean(pa.record_batch({"s": column, "p": ["a", "b", "c"]}))
    assert lean.column("s").dictionary.to_pylist() == ["<urn:7>", "<urn:990>"]
    assert lean.to_pylist() == [{"s": f"<urn:{n}>", "p": p} for n, p in ((7, "a"), (990, "b"), (7, "c"))]


def test_files_in_order_of_time_may_be_large(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their rows are taken piece by piece, and none is held: so they are read whatever their size."""
    monkeypatch.setattr(etalis_py.spark.input.shards_that_scan, "MOST_BYTES", 2_000)
    events = sorted(stream(24, 300), key=lambda event: event.end)
    pq.write_table(table(events), tmp_path / "events.parquet", row_group_size=25)
    file = spark.read.parquet(str(tmp_path / "events.parquet"))
    assert not shuffled(file)
    assert found(file) == embedded(TEXT, events)
    rows = table(events)
    mixed = rows.take(pa.array(random.Random(1).sample(range(len(rows)), len(rows))))
    pq.write_table(mixed, tmp_path / "mixed.parquet", row_group_size=25)
    assert shuffled(spark.read.parquet(str(tmp_path / "mixed.parquet")))


@pytest.mark.parametrize("order", ["in order", "pieces in another order", "in no order", "nothing told"])
def test_rows_come_in_order_of_time_whatever_the_order_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setattr(etalis_py.spark.input.local_scans, "AT_ONCE", 30)
    monkeypatch.setattr(etalis_py.spark.input.local_files, "AT_ONCE", 30)
    events = sorted(stream(25, 200), key=lambda event: event.end)
    rows = table(events)
    if order == "in no order":
        rows = rows.take(pa.array(random.Random(2).sample(range(len(rows)), len(rows))))
    pieces = [rows.slice(n, 25) for n in range(0, len(rows), 25)]
    told = order != "nothing told"
    with pq.ParquetWriter(tmp_path / "events.parquet", rows.schema, write_statistics=told) as writer:
        for piece in pieces[::-1] if order == "pieces in another order" else pieces:
            writer.write_table(piece)
    read = LocalFiles((str(tmp_path / "events.parquet"),), {name: name for name in COLUMNS})
    runs = runs_of(FileReader(read).groups)
    assert (len(runs) > 1) == (order in ("in order", "pieces in another order"))
    specs, [part] = plan(TEXT, 3, None, "rdfs", None)
    wire = wire_of([part.part], [""])
    operate = local_operator(read, [(part, n) for n in range(3)], specs, wire, False, None, ())
    batches = operate([pa.record_batch({"id": [0]}), pa.record_batch({"id": [1, 2]})])
    assert sorted(str(public(row, wire)["id"]) for batch in batches for row in batch.to_pylist()) == embedded(
        TEXT, events
    )


# --- rows ----------------------------------------------------------------------------------------------------------

TERMS = ("<urn:a>", "<urn:b>", '"c"', "<urn:it's>", None)
X, Y = alg.Var("x"), alg.Var("y")
A, B = alg.Const("<urn:a>"), alg.Const("<urn:b>")
ROUTES: dict[str, tuple[tuple[tuple[Any, ...], str], ...]] = {
    "a constant": (((X, A, Y), "subject"),),
    "another place": (((X, A, Y), "object"),),
    "either place": (((X, A, Y), "subject"), ((Y, B, X), "object")),
    "several": (((X, ir.OneOf(("<urn:a>", '"c"')), Y), "subject"),),
    "none of": (((X, ir.NoneOf(("<urn:a>", "<urn:it's>")), Y), "subject"),),
    "the same twice": (((X, Y, X), "predicate"),),
    "the same three times": (((X, X, X), "predicate"),),
    "any": (((X, alg.Var("z"), Y), "subject"),),
    "a stream": (((X, A, Y, "<urn:s>"), "subject"), ((X, B, Y, "<urn:unnamed>"), "subject")),
    "entailed": (((X, A, Y, "", True), "subject"),),
}


def leaf(subject: Any, predicate: Any, object: Any, stream: str = "", entailed: bool = False) -> ir.Leaf:
    return ir.Leaf(("x", "y"), subject, predicate, object, stream=stream, entailed=entailed)


def test_a_row_is_chosen_as_spark_chooses_it(spark: SparkSession, tmp_path: Path) -> None:
    """Each test, and each shard, of all rows of a few terms: Spark's own filter tells."""
    rows = [
        {"start": n, "end": n, "stream": stream, "s": s, "p": p, "o": o}
        for n, (s, p, o, stream) in enumerate(
            (s, p, o, stream) for s in TERMS for p in TERMS for o in TERMS for stream in ("", "<urn:s>", "<urn:t>")
        )
    ]
    schema = pa.schema([("start", pa.int64()), ("end", pa.int64()), *[(n, pa.string()) for n in ("stream", *"spo")]])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "events.parquet")
    file = spark.read.parquet(str(tmp_path))
    read = local_files(file)
    assert read is not None
    [batch] = FileReader(read).batches(FileReader(read).groups, COLUMNS)
    whole = batch.filter(pc.invert(wrong_in(batch)))
    assert 0 < len(whole) < len(batch)
    for name, leaves in ROUTES.items():
        routes = tuple((leaf(*values), position) for values, position in leaves)
        for shards in (1, 3):
            part = ShardPart(0, 0, shards, ("q",), ("q",))
            placed = tuple((one, position if shards > 1 else "") for one, position in routes)
            routed = RoutedPart(part, placed, unnamed="<urn:unnamed>")
            for shard in range(shards):
                wanted = {row["end"] for row in scanned(file, routed, shard).select("end").collect()}
                own = own_of(whole, routed, shard)
                chosen = whole if own is None else whole.filter(own)
                assert set(chosen.column("end").to_pylist()) == wanted, (name, shard)
        keyed = file.where(all_of([f"NOT {is_wrong()}"])).selectExpr("`end`", f"{keys_of(routed)} AS key").collect()
        assert keys_in(whole, routed).to_pylist() == [row["key"] for row in sorted(keyed)], name
        assert (asked_of(whole, routed) is None) == (name in ("any", "entailed"))


def test_what_nobody_asks_for_is_not_taken() -> None:
    batch = pa.record_batch({name: ["<urn:a>"] for name in "spo"})
    part = RoutedPart(ShardPart(0, 0, 1, ("q",), ("q",)), ())
    assert own_of(batch, part, 0).to_pylist() == [False]
    assert own_of(batch, RoutedPart(part.part, (), everything=True), 0) is None


def test_files_that_change_are_read_as_they_are_when_the_matches_are_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The list of files is that of the DataFrame, and what is in them that of the moment."""
    early, late = stream(26, 80), stream(27, 120)
    pq.write_table(table(early), tmp_path / "events.parquet", row_group_size=10)
    planned = matches(TEXT, spark.read.parquet(str(tmp_path)), shards=2)
    pq.write_table(table(late), tmp_path / "events.parquet")
    assert ids_by_program(planned.collect())[""] == embedded(TEXT, late)


@pytest.mark.parametrize("change", ["milliseconds", "no start"])
def test_a_file_that_has_other_columns_by_then_is_named(spark: SparkSession, tmp_path: Path, change: str) -> None:
    rows = table(stream(26, 80))
    pq.write_table(rows, tmp_path / "events.parquet")
    files = local_files(spark.read.parquet(str(tmp_path)))
    assert files is not None
    coarse = rows.column("end").cast(pa.timestamp("us")).cast(pa.timestamp("ms"))
    changed = rows.set_column(0, "end", coarse) if change == "milliseconds" else rows.drop_columns(["start"])
    pq.write_table(changed, tmp_path / "events.parquet")
    with pytest.raises(SparkError, match=r"events\.parquet has other columns than when the query was planned"):
        FileReader(files)


def test_a_file_that_is_gone_by_then_is_named(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(table(stream(26, 80)), tmp_path / "events.parquet")
    files = local_files(spark.read.parquet(str(tmp_path)))
    assert files is not None
    (tmp_path / "events.parquet").unlink()
    with pytest.raises(
        SparkError, match=r"events\.parquet is gone since the query was planned: make the DataFrame anew"
    ):
        FileReader(files)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    """Arrow ends the process if it is asked what such a file says of its columns, so one process is set apart."""
    path = tmp_path / "events.parquet"
    path.write_bytes(with_a_wrong_histogram())
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as apart:
        error = apart.submit(outcome, str(path)).result()
    assert error.startswith(f"{path} is damaged: Definition level histogram size mismatch")
    assert error.endswith("; fetch or write it again")


def outcome(path: str) -> str:
    """The error of reading a file that has only the column ``o``, or nothing."""
    try:
        FileReader(LocalFiles((path,), {"o": "o"}))
    except SparkError as error:
        return str(error)
    return ""
