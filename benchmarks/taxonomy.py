"""A seeded class hierarchy of the size of [EP] Test 2: 40,080 sub-classes below one class, at most 8 levels deep.

    python -m benchmarks.taxonomy > plants.nt

Each class is put below an earlier one chosen at random among those that are not at the deepest level yet, so most
branches are shallow and some are full depth, as in a biological taxonomy; every tenth class has a second parent.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

from etalis_rules.terms import RDFS

SUB_CLASS_OF = f"<{RDFS}subClassOf>"
ROOT = "<http://example.org/plants#Tracheobionta>"
SIZE = 40_080
DEPTH = 8

Triple = tuple[str, str, str]


def name(number: int) -> str:
    """The class of a number; 0 is the class of concern."""
    return f"<http://example.org/plants#C{number}>" if number else ROOT


def hierarchy(size: int = SIZE, depth: int = DEPTH, seed: int = 1) -> Iterator[Triple]:
    """The ``rdfs:subClassOf`` triples of a hierarchy."""
    draw = random.Random(seed)
    level = [0]
    inner = [0]  # the classes that may have sub-classes
    for number in range(1, size + 1):
        parent = inner[int(len(inner) * draw.random())]
        yield name(number), SUB_CLASS_OF, name(parent)
        deepest = level[parent]
        if number % 10 == 0:
            second = inner[int(len(inner) * draw.random())]
            if second != parent:
                yield name(number), SUB_CLASS_OF, name(second)
                deepest = max(deepest, level[second])
        level.append(deepest + 1)
        if deepest + 1 < depth:
            inner.append(number)


if __name__ == "__main__":
    sys.stdout.writelines(f"{s} {p} {o} .\n" for s, p, o in hierarchy())
