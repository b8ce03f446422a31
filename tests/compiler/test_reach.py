"""How far back solutions reach: the bounds that a program has, and why some have none."""

from __future__ import annotations

import pytest
from etalis_compiler.diagnostics import Source
from etalis_compiler.pipeline import compile_sources, rules_of
from etalis_compiler.reach import Reach, reaches

SECOND = 1_000_000


def reach(text: str, policy: str = "unrestricted") -> Reach:
    """Of the last query of a program."""
    return list(reaches(rules_of(compile_sources([Source(text)]), policy=policy)).values())[-1]


RULE = "CONSTRUCT { ?a :d ?b } WHERE { { ?a :p ?x } SEQ { ?b :q ?y } } WITHIN 10 SECONDS "
LATE = "CONSTRUCT { ?a :d ?a } WHERE { { ?a :p ?x } SEQ NOT { ?a :q ?y } WITHIN 10 SECONDS } "


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "SELECT * { ?a :p ?x }"),
        (0, "SELECT * { { ?a :p ?x } EQUALS { ?b :q ?y } }"),
        (10, "SELECT * { { ?a :p ?x } SEQ { ?b :q ?y } } WITHIN 10 SECONDS"),
        (10, "SELECT * { { { ?a :p ?x } SEQ { ?b :q ?y } } SEQ { ?c :r ?z } } WITHIN 10 SECONDS"),
        (10, "SELECT * { ?a :p ?x . ?b :q ?y FILTER (getDURATION() <= 'PT10S'^^xsd:dayTimeDuration) }"),
        (10, "SELECT * { { ?a :p ?x } NEXT { ?b :q ?y } } WITHIN 10 SECONDS"),
        (10, "SELECT * { { ?a :p ?x } SEQ NOT { ?c :r ?z } SEQ { ?b :q ?y } } WITHIN 10 SECONDS"),
        (10, "SELECT * { { ?a :p ?x } SEQ NOT { ?b :q ?y } WITHIN 10 SECONDS }"),
        (10, "SELECT * { { ?a :p ?x } SEQ OPTIONAL { ?b :q ?y } WITHIN 10 SECONDS }"),
        (10, "SELECT * { { ?a :p ?x } SEQ OPTIONAL { ?c :r ?z } SEQ { ?b :q ?y } } WITHIN 10 SECONDS"),
        (10, "SELECT * { { ?a :p ?x } REPEAT 2 OR MORE AS (COUNT(*) AS ?n) } WITHIN 10 SECONDS"),
        (10, "SELECT * { ?a :p+ ?x } WITHIN 10 SECONDS"),
        (10, "SELECT * { ?a :p ?x OPTIONAL { ?b :q ?y FILTER (getDURATION() <= 'PT10S'^^xsd:duration) } }"),
        (20, "SELECT ?a (COUNT(*) AS ?n) { ?a :p ?x } WITHIN 10 SECONDS GROUP BY ?a"),
        # A derived triple has the interval of what it is made from, so only the last bound counts …
        (10, RULE + "SELECT * { { ?a :d ?b } SEQ { ?c :r ?z } } WITHIN 10 SECONDS"),
        (10, RULE + "SELECT * { ?a :d ?b }"),
        (10, RULE + "CONSTRUCT { ?a :d ?c } WHERE { { ?a :d ?b } SEQ { ?b :d ?c } } WITHIN 10 SECONDS"),
        # … but what looks outside of it adds up.
        (15, LATE + "SELECT * { { ?a :d ?b } SEQ NOT { ?c :r ?z } WITHIN 5 SECONDS }"),
    ],
)
def test_a_bound(seconds: int, text: str) -> None:
    found = reach(text)
    assert (found.back, found.reason) == (seconds * SECOND, "")


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("nothing bounds how far", "SELECT * { { ?a :p ?x } SEQ { ?b :q ?y } }"),
        ("nothing bounds how far", "SELECT * { { { ?a :p ?x } SEQ { ?b :q ?y } } WITHIN 5 SECONDS SEQ { ?c :r ?z } }"),
        ("MINUS looks at all the past", "SELECT * { { ?a :p ?x MINUS { ?a :q ?y } } } WITHIN 10 SECONDS"),
        ("EXISTS looks at all the past", "SELECT * { ?a :p ?x FILTER NOT EXISTS { ?a :q ?y } } WITHIN 10 SECONDS"),
        ("OPTIONAL looks at all the past", "SELECT * { { ?a :p ?x OPTIONAL { ?b :q ?y } } } WITHIN 10 SECONDS"),
        ("LONGEST", "SELECT * { { ?a :p ?x } REPEAT 2 OR MORE LONGEST AS (COUNT(*) AS ?n) } WITHIN 10 SECONDS"),
        ("MAXIMAL", "SELECT * { { ?a :p ?x } REPEAT 2 OR MORE GAP 5 s MAXIMAL AS (COUNT(*) AS ?n) } WITHIN 10 SECONDS"),
        ("UNTIL", "SELECT * { { ?a :p ?x } REPEAT 2 OR MORE UNTIL { ?a :q ?y } } WITHIN 10 SECONDS"),
        ("a path may take any time", "SELECT * { ?a :p+ ?x }"),
        ("an aggregate without a window", "SELECT ?a (COUNT(*) AS ?n) { ?a :p ?x } GROUP BY ?a"),
        ("an aggregate without GROUP BY", "SELECT (COUNT(*) AS ?n) { ?a :p ?x } WITHIN 10 SECONDS"),
        ("may lie back any time", "SELECT ?a (COUNT(*) AS ?n) { ?a :p ?x } WITHIN 3 EVENTS GROUP BY ?a"),
        ("ASK answers once", "ASK { { ?a :p ?x } SEQ { ?b :q ?y } } WITHIN 10 SECONDS"),
        ("LIMIT and OFFSET", "SELECT * { ?a :p ?x } LIMIT 3"),
        ("DESCRIBE", "DESCRIBE ?a { ?a :p ?x }"),
        (
            "its rules feed each other",
            LATE + "CONSTRUCT { ?a :p ?a } { { ?a :d ?x } SEQ NOT { ?c :r ?z } WITHIN PT1S }",
        ),
    ],
)
def test_without_end(reason: str, text: str) -> None:
    found = reach(text)
    assert not found.bounded
    assert reason in found.reason


def test_a_policy_uses_up_what_came_before_but_not_within_one_instant() -> None:
    sequence = reach("SELECT * { { ?a :p ?x } SEQ { ?b :q ?y } } WITHIN 10 SECONDS", "recent")
    assert "under the policy recent" in sequence.reason
    assert reach("SELECT * { { ?a :p ?x } EQUALS { ?b :q ?y } }", "recent").back == 0
