"""W2u: the stock query of W2, ``unrestricted``: nothing is consumed, every combination within the window is found."""

from __future__ import annotations

import sys
from bisect import bisect_left, insort
from collections.abc import Iterable

from benchmarks.workloads.common import PRICE, close, price_of
from benchmarks.workloads.definition import Answer, Bar, Feed, Workload
from benchmarks.workloads.w2_stock import FALL, QUERY, RISE, WINDOW, events
from etalis_py.events import Event


def loop() -> Feed:
    """Goals are kept by the bound they wait for, so that an event looks only at those whose bound it meets.

    ``firsts`` holds (p1 × 0.7, start, end, p1 × 1.05, p1), ``falls`` (p1 × 1.05, start, end, p1, p2); entries that have
    left the window are swept out when a list has doubled since the last sweep.
    """
    firsts: dict[str, list[tuple[float, int, int, float, str]]] = {}
    falls: dict[str, list[tuple[float, int, int, str, str]]] = {}
    sizes: dict[str, tuple[int, int]] = {}

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        instant: list[Answer] = []
        now = -1
        for start, end, triples, _, _ in stream:
            if end != now:
                if instant:
                    close(answers, instant)
                now = end
            oldest = end - WINDOW
            for s, p, o in triples:
                if p != PRICE:
                    continue
                price = price_of(o)
                if s not in firsts:
                    firsts[s], falls[s], sizes[s] = [], [], (16, 16)
                opened, waiting = firsts[s], falls[s]
                for _, began, ended, p1, p2 in waiting[: bisect_left(waiting, (price,))]:
                    if began >= oldest and ended < start:
                        instant.append((began, end, (s, p1, p2, o)))
                for _, began, ended, floor, p1 in opened[bisect_left(opened, (price, sys.maxsize)) :]:
                    if began >= oldest and ended < start:
                        insort(waiting, (floor, began, end, p1, o))
                insort(opened, (price * FALL, start, end, price * RISE, o))
                if len(opened) > sizes[s][0] or len(waiting) > sizes[s][1]:
                    opened[:] = [goal for goal in opened if goal[1] >= oldest]
                    waiting[:] = [goal for goal in waiting if goal[1] >= oldest]
                    sizes[s] = (2 * len(opened) + 16, 2 * len(waiting) + 16)
        close(answers, instant)
        return answers

    return feed


WORKLOAD = Workload(
    name="W2u",
    title="the same, unrestricted",
    query=QUERY,
    policy="unrestricted",
    size=100_000,
    events=events,
    loop=loop,
    bar=Bar("events/s", 400_000),
)
