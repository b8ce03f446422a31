"""Sub-SELECTs and property paths, evaluated backward on small tables worked out by hand from SPARQL 1.1."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest
from etalis_rules.algebra import (
    AggregateCall,
    Chain,
    Inverse,
    Join,
    NotAny,
    OrderKey,
    Repeated,
    Select,
    SubSelect,
    Table,
    Var,
)
from etalis_rules.relations import Op

from etalis_py.sparql import (
    prepare,
    solve,
)
from tests.engine.backward_tables import OPTIONAL, PLUS, STAR, P, Q, answers, bgp, history, knowledge, op, path, row, t

pytestmark = pytest.mark.usefixtures("still_heap")

# --- sub-SELECTs ---

SALES = knowledge("a sold 3 . a sold 5 . b sold 4 . c sold c")


def grouped(*calls: AggregateCall, keys: tuple[str, ...] = ("x",), **more: Any) -> SubSelect:
    names = (*keys, *(c.variable for c in calls))
    return SubSelect(Select(bgp("?x sold ?n"), names, grouped=True, keys=keys, aggregates=calls, **more))


def test_aggregates_by_group() -> None:
    calls = [AggregateCall(n.lower(), n, Var("n")) for n in ("COUNT", "SUM", "AVG", "MIN", "MAX")]
    assert answers(grouped(*calls), SALES) == [
        "avg=4 count=1 max=4 min=4 sum=4 x=b",
        "avg=4 count=2 max=5 min=3 sum=8 x=a",
        "count=1 max=c min=c x=c",
    ]


def test_a_key_that_comes_in_selects_its_group() -> None:
    total = grouped(AggregateCall("s", "SUM", Var("n")))
    assert answers(total, SALES, x="a") == ["s=8 x=a"]
    assert answers(total, SALES, x="nobody") == []


def test_having_sees_aggregates() -> None:
    total = grouped(AggregateCall("s", "SUM", Var("n")), having=(op("<", "?s", "5"),))
    assert answers(total, SALES) == ["s=4 x=b"]


def test_an_aggregate_over_nothing_is_one_row() -> None:
    count = grouped(AggregateCall("c", "COUNT", None), keys=())
    assert answers(count, knowledge()) == ["c=0"]
    assert answers(grouped(AggregateCall("c", "COUNT", None)), knowledge()) == []


def test_group_concat_has_a_separator_and_count_distinct_counts_terms() -> None:
    calls = (AggregateCall("g", "GROUP_CONCAT", Var("x"), True, "|"), AggregateCall("c", "COUNT", Var("x"), True))
    source = knowledge("a sold 1 . a sold 2")
    assert answers(grouped(*calls, keys=()), source) == ["c=1 g=urn:a"]


def test_order_limit_and_offset() -> None:
    order = (OrderKey(Var("n"), descending=True), OrderKey(Var("x")))
    top = SubSelect(Select(bgp("?x sold ?n"), ("x", "n"), order=order, limit=2, offset=1))
    assert [row(*s) for s in solve(top, {}, SALES)] == ["n=4 x=b", "n=3 x=a"]
    assert answers(top, SALES, x="b") == ["n=4 x=b"]  # LIMIT first, then the join with what comes in
    assert answers(top, SALES, x="c") == []


def test_distinct_and_expressions() -> None:
    twice = Select(bgp("?x sold ?n"), ("x", "t"), extends=(("t", op("=", "?x", "a")),), distinct=True)
    assert answers(SubSelect(twice), SALES) == ["t=false x=b", "t=false x=c", "t=true x=a"]


# --- property paths ---

CHAIN = knowledge("a p b . b p c . c p a . c q d", g="k p l")


def test_a_closure_of_a_cycle_ends() -> None:
    assert answers(path("a", Repeated(P, *PLUS), "?y"), CHAIN) == ["y=a", "y=b", "y=c"]
    assert answers(path("?x", Repeated(P, *PLUS), "b"), CHAIN) == ["x=a", "x=b", "x=c"]
    assert answers(path("?x", Repeated(P, *PLUS), "?x"), CHAIN) == ["x=a", "x=b", "x=c"]
    assert len(answers(path("?x", Repeated(P, *PLUS), "?y"), CHAIN)) == 9


def test_paths_inside_a_closure() -> None:
    assert answers(path("a", Repeated(Chain(P, P), *PLUS), "?y"), CHAIN) == ["y=a", "y=b", "y=c"]
    assert answers(path("d", Inverse(Chain(Repeated(P, *STAR), Q)), "?y"), CHAIN) == ["y=a", "y=b", "y=c"]


def test_an_edge_that_is_none_of_these() -> None:
    assert answers(path("c", NotAny(("<urn:p>",)), "?y"), CHAIN) == ["y=d"]
    assert answers(path("c", NotAny(()), "?y"), knowledge("c p d . c q d")) == ["y=d", "y=d"]


def test_a_path_in_a_graph() -> None:
    assert answers(path("?x", Repeated(P, *STAR), "?y", Var("g")), CHAIN) == [
        "g=g x=k y=k",
        "g=g x=k y=l",
        "g=g x=l y=l",
    ]


def test_there_is_no_zero_length_step_in_a_graph_that_does_not_exist() -> None:
    star = path("k", Repeated(P, *STAR), "?y", Var("g"))
    assert answers(Join(Op.AND, Table(("g",), (("<urn:g>",), ("<urn:nowhere>",))), star), CHAIN) == [
        "g=g y=k",
        "g=g y=l",
    ]
    assert answers(path("k", Repeated(P, *STAR), "?y", t("nowhere")), CHAIN) == []


def test_zero_length_from_a_constant_needs_no_triple() -> None:
    assert answers(path("nowhere", Repeated(P, *STAR), "?y"), CHAIN) == ["y=nowhere"]
    assert answers(path("?x", Repeated(P, *OPTIONAL), "nowhere"), CHAIN) == ["x=nowhere"]
    assert answers(path("?x", Repeated(P, *STAR), "?y"), CHAIN, x="nowhere") == ["x=nowhere y=nowhere"]


def test_zero_length_from_a_variable_stays_at_nodes_of_the_graph() -> None:
    star = path("?x", Repeated(P, *STAR), "?y")
    assert answers(Join(Op.AND, Table(("x",), (("<urn:nowhere>",), ("<urn:d>",))), star), CHAIN) == ["x=d y=d"]


def test_a_timed_closure_is_the_least_relation_of_hulls() -> None:
    source = history((1, 1, "a p b"), (2, 2, "b p a"))
    assert answers(path("a", Repeated(P, *PLUS), "?y"), source) == ["y=a @1-2", "y=b @1-1", "y=b @1-2"]


def test_a_timed_zero_length_step_has_the_interval_of_the_node() -> None:
    source = history((1, 1, "a p b"), (2, 3, "a q c"))
    star = path("?x", Repeated(P, *STAR), "?x")
    assert answers(star, source) == ["x=a @1-1", "x=a @2-3", "x=b @1-1", "x=c @2-3"]
    assert answers(path("a", Repeated(P, *STAR), "?y"), source) == ["y=a", "y=b @1-1"]


def test_a_closure_takes_linear_time() -> None:
    def seconds(n: int) -> float:
        source = knowledge(" . ".join(f"n{i} p n{i + 1}" for i in range(n)))
        prepared, best = prepare(path("n0", Repeated(P, *PLUS), "?y")), 9.0
        for _ in range(5):
            begun = process_time()
            assert sum(1 for _ in prepared.solve({}, source)) == n
            best = min(best, process_time() - begun)
        return best

    # Caches are shared with whatever else runs: 16 times as much may take 128 times as long, but not 256 times.
    assert seconds(16_000) < 16 * 8 * seconds(1_000)
