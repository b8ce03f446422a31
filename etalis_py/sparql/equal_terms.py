"""Conditions ``?z = e`` by which the values of ?z are looked up, instead of reading all triples that might hold one.

``{ ?s :code ?y . ?k :name ?z FILTER (?z = ?y) }`` goes from ?y to the objects of :name whose values have the same key
(``values.equality_keys``), and from each of these to its ?k.  If a value is computed, as in ``STR(?z) = STR(?y)``, the
solutions of one side are kept by it.  The condition is still tested on each solution.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from etalis_rules.algebra import (
    BGP,
    Const,
    Expr,
    Pattern,
    Triple,
    Var,
    certain,
    constant_of,
    has_event,
    is_volatile,
    needed_parts,
    node_variables,
    pinned,
    variables,
)
from etalis_rules.terms import is_literal

from etalis_py.sparql.kept_solutions import keep_by_value
from etalis_py.sparql.run import Bindings, EvaluationRun, Runner, Solution
from etalis_py.sparql.scoping import Env, mentioned, receives
from etalis_py.sparql.shared_state import SharedState
from etalis_py.sparql.sources import Source
from etalis_py.values import decode
from etalis_py.values.equality_keys import equality_key
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

Equality = tuple[Expr, Expr]
"""An expression, and another one that has an equal value."""
Compile = Callable[[Pattern, Env, SharedState], Runner]
_FEW_TERMS = 32
"""Look-ups up to which they beat reading everything, of which there may be little."""


def unconnected(pattern: Pattern, given: Iterable[Equality]) -> tuple[BGP, ...]:
    """The unconnected parts of a basic graph pattern, if one of the equalities goes from one of them to another."""
    if not isinstance(pattern, BGP) or isinstance(pattern.graph, Var):
        return ()
    parts: list[tuple[frozenset[str], tuple[Triple, ...]]] = []
    for triple in pattern.triples:
        names = node_variables(triple.subject, triple.predicate, triple.object)
        joined = [part for part in parts if part[0] & names]
        parts = [part for part in parts if not part[0] & names]
        triples = tuple(t for _, those in joined for t in those)
        parts.append((names.union(*(those for those, _ in joined)), (*triples, triple)))
    reading = [variables(one) | variables(other) for one, other in given]
    if not any(sum(bool(names & read) for names, _ in parts) > 1 for read in reading):
        return ()
    return tuple(replace(pattern, triples=triples) for _, triples in parts)


def looked_up(
    pattern: Pattern, given: Iterable[Equality], env: Env, registry: SharedState, compile_part: Compile
) -> Runner:
    """The solutions of a pattern that may satisfy the equalities: where the values are indexed, only these are read."""
    able = [] if is_volatile(pattern) else [(one, other) for one, other in given if variables(other) <= env.certain]
    for one, expression in able:
        name = one.name if isinstance(one, Var) else ""
        read = variables(expression)
        place = None if not name or name in env.seen else _place(pattern, name)
        if place is not None and receives(pattern, frozenset((name,))):
            break
    else:
        return _kept_by_value(pattern, able, env, registry, compile_part)
    value = registry.value(expression, read, env)
    bound = compile_part(pattern, replace(env, seen=env.seen | {name}, certain=env.certain | {name}), registry)
    whole: Runner | None = None

    def run_looked_up(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        nonlocal whole
        term = value(mu, TIMELESS_START, TIMELESS_END, run)
        terms = place.candidates(term, run.source) if term else ()  # an error equals nothing
        if terms is not None:
            for found in terms:
                yield from bound({**mu, name: found}, run)
            return
        if whole is None:
            whole = compile_part(pattern, env, registry)
        yield from whole(mu, run)

    return run_looked_up


def _kept_by_value(
    pattern: Pattern, able: Iterable[Equality], env: Env, registry: SharedState, compile_part: Compile
) -> Runner:
    """The same where a value is computed: the solutions are kept by it if nothing that is known decides about them."""
    if not mentioned(pattern) & (env.seen - env.given):
        for own, sought in able:
            read = variables(own)
            if read and read <= certain(pattern) - env.seen:
                inner = compile_part(pattern, env.only(frozenset()), registry)
                value = registry.value(sought, variables(sought), env)
                return keep_by_value(pattern, inner, env, registry.value(own, read, env), value)
    return compile_part(pattern, env, registry)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a pattern has a variable: as the object of a predicate, or as a subject (no predicate)."""

    predicate: str
    stream: str
    graph: str | None

    def candidates(self, term: str, source: Source) -> Collection[str] | None:
        """The terms there that may equal this one; None where finding them takes a scan."""
        if self.predicate:
            return source.objects_equal_to(equality_key(decode(term)), self.predicate, self.stream, self.graph)
        return () if is_literal(term) else (term,)


def _place(pattern: Pattern, name: str) -> _Place | None:
    """A place of the variable that every solution of the pattern fills."""
    if has_event(pattern):
        return None
    for block in needed_parts(pattern, selects=False):
        if not isinstance(block, BGP) or isinstance(block.graph, Var):
            continue
        for triple in block.triples:
            if Var(name) == triple.subject:
                return _Place("", block.stream, None)
            if Var(name) == triple.object and isinstance(triple.predicate, Const):
                return _Place(triple.predicate.term, block.stream, constant_of(block.graph) or None)
    return None


def one_by_one(
    child: Pattern, conditions: tuple[Expr, ...], env: Env, registry: SharedState, compile_part: Compile
) -> Runner | None:
    """The solutions that may satisfy the conditions: a variable that must be one of a few terms is bound to each first.

    So the triples around it are looked up, and not all read before they are tested.  None if there is no such variable.
    """
    for name, terms in filter(None, map(pinned, conditions)):
        bound = replace(env, seen=env.seen | {name}, certain=env.certain | {name})
        if (
            name in certain(child) - env.seen
            and len(terms) <= _FEW_TERMS
            and not is_volatile(child)
            and receives(child, frozenset((name,)))
        ):
            break
    else:
        return None
    inner = compile_part(child, bound, registry)
    each = tuple({name: term} for term in dict.fromkeys(terms))

    def run_pinned(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        for binding in each:
            yield from inner({**mu, **binding}, run)

    return run_pinned
