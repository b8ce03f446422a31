"""What must not change the answers, or must change them in a known way, each within its stated scope.

Random programs and streams are those that the oracle is compared on; here the engine is compared with itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from etalis_compiler import ast, pipeline
from etalis_compiler.diagnostics import QueryError, Source
from etalis_compiler.pipeline import compile_documents
from etalis_compiler.rewrites.reorder import coupling
from hypothesis import assume, given
from hypothesis import strategies as st

from etalis_py import Engine, Event, Match
from tests.engine.judge import answers_of, engine_for, event_order, knowledge_of, run
from tests.oracle import strategies
from tests.oracle.closure import Background
from tests.oracle.compare import same
from tests.oracle.drawing import NUMBERS, PREDICATES, SUBJECTS, VARIABLES, Pen
from tests.oracle.strategies import CORE, NEGATION, SECOND, Case

UNRESTRICTED = st.one_of(
    strategies.core(),
    strategies.negation(),
    strategies.paths(),
    strategies.aggregates(),
    strategies.relations(),
    strategies.timed(),
    strategies.timed_among_all(),
)
ANY = st.one_of(
    UNRESTRICTED,
    strategies.policies(),
    strategies.policies_and_negation(),
    strategies.timed_policies(),
    strategies.several_streams(),
    strategies.background(),
    strategies.recursion(),
    strategies.stratified(),
    strategies.open_sides(),
)


def engine_or_none(case: Case, **options: Any) -> Engine | None:
    """None for a program that depends on its own absence, which is refused."""
    try:
        return engine_for(case, **options)
    except QueryError:
        return None


def ids(matches: Iterable[Match]) -> list[str]:
    return sorted(m.id for m in matches)


def whole(case: Case, **options: Any) -> list[str]:
    engine = engine_for(case, **options)
    return ids([*engine.push_all(case.events), *engine.close()])


def calls(case: Case) -> set[str]:
    """The names of the functions that the program calls."""
    return {n.name for n in ast.walk(case.program) if isinstance(n, (ast.Call, ast.Aggregate))}


# --- changes of the input: one drawn case for all laws ------------------------------------------------------------

NOBODY = st.builds(
    lambda end, s, o: Event(end * SECOND, end * SECOND, ((s, "<urn:nobody>", o),)),
    st.integers(0, 8),
    st.sampled_from(SUBJECTS),
    st.sampled_from((*SUBJECTS, *NUMBERS)),
)


@given(
    ANY,
    st.lists(st.integers(0, 12), max_size=4),
    st.lists(NOBODY, min_size=1, max_size=4),
    st.sampled_from((1, 3_600, 86_400, 1_700_000_000)),
)
def test_changes_of_the_input(case: Case, cuts: list[int], others: list[Event], seconds: int) -> None:
    """Each law takes the case, and the matches of the engine that was given all of it at once."""
    engine = engine_or_none(case)
    assume(engine is not None)
    assert engine is not None
    matches = [*engine.push_all(case.events), *engine.close()]
    answers = answers_of(matches, [o.query for o in engine.rules.outputs], case.program)
    other_batches(case, ids(matches), cuts)
    another_sweep(case, ids(matches))
    every_event_twice(case, ids(matches))
    if not asks_for_everything(case):
        events_of_predicates_nobody_asks_for(case, ids(matches), others)
    if not calls(case) & TIMES and not (any(q.limit for q in case.program.queries) and made_nodes(case)):
        all_times_shifted(case, answers, seconds * SECOND)
    if not breaks_ties(case):
        iris_renamed(case, answers)


def other_batches(case: Case, expected: list[str], cuts: list[int]) -> None:
    """Cuts may fall inside an instant, and time may be said to have reached the end of the instant before."""
    engine = engine_for(case)
    matches: list[Match] = []
    places = [0, *sorted(cuts), len(case.events)]
    for start, stop in pairwise(places):
        part = case.events[start:stop]
        if part:
            matches += engine.advance(part[0].end - 1)
        matches += engine.push_all(part)
    assert ids([*matches, *engine.close()]) == expected


def another_sweep(case: Case, expected: list[str]) -> None:
    assert whole(case, sweep_every=1) == expected


def every_event_twice(case: Case, expected: list[str]) -> None:
    """The stream is a set of occurrences."""
    assert whole(replace(case, events=tuple(e for e in case.events for _ in range(2)))) == expected


def events_of_predicates_nobody_asks_for(case: Case, expected: list[str], others: list[Event]) -> None:
    assert whole(replace(case, events=tuple(event_order([*case.events, *others])))) == expected


def asks_for_everything(case: Case) -> bool:
    """A variable as a predicate, a negated set of predicates, or a path of length zero, which is at every node."""
    for node in ast.walk(case.program):
        match node:
            case ast.TriplePattern(predicate=ast.Var()) | ast.PathNegated():
                return True
            case ast.PathRepeat(_, mark) if mark != "+":
                return True
    return False


# --- a common shift of all times ----------------------------------------------------------------------------------

TIMES = {"GETSTARTTIME", "GETENDTIME", "NOW"}


def all_times_shifted(case: Case, expected: dict[str, Any], by: int) -> None:
    """Without expressions over absolute times; made blank nodes have other names, and are compared up to these."""
    moved = replace(case, events=tuple(e._replace(start=e.start + by, end=e.end + by) for e in case.events))
    actual = run(moved)
    for name, rows in expected.items():
        assert same(later(rows, by), actual[name])


def made_nodes(case: Case) -> bool:
    templates = [q.form.template or () for q in case.program.queries if isinstance(q.form, ast.Construct)]
    return any(isinstance(n, ast.Blank) for t in templates for n in ast.walk(t))


def later(answer: Any, by: int) -> Any:
    """The answer with its times moved."""
    if hasattr(answer, "instant"):
        return answer._replace(instant=None if answer.instant is None else answer.instant + by)
    return [r if r.end is None else r._replace(start=r.start + by, end=r.end + by) for r in answer]


# --- renaming IRIs, where no tie is broken by terms -----------------------------------------------------------------

# Another order of the subjects, and of the predicates.
NAMES = dict(
    zip((*SUBJECTS, *PREDICATES), ("<urn:z>", "<urn:k>", "<urn:b>", "<urn:r>", "<urn:o>", "<urn:a#p>"), strict=True)
)
ORDERED = {"STR", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"}


def renamed(node: Any) -> Any:
    """Any syntax tree, tuple or text with the IRIs renamed."""
    if isinstance(node, str):
        return NAMES.get(node, node)
    if isinstance(node, tuple):
        made = tuple(map(renamed, node))
        return type(node)(*made) if hasattr(node, "_fields") else made
    if isinstance(node, (frozenset, set)):
        return frozenset(map(renamed, node))
    if isinstance(node, dict):
        return {renamed(k): renamed(v) for k, v in node.items()}
    if is_dataclass(node) and not isinstance(node, (type, Source)):
        return replace(node, **{f.name: renamed(getattr(node, f.name)) for f in fields(node) if f.init})
    return node


def breaks_ties(case: Case) -> bool:
    """Something looks at the order of terms: a policy's canonical order, a limit, the last n events, an extreme."""
    queries = [n for n in ast.walk(case.program) if isinstance(n, ast.Query)]
    counted = any(q.limit is not None or q.offset or (q.within and q.within.kind == "EVENTS") for q in queries)
    return case.policy != "unrestricted" or counted or bool(calls(case) & ORDERED)


