"""EVENT in columns: the same matches as in rows, however the events are cut into batches."""

from __future__ import annotations

import random

import pytest
from etalis_compiler.diagnostics import QueryError
from hypothesis import given, settings

from etalis_py import Engine, Event, LimitExceeded, Limits
from tests.draws import examples
from tests.engine.judge import engine_for
from tests.engine.test_event_groups import TRACES
from tests.executors.columns.judge import EVERYTHING, agree, reason_for_rows, rule_executors
from tests.oracle import event_strategies
from tests.oracle.strategies import Case
from tests.oracle.traces import at, queries

pytestmark = pytest.mark.usefixtures("forgetful")

SECOND = 1_000_000
COLUMNS = "SELECT * { EVENT { ?s :p ?x ; :q ?y } }"


def in_columns(query: str, *events: Event) -> list[dict[str, str]]:
    """The bindings, where the query runs in columns and says the same in rows."""
    case = Case(queries(query), events)
    making = lambda executor: engine_for(case, executor=executor)  # noqa: E731
    assert agree(making, events) is None
    assert reason_for_rows(making("columns")) is None
    engine = making("columns")
    return [match.to_dict()["bindings"] for match in [*engine.push_all(events), *engine.close()]]


@pytest.mark.parametrize("what", TRACES)
def test_every_pattern_runs_in_columns(what: str) -> None:
    query, events = TRACES[what]
    in_columns(query, *events)


@pytest.mark.parametrize("group", sorted(event_strategies.ALL))
def test_the_same_reports(group: str) -> None:
    @settings(max_examples=examples(1 / 10))
    @given(event_strategies.ALL[group]())
    def test(case: Case) -> None:
        def making(executor: str) -> Engine:
            return engine_for(case, executor=executor)

        try:
            making("rows")
        except QueryError:
            return
        agree(making, case.events, sizes=(2, EVERYTHING))

    test()


def test_a_missing_column_is_no_match_and_several_values_are_a_product() -> None:
    found = in_columns(COLUMNS, at(1, "s p 1"), at(2, "s q 2"), at(3, "s p 3 ; s p 4 ; s q 5 ; s q 6"))
    assert len(found) == 4


def test_columns_of_two_subjects_are_not_mixed() -> None:
    assert len(in_columns(COLUMNS, at(1, "s p 1 ; t q 2 ; t p 3 ; s q 4 ; u p 5"))) == 2


def test_equal_events_of_an_instant_are_one_and_others_are_not() -> None:
    again = at(1, "s p 1 ; s q 2"), at(1, "s q 2 ; s p 1")
    assert len(in_columns(COLUMNS, *again)) == 1
    assert len(in_columns(COLUMNS, *again, at(1, "s p 1 ; s q 2 ; s r 3"), at(2, "s p 1 ; s q 2"))) == 3


def test_a_triple_that_an_event_has_twice_counts_once() -> None:
    s, p, q = "<urn:s>", "<urn:p>", "<urn:q>"
    twice = Event(SECOND, SECOND, ((s, p, '"1"'), (s, q, '"2"'), (s, p, '"1"')))
    assert len(in_columns("SELECT * { EVENT { ?s <urn:p> ?x ; <urn:q> ?y } }", twice)) == 1


def test_large_events() -> None:
    draw = random.Random(7)

    def event(n: int) -> Event:
        triples = (
            f"s{draw.randrange(6)} {draw.choice('pqr')} {draw.randrange(9)}" for _ in range(draw.choice((3, 60)))
        )
        return at(n // 3, " ; ".join(triples))

    assert len(in_columns(COLUMNS, *map(event, range(30)))) > 300


@pytest.mark.parametrize(
    "inside",
    [
        "?s :p ?x FILTER NOT EXISTS { ?s :q 1 }",
        "?s :p ?x FILTER EXISTS { ?s :q ?x ; :r ?z }",
        "?s :p ?x ; :q ?y FILTER EXISTS { ?s :r ?y } FILTER NOT EXISTS { ?s :q 2 ; :r ?x }",
        "?s :p ?x MINUS { ?s :q ?x }",
        "?s :p ?x MINUS { ?s :q ?y ; :r ?y } MINUS { ?s :q 3 }",
        "?s :p ?x MINUS { ?s :q ?z } ?s :r ?z",
        "?s :p ?x FILTER NOT EXISTS { ?s :q ?s }",
        "?s :p ?x FILTER NOT EXISTS { ?x :q ?s }",
    ],
)
def test_exists_and_minus_inside_an_event(inside: str) -> None:
    draw = random.Random(3)

    def event(n: int) -> Event:
        triples = (
            f"{draw.choice('st')} {draw.choice('pqr')} {draw.choice('1234s')}" for _ in range(draw.randrange(1, 7))
        )
        return at(n // 2, " ; ".join(triples))

    assert 3 < len(in_columns(f"SELECT * {{ EVENT {{ {inside} }} }}", *map(event, range(200)))) < 400


def test_more_solutions_of_one_event_than_the_limit_are_refused() -> None:
    pairs = at(1, " ; ".join(f"s {p} {n}" for n in range(40) for p in "pq"))
    case = Case(queries(COLUMNS), (pairs,))
    for executor in ("rows", "columns"):
        engine = engine_for(case, executor=executor, limits=Limits(derivations=1000))
        with pytest.raises(LimitExceeded, match="more than 1000 solutions"):
            [*engine.push_all([pairs]), *engine.close()]


def test_a_rule_in_rows_reads_whole_events_that_rules_in_columns_derive_and_the_other_way_round() -> None:
    program = (
        "CONSTRUCT { ?s :low ?x ; :high ?y } WHERE { EVENT { ?s :p ?x ; :q ?y } } "
        "CONSTRUCT { ?s :low ?y ; :high ?z } WHERE { EVENT { ?s :low ?x ; :high ?y } EVENT { ?s :r ?z } } "
        "SELECT * { EVENT { ?s :low ?x ; :high ?y } SEQ EVENT { ?s :low ?z } }"
    )
    events = at(1, "s p 1 ; s q 2"), at(1, "s r 3"), at(2, "s p 4 ; s q 5 ; s r 6"), at(3, "s low 7 ; s high 8")
    case = Case(queries(program), events)
    making = lambda executor: engine_for(case, executor=executor)  # noqa: E731
    assert agree(making, events) is None
    (executor,) = rule_executors(making("columns"))
    assert [sorted(part.outputs) for part in executor.division.parts] == [["out:q2"]]
