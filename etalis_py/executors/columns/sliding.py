"""A windowed query over columns: COUNT, SUM and AVG of each group while its window slides.

The same as ``windows.groups`` for ``?key <p> ?value`` in a window that slides by the clock, over many closings at once.
Sums are those of integers or of decimals, exact, as long as they fit in int64; with any other value, or items of
several triples, the query goes on in rows.

Cost of an item: three look-ups of terms, one of its triple, and two additions; of a closing: one step for each group.
State: the items in the window and those that wait, and the terms, triples and groups of these and of some before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from etalis_compiler.rsp import Sliding, WindowPlan
from etalis_rules import algebra as alg
from etalis_rules.terms import XSD

from etalis_py.events import Event
from etalis_py.executors.columns.kernels import sliding as k
from etalis_py.executors.columns.kernels.parsing import DECIMAL, INTEGER
from etalis_py.executors.columns.reports import TableReport
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.suited import summed
from etalis_py.executors.columns.tables import Table, firsts
from etalis_py.executors.columns.terms import Terms
from etalis_py.kernel.batch import Columns

FITS = 2.0**62
_SPARE = 1 << 18
"""So many terms and triples may be remembered beside those of the items."""
_ROWS = 1 << 18
"""Rows that are reported at a time."""
_TAILS = {kind: f'"^^<{XSD}{name}>'.encode() for kind, name in ((INTEGER, "integer"), (DECIMAL, "decimal"))}
_TAIL = {kind: np.frombuffer(tail, np.uint8) for kind, tail in _TAILS.items()}
_FIELDS = {
    "end": np.int64,
    "start": np.int64,
    "s": np.int32,
    "p": np.int32,
    "o": np.int32,
    "graph": np.int32,
    "group": np.int64,
    "triple": np.int64,
    "summand": np.int64,
}


class Unfit(Exception):
    """These items cannot be in columns: nothing has happened to them yet."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What some closings say: how many evaluations, items that entered and of these the repeated ones; the rows."""

    evaluations: int
    entered: int
    repeated: int
    report: TableReport | None


class Items:
    """The items of a window as arrays, in order; what is before ``first`` has left."""

    def __init__(self) -> None:
        self._arrays = {name: np.empty(16, kind) for name, kind in _FIELDS.items()}
        self.first = self.entered = self.count = 0

    def __len__(self) -> int:
        return self.count - self.first

    def of(self, name: str) -> np.ndarray:
        """One field of the items, those that have left included."""
        return self._arrays[name][: self.count]

    def append(self, fields: dict[str, np.ndarray]) -> None:
        """Items that come after the others."""
        new = len(fields["end"])
        if self.count + new > len(self._arrays["end"]):
            room = 2 * (len(self) + new)
            for name, array in self._arrays.items():
                moved = np.empty(room, array.dtype)
                moved[: len(self)] = array[self.first : self.count]
                self._arrays[name] = moved
            self.first, self.entered, self.count = 0, self.entered - self.first, len(self)
        for name, array in self._arrays.items():
            array[self.count : self.count + new] = fields[name]
        self.count += new


