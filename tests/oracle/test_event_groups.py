"""EVENT by hand: what the definition says over small streams."""

from __future__ import annotations

from .traces import at, background, run

READINGS = at(1, "s temp 20 ; s hum 40"), at(2, "s temp 21 ; s hum 45")


def test_columns_of_one_event_are_not_paired_with_those_of_another() -> None:
    assert run("SELECT ?t ?h { EVENT { ?s :temp ?t ; :hum ?h } }", *READINGS) == [
        ("h=40 t=20", 1, 1),
        ("h=45 t=21", 2, 2),
    ]


def test_what_two_events_both_say_is_two_solutions_and_equal_events_are_one() -> None:
    query = "SELECT ?t { EVENT { ?s :temp ?t } }"
    assert len(run(query, at(1, "s temp 20"), at(1, "s temp 20 ; s hum 40"))) == 2
    assert len(run(query, at(1, "s temp 20 ; s hum 40"), at(1, "s hum 40 ; s temp 20"))) == 1


def test_a_solution_uses_at_least_one_occurrence_of_the_event() -> None:
    known = background("s a Sensor")
    typed = "SELECT ?s { EVENT { ?s :a :Sensor FILTER EXISTS { ?s :temp ?t } } }"
    assert run(typed, *READINGS, knowing=known) == []
    joined = "SELECT ?t { EVENT { ?s :a :Sensor ; :temp ?t } }"
    assert run(joined, *READINGS, knowing=known) == [("t=20", 1, 1), ("t=21", 2, 2)]


def test_a_triple_of_the_event_and_of_the_background_is_the_events() -> None:
    query = "SELECT ?t { EVENT { ?s :temp ?t } }"
    assert run(query, READINGS[0], knowing=background("s temp 20")) == [("t=20", 1, 1)]


def test_what_is_optional_looks_into_the_event_only() -> None:
    query = "SELECT ?t ?h { EVENT { ?s :temp ?t OPTIONAL { ?s :hum ?h } } }"
    assert run(query, READINGS[0], at(2, "s temp 21")) == [("h=40 t=20", 1, 1), ("t=21", 2, 2)]


def test_every_group_has_the_interval_of_the_event() -> None:
    query = "SELECT ?t { EVENT { { ?s :a :Sensor FILTER (getDURATION() > 'PT1S'^^xsd:dayTimeDuration) } ?s :temp ?t } }"
    events = at((1, 3), "s temp 20"), at(4, "s temp 21")
    assert run(query, *events, knowing=background("s a Sensor")) == [("t=20", 1, 3)]


def test_a_solution_of_a_rule_is_one_event() -> None:
    rule = "CONSTRUCT { ?s :low ?t ; :high ?u } WHERE { { ?s :temp ?t } SEQ { ?s :temp ?u } } "
    query = "SELECT ?t ?u { EVENT { ?s :low ?t ; :high ?u } }"
    events = at(1, "s temp 20"), at(2, "s temp 21"), at(3, "s temp 22")
    assert run(rule + query, *events) == [("t=20 u=21", 1, 2), ("t=20 u=22", 1, 3), ("t=21 u=22", 2, 3)]
