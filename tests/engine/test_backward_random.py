"""Random patterns: the evaluator against the definitions written down literally, and against pyoxigraph."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyoxigraph
from etalis_rules.algebra import (
    Const,
    Exists,
    Join,
    PathPattern,
    Table,
    expressions,
    subexpressions,
    subpatterns,
)
from etalis_rules.relations import Op
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from etalis_py.sparql import BackgroundSource, ExpressionClock, prepare
from tests.draws import examples
from tests.engine.backward_by_definition import Data, Definitions, compatible, substitute
from tests.engine.backward_patterns import (
    MODEST,
    NAMES,
    PLAIN,
    TIMED,
    group_text,
    patterns,
    plain_data,
    terms,
    timed_data,
)

CLOCK = ExpressionClock(0)
bindings = st.dictionaries(st.sampled_from(NAMES), terms, max_size=2)


def bag(solutions: Any) -> Counter[Any]:
    return Counter((frozenset(mu.items()), a, b) for mu, a, b in solutions)


def has_path(pattern: Any) -> bool:
    """Whether a zero-length path may tell a binding that comes in from one found."""
    return any(isinstance(p, PathPattern) for p in subpatterns(pattern))


quick = settings(max_examples=examples(4 / 5), suppress_health_check=list(HealthCheck))


@quick
@given(patterns(PLAIN, inside=PLAIN), plain_data)
def test_plain_patterns_mean_what_the_definitions_say(pattern: Any, data: Data) -> None:
    source = BackgroundSource(data.knowledge())
    assert bag(prepare(pattern).solve({}, source, None, CLOCK)) == bag(Definitions(data).of(pattern))


@quick
@given(patterns(PLAIN + TIMED, inside=PLAIN[:-1] + TIMED), timed_data, st.one_of(st.none(), st.integers(0, 5)))
def test_timed_patterns_mean_what_the_definitions_say(pattern: Any, data: Data, at: int | None) -> None:
    found = prepare(pattern, timed=True).solve({}, data.source(), at, CLOCK)
    assert bag(found) == bag(Definitions(data.upto(at)).of(pattern))


@quick
@given(patterns(PLAIN + TIMED, inside=PLAIN[:-1] + TIMED), timed_data, bindings)
def test_bindings_are_joined_with_the_bottom_up_solutions(pattern: Any, data: Data, mu: dict[str, str]) -> None:
    assume(not has_path(pattern))
    found = prepare(pattern, timed=True).solve(mu, data.source(), None, CLOCK)
    outside = Table(tuple(mu), (tuple(mu.values()),))
    assert bag(found) == bag(Definitions(data).of(Join(Op.AND, outside, pattern)))


@quick
@given(patterns(PLAIN + TIMED, inside=PLAIN[:-1] + TIMED), timed_data, bindings)
def test_substituted_bindings_are_constants(pattern: Any, data: Data, mu: dict[str, str]) -> None:
    found = prepare(pattern, timed=True, substitute=True).solve(mu, data.source(), None, CLOCK)
    expected = [s for s in Definitions(data).of(substitute(pattern, mu)) if compatible(s[0], mu)]
    assert bag(found) == bag(({**mu, **s[0]}, *s[1:]) for s in expected)


@quick
@given(patterns(PLAIN, inside=MODEST), plain_data, st.lists(bindings, min_size=2, max_size=4))
def test_a_prepared_pattern_can_be_asked_again(pattern: Any, data: Data, asked: list[dict[str, str]]) -> None:
    prepared, source = prepare(pattern), BackgroundSource(data.knowledge())
    for mu in asked:
        fresh = prepare(pattern).solve(mu, source, None, CLOCK)
        assert bag(prepared.solve(mu, source, None, CLOCK)) == bag(fresh)


def store_of(data: Data) -> pyoxigraph.Store:
    store = pyoxigraph.Store()
    lines = [" ".join(f[:3]) + " ." for f in data.facts]
    lines += [" ".join((*t, g)) + " ." for g, ts in data.named.items() for t in ts]
    store.load("\n".join(lines).encode(), format=pyoxigraph.RdfFormat.N_QUADS)
    return store


def oxigraph(store: pyoxigraph.Store, query: str) -> Counter[Any]:
    found = store.query(query)
    names = [v.value for v in found.variables]  # type: ignore[union-attr]
    rows = ({n: str(t) for n, t in zip(names, row, strict=True) if t is not None} for row in found)  # type: ignore[arg-type]
    return Counter(frozenset(row.items()) for row in rows)


def zero_steps_are_at_nodes(pattern: Any, data: Data) -> bool:
    """pyoxigraph wants the constant ends of zero-length paths to be nodes of the graph, [SPARQL 1.1] §18.4 does not."""
    paths = [p for p in subpatterns(pattern) if isinstance(p, PathPattern)]
    ends = {n.term for p in paths for n in (p.subject, p.object) if isinstance(n, Const)}
    graphs = [data.facts] if all(p.graph is None for p in paths) else [data.facts, *data.named.values()]
    return all(ends <= {n for f in facts for n in (f[0], f[2])} for facts in graphs)


def has_path_in_exists(pattern: Any) -> bool:
    """Whether substitution may make a constant of an end of a path."""
    parts = [e for p in subpatterns(pattern) for expression in expressions(p) for e in subexpressions(expression)]
    return any(isinstance(e, Exists) and has_path(e.pattern) for e in parts)


@quick
@given(patterns(PLAIN, inside=MODEST), plain_data)
def test_plain_sparql_answers_as_pyoxigraph_does(pattern: Any, data: Data) -> None:
    assume(zero_steps_are_at_nodes(pattern, data) and not has_path_in_exists(pattern))
    query = "SELECT * WHERE " + group_text(pattern)
    found = prepare(pattern).solve({}, BackgroundSource(data.knowledge()), None, CLOCK)
    assert Counter(frozenset(mu.items()) for mu, _, _ in found) == oxigraph(store_of(data), query), query
