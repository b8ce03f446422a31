"""Puts the events of a complete source in order of time: half of all tables have the newest first.

The first events (all of them in a small file) show whether a source is in order.  If it is, nothing is held.  If not,
all of it is sorted: in memory, or, beyond ``MEMORY`` triples, in sorted runs in a temporary folder that are merged.
Events of the same time keep their order.  Sources that are merged are put in order side by side, and share the memory.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from etalis_py.events import Event, Retraction
from etalis_py.events.clock import MIN_TIME
from etalis_py.events.errors import StreamError
from etalis_py.streams.elements import Item

if TYPE_CHECKING:
    import pyarrow as pa

    Chunk: TypeAlias = list[Item] | pa.RecordBatch

LOOK = 200_000  # events that show whether a source is in order
MEMORY = 2_000_000  # triples that are held in memory, of all sources together
LEAST = 10_000  # of these, what each source may hold however many there are
_PART = 1 << 14  # rows of a run that are held while runs are merged


def in_order(chunks: Iterator[Chunk], notice: Callable[[], None], among: int = 1) -> Iterator[Chunk]:
    """The same events in order of their ends; ``notice`` is called if they were not.

    ``among``: how many sources are put in order side by side.  An error in the input is raised after the events before
    it.
    """
    share = max(MEMORY // among, LEAST)
    first: deque[Chunk] = deque()
    ordered, last, count = True, MIN_TIME, 0
    failure: Exception | None = None
    chunks = iter(chunks)
    while count < min(LOOK, share) and failure is None:
        try:
            chunk = next(chunks, None)
        except Exception as error:
            chunk, failure = None, error
        if chunk is None:
            break
        first.append(chunk)
        count += len(chunk)
        step, last = _follows(chunk, last)
        ordered = ordered and step
        if isinstance(chunk, list) and any(isinstance(item, Retraction) for item in chunk):
            ordered = True  # a correction must come after what it corrects: keep the order of the input
            break
    if ordered:
        while first:
            yield first.popleft()
        if failure is not None:
            raise failure
        yield from chunks
        return
    notice()
    with ExitStack() as stack:
        sorter = _Sorter(stack, share)
        try:
            while first:
                sorter.add(first.popleft())
            if failure is None:
                for chunk in chunks:
                    sorter.add(chunk)
        except Exception as error:
            failure = error
        yield from sorter.sorted()
    if failure is not None:
        raise failure


def _follows(chunk: Chunk, last: int) -> tuple[bool, int]:
    """Whether a chunk is in order and does not begin before a time; and its own last time."""
    if isinstance(chunk, list):
        ordered = True
        for item in chunk:
            if isinstance(item, Event):
                ordered = ordered and item.end >= last
                last = max(last, item.end)
        return ordered, last
    import numpy as np

    ends = np.asarray(chunk.column("end"))
    if not len(ends):
        return True, last
    return bool(ends[0] >= last and (np.diff(ends) >= 0).all()), max(last, int(ends.max()))


class _Sorter:
    """Holds and sorts triples; beyond ``most`` of them they go into sorted runs."""

    def __init__(self, stack: ExitStack, most: int) -> None:
        self._stack, self._most = stack, most
        self._held: list[pa.RecordBatch] = []
        self._rows = self._events = 0
        self._runs: list[Path] = []
        self._folder: Path | None = None

    def add(self, chunk: Chunk) -> None:
        from etalis_py.streams.columns.flat_form import batch_of

        if isinstance(chunk, list) and any(isinstance(item, Retraction) for item in chunk):
            raise StreamError(
                "the input is not in order of time, and withdraws something later on",
                hint="sort it by time, each withdrawal behind what it withdraws",
            )
        batch = batch_of(item for item in chunk if isinstance(item, Event)) if isinstance(chunk, list) else chunk
        if not len(batch):
            return
        self._held.append(self._plain(batch))
        self._rows += len(batch)
        if self._rows >= self._most:
            self._spill()

    def _plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the same columns as all others, and with event numbers that no other batch has."""
        import numpy as np
        import pyarrow as pa

        from etalis_py.streams.columns.wide import flattened

        batch, _ = flattened(batch)
        names = batch.schema.names
        size = len(batch)
        if "event" in names:
            numbers = np.cumsum(np.diff(np.asarray(batch.column("event")), prepend=0) != 0)
            numbers -= numbers[0]
        else:
            numbers = np.arange(size)
        columns = [batch.column("end"), batch.column("start")]
        for name in ("s", "p", "o", "stream", "graph"):
            column = batch.column(name).cast(pa.string()) if name in names else pa.array([""], pa.string())
            columns.append(column if name in names else column.take(pa.array(np.zeros(size, np.int64))))
        columns.append(pa.array(numbers + self._events))
        self._events += int(numbers[-1]) + 1
        return pa.record_batch(columns, names=["end", "start", "s", "p", "o", "stream", "graph", "event"])

    def _sorted_table(self) -> pa.Table:
        import pyarrow as pa

        table, self._held, self._rows = pa.Table.from_batches(self._held), [], 0
        return _by_end(table)

    def _spill(self) -> None:
        from pyarrow import ipc

        if self._folder is None:
            self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="etalis-sort-")))
        path = self._folder / f"{len(self._runs)}.arrow"
        table = self._sorted_table()
        with ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=_PART)
        self._runs.append(path)

    def sorted(self) -> Iterator[Chunk]:
        """Everything that was added, in order."""
        if not self._runs:
            if self._held:
                yield from self._sorted_table().combine_chunks().to_batches()
            return
        if self._held:
            self._spill()
        yield from _merged([self._stack.enter_context(_opened(path)) for path in self._runs])


def _opened(path: Path) -> Any:
    from pyarrow import ipc

    return ipc.open_file(str(path))


def _by_end(table: pa.Table) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    return table.take(pa.array(np.argsort(np.asarray(table.column("end")), kind="stable")))


def _merged(runs: list[Any]) -> Iterator[pa.RecordBatch]:
    """Merge sorted runs: each step goes as far as the earliest end of the held parts."""
    import numpy as np
    import pyarrow as pa

    at = [0] * len(runs)
    held: list[pa.Table | None] = [None] * len(runs)

    def more(place: int) -> bool:
        """Hold another part of a run; returns False at its end."""
        run, before = runs[place], held[place]
        if at[place] == run.num_record_batches:
            return False
        part = pa.Table.from_batches([run.get_batch(at[place])])
        at[place] += 1
        held[place] = part if before is None else pa.concat_tables([before, part])
        return True

    while True:
        for place in range(len(runs)):
            if held[place] is None:
                more(place)
        lasts = {place: table.column("end")[-1].as_py() for place, table in enumerate(held) if table is not None}
        if not lasts:
            return
        limit = min(lasts.values())
        # An event may continue in the next part.
        if any(more(place) for place, last in lasts.items() if last == limit):
            continue
        parts = []
        for place, table in enumerate(held):
            if table is not None:
                cut = int(np.searchsorted(np.asarray(table.column("end")), limit, side="right"))
                parts.append(table.slice(0, cut))
                held[place] = table.slice(cut) if cut < len(table) else None
        yield from _by_end(pa.concat_tables(parts)).combine_chunks().to_batches()
