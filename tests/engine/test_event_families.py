"""Queries with EVENT that differ in constants only: a family answers as its queries do one by one."""

from __future__ import annotations

import random

import pytest

import etalis_py.engine.query_families as families
from etalis_py import Engine, Event, compile
from etalis_py.knowledge import load
from tests.oracle.traces import at

FAMILIES = {
    "a filter": "SELECT ?s ?t {{ EVENT {{ ?s :temp ?t ; :hum ?h FILTER (?t > {0}) }} }}",
    "a column": "SELECT ?s ?t {{ EVENT {{ ?s :temp ?t ; :hum {0} }} }}",
    "a column and a filter": "SELECT ?s ?t {{ EVENT {{ ?s :temp {0} ; :hum ?t FILTER (?t >= {0}) }} }}",
    "the subject": "SELECT ?t ?h {{ {{ EVENT {{ :s{0} :temp ?t ; :hum ?h }} SEQ EVENT {{ :s{0} :temp ?t }} }} "
    "WITHIN 3 s }}",
    "next": "SELECT ?s ?t {{ EVENT {{ ?s :temp ?t ; :hum ?h FILTER (?t > {0}) }} NEXT EVENT {{ ?s :temp ?u }} }}",
    "an aggregate": "SELECT ?s (COUNT(*) AS ?n) {{ EVENT {{ ?s :temp ?t ; :hum ?h FILTER (?h > {0}) }} }} GROUP BY ?s",
    "the graph": "SELECT ?t ?g {{ EVENT ?g {{ ?s :temp ?t ; :hum {0} }} }}",
    "absence": "SELECT ?t {{ EVENT {{ ?s :temp ?t ; :hum ?h }} SEQ NOT {{ EVENT {{ ?s :hum {0} }} }} WITHIN 2 s }}",
}
ONE_BY_ONE = {
    "an optional part": "SELECT ?t ?h {{ EVENT {{ ?s :temp ?t OPTIONAL {{ ?s :hum ?h FILTER (?h > {0}) }} }} }}",
    "a sub-SELECT": "SELECT ?n {{ EVENT {{ {{ SELECT (COUNT(*) AS ?n) {{ ?s :temp ?t FILTER (?t > {0}) }} }} }} }}",
}


def records() -> list[Event]:
    rnd = random.Random(7)
    events = []
    for i in range(40):
        cells = rnd.sample([("temp", x) for x in range(5)] + [("hum", x) for x in range(5)], rnd.choice((1, 2, 2, 3)))
        said = [f"s{rnd.choice('123')} {p} {x}" for p, x in cells[:1]]
        said += [f"{said[0][:2]} {p} {x}" for p, x in cells[1:]]
        events.append(at(i // 3, " ; ".join(said))._replace(graph=rnd.choice(("", "<urn:g>"))))
    return events


def answers(texts: list[str], executor: str, known: str) -> list[tuple[str, str]]:
    engine = Engine(compile(texts), executor=executor, background=load(known) if known else None)
    return sorted((m.query, m.id) for m in [*engine.push_all(records()), *engine.close()])


def alike(wording: str) -> list[str]:
    return [f"PREFIX : <urn:> {wording.format(constant)}" for constant in range(5)]


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("known", ["", "@prefix : <urn:> . :s1 :hum 2 ; :temp 3 ."])
def test_a_family_answers_as_its_queries_do(executor: str, known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text for wording in (FAMILIES | ONE_BY_ONE).values() for text in alike(wording)]
    together = answers(texts, executor, known)
    monkeypatch.setattr(families, "FEWEST", 10**9)
    assert together == answers(texts, executor, known)
    assert len({name for name, _ in together}) > len(texts) / 2


@pytest.mark.parametrize("name", FAMILIES)
def test_such_queries_are_one_family(name: str) -> None:
    assert "q1 stands for 5 queries" in str(compile(alike(FAMILIES[name])).explain())


@pytest.mark.parametrize("cut", [1, 20])
def test_single_events_and_snapshots_change_nothing(cut: int) -> None:
    texts = [text for wording in FAMILIES.values() for text in alike(wording)]
    first, second = Engine(compile(texts), executor="columns"), Engine(compile(texts), executor="rows")
    before = [match for one in records()[:cut] for match in first.push(one)]
    second.restore(first.snapshot())
    matches = [*before, *second.push_all(records()[cut:]), *second.close()]
    assert sorted((m.query, m.id) for m in matches) == answers(texts, "rows", "")


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_a_constant_within_a_part_of_event_makes_no_family(name: str) -> None:
    """It decides about the rest of the event: whether the optional part is there, what is counted."""
    assert "run one by one" in str(compile(alike(ONE_BY_ONE[name])).explain())
