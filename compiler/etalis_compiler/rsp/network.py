"""Finds out which queries feed which, and so the order in which an instant passes through the queries of a program.

The triples of a CONSTRUCT query are read by windows on its stream, and by every pattern of rules and facts that they
may match, for its stream or any stream.  At one instant a query comes after all that feed it: rules that are fed by
windows run after these windows, in an engine of their own; rules that feed one another stay together, since they may be
recursive.  Queries with windows, and facts, must not feed one another in a circle.

    rules 0 ──▶ windows and facts 0 ──▶ rules 1 ──▶ windows and facts 1 ──▶ …
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from etalis_rules import algebra as alg

from ..ast import Construct
from ..pipeline import CompiledQuery
from ..stratify import ReaderIndex, strong_components
from .plan import Current, Fact, WindowPlan

Nodes = tuple[str, str, str]
"""The terms of a triple; an empty string stands for any."""

Entails = Callable[[Nodes], Iterable[Nodes]]
"""The triples that a triple entails."""

ANYTHING: Nodes = ("", "", "")
_UNKNOWN = ("<.s>", "<.p>", "<.o>")  # placeholders for variables when entailed triples are looked up


@dataclass(frozen=True, slots=True)
class Unit:
    """The inputs and outputs of a query.

    ``reads`` has pairs of a stream (empty: any) and a triple; ``makes`` the triples that go into ``stream``, and is
    empty for a query that feeds nothing.
    """

    name: str
    kind: str  # "rules", "windows" or "fact"
    reads: tuple[tuple[str, Nodes], ...]
    stream: str = ""
    makes: tuple[Nodes, ...] = ()


@dataclass(frozen=True, slots=True)
class WindowStage:
    """Queries that an instant passes through together (``rules``) or one after another."""

    kind: str
    names: tuple[str, ...]


class Circle(ValueError):
    """Queries that feed one another, with windows or facts among them."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"the queries {', '.join(names)} feed one another in a circle")
        self.names = tuple(names)


def unit_of_plan(plan: WindowPlan) -> Unit:
    reads = [(stream, ANYTHING) for stream in sorted(plan.streams)]
    for window in plan.windows:
        if isinstance(window.shape, Current):
            reads += [read for fact in window.shape.facts for read in unit_of_fact(fact).reads]
    makes = tuple(map(_nodes, plan.template)) or (ANYTHING,)
    return Unit(plan.name, "windows", tuple(reads), plan.feeds, makes if plan.feeds else ())


def unit_of_fact(fact: Fact) -> Unit:
    reads = tuple(("", read) for pattern in (*fact.since, *fact.till) for _, read in _read(pattern))
    return Unit(fact.name, "fact", reads, fact.feeds, tuple(map(_nodes, fact.template)))


def unit_of_rule(query: CompiledQuery) -> Unit:
    register = query.syntax.register
    stream = register.name if register is not None and register.kind == "STREAM" else ""
    makes = tuple(map(_nodes, query.template)) if isinstance(query.syntax.form, Construct) else ()
    return Unit(query.name, "rules", tuple(_read(alg.SubSelect(query.algebra))), stream, makes)


def _read(pattern: alg.Pattern) -> Iterable[tuple[str, Nodes]]:
    """The streams and triples that a pattern looks for outside stored graphs."""
    for part in alg.read_of_stream(pattern):
        triples = alg.triples_of(part)
        yield from ((part.stream, nodes) for nodes in ([ANYTHING] if triples is None else map(_nodes, triples)))


def _nodes(triple: Any) -> Nodes:
    return alg.triple_in({}, triple)


def readers_of(units: Sequence[Unit], entails: Entails | None = None) -> dict[str, list[str]]:
    """For each query, the queries that read the triples it makes."""
    index: ReaderIndex[tuple[int, Nodes]] = ReaderIndex()
    for place, unit in enumerate(units):
        for stream, (s, p, o) in unit.reads:
            index.add(stream, p, o, (place, (s, p, o)))
    return {maker.name: [units[place].name for place in _fed(maker, index, entails)] for maker in units}


def _fed(maker: Unit, index: ReaderIndex[tuple[int, Nodes]], entails: Entails | None) -> list[int]:
    """The places of the queries that read what this one makes, in order."""
    found: set[int] = set()
    for triple in {entailed for made in maker.makes for entailed in _entailed(made, entails)}:
        _, p, o = triple
        found.update(place for place, wanted in index.near(maker.stream, p, o) if _meet(triple, wanted))
    return sorted(found)


def stages_of(units: Sequence[Unit], entails: Entails | None = None) -> tuple[WindowStage, ...]:
    """The order of an instant.  Raises ``Circle``."""
    fed = readers_of(units, entails)
    kinds = {u.name: u.kind for u in units}
    components = strong_components(list(fed), fed)
    _refuse_circles(components, fed, kinds)
    levels: dict[int, list[str]] = {}
    for name, level in _levels(components, fed, kinds).items():
        levels.setdefault(level, []).append(name)
    stages = []
    for _, here in sorted(levels.items()):
        rules = tuple(name for name in here if kinds[name] == "rules")
        if rules:
            stages.append(WindowStage("rules", rules))
        others = [name for name in here if kinds[name] != "rules"]
        stages += [WindowStage(kinds[name], (name,)) for name in _after_their_makers(others, fed)]
    return tuple(stages)


def _refuse_circles(components: Iterable[list[str]], fed: Mapping[str, list[str]], kinds: Mapping[str, str]) -> None:
    """Raise ``Circle`` for the first query of a component that feeds itself, with windows or facts in it."""
    places = {name: place for place, name in enumerate(fed)}
    circles = [
        sorted(component, key=places.__getitem__)
        for component in components
        if (len(component) > 1 or component[0] in fed[component[0]])
        and any(kinds[name] != "rules" for name in component)
    ]
    if circles:
        raise Circle(min(circles, key=lambda circle: places[circle[0]]))


def _levels(components: Iterable[list[str]], fed: Mapping[str, list[str]], kinds: Mapping[str, str]) -> dict[str, int]:
    """How many turns from windows and facts to rules lead to each query, at most."""
    levels = dict.fromkeys(fed, 0)
    for component in components:  # a component comes after all that feed it
        here = max(levels[name] for name in component)
        for name in component:
            levels[name] = here
            for reader in fed[name]:
                turn = kinds[reader] == "rules" and kinds[name] != "rules"
                levels[reader] = max(levels[reader], here + turn)
    return levels


def _after_their_makers(names: Sequence[str], fed: Mapping[str, list[str]]) -> Iterator[str]:
    """These queries, each after those that feed it, else in their order."""
    places = {name: place for place, name in enumerate(names)}
    awaited = Counter(reader for name in names for reader in fed[name])
    ready = [place for place, name in enumerate(names) if not awaited[name]]  # in order, so it is a heap
    while ready:
        name = names[heappop(ready)]
        yield name
        for reader in fed[name]:
            awaited[reader] -= 1
            if not awaited[reader] and reader in places:
                heappush(ready, places[reader])


def _entailed(triple: Nodes, entails: Entails | None) -> Iterable[Nodes]:
    yield triple
    if entails is not None:
        s, p, o = (given or unknown for given, unknown in zip(triple, _UNKNOWN, strict=True))
        for entailed in entails((s, p, o)):
            a, b, c = ("" if node in _UNKNOWN else node for node in entailed)
            yield a, b, c


def _meet(one: Nodes, other: Nodes) -> bool:
    return all(a == b or not a or not b for a, b in zip(one, other, strict=True))
