"""In which order rules are decided within an instant (docs/semantics.md, Rules).

A rule depends on another when a triple that the other makes may match one of its patterns.  The dependency is
*negative* under the OPTIONAL family, MINUS, EXISTS, aggregates, LIMIT, a consuming policy or the NOT of a deadline; it
is *strictly delayed*, and then no dependency within the instant, where a side ends before what it is part of: the left
of SEQ, MEETS, OVERLAPS, STARTS, DURING (or OPTIONALSEQ) when the right certainly holds an occurrence, the left of NEXT
and of SEQ NOT, and what NOT keeps out of an interval that ends later.  What may be known later than it ends, the rows
of an aggregate and what rules derive from them, is not delayed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from etalis_compiler import ast

from .plan import (
    Beginning,
    Block,
    Difference,
    Filtered,
    InGraph,
    InStream,
    OneEvent,
    Optionally,
    Outer,
    Pair,
    Plan,
    Runs,
    Skipped,
    Sub,
    Union,
    Without,
    is_aggregated,
    plain_walk,
    plan_group,
)

Triple = tuple[str, str, str]
Shape = tuple[str | None, str | None, str | None]  # None: any term
DELAYED = ("SEQ", "NEXT", "MEETS", "OVERLAPS", "STARTS", "DURING")
CHANGING = ("NOW", "RAND", "UUID", "STRUUID", "BNODE")
Begins = Callable[[ast.Query], bool]


class Unstratified(Exception):
    """Rules that depend on their own absence within one instant."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A CONSTRUCT query: its number, its plan, the policy it runs under and the stream it writes to."""

    index: int
    query: ast.Query
    plan: Plan
    policy: str
    stream: str

    @property
    def template(self) -> tuple[ast.TriplePattern, ...]:
        assert isinstance(self.query.form, ast.Construct)
        if self.query.form.template is not None:
            return self.query.form.template
        assert self.query.where
        return tuple(p for e in self.query.where.elements if isinstance(e, ast.Triples) for p in e.patterns)


@dataclass(frozen=True, slots=True)
class Reading:
    """One pattern that a rule reads: its constants, the stream it is restricted to, and whether negatively."""

    shape: Shape
    stream: str | None
    negative: bool


def strata(rules: Sequence[Rule], background: Collection[Triple]) -> list[list[Rule]]:
    """Groups of mutually dependent rules, what is read before what reads it."""
    edges: dict[int, dict[int, bool]] = {}
    past = past_rules(rules, background)
    for rule in rules:
        edges[rule.index] = {}
        for reading in readings(rule, background, past):
            for maker in rules:
                if _feeds(maker, reading):
                    edges[rule.index][maker.index] = edges[rule.index].get(maker.index, False) or reading.negative
    reach = {r.index: _reachable(r.index, edges) for r in rules}
    for rule in rules:
        for maker, negative in edges[rule.index].items():
            if negative and rule.index in reach[maker] | {maker}:
                raise Unstratified(f"rule {rule.index} depends on its own absence through rule {maker}")
    ordered: list[list[Rule]] = []
    left = list(rules)
    while left:
        ready = next(r for r in left if not _waits(r, left, reach))
        component = [r for r in left if r is ready or (r.index in reach[ready.index] and ready.index in reach[r.index])]
        ordered.append(component)
        left = [r for r in left if r not in component]
    return ordered


def _waits(rule: Rule, left: Sequence[Rule], reach: dict[int, set[int]]) -> bool:
    """Whether the rule reads, perhaps through others, one of these that does not read it."""
    return any(r.index in reach[rule.index] and rule.index not in reach[r.index] for r in left)


def _reachable(start: int, edges: dict[int, dict[int, bool]]) -> set[int]:
    found: set[int] = set()
    todo = list(edges[start])
    while todo:
        here = todo.pop()
        if here not in found:
            found.add(here)
            todo += edges[here]
    return found


def _feeds(maker: Rule, reading: Reading) -> bool:
    if reading.stream is not None and reading.stream != maker.stream:
        return False
    return any(_unify(t, reading.shape) for t in maker.template)


def _unify(made: ast.TriplePattern, shape: Shape) -> bool:
    for node, wanted in zip((made.subject, made.predicate, made.object), shape, strict=True):
        if wanted is None or isinstance(node, ast.Var):
            continue
        if isinstance(node, ast.Blank) or (isinstance(node, ast.Term) and node.spelling != wanted):
            return False
    return True


