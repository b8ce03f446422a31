"""What a consuming policy may take: a candidate satisfies every conjunct that belongs to its join, wherever a BIND
stands."""

from __future__ import annotations

import pytest

from tests.engine.judge import agree, run
from tests.oracle.strategies import Case
from tests.oracle.traces import at, queries, short

PRICES = (at(1, "a p 1"), at(2, "a p 2"), at(3, "a q 1"))
"""recent takes :a :p 2, unless a conjunct refuses it."""
LEFT = "{ ?x :p ?v OPTIONAL { ?x :p ?w FILTER (?v = ?w) } }"
RIGHT = "{ ?x :q ?u OPTIONAL { ?x :none ?w } }"


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize(
    "place", ["{0} FILTER ({1})", "{0} BIND (?v + 1 AS ?k) FILTER ({1})", "{{ {0} }} FILTER ({1})"]
)
@pytest.mark.parametrize(
    "conjunct",
    [
        "?w = 1",  # neither side certainly binds it, so it belongs to the join
        "COALESCE(?w, 0) = 1",
        "?v = ?u",
        "getDURATION() > 'PT1S'^^xsd:dayTimeDuration",
    ],
)
def test_a_candidate_satisfies_the_conjuncts_of_its_join(conjunct: str, place: str, executor: str) -> None:
    case = Case(queries(f"SELECT * {{ {place.format(f'{LEFT} SEQ {RIGHT}', conjunct)} }}"), PRICES, policy="recent")
    (rows,) = run(case, executor=executor).values()
    assert [short(row.bindings["v"]) for row in rows] == ["1"]
    agree(case, executor=executor)


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_conjunct_that_reads_a_bind_is_tested_after_the_choice(executor: str) -> None:
    text = "SELECT * { { ?x :p ?v } SEQ { ?x :q ?u } BIND (?v + 1 AS ?k) FILTER (?k = 2) }"
    case = Case(queries(text), PRICES, policy="recent")
    (rows,) = run(case, executor=executor).values()
    assert not rows
    agree(case, executor=executor)
