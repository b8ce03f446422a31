"""What the queries of the soak keep does not grow with the stream, in which every key is new some day."""

from __future__ import annotations

from itertools import islice

import pytest

from benchmarks.soak import PREFIX, QUERIES, events
from etalis_py import Engine


@pytest.mark.parametrize("name", QUERIES)
def test_state_does_not_grow(name: str) -> None:
    engine = Engine(PREFIX + QUERIES[name], sweep_every=256)
    kept = []
    for batch in islice(events(1_500), 6):
        engine.push_all(batch)
        kept.append(engine.counters.goals + engine.counters.items)
    assert max(kept[3:]) <= 1.25 * max(kept[:3]) + 20
