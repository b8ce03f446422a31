"""W9: five or more failed logins of a user without a success, the longest run ending in each; a thousand users.

Five logins in six fail, at random.  One run is kept for each user.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from benchmarks.workloads.common import event, integer
from benchmarks.workloads.definition import Answer, Bar, Feed, Workload
from etalis_py.events import Event

LOGIN, FAILED, OK = "<urn:p:login>", "<urn:p:failed>", "<urn:p:ok>"
USERS = 1_000
QUERY = """
SELECT ?u ?n WHERE {
  { ?u <urn:p:login> <urn:p:failed> } REPEAT 5 OR MORE BY ?u NOT { ?u <urn:p:login> <urn:p:ok> }
  LONGEST AS (COUNT(*) AS ?n)
}"""


def events(size: int) -> list[Event]:
    draw = random.Random(9)
    return [
        event(unit, f"<urn:x:user{draw.randrange(USERS)}>", LOGIN, OK if draw.randrange(6) == 0 else FAILED)
        for unit in range(size)
    ]


def loop() -> Feed:
    """For each user the start and length of the run so far; no two logins of one user come at the same time."""
    runs: dict[str, list[int]] = {}

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        for start, end, triples, _, _ in stream:
            for s, p, o in triples:
                if p != LOGIN:
                    continue
                if o == OK:
                    runs.pop(s, None)
                    continue
                run = runs.get(s)
                if run is None:
                    runs[s] = [start, 1]
                    continue
                run[1] += 1
                if run[1] >= 5:
                    answers.append((run[0], end, (integer(run[1]), s)))
        return answers

    return feed


WORKLOAD = Workload(
    name="W9",
    title="REPEAT 5 OR MORE … LONGEST, 1,000 users",
    query=QUERY,
    policy="unrestricted",
    size=200_000,
    events=events,
    loop=loop,
    bar=Bar("events/s", 250_000),
)
