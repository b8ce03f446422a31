"""Many queries of ten kinds: events per second, memory per idle query, and the time to compile them.

``python -m benchmarks.many_queries`` runs 10 to 100,000 alerts over 500 to 50,000 companies, so many that an event
concerns at most ten queries on average, and checks the answers of three kinds against a plain computation; then 10,000
limits on one predicate, where the cost of an event follows its matches.  Times are processor times.

An event concerns a query that asks for its company and its predicate.  With few queries over 500 companies it concerns
hardly any, so a second table has sizes at which an event concerns equally many: there are half as many companies as
queries, and each company has the same number of events per second in all sizes.

Then all queries are added one by one, and queries of other kinds beside them; some are removed again.

``--columns`` runs both in columns, from Arrow, in batches of ``BATCH`` events, of which the first, which builds the
tables of constants, is not counted.  The matches of each query are counted and compared with those in rows.
"""

from __future__ import annotations

import argparse
import gc
import random
import re
import time
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from etalis_py import Engine, Event, Match, compile
from etalis_py.engine.inputs import columns_of
from etalis_py.kernel.batch import Columns

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
    """The texts of ``count`` alerts, and their constants."""
    draw = random.Random(seed)
    constants = [
        (draw.randrange(companies), draw.randrange(companies), draw.randrange(900, 1000)) for _ in range(count)
    ]
    texts = [KINDS[n % len(KINDS)].format(a=a, b=b, k=k) for n, (a, b, k) in enumerate(constants)]
    return texts, constants


BATCH = 50_000
PATTERN = re.compile(r":c\{\{?([ab])\}?\} :(price|halt) ")


def prices(count: int, companies: int, seed: int = 2, step: int = 1000) -> list[Event]:
    """Prices and, now and then, a halt; one event every ``step`` microseconds."""
    draw = random.Random(seed)
    events = []
    for n in range(count):
        company, value = f"<{NAMESPACE}c{draw.randrange(companies)}>", f'"{draw.randrange(1000)}"^^<{INTEGER}>'
        events.append(Event(n * step, n * step, ((company, HALT if n % 20 == 0 else PRICE, value),), "", ""))
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


def concerned(constants: Sequence[tuple[int, int, int]], events: Sequence[Event]) -> float:
    """How many queries ask for the company and the predicate of an event, on average."""
    patterns = [set(PATTERN.findall(kind)) for kind in KINDS]
    asking: Counter[tuple[str, str]] = Counter()
    for n, (a, b, _) in enumerate(constants):
        companies = {"a": a, "b": b}
        asked = {(companies[which], predicate) for which, predicate in patterns[n % len(KINDS)]}
        asking.update((f"<{NAMESPACE}c{company}>", f"<{NAMESPACE}{predicate}>") for company, predicate in asked)
    return sum(asking[event.triples[0][:2]] for event in events) / len(events)


def measure(count: int, companies: int, given: argparse.Namespace, step: int = 1000) -> str:
    """One line of a table; the answers are checked."""
    texts, constants = alerts(count, companies)
    begun = time.process_time()
    program = compile(texts)
    compiled = time.process_time()
    engine = Engine(program, executor="rows")
    loaded = time.process_time()
    some = prices(given.events, companies, step=step)
    if given.columns:
        rate, found = _in_columns(Engine(program, executor="columns"), some)
        taken = given.events
        assert found == _counted([*engine.push_all(some), *engine.close()]), "columns and rows have other answers"
    else:
        rate, found, taken = _in_rows(engine, some, given.seconds)
    names = {f"q{n + 1}" for n in range(count) if n % len(KINDS) in (0, 1, 6)}
    chosen = Counter({name: number for name, number in found.items() if name in names})
    assert chosen == expected(constants, some[:taken]), "the answers differ from the plain computation"
    return (
        f"{count:>8,} {companies:>10,} {compiled - begun:>9.2f} {loaded - compiled:>7.2f} "
        f"{rate:>10,.0f} {concerned(constants, some[:taken]):>11.2f} {found.total() / taken:>10.2f}"
    )


def _in_rows(engine: Engine, events: Sequence[Event], limit: float) -> tuple[float, Counter[str], int]:
    """Events per second, the matches of each query, and how many events there was time for."""
    matches = []
    start = time.process_time()
    taken = 0
    for first in range(0, len(events), 1000):
        matches.append(engine.push_all(events[first : first + 1000]))
        taken = min(first + 1000, len(events))
        if time.process_time() - start > limit:
            break
    took = time.process_time() - start
    matches.append(engine.close())
    return taken / took, _counted(m for part in matches for m in part), taken


