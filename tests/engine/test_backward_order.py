"""The order in which the parts of a pattern are evaluated, in steps: triples looked at and rows combined."""

from __future__ import annotations

import pytest
from etalis_rules.algebra import (
    UNIT,
    Const,
    Extend,
    Filter,
    Join,
    Outer,
    Pattern,
    Repeated,
    Select,
    Step,
    SubSelect,
    Union,
)
from etalis_rules.relations import Op, OuterOp

from etalis_py.sparql import EvaluationLimits, prepare
from tests.engine.backward_tables import STAR, bgp, knowledge, op, path, rows, t

MANY = 1000
LABELS = knowledge(" . ".join(f"n{i} next n{i + 1} . n{i} label l{i}" for i in range(MANY)) + " . e price n5")
PRICE = bgp("e price ?x")
FEW = EvaluationLimits(steps=50)


def all_of(*parts: Pattern) -> Pattern:
    joined, *others = parts
    for part in others:
        joined = Join(Op.AND, joined, part)
    return joined


@pytest.mark.parametrize(
    "between",
    [
        Union(bgp("?x next ?y"), bgp("?y next ?x")),
        Filter(bgp("?x next ?y"), (op("!=", "?x", "?y"),)),
        SubSelect(Select(bgp("?x next ?y"), ("x", "y"))),
    ],
    ids=["UNION", "a group with FILTER", "a sub-SELECT"],
)
def test_what_is_connected_comes_before_triples_that_are_not(between: Pattern) -> None:
    pattern = all_of(PRICE, between, bgp("?y label ?l"))
    found = rows(prepare(pattern).solve({}, LABELS, limits=FEW))
    assert found[-1] == "l=l6 x=n5 y=n6"


@pytest.mark.parametrize(
    "first",
    [Extend(PRICE, "y", t("?x")), Union(Extend(PRICE, "y", t("?x")), bgp("e volume ?y"))],
    ids=["BIND", "UNION"],
)
def test_a_part_that_opens_with_triples_keeps_its_place(first: Pattern) -> None:
    pattern = all_of(first, bgp("?y label ?l"))
    assert rows(prepare(pattern).solve({}, LABELS, limits=FEW)) == ["l=l5 x=n5 y=n5"]


def test_a_constant_of_bind_comes_first() -> None:
    pattern = all_of(bgp("?x label ?l"), Extend(UNIT, "x", Const("<urn:n7>")))
    assert rows(prepare(pattern).solve({}, LABELS, limits=FEW)) == ["l=l7 x=n7"]


def test_a_variable_that_is_perhaps_bound_is_looked_up_where_it_is() -> None:
    optional = Outer(OuterOp.OPTIONAL, PRICE, bgp("?x next ?y"), ())
    assert rows(prepare(all_of(optional, bgp("?y label ?l"))).solve({}, LABELS, limits=FEW)) == ["l=l6 x=n5 y=n6"]


def test_a_variable_that_is_not_bound_after_all_takes_one_scan_for_all_solutions() -> None:
    optional = Outer(OuterOp.OPTIONAL, bgp("?x label ?m"), bgp("?x colour ?y"), ())
    pattern = all_of(optional, bgp("?y price ?z"))
    assert len(rows(prepare(pattern).solve({}, LABELS, limits=EvaluationLimits(steps=5 * MANY)))) == MANY


def test_nested_parts_that_are_entered_in_two_ways_are_compiled_in_turn() -> None:
    pattern: Pattern = bgp("?y label ?l")
    for depth in range(40):  # each is entered with ?y, which the OPTIONAL before it may leave unbound
        pattern = all_of(Outer(OuterOp.OPTIONAL, PRICE, bgp("?x next ?y"), ()), Filter(pattern, (op("!=", "?y", "1"),)))
        pattern = Extend(pattern, f"v{depth}", t("?x"))
    (solution,) = prepare(pattern).solve({}, LABELS, limits=EvaluationLimits(steps=MANY))
    assert solution[0]["l"] == "<urn:l6>"


def test_a_zero_length_step_does_not_count_the_triples_of_its_node() -> None:
    members = " . ".join(f"n{i} type firm" for i in range(MANY))
    pattern = all_of(bgp("n5 type ?c"), path("?c", Repeated(Step("<urn:sub>"), *STAR), "?d"))
    source = knowledge(members + " . firm sub thing")
    assert rows(prepare(pattern).solve({}, source, limits=FEW)) == ["c=firm d=firm", "c=firm d=thing"]
