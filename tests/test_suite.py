"""The suite about itself: how much is drawn at random, and what the two commands do before anything else."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test

from tests import draws
from tests.engine import test_oracle

ROOT = Path(__file__).parents[1]


def test_the_engine_meets_the_oracle_often_enough() -> None:
    """At least 2,000 random programs in a run, 50,000 in a nightly one."""
    tests = [t for name, t in vars(test_oracle).items() if name.startswith("test_") and is_hypothesis_test(t)]
    assert len(tests) * draws.DEFAULT >= 2_000
    assert len(tests) * draws.NIGHTLY >= 50_000


def test_ci_runs_the_command_of_the_readme_and_nothing_else() -> None:
    script = (ROOT / ".ci" / "run").read_text().splitlines()
    assert script == ["#!/bin/sh", 'cd "$(dirname "$0")/.." && exec make test']
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert re.search(r"^make test\b", (ROOT / "README.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("version", ["", "1.8.0_412", "11.0.2"])
def test_a_missing_or_old_java_is_said_in_one_line_before_anything_else(tmp_path: Path, version: str) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    if version:
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
    # The suite itself may have been started by make, which tells its children so.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    environment["JAVA_HOME"] = str(tmp_path)
    done = subprocess.run(["make", "test"], cwd=ROOT, env=environment, capture_output=True, text=True)
    first = done.stderr.splitlines()[0]
    assert done.returncode != 0
    assert done.stdout == ""
    assert first.startswith(
        f"Spark needs Java 17 or newer, found {version.split('.')[0] or 'none'}: install the package"
    )
