"""The engine answers as the definitions say, over random programs and streams."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.judge import agree
from tests.oracle import background_strategies, computed_strategies, event_strategies, start_strategies, strategies
from tests.oracle.strategies import Case


@given(strategies.core())
def test_patterns_joins_and_filters(case: Case) -> None:
    agree(case)


@given(strategies.negation())
def test_optional_minus_and_exists(case: Case) -> None:
    agree(case)


@given(strategies.nested())
def test_exists_and_minus_inside_exists_beside_a_background(case: Case) -> None:
    agree(case)


@given(strategies.open_sides())
def test_variables_that_both_sides_may_leave_unbound(case: Case) -> None:
    agree(case)


@given(strategies.policies())
def test_consuming_policies(case: Case) -> None:
    agree(case)


@given(strategies.aggregates())
def test_aggregates_and_windows(case: Case) -> None:
    agree(case)


@given(computed_strategies.computed_aggregates())
def test_aggregates_of_expressions(case: Case) -> None:
    agree(case)


@given(background_strategies.known_aggregates())
def test_aggregates_over_the_background(case: Case) -> None:
    agree(case)


@given(background_strategies.known_and_missed())
def test_absence_beside_stored_graphs(case: Case) -> None:
    agree(case)


@given(strategies.recursion())
def test_construct_rules(case: Case) -> None:
    agree(case)


@given(strategies.stratified())
def test_rules_with_negation(case: Case) -> None:
    agree(case)


@given(strategies.several_streams())
def test_streams(case: Case) -> None:
    agree(case)


@given(strategies.background())
def test_background_knowledge(case: Case) -> None:
    agree(case)


@given(strategies.paths())
def test_property_paths(case: Case) -> None:
    agree(case)


@given(strategies.relations())
def test_allens_relations(case: Case) -> None:
    agree(case)


@given(strategies.timed())
def test_absence_next_and_repeat(case: Case) -> None:
    agree(case)


@given(strategies.optional_parts())
def test_optional_parts(case: Case) -> None:
    agree(case)


@given(strategies.one_after_another())
def test_conditions_and_ties_in_dense_series(case: Case) -> None:
    agree(case)


@given(strategies.ended_runs())
def test_runs_that_are_over(case: Case) -> None:
    agree(case)


@given(strategies.after_the_start())
def test_what_comes_after_the_start(case: Case) -> None:
    agree(case)


@given(start_strategies.start_by_itself())
def test_the_start_by_itself(case: Case) -> None:
    agree(case)


@given(strategies.timed_among_all())
def test_absence_next_and_repeat_among_all_operators(case: Case) -> None:
    agree(case)


@given(strategies.timed_policies())
def test_consuming_policies_with_every_relation(case: Case) -> None:
    agree(case)


@given(strategies.timed_background())
def test_sides_that_may_be_timeless(case: Case) -> None:
    agree(case)


@given(strategies.timed_streams())
def test_absence_in_streams(case: Case) -> None:
    agree(case)


@given(strategies.timed_aggregates())
def test_aggregates_over_deadlines_and_runs(case: Case) -> None:
    agree(case)


@given(strategies.timed_rules())
def test_rules_with_deadlines_and_runs(case: Case) -> None:
    agree(case)


@given(strategies.timed_stratified())
def test_rules_with_deadlines_and_negation(case: Case) -> None:
    agree(case)


@given(strategies.policies_and_negation())
def test_what_is_negated_sees_what_was_consumed(case: Case) -> None:
    agree(case)


@given(st.one_of(*(make() for make in event_strategies.ALL.values())))
def test_event_among_all_operators(case: Case) -> None:
    agree(case)
