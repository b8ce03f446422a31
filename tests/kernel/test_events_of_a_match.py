"""The events behind a match, found without explaining all of it."""

from __future__ import annotations

import pytest

from etalis_py import Engine, Event, Match, event

SECOND = 1_000_000
PRICES = [event(":c :price 10", 1), event(":c :price 6", 3), event(":c :sold 5", 4)]
QUERIES = {
    "a sequence": "SELECT ?x ?y { { ?c :price ?x } SEQ { ?c :price ?y } }",
    "one event": "SELECT * { EVENT { ?c :sold ?x } }",
    "runs": "SELECT ?c { { ?c :price ?x } REPEAT 2 }",
    "a sum": "SELECT (SUM(?x) AS ?s) { ?c :price ?x } WITHIN PT9S",
    "a derived event": ["CONSTRUCT { ?c :cheap ?x } { ?c :price ?x }", "SELECT ?c { ?c :cheap ?x }"],
    "a sum without end": "SELECT (SUM(?x) AS ?s) { ?c :price ?x }",
}


def found(query: str | list[str], events: list[Event], *, explain: bool = True) -> list[Match]:
    engine = Engine(query, explain=explain)
    return [*engine.push_all(events), *engine.close()]


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_they_are_the_leaves_of_the_explanation(query: str | list[str]) -> None:
    matches = found(query, PRICES)
    assert matches
    for match in matches:
        leaves = [(leaf.triple, *leaf.interval) for leaf in match.why().events()]  # type: ignore[misc]
        assert [(triple, start // SECOND, end // SECOND) for triple, start, end in match.events()] == leaves


def test_there_are_no_more_than_were_asked_for() -> None:
    query, events = (
        "SELECT (COUNT(?x) AS ?n) { ?c :price ?x } WITHIN PT9S",
        [event(f":c :price {i}", i) for i in range(9)],
    )
    last = found(query, events)[-1]
    assert len(list(last.why().events())) > 5
    assert last.events(3) == last.events()[:3]


def test_without_an_explanation_there_are_none() -> None:
    (match,) = found("SELECT ?x { ?c :sold ?x }", PRICES, explain=False)
    assert match.events() == []
    windowed = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S] { WINDOW :w { ?x :sold ?y } }"
    matches = found(windowed, [PRICES[2]._replace(stream="<http://example.org/s>")])
    assert matches
    assert not any(match.events() for match in matches)