def past_rules(rules: Sequence[Rule], background: Collection[Triple]) -> list[Rule]:
    """The rules that may derive what ends before the instant in which it is known."""
    found: list[Rule] = []
    while True:
        more = [
            r for r in rules if r not in found and (_unentered(r.query) or _sees_past(r.plan, "", background, found))
        ]
        if not more:
            return found
        found += more


def _unentered(query: ast.Query) -> bool:
    """Whether a row of an aggregate may change though nothing entered its group: something left, or was asked for."""
    if not is_aggregated(query):
        return False
    shown = query.form.projections if isinstance(query.form, ast.Select) else ()
    asked = list(plain_walk((shown, query.having)))
    asks = any(isinstance(n, ast.Exists) or (isinstance(n, ast.Call) and n.name in CHANGING) for n in asked)
    leaves = query.within is not None and query.within.kind == "duration"
    return query.limit is not None or bool(query.offset) or (bool(query.group_by) and (leaves or asks))


def _sees_past(
    plan: Plan, stream: str, background: Collection[Triple], past: Sequence[Rule], begins: Begins = _unentered
) -> bool:
    """Whether a solution may end before it is known: it has a row of an aggregate, or what one of these rules made.

    NEXT, absence, REPEAT and SKIP decide in time, and by what was known in time.
    """
    match plan:
        case Sub(query, _) if begins(query):
            return True
        case Pair("NEXT") | Without() | Optionally() | Runs() | Skipped() | InGraph():
            return False
        case Block() | OneEvent():
            return any(_feeds(rule, reading) for reading in _read(plan, False, stream, background) for rule in past)
        case InStream(name, child):
            inside = name.spelling if isinstance(name, ast.Term) else ""
            return _sees_past(child, inside, background, past, begins)
    parts = (getattr(plan, name) for name in plan.__dataclass_fields__)
    return any(_sees_past(part, stream, background, past, begins) for part in parts if isinstance(part, Plan))


def readings(rule: Rule, background: Collection[Triple], past: Sequence[Rule] = ()) -> list[Reading]:
    """What a rule reads within the instant; everything negatively when the rule as a whole is not monotonic.

    ``past``: the rules that may derive what ends before the instant.
    """
    query = rule.query
    whole = is_aggregated(query) or query.limit is not None or bool(query.offset)
    whole = whole or (rule.policy != "unrestricted" and _consumes(rule.plan))
    return list(_read(rule.plan, whole, "", background, past))


def _consumes(plan: object) -> bool:
    if isinstance(plan, Pair) and plan.operator != "AND":
        return True
    if isinstance(plan, Without | Optionally) and plan.right is not None:
        return True
    if isinstance(plan, Outer) and plan.operator != "OPTIONAL":
        return True
    return any(_consumes(getattr(plan, f)) for f in getattr(plan, "__dataclass_fields__", {}))


