"""An update of the background that gives other rules: what was seen before is not forgotten, or it is told."""

from __future__ import annotations

from typing import Any

import pytest

from etalis_py import Engine, Match, event
from etalis_py.events import Triple

PREFIX = "PREFIX : <http://example.org/> "
SUB = "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>"
SUB_CLASS = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
PAIR = "SELECT ?a ?b { { ?a :p ?x } SEQ { ?b :q ?y } }"
COUNT = "SELECT (COUNT(*) AS ?n) { ?a :p ?x }"
RUN = "SELECT ?n { { ?a :p ?x } REPEAT 2 OR MORE AS (COUNT(*) AS ?n) }"


def triples(text: str) -> list[Triple]:
    return list(event(text, 0).triples)


def after_update(query: str, update: str, **options: Any) -> list[Match]:
    """The matches of :p at 1 and 3 and of :q at 4, with the update between 1 and 3."""
    engine = Engine(PREFIX + query, background=triples(":z :r :z"), **options)
    matches = [*engine.push(event(":a :p 1 . :a a :C", 1)), *engine.advance(1_000_000)]
    engine.update(add=triples(update))
    matches += [*engine.push(event(":b :p 2", 3)), *engine.push(event(":c :q 3", 4)), *engine.close()]
    assert engine.counters.forgotten == 0
    return matches


def shown(matches: list[Match], *names: str) -> list[tuple[Any, ...]]:
    return [(m.start, m.end, *(m[name] for name in names)) for m in matches]


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("changes", [False, True])
def test_a_sequence_completes_over_a_change_of_the_schema(executor: str, changes: bool) -> None:
    matches = after_update(PAIR, f":pp {SUB} :p", executor=executor, changes=changes)
    assert [(m.start, m.end) for m in matches] == [(1, 4), (3, 4)]


def test_a_class_gets_a_sub_class() -> None:
    matches = after_update("SELECT ?a { { ?a a :C } SEQ { ?b :q ?y } }", f":D {SUB_CLASS} :C")
    assert [(m.start, m.end) for m in matches] == [(1, 4)]


def test_a_count_goes_on() -> None:
    assert shown(after_update(COUNT, f":pp {SUB} :p"), "n") == [(1, 1, 1), (1, 3, 2)]


def test_a_run_goes_on() -> None:
    assert shown(after_update(RUN, f":pp {SUB} :p"), "n") == [(1, 3, 2)]


def test_what_waits_for_an_absence() -> None:
    alone = "SELECT ?a { { ?a :p ?x } SEQ NOT { ?a :r ?z } WITHIN 1 s }"
    engine = Engine(PREFIX + alone, background=triples(":z :s :z"))
    engine.push(event(":a :p 1", 1))
    engine.advance(1_000_000)
    engine.update(add=triples(f":pp {SUB} :p"))
    assert [(m.start, m.end) for m in engine.advance(5_000_000)] == [(1, 2)]


@pytest.mark.parametrize("query", [PAIR, COUNT])
def test_goals_without_a_place_in_the_new_rules_are_told(query: str) -> None:
    """The background may now answer ``?a :p ?x`` itself, for which other rules are needed."""
    engine = Engine(PREFIX + query, background=triples(":z :r :z"))
    engine.push(event(":a :p 1", 1))
    with pytest.warns(UserWarning, match=r"update of the background gave other rules, in which 1 goal has no place"):
        engine.update(add=triples(":k :p 5"))
    assert engine.counters.forgotten == 1


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_goals_that_were_carried_over_are_in_the_journal(executor: str) -> None:
    def made() -> Engine:
        return Engine(PREFIX + PAIR, background=triples(":z :r :z"), journal=True, executor=executor)

    engine, other = made(), made()
    engine.push(event(":a :p 1", 1))
    engine.advance(1_000_000)
    engine.update(add=triples(f":pp {SUB} :p"))
    other.apply_journal(engine.take_journal())
    for one in (engine, other):
        one.push(event(":c :q 3", 4))
        assert [(m.start, m.end) for m in one.close()] == [(1, 4)]


def test_an_update_without_rules_is_refused_whole() -> None:
    """With the sub-property the rule would feed what its NOT EXISTS looks at; the engine goes on as before."""
    rule = "CONSTRUCT { ?a :p ?x } { ?a :q ?x FILTER NOT EXISTS { ?b :r ?x } }"
    engine = Engine(PREFIX + rule, background=triples(":z :s :z"))
    engine.push(event(":a :q 1", 1))
    before, version = engine.rules, engine.knowledge.snapshot()
    with pytest.raises(ValueError, match=r"NOT EXISTS"):
        engine.update(add=triples(f":p {SUB} :r"))
    assert engine.rules == before
    assert engine.knowledge.snapshot() == version
    engine.push(event(":b :q 2", 1))
    matches = engine.close()
    assert len(matches) == 2
