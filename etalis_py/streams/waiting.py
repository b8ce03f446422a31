"""The events of a topic that wait for those of its other partitions, in rows or in columns.

From each partition comes the earliest of the heads, the first partition where two are equal, as long as no head is
missing for comparison.  A partition that is read to its end is not waited for, or only for events after a given time.

>>> from etalis_py.events import event
>>> waiting = Waiting((0, 1))
>>> waiting.add([(event(":a :p 1", 1), (0, 1, 0)), (event(":a :p 1", 2), (0, 2, 0))])
>>> len(waiting.take({1}, up_to=1_000_000)[0]), waiting.take({1}, up_to=1_000_000), len(waiting.take({1})[0])
(1, None, 1)
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from etalis_py.events import Event, Retraction
from etalis_py.streams.partitions import Offset, Places

if TYPE_CHECKING:
    import pyarrow as pa

    from etalis_py.streams.columns.merge_in_order import Chunk
    from etalis_py.streams.columns.merge_partitions import HeldColumns

NEVER = -(2**63)
Placed = tuple[Event, Offset]
"""An event, and the place behind it."""


class Waiting:
    """State: in rows, a queue for each partition; else the columns of all of them.  One of the two is empty.

    ``latest``: the end of the latest event so far.
    """

    def __init__(self, partitions: Iterable[int]) -> None:
        self.latest = NEVER
        self._rows: dict[int, deque[Placed]] = {number: deque() for number in partitions}
        self._columns: HeldColumns | None = None

    def add_partitions(self, numbers: Iterable[int]) -> None:
        self._rows |= {number: deque() for number in numbers}

    def __bool__(self) -> bool:
        return self._columns is not None or any(self._rows.values())

    def counts(self) -> Counter[int]:
        """How much waits, by partition."""
        rows = Counter({number: len(events) for number, events in self._rows.items()})
        return rows if self._columns is None else self._columns.counts()

    def add(self, placed: Sequence[Placed]) -> None:
        """Add events; they become columns if the others are."""
        self.latest = max(self.latest, max((event.end for event, _ in placed), default=NEVER))
        if self._columns is not None and not _has_retraction(placed):
            self._add_as_columns(self._columns, placed)
            return
        self._to_rows()
        for event, behind in placed:
            self._rows[behind[0]].append((event, behind))

    def add_columns(self, batch: pa.RecordBatch, behind: Any) -> None:
        """Add a batch in the flat form, with an array of the places behind its events; what waits becomes columns, too,
        if it can.
        """
        if self._columns is None and any(map(_has_retraction, self._rows.values())):
            self.add(_in_rows(batch, behind))
            return
        if self._columns is None:
            from etalis_py.streams.columns.merge_partitions import HeldColumns  # takes a while to import

            self._columns = HeldColumns()
            for events in self._rows.values():
                self._add_as_columns(self._columns, events)
                events.clear()
        if len(batch):
            self.latest = max(self.latest, batch.column("end").to_numpy().max().item())
        self._columns.add(batch, behind)

    def take(self, read_out: Collection[int], up_to: int | None = None) -> tuple[Chunk, Places] | None:
        """The events that come next, and the places behind them; ``read_out``: partitions at their end.

        These are not waited for; with a time ``up_to``, they are waited for by the events after it.
        """
        if self._columns is None:
            placed = list(self._earliest(read_out, up_to))
            return ([event for event, _ in placed], [behind for _, behind in placed]) if placed else None
        at_end = () if up_to is None else read_out
        taken = self._columns.take(self._rows.keys() - set(read_out), at_end, up_to or 0)
        if not len(self._columns):
            self._columns = None
        return taken

    def _earliest(self, read_out: Collection[int], up_to: int | None) -> Iterator[Placed]:
        while heads := [(events[0][0].end, number) for number, events in self._rows.items() if events]:
            missing = [number for number, events in self._rows.items() if not events]
            end, number = min(heads)
            if any(one not in read_out for one in missing) or (missing and up_to is not None and end > up_to):
                return
            yield self._rows[number].popleft()

    @staticmethod
    def _add_as_columns(columns: HeldColumns, placed: Collection[Placed]) -> None:
        from etalis_py.streams.columns.flat_form import batch_of

        if placed:
            columns.add(batch_of(event for event, _ in placed), [behind for _, behind in placed])

    def _to_rows(self) -> None:
        if self._columns is not None:
            placed = _in_rows(*self._columns.take_all())
            self._columns = None
            self.add(placed)


def _in_rows(batch: pa.RecordBatch, behind: Any) -> list[Placed]:
    from etalis_py.streams.columns.flat_form import events_of  # takes a while to import

    return [
        (event, (place[0], place[1], place[2])) for event, place in zip(events_of(batch), behind.tolist(), strict=True)
    ]


def _has_retraction(placed: Iterable[Placed]) -> bool:
    return any(isinstance(event, Retraction) for event, _ in placed)


__all__ = ["NEVER", "Placed", "Waiting"]
