"""Runs that are killed at the points of a checkpoint, by source and sink: some of the pairs, all in a nightly run."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest

from tests.durable import services
from tests.durable.connector_kills import SINKS, SOURCES
from tests.durable.test_kills import ROOT
from tests.processes import PATIENCE

NEEDS = {"redis": ("redis-server", "redis-server"), "mqtt": ("mosquitto", "mosquitto"),
         "postgres": ("postgres", "postgresql")}  # fmt: skip
EXTRAS = {"redis": "redis", "mqtt": "paho.mqtt.client", "postgres": "psycopg", "websocket": "websockets",
          "delta": "deltalake", "iceberg": "pyiceberg"}  # fmt: skip
PAIRS = [(source, sink) for source in SOURCES for sink in SINKS if "kafka" not in (source, sink)]
FEW = [("file", "postgres"), ("file", "webhook"), ("redis", "redis"), ("mqtt", "sse"), ("sse", "mqtt"),
       ("sse", "websocket"), ("file", "delta"), ("file", "iceberg")]  # fmt: skip


def killed(source: str, sink: str, count: int, seed: int) -> None:
    for end in {source, sink}:
        if end in EXTRAS:
            pytest.importorskip(EXTRAS[end], reason=f"needs the extra of {end}")
        if end in NEEDS:
            services.program(*NEEDS[end])
    command = [sys.executable, "-m", "tests.durable.connector_kills", str(count), str(seed), source, sink]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE + 60 * count)
    assert (done.returncode, done.stdout) == (0, f"{source} to {sink}: {count} kills\n"), done.stdout + done.stderr


@pytest.mark.parametrize(("source", "sink"), FEW)
def test_the_sink_has_what_the_query_says(source: str, sink: str) -> None:
    killed(source, sink, 2, 1)


@pytest.mark.nightly
@pytest.mark.parametrize(("source", "sink"), PAIRS)
def test_every_pair_is_killed_often(source: str, sink: str) -> None:
    killed(source, sink, 10, Random().randrange(10**6))
