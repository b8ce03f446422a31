"""The operators of [EP] §4.2, each on a trace small enough to be checked by hand."""

from __future__ import annotations

import pytest

from .traces import at, background, run

CHAIN = (at(1, "a p 1"), at(2, "a p 2"), at(3, "a p 3"))


def test_bgp_takes_its_triples_from_different_events() -> None:
    """ "tα = min(t1, …, tn) and tω = max(t'1, …, t'n)" over the occurrences that make the triples."""
    found = run("SELECT * { ?x :p ?y . ?x :q ?z }", at((1, 2), "a p 1"), at((4, 7), "a q 2"))
    assert found == [("x=a y=1 z=2", 1, 7)]


def test_bgp_is_a_set_over_all_its_variables() -> None:
    """The same μ with the same hull is one solution, however it comes about."""
    events = (at((1, 5), "a p 1"), at(2, "a q 2"), at(3, "a q 2"))
    assert run("SELECT * { ?x :p ?y . ?x :q ?z }", *events) == [("x=a y=1 z=2", 1, 5)]
    assert run("SELECT * { { ?x :p ?y } AND { ?x :q ?z } }", *events) == [("x=a y=1 z=2", 1, 5)] * 2


def test_blank_nodes_of_a_bgp_count_as_variables() -> None:
    assert run("SELECT * { ?x :p [] }", at(1, "a p 1 ; a p 2")) == [("x=a", 1, 1)] * 2


def test_a_pattern_may_match_background_and_is_then_timeless() -> None:
    """Timeless solutions are neutral for min and max."""
    found = run("SELECT * { ?x :p ?y . ?x :is ?k }", at((1, 2), "a p 1"), knowing=background("a is k ; b is k"))
    assert found == [("k=k x=a y=1", 1, 2)]


def test_join_makes_the_hull() -> None:
    """Join(Ψ, Ψ') contains the combinations of all compatible pairs."""
    found = run("SELECT * { { ?x :p ?y } AND { ?x :q ?z } }", at((3, 4), "a p 1"), at((1, 2), "a q 2"), at(9, "b q 3"))
    assert found == [("x=a y=1 z=2", 1, 4)]


def test_seq_is_strict() -> None:
    """SeqJoin: "additionally satisfying tω < t'α"."""
    events = (at((0, 2), "a p 1"), at((2, 3), "a q 2"), at((3, 4), "a q 3"))
    assert run("SELECT * { ?x :p ?y } SEQ { ?x :q ?z }", *events) == [("x=a y=1 z=3", 0, 4)]


def test_seq_takes_every_pair() -> None:
    found = run("SELECT ?y ?z { ?x :p ?y } SEQ { ?x :p ?z }", *CHAIN)
    assert found == [("y=1 z=2", 1, 2), ("y=1 z=3", 1, 3), ("y=2 z=3", 2, 3)]


def test_equals_wants_both_bounds_equal() -> None:
    """EqJoin: "additionally satisfying tα = t'α and tω = t'ω"."""
    events = (at((0, 2), "a p 1"), at((1, 2), "a q 2"), at((0, 2), "a q 3"))
    assert run("SELECT * { ?x :p ?y } EQUALS { ?x :q ?z }", *events) == [("x=a y=1 z=3", 0, 2)]


def test_union_keeps_both() -> None:
    """Union(Ψ, Ψ') = Ψ ∪ Ψ', as multisets: two derivations are two rows."""
    assert run("SELECT * { { ?x :p ?y } UNION { ?x :p ?y } }", at(1, "a p 1")) == [("x=a y=1", 1, 1)] * 2


@pytest.mark.parametrize(
    ("other", "expected"),
    [(1, ("x=a y=1 z=9", 1, 2)), (2, ("x=a y=1 z=9", 2, 2)), (3, ("x=a y=1", 2, 2))],
)
def test_optional_looks_back(other: int, expected: tuple) -> None:
    """LeftJoin, with t'ω ≤ tω where [EP] prints t'ω < tω: the optional part never ends later."""
    events = sorted([at(2, "a p 1"), at(other, "a q 9")], key=lambda e: e.end)
    assert run("SELECT * { ?x :p ?y OPTIONAL { ?x :q ?z } }", *events) == [expected]


def test_optionalseq_has_its_right_mandatory() -> None:
    """SeqRightJoin(Ψ', Ψ, F): SeqJoin(Ψ', Ψ), and the Ψ without a compatible earlier Ψ'."""
    events = (at(1, "a p 1"), at(2, "a q 2"), at(3, "b q 3"), at(4, "b p 4"))
    found = run("SELECT * { { ?x :p ?y } OPTIONALSEQ { ?x :q ?z } }", *events)
    assert found == [("x=a y=1 z=2", 1, 2), ("x=b z=3", 3, 3)]


