"""Packs many routed rows into one, on their way to the operator of a stream.

PySpark gives a stateful operator its rows one at a time, whatever form they came in, which costs more than most rules
do.  So the rows of a shard are combined before they are sent, as one Arrow stream with dictionary-encoded terms: a
frequent term is sent, and made a Python string, only once.  A column whose terms mostly differ is sent as it is.  The
operator gets a few rows of bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from etalis_py.spark.input.schema import EVERY_SLOT, ROUTED

PACKED = "slot int, rows binary"
AT_ONCE = 50_000  # rows that are sent at once, or
AT_MOST = 16 << 20  # bytes

_SCHEMA = pa.schema([("slot", pa.int32()), ("rows", pa.binary())])
_KEPT = [name for name in ROUTED if name != "slot"]
_TERMS = ("stream", "s", "p", "o")
_SAMPLE = 1_000


Chunks = Iterator[pa.RecordBatch]


def packer(slots: Sequence[int]) -> Callable[[Iterable[pa.RecordBatch]], Chunks]:
    """The function for ``mapInArrow``, from columns ROUTED to columns PACKED; the rows of a shard stay in order.

    ``slots``: where a row for all shards goes.
    """
    every = tuple(slots)

    def pack(chunks: Iterable[pa.RecordBatch]) -> Chunks:
        held: defaultdict[int, list[pa.RecordBatch]] = defaultdict(list)
        count = size = 0
        for chunk in chunks:
            for slot, rows in split(chunk):
                for target in every if slot == EVERY_SLOT else (slot,):
                    held[target].append(rows.select(_KEPT))
            count, size = count + chunk.num_rows, size + chunk.nbytes
            if count >= AT_ONCE or size >= AT_MOST:
                yield _packed(held)
                held.clear()
                count = size = 0
        if held:
            yield _packed(held)

    return pack


def unpack(data: bytes) -> pa.Table:
    """The rows again: columns ROUTED without the slot, and without ``arrived`` if no row has it."""
    return pa.ipc.open_stream(data).read_all()


def split(chunk: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each slot."""
    slots = chunk.column("slot").to_numpy()
    if not len(slots):
        return
    if (slots[1:] < slots[:-1]).any():
        places = np.argsort(slots, kind="stable")
        chunk, slots = chunk.take(pa.array(places)), slots[places]
    cuts = [0, *(np.flatnonzero(slots[1:] != slots[:-1]) + 1).tolist(), len(slots)]
    for first, last in pairwise(cuts):
        yield int(slots[first]), chunk.slice(first, last - first)


def concat_packed(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of some tables, ordered by the beginnings of the tables."""
    filled = [table for table in tables if len(table)] or list(tables[:1])
    filled.sort(key=lambda table: table.column("end")[0].as_py() if len(table) else 0)
    kinds = {name: {table.schema.field(name).type for table in filled} for name in _TERMS}
    mixed = [name for name, some in kinds.items() if len(some) > 1]
    return pa.concat_tables([_plain(table, mixed) for table in filled]).unify_dictionaries()


def _plain(table: pa.Table, names: Sequence[str]) -> pa.Table:
    for name in names:
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table.column(place).cast(pa.string()))
    return table


def differing(column: pa.Array) -> bool:
    """Whether most values of a column are distinct, estimated from the first ones."""
    first = column.slice(0, _SAMPLE)
    return not column.null_count and 2 * len(first.unique()) > _SAMPLE


def _packed(held: dict[int, list[pa.RecordBatch]]) -> pa.RecordBatch:
    data = [_bytes(pa.Table.from_batches(rows)) for rows in held.values()]
    return pa.RecordBatch.from_arrays([pa.array(list(held), pa.int32()), pa.array(data, pa.binary())], schema=_SCHEMA)


def _bytes(rows: pa.Table) -> bytes:
    whole = rows.combine_chunks()
    for name in _TERMS:
        place = whole.schema.get_field_index(name)
        column = whole.column(place).combine_chunks()
        whole = whole.set_column(place, name, column if differing(column) else column.dictionary_encode())
    if whole.column("arrived").null_count == len(whole):
        whole = whole.drop_columns(["arrived"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


__all__ = ["PACKED", "concat_packed", "differing", "packer", "split", "unpack"]
