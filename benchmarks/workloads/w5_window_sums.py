"""W5: the sum over a sliding window, of the last 100 events and of the last 10 minutes.

``?sensor <urn:p:value> ?v``: ten sensors in turn, a value from 0 to 999 at random, as integers.  There is one sum over
all of them: the window is that of the ungrouped query, so every event enters, one leaves, and the changed sum is
reported with the hull of the values it counts.  With one event per second, 10 minutes hold 600 events.
"""

from __future__ import annotations

import random
import sys
from collections import deque
from collections.abc import Iterable
from functools import partial

from benchmarks.workloads.common import UNIT, event, int_of, integer
from benchmarks.workloads.definition import Answer, Bar, Feed, Workload
from etalis_py.events import Event

VALUE = "<urn:p:value>"
COUNT, MINUTES = 100, 600 * UNIT
QUERY = "SELECT (SUM(?v) AS ?total) WHERE { ?sensor <urn:p:value> ?v } WITHIN "


def events(size: int) -> list[Event]:
    draw = random.Random(7)
    return [event(n, f"<urn:x:sensor{n % 10}>", VALUE, integer(draw.randrange(1000))) for n in range(size)]


def loop(most: int, span: int) -> Feed:
    """A running sum over a queue of at most ``most`` values that end within ``span`` of the instant.

    The starts rise with the ends in this data, so the oldest value has the earliest start.
    """
    window: deque[tuple[int, int, int]] = deque()
    total = 0

    def feed(stream: Iterable[Event]) -> list[Answer]:
        nonlocal total
        answers: list[Answer] = []
        entered = False
        now = -1
        for start, end, triples, _, _ in stream:
            if end != now:
                if entered:
                    while len(window) > most or window[0][0] <= now - span:
                        total -= window.popleft()[2]
                    answers.append((window[0][1], now, (integer(total),)))
                    entered = False
                now = end
            for _, p, o in triples:
                if p == VALUE:
                    value = int_of(o)
                    window.append((end, start, value))
                    total += value
                    entered = True
        if entered:
            while len(window) > most or window[0][0] <= now - span:
                total -= window.popleft()[2]
            answers.append((window[0][1], now, (integer(total),)))
        return answers

    return feed


WORKLOADS = tuple(
    Workload(
        name=name,
        title=title,
        query=QUERY + within,
        policy="unrestricted",
        size=200_000,
        events=events,
        loop=partial(loop, most, span),
        bar=Bar("events/s", 400_000),
    )
    for name, title, within, most, span in (
        ("W5", "sum over a sliding window of 100 events", "100 EVENTS", COUNT, sys.maxsize),
        ("W5t", "sum over a sliding window of 10 minutes", "PT10M", sys.maxsize, MINUTES),
    )
)
