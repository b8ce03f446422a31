"""The load benchmark, small: every answer is right, and a wrong one would be noticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.containers_load import Tally, check_window
from tests.processes import PATIENCE

ROOT = Path(__file__).parents[2]


def test_the_benchmark_runs_and_its_answers_are_right() -> None:
    command = [sys.executable, "benchmarks/containers_load.py", "--seconds", "2", "--posts", "60", "--reads", "60"]
    command += ["--push", "10", "--push-rate", "5", "--members", "1000", "--limit-ms", "5000"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all answers were right" in done.stdout


def wrong(*lines: bytes, window: bytes = b'open="1970-01-01T00:00:00Z", close="1970-01-01T00:00:01Z"') -> list[str]:
    """What is found wrong in a window over graphs 1 (at 0.5 s), 2 (at 1 s) and 3 (at 1.5 s), all acknowledged."""
    tally = Tally()
    for number, at in ((1, 500_000), (2, 1_000_000), (3, 1_500_000)):
        tally.acknowledge(at, number, 10.0)
    check_window(tally, 11.0, b"window: " + window, b"".join(lines))
    return tally.wrong


def line(number: int, time: str) -> bytes:
    return f'<s> <http://ex.org/n> "{number}" .\n<s> <http://www.w3.org/ns/sosa/resultTime> "{time}" .\n'.encode()


def test_the_benchmark_notices_wrong_windows() -> None:
    first, second = line(1, "1970-01-01T00:00:00.5Z"), line(2, "1970-01-01T00:00:01Z")
    assert wrong(first, second) == []
    assert "missing" in wrong(first)[0]
    assert "twice" in wrong(first, second, second)[0]
    assert "outside" in wrong(first, second, line(3, "1970-01-01T00:00:01.5Z"))[0]
