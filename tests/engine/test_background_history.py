"""Stored state of engines whose background has changed: restoring it gives the engine that stored it.

What the background held before, and holds no longer, makes no difference; nor does what the other engine has seen.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from etalis_rules.terms import RDF_TYPE, RDFS
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, event
from etalis_py.events import Triple
from tests.draws import examples

EXAMPLES = examples(1 / 15)
QUERIES = (
    "SELECT ?x ?y { ?x :p ?y . ?y :q ?z }",
    "SELECT ?x ?y { { ?x :p ?y . ?y :q ?w } SEQ { ?x :p ?z } }",
    "SELECT ?x ?y { { ?x a :C ; :p ?y } SEQ { ?y :q ?z } FILTER NOT EXISTS { ?y a :D } }",
    "SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y . ?y a ?c } GROUP BY ?x",
    "SELECT ?x ?y { ?x :p+ ?y . ?x :q ?z }",
    "REGISTER STREAM :s AS CONSTRUCT { ?x :q ?y } { ?x :p ?y . ?y a :C }",
)
EXECUTORS = ("rows", "columns")


def iri(name: str) -> str:
    return f"<http://example.org/{name}>"


INSTANCES = [
    *((iri(s), iri(p), iri(o)) for s in "ab" for p in "pqr" for o in "ab"),
    *((iri(s), RDF_TYPE, iri(c)) for s in "ab" for c in "CD"),
]
SCHEMA = [
    (iri("r"), f"<{RDFS}subPropertyOf>", iri("p")),
    (iri("D"), f"<{RDFS}subClassOf>", iri("C")),
    (iri("q"), f"<{RDFS}domain>", iri("D")),
]


def make(query: str, executor: Any, **options: Any) -> Engine:
    return Engine(query, background=[], changes=True, executor=executor, **options)


class Run:
    """Two engines with one input; one of them is stored and restored on the way, each time into another engine."""

    def __init__(self, query: str, random: Random) -> None:
        self.query, self.random = query, random
        self.through, self.restored = self.new(), self.new()
        self.spare = self.new()
        self.stated: list[Triple] = []
        self.ids: tuple[list[str], list[str]] = ([], [])
        self.now = 0

    def new(self) -> Engine:
        return make(self.query, self.random.choice(EXECUTORS), journal=True)

    def push(self) -> None:
        self.now += self.random.randint(0, 1)
        s, p, o = (self.random.choice(some) for some in ("ab", ("p", "q", "r", "a"), "ab"))
        given = event(f":{s} {p} :{o.upper().replace('B', 'D')}" if p == "a" else f":{s} :{p} :{o}", self.now)
        for engine, ids in zip((self.through, self.restored), self.ids, strict=True):
            ids += [match.id for match in engine.push(given)]

    def update(self) -> None:
        """The background grows and shrinks again."""
        if self.stated and self.random.random() < 0.5:
            add, gone = [], self.random.sample(self.stated, self.random.randint(1, len(self.stated)))
            self.stated = [triple for triple in self.stated if triple not in gone]
        else:
            add, gone = [self.random.choice(SCHEMA if self.random.random() < 0.1 else INSTANCES)], []
            self.stated = list(dict.fromkeys(self.stated + add))
        for engine in (self.through, self.restored):
            engine.update("", add, gone)

    def restore(self) -> None:
        """Into a new engine, or into the one that was left before, whose background has a history of its own."""
        other = self.random.choice((self.new(), self.spare))
        other.restore(self.restored.snapshot())
        self.spare, self.restored = self.restored, other

    def follow(self) -> None:
        """A new engine takes a snapshot, and the journal of what comes after it."""
        other = self.new()
        other.restore(self.restored.snapshot())
        self.restored.take_journal()
        for _ in range(self.random.randint(1, 4)):
            self.random.choice((self.push, self.update))()
        other.apply_journal(self.restored.take_journal())
        self.restored = other


@settings(max_examples=EXAMPLES)
@given(st.sampled_from(QUERIES), st.integers(0, 2**32))
def test_whatever_the_background_held_before(query: str, seed: int) -> None:
    random = Random(seed)
    run = Run(query, random)
    for _ in range(random.randint(4, 16)):
        random.choice((run.push, run.push, run.update, run.update, run.restore, run.follow))()
    for engine, ids in zip((run.through, run.restored), run.ids, strict=True):
        ids += [match.id for match in engine.close()]
    assert sorted(run.ids[0]) == sorted(run.ids[1])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_vocabulary_that_grew_and_shrank(executor: Any) -> None:
    """The rules for :q in the background stay when its last triple has gone; so does what waits in them."""
    engine = make(QUERIES[1], executor)
    triple = (iri("b"), iri("q"), iri("b"))
    engine.update("", [triple])
    engine.push(event(":a :p :b", 1))
    engine.update("", [], [triple])
    other = make(QUERIES[1], executor)
    other.restore(engine.snapshot())
    for one in (engine, other):
        assert [(m.start, m.end) for m in (*one.push(event(":a :p :a", 2)), *one.close())] == [(1, 2)]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_vocabulary_that_grew_in_the_engine_that_is_restored(executor: Any) -> None:
    saved = make(QUERIES[1], executor).snapshot()
    engine = make(QUERIES[1], executor)
    engine.update("", [(iri("b"), iri("q"), iri("b"))])
    engine.update("", [], [(iri("b"), iri("q"), iri("b"))])
    engine.restore(saved)
    assert [*engine.push_all([event(":a :p :b", 1), event(":a :p :a", 2)]), *engine.close()] == []


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_journal_of_goals_that_other_rules_ended_and_began_again(executor: Any) -> None:
    """With the schema the rules go and come; what they have counted stays, and the journal has it once."""
    leader, follower = (make(QUERIES[3], executor, journal=True) for _ in range(2))
    leader.update("", [(iri("b"), RDF_TYPE, iri("C"))])
    leader.push(event(":a :p :b", 1))
    leader.advance(1_000_000)
    leader.update("", SCHEMA[:1])
    leader.update("", [], SCHEMA[:1])
    follower.apply_journal(leader.take_journal())
    given = event(":a :p :b", 2)
    counts = [[m["n"] for m in (*engine.push(given), *engine.close())] for engine in (leader, follower)]
    assert counts == [[2], [2]]
