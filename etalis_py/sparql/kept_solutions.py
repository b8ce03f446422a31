"""A cache for sub-patterns, such as sub-SELECTs, whose result does not depend on the current bindings.

Their solutions are kept in a hash index on the joined variables.  It is reused as long as the source, its version and
the substituted terms are the same: a sub-SELECT over the background is evaluated once per version of the knowledge,
not once per event, and so is one inside EVENT, except for events with triples that it reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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

Index = dict[tuple[str, ...], list[Solution]]


def keep(pattern: Pattern, inner: Runner, env: Env) -> Runner:
    """An operator that keeps the solutions of a pattern, indexed by the variables certainly bound on both sides.

    ``inner`` must not depend on any incoming bindings except the substituted variables.
    """
    keys = tuple(sorted((certain(pattern) & env.certain) - env.given))
    others = tuple(sorted((scope(pattern) & env.seen) - frozenset(keys) - env.given))
    given = tuple(sorted(env.given & mentioned(pattern)))
    once = is_volatile(pattern)
    asked = _predicates(pattern)
    held: tuple[Any, Index] | None = None

    def index(mu: Bindings, run: EvaluationRun) -> Index:
        nonlocal held
        terms = tuple([mu[v] for v in given])
        source = run.origin if asked is None else run.origin.as_for(asked)
        version = run.source.version if source is run.origin else source.version
        state = (source, version, run.at, terms, run.context if once else None)
        if held is not None and held[0][0] is state[0] and held[0][1:4] == state[1:4] and held[0][4] is state[4]:
            return held[1]
        solutions: Index = {}
        for solution in inner(dict(zip(given, terms, strict=True)), run):
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
