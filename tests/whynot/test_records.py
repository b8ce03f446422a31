"""Why-not over EVENT: which column of a record did not fit, in the event that came nearest."""

from __future__ import annotations

import pytest

from etalis_py import Program, compile, event
from etalis_py.events import Retraction
from etalis_py.knowledge import load
from tests.oracle.traces import at

READINGS = (at(1, "s temp 20 ; s hum 40"), at(2, "s temp 21 ; s hum 45"), at(3, "t temp 22"))


def program(text: str) -> Program:
    return compile(f"PREFIX : <urn:> {text}")


def test_it_names_the_column_that_the_event_lacks() -> None:
    report = program("SELECT * { EVENT { ?s :temp 22 ; :hum ?h } }").why_not(READINGS)
    (lacking, other) = (blame for blame in report.blames if blame.likely)
    assert (lacking.kinds, lacking.conditions) == (("column",), ("?s :hum ?h in the same event",))
    assert lacking.misses[0].shown == "?s = :t [3]"
    assert lacking.misses[0].because == ("the event does not say :t :hum ?h",)
    assert other.misses[0].because == ("the event does not say :s :temp 22",)


def test_it_blames_no_column_that_the_event_of_a_match_has() -> None:
    report = program("SELECT * { EVENT { ?s :temp ?t ; :hum ?h } }").why_not(READINGS)
    assert [miss.shown for blame in report.blames for miss in blame.misses if blame.kinds == ("column",)] == [
        "?s = :t, ?t = 22 [3]"
    ]


def test_the_plan_counts_the_columns() -> None:
    plan = program("SELECT * { EVENT { ?s :temp 22 ; :hum ?h } }").why_not(READINGS).plan
    assert (plan.title, plan.all.number) == ("EVENT { ?s :temp 22 . ?s :hum ?h }", 0)
    columns = [(part.title, part.all.number) for part in plan.parts]
    assert columns == [("EVENT { ?s :temp 22 }", 1), ("EVENT { ?s :hum ?h }", 2)]


def test_a_filter_on_a_column_says_by_how_much_it_fails() -> None:
    report = program("SELECT * { EVENT { ?s :temp ?t ; :hum ?h FILTER (?h > 45) } }").why_not(READINGS)
    (blame,) = (blame for blame in report.blames if blame.kinds == ("filter",))
    assert blame.misses[0].because == ("45 > 45 does not hold: the two are equal",)


def test_a_column_that_is_spelt_differently_is_shown() -> None:
    report = program("SELECT * { EVENT { ?s :temp ?t } SEQ EVENT { ?s :humid ?h } }").why_not(READINGS)
    assert "the nearest is :hum" in str(report)


def test_columns_of_different_events_are_no_record() -> None:
    """Although each column has its value somewhere."""
    report = program("SELECT * { EVENT { ?s :temp 20 ; :hum 45 } }").why_not(READINGS)
    assert [blame.kinds for blame in report.blames if blame.likely] == [("column",), ("column",)]
    assert program("SELECT * { ?s :temp 20 ; :hum 45 }").why_not(READINGS).matches == ("?s = :s [1, 2]",)


def test_derived_events_and_what_the_schema_adds_are_asked_too() -> None:
    rule = "CONSTRUCT { ?s :low ?t ; :high ?u } WHERE { { ?s :temp ?t } SEQ { ?s :temp ?u } } "
    query = "REGISTER QUERY asked AS SELECT * { EVENT { ?s :low ?t ; :high 22 } }"
    report = program(rule + query).why_not(READINGS, query="asked")
    assert "the event does not say :s :high 22" in str(report)
    schema = load("@prefix : <urn:> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . :temp rdfs:domain :S .")
    typed = program("SELECT * { EVENT { ?s a :S ; :hum 41 } }").why_not(READINGS, background=schema)
    assert typed.blames[0].misses[0].because == ("the event does not say :t :hum 41",)


def test_over_windows_it_names_the_column_too() -> None:
    query = (
        "SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT5S TUMBLING] { WINDOW :w { EVENT { ?s :temp 22 ; :hum ?h } } }"
    )
    report = program(query).why_not([one._replace(stream="<urn:s>") for one in READINGS])
    assert report.blames[0].misses[0].because == ("the event does not say :t :hum ?h",)


def test_over_windows_it_blames_no_column_that_the_item_of_a_solution_has() -> None:
    query = (
        "SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT5S TUMBLING] { WINDOW :w { EVENT { ?s :temp ?t ; :hum ?h } } }"
    )
    report = program(query).why_not([one._replace(stream="<urn:s>") for one in READINGS])
    assert len(report.matches) == 2
    assert [miss.shown for blame in report.blames for miss in blame.misses if blame.kinds == ("column",)] == [
        "?s = :t, ?t = 22 [0, 5]"
    ]


def test_a_stream_that_withdraws_events_is_refused_with_what_to_do() -> None:
    stream = [*READINGS, Retraction._make(event("<urn:t> <urn:temp> 22", 3))]
    with pytest.raises(ValueError, match="corrected stream"):
        program("SELECT * { EVENT { ?s :temp 22 ; :hum ?h } }").why_not(stream, revise=10)
