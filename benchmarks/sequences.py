"""Sequences of many types, as in the experiments of CORE (Bucchi et al., PVLDB 15(9), 2022), in rows and in columns.

    python -m benchmarks.sequences [--events N] [--repeat N] [--only TEXT]

One event a second; n types that the sequence asks for and six others, in equal shares.  A line has the length n and the
window in seconds, whether the last type occurs ("listed") or not ("none complete"), the number of matches, which is
compared with a count by dynamic programming, the rates in rows and in columns (thousand events a second, medians of
processor time), and the goals that wait at the end.  Then matches are counted by an aggregate, in columns: by COUNT(*),
which lists none of them, and by SUM(1), which lists them, if they are not too many.  At the end it prints how the time
per event without matches grows with n and with the window, and that of COUNT(*) with the window, as exponents; with n
also per event of the sequence's own types, whose share grows with n.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from etalis_py import Engine, Program, compile
from etalis_py.events import Event
from etalis_py.kernel.batch import Batch, Columns

NOISE = 6
SECOND = 1_000_000
TYPE, SPACE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "urn:t:"
BATCH = 1 << 13
LISTED = [(3, 100), (6, 100), (12, 100), (24, 100)]
NONE_COMPLETE = [(6, 100), (6, 200), (6, 400), (6, 800), (9, 400), (9, 1600), (24, 400), (24, 1600)]
COUNTED = [(n, w) for n in (3, 4, 6) for w in (50, 100, 200, 400)]
MOST_LISTED = 20_000_000
"""More matches than this are not listed."""
KEYS = 10


@dataclass(frozen=True, slots=True)
class Experiment:
    """A sequence of ``length`` types within a window; ``keyed``: all of one key, of which there are ten.

    ``either``: the second step takes two types.
    """

    length: int
    window: int
    complete: bool
    keyed: bool = False
    either: bool = False

    def __str__(self) -> str:
        more = [word for word, on in (("by key", self.keyed), ("either", self.either)) if on]
        return " ".join([f"n = {self.length} w = {self.window}", "listed" if self.complete else "none complete", *more])

    @property
    def query(self) -> str:
        steps = [self._step(i) for i in range(self.length)]
        return f"SELECT * WHERE {{ {' SEQ '.join(steps)} }} WITHIN {self.window} s"

    def counting(self, call: str) -> str:
        """A query that counts the matches by an aggregate."""
        steps = [self._step(i) for i in range(self.length)]
        return f"SELECT ({call} AS ?n) WHERE {{ {{ {{ {' SEQ '.join(steps)} }} WITHIN {self.window} s }} }}"

    def _step(self, i: int) -> str:
        who = f"?e{i} a <{SPACE}{i}>" if not self.keyed else f"?k <{SPACE}{i}> ?e{i}"
        if not (self.either and i == 1):
            return f"{{ {who} }}"
        return f"{{ {{ {who} }} UNION {{ {who.replace(f'{SPACE}{i}', f'{SPACE}n0')} }} }}"

    def types(self) -> list[str]:
        """The types that occur."""
        asked = self.length if self.complete else self.length - 1
        return [*map(str, range(asked)), *(f"n{i}" for i in range(NOISE))]

    def steps_of(self, name: str) -> list[int]:
        """The steps that take an event of a type."""
        if name == "n0":
            return [1] if self.either else []
        return [] if name.startswith("n") else [int(name)]


def drawn(experiment: Experiment, size: int) -> list[tuple[str, int]]:
    """The type and the key of each event."""
    draw, types = random.Random(experiment.length), experiment.types()
    return [(draw.choice(types), draw.randrange(KEYS)) for _ in range(size)]


def events(experiment: Experiment, size: int) -> Iterator[Event]:
    for t, (name, key) in enumerate(drawn(experiment, size)):
        who, kind = f"<urn:e:{t}>", f"<{SPACE}{name}>"
        triple = (f"<urn:k:{key}>", kind, who) if experiment.keyed else (who, TYPE, kind)
        yield Event(t * SECOND, t * SECOND, (triple,), "", "")


def counted(experiment: Experiment, size: int) -> int:
    """The number of matches: for each start in the window, how many ways lead to each step."""
    ways: dict[tuple[int, int], list[int]] = {}  # by key and start
    count = 0
    for t, (name, key) in enumerate(drawn(experiment, size)):
        steps = experiment.steps_of(name)
        if not steps:
            continue
        by = key if experiment.keyed else 0
        for step in steps:
            if step == 0:
                ways[by, t] = [1] + [0] * (experiment.length - 1)
                continue
            for (other, start), reached in list(ways.items()):
                if t - start > experiment.window:
                    del ways[other, start]
                elif other == by:
                    reached[step] += reached[step - 1]
                    count += reached[step - 1] if step == experiment.length - 1 else 0
    return count


def batches(stream: Sequence[Event]) -> list[Columns]:
    cuts = [stream[i : i + BATCH] for i in range(0, len(stream), BATCH)]
    return [Batch(part, part[-1].end).columns for part in cuts]


def seconds(
    program: Program, given: Sequence[Sequence[Event]] | Sequence[Columns], executor: str
) -> tuple[float, int, int]:
    """The processor time, the number of matches, and the goals that wait at the end."""
    engine = Engine(program, executor=executor)
    gc.collect()
    before, matches = time.process_time(), 0
    for part in given:
        matches += len(engine.push_all(part))
    goals = engine.count().goals
    matches += len(engine.close())
    return time.process_time() - before, matches, goals


def measured(experiment: Experiment, size: int, repeat: int) -> dict[str, float]:
    """Seconds per event by executor; it prints the line and fails if the number of matches is wrong."""
    stream, program = list(events(experiment, size)), compile(experiment.query)
    given = {"rows": [stream[i : i + BATCH] for i in range(0, size, BATCH)], "columns": batches(stream)}
    times: dict[str, list[float]] = {name: [] for name in given}
    expected, goals = counted(experiment, size), 0
    for _ in range(repeat):
        for name, parts in given.items():
            taken, matches, goals = seconds(program, parts, name)  # type: ignore[arg-type]
            if matches != expected:
                raise SystemExit(f"{experiment}, {name}: {matches} matches, there are {expected}")
            times[name].append(taken)
    medians = {name: statistics.median(some) / size for name, some in times.items()}
    rates = "  ".join(f"{name} {1e-3 / each:8.1f}" for name, each in medians.items())
    print(f"{experiment!s:40} {expected:9} matches  {rates} k/s  {goals:6} goals", flush=True)
    return medians


def seconds_to_count(program: Program, given: Sequence[Columns]) -> tuple[float, int]:
    """The processor time of a query that counts matches, and the last count."""
    engine = Engine(program, executor="columns")
    gc.collect()
    before, count = time.process_time(), 0
    for part in given:
        for match in list(engine.push_all(part))[-1:]:
            count = int(match["n"])
    for match in engine.close():
        count = int(match["n"])
    return time.process_time() - before, count


def counting(experiment: Experiment, size: int, repeat: int) -> float:
    """Seconds per event of COUNT(*); it prints the line and fails if a count is wrong."""
    given, expected = batches(list(events(experiment, size))), counted(experiment, size)
    medians = {}
    for call in ("COUNT(*)", "SUM(1)") if expected <= MOST_LISTED else ("COUNT(*)",):
        program, times = compile(experiment.counting(call)), []
        for _ in range(repeat + 1):  # the first run loads the kernels
            taken, count = seconds_to_count(program, given)
            if count != expected:
                raise SystemExit(f"{experiment}, {call}: {count} matches, there are {expected}")
            times.append(taken / size)
        medians[call] = statistics.median(times[1:])
    rates = "  ".join(f"{call} {1e-3 / each:8.1f}" for call, each in medians.items())
    ratio = f"  {medians['SUM(1)'] / medians['COUNT(*)']:7.1f} times" if len(medians) > 1 else ""
    name = f"n = {experiment.length} w = {experiment.window} counted"
    print(f"{name:40} {expected:12} matches  {rates} k/s{ratio}", flush=True)
    return medians["COUNT(*)"]


def asked_share(length: int) -> float:
    """The share of events that a sequence asks for, where its last type does not occur; it grows with the length."""
    return (length - 1) / (length - 1 + NOISE)


def growth(points: Sequence[tuple[int, float]]) -> float:
    """The exponent with which a time grows, by the first and the last point."""
    (low, one), (high, other) = points[0], points[-1]
    return math.log(other / one) / math.log(high / low)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    experiments = [
        *(Experiment(n, w, True) for n, w in LISTED),
        Experiment(3, 100, True, either=True),
        Experiment(6, 100, True, keyed=True),
        *(Experiment(n, w, False) for n, w in NONE_COMPLETE),
        Experiment(6, 400, False, keyed=True),
    ]
    times = {
        each: measured(each, arguments.events, arguments.repeat) for each in experiments if arguments.only in str(each)
    }
    totals = [Experiment(n, w, True) for n, w in COUNTED if arguments.only in f"n = {n} w = {w} counted"]
    by_length: dict[int, list[tuple[int, float]]] = {}
    for each in totals:
        taken = counting(each, arguments.events, arguments.repeat)
        by_length.setdefault(each.length, []).append((each.window, taken))
    for length, points in by_length.items():
        if len(points) > 1:
            print(
                f"COUNT(*): the time per event grows with the window, n = {length}, as its power {growth(points):.2f}"
            )
    for executor in ("rows", "columns"):
        plain = {(e.length, e.window): x[executor] for e, x in times.items() if not (e.complete or e.keyed)}
        of_400 = [(n, x) for (n, w), x in plain.items() if w == 400]
        lines = {
            "event grows with the window, n = 6": [(w, x) for (n, w), x in plain.items() if n == 6],
            "event grows with n, w = 400": of_400,
            "event that the sequence asks for grows with n, w = 400": [(n, x / asked_share(n)) for n, x in of_400],
        }
        for what, points in lines.items():
            if len(points) > 1:
                print(f"{executor}: the time per {what} as its power {growth(points):.2f}")


if __name__ == "__main__":
    main()
