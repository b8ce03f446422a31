"""Joins whose conditions bound the goals from both sides: ``?y > ?x && ?y < ?x + 3``.

The goals are sorted by key and by the value of the one condition.  If that also sorts the values of the other one, the
other way round, the goals of a row that pass both stand together: two searches find them, and no others are looked at.

Cost: a sort of all goals for each batch, and the goals found.  A small batch looks at all goals of its keys instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from etalis_py.executors.columns.kernels.goals import AT, HIGH, LOW
from etalis_py.executors.columns.kernels.joining import ANY, BEFORE, EQUAL, LESS

SORTED = 64
"""Looking at so many goals takes as long as sorting one."""
Pairs = tuple[np.ndarray, np.ndarray]


def band_of(operators: Sequence[str]) -> tuple[int, int] | None:
    """The first conditions of a join that bound its goals from above and from below, if there are both."""
    above = next((i for i, op in enumerate(operators) if op in ("<", "<=")), None)
    below = next((i for i, op in enumerate(operators) if op in (">", ">=")), None)
    return None if above is None or below is None else (above, below)


def banded_pairs(
    band: tuple[int, int],
    relation: int,
    sought: np.ndarray,
    asking: tuple[np.ndarray, np.ndarray, np.ndarray],
    bound: int,
    ops: np.ndarray,
    arena: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    most: int,
) -> Pairs | None:
    """The pairs that ``probe`` finds, in its order; None if looking at all goals is no slower, or they are too many."""
    buckets, ends, starts, _, values = arena
    rows = np.flatnonzero(sought >= 0)
    held = buckets[:, HIGH] - buckets[:, LOW]
    goals = int(held.sum())
    if relation not in (BEFORE, ANY) or int(held[sought[rows]].sum()) <= SORTED * (goals + len(rows)):
        return None
    keys = np.repeat(np.arange(len(buckets)), held)
    first = buckets[:, AT] + buckets[:, LOW]
    places = np.arange(goals) + np.repeat(first - (np.cumsum(held) - held), held)
    order = np.lexsort((values[places, band[0]], keys))
    keys, places = keys[order], places[order]
    above, below = (values[places, column] for column in band)
    if not ((below[1:] <= below[:-1]) | (keys[1:] != keys[:-1])).all():
        return None
    y_ends, y_starts, y_values = (column[rows] for column in asking)
    until = _less(keys, above, sought[rows], y_values[:, band[0]])
    # The values of the other condition fall: those that are not less come first.
    since = _less(keys, -below, sought[rows], -y_values[:, band[1]], or_equal=True)
    counts = np.maximum(until - since, 0)
    found = int(counts.sum())
    if found > most:
        return None
    which = np.repeat(np.arange(len(rows)), counts)
    x = places[np.arange(found) + np.repeat(since - (np.cumsum(counts) - counts), counts)]
    kept = np.maximum(ends[x], y_ends[which]) - np.minimum(starts[x], y_starts[which]) <= bound
    if relation == BEFORE:
        kept &= ends[x] < y_starts[which]
    for column, op in enumerate(ops):
        one, other = values[x, column], y_values[which, column]
        kept &= one < other if op == LESS else (one == other) == (op == EQUAL)
    x, which = x[kept], which[kept]
    order = np.lexsort((x, which))
    return x[order], rows[which[order]]


def _less(
    keys: np.ndarray, values: np.ndarray, row_keys: np.ndarray, row_values: np.ndarray, *, or_equal: bool = False
) -> np.ndarray:
    """For each row, how many of the sorted goals come before its key, or have it and a lesser value."""
    is_goal = np.repeat((True, False), (len(keys), len(row_keys)))
    order = np.lexsort((is_goal != or_equal, np.concatenate((values, row_values)), np.concatenate((keys, row_keys))))
    before = np.empty(len(order), np.int64)
    before[order] = np.cumsum(is_goal[order])
    return before[len(keys) :]
