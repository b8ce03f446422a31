"""The state of a shard of windows: snapshots, journals of its input, and whose it is (without Spark)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Event, Program
from etalis_py.kernel.stored import SnapshotError
from etalis_py.spark.output.answers import single
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.spec import fingerprint
from etalis_py.spark.shard.shard import Shard
from tests.draws import examples
from tests.spark.windowed import KEYED, PROGRAMS, SECOND, compiled, embedded, stream, windowed_queries


def shard_of(program: Program | str) -> Shard:
    specs, parts = plan(program, 1, None, "rdfs", None)
    assert specs[0].windowed
    [routed] = parts
    return Shard(specs[0], routed.part, 0, journal=True)


def batches(events: Sequence[Event], cuts: Sequence[int]) -> list[tuple[Sequence[Event], int]]:
    """Events with the time before which all is over after them."""
    places = [0, *sorted(cuts), len(events)]
    return [(events[a:b], events[b].end if b < len(events) else 200 * SECOND) for a, b in pairwise(places)]


def taken(shard: Shard, batch: tuple[Sequence[Event], int]) -> list[str]:
    events, over = batch
    return [row[3] for row in single([*shard.wait(events), *shard.close_before(over)])]


def moved(shard: Shard, program: Program | str, snapshot: bytes, journals: list[bytes]) -> Shard:
    """Another worker's shard of the same state."""
    other = shard_of(program)
    if snapshot:
        other.engine.restore(snapshot)
    for journal in journals:
        other.engine.apply_journal(journal)
    other.waiting = list(shard.waiting)
    return other


def run(program: Program | str, events: Sequence[Event], cuts: Sequence[int], snapshot_after: int) -> list[str]:
    """A shard that goes to another worker after every batch."""
    shard, snapshot, journals = shard_of(program), b"", []
    found: list[str] = []
    for number, batch in enumerate(batches(events, cuts)):
        found += taken(shard, batch)
        journals.append(shard.engine.take_journal())
        if number == snapshot_after:
            snapshot, journals = shard.engine.snapshot(), []
        counted = shard.engine.count()
        shard = moved(shard, program, snapshot, journals)
        again = shard.engine.count()
        assert (again.matches, again.events, again.late) == (counted.matches, counted.events, counted.late)
    return sorted([*found, *(row[3] for row in single(shard.finish()))])


@pytest.mark.parametrize("snapshot_after", [-1, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_shard_goes_on_elsewhere(name: str, snapshot_after: int) -> None:
    program, events = compiled(PROGRAMS[name]), stream(3)
    assert run(program, events, (10, 25, 40), snapshot_after) == embedded_until(program, events)


def embedded_until(program: Program | str, events: Sequence[Event]) -> list[str]:
    """What the embedded engine finds when time goes on to where the last batch leaves it."""
    engine = Engine(program)
    found = [*engine.push_all(events), *engine.advance(200 * SECOND - 1), *engine.close()]
    return sorted(m.id for m in found)


@settings(max_examples=examples(2 / 3), suppress_health_check=list(HealthCheck))
@given(windowed_queries(), st.integers(0, 10_000), st.lists(st.integers(0, 30), max_size=3), st.integers(-1, 2))
def test_random_queries_go_on_elsewhere(text: str, seed: int, cuts: list[int], snapshot_after: int) -> None:
    program, events = compiled(text), stream(seed, 30)
    assert run(program, events, cuts, snapshot_after) == embedded_until(program, events)


def test_an_older_shard_catches_up() -> None:
    program, events = compiled(PROGRAMS["new"]), stream(4)
    cut = batches(events, (20, 40))
    ahead, behind = shard_of(program), shard_of(program)
    found = taken(ahead, cut[0])
    behind.engine.apply_journal(ahead.engine.take_journal())
    found += taken(ahead, cut[1])
    behind.engine.apply_journal(ahead.engine.take_journal())
    behind.waiting = list(ahead.waiting)
    found += taken(behind, cut[2])
    assert sorted(found) == embedded_until(program, events)


def test_the_end_of_the_stream_is_kept() -> None:
    shard = shard_of(compiled(KEYED["average"]))
    shard.wait(stream(5))
    shard.finish()
    journal = shard.engine.take_journal()
    assert moved(shard, compiled(KEYED["average"]), b"", [journal]).engine.finished
    assert moved(shard, compiled(KEYED["average"]), shard.engine.snapshot(), []).engine.finished


def test_time_does_not_pass_before_the_first_event() -> None:
    """Queries are registered when the first event comes: no evaluation is before that."""
    events = [e for e in stream(6) if e.end > 20 * SECOND]
    shard = shard_of(compiled(PROGRAMS["empty ones too"]))
    rows = single([*shard.wait(events), *shard.close_before(15 * SECOND)])
    assert rows == []
    assert sorted(row[3] for row in single(shard.finish())) == embedded(PROGRAMS["empty ones too"], events)


def test_state_of_other_queries_is_refused() -> None:
    shard = shard_of(compiled(KEYED["sliding"]))
    shard.wait(stream(7))
    shard.close_before(20 * SECOND)
    journal, snapshot = shard.engine.take_journal(), shard.engine.snapshot()
    other = shard_of(compiled(KEYED["sliding"].replace("PT6S", "PT9S")))
    with pytest.raises(SnapshotError, match="the windows, patterns or reports of q1 are others"):
        other.engine.apply_journal(journal)
    with pytest.raises(SnapshotError, match="the windows, patterns or reports of q1 are others"):
        other.engine.restore(snapshot)
    for damaged in (b"x" * 40, journal[:-3]):
        with pytest.raises(SnapshotError):
            shard.engine.apply_journal(damaged)


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    code = "from tests.spark.test_windowed_state import fingerprints\nprint(*fingerprints(), sep='\\n')\n"
    there = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.split() == fingerprints()
    assert len(set(fingerprints())) == len(PROGRAMS)


def fingerprints() -> list[str]:
    found = []
    for text in PROGRAMS.values():
        specs, [routed] = plan(compiled(text), 1, None, "rdfs", None)
        assert specs[0].windowed
        found.append(fingerprint(specs[0], routed.part.queries))
    return found
