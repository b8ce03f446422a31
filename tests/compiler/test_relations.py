"""What follows from the definitions of the temporal relations, against the definitions written out by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from etalis_rules import clauses
from etalis_rules.relations import (
    APART,
    AT_ONCE,
    EITHER_LAST,
    IN_TURN,
    LEFT_LAST,
    RIGHT_LAST,
    SAME_INTERVAL,
    TOGETHER,
    Op,
    OuterOp,
    Relation,
    holds,
    hull,
    longest,
)

from etalis_py.executors.columns.joins import kernel_of
from etalis_py.executors.rows.generate.joins import tests_of as source_of
from etalis_py.sparql.operators import temporal

Test = Callable[[int, int, int, int], bool]
DEFINITIONS: dict[Relation, Test] = {  # of [a, e] and [b, f], as in the semantics page
    Op.AND: lambda a, e, b, f: True,
    Op.SEQ: lambda a, e, b, f: e < b,
    Op.NEXT: lambda a, e, b, f: e < b,
    Op.EQUALS: lambda a, e, b, f: a == b and e == f,
    Op.MEETS: lambda a, e, b, f: a < b and e == b and e < f,
    Op.OVERLAPS: lambda a, e, b, f: a < b < e < f,
    Op.STARTS: lambda a, e, b, f: a == b and e < f,
    Op.DURING: lambda a, e, b, f: b < a and e < f,
    Op.FINISHES: lambda a, e, b, f: b < a and e == f,
    Op.PAR: lambda a, e, b, f: a <= f and b <= e,
    OuterOp.OPTIONAL: lambda a, e, b, f: f <= e,
    OuterOp.OPTIONALSEQ: lambda a, e, b, f: f < a,
    OuterOp.EQUALSOPTIONAL: lambda a, e, b, f: a == b and e == f,
    OuterOp.MINUS: lambda a, e, b, f: f <= e,
    OuterOp.EXISTS: lambda a, e, b, f: f <= e,
}
PAIRS = [(a, e, b, f) for a, e, b, f in product(range(6), repeat=4) if a <= e and b <= f]
THIRTEEN = [Op.SEQ, Op.EQUALS, Op.MEETS, Op.OVERLAPS, Op.STARTS, Op.DURING, Op.FINISHES]
every_relation = pytest.mark.parametrize("op", [*Op, *OuterOp])
every_join = pytest.mark.parametrize("op", list(Op))


@every_relation
def test_a_relation_holds_as_defined(op: Relation) -> None:
    assert all(holds(op)(*pair) == DEFINITIONS[op](*pair) for pair in PAIRS)
    assert all(temporal(op)(*pair) == DEFINITIONS[op](*pair) for pair in PAIRS)


@every_join
def test_the_generated_source_tests_it(op: Op) -> None:
    test = " and ".join(source_of(op)) or "True"
    assert all(bool(eval(test, {"x": (e, a), "y": (f, b)})) == DEFINITIONS[op](a, e, b, f) for a, e, b, f in PAIRS)


@every_relation
def test_the_printed_rules_say_it(op: Relation) -> None:
    text = " and ".join(clauses.tests_of(op)).replace("≤", "<=").replace(" = ", " == ") or "True"
    names = ("T1", "T2", "T3", "T4")
    assert all(bool(eval(text, dict(zip(names, pair, strict=True)))) == DEFINITIONS[op](*pair) for pair in PAIRS)


@every_relation
def test_the_hull_covers_both_sides(op: Relation) -> None:
    start, end = hull(op)
    for a, e, b, f in PAIRS:
        if DEFINITIONS[op](a, e, b, f):
            assert {"a": a, "b": b, "min": min(a, b)}[start] == min(a, b)
            assert {"a'": e, "b'": f, "max": max(e, f)}[end] == max(e, f)


@every_join
def test_the_longest_hull_is_reached_and_never_exceeded(op: Op) -> None:
    for left, right in product(range(4), repeat=2):
        related = [p for p in PAIRS if DEFINITIONS[op](*p) and p[1] - p[0] <= left and p[3] - p[2] <= right]
        spans = [max(e, f) - min(a, b) for a, e, b, f in related]
        assert max(spans, default=0) <= longest(op, left, right)


def test_which_side_ends_last() -> None:
    for op, of_op in DEFINITIONS.items():
        differences = {(f > e) - (f < e) for a, e, b, f in PAIRS if of_op(a, e, b, f)}
        assert (op in RIGHT_LAST) == (differences == {1})
        assert (op in LEFT_LAST) == (differences == {-1})
        assert (op in TOGETHER) == (differences == {0})
    assert set(Op) == {op for op in Op if op in RIGHT_LAST} | {op for op in Op if op in TOGETHER} | EITHER_LAST
    assert {Op.SEQ, Op.NEXT} == APART & set(Op)
    assert {Op.EQUALS} == SAME_INTERVAL & set(Op)
    assert {Op.SEQ, Op.NEXT, OuterOp.OPTIONALSEQ} == IN_TURN
    assert {Op.AND, Op.EQUALS, Op.PAR} == AT_ONCE & set(Op)


def test_one_of_thirteen_relations_holds_between_any_two_intervals() -> None:
    for a, e, b, f in PAIRS:
        straight = sum(holds(op)(a, e, b, f) for op in THIRTEEN)
        inverse = sum(holds(op)(b, f, a, e) for op in THIRTEEN if op is not Op.EQUALS)
        assert straight + inverse == 1


@every_join
def test_every_relation_has_a_kernel(op: Op) -> None:
    """An operator that the kernels do not know is an error, not an AND."""
    assert kernel_of(op) >= 0


def test_an_operator_is_spelt_as_its_name_in_ids_of_rules() -> None:
    assert repr(Op.SEQ) == "'seq'"
    assert f"{OuterOp.OPTIONALSEQ}" == "optionalseq"
