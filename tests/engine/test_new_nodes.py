"""Rules that make nodes, over patterns with blank nodes: a rule derives nothing from what it has just made itself."""

from __future__ import annotations

import pytest

from tests.engine.judge import in_rows_and_columns
from tests.oracle.traces import Short, at, run


@pytest.mark.parametrize("policy", ["unrestricted", "chronological", "recent"])
@pytest.mark.parametrize(
    ("rule", "content", "rows"),
    [
        ("CONSTRUCT { [] :p ?x } WHERE { ?n :p ?x }", "a p b", [("_ p b", 1, 1)]),
        ("CONSTRUCT { [] :p ?x } WHERE { [] :p ?x }", "a p b", [("_ p b", 1, 1)]),
        ("CONSTRUCT { _:n :p ?x } WHERE { _:n :p ?x }", "a p b", [("_ p b", 1, 1)]),
        ("CONSTRUCT { [] :p ?x } WHERE { { [] :q ?x } UNION { [] :p ?x } }", "a q b", [("_ p b", 1, 1)]),
        ("CONSTRUCT { [] :p ?x } WHERE { { [] :p ?x } { ?y :q ?x } }", "a p b ; a q b", [("_ p b", 1, 1)]),
        ("CONSTRUCT { [] :p ?x } WHERE { ?y :q ?x OPTIONAL { [] :r ?x } }", "a q b", [("_ p b", 1, 1)]),
        # The node in the middle of a path is no other.
        ("CONSTRUCT { ?a :p _:n . _:n :p ?x } WHERE { ?a :p/:p ?x }", "a p b ; b p c", [("_ p c ; a p _", 1, 1)]),
        # Two solutions that differ only in what the blank node stands for are two.
        ("CONSTRUCT { [] :p ?x } WHERE { [] :p ?x }", "a p b ; c p b", [("_ p b", 1, 1)] * 2),
    ],
)
def test_what_a_blank_node_stands_for_is_no_node_of_the_rules_own(
    rule: str, content: str, rows: list[Short], policy: str
) -> None:
    """[EP] §4.2 by docs/semantics.md, Rules: over one instant a rule says what it says in SPARQL."""
    assert run(rule, at(1, content), policy=policy) == rows
    assert in_rows_and_columns(rule, at(1, content), policy=policy) == [rows, rows]


def test_the_next_instant_sees_the_nodes_of_the_last() -> None:
    """A rule is kept from its own nodes within an instant alone."""
    rule = "CONSTRUCT { [] :p ?x } WHERE { { [] :p ?x } SEQ { ?y :q ?x } }"
    events = (at(1, "a p b"), at(2, "a q b"), at(4, "a q b"))
    expected = run(rule, *events)
    assert expected == [("_ p b", 1, 2), ("_ p b", 1, 4), ("_ p b", 1, 4)]
    assert in_rows_and_columns(rule, *events) == [expected, expected]


@pytest.mark.parametrize("policy", ["chronological", "recent"])
def test_blank_nodes_say_nothing_of_which_candidate_is_taken(policy: str) -> None:
    """A node's name is made of what its solution binds: of candidates that bind the same, any may be taken."""
    rule = "CONSTRUCT { [] :r ?x } WHERE { { [] :p ?x } SEQ { [] :q ?x } }"
    events = (at(1, "a p b ; c p b"), at(2, "a q b"), at(3, "a q b"))
    expected = run(rule, *events, policy=policy)
    assert expected == [("_ r b", 1, 2), ("_ r b", 1, 3)]
    assert in_rows_and_columns(rule, *events, policy=policy) == [expected, expected]


def test_a_rule_that_makes_nodes_beside_rules_that_others_read() -> None:
    """What a rule makes of its solutions and how many of these another node may have go by different names."""
    rules = """CONSTRUCT { ?x :d ?y } WHERE { ?x :p ?y } ;
        CONSTRUCT { ?x :e ?z . ?x :p _:new } WHERE { ?x :p ?z . ?x :p ?z } ;
        SELECT ?x ?z WHERE { EVENT { ?x :d ?z } }"""
    rows = [("x=a z=_", 1, 1), ("x=a z=b", 1, 1)]
    assert sorted(run(rules, at(1, "a p b"))) == rows
    assert [sorted(found) for found in in_rows_and_columns(rules, at(1, "a p b"))] == [rows, rows]


@pytest.mark.parametrize("operator", ["OPTIONALSEQ", "EQUALSOPTIONAL"])
def test_a_rule_that_makes_nodes_beside_an_optional_part_that_is_consumed(operator: str) -> None:
    rules = f"""CONSTRUCT {{ ?x :e ?y . ?y :r _:new }} WHERE {{ ?x :r ?y }} ;
        SELECT ?x ?y ?z WHERE {{ {{ ?x :p ?y }} {operator} {{ ?x :q ?z }} }}"""
    events = (at(1, "a p b"), at(1, "a q b"), at(2, "a q c"), at(3, "a r b"))
    expected = run(rules, *events, policy="chronological")
    assert expected
    assert in_rows_and_columns(rules, *events, policy="chronological") == [expected, expected]
