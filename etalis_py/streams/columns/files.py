"""Parquet and Arrow files (and Arrow streams, also on standard input) as batches of a table."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from typing import Any

import pyarrow as pa
from pyarrow import ipc, parquet

from etalis_py.events.errors import StreamError
from etalis_py.streams.columns.checked_tables import FAILURES, checked_names, first_line
from etalis_py.streams.columns.frames import ROWS
from etalis_py.streams.csv_mapping import RowMapping
from etalis_py.streams.sources import OpenedInput
from etalis_py.values.errors import LimitExceeded
from etalis_py.values.limits import LIMITS, take_unpacked

_MAGIC = b"ARROW1"
_BLOCK = 1 << 22  # most bytes at once: a damaged file asks for any number
LARGEST_DICTIONARY = 1 << 21  # bytes


def file_batches(
    source: OpenedInput, format: str, mapping: RowMapping | None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns of a file, and its rows, unchecked; a Parquet file is read only in the columns the mapping uses."""
    try:
        if format == "parquet":
            return _parquet(source, mapping)
        if source.peek(len(_MAGIC)).startswith(_MAGIC):
            file = ipc.open_file(_whole(source))
            return file.schema, (file.get_batch(i) for i in range(file.num_record_batches))
        stream = ipc.open_stream(_Reading(source))
        return stream.schema, iter(stream)
    except FAILURES as error:
        raise source.failure(error) if isinstance(error, OSError) and error.errno else refused(error, format) from None


def refused(error: Exception, format: str) -> StreamError:
    name = {"parquet": "Parquet", "arrow": "Arrow"}[format]
    return StreamError(f"this is no {name} file: {first_line(error)}", hint="is it cut off, or of another format?")


def _parquet(source: OpenedInput, mapping: RowMapping | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    whole = _whole(source)
    metadata = parquet.read_metadata(whole)
    schema = metadata.schema.to_arrow_schema()
    names = [name for name in checked_names(schema) if mapping is None or mapping.rest or name in mapping.used]
    kinds = [(name, schema.field(name).type) for name in names if names.count(name) == 1]
    texts = [name for name, kind in kinds if pa.types.is_string(kind) or pa.types.is_large_string(kind)]
    touch(whole, metadata, texts)
    coded = [name for name in texts if name not in too_large(metadata, texts)]
    file = parquet.ParquetFile(whole, metadata=metadata, read_dictionary=coded)
    columns = None if mapping is None else names
    return schema, file.iter_batches(batch_size=ROWS, columns=columns, use_threads=False)


def touch(whole: Any, metadata: parquet.FileMetaData, names: list[str]) -> None:
    """Look at what the file says of these columns: raises an error of Arrow if it is damaged.

    ``metadata.row_group(i).column(j)`` would end the process instead.  To prepare to read ahead, Arrow looks at all of
    them; then it reads one row.
    """
    if metadata.num_rows and names:
        file = parquet.ParquetFile(whole, metadata=metadata, pre_buffer=True)
        next(file.iter_batches(batch_size=1, columns=names, use_threads=False), None)


def too_large(metadata: parquet.FileMetaData, names: Container[str] | None = None) -> set[str]:
    """The columns (of ``names``) that are not kept as dictionaries: in Arrow these would grow from batch to batch.

    Writers give up a dictionary beyond about a megabyte; the rest are numbers of at most four bytes.
    """
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    places = [i for i in range(metadata.num_columns) if names is None or metadata.schema.column(i).path in names]
    chunks = [group.column(i) for group in groups for i in places]
    return {c.path_in_schema for c in chunks if c.total_uncompressed_size > 4 * c.num_values + LARGEST_DICTIONARY}


def _whole(source: OpenedInput) -> Any:
    """Something with random access: the file itself, otherwise all of its bytes."""
    source.peek(1)
    if source.path:
        return pa.OSFile(os.fsencode(source.path))  # a name need not be UTF-8, which Arrow takes for granted
    if not source.is_unpacked:
        return pa.py_buffer(b"".join(iter(source.read_some, b"")))
    try:
        return pa.py_buffer(take_unpacked(source.read_some, LIMITS))
    except LimitExceeded as error:
        raise _too_large(f"the file {error}") from None


def _too_large(reason: str) -> StreamError:
    return StreamError(reason, hint="it has to be held as a whole: unpack it first if that is what it should have")


class _Reading:
    """A source in the form that Arrow reads: each read gives as many bytes as asked for, except at the end."""

    closed = False

    def __init__(self, source: OpenedInput) -> None:
        self._source = source

    def read(self, size: int = -1) -> bytes:
        parts = []
        if size > LIMITS.unpacked_bytes and self._source.is_unpacked:
            raise _too_large(f"a message of the stream unpacks to more than {LIMITS.unpacked_bytes:,} bytes")
        while size:
            part = self._source.read_some(min(size, _BLOCK) if size > 0 else _BLOCK)
            if not part:
                break
            parts.append(part)
            size -= len(part) if size > 0 else 0
        return b"".join(parts)

    def close(self) -> None:
        self.closed = True
