"""A join of values that are never the same term finds nothing, and that is told."""

from __future__ import annotations

from typing import Any

import pytest

from etalis_py import event, run

SOLD = [event(":o1 :sku 7", 1), event(':p1 :code "7" ; :grade 7.0', 2), event(":o2 :sku 8", 3)]
TEXTS = (
    '?k joins :code with :sku, but the values of :code are texts, as "7", and those of :sku xsd:integer, as 7: '
    "what differs in its type is not the same, so they join nothing"
)
DECIMALS = TEXTS.replace(":code", ":grade").replace('texts, as "7"', "xsd:decimal, as 7.0")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("{ ?o :sku ?k } SEQ { ?p :code ?k }", TEXTS),
        ("?o :sku ?k . ?p :code ?k", TEXTS),
        ("{ ?o :sku ?k } SEQ { EVENT { ?p :code ?j ; :grade ?k } }", DECIMALS),
        ("{ ?o :sku ?k } NEXT { ?p :grade ?k }", DECIMALS),
        ("{ ?o :sku ?k } SEQ NOT { ?p :code ?k } WITHIN 1 s", TEXTS),
        ("?o :sku ?k OPTIONAL { ?p :code ?k }", TEXTS),
        ("?o :sku ?k MINUS { ?p :code ?k }", TEXTS),
        ("{ ?o :sku ?j } UNION { { ?o :sku ?k } SEQ { ?p :code ?k } }", TEXTS),
        ("{ ?o :sku ?k } REPEAT 2 BY ?k UNTIL { ?p :code ?k } AS (COUNT(*) AS ?n)", TEXTS),
    ],
)
@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_values_of_different_types_are_told_where_they_are_joined(pattern: str, expected: str, executor: Any) -> None:
    matches = run(f"SELECT * {{ {pattern} }}", SOLD, executor=executor)
    list(matches)
    assert matches.warnings == (expected,)


@pytest.mark.parametrize(
    ("pattern", "more"),
    [
        ("{ ?o :sku ?k } SEQ { ?p :code ?j }", ""),
        ("{ ?o :sku ?k } SEQ { ?p :code ?k }", ':o3 :sku "9"'),  # of several types
        ("{ ?o :sku ?k } SEQ { ?p :sku ?k }", ""),
        ("{ ?o :sku ?k } REPEAT 2 NOT { ?p :code ?k } AS (COUNT(*) AS ?n)", ""),  # another ?k
        ("{ SELECT ?p { ?p :code ?k } } ?o :sku ?k", ""),
        ("{ ?o :sku ?k } UNION { ?p :code ?k }", ""),
        ("{ ?o :sku ?k } SEQ { ?p :name ?k }", ':p1 :name "a"@en ; :name 7'),
    ],
)
def test_values_that_may_be_the_same_are_left_alone(pattern: str, more: str) -> None:
    matches = run(f"SELECT * {{ {pattern} }}", [*SOLD, *([event(more, 4)] if more else [])])
    list(matches)
    assert matches.warnings == ()


def test_values_of_the_background_count() -> None:
    asked = "SELECT ?o { ?o :sku ?k . ?p :code ?k }"
    stored = '@prefix : <http://example.org/> . :p1 :code "{}" .'
    for background, expected in ((stored.format(7), (TEXTS,)), (stored.format(7) + " :p2 :code 9 .", ())):
        matches = run(asked, [event(":o1 :sku 7", 1)], background=background)
        list(matches)
        assert matches.warnings == expected
