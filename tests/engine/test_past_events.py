"""Events that rules derive of the past: a row that changes because something left ends before its instant."""

from __future__ import annotations

from typing import Any

import pytest
from etalis_compiler import ast
from etalis_compiler.diagnostics import QueryError
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine
from tests.draws import examples
from tests.engine import test_revision
from tests.engine.judge import agree, in_rows_and_columns, matches_whatever_snapshot, program_of
from tests.executors.columns import judge as columns
from tests.oracle import Endless, Refused, Undetermined, Unstratified, evaluation, past_strategies, traces
from tests.oracle.strategies import Case
from tests.oracle.traces import at

COUNT = "CONSTRUCT { ?x :d ?n } WHERE { SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } WITHIN 2 s GROUP BY ?x } ;"
GREATEST = "CONSTRUCT { ?x :d ?n } AT END WHERE { SELECT ?x (MAX(?y) AS ?n) { ?x :p ?y } WITHIN 2 s GROUP BY ?x } ;"
FIRST = "CONSTRUCT { ?x :d ?n } WHERE { SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x ORDER BY ?n ?x LIMIT 1 } ;"
LEFT = (at(4, "a p 1"), at(5, "a p 2"), at(6, "b p 7"))


def told(text: str, *events: Any) -> Any:
    """The answer of both executors, which is the oracle's."""
    rows, in_columns = in_rows_and_columns(text, *events)
    assert sorted(rows) == sorted(in_columns) == sorted(traces.run(text, *events))
    return rows


def test_a_row_that_something_left_derives_an_event() -> None:
    found = told(f"{COUNT} SELECT * {{ ?x :d ?n }}", *LEFT)
    assert found == [("n=1 x=a", 4, 4), ("n=2 x=a", 4, 5), ("n=1 x=a", 5, 5), ("n=1 x=b", 6, 6)]


def test_so_does_a_row_that_limit_lets_through_when_another_is_gone() -> None:
    found = told(f"{FIRST} SELECT * {{ ?x :d ?n }}", at(1, "a p 1"), at(2, "b p 1"), at(3, "a p 2"))
    assert found == [("n=1 x=a", 1, 1), ("n=1 x=b", 2, 2)]


def test_what_is_derived_again_is_the_same_event() -> None:
    """AT END the row [4, 5] and, once the first has left, [5, 5] are one point."""
    found = told(f"{GREATEST} SELECT * {{ ?x :d ?n }}", *LEFT)
    assert found == [("n=1 x=a", 4, 4), ("n=2 x=a", 5, 5), ("n=7 x=b", 6, 6)]


def test_it_comes_before_what_began_after_its_end() -> None:
    found = told(f"{COUNT} SELECT * {{ {{ :a :d 1 }} SEQ {{ :b :p ?z }} }}", *LEFT)
    assert found == [("z=7", 4, 6), ("z=7", 5, 6)]


def test_what_decides_in_time_does_not_see_it() -> None:
    found = told(f"{COUNT} SELECT * {{ {{ ?x :d ?n }} NEXT {{ :b :p ?z }} }}", *LEFT)
    assert found == [("n=1 x=a z=7", 4, 6), ("n=2 x=a z=7", 4, 6)]


def test_a_window_takes_nothing_that_ended_before_it_opened() -> None:
    many = "SELECT (COUNT(*) AS ?m) { ?x :d ?n } WITHIN 1 s"
    found = told(f"{FIRST} {many}", at(1, "a p 1"), at(2, "b p 1"), at(9, "a p 2"))
    assert found == [("m=1", 1, 1), ("m=0", None, None)]


def test_a_window_over_the_rows_of_another_takes_no_row_that_ended_before_it_opened() -> None:
    rows = "SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } WITHIN 3 s GROUP BY ?x"
    found = told(f"SELECT (SUM(?n) AS ?m) {{ {rows} }} WITHIN 1 s", at(4, "a p 1"), at(5, "a p 2"), at(7.5, "b p 7"))
    assert found == [("m=1", 4, 4), ("m=2", 4, 5), ("m=1", 7.5, 7.5)]


def test_an_exists_that_would_look_back_at_it_is_refused() -> None:
    asked = "{ ?x :p ?z OPTIONAL { ?x :q ?w FILTER EXISTS { ?x :d ?n } } }"
    with pytest.raises(QueryError, match="an EXISTS beside NOT, NEXT, SEQ OPTIONAL, REPEAT and SKIP"):
        Engine(traces.PROLOGUE + f"{COUNT} SELECT * {{ {{ ?x :p ?y }} NEXT {asked} }}")


