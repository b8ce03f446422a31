"""Parquet and Arrow files (and Arrow streams, also on standard input) as batches of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import ipc, parquet

from etalis_py.streams.columns.frames import ROWS
from etalis_py.streams.csv_mapping import RowMapping
from etalis_py.streams.errors import StreamError
from etalis_py.streams.sources import Source

_MAGIC = b"ARROW1"
LARGEST_DICTIONARY = 1 << 21  # bytes


def file_batches(source: Source, format: str, mapping: RowMapping | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns of a file, and its rows; only the columns that the mapping uses are read, if that is possible."""
    try:
        if format == "parquet":
            return _parquet(source, mapping)
        if source.peek(len(_MAGIC)).startswith(_MAGIC):
            file = ipc.open_file(_whole(source))
            return file.schema, (_guarded(file.get_batch(i) for i in range(file.num_record_batches)))
        stream = ipc.open_stream(_Reading(source))
        return stream.schema, _guarded(iter(stream))
    except (pa.ArrowInvalid, OSError) as error:
        raise refused(error, format) from None


def refused(error: Exception, format: str) -> StreamError:
    name = {"parquet": "Parquet", "arrow": "Arrow"}[format]
    return StreamError(f"this is no {name} file: {error}", hint="is it cut off, or of another format?")


def _guarded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    except (pa.ArrowInvalid, OSError) as error:
        raise StreamError(f"the file cannot be read to its end: {error}") from None


def _parquet(source: Source, mapping: RowMapping | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    whole = _whole(source)
    metadata = parquet.read_metadata(whole)
    schema = metadata.schema.to_arrow_schema()
    texts = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    large = too_large(metadata)
    file = parquet.ParquetFile(whole, metadata=metadata, read_dictionary=[name for name in texts if name not in large])
    columns = None if mapping is None else [name for name in schema.names if name in mapping.used]
    return schema, _guarded(file.iter_batches(batch_size=ROWS, columns=columns, use_threads=False))


def too_large(metadata: parquet.FileMetaData) -> set[str]:
    """The columns that are not kept as dictionaries: in Arrow these would grow from batch to batch.

    Writers give up a dictionary beyond about a megabyte; the rest are numbers of at most four bytes.
    """
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
    return {c.path_in_schema for c in chunks if c.total_uncompressed_size > 4 * c.num_values + LARGEST_DICTIONARY}


def _whole(source: Source) -> Any:
    """Something with random access: the file itself, otherwise all of its bytes."""
    source.peek(1)
    if source.path:
        return source.path
    return pa.py_buffer(b"".join(iter(source.read_some, b"")))


class _Reading:
    """A source in the form that Arrow reads: each read gives as many bytes as asked for, except at the end."""

    closed = False

    def __init__(self, source: Source) -> None:
        self._source = source

    def read(self, size: int = -1) -> bytes:
        parts = []
        while size:
            part = self._source.read_some(size if size > 0 else 1 << 20)
            if not part:
                break
            parts.append(part)
            size -= len(part) if size > 0 else 0
        return b"".join(parts)

    def close(self) -> None:
        self.closed = True
