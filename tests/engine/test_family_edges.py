"""Families whose queries find nothing, or leave a variable unbound."""

from __future__ import annotations

import pytest

from etalis_py import Engine, compile, event
from etalis_py.engine import query_families as families
from tests.engine.test_families import answers, one_by_one


@pytest.fixture(autouse=True)
def from_two_on(monkeypatch):
    monkeypatch.setattr(families, "FEWEST", 2)


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("pattern", ["{{ ?c :p ?a }}", "{{ ?c :p ?a FILTER (?a > {0}) }}"])
def test_each_query_of_a_family_counts_nothing_when_the_stream_ends(pattern, executor):
    engine = Engine(
        compile([f"SELECT (COUNT(?a) AS ?n) {pattern.format(n)}" for n in range(4)], policy="recent"), executor=executor
    )
    assert len(engine.rules.outputs) == 1
    found = [*engine.push(event(":c :q 1", 1)), *engine.close()]
    assert [(m.query, m["n"]) for m in found] == [("q1", 0), ("q2", 0), ("q3", 0), ("q4", 0)]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_minus_without_a_variable_that_both_sides_bind_removes_nothing_in_a_family(executor):
    """?c is unbound on the right; that both are solutions of one query is no shared variable."""
    text = "SELECT ?a {{ ?c :p ?a MINUS {{ :c{0} :q ?b OPTIONAL {{ ?c :none ?w }} }} }}"
    engine = Engine(compile([text.format(n) for n in range(3)]), executor=executor)
    assert len(engine.rules.outputs) == 1
    matches = [*engine.push_all([event(":c1 :q 3", 1), event(":c1 :p 5", 2)]), *engine.close()]
    assert [(m.query, m["a"]) for m in matches] == [("q1", 5), ("q2", 5), ("q3", 5)]


def test_values_without_a_parameter_stand_in_a_family():
    text = "SELECT ?w {{ {{ {{ ?c :p ?a VALUES ?w {{ UNDEF 1 }} }} NEXT {{ ?c :q ?w }} }} WITHIN {0} s }}"
    queries = [text.format(n) for n in (1, 2, 3, 4)]
    engine = Engine(compile(queries, policy="recent"))
    assert len(engine.rules.outputs) == 1
    found = [*engine.push(event(":a :p 5", 1)), *engine.push(event(":a :q 1", 3)), *engine.close()]
    expected = Engine(one_by_one(queries, "recent"))
    assert answers(found) == answers(
        [*expected.push(event(":a :p 5", 1)), *expected.push(event(":a :q 1", 3)), *expected.close()]
    )
    assert [m.query for m in found] == ["q2", "q3", "q4"]
