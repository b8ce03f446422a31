"""Every construct of the language in rows and in columns, from the same Arrow frames; the answers must be equal.

    python -m benchmarks.constructs [--events N] [--repeat N] [--only TEXT] [--growth] [--json FILE]

A line has the rate in rows and in columns (thousand events a second), their ratio, and what ``explain`` says of large
batches.  Times are processor times, medians, without compiling the query; answers are all matches by id and in order.
With ``--growth`` a line has how many times as much an event costs in a stream that is four times as long; fails if that
is twice as much or more.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.columnar import spelled
from benchmarks.construct_queries import CONSTRUCTS, PREFIXES, Construct
from etalis_py import Engine, Program, compile
from etalis_py.engine.inputs import columns_of
from etalis_py.events import Event
from etalis_py.garbage import no_collections
from etalis_py.kernel.batch import Columns
from etalis_py.kernel.matches import Matches

NOT_BELOW, GAIN, SHARE = 0.95, 3.0, 0.9
LONGER, DEARER = 4, 2.0


@dataclass(frozen=True, slots=True)
class Measured:
    """Events a second in rows and in columns, and what ``explain`` says of large batches."""

    group: str
    name: str
    matches: int
    rows: float
    columns: float
    explained: str

    @property
    def ratio(self) -> float:
        return self.columns / self.rows


def frames(events: Sequence[Event], size: int = 1 << 14) -> list[Columns]:
    """The events as Arrow frames: objects as plain texts, all else dictionary-encoded."""
    s, p, o = (pa.array(part, pa.string()) for part in zip(*(e.triples[0] for e in events), strict=True))
    streams = pa.array([e.stream for e in events], pa.string())
    end, start = (np.array([getattr(e, name) for e in events], np.int64) for name in ("end", "start"))
    parts = {"end": end, "start": start, "s": s.dictionary_encode(), "p": p.dictionary_encode(), "o": o}
    if events[0].stream:
        parts["stream"] = streams.dictionary_encode()
    return [columns_of(batch) for batch in pa.table(parts).to_batches(max_chunksize=size)]


def engine_of(construct: Construct, program: Program, executor: str) -> Engine:
    """An engine for it."""
    return Engine(program, policy=construct.policy, background=list(construct.background), executor=executor)


def program_of(construct: Construct) -> Program:
    """Its program."""
    return compile(PREFIXES + construct.query, policy=construct.policy)


def answered(engine: Engine, batches: Iterable[Columns]) -> list[Matches]:
    """All matches, spelled."""
    matches = [spelled(engine.push_all(batch)) for batch in batches]
    return [*matches, spelled(engine.close())]


def timed(construct: Construct, program: Program, executor: str, batches: Sequence[Columns]) -> float:
    """The processor time of a run."""
    engine = engine_of(construct, program, executor)
    gc.collect()
    began = time.process_time()
    answered(engine, batches)
    return time.process_time() - began


def ids(
    construct: Construct, program: Program, executor: str, batches: Sequence[Columns]
) -> list[tuple[str, int, int]]:
    """The ids and times of all matches, in order."""
    found = answered(engine_of(construct, program, executor), batches)
    return [(m.id, m.start_us, m.end_us) for m in chain.from_iterable(found)]


def measure(construct: Construct, number: int, repeat: int, executor: str = "columns") -> Measured:
    """Measure one construct; ends the program if the answers differ, or if there are none."""
    program, batches = program_of(construct), frames(construct.events(number))
    expected, answers = (ids(construct, program, name, batches) for name in ("rows", executor))
    if answers != expected or not expected:
        first = next((pair for pair in zip(expected, answers, strict=False) if pair[0] != pair[1]), "")
        raise SystemExit(f"{construct.name}: {len(answers):,} answers, expected {len(expected):,} {first}")
    runs: dict[str, list[float]] = {"rows": [], executor: []}
    for _ in range(repeat):
        for name, seconds in runs.items():
            seconds.append(timed(construct, program, name, batches))
    rows, columns = (number / statistics.median(seconds) for seconds in runs.values())
    explained = str(program.explain()).partition("large batches\n")[2].partition("\n\n")[0].strip().replace("\n", ";")
    return Measured(construct.group, construct.name, len(expected), rows, columns, explained)


def growth(construct: Construct, number: int, repeat: int, executor: str) -> tuple[float, float]:
    """How many times as much an event costs in a stream that is ``LONGER``: in rows, and in this executor.

    Python's collector waits, as what it costs grows in steps.
    """
    with no_collections():
        short, long = (measure(construct, n, repeat, executor) for n in (number, LONGER * number))
    return short.rows / long.rows, short.columns / long.columns


def print_growth(chosen: Iterable[Construct], options: argparse.Namespace) -> None:
    """Print it for each construct; ends the program if one is not linear."""
    steep = 0
    print(f"{'':<11}{'':<46}{'rows':>8}{'columns':>9}")
    for construct in chosen:
        rows, columns = growth(construct, options.events, options.repeat, options.executor)
        steep += max(rows, columns) >= DEARER
        print(f"{construct.group:<11}{construct.name[:45]:<46}{rows:>8.2f}{columns:>9.2f}", flush=True)
    if steep:
        raise SystemExit(f"{steep} constructs cost {DEARER:g} times as much or more for each event")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="every construct, rows : columns")
    parser.add_argument("--events", type=int, default=40_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="", help="the constructs whose group and name have this text")
    parser.add_argument("--executor", default="columns", choices=("columns", "auto"), help="what is compared with rows")
    parser.add_argument("--json", help="also write the results to this file")
    parser.add_argument("--growth", action="store_true", help="how the cost of an event grows with the stream")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    chosen = [construct for construct in CONSTRUCTS if options.only in f"{construct.group} {construct.name}"]
    if options.growth:
        return print_growth(chosen, options)
    results = []
    print(f"{'':<11}{'':<46}{'rows':>8}{'columns':>9}{'ratio':>7}  explain")
    for construct in chosen:
        one = measure(construct, options.events, options.repeat, options.executor)
        results.append(one)
        mark = "" if one.ratio >= GAIN else " <" if one.ratio >= NOT_BELOW else "<<"
        figures = f"{one.rows / 1e3:>8,.0f}{one.columns / 1e3:>9,.0f}{one.ratio:>7.2f}{mark:<2}"
        print(f"{one.group:<11}{one.name[:45]:<46}{figures}{one.explained}", flush=True)
    gaining = sum(one.ratio >= GAIN for one in results) / max(1, len(results))
    below = sum(one.ratio < NOT_BELOW for one in results)
    print(
        f"{len(results)} constructs, equal answers; {gaining:.0%} at {GAIN:g} times or more (bar: {SHARE:.0%}), ",
        end="",
    )
    print(f"{below} below {NOT_BELOW:g} (bar: 0)")
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(one) for one in results]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
