"""Events of a few subjects, as the tests of REPEAT, of NEXT and of groups draw them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from etalis_py import Event

SECOND = 1_000_000
STREAMS = ("apart", "crowded", "lasting", "mixed")
"""One event at a time; some of a key at once; some that last, so that those of a key overlap; values of all kinds."""
XSD = "http://www.w3.org/2001/XMLSchema#"
MIXED = (f'"1"^^<{XSD}integer>', f'"1.0"^^<{XSD}decimal>', f'"2.5"^^<{XSD}double>', '"a"', "<urn:x:i>")


def drawn(
    seed: int, size: int, stream: str, *, crowded: Sequence[int] = (0, 1, 1, 2, 4), mixed: Sequence[str] = MIXED
) -> Iterator[Event]:
    """``crowded``: how many seconds may lie between events that come close together, or last; ``mixed``: values."""
    draw, t = random.Random(seed), 10
    for _ in range(size):
        t += draw.choice(crowded if stream in ("crowded", "lasting") else (1, 1, 2, 4))
        start = t - draw.choice((0, 0, 1, 3)) if stream == "lasting" else t
        number = draw.choice(mixed) if stream == "mixed" else f'"{draw.randint(1, 3)}"^^<{XSD}integer>'
        triple = (f"<urn:x:s{draw.randrange(3)}>", f"<urn:x:{draw.choice('pppq')}>", number)
        yield Event(start * SECOND, t * SECOND, (triple,), "", "")


def gathered(draw: random.Random, terms: Sequence[str], number: int, subjects: int) -> list[Event]:
    """Several in some instants, some of which began earlier."""
    times = sorted(draw.randrange(number // 2) for _ in range(number))
    return list(
        dict.fromkeys(
            Event(
                (t - draw.choice((0, 0, 0, 2))) * SECOND,
                t * SECOND,
                ((f"<urn:c{draw.randrange(subjects)}>", f"<urn:p{draw.randrange(2)}>", draw.choice(terms)),),
            )
            for t in times
        )
    )
