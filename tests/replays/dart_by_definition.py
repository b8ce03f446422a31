"""NOAA's DART algorithm written down plainly, in exact fractions, without rules and without the product's reader.

The readings it takes of irregular sampling are those of ``programs/tsunami``: a reading stands for the time since the
one before it (at most 15 minutes); H* is the weighted mean of the readings of ten minutes, at their weighted mean time;
between two consecutive means it is a straight line.
"""

from __future__ import annotations

import gzip
from bisect import bisect_left, bisect_right
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

WEIGHTS = [
    Fraction(w) for w in ("1.16818457031250", "-0.28197558593750", "0.14689746093750", "-0.03310644531250")
]  # fmt: skip
HORIZON, TOLERANCE = 315, 60
WINDOW, LONGEST_PAUSE, HOUR = 600, 900, 3600
THRESHOLD = Fraction("0.030")


class Level(NamedTuple):
    second: int
    metres: Fraction


class Difference(NamedTuple):
    second: int
    prediction: Fraction
    metres: Fraction


def read(path: Path) -> list[Level]:
    """The rows of an NDBC file in order of time; of two with one time that of the finer sampling."""
    rows: dict[int, tuple[int, Fraction]] = {}
    with gzip.open(path, "rt") as file:
        for line in file:
            if line[0] == "#":
                continue
            *when, kind, height = line.split()
            second = int(datetime(*map(int, when), tzinfo=UTC).timestamp())
            if Fraction(height) < 9999:
                rows[second] = max(
                    rows.get(second, (0, Fraction(0))), (int(kind), Fraction(height)), key=lambda r: r[0]
                )
    return [Level(second, metres) for second, (_, metres) in sorted(rows.items())]


def differences(levels: list[Level]) -> list[Difference]:
    """Every reading that is predicted."""
    times = [level.second for level in levels]
    weights = [0, *(b - a if b - a <= LONGEST_PAUSE else 0 for a, b in pairwise(times))]
    centres: list[Fraction | None] = []
    means: list[Fraction] = []
    for i, now in enumerate(times):
        window = range(bisect_right(times, now - WINDOW), i + 1)
        total = sum(weights[j] for j in window)
        # A reading after a gap has no reading that it follows, so it makes no mean itself.
        centres.append(Fraction(sum(weights[j] * times[j] for j in window), total) if weights[i] else None)
        means.append(sum((weights[j] * levels[j].metres for j in window), Fraction(0)) / (total or 1))
    pieces = [i for i in range(1, len(times)) if centres[i] is not None and centres[i - 1] is not None]
    ends = [centres[i] for i in pieces]

    def at(second: int) -> Fraction | None:
        found = bisect_left(ends, second)
        if found == len(pieces):
            return None
        a, b = pieces[found] - 1, pieces[found]
        if centres[a] >= second:
            return None
        return means[a] + (means[b] - means[a]) * (second - centres[a]) / (centres[b] - centres[a])

    predicted = []
    for i in range(1, len(times)):
        last = centres[i - 1]
        if not weights[i] or last is None or abs(times[i] - last - HORIZON) > TOLERANCE:
            continue
        minute = last // 60 * 60 + 30
        before = [at(minute - hours * HOUR) for hours in (1, 2, 3)]
        if None not in before:
            prediction = sum(w * h for w, h in zip(WEIGHTS, [means[i - 1], *before], strict=True))
            predicted.append(Difference(times[i], prediction, levels[i].metres - prediction))
    return predicted
