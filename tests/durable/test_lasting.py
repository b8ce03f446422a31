"""The run that lasts an hour (``benchmarks.lasting``): what it asks for, and a short one over what needs no service."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lasting.__main__ import restarts
from benchmarks.lasting.judging import due, not_flat, wrong_matches
from benchmarks.lasting.market import Market
from benchmarks.lasting.runs import Reading
from benchmarks.lasting.sources import WebSocketFeed

HOUR = 3600.0


def readings(memory: float = 0.0, goals: float = 0.0, lag: float = 0.0, checkpoint: float = 0.0) -> list[Reading]:
    """One each minute, from three processes; each figure grows by so much from the beginning to the end."""
    return [
        Reading("r", at, 1 + at // 1201, 0, 0, 0, 1000 * (1 + goals * at / HOUR), 0.1 + lag * at / HOUR,
                100 * 2**20 * (1 + memory * at / HOUR), 1e5 * (1 + checkpoint * at / HOUR))
        for at in range(60, 3601, 60)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("grown", "said"),
    [
        ({}, []),
        ({"memory": 0.05, "goals": 0.05, "lag": 0.5, "checkpoint": 0.05}, []),
        ({"goals": -0.4}, []),
        ({"memory": 0.5}, ["memory grew by"]),
        ({"goals": 0.5}, ["goals, and were"]),
        ({"lag": 2.0}, ["the lag is"]),
        ({"checkpoint": 0.5}, ["a checkpoint has"]),
    ],
)
def test_what_grows_is_named(grown: dict[str, float], said: list[str]) -> None:
    problems = list(not_flat(readings(**grown), HOUR))
    assert len(problems) == len(said), problems
    assert all(text in problem for text, problem in zip(said, problems, strict=True))


class Held:
    """A run whose sink holds these ids."""

    def __init__(self, ids: Sequence[str], once: bool, source: Any = None) -> None:
        self.source = source
        self.sink: Any = type("Sink", (), {"ids": lambda _: list(ids), "once": once})()


@pytest.mark.parametrize(
    ("ids", "once", "said"),
    [
        (["a", "b"], True, []),
        (["a", "b", "a"], False, []),
        (["a", "b", "a"], True, ["1 matches came again"]),
        (["a"], False, ["1 of 2 matches are missing, such as b"]),
        (["a", "b", "c"], False, ["1 matches are none, such as c"]),
    ],
)
def test_a_sink_is_compared_with_a_run_without_interruption(ids: list[str], once: bool, said: list[str]) -> None:
    run: Any = Held(ids, once)
    assert list(wrong_matches(run, dict.fromkeys(("a", "b"), ("", "")), {"a", "b"})) == said


def test_from_a_websocket_only_what_a_checkpoint_has_is_due() -> None:
    market = Market(1_000_000.0, 10)
    times = {number: market.quote(number).time for number in range(100)}
    assert [market.number_at(time) for time in times.values()] == list(times)
    feed = WebSocketFeed()
    feed.spans += [[0, 30], [50, None]]
    expected = {f"{a}-{b}": (times[a], times[b]) for a, b in ((1, 30), (20, 31), (30, 60), (49, 70), (50, 99))}
    market.count = 100
    run: Any = Held([], once=False, source=feed)
    assert due(run, expected, market) == {"1-30", "30-60", "50-99"}
    feed.close()


def test_quotes_come_at_their_times_whenever_they_are_asked_for() -> None:
    often, seldom = Market(1_000_000.5, 100), Market(1_000_000.5, 100)
    some = [one for now in (1_000_000.51, 1_000_000.6, 1_000_001.0) for one in often.due(now)]
    assert some == list(seldom.due(1_000_001.0))
    assert len(some) == 100


def test_restarts_are_spread_over_the_first_two_thirds() -> None:
    runs: list[Any] = [object() for _ in range(10)]
    plan = restarts(runs, HOUR, 10)
    times = [at for at, _, _ in plan]
    assert len({*times}) == 100
    assert times[0] > 0
    assert times[-1] < 2 * HOUR / 3
    for run in runs:
        assert [how.name for _, one, how in plan if one is run] == ["SIGTERM", "SIGKILL"] * 5


@pytest.mark.nightly
def test_a_short_run_over_what_needs_no_service(tmp_path: Path) -> None:
    """Too short to be flat, but every sink has its matches."""
    command = [sys.executable, "-m", "benchmarks.lasting", "--hours", "0.02", "--restarts", "1", "--only", "plain",
               "--keep", str(tmp_path / "kept")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    lines = [line for line in done.stdout.splitlines() if " matches due" in line]
    assert len(lines) == 5, done.stdout + done.stderr
    assert not [line for line in lines if "are missing" in line or "are none" in line or "came again" in line]
