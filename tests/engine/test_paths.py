"""Property paths in a block with triples: what joins its parts may have no name of its own."""

from __future__ import annotations

import pytest

from etalis_py import Engine, event
from tests.engine.judge import in_rows_and_columns
from tests.oracle.traces import at, run

EVENTS = (event(":a :p :b", 1), event(":b :q :c", 2), event(":c :q :d", 3), event(":e :p :b", 4))


@pytest.mark.parametrize("policy", ["unrestricted", "chronological", "recent"])
@pytest.mark.parametrize("block", ["?x :p/:q+ ?b", "?x :p ?y . ?y :q+ ?b", "[] :p [ :q+ ?b ]"])
def test_nothing_is_consumed_within_a_block(block: str, policy: str) -> None:
    engine = Engine(f"SELECT ?b {{ {block} }}", policy=policy)
    matches = engine.push_all(EVENTS) + engine.close()
    assert [(m.bindings["b"][-2], m.start, m.end) for m in matches] == [
        ("c", 1, 2),
        ("d", 1, 3),
        ("c", 2, 4),
        ("d", 2, 4),
    ]


def test_a_step_that_may_be_missing_keeps_its_node() -> None:
    engine = Engine("SELECT ?b { { ?x :p/:q? ?b } SEQ { ?z :p ?b } }", policy="recent")
    matches = engine.push_all([*EVENTS, event(":f :p :c", 5)]) + engine.close()
    assert [(m.bindings["b"][-2], m.start, m.end) for m in matches] == [("b", 1, 4), ("c", 2, 5)]


@pytest.mark.parametrize("path", [":p*", "(:p*)+", "(:p?)+", "(:p?/:p?)+", "(:p|:p*)+", "^((^:p?)+)"])
def test_a_way_back_to_a_constant_adds_nothing_to_its_zero_length_step(path: str) -> None:
    """Whatever repetition gives the zero-length step: ``p+`` is ``p*`` where p may be empty."""
    cycle = (at(1, "n p m"), at(2, "m p n"))
    rows = [("o=m", 1, 1), ("o=m", 1, 2), ("o=n", None, None)]
    text = f"SELECT * {{ :n {path} ?o }}"
    assert run(text, *cycle) == rows
    assert in_rows_and_columns(text, *cycle) == [rows, rows]
    there = f"SELECT * {{ :n {path} :n }}"
    assert in_rows_and_columns(there, *cycle) == [[("", None, None)]] * 2
