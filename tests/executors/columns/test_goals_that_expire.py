"""Goals are dropped once nothing that can still come would find them, and not before."""

from __future__ import annotations

import pytest

from etalis_py import Engine, event, run

JOINS = {
    "kept": "SELECT * { { ?a :p ?x } SEQ { ?b :q ?y } } WITHIN 10 SECONDS",
    "consumed": "SELECT * { { ?a :p ?x } SEQ { ?b :q ?y } } WITHIN 10 SECONDS USING POLICY chronological",
    "of both sides": "SELECT * { ?a :p ?x . ?b :q ?y FILTER (getDURATION() <= 'PT10S'^^xsd:duration) }",
    "absent": "SELECT * { { ?a :p ?x } SEQ NOT { ?k :q 0 } SEQ { ?b :q ?y } } WITHIN 10 SECONDS",
    "optional": "SELECT * { ?b :q ?y OPTIONAL { ?a :p ?x FILTER (getDURATION() <= 'PT10S'^^xsd:duration) } }",
}


@pytest.mark.parametrize("name", JOINS)
def test_what_comes_first_in_a_batch_finds_the_goals_that_expire_later_in_it(name: str) -> None:
    """Room is made for the goals of a batch, which begins with an event that looks for older ones.

    The last instant of a batch waits for the next one: so each begins with a :q.
    """
    events = [event(f":e{n} {':p' if n % 8 else ':q'} {n}", 4 * n) for n in range(400)]
    found = {}
    for executor in ("rows", "columns"):
        engine = Engine(JOINS[name], executor=executor)  # type: ignore[arg-type]
        matched = [m.id for last in range(1, 400, 40) for m in engine.push_all(events[max(0, last - 40) : last])]
        found[executor] = [*matched, *(m.id for m in engine.close())]
    assert found["columns"] == found["rows"]


@pytest.mark.parametrize("name", ["of both sides", "optional"])
@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_filter_by_a_length_that_no_match_reaches_drops_nothing(name: str, executor: str) -> None:
    """More microseconds than fit into 64 bits."""
    events = [event(f":e{n} {':p' if n % 2 else ':q'} {n}", 1_000_000 * n) for n in range(12)]
    short, long = JOINS[name].replace("PT10S", "P9000D"), JOINS[name].replace("PT10S", "PT99999999999H")
    expected = [m.bindings for m in run(short, events, executor="rows")]
    assert [m.bindings for m in run(long, events, executor=executor)] == expected  # type: ignore[arg-type]
