"""The content of a window: triples with counts, indexed, sliding with the window.

A window's content is a set of triples, each counted once per item in the window that states it: it leaves with the last
of them ([RSPQL], "Relaxing the No Duplicate Data Assumption").  The cost of moving the window depends on what enters
and leaves, not on how much it holds.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from etalis_py.events import Event, Triple
from etalis_py.knowledge.graph import Graph


class CountedGraph:
    """A graph whose triples have counts."""

    __slots__ = ("counts", "graph")

    def __init__(self) -> None:
        self.counts: dict[Triple, int] = {}
        self.graph = Graph()

    def add(self, triple: Triple) -> bool:
        """One more; true when the triple is new."""
        number = self.counts.get(triple, 0)
        self.counts[triple] = number + 1
        if number:
            return False
        self.graph.add(*triple)
        return True

    def remove(self, triple: Triple) -> bool:
        """One less; true when the triple is gone."""
        number = self.counts[triple]
        if number > 1:
            self.counts[triple] = number - 1
            return False
        del self.counts[triple]
        self.graph.remove(*triple)
        return True


class Content(CountedGraph):
    """The items of a window in order: those it holds now, and those that wait until it reaches them.

    ``named`` has the graphs of the items by name, ``names`` the names with their times.  ``move`` only goes forward.
    """

    __slots__ = ("_held", "_waiting", "changes_in", "keeps_names", "named", "names", "repeated")

    def __init__(self, keeps_names: bool = False) -> None:
        super().__init__()
        self._held: deque[Event] = deque()
        self._waiting: deque[Event] = deque()
        self.keeps_names = keeps_names
        self.named: dict[str, CountedGraph] = {}
        self.names: dict[tuple[str, int], int] = {}
        self.changes_in = 0  # how many items have entered so far
        self.repeated = 0  # how many of them stated only triples that were there already

    def push(self, item: Event) -> None:
        """Add an item that the window may hold from now on; ends never decrease."""
        self._waiting.append(item)

    @property
    def size(self) -> int:
        """How many items are in the window."""
        return len(self._held)

    @property
    def remembered(self) -> int:
        """How many items there are, including those that wait."""
        return len(self._held) + len(self._waiting)

    def items(self) -> list[Event]:
        """The items in the window, in order."""
        return list(self._held)

    def waiting(self) -> list[Event]:
        """The items that the window will hold later, in order."""
        return list(self._waiting)

    def each(self) -> Iterator[Event]:
        """All items, those that wait after those that are held."""
        return chain(self._held, self._waiting)

    def remembers(self) -> bool:
        """Whether there is an item at all."""
        return bool(self._held or self._waiting)

    def first_waiting(self) -> int | None:
        """The end of the first item that waits."""
        return self._waiting[0].end if self._waiting else None

    def newest(self) -> int | None:
        """The end of the last item in the window."""
        return self._held[-1].end if self._held else None

    def last_end(self) -> int | None:
        """The end of the last item."""
        last = self._waiting or self._held
        return last[-1].end if last else None

    def move(self, low: int, high: int) -> None:
        """Hold exactly the items that end in (low, high]; forget those before."""
        self._drop(low)
        waiting = self._waiting
        come = []
        while waiting and waiting[0][1] <= high:
            item = waiting.popleft()
            if item[1] > low:
                come.append(item)
        self._held.extend(come)
        self._enter_all(come)

    def forget(self, low: int) -> None:
        """Forget the items that end at or before ``low``: no window will hold them."""
        self._drop(low)
        waiting = self._waiting
        while waiting and waiting[0][1] <= low:
            waiting.popleft()

    def _drop(self, low: int) -> None:
        """Remove the items that end at or before ``low``."""
        held = self._held
        gone = []
        while held and held[0][1] <= low:
            gone.append(held.popleft())
        if gone:
            self._leave_all(gone)

    def replace(self, items: Iterable[Event]) -> None:
        """Hold these items and no others."""
        new = deque(items)
        if new == self._held:
            return
        left, come = Counter(self._held), []
        for item in new:
            if left[item]:
                left[item] -= 1
            else:
                come.append(item)
        self._enter_all(come)
        self._leave_all(list(left.elements()))
        self._held = new

    def restore(self, held: Iterable[Event], waiting: Iterable[Event]) -> None:
        """Replace everything by these items that are held and those that wait."""
        self.replace(held)
        self._waiting = deque(waiting)

    def _enter_all(self, items: Sequence[Event]) -> None:
        self.changes_in += len(items)
        for item in items:
            self._enter(item)

    def _leave_all(self, items: Sequence[Event]) -> None:
        for item in items:
            self._leave(item)

    def _enter(self, item: Event) -> None:
        new = [self.add(triple) for triple in item.triples]
        self.repeated += not any(new)
        if self.keeps_names and item.graph:
            graph = self.named.setdefault(item.graph, CountedGraph())
            for triple in item.triples:
                graph.add(triple)
            key = (item.graph, item.end)
            self.names[key] = self.names.get(key, 0) + 1

    def _leave(self, item: Event) -> None:
        for triple in item.triples:
            self.remove(triple)
        if self.keeps_names and item.graph:
            graph = self.named[item.graph]
            for triple in item.triples:
                graph.remove(triple)
            if not graph.counts:
                del self.named[item.graph]
            key = (item.graph, item.end)
            self.names[key] -= 1
            if not self.names[key]:
                del self.names[key]

    def latest(self) -> dict[Triple, int]:
        """Each triple with the latest time at which it is stated: what C-SPARQL's timestamp() gives."""
        return {triple: item.end for item in self.items() for triple in item.triples}


class UnindexedContent(Content):
    """The items of a window whose triples nothing looks up, as only EVENT and MATCH read it: one item at a time."""

    __slots__ = ()

    def _enter_all(self, items: Sequence[Event]) -> None:
        self.changes_in += len(items)

    def _leave_all(self, items: Sequence[Event]) -> None:
        """Nothing to do: there is no index."""
