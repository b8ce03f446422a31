"""The values of the first events, shown to what compares them with what a program asks for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from etalis_py.engine.compared_times import ComparedTimes
from etalis_py.engine.compared_values import ComparedValues
from etalis_py.engine.first_events import FirstEvents
from etalis_py.engine.joined_kinds import JoinedKinds
from etalis_py.engine.unseen_values import UnseenValues
from etalis_py.kernel.batch import Columns, InColumns

if TYPE_CHECKING:
    from etalis_py.engine.program import Program
    from etalis_py.events import Event
    from etalis_py.knowledge import Knowledge


class Watcher(Protocol):
    """What looks at objects, by their predicate."""

    @property
    def predicates(self) -> Collection[str]:
        """The predicates whose objects are still looked at."""

    def note(self, predicate: str, objects: Iterable[str]) -> None:
        """Take note of objects of a predicate that is looked at."""


class FirstValues(FirstEvents):
    """Shows what watches a program the objects of the first events."""

    MOST = 10_000

    def __init__(self, program: Program) -> None:
        super().__init__()
        self._unseen, self._compared = UnseenValues.of(program), ComparedValues.of(program)
        self._times, self._kinds = ComparedTimes.of(program), JoinedKinds.of(program)
        watchers: tuple[Watcher | None, ...] = self._unseen, self._compared, self._times, self._kinds
        self._watchers = [watcher for watcher in watchers if watcher is not None]

    @property
    def full(self) -> bool:
        """Whether enough has been seen."""
        return super().full or not any(watcher.predicates for watcher in self._watchers)

    def _count(self, event: Event) -> bool:
        for _, p, o in event.triples:
            self._show(p, (o,))
        return True

    def see_columns(self, columns: InColumns) -> None:
        """The same for events in columns.

        Later ones are looked at only where all values so far are literals and things are needed, until there is one.
        """
        first = 0 if self.full else min(len(columns), self.MOST - self._events)
        if first:
            self._see_first(columns.rows(0, first))
        if first < len(columns):
            self._look_for_things(columns.rows(first, len(columns)) if first else columns)

    def _see_first(self, some: InColumns) -> None:
        self._events += len(some)
        if isinstance(some, Columns):
            for p, o in dict.fromkeys(zip(some.p.to_pylist(), some.o.to_pylist(), strict=True)):
                self._show(p, (o,))
        else:
            asked = {p for watcher in self._watchers for p in watcher.predicates}
            for p in asked & some.objects.keys():
                self._show(p, [o for o in some.objects[p].unique().to_pylist() if o is not None])

    def _look_for_things(self, columns: InColumns) -> None:
        if self._compared is None or not (wanted := self._compared.only_literals):
            return
        import pyarrow as pa  # the columns have loaded it
        import pyarrow.compute as pc

        for predicate in wanted:
            if isinstance(columns, Columns):
                objects = columns.o.filter(pc.equal(columns.p, predicate))
            elif (objects := columns.objects.get(predicate)) is None:
                continue
            if pa.types.is_dictionary(objects.type):
                objects = objects.unique().dictionary_decode()
            things = objects.filter(pc.invert(pc.starts_with(objects, '"')))
            self._compared.note(predicate, things[:1].to_pylist())

    def _show(self, predicate: str, objects: Collection[str]) -> None:
        for watcher in self._watchers:
            if predicate in watcher.predicates:
                watcher.note(predicate, objects)

    def by_type(self, texts: Collection[str], numbers: Collection[str], *, background: bool = False) -> Iterator[str]:
        """What is odd about columns of texts and of numbers, by their predicates."""
        if self._compared is not None:
            yield from self._compared.by_type(texts, numbers, background=background)
        if self._times is not None:
            yield from self._times.by_type(texts, numbers)

    def warnings(self, knowledge: Knowledge | None = None) -> Iterator[str]:
        """What is odd about the values; what no event has may stand in the background."""
        among = f" among the first {self.MOST:,}" if super().full else ""
        if self._unseen is not None:
            yield from self._unseen.warnings(among, knowledge)
        if self._compared is not None:
            yield from self._compared.warnings(among, background=knowledge is not None)
        if self._times is not None:
            yield from self._times.warnings(among)
        if self._kinds is not None:
            yield from self._kinds.warnings(among, knowledge)
