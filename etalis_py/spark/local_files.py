"""Parquet files on this machine that a batch is read from as they are: their rows in columns, in order of time.

Spark hands a row to Python for about half a microsecond, and once for each shard that reads all of a source.  Arrow
decodes it in a tenth of that, with repeated terms as the codes that they are in the file.  So where a DataFrame is
nothing but the columns of such files, its shards read them without Spark, which still runs them.

The files are those that Spark lists, of types that both read alike; whatever else there may be to a source (filters,
expressions, partitions by folder, a file that is to be passed over if it is broken, other file systems) is Spark's.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame

from etalis_py.spark.slices import AT_ONCE
from etalis_py.streams.columns.files import too_large
from etalis_py.streams.columns.flat import constant
from etalis_py.streams.columns.native import plain, spelled

MOST_FILES = 1_000
"""So many are looked into when a batch is planned, a millisecond each."""
_TIMES = {
    "bigint": {("INT64", "None"), ("INT64", "Int 64")},
    "timestamp": {("INT64", "Timestamp microseconds in UTC")},
    "timestamp_ntz": {("INT64", "Timestamp microseconds")},
}
_TEXTS = {"string": {("BYTE_ARRAY", "String")}}
_OBJECTS = _TEXTS | {
    "bigint": _TIMES["bigint"],
    "int": {("INT32", "None"), ("INT32", "Int 32")},
    "double": {("DOUBLE", "None")},
    "float": {("FLOAT", "None")},
    "boolean": {("BOOLEAN", "None")},
}
_KINDS = {"end": _TIMES, "start": _TIMES, "s": _TEXTS, "p": _TEXTS, "o": _OBJECTS, "stream": _TEXTS}
"""The types that columns may have in Spark, and how Parquet has what Spark and Arrow read as the same values."""
_COMPRESSED = {"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"}
_OLD_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
"""Spark computes the times of files with such a mark anew."""
_READ_ALIKE = {"path", "recursivefilelookup", "pathglobfilter", "modifiedbefore", "modifiedafter"}
"""Options that say which files there are; Spark has listed them."""
_PASSED_OVER = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
_SPARK = "org.apache.spark.sql.execution.datasources"
NEVER, _ALWAYS = -(2**63), 2**63 - 1
"""The times of a piece that does not tell its own."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A piece of a file: its rows, the bytes of the columns that are read, and its ``first`` and ``last`` end."""

    path: str
    number: int
    rows: int
    bytes: int
    first: int
    last: int
    has_nulls: bool


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The files, and the names that columns of events have in them."""

    paths: tuple[str, ...]
    names: Mapping[str, str]


class FileReader:
    """Reads the rows of files; ``groups`` are all of their pieces, by time."""

    def __init__(self, files: LocalFiles) -> None:
        self._names = files.names
        self._metadata = {path: parquet.read_metadata(path) for path in files.paths}
        self._files: dict[str, parquet.ParquetFile] = {}
        large = set().union(*map(too_large, self._metadata.values()))
        self._coded = [stored for stored in files.names.values() if stored not in large]
        every = [group for path, metadata in self._metadata.items() for group in _row_groups(path, metadata, files)]
        self.groups = sorted(every, key=lambda group: (group.first, group.last))

    def batches(self, groups: Iterable[RowGroup], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of pieces, one piece after the other; terms are dictionaries where these are small."""
        stored = [self._names[name] for name in columns if name in self._names]
        for path, numbers in _together(groups):
            table = self._file(path).read_row_groups(numbers, columns=stored, use_threads=False)
            for rows in table.to_batches():
                yield self._events(rows, columns)

    def _file(self, path: str) -> parquet.ParquetFile:
        if path not in self._files:
            metadata = self._metadata[path]
            self._files[path] = parquet.ParquetFile(
                path, metadata=metadata, read_dictionary=self._coded, memory_map=True
            )
        return self._files[path]

    def _events(self, rows: pa.RecordBatch, columns: Iterable[str]) -> pa.RecordBatch:
        """Rows of a file with the types and names of flat events."""
        found = {}
        for name in columns:
            if name in self._names:
                column = rows.column(self._names[name])
                found[name] = column.cast(pa.int64()) if name in ("end", "start") else _terms(column)
            else:
                found[name] = found["end"] if name == "start" else constant("", len(rows))
        if "stream" in found and found["stream"].null_count:
            found["stream"] = found["stream"].cast(pa.string()).fill_null("").dictionary_encode()
        return pa.RecordBatch.from_pydict(found)


