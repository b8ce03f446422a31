"""The windows of a query at run time: which items have come, which are held now, and when that will change."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from etalis_compiler.rsp import Count, Interval, Landmark, Now, Shape, Sliding, WindowUse
from etalis_rules import algebra as alg

from etalis_py.events import Event, Triple
from etalis_py.executors.windows import times
from etalis_py.executors.windows.content import Content
from etalis_py.executors.windows.facts import FactWindow
from etalis_py.executors.windows.patterns import OneItem
from etalis_py.kernel.position import event_of
from etalis_py.sparql import BackgroundSource, prepare


@dataclass(frozen=True, slots=True)
class HeldItems:
    """The items in a window, and those that wait for it.

    Of a window that counts, ``held`` are the units that it keeps, ``total`` is how many it has counted, and ``shown``
    how many up to the last window that was reported.
    """

    held: Sequence[Event] = ()
    waiting: Sequence[Event] = ()
    total: int = 0
    shown: int = 0


class TimeWindow:
    """A window over a stream that is defined by times: sliding, landmark, interval, identity, now."""

    def __init__(self, use: WindowUse, content: Content) -> None:
        self.use, self.shape, self.content = use, use.shape, content
        self.entered = 0  # how many items entered the content so far
        self.arrived = False  # whether an item ended at the time of the last ``move``
        self._wait = content.push
        self._after, self._until, self._gaps, self.offset = times.BEGINNING, 2**63 - 1, False, 0
        match use.shape:
            case Sliding(width, slide, t0, offset):
                self._after, self._gaps, self.offset = t0, slide > width, offset
            case Landmark(start):
                self._after = start - 1
            case Interval(start, end):
                self._after, self._until = start - 1, end

    def push(self, item: Event) -> bool:
        """Take an item; False when no window will ever hold it."""
        end = item[1]
        if end <= self._after or end > self._until:
            return False
        if self._gaps and times.next_close_of(self.shape, end, times.BEGINNING) is None:  # type: ignore[arg-type]
            return False
        self._wait(item)
        return True

    def move(self, t: int) -> None:
        """Hold exactly W(S, t)."""
        interval = times.span(self.shape, t)
        if interval is None:
            self.content.move(times.keep_after(self.shape, t - 1), times.BEGINNING)
            self.arrived = False
            return
        before = self.content.changes_in
        self.content.move(*interval)
        came = self.content.changes_in - before
        self.entered += came
        newest = self.content.newest()
        self.arrived = newest is not None and newest == t - self.offset

    @property
    def empty(self) -> bool:
        """Whether it has no items at all."""
        return not self.content.remembers()

    @property
    def remembered(self) -> int:
        """How many items it keeps."""
        return self.content.remembered

    def each(self) -> Iterator[Event]:
        """All items."""
        return self.content.each()

    def opening(self, t: int) -> int | None:
        """The time at which the window seen at t opened."""
        return times.opening(self.shape, t)

    def closes(self, t: int) -> bool:
        return self.arrived if isinstance(self.shape, Now) else times.closes(self.shape, t)

    def next_close(self, after: int, nonempty: bool) -> int | None:
        """The next closing by the clock; ``nonempty``: of a window that holds an item, as far as is known."""
        if isinstance(self.shape, Now):
            return self.next_entry(after)
        if not nonempty or not isinstance(self.shape, Sliding):
            close = times.next_close(self.shape, after)
            return None if close is None or (nonempty and not self.content.remembers()) else close
        for item in self.content.each():
            close = times.next_close_of(self.shape, item.end, after)
            if close is not None:
                return close
        return None

    def next_entry(self, after: int) -> int | None:
        """The next time at which an item enters."""
        waiting = self.content.first_waiting()
        return None if waiting is None else max(waiting + self.offset, after + 1)

    def prune(self, t: int) -> None:
        """Forget the items that cannot be seen after t."""
        self.content.forget(times.keep_after(self.shape, t))

    def horizon(self) -> int | None:
        """After the end of the stream: the last time at which this window has something new to report."""
        end = self.content.last_end()
        return None if end is None else times.last_close_of(self.shape, end)

    @property
    def items(self) -> HeldItems:
        """Its items."""
        return HeldItems(self.content.items(), self.content.waiting())

    @items.setter
    def items(self, items: HeldItems) -> None:
        self.content.restore(items.held, items.waiting)

    def snapshot(self) -> list[Any]:
        held = [list(i) for i in self.content.items()]
        return [self.entered, held, [list(i) for i in self.content.waiting()]]

    def restore(self, state: list[Any]) -> None:
        self.entered, held, waiting = state
        self.content.restore(map(event_of, held), map(event_of, waiting))


class CountWindow:
    """A window over a stream that counts events, triples or solutions of a basic graph pattern."""

    offset = 0

    def __init__(self, use: WindowUse, content: Content) -> None:
        assert isinstance(use.shape, Count)
        self.use, self.shape, self.content = use, use.shape, content
        self.solve = bgp_units(use.shape.pattern) if use.shape.unit == "BGP" else None
        self.units: deque[Event] = deque()  # the latest ones that a window can still hold
        self.total = 0
        self.shown = 0  # the position up to which windows have been reported
        self.waiting: list[Event] = []
        self.entered = 0
        self.arrived = False
        self.closed = False
        self.last: int | None = None

    def push(self, item: Event) -> bool:
        self.waiting.append(item)
        self.last = item.end
        return True

    def move(self, t: int) -> None:
        """Count new units; hold the last window that closed, or the next of several that closed at once.

        Windows that do not overlap (tumbling) are shown one after another, so that no items are skipped.
        """
        came = [i for i in self.waiting if i.end <= t]
        self.waiting = [i for i in self.waiting if i.end > t]
        for item in times.canonical(came):
            for unit in times.units_of(item, self.shape, self.solve):
                self.units.append(unit)
                self.total += 1
        _, high = times.counted(self.total, self.shape)
        if self.shape.slide >= self.shape.size:
            high = min(high, self.shown + self.shape.slide)
        self.closed = high > self.shown
        self.arrived = bool(came)
        if self.closed:
            low = max(0, high - self.shape.size)
            first = self.total - len(self.units)  # the position before the first unit that is kept
            held = [u for n, u in enumerate(self.units, first + 1) if low < n <= high]
            before = self.content.changes_in
            self.content.replace(held)
            self.entered += self.content.changes_in - before
            self.shown = high
            while self.units and first < high - self.shape.size:
                self.units.popleft()
                first += 1

    @property
    def empty(self) -> bool:
        return not self.waiting

    @property
    def remembered(self) -> int:
        """How many units and items it keeps."""
        return len(self.units) + len(self.waiting)

    def each(self) -> Iterator[Event]:
        """All units and items."""
        return chain(self.units, self.waiting)

    @property
    def more(self) -> bool:
        """Whether another window closed at the same time."""
        return times.counted(self.total, self.shape)[1] > self.shown

    def opening(self, t: int) -> int | None:
        items = self.content.items()
        return items[0].start if items else None

    def closes(self, t: int) -> bool:
        return self.closed

    def next_close(self, after: int, nonempty: bool) -> int | None:
        return self.next_entry(after)

    def next_entry(self, after: int) -> int | None:
        return max(self.waiting[0].end, after + 1) if self.waiting else None

    def prune(self, t: int) -> None:
        """Nothing to do: only units that a later window can hold are kept anyway."""

    def horizon(self) -> int | None:
        return self.last

    @property
    def items(self) -> HeldItems:
        """Its units, and the items that wait."""
        return HeldItems(list(self.units), self.waiting, self.total, self.shown)

    @items.setter
    def items(self, items: HeldItems) -> None:
        self.units, self.waiting = deque(items.held), list(items.waiting)
        self.total, self.shown = items.total, items.shown
        self.last = max((item.end for item in (*items.held, *items.waiting)), default=self.last)
        first, low = self.total - len(self.units), self.shown - self.shape.size
        self.content.replace([u for n, u in enumerate(self.units, first + 1) if low < n <= self.shown])

    def snapshot(self) -> list[Any]:
        held = [list(i) for i in self.content.items()]
        units, waiting = [list(i) for i in self.units], [list(i) for i in self.waiting]
        return [self.entered, self.last, self.total, self.shown, held, units, waiting]

    def restore(self, state: list[Any]) -> None:
        self.entered, self.last, self.total, self.shown, held, units, waiting = state
        self.content.replace(map(event_of, held))
        self.units = deque(map(event_of, units))
        self.waiting = list(map(event_of, waiting))


class NestedWindow:
    """A window on a window: (outer • inner)(S, t) = outer(inner(S, t), t) ([RSEP] §3.2)."""

    offset = 0

    def __init__(self, use: WindowUse, content: Content, inner: Window) -> None:
        self.use, self.shape, self.content, self.inner = use, use.shape, content, inner
        self.solve = bgp_units(use.shape.pattern) if isinstance(use.shape, Count) and use.shape.unit == "BGP" else None
        self.entered = 0
        self.arrived = False

    def move(self, t: int) -> None:
        before = self.content.changes_in
        self.content.replace(times.content(self.shape, self.inner.content.items(), t, self.solve))
        self.arrived = self.content.changes_in > before
        self.entered += self.content.changes_in - before

    def opening(self, t: int) -> int | None:
        openings = [o for o in (self.inner.opening(t), _opening(self.shape, t)) if o is not None]
        return max(openings) if openings else None

    def closes(self, t: int) -> bool:
        if isinstance(self.shape, Count | Now):
            return self.arrived
        return times.closes(self.shape, t)

    def next_close(self, after: int, nonempty: bool) -> int | None:
        if isinstance(self.shape, Count | Now):
            return self.inner.next_entry(after)
        if nonempty and self.inner.horizon() is None:
            return None
        return times.next_close(self.shape, after)

    def next_entry(self, after: int) -> int | None:
        return self.inner.next_entry(after)

    def prune(self, t: int) -> None:
        """Nothing to do: its items are those of the inner window."""

    def horizon(self) -> int | None:
        inner = self.inner.horizon()
        if inner is None:
            return None
        last = self.inner.content.last_end()
        return inner if last is None else max(inner, times.last_close_of(self.shape, last))

    def snapshot(self) -> list[Any]:
        return [self.entered, [list(i) for i in self.content.items()]]

    def restore(self, state: list[Any]) -> None:
        self.entered, items = state
        self.content.replace(map(event_of, items))


PlainWindow = TimeWindow | CountWindow
"""A window over a stream."""
Window = TimeWindow | CountWindow | NestedWindow | FactWindow


def _opening(shape: Shape, t: int) -> int | None:
    return None if isinstance(shape, Count) else times.opening(shape, t)


def bgp_units(pattern: tuple[alg.Triple, ...]) -> times.Units:
    """From an item to the triples of each solution of the pattern in it."""
    prepared = prepare(alg.BGP(pattern))

    def solve(item: Event) -> list[tuple[Triple, ...]]:
        solutions = prepared.solve({}, BackgroundSource(OneItem(item)))
        return sorted({tuple(dict.fromkeys(alg.triple_in(mu, t) for t in pattern)) for mu, _, _ in solutions})

    return solve
