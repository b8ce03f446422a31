"""A windowed query over columns: the aggregates of each group while its window slides.

It gives the same answers as ``windows.groups`` for ``?key <p> ?value``, and as an evaluation over the whole content for
several triples about one subject, in a window that slides by the clock; it handles many closings at once.  A solution
comes with the last of its triples and goes with the first; with ``EVENT`` the triples of two events are different.
Sums are exact sums of integers or decimals, as long as they fit in int64; with any other value the query continues in
rows.  The least and the greatest value of a group are at the top of two pairing heaps of its members; a member that is
no longer held is removed when it comes to the top.

Cost of a triple: four look-ups of terms and one of the triple, and two additions for each solution that comes or goes;
with members, a look-up and a comparison more.  Cost of a closing: one step for each group.  State: the items in the
window and those that wait, with the terms, triples, groups and members of these and of some earlier items.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from etalis_compiler.rsp import Sliding, WindowPlan
from etalis_rules import algebra as alg
from etalis_rules.terms import XSD

from etalis_py.events import Event
from etalis_py.executors.columns.extremes import TermOrder, TooMany
from etalis_py.executors.columns.frames import Bindings
from etalis_py.executors.columns.kernels import sliding as k
from etalis_py.executors.columns.kernels.parsing import DECIMAL, INTEGER
from etalis_py.executors.columns.reports import TableReport
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.supported_windows import EXTREMES, Star, star
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.columns.window_items import TERMS, Fields, GrowableRows, Items, number_events, rows_of
from etalis_py.executors.columns.window_order import by_terms, chosen, is_chosen, may_be_chosen
from etalis_py.executors.windows import times
from etalis_py.executors.windows.query import Came
from etalis_py.executors.windows.state import HeldItems
from etalis_py.kernel.batch import Batch, Columns, count_events
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

FITS = 2.0**62  # half the range of int64, as the bound on sums is computed in doubles, and may be rounded
_SPARE = 1 << 18
"""How many terms, triples and members of items that have left may be remembered, before they are forgotten."""
_ROWS = 1 << 18
"""How many rows are reported at a time."""
_TAILS = {kind: f'"^^<{XSD}{name}>'.encode() for kind, name in ((INTEGER, "integer"), (DECIMAL, "decimal"))}
_TAIL = {kind: np.frombuffer(tail, np.uint8) for kind, tail in _TAILS.items()}
_ROOM = 1 << 19
"""The initial room for triples: untouched memory costs nothing, but growing costs a copy."""
_COLUMNS = k.OF_BEST + 2
"""The number of fields in an answer of the kernel."""
_FIELDS = {"triple": np.int64, "closes": np.bool_}
_FOREVER = 1 << 61  # a window so long that no item leaves it
_FEW = 1 << 30  # a bound on solutions that is good enough, so that they need not be counted
NO_TRIPLES = "items have no triples"


class NotColumnar(Exception):
    """These items cannot be in columns; they have not been processed yet."""


@dataclass(frozen=True, slots=True)
class ClosingAnswers:
    """The answers of some evaluations: how many there were, what entered each window, and the reports."""

    evaluations: int
    came: Mapping[str, Came]
    reports: Sequence[TableReport]


class SlidingGroups:
    """The windows of one query: items go in, the answers of all closings come out."""

    def __init__(self, plan: WindowPlan) -> None:
        shape, asked = plan.windows[0].shape, star(plan.select)
        assert isinstance(shape, Sliding)
        assert isinstance(asked, Star)
        self.shape, self.plan, self.star = shape, plan, asked
        self._name, self.windows = plan.windows[0].name, (self,)
        shown = alg.renamed(plan.select.extends).get(plan.variables[0], plan.variables[0])
        self._by_key = shown == asked.key and not is_chosen(plan.select)  # the answer is in the order of the groups
        heaps = {EXTREMES.get(call.name, -1) for call in plan.select.aggregates}
        places = [asked.slot_of(name) for name in (asked.key, asked.summed, asked.member)]
        if not asked.member:
            places[-1] = -1
        nonempty = any(s.kind == "NC" for s in plan.report)
        asking = (
            shape.width,
            shape.slide,
            0,
            nonempty,
            not asked.key,
            *places,
            asked.is_direct,
            0 in heaps,
            1 in heaps,
        )
        self._ask = np.array(asking, np.int64)
        number = int(asked.of_event)  # the event's number is part of the keys
        self._triples, self._subjects = Keys((2 if len(asked.slots) == 1 else 3) + number), Keys(1 + number)
        self._groups, self._members = Keys(1), Keys(2, np.int64)
        facts: tuple[int, ...] = (0, -1, 0, 0, 0, 0, -1, -1)
        if len(asked.slots) == 1:
            facts = (0,) * (k.SUBJECT if asked.member else k.OPERAND)
        self._facts = GrowableRows(facts, _ROOM)
        self._lists = GrowableRows((-1, 0))
        self._sums, self._links = (
            GrowableRows((0, 0, 0, -1, -1)),
            GrowableRows((0, 0, 0, -1, k.APART, -1, k.APART), _ROOM),
        )
        self._cursor = np.zeros(len(asked.slots), np.int64)
        self.clear()

    def clear(self) -> None:
        """Forget all items."""
        self.terms, self.items, self._order = Terms(), Items(_FIELDS), TermOrder()
        for kept in (self._triples, self._subjects, self._groups, self._members):
            kept.clear()
        for rows in (self._facts, self._lists, self._sums, self._links):
            rows.count = 0
        self._kind, self._scale, self._largest = 0, 0, 0.0
        self._lasting = 0  # how many members remained when some were last forgotten
        self._events = 0  # how many events there have been

    # --- items ---

    def fill(self, items: Mapping[str, HeldItems]) -> None:
        """Continue with these items in the window, and those that wait."""
        held, waiting = items[self._name].held, items[self._name].waiting
        self._put(held)
        rows = self.items.count
        self._put(waiting)
        self._hold(rows)

    def _put(self, events: Sequence[Event]) -> None:
        columns = Batch(events, 0).columns
        if count_events(columns) < len(events):
            raise NotColumnar(NO_TRIPLES)
        fields, _ = rows_of(self.terms, columns)
        self._append(fields)

    def push(self, columns: Columns) -> tuple[int, int]:
        """Take the items of the window's stream.

        Returns how many items were on other streams, and how many ended too early for any window.
        """
        fields, stream = rows_of(self.terms, columns)
        own = stream == self.terms.id_of(self.plan.windows[0].stream)
        late = own & (fields["end"] <= self.shape.t0)
        kept, last = own & ~late, fields["last"]
        if not kept.all():
            fields = {name: column[kept] for name, column in fields.items()}
        self._append(fields)
        return int(np.count_nonzero(last & ~own)), int(np.count_nonzero(last & late))

    def _append(self, fields: Fields) -> None:
        slot, matched = self._matched(fields)
        single = len(self.star.slots) == 1
        parts = self._events_of(fields) + [fields[name] for name in (("s", "o") if single else ("s", "p", "o"))]
        triple = np.full(len(slot), -1, np.int64)
        # With one pattern, nothing depends on the other triples of an item: they need no number.
        followed = np.flatnonzero(matched) if single and not matched.all() else slice(None)
        triple[followed] = self._triples.numbers(np.column_stack([part[followed] for part in parts]), create=True)
        facts = self._facts.reach(self._triples.count)
        if single:
            facts[triple[matched & (slot < 0)], k.SLOT] = -1
        else:
            rows = np.flatnonzero(slot >= 0)
            facts[triple[rows], k.SLOT] = slot[rows]
            subjects = np.column_stack([*parts[:-3], fields["s"]])[rows]
            facts[triple[rows], k.SUBJECT] = self._subjects.numbers(subjects, create=True)
            self._lists.reach(self._subjects.count * len(self.star.slots))
        rows, keys = self._bound(self.star.key, fields, slot)
        facts[triple[rows], k.GROUP] = self._groups.numbers(keys[:, None], create=True)
        rows, values = self._bound(self.star.summed, fields, slot)
        facts[triple[rows], k.SUMMAND] = self._summands(values, len(slot))
        if self.star.member:
            rows, values = self._bound(self.star.member, fields, slot)
            facts[triple[rows], k.OPERAND] = values
            self._compare(values)
        self._sums.reach(self._groups.count if self.star.key else 1)
        closes = matched if single else fields["last"]
        self.items.append({**fields, "triple": triple, "closes": closes})

    def _events_of(self, fields: Fields) -> list[np.ndarray]:
        """The number of each row's event, where triples of different events are different; else nothing."""
        if not self.star.of_event:
            return []
        numbers = number_events(fields, self._events)
        self._events += int(np.count_nonzero(fields["last"]))
        return [numbers]

    def _matched(self, fields: Fields) -> tuple[np.ndarray, np.ndarray]:
        """For each row the pattern that it matches (-1: none), and whether it matches one if filters are ignored."""
        slots, matched = np.full(len(fields["p"]), -1, np.int64), np.zeros(len(fields["p"]), np.bool_)
        for place, slot in enumerate(self.star.slots):
            own = fields["p"] == self.terms.id_of(slot.predicate)
            if constant := alg.constant_of(slot.object):
                own &= fields["o"] == self.terms.id_of(constant)
            matched |= own
            if not slot.filters:
                slots[own] = place
                continue
            rows = np.flatnonzero(own)
            columns = {self.star.subject: fields["s"][rows]}
            if variable := alg.variable_of(slot.object):
                columns[variable] = fields["o"][rows]
            slots[rows[_where(slot.filters, self.terms, columns, len(rows))]] = place
        return slots, matched

    def _bound(self, variable: str, fields: Fields, slots: np.ndarray) -> tuple[Any, np.ndarray]:
        """The rows that bind the variable, and the terms that they bind it to."""
        if not variable:
            return slice(0), slots[:0]
        is_subject = variable == self.star.subject
        there = slots >= 0 if is_subject else slots == self.star.slot_of(variable)
        rows = slice(None) if there.all() else np.flatnonzero(there)
        return rows, fields["s" if is_subject else "o"][rows]

    def _summands(self, ids: np.ndarray, rows: int) -> np.ndarray:
        """The summands of these values, as integers: value · 10**scale."""
        if not len(ids):
            return np.zeros(0, np.int64)
        kinds, doubles, mantissas, scales = self.terms.values(ids)
        kind, scale = int(kinds[0]), max(self._scale, int(scales.max()))
        largest = max(self._largest, float(np.abs(doubles).max()))
        if kind not in _TAILS or (kinds != kind).any() or self._kind not in (0, kind):
            raise NotColumnar("values are neither all integers nor all decimals")
        if (largest + 1) * 10.0**scale * self._most(len(self.items) + rows) >= FITS:
            raise NotColumnar("sums may not fit into 64 bits")
        if scale > self._scale:
            more = 10 ** (scale - self._scale)
            self._sums.rows[:, k.TOTAL] *= more
            self._facts.rows[:, k.SUMMAND] *= more
        self._kind, self._scale, self._largest = kind, scale, largest
        return mantissas * 10 ** (scale - scales.astype(np.int64))

    def _compare(self, values: np.ndarray) -> None:
        """Put these values into the order of terms, if the query asks for a least or a greatest one."""
        if self._ask[k.LEAST] or self._ask[k.GREATEST]:
            try:
                self._order.add(self.terms, values)
            except TooMany:
                raise NotColumnar("many values that are compared are texts, or equal and spelled differently") from None

    def _most(self, rows: int) -> float:
        """An upper bound on the number of solutions that the triples of so many rows can form."""
        patterns = len(self.star.slots)
        if patterns == 1 or rows**patterns < _FEW:
            return float(rows**patterns)
        facts = self._facts.rows[self._facts.rows[:, k.SLOT] >= 0]
        numbers = np.bincount(facts[:, k.SUBJECT] * patterns + facts[:, k.SLOT], minlength=self._lists.count)
        return float(numbers.reshape(-1, patterns).astype(np.float64).prod(axis=1).sum())

    def _hold(self, rows: int) -> None:
        """Let the first ``rows`` rows enter the window."""
        if rows:
            at, ask = self._position(), self._ask.copy()
            at[k.CLOSE] = ask[k.THROUGH] = self.items.of("end")[rows - 1]
            ask[k.WIDTH], ask[k.STEP] = _FOREVER, 1
            while at[k.FULL]:
                self._slide(at, ask, rows, np.zeros(0, np.int64), np.zeros((_COLUMNS, 0), np.int64))
            self.items.first, self.items.entered = 0, rows

    # --- answers ---

    def answer(self, after: int, through: int, output: int) -> Iterator[ClosingAnswers]:
        """The answers of every closing later than ``after`` and until ``through``, in portions."""
        items, close = self.items, times.next_close(self.shape, after)
        assert close is not None
        if close <= through:
            at, order = self._position(), self._ordered()
            at[k.CLOSE], self._ask[k.THROUGH] = close, through
            room = min(_ROWS + len(order), len(order) * (2 + max(0, through - close) // self.shape.slide))
            while at[k.FULL]:
                entered = items.entered
                at[k.EVALUATIONS] = at[k.DUPLICATES] = 0
                rows = np.empty((_COLUMNS, room), np.int64)
                count = self._slide(at, self._ask, items.count, order, rows)
                items.first, items.entered = int(at[k.FIRST]), int(at[k.ENTERED])
                report = self._report(output, rows[:, :count]) if count else None
                reports = () if report is None else (report,)
                came = Came(items.number_of(entered, items.entered), int(at[k.DUPLICATES]))
                yield ClosingAnswers(int(at[k.EVALUATIONS]), {self._name: came}, reports)
        self._forget()

    def _position(self) -> np.ndarray:
        """The position of the window, for the kernel."""
        at = np.zeros(9, np.int64)
        at[k.FIRST], at[k.ENTERED], at[k.MEMBERS] = self.items.first, self.items.entered, self._members.count
        at[k.FULL] = k.ROWS
        return at

    def _slide(self, at: np.ndarray, ask: np.ndarray, rows: int, order: np.ndarray, answer: np.ndarray) -> int:
        """Run the kernel over ``rows`` rows of items; returns the number of rows in the answer."""
        items, members = self.items, self._members
        links = self._links.reach(self._triples.count if ask[k.DIRECT] else len(members.table()[0]))
        count: int = k.slide(
            at,
            ask,
            *(items.of("end")[:rows], items.of("triple")[:rows], items.of("closes")[:rows]),
            *(self._facts.rows, self._lists.rows, self._sums.rows),
            *(*members.table(), links, self._order.table),
            *(self._cursor, order, answer),
        )
        members.count = int(at[k.MEMBERS])
        if at[k.FULL] == k.ROOM:
            members.make_room(int(at[k.NEEDED]) + 1)
        return count

    def _ordered(self) -> np.ndarray:
        """The groups of all items, in the order of their terms if the answer has them in it."""
        if not self.star.key:
            return np.zeros(1, np.int64)
        ids = self._groups.rows()[:, 0]
        groups = np.arange(len(ids))
        if len(groups) > len(self.items):
            triples = self.items.of("triple")[self.items.first :]
            triples = triples[triples >= 0]
            slots, own = (self._facts.rows[triples, field] for field in (k.SLOT, k.GROUP))
            there = np.zeros(len(ids), np.bool_)
            there[own[slots >= 0]] = True
            groups = np.flatnonzero(there)
        if not self._by_key:
            return groups
        return groups[np.argsort(self.terms.ranks(ids[groups]), kind="stable")] if len(groups) else groups

    def _report(self, output: int, rows: np.ndarray) -> TableReport | None:
        """The report of some closings: at each, the rows are in the order of their terms, as the query has them."""
        select = self.plan.select
        if (field := self._first_number()) is not None:
            rows = rows[:, may_be_chosen(select, rows[k.CLOSING], rows[field])]
        closings = rows[k.CLOSING]
        columns: dict[str, Any] = {}
        if self.star.key:
            columns[self.star.key] = self.terms.dictionary(self._groups.rows()[rows[k.OF_GROUP], 0])
        for call in select.aggregates:
            columns[call.variable] = self._aggregate(call, rows)
        if select.having:
            kept = _holding(select.having, columns, len(closings))
            closings, columns = closings[kept], {name: column.filter(kept) for name, column in columns.items()}
            if not len(closings):
                return None
        columns |= {name: columns[of] for name, of in alg.renamed(select.extends).items()}
        if is_chosen(select):
            places = pa.array(chosen(select, closings, columns))
            closings, columns = closings[places], {name: column.take(places) for name, column in columns.items()}
            if not len(closings):
                return None
        shown = [columns[name] for name in self.plan.variables]
        if not self.plan.ordered and not self._by_key:
            places = pa.array(by_terms(closings, shown))
            closings, shown = closings[places], [column.take(places) for column in shown]
        return TableReport(output, closings, closings, closings - self.shape.width, shown)

    def _first_number(self) -> int | None:
        """The field of the number that ORDER BY compares first, where LIMIT keeps few rows by it; None elsewhere."""
        select = self.plan.select
        if not select.order or select.limit is None or select.having:
            return None
        variable = alg.variable_of(select.order[0].expression)
        variable = alg.renamed(select.extends).get(variable, variable)
        for call in select.aggregates:
            if call.variable == variable and call.name in ("COUNT", "SUM"):
                distinct = k.OF_DISTINCT if call.distinct else k.OF_COUNT
                return k.OF_TOTAL if call.name == "SUM" else distinct
        return None

    def _aggregate(self, call: alg.AggregateCall, rows: np.ndarray) -> Any:
        """The literals or terms of the aggregate."""
        if call.name in EXTREMES:
            return self.terms.dictionary(rows[k.OF_BEST + EXTREMES[call.name]])
        counts = rows[k.OF_COUNT]
        if call.name == "COUNT":
            numbers = rows[k.OF_DISTINCT] if call.distinct else counts
            return spelled_results(numbers, numbers, False, 0, INTEGER)
        average = call.name == "AVG"
        kind = DECIMAL if average else self._kind or INTEGER
        return spelled_results(rows[k.OF_TOTAL], counts, average, self._scale, kind)

    def _forget(self) -> None:
        """Forget terms, triples and groups that no item uses any more, once there are many of them."""
        items, members = self.items, self._members.count - 2 * self._lasting
        if max(self.terms.count, self._triples.count, members) <= 4 * len(items) + _SPARE:
            return
        live = items.live()
        entered, scale, kind, largest = items.entered - items.first, self._scale, self._kind, self._largest
        texts = {name: self.terms.dictionary(live[name]) for name in TERMS}
        self.clear()
        self._scale, self._kind, self._largest = scale, kind, largest
        ids = {name: self.terms.intern(text) for name, text in texts.items()}
        self._append({"end": live["end"], "start": live["start"], "last": live["last"], **ids})
        self._hold(entered)
        self._lasting = self._members.count

    # --- what waits ---

    def rows(self) -> dict[str, HeldItems]:
        """The items in the window, and those that wait."""
        items, stream = self.items, self.plan.windows[0].stream
        cuts = (items.first, items.entered), (items.entered, items.count)
        held, waiting = (items.events(self.terms, stream, *cut) for cut in cuts)
        return {self._name: HeldItems(held, waiting)}

    answered = frozenset[tuple[str, ...]]()
    """The last answer, which nothing depends on: RSTREAM gives each answer whole."""

    def remember(self, answered: Collection[tuple[str, ...]]) -> None:
        """Continue after this answer."""

    @property
    def number(self) -> int:
        """How many items are kept."""
        return self.items.number

    def ends(self) -> np.ndarray:
        """The ends of all rows."""
        return self.items.of("end")[self.items.first :]


def _where(conditions: Sequence[alg.Expr], terms: Terms, columns: dict[str, np.ndarray], rows: int) -> np.ndarray:
    """A mask of the rows for which all conditions are true; the conditions read no times."""
    never, always = np.full(rows, TIMELESS_START), np.full(rows, TIMELESS_END)
    frame = Bindings(terms, always, always, never, columns, np.arange(rows))
    for condition in conditions:
        frame = frame.keep(frame.holds(condition))
    return frame.rows


def _holding(having: Sequence[alg.Expr], columns: dict[str, Any], rows: int) -> np.ndarray:
    """A mask of the rows for which the conditions of HAVING are true."""
    terms = Terms()
    kept = np.zeros(rows, np.bool_)
    kept[_where(having, terms, {name: terms.intern(column) for name, column in columns.items()}, rows)] = True
    return kept


def spelled_results(totals: np.ndarray, counts: np.ndarray, divide: bool, scale: int, kind: int) -> Any:
    """Literals as an Arrow array."""
    tail, integer_tail = _TAIL[kind], _TAIL[INTEGER]
    ends = np.empty(len(totals) + 1, np.int64)
    out = np.empty(len(totals) * (k.LONGEST + len(tail)), np.uint8)
    digits = np.empty(k.LONGEST, np.int64)
    k.spell_results(totals, counts, divide, scale, tail, integer_tail, digits, ends, out)
    return pa.LargeStringArray.from_buffers(len(totals), pa.py_buffer(ends), pa.py_buffer(out[: ends[-1]].copy()))
