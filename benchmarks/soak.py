"""A mix of bounded queries at full speed for an hour: memory stays flat.

    python -m benchmarks.soak [--minutes 60] [--only NAME …] [--batch 1]

Every kind of operator takes part, each bounded by WITHIN, a window or a policy; new companies, prices and texts come
all the time, and every thousandth event is late.  After each twentieth of the run it prints the events, the resident
memory, the bytes allocated by the C allocator, and the goals.  The run fails if the resident memory in the last tenth
is more than 2 % above its maximum in the first five minutes (in a shorter run: in the first third).
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psutil
from etalis_rules.terms import XSD

from etalis_py import Engine
from etalis_py.events import Event

SECOND = 1_000_000
PREFIX = "PREFIX : <http://example.org/> "
QUERIES = {
    "sequence": "SELECT ?c ?x ?y { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > 1.2 * ?x) WITHIN PT5S",
    "three steps": "SELECT ?c { { ?c :price ?x } SEQ { ?c :news ?n } SEQ { ?c :price ?y } } WITHIN PT5S",
    "join": "SELECT ?c ?n { ?c :price ?x . ?c :news ?n } WITHIN PT5S",
    "recent": "SELECT ?c { ?c :price ?x } SEQ { ?c :news ?n } WITHIN PT30S USING POLICY recent",
    "optional": "SELECT ?c ?n { { ?c :price ?x } EQUALSOPTIONAL { ?c :news ?n } }",
    "absence": "SELECT ?c { ?c :news ?n } SEQ NOT { ?c :price ?x } WITHIN PT3S",
    "next": "SELECT ?c { { ?c :news ?n } NEXT { ?c :price ?x } } WITHIN PT5S",
    "run": "SELECT ?c ?k { { ?c :price ?x } REPEAT 3 TO 5 BY ?c WHERE (?x > PREVIOUS(?x)) AS (COUNT(*) AS ?k) }"
    " WITHIN PT5S",
    "average": "SELECT ?c (AVG(?x) AS ?a) { ?c :price ?x } WITHIN PT5S GROUP BY ?c",
    "rule": "CONSTRUCT { ?c :high ?x } WHERE { ?c :price ?x FILTER (?x > 90) } ;"
    " SELECT ?c ?h ?n { { ?c :high ?h } SEQ { ?c :news ?n } } WITHIN PT5S",
    "window": "SELECT ?c (COUNT(?n) AS ?k) FROM NAMED WINDOW :w ON :s [RANGE PT5S STEP PT1S]"
    " WHERE { WINDOW :w { ?c :news ?n } } GROUP BY ?c",
}
SHARE = 0.02


@dataclass(slots=True)
class Reading:
    """The measurements at one time."""

    seconds: float
    events: int
    resident: int
    allocated: int
    objects: int
    goals: int


def events(batch: int) -> Iterator[list[Event]]:
    """A market in which companies come and go: two hundred at a time, a new one every fifty events."""
    source = random.Random(7)
    stream, number, at = "<http://example.org/s>", 0, 0
    while True:
        some = []
        for _ in range(batch):
            number += 1
            at += source.randrange(2 * SECOND // 100)
            company = f"<http://example.org/c{number // 50 + source.randrange(200)}>"
            end = at - 60 * SECOND if number % 1_000 == 0 and at > 60 * SECOND else at
            if source.random() < 0.2:
                triple = (company, "<http://example.org/news>", f'"story {number}"')
            else:
                price = f'"{source.randrange(10_000) / 100}"^^<{XSD}decimal>'
                triple = (company, "<http://example.org/price>", price)
            some.append(Event(end, end, (triple,), stream))
        yield some


class _Mallinfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keep",
        )
    ]


def allocated() -> int:
    """The bytes that are allocated from the C allocator; 0 if it does not say."""
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):
        return 0
    mallinfo.restype = _Mallinfo
    heap = mallinfo()
    return int(heap.uordblks + heap.hblkhd)


def soak(queries: list[str], seconds: float, batch: int, report: Callable[[Reading], None]) -> list[Reading]:
    """Run the queries for ``seconds``; returns twenty readings."""
    engines = [Engine(PREFIX + query) for query in queries]
    process = psutil.Process()
    readings: list[Reading] = []
    begin, number = time.monotonic(), 0
    for some in events(batch):
        number += len(some)
        for engine in engines:
            engine.push_all(some) if batch > 1 else engine.push(some[0])
            if number % 1_000 < batch:
                engine.dead_letters.clear()
        passed = time.monotonic() - begin
        if passed >= seconds * (len(readings) + 1) / 20:
            gc.collect()
            goals = sum(engine.counters.goals for engine in engines)
            resident = process.memory_info().rss
            reading = Reading(passed, number, resident, allocated(), len(gc.get_objects()), goals)
            readings.append(reading)
            report(reading)
        if passed >= seconds:
            return readings
    return readings


def show(reading: Reading) -> None:
    print(
        f"{reading.seconds:7.0f} s  {reading.events:11,} events  {reading.resident / 2**20:7.1f} MiB resident  "
        f"{reading.allocated / 2**20:7.1f} MiB given out  {reading.objects:9,} objects  {reading.goals:8,} goals",
        flush=True,
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description="Does memory stay flat?")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--only", nargs="+", choices=QUERIES, default=list(QUERIES))
    parser.add_argument("--batch", type=int, default=1, help="how many events are pushed at a time (default: 1)")
    options = parser.parse_args(arguments)
    seconds = 60 * options.minutes
    readings = soak([QUERIES[name] for name in options.only], seconds, options.batch, show)
    warm = max(300.0 if seconds > 900 else seconds / 3, readings[0].seconds)
    before = max(r.resident for r in readings if r.seconds <= warm)
    first = next(r for r in reversed(readings) if r.seconds <= warm)
    last = readings[-1]
    after = max(r.resident for r in readings[-2:])
    grown = after / before - 1
    an_event = (last.resident - first.resident) / max(1, last.events - first.events)
    print(f"grown by {100 * grown:+.2f} % since the first {warm:.0f} s, {an_event:+.2f} bytes an event")
    return 0 if grown <= SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
