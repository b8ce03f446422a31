"""A cache for sub-patterns, such as sub-SELECTs, whose result does not depend on the current bindings.

Their solutions are kept in a hash index on the joined variables.  It is reused as long as the source, its version and
the substituted terms are the same: a sub-SELECT over the background is evaluated once per version of the knowledge,
not once per event, and so is one inside EVENT, except for events with triples that it reads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from etalis_rules.algebra import (
    INTERVAL,
    Pattern,
    certain,
    constant_of,
    expressions,
    is_volatile,
    operators,
    reads_triples,
    scope,
    subpatterns,
    triples_of,
)

from etalis_py.sparql.run import Bindings, EvaluationRun, Runner, Solution
from etalis_py.sparql.scoping import Env, mentioned
from etalis_py.sparql.shared_state import Value
from etalis_py.values import decode
from etalis_py.values.equality_keys import equality_key
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

Index = dict[tuple[str, ...], list[Solution]]


def keep(pattern: Pattern, inner: Runner, env: Env) -> Runner:
    """An operator that keeps the solutions of a pattern, indexed by the variables certainly bound on both sides.

    ``inner`` must not depend on any incoming bindings except the substituted variables.
    """
    keys = tuple(sorted((certain(pattern) & env.certain) - env.given))
    others = tuple(sorted((scope(pattern) & env.seen) - frozenset(keys) - env.given))
    depends = _Dependence(pattern, env)
    held: tuple[_State, Index] | None = None

    def index(mu: Bindings, run: EvaluationRun) -> Index:
        nonlocal held
        state = depends.state(mu, run)
        if held is not None and held[0].is_that_of(state):
            return held[1]
        solutions: Index = {}
        for solution in inner(depends.given(state), run):
            if run.meter is not None:
                run.meter.step()
            solutions.setdefault(tuple([solution[0][v] for v in keys]), []).append(solution)
        held = (state, solutions)
        return solutions

    def run_kept(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        for row, start, end in index(mu, run).get(tuple([mu[v] for v in keys]), ()):
            if run.meter is not None:
                run.meter.step()
            if all(mu.get(v, row[v]) == row[v] for v in others if v in row):
                yield {**mu, **row}, start, end

    return run_kept


def keep_by_value(pattern: Pattern, inner: Runner, env: Env, own: Value, sought: Value) -> Runner:
    """An operator for the solutions of a pattern whose value ``own`` may equal that which is ``sought``.

    ``inner`` as for ``keep``.  The first time that they are asked for all are passed on, as no one may ask again.
    """
    depends = _Dependence(pattern, env)
    asked: _State | None = None
    held: tuple[_State, dict[Hashable, list[Solution]]] | None = None

    def index(state: _State, run: EvaluationRun) -> dict[Hashable, list[Solution]]:
        solutions: dict[Hashable, list[Solution]] = {}
        for solution in inner(depends.given(state), run):
            if run.meter is not None:
                run.meter.step()
            if term := own(*solution, run):  # an error equals nothing
                solutions.setdefault(equality_key(decode(term)), []).append(solution)
        return solutions

    def run_by_value(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        nonlocal asked, held
        state = depends.state(mu, run)
        if held is None or not held[0].is_that_of(state):
            if asked is None or not asked.is_that_of(state):
                asked = state
                yield from (({**mu, **row}, start, end) for row, start, end in inner(depends.given(state), run))
                return
            held = (state, index(state, run))
        term = sought(mu, TIMELESS_START, TIMELESS_END, run)
        for row, start, end in held[1].get(equality_key(decode(term)), ()) if term else ():
            if run.meter is not None:
                run.meter.step()
            yield {**mu, **row}, start, end

    return run_by_value


class _State(NamedTuple):
    """What the solutions of a pattern depend on: a source with its version, a time, terms and what is asked once."""

    source: Any
    version: Any
    at: int | None
    terms: tuple[str, ...]
    context: Any

    def is_that_of(self, other: _State) -> bool:
        return self.source is other.source and self[1:4] == other[1:4] and self.context is other.context


class _Dependence:
    """What the solutions of a pattern depend on."""

    def __init__(self, pattern: Pattern, env: Env) -> None:
        self._given = tuple(sorted(env.given & mentioned(pattern)))
        self._once = is_volatile(pattern)
        self._asked = _predicates(pattern)

    def state(self, mu: Bindings, run: EvaluationRun) -> _State:
        source = run.origin if self._asked is None else run.origin.as_for(self._asked)
        version = run.source.version if source is run.origin else source.version
        return _State(source, version, run.at, tuple([mu[v] for v in self._given]), run.context if self._once else None)

    def given(self, state: _State) -> Bindings:
        """The bindings that the pattern is evaluated with."""
        return dict(zip(self._given, state.terms, strict=True))


def _predicates(pattern: Pattern) -> frozenset[str] | None:
    """The predicates of the default graph that the solutions depend on; None if they depend on more of the source."""
    names = set[str]()
    for part in subpatterns(pattern):
        if any(operators(e) & INTERVAL for e in expressions(part)):
            return None
        if reads_triples(part) and part.graph is None:
            triples = triples_of(part)
            names |= {""} if triples is None else {constant_of(triple.predicate) for triple in triples}
    return None if "" in names else frozenset(names)
