"""What is unbound or an error in columns: MINUS without a shared value, EXISTS in the background, MIN over errors."""

from __future__ import annotations

import pytest
from etalis_rules.terms import XSD

from etalis_py import Engine, Event, compile
from etalis_py.kernel.batch import Batch
from tests.executors.columns.judge import agree

SECOND = 1_000_000


def event(t: int, subject: str, predicate: str, value: str) -> Event:
    return Event(t * SECOND, t * SECOND, ((f"<urn:{subject}>", f"<urn:{predicate}>", value),))


def number(n: int) -> str:
    return f'"{n}"^^<{XSD}integer>'


def rows(query: str, events: list[Event], background: str = "") -> list[tuple[str, ...]]:
    """The answers in columns, which are those in rows."""
    program = compile(f"PREFIX : <urn:> {query}")
    graphs = [background] if background else []
    assert agree(lambda executor: Engine(program, executor=executor, background=graphs), events) is None
    engine = Engine(program, executor="columns", background=graphs)
    return [m.row for m in [*engine.push_all(Batch(events, events[-1].end).columns), *engine.close()]]


def test_minus_takes_nothing_away_by_variables_that_are_unbound() -> None:
    """[SPARQL 1.1 Query] §18.5: only a solution that shares a bound variable is taken away."""
    query = "SELECT ?s ?w { { ?s :p ?v OPTIONAL { ?s :q ?w } } MINUS { ?x :r ?y OPTIONAL { ?x :t ?w } } }"
    events = [event(1, "x", "r", number(1)), event(2, "y", "r", number(1)), event(2, "y", "t", number(7))]
    events += [event(3, "a", "p", number(1)), event(3, "b", "q", number(7)), event(3, "b", "p", number(1))]
    assert rows(query, events) == [("<urn:a>", "")]


@pytest.mark.parametrize("known", ["?x :known ?w", "{ ?x :t ?w } UNION { ?x :known ?y }"])
def test_nor_by_what_the_background_leaves_unbound(known: str) -> None:
    """The first event binds no ``?w``, and of ``:n`` the background says nothing that could be shared."""
    query = f"SELECT ?s ?w {{ {{ ?s :p ?v OPTIONAL {{ ?s :q ?w }} }} MINUS {{ {known} }} }}"
    background = "PREFIX : <urn:> :m :known 7 ; :t 7 . :n :known 9 ."
    events = [event(1, "a", "p", number(1))]
    for t, (subject, value) in enumerate((("b", 7), ("c", 8)), 2):
        events += [event(t, subject, "q", number(value)), event(t, subject, "p", number(1))]
    assert rows(query, events, background) == [("<urn:a>", ""), ("<urn:c>", number(8))]


@pytest.mark.parametrize(("condition", "kept"), [("EXISTS", "a"), ("NOT EXISTS", "b")])
def test_exists_looks_into_the_background(condition: str, kept: str) -> None:
    query = f"SELECT ?s {{ ?s :p ?v FILTER {condition} {{ ?s :known ?k }} }}"
    events = [event(1, "a", "p", number(1)), event(2, "b", "p", number(1))]
    assert rows(query, events, "<urn:a> <urn:known> 1 .") == [(f"<urn:{kept}>",)]


@pytest.mark.parametrize(("aggregate", "kept"), [("MIN", ""), ("MAX", ""), ("SAMPLE", number(5))])
def test_the_least_of_values_with_an_error_is_an_error(aggregate: str, kept: str) -> None:
    """[SPARQL 1.1 Query] §18.5.1: an error in the operand is one of MIN and MAX; SAMPLE takes a value that is there."""
    query = f"SELECT ({aggregate}(?v + 1) AS ?m) {{ ?s :p ?v }} WITHIN 5 s"
    events = [event(1, "a", "p", number(4)), event(2, "a", "p", '"x"')]
    assert rows(query, events)[-1] == (kept,)