def test_equalsoptional_has_its_left_mandatory() -> None:
    """EqLeftJoin(Ψ, Ψ', F): EqJoin(Ψ, Ψ'), and the Ψ without a compatible Ψ' of the same interval."""
    events = (at((1, 2), "a p 1"), at((1, 2), "a q 2"), at(3, "b p 3"), at(4, "b q 4"))
    found = run("SELECT * { { ?x :p ?y } EQUALSOPTIONAL { ?x :q ?z } }", *events)
    assert found == [("x=a y=1 z=2", 1, 2), ("x=b y=3", 3, 3)]


def test_f_sees_the_combined_solution_and_interval_in_both_halves() -> None:
    """F, the filters at the top level of the optional group."""
    text = "SELECT * {{ {{ ?x :p ?y FILTER({}) }} OPTIONALSEQ {{ ?x :q ?z }} }}"
    events = (at(1, "a p 1"), at(5, "a q 2"))
    assert run(text.format("?y < ?z"), *events) == [("x=a y=1 z=2", 1, 5)]
    assert run(text.format("?y > ?z"), *events) == [("x=a z=2", 5, 5)]
    within = text.format('getDURATION() < "PT3S"^^xsd:dayTimeDuration')
    assert run(within, *events) == [("x=a z=2", 5, 5)]


def test_minus_looks_back_and_wants_a_shared_variable() -> None:
    text = "SELECT * { ?x :p ?y MINUS { ?x :q ?z } }"
    assert run(text, at(1, "a q 0"), at(2, "a p 1")) == []
    assert run(text, at(2, "a p 1"), at(3, "a q 0")) == [("x=a y=1", 2, 2)]
    assert run("SELECT * { ?x :p ?y MINUS { ?u :q ?z } }", at(1, "a q 0"), at(2, "a p 1")) == [("x=a y=1", 2, 2)]


def test_exists_looks_at_what_ended_by_the_end_of_its_group() -> None:
    """Solutions with end ≤ the end of the group they are written in."""
    text = "SELECT * { { ?x :p ?y } SEQ { ?x :p ?z } FILTER NOT EXISTS { ?x :q ?u } }"
    assert run(text, at(1, "a p 1"), at(2, "a p 2"), at(3, "a q 0")) == [("x=a y=1 z=2", 1, 2)]
    assert run(text, at(1, "a p 1"), at(2, "a p 2 ; a q 0")) == []
    inner = "SELECT * { { ?x :p ?y FILTER NOT EXISTS { ?x :q ?u } } SEQ { ?x :p ?z } }"
    assert run(inner, at(1, "a p 1"), at(2, "a p 2 ; a q 0")) == [("x=a y=1 z=2", 1, 2)]


def test_filters_see_the_interval_of_their_group() -> None:
    """Filter(F, Ψ): those for which μ(σ(F)) is true, σ putting the interval for the time functions."""
    text = 'SELECT ?y ?z {{ {{ ?x :p ?y }} SEQ {{ ?x :p ?z }} FILTER(getDURATION() {} "PT1S"^^xsd:duration) }}'
    assert [r[0] for r in run(text.format("<="), *CHAIN)] == ["y=1 z=2", "y=2 z=3"]
    assert [r[0] for r in run(text.format(">"), *CHAIN)] == ["y=1 z=3"]


def test_bind_hands_a_time_to_later_filters() -> None:
    """What a group computes from its interval is known to later filters."""
    text = """SELECT ?y ?z { { ?x :p ?y BIND(getENDTIME() AS ?t) } SEQ { ?x :p ?z }
              FILTER(?t > "1970-01-01T00:00:01Z"^^xsd:dateTime) }"""
    assert run(text, *CHAIN) == [("y=2 z=3", 2, 3)]


def test_month_durations_are_counted_by_calendar_from_the_start() -> None:
    """31 January + P1M is 28 February."""
    day = 86_400
    text = 'SELECT ?z { { ?x :p ?y } SEQ { ?x :q ?z } FILTER(getDURATION() <= "P1M"^^xsd:yearMonthDuration) }'
    events = (at(30 * day, "a p 0"), at(58 * day, "a q 28"), at(59 * day, "a q 29"))
    assert [row[0] for row in run(text, *events)] == ["z=28"]


def test_within_a_group_bounds_its_duration() -> None:
    """End − start ≤ n."""
    assert [r[0] for r in run("SELECT ?y ?z { { { ?x :p ?y } SEQ { ?x :p ?z } } WITHIN PT1S }", *CHAIN)] == [
        "y=1 z=2",
        "y=2 z=3",
    ]


