"""A batch in the flat form, and what the row reader made of the places between → chunks, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from etalis_py.events import Event
from etalis_py.streams.columns.flat_form import NAMES, batch_of, constant, events_of
from etalis_py.streams.columns.wide import flattened
from etalis_py.streams.elements import Item

Chunk: TypeAlias = list[Item] | pa.RecordBatch
_SHORT = 256  # triples between two corrections or punctuations that are not worth a batch


def merge_chunks(batch: pa.RecordBatch, place: Any, others: Sequence[tuple[int, Sequence[Item]]]) -> Iterator[Chunk]:
    """The items in order of their places; ``place`` is that of each row of the batch, rising.

    Events go into the batch; it is only cut where something else comes, such as a punctuation.
    """
    if others:
        batch, rows = flattened(batch)
        place = place[rows]
    events = [(at, item) for at, items in others for item in items if type(item) is Event]
    if events:
        batch, place = with_events(batch, place, events)
    signals = [(at, rest) for at, items in others if (rest := [item for item in items if type(item) is not Event])]
    if not signals:
        if len(batch):
            yield batch
        return
    held: list[Item] = []
    first = 0
    for at, rest in [*signals, (None, [])]:
        cut = len(batch) if at is None else int(np.searchsorted(place, at))
        part = batch.slice(first, cut - first)
        if len(part) >= _SHORT:
            if held:
                yield held
                held = []
            yield part
        else:
            held += events_of(part)
        held += rest
        first = cut
    if held:
        yield held


def with_events(batch: pa.RecordBatch, place: Any, events: Sequence[tuple[int, Event]]) -> tuple[pa.RecordBatch, Any]:
    """The batch with events put in.  Several with one place stay apart by their numbers."""
    more = batch_of(event for _, event in events)
    sizes = [len(event.triples) for _, event in events]
    places = np.concatenate((np.repeat(np.array([at for at, _ in events], np.int64), sizes), place))
    numbers = np.repeat(np.arange(1, len(events) + 1), sizes)
    numbers = np.concatenate((numbers, np.zeros(len(batch), np.int64)))
    order = np.argsort(places, kind="stable")
    ordered = bool((order[1:] > order[:-1]).all())
    names = [name for name in NAMES if name in NAMES[:5] or name in batch.schema.names or _matters(more, name)]
    columns = {}
    for name in names:
        if name == "event":
            changes = (np.diff(places[order], prepend=-1) != 0) | (np.diff(numbers[order], prepend=-1) != 0)
            columns[name] = pa.array(np.cumsum(changes))
            continue
        own = batch.column(name) if name in batch.schema.names else constant("", len(batch))
        both = _joined(more.column(name), own)
        columns[name] = both if ordered else both.take(pa.array(order))
    return pa.record_batch(columns), places[order]


def _matters(more: pa.RecordBatch, name: str) -> bool:
    """Whether events need a column that the batch does not have."""
    column = more.column(name)
    if name == "event":
        return len(column.unique()) < len(column)
    return column.unique().to_pylist() != [""]


def _joined(more: pa.Array, own: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(own.type):
        return pa.concat_arrays([more, own])
    encoded = more.dictionary_encode().cast(own.type)
    return pa.concat_arrays(pa.chunked_array([encoded, own]).unify_dictionaries().chunks)
