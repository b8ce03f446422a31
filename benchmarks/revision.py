"""The cost of corrections: W2 without a horizon, with one but no corrections, and with 1 % of the events corrected.

    python -m benchmarks.revision [--events 100000] [--batch 10000] [--horizon 10] [--repeat 5]

A corrected event is first stated with a wrong price; up to a horizon later it is withdrawn, and stated correctly.  The
corrections of a batch are one replay.  Processor time, the median of the runs; the net matches must be those of the
corrected input.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from statistics import median

from benchmarks.harness import keep_to_one_core
from benchmarks.workloads.common import UNIT
from benchmarks.workloads.w2_stock import QUERY, WORKLOAD, events
from etalis_py import Engine, Event
from etalis_py.events import Retraction

SHARE = 100  # one event in this many is corrected
WRONG = '"1.0E9"^^<http://www.w3.org/2001/XMLSchema#double>'


def corrected(stream: Sequence[Event], horizon: int) -> list[Event]:
    """The stream with some events wrong at first, and corrected within the horizon."""
    draw = random.Random(7)
    items: list[tuple[float, Event]] = []
    for i, right in enumerate(stream):
        items.append((i, right))
        if draw.randrange(SHARE) == 0:
            s, p, _ = right.triples[0]
            wrong = right._replace(triples=((s, p, WRONG),))
            later = i + draw.randint(1, max(1, horizon // UNIT - 1)) + 0.5
            items[-1] = (i, wrong)
            items += [(later, Retraction._make(wrong)), (later, right)]
    return [item for _, item in sorted(items, key=lambda item: item[0])]


def run(items: Sequence[Event], batch: int, horizon: int) -> tuple[float, dict[str, None], Engine]:
    engine = Engine(QUERY, policy=WORKLOAD.policy, revise=horizon)
    net: dict[str, None] = {}
    parts = []
    began = time.process_time()
    for first in range(0, len(items), batch):
        parts.append(engine.push_all(items[first : first + batch]))
    parts.append(engine.close())
    took = time.process_time() - began
    for match in (match for part in parts for match in part):
        if match.retracted:
            del net[match.id]
        else:
            net[match.id] = None
    return took, net, engine


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.revision", description="the cost of corrections")
    parser.add_argument("--events", type=int, default=WORKLOAD.size)
    parser.add_argument("--batch", type=int, default=10_000, help="events that are pushed at once")
    parser.add_argument("--horizon", type=int, default=10, help="in units of W2, one event each")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args(arguments)
    keep_to_one_core()
    stream, horizon = events(options.events), options.horizon * UNIT
    wrong = corrected(stream, horizon)
    settings = {"no horizon": (stream, 0), "nothing corrected": (stream, horizon), "1 % corrected": (wrong, horizon)}
    times: dict[str, list[float]] = {name: [] for name in settings}
    answers = {}
    for _ in range(options.repeat):
        for name, (items, length) in settings.items():
            took, net, engine = run(items, options.batch, length)
            times[name].append(took)
            answers[name] = net.keys()
    base = median(times["no horizon"])
    for name, some in times.items():
        print(f"{name:<18} {len(stream) / median(some):>10,.0f} events/s  {median(some) / base:5.2f} × the time")
    print(f"corrected in {engine.counters.corrections} replays of {engine.counters.replayed:,} events in all")
    same = answers["no horizon"] == answers["nothing corrected"] == answers["1 % corrected"]
    print("the net matches are the same" if same else "THE NET MATCHES DIFFER")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
