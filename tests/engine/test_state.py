"""Snapshots, journals and the order of input: what must never change the answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from etalis_compiler.diagnostics import QueryError
from hypothesis import given
from hypothesis import strategies as st

from etalis_py import Engine, Match, compile, event
from etalis_py.kernel.stored import SnapshotError
from tests.engine.judge import engine_for
from tests.oracle import strategies
from tests.oracle.strategies import Case


def is_accepted(case: Case) -> bool:
    try:
        engine_for(case)
    except QueryError:
        return False
    return True


ANY = st.one_of(
    strategies.core(),
    strategies.negation(),
    strategies.policies(),
    strategies.aggregates(),
    strategies.stratified().filter(is_accepted),
    strategies.paths(),
    strategies.open_sides(),
)


def ids(matches: Iterable[Match]) -> list[str]:
    return sorted(m.id for m in matches)


def whole(case: Case, **options: Any) -> list[str]:
    engine = engine_for(case, **options)
    return ids([*engine.push_all(case.events), *engine.close()])


@given(ANY, st.integers(0, 12))
def test_restoring_a_snapshot_changes_nothing(case: Case, cut: int) -> None:
    first = engine_for(case)
    found = list(first.push_all(case.events[:cut]))
    second = engine_for(case)
    second.restore(first.snapshot())
    found += [*second.push_all(case.events[cut:]), *second.close()]
    assert ids(found) == whole(case)


@given(ANY, st.lists(st.integers(0, 12), min_size=1, max_size=3))
def test_catching_up_by_journals_changes_nothing(case: Case, cuts: list[int]) -> None:
    leader, follower = engine_for(case, journal=True), engine_for(case, journal=True)
    follower.restore(leader.snapshot())
    found: list[Match] = []
    before = 0
    for cut in sorted(cuts):
        found += leader.push_all(case.events[before:cut])
        follower.apply_journal(leader.take_journal())
        before = max(before, cut)
    found += [*follower.push_all(case.events[before:]), *follower.close()]
    assert ids(found) == whole(case)


@given(ANY, st.randoms(use_true_random=False))
def test_the_order_within_an_instant_changes_nothing(case: Case, random: Any) -> None:
    shuffled = list(case.events)
    random.shuffle(shuffled)
    shuffled.sort(key=lambda e: e.end)
    other = Case(case.program, tuple(shuffled), case.background, case.policy)
    assert whole(other) == whole(case)


@given(ANY)
def test_pushing_one_by_one_changes_nothing(case: Case) -> None:
    engine = engine_for(case)
    found = [m for e in case.events for m in engine.push(e)]
    assert ids([*found, *engine.close()]) == whole(case)


@given(ANY)
def test_explanations_change_nothing(case: Case) -> None:
    engine = engine_for(case, explain=True)
    found = [*engine.push_all(case.events), *engine.close()]
    assert ids(found) == whole(case)
    for match in found:
        assert str(match.why())


@given(ANY, st.randoms(use_true_random=False))
def test_lateness_puts_events_in_order(case: Case, random: Any) -> None:
    late = sorted(case.events, key=lambda e: e.end + random.randrange(0, 3_000_000))
    engine = engine_for(case, lateness=3_000_000)
    found = [m for e in late for m in engine.push(e)]
    assert ids([*found, *engine.close()]) == whole(case)
    assert engine.counters.late == 0


@given(st.lists(st.integers(0, 12), max_size=12), st.integers(1, 5), st.data())
def test_late_is_what_ends_more_than_the_lateness_before_the_newest(
    ends: list[int], lateness: int, data: st.DataObject
) -> None:
    """At any cut into batches; in particular if nothing lies between the two."""
    events = [event(f":s :p {place}", end) for place, end in enumerate(ends)]
    late = [one for place, one in enumerate(events) if ends[place] < max(ends[: place + 1]) - lateness]
    engine = Engine(compile("SELECT ?n { ?s :p ?n }"), lateness=lateness * 1_000_000)
    matches: list[Match] = []
    while events:
        size = data.draw(st.integers(1, len(events)))
        matches += engine.push_all(events[:size])
        events = events[size:]
    matches += engine.close()
    assert engine.dead_letters == late
    assert [match.end for match in matches] == sorted(match.end for match in matches)
    assert {match["n"] for match in matches} == {*range(len(ends))} - {
        int(one.triples[0][2].split('"')[1]) for one in late
    }


def test_what_is_later_than_the_lateness_is_counted_and_kept() -> None:
    engine = Engine(compile("SELECT ?x { ?x :p ?y }"), lateness=2_000_000)
    engine.push_all([event(":a :p 1", 10), event(":b :p 1", 20), event(":c :p 1", 3)])
    assert engine.counters.late == 1
    assert engine.dead_letters == [event(":c :p 1", 3)]


def test_a_snapshot_of_other_rules_is_refused() -> None:
    data = Engine(compile("SELECT ?x { ?x :p ?y }")).snapshot()
    with pytest.raises(SnapshotError, match="other rules"):
        Engine(compile("SELECT ?x { ?x :q ?y }")).restore(data)
    with pytest.raises(SnapshotError, match="no snapshot"):
        Engine(compile("SELECT ?x { ?x :p ?y }")).restore(b"nonsense")
    with pytest.raises(SnapshotError, match="damaged"):
        Engine(compile("SELECT ?x { ?x :p ?y }")).restore(data[:-3])


def test_a_history_keeps_its_streams() -> None:
    """EXISTS in the FILTER of an optional part looks back at the occurrences of one stream."""
    query = "SELECT ?y { ?c :p ?x OPTIONAL { ?c :q ?y FILTER EXISTS { STREAM <urn:s> { ?c :r ?x } } } }"
    engine = Engine(query, executor="rows")
    engine.push_all([event(":c :r 1", 1, stream="<urn:s>"), event(":c :q 5", 2)])
    restored = Engine(query, executor="rows")
    restored.restore(engine.snapshot())
    shown = [[m["y"] for m in [*e.push(event(":c :p 1", 3)), *e.close()]] for e in (engine, restored)]
    assert shown == [[5], [5]]


def test_what_is_no_snapshot_at_all_is_refused_before_anything_changes() -> None:
    engine = Engine("SELECT ?x { ?c :p ?x }")
    given: Any = None
    with pytest.raises(TypeError, match=r"restore takes the bytes that snapshot\(\) gave, not None \(NoneType\)"):
        engine.restore(given)
    assert engine.broken is None
