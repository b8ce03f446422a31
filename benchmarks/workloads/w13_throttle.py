"""W13: alarms of a thousand machines, of each at most one in an hour; an alarm is one reading in ten."""

from __future__ import annotations

import random
from collections.abc import Iterable

from benchmarks.workloads.common import UNIT, event, int_of, integer
from benchmarks.workloads.definition import Answer, Bar, Feed, Workload
from etalis_py.events import Event

HEAT, MACHINES = "<urn:p:heat>", 1_000
HOUR = 3_600 * UNIT
QUERY = f"""
SELECT ?m ?h WHERE {{
  {{ ?m {HEAT} ?h FILTER (?h > 90) }} THROTTLE 1 h BY ?m
}}"""


def events(size: int) -> list[Event]:
    draw = random.Random(13)
    return [
        event(unit, f"<urn:x:machine{draw.randrange(MACHINES)}>", HEAT, integer(draw.randrange(1, 101)))
        for unit in range(size)
    ]


def loop() -> Feed:
    """For each machine the time of its last alarm."""
    last: dict[str, int] = {}

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        for start, end, triples, _, _ in stream:
            machine, _, heat = triples[0]
            if int_of(heat) > 90 and (machine not in last or end >= last[machine] + HOUR):
                last[machine] = end
                answers.append((start, end, (heat, machine)))
        return answers

    return feed


WORKLOAD = Workload(
    name="W13",
    title="THROTTLE 1 h, 1,000 machines, one alarm in ten readings",
    query=QUERY,
    policy="unrestricted",
    size=200_000,
    events=events,
    loop=loop,
    bar=Bar("× loop", 3),
)
