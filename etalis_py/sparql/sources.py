"""The sources of evaluation: the background knowledge, alone or together with a history of occurrences."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import chain
from operator import itemgetter
from typing import Protocol

from etalis_py.events import Event, Triple
from etalis_py.values.limits import LIMITS
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

Occurrence = tuple[str, str, str, int, int]
"""A triple with its interval: ``(subject, predicate, object, start, end)``."""

_end = itemgetter(4)


class Graph(Protocol):
    """The interface of a background graph (``etalis_py.knowledge.graph.Graph`` is one)."""

    def match(self, s: str | None, p: str | None, o: str | None) -> Iterator[tuple[str, str, str]]: ...
    def objects(self, s: str, p: str) -> Collection[str]: ...
    def subjects(self, p: str, o: str) -> Collection[str]: ...
    def contains(self, s: str, p: str, o: str) -> bool: ...
    def pairs(self, p: str) -> Sized: ...
    def objects_equal_to(self, key: Hashable, p: str) -> Collection[str]: ...
    def __len__(self) -> int: ...


def count_triples(g: Graph, s: str | None, p: str | None, o: str | None) -> int:
    """How many triples a graph has that match, or more where finding out would take a scan."""
    if p is None:
        return len(g)
    if s is not None:
        return len(g.objects(s, p)) if o is None else int(g.contains(s, p, o))
    if o is not None:
        return len(g.subjects(p, o))
    return len(g.pairs(p))


class Knowledge(Protocol):
    """A default graph and named ones (``etalis_py.knowledge.Knowledge`` is one).  A graph stays the same object."""

    version: int

    @property
    def default(self) -> Graph: ...
    def names(self) -> Iterable[str]: ...
    def graph(self, name: str) -> Graph: ...


class Source(Protocol):
    """Triples with intervals, by any combination of bound positions.

    ``stream`` restricts a match to the occurrences of one stream (empty: everything); ``graph`` selects a named
    background graph (None: the default graph, which is the background's and all occurrences).  A match is a set: no two
    equal occurrences.  ``version`` changes whenever an answer may change.  ``steps`` is how many steps one evaluation
    over it may take (None: any number).
    """

    timed: bool

    @property
    def steps(self) -> int | None: ...
    @property
    def version(self) -> object: ...
    def match(
        self, s: str | None, p: str | None, o: str | None, stream: str, graph: str | None
    ) -> Iterable[Occurrence]: ...
    def count(self, s: str | None, p: str | None, o: str | None, graph: str | None) -> int:
        """An estimate of how many results ``match`` would give: cheap, and good enough to choose a join order."""

    def graph_names(self) -> Collection[str]: ...
    def nodes(self, stream: str, graph: str | None) -> Iterable[tuple[str, int, int]]:
        """The subjects and objects, each with the intervals of the occurrences that contain it; a set."""

    def intervals(
        self, node: str, stream: str, graph: str | None, without: Collection[Triple] = ()
    ) -> Iterable[tuple[int, int]]:
        """The intervals of ``nodes`` at one node, of other triples than those in ``without``; a set."""

    def objects_equal_to(self, key: Hashable, p: str, stream: str, graph: str | None) -> Collection[str] | None:
        """Objects of a predicate, among them all whose values have this key; None where finding them takes a scan."""

    def as_for(self, predicates: Collection[str]) -> Source:
        """A source that answers patterns over these predicates alone as this one does, and longer stays the same."""

    def upto(self, at: int | None) -> Source:
        """This source without the occurrences that end after ``at``."""

    def events(self, stream: str) -> Iterable[Event]:
        """The events that EVENT asks: those of one stream (empty: of the default graph)."""

    @property
    def beside_events(self) -> Source:
        """What EVENT sees together with an event: the background."""


class BackgroundSource:
    """The background knowledge: every triple is timeless and belongs to no stream."""

    __slots__ = ("_default", "_knowledge", "_named", "_named_at", "steps")

    timed = False

    def __init__(self, knowledge: Knowledge, steps: int | None = LIMITS.steps) -> None:
        self.steps = steps
        self._knowledge = knowledge
        self._default = knowledge.default
        self._named: dict[str, Graph] = {}
        self._named_at: int | None = None

    @property
    def version(self) -> object:
        return self._knowledge.version

    def lasting(self, name: str | None) -> Graph:
        """The default graph (None) or a named one, which stays the same object in all versions."""
        return self._default if name is None else self._knowledge.graph(name)

    def match(
        self, s: str | None, p: str | None, o: str | None, stream: str, graph: str | None
    ) -> Iterable[Occurrence]:
        if stream:
            return ()
        g = self._default if graph is None else self._graph(graph)
        if g is None:
            return ()
        if p is not None:  # the direct accessors of the graph save a generator for each look-up
            if s is not None:
                if o is None:
                    return [(s, p, x, TIMELESS_START, TIMELESS_END) for x in g.objects(s, p)]
                return ((s, p, o, TIMELESS_START, TIMELESS_END),) if g.contains(s, p, o) else ()
            if o is not None:
                return [(x, p, o, TIMELESS_START, TIMELESS_END) for x in g.subjects(p, o)]
        return [(a, b, c, TIMELESS_START, TIMELESS_END) for a, b, c in g.match(s, p, o)]

    def count(self, s: str | None, p: str | None, o: str | None, graph: str | None) -> int:
        g = self._default if graph is None else self._graph(graph)
        return 0 if g is None else count_triples(g, s, p, o)

    def graph_names(self) -> Collection[str]:
        return self._graphs().keys()

    def _graph(self, name: str) -> Graph | None:
        """A named graph, or None if it does not exist (asking the knowledge would create it)."""
        return self._graphs().get(name)

    def _graphs(self) -> dict[str, Graph]:
        """The named graphs of this version."""
        if self._named_at != self._knowledge.version:
            self._named_at = self._knowledge.version
            self._named = {name: self._knowledge.graph(name) for name in self._knowledge.names()}
        return self._named

    def nodes(self, stream: str, graph: str | None) -> Iterable[tuple[str, int, int]]:
        g = None if stream else self._default if graph is None else self._graph(graph)
        if g is None:
            return ()
        ends = dict.fromkeys(x for s, _, o in g.match(None, None, None) for x in (s, o))
        return [(x, TIMELESS_START, TIMELESS_END) for x in ends]

    def intervals(
        self, node: str, stream: str, graph: str | None, without: Collection[Triple] = ()
    ) -> Iterable[tuple[int, int]]:
        g = None if stream else self._default if graph is None else self._graph(graph)
        if g is None:
            return ()
        triples = chain(g.match(node, None, None), g.match(None, None, node))
        # lazily: a node such as a class may be in very many triples, and the first one decides
        return ((TIMELESS_START, TIMELESS_END),) if any(t not in without for t in triples) else ()

    def objects_equal_to(self, key: Hashable, p: str, stream: str, graph: str | None) -> Collection[str]:
        g = None if stream else self._default if graph is None else self._graph(graph)
        return () if g is None else g.objects_equal_to(key, p)

    def as_for(self, predicates: Collection[str]) -> BackgroundSource:
        return self

    def upto(self, at: int | None) -> BackgroundSource:
        return self

    def events(self, stream: str) -> Iterable[Event]:
        return ()

    @property
    def beside_events(self) -> BackgroundSource:
        return self


class OccurrenceLog:
    """A growing set of occurrences in order of their ends, indexed on demand.

    Each index (by p, (p, s), (p, o), s, o, …) is built when a match first needs it and maintained from then on: an
    occurrence costs one list entry and one more for each index in use.  All lists are ordered by end, so that "up to
    t" is a prefix and ``prune`` removes one.
    """

    __slots__ = ("_all", "_indexes", "_last", "_newest", "_streams", "changes")

    def __init__(self) -> None:
        self._all: list[Occurrence] = []
        self._indexes: dict[str, dict[object, list[Occurrence]]] = {}
        self._streams: dict[str, OccurrenceLog] = {}
        self._last: int | None = None
        self._newest: set[object] = set()  # the occurrences that end at _last: only these may come again
        self.changes = 0

    def __len__(self) -> int:
        return len(self._all)

    def add(self, start: int, end: int, triples: Iterable[tuple[str, str, str]], stream: str = "") -> None:
        """Add the triples of one event, mostly the last to end; the same triple with the same interval counts once."""
        if self._last is not None and end < self._last:
            self._add_past(start, end, triples)
            if stream:
                self.of_stream(stream).add(start, end, triples)
            return
        if end != self._last:
            self._last = end
            self._newest.clear()
        fresh = []
        for s, p, o in triples:
            occurrence = (s, p, o, start, end)
            if occurrence not in self._newest:
                self._newest.add(occurrence)
                fresh.append(occurrence)
        self._all.extend(fresh)
        for mask, index in self._indexes.items():
            key_of = _KEYS[mask]
            for occurrence in fresh:
                index.setdefault(key_of(occurrence), []).append(occurrence)
        self.changes += 1
        if stream:
            self.of_stream(stream).add(start, end, triples)

    def _add_past(self, start: int, end: int, triples: Iterable[tuple[str, str, str]]) -> None:
        """Put what a rule derived after its end into its place."""
        at = bisect_left(self._all, end, key=_end)
        there = self._all[at : bisect_right(self._all, end, key=_end)]
        for s, p, o in triples:
            occurrence = (s, p, o, start, end)
            if occurrence in there:
                continue
            there.append(occurrence)
            insort(self._all, occurrence, key=_end)
            for mask, index in self._indexes.items():
                insort(index.setdefault(_KEYS[mask](occurrence), []), occurrence, key=_end)
        self.changes += 1

    def estimated_bytes(self) -> int:
        """About how much memory the occurrences take, from an evenly spread sample; indexes count for little."""
        sample = self._all[:: len(self._all) // 32 + 1]
        return sum(sum(map(len, x[:3])) + 350 for x in sample) * len(self._all) // max(1, len(sample))

    def of_stream(self, stream: str) -> OccurrenceLog:
        """The occurrences of one stream."""
        log = self._streams.get(stream)
        if log is None:
            log = self._streams[stream] = OccurrenceLog()
        return log

    def by_stream(self) -> dict[str, list[Occurrence]]:
        """All occurrences under the empty name, and those of each stream."""
        return {"": self._all, **{name: log._all for name, log in self._streams.items()}}

    def prune(self, before: int) -> int:
        """Forget the occurrences that end before the time; returns how many."""
        for log in self._streams.values():
            log.prune(before)
        gone = bisect_left(self._all, before, key=_end)
        if not gone:
            return 0
        del self._all[:gone]
        for index in self._indexes.values():
            for key in [k for k, bucket in index.items() if bucket[0][4] < before]:
                bucket = index[key]
                del bucket[: bisect_left(bucket, before, key=_end)]
                if not bucket:
                    del index[key]
        self.changes += 1
        return gone

    def bucket(self, s: str | None, p: str | None, o: str | None) -> list[Occurrence]:
        """The occurrences that match the terms, or (if all three are bound) a few more."""
        if p is not None:
            mask, key = ("ps", (p, s)) if s is not None else ("po", (p, o)) if o is not None else ("p", p)
        elif s is not None:
            mask, key = ("s", s) if o is None else ("so", (s, o))
        elif o is not None:
            mask, key = "o", o
        else:
            return self._all
        index = self._indexes.get(mask)
        if index is None:
            index = self._indexes[mask] = {}
            key_of = _KEYS[mask]
            for occurrence in self._all:
                index.setdefault(key_of(occurrence), []).append(occurrence)
        return index.get(key, _NOTHING)

    def match(self, s: str | None, p: str | None, o: str | None, at: int | None) -> Iterable[Occurrence]:
        occurrences = self.bucket(s, p, o)
        if at is not None and occurrences and occurrences[-1][4] > at:
            occurrences = occurrences[: bisect_right(occurrences, at, key=_end)]
        if s is not None and p is not None and o is not None:
            occurrences = [x for x in occurrences if x[2] == o]
        return occurrences


_NOTHING: list[Occurrence] = []
_KEYS = {
    "p": itemgetter(1),
    "ps": itemgetter(1, 0),
    "po": itemgetter(1, 2),
    "s": itemgetter(0),
    "so": itemgetter(0, 2),
    "o": itemgetter(2),
}


class HistorySource:
    """The background knowledge and the occurrences of a log, only those that end by ``at`` if it is given.

    ``events`` are the same occurrences as whole events, for EVENT; rules that ask for EVENT in the history are refused,
    so the history of an engine has none.
    """

    __slots__ = ("_at", "_background", "_events", "_log", "steps")

    timed = True

    def __init__(
        self, background: Source, log: OccurrenceLog, at: int | None = None, events: Sequence[Event] = ()
    ) -> None:
        self.steps = background.steps
        self._background, self._log, self._at, self._events = background, log, at, events

    @property
    def version(self) -> object:
        return self._background.version, self._log.changes

    def match(
        self, s: str | None, p: str | None, o: str | None, stream: str, graph: str | None
    ) -> Iterable[Occurrence]:
        if graph is not None:
            return () if stream else self._background.match(s, p, o, "", graph)
        if stream:
            return self._log.of_stream(stream).match(s, p, o, self._at)
        known = self._background.match(s, p, o, "", None)
        seen = self._log.match(s, p, o, self._at)
        return chain(known, seen) if known and seen else known or seen

    def count(self, s: str | None, p: str | None, o: str | None, graph: str | None) -> int:
        known = self._background.count(s, p, o, graph)
        return known if graph is not None else known + len(self._log.bucket(s, p, o))

    def graph_names(self) -> Collection[str]:
        return self._background.graph_names()

    def nodes(self, stream: str, graph: str | None) -> Iterable[tuple[str, int, int]]:
        if graph is not None:
            return () if stream else self._background.nodes("", graph)
        log = self._log.of_stream(stream) if stream else self._log
        seen = {(x, a, b) for s, _, o, a, b in log.match(None, None, None, self._at) for x in (s, o)}
        return sorted(seen) if stream else chain(self._background.nodes("", None), sorted(seen))

    def intervals(
        self, node: str, stream: str, graph: str | None, without: Collection[Triple] = ()
    ) -> Iterable[tuple[int, int]]:
        known = () if stream else self._background.intervals(node, "", graph, without)
        if graph is not None:
            return known
        log = self._log.of_stream(stream) if stream else self._log
        ways = chain(log.match(node, None, None, self._at), log.match(None, None, node, self._at))
        return chain(known, dict.fromkeys(x[3:] for x in ways if x[:3] not in without))

    def objects_equal_to(self, key: Hashable, p: str, stream: str, graph: str | None) -> Collection[str] | None:
        return None if graph is None or stream else self._background.objects_equal_to(key, p, stream, graph)

    def as_for(self, predicates: Collection[str]) -> HistorySource:
        return self

    def upto(self, at: int | None) -> HistorySource:
        if at is None or (self._at is not None and self._at <= at):
            return self
        return HistorySource(self._background, self._log, at, self._events)

    def events(self, stream: str) -> Iterable[Event]:
        at = self._at
        return (e for e in self._events if (at is None or e.end <= at) and stream in ("", e.stream))

    @property
    def beside_events(self) -> Source:
        return self._background


class EventSource:
    """The triples of one event, and the background without them."""

    __slots__ = ("_background", "_by_predicate", "_end", "_start", "_triples", "steps")

    timed = True

    def __init__(
        self, background: Source, triples: Mapping[tuple[str, str, str], object], start: int, end: int
    ) -> None:
        self.steps = background.steps
        self._background, self._triples, self._start, self._end = background, triples, start, end
        self._by_predicate: dict[str, list[Occurrence]] = {}
        for s, p, o in triples:
            self._by_predicate.setdefault(p, []).append((s, p, o, start, end))

    @property
    def version(self) -> object:
        return self

    def match(
        self, s: str | None, p: str | None, o: str | None, stream: str, graph: str | None
    ) -> Iterable[Occurrence]:
        if graph is not None:
            return self._background.match(s, p, o, "", graph)
        own = chain.from_iterable(self._by_predicate.values()) if p is None else self._by_predicate.get(p, ())
        matching = [x for x in own if (s is None or x[0] == s) and (o is None or x[2] == o)]
        return [*matching, *self._stored(s, p, o)]

    def _stored(self, s: str | None, p: str | None, o: str | None) -> Iterable[Occurrence]:
        """The matching background triples, except those that the event has as well: they count as the event's."""
        return (x for x in self._background.match(s, p, o, "", None) if x[:3] not in self._triples)

    def count(self, s: str | None, p: str | None, o: str | None, graph: str | None) -> int:
        known = self._background.count(s, p, o, graph)
        return (
            known if graph is not None else known + len(self._triples if p is None else self._by_predicate.get(p, ()))
        )

    def graph_names(self) -> Collection[str]:
        return self._background.graph_names()

    def nodes(self, stream: str, graph: str | None) -> Iterable[tuple[str, int, int]]:
        if graph is not None:
            return self._background.nodes("", graph)
        own = {x: None for s, _, o in self._triples for x in (s, o)}
        stored = {x: None for s, _, o, _, _ in self._stored(None, None, None) for x in (s, o)}
        of_event = ((x, self._start, self._end) for x in own)
        return chain(of_event, ((x, TIMELESS_START, TIMELESS_END) for x in stored))

    def intervals(
        self, node: str, stream: str, graph: str | None, without: Collection[Triple] = ()
    ) -> Iterable[tuple[int, int]]:
        if graph is not None:
            return self._background.intervals(node, "", graph, without)
        own = any(node in (t[0], t[2]) and t not in without for t in self._triples)
        stored = self._background.intervals(node, "", None, {*self._triples, *without})
        return ((self._start, self._end), *stored) if own else stored

    def objects_equal_to(self, key: Hashable, p: str, stream: str, graph: str | None) -> Collection[str] | None:
        known = self._background.objects_equal_to(key, p, "", graph)
        own = () if graph is not None else self._by_predicate.get(p, ())
        if known is None or not own:
            return known
        return dict.fromkeys((*(x[2] for x in own), *known))

    def as_for(self, predicates: Collection[str]) -> Source:
        return self._background if self._by_predicate.keys().isdisjoint(predicates) else self

    def upto(self, at: int | None) -> EventSource:
        """This source itself: an event is complete when it comes, so no occurrence in it is later."""
        return self

    def events(self, stream: str) -> Iterable[Event]:
        return ()

    @property
    def beside_events(self) -> Source:
        return self._background
