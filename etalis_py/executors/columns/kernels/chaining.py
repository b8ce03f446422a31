"""Chains: the latest start of the goals that a row finds before it (``rows.generate.chains`` has the definition)."""

from __future__ import annotations

from etalis_py.executors.columns.kernels.goals import AT, HIGH, LOW
from etalis_py.executors.columns.kernels.joining import first_from
from etalis_py.numba_cache import kernel

NEVER = -(2**62)


@kernel
def latest_starts(keys, y_starts, buckets, ends, starts, latest):
    """For each row, the latest start of the goals with its key that ended before it started; NEVER without any.

    No goal starts after its end, so a search stops at the first one that ended before the latest start so far.
    """
    for j in range(len(keys)):
        key, best = keys[j], NEVER
        if key >= 0:
            low = buckets[key, AT] + buckets[key, LOW]
            x = first_from(ends, low, buckets[key, AT] + buckets[key, HIGH], y_starts[j]) - 1
            while x >= low and ends[x] > best:
                best = max(best, starts[x])
                x -= 1
        latest[j] = best
