"""SEQ of three parts or more: all combinations are matches, and none is kept that is not complete."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from etalis_py import Engine, Event, Match, compile
from etalis_py.events import event
from etalis_py.executors.rows.generate.chain_nodes import Chained
from etalis_py.executors.rows.run import executor
from etalis_py.kernel.batch import Batch
from tests.draws import seeds
from tests.engine.judge import agree
from tests.executors.columns.judge import same_reports
from tests.oracle.strategies import Case
from tests.oracle.traces import queries

P = "PREFIX : <urn:x:> "
SHAPES = {
    "nothing shared": "SELECT * { { ?a :p 1 } SEQ { ?b :q 1 } SEQ { ?c :r 1 } SEQ { ?d :p 2 } } WITHIN 25 s",
    "one key": "SELECT ?x ?c { { ?x :p ?a } SEQ { ?x :q ?b } SEQ { ?x :r ?c } } WITHIN 12 s",
    "a key of neighbours only": "SELECT * { { ?a :p ?x } SEQ { ?b :q ?x } SEQ { ?b :r ?y } SEQ { ?d :p ?y } } "
    "WITHIN 15 s",
    "no window": "SELECT * { { ?a :p ?x } SEQ { ?a :q ?y } SEQ { ?a :r ?y } }",
    "the same part again": "SELECT * { { ?a :p ?x } SEQ { ?a :p ?y } SEQ { ?a :p ?z } SEQ { ?a :p ?x } } WITHIN 12 s",
    "a condition at the end": "SELECT * { { ?a :p ?x } SEQ { ?a :q ?y } SEQ { ?a :r ?z } SEQ { ?a :p ?w } "
    "FILTER (?x < ?w) } WITHIN 20 s",
    "a BIND at the end": "SELECT ?a ?s { { ?a :p ?x } SEQ { ?a :q ?y } SEQ { ?a :r ?z } "
    "BIND (?x + ?z AS ?s) } WITHIN 9 s",
    "another window inside": "SELECT * { {{{ ?a :p ?x } SEQ { ?a :q ?y }} WITHIN 3 s} SEQ { ?a :r ?z } "
    "SEQ { ?a :p ?w } SEQ { ?a :q ?v } } WITHIN 15 s",
    "a part of two triples": "SELECT * { { ?a :p ?x } SEQ { ?a :q ?y . ?a :r ?y } "
    "SEQ { { ?a :r ?z } UNION { ?a :p ?z } } } WITHIN 9 s",
    "derived events": "CONSTRUCT { ?a :r ?c } { { ?a :p ?b } SEQ { ?a :q ?b } SEQ { ?a :q ?c } } WITHIN 9 s "
    "SELECT * { { ?a :r ?b } SEQ { ?a :p ?c } SEQ { ?a :r ?d } } WITHIN 20 s",
    "counted": "SELECT ?x (COUNT(*) AS ?n) { { ?x :p ?a } SEQ { ?x :q ?b } SEQ { ?x :r ?c } } WITHIN 9 s GROUP BY ?x",
    "shared with another query": "SELECT ?a { { ?a :p ?x } SEQ { ?a :q ?y } } WITHIN 9 s "
    "SELECT ?a ?z { { ?a :p ?x } SEQ { ?a :q ?y } SEQ { ?a :r ?z } } WITHIN 9 s",
}


def drawn(seed: int, size: int, lasting: bool) -> Iterator[Event]:
    """Events a second or two apart, some at the same time; if ``lasting``, half of them began before."""
    draw, t = random.Random(seed), 0
    for _ in range(size):
        t += draw.choice((0, 1, 1, 2))
        start = t - draw.choice((0, 0, 1, 3)) if lasting else t
        triple = (f"<urn:x:s{draw.randrange(2)}>", f"<urn:x:{draw.choice('pqr')}>", f'"{draw.randint(1, 2)}"')
        number = "^^<http://www.w3.org/2001/XMLSchema#integer>"
        yield Event(start * 1_000_000, t * 1_000_000, ((*triple[:2], triple[2] + number),), "", "")


@pytest.mark.parametrize("lasting", [False, True], ids=["points", "intervals"])
@pytest.mark.parametrize("shape", SHAPES)
def test_all_combinations_are_matches_by_the_definition(shape: str, lasting: bool) -> None:
    for executed in ("rows", "columns"):
        for seed in seeds(3):
            agree(Case(queries(P + SHAPES[shape]), tuple(drawn(seed, 16, lasting))), executor=executed)


@pytest.mark.parametrize("lasting", [False, True], ids=["points", "intervals"])
@pytest.mark.parametrize("shape", SHAPES)
def test_ids_and_order_are_those_of_joins(shape: str, lasting: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    program = compile(P + SHAPES[shape])
    events = list(drawn(7, 80, lasting))
    with monkeypatch.context() as patch:
        patch.setattr(executor, "chained", lambda rules, built: Chained(rules, {}))
        joined = Engine(program, executor="rows")
        expected = [m.to_dict() for m in [*joined.push_all(events), *joined.close()]]
    assert expected
    chained = Engine(program, executor="rows")
    assert [m.to_dict() for m in [*chained.push_all(events), *chained.close()]] == expected
    same_reports(lambda name: Engine(program, executor=name), events)


@pytest.mark.parametrize("executed", ["rows", "columns"])
@pytest.mark.parametrize("parts", [3, 6])
def test_what_is_never_completed_is_kept_once_per_event(executed: str, parts: int) -> None:
    """Each event is a first, second, … part, and there are thousands of combinations, but never a last part."""
    pattern = " SEQ ".join(f"{{ ?e{i} a :T{i} }}" for i in range(parts))
    engine = Engine(P + f"SELECT * {{ {pattern} }} WITHIN 300 s", executor=executed)
    for t in range(300):
        assert not engine.push(event(f"<urn:x:e{t}> a <urn:x:T{t % (parts - 1)}>", t))
    assert engine.count().goals <= 300


@pytest.mark.parametrize("executed", ["rows", "columns"])
def test_what_cannot_be_completed_in_the_window_is_not_kept(executed: str) -> None:
    """The second part is kept only as long as a first part within the window is before it."""
    engine = Engine(P + "SELECT * { { ?a :p 1 } SEQ { ?b :q 1 } SEQ { ?c :r 1 } } WITHIN 5 s", executor=executed)
    engine.push_all([event("<urn:x:b> <urn:x:q> 1", t) for t in range(1, 100)])
    assert engine.count().goals == 0
    engine.push_all(
        [event("<urn:x:a> <urn:x:p> 1", 100), *(event("<urn:x:b> <urn:x:q> 1", t) for t in range(101, 150))]
    )
    assert engine.count().goals <= 6


def test_a_snapshot_with_the_goals_of_joins_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier versions kept the solutions of some parts; what continues from there finds the same matches."""
    for shape in (
        "nothing shared",
        "one key",
        "another window inside",
        "a key of neighbours only",
        "shared with another query",
    ):
        program, events = compile(P + SHAPES[shape]), list(drawn(3, 60, lasting=True))
        whole = [m.id for m in _all(Engine(program), events)]
        with monkeypatch.context() as patch:
            patch.setattr(executor, "chained", lambda rules, built: Chained(rules, {}))
            before = Engine(program, executor="rows")
            ids = [m.id for m in before.push_all(events[:30])]
            stored = before.snapshot()
        for executed in ("rows", "columns"):
            after = Engine(program, executor=executed)
            after.restore(stored)
            assert ids + [m.id for m in _all(after, events[30:])] == whole
            again = Engine(program, executor=executed)
            again.restore(after.snapshot())  # it may have no goals any more
            new = Engine(program, executor="rows")
            new.push_all(events[:30])
            again.restore(new.snapshot())  # and this one has the goals of chains
            assert ids + [m.id for m in _all(again, events[30:])] == whole


