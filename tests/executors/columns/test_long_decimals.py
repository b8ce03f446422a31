"""Decimals with more digits than an int64 holds are compared by their nearest doubles, unless these are too near."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from etalis_rules import algebra as alg
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py.executors.columns import evaluation
from etalis_py.executors.columns.evaluation import Given, truths
from etalis_py.executors.columns.kernels.computing import ERROR, FALSE, TRUE
from etalis_py.executors.columns.terms import Terms
from etalis_py.values import SparqlError
from etalis_py.values.expressions import condition
from tests.draws import examples

XSD = "http://www.w3.org/2001/XMLSchema#"
DIGITS = st.text("0123456789", min_size=1, max_size=30)
LONG = st.builds(
    lambda sign, whole, part: f'"{sign}{whole}.{part}"^^<{XSD}decimal>', st.sampled_from(["", "-", "+"]), DIGITS, DIGITS
)
OTHERS = (
    *(f'"{n}"^^<{XSD}decimal>' for n in ("1600", "1600.0000000000000000001", "1600.00000000000000000010", "0.5")),
    f'"1{"0" * 30}.00000000000000000001"^^<{XSD}decimal>',
    f'"0.{"0" * 30}1"^^<{XSD}decimal>',
    *(f'"{n}"^^<{XSD}integer>' for n in ("1600", "-1600", "1" * 25)),
    *(f'"{n}"^^<{XSD}double>' for n in ("1600", "1.6E3", "NaN", "INF", "-INF", "1E300")),
    f'"1600"^^<{XSD}float>',
    *(f'"{t}"^^<{XSD}dateTime>' for t in ("2026-01-01T00:00:00Z", "9999-01-01T00:00:00Z")),
    '"1600"',
    "<urn:a>",
    "",
)
TERM = LONG | st.sampled_from(OTHERS)


def by_values(e: alg.Expr, x: str, y: str) -> int:
    """What ``values`` says of one pair of terms."""
    mu = {name: term for name, term in (("x", x), ("y", y)) if term}
    result = {}
    for sign, expression in ((TRUE, e), (FALSE, alg.Apply("!", (e,)))):
        try:
            result[sign] = condition(expression)(mu, 0, 0, None)
        except SparqlError:
            return ERROR
    return TRUE if result[TRUE] else FALSE if result[FALSE] else ERROR


def in_columns(e: alg.Expr, pairs: list[tuple[str, str]]) -> list[int]:
    terms = Terms()
    columns = {name: terms.intern(list(side)) for name, side in zip("xy", zip(*pairs, strict=True), strict=True)}
    times = np.zeros(len(pairs), np.int64)
    return truths(e, Given(terms, columns, (times, times, times))).tolist()


@settings(max_examples=examples(1))
@given(st.lists(st.tuples(TERM, TERM), min_size=1, max_size=12), st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
def test_comparisons_are_exact(pairs: list[tuple[str, str]], op: str) -> None:
    plain = alg.Apply(op, (alg.Var("x"), alg.Var("y")))
    negated = alg.Apply(op, (alg.Apply("neg", (alg.Var("x"),)), alg.Var("y")))
    for e in (plain, negated):
        assert in_columns(e, pairs) == [by_values(e, x, y) for x, y in pairs]


def test_averages_are_compared_without_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "_evaluated", None)  # whatever asks for values fails
    averages = [f'"{Decimal(n) / 7}"^^<{XSD}decimal>' for n in (11_199, 11_201, -11_201)]
    e = alg.Apply(">", (alg.Var("x"), alg.Var("y")))
    pairs = [(one, f'"1600"^^<{XSD}integer>') for one in averages]
    assert in_columns(e, pairs) == [FALSE, TRUE, FALSE]
