"""What a value may grow to: beyond it an operation is an error of its expression, a literal has no known value."""

from __future__ import annotations

from decimal import Decimal
from time import process_time
from typing import Any

import pytest
from etalis_rules.calendar import DAY
from etalis_rules.terms import XSD, literal

from etalis_py import compile, event, run
from etalis_py.values import SparqlError, decode, div, encode, mul
from etalis_py.values.bounds import BOUNDS
from etalis_py.values.functions import FUNCTIONS
from etalis_py.values.functions.aggregates import GroupConcat
from etalis_py.values.types import Duration, Opaque

pytestmark = pytest.mark.usefixtures("still_heap")

MOST = BOUNDS.digits
LONG = "7" * (BOUNDS.characters // 2 + 1)


@pytest.mark.parametrize("kind", ["integer", "decimal", "nonNegativeInteger"])
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_number_of_too_many_digits_has_no_known_value(kind: str, sign: str) -> None:
    digits = MOST - len(sign)
    if not (sign and kind == "nonNegativeInteger"):
        assert not isinstance(decode(literal(sign + "1" * digits, XSD + kind)), Opaque)
    began = process_time()
    assert isinstance(decode(literal(sign + "1" * 1_000_000, XSD + kind)), Opaque)
    assert process_time() - began < 0.5


def test_years_and_durations_have_eighteen_digits() -> None:
    for text, kind in (
        ("{}-01-01T00:00:00Z", "dateTime"),
        ("{}-01-01", "date"),
        ("P{}Y", "duration"),
        ("PT{}S", "duration"),
    ):
        assert not isinstance(decode(literal(text.format("9" * 18), XSD + kind)), Opaque)
        for count in (19, 5_000):
            assert isinstance(decode(literal(text.format("9" * count), XSD + kind)), Opaque)
    assert decode(literal(f"PT1.{'5' * 5_000}S", XSD + "duration")) == Duration(0, 1_555_555)


@pytest.mark.parametrize("one", [10, Decimal(10), Decimal("0.1")])
def test_products_are_bounded_by_their_digits(one: Any) -> None:
    number = one
    with pytest.raises(SparqlError, match="more than 10,000 digits"):  # noqa: PT012
        for _ in range(26):
            number = mul(number, number)
    assert len(encode(number)) < 2 * MOST


def test_quotients_are_bounded_by_their_digits() -> None:
    number = Decimal(1)
    with pytest.raises(SparqlError, match="more than 10,000 digits"):  # noqa: PT012
        for _ in range(30):
            number = div(number, Decimal("1e-900"))


def test_a_duration_does_not_grow_without_end() -> None:
    assert mul(Duration(0, DAY), 10**9) == Duration(0, DAY * 10**9)
    with pytest.raises(SparqlError, match="a duration of more than"):
        mul(Duration(0, DAY), 10**25)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("CONCAT", (LONG, LONG)),
        ("REPLACE", ("7" * 100_000, "7", "8" * 200)),
        ("ENCODE_FOR_URI", ("ä" * (BOUNDS.characters // 6 + 1),)),
        ("UCASE", ("ß" * (BOUNDS.characters // 2 + 1),)),
    ],
)
def test_a_text_that_a_function_makes_is_bounded(name: str, arguments: tuple[str, ...]) -> None:
    with pytest.raises(SparqlError, match=f"{name} makes a text of more than 16,000,000 characters"):
        FUNCTIONS[name].call(*arguments)


def test_group_concat_is_bounded() -> None:
    joined = GroupConcat()
    for _ in range(2):
        joined.add(None, f'"{LONG}"')
    with pytest.raises(SparqlError, match="GROUP_CONCAT makes a text"):
        joined.result()


def test_replace_takes_time_in_proportion_to_the_text() -> None:
    began = process_time()
    assert FUNCTIONS["REPLACE"].call("aä" * 50_000, "(ä)", "[$1]") == "a[ä]" * 50_000
    assert process_time() - began < 10


@pytest.mark.parametrize(
    ("start", "step", "short"),
    [("?x", "?v{0} * ?v{0}", 15), ('"ab"', "CONCAT(?v{0}, ?v{0})", 23)],
)
def test_squaring_again_and_again_ends_in_an_unbound_variable(start: str, step: str, short: int) -> None:
    """26 squarings of an integer, and as many doublings of a text, used to take all of time and memory."""
    binds = " ".join(f"BIND ({step.format(i)} AS ?v{i + 1})" for i in range(26))
    began = process_time()
    (match,) = run(compile(f"SELECT * {{ ?s :p ?x BIND ({start} AS ?v0) {binds} }}"), [event(":s :p 3", 1)])
    assert f"v{short - 1}" in match.bindings
    assert f"v{short}" not in match.bindings
    assert "v26" not in match.bindings
    assert process_time() - began < 5
