"""The consuming policies (docs/semantics.md, Policies), on traces checked by hand."""

from __future__ import annotations

import pytest

from .traces import at, run

A_SEQ_B = "SELECT ?y ?z { { ?x :a ?y } SEQ { ?u :b ?z } }"
STREAM = (at(1, "k a 1"), at(2, "k a 2"), at(3, "k b 3"), at(4, "k b 4"), at(5, "k b 5"))


def contents(rows: list) -> list[str]:
    return [row[0] for row in rows]


def test_chronological_takes_the_earliest_and_recent_the_latest_goal() -> None:
    """The candidate is retracted: the third b finds none."""
    assert contents(run(A_SEQ_B, *STREAM, policy="chronological")) == ["y=1 z=3", "y=2 z=4"]
    assert contents(run(A_SEQ_B, *STREAM, policy="recent")) == ["y=2 z=3", "y=1 z=4"]


def test_the_query_may_name_its_policy() -> None:
    assert contents(run(A_SEQ_B + " USING POLICY recent", *STREAM)) == ["y=2 z=3", "y=1 z=4"]


def test_an_arriving_solution_is_used_once_and_still_inserts_its_own_goal() -> None:
    text = "SELECT ?y ?z { { ?x :a ?y } SEQ { ?x :a ?z } }"
    events = (at(1, "k a 1"), at(2, "k a 2"), at(3, "k a 3"))
    assert contents(run(text, *events, policy="recent")) == ["y=1 z=2", "y=2 z=3"]


def test_a_failing_filter_does_not_consume() -> None:
    """ "… and every filter conjunct that belongs to that node": 2 is no candidate for 3, and stays for 4."""
    text = "SELECT ?y ?z { { ?x :a ?y } SEQ { ?u :b ?z } FILTER(?y * 2 = ?z) }"
    assert contents(run(text, *STREAM, policy="recent")) == ["y=2 z=4"]


def test_conjuncts_go_to_the_lowest_node_that_binds_them() -> None:
    """?y > 1 is decided before the first goal is made; ?y < ?w only when the third has come."""
    text = "SELECT ?y ?z ?w { { ?x :a ?y } SEQ { ?u :b ?z } SEQ { ?v :c ?w } FILTER(?y > 1 && ?y < ?w) }"
    events = (at(1, "k a 1"), at(2, "k a 2"), at(3, "k b 3"), at(4, "k c 4"))
    assert contents(run(text, *events, policy="chronological")) == ["w=4 y=2 z=3"]
    late = "SELECT ?y ?z ?w { { ?x :a ?y } SEQ { ?u :b ?z } SEQ { ?v :c ?w } FILTER(?y * 2 = ?w) }"
    assert run(late, *events, policy="chronological") == []
    assert contents(run(late, *events, policy="recent")) == ["w=4 y=2 z=3"]


def test_upper_bounds_of_the_duration_hold_at_every_node_below() -> None:
    """With the bound below, the b at 6 takes no a that is already too old, so that the later one is taken."""
    text = """SELECT ?y ?z ?w { { ?x :a ?y } SEQ { ?u :b ?z } SEQ { ?v :c ?w }
              FILTER(getDURATION() <= "PT3S"^^xsd:duration) }"""
    events = (at(1, "k a 1"), at(5, "k a 5"), at(6, "k b 6"), at(7, "k c 7"))
    assert contents(run(text, *events, policy="chronological")) == ["w=7 y=5 z=6"]


def test_consumption_at_an_inner_node_is_final() -> None:
    """The b took the a; that no c joins changes nothing, and the next b finds no goal."""
    text = "SELECT ?y ?z ?w { { ?x :a ?y } SEQ { ?u :b ?z } SEQ { ?u :c ?w } }"
    events = (at(1, "k a 1"), at(2, "m b 2"), at(3, "k b 3"), at(4, "k c 4"))
    assert run(text, *events, policy="recent") == []


def test_equals_consumes_in_canonical_order() -> None:
    """The left side arrives first; each of the right side's, in order of terms, takes a goal."""
    text = "SELECT ?y ?z { { ?x :a ?y } EQUALS { ?u :b ?z } }"
    events = (at(1, "k a 1 ; k a 2 ; k b 3 ; k b 4 ; k b 5"),)
    assert contents(run(text, *events, policy="recent")) == ["y=1 z=4", "y=2 z=3"]
    assert contents(run(text, *events, policy="chronological")) == ["y=1 z=3", "y=2 z=4"]


def test_a_consumed_goal_is_absent_for_the_negative_half() -> None:
    text = "SELECT ?y ?z { { ?x :a ?y } OPTIONALSEQ { ?u :b ?z } }"
    events = (at(1, "k a 1"), at(2, "k b 2"), at(3, "k b 3"))
    assert contents(run(text, *events, policy="recent")) == ["y=1 z=2", "z=3"]
    both = "SELECT ?y ?z { { ?x :a ?y } EQUALSOPTIONAL { ?u :b ?z } }"
    assert contents(run(both, at(1, "k a 1 ; k a 2 ; k b 3"), policy="recent")) == ["y=1", "y=2 z=3"]


@pytest.mark.parametrize("policy", ["recent", "chronological"])
def test_joins_optional_minus_and_exists_never_consume(policy: str) -> None:
    events = (at(1, "k a 1"), at(2, "k b 2"), at(3, "k b 3"))
    for text in (
        "SELECT ?y ?z { { ?x :a ?y } AND { ?u :b ?z } }",
        "SELECT ?y ?z { ?u :b ?z OPTIONAL { ?x :a ?y } }",
    ):
        assert contents(run(text, *events, policy=policy)) == ["y=1 z=2", "y=1 z=3"]
    used = "SELECT ?z { { ?x :a ?y } SEQ { ?u :b ?z } FILTER EXISTS { { ?x :a ?v } SEQ { ?u :b ?w } } }"
    assert contents(run(used, *events, policy=policy)) == ["z=2"]
