"""This engine on the events of a workload.

    python -m benchmarks.peers.ours rows|columns WORKLOAD SIZE

Rows start from ``Event`` objects, as the Java engines start from theirs; columns from an Arrow table.  Prints events,
matches and processor seconds as one JSON object.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.columnar import arrow_columns, spelled
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.definition import Workload
from etalis_py import Engine, compile

LOADING = 20_000


def main(executor: str, name: str, size: int) -> None:
    workload = next(w for w in WORKLOADS if w.name == name)
    events = workload.events(size)
    parts: Sequence[Any] = [events]
    if executor == "columns":
        parts = arrow_columns(events)
        _run(workload, executor, arrow_columns(events[:LOADING]))  # loads the kernels, or compiles them
    matches, seconds = _run(workload, executor, parts)
    print(json.dumps({"events": len(events), "matches": matches, "seconds": seconds}))


def _run(workload: Workload, executor: str, parts: Sequence[Any]) -> tuple[int, float]:
    """The number of matches and the processor seconds; in columns all reports end up as Arrow arrays."""
    known = workload.knowledge()
    engine = Engine(compile(workload.query), policy=workload.policy, background=known, executor=executor)  # type: ignore[arg-type]
    gc.collect()
    begun = time.process_time()
    matches = [spelled(engine.push_all(part)) for part in parts]
    matches.append(engine.close())
    count = sum(map(len, matches))
    return count, time.process_time() - begun


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
