"""[EP] Test 3: the cost of more delivery agents, in time and memory ([EP] Figure 3).

    python -m benchmarks.delivery [--agents 1,10] [--locations 20] [--plot figure.svg]

The town is that of ``../shared/data/roads-osm`` (Krems: 810 places, 1,724 links) or, without it, a made-up one.  Each
agent visits 20 locations while most of the links it needs are closed under way.  Each number of agents runs in a
process of its own; printed are the processor time of all requests and updates, the mean, the median, the 95th of 100
and the slowest of them (those of one instant share its time), and the resident memory at the end.  Fails if an agent
without a route gets no notice, or a route uses a closed road; a line is printed if a request took more than 20 ms.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import psutil

from benchmarks.harness import keep_to_one_core
from etalis_py import Engine, Match, compile
from etalis_py.replays.deliveries import BECOMES, IS_CLOSED, Day, delivery_day
from etalis_py.replays.delivery import QUERIES, collect, route
from etalis_py.replays.plot_delivery import Measurement, draw
from etalis_py.replays.resources import program, reasoning
from etalis_py.replays.roads import LINK, Roads, made_roads, read_roads, shortest

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "roads-osm"
BAR = 20.0


def town() -> Roads:
    if DATA.is_dir():
        return read_roads(DATA / "krems_nodes.csv.gz", DATA / "krems_edges.csv.gz")
    return made_roads(32, 1)


def wrong(roads: Roads, day: Day, matches: list[Match]) -> int:
    """How many requests were answered wrongly; the updates of an instant hold for its requests."""
    results = collect(matches)
    answers = {answer.request: answer for answer in day.answers}
    closed: set[str] = set()
    faults = 0
    for event in sorted(day.events, key=lambda event: (event.end, event.triples[0][1] != BECOMES)):
        subject, predicate, state = event.triples[0]
        if predicate == BECOMES:
            (closed.add if state == IS_CLOSED else closed.discard)(subject[1:-1].removeprefix(LINK))
            continue
        answer = answers[subject]
        reported = results[str(answer.agent + 1)]
        if shortest(roads, answer.start, answer.goal, closed) is None:
            faults += subject not in reported.unreachable or subject in reported.routes
            continue
        links = reported.routes.get(subject, set())
        faults += bool(links & closed) or route(roads, links, answer.start, answer.goal) is None
    return faults


def measure(agents: int, locations: int) -> dict[str, float]:
    """One run, as plain numbers."""
    keep_to_one_core()
    roads = town()
    day = delivery_day(roads, agents, locations=locations, seed=1)
    queries = compile([program(f"delivery/{name}") for name in QUERIES])
    engine = Engine(queries, background=[list(roads.triples()), reasoning("delivery/routes")])
    used, delays, matches = [], [], []
    for end, instant in groupby(day.events, key=lambda event: event.end):
        events = list(instant)
        began = time.process_time()
        matches += [*engine.push_all(events), *engine.advance(end)]
        used.append(time.process_time() - began)
        delays += [1000 * used[-1] / len(events)] * len(events)
    memory = psutil.Process().memory_info().rss
    matches += engine.close()
    if engine.counters.late:
        raise RuntimeError(f"{engine.counters.late} events came late: the day is not in order")
    delays.sort()
    return {
        "agents": agents,
        "requests": len(day.answers),
        "events": len(day.events),
        "seconds": sum(used),
        "median": delays[len(delays) // 2],
        "p95": delays[len(delays) * 95 // 100],
        "slowest": delays[-1],
        "memory": memory,
        "wrong": wrong(roads, day, matches),
    }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.delivery", description="[EP] Test 3")
    parser.add_argument("--agents", default="1,10", help="numbers of agents, separated by commas (default 1,10)")
    parser.add_argument("--locations", type=int, default=20, help="locations of each agent (default 20)")
    parser.add_argument("--plot", type=Path, help="draw [EP] Figure 3 into this file")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)  # a run in a process of its own
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measure(options.one, options.locations)))
        return 0
    print("agents  requests  events  seconds  ms each  median     p95  slowest  memory MiB  wrong")
    measurements, faults = [], 0
    for agents in map(int, options.agents.split(",")):
        command = [sys.executable, "-m", "benchmarks.delivery", "--one", str(agents)]
        command += ["--locations", str(options.locations)]
        m = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        each = 1000 * m["seconds"] / m["events"]
        print(
            f"{agents:6}  {m['requests']:8,}  {m['events']:6,}  {m['seconds']:7.2f}  {each:7.1f}  {m['median']:6.1f}"
            f"  {m['p95']:6.1f}  {m['slowest']:7.1f}  {m['memory'] / 2**20:10.1f}  {m['wrong']:5}"
            f"{'' if m['slowest'] <= BAR else f'  above {BAR:g} ms'}"
        )
        faults += m["wrong"]
        measurements.append(Measurement(agents, m["requests"], m["seconds"], m["memory"]))
    if options.plot:
        draw(measurements, options.plot)
        print(f"the picture is {options.plot}")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