def test_timeless_solutions_satisfy_every_temporal_condition() -> None:
    known = background("a is k")
    for operator in ("SEQ", "EQUALS", "AND"):
        text = f"SELECT * {{ {{ ?x :is ?k }} {operator} {{ ?x :p ?y }} }}"
        assert run(text, at((1, 2), "a p 1"), knowing=known) == [("k=k x=a y=1", 1, 2)]


def test_duration_of_the_timeless_is_an_error() -> None:
    text = 'SELECT * { ?x :is ?k FILTER(getDURATION() >= "PT0S"^^xsd:duration) }'
    assert run(text, knowing=background("a is k")) == []


def test_a_timeless_mandatory_side_is_decided_at_the_end() -> None:
    """OPTIONAL at the top level, where the negative half waits for the whole stream."""
    known = background("a is k ; b is k")
    found = run("SELECT * { ?x :is ?k OPTIONAL { ?x :p ?y } }", at(1, "a p 1"), knowing=known)
    assert found == [("k=k x=a y=1", 1, 1), ("k=k x=b", None, None)]


def test_timeless_rows_come_at_the_start_when_nothing_can_match_an_occurrence() -> None:
    known = background("a p k", g="b p k")
    both = "SELECT ?x { { ?x :p ?y } UNION { ?x :p ?y } }"
    assert run(both, at(1, "c p k"), knowing=known)[-1] == ("x=a", None, None)
    assert run("SELECT * { GRAPH ?g { ?x :p ?y } }", at(1, "c p k"), knowing=known) == [("g=g x=b y=k", None, None)]


def test_graph_ranges_over_the_background_and_from_chooses_it() -> None:
    known = background("z p 0", g="a p 1", h="b p 2")
    assert run("SELECT ?x { GRAPH :g { ?x :p ?y } }", knowing=known) == [("x=a", None, None)]
    assert run("SELECT ?x FROM :h { ?x :p ?y }", at(1, "c p 3"), knowing=known) == [("x=c", 1, 1), ("x=b", None, None)]
    assert run("SELECT ?g FROM NAMED :h { GRAPH ?g { ?x :p ?y } }", knowing=known) == [("g=h", None, None)]


def test_streams_are_one_unless_named() -> None:
    """Outside STREAM the same triple and time in two streams is one occurrence."""
    events = (at(1, "a p 1", "s"), at(1, "a p 1", "t"), at(2, "a p 2", "t"))
    assert run("SELECT ?y { ?x :p ?y }", *events) == [("y=1", 1, 1), ("y=2", 2, 2)]
    assert run("SELECT ?y { STREAM :s { ?x :p ?y } }", *events) == [("y=1", 1, 1)]
    assert run("SELECT * { STREAM ?s { ?x :p 1 } }", *events) == [("s=s x=a", 1, 1), ("s=t x=a", 1, 1)]


def test_the_same_event_twice_is_one_occurrence_but_two_times_are_two() -> None:
    """The stream is a set of occurrences."""
    assert run("SELECT ?y { ?x :p ?y }", at(1, "a p 1"), at(1, "a p 1"), at(2, "a p 1")) == [
        ("y=1", 1, 1),
        ("y=1", 2, 2),
    ]


def test_ask_reports_when_it_first_holds() -> None:
    assert run("ASK { ?x :p ?y FILTER(?y > 1) }", *CHAIN) == (True, 2)
    assert run("ASK { ?x :p ?y FILTER(?y > 9) }", *CHAIN) == (False, None)


def test_distinct_works_on_rows_with_their_interval() -> None:
    events = (at(1, "a p 1 ; a p 2"), at(2, "a p 1"))
    assert run("SELECT DISTINCT ?x { ?x :p ?y }", *events) == [("x=a", 1, 1), ("x=a", 2, 2)]


def test_limit_counts_over_the_whole_run_in_canonical_order() -> None:
    events = (at(1, "b p 1 ; a p 1"), at(2, "c p 1"))
    assert run("SELECT ?x { ?x :p ?y } LIMIT 2", *events) == [("x=a", 1, 1), ("x=b", 1, 1)]
    assert run("SELECT ?x { ?x :p ?y } OFFSET 1 LIMIT 2", *events) == [("x=b", 1, 1), ("x=c", 2, 2)]
    assert run("SELECT ?x { ?x :p ?y } ORDER BY DESC(?x) LIMIT 2", *events) == [("x=b", 1, 1), ("x=a", 1, 1)]


def test_values_and_expressions() -> None:
    text = "SELECT ?x (?y * 2 AS ?z) { ?x :p ?y VALUES ?x { :a :c } }"
    assert run(text, at(1, "a p 4 ; b p 5")) == [("x=a z=8", 1, 1)]