def iris_renamed(case: Case, expected: dict[str, Any]) -> None:
    """Where no tie is broken by terms."""
    actual = run(renamed(case))
    for name, answer in expected.items():
        assert same(renamed_answer(answer), actual[name])


def renamed_answer(answer: Any) -> Any:
    return answer if hasattr(answer, "instant") else [renamed(row) for row in answer]


# --- FILTER p, FILTER !p and "p is an error" ------------------------------------------------------------------------


@st.composite
def partitions(draw: Any) -> tuple[ast.Group, ast.Expression, tuple[Event, ...]]:
    query = draw(st.one_of(strategies.selects(CORE), strategies.selects(NEGATION)))
    pen = Pen(draw, CORE)
    pen.used = list(VARIABLES)
    return query.where, pen.condition(2), draw(strategies.streams())


def is_error(p: ast.Expression) -> ast.Expression:
    told = ast.Call("IF", (p, ast.Term('"holds"'), ast.Term('"fails"')))
    return ast.Binary("=", ast.Call("COALESCE", (told, ast.Term('"error"'))), ast.Term('"error"'))


@given(partitions())
def test_a_filter_its_negation_and_its_error_partition_the_answer(
    drawn: tuple[ast.Group, ast.Expression, tuple[Event, ...]],
) -> None:
    """Unrestricted, without aggregates."""
    where, p, events = drawn

    def rows(*conditions: ast.Expression) -> Counter[Any]:
        group = ast.Group((where, *map(ast.Filter, conditions)))
        found = run(Case(strategies.document(ast.Query(ast.Select(()), group)), events))["q1"]
        return Counter((tuple(sorted(r.bindings.items())), r.start, r.end) for r in found)

    assert rows(p) + rows(ast.Unary("!", p)) + rows(is_error(p)) == rows()


