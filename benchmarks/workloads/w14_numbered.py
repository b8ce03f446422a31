"""W14: answers that come 998 numbers after their requests: an equality of what is computed is the only key.

A request in ten is never answered.  Before the clock starts many others wait that nothing answers.  The figure is the
time with 100,000 of them over the time with 1,000: the cost of an event must not grow with the goals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.workloads.common import event, int_of, integer
from benchmarks.workloads.definition import Answer, Bar, Feed, Workload
from etalis_py.events import Event

ASKED, ANSWERED = "<urn:p:asked>", "<urn:p:answered>"
SHIFT, BEHIND = 998, 20
FEW, MANY = 1_000, 100_000
QUERY = f"""
SELECT ?a ?b ?x WHERE {{ {{ ?a {ASKED} ?x }} SEQ {{ ?b {ANSWERED} ?y }} FILTER (?y = ?x + {SHIFT}) }}"""


def events(size: int) -> list[Event]:
    """Requests, and between them the answers to those of twenty requests ago."""
    return [
        event(unit, f"<urn:x:from{unit}>", ASKED, integer(unit // 2))
        if unit % 2 == 0
        else event(unit, f"<urn:x:to{unit}>", ANSWERED, integer(unit // 2 - BEHIND + (SHIFT if unit % 20 > 1 else 0)))
        for unit in range(size)
    ]


def idle(number: int) -> Iterator[Event]:
    """Requests that nothing answers; the others come after them."""
    return (event(n - number, f"<urn:x:idle{n}>", ASKED, integer(-2 * SHIFT - n)) for n in range(number))


def loop() -> Feed:
    """The requests by the number of their answer."""
    waiting: dict[int, tuple[int, str, str]] = {}

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        for start, end, triples, _, _ in stream:
            s, p, number = triples[0]
            if p == ASKED:
                waiting[int_of(number) + SHIFT] = start, s, number
            elif (asked := waiting.get(int_of(number))) is not None:
                answers.append((asked[0], end, (asked[1], s, asked[2])))
        return answers

    return feed


WORKLOAD = Workload(
    name="W14",
    title=f"an equality of what is computed, with {MANY:,} goals against {FEW:,}",
    query=QUERY,
    policy="unrestricted",
    size=200_000,
    events=events,
    loop=loop,
    bar=Bar("times", 1.3),
    idle=idle,
    live=(FEW, MANY),
)
