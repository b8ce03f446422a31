"""Runs from and to Kafka that are killed at the points of a checkpoint, while brokers are started again in between."""

from __future__ import annotations

from random import Random

import pytest

from tests.durable.connector_kills import SINKS, SOURCES
from tests.durable.test_connector_kills import killed
from tests.kafka.broker import Broker, broker

__all__ = ["broker"]
PAIRS = [*((source, "kafka") for source in SOURCES), *(("kafka", sink) for sink in SINKS if sink != "kafka")]


@pytest.mark.parametrize(("source", "sink"), [("file", "kafka"), ("kafka", "file"), ("kafka", "kafka")])
def test_the_sink_has_what_the_query_says(broker: Broker, source: str, sink: str) -> None:
    """Each run has brokers of its own; ``broker`` says that they can be had."""
    killed(source, sink, 2, 1)


@pytest.mark.nightly
@pytest.mark.parametrize(("source", "sink"), PAIRS)
def test_every_pair_is_killed_often(broker: Broker, source: str, sink: str) -> None:
    killed(source, sink, 10, Random().randrange(10**6))
