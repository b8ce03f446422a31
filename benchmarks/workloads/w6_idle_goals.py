"""W6: W1 while many other goals wait that nothing joins.

Before the clock starts the engine is given many events a whose ids, all different, never have a b.  The figure
is the time of W1 with 1,000,000 of them over the time with 1,000: the cost of an event must not grow with the goals
that do not join.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.workloads import w1_pairs
from benchmarks.workloads.common import event, integer
from benchmarks.workloads.definition import Bar, Workload
from etalis_py.events import Event

FEW, MANY = 1_000, 1_000_000


def idle(number: int) -> Iterator[Event]:
    """Events whose goals wait for ever; the events of W1 come after them."""
    return (event(n - number, f"<urn:x:idle{n}>", w1_pairs.A, integer(n)) for n in range(number))


WORKLOAD = Workload(
    name="W6",
    title=f"W1 with {MANY:,} live goals that do not join, against {FEW:,}",
    query=w1_pairs.QUERY,
    policy="recent",
    size=200_000,
    events=w1_pairs.events,
    loop=w1_pairs.loop,
    bar=Bar("times", 1.3),
    idle=idle,
    live=(FEW, MANY),
)