def _read(
    plan: Plan, negative: bool, stream: str | None, background: Collection[Triple], past: Sequence[Rule] = ()
) -> Iterator[Reading]:
    """``stream``: "" in the default scope, an IRI inside STREAM, None inside GRAPH."""
    match plan:
        case Block(patterns):
            if stream is not None:
                for p in patterns:
                    for shape in shapes(p):
                        yield Reading(shape, stream or None, negative)
        case Pair(operator, left, right, when, across):
            late = (
                stream is not None and operator != "NEXT" and _sees_past(plan, stream, background, past, is_aggregated)
            )
            if late or not (operator in DELAYED and certainly_timed(right, stream, background)):
                yield from _read(left, negative, stream, background, past)
            yield from _read(right, negative, stream, background, past)
            yield from _asked((*when, *across), stream, background, past)
        case Outer(operator, mandatory, optional, when):
            yield from _read(mandatory, negative, stream, background, past)
            late = stream is not None and _sees_past(plan, stream, background, past, is_aggregated)
            if late or not (operator == "OPTIONALSEQ" and certainly_timed(mandatory, stream, background)):
                yield from _read(optional, True, stream, background, past)
            yield from _asked(when, stream, background, past)
        case Without(left, absent, right, deadline, when, across):
            if right is None and not deadline:
                yield from _read(left, negative, stream, background, past)
            if right is not None:
                yield from _read(right, negative, stream, background, past)
            if deadline:
                yield from _read(absent, True, stream, background, past)
                yield from _asked(across, stream, background, past)
            yield from _asked(when, stream, background, past)
        case Optionally(_, parts, right):
            if right is not None:
                yield from _read(right, negative, stream, background, past)
            else:
                for part, across in parts:
                    yield from _read(part, True, stream, background, past)
                    yield from _asked(across, stream, background, past)
        case Skipped(child):
            yield from _read(child, True, stream, background, past)
        case Runs(child, absent, written, until):
            yield from _read(child, negative or written.maximal or until is not None, stream, background, past)
            if until is not None:
                yield from _read(until, True, stream, background, past)
            if absent is not None and written.maximal:
                yield from _read(absent, True, stream, background, past)
        case Union(left, right):
            yield from _read(left, negative, stream, background, past)
            yield from _read(right, negative, stream, background, past)
        case Difference(left, right):
            yield from _read(left, negative, stream, background, past)
            yield from _read(right, True, stream, background, past)
        case Filtered(child, when):
            yield from _read(child, negative, stream, background, past)
            yield from _asked(when, stream, background, past)
        case InGraph(_, child):
            yield from _read(child, negative, None, background, past)
        case InStream(name, child):
            yield from _read(child, negative, name.spelling if isinstance(name, ast.Term) else "", background, past)
        case OneEvent(_, graph) if graph is not None:
            return  # derived events have no graph name
        case OneEvent(child):
            # An event is complete when it comes, so nothing in it is read negatively.
            for p in (n for n in ast.walk(child) if isinstance(n, ast.TriplePattern)):
                for shape in shapes(p):
                    yield Reading(shape, stream or None, negative)
        case Sub(query, where):
            whole = negative or is_aggregated(query) or query.limit is not None or bool(query.offset)
            yield from _read(where, whole, stream, background, past)
        case _:
            if hasattr(plan, "child"):
                yield from _read(plan.child, negative, stream, background, past)
                yield from _asked((plan.expression,), stream, background, past)


def _asked(
    when: tuple[object, ...], stream: str | None, background: Collection[Triple], past: Sequence[Rule]
) -> Iterator[Reading]:
    for node in plain_walk(when):
        if isinstance(node, ast.Exists):
            yield from _read(plan_group(node.group), True, stream, background, past)


def shapes(p: ast.TriplePattern) -> list[Shape]:
    """The triples a pattern may match; a path any triple of its predicates, a zero-length or negated one any at all."""
    if isinstance(p.predicate, (ast.Var, ast.Term)):
        s, q, o = (n.spelling if isinstance(n, ast.Term) else None for n in (p.subject, p.predicate, p.object))
        return [(s, q, o)]
    parts = list(plain_walk(p.predicate))
    if any(isinstance(n, ast.PathNegated) or (isinstance(n, ast.PathRepeat) and n.mark != "+") for n in parts):
        return [(None, None, None)]
    return [(None, n.iri, None) for n in parts if isinstance(n, ast.PathIri)]


def certainly_timed(plan: Plan, stream: str | None, background: Collection[Triple]) -> bool:
    """Whether every solution holds an occurrence: some triple pattern that no background triple matches."""
    match plan:
        case Block(patterns):
            return stream is not None and any(_timed(p, stream, background) for p in patterns)
        case Without() | Optionally() | Runs() | Skipped() | Beginning() | OneEvent() | Pair("NEXT"):
            return True  # sides that may be timeless are refused
        case Pair(_, left, right):
            return certainly_timed(left, stream, background) or certainly_timed(right, stream, background)
        case Union(left, right):
            return certainly_timed(left, stream, background) and certainly_timed(right, stream, background)
        case Outer(_, child, _) | Difference(child, _) | Filtered(child):
            return certainly_timed(child, stream, background)
        case InStream(name, child):
            return certainly_timed(child, name.spelling if isinstance(name, ast.Term) else "*", background)
        case Sub(query, where):
            return (bool(query.group_by) or not is_aggregated(query)) and certainly_timed(where, stream, background)
        case _:
            return (
                hasattr(plan, "child")
                and not isinstance(plan, InGraph)
                and certainly_timed(plan.child, stream, background)
            )


def _timed(p: ast.TriplePattern, stream: str, background: Collection[Triple]) -> bool:
    if not isinstance(p.predicate, (ast.Var, ast.Term)):
        return False
    if stream:
        return True
    wanted = shapes(p)[0]
    return not any(all(w is None or w == t for w, t in zip(wanted, triple, strict=True)) for triple in background)
