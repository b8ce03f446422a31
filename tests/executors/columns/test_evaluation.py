"""Expressions over columns give what ``values`` gives for each solution, whatever the terms, and are asked once."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from etalis_compiler.parser import parse
from etalis_rules import algebra as alg
from etalis_rules.terms import XSD

from etalis_py import Engine, Event, compile
from etalis_py.executors.columns import evaluation
from etalis_py.executors.columns.evaluation import Given, results, truths
from etalis_py.executors.columns.kernels.computing import ERROR, TRUE
from etalis_py.executors.columns.terms import Terms
from etalis_py.values.expressions import condition, term
from etalis_py.values.functions import CASTS, FUNCTIONS
from tests.draws import seeds
from tests.engine import judge
from tests.executors.columns.judge import same_reports
from tests.executors.columns.test_vectors import NASTY, X, Y
from tests.oracle.strategies import Case

SECOND = 1_000_000
MORE = [
    f'"NaN"^^<{XSD}float>',
    '"1.50"',
    '"abc def"@de-AT',
    '"x"@ar--rtl',
    "<<( <urn:a> <urn:p> <urn:b> )>>",
    f'"PT1H"^^<{XSD}dayTimeDuration>',
    f'"P1M"^^<{XSD}yearMonthDuration>',
    f'"12:00:00"^^<{XSD}time>',
    f'"false"^^<{XSD}boolean>',
    f'"maybe"^^<{XSD}boolean>',
    '"2"^^<urn:t>',
    '""',
]
TERMS = [*NASTY, *MORE]
BEYOND_THE_ORACLE = [TERMS[4], '"x"@ar--rtl']
"""The oracle asks another engine, whose integers have 64 bits and whose texts have no direction."""
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "IN", "&&", "||")


def _calls() -> Iterator[alg.Expr]:
    """Every function, cast and operator, of variables and of constants."""
    for name, spec in FUNCTIONS.items():
        if spec.context not in ("seed", "base", "instant"):
            for count in range(spec.least, 1 + (spec.most if spec.most is not None else spec.least + 2)):
                yield alg.Apply(name, (X, Y, alg.Const('"b"'))[:count])
    yield from (alg.Apply(f"<{name}>", (X,)) for name in CASTS)
    for op in OPERATORS:
        yield alg.Apply(op, (X, Y))
        yield from (alg.Apply(op, (X, alg.Const(constant))) for constant in TERMS[::3] if constant)
        yield alg.Apply(op, (X, alg.Const('"1"')))
    for some in (TERMS[::5], TERMS[1::4], ['"1"', '""'], [f'"1"^^<{XSD}integer>', f'"2.5"^^<{XSD}double>']):
        inside = alg.Apply("IN", (X, *(alg.Const(constant) for constant in some if constant)))
        yield from (inside, alg.Apply("!", (inside,)))
    yield from (alg.Apply(op, (X,)) for op in ("!", "neg", "pos", "BOUND"))
    is_iri, length = alg.Apply("ISIRI", (X,)), alg.Apply(">", (alg.Apply("STRLEN", (Y,)), alg.Const(TERMS[2])))
    yield alg.Apply("&&", (alg.Apply("&&", (is_iri, length)), alg.Apply("!", (alg.Apply("<", (X, Y)),))))
    yield alg.Apply("||", (length, alg.Apply("||", (is_iri, alg.Apply("=", (X, alg.Const('"1"')))))))
    yield alg.Apply("IF", (alg.Apply("||", (length, is_iri)), X, Y))
    yield alg.Apply("COALESCE", (alg.Apply("/", (X, Y)), alg.Apply("STR", (X,)), Y))


CALLS = list(_calls())
PAIRS = [(x, y) for x in TERMS for y in random.Random(7).sample(TERMS, 4)]


@pytest.fixture(scope="module")
def given() -> Given:
    terms = Terms()
    columns = {"x": terms.intern([x for x, _ in PAIRS]), "y": terms.intern([y for _, y in PAIRS])}
    times = np.arange(len(PAIRS), dtype=np.int64)
    return Given(terms, columns, (times, times, times))


def test_conditions_are_what_values_says(given: Given) -> None:
    for e in CALLS:
        test, negated = condition(e), condition(alg.Apply("!", (e,)))
        for (x, y), answer in zip(PAIRS, truths(e, given).tolist(), strict=True):
            mu = {"x": x, "y": y}
            assert (answer == TRUE, answer not in (TRUE, ERROR)) == (test(mu, 0, 0, None), negated(mu, 0, 0, None)), (
                e,
                mu,
            )


def test_terms_are_what_values_gives(given: Given) -> None:
    for e in CALLS:
        function = term(e)
        expected = [function({"x": x, "y": y}, 0, 0, None) for x, y in PAIRS]
        assert given.terms.spellings(results(e, given)) == expected, e


def test_numbers_that_are_not_looked_up_are_compared_like_others() -> None:
    terms = Terms()
    times = np.arange(len(TERMS), dtype=np.int64)
    loose = np.concatenate([terms.append([x]) if x else terms.intern([x]) for x in TERMS])
    e = alg.Apply("<", (X, alg.Const(f'"1.5"^^<{XSD}decimal>')))
    test = condition(e)
    expected = [test({"x": x}, 0, 0, None) for x in TERMS]
    assert (truths(e, Given(terms, {"x": loose}, (times, times, times))) == TRUE).tolist() == expected


def test_an_expression_is_evaluated_once_for_each_combination_of_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    each = evaluation.each_term

    def counted(e: alg.Expr) -> evaluation.Each:
        function = each(e)
        return lambda starts, *more: asked.append(len(starts)) or function(starts, *more)

    monkeypatch.setattr(evaluation, "each_term", counted)
    terms = Terms()
    e = alg.Apply("CONCAT", (X, Y))

    def evaluate(pairs: list[tuple[str, str]]) -> list[str]:
        ids = {name: terms.intern([pair[i] for pair in pairs]) for i, name in enumerate("xy")}
        times = np.zeros(len(pairs), np.int64)
        return terms.spellings(results(e, Given(terms, ids, (times, times, times))))

    assert evaluate([('"a"', '"b"'), ('"a"', '"c"'), ('"a"', '"b"')]) == ['"ab"', '"ac"', '"ab"']
    assert evaluate([('"a"', '"c"'), ('"d"', '"b"')]) == ['"ac"', '"db"']
    assert asked == [2, 1]
    terms.retain(terms.unmarked())  # the ids now mean other terms
    assert evaluate([('"d"', '"c"'), ('"a"', '"b"')]) == ['"dc"', '"ab"']
    assert asked == [2, 1, 2]


def test_answers_are_not_remembered_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "MOST_ANSWERS", 10)
    terms = Terms()
    e = alg.Apply("STRLEN", (X,))
    for first in range(0, 100, 5):
        ids = terms.intern([f'"{"a" * n}"' for n in range(first, first + 5)])
        times = np.zeros(5, np.int64)
        lengths = results(e, Given(terms, {"x": ids}, (times, times, times)))
        assert terms.spellings(lengths) == [f'"{n}"^^<{XSD}integer>' for n in range(first, first + 5)]
    (known,) = terms.remembered.values()
    assert known.count <= 10


def test_all_expressions_together_remember_so_many_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "MOST_IN_TOTAL", 100)
    terms = Terms()
    tests = [alg.Apply("CONTAINS", (X, alg.Const(f'"{n}"'))) for n in range(20)]
    for first in range(0, 100, 4):
        ids = terms.intern([f'"{n}"' for n in range(first, first + 4)])
        given = Given(terms, {"x": ids}, (ids, ids, ids))
        for n, e in enumerate(tests):
            assert truths(e, given).tolist() == [str(n) in str(m) for m in range(first, first + 4)]
        assert sum(known.count for known in terms.remembered.values()) <= 100


DRAWN = """\
SELECT ?x ?y ?u ?v WHERE {{ {{ ?c <urn:p> ?x }} {} {{ ?d <urn:q> ?y }} WITHIN PT4S
  BIND ({} AS ?u) BIND ({} AS ?v) FILTER ({}) }}"""
PARTS = [
    "?x + ?y", "?x / 3", "-?y", "ROUND(?x)", "ABS(?y)", "STR(?x)", "IF(?x < ?y, ?x, ?y)", "COALESCE(?x * ?y, ?y)",
    "DATATYPE(?x)", "LANG(?y)", "STRLEN(STR(?y))", "CONCAT(STR(?x), STR(?y))", "<urn:int>(?x)", "YEAR(?x)",
]  # fmt: skip
TESTS = [
    "?x = ?y", "?x != ?y", "!(?x = ?y)", "?x < ?y || isIRI(?x)", "sameTerm(?x, ?y)", "?x IN (1, 1.5, <urn:a>, ?y)",
    'CONTAINS(STR(?x), "1") && !isBlank(?y)', 'REGEX(STR(?y), "^[a1]")', "?x != <urn:a>", "!(?x < 2)", "BOUND(?u)",
    "?u = ?v", "?c != ?d", "isNumeric(?x) = isNumeric(?y)", "!BOUND(?v) || ?u > 1",
]  # fmt: skip


@pytest.mark.parametrize("seed", seeds(12))
def test_drawn_expressions_over_all_kinds_of_terms(seed: int) -> None:
    drawn = random.Random(seed)
    op = drawn.choice(["SEQ", "AND", "OPTIONALSEQ", "PAR"])
    parts = [drawn.choice(PARTS).replace("urn:int", f"{XSD}integer") for _ in range(2)]
    text = DRAWN.format(op, *parts, drawn.choice(TESTS))
    terms = [t for t in TERMS if t]
    events = [
        Event(t, t, ((f"<urn:c{drawn.randrange(3)}>", f"<urn:{drawn.choice('pq')}>", drawn.choice(terms)),))
        for t in range(0, 30 * SECOND, SECOND)
    ]
    program = compile(text)
    same_reports(lambda executor: Engine(program, executor=executor), events, (7, 10**9))
    known = tuple(e for e in events if e.triples[0][2] not in BEYOND_THE_ORACLE)
    judge.agree(Case(parse(text), known), executor="columns")
