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
    assert printed_by("core", "connect", tmp_path).split() == [check.__name__ for check in CHECKS]


@pytest.mark.nightly
@pytest.mark.skipif(java() < 17, reason="Spark needs Java 17 or newer, and there is none")
@pytest.mark.skipif(not all(map(importlib.util.find_spec, NEEDED)), reason="Spark Connect needs more packages")
def test_drawn_programs_have_the_same_ids_in_both_kinds_of_session(tmp_path: Path) -> None:
    """Sixty of them, in batches and in streams that restart."""
    classic, connect = (printed_by("drawn", kind, tmp_path) for kind in ("classic", "connect"))
    assert classic.startswith("60 drawn programs")
    assert classic == connect


def printed_by(module: str, kind: str, folder: Path) -> str:
    run = subprocess.run(
        [sys.executable, "-m", f"tests.spark.{module}", kind],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYSPARK_PYTHON": interpreter(folder)},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    return run.stdout


def test_a_session_is_of_one_kind() -> None:
    with pytest.raises(SparkError, match="two different sessions: give one of them"):
        session("local[2]", remote="sc://localhost")


def test_a_server_has_a_log_of_its_own() -> None:
    with pytest.raises(SparkError, match="has its own log"):
        session(remote="sc://localhost", log=sys.stderr.buffer)
