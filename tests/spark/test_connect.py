"""Spark Connect: the same answers without a JVM in the process."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from etalis_py.spark import SparkError, session
from tests.spark.conftest import java
from tests.spark.core import CHECKS
from tests.spark.interpreter import interpreter

NEEDED = ("grpc", "grpc_status", "zstandard")


@pytest.mark.skipif(java() < 17, reason="Spark needs Java 17 or newer, and there is none")
@pytest.mark.skipif(not all(map(importlib.util.find_spec, NEEDED)), reason="Spark Connect needs more packages")
def test_the_core_holds_over_spark_connect(tmp_path: Path) -> None:
    """In a process of its own, because a process has sessions of one kind only."""
    asked = [sys.executable, "-m", "tests.spark.core", "connect"]
    run = subprocess.run(
        asked,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYSPARK_PYTHON": interpreter(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.stdout.split() == [check.__name__ for check in CHECKS], run.stderr[-4000:]


def test_a_session_is_of_one_kind() -> None:
    with pytest.raises(SparkError, match="two different sessions: give one of them"):
        session("local[2]", remote="sc://localhost")


def test_a_server_has_a_log_of_its_own() -> None:
    with pytest.raises(SparkError, match="has its own log"):
        session(remote="sc://localhost", log=sys.stderr.buffer)
