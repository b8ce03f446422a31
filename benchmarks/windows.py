"""Windowed queries: quads per second, with every answer checked against a hand-written loop.

    python -m benchmarks.windows            the measured sizes
    python -m benchmarks.windows --small    a quick run that checks the answers

- *average*: the sliding average per sensor over 5,000 quads, slide a tenth of it; at least 200 k quads/s.
- *average in columns*: the same from Arrow to Arrow, over a million quads; at least 3 M quads/s.
- *maximum*: the same with the greatest value instead.
- *star*: the greatest value per sensor of observations, each a node with two triples; as many quads in the window.
- *overlap*: the same with a slide of 500 quads and a range of 1 to 100 slides: the cost of a quad stays flat.
- *csrbench*: CSRBench's query (a join of four triple patterns and a filter, window of 5 s, slide 1 s) at 10 and 100
  times the rate of its stream (a hundred observations a second).

The time is processor time on one core; the events are made before the clock starts.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from etalis_rules.terms import XSD

from benchmarks.columnar import ROWS, arrow_columns, spelled
from etalis_py import Engine, Match, compile
from etalis_py.events import Event
from etalis_py.kernel.batch import Batch, Columns, on_stream

Rows = set[tuple[int, tuple[str, ...]]]
MS = 1000
VALUE = "<urn:p:value>"
SENSORS = 100
BARS = {"average, range/slide 10": 200_000, "average, in columns": 3_000_000}


@dataclass(frozen=True, slots=True)
class Measured:
    """Quads per second, the number of evaluations, and whether the answers were right."""

    name: str
    quads: int
    seconds: float
    evaluations: int
    right: bool

    @property
    def rate(self) -> float:
        return self.quads / self.seconds


# --- the sliding average per sensor ---


def readings(size: int, apart: int = MS, sensors: int = SENSORS) -> list[Event]:
    """A quad each millisecond, or so far ``apart``; values with three decimals."""
    draw = random.Random(7)
    events = []
    for n in range(1, size + 1):
        value = f'"{draw.randrange(1_000_000) / 1000:.3f}"^^<{XSD}decimal>'
        events.append(Event(n * apart, n * apart, ((f"<urn:x:sensor{n % sensors}>", VALUE, value),), "<urn:s>"))
    return events


SLIDE = 500  # quads, and milliseconds


def average_query(overlap: int) -> str:
    return grouped("SELECT ?sensor (AVG(?v) AS ?mean)", f"?sensor {VALUE} ?v", overlap)


def grouped(select: str, pattern: str, overlap: int) -> str:
    """A query by sensor over ``overlap`` slides."""
    return f"""{select} FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE {overlap * SLIDE} ms SLIDE {SLIDE} ms]
        {{ WINDOW <urn:w> {{ {pattern} }} }} GROUP BY ?sensor"""


def averages(events: Iterable[Event], overlap: int) -> dict[int, dict[str, Fraction]]:
    """By hand: at every closing, the mean of each sensor's distinct values."""
    windows = contents([(e.end, *e.triples[0][::2]) for e in events], overlap)
    return {close: {s: sum(map(number, values)) / len(values) for s, values in held.items()} for close, held in windows}


def contents(readings: list[tuple[int, str, str]], overlap: int) -> Iterator[tuple[int, dict[str, set[str]]]]:
    """By hand: at every closing, the distinct values of each sensor; readings are in order of their times."""
    width, slide = overlap * SLIDE * MS, SLIDE * MS
    ends = [end for end, _, _ in readings]
    for close in range(width, ends[-1] + width, slide):
        held: dict[str, set[str]] = {}
        for _, s, o in readings[bisect_right(ends, close - width) : bisect_right(ends, close)]:
            held.setdefault(s, set()).add(o)
        if held:
            yield close, held


def number(term: str) -> Fraction:
    return Fraction(term.split('"')[1])


def measure(
    name: str,
    query: str,
    events: list[Event],
    check: Callable[[list[object]], bool],
    runs: int,
    columns: Sequence[Columns] = (),
) -> Measured:
    """``columns``: the events in columns; then converting the matches to Arrow is part of the time."""
    seconds, right, evaluations = [], True, 0
    for _ in range(runs):
        engine = Engine(compile(query), executor="columns" if columns else "rows")
        gc.collect()
        begin = time.process_time()
        parts = [engine.push_all(some) for some in columns or (events,)]
        for part in parts:  # what a user would do with the reports: make columns, or matches
            (spelled if columns else list)(part)  # type: ignore[operator]
        last = engine.close()
        seconds.append(time.process_time() - begin)
        matches = [match for part in (*parts, last) for match in part]
        evaluations = engine.counters.evaluations
        right = right and check(matches)  # type: ignore[arg-type]
    quads = sum(len(e.triples) for e in events)
    return Measured(name, quads, statistics.median(seconds), evaluations, right)


def are_averages(matches: Iterable[Match], expected: dict[int, dict[str, Fraction]]) -> bool:
    """Whether these are the matches of ``average_query`` that ``averages`` gives."""
    got: dict[int, dict[str, Fraction]] = {}
    for m in matches:
        got.setdefault(m.end_us or 0, {})[m.bindings["sensor"]] = number(m.bindings["mean"])
    if got.keys() != expected.keys():
        return False
    # a decimal quotient has 18 digits or more; the exact mean may have no end
    return all(
        got[t].keys() == expected[t].keys()
        and all(abs(got[t][s] - mean) < Fraction(1, 10**12) for s, mean in expected[t].items())
        for t in expected
    )


