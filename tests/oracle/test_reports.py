"""Windows over solutions, aggregates and what they report (docs/semantics.md, Aggregates)."""

from __future__ import annotations

from .traces import at, background, run

PRICES = (at(1, "a p 10"), at(2, "a p 20"), at(4, "b p 60"))


def test_an_aggregate_reports_at_each_instant_with_the_hull() -> None:
    found = run("SELECT (SUM(?y) AS ?s) (COUNT(*) AS ?n) { ?x :p ?y }", *PRICES)
    assert found == [("n=1 s=10", 1, 1), ("n=2 s=30", 1, 2), ("n=3 s=90", 1, 4)]


def test_only_the_rows_that_changed_are_reported() -> None:
    assert run("SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x", *PRICES) == [
        ("n=1 x=a", 1, 1),
        ("n=2 x=a", 1, 2),
        ("n=1 x=b", 4, 4),
    ]


def test_within_is_a_window_open_at_its_start() -> None:
    """Those with end in (t − n, t]."""
    found = run("SELECT (SUM(?y) AS ?s) { ?x :p ?y } WITHIN PT2S", *PRICES)
    assert found == [("s=10", 1, 1), ("s=30", 1, 2), ("s=60", 4, 4)]


def test_what_left_the_window_changes_other_groups_too() -> None:
    """At 4 the row of a has lost its first price: it changed, and has the hull of what is left."""
    found = run("SELECT ?x (SUM(?y) AS ?s) { ?x :p ?y } WITHIN PT3S GROUP BY ?x", *PRICES)
    assert found == [("s=10 x=a", 1, 1), ("s=30 x=a", 1, 2), ("s=20 x=a", 2, 2), ("s=60 x=b", 4, 4)]


def test_within_events_counts_solutions_per_group() -> None:
    found = run("SELECT ?x (SUM(?y) AS ?s) { ?x :p ?y } WITHIN 1 EVENTS GROUP BY ?x", *PRICES)
    assert found == [("s=10 x=a", 1, 1), ("s=20 x=a", 2, 2), ("s=60 x=b", 4, 4)]


def test_having_order_and_limit_apply_to_the_full_current_result() -> None:
    text = "SELECT ?x (SUM(?y) AS ?s) { ?x :p ?y } GROUP BY ?x HAVING(SUM(?y) > 15) ORDER BY DESC(?s) LIMIT 1"
    assert run(text, *PRICES) == [("s=30 x=a", 1, 2), ("s=60 x=b", 4, 4)]


def test_an_ungrouped_aggregate_over_nothing_reports_once_at_the_end() -> None:
    assert run("SELECT (COUNT(*) AS ?n) { ?x :q ?y }", *PRICES) == [("n=0", None, None)]
    assert run("SELECT ?x (COUNT(*) AS ?n) { ?x :q ?y } GROUP BY ?x", *PRICES) == []


def test_timeless_solutions_count_but_are_reported_once() -> None:
    known = background("a p 1 ; b p 2")
    text = "SELECT ?x (SUM(?y) AS ?s) { ?x :p ?y } GROUP BY ?x"
    assert run(text, at(3, "a p 10"), knowing=known) == [("s=11 x=a", 3, 3), ("s=2 x=b", None, None)]


def test_each_report_of_a_subselect_is_a_solution_of_its_own() -> None:
    text = "SELECT ?s ?z { { SELECT (SUM(?y) AS ?s) { ?x :p ?y } } SEQ { ?u :q ?z } }"
    found = run(text, at(1, "a p 10"), at(2, "a p 20"), at(3, "a q 0"))
    assert found == [("s=10 z=0", 1, 3), ("s=30 z=0", 1, 3)]


def test_the_report_of_an_empty_stream_joins_nothing_that_has_a_time() -> None:
    """It is known at the end alone: joined, its rows would be taken back by a longer stream."""
    text = "SELECT * { { SELECT (COUNT(*) AS ?n) { ?x :q ?y } } AND { ?u :p ?z } }"
    assert run(text, at(1, "a p 0")) == []
    assert run(text, at(1, "a p 0"), at(2, "a q 1")) == [("n=1 u=a z=0", 1, 2)]


def test_minimum_and_average_keep_spelling_and_are_exact() -> None:
    text = "SELECT (MIN(?y) AS ?a) (AVG(?y) AS ?b) (GROUP_CONCAT(?y) AS ?c) { ?x :p ?y } GROUP BY ?x"
    assert run(text, at(1, "a p 02 ; a p 3 ; a p 10")) == [("a=02 b=5 c=02 10 3", 1, 1)]