class SlidingGroups:
    """The windows of one query: items go in, the answers of all closings come out."""

    def __init__(self, plan: WindowPlan) -> None:
        shape = plan.windows[0].shape
        assert isinstance(shape, Sliding)
        self.shape, self.plan = shape, plan
        triple, self._summed = _pattern(plan)
        assert isinstance(triple.subject, alg.Var)
        assert isinstance(triple.predicate, alg.Const)
        self._predicate = triple.predicate.term
        self._key = {triple.subject.name: "s"}.get(plan.select.keys[0], "o") if plan.select.keys else ""
        self._value = {triple.subject.name: "s"}.get(self._summed, "o") if self._summed else ""
        self._nonempty = any(s.kind == "NC" for s in plan.report)
        self.clear()

    def clear(self) -> None:
        """Forget all items."""
        self.terms = Terms()
        self.items = Items()
        self._triples, self._groups = Keys(2), Keys(1)
        self._held = np.zeros(0, np.int64)
        self._counts = self._totals = np.zeros(0, np.int64)
        self._kind, self._scale, self._largest = 0, 0, 0.0

    # --- items ---

    def fill(self, held: Columns, waiting: Columns) -> None:
        """Go on with these items in the window, and those to come."""
        for columns in (held, waiting):
            if len(columns):
                end, ids, _ = self._interned(columns)
                self._append(end, ids)
        self.items.entered = len(held)
        k.enter_all(len(held), *self._of_items(), *self._sums())

    def push(self, columns: Columns) -> tuple[int, int]:
        """Take the items of the window's stream; how many there were on others, and how many no window will hold."""
        end, ids, stream = self._interned(columns)
        own = stream == self.terms.id_of(self.plan.windows[0].stream)
        late = own & (end <= self.shape.t0)
        kept = own & ~late
        if not kept.all():
            end, ids = end[kept], {name: column[kept] for name, column in ids.items()}
        self._append(end, ids)
        return int(len(own) - np.count_nonzero(own)), int(np.count_nonzero(late))

    def _interned(self, columns: Columns) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
        """Ends, and the other fields as ids; an occurrence that is stated twice in an instant counts once."""
        if columns.event is not None and (np.diff(np.asarray(columns.event)) == 0).any():
            raise Unfit("items have several triples")
        end, start = (np.asarray(column, np.int64) for column in (columns.end, columns.start))
        nothing = np.zeros(len(end), np.int32)
        texts = {name: getattr(columns, name) for name in ("s", "p", "o", "stream", "graph")}
        ids = {name: nothing if text is None else self.terms.intern(text) for name, text in texts.items()}
        kept = firsts(Table(end, end, start, tuple(ids.values())), (start,))
        if kept is not None:
            end, start = end[kept], start[kept]
            ids = {name: column[kept] for name, column in ids.items()}
        stream = ids.pop("stream")
        return end, {"start": start, **ids}, stream

    def _append(self, end: np.ndarray, ids: dict[str, np.ndarray]) -> None:
        matching = ids["p"] == self.terms.id_of(self._predicate)
        summand = self._summands(ids, matching)
        group = np.zeros(len(end), np.int64)
        triple = self._triples.numbers(np.column_stack([ids["s"], ids["o"]]), create=True)
        triple[~matching] = -1
        if self._key:
            group = self._groups.numbers(ids[self._key][:, None], create=True)
        self.items.append({"end": end, **ids, "group": group, "triple": triple, "summand": summand})
        self._held = _longer(self._held, self._triples.count)
        groups = self._groups.count if self._key else 1
        self._counts, self._totals = _longer(self._counts, groups), _longer(self._totals, groups)

    def _summands(self, ids: dict[str, np.ndarray], matching: np.ndarray) -> np.ndarray:
        """What the items add, as integers: value · 10**scale."""
        summands = np.zeros(len(matching), np.int64)
        if not self._value or not matching.any():
            return summands
        kinds, doubles, mantissas, scales = self.terms.values(ids[self._value][matching])
        kind, scale = int(kinds[0]), max(self._scale, int(scales.max()))
        largest = max(self._largest, float(np.abs(doubles).max()))
        if kind not in _TAILS or (kinds != kind).any() or self._kind not in (0, kind):
            raise Unfit("values are neither all integers nor all decimals")
        if (largest + 1) * 10.0**scale * (len(self.items) + len(matching)) >= FITS:
            raise Unfit("sums may not fit into 64 bits")
        more = 10 ** (scale - self._scale)
        self._totals *= more
        self.items.of("summand")[:] *= more
        self._kind, self._scale, self._largest = kind, scale, largest
        summands[matching] = mantissas * 10 ** (scale - scales.astype(np.int64))
        return summands

    def _of_items(self) -> tuple[np.ndarray, ...]:
        return tuple(self.items.of(name) for name in ("group", "triple", "summand"))

    def _sums(self) -> tuple[np.ndarray, ...]:
        return self._held, self._counts, self._totals

    # --- answers ---

    def answer(self, close: int, through: int, output: int) -> Iterator[Answers]:
        """Every closing from ``close`` up to ``through``, some at a time."""
        items = self.items
        if close > through:
            self._forget()
            return
        order = self._order()
        room = min(_ROWS + len(order), len(order) * (2 + max(0, through - close) // self.shape.slide))
        at = np.zeros(6, np.int64)
        at[k.CLOSE], at[k.FULL] = close, 1
        while at[k.FULL]:
            at[k.FIRST], at[k.ENTERED], at[k.EVALUATIONS], at[k.REPEATED] = items.first, items.entered, 0, 0
            closings, groups, counts, totals = (np.empty(room, np.int64) for _ in range(4))
            count = k.slide(
                at,
                items.of("end"),
                items.of("group"),
                items.of("triple"),
                items.of("summand"),
                self.shape.width,
                self.shape.slide,
                through,
                self._nonempty,
                not self._key,
                self._held,
                self._counts,
                self._totals,
                order,
                closings,
                groups,
                counts,
                totals,
            )
            entered = int(at[k.ENTERED]) - items.entered
            items.first, items.entered = int(at[k.FIRST]), int(at[k.ENTERED])
            report = None
            if count:
                report = self._report(output, closings[:count], groups[:count], counts[:count], totals[:count])
            yield Answers(int(at[k.EVALUATIONS]), entered, int(at[k.REPEATED]), report)
        self._forget()

    def _order(self) -> np.ndarray:
        """The groups of all items in the order of their terms."""
        if not self._key:
            return np.zeros(1, np.int64)
        ids = self._groups.rows()[:, 0]
        groups = np.arange(len(ids))
        if len(groups) > len(self.items):
            groups = np.unique(self.items.of("group")[self.items.first :])
        return groups[np.argsort(self.terms.ranks(ids[groups]), kind="stable")] if len(groups) else groups

    def _report(
        self, output: int, closings: np.ndarray, groups: np.ndarray, counts: np.ndarray, totals: np.ndarray
    ) -> TableReport:
        """Rows of some evaluations, ordered as the query's: by their terms."""
        columns: dict[str, Any] = {}
        if self._key:
            columns[self.plan.select.keys[0]] = self.terms.dictionary(self._groups.rows()[groups, 0])
        for call in self.plan.select.aggregates:
            if call.name == "COUNT":
                columns[call.variable] = spelled_results(counts, counts, False, 0, INTEGER)
            else:
                average = call.name == "AVG"
                kind = DECIMAL if average else self._kind or INTEGER
                columns[call.variable] = spelled_results(totals, counts, average, self._scale, kind)
        named = {name: e.name for name, e in self.plan.select.extends if isinstance(e, alg.Var)}
        shown = [columns[named.get(name, name)] for name in self.plan.variables]
        if self._key and named.get(self.plan.variables[0], self.plan.variables[0]) != self.plan.select.keys[0]:
            names = [str(n) for n in range(len(shown) + 1)]
            texts = [column.cast(pa.large_string()) for column in shown]
            by = [(name, "ascending") for name in names]
            order = pc.sort_indices(pa.table([pa.array(closings), *texts], names), sort_keys=by)
            closings, shown = closings[order.to_numpy()], [column.take(order) for column in shown]
        return TableReport(output, closings, closings, closings - self.shape.width, shown)

    def _forget(self) -> None:
        """Forget the terms, triples and groups that no item has, once there are many of them."""
        items = self.items
        if max(self.terms.count, self._triples.count) <= 4 * len(items) + _SPARE:
            return
        live = {name: items.of(name)[items.first :].copy() for name in _FIELDS}
        entered, scale, kind, largest = items.entered - items.first, self._scale, self._kind, self._largest
        texts = {name: self.terms.dictionary(live[name]) for name in ("s", "p", "o", "graph")}
        self.clear()
        self._scale, self._kind, self._largest = scale, kind, largest
        ids = {name: self.terms.intern(text) for name, text in texts.items()}
        self._append(live["end"], {"start": live["start"], **ids})
        self.items.entered = entered
        k.enter_all(entered, *self._of_items(), *self._sums())

    # --- what waits ---

    def rows(self) -> tuple[list[Event], list[Event]]:
        """The items in the window, and those that wait."""
        items = self.items
        columns = [items.of(name)[items.first :] for name in ("start", "end", "s", "p", "o", "graph")]
        start, end = (column.tolist() for column in columns[:2])
        s, p, o, graph = (self.terms.spellings(column) for column in columns[2:])
        stream = self.plan.windows[0].stream
        events = [
            Event(a, b, (triple,), stream, g)
            for a, b, triple, g in zip(start, end, zip(s, p, o, strict=True), graph, strict=True)
        ]
        entered = items.entered - items.first
        return events[:entered], events[entered:]

    def ends(self) -> np.ndarray:
        """The ends of all items."""
        return self.items.of("end")[self.items.first :]


def _pattern(plan: WindowPlan) -> tuple[alg.Triple, str]:
    """The triple pattern of a query, and the variable that it sums."""
    pattern = plan.select.pattern
    assert isinstance(pattern, alg.BGP)
    return pattern.triples[0], next(iter(summed(plan.select)), "")


def spelled_results(totals: np.ndarray, counts: np.ndarray, divide: bool, scale: int, kind: int) -> Any:
    """Literals as an Arrow array."""
    tail, integer_tail = _TAIL[kind], _TAIL[INTEGER]
    ends = np.empty(len(totals) + 1, np.int64)
    out = np.empty(len(totals) * (k.LONGEST + len(tail)), np.uint8)
    digits = np.empty(k.LONGEST, np.int64)
    k.spell_results(totals, counts, divide, scale, tail, integer_tail, digits, ends, out)
    return pa.LargeStringArray.from_buffers(len(totals), pa.py_buffer(ends), pa.py_buffer(out[: ends[-1]].copy()))


def _longer(array: np.ndarray, length: int) -> np.ndarray:
    """The array with room for so many, filled with zeros."""
    if length <= len(array):
        return array
    longer = np.zeros(2 * length, array.dtype)
    longer[: len(array)] = array
    return longer
