"""The rows of a window, and the evaluations at which the window sees them.

Each row has a place, and an evaluation sees the rows with a place in (low, high].  Where the window slides by the
clock, that is the end of the row's item, and the bounds are the opening of the oldest window that is open at the time,
and the time (``windows.times``).  Where the window counts, it is the number of the row's unit among all that have come.

A window is a set: a row whose triple is there already, from an item that came before, is seen only once that has left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from etalis_compiler.rsp import Shape, Sliding, WindowUse

from etalis_py.events import Event
from etalis_py.executors.columns.growable_array import GrowableArray
from etalis_py.executors.columns.kernels import windows as k
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.columns.window_groups import NO_TRIPLES, NotColumnar
from etalis_py.executors.columns.window_items import TERMS, Fields, Items, number_events, rows_of
from etalis_py.executors.columns.window_solutions import Seen, matching
from etalis_py.executors.windows import times
from etalis_py.executors.windows.groups import Followed
from etalis_py.executors.windows.query import Came
from etalis_py.executors.windows.state import HeldItems
from etalis_py.kernel.batch import Batch, count_events

_FIELDS = dict.fromkeys(("place", "triple", "event", "before", "stated"), np.int64)
"""For each row its place, the number of its triple and of its event, the place of the last row with its triple, and of
the last one of its event with its triple."""
_NEVER = -(2**62)
_SPARE = 1 << 18
"""How many terms and triples of items that have left may be remembered, before they are forgotten."""
Span = tuple[np.ndarray, np.ndarray]
"""What some evaluations see: the rows with a place in (low, high]."""


class WindowRows(ABC):
    """The items of one window, those that it holds and those that wait; ``followed`` as in ``windows.groups``.

    Evaluations are named by numbers that rise, their ``moments``.
    """

    def __init__(self, use: WindowUse, followed: Followed | None) -> None:
        self.use, self._followed = use, followed
        self._triples = Keys(3)
        self._last = GrowableArray(16, np.int64)
        self.clear(Terms())

    @property
    def shape(self) -> Shape:
        return self.use.shape

    def clear(self, terms: Terms) -> None:
        """Forget all items; terms are numbered by ``terms`` from now on."""
        self.terms, self.items = terms, Items(_FIELDS)
        self._triples.clear()
        self._last.array[:] = _NEVER
        self._events = 0  # how many events there have been

    # --- items ---

    def fill(self, items: HeldItems) -> None:
        """Continue with these items in the window, and those that wait."""
        self._append(self._rows_of(items.held))
        self.items.entered = self.items.count
        self._append(self._in_order(self._rows_of(items.waiting)))

    def _rows_of(self, events: Sequence[Event], *, as_set: bool = True) -> Fields:
        columns = Batch(events, 0).columns
        if count_events(columns) < len(events):
            raise NotColumnar(NO_TRIPLES)
        return rows_of(self.terms, columns, as_set=as_set)[0]

    def push(self, fields: Fields, stream: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take items; masks of the rows that are on its stream, and of those among them that a window may hold."""
        own = stream == self.terms.id_of(self.use.stream)
        kept = own & self._may_hold(fields["end"])
        fields = fields if kept.all() else {name: column[kept] for name, column in fields.items()}
        self._append(self._in_order(fields))
        return own, kept

    @abstractmethod
    def _may_hold(self, ends: np.ndarray) -> np.ndarray:
        """A mask of the items with these ends that a window may hold."""

    def _in_order(self, fields: Fields) -> Fields:
        """The rows in the order in which the window takes them, given in that of their ends."""
        return fields

    @abstractmethod
    def _places(self, fields: Fields) -> np.ndarray:
        """The places of new rows."""

    def _append(self, fields: Fields) -> None:
        triples = self._triples.numbers(np.column_stack([fields[name] for name in "spo"]), create=True)
        known = len(self._last.array)
        if self._triples.count > known:
            self._last.grow(2 * self._triples.count)
            self._last.array[known:] = _NEVER
        before, stated = np.empty(len(triples), np.int64), np.full(len(triples), _NEVER)
        places, lasts, ends = self._places(fields), self._lasts(fields["last"]), fields["end"]
        k.last_ends(triples, places, self._last.array, before)
        events = number_events({**fields, "last": lasts}, self._events)
        self._events += int(np.count_nonzero(lasts))
        if (before >= places[np.searchsorted(ends, ends)]).any():  # some triple comes again in an instant
            pairs = Keys(2, np.int64)
            numbers = pairs.numbers(np.column_stack([events, triples]), create=True)
            k.last_ends(numbers, places, np.full(pairs.count, _NEVER), stated)
        found = {"place": places, "triple": triples, "event": events, "before": before, "stated": stated}
        self.items.append({**fields, **found})

    def _lasts(self, lasts: np.ndarray) -> np.ndarray:
        """A mask of the last rows of units, given that of the last rows of items."""
        return lasts

    def held(self) -> HeldItems:
        """The items in the window, and those that wait."""
        items = self.items
        cuts = (items.first, items.entered), (items.entered, items.count)
        held, waiting = (items.events(self.terms, self.use.stream, *cut) for cut in cuts)
        return HeldItems(held, waiting)

    @property
    def number(self) -> int:
        """How many items are kept."""
        return self.items.number

    def ends(self) -> np.ndarray:
        """The ends of all rows."""
        return self._of("end")

    def _of(self, name: str) -> np.ndarray:
        """A field of all rows that have not left."""
        return self.items.of(name)[self.items.first :]

    @property
    def is_large(self) -> bool:
        """Whether much is remembered of items that have left."""
        return max(self.terms.count, self._triples.count) > 4 * len(self.items) + _SPARE

    def renumber(self, terms: Terms) -> None:
        """Forget what no item has any more, and number terms by ``terms``."""
        live, entered = self.items.live(), self.items.entered - self.items.first
        ids = {name: terms.intern(self.terms.dictionary(live[name])) for name in TERMS}
        self._refill({"end": live["end"], "start": live["start"], "last": live["last"], **ids}, terms)
        self.items.entered = entered

    def _refill(self, fields: Fields, terms: Terms) -> None:
        self.clear(terms)
        self._append(fields)

    # --- evaluations ---

    @abstractmethod
    def closings(self, after: int, through: int, *, nonempty: bool) -> np.ndarray:
        """The evaluations later than ``after`` and until ``through``; ``nonempty``: that see an item."""

    @abstractmethod
    def span(self, moments: np.ndarray) -> Span:
        """What these evaluations see."""

    @abstractmethod
    def openings(self, moments: np.ndarray) -> np.ndarray:
        """When the window that each of these evaluations sees opened."""

    @abstractmethod
    def times(self, moments: np.ndarray) -> np.ndarray:
        """The times of these evaluations."""

    def sizes(self, moments: np.ndarray) -> np.ndarray:
        """How many rows the window sees at each of these evaluations."""
        (low, high), places = self.span(moments), self._of("place")
        return np.searchsorted(places, high, "right") - np.searchsorted(places, low, "right")

    def seen(self, moments: np.ndarray) -> Seen:
        """What the window holds at these evaluations."""
        items, (low, high) = self.items, self.span(moments)
        places = self._of("place")
        first, last = np.searchsorted(places, (low[0], high[-1]), "right").tolist()
        rows = slice(items.first + first, items.first + last)
        places = items.of("place")[rows]
        first, last = _first_from(high, places), _first_from(low, places) - 1
        new, of_event = (np.maximum(first, _first_after(low, items.of(name)[rows])) for name in ("before", "stated"))
        terms = {name: items.of(name)[rows] for name in "spo"}
        return Seen(terms, items.of("event")[rows], (new, last), (of_event, last))

    # --- what enters and leaves ---

    @abstractmethod
    def counted(self, through: int) -> None:
        """Everything until this time has been evaluated."""

    @abstractmethod
    def move(self, moments: np.ndarray) -> Came:
        """Move the window to the last of these evaluations."""

    def _came(self, new: slice, span: Span, before: Span) -> Came:
        """How many of these items entered, and how many of them repeated what the window held.

        Or how many triples did, if it is these that are aggregated.  ``before`` are the rows of which those with the
        same triple are still there while an evaluation's items enter, besides those that enter with them.
        """
        items, (low, high) = self.items, span
        places, last_same = items.of("place")[new], items.of("before")[new]
        if not len(places):
            return Came(0, 0)
        at = _first_from(high, places)
        enters = places > low[at]
        there = enters & ((last_same > low[at]) | ((last_same > before[0][at]) & (last_same <= before[1][at])))
        begins = np.flatnonzero(np.append(True, self._lasts(items.of("last")[new])[:-1]))
        entered = int(np.count_nonzero(enters[begins]))
        if self._followed is None:
            return Came(entered, int(np.count_nonzero(np.logical_and.reduceat(there, begins))))
        terms = {name: items.of(name)[new] for name in "spo"}
        matched, _ = matching(self._followed.triples[0], self.terms, terms)
        return Came(entered, 0 if self._followed.of_event else int(np.count_nonzero(there & matched)))


