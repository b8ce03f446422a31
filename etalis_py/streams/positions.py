"""Where a stream has got to, so that another process can go on from there.

A consumer that wants positions calls ``Stream.track`` before it reads, and ``Stream.confirm`` for the items that it has
used; ``Stream.place`` then says, as plain data, where the rest begins.  The reader of a source is usually ahead of its
consumer, so a place is a number of items: a source that is read again gives the same items, and the first of them are
left out.  A source that can begin in the middle *marks* where it could: then only the items after the mark are read.

>>> tracker = Tracker()
>>> tracker.begin(None)
>>> [next(items) for items in [tracker.tracked(iter([Punctuation(1), Punctuation(2)]))] for _ in range(2)]
[Punctuation(time=1), Punctuation(time=2)]
>>> tracker.confirm(1)
>>> again = Tracker()
>>> again.begin(tracker.place())
>>> list(again.tracked(iter([Punctuation(1), Punctuation(2)])))
[Punctuation(time=2)]
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from etalis_py.events import Event
from etalis_py.streams.timing import Punctuation

Place = Mapping[str, Any]


class Tracker:
    """Counts the items of one source: those read, those that the consumer has used, and the parts refused.

    ``active``: somebody wants positions.  ``lock`` is held while a refused part is reported and counted, so that who
    holds it sees both or neither.  State: the marks behind which items are not used yet.
    """

    def __init__(self) -> None:
        self.active = False
        self.lock = threading.RLock()
        self.start: Any = None  # the mark from which the source is read
        self.read_to = 0  # bytes of a file that were read
        self._used = self._read = self._reports = 0
        self._items_before = self._reports_before = 0
        self._marks: deque[tuple[int, int, Any]] = deque()

    def begin(self, place: Place | None) -> None:
        """Track from the beginning of the source, or from a place in it."""
        self.active = True
        if place is not None:
            self._used = self._items_before = place["items"]
            self._reports_before = place["reports"]
            if place["mark"] is not None:
                self._read, self._reports, self.start = place["mark"]
                self._marks.append((self._read, self._reports, self.start))

    def afresh(self, place: Place) -> None:
        """Track a source that cannot be read again: what it gives now comes after the place."""
        self.active = True
        self._used = self._read = place["items"]
        self._reports = place["reports"]

    def mark(self, at: Any) -> None:
        """The source can be read from here: nothing that comes depends on what came before."""
        if self.active:
            self._marks.append((self._read, self._reports, at))

    def tracked(self, items: Iterator[Any]) -> Iterator[Any]:
        """The items that the consumer has not used yet; silences and bursts are not counted."""
        for item in items:
            if isinstance(item, Event | Punctuation):
                self._read += 1
                if self._read <= self._items_before:
                    continue
            yield item

    def tracked_chunks(self, chunks: Iterator[Any]) -> Iterator[Any]:
        """The same of lists of items, and of batches in the flat form."""
        for chunk in chunks:
            if isinstance(chunk, list):
                rest = list(self.tracked(iter(chunk)))
                if rest:
                    yield rest
                continue
            from etalis_py.streams.columns.flat_form import event_count, without_events  # takes a while to import

            count = event_count(chunk)
            skipped = min(count, max(0, self._items_before - self._read))
            self._read += count
            if skipped < count:
                yield without_events(chunk, skipped) if skipped else chunk

    def is_repeated(self) -> bool:
        """Count a refused part; returns whether an earlier process has reported it."""
        self._reports += 1
        return self._reports <= self._reports_before

    def confirm(self, count: int) -> None:
        """The consumer has used this many more items."""
        self._used += count
        while len(self._marks) > 1 and self._marks[1][0] <= self._used:
            self._marks.popleft()

    def place(self) -> dict[str, Any]:
        mark = self._marks[0] if self._marks and self._marks[0][0] <= self._used else None
        reports = max(self._reports, self._reports_before)
        return {"items": self._used, "reports": reports, "mark": None if mark is None else list(mark)}


class Order:
    """From which of several merged streams each item came that the consumer has not used yet."""

    def __init__(self) -> None:
        self.active = False
        self._parts: deque[int] = deque()

    def given(self, part: int) -> None:
        if self.active:
            self._parts.append(part)

    def dropped(self, part: int) -> None:
        """An item was left out, and never reaches the consumer."""
        if self.active:
            self._parts.append(~part)

    def confirm(self, count: int) -> Iterator[int]:
        """The parts of the next items, and those of the items that were left out before or right after them."""
        parts = self._parts
        while parts and (count or parts[0] < 0):
            part = parts.popleft()
            if part >= 0:
                count -= 1
            yield part if part >= 0 else ~part


__all__ = ["Order", "Place", "Tracker"]
