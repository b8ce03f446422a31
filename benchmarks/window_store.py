"""Window contents in our own indexes, or in a pyoxigraph store: both slide, both answer, both are timed.

    python -m benchmarks.window_store            the measured sizes
    python -m benchmarks.window_store --small    a quick run that compares the answers

A window of 5,000 quads that slides by a tenth; each query is evaluated over the whole content each time.  The store is
given every advantage: its terms are made once per quad, and its rows are read as they come.  The terms of this stream
have the store's spellings, so that the answers can be compared (it would return "01" as "1").
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass

import pyoxigraph as ox
from etalis_rules.terms import XSD, parts

from etalis_py import Engine
from etalis_py.events import Event

P = "urn:p:"
MS = 1000
WIDTH, SLIDE = 5000 * MS, 500 * MS  # a quad each millisecond
PREFIX = f"PREFIX p: <{P}> "
QUERIES = {
    "join": "?o p:of ?s ; p:result ?r . ?r p:value ?v",
    "regex": '?o p:label ?l FILTER(REGEX(?l, "^(al|ga).*7"))',
    "join, filter and regex": "?o p:of ?s ; p:result ?r ; p:label ?l . ?r p:value ?v "
    'FILTER(?v > 80 && REGEX(?l, "^(al|ga).*7"))',
    "self-join": "?o p:of ?s ; p:result ?r . ?r p:value ?v . ?o2 p:of ?s ; p:result ?r2 . ?r2 p:value ?v2 "
    "FILTER(?v2 > ?v + 60)",
    "OPTIONAL and MINUS": '?o p:of ?s OPTIONAL { ?o p:label ?l FILTER(STRSTARTS(?l, "al")) } '
    "MINUS { ?o p:result ?r . ?r p:value 7 }",
    "path": "?o p:result+/p:value ?v",
}

Rows = Counter[tuple[int, frozenset[tuple[str, str]]]]
"""The rows of all evaluations: when, and the terms by variable."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Processor seconds in our engine and with the store, for the same answers."""

    name: str
    ours: float
    store: float
    rows: int
    same: bool


def observations(quads: int) -> list[Event]:
    """Five quads each, five milliseconds apart."""
    draw = random.Random(3)
    events = []
    for n in range(1, quads // 5 + 1):
        o, r = f"<urn:o:{n}>", f"<urn:r:{n}>"
        triples = (
            (o, f"<{P}of>", f"<urn:s:{draw.randrange(100)}>"),
            (o, f"<{P}result>", r),
            (r, f"<{P}value>", f'"{draw.randrange(100)}"^^<{XSD}integer>'),
            (o, f"<{P}kind>", '"temperature"'),
            (o, f"<{P}label>", f'"{draw.choice(("alpha", "beta", "gamma", "delta"))} {n}"'),
        )
        events.append(Event(n * 5 * MS, n * 5 * MS, triples, "<urn:s>"))
    return events


def ours(body: str, events: list[Event]) -> tuple[float, Rows]:
    window = f"FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE {WIDTH // MS} ms SLIDE {SLIDE // MS} ms]"
    engine = Engine(f"{PREFIX} SELECT * {window} {{ WINDOW <urn:w> {{ {body} }} }}")
    begin = time.process_time()
    rows = [(m.end_us, m.bindings) for m in engine.push_all(events)]
    seconds = time.process_time() - begin
    return seconds, Counter((t, frozenset(row.items())) for t, row in rows)


def stored(body: str, events: list[Event]) -> tuple[float, Rows]:
    """The same windows, kept by hand in a store."""
    store, query, held = ox.Store(), f"{PREFIX} SELECT * {{ {body} }}", deque[tuple[int, list[ox.Quad]]]()
    rows: list[tuple[int, dict[str, str]]] = []
    close = WIDTH
    begin = time.process_time()
    for event in events:
        while event.end > close:
            while held and held[0][0] <= close - WIDTH:
                for quad in held.popleft()[1]:
                    store.remove(quad)
            answer = store.query(query)
            names = [v.value for v in answer.variables]
            rows += [(close, {v: str(row[v]) for v in names if row[v] is not None}) for row in answer]
            close += SLIDE
        quads = [ox.Quad(*map(term, triple)) for triple in event.triples]
        store.extend(quads)
        held.append((event.end, quads))
    seconds = time.process_time() - begin
    return seconds, Counter((t, frozenset(row.items())) for t, row in rows)


def term(spelling: str) -> ox.NamedNode | ox.Literal:
    if spelling[0] == "<":
        return ox.NamedNode(spelling[1:-1])
    lexical, datatype, _ = parts(spelling)
    return ox.Literal(lexical, datatype=ox.NamedNode(datatype)) if datatype else ox.Literal(lexical)


def compare(name: str, events: list[Event]) -> Compared:
    one, own = ours(QUERIES[name], events)
    other, theirs = stored(QUERIES[name], events)
    return Compared(name, one, other, sum(own.values()), own == theirs)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and fail if the answers differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.window_store", description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run that compares the answers")
    events = observations(8_000 if parser.parse_args(arguments).small else 30_000)
    print(f"{'':26}{'ours, s':>10}{'store, s':>10}{'rows':>10}  answers")
    same = True
    for name in QUERIES:
        compared = compare(name, events)
        same = same and compared.same
        verdict = "the same" if compared.same else "DIFFERENT"
        print(f"{name:26}{compared.ours:>10.3f}{compared.store:>10.3f}{compared.rows:>10,}  {verdict}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
