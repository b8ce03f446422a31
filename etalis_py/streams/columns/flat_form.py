"""The flat form: timed triples in columns, one in each row.

| column | type | |
|---|---|---|
| `end` | int64 | microseconds since the epoch |
| `start` | int64 | the same |
| `s`, `p`, `o` | string, or dictionary of strings | canonical N-Triples spellings |
| `stream`, `graph` | string, or dictionary of strings | IRIs in angle brackets, or empty; may be missing |
| `event` | int64 | neighbouring rows with the same number are one event; without it each row is one |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from etalis_py.events import Event

TERMS = ("s", "p", "o")
NAMES = ("end", "start", *TERMS, "stream", "graph", "event")


def flat_batch(end: Any, start: Any, terms: Sequence[pa.Array], **more: pa.Array | None) -> pa.RecordBatch:
    """A batch in the flat form; ``more`` are ``stream``, ``graph`` and ``event``, if there are any."""
    columns = {"end": pa.array(end, pa.int64()), "start": pa.array(start, pa.int64())}
    columns |= dict(zip(TERMS, terms, strict=True))
    columns |= {name: column for name, column in more.items() if column is not None}
    return pa.record_batch(columns)


def constant(text: str, size: int) -> pa.DictionaryArray:
    """The same text in every row."""
    return pa.DictionaryArray.from_arrays(np.zeros(size, np.int32), pa.array([text], pa.string()))


def batch_of(events: Iterable[Event]) -> pa.RecordBatch:
    """Events in the flat form, which has no place for a retraction: unpacking one raises ``UnexpectedRetraction``."""
    rows = [
        (end, start, *triple, stream, graph, number)
        for number, (start, end, triples, stream, graph) in enumerate(events)
        for triple in triples
    ]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(NAMES)
    types = [pa.int64(), pa.int64(), *[pa.string()] * 5, pa.int64()]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.record_batch(arrays, names=list(NAMES))


def events_of(batch: pa.RecordBatch) -> Iterator[Event]:
    """The events of a batch in the flat form."""
    names = batch.schema.names
    ends, starts, s, p, o = (column_list(batch, name) for name in NAMES[:5])
    streams: Iterable[str] = column_list(batch, "stream") if "stream" in names else repeat("")
    graphs: Iterable[str] = column_list(batch, "graph") if "graph" in names else repeat("")
    if "event" not in names:
        for end, start, a, b, c, stream, graph in zip(ends, starts, s, p, o, streams, graphs, strict=False):
            yield Event._make((start, end, ((a, b, c),), stream, graph))
        return
    numbers = np.asarray(batch.column("event"))
    bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)] if len(numbers) else [0]
    stream_list, graph_list = list(_sized(streams, len(ends))), list(_sized(graphs, len(ends)))
    triples = list(zip(s, p, o, strict=True))
    for i, j in pairwise(bounds):
        yield Event._make((starts[i], ends[i], tuple(triples[i:j]), stream_list[i], graph_list[i]))


def event_starts(batch: pa.RecordBatch) -> Any:
    """Which rows begin an event, in a batch in the flat form."""
    starts = np.ones(len(batch), np.bool_)
    if "event" in batch.schema.names:
        starts[1:] = np.diff(np.asarray(batch.column("event"))) != 0
    return starts


def event_count(batch: pa.RecordBatch) -> int:
    """The number of events in a batch in the flat form."""
    if "event" not in batch.schema.names or not len(batch):
        return len(batch)
    return int(np.count_nonzero(np.diff(np.asarray(batch.column("event"))))) + 1


def without_events(batch: pa.RecordBatch, count: int) -> pa.RecordBatch:
    """The batch without its first events."""
    if "event" not in batch.schema.names:
        return batch.slice(count)
    bounds = np.flatnonzero(np.diff(np.asarray(batch.column("event")))) + 1
    return batch.slice(int(bounds[count - 1]))


def rows_up_to(batch: pa.RecordBatch, until: int, slack: int) -> tuple[pa.RecordBatch, bool]:
    """The rows that end by ``until``, but for those behind one that ends more than ``slack`` later; and whether there
    is such a one.
    """
    ends = np.asarray(batch.column("end"))
    over = np.flatnonzero(ends > until + slack)
    size = int(over[0]) if len(over) else len(batch)
    in_time = ends[:size] <= until
    batch = batch.slice(0, size)
    return batch if in_time.all() else batch.filter(pa.array(in_time)), len(over) > 0


def _sized(texts: Iterable[str], size: int) -> Iterator[str]:
    return (text for text, _ in zip(texts, range(size), strict=False))


def column_list(batch: pa.RecordBatch, name: str) -> list[Any]:
    """A column as a list; the terms of a dictionary are made once."""
    column = batch.column(name)
    if not pa.types.is_dictionary(column.type):
        values: list[Any] = column.to_pylist()
        return values
    terms = column.dictionary.to_pylist()
    return [terms[i] for i in np.asarray(column.indices).tolist()]


def bytes_of(texts: pa.StringArray) -> tuple[Any, Any]:
    """The bytes of texts, and where each begins."""
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2] or b"\0", np.uint8)
    data.flags.writeable = ends.flags.writeable = False
    return data, ends