def average(size: int, overlap: int = 10, runs: int = 3, *, in_columns: bool = False) -> Measured:
    events = readings(size)
    columns = [on_stream(part, "<urn:s>") for part in arrow_columns(events)] if in_columns else ()
    expected = averages(events, overlap)

    def check(matches: list) -> bool:  # type: ignore[type-arg]
        return are_averages(matches, expected)

    name = "average, in columns" if in_columns else f"average, range/slide {overlap}"
    return measure(name, average_query(overlap), events, check, runs, columns)


# --- the maximum, of quads and of observations ---

SENSOR, RESULT = "<http://www.w3.org/ns/sosa/madeBySensor>", "<http://www.w3.org/ns/sosa/hasSimpleResult>"
MAXIMUM = "SELECT ?sensor (MAX(?v) AS ?most)"
STAR = f"?obs {SENSOR} ?sensor ; {RESULT} ?v"


def observed(size: int) -> list[Event]:
    """The readings, each every two milliseconds as an observation of two triples."""
    events = []
    for n, (_, _, ((sensor, _, value),), stream, _) in enumerate(readings(size // 2), 1):
        triples = ((f"<urn:o:{n}>", SENSOR, sensor), (f"<urn:o:{n}>", RESULT, value))
        events.append(Event(2 * n * MS, 2 * n * MS, triples, stream))
    return events


def maximum(size: int, runs: int = 3, *, star: bool, in_columns: bool) -> Measured:
    """MAX by sensor; ``star``: of observations."""
    events = observed(size) if star else readings(size)
    parts = (
        [Batch(events[n : n + ROWS], 0).columns for n in range(0, len(events), ROWS)] if star else arrow_columns(events)
    )
    columns = [on_stream(part, "<urn:s>") for part in parts] if in_columns else ()
    values = [(e.end, e.triples[0][2 if star else 0], e.triples[-1][2]) for e in events]
    expected = {
        (close, sensor): max(number(value) for value in different)
        for close, held in contents(values, 10)
        for sensor, different in held.items()
    }

    def check(matches: list) -> bool:  # type: ignore[type-arg]
        return expected == {(m.end_us, m.bindings["sensor"]): number(m.bindings["most"]) for m in matches}

    query = grouped(MAXIMUM, STAR if star else f"?sensor {VALUE} ?v", 10)
    name = f"{'star' if star else 'maximum'}{', in columns' if in_columns else ''}"
    return measure(name, query, events, check, runs, columns)


# --- CSRBench's query ---

OM = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#"
TEMPERATURE = "<http://knoesis.wright.edu/ssw/ont/weather.owl#_AirTemperature>"
CSRBENCH = f"""SELECT ?sensor ?obs FROM STREAM <urn:s> [RANGE 5s STEP 1s] WHERE {{
    ?obs <{OM}observedProperty> {TEMPERATURE} ; <{OM}procedure> ?sensor ; <{OM}result> ?res .
    ?res <{OM}floatValue> ?value . FILTER(?value > 80) }}"""


def observations(seconds: int, rate: int) -> list[Event]:
    draw = random.Random(11)
    events = []
    for t in range(1, seconds + 1):
        for n in range(rate):
            obs, res = f"<urn:o:{t}:{n}>", f"<urn:r:{t}:{n}>"
            triples = (
                (obs, f"<{OM}observedProperty>", TEMPERATURE),
                (obs, f"<{OM}procedure>", f"<urn:x:{n % 50}>"),
                (obs, f"<{OM}result>", res),
                (res, f"<{OM}floatValue>", f'"{draw.randrange(100)}"^^<{XSD}double>'),
            )
            events.append(Event(t * 1000 * MS, t * 1000 * MS, triples, "<urn:s>"))
    return events


def csrbench(times: int, seconds: int, runs: int = 3) -> Measured:
    """``times`` is how many times CSRBench's rate of a hundred observations a second."""
    events = observations(seconds, 100 * times)
    hot = [
        (e.end // 1_000_000, e.triples[1][2], e.triples[0][0])
        for e in events
        if int(e.triples[3][2].split('"')[1]) > 80
    ]
    expected = sorted((c, s, o) for t, s, o in hot for c in range(max(5, t), t + 5))

    def check(matches: list) -> bool:  # type: ignore[type-arg]
        return expected == sorted((m.end_us // 1_000_000, m.bindings["sensor"], m.bindings["obs"]) for m in matches)

    return measure(f"csrbench × {times}", CSRBENCH, events, check, runs)


def _measured(size: int, runs: int, small: bool) -> Iterator[Measured]:
    """The workloads, one after another."""
    for overlap in (10, 1, 5, 50, 100):
        yield average(size, overlap, runs)
    average(40_000, runs=1, in_columns=True)  # compiles the kernels
    yield average(40_000 if small else 1_000_000, runs=runs, in_columns=True)
    for star in (False, True):
        yield maximum(size, runs, star=star, in_columns=False)
        yield maximum(40_000 if small else 1_000_000, runs, star=star, in_columns=True)
    yield csrbench(10, 6 if small else 20, runs)
    yield csrbench(100, 6 if small else 10, runs)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and fail if an answer is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.windows", description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run that checks the answers")
    small = parser.parse_args(arguments).small
    size, runs = (12_000, 1) if small else (200_000, 3)
    print(f"{'':28}{'quads':>10}{'seconds':>10}{'quads/s':>12}{'evaluations':>13}  answers")
    results = []
    for r in _measured(size, runs, small):
        results.append(r)
        verdict = "right" if r.right else "WRONG"
        print(f"{r.name:28}{r.quads:>10,}{r.seconds:>10.3f}{r.rate:>12,.0f}{r.evaluations:>13,}  {verdict}", flush=True)
    for r in results:
        if not small and (bar := BARS.get(r.name)):
            print(f"the bar for {r.name}: {bar:,} quads/s, {'met' if r.rate >= bar else 'not met'}")
    return 0 if all(r.right for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
