"""The rules of SEQ NOT and REPEAT: what a policy consumes, and which variables the parts carry."""

from __future__ import annotations

import pytest
from etalis_compiler.diagnostics import Source
from etalis_compiler.pipeline import compile_sources, rules_of
from etalis_rules import program as ir

BETWEEN = "SELECT * { { ?x :p ?y } SEQ NOT { { ?x :q ?z } SEQ { ?x :q ?w } } SEQ { ?x :r ?v } }"
WAITING = "SELECT * { { ?x :p ?y } SEQ NOT { { ?x :q ?z } SEQ { ?x :q ?w } } WITHIN 2 SECONDS }"


def nodes(text: str, policy: str = "unrestricted") -> list[ir.Node]:
    return [node for _, node in rules_of(compile_sources([Source(text)]), policy=policy).nodes]


@pytest.mark.parametrize("policy", ["recent", "chronological"])
@pytest.mark.parametrize(("text", "consumes"), [(BETWEEN, True), (WAITING, False)])
def test_a_policy_consumes_what_stands_before_and_after_but_not_what_is_absent(
    text: str, consumes: bool, policy: str
) -> None:
    found = nodes(text, policy)
    assert [node.policy for node in found if isinstance(node, ir.Absence)] == [policy if consumes else ""]
    assert [node.policy for node in found if isinstance(node, ir.Join)] == [""]


@pytest.mark.parametrize(
    ("absent", "sides"),
    [("?x :q ?z", {"left"}), ("?u :q ?z", {"right"}), ("?x :q ?u", {"left", "right"}), ("?w :q ?z", set())],
)
def test_an_absence_is_looked_up_by_what_either_side_binds(absent: str, sides: set[str]) -> None:
    found = nodes(f"SELECT * {{ {{ ?x :p 1 }} SEQ NOT {{ {absent} }} SEQ {{ ?u :r 1 }} }}")
    (node,) = (node for node in found if isinstance(node, ir.Absence))
    assert node.right is not None
    columns = {"left": node.left.columns, "right": node.right.columns}
    assert {side for side, names in columns.items() if set(names) & set(node.shared)} == sides


@pytest.mark.parametrize(
    ("clauses", "width"),
    [
        ("AS (COUNT(*) AS ?n)", 1),
        ("AS (COUNT(DISTINCT *) AS ?n)", 2),
        ("AS (SUM(?y) AS ?n)", 2),
        ("WHERE (SUM(?y) < 9)", 2),
    ],
)
def test_an_element_of_runs_carries_what_the_clauses_read(clauses: str, width: int) -> None:
    found = nodes(f"SELECT * {{ {{ ?x :p ?y }} REPEAT 2 BY ?x {clauses} }}")
    assert [len(node.child.columns) for node in found if isinstance(node, ir.Run)] == [width]


def test_what_is_absent_from_runs_carries_their_keys() -> None:
    found = nodes("SELECT * { { ?x :p ?y } REPEAT 2 BY ?x NOT { ?x :q ?y } AS (SUM(?y) AS ?n) }")
    (node,) = (node for node in found if isinstance(node, ir.Run))
    assert node.absent is not None
    assert node.absent.columns == node.keys