def test_rules_that_come_while_queries_run() -> None:
    """A pattern takes what they derive of the past; where that needs other goals, they are refused."""
    rule = traces.PROLOGUE + COUNT.rstrip("; ").replace("CONSTRUCT", "REGISTER QUERY :rule AS CONSTRUCT")
    engine = Engine(traces.PROLOGUE + "SELECT ?x ?n { ?x :d ?n }")
    first = engine.push(LEFT[0])
    engine.add(rule)
    matches = [*first, *engine.push_all(LEFT[1:]), *engine.close()]
    assert [(m["n"], m.start_us, m.end_us) for m in matches if m.query == "q1"] == [
        (1, 4_000_000, 4_000_000),
        (2, 4_000_000, 5_000_000),
        (1, 5_000_000, 5_000_000),
        (1, 6_000_000, 6_000_000),
    ]
    for where in ("{ ?x :d ?n } NEXT { ?x :d ?m }", "{ { ?x :d ?n } SEQ { ?x :q ?m } } WITHIN 3 s"):
        engine = Engine(traces.PROLOGUE + f"SELECT * {{ {where} }}")
        engine.push(LEFT[0])
        with pytest.raises(ValueError, match="changes what q1, which runs already, has to remember"):
            engine.add(rule)
        assert not [*engine.push(LEFT[1]), *engine.close()]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_an_engine_goes_back_to_what_it_knew(executor: Any) -> None:
    engine = Engine(traces.PROLOGUE + f"{COUNT} SELECT * {{ ?x :d ?n }}", executor=executor)
    engine.push_all(LEFT[:2])
    before, rest = engine.snapshot(), (LEFT[2], at(9, "c q 1"))
    first = [m.id for m in engine.push_all(rest)]
    assert len(first) == 6
    engine.restore(before)
    assert [m.id for m in engine.push_all(rest)] == first


def test_it_explains_itself() -> None:
    engine = Engine(traces.PROLOGUE + f"{COUNT} SELECT ?n {{ :a :d ?n }}", explain=True)
    told = [m.why() for m in [*engine.push_all(LEFT), *engine.close()] if m.query == "q2"]
    assert str(told[-1]).splitlines()[0] == "q2 [5, 5]"
    assert ":a :p 2 [5, 5]" in str(told[-1])


@pytest.mark.parametrize("kind", past_strategies.ALL)
@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_drawn_readers(kind: str, executor: str) -> None:
    @settings(max_examples=examples(1 / 2))
    @given(past_strategies.ALL[kind]())
    def agrees(case: Case) -> None:
        agree(case, executor=executor)

    agrees()


def decided(case: Case) -> bool:
    """Whether the program has an answer and is not refused."""
    try:
        evaluation(case.program, case.events, case.background, case.policy)
        Engine(program_of(case.program), policy=case.policy)
    except (Unstratified, Refused, Undetermined, Endless, QueryError):
        return False
    return True


ANY = st.one_of(*(make() for make in past_strategies.ALL.values())).filter(decided)


@settings(max_examples=examples(1 / 3))
@given(ANY, st.sampled_from(("rows", "columns")), st.booleans())
def test_an_engine_goes_on_from_a_snapshot(case: Case, executor: Any, explain: bool) -> None:
    matches_whatever_snapshot(
        program_of(case.program), case.events, policy=case.policy, executor=executor, explain=explain
    )


@settings(max_examples=examples(1 / 3))
@given(ANY)
def test_however_the_input_is_cut(case: Case) -> None:
    def making(executor: Any) -> Engine:
        return Engine(program_of(case.program), policy=case.policy, executor=executor)

    columns.same_reports(making, case.events)


def tells_rows_apart(case: Case) -> bool:
    """Whether no row is reported twice with one interval, and so with one id, as AT END and LIMIT may do."""
    rules = [query for query in case.program.queries if isinstance(query.form, ast.Construct)]
    inner = [part for rule in rules for part in ast.walk(rule) if isinstance(part, ast.Query) and part.group_by]
    plain = not any(isinstance(rule.form, ast.Construct) and rule.form.at_end for rule in rules)
    return plain and len(inner) == 1 and inner[0].limit is None


@settings(max_examples=examples(1 / 3))
@given(ANY.filter(tells_rows_apart), st.data())
def test_corrections(case: Case, data: Any) -> None:
    test_revision.check(case, data)
