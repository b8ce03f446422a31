"""Finds out which queries feed which, and so the order in which an instant passes through the queries of a program.

The triples of a CONSTRUCT query are read by windows on its stream, and by every pattern of rules and facts that they
may match, for its stream or any stream.  At one instant a query comes after all that feed it: rules that are fed by
windows run after these windows, in an engine of their own; rules that feed one another stay together, since they may be
recursive.  Queries with windows, and facts, must not feed one another in a circle.

    rules 0 ──▶ windows and facts 0 ──▶ rules 1 ──▶ windows and facts 1 ──▶ …
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from etalis_rules import algebra as alg

from ..ast import Construct
from ..pipeline import CompiledQuery
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
    return {u.name: [v.name for v in units if _feeds(u, v, entails)] for u in units}


def stages_of(units: Sequence[Unit], entails: Entails | None = None) -> tuple[WindowStage, ...]:
    """The order of an instant.  Raises ``Circle``."""
    fed = readers_of(units, entails)
    kinds = {u.name: u.kind for u in units}
    beyond = {name: _reached(name, fed) for name in fed}
    for name in fed:
        circle = [other for other in fed if name in beyond[other] and other in beyond[name]]
        if any(kinds[other] != "rules" for other in circle):
            raise Circle(circle)
    level = dict.fromkeys(fed, 0)
    changed = True
    while changed:
        changed = False
        for one, others in fed.items():
            for other in others:
                least = level[one] + (kinds[other] == "rules" and kinds[one] != "rules")
                if level[other] < least:
                    level[other] = least
                    changed = True
    stages = []
    for number in range(max(level.values(), default=-1) + 1):
        here = [name for name in fed if level[name] == number]
        rules = tuple(name for name in here if kinds[name] == "rules")
        if rules:
            stages.append(WindowStage("rules", rules))
        waiting = [name for name in here if kinds[name] != "rules"]
        while waiting:
            name = next(n for n in waiting if not any(n in fed[other] for other in waiting))
            waiting.remove(name)
            stages.append(WindowStage(kinds[name], (name,)))
    return tuple(stages)


def _feeds(maker: Unit, reader: Unit, entails: Entails | None) -> bool:
    entailed = {e for triple in maker.makes for e in _entailed(triple, entails)}
    return any(
        stream in ("", maker.stream) and any(_meet(triple, wanted) for triple in entailed)
        for stream, wanted in reader.reads
        if entailed
    )


def _entailed(triple: Nodes, entails: Entails | None) -> Iterable[Nodes]:
    yield triple
    if entails is not None:
        s, p, o = (given or unknown for given, unknown in zip(triple, _UNKNOWN, strict=True))
        for entailed in entails((s, p, o)):
            a, b, c = ("" if node in _UNKNOWN else node for node in entailed)
            yield a, b, c


def _meet(one: Nodes, other: Nodes) -> bool:
    return all(a == b or not a or not b for a, b in zip(one, other, strict=True))


def _reached(name: str, fed: dict[str, list[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(fed[name])
    while waiting:
        here = waiting.pop()
        if here not in reached:
            reached.add(here)
            waiting += fed[here]
    return reached
