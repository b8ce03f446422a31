"""The module for users' own tests: scripts, crashes, the clock, comparisons."""

from __future__ import annotations

import doctest
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import etalis_py.testing
import etalis_py.testing.clock
from etalis_py import Event, compile, event
from etalis_py.testing import ABORT, EOF, SNAPSHOT, MovableClock, assert_matches, play, wait

RISING = compile("SELECT ?c ?x ?y WHERE { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x)")


def tick(time: int, price: int) -> Event:
    return event(f":acme :price {price}", time)


@pytest.mark.parametrize("module", [etalis_py.testing, etalis_py.testing.clock])
def test_the_examples_in_the_documentation(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_a_script_without_an_end_leaves_the_last_instant_open() -> None:
    assert play(RISING, [tick(1, 10), tick(3, 12)]).matches == []
    assert len(play(RISING, [tick(1, 10), tick(3, 12), EOF]).matches) == 1


def test_nothing_happens_after_the_end() -> None:
    with pytest.raises(ValueError, match="stands after EOF"):
        play(RISING, [EOF, tick(1, 10)])


def test_what_is_no_step_is_an_error() -> None:
    with pytest.raises(ValueError, match="is not a step"):
        play(RISING, [7])  # type: ignore[list-item]


def test_turtle_happens_when_the_clock_says() -> None:
    clock = MovableClock("2026-01-01T00:00:00Z")
    played = play(RISING, [":acme :price 10", wait(2), ":acme :price 12", wait("500ms")], clock=clock)
    start = 1_767_225_600
    assert_matches(played, [{"c": ":acme", "start": start, "end": start + 2}])


def test_a_clock_moves_forward_only() -> None:
    with pytest.raises(ValueError, match="forward only"):
        MovableClock().move(-1)


def test_after_a_crash_without_a_snapshot_everything_is_read_again() -> None:
    played = play(RISING, [tick(1, 10), tick(3, 12), tick(5, 9), ABORT, EOF])
    assert_matches(played, [{"x": 10, "y": 12}])
    assert played.repeated == 1, "the match was found before the crash and after it, with the same id"


def test_after_a_crash_with_a_snapshot_only_what_came_later_is_read_again() -> None:
    played = play(RISING, [tick(1, 10), tick(3, 12), tick(5, 13), SNAPSHOT, ABORT, EOF])
    assert_matches(played, [{"x": 10, "y": 12}, {"x": 10, "y": 13}, {"x": 12, "y": 13}])
    assert played.repeated == 0


def test_late_events_are_told_once() -> None:
    played = play(RISING, [tick(3, 10), tick(1, 12), ABORT, EOF])
    assert played.late == [tick(1, 12)]


def test_options_are_those_of_the_engine() -> None:
    steps = [tick(1, 10), tick(3, 12), tick(5, 13), EOF]
    assert len(play(RISING, steps).matches) == 3
    assert len(play(RISING, steps, policy="recent").matches) == 2
    assert "SEQ" in str(play(RISING, steps, explain=True).matches[0].why())


@given(st.lists(st.integers(0, 9), max_size=8), st.sets(st.integers(0, 8)), st.integers(0, 3))
def test_crashes_change_nothing(prices: list[int], crashes: set[int], every: int) -> None:
    """The set of matches is a function of the events alone."""
    calm = [tick(i, price) for i, price in enumerate(prices)]
    rough = [step for i, one in enumerate(calm) for step in ([one, ABORT] if i in crashes else [one])]
    found = play(RISING, [*rough, EOF], snapshot_every=every).matches
    assert [m.id for m in found] == [m.id for m in play(RISING, [*calm, EOF]).matches]


# --- comparisons ------------------------------------------------------------------------------------------------


PLAYED = play(RISING, [tick(1, 10), tick(3, 12), tick(5, 13), EOF])


@pytest.mark.parametrize(
    "expected",
    [
        [{}, {}, {}],
        [{"y": 13}, {"y": 13}, {"y": 12}],
        [{}, {"x": 10}, {"x": 10, "y": 12}],
        [{"c": ":acme", "x": '"10"^^<http://www.w3.org/2001/XMLSchema#integer>'}, {"x": 12}, {"start": 1, "end": 5}],
        [{"query": "q1", "z": None}, {"?x": 10}, {}],
    ],
)
def test_matches_that_are_as_expected(expected: list[dict[str, object]]) -> None:
    assert_matches(PLAYED, expected)


@pytest.mark.parametrize(
    "expected",
    [
        [],
        [{}, {}],
        [{}, {}, {}, {}],
        [{"x": 12}, {"x": 12}, {}],
        [{"x": Decimal(10)}, {"x": Decimal(10)}, {}],
        [{"x": True}, {}, {}],
        [{"x": None}, {}, {}],
        [{"z": 1}, {}, {}],
        [{"c": ":other"}, {}, {}],
        [{"triples": ":a :b :c"}, {}, {}],
    ],
)
def test_matches_that_are_not_as_expected(expected: list[dict[str, object]]) -> None:
    with pytest.raises(AssertionError, match=f"3 matches, {len(expected)} expected"):
        assert_matches(PLAYED, expected)


def test_the_order_counts_when_it_is_asked_for() -> None:
    assert_matches(PLAYED.matches, [{"y": 12}, {"x": 10}, {"x": 12}], ordered=True)
    with pytest.raises(AssertionError, match="in this order"):
        assert_matches(PLAYED.matches, [{"x": 12}, {"x": 10}, {"y": 12}], ordered=True)


def test_what_differs_is_shown() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_matches(PLAYED, [{"y": 12}, {"y": 13}, {"y": 14}])
    lines = str(caught.value).splitlines()
    assert lines[1] == "  expected: {'y': 14}"
    assert lines[2].startswith("  found:    <q1 [3, 5] ")


def test_constructed_triples_and_answers() -> None:
    rules = compile("CONSTRUCT { ?c :up ?y ; :from ?x } WHERE { ?c :price ?x } SEQ { ?c :price ?y }")
    played = play(rules, [tick(1, 10), tick(3, 12), EOF])
    assert_matches(played, [{"triples": ":acme :from 10 ; :up 12"}])
    asked = play(compile("ASK { ?c :price 12 }"), [tick(1, 10), EOF])
    assert_matches(asked, [{"boolean": False}])


def test_a_text_that_is_no_term_is_told_with_its_variable() -> None:
    with pytest.raises(
        ValueError, match=r"^c: 'acme' is not a term in Turtle; an IRI is as ':acme'.*a string as '\"acme\"'$"
    ):
        assert_matches(PLAYED, [{"c": "acme"}])
