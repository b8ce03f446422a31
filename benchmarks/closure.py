"""Load and close class hierarchies, cold and from the cache, and check the counts.

    python -m benchmarks.closure

The hierarchy of [EP] Test 2's size (see ``taxonomy.py``) and, if the folder ``shared`` beside the checkout has it,
WordNet 3.0's nouns: 82,115 classes, 743,241 pairs of classes in the closure.  "Ready" is the time until the first
look-up of a class's super-classes is answered; "cpu" is the processor time, which is more reliable on a busy machine.
The run fails if a count is wrong or a time is above its limit.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from benchmarks.taxonomy import ROOT, SIZE, hierarchy
from etalis_py.knowledge import Knowledge, load

WORDNET = Path(__file__).resolve().parents[2] / "shared" / "data" / "taxonomy" / "wordnet30-nouns.nt.gz"
ENTITY = "<http://wordnet-rdf.princeton.edu/wn30/00001740-n>"
CACHED_LIMIT = 0.5


def ancestors(triples: list[tuple[str, str, str]]) -> int:
    """The number of pairs in a hierarchy's closure, counted by walking up from each class."""
    parents: dict[str, list[str]] = {}
    for s, _, o in triples:
        parents.setdefault(s, []).append(o)
    total = 0
    for start in parents:
        seen: set[str] = set()
        todo = list(parents[start])
        while todo:
            above = todo.pop()
            if above not in seen:
                seen.add(above)
                todo.extend(parents.get(above, ()))
        total += len(seen)
    return total


def measure(source: Path, root: str, below: int, pairs: int, limit: float, folder: Path) -> Iterator[str]:
    """Measure one hierarchy; yields the errors found."""
    for state, most in (("cold", limit), ("cached", CACHED_LIMIT)):
        start, used = perf_counter(), sum(os.times()[:4])
        knowledge = load(source, cache=folder)
        loaded = perf_counter() - start
        knowledge.schema.super_classes(root)
        ready, cpu = perf_counter() - start, sum(os.times()[:4]) - used
        times = f"loaded {loaded:6.2f} s   ready {ready:6.2f} s   cpu {cpu:6.2f} s"
        print(f"{source.name:24} {state:7} {times}   (limit {most} s)")
        yield from check(knowledge, root, below, pairs)
        if ready > most:
            yield f"{source.name} {state}: {ready:.2f} s is above {most} s"


def check(knowledge: Knowledge, root: str, below: int, pairs: int) -> Iterator[str]:
    if len(knowledge.schema.classes) != pairs:
        yield f"{len(knowledge.schema.classes):,} pairs in the closure, expected {pairs:,}"
    if len(knowledge.schema.sub_classes(root)) != below:
        yield f"{len(knowledge.schema.sub_classes(root)):,} classes below {root}, expected {below:,}"


def main() -> int:
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        triples = list(hierarchy())
        plants = folder / "plants.nt"
        plants.write_text("".join(f"{s} {p} {o} .\n" for s, p, o in triples))
        wrong += measure(plants, ROOT, SIZE, ancestors(triples), 5, folder / "cache")
        if WORDNET.exists():
            wrong += measure(WORDNET, ENTITY, 82_114, 743_241, 10, folder / "cache")
        else:
            print(f"WordNet is not measured: there is no {WORDNET}")
    for message in wrong:
        print(message, file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
