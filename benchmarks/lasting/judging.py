"""Whether a run was as it should be: see the package for what that means."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.lasting.market import Market
from benchmarks.lasting.runs import Reading, Run
from benchmarks.lasting.sources import WebSocketFeed

_MEBIBYTE = 2**20


def expected_in(folder: Path, quotes: Path) -> dict[str, tuple[str, str]]:
    """The matches that one run without interruption gives: the start and the end of each, by its id."""
    command = [sys.executable, "-m", "etalis_py.cli.main", "run", "q.rq", "-s", str(quotes), "-o", "expected.jsonl"]
    subprocess.run(command, cwd=folder, check=True)
    found = map(json.loads, (folder / "expected.jsonl").read_text().splitlines())
    return {one["id"]: (one["start"], one["end"]) for one in found}


def due(run: Run, expected: dict[str, tuple[str, str]], market: Market) -> set[str]:
    """The matches that must be in the sink of a run."""
    if not isinstance(run.source, WebSocketFeed):
        return {*expected}
    sure = [(first or 0, market.count if last is None else last) for first, last in run.source.spans]

    def came(time: str) -> bool:
        number = market.number_at(time)
        return any(first <= number <= last for first, last in sure)

    return {name for name, (start, end) in expected.items() if came(start) and came(end)}


def wrong_matches(run: Run, expected: dict[str, tuple[str, str]], needed: set[str]) -> Iterator[str]:
    found = Counter(run.sink.ids())
    if missing := needed - {*found}:
        yield f"{len(missing)} of {len(needed)} matches are missing, such as {min(missing)}"
    if strange := {*found} - {*expected}:
        yield f"{len(strange)} matches are none, such as {min(strange)}"
    twice = sum(count - 1 for count in found.values())
    if run.sink.once and twice:
        yield f"{twice} matches came again"


def not_flat(readings: Sequence[Reading], length: float) -> Iterator[str]:
    """What grew; ``length``: the seconds that the runs have lasted."""
    first, last = ([one for one in readings if test(one)] for test in _thirds(length))
    if not (first and last):
        yield "there are too few readings"
        return
    last_process = [one for one in readings if one.process == readings[-1].process]
    begin = next(one for one in last_process if one.at >= last_process[0].at + (length - last_process[0].at) / 4)
    grown = last_process[-1].memory - begin.memory
    if grown > max(0.05 * begin.memory, 4 * _MEBIBYTE):
        yield f"memory grew by {grown / _MEBIBYTE:.1f} MiB, from {begin.memory / _MEBIBYTE:.1f} MiB"
    goals = [statistics.fmean(one.goals for one in part) for part in (first, last)]
    if goals[1] > 1.1 * goals[0]:
        yield f"there are {goals[1]:.0f} goals, and were {goals[0]:.0f}"
    lag = [statistics.median(one.lag for one in part) for part in (first, last)]
    if lag[1] > min(3.0, lag[0] + 1.0):
        yield f"the lag is {lag[1]:.1f} s, and was {lag[0]:.1f} s"
    sizes = [max(one.checkpoint for one in first), last[-1].checkpoint]
    if sizes[1] > 1.1 * sizes[0]:
        yield f"a checkpoint has {sizes[1]:,.0f} bytes, and had {sizes[0]:,.0f}"


def _thirds(length: float) -> tuple[Callable[[Reading], bool], Callable[[Reading], bool]]:
    return lambda one: one.at <= length / 3, lambda one: one.at >= 2 * length / 3