@pytest.mark.parametrize("executed", ["rows", "columns"])
@pytest.mark.parametrize("shape", ["nothing shared", "one key", "another window inside", "shared with another query"])
def test_a_journal_with_the_goals_of_joins_goes_on(shape: str, executed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, events = compile(P + SHAPES[shape]), list(drawn(3, 60, lasting=True))
    whole = [m.id for m in _all(Engine(program), events)]
    with monkeypatch.context() as patch:
        patch.setattr(executor, "chained", lambda rules, built: Chained(rules, {}))
        before = Engine(program, executor=executed, journal=True)
        stored = before.snapshot()
        ids = [m.id for m in before.push_all(events[:30])]
        journal = before.take_journal()
    after = Engine(program, executor=executed, journal=True)
    after.restore(stored)
    after.apply_journal(journal)
    assert ids + [m.id for m in _all(after, events[30:])] == whole


def _all(engine: Engine, events: list[Event]) -> list[Match]:
    return [*engine.push_all(Batch(events, events[-1].end).columns), *engine.close()]


def test_a_query_that_is_added_takes_nothing_from_a_chain() -> None:
    """A later query reads what the first two parts make; the goals of the chain stay."""
    pair, chain = SHAPES["shared with another query"].split(" SELECT ?a ?z")
    first = compile(P + "REGISTER QUERY <urn:x:whole> AS SELECT ?a ?z" + chain)
    events = list(drawn(5, 60, lasting=True))
    cut = next(i for i in range(30, 60) if events[i].end > events[i - 1].end)
    expected = [m.id for m in _all(Engine(first), events)]
    engine = Engine(first)
    ids = [m.id for m in engine.push_all(events[:cut])]
    engine.add(P + pair)
    ids += [m.id for m in _all(engine, events[cut:]) if m.query == "<urn:x:whole>"]
    assert expected
    assert ids == expected