# --- an optimisation switched off ----------------------------------------------------------------------------------


@contextmanager
def replaced(name: str, by: Callable[..., Any]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        assert hasattr(pipeline, name)
        patch.setattr(pipeline, name, by)
        yield


PUSHED = st.one_of(
    st.tuples(UNRESTRICTED, st.just(True)),
    st.tuples(st.one_of(strategies.several_streams(), strategies.background(), strategies.recursion()), st.just(False)),
)


@given(PUSHED)
def test_plans_that_are_not_optimised(drawn: tuple[Case, bool]) -> None:
    """Where nothing is consumed: a consuming policy makes the place of a filter part of the meaning."""
    case, one_query = drawn
    expected = whole(case)
    with replaced("push_select", lambda select: select):
        assert whole(case) == expected
    with replaced("push_select_windows", lambda select, around: select):
        assert whole(case) == expected
    for order in ("right", "cost") if one_query else ():
        compilation = compile_documents(
            [(case.program, Source("", "<case>"))], coupling(order, {"<urn:p>": 9.0, "<urn:q>": 1.0})
        )
        engine = Engine(compilation, background=knowledge_of(case.background))
        assert ids([*engine.push_all(case.events), *engine.close()]) == expected, order


# --- what runs beside it --------------------------------------------------------------------------------------------


@given(strategies.policies(), strategies.policies())
def test_queries_that_run_together_answer_as_they_do_alone(one: Case, two: Case) -> None:
    """Computation may be shared, consumption never: the same query twice, and another beside it, over one stream."""
    engine = Engine()
    for name, case in (("one", one), ("same", one), ("two", two)):
        engine.add(named(name, case), policy=case.policy)
    events = tuple(event_order([*one.events, *two.events]))
    together = [*engine.push_all(events), *engine.close()]
    for name, case in (("one", one), ("same", one), ("two", two)):
        alone = Engine(named(name, case), policy=case.policy)
        expected = [*alone.push_all(events), *alone.close()]
        assert ids(m for m in together if m.query == name) == ids(expected)


def named(name: str, case: Case) -> pipeline.Compilation:
    (query,) = case.program.queries
    registered = replace(query, register=ast.Register("QUERY", name))
    return compile_documents([(strategies.document(registered), Source("", "<case>"))])


@given(strategies.background(), st.frozensets(strategies.TRIPLES, min_size=1, max_size=3))
def test_background_that_comes_by_an_update_before_the_stream(case: Case, known: frozenset[Any]) -> None:
    """An update before the stream is as good as a file."""
    case = replace(case, background=Background(known))
    engine = engine_for(replace(case, background=Background(frozenset(sorted(known)[:1]))), changes=True)
    engine.update("", add=known)
    found = answers_of(
        [*engine.push_all(case.events), *engine.close()], [o.query for o in engine.rules.outputs], case.program
    )
    assert knowledge_of(case.background) is not None
    for name, answer in run(case).items():
        assert same(answer, found[name])
