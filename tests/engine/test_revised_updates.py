"""Corrections among updates of the background: the net output is that of the corrected input, taken in order.

An update holds from the end of its instant on, also for an event of that instant that comes after the update.  A new
engine gets all events up to that time, corrected and in order, then the time, then the update.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Event, event
from etalis_py.events import Retraction
from etalis_py.kernel import revision
from tests.engine.test_revision import EXAMPLES, LONG, SECOND, Net, points_apart

Executor = Literal["rows", "columns"]
Triple = tuple[str, str, str]
QUERIES = (
    "SELECT ?x ?y { ?x :p ?y . ?x :in :i }",
    "SELECT ?x ?y { { ?x :p ?y } SEQ { ?x :q ?z } ?x :in :i }",
    "SELECT ?x ?y { { { ?x :p ?y } SEQ NOT { ?x :q ?z } WITHIN 2 s } { ?x :in :i } }",
    "SELECT ?x ?y { ?x :p ?y FILTER NOT EXISTS { ?x :in :i } }",
    "SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y . ?x :in :i } GROUP BY ?x",
    "SELECT ?x ?y { { ?x :p ?y } SEQ { ?x :q ?z . ?z :in :i } } USING POLICY recent",
)


def iri(name: str) -> str:
    return f"<http://example.org/{name}>"


def make(query: str, executor: Executor = "rows", revise: int | None = LONG, lateness: int = 0) -> Engine:
    return Engine(query, background=[], changes=True, executor=executor, revise=revise, lateness=lateness)


@dataclass
class Input:
    """The corrected input so far: events and updates with their ends, updates after the events of their time."""

    events: list[Event] = field(default_factory=list)
    updates: list[tuple[int, list[Triple], list[Triple]]] = field(default_factory=list)
    now: int = 0

    def rerun(self, engine: Engine) -> Net:
        net = Net()
        waiting = sorted(self.events, key=lambda e: e.end)
        for end, add, remove in sorted(self.updates, key=lambda u: u[0]):
            net.take(engine.push_all([e for e in waiting if e.end <= end]))
            waiting = [e for e in waiting if e.end > end]
            net.take(engine.advance(end))
            engine.update("", add, remove)
        net.take(engine.push_all(waiting))
        net.take(engine.advance(self.now))
        net.take(engine.close())
        return net


class Run:
    """An engine that is corrected, beside the input as it should be."""

    def __init__(self, query: str, random: Random) -> None:
        self.query, self.random = query, random
        self.lateness = random.choice((0, 0, 2 * SECOND))
        self.engine = self.new()
        self.net, self.input = Net(), Input()

    def new(self) -> Engine:
        return make(self.query, self.random.choice(("rows", "columns")), lateness=self.lateness)

    def push(self) -> None:
        end = max(0, self.input.now + self.random.randint(-3, 2) * SECOND)
        triple = (iri(self.random.choice("ab")), iri(self.random.choice("pq")), iri(self.random.choice("ab")))
        self.input.events.append(Event(end, end, (triple,)))
        self.input.now = max(self.input.now, end)
        self.net.take(self.engine.push(self.input.events[-1]))

    def retract(self) -> None:
        if self.input.events:
            gone = self.random.choice(self.input.events)
            self.input.events = [e for e in self.input.events if e != gone]
            self.net.take(self.engine.push(Retraction(*gone)))

    def update(self) -> None:
        end = max(0, self.input.now + self.random.randint(-3, 0) * SECOND)
        triple = (iri(self.random.choice("ab")), iri("in"), iri(self.random.choice("bi")))
        changes: tuple[list[Triple], list[Triple]] = ([triple], []) if self.random.random() < 0.7 else ([], [triple])
        self.input.updates.append((end, *changes))
        self.engine.update("", *changes, at=end)

    def advance(self) -> None:
        self.input.now += self.random.randint(0, 2) * SECOND
        self.net.take(self.engine.advance(self.input.now))

    def restore(self) -> None:
        self.net.take(self.engine.push_all([]))  # a snapshot is taken between calls that report
        saved, self.engine = self.engine.snapshot(), self.new()
        self.engine.restore(saved)


@settings(max_examples=2 * EXAMPLES)
@given(st.sampled_from(QUERIES), st.integers(0, 2**32), st.sampled_from((1, 2, revision.FEWEST)))
def test_any_order_of_events_updates_and_snapshots(query: str, seed: int, points: int) -> None:
    random = Random(seed)
    with points_apart(points):
        run = Run(query, random)
        run.input.now = 10 * SECOND
        for _ in range(random.randint(3, 14)):
            random.choice((run.push, run.push, run.push, run.retract, run.update, run.advance, run.restore))()
        run.net.take(run.engine.advance(run.input.now))
        run.net.take(run.engine.close())
    assert run.net.ids.keys() == run.input.rerun(make(query, revise=0)).ids.keys()


MEMBER = (iri("a"), iri("in"), iri("i"))


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_correction_back_to_where_only_updates_follow(executor: Executor) -> None:
    """The event is withdrawn, and what is left of the input is the update."""
    engine = make("SELECT ?x { ?x :p ?y }", executor, revise=60 * SECOND)
    net = Net()
    net.take(engine.push(event(":a :p :b", 1)))
    engine.update("", [MEMBER])
    net.take(engine.push(event(":a :p :b", 1, retract=True)))
    assert net.ids == {}
    net.take(engine.push_all([event(":a :p :c", 2), event(":a :p :d", 3)]))
    net.take(engine.close())
    assert [match.end for match in net.ids.values()] == [2, 3]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_snapshot_of_nothing_but_updates(executor: Executor) -> None:
    engine, other = (make(QUERIES[0], executor, revise=60 * SECOND) for _ in range(2))
    engine.update("", [MEMBER])
    other.restore(engine.snapshot())
    assert [m.end for m in (*other.push(event(":a :p :b", 5)), *other.close())] == [5]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_what_falls_due_before_an_update_does_not_see_it(executor: Executor) -> None:
    """A correction passes the time of an update as the input did: what was due by then comes first."""
    engine = make(QUERIES[2], executor)
    net = Net()
    net.take(engine.push(event(":a :p :b", 1)))
    net.take(engine.advance(3 * SECOND))
    engine.update("", [MEMBER])
    net.take(engine.push(event(":b :p :b", 1)))
    net.take(engine.close())
    assert net.ids == {}


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("lateness", [0, 10 * SECOND])
def test_an_event_at_the_time_of_an_update_made_before_it(executor: Executor, lateness: int) -> None:
    """The update holds from the end of the instant at 12 s on, wherever the engine stands when it is made."""
    cases = {
        "nothing has come": [],
        "the time is an earlier one": [event(":b :q :a", 11)],
        "the instant is open": [event(":b :q :a", 12)],
        "the instant is open and its event was withdrawn": [event(":b :q :a", 12), event(":b :q :a", 12, retract=True)],
        "the instant is over": [event(":b :q :a", 13)],
    }
    for case, before in cases.items():
        engine, net = make(QUERIES[0], executor, lateness=lateness), Net()
        for item in before:
            net.take(engine.push(item))
        engine.update("", [MEMBER], at=12 * SECOND)
        for item in [event(":a :p :b", 12), event(":a :p :c", 14)]:
            net.take(engine.push(item))
        net.take(engine.close())
        assert [match.end for match in net.ids.values()] == [14], case


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_an_update_after_events_that_wait_because_of_the_lateness(executor: Executor) -> None:
    engine, net = make(QUERIES[0], executor, lateness=10 * SECOND), Net()
    net.take(engine.push_all([event(":a :p :b", 10), event(":a :p :c", 12), event(":a :p :d", 14)]))
    engine.update("", [MEMBER], at=12 * SECOND)
    net.take(engine.push(event(":a :p :e", 11)))
    net.take(engine.close())
    assert [match.end for match in net.ids.values()] == [14]
