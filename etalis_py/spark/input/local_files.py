"""Lets a batch read Parquet files on this machine directly, without Spark: their rows in columns, in order of time.

Spark takes about half a microsecond to hand a row to Python, once for each shard that reads all of a source.  Arrow
decodes it in a tenth of that and keeps repeated terms as the codes that the file has.  So if a DataFrame is nothing but
the columns of such files, its shards are still run by Spark but read the files without it.

The files are those that Spark lists, with types that both read alike; sources with anything else (filters, expressions,
partitions by folder, an option to skip broken files, other file systems) are left to Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from os.path import basename
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import DataFrame

from etalis_py.spark.errors import SparkError
from etalis_py.spark.session_kinds import is_connect
from etalis_py.spark.shard.time_slices import AT_ONCE
from etalis_py.streams.columns.checked_tables import first_line
from etalis_py.streams.columns.files import too_large, touch
from etalis_py.streams.columns.flat_form import constant
from etalis_py.streams.columns.native_literals import plain, spelled

MOST_FILES = 200
"""At most so many files are inspected when a batch is planned, as each takes a few milliseconds."""
_TIMES = {"bigint": pa.int64(), "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us")}
_TEXTS = {"string": pa.string()}
_OBJECTS = _TEXTS | {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
}
_KINDS = {"end": _TIMES, "start": _TIMES, "s": _TEXTS, "p": _TEXTS, "o": _OBJECTS, "stream": _TEXTS}
"""The types that columns may have in Spark, and the types that Arrow must then read from the files."""
_COMPRESSED = {"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"}
_OLD_CALENDAR = b"org.apache.spark.legacyDateTime"
"""Spark converts the times of files with this mark, and of files from before the mark existed."""
_AS_THEY_ARE = "spark.sql.parquet.datetimeRebaseModeInRead"
_READ_ALIKE = {"path", "recursivefilelookup", "pathglobfilter", "modifiedbefore", "modifiedafter"}
"""Options of a source that only select files; they need no handling here, as Spark has listed the files already."""
_PASSED_OVER = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
_SPARK = "org.apache.spark.sql.execution.datasources"
_CODED = pa.dictionary(pa.int32(), pa.string())
NEVER, _ALWAYS = -(2**63), 2**63 - 1
"""The times of a piece that does not state its own."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A piece of a file: its rows, the bytes of the columns that are read, and its ``first`` and ``last`` end.

    ``may_be_wrong``: whether some rows may be no events, judging by the statistics (see ``nulls``).
    """

    path: str
    number: int
    rows: int
    bytes: int
    first: int
    last: int
    may_be_wrong: bool


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The files, the names of the event columns in them, and the type Arrow reads for each of these (``stored``)."""

    paths: tuple[str, ...]
    names: Mapping[str, str]
    stored: Mapping[str, pa.DataType] = field(default_factory=dict)


