"""REPEAT … UNTIL, literally: each B with the longest of the runs that are open when it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .absence import next_of
from .solutions import Solution, bindings

Numbers = tuple[int, ...]


def ended(
    chosen: Sequence[Numbers], members: Sequence[Solution], enders: Sequence[Solution]
) -> Iterator[tuple[Numbers, Solution]]:
    """The runs, each with a B that is the next one after its last element, if no element follows that one by then.

    ``enders`` are the B that are compatible on the BY variables; what else they bind does not count.
    """
    alike = [b._replace(mu=()) for b in enders]
    for run in chosen:
        last = members[run[-1]]._replace(mu=bindings({}))
        for b, bare in zip(enders, alike, strict=True):
            if next_of(alike, last, bare) and not any(_follows(x, last, b) for x in members):
                yield run, b


def _follows(x: Solution, last: Solution, b: Solution) -> bool:
    """Whether an element starts after the last one and ends by the end of B."""
    return x.start > last.end and x.end <= b.end  # type: ignore[operator]
