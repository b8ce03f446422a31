"""A variable that both sides of an operator may leave unbound: its value is an error only where it is calculated with.

L: { ?y :r ?u OPTIONAL { ?y :d ?w } }    R: { ?y :q ?v OPTIONAL { ?y :p ?w } }
:a :r 1 and :a :q 2 bind no ?w: { L R } has one solution, in which ?w * 2 is an error and COUNT(?w) is 0.
"""

from __future__ import annotations

import pytest

from etalis_py import Event
from tests.engine.judge import agree, run
from tests.oracle.strategies import Case
from tests.oracle.traces import at, queries

LEFT = "{ ?y :r ?u OPTIONAL { ?y :d ?w } }"
RIGHT = "{ ?y :q ?v OPTIONAL { ?y :p ?w } }"
TWICE = "BIND (?w * 2 AS ?z)"
TOGETHER = (at(1, "a r 1 ; a q 2"),)
APART = (at(1, "a r 1"), at(2, "a q 2"))
BOUND_ON_THE_LEFT = (at(1, "a d 3"), at(2, "a r 1"), at(3, "a q 2"))
BOUND_ON_THE_RIGHT = (at(1, "a r 1"), at(2, "a p 3"), at(3, "a q 2"))

AT_ONCE = {
    "join": f"SELECT * {{ {LEFT} {RIGHT} {TWICE} }}",
    "EQUALS": f"SELECT * {{ {{ {LEFT} EQUALS {RIGHT} }} {TWICE} }}",
    "UNION": f"SELECT * {{ {{ {{ {LEFT} {RIGHT} }} UNION {{ ?y :none ?w }} }} {TWICE} }}",
    "OPTIONAL": f"SELECT * {{ {LEFT} OPTIONAL {RIGHT} {TWICE} }}",
    "EQUALSOPTIONAL": f"SELECT * {{ {{ {LEFT} EQUALSOPTIONAL {RIGHT} }} {TWICE} }}",
    "GROUP BY": f"SELECT ?y (COUNT(?w) AS ?m) {{ {LEFT} {RIGHT} }} GROUP BY ?y",
    "GROUP BY ?w": f"SELECT ?w (COUNT(*) AS ?m) {{ {LEFT} {RIGHT} }} GROUP BY ?w",
    "SUM": f"SELECT ?y (SUM(?w) AS ?n) {{ {LEFT} {RIGHT} }} GROUP BY ?y",
    "nested OPTIONAL": "SELECT ?y (SUM(?w) AS ?n) "
    "{ ?y :r ?u OPTIONAL { ?y :d ?w } OPTIONAL { ?y :q ?v OPTIONAL { ?y :p ?w } } } GROUP BY ?y",
    "HAVING": f"SELECT ?y {{ {LEFT} {RIGHT} }} GROUP BY ?y HAVING (COUNT(?w) = 0)",
    "ORDER BY": f"SELECT * {{ {LEFT} {RIGHT} }} ORDER BY (?w + 1)",
    "REPEAT": f"SELECT * {{ {{ {LEFT} {RIGHT} }} REPEAT 1 BY ?y ?w AS (SUM(?w) AS ?n, LAST(?w) AS ?l) {TWICE} }}",
    "NOT": f"SELECT * {{ {{ {{ {LEFT} {RIGHT} }} NOT {{ ?y :none ?o }} }} {TWICE} }}",
    "a deadline": f"SELECT * {{ {{ {{ {LEFT} {RIGHT} }} SEQ NOT {{ ?y :none ?o }} WITHIN 1 s }} {TWICE} }}",
    "FILTER": f"SELECT * {{ {LEFT} {RIGHT} FILTER (!BOUND(?w) || ?w > 2) }}",
    "MINUS": f"SELECT * {{ {LEFT} {RIGHT} MINUS {{ ?y :none ?w }} {TWICE} }}",
}
ONE_AFTER_THE_OTHER = {
    "SEQ": f"SELECT * {{ {{ {LEFT} SEQ {RIGHT} }} {TWICE} }}",
    "NEXT": f"SELECT * {{ {{ {LEFT} NEXT {RIGHT} }} {TWICE} }}",
    "OPTIONALSEQ": f"SELECT * {{ {{ {LEFT} OPTIONALSEQ {RIGHT} }} {TWICE} }}",
    "SEQ NOT SEQ": f"SELECT * {{ {{ {LEFT} SEQ NOT {{ ?y :none ?o }} SEQ {RIGHT} }} {TWICE} }}",
    "PREVIOUS": f"SELECT * {{ {{ {LEFT} UNION {RIGHT} }} REPEAT 2 BY ?y "
    "WHERE (COALESCE(PREVIOUS(?w) * 2, ?w * 2, 6) = 6) AS (SUM(?w) AS ?n) }",
    "getDURATION": f"SELECT * {{ {{ {LEFT} SEQ {RIGHT} }} {TWICE} "
    "FILTER (getDURATION() < 'PT9S'^^xsd:dayTimeDuration) }",
}


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("place", AT_ONCE)
def test_a_value_that_no_side_binds_loses_no_solution(place: str, executor: str) -> None:
    case = Case(queries(AT_ONCE[place]), TOGETHER)
    (rows,) = run(case, executor=executor).values()
    assert len(rows) == 1
    agree(case, executor=executor)


@pytest.mark.parametrize("policy", ["unrestricted", "recent", "chronological"])
@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("place", ONE_AFTER_THE_OTHER)
@pytest.mark.parametrize("events", [APART, BOUND_ON_THE_LEFT, BOUND_ON_THE_RIGHT], ids=["neither", "left", "right"])
def test_a_value_is_that_of_the_side_that_binds_it(
    events: tuple[Event, ...], place: str, executor: str, policy: str
) -> None:
    case = Case(queries(ONE_AFTER_THE_OTHER[place]), events, policy=policy)
    (rows,) = run(case, executor=executor).values()
    assert len(rows) == 1
    agree(case, executor=executor)


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize(("removing", "left"), [("b r 1", 1), ("b r 1 ; b s 2", 0), ("b r 1 ; b s 3", 1)])
def test_minus_takes_away_only_what_shares_a_variable(removing: str, left: int, executor: str) -> None:
    """Both sides have ``?y``, bound on the left; on the right it is unbound, or equal, or another."""
    text = "SELECT ?x ?y { ?x :p ?a OPTIONAL { ?x :q ?y } MINUS { ?b :r ?d OPTIONAL { ?b :s ?y } } }"
    case = Case(queries(text), (at(1, removing), at(2, "a p 1 ; a q 2")))
    (rows,) = run(case, executor=executor).values()
    assert len(rows) == left
    agree(case, executor=executor)
