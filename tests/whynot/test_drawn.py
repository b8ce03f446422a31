"""For an answer that the oracle finds once exactly one condition is taken away, why-not names that condition."""

from __future__ import annotations

from collections import Counter
from typing import Any

from etalis_compiler import ast
from etalis_compiler.diagnostics import Source
from etalis_compiler.pipeline import compile_documents
from etalis_rules.spelling import Spelling
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from etalis_py import Program
from etalis_py.whynot import Count
from etalis_py.whynot.titles import Titles
from tests.draws import examples
from tests.engine.judge import knowledge_of
from tests.oracle import Row, answers, strategies
from tests.oracle.plan import is_aggregated
from tests.oracle.strategies import Case
from tests.whynot.removals import FRESH, Removal, removals

TITLES = Titles(Spelling())
EXAMPLES = examples(1 / 12)  # each asks some ten questions
ANSWERS = 1  # looked at for each removal


def rows(query: ast.Query, case: Case) -> Counter[Any]:
    found = answers(query, case.events, case.background)
    [answer] = found.values()
    assert isinstance(answer, list)
    return Counter(
        (frozenset((v, t) for v, t in row.bindings.items() if v != FRESH), row.start, row.end)
        for row in answer
        if isinstance(row, Row)
    )


def names_it(case: Case) -> None:
    [query] = case.program.queries
    assume(isinstance(query.form, ast.Select) and query.limit is None and not query.offset)
    assume(not is_aggregated(query))
    program = Program(compile_documents([(case.program, Source("", "<case>"))]))
    there = rows(query, case)
    for removal in removals(query):
        more = rows(removal.query, case)
        new = [row for row in more if row not in there and row[2] is not None and _binds(row, removal)]
        for bindings, _, end in sorted(new, key=repr)[:ANSWERS]:
            where = dict(bindings)
            at = f"{end / 1_000_000:.6f}"
            report = program.why_not(case.events, where=where, at=at, background=knowledge_of(case.background))
            assert is_named(removal, report), f"{removal.kind} {removal.query} {where} at {at}\n{report}"


def counts_it(case: Case) -> None:
    """The number at the root of the plan is that of the oracle's answers."""
    [query] = case.program.queries
    assume(isinstance(query.form, ast.Select) and query.limit is None and not query.offset)
    assume(isinstance(query.form, ast.Select) and not query.form.modifier and not is_aggregated(query))
    program = Program(compile_documents([(case.program, Source("", "<case>"))]))
    report = program.why_not(case.events, background=knowledge_of(case.background))
    assert report.plan.all == Count(rows(query, case).total()), f"{case}\n{report}"


def _binds(row: Any, removal: Removal) -> bool:
    """Where a variable is opened at one place, is it still bound at another (so: not in a UNION)?"""
    return not removal.opened or removal.opened in dict(row[0])


def is_named(removal: Removal, report: Any) -> bool:
    for blame in report.blames:
        if len(blame.kinds) > 1:
            continue
        [kind], [text] = blame.kinds, blame.conditions
        if removal.expression is not None:
            if text == TITLES.filter(removal.expression):
                return True
        elif kind == removal.kind or (removal.kind == "step" and text.startswith("WHERE")):
            return True
    return False


@settings(max_examples=2 * EXAMPLES)
@given(
    st.one_of(
        strategies.core(), strategies.paths(), strategies.negation(), strategies.several_streams(), strategies.timed()
    )
)
def test_counts_are_exact(case: Case) -> None:
    counts_it(case)


@settings(max_examples=EXAMPLES)
@given(strategies.core())
def test_patterns_joins_and_filters(case: Case) -> None:
    names_it(case)


@settings(max_examples=EXAMPLES)
@given(strategies.negation())
def test_absence(case: Case) -> None:
    names_it(case)


@settings(max_examples=EXAMPLES)
@given(strategies.background())
def test_background_knowledge(case: Case) -> None:
    names_it(case)


@settings(max_examples=EXAMPLES)
@given(strategies.relations())
def test_allens_relations(case: Case) -> None:
    names_it(case)


@settings(max_examples=EXAMPLES)
@given(strategies.timed())
def test_not_next_and_repeat(case: Case) -> None:
    names_it(case)


@settings(max_examples=EXAMPLES)
@given(st.one_of(strategies.optional_parts(), strategies.ended_runs()))
def test_optional_parts_and_runs_that_are_over(case: Case) -> None:
    names_it(case)
