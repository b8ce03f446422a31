"""The rows of a window that counts events or triples."""

from __future__ import annotations

import numpy as np
from etalis_compiler.rsp import Count

from etalis_py.executors.columns.kernels.ordering import distinct_numbers, rises
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.columns.window_items import TERMS, Fields
from etalis_py.executors.columns.window_rows import Span, WindowRows
from etalis_py.executors.windows.query import Came
from etalis_py.executors.windows.state import HeldItems


class CountedRows(WindowRows):
    """The units of a window that counts.  Evaluations are named by the last unit that they see.

    Units are counted from 1, in canonical order.  If windows do not overlap each is evaluated, else the last of each
    instant in which one closes (``windows.state.CountWindow``).
    """

    @property
    def shape(self) -> Count:
        assert isinstance(self.use.shape, Count)
        return self.use.shape

    def clear(self, terms: Terms) -> None:
        super().clear(terms)
        self._total = 0  # how many units have come
        self._shown = 0  # the last unit that an evaluation has seen

    @property
    def _by_triple(self) -> bool:
        return self.shape.unit == "TRIPLES"

    # --- items ---

    def fill(self, items: HeldItems) -> None:
        self._total, self._shown = items.total - len(items.held), items.shown
        self._append(self._rows_of(items.held, as_set=False))
        self.items.entered = self.items.count
        self._append(self._in_order(self._rows_of(items.waiting)))

    def held(self) -> HeldItems:
        items = self.items
        held = items.events(self.terms, self.use.stream, items.first, items.entered, single=self._by_triple)
        waiting = items.events(self.terms, self.use.stream, items.entered, items.count)
        total = int(items.of("place")[items.entered - 1]) if items.entered else self._total - self._units(items.count)
        return HeldItems(held, waiting, total, self._shown)

    def _units(self, rows: int) -> int:
        """How many units the first rows form."""
        return rows if self._by_triple else self.items.number_of(0, rows)

    @property
    def number(self) -> int:
        return len(self.items) if self._by_triple else self.items.number

    def _may_hold(self, ends: np.ndarray) -> np.ndarray:
        return np.ones(len(ends), np.bool_)

    def _places(self, fields: Fields) -> np.ndarray:
        last = self._lasts(fields["last"])
        places: np.ndarray = self._total + 1 + np.cumsum(last) - last
        self._total += int(np.count_nonzero(last))
        return places

    def _in_order(self, fields: Fields) -> Fields:
        """The rows with the items of an instant in canonical order."""
        lasts = np.flatnonzero(fields["last"])
        if rises(fields["end"][lasts]):
            return fields
        begins = np.append(0, lasts[:-1] + 1)
        texts = [self.terms.spellings(fields[name]) for name in TERMS]
        triples = list(zip(*texts[:3], strict=True))
        ends, starts = fields["end"].tolist(), fields["start"].tolist()
        keys = [
            (ends[first], starts[first], triples[first : last + 1], texts[3][first])
            for first, last in zip(begins.tolist(), lasts.tolist(), strict=True)
        ]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        rows = np.concatenate([np.arange(begins[n], lasts[n] + 1) for n in order])
        return {name: column[rows] for name, column in fields.items()}

    def _refill(self, fields: Fields, terms: Terms) -> None:
        total, shown = self._total, self._shown
        before = total - self._units_after(self.items.first)
        self.clear(terms)
        self._total, self._shown = before, shown
        self._append(fields)

    def _units_after(self, row: int) -> int:
        """How many units the rows from this one on form."""
        count = self.items.count
        return count - row if self._by_triple else self.items.number_of(row, count)

    def _lasts(self, lasts: np.ndarray) -> np.ndarray:
        return np.ones_like(lasts) if self._by_triple else lasts

    # --- evaluations ---

    def closings(self, after: int, through: int, *, nonempty: bool) -> np.ndarray:
        slide, ends, places = self.shape.slide, self.ends(), self._of("place")
        ends = ends[: np.searchsorted(ends, through, "right")]
        if not len(ends):
            return np.zeros(0, np.int64)
        if slide >= self.shape.size:
            return np.arange(self._shown + slide, int(places[len(ends) - 1]) + 1, slide)
        over = np.flatnonzero(np.append(np.diff(ends) != 0, True))
        closed = distinct_numbers(places[over] // slide * slide)
        return closed[closed > self._shown]

    def times(self, moments: np.ndarray) -> np.ndarray:
        return self.ends()[np.searchsorted(self._of("place"), moments)]

    def span(self, moments: np.ndarray) -> Span:
        return np.maximum(0, moments - self.shape.size), moments

    def openings(self, moments: np.ndarray) -> np.ndarray:
        return self._of("start")[np.searchsorted(self._of("place"), self.span(moments)[0] + 1)]

    def move(self, moments: np.ndarray) -> Came:
        items, span = self.items, self.span(moments)
        places = items.of("place")
        shown = np.append(self._shown, moments[:-1])
        entering = slice(
            int(np.searchsorted(places, self._shown, "right")), int(np.searchsorted(places, moments[-1], "right"))
        )
        came = self._came(entering, span, (np.maximum(0, shown - self.shape.size), shown))
        self._shown = int(moments[-1])
        items.first = int(np.searchsorted(places, self._shown - self.shape.size, "right"))
        return came

    def counted(self, through: int) -> None:
        """All units until this time have been counted, whether a window has seen them or not."""
        ends = self.items.of("end")
        self.items.entered = max(self.items.entered, int(np.searchsorted(ends, through, "right")))
