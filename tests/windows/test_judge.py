"""Judging another engine's answers: numbers by value, everything else by spelling, rows as multisets."""

from __future__ import annotations

import pytest
from etalis_rules.terms import XSD, literal

from etalis_py import event
from etalis_py.testing.judge_recorded import Recorded, same_rows, which_t0


def number(text: str, kind: str = "integer") -> str:
    return literal(text, XSD + kind)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (number("77"), number("77.0", "decimal"), True),
        (number("77"), number("7.7E1", "double"), True),
        (number("077"), number("77", "int"), True),
        (number("0.1", "decimal"), number("0.1", "double"), True),
        (number("77.3333333333333333333333333333333333", "decimal"), number("77.33333333333333", "double"), True),
        (number("9007199254740993"), number("9007199254740992"), False),
        (number("9007199254740993"), number("9007199254740992.0", "decimal"), False),
        (number("77"), '"77"', False),
        (number("NaN", "double"), number("NaN", "double"), True),
        (number("x"), number("x"), True),
        (number("x"), number("y"), False),
        ('"a"', '"a"@en', False),
        (number("true", "boolean"), number("1", "boolean"), False),
    ],
)
def test_numbers_are_the_same_by_value_and_other_terms_by_spelling(a: str, b: str, same: bool) -> None:
    assert same_rows([{"x": a}], [{"x": b}]) is same
    assert same_rows([{"x": b}], [{"x": a}]) is same


def test_rows_are_multisets() -> None:
    one, two = {"x": number("1")}, {"x": number("1.0", "decimal")}
    assert same_rows([one, one], [two, one])
    assert not same_rows([one, one], [two])
    assert not same_rows([one, {}], [two, one])
    assert not same_rows([one], [{"y": number("1")}])


def test_a_recording_with_another_spelling_of_the_numbers_is_right() -> None:
    query = "SELECT (AVG(?x) AS ?m) FROM NAMED WINDOW :w ON :s [RANGE PT2S] { WINDOW :w { ?a :p ?x } }"
    stream = [
        event(":a :p 154", 1, stream="<http://example.org/s>"),
        event(":b :p 0", 2, stream="<http://example.org/s>"),
    ]
    right = Recorded(({"m": number("77.0", "decimal")},), 2_000_000)
    assert which_t0(query, stream, [right])
    assert not which_t0(query, stream, [Recorded(({"m": number("78.0", "decimal")},), 2_000_000)])
