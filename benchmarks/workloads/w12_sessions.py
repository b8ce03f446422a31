"""W12: visits of a thousand users, each once when it is over: after twenty minutes without a click."""

from __future__ import annotations

import random
from collections.abc import Iterable

from benchmarks.workloads.common import UNIT, event, integer
from benchmarks.workloads.definition import Answer, Bar, Feed, Workload
from etalis_py.events import Event

CLICK, USERS, PAGES = "<urn:p:click>", 1_000, 50
GAP = 20 * 60 * UNIT
QUERY = f"""
SELECT ?u ?n WHERE {{
  {{ ?u {CLICK} ?page }} REPEAT 1 OR MORE BY ?u GAP 20 min MAXIMAL AS (COUNT(*) AS ?n)
}}"""


def events(size: int) -> list[Event]:
    draw = random.Random(12)
    return [
        event(unit, f"<urn:x:user{draw.randrange(USERS)}>", CLICK, f"<urn:x:page{draw.randrange(PAGES)}>")
        for unit in range(size)
    ]


def loop() -> Feed:
    """For each user the start, the last click and the number of clicks, the longest silence first."""
    visits: dict[str, tuple[int, int, int]] = {}

    def over(user: str) -> Answer:
        start, last, clicks = visits.pop(user)
        return start, last + GAP, (integer(clicks), user)

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        now = 0
        for start, now, triples, _, _ in stream:
            while visits:
                silent = next(iter(visits))
                if visits[silent][1] + GAP >= now:
                    break
                answers.append(over(silent))
            user = triples[0][0]
            begun, _, clicks = visits.pop(user, (start, now, 0))
            visits[user] = (begun, now, clicks + 1)
        if not now:
            answers += [over(user) for user in list(visits)]
        return answers

    return feed


WORKLOAD = Workload(
    name="W12",
    title="REPEAT … GAP 20 min MAXIMAL, 1,000 users",
    query=QUERY,
    policy="unrestricted",
    size=200_000,
    events=events,
    loop=loop,
    bar=Bar("× loop", 3),
)
