"""W8: ordered, and not shipped in time; one order in ten is late.

At even units an order is placed, at odd units the tenth order before it is shipped, unless its number ends in 0.  The
deadline is 25 seconds: some ten orders wait at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from benchmarks.workloads.common import UNIT, event, integer
from benchmarks.workloads.definition import Answer, Bar, Feed, Workload
from etalis_py.events import Event

PLACED, SHIPPED, TICK = "<urn:p:placed>", "<urn:p:shipped>", "<urn:p:tick>"
LAG, DEADLINE = 10, 25
QUERY = """
SELECT ?order ?n WHERE { ?order <urn:p:placed> ?n } SEQ NOT { ?order <urn:p:shipped> ?m } WITHIN 25 SECONDS
"""


def events(size: int) -> list[Event]:
    return [_event(unit) for unit in range(size)]


def _event(unit: int) -> Event:
    order, is_shipping = divmod(unit, 2)
    if not is_shipping:
        return event(unit, f"<urn:x:order{order}>", PLACED, integer(order))
    shipped = order - LAG
    if shipped < 0 or shipped % 10 == 0:
        return event(unit, f"<urn:x:clock{unit}>", TICK, integer(unit))
    return event(unit, f"<urn:x:order{shipped}>", SHIPPED, integer(unit))


def loop() -> Feed:
    """The waiting orders, by order and by time; fed nothing, the stream has ended and all of them are late."""
    waiting: dict[str, tuple[int, int, str]] = {}
    due: deque[tuple[int, str]] = deque()

    def late(until: int, answers: list[Answer]) -> None:
        while due and due[0][0] < until:
            at, order = due.popleft()
            placed = waiting.pop(order, None)
            if placed is not None:
                answers.append((placed[1], at, (placed[2], order)))

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        end = None
        for start, end, triples, _, _ in stream:
            late(end, answers)
            for s, p, o in triples:
                if p == PLACED:
                    waiting[s] = (end, start, o)
                    due.append((end + DEADLINE * UNIT, s))
                elif p == SHIPPED:
                    placed = waiting.get(s)
                    if placed is not None and placed[0] < start:
                        del waiting[s]
        if end is None:
            late(2**63, answers)
        return answers

    return feed


WORKLOAD = Workload(
    name="W8",
    title="absence with a deadline, 1 in 10 violated",
    query=QUERY,
    policy="unrestricted",
    size=200_000,
    events=events,
    loop=loop,
    bar=Bar("events/s", 250_000),
)
