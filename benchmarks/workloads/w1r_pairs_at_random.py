"""W1r: the sequence of W1 with ids at random, ``unrestricted``: every b pairs with every earlier a of its id.

20,000 events give about 500,000 matches, so this measures how fast matches are made.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from benchmarks.workloads.common import close, event, integer
from benchmarks.workloads.definition import Answer, Bar, Feed, Workload
from benchmarks.workloads.w1_pairs import IDS, QUERY, A, B, kind
from etalis_py.events import Event


def events(size: int) -> list[Event]:
    draw = random.Random(7)
    return [event(n, f"<urn:x:id{draw.randrange(IDS)}>", kind(n), integer(n)) for n in range(size)]


def loop() -> Feed:
    """Each b pairs with all the a of its id that ended before it began."""
    goals: dict[str, list[tuple[int, int]]] = {}

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        instant: list[Answer] = []
        now = -1
        for start, end, triples, _, _ in stream:
            if end != now:
                if instant:
                    close(answers, instant)
                now = end
            for s, p, _ in triples:
                if p == A:
                    goals.setdefault(s, []).append((end, start))
                elif p == B:
                    row = (s,)
                    instant += [(began, end, row) for ended, began in goals.get(s, ()) if ended < start]
        close(answers, instant)
        return answers

    return feed


WORKLOAD = Workload(
    name="W1r",
    title="the same, ids at random, unrestricted",
    query=QUERY,
    policy="unrestricted",
    size=20_000,
    events=events,
    loop=loop,
    bar=Bar("events/s", 40_000),
)
