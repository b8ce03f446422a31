"""[EP] Test 2: is the subject of a streamed triple an instance of the class of concern?

    python -m benchmarks.taxonomy_stream [--events 200000]

Background: the made-up hierarchy of 40,080 sub-classes (``benchmarks.taxonomy``) and, where it is present, WordNet
(``../shared/data/taxonomy``), each with an instance of every tenth class.  One event is ⟨instance, reports, number⟩, of
instances below the class of concern and others.  The taxonomy is a named graph, so that streamed types do not count and
no event needs to be remembered.  Printed: loading and closing the background without and with the cache, events per
second of processor time, and the delay of each event pushed alone, by thousands of events ([EP] Figure 2).  Then the
hierarchy as the default graph under a stream of types: ``SELECT ?o WHERE { ?o a <C> }``, half of them below the class
of concern, in rows and from Arrow to Arrow.  Fails when an answer is wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from etalis_rules.terms import RDF_TYPE

from benchmarks.columnar import arrow_columns, spelled
from benchmarks.harness import keep_to_one_core
from benchmarks.taxonomy import ROOT, SIZE, SUB_CLASS_OF, hierarchy
from etalis_py import Engine, Event, compile
from etalis_py.knowledge import Knowledge, load

WORDNET = Path(__file__).resolve().parents[2] / "shared" / "data" / "taxonomy" / "wordnet30-nouns.nt.gz"
EX = "http://example.org/"
REPORTS = f"<{EX}reports>"
TAXONOMY = f"<{EX}taxonomy>"
SECOND = 1_000_000
BAR = 400_000
COLUMNS_BAR = 3_000_000


def instances(classes: Iterable[str]) -> list[tuple[str, str]]:
    """An instance of every tenth class."""
    return [(f"<{EX}thing{n}>", c) for n, c in enumerate(sorted(classes)) if n % 10 == 0]


def below(pairs: Iterable[tuple[str, str]], concern: str) -> set[str]:
    """The classes below a class and itself, by a plain walk."""
    children: dict[str, list[str]] = {}
    for c, d in pairs:
        children.setdefault(d, []).append(c)
    concerned, waiting = {concern}, [concern]
    while waiting:
        for c in children.get(waiting.pop(), ()):
            if c not in concerned:
                concerned.add(c)
                waiting.append(c)
    return concerned


def loaded(source: Path, things: list[tuple[str, str]], cache: Path) -> tuple[Knowledge, float]:
    began = time.perf_counter()
    named = {TAXONOMY: [source, [(x, RDF_TYPE, c) for x, c in things]]}
    knowledge = load(named=named, cache=cache)
    return knowledge, time.perf_counter() - began


def measure(name: str, source: Path, concern: str, pairs: list[tuple[str, str]], count: int) -> bool:
    """Print the figures of one hierarchy; return whether every answer was right."""
    things = instances({c for pair in pairs for c in pair})
    with tempfile.TemporaryDirectory() as folder:
        _, cold = loaded(source, things, Path(folder))
        knowledge, warm = loaded(source, things, Path(folder))
    concerned = below(pairs, concern)
    right = {x for x, c in things if c in concerned}
    outside = [(f"<{EX}stranger{n}>", "") for n in range(len(things))]
    draw = random.Random(1)
    chosen = [draw.choice(things if draw.random() < 0.5 else outside)[0] for _ in range(count)]
    numbers = [f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in range(100)]
    events = [Event(n * SECOND, n * SECOND, ((x, REPORTS, numbers[n % 100]),), "", "") for n, x in enumerate(chosen, 1)]
    query = compile(f"SELECT ?x ?y WHERE {{ ?x {REPORTS} ?y . GRAPH {TAXONOMY} {{ ?x {RDF_TYPE} {concern} }} }}")
    engine = Engine(query, background=knowledge)
    began = time.process_time()
    matches = [*engine.push_all(events), *engine.close()]
    seconds = time.process_time() - began
    expected = [(x, n) for n, x in enumerate(chosen, 1) if x in right]
    correct = [(m.bindings["x"], m.end) for m in matches] == expected
    rate = count / seconds
    print(
        f"{name}: {len(concerned) - 1:,} sub-classes of the class of concern, {len(pairs):,} links\n"
        f"  loaded and closed in {cold:.2f} s, from the cache in {warm:.2f} s\n"
        f"  {count:,} events, {len(matches):,} matches ({'all right' if correct else 'WRONG'}), "
        f"{rate:,.0f} events/s ({'at least' if rate >= BAR else 'below'} {BAR:,})"
    )
    engine = Engine(query, background=knowledge)
    delays = []
    for event in events[:20_000]:
        began = time.perf_counter_ns()
        engine.push(event)
        engine.advance(event.end)
        delays.append((time.perf_counter_ns() - began) / 1000)
    print("  delay of an event pushed alone, in microseconds (median and 99th of 100), by thousands of events")
    for n in range(0, len(delays), 4000):
        part = sorted(delays[n : n + 4000])
        print(f"    {n + len(part):7,}  {part[len(part) // 2]:6.1f} {part[len(part) * 99 // 100]:6.1f}")
    return correct


def types(pairs: list[tuple[str, str]], count: int) -> bool:
    """Print the figures of streamed types under the hierarchy; return whether every answer was right."""
    draw = random.Random(3)
    classes = [*sorted({c for c, _ in pairs}), *(f"<{EX}kind{n}>" for n in range(SIZE))]
    events = [Event(n, n, ((f"<{EX}thing{n % 1000}>", RDF_TYPE, draw.choice(classes)),)) for n in range(1, count + 1)]
    concerned = below(pairs, ROOT)
    expected = [(e.triples[0][0], e.end) for e in events if e.triples[0][2] in concerned]
    knowledge = load([[(c, SUB_CLASS_OF, d) for c, d in pairs]], cache=False)
    query = compile(f"SELECT ?o WHERE {{ ?o a {ROOT} }}")
    columns = arrow_columns(events)
    right = True
    print(f"plants, streamed types: {len(expected):,} of {count:,} events are below the class of concern")
    for executor, bar in (("rows", BAR), ("columns", COLUMNS_BAR)):
        rates = []
        for _ in range(3):
            engine = Engine(query, background=knowledge, executor=executor)
            began = time.process_time()
            parts = [*map(engine.push_all, columns if executor == "columns" else [events]), engine.close()]
            for part in parts:  # what a user would do with the reports: make a table, or matches
                (spelled if executor == "columns" else list)(part)
            rates.append(count / (time.process_time() - began))
            right &= [(m.bindings["o"], m.end_us) for part in parts for m in part] == expected
        rate = sorted(rates)[1]
        verdict = "all right" if right else "WRONG"
        print(f"  {executor}: {rate:,.0f} events/s ({'at least' if rate >= bar else 'below'} {bar:,}), {verdict}")
    return right


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.taxonomy_stream", description="[EP] Test 2")
    parser.add_argument("--events", type=int, default=200_000, help="events for each hierarchy (default 200,000)")
    options = parser.parse_args(arguments)
    keep_to_one_core()
    right = True
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "plants.nt"
        triples = list(hierarchy())
        source.write_text("".join(f"{s} {p} {o} .\n" for s, p, o in triples))
        right &= measure("plants", source, ROOT, [(s, o) for s, _, o in triples], options.events)
        right &= types([(s, o) for s, _, o in triples], options.events)
    if WORDNET.is_file():
        graph = load([WORDNET], entailment="rdf", cache=False).default
        pairs = [(s, o) for s, _, o in graph.match(None, SUB_CLASS_OF, None)]
        above: dict[str, int] = {}
        for _, o in pairs:
            above[o] = above.get(o, 0) + 1
        tops = sorted({o for _, o in pairs} - {s for s, _ in pairs}, key=lambda c: -above[c])
        right &= measure("WordNet", WORDNET, tops[0], pairs, options.events)
    else:
        print(f"WordNet is left out: there is no {WORDNET}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