class FileReader:
    """Reads the rows of files; ``groups`` has all pieces, by time."""

    def __init__(self, files: LocalFiles) -> None:
        self._names = files.names
        self._metadata = {path: _metadata_again(path, files) for path in files.paths}
        for path, metadata in self._metadata.items():
            if not _is_read_alike(metadata, files.stored):
                raise SparkError(f"{path} has other columns than when the query was planned: make the DataFrame anew")
        self._open: tuple[str, parquet.ParquetFile] | None = None
        large = set().union(*map(too_large, self._metadata.values()))
        self._coded = [stored for stored in files.names.values() if stored not in large]
        every = [group for path, metadata in self._metadata.items() for group in _row_groups(path, metadata, files)]
        self.groups = sorted(every, key=lambda group: (group.first, group.last))

    def batches(self, groups: Iterable[RowGroup], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of pieces, one piece after the other; terms are dictionaries where these are small."""
        for path, numbers in _together(groups):
            table = self._file(path).read_row_groups(numbers, columns=self._stored(columns), use_threads=False)
            for rows in table.to_batches():
                yield self._events(rows, columns)

    def beginnings(self, groups: Iterable[RowGroup], columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """The first rows of pieces, at most ``size`` of each."""
        for group in groups:
            file, stored = self._file(group.path), self._stored(columns)
            for rows in islice(file.iter_batches(size, [group.number], stored, use_threads=False), 1):
                yield self._events(rows, columns)

    def _stored(self, columns: Iterable[str]) -> list[str]:
        return [self._names[name] for name in columns if name in self._names]

    def _file(self, path: str) -> parquet.ParquetFile:
        """The file, which stays open until another one is opened."""
        if self._open is None or self._open[0] != path:
            self._open = path, parquet.ParquetFile(path, metadata=self._metadata[path], read_dictionary=self._coded)
        return self._open[1]

    def _events(self, rows: pa.RecordBatch, columns: Iterable[str]) -> pa.RecordBatch:
        """The rows of a file, with the types and names of flat events."""
        found: dict[str, pa.Array] = {}
        for name in columns:
            stored = self._names.get(name)
            if stored is None:
                found[name] = found["end"] if name == "start" else constant("", len(rows))
            elif name in ("end", "start"):
                found[name] = rows.column(stored).cast(pa.int64())
            else:
                found[name] = _terms(rows.column(stored), stored in self._coded, name == "stream")
        return pa.RecordBatch.from_pydict(found)


def local_files(events: DataFrame) -> LocalFiles | None:
    """The files whose columns make up a DataFrame of flat events; None if the DataFrame is more than that."""
    if is_connect(events.sparkSession):
        return None  # the files are the server's
    kinds = dict(events.dtypes)
    wanted = {name: kinds[name] for name in _KINDS if name in kinds}
    if {"triples", "retract"} & set(kinds) or not {"end", "s", "p", "o"} <= set(kinds):
        return None
    if any(kind not in _KINDS[name] for name, kind in wanted.items()):
        return None
    # The plan of a DataFrame does not see a later cache; that of a new DataFrame does.
    plan = events.select("*")._jdf.queryExecution().optimizedPlan()
    relation = plan.children().apply(0) if str(plan.nodeName()) == "Project" else plan
    if not str(relation.nodeName()).startswith("LogicalRelation"):
        return None
    names = _names(json.loads(plan.prettyJson()))
    if not set(wanted) <= set(names):
        return None
    if "timestamp" in wanted.values() and events.sparkSession.conf.get(_AS_THEY_ARE) != "CORRECTED":
        return None
    stored = {names[name]: _KINDS[name][kind] for name, kind in wanted.items()}
    found = LocalFiles(_paths(relation.relation(), events), {name: names[name] for name in wanted}, stored)
    try:
        alike = all(_is_read_alike(_metadata_of(path, stored), stored) for path in found.paths)
        return found if found.paths and alike else None
    except (OSError, pa.ArrowException):  # Spark's own error is better known
        return None


def runs_of(groups: Sequence[RowGroup]) -> list[list[RowGroup]]:
    """Pieces by time, in runs that do not overlap: nothing in a run comes after the beginning of the next."""
    runs: list[list[RowGroup]] = []
    last = NEVER
    for group in groups:
        if runs and group.first < last:
            runs[-1].append(group)
        else:
            runs.append([group])
        last = max(last, group.last)
    return runs


def held_at_once(files: LocalFiles) -> int:
    """The bytes of the pieces that overlap in time: a shard has to hold its rows of all of them at once."""
    runs = runs_of(FileReader(files).groups)
    return max((sum(group.bytes for group in run) for run in runs if len(run) > 1), default=0)


def _names(plan: list[dict[str, Any]]) -> dict[str, str]:
    """The columns of a plan that are columns of its relation, possibly renamed."""
    *above, relation = plan
    if "parquet.field.id" in json.dumps(relation["output"]):
        return {}
    stored = {column["exprId"]["id"]: column["name"] for [column] in relation["output"]}
    if not above:
        return {name: name for name in stored.values()}
    names = {}
    for expression in above[0]["projectList"]:
        kinds = [node["class"].rpartition(".")[2] for node in expression]
        if kinds in (["AttributeReference"], ["Alias", "AttributeReference"]):
            names[expression[0]["name"]] = stored[expression[-1]["exprId"]["id"]]
    return names


def _paths(relation: Any, events: DataFrame) -> tuple[str, ...]:
    """The files of a Spark relation; none if the relation is more than its files."""
    if relation.getClass().getName() != f"{_SPARK}.HadoopFsRelation" or not relation.partitionSchema().isEmpty():
        return ()
    if relation.fileFormat().getClass().getName() != f"{_SPARK}.parquet.ParquetFileFormat":
        return ()
    if relation.location().getClass().getName() != f"{_SPARK}.InMemoryFileIndex":
        return ()
    options = [str(name).lower() for name in str(relation.options().keys().mkString("\n")).split("\n") if name]
    if not set(options) <= _READ_ALIKE:
        return ()
    spark = events.sparkSession
    if any(spark.conf.get(name) != "false" for name in _PASSED_OVER):
        return ()
    if spark._jsc.hadoopConfiguration().get("parquet.crypto.factory.class"):
        return ()
    addresses = [urlsplit(str(file)) for file in relation.location().inputFiles()]
    paths = [unquote(address.path) for address in addresses]
    if len(set(paths)) < len(paths) or any(a.scheme != "file" or a.netloc for a in addresses):
        return ()
    # Spark lists files that only describe others, but does not read them.
    paths = [path for path in paths if not _is_hidden(basename(path))]
    return tuple(sorted(paths)) if len(paths) <= MOST_FILES else ()


def _is_hidden(name: str) -> bool:
    """Whether Spark skips files of this name.  It reads those that look like a column and its value."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _metadata_of(path: str, wanted: Iterable[str]) -> parquet.FileMetaData:
    """The metadata of a file, after Arrow has looked at these columns; raises an error of Arrow if it is damaged."""
    metadata = parquet.read_metadata(path)
    places = _places(metadata)
    touch(path, metadata, [name for name in wanted if name in places])
    return metadata


def _metadata_again(path: str, files: LocalFiles) -> parquet.FileMetaData:
    try:
        return _metadata_of(path, files.names.values())
    except FileNotFoundError:
        raise SparkError(f"{path} is gone since the query was planned: make the DataFrame anew") from None
    except (OSError, pa.ArrowException) as error:
        raise SparkError(f"{path} is damaged: {first_line(error)}; fetch or write it again") from None


def _is_read_alike(metadata: parquet.FileMetaData, wanted: Mapping[str, pa.DataType]) -> bool:
    """Whether a file has all columns, stored in a way that Arrow and Spark read alike."""
    told = metadata.metadata or {}
    if _OLD_CALENDAR in told or told.get(b"org.apache.spark.version", b"3").startswith((b"1.", b"2.")):
        return False
    schema, places = metadata.schema.to_arrow_schema(), _places(metadata)
    lower = [name.lower() for name in schema.names]
    for name, kind in wanted.items():
        if name not in schema.names or name not in places or lower.count(name.lower()) > 1 or "." in name:
            return False
        if not _is_read_as(schema.field(name).type, kind):
            return False
        if metadata.schema.column(places[name]).physical_type == "INT96":
            return False
        chunks = [metadata.row_group(n).column(places[name]) for n in range(metadata.num_row_groups)]
        if any(chunk.compression not in _COMPRESSED for chunk in chunks):
            return False
    return True


def _places(metadata: parquet.FileMetaData) -> dict[str, int]:
    return {metadata.schema.column(n).path: n for n in range(metadata.num_columns)}


def _is_read_as(found: pa.DataType, kind: pa.DataType) -> bool:
    if pa.types.is_string(kind):
        inner = found.value_type if pa.types.is_dictionary(found) else found
        return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner) or pa.types.is_string_view(inner))
    if pa.types.is_timestamp(found) and found.tz is not None:
        found = pa.timestamp(found.unit, "UTC")  # a zone only affects how a time is shown
    return bool(found == kind)


