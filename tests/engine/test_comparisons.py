"""FILTERs that compare the two sides of a join: the engine computes, stores and skips there, and must not be seen to.

What is compared once, kept with a goal, or known of a whole bucket (``engine.joins``) is right only if it holds for
every value: errors, NaN, numbers of several types, variables that may be unbound, goals that came too early or late.
So few variables and few companies, but long streams.
"""

from __future__ import annotations

from typing import Any

from etalis_rules.terms import XSD, literal
from hypothesis import given
from hypothesis import strategies as st

from etalis_py import Event
from tests.engine.judge import agree
from tests.oracle.strategies import Case
from tests.oracle.traces import SECOND, at, queries, term

LEFT = (
    "{ ?s :p ?x }",
    "{ { ?s :p ?x } UNION { ?s :q ?k } }",
    "{ ?s :p ?x . ?s :q ?k }",
    "{ { ?s :p ?x } UNION { ?s :p ?x . ?s :q ?k } }",
)
RIGHT = (
    "{ ?s :p ?z }",
    "{ ?s :r ?x . ?s :p ?z }",
    "{ { ?s :r ?x . ?s :p ?z } UNION { ?s :r ?z } }",
    "{ { ?s :p ?z . ?s :r ?k } UNION { ?s :p ?z } }",
)
CONDITIONS = (
    "?x < ?z", "?x > ?z", "?z >= ?x", "?z <= ?x", "?z > ?k", "?k < ?x", "?x != ?z", "?s != ?x", "?x * 2 < ?z",
    "?x * 0.7 > ?z", "?z * 2 <= ?k", "?k + ?x > ?z", "?x + 1 > ?x", "?z - 1 < ?x",
)  # fmt: skip
VALUES = (
    *(term(n) for n in ("1", "2", "3", "4", "b")),
    *(literal(text, XSD + "double") for text in ("2.5", "1.5e0", "NaN", "INF")),
    *(literal(text, XSD + "decimal") for text in ("2.0", "1.5")),
    '"z"',
)


@st.composite
def cases(draw: Any) -> Case:
    pick = lambda values: draw(st.sampled_from(values))  # noqa: E731
    filters = " ".join(f"FILTER ({pick(CONDITIONS)})" for _ in range(pick((1, 1, 1, 2))))
    within = pick(("", "", " WITHIN PT4S"))
    text = f"SELECT * {{ {{ {pick(LEFT)} {pick(('SEQ', 'SEQ', 'AND', 'EQUALS'))} {pick(RIGHT)} {filters} }}{within} }}"
    now, events = 0, []
    for _ in range(draw(st.integers(3, 16))):
        now += pick((0, 1, 1, 1, 2))
        start = now - pick((0, 0, 0, 0, 1, 3))
        triple = (term(pick("aab")), term(pick("pppqr")), pick(VALUES))
        events.append(Event(start * SECOND, now * SECOND, (triple,)))
    return Case(queries(text), tuple(events), policy=pick(("unrestricted", "recent", "chronological")))


@given(cases())
def test_comparisons_of_two_sides(case: Case) -> None:
    agree(case)


def test_a_compared_variable_of_both_sides_is_read_from_the_one_that_arrives() -> None:
    """Found by chance: ?x is bound by both sides, and its value was taken from a goal of some other search."""
    text = "SELECT * { FILTER (?x != ?y) ?x :p ?y . [] :p ?y . ?x (:p*)* ?z }"
    agree(Case(queries(text), (at(0, "a p a"), at(0, "b p a"))))


def test_quotients_have_the_digits_that_the_documentation_says() -> None:
    """Found by chance, in an average of three; docs/semantics.md and the papers say nothing of it."""
    events = (at(1, "a p 1"), at(2, "a p 3 ; a p 10"), at(3, "a p 123456789012345678901234567890123456789"))
    agree(Case(queries("SELECT (AVG(?x) AS ?mean) { ?s :p ?x }"), events))
    agree(Case(queries("SELECT (?x / ?y AS ?part) (?y / ?x AS ?whole) { { ?s :p ?x } SEQ { ?s :p ?y } }"), events))


def test_of_equal_terms_min_and_max_take_the_first_in_spelling() -> None:
    """Found by chance: the definition said the first that came, which no sum over a window's terms can know."""
    prices = [at(t, f'a p "{x}"^^<{XSD}integer>') for t, x in enumerate(("1", "01", "2", "02", "1"))]
    for window in ("", " WITHIN 2 EVENTS", " WITHIN PT2S"):
        for name in ("MIN", "MAX", "SAMPLE"):
            agree(Case(queries(f"SELECT ({name}(?x) AS ?v) {{ ?s :p ?x }}{window}"), tuple(prices)))
