"""Workloads in columns, from Arrow to Arrow, beside the loops of ``workloads.limits``.

The engine is given record batches in the flat form (subjects and predicates dictionary-encoded, objects plain texts),
as a reader of Parquet makes them, and gives back its reports as Arrow arrays of spellings with their times.  Records
come as tables, a dictionary for each column of each batch, as readers make them by a mapping.  A million events unless
a workload has its own number; a first run compiles the kernels and is not counted.  The answers of engine and limit are
checked against the plain loop: the engine's term by term, the limit's by their times.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from benchmarks.harness import InColumns, answers_of, timing
from benchmarks.workloads.definition import Workload
from benchmarks.workloads.limits import LIMITS, Codes, Limit
from etalis_py import Engine, compile
from etalis_py.engine.inputs import columns_of
from etalis_py.events import Event
from etalis_py.kernel.batch import Columns, Records
from etalis_py.kernel.matches import Matches

MANY = 1_000_000
OWN_NUMBER = {"W1r", "W3", "W10", "W10n", "W11"}  # their matches, or their triples, are many
ROWS = 1 << 16

Runs = list[tuple[float, float]]


def arrow_columns(events: Iterable[Event]) -> list[Columns | Records]:
    """Events of one triple, or records, as a reader in columns gives them."""
    events = list(events)
    if any(len(event.triples) > 1 for event in events):
        return _arrow_records(events)
    s, p, o = (pa.array(column, pa.string()) for column in zip(*(e.triples[0] for e in events), strict=True))
    end, start = (np.array([getattr(e, name) for e in events], np.int64) for name in ("end", "start"))
    table = pa.table({"end": end, "start": start, "s": s.dictionary_encode(), "p": p.dictionary_encode(), "o": o})
    return [columns_of(batch) for batch in table.to_batches(max_chunksize=ROWS)]


def _arrow_records(events: Sequence[Event]) -> list[Columns | Records]:
    """Records that all have the same columns, as readers give them by a mapping: each batch with its dictionaries."""
    batches: list[Columns | Records] = []
    for first in range(0, len(events), ROWS):
        some = events[first : first + ROWS]
        said = list(zip(*(event.triples for event in some), strict=True))
        objects = {column[0][1]: pa.array([o for _, _, o in column]).dictionary_encode() for column in said}
        subjects = pa.array([s for s, _, _ in said[0]]).dictionary_encode()
        end, start = (np.array([getattr(e, name) for e in some], np.int64) for name in ("end", "start"))
        batches.append(Records(end, start, subjects, objects))
    return batches


def size_of(workload: Workload, events: int | None) -> int:
    """How many events the columns are given."""
    if events is not None:
        return events
    return workload.size if workload.name in OWN_NUMBER else MANY


def measure_columns(workload: Workload, events: int | None, repeat: int) -> InColumns:
    """Measure the engine in columns and the limit over this many events (``size_of`` if not given)."""
    items = workload.events(size_of(workload, events))
    feed = workload.loop()
    expected = sorted(feed(items) + feed(()))
    columns = arrow_columns(items)
    goals = [0] if workload.idle is None else sorted(set(workload.live))
    idle = {live: arrow_columns(workload.idle(live)) if workload.idle is not None else [] for live in goals}
    runs: dict[int, Runs] = {live: [] for live in goals}
    wrong: list[str] = []
    for number in range(repeat + 1):  # the first one compiles
        for live in goals:
            matches, taken = _run_engine(workload, idle[live], columns)
            if number:
                runs[live].append(taken)
            elif sorted(answers_of(workload, chain.from_iterable(matches))) != expected:
                wrong.append(f"in columns there are other answers than the {len(expected):,} of the loop")
    limits: Runs = []
    if workload.name in LIMITS:
        codes = Codes.of(items)
        for number in range(repeat + 1):
            times, taken = _run_limit(LIMITS[workload.name], codes)
            if number:
                limits.append(taken)
            elif sorted(times) != [answer[:2] for answer in expected]:
                wrong.append(f"the limit has other answers than the {len(expected):,} of the loop")
    few = timing(runs[goals[0]]) if len(goals) > 1 else None
    limit = timing(limits) if limits else None
    return InColumns(len(items), len(expected), timing(runs[goals[-1]]), limit, few, tuple(wrong))


def _run_engine(
    workload: Workload, idle: Sequence[Columns | Records], columns: Sequence[Columns | Records]
) -> tuple[list[Matches], tuple[float, float]]:
    background = workload.knowledge()
    engine = Engine(compile(workload.query), policy=workload.policy, background=background, executor="columns")
    for part in idle:
        engine.push_all(part)
    gc.collect()
    processor, passed = time.process_time(), time.perf_counter()
    matches = [spelled(engine.push_all(part)) for part in columns]
    matches.append(engine.close())
    taken = time.process_time() - processor, time.perf_counter() - passed
    return matches, taken


def _run_limit(limit: Limit, codes: Codes) -> tuple[list[tuple[int, int]], tuple[float, float]]:
    gc.collect()
    processor, passed = time.process_time(), time.perf_counter()
    start, end, *_ = limit(codes)
    taken = time.process_time() - processor, time.perf_counter() - passed
    return list(zip(start.tolist(), end.tolist(), strict=True)), taken


def spelled(matches: Matches) -> Matches:
    """The matches, with all reports as Arrow arrays."""
    for report in matches.reports:
        for column in () if isinstance(report, tuple) else report.terms:
            assert len(column) == len(report)
    return matches
