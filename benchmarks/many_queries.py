"""Many queries of ten kinds: events per second, memory per idle query, and what it takes to compile them.

``python -m benchmarks.many_queries`` runs 10 to 100,000 alerts over 500 to 50,000 companies, so many that an event
concerns ten of them at most on average, and checks the answers of three kinds against a plain computation; then 10,000
limits on one predicate, where an event costs as much as it has matches.  Times are those of the processor.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Sequence

from etalis_py import Engine, Event, compile

NAMESPACE = "http://example.org/"
PRICE, HALT = f"<{NAMESPACE}price>", f"<{NAMESPACE}halt>"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
KINDS = (
    "SELECT ?x WHERE {{ :c{a} :price ?x FILTER (?x > {k}) }}",
    "SELECT ?x WHERE {{ :c{a} :price ?x FILTER (?x < {k}) }}",
    "SELECT ?x ?y WHERE {{ {{ {{ :c{a} :price ?x }} SEQ {{ :c{a} :price ?y }} }} WITHIN 60 s FILTER (?y > ?x + {k}) }}",
    "SELECT ?x ?y WHERE {{ {{ {{ :c{a} :price ?x }} SEQ {{ :c{b} :price ?y }} }} WITHIN 60 s FILTER (?y > ?x + {k}) }}",
    "SELECT ?x ?y WHERE {{ {{ {{ :c{a} :price ?x }} SEQ {{ :c{b} :price ?y }} }} WITHIN 10 s FILTER (?y < ?x - {k}) }}",
    "SELECT ?x ?y WHERE {{ {{ {{ :c{a} :price ?x }} NEXT {{ :c{a} :price ?y }} }} WITHIN 9 s FILTER (?x > ?y + {k}) }}",
    "SELECT ?x WHERE {{ :c{a} :halt ?x FILTER (?x > {k}) }}",
    "SELECT ?x ?h WHERE {{ {{ {{ :c{a} :price ?x }} SEQ {{ :c{a} :halt ?h }} }} WITHIN 60 s FILTER (?x > {k}) }}",
    "SELECT ?x WHERE {{ {{ {{ :c{a} :halt ?h }} SEQ {{ :c{b} :price ?x FILTER (?x > {k}) }} }} WITHIN 10 s }}",
    "CONSTRUCT {{ :c{a} :alarm ?x }} WHERE {{ :c{a} :price ?x FILTER (?x > {k}) }}",
)
"""Alerts about one or two companies and a limit."""


def alerts(count: int, companies: int, seed: int = 1) -> tuple[list[str], list[tuple[int, int, int]]]:
    """The texts of so many alerts, and their constants."""
    draw = random.Random(seed)
    constants = [
        (draw.randrange(companies), draw.randrange(companies), draw.randrange(900, 1000)) for _ in range(count)
    ]
    texts = [KINDS[n % len(KINDS)].format(a=a, b=b, k=k) for n, (a, b, k) in enumerate(constants)]
    return texts, constants


def prices(count: int, companies: int, seed: int = 2) -> list[Event]:
    """Prices and, now and then, a halt; a thousand events a second."""
    draw = random.Random(seed)
    events = []
    for n in range(count):
        company, value = f"<{NAMESPACE}c{draw.randrange(companies)}>", f'"{draw.randrange(1000)}"^^<{INTEGER}>'
        events.append(Event(n * 1000, n * 1000, ((company, HALT if n % 20 == 0 else PRICE, value),), "", ""))
    return events


def expected(constants: Sequence[tuple[int, int, int]], events: Sequence[Event]) -> Counter[str]:
    """How often the alerts of the first, second and seventh kind match, by a plain computation."""
    wanted = defaultdict(list)
    for n, (company, _, limit) in enumerate(constants):
        if n % len(KINDS) in (0, 1, 6):
            wanted[f"<{NAMESPACE}c{company}>"].append((n % len(KINDS), limit, f"q{n + 1}"))
    found: Counter[str] = Counter()
    for one in events:
        ((company, predicate, term),) = one.triples
        value = int(term.split('"')[1])
        for kind, limit, name in wanted.get(company, ()):
            if (predicate == HALT) == (kind == 6):
                found[name] += value < limit if kind == 1 else value > limit
    return +found


def measure(count: int, companies: int, events: int, limit: float) -> str:
    """One line of the table; the answers are checked."""
    texts, constants = alerts(count, companies)
    begun = time.process_time()
    program = compile(texts)
    compiled = time.process_time()
    engine = Engine(program, executor="rows")
    loaded = time.process_time()
    some = prices(events, companies)
    matches = []
    start = time.process_time()
    taken = 0
    for first in range(0, events, 1000):
        matches.append(engine.push_all(some[first : first + 1000]))
        taken = first + 1000
        if time.process_time() - start > limit:
            break
    took = time.process_time() - start
    matches.append(engine.close())
    names = {f"q{n + 1}" for n in range(count) if n % len(KINDS) in (0, 1, 6)}
    found = Counter(m.query for part in matches for m in part if m.query in names)
    assert found == expected(constants, some[:taken]), "the answers differ from the plain computation"
    total = sum(map(len, matches))
    return (
        f"{count:>8,} {companies:>10,} {compiled - begun:>9.2f} {loaded - compiled:>7.2f} "
        f"{taken / took:>10,.0f} {total / taken:>10.2f}"
    )


def idle_bytes(count: int, companies: int) -> float:
    """The memory that a query takes while nothing happens: texts that nobody keeps are not counted."""

    def loaded() -> Engine:
        return Engine(compile(alerts(count, companies)[0]), executor="rows")

    Engine(compile(alerts(100, companies)[0]), executor="rows")
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    engine = loaded()
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert engine.counters.events == 0
    return used / count


def thresholds(count: int, events: int) -> list[str]:
    """``?x > k`` with so many limits: events that exceed none, ten, or all of them."""
    engine = Engine(compile([f"SELECT ?x WHERE {{ ?c :price ?x FILTER (?x > {k}) }}" for k in range(count)]))
    lines, at = [], 0
    for exceeded in (0, 10, count):
        many = max(1, events // max(1, exceeded))
        some = [
            Event(at + n, at + n, ((f"<{NAMESPACE}c>", PRICE, f'"{exceeded}"^^<{INTEGER}>'),), "", "")
            for n in range(many)
        ]
        at += many
        start = time.process_time()
        found = len(engine.push_all(some)) + len(engine.advance(at - 1))
        took = time.process_time() - start
        assert found == exceeded * many, (found, exceeded, many)
        lines.append(f"{exceeded:>8,} {many / took:>14,.0f} {took / many / max(1, exceeded) * 1e6:>12.2f}")
    return lines


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=100_000, help="so many queries at most")
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="stop a run after so long")
    given = parser.parse_args()
    print(f"{'queries':>8} {'companies':>10} {'compile s':>9} {'load s':>7} {'events/s':>10} {'matches/ev':>10}")
    for count in (10, 100, 1_000, 10_000, 100_000):
        if count <= given.most:
            print(measure(count, min(50_000, max(500, count // 2)), given.events, given.seconds), flush=True)
    count = min(given.most, 10_000)
    print(f"\nan idle query takes {idle_bytes(count, max(500, count // 2)):,.0f} bytes ({count:,} queries)")
    print(f"\n{count:,} limits on one predicate\n{'exceeded':>8} {'events/s':>14} {'µs a match':>12}")
    print("\n".join(thresholds(count, 20_000)))


if __name__ == "__main__":
    main()