class SlidingRows(WindowRows):
    """The items of a window that slides by the clock.  Evaluations are named by their times."""

    @property
    def shape(self) -> Sliding:
        assert isinstance(self.use.shape, Sliding)
        return self.use.shape

    def _may_hold(self, ends: np.ndarray) -> np.ndarray:
        enter, leave = self._stay(ends)
        return (ends > self.shape.t0) & (enter <= leave)

    def _places(self, fields: Fields) -> np.ndarray:
        return fields["end"]

    def _stay(self, ends: np.ndarray) -> Span:
        """The first and the last time at which the window sees items with these ends."""
        shape = self.shape
        last_opening = shape.t0 + (ends - shape.t0 - 1) // shape.slide * shape.slide
        return ends + shape.offset, last_opening + shape.width + shape.offset

    def closings(self, after: int, through: int, *, nonempty: bool) -> np.ndarray:
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

    def times(self, moments: np.ndarray) -> np.ndarray:
        return moments

    def span(self, moments: np.ndarray) -> Span:
        high = moments - self.shape.offset
        numbers = np.maximum(0, -((self.shape.t0 + self.shape.width - high) // self.shape.slide))
        return np.minimum(self.shape.t0 + numbers * self.shape.slide, high), high

    def openings(self, moments: np.ndarray) -> np.ndarray:
        low, high = self.span(moments)
        return np.where(low < high, low, moments)

    def counted(self, through: int) -> None:
        """Do nothing: when an item leaves is known from its time."""

    def move(self, moments: np.ndarray) -> Came:
        items, span, now = self.items, self.span(moments), int(moments[-1])
        ends = items.of("end")
        entered = max(items.entered, int(np.searchsorted(ends, span[1][-1], "right")))
        came = self._came(slice(items.entered, entered), span, span)
        items.first = max(items.first, int(np.searchsorted(ends, times.keep_after(self.shape, now), "right")))
        items.entered = max(entered, items.first)
        return came


def _first_from(bounds: np.ndarray, places: np.ndarray) -> np.ndarray:
    """For each of these places, which rise as the bounds do, the number of the first bound that is not below it."""
    cuts = np.searchsorted(places, bounds, "right")
    return np.repeat(np.arange(len(bounds) + 1), np.diff(cuts, prepend=0, append=len(places)))


def _first_after(bounds: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The same for places in any order, of which most are before all bounds."""
    found = np.zeros(len(places), np.int64)
    some = np.flatnonzero(places > bounds[0])
    found[some] = np.searchsorted(bounds, places[some])
    return found