def column_batches(events: Sequence[Event], size: int = BATCH) -> list[Columns]:
    """The events in columns, ``size`` in a batch."""
    batches = []
    for first in range(0, len(events), size):
        some = events[first : first + size]
        ends = pa.array([event.end for event in some], pa.int64())
        terms = zip(*[event.triples[0] for event in some], strict=True)
        arrays = [ends, ends, *(pa.array(column).dictionary_encode() for column in terms)]
        batches.append(columns_of(pa.RecordBatch.from_arrays(arrays, names=["end", "start", "s", "p", "o"])))
    return batches


def _in_columns(engine: Engine, events: Sequence[Event]) -> tuple[float, Counter[str]]:
    """Events a second after the first batch, and the matches of each query."""
    batches = column_batches(events)
    matches = [engine.push_all(batches[0])]
    start = time.process_time()
    matches += [engine.push_all(batch) for batch in batches[1:]]
    took = time.process_time() - start
    matches.append(engine.close())
    return (len(events) - BATCH) / took, _counted(m for part in matches for m in part)


def _counted(matches: Iterable[Match]) -> Counter[str]:
    return Counter(match.query for match in matches)


def idle_bytes(count: int, companies: int) -> float:
    """The memory of a query while nothing happens, without texts that are not kept."""

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


KINDS_TO_COME = (
    "SELECT ?x WHERE {{ {{ :c{n} :price ?x }} SEQ {{ ?d :volume ?x }} }}",
    "SELECT ?x WHERE {{ :c{n} :news ?x }}",
    "SELECT ?y WHERE {{ :c{n} :volume ?x . ?x :rated ?y }}",
    "SELECT ?y WHERE {{ {{ :c{n} :price ?y }} NEXT {{ :c{n} :volume ?x }} }}",
    "ASK {{ :c{n} :volume ?x }}",
)
"""Queries of other kinds, which are added while the others run."""


def registration(count: int, companies: int) -> list[str]:
    """The time to add and remove one query after ``count`` were added one by one."""
    engine = Engine(executor="rows")
    times: dict[str, list[float]] = defaultdict(list)

    def timed(what: str, call: Callable[[], str | None]) -> str | None:
        start = time.process_time()
        done = call()
        times[what].append(time.process_time() - start)
        return done

    texts = [f"REGISTER QUERY a{n} AS {text}" for n, text in enumerate(alerts(count, companies)[0])]
    names = [timed("add", lambda text=text: engine.add(text)) for text in texts]  # type: ignore[misc]
    for n, kind in enumerate(KINDS_TO_COME):
        text = f"REGISTER QUERY other{n} AS {kind.format(n=n)}"
        timed("add another kind", lambda text=text: engine.add(text))  # type: ignore[misc]
    for name in names[count // 2 :: 10]:
        timed("remove", lambda name=name: engine.remove(name))  # type: ignore[misc]
    times["add"] = times["add"][100:]  # the first ones begin the families
    found = Counter(match.query for match in [*engine.push_all(prices(1000, companies)), *engine.close()])
    gone = {f"a{n}" for n in range(count // 2, count, 10)}
    assert not gone & found.keys(), "queries that were removed have matches"
    lines = []
    for what, some in times.items():
        some.sort()
        middle, most = some[len(some) // 2], some[int(0.99 * (len(some) - 1))]
        lines.append(f"{what:16} {middle * 1e3:>10.2f} {most * 1e3:>8.2f} {some[-1] * 1e3:>8.2f}")
    return lines


def thresholds(count: int, events: int) -> list[str]:
    """``?x > k`` with ``count`` limits: events that exceed none, ten, or all of them."""
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
    parser.add_argument("--columns", action="store_true", help="in columns, of ten batches or so; checked against rows")
    parser.add_argument("--seconds", type=float, default=20.0, help="stop a run after so long")
    given = parser.parse_args()
    if given.columns and given.events <= BATCH:
        given.events = 10 * BATCH
    names = ("queries", "companies", "compile s", "load s", "events/s", "concerns/ev", "matches/ev")
    heading = "{:>8} {:>10} {:>9} {:>7} {:>10} {:>11} {:>10}".format(*names)
    print(heading)
    for count in (10, 100, 1_000, 10_000, 100_000):
        if count <= given.most:
            print(measure(count, min(50_000, max(500, count // 2)), given), flush=True)
    print(f"\nan event concerns equally many\n{heading}")
    for count in (10, 1_000, 100_000):
        if count <= given.most:
            print(measure(count, count // 2, given, step=1000 * 100_000 // count), flush=True)
    count = min(given.most, 10_000)
    print(f"\nan idle query takes {idle_bytes(count, max(500, count // 2)):,.0f} bytes ({count:,} queries)")
    print(f"\n{given.most:,} queries one by one\n{'ms of one':16} {'median':>10} {'99 %':>8} {'most':>8}")
    print("\n".join(registration(given.most, min(50_000, max(500, given.most // 2)))))
    print(f"\n{count:,} limits on one predicate\n{'exceeded':>8} {'events/s':>14} {'µs a match':>12}")
    print("\n".join(thresholds(count, 20_000)))


if __name__ == "__main__":
    main()
