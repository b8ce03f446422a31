"""Goals in columns, the form of stored state: an Arrow table, with no Python object per goal.

A table has one row per goal, ordered by end: how much later it ended than the one before (``after``), how long it
lasted, and its terms as spellings, null where unbound.  MessagePack carries it as an extension (``stored``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

_NAMES = ("after", "lasted")
_OPTIONS = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 1))


def goals_table(ends: Any, starts: Any, terms: Sequence[Any]) -> pa.RecordBatch:
    """Goals in order of their ends.

    >>> goals_table(np.array([3, 5]), np.array([3, 4]), [pa.array(["<a>", None])]).to_pydict()
    {'after': [3, 2], 'lasted': [0, 1], '0': ['<a>', None]}
    """
    times = [pa.array(np.diff(ends, prepend=0)), pa.array(ends - starts)]
    return pa.RecordBatch.from_arrays([*times, *terms], names=[*_NAMES, *map(str, range(len(terms)))])


def times_of(table: pa.RecordBatch) -> tuple[Any, Any]:
    """The ends and starts of the goals."""
    ends = np.cumsum(table.column(0).to_numpy())
    return ends, ends - table.column(1).to_numpy()


def terms_of(table: pa.RecordBatch) -> list[Any]:
    """The columns of terms."""
    return list(table.columns[len(_NAMES) :])


def plain_columns(table: pa.RecordBatch) -> list[list[Any]]:
    """The goals as lists: ends, starts, and columns of terms, empty where unbound."""
    ends, starts = times_of(table)
    return [ends.tolist(), starts.tolist(), *map(texts_of, terms_of(table))]


def texts_of(column: Any) -> list[str]:
    """The spellings of a column, empty where unbound; equal ones are the same object."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = [*encoded.dictionary.to_pylist(), ""]
    return [texts[i] for i in encoded.indices.fill_null(-1).to_pylist()]


def written_table(table: pa.RecordBatch) -> bytes:
    """The table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as writer:
        writer.write_batch(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def read_table(data: Any) -> pa.RecordBatch:
    """The inverse of ``written_table``."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()


__all__ = ["goals_table", "plain_columns", "read_table", "terms_of", "texts_of", "times_of", "written_table"]
