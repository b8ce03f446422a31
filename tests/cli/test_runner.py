"""A program of the server: what falls due while its stream is silent."""

from __future__ import annotations

import re
import time

import pytest

from etalis_py import Event, compile, event
from etalis_py.cli.server_programs import EngineRunner, runner_factory

SECOND = 1_000_000
ABSENT = "SELECT ?o WHERE { { ?o :placed ?x } SEQ NOT { ?o :shipped ?y } WITHIN 1 SECOND }"


def placed(end: int) -> Event:
    return Event(end, end, event(":a :placed 1", 0).triples)


def test_an_absence_is_reported_when_it_said_it_would_be() -> None:
    runner = EngineRunner(compile(ABSENT), None, "/orders/")
    assert runner.waits() is None
    now = time.time_ns() // 1000
    runner.push(placed(now))
    assert runner.idle() == []
    waits = runner.waits()
    assert waits is not None
    assert 0.9 < waits <= 1.1  # the deadline, and a twentieth of a second for what takes longer to be stored
    time.sleep(waits)
    (match,) = runner.idle()
    assert match.end_us == now + SECOND
    assert runner.waits() is None


@pytest.mark.parametrize("revise", [0, 10 * SECOND])
def test_what_no_event_has_had_is_known(revise: int) -> None:
    runner = EngineRunner(compile("SELECT ?o { ?o :placd ?x GRAPH :g { ?o :of ?y } }"), None, "/orders/", revise)
    assert runner.unseen() == []
    runner.push(placed(SECOND))
    assert runner.unseen() == [
        "the predicate :placd never occurred; did you mean :placed? (spelt a little differently)",
        "GRAPH :g {…} asks the background, and there is none: --background FILE, in Python background=; the graph of "
        "an event is EVENT :g {…}",
    ]


def test_a_recorded_stream_only_moves_with_its_events() -> None:
    runner = EngineRunner(compile(ABSENT), None, "/orders/")
    runner.push(placed(100 * SECOND))
    assert runner.idle() == []
    assert runner.waits() is None
    assert [m.end_us for m in runner.push(placed(200 * SECOND))] == [101 * SECOND]


# -- many queries ---------------------------------------------------------------------------------------------------

ALERT = "SELECT ?x {{ :c{0} :p ?x FILTER (?x > {1}) }}"


@pytest.fixture
def standing():
    return runner_factory([], "rdfs", "unrestricted").queries("<urn:s>")


def found(runner, events):
    matches = [match for one in events for match in runner.push(one)] + runner.idle()
    return [(match.query, int(match["x"])) for match in matches]


def test_one_of_many_queries_is_a_row_of_its_kind(standing):
    assert not standing.knows(ALERT.format(1, 5))
    standing.add("a.b", ALERT.format(1, 5))
    rules = standing.rules()
    for n in range(2, 9):
        assert standing.knows(ALERT.format(n, n) + "\n")
        standing.add(f"u{n}", ALERT.format(n, n))
    assert standing.rules() == rules, "one kind has one set of rules"
    assert found(standing, [event(f":c{n} :p 7", n) for n in range(1, 9)]) == [
        ("a.b", 7),
        *((f"u{n}", 7) for n in range(2, 7)),
    ]


def test_one_of_many_queries_is_replaced_and_removed_alone(standing):
    pair = "SELECT ?x {{ {{ :c{0} :p ?x }} SEQ {{ :c{0} :p ?y }} }}"
    for n in (1, 2, 3):
        standing.add(f"u{n}", pair.format(n))
    assert found(standing, [event(f":c{n} :p {n}", n) for n in (1, 2, 3)]) == []
    standing.add("u2", pair.format(1))
    standing.remove("u3")
    later = [event(f":c{n} :p 9", t) for t in (4, 5) for n in (1, 2, 3)]
    assert sorted(found(standing, later)) == [("u1", 1), ("u1", 1), ("u1", 9), ("u2", 9)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CONSTRUCT { :a :b ?x } { :c :p ?x }", "other queries would read what it derives"),
        ("SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5M] { WINDOW :w { ?x :p ?y } }", "does not take windows"),
        ("REGISTER QUERY mine AS SELECT ?x { :c :p ?x }", "named by its address"),
        ("SELECT ?x { :c :p ?x } SELECT ?y { :c :p ?y }", "each query has an address of its own"),
        ("SELECT ?x { { START } NEXT { :c :p ?x } }", "does not take START: its queries come and go"),
        ("SELECT ?x FROM <file:///etc/passwd> { :c :p ?x }", "leave FROM out"),
        ("SELECT ?x { ", "the '{' of line 1, column 11 is not closed"),
        ("tests", "expected a query"),
    ],
)
def test_what_cannot_be_one_of_many_queries(standing, text, words):
    standing.add("honest", ALERT.format(1, 5))
    with pytest.raises(ValueError, match=re.escape(words)):
        standing.add("u", text)
    assert found(standing, [event(":c1 :p 7", 1)]) == [("honest", 7)]


def test_of_many_queries_each_kind_is_told_once_what_no_event_has_had(standing):
    for n in range(6):
        standing.add(f"u{n}", f"SELECT ?x {{ :c{n} :pirce ?x FILTER (?x > {n}) }}")
        standing.add(f"right{n}", f"SELECT ?x {{ :c{n} :price ?x FILTER (?x > {n}) }}")
    standing.add("alone", "SELECT ?x ?y { { :c1 :price ?x } SEQ { :c1 :cancelled ?y } }")
    assert standing.unseen() == [], "nothing has come yet"
    found(standing, [event(":c9 :price 1", 1)])
    told = "the predicate :pirce never occurred; did you mean :price? (spelt a little differently)"
    cancelled = "alone: the predicate :cancelled never occurred"
    assert standing.unseen() == [f"u0 and 5 like it: {told}", cancelled]

    standing.add("u0", "SELECT ?x { :c0 :price ?x FILTER (?x > 1) }")
    for n in range(1, 5):
        standing.remove(f"u{n}")
    assert standing.unseen() == [f"u5: {told}", cancelled]
    standing.remove("u5")
    found(standing, [event(":c1 :cancelled 1", 2)])
    assert standing.unseen() == []
    standing.add("late", "SELECT ?x ?y { { :c1 :price ?x } SEQ { :c1 :cancelled ?y } }")
    assert standing.unseen() == [], "both have come before"


def test_a_server_that_takes_corrections_has_no_programs_of_many_queries():
    with pytest.raises(ValueError, match="takes no corrections"):
        runner_factory([], "rdfs", "unrestricted", 1_000_000).queries("<urn:s>")
