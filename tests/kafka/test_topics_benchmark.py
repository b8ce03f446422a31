"""The benchmark from topic to topic, small: it has every match once, and fails where it has not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kafka.broker import Broker, broker

__all__ = ["broker"]
pytest.importorskip("confluent_kafka", reason="needs the extra kafka")
from benchmarks import topics


@pytest.mark.parametrize(("every", "nested"), [(1, False), (100, False), (2, True)])
def test_from_topic_to_topic(broker: Broker, tmp_path: Path, every: int, nested: bool) -> None:
    ticks, alerts = f"ticks{every}", f"alerts{every}"
    topics.fill(broker, [ticks], 5000, every, nested=nested)
    result = topics.measure(broker, tmp_path, 5000, every, [ticks], alerts, nested=nested)
    assert (result.messages, result.matches) == (5000, 5000 // every)
    assert result.checkpoints > 0
    assert 0 < result.with_broker < result.without_broker
    steps = {"start", "consume", "decode", "map", "merge", "engine", "encode", "produce", "checkpoint"}
    assert steps <= result.steps.keys()
    assert sum(result.steps.values()) < result.messages / result.without_broker + 0.1


def match(number: int) -> dict[str, Any]:
    price = topics.price_of(number, 10)
    return {"id": str(number), "bindings": {"s": f"urn:s{number % 997}", "x": price}, "end": number // 1000}


def test_a_wrong_answer_ends_the_benchmark() -> None:
    right = [match(number) for number in range(0, 2000, 10)]
    topics.check(right, 2000, 10)
    with pytest.raises(SystemExit, match="1 matches are there twice"):
        topics.check([*right, right[0]], 2000, 10)
    with pytest.raises(SystemExit, match="1 matches are missing, 0 are wrong"):
        topics.check(right[1:], 2000, 10)
    with pytest.raises(SystemExit, match="0 matches are missing, 1 are wrong"):
        topics.check([*right, match(11)], 2000, 10)
