"""The collector of cyclic garbage while many events are taken."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from etalis_py import Engine, compile, event
from etalis_py.garbage import THRESHOLDS, few_collections

MANY = range(THRESHOLDS[0])


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """As in a program that has frozen nothing: the suite has frozen its own objects."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    gc.unfreeze()
    yield
    gc.set_threshold(*before)
    gc.enable()
    gc.freeze()


def test_it_runs_seldom_inside_and_as_before_after() -> None:
    with few_collections():
        assert (gc.isenabled(), gc.get_threshold()) == (True, THRESHOLDS)
        with few_collections(iter(MANY)):  # nobody knows how long that is
            assert (gc.isenabled(), gc.get_threshold()) == (True, THRESHOLDS)
    assert gc.get_threshold() == (700, 10, 10)


def fail() -> None:
    with few_collections(MANY):
        assert not gc.isenabled()
        with few_collections(MANY):
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise ValueError("in the middle")


def test_it_rests_while_what_is_there_already_is_taken() -> None:
    with pytest.raises(ValueError, match="in the middle"):
        fail()
    assert (gc.isenabled(), gc.get_threshold()) == (True, (700, 10, 10))


def test_few_events_do_not_stop_it() -> None:
    with few_collections([1, 2, 3]):
        assert gc.isenabled()


def test_who_has_turned_it_off_finds_it_off() -> None:
    gc.disable()
    with few_collections(MANY):
        pass
    assert not gc.isenabled()


def test_frozen_objects_stay_frozen() -> None:
    gc.freeze()
    try:
        with few_collections(MANY):
            pass
        assert gc.get_freeze_count() > 1_000
    finally:
        gc.unfreeze()


def test_garbage_made_inside_is_found_after() -> None:
    class Node:
        pass

    with few_collections(MANY):
        one = Node()
        one.itself = one  # type: ignore[attr-defined]
        del one
    gc.collect()
    assert not any(isinstance(x, Node) for x in gc.get_objects())


def test_an_engine_takes_a_long_list_with_the_collector_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    engine = Engine(compile("SELECT ?x { ?x :p ?y }"))
    dispatch = engine._dispatch
    assert dispatch is not None
    ordinary = dispatch.single

    class Watching(dict):  # type: ignore[type-arg]
        def get(self, *args: object) -> object:
            seen.append(gc.isenabled())
            return ordinary.get(*args)  # type: ignore[call-overload]

    engine._dispatch = replace(dispatch, single=Watching(ordinary))
    engine.push_all([event("<urn:a> :p 1", n) for n in MANY])
    assert set(seen) == {False}
    assert gc.isenabled()
