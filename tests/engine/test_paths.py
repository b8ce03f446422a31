"""Property paths in a block with triples: what joins its parts may have no name of its own."""

from __future__ import annotations

import pytest

from etalis_py import Engine, event

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
