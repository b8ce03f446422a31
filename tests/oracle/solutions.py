"""Solutions ⟨μ, start, end⟩ and what two of them make together ([EP] §4.2).

A *timeless* solution, one without an occurrence in it, has ``start = end = None``: it is neutral for min and max and
satisfies every temporal condition (docs/semantics.md, Timeless solutions).

Beside its interval a solution has the instant at which it is ``known``.  That is its end, with two exceptions: a
row of an aggregating sub-SELECT may be reported later than its last contribution ends (something left the window),
and a timeless solution is known before the stream (``BEFORE``) or, when it depends on an absence, after it
(``AFTER``).  What is known later is never seen by a decision that was made before: timewise monotonicity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

Instant = float | int
BEFORE: Instant = float("-inf")
AFTER: Instant = float("inf")

Bindings = tuple[tuple[str, str], ...]


class Solution(NamedTuple):
    """``mu`` is a sorted tuple of (variable, term) pairs: only what is bound.

    ``nodes`` are the terms that blank nodes of the pattern, which have no name outside their block, stand for.
    """

    mu: Bindings
    start: int | None
    end: int | None
    known: Instant
    nodes: frozenset[str] = frozenset()

    @property
    def timeless(self) -> bool:
        return self.end is None


UNIT = Solution((), None, None, BEFORE)


def is_made(term: str) -> bool:
    """Whether a rule made this blank node."""
    return term.startswith("_:made.")


def bindings(mu: Mapping[str, str]) -> Bindings:
    return tuple(sorted((v, t) for v, t in mu.items() if t))


def lowest(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def highest(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)


def compatible(a: Bindings, b: Bindings) -> bool:
    """ "Every variable that is mapped by both is mapped to the same RDF term by both"."""
    other = dict(b)
    return all(other.get(v, t) == t for v, t in a)


def combine(a: Solution, b: Solution) -> Solution:
    """⟨μ, tα, tω⟩ ⋈ ⟨μ', t'α, t'ω⟩: the union of the mappings and the hull of the intervals."""
    mu = bindings(dict(a.mu) | dict(b.mu))
    interval = lowest(a.start, b.start), highest(a.end, b.end)
    return Solution(mu, *interval, max(a.known, b.known), a.nodes | b.nodes)


def strictly_before(a: Solution, b: Solution) -> bool:
    """``a.end < b.start``; a timeless solution is before and after everything."""
    return a.timeless or b.timeless or a.end < b.start  # type: ignore[operator]


def simultaneous(a: Solution, b: Solution) -> bool:
    """Both bounds equal; a timeless solution is simultaneous with everything."""
    return a.timeless or b.timeless or (a.start == b.start and a.end == b.end)


Interval = tuple[int, int]
ALLEN = {
    "MEETS": lambda a, b: a[0] < b[0] and a[1] == b[0] and a[1] < b[1],
    "OVERLAPS": lambda a, b: a[0] < b[0] < a[1] < b[1],
    "STARTS": lambda a, b: a[0] == b[0] and a[1] < b[1],
    "DURING": lambda a, b: b[0] < a[0] and a[1] < b[1],
    "FINISHES": lambda a, b: b[0] < a[0] and a[1] == b[1],
    "PAR": lambda a, b: a[0] <= b[1] and b[0] <= a[1],
}
"""Allen's relations and ETALIS's PAR between the left interval and the right."""


def related(relation: str, a: Solution, b: Solution) -> bool:
    """One of ``ALLEN``; a timeless solution satisfies every temporal condition."""
    if a.timeless or b.timeless:
        return True
    return ALLEN[relation]((a.start, a.end), (b.start, b.end))  # type: ignore[arg-type]


def in_time(a: Solution, b: Solution) -> bool:
    """Whether ``a`` can be used where ``b`` stands: what is known after the stream only joins nothing with a time."""
    return a.known != AFTER or b.timeless


def not_after(a: Solution, b: Solution) -> bool:
    """``a.end ≤ b.end``: what ``b`` may look at."""
    if a.timeless or b.timeless:
        return in_time(a, b)
    return a.end <= b.end and a.known <= b.known and a.known != AFTER  # type: ignore[operator]


def terms_of(solution: Solution, variables: Iterable[str]) -> tuple[str, ...]:
    """The terms of the variables in alphabetical order of their names; unbound is the empty string."""
    mu = dict(solution.mu)
    return tuple(mu.get(v, "") for v in sorted(variables))


def interval_key(start: int | None, end: int | None) -> tuple[Instant, Instant]:
    """(end, start); the timeless come first."""
    return (BEFORE if end is None else end, BEFORE if start is None else start)


def canonical(solution: Solution, variables: Iterable[str]) -> tuple[object, ...]:
    """The canonical order of solutions: end, start, terms."""
    return (*interval_key(solution.start, solution.end), terms_of(solution, variables))
