"""Late events are kept until somebody empties the list; one that nobody empties is told once."""

from __future__ import annotations

import pytest

from etalis_py import Engine, event
from etalis_py.kernel import late_events


def test_a_list_that_nobody_empties_is_told_once(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setattr(late_events, "MANY", 3)
    engine = Engine("SELECT ?x { ?c :p ?x }")
    engine.push(event(":c :p 1", 9))
    engine.push_all([event(":c :p 1", 1), event(":c :p 2", 2)])
    assert not recwarn
    for late in (3, 4, 5):
        engine.push(event(f":c :p {late}", late))
    (told,) = recwarn
    assert "engine.dead_letters.clear()" in str(told.message)
    assert [late.end // 1_000_000 for late in engine.dead_letters] == [1, 2, 3, 4, 5]


def test_one_that_is_emptied_is_not(monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder) -> None:
    monkeypatch.setattr(late_events, "MANY", 3)
    engine = Engine("SELECT ?x { ?c :p ?x }")
    engine.push(event(":c :p 1", 9))
    for late in range(8):
        engine.push(event(":c :p 1", late))
        engine.dead_letters.clear()
    assert (engine.counters.late, len(recwarn)) == (8, 0)
