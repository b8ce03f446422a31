"""Batches in the flat form with the same columns, so that rows of several can stand in one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from etalis_py.streams.columns.flat_form import NAMES, TERMS, constant, event_starts

_SAID_BY_FEW = ("stream", "graph")


def with_all_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with all columns: dictionaries of texts, and a number for each event, from 1 on."""
    columns = [batch.column("end"), batch.column("start")]
    for name in (*TERMS, *_SAID_BY_FEW):
        column = batch.column(name) if name in batch.schema.names else constant("", len(batch))
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        columns.append(encoded.cast(pa.dictionary(pa.int32(), pa.string())))
    return pa.record_batch([*columns, pa.array(np.cumsum(event_starts(batch)))], names=list(NAMES))


def one_after_another(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches with all columns as one; no two events of two batches have the same number."""
    before, numbered = 0, []
    for batch in batches:
        numbers = np.asarray(batch.column("event")) + before
        place = batch.schema.get_field_index("event")
        numbered.append(batch.set_column(place, "event", pa.array(numbers)))
        before = int(numbers[-1])
    (both,) = pa.Table.from_batches(numbered).unify_dictionaries().combine_chunks().to_batches()
    return both


def without_unused_terms(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without terms that no row has any more."""
    for place, name in enumerate(batch.schema.names):
        column = batch.column(name)
        if pa.types.is_dictionary(column.type) and len(column.dictionary) > 1:
            batch = batch.set_column(place, name, column.dictionary_decode().dictionary_encode())
    return batch


def without_idle_columns(batch: pa.RecordBatch, single: bool) -> pa.RecordBatch:
    """The batch without columns that say nothing; ``single``: each row is an event."""
    left_out = {"event"} if single else set()
    left_out |= {name for name in _SAID_BY_FEW if batch.column(name).dictionary.to_pylist() == [""]}
    return batch.select([name for name in batch.schema.names if name not in left_out])
