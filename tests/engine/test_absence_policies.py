"""Policies beside SEQ NOT: what is absent is not consumed, and each solution is, also one that looks like another."""

from __future__ import annotations

import pytest

from tests.engine.judge import in_rows_and_columns
from tests.oracle.traces import at, run

POLICIES = pytest.mark.parametrize("policy", ["recent", "chronological"])


@POLICIES
def test_what_is_absent_is_any_pair_whatever_came_before(policy: str) -> None:
    """The first b would be consumed by the c, if pairs of absent ones were."""
    query = "SELECT ?x { { ?x :a 1 } SEQ NOT { { ?x :b ?y } SEQ { ?x :c ?z } } SEQ { ?x :d ?w } }"
    events = at(1, "s b 1"), at(2, "s a 1"), at(3, "s b 1"), at(4, "s c 1"), at(5, "s d 1")
    assert run(query, *events, policy=policy) == []
    assert in_rows_and_columns(query, *events, policy=policy) == [[], []]


@POLICIES
@pytest.mark.parametrize("absence", ["SEQ NOT { ?x :n ?z } WITHIN 2 s", "SEQ NOT { ?x :n ?z } SEQ { ?x :q ?v }"])
def test_two_solutions_of_one_interval_are_consumed_one_by_one(absence: str, policy: str) -> None:
    """They differ by a variable that nothing asks for."""
    query = f"SELECT ?x {{ {{ {{ ?x :p ?y }} {absence} }} SEQ {{ ?x :d ?w }} }}"
    events = at(1, "s p 1"), at(1, "s p 2"), at(3, "s q 1"), at(3, "s q 2"), *(at(t, "s d 1") for t in (4, 5, 6))
    rows = [("x=s", 1, 4), ("x=s", 1, 5)]
    assert run(query, *events, policy=policy) == rows
    assert in_rows_and_columns(query, *events, policy=policy) == [rows, rows]
