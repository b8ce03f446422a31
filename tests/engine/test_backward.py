"""Backward evaluation on small tables, worked out by hand from [EP] §4.2 and SPARQL 1.1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from time import process_time
from typing import Any

import pytest
from etalis_rules.algebra import (
    UNIT,
    AggregateCall,
    Apply,
    Bound,
    Const,
    Exists,
    Extend,
    Filter,
    GraphNames,
    Join,
    Minus,
    Outer,
    Pattern,
    Select,
    SubSelect,
    Table,
    Union,
    Var,
    Within,
)
from etalis_rules.relations import Op, OuterOp
from etalis_rules.terms import XSD, literal

from etalis_py.knowledge.graph import Graph
from etalis_py.sparql import (
    BackgroundSource,
    EvaluationLimits,
    HistorySource,
    OccurrenceLog,
    Unsupported,
    prepare,
    solve,
)
from etalis_py.values.errors import LimitExceeded
from tests.engine.backward_by_definition import Small
from tests.engine.backward_tables import (
    BACK,
    DAY,
    answers,
    bgp,
    facts,
    history,
    knowledge,
    number,
    op,
    rows,
    t,
)

and_join, seq_join, equals_join = (partial(Join, op) for op in (Op.AND, Op.SEQ, Op.EQUALS))
optional, equals_optional = (partial(Outer, op) for op in (OuterOp.OPTIONAL, OuterOp.EQUALSOPTIONAL))


def optional_seq(left: Pattern, right: Pattern) -> Pattern:
    """The optional side is written first."""
    return Outer(OuterOp.OPTIONALSEQ, right, left)


# --- basic graph patterns ---


def test_background_solutions_are_timeless() -> None:
    assert list(solve(bgp("?x p ?y"), {}, knowledge("a p b"))) == [({"x": "<urn:a>", "y": "<urn:b>"}, *BACK)]


def test_solutions_are_extended_by_what_comes_in() -> None:
    assert answers(bgp("?x p ?y"), knowledge("a p b . c p d"), x="a", other="7") == ["other=7 x=a y=b"]


def test_an_empty_binding_is_no_binding() -> None:
    assert rows(solve(bgp("?x p ?y"), {"x": ""}, knowledge("a p b"))) == ["x=a y=b"]


def test_a_variable_that_stands_twice_matches_equal_terms() -> None:
    assert answers(bgp("?x p ?x"), knowledge("a p a . a p b")) == ["x=a"]


def test_the_interval_is_the_hull_of_the_occurrences() -> None:
    source = history((1, 2, "a p b"), (4, 7, "b q c"), background="c r d")
    assert answers(bgp("?x p ?y . ?y q ?z . ?z r ?w"), source) == ["w=d x=a y=b z=c @1-7"]


def test_two_ways_to_one_solution_are_one_solution() -> None:
    source = history((1, 1, "a p b"), (2, 2, "b q c"), (3, 3, "b q c"), (9, 9, "c p d"))
    assert answers(bgp("?x p ?y . ?y q ?z . ?z p ?w"), source) == ["w=d x=a y=b z=c @1-9"]


def test_blank_nodes_are_variables_of_the_set() -> None:
    assert answers(bgp("?x p _:b"), knowledge("a p b . a p c")) == ["_:b=b x=a", "_:b=c x=a"]


def test_one_triple_in_two_streams_is_one_occurrence_unless_a_stream_is_named() -> None:
    source = history(
        (1, 1, "a p b", "<urn:s>"), (1, 1, "a p b", "<urn:t>"), (2, 2, "c p d", "<urn:t>"), background="e p f"
    )
    assert answers(bgp("?x p ?y"), source) == ["x=a y=b @1-1", "x=c y=d @2-2", "x=e y=f"]
    assert answers(bgp("?x p ?y", stream="<urn:s>"), source) == ["x=a y=b @1-1"]


def test_at_leaves_out_what_ends_later() -> None:
    source = history((1, 1, "a p b"), (1, 3, "a p c"), background="a p d")
    assert answers(bgp("a p ?y"), source, at=2) == ["y=b @1-1", "y=d"]


def test_graph_ranges_over_named_graphs() -> None:
    source = knowledge("z p z", g="a p b . b p c", h="b p d")
    assert answers(bgp("?x p ?y . ?y p ?z", Var("g")), source) == ["g=g x=a y=b z=c"]
    assert answers(bgp("?x p ?y", t("h")), source) == ["x=b y=d"]
    assert answers(bgp("?x p ?y", Var("g")), source, g="h") == ["g=h x=b y=d"]
    assert answers(bgp("?x p ?y", t("nowhere")), source) == []
    assert answers(GraphNames(Var("g")), source) == ["g=g", "g=h"]


def test_patterns_of_any_length_are_evaluated() -> None:
    chain = " . ".join(f"n{i} p n{i + 1}" for i in range(40))
    pattern = " . ".join(f"?v{i} p ?v{i + 1}" for i in range(40))
    (solution,) = solve(bgp(pattern), {}, knowledge(chain))
    assert solution[0]["v40"] == "<urn:n40>"
    twice = history((1, 1, chain), (2, 2, "n39 p n40"), (3, 3, "n39 p n40 . n20 p n21"))
    assert {s[1:] for s in solve(bgp(pattern), {}, twice)} == {(1, 1), (1, 2), (1, 3)}
    assert len(list(solve(bgp(pattern), {}, twice))) == 3


def test_the_selective_pattern_comes_first() -> None:
    many = " . ".join(f"n{i} type thing" for i in range(2000))
    source = knowledge(many + " . n7 name seven")
    limits = EvaluationLimits(steps=10)
    assert rows(prepare(bgp("?x type thing . ?x name seven")).solve({}, source, limits=limits)) == ["x=n7"]


def test_a_join_order_follows_the_source() -> None:
    graph = Graph(facts("a p b . b q c"))
    prepared, small = prepare(bgp("?x p ?y . ?y q ?z")), Small(graph, {})
    source = BackgroundSource(small)
    for n in range(50):
        assert len(list(prepared.solve({}, source))) == n + 1
        graph.add(f"<urn:n{n}>", "<urn:p>", "<urn:b>")
        small.version += 1


# --- [EP] §4.2 ---

A, B = "?x a ?u", "?x b ?v"


@pytest.mark.parametrize(
    ("second", "expected"),
    [((3, 4), ["u=1 v=2 x=n @1-4"]), ((2, 4), []), ((0, 2), [])],
    ids=["later", "meets", "overlaps"],
)
def test_seq_joins_what_ends_strictly_before(second: tuple[int, int], expected: list[str]) -> None:
    source = history((1, 2, "n a 1"), (*second, "n b 2"))
    assert answers(seq_join(bgp(A), bgp(B)), source) == expected


def test_equals_joins_equal_intervals() -> None:
    source = history((0, 2, "n b 1"), (1, 2, "n a 1"), (1, 2, "n b 2"))
    assert answers(equals_join(bgp(A), bgp(B)), source) == ["u=1 v=2 x=n @1-2"]


def test_a_seq_inside_a_join_keeps_its_order() -> None:
    source = history((1, 1, "n b 2"), (2, 2, "n a 1"))
    assert answers(and_join(seq_join(bgp(A), bgp(B)), bgp("?x a 1")), source) == []
    assert answers(and_join(seq_join(bgp(B), bgp(A)), bgp("?x a 1")), source) == ["u=1 v=2 x=n @1-2"]


@pytest.mark.parametrize("make", [seq_join, equals_join, optional, equals_optional, optional_seq])
@pytest.mark.parametrize("background", ["n a 1", "n b 2"])
def test_timeless_solutions_satisfy_every_temporal_condition(make: Any, background: str) -> None:
    event = "n b 2" if background == "n a 1" else "n a 1"
    source = history((5, 6, event), background=background)
    assert answers(make(bgp(A), bgp(B)), source) == ["u=1 v=2 x=n @5-6"]


def test_optional_takes_what_ends_no_later() -> None:
    source = history((1, 1, "n b 1"), (2, 3, "n a 0"), (1, 3, "n b 2"), (2, 4, "n b 3"))
    assert answers(optional(bgp(A), bgp(B)), source) == ["u=0 v=1 x=n @1-3", "u=0 v=2 x=n @1-3"]
    assert answers(optional(bgp(A), bgp("?x b 3")), source) == ["u=0 x=n @2-3"]


def test_optionalseq_takes_what_ended_before_the_start() -> None:
    source = history((1, 1, "n a 1"), (1, 2, "n a 2"), (2, 3, "n b 0"))
    assert answers(optional_seq(bgp(A), bgp(B)), source) == ["u=1 v=0 x=n @1-3"]
    assert answers(optional_seq(bgp("?x a 2"), bgp(B)), source) == ["v=0 x=n @2-3"]


def test_equalsoptional_takes_what_is_equal() -> None:
    source = history((1, 2, "n a 1 . n b 5"), (1, 3, "m a 1"), (2, 3, "m b 6"))
    assert answers(equals_optional(bgp(A), bgp(B)), source) == ["u=1 v=5 x=n @1-2", "u=1 x=m @1-3"]


def test_the_condition_of_an_optional_sees_the_combined_interval() -> None:
    source = history((1, 1, "n b 1"), (8, 8, "n b 2"), (9, 9, "n a 0"))
    short_one = Apply("<", (Apply("GETDURATION"), Const(literal("PT0.000005S", XSD + "dayTimeDuration"))))
    assert answers(optional(bgp(A), bgp(B), (short_one,)), source) == ["u=0 v=2 x=n @8-9"]


def test_minus_looks_at_what_ends_no_later() -> None:
    source = history((1, 1, "n a 1"), (2, 2, "n b 0"), (3, 3, "n a 2"))
    assert answers(Minus(bgp(A), bgp(B), ("u", "x")), source) == ["u=1 x=n @1-1"]


def test_exists_looks_at_what_ends_no_later() -> None:
    source = history((1, 1, "n a 1"), (2, 2, "n b 0"), (3, 3, "n a 2"))
    assert answers(Filter(bgp(A), (Exists(bgp(B)),)), source) == ["u=2 x=n @3-3"]


def test_within_bounds_the_duration_of_a_group() -> None:
    source = history((0, 5, "n a 1"), (0, 6, "n a 2"), background="n a 3")
    assert answers(Within(bgp(A), Bound(micros=5)), source) == ["u=1 x=n @0-5", "u=3 x=n"]


def test_within_counts_months_by_the_calendar() -> None:
    source = history((31 * DAY, 59 * DAY, "n a 1"), (31 * DAY, 60 * DAY, "n a 2"))  # 1 February to 1 and 2 March 1970
    assert answers(Within(bgp(A), Bound(months=1)), source) == [f"u=1 x=n @{31 * DAY}-{59 * DAY}"]


def test_two_rows_above_basic_graph_patterns_are_two_rows() -> None:
    assert answers(Union(bgp("?x p ?y"), bgp("?x p ?y")), knowledge("a p b")) == ["x=a y=b", "x=a y=b"]


# --- where bottom-up evaluation and substitution differ ---

DATA = knowledge("a p b . a q c . b q d . d q e")


def test_an_optional_that_is_not_well_designed_is_evaluated_bottom_up() -> None:
    # { ?x p ?y OPTIONAL { ?x q ?z  OPTIONAL { ?y q ?w } } }: the inner OPTIONAL knows nothing of the outer ?y
    inner = optional(bgp("?x q ?z"), bgp("?y q ?w"))
    assert answers(optional(bgp("?x p ?y"), inner), DATA) == ["w=d x=a y=b z=c"]
    # bottom-up the inner OPTIONAL always binds ?y (to a, b or d): nothing joins y = z
    assert answers(inner, DATA, x="a", y="z") == []
    assert answers(inner, DATA, x="a", y="z", substitute=True) == ["x=a y=z z=c"]


def test_an_outer_variable_does_not_choose_the_partner_of_an_optional() -> None:
    partly = optional(bgp("?x p ?y"), bgp("?y q ?z"))
    assert answers(and_join(Table(("z",), (("<urn:other>",),)), partly), DATA) == []
    assert answers(partly, DATA, z="other") == []
    assert answers(partly, DATA, substitute=True, z="other") == ["x=a y=b z=other"]


def test_a_filter_in_a_nested_group_does_not_see_outer_variables() -> None:
    nested = Filter(bgp("?y q ?z"), (op("=", "?x", "a"),))
    assert answers(and_join(bgp("?x p ?y"), nested), DATA) == []
    assert answers(nested, DATA, x="a", y="b") == []
    assert answers(nested, DATA, substitute=True, x="a", y="b") == ["x=a y=b z=d"]


def test_a_bind_in_a_nested_group_does_not_see_outer_variables() -> None:
    nested = Extend(bgp("?y q ?z"), "c", Var("x"))
    assert answers(and_join(bgp("?x p ?y"), nested), DATA) == ["x=a y=b z=d"]
    assert answers(nested, DATA, substitute=True, x="a", y="b") == ["c=a x=a y=b z=d"]


def test_a_filter_does_not_see_a_binding_that_its_group_only_may_have() -> None:
    nested = Filter(optional(bgp("?x p ?y"), bgp("?y r ?z")), (Apply("!", (op("BOUND", "?z"),)),))
    assert answers(nested, DATA, z="c") == ["x=a y=b z=c"]
    assert answers(nested, DATA, substitute=True, z="c") == []


def test_an_exists_in_a_nested_group_does_not_see_outer_variables() -> None:
    nested = Filter(bgp("?y q ?z"), (Exists(bgp("?z q ?x")),))
    assert answers(and_join(bgp("?x p b"), nested), DATA) == ["x=a y=b z=d"]
    assert answers(nested, DATA, substitute=True, x="a") == []
    assert answers(nested, DATA, substitute=True, x="e") == ["x=e y=b z=d"]


def test_exists_substitutes_at_every_depth() -> None:
    # FILTER EXISTS { { ?y q ?z FILTER(?x = a) } }
    deep = and_join(UNIT, Filter(bgp("?y q ?z"), (op("=", "?x", "a"),)))
    assert answers(Filter(bgp("?x p ?y"), (Exists(deep),)), DATA) == ["x=a y=b"]


def test_exists_in_an_exists_sees_both() -> None:
    inner = Filter(bgp("?y q ?z"), (Exists(Filter(bgp("?x q ?w"), (op("=", "?z", "d"),))),))
    assert answers(Filter(bgp("?x p ?y"), (Exists(inner),)), DATA) == ["x=a y=b"]


def test_a_sub_select_hides_what_it_does_not_project() -> None:
    hiding = SubSelect(Select(bgp("?y q ?x"), ("y",)))
    assert answers(and_join(bgp("?x p ?y"), hiding), DATA) == ["x=a y=b"]
    assert answers(hiding, DATA, substitute=True, x="a", y="b") == ["x=a y=b"]
    showing = SubSelect(Select(bgp("?y q ?x"), ("x", "y")))
    assert answers(and_join(bgp("?x p ?y"), showing), DATA) == []
    assert answers(showing, DATA, substitute=True, x="a", y="b") == []


def test_minus_without_a_shared_variable_removes_nothing() -> None:
    assert answers(Minus(bgp("?x p ?y"), bgp("?a q ?b"), ("x", "y")), DATA) == ["x=a y=b"]


def test_minus_does_not_count_variables_joined_later() -> None:
    minus = Minus(and_join(bgp("?x p ?y"), bgp("?y q ?z")), bgp("?z q ?e"), ("x", "y"))
    assert answers(minus, DATA) == ["x=a y=b z=d"]


def test_minus_compares_what_both_sides_happen_to_bind() -> None:
    right = optional(bgp("?x p ?y"), bgp("?x r ?z"))
    source = knowledge("a p b . a r c")
    assert answers(Minus(Table(("z",), (("<urn:c>",), ("<urn:d>",), ("",))), right, ("z",)), source) == ["", "z=d"]


def test_a_substituted_variable_is_a_constant_and_not_shared_by_minus() -> None:
    minus = Minus(bgp("?x p ?y"), bgp("?x q ?z"), ("x", "y"))
    assert answers(minus, DATA) == []
    assert answers(minus, DATA, substitute=True, x="a") == ["x=a y=b"]


# --- tables, BIND, joins ---


def test_values_leave_undefined_cells_open() -> None:
    table = Table(("x", "y"), (("<urn:a>", ""), ("", "<urn:b>"), ("<urn:c>", "<urn:d>")))
    assert answers(and_join(bgp("?x p ?y"), table), DATA) == ["x=a y=b", "x=a y=b"]


def test_bind_leaves_an_error_unbound() -> None:
    source = knowledge("a p 1 . b p c")
    pattern = Extend(bgp("?x p ?y"), "z", op("+", "?y", "1"))
    assert answers(pattern, source) == ["x=a y=1 z=2", "x=b y=c"]
    assert answers(pattern, source, z="2") == ["x=a y=1 z=2", "x=b y=c z=2"]
    assert answers(pattern, source, z="3") == ["x=b y=c z=3"]


def test_what_bindings_cannot_speed_up_is_evaluated_once() -> None:
    many = " . ".join(f"n{i} p m{i} . k{i} q {i}" for i in range(100))
    total = SubSelect(Select(bgp("?k q ?v"), ("n",), grouped=True, aggregates=(AggregateCall("n", "COUNT", None),)))
    pattern, source = and_join(bgp("?x p ?y"), total), knowledge(many)
    assert len(list(prepare(pattern).solve({}, source, limits=EvaluationLimits(steps=500)))) == 100


def test_a_kept_result_follows_the_version_of_the_knowledge() -> None:
    graph = Graph(facts("k q 1"))
    small = Small(graph, {})
    source = BackgroundSource(small)
    total = prepare(
        SubSelect(Select(bgp("?k q ?v"), ("n",), grouped=True, aggregates=(AggregateCall("n", "COUNT", None),)))
    )
    assert rows(total.solve({"n": number(1)}, source)) == ["n=1"]
    graph.add("<urn:k>", "<urn:q>", number(2))
    small.version += 1
    assert rows(total.solve({"n": number(1)}, source)) == []
    assert rows(total.solve({"n": number(2)}, source)) == ["n=2"]


# --- history ---


def test_pruned_occurrences_are_gone_from_every_index() -> None:
    log = OccurrenceLog()
    for end in range(10):
        log.add(end, end, facts(f"a p {end}"), "<urn:s>")
    source = HistorySource(knowledge(), log)
    patterns = [bgp("a p ?o"), bgp("?s p ?o"), bgp("?s ?p ?o"), bgp("a ?p ?o"), bgp("?s p ?o", stream="<urn:s>")]
    assert [len(answers(p, source)) for p in patterns] == [10] * 5
    assert log.prune(8) == 8
    assert len(log) == 2
    assert [len(answers(p, source)) for p in patterns] == [2] * 5
    assert answers(bgp("a p 7"), source) == []


def test_the_same_occurrence_twice_is_one() -> None:
    assert answers(bgp("a p ?o"), history((1, 2, "a p b"), (1, 2, "a p b . a p b"))) == ["o=b @1-2"]


def test_an_occurrence_of_the_past_takes_its_place() -> None:
    log = OccurrenceLog()
    log.add(1, 2, facts("a p b"))
    log.add(2, 3, facts("a p b"))
    source, prepared = HistorySource(knowledge(), log), prepare(bgp("a p ?o"), timed=True)
    assert rows(prepared.solve({}, source)) == ["o=b @1-2", "o=b @2-3"]
    for _ in range(2):  # it counts once
        log.add(1, 1, facts("a p c"), "<urn:s>")
        assert [end for *_, end in log.by_stream()[""]] == [1, 2, 3]
        assert rows(prepared.solve({}, source)) == ["o=b @1-2", "o=b @2-3", "o=c @1-1"]
    assert [end for *_, end in log.by_stream()["<urn:s>"]] == [1]
    assert log.prune(2) == 1


def test_a_prepared_pattern_sees_occurrences_that_came_later() -> None:
    log = OccurrenceLog()
    source, prepared = HistorySource(knowledge(), log), prepare(bgp("a p ?o"), timed=True)
    for end in range(3):
        assert len(list(prepared.solve({}, source))) == end
        log.add(end, end, facts(f"a p {end}"))


# --- what is refused, and limits ---


@pytest.mark.parametrize(
    "more", [{"limit": 1}, {"grouped": True, "aggregates": (AggregateCall("n", "COUNT", None),)}, {"window": Bound(5)}]
)
def test_a_timed_sub_select_in_exists_is_refused_when_it_is_prepared(more: dict[str, Any]) -> None:
    select = SubSelect(Select(bgp("?x p ?y"), ("x",), **more))
    with pytest.raises(Unsupported, match="outside the EXISTS"):
        prepare(Filter(bgp("?x p ?y"), (Exists(select),)), timed=True)
    prepare(Filter(bgp("?x p ?y"), (Exists(select),)))
    prepare(SubSelect(Select(bgp("?x p ?y", t("g")), ("x",), **more)), timed=True)


def test_a_timed_sub_select_that_projects_keeps_its_intervals() -> None:
    source = history((1, 1, "a p b"), (2, 2, "a p c"))
    assert answers(SubSelect(Select(bgp("?x p ?y"), ("x",), distinct=True)), source) == ["x=a @1-1", "x=a @2-2"]


def test_a_count_window_inside_a_group_is_refused() -> None:
    with pytest.raises(Unsupported, match="after the WHERE clause"):
        prepare(Within(bgp("?x p ?y"), Bound(events=5)))


CROSS = bgp("?a p ?b . ?c p ?d . ?e p ?f . ?g p ?h . ?i p ?j")
MANY = " . ".join(f"n{i} p m{i}" for i in range(40))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (EvaluationLimits(solutions=10), "more than 10 solutions"),
        (EvaluationLimits(steps=500), "500 steps"),
        (EvaluationLimits(seconds=0.05), "0.05 s"),
    ],
    ids=["solutions", "steps", "seconds"],
)
def test_limits_stop_an_evaluation(limits: EvaluationLimits, message: str) -> None:
    with pytest.raises(LimitExceeded, match=message):
        for _ in prepare(CROSS).solve({}, knowledge(MANY), limits=limits):
            pass


def test_a_limit_on_time_leaves_the_steps_as_they_are() -> None:
    def is_enough(limits: EvaluationLimits) -> bool:
        try:
            return len(list(prepare(bgp("?x p ?y")).solve({}, knowledge(MANY), limits=limits))) == 40
        except LimitExceeded:
            return False

    least = next(n for n in range(100) if is_enough(EvaluationLimits(steps=n)))
    assert least >= 40
    assert is_enough(EvaluationLimits(steps=least, seconds=60))
    assert not is_enough(EvaluationLimits(steps=least - 1, seconds=60))


def test_a_limit_stops_what_gives_no_solutions() -> None:
    never = Filter(CROSS, (op("!=", "?a", "?a"),))
    inside = Filter(bgp("?x p ?y"), (Exists(never),))
    for pattern in (never, inside):
        with pytest.raises(LimitExceeded, match="make it more selective"):
            list(prepare(pattern).solve({}, knowledge(MANY), limits=EvaluationLimits(steps=5000)))


@pytest.mark.usefixtures("still_heap")
def test_a_look_up_costs_microseconds() -> None:
    """About five times what it takes by hand; the rest is for busy machines."""
    source = knowledge(" . ".join(f"n{i} p m{i}" for i in range(1000)))
    prepared = prepare(bgp("?x p ?y"))
    asked = [{"x": f"<urn:n{i}>", "k": number(i)} for i in range(1000)]
    objects = {f"<urn:n{i}>": f"<urn:m{i}>" for i in range(1000)}

    def by_hand(mu: dict[str, str]) -> Iterator[dict[str, str]]:
        yield {**mu, "y": objects[mu["x"]]}

    def best(solutions: Callable[[dict[str, str]], Iterable[Any]]) -> float:
        taken = []
        for _ in range(7):
            begun = process_time()
            for mu in asked:
                for _ in solutions(mu):
                    pass
            taken.append(process_time() - begun)
        return min(taken)

    assert best(lambda mu: prepared.solve(mu, source)) < 32 * best(by_hand)
