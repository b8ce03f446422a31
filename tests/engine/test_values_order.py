"""ORDER BY: unbound < blank nodes < IRIs < literals, one total order."""

from __future__ import annotations

from itertools import pairwise

from etalis_rules.terms import XSD
from hypothesis import given
from hypothesis import strategies as st

from etalis_py import event, run
from etalis_py.knowledge import load
from etalis_py.values import decode, order_key


def typed(lexical: str, name: str) -> str:
    return f'"{lexical}"^^<{XSD}{name}>'


IN_ORDER = [
    "",
    "_:a",
    "_:b",
    "<urn:a>",
    "<urn:a/b>",
    "<urn:b>",
    typed("NaN", "double"),
    typed("-INF", "double"),
    typed("-2", "integer"),
    typed("0.09", "decimal"),
    typed("0.1", "decimal"),
    typed("0.1", "double"),
    typed("01", "integer"),
    typed("1", "integer"),
    typed("1.0", "decimal"),
    typed("9", "integer"),
    typed("23.0", "float"),
    typed("30", "integer"),
    typed("INF", "double"),
    typed("false", "boolean"),
    typed("true", "boolean"),
    '""',
    '"10"',
    '"9"',
    '"a"@de',
    '"a"@en',
    '"b"@de',
    typed("2001-01-01T00:00:00Z", "dateTime"),
    typed("2001-01-02T00:00:00+01:00", "dateTime"),
    typed("2001-01-02T00:00:00Z", "dateTime"),
    typed("2001-01-01", "date"),
    typed("10:00:00", "time"),
    typed("P1D", "duration"),
    typed("P1M", "duration"),
    typed("abc", "integer"),
    '"a"^^<urn:t>',
    '"b"^^<urn:t>',
]


def test_the_order_of_one_term_of_each_kind() -> None:
    disordered = IN_ORDER[::-1]
    assert sorted(disordered, key=order_key) == IN_ORDER


@given(st.lists(st.sampled_from(IN_ORDER), min_size=2, max_size=2))
def test_the_order_is_total(terms: list[str]) -> None:
    a, b = terms
    assert (order_key(a) < order_key(b)) + (order_key(b) < order_key(a)) + (a == b) == 1


NUMBERS = st.one_of(
    st.integers().map(lambda n: typed(str(n), "integer")),
    st.decimals(allow_nan=False, allow_infinity=False).map(lambda d: typed(format(d, "f"), "decimal")),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda f: typed(repr(f), "double")),
)


@given(st.lists(NUMBERS, max_size=8))
def test_numbers_are_in_the_order_of_their_exact_values(terms: list[str]) -> None:
    ordered = [decode(term) for term in sorted(terms, key=order_key)]
    assert all(a <= b for a, b in pairwise(ordered))


def test_the_next_key_decides_where_values_are_equal() -> None:
    """ORDER BY: 1 and 01 are the same number, so ?x leaves their order to ?y."""
    readings = ":a :x 1 ; :y 5 . :b :x 01 ; :y 4 . :c :x 1 ; :y 3 . :d :x 2 ; :y 9"
    for modifier in ("", "DISTINCT"):
        query = f"SELECT {modifier} ?y {{ ?s :x ?x ; :y ?y }} ORDER BY DESC(?x) ?y"
        assert [match["y"] for match in run(query, [event(readings, 1)])] == [9, 3, 4, 5]
    background = load([list(event(readings, 1).triples)], cache=False)
    nested = "SELECT ?y { :now :is ?it { SELECT ?x ?y { ?s :x ?x ; :y ?y } ORDER BY DESC(?x) ?y LIMIT 3 } }"
    matches = run(nested, [event(":now :is 1", 1)], background=background)
    assert sorted(match["y"] for match in matches) == [3, 4, 9]
