"""The dataset of one time, as the backward evaluator reads it ([RSPQL] Definition 14, [RSEP] Definition 4).

It has stored graphs and window contents; a window is read as a stream with its name.  A source stays the same object
while the contents of its windows slide, so that patterns are prepared, and their join order chosen, only once.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from itertools import chain

from etalis_compiler.rsp.plan import OBJECT, PREDICATE, SUBJECT, TIME
from etalis_rules.terms import XSD, literal

from etalis_py.events import Event, Triple
from etalis_py.events.clock import render_datetime
from etalis_py.executors.windows.content import Content, CountedGraph
from etalis_py.knowledge.graph import Graph
from etalis_py.sparql import OccurrenceLog
from etalis_py.sparql.sources import Graph as GraphLike
from etalis_py.sparql.sources import Knowledge, Occurrence, count_triples
from etalis_py.values.limits import LIMITS
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

GENERATED_AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
"""In a window, (the name of an item's graph, this, the item's time) is known too, as the stream states it ([REQ])."""


def moment(us: int) -> str:
    """A time as an xsd:dateTime term."""
    return literal(render_datetime(us), XSD + "dateTime")


class StoredGraphs:
    """The stored graphs that a query sees: its FROM and FROM NAMED, or the background as it is."""

    __slots__ = ("_graphs", "_knowledge", "_named", "_restricted", "changes", "steps")

    def __init__(
        self,
        knowledge: Knowledge,
        graphs: tuple[str, ...] = (),
        named: tuple[str, ...] = (),
        restricted: bool = False,
        steps: int | None = LIMITS.steps,
    ) -> None:
        self.steps = steps
        self._knowledge = knowledge
        self._graphs, self._named, self._restricted = graphs, named, restricted
        self.changes = 0

    @property
    def version(self) -> object:
        return self._knowledge.version

    def default(self) -> list[GraphLike]:
        """The graphs whose merge is the stored part of the default graph."""
        if not self._restricted:
            return [self._knowledge.default]
        return [self._knowledge.graph(g) for g in self._graphs]

    def names(self) -> list[str]:
        names = list(self._knowledge.names())
        return [n for n in names if n in self._named] if self._restricted else names

    def graph(self, name: str) -> GraphLike | None:
        return self._knowledge.graph(name) if name in self.names() else None


class WindowSource:
    """A source of timeless triples: SPARQL over what the windows hold."""

    __slots__ = ("_beside", "_default", "_duplicates", "_extra", "_stored", "_windows", "step", "steps")

    timed = False

    def __init__(
        self,
        stored: StoredGraphs,
        windows: Mapping[str, Content],
        default: Collection[str] = (),
        duplicates: bool = False,
    ) -> None:
        self.steps = stored.steps
        self._stored = stored
        self._windows = dict(windows)
        self._default = [windows[name] for name in default]
        self._duplicates = duplicates
        self._beside: WindowSource | None = None
        self._extra: dict[str, GraphLike] = {}
        self.step = 0

    def at(self, extra: Mapping[str, GraphLike]) -> None:
        """A new evaluation: the windows have moved; ``extra`` are the results of MATCH and timestamp(), by stream."""
        self._extra = dict(extra)
        self.step += 1

    @property
    def version(self) -> object:
        return self._stored.version, self.step

    def _graphs(self, stream: str, graph: str | None) -> list[GraphLike | CountedGraph]:
        if not stream:
            if graph is not None:
                stored = self._stored.graph(graph)
                return [] if stored is None else [stored]
            return [*self._stored.default(), *self._default]
        if stream in self._extra:
            return [] if graph is not None else [self._extra[stream]]
        window = self._windows.get(stream)
        if window is None:
            return []
        if graph is None:
            return [window]
        named = window.named.get(graph)
        return [] if named is None else [named]

    def _triples(self, s: str | None, p: str | None, o: str | None, stream: str, graph: str | None) -> Iterator[Triple]:
        graphs = self._graphs(stream, graph)
        yield from _merged([g for g in graphs if not isinstance(g, CountedGraph)], s, p, o)
        for g in graphs:
            if not isinstance(g, CountedGraph):
                continue
            if self._duplicates:
                for t in g.graph.match(s, p, o):
                    for _ in range(g.counts[t]):
                        yield t
            else:
                yield from g.graph.match(s, p, o)
        if p == GENERATED_AT and graph is None:
            for g in graphs:
                if isinstance(g, Content):
                    for name, at in g.names:
                        if s in (None, name) and o in (None, moment(at)):
                            yield name, p, moment(at)

    def match(
        self, s: str | None, p: str | None, o: str | None, stream: str, graph: str | None
    ) -> Iterable[Occurrence]:
        triples: Iterable[Triple] = self._triples(s, p, o, stream, graph)
        if not stream and graph is None and self._default and not self._duplicates:
            triples = dict.fromkeys(triples)  # a merge of several graphs is a set
        return [(a, b, c, TIMELESS_START, TIMELESS_END) for a, b, c in triples]

    def count(self, s: str | None, p: str | None, o: str | None, graph: str | None) -> int:
        graphs: list[GraphLike] = []
        if graph is None:
            graphs += self._stored.default()
            graphs += [w.graph for w in self._windows.values()]
        else:
            stored = self._stored.graph(graph)
            graphs += [stored] if stored is not None else []
        return sum(count_triples(g, s, p, o) for g in graphs)

    def graph_names(self) -> Collection[str]:
        names = dict.fromkeys(self._stored.names())
        for window in self._windows.values():
            names |= dict.fromkeys(window.named)
        return names

    def nodes(self, stream: str, graph: str | None) -> Iterable[tuple[str, int, int]]:
        ends = dict.fromkeys(x for s, _, o in self._triples(None, None, None, stream, graph) for x in (s, o))
        return [(x, TIMELESS_START, TIMELESS_END) for x in ends]

    def intervals(
        self, node: str, stream: str, graph: str | None, without: Collection[Triple] = ()
    ) -> Iterable[tuple[int, int]]:
        triples = chain(self._triples(node, None, None, stream, graph), self._triples(None, None, node, stream, graph))
        return ((TIMELESS_START, TIMELESS_END),) if any(t not in without for t in triples) else ()

    def objects_equal_to(self, key: Hashable, p: str, stream: str, graph: str | None) -> Collection[str] | None:
        if p == GENERATED_AT and graph is None:
            return None
        graphs = (g.graph if isinstance(g, CountedGraph) else g for g in self._graphs(stream, graph))
        return dict.fromkeys(chain.from_iterable(g.objects_equal_to(key, p) for g in graphs))

    def as_for(self, predicates: Collection[str]) -> WindowSource:
        return self

    def upto(self, at: int | None) -> WindowSource:
        return self

    def events(self, stream: str) -> Iterable[Event]:
        if not stream:
            return chain.from_iterable(window.items() for window in self._default)
        window = self._windows.get(stream)
        return () if window is None else window.items()

    @property
    def beside_events(self) -> WindowSource:
        """The stored graphs alone."""
        if self._beside is None:
            self._beside = WindowSource(self._stored, {})
        return self._beside


def _merged(graphs: list[GraphLike], s: str | None, p: str | None, o: str | None) -> Iterable[Triple]:
    """The triples of the merge of these graphs, which is a set: one that several FROM graphs state is one."""
    if len(graphs) == 1:
        return graphs[0].match(s, p, o)
    return dict.fromkeys(chain.from_iterable(g.match(s, p, o) for g in graphs))


class TimedDataset:
    """A source of occurrences for EP-SPARQL's operators inside MATCH: the windows' items with their times."""

    __slots__ = ("_at", "_default", "_logs", "_stored", "_token", "_windows", "steps")

    timed = True

    def __init__(
        self,
        stored: StoredGraphs,
        windows: Mapping[str, Content],
        default: Collection[str] = (),
        at: int | None = None,
    ) -> None:
        self.steps = stored.steps
        self._stored = stored
        self._windows = {name: window.items() for name, window in windows.items()}
        self._windows[""] = sorted((i for name in default for i in self._windows[name]), key=lambda i: i.end)
        self._logs = {name: log_of(items) for name, items in self._windows.items()}
        self._at = at
        self._token = object()

    @property
    def version(self) -> object:
        return self._token

    def _log(self, stream: str) -> OccurrenceLog:
        return self._logs.get(stream, _EMPTY)

    def match(
        self, s: str | None, p: str | None, o: str | None, stream: str, graph: str | None
    ) -> Iterable[Occurrence]:
        if graph is not None:
            stored = None if stream else self._stored.graph(graph)
            graphs = [] if stored is None else [stored]
        else:
            graphs = [] if stream else self._stored.default()
        known: dict[Occurrence, None] = {}
        for g in graphs:
            known |= dict.fromkeys((a, b, c, TIMELESS_START, TIMELESS_END) for a, b, c in g.match(s, p, o))
        if graph is None:
            return [*known, *self._log(stream).match(s, p, o, self._at)]
        return list(known)

    def count(self, s: str | None, p: str | None, o: str | None, graph: str | None) -> int:
        return sum(len(log.bucket(s, p, o)) for log in self._logs.values())

    def graph_names(self) -> Collection[str]:
        return self._stored.names()

    def nodes(self, stream: str, graph: str | None) -> Iterable[tuple[str, int, int]]:
        return sorted({(x, a, b) for s, _, o, a, b in self.match(None, None, None, stream, graph) for x in (s, o)})

    def intervals(
        self, node: str, stream: str, graph: str | None, without: Collection[Triple] = ()
    ) -> Iterable[tuple[int, int]]:
        ways = chain(self.match(node, None, None, stream, graph), self.match(None, None, node, stream, graph))
        return dict.fromkeys(x[3:] for x in ways if x[:3] not in without)

    def objects_equal_to(self, key: Hashable, p: str, stream: str, graph: str | None) -> None:
        return None

    def as_for(self, predicates: Collection[str]) -> TimedDataset:
        return self

    def upto(self, at: int | None) -> TimedDataset:
        if at is None or (self._at is not None and self._at <= at):
            return self
        other = TimedDataset.__new__(TimedDataset)
        other._stored, other._logs, other._windows = self._stored, self._logs, self._windows
        other._at, other._token, other.steps = at, self._token, self.steps
        return other

    def events(self, stream: str) -> Iterable[Event]:
        at = self._at
        return (item for item in self._windows.get(stream, ()) if at is None or item.end <= at)

    @property
    def beside_events(self) -> WindowSource:
        return WindowSource(self._stored, {})


def log_of(items: Iterable[Event]) -> OccurrenceLog:
    """Items in order of their ends, as a log of occurrences."""
    log = OccurrenceLog()
    for item in items:
        log.add(item.start, item.end, item.triples)
    return log


_EMPTY = OccurrenceLog()


def times_graph(latest: Mapping[Triple, int]) -> Graph:
    """The latest times of triples as triples, in which ``timestamp()`` is looked up."""
    rows = []
    for number, ((s, p, o), at) in enumerate(latest.items()):
        row = f"_:.time{number}"
        rows += [(row, SUBJECT, s), (row, PREDICATE, p), (row, OBJECT, o), (row, TIME, moment(at))]
    return Graph(rows)
