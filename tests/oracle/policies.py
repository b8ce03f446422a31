"""The consuming policies (docs/semantics.md, Policies).

A solution that arrives at a side checks the goals of the other side: the candidates are those that fit (compatible,
the temporal condition, and every condition of the node).  ``chronological`` takes the earliest candidate, ``recent``
the latest, by (end, start, canonical terms), and retracts it.  The arriving solution is used once, and then inserts
its own goal on its own side.  Arrivals come by instant; at one instant the left side's before the right side's, each
side's in canonical order.

A timeless solution is knowledge, not something that happened: it is no goal, it is not used up, and it uses up nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .solutions import Solution, canonical


def consumed(
    left: Sequence[Solution],
    right: Sequence[Solution],
    fits: Callable[[Solution, Solution], bool],
    policy: str,
    left_variables: set[str],
    right_variables: set[str],
) -> list[tuple[int, int]]:
    """The pairs (index on the left, index on the right) that a consuming policy makes."""
    sides = (left, right)
    names = (left_variables, right_variables)
    orders = [[canonical(s, names[side]) for s in sides[side]] for side in (0, 1)]
    arrivals = sorted(
        ((side, i) for side in (0, 1) for i, s in enumerate(sides[side]) if s.start is not None),
        key=lambda a: (sides[a[0]][a[1]].known, a[0], orders[a[0]][a[1]]),
    )
    goals: tuple[list[int], list[int]] = ([], [])
    pairs = [
        (i, j)
        for i, a in enumerate(left)
        for j, b in enumerate(right)
        if (a.start is None or b.start is None) and fits(a, b)
    ]
    for side, i in arrivals:
        other = 1 - side
        ordered = [(j, i) if side else (i, j) for j in goals[other]]
        candidates = [(a, b) for a, b in ordered if fits(left[a], right[b])]
        if candidates:
            pick = max if policy == "recent" else min
            pair = pick(candidates, key=lambda p: orders[other][p[other]])
            goals[other].remove(pair[other])
            pairs.append(pair)
        goals[side].append(i)
    return pairs
