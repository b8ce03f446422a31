"""Property paths, evaluated from a bound end where there is one.

Definition: a path is a relation of ⟨x, y, start, end⟩.  A step is the occurrences (and background triples) of its
predicate; a chain joins with the hull as interval; ``*``, ``+`` and ``?`` are the least relations closed under that
join (sets).  A zero-length step has the intervals of the occurrences that contain its node; that of a constant is
timeless and needs no occurrence ([SPARQL 1.1 Query] §18.4).  Over timeless triples this is SPARQL's definition, and a
closure from one end is a breadth-first search, linear in the edges it can reach.  Between two given ends it costs what
the cheaper of the two searches does, times a constant.

Chains, alternatives and negated sets are multisets, as in SPARQL; nothing inside a closure is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from etalis_rules.algebra import Chain, Choice, Const, Inverse, NotAny, Path, PathPattern, Repeated, Step, Var, invert

from etalis_py.sparql.run import Bindings, EvaluationRun, Runner, Solution
from etalis_py.sparql.scoping import Env
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

End = tuple[str, int, int]
"""The ends of a path from a given node, each with the hull of the route."""
Pair = tuple[str, str, int, int]
Edge = tuple[str, str, str, int, int]

_FEW, _MORE = 64, 8
"""After so many edges, a search between two given ends is tried from the other end; then after so many times more."""


class _TooFarError(Exception):
    """A search has taken as many edges as it may."""


class _OtherWayError(Exception):
    """The search from the other end was over first: the intervals it found."""

    def __init__(self, found: list[tuple[int, int]]) -> None:
        super().__init__()
        self.found = found


class Place:
    """The place where a path is searched: a stream and a graph of one run.  ``constants`` are ends that are terms."""

    __slots__ = ("_spend", "_zero", "constants", "graph", "run", "stream")

    def __init__(self, run: EvaluationRun, stream: str, graph: str | None, constants: frozenset[str]) -> None:
        self.run, self.stream, self.graph, self.constants = run, stream, graph, constants
        self._zero: dict[str, list[tuple[int, int]]] = {}
        self._spend: Callable[[], None] | None = None

    def counted(self, spend: Callable[[], None]) -> Place:
        """The same place, for a search that calls ``spend`` at each look-up and each edge."""
        place = Place(self.run, self.stream, self.graph, self.constants)
        place._spend = spend
        return place

    def match(self, s: str | None, p: str | None, o: str | None) -> Iterable[Edge]:
        found = self.run.match(s, p, o, self.stream, self.graph)
        return found if self._spend is None else _counted(found, self._spend)

    def nodes(self) -> Iterable[End]:
        return self.run.source.nodes(self.stream, self.graph)

    def zero(self, node: str) -> list[tuple[int, int]]:
        """The intervals of the zero-length step at a node."""
        intervals = self._zero.get(node)
        if intervals is None:
            if node in self.constants:
                intervals = [(TIMELESS_START, TIMELESS_END)]
            else:
                intervals = list(self.run.source.intervals(node, self.stream, self.graph))
            self._zero[node] = intervals
        return intervals


def _counted(found: Iterable[Edge], spend: Callable[[], None]) -> Iterator[Edge]:
    spend()
    for edge in found:
        yield edge
        spend()


Forward = Callable[[str, Place], Iterable[End]]
Pairs = Callable[[Place], Iterable[Pair]]
Search = tuple[Forward, str, str]
"""A walk, where it starts and where it is to end."""


def inward(path: Path) -> Path:
    """The path with inversions only at single edges."""
    match path:
        case Inverse(Step() | NotAny()):
            return path
        case Inverse(inner):
            return inward(invert(inward(inner)))
        case Chain(first, second):
            return Chain(inward(first), inward(second))
        case Choice(first, second):
            return Choice(inward(first), inward(second))
        case Repeated(inner, minimum, many):
            return Repeated(inward(inner), minimum, many)
    return path


# --- from one node ---------------------------------------------------------------------------------------------


def forward(path: Path) -> Forward:
    """From a node to the ends of the path."""
    match path:
        case Step(iri):
            return lambda x, place: [(o, a, b) for _, _, o, a, b in place.match(x, iri, None)]
        case Inverse(Step(iri)):
            return lambda x, place: [(s, a, b) for s, _, _, a, b in place.match(None, iri, x)]
        case NotAny(iris):
            barred = frozenset(iris)
            return lambda x, place: [(o, a, b) for _, p, o, a, b in place.match(x, None, None) if p not in barred]
        case Inverse(NotAny(iris)):
            barred = frozenset(iris)
            return lambda x, place: [(s, a, b) for s, p, _, a, b in place.match(None, None, x) if p not in barred]
        case Choice(first, second):
            return _either(forward(first), forward(second))
        case Chain(first, second):
            return _chained(forward(first), forward(second))
        case Repeated(inner, minimum, many):
            return _repeated(forward(inner), minimum, many)
    raise TypeError(f"not a path: {path!r}")


def _either(first: Forward, second: Forward) -> Forward:
    def walk(x: str, place: Place) -> Iterator[End]:
        yield from first(x, place)
        yield from second(x, place)

    return walk


def _chained(first: Forward, second: Forward) -> Forward:
    def walk(x: str, place: Place) -> Iterator[End]:
        for y, a1, b1 in first(x, place):
            for z, a2, b2 in second(y, place):
                yield z, a1 if a1 < a2 else a2, b1 if b1 > b2 else b2

    return walk


def _repeated(once: Forward, minimum: int, many: bool) -> Forward:
    def walk(x: str, place: Place) -> Iterator[End]:
        here = (x, TIMELESS_START, TIMELESS_END)
        seen: set[End] = set()
        still: set[End] = set()  # ends of zero-length steps: a route back to one adds nothing, but is followed further
        if minimum == 0:
            for a, b in place.zero(x):
                still.add((x, a, b))
                yield x, a, b
        # SPARQL's ALP visits a node only once: a route back to a constant adds nothing.
        once_only = minimum == 0 and x in place.constants
        frontier = [here]
        while frontier:
            reached = []
            for y, a1, b1 in frontier:
                for z, a2, b2 in once(y, place):
                    end = (z, a1 if a1 < a2 else a2, b1 if b1 > b2 else b2)
                    if end not in seen:
                        seen.add(end)
                        reached.append(end)
                        if end not in still and not (once_only and z == x):
                            yield end
            frontier = reached if many else []

    return walk


# --- between two given nodes -------------------------------------------------------------------------------------


def _between(ahead: Search, back: Search, place: Place) -> Iterator[tuple[int, int]]:
    """The intervals of a path between two nodes, in about the time that the shorter search takes.

    From one end there may be few edges and from the other all there are: up from a class, or down from the root.  So a
    search that goes on and on lets the one from the other end try, from time to time, to be over within as many edges.
    Both find the same intervals, each as often.
    """
    taken = 0
    bound = _FEW

    def spend() -> None:
        nonlocal taken, bound
        taken += 1
        if taken == bound:
            bound *= _MORE
            found = _within(taken, back, place)
            if found is not None:
                raise _OtherWayError(found)

    given: Counter[tuple[int, int]] = Counter()
    walk, start, end = ahead
    try:
        for z, a, b in walk(start, place.counted(spend)):
            if z == end:
                given[a, b] += 1
                yield a, b
    except _OtherWayError as other:
        yield from (Counter(other.found) - given).elements()


def _within(most: int, search: Search, place: Place) -> list[tuple[int, int]] | None:
    """What a search finds; ``None`` if that takes more than so many edges."""
    left = most

    def spend() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise _TooFarError

    walk, start, end = search
    try:
        return [(a, b) for z, a, b in walk(start, place.counted(spend)) if z == end]
    except _TooFarError:
        return None


# --- both ends open --------------------------------------------------------------------------------------------


def pairs(path: Path) -> Pairs:
    """All pairs of the path."""
    match path:
        case Step(iri):
            return lambda place: [(s, o, a, b) for s, _, o, a, b in place.match(None, iri, None)]
        case Inverse(Step(iri)):
            return lambda place: [(o, s, a, b) for s, _, o, a, b in place.match(None, iri, None)]
        case NotAny(iris):
            barred = frozenset(iris)
            return lambda place: [(s, o, a, b) for s, p, o, a, b in place.match(None, None, None) if p not in barred]
        case Inverse(NotAny(iris)):
            barred = frozenset(iris)
            return lambda place: [(o, s, a, b) for s, p, o, a, b in place.match(None, None, None) if p not in barred]
        case Choice(first, second):
            left, right = pairs(first), pairs(second)
            return lambda place: (pair for side in (left, right) for pair in side(place))
        case Chain(first, second):
            return _chained_pairs(pairs(first), forward(second))
        case Repeated(inner, minimum, _):
            return _repeated_pairs(pairs(inner), forward(path), minimum)
    raise TypeError(f"not a path: {path!r}")


def _chained_pairs(first: Pairs, second: Forward) -> Pairs:
    def walk(place: Place) -> Iterator[Pair]:
        for x, y, a1, b1 in first(place):
            for z, a2, b2 in second(y, place):
                yield x, z, min(a1, a2), max(b1, b2)

    return walk


def _repeated_pairs(once: Pairs, closure: Forward, minimum: int) -> Pairs:
    def walk(place: Place) -> Iterator[Pair]:
        starts = dict.fromkeys(x for x, _, _, _ in once(place))
        if minimum == 0:
            starts |= dict.fromkeys(x for x, _, _ in place.nodes())
        for x in starts:
            for y, a, b in closure(x, place):
                yield x, y, a, b

    return walk


# --- the operator ----------------------------------------------------------------------------------------------


def compile_path(pattern: PathPattern, env: Env) -> Runner:
    """The path pattern as an operator.

    An end that was passed sideways, and is not a constant of the query, has a zero-length step only if it is a node of
    the graph, as in bottom-up evaluation.
    """
    path = inward(pattern.path)
    subject, object_, graph = pattern.subject, pattern.object, pattern.graph
    ahead, back, both = forward(path), forward(inward(invert(path))), pairs(path)
    fixed = [n for n in (subject, object_) if isinstance(n, Const) or n.name in env.anchored]

    def solutions(x: str | None, y: str | None, place: Place) -> Iterable[Pair]:
        if x is not None and y is not None:
            return ((x, y, a, b) for a, b in _between((ahead, x, y), (back, y, x), place))
        if x is not None:
            return ((x, z, a, b) for z, a, b in ahead(x, place))
        if y is not None:
            return ((z, y, a, b) for z, a, b in back(y, place))
        return both(place)

    def run_path(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        for g, inner in _graphs(graph, mu, run):
            x, y = _value(subject, inner), _value(object_, inner)
            place = Place(run, pattern.stream, g, frozenset(n for n in (_value(f, inner) for f in fixed) if n))
            for s, o, a, b in solutions(x, y, place):
                solution = inner
                if x is None:
                    solution = {**inner, subject.name: s}  # type: ignore[union-attr]
                if y is None:
                    name = object_.name  # type: ignore[union-attr]
                    if solution.get(name, o) != o:
                        continue
                    solution = {**solution, name: o}
                yield solution, a, b

    return run_path


def _value(node: Var | Const, mu: Bindings) -> str | None:
    return node.term if isinstance(node, Const) else mu.get(node.name)


def _graphs(graph: Var | Const | None, mu: Bindings, run: EvaluationRun) -> Iterator[tuple[str | None, Bindings]]:
    """The graphs to look in, with the binding of the graph's variable."""
    if graph is None:
        yield None, mu
        return
    names = run.source.graph_names()
    wanted = _value(graph, mu)
    if wanted is None:
        for g in names:
            yield g, {**mu, graph.name: g}  # type: ignore[union-attr]
    elif wanted in names:  # a graph that does not exist has no zero-length steps
        yield wanted, mu
