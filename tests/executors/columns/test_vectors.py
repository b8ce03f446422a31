"""What is computed for many rows at once is what ``values`` computes for each; the nasty values first."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from etalis_rules import algebra as alg
from etalis_rules.terms import XSD

from etalis_py import Engine, Event, compile
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.columns.vectors import ASK, ERROR, TRUE, truth
from etalis_py.values.expressions import condition
from tests.executors.columns.judge import agree

NASTY = [
    *(f'"{n}"^^<{XSD}integer>' for n in ("01", "-0", "0", "9007199254740993", "1" + "0" * 30, "999999999999999", "x")),
    *(f'"{n}"^^<{XSD}decimal>' for n in ("1.50", "1.5", "-0.0", "0.1", "0.30000000000000004", "99999999999999999.5")),
    *(
        f'"{n}"^^<{XSD}double>'
        for n in ("NaN", "INF", "-INF", "-0", "1.5", "0.1", "9007199254740992", "4.9e-324", "1e308")
    ),
    *(f'"{n}"^^<{XSD}float>' for n in ("0.1", "1.5")),
    *(
        f'"{n}"^^<{XSD}dateTime>'
        for n in ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "12026-01-01T00:00:00Z")
    ),
    *(f'"2026-01-0{n}"^^<{XSD}date>' for n in (1, 2)),
    *('"a"', '"1"', '"a"@en', "<urn:a>", "_:b", f'"true"^^<{XSD}boolean>', "", f'"7"^^<{XSD}int>', '"1"^^<urn:t>'),
]
X, Y = alg.Var("x"), alg.Var("y")
OPERANDS = [
    (X, Y),
    (alg.Apply("*", (X, alg.Const(f'"1.05"^^<{XSD}decimal>'))), Y),
    (alg.Apply("+", (X, alg.Const(f'"1"^^<{XSD}integer>'))), alg.Apply("neg", (Y,))),
    (alg.Apply("-", (X, Y)), alg.Const(f'"0.1"^^<{XSD}double>')),
    (alg.Apply("/", (X, Y)), alg.Const(f'"1"^^<{XSD}integer>')),
    (alg.Apply("*", (X, Y)), alg.Apply("+", (Y, Y))),
]


@pytest.mark.parametrize("operands", OPERANDS)
@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "=", "!="])
def test_truth_is_that_of_the_value_functions(op: str, operands: tuple[alg.Expr, alg.Expr]) -> None:
    e = alg.Apply(op, operands)
    terms = Terms()
    pairs = list(itertools.product(NASTY, NASTY))
    columns = {"x": terms.intern([x for x, _ in pairs]), "y": terms.intern([y for _, y in pairs])}
    answers = truth(e, columns, len(pairs), terms)
    test = condition(e)
    negated = condition(alg.Apply("!", (e,)))
    for (x, y), answer in zip(pairs, answers.tolist(), strict=True):
        if answer == ASK:
            continue
        mu = {"x": x, "y": y}
        expected = (test(mu, 0, 0, None), negated(mu, 0, 0, None))
        assert (answer == TRUE, answer not in (TRUE, ERROR)) == expected, (x, op, y)
    assert (answers != ASK).mean() > 0.15


@pytest.mark.parametrize("op", ["&&", "||"])
def test_three_valued_logic(op: str) -> None:
    terms = Terms()
    values = [f'"{n}"^^<{XSD}integer>' for n in (0, 2)] + [""]
    pairs = list(itertools.product(values, values))
    columns = {"x": terms.intern([x for x, _ in pairs]), "y": terms.intern([y for _, y in pairs])}
    one = alg.Const(f'"1"^^<{XSD}integer>')
    e = alg.Apply(op, (alg.Apply("<", (X, one)), alg.Apply("!", (alg.Apply(">=", (Y, one)),))))
    answers = truth(e, columns, len(pairs), terms)
    for (x, y), answer in zip(pairs, answers.tolist(), strict=True):
        assert (answer == TRUE) == condition(e)({"x": x, "y": y}, 0, 0, None)


@pytest.mark.parametrize("policy", ["unrestricted", "recent", "chronological"])
@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "=", "!="])
def test_joins_compare_nasty_values_as_rows_do(op: str, policy: str) -> None:
    program = compile(f"SELECT ?x ?y WHERE {{ {{ ?c <urn:p> ?x }} SEQ {{ ?c <urn:p> ?y }} FILTER (?x {op} ?y) }}")
    terms = [t for t in NASTY if t] * 2
    order = np.random.default_rng(3).permutation(len(terms)).tolist()
    events = [Event(n, n, (("<urn:c>", "<urn:p>", terms[i]),)) for n, i in enumerate(order)]
    assert agree(lambda executor: Engine(program, policy=policy, executor=executor), events) is None