def _row_groups(path: str, metadata: parquet.FileMetaData, files: LocalFiles) -> Iterator[RowGroup]:
    places = _places(metadata)
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if not group.num_rows:
            continue
        chunks = {name: group.column(places[stored]) for name, stored in files.names.items()}
        counts = [chunk.statistics for name, chunk in chunks.items() if name != "stream"]
        has_nulls = any(one is None or not one.has_null_count or one.null_count for one in counts)
        ends, predicates = chunks["end"].statistics, chunks["p"].statistics
        wrong = has_nulls or not predicates.has_min_max or predicates.min < "<" or predicates.max >= "="
        first, last = (ends.min_raw, ends.max_raw) if ends is not None and ends.has_min_max else (NEVER, _ALWAYS)
        size = sum(chunk.total_compressed_size for chunk in chunks.values())
        yield RowGroup(path, number, group.num_rows, size, first, last, wrong)


def _together(groups: Iterable[RowGroup]) -> Iterator[tuple[str, list[int]]]:
    """Neighbouring pieces of one file, as many as are read at once."""
    path, numbers, rows = "", list[int](), 0
    for group in groups:
        if numbers and (group.path != path or rows >= AT_ONCE):
            yield path, numbers
            numbers, rows = [], 0
        path, rows = group.path, rows + group.rows
        numbers.append(group.number)
    if numbers:
        yield path, numbers


def _terms(column: pa.Array, coded: bool, named: bool) -> pa.Array:
    """A column of terms, in the same form in all files; ``named``: a null is the empty name."""
    column = plain(column)
    if not isinstance(column, pa.DictionaryArray) and not pa.types.is_string(column.type):
        cells = spelled(column)
        assert cells.terms is not None, "typed values have terms"
        return pa.DictionaryArray.from_arrays(cells.index, cells.terms)
    if named and column.null_count:
        column = column.cast(pa.string()).fill_null("")
    if not coded:
        column = column.cast(pa.string())
        return _in_brackets(column) if named else column
    column = column.cast(_CODED) if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    return pa.DictionaryArray.from_arrays(column.indices, _in_brackets(column.dictionary)) if named else column


def _in_brackets(names: pa.Array) -> pa.Array:
    """The names of streams as terms; they may be IRIs without angle brackets."""
    right = pc.or_(pc.equal(names, ""), pc.starts_with(names, "<"))
    return pc.if_else(right, names, pc.binary_join_element_wise("<", names, ">", ""))


__all__ = ["NEVER", "FileReader", "LocalFiles", "RowGroup", "held_at_once", "local_files", "runs_of"]
