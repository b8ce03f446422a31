"""Records in columns: a table of which each row is one event about one subject.

| column | type | |
|---|---|---|
| `end`, `start` | int64 | as in the flat form |
| `s` | dictionary of strings | the subject; null in no row |
| `<…>` | dictionary of strings | the objects of this predicate, null where the row has none |
| `stream`, `graph` | dictionary of strings | as in the flat form; may be missing |

Only what asks for it is given it (``Stream.chunks``); ``flattened`` makes the flat form of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from etalis_py.streams.columns.flat_form import flat_batch

_NAMED = ("stream", "graph")


def wide_batch(end: Any, start: Any, s: pa.Array, objects: Mapping[str, pa.Array], **more: Any) -> pa.RecordBatch:
    """A batch of records; ``more`` are ``stream`` and ``graph``, if there are any."""
    columns = {"end": pa.array(end, pa.int64()), "start": pa.array(start, pa.int64()), "s": s, **objects}
    return pa.record_batch(columns | {name: column for name, column in more.items() if column is not None})


def is_wide(batch: pa.RecordBatch) -> bool:
    """Whether its rows are records, not triples."""
    return "p" not in batch.schema.names


def objects_of(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """The columns of objects by predicate."""
    return {name: batch.column(name) for name in batch.schema.names if name.startswith("<")}


def flattened(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Any]:
    """The flat form of a batch, and for each of its triples the row that it comes from."""
    if not is_wide(batch):
        return batch, np.arange(len(batch))
    named = {name: batch.column(name) for name in _NAMED if name in batch.schema.names}
    end, start = (np.asarray(batch.column(name)) for name in ("end", "start"))
    return flat_form(end, start, batch.column("s"), objects_of(batch), **named)


def flat_form(
    end: Any, start: Any, s: pa.Array, objects: Mapping[str, pa.Array], **named: pa.Array
) -> tuple[pa.RecordBatch, Any]:
    """The flat form of records given by their columns, and the row of each triple."""
    width = len(objects)
    rows = np.repeat(np.arange(len(end)), width)
    predicates = pa.array(np.tile(np.arange(width, dtype=np.int32), len(end)))
    p = pa.DictionaryArray.from_arrays(predicates, pa.array(objects, pa.string()))
    o = interleaved([_encoded(column) for column in objects.values()])
    kept = np.asarray(o.is_valid())
    more = {name: column.take(pa.array(rows)) for name, column in named.items() if column is not None}
    batch = flat_batch(end[rows], start[rows], (s.take(pa.array(rows)), p, o), event=pa.array(rows), **more)
    return (batch, rows) if kept.all() else (batch.filter(pa.array(kept)), rows[kept])


def _encoded(column: pa.Array) -> pa.DictionaryArray:
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def interleaved(arrays: list[pa.DictionaryArray]) -> pa.DictionaryArray:
    """The first row of each array, then the second of each, and so on; nulls of a dictionary become nulls."""
    dictionaries: list[pa.Array] = []
    offsets: dict[int, int] = {}
    columns, total = [], 0
    for array in arrays:
        if id(array) not in offsets:
            offsets[id(array)] = total
            dictionaries.append(array.dictionary)
            total += len(array.dictionary)
        index = np.asarray(pc.fill_null(array.indices, -1)).astype(np.int32)
        columns.append(np.where(index < 0, -1, index + offsets[id(array)]))
    index = columns[0] if len(columns) == 1 else np.stack(columns, axis=1).ravel()
    terms = dictionaries[0] if len(dictionaries) == 1 else pa.concat_arrays(dictionaries)
    absent = index < 0
    if terms.null_count:
        absent |= ~np.asarray(terms.is_valid())[np.where(absent, 0, index)]
        terms = pc.fill_null(terms, "")
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32), mask=absent), terms)
