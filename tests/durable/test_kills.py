"""Real processes that are killed: a few times in the suite, as often as wanted by ``python -m tests.durable.kills``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_run_that_is_killed_ten_times_has_every_match_once() -> None:
    command = [sys.executable, "-m", "tests.durable.kills", "5", "1", "file", "followed"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["file: 5 kills", "followed: 5 kills"]
