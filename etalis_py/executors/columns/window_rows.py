"""The rows of a window that slides by the clock, and the times at which the window sees them.

A window is a set: a row whose triple is there already, from an item that came before, is seen only once that has left.
At a time t the window sees the items that end in (o, t − offset], where o is the opening of the oldest window that is
open (``windows.times``); so an item is seen from its end on, plus the offset, until the last window that opened before
it closes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from etalis_compiler.rsp import Sliding, WindowUse

from etalis_py.events import Event
from etalis_py.executors.columns.growable_array import GrowableArray
from etalis_py.executors.columns.kernels import windows as k
from etalis_py.executors.columns.kernels.keys import first_of_equal_rows
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.columns.window_groups import NO_TRIPLES, NotColumnar
from etalis_py.executors.columns.window_items import TERMS, Fields, Items, number_events, rows_of
from etalis_py.executors.columns.window_solutions import Seen, matching
from etalis_py.executors.windows import times
from etalis_py.executors.windows.groups import Followed
from etalis_py.executors.windows.query import Came, HeldItems
from etalis_py.kernel.batch import Batch, count_events

_FIELDS = {"triple": np.int64, "event": np.int64, "before": np.int64, "again": np.bool_}
"""For each row the number of its triple and of its event, the end of the last row with its triple, and whether an
earlier row of its event has its triple."""
_NEVER = -(2**62)
_SPARE = 1 << 18
"""How many terms and triples of items that have left may be remembered, before they are forgotten."""


class WindowRows:
    """The items of one window, those that it holds and those that wait; ``followed`` as in ``windows.groups``."""

    def __init__(self, use: WindowUse, followed: Followed | None) -> None:
        assert isinstance(use.shape, Sliding)
        self.use, self.shape, self._followed = use, use.shape, followed
        self._triples = Keys(3)
        self._last = GrowableArray(16, np.int64)
        self.clear(Terms())

    def clear(self, terms: Terms) -> None:
        """Forget all items; terms are numbered by ``terms`` from now on."""
        self.terms, self.items = terms, Items(_FIELDS)
        self._triples.clear()
        self._last.array[:] = _NEVER
        self._events = 0  # how many events there have been

    # --- items ---

    def fill(self, held: Sequence[Event], waiting: Sequence[Event]) -> None:
        """Continue with these items in the window, and these that wait."""
        self._put(held)
        self.items.entered = self.items.count
        self._put(waiting)

    def _put(self, events: Sequence[Event]) -> None:
        columns = Batch(events, 0).columns
        if count_events(columns) < len(events):
            raise NotColumnar(NO_TRIPLES)
        self._append(rows_of(self.terms, columns)[0])

    def push(self, fields: Fields, stream: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take items; masks of the rows that are on its stream, and of those among them that a window will hold."""
        own = stream == self.terms.id_of(self.use.stream)
        enter, leave = self._stay(fields["end"])
        kept = own & (fields["end"] > self.shape.t0) & (enter <= leave)
        self._append(fields if kept.all() else {name: column[kept] for name, column in fields.items()})
        return own, kept

    def _append(self, fields: Fields) -> None:
        triples = self._triples.numbers(np.column_stack([fields[name] for name in "spo"]), create=True)
        known = len(self._last.array)
        if self._triples.count > known:
            self._last.grow(2 * self._triples.count)
            self._last.array[known:] = _NEVER
        before, event = np.empty(len(triples), np.int64), number_events(fields, self._events)
        k.last_ends(triples, fields["end"], self._last.array, before)
        self._events += int(np.count_nonzero(fields["last"]))
        again = np.zeros(len(triples), np.bool_)
        if (before == fields["end"]).any():
            slots = np.full(1 << (2 * len(triples)).bit_length(), -1, np.int64)
            first_of_equal_rows(np.column_stack([event, triples]), slots, again)
            again = ~again
        self.items.append({**fields, "triple": triples, "event": event, "before": before, "again": again})

    def rows(self) -> HeldItems:
        """The items in the window, and those that wait."""
        return self.items.events(self.terms, self.use.stream)

    def ends(self) -> np.ndarray:
        """The ends of all rows."""
        return self.items.of("end")[self.items.first :]

    @property
    def is_large(self) -> bool:
        """Whether much is remembered of items that have left."""
        return max(self.terms.count, self._triples.count) > 4 * len(self.items) + _SPARE

    def renumber(self, terms: Terms) -> None:
        """Forget what no item has any more, and number terms by ``terms``."""
        live, entered = self.items.live(), self.items.entered - self.items.first
        ids = {name: terms.intern(self.terms.dictionary(live[name])) for name in TERMS}
        self.clear(terms)
        self._append({"end": live["end"], "start": live["start"], "last": live["last"], **ids})
        self.items.entered = entered

    # --- times ---

    def _stay(self, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last time at which the window sees items with these ends."""
        shape = self.shape
        last_opening = shape.t0 + (ends - shape.t0 - 1) // shape.slide * shape.slide
        return ends + shape.offset, last_opening + shape.width + shape.offset

    def closings(self, after: int, through: int, *, nonempty: bool) -> np.ndarray:
        """The times later than ``after`` and until ``through`` at which it closes; ``nonempty``: and sees an item."""
        close, slide = times.next_close(self.shape, after), self.shape.slide
        assert close is not None
        if not nonempty:
            return close + np.arange(max(0, (through - close) // slide + 1)) * slide
        enter, leave = self._stay(self.ends())
        first = np.maximum(-((close - enter) // slide), 0)
        last = (np.minimum(leave, through) - close) // slide
        first[1:] = np.maximum(first[1:], np.maximum.accumulate(last)[:-1] + 1)
        counts = np.maximum(last - first + 1, 0)
        numbers = np.arange(int(counts.sum())) + np.repeat(first - (np.cumsum(counts) - counts), counts)
        return close + numbers * slide

    def sizes(self, moments: np.ndarray) -> np.ndarray:
        """How many rows the window sees at each of these times."""
        enter, leave = self._stay(self.ends())
        return np.searchsorted(enter, moments, "right") - np.searchsorted(leave, moments)

    def openings(self, moments: np.ndarray) -> np.ndarray:
        """When the window that is seen at each of these times opened; the time itself where none is open."""
        shape, at = self.shape, moments - self.shape.offset
        numbers = np.maximum(0, -((shape.t0 + shape.width - at) // shape.slide))
        openings = shape.t0 + numbers * shape.slide
        return np.where(openings < at, openings, moments)

    def seen(self, moments: np.ndarray) -> Seen:
        """What the window holds at these times."""
        items = self.items
        enter, leave = self._stay(self.ends())
        rows = slice(
            items.first + int(np.searchsorted(leave, moments[0])),
            items.first + int(np.searchsorted(enter, moments[-1], "right")),
        )
        enter, leave = self._stay(items.of("end")[rows])
        first, last = np.searchsorted(moments, enter), np.searchsorted(moments, leave, "right") - 1
        _, left = self._stay(items.of("before")[rows])
        new = np.maximum(first, np.searchsorted(moments, left, "right"))
        of_event = np.where(items.of("again")[rows], last + 1, first)
        terms = {name: items.of(name)[rows] for name in "spo"}
        return Seen(terms, items.of("event")[rows], (new, last), (of_event, last))

    # --- what enters and leaves ---

    def move(self, moments: np.ndarray) -> Came:
        """Move the window to the last of these times."""
        items, now = self.items, int(moments[-1])
        ends = items.of("end")
        entered = max(items.entered, int(np.searchsorted(ends, now - self.shape.offset, "right")))
        new = slice(items.entered, entered)
        came = Came(items.number_of(new.start, new.stop), self._repeated(new, moments))
        items.first = max(items.first, int(np.searchsorted(ends, times.keep_after(self.shape, now), "right")))
        items.entered = max(entered, items.first)
        return came

    def _repeated(self, new: slice, moments: np.ndarray) -> int:
        """How many of these items, or triples that are aggregated, the window held already when they entered it."""
        items = self.items
        if new.start == new.stop:
            return 0
        enter, _ = self._stay(items.of("end")[new])
        entering = moments[np.searchsorted(moments, enter)]
        _, left = self._stay(items.of("before")[new])
        if self._followed is not None:
            terms = {name: items.of(name)[new] for name in "spo"}
            matched, _ = matching(self._followed.triples[0], self.terms, terms)
            return 0 if self._followed.of_event else int(np.count_nonzero((left >= entering) & matched))
        begins = np.flatnonzero(np.append(True, items.of("last")[new][:-1]))
        return int(np.count_nonzero(np.logical_and.reduceat(left >= entering, begins)))
