"""What columns look up in the background is asked once for each term, and again when the background is another one."""

from __future__ import annotations

import pytest

from etalis_py import Engine, Event, compile
from etalis_py.executors.columns import background_lookups, rules
from etalis_py.knowledge import load
from etalis_py.sparql.prepared import Prepared

PLANTS = "<urn:plants>"
A = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
CLASSES = "SELECT ?x ?c WHERE { ?x <urn:grows> ?y . GRAPH <urn:plants> { ?x a ?c } }"
CLASS = "SELECT ?x ?y WHERE { ?x <urn:grows> ?y . GRAPH <urn:plants> { ?x a <urn:Tree> } }"
LATER = "SELECT ?x ?n WHERE { ?x <urn:grows> ?y . GRAPH <urn:plants> { ?x a <urn:Tree> BIND (NOW() AS ?n) } }"


def grows(*events: tuple[int, str]) -> list[Event]:
    return [Event(t, t, ((f"<urn:{x}>", "<urn:grows>", '"1"'),)) for t, x in events]


def engine_of(query: str) -> Engine:
    named = {PLANTS: [[("<urn:oak>", A, "<urn:Tree>"), ("<urn:oak>", A, "<urn:Old>"), ("<urn:fern>", A, "<urn:Old>")]]}
    return Engine(compile(query), background=load(named=named, cache=False), executor="columns", changes=True)


def rows_of(engine: Engine, *events: tuple[int, str]) -> list[tuple[int, ...]]:
    matches = [*engine.push_all(grows(*events)), *engine.advance(events[-1][0])]
    return [(m.end_us, *(term[5:-1] for _, term in sorted(m.bindings.items()) if term[0] == "<")) for m in matches]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The terms that the background was asked about by evaluation."""
    every: list[str] = []
    solve = Prepared.solve

    def noted(self, mu, *rest):  # type: ignore[no-untyped-def]
        every.extend(mu.values())
        return solve(self, mu, *rest)

    monkeypatch.setattr(Prepared, "solve", noted)
    return every


def test_a_class_of_terms_that_come_again() -> None:
    engine = engine_of(CLASS)
    assert rows_of(engine, (1, "oak"), (2, "fern"), (3, "oak")) == [(1, "oak"), (3, "oak")]
    assert rows_of(engine, (4, "moss"), (5, "oak"), (6, "fern")) == [(5, "oak")]
    engine.update(PLANTS, [("<urn:fern>", A, "<urn:Tree>")], [("<urn:oak>", A, "<urn:Tree>")])
    assert rows_of(engine, (7, "oak"), (8, "fern")) == [(8, "fern")]


def test_several_answers_to_one_term() -> None:
    engine = engine_of(CLASSES)
    assert rows_of(engine, (1, "oak"), (2, "moss")) == [(1, "Old", "oak"), (1, "Tree", "oak")]
    assert rows_of(engine, (3, "fern"), (4, "oak")) == [(3, "Old", "fern"), (4, "Old", "oak"), (4, "Tree", "oak")]
    engine.update(PLANTS, [("<urn:moss>", A, "<urn:Old>")], [("<urn:oak>", A, "<urn:Old>")])
    assert rows_of(engine, (5, "oak"), (6, "moss")) == [(5, "Tree", "oak"), (6, "Old", "moss")]


@pytest.mark.parametrize("most", [0, 1, background_lookups.MOST_ROWS])
def test_a_bounded_number_of_answers(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_lookups, "MOST_ROWS", most)
    engine = engine_of(CLASSES)
    for t in range(1, 20, 3):
        assert rows_of(engine, (t, "oak"), (t + 1, "fern"), (t + 2, "moss")) == [
            (t, "Old", "oak"), (t, "Tree", "oak"), (t + 1, "Old", "fern"),
        ]  # fmt: skip


def test_terms_that_were_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_TERMS", 1)
    engine = engine_of(CLASSES)
    assert rows_of(engine, (1, "moss"), (2, "oak")) == [(2, "Old", "oak"), (2, "Tree", "oak")]
    assert rows_of(engine, (3, "fern"), (4, "moss")) == [(3, "Old", "fern")]


def test_what_reads_the_time_is_asked_again(asked: list[str]) -> None:
    """Where nothing reads it, a term is asked for once."""
    engine = engine_of(LATER)
    for t in (1, 2, 3):
        assert rows_of(engine, (t, "oak")) == [(t, "oak")]
    assert asked == ["<urn:oak>"] * 3
    asked.clear()
    engine = engine_of("SELECT ?x WHERE { ?x <urn:grows> ?y . GRAPH ?g { ?x a <urn:Tree> } }")
    for t in (1, 2, 3):
        assert rows_of(engine, (t, "oak")) == [(t, "oak")]
    assert asked == ["<urn:oak>"]
