"""W3: the transitive closure of a chain of edges by a recursive rule.

The n-th event is the edge from node n to node n + 1.  The first rule copies every edge, the second extends a path that
has ended by the edge that follows: 1,000 edges give 1,000 copies and 499,500 longer paths; each re-enters the stream.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.workloads.common import close, event
from benchmarks.workloads.definition import Answer, Bar, Feed, Workload
from etalis_py.events import Event

EDGE, PATH = "<urn:p:edge>", "<urn:p:tc>"
QUERY = """
PREFIX : <urn:p:>
CONSTRUCT { ?x :tc ?y } WHERE { ?x :edge ?y }
CONSTRUCT { ?x :tc ?z } WHERE { { ?x :tc ?y } SEQ { ?y :edge ?z } }
"""


def events(size: int) -> list[Event]:
    return [event(n, f"<urn:x:n{n}>", EDGE, f"<urn:x:n{n + 1}>") for n in range(size)]


def loop() -> Feed:
    """Paths are kept by their last node; at an instant the derived triples are a set.

    No path that is new at an instant can be extended at the same instant, so one pass is enough.
    """
    paths: dict[str, list[tuple[int, int, str]]] = {}

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        instant: list[Answer] = []
        seen: set[tuple[str, str, int]] = set()
        now = -1
        for start, end, triples, _, _ in stream:
            if end != now:
                close(answers, instant)
                seen.clear()
                now = end
            for s, p, o in triples:
                if p != EDGE:
                    continue
                reaching = paths.setdefault(o, [])
                instant.append((start, end, ((s, PATH, o),)))
                if (s, o, start) not in seen:
                    seen.add((s, o, start))
                    reaching.append((end, start, s))
                for ended, began, x in paths.get(s, ()):
                    if ended < start:
                        instant.append((began, end, ((x, PATH, o),)))
                        if (x, o, began) not in seen:
                            seen.add((x, o, began))
                            reaching.append((end, began, x))
        close(answers, instant)
        return answers

    return feed


WORKLOAD = Workload(
    name="W3",
    title="recursion tc(X, Y) over a chain of 1,000 edges",
    query=QUERY,
    policy="unrestricted",
    size=1_000,
    events=events,
    loop=loop,
    bar=Bar("seconds", 2.0),
    triples=True,
)
