"""When the next checkpoint is due, by what the last one took."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from etalis_py.durable.folder import Folder
from etalis_py.durable.keeper import Keeper, Parts
from etalis_py.testing.connectors import MemorySink


class Clock:
    """Stands still but for what takes time."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def take(self, seconds: float) -> None:
        self.now += seconds


class Slow(MemorySink):
    """A sink whose commit takes a while."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        super().__init__([])
        self._clock, self._seconds = clock, seconds

    def commit(self, token: Any) -> None:
        super().commit(token)
        self._clock.take(self._seconds)


class Engine:
    """An engine whose snapshot takes a while."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds

    def snapshot(self) -> bytes:
        self._clock.take(self._seconds)
        return b""

    def restore(self, data: bytes) -> None: ...


class Steps:
    def state(self) -> dict[str, Any]:
        return {}

    def go_to(self, state: Any) -> None: ...


@pytest.mark.parametrize(("snapshot", "commit", "wait"), [(0, 30, 10), (3, 0, 30), (3, 30, 30), (0.5, 0, 10)])
def test_only_the_snapshot_makes_checkpoints_rarer(snapshot: float, commit: float, wait: float, tmp_path: Path) -> None:
    """A slow sink has more to write the longer the wait: if it decided, the wait would grow and grow."""
    clock = Clock()
    parts = Parts(Engine(clock, snapshot), (), Slow(clock, commit), {"sources": [], "sink": "memory"})
    keeper = Keeper(Folder(tmp_path), parts, every=10, clock=clock, wall=clock)
    keeper.begin()
    for _ in range(2):
        keeper.keep(Steps())
        assert keeper.figures.due - clock.now == pytest.approx(wait)
        assert keeper.figures.seconds == pytest.approx(snapshot + commit)
    keeper.close()


def test_a_checkpoint_is_overdue_while_the_sink_does_not_take_its_matches(tmp_path: Path) -> None:
    """It is on the disk by then, but what it promises the sink has not happened."""
    clock, overdue = Clock(), []

    class Watched(Slow):
        def commit(self, token: Any) -> None:
            super().commit(token)
            overdue.append(keeper.overdue())

    parts = Parts(Engine(clock, 0), (), Watched(clock, 45), {"sources": [], "sink": "memory"})
    keeper = Keeper(Folder(tmp_path), parts, every=10, clock=clock, wall=clock)
    keeper.begin()
    clock.take(10)
    keeper.write([])
    keeper.keep(Steps())
    assert overdue[-1] == 45
    assert keeper.overdue() == 0
    assert keeper.figures.waited == 2 * 45, "both commits, that of the first checkpoint too"
    keeper.close()