def local_files(events: DataFrame) -> LocalFiles | None:
    """The files that a DataFrame of flat events is, column by column; None where there is more to it."""
    kinds = dict(events.dtypes)
    wanted = {name: kinds[name] for name in _KINDS if name in kinds}
    if {"triples", "retract"} & set(kinds) or not {"end", "s", "p", "o"} <= set(kinds):
        return None
    if any(kind not in _KINDS[name] for name, kind in wanted.items()):
        return None
    plan = events._jdf.queryExecution().optimizedPlan()
    relation = plan.children().apply(0) if str(plan.nodeName()) == "Project" else plan
    if not str(relation.nodeName()).startswith("LogicalRelation"):
        return None
    names = _names(json.loads(plan.prettyJson()))
    if not set(wanted) <= set(names):
        return None
    found = LocalFiles(_paths(relation.relation(), events), {name: names[name] for name in wanted})
    stored = {found.names[name]: _KINDS[name][kind] for name, kind in wanted.items()}
    try:
        return found if found.paths and all(_is_read_alike(path, stored) for path in found.paths) else None
    except (OSError, pa.ArrowException):  # what Spark says of it is better known
        return None


def runs_of(groups: Sequence[RowGroup]) -> list[list[RowGroup]]:
    """Pieces by time, in runs that do not overlap: one holds nothing that comes after the begin of the next."""
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
    """The bytes of the pieces that overlap in time, so that a shard has to hold its rows of all of them."""
    return max((sum(group.bytes for group in run) for run in runs_of(FileReader(files).groups)), default=0)


def _names(plan: list[dict[str, Any]]) -> dict[str, str]:
    """The columns of a plan that are columns of its relation, whatever they are called."""
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
    """The files of a relation of Spark; none where these are not all of it."""
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
    if len(addresses) > MOST_FILES or any(a.scheme != "file" or a.netloc for a in addresses):
        return ()
    return tuple(sorted(unquote(address.path) for address in addresses))


def _is_read_alike(path: str, wanted: Mapping[str, Collection[tuple[str, str]]]) -> bool:
    """Has a file all columns, stored as Arrow and Spark read them alike?"""
    metadata = parquet.read_metadata(path)
    if any(key in (metadata.metadata or {}) for key in _OLD_CALENDAR):
        return False
    columns = {metadata.schema.column(n).path: (n, metadata.schema.column(n)) for n in range(metadata.num_columns)}
    for name, stored in wanted.items():
        if name not in columns:
            return False
        place, column = columns[name]
        if (column.physical_type, _logical(column)) not in stored or column.max_repetition_level:
            return False
        chunks = [metadata.row_group(n).column(place) for n in range(metadata.num_row_groups)]
        if any(chunk.compression not in _COMPRESSED for chunk in chunks):
            return False
    return True


def _logical(column: Any) -> str:
    """What the values of a column of Parquet are."""
    told = json.loads(column.logical_type.to_json())
    if told["Type"] == "Timestamp":
        return f"Timestamp {told['timeUnit']}{' in UTC' if told['isAdjustedToUTC'] else ''}"
    if told["Type"] == "Int":
        return f"{'' if told['isSigned'] else 'unsigned '}Int {told['bitWidth']}"
    return str(told["Type"])


def _row_groups(path: str, metadata: parquet.FileMetaData, files: LocalFiles) -> Iterator[RowGroup]:
    places = {metadata.schema.column(n).path: n for n in range(metadata.num_columns)}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        chunks = {name: group.column(places[stored]) for name, stored in files.names.items()}
        counts = [chunk.statistics for name, chunk in chunks.items() if name != "stream"]
        has_nulls = any(one is None or not one.has_null_count or one.null_count for one in counts)
        ends = chunks["end"].statistics
        first, last = (ends.min_raw, ends.max_raw) if ends is not None and ends.has_min_max else (NEVER, _ALWAYS)
        size = sum(chunk.total_compressed_size for chunk in chunks.values())
        yield RowGroup(path, number, group.num_rows, size, first, last, has_nulls)


def _together(groups: Iterable[RowGroup]) -> Iterator[tuple[str, list[int]]]:
    """Neighbours of one file, as many as are read at once."""
    path, numbers, rows = "", list[int](), 0
    for group in groups:
        if numbers and (group.path != path or rows >= AT_ONCE):
            yield path, numbers
            numbers, rows = [], 0
        path, rows = group.path, rows + group.rows
        numbers.append(group.number)
    if numbers:
        yield path, numbers


def _terms(column: pa.Array) -> pa.Array:
    column = plain(column)
    if isinstance(column, pa.DictionaryArray):
        return column.cast(pa.dictionary(pa.int32(), pa.string()))
    if pa.types.is_string(column.type):
        return column
    cells = spelled(column)
    assert cells.terms is not None, "typed values have terms"
    return pa.DictionaryArray.from_arrays(cells.index, cells.terms)


__all__ = ["NEVER", "FileReader", "LocalFiles", "RowGroup", "held_at_once", "local_files", "runs_of"]
