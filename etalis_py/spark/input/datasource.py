"""``format("etalis")``: sources that Spark cannot read by itself, read with ``etalis_py.streams``.

    spark.readStream.format("etalis").option("stream", "urn:s").load("/data/events")
    spark.read.format("etalis").option("mapping", "prices.toml").load("prices.csv.gz")

- *Files* of any format that ``read_stream`` knows, streamed through memory; JSON lines may be appended to while they
  are read, and long ones are read in pieces.  Every worker must see them under the same path: one machine, or a shared
  file system.  (``events_from_files`` reads through Spark's own file systems.)
- A *stream container*, ``http://`` or ``https://``, by the numbers of its members.

An offset says what was taken, so a batch that is repeated after a failure reads the same bytes or members again:
results are exactly-once.  The columns are those of EVENTS.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from itertools import chain, repeat
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from etalis_py.events import Event
from etalis_py.spark.errors import SparkError
from etalis_py.spark.input import files
from etalis_py.spark.input.reading import OPTIONS, SourceOptions, reading, record_batches, source_events
from etalis_py.spark.input.schema import EVENTS
from etalis_py.spark.versions import (
    LIMITED_READS,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from etalis_py.streams import StreamError

_LISTS = ("time_predicate", "start_predicate", "end_predicate")


class EventSource(DataSource):
    """``format("etalis")``; options are the names of ``read_stream``'s, and ``max_files`` for streams of files."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        self.path = given.pop("path", "")
        if not self.path:
            raise SparkError('there is nothing to read: name a file, a folder, a pattern or http(s)://… in load("…")')
        self.max_files = _positive(given.pop("max_files", None))
        unknown = sorted(set(given) - set(OPTIONS))
        if unknown:
            raise SparkError(f"there is no option {unknown[0]!r} here; known are {', '.join((*OPTIONS, 'max_files'))}")
        format, stream = given.pop("format", ""), given.pop("stream", "")
        self.how = reading(format, stream, {name: _value(name, text) for name, text in given.items()})

    @classmethod
    def name(cls) -> str:
        return "etalis"

    def schema(self) -> str:
        return EVENTS

    def reader(self, schema: StructType) -> DataSourceReader:
        return BatchReader(self._input())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if self.max_files is not None and not LIMITED_READS:
            raise SparkError(
                "max_files needs PySpark 4.2 or newer: leave it out, or take events_from_files(…, streaming=True)"
            )
        return StreamReader(self._input(), self.max_files)

    def _input(self) -> Files | ContainerSource:
        if self.path.startswith(("http://", "https://")):
            return ContainerSource(self.path, self.how)
        refuse_remote(self.path)
        return Files(self.path.removeprefix("file://"), self.how)


def refuse_remote(path: str) -> None:
    """Refuse a path on a file system that only Spark reads."""
    if "://" in path and not path.startswith(("file://", "http://", "https://")):
        raise SparkError(f"{path} is on a file system that Python does not read: take events_from_files")


def _positive(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise SparkError(f"max_files is 1 or more, found {text!r}")
    return int(text)


def _value(name: str, text: str) -> Any:
    if name in _LISTS:
        return text if text == "arrival" else text.split(",")
    if name == "messages":
        return text.lower() == "true"
    return text


class Pieces(InputPartition):
    """The parts of files, or the part of a container, that one task reads: names, where they begin and end."""

    def __init__(self, pieces: Sequence[files.Piece]) -> None:
        self.pieces = pieces


class Files:
    """Files; an offset maps each file to the number of its bytes that were taken."""

    def __init__(self, path: str, how: SourceOptions) -> None:
        self.path, self.how = os.path.abspath(path), how

    @property
    def first(self) -> dict[str, int]:
        return {}

    def available(self, start: Mapping[str, int]) -> dict[str, int]:
        return files.available(self.path, self.how.format, start)

    def pieces(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[Pieces]:
        return [Pieces(some) for some in files.tasks(files.pieces(start, end, self.how.format))]

    def events(self, piece: files.Piece) -> Iterator[Event]:
        name, first, last = piece
        if not files.grows(name, self.how.format):
            size = os.path.getsize(name)
            if size != last:
                raise StreamError(f"the file had {last} bytes, now it has {size}", source=name)
            yield from source_events(self.how, name)
            return
        with files.PieceLines(piece) as lines:
            try:
                yield from source_events(self.how, lines)  # type: ignore[arg-type]
            except StreamError as error:
                if not first:
                    raise
                raise SparkError(f"{error}\n  (lines are counted from byte {first} of the file)") from None


class ContainerSource:
    """A stream container; an offset is the number of the last member that was taken."""

    def __init__(self, url: str, how: SourceOptions) -> None:
        if how.options or how.format:
            raise SparkError(f"{url} is a stream container: its members have their times, the only option is 'stream'")
        self.path, self.how = url, how

    @property
    def first(self) -> dict[str, int]:
        return {self.path: 0}

    def available(self, start: Mapping[str, int]) -> dict[str, int]:
        from etalis_py.containers.feed import newest

        return {self.path: newest(self.path)}

    def pieces(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[Pieces]:
        first, last = start.get(self.path, 0), end[self.path]
        return [Pieces([(self.path, first, last)])] if first < last else []

    def events(self, piece: files.Piece) -> Iterator[Event]:
        from etalis_py.containers.feed import between

        for event in between(*piece):
            yield event._replace(stream=self.how.stream) if self.how.stream else event


class BatchReader(DataSourceReader):
    """Reads all that a source has when the batch begins."""

    def __init__(self, source: Files | ContainerSource) -> None:
        self.source = source

    def partitions(self) -> Sequence[InputPartition]:
        return self.source.pieces(self.source.first, self.source.available(self.source.first)) or [Pieces([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self.source, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the part of a source that is new since an offset."""

    def __init__(self, source: Files | ContainerSource, max_files: int | None) -> None:
        self.source, self.max_files = source, max_files
        self.target: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:
        return self.source.first

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.max_files is None else ReadMaxFiles(self.max_files)

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self.source.available(self.source.first)

    def latestOffset(self, start: dict[str, int] | None = None, limit: ReadLimit | None = None) -> dict[str, int]:
        """Before 4.2 Spark says neither where the batch begins nor how much it may read."""
        start = self.source.first if start is None else start
        most = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        return files.up_to(start, self._found(start), most)

    def _found(self, start: dict[str, int]) -> dict[str, int]:
        available = self.source.available(start)
        if self.target is None:
            return available
        # Whatever arrived after the run began is for the next run.
        return {name: min(available[name], self.target[name]) for name in available if name in self.target}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return self.source.pieces(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self.source, partition)


def _read(source: Files | ContainerSource, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, Pieces)
    events = chain.from_iterable(map(source.events, partition.pieces))
    return record_batches(zip(events, repeat(None), strict=False))


__all__ = ["EventSource"]
