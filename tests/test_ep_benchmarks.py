"""The benchmarks of [EP] §6: their answers are checked, and a wrong one is seen."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import ep, tsunami
from benchmarks.event_processing import AVERAGE, PRINTED, measure
from etalis_py import compile
from etalis_py.replays.resources import program
from etalis_py.replays.tides import made_records
from etalis_py.replays.tsunami_results import Predicted, StationResult
from tests.processes import PATIENCE
from tests.replays.dart_by_definition import THRESHOLD

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("window", [2, 3, 7])
def test_the_papers_queries_and_a_window_find_the_same_averages(window: int) -> None:
    printed = measure("", compile([program(f"stock/{name}") for name in PRINTED]), 25, window, printed=True)
    sums = sum(min(window, n + 1) for n in range(25))
    assert (printed.complex_events, printed.wrong) == (sums + 25 - window, 0)
    assert measure("", compile(AVERAGE + "P10D"), 25, window, printed=False).wrong == 0
    assert measure("", compile(f"{AVERAGE}{window} EVENTS"), 25, window, printed=False).wrong == 0


def test_a_wrong_average_is_seen() -> None:
    assert measure("", compile(AVERAGE + "P9D"), 25, 7, printed=False).wrong > 0
    assert measure("", compile(AVERAGE + "6 EVENTS"), 25, 7, printed=False).wrong > 0
    assert measure("", compile(program("stock/first_sum")), 25, 7, printed=True).wrong > 0


def test_predictions_are_held_against_the_plain_computation() -> None:
    expected = tsunami.plainly(made_records(1, 2, 1)[0])
    assert any(abs(metres) > THRESHOLD for metres in expected.values()), "the made-up sea has a tsunami"
    right = [Predicted(time, 0.0, metres) for time, metres in expected.items()]
    assert tsunami.wrong(expected, StationResult(right)) == 0
    assert tsunami.wrong(expected, StationResult(right[1:])) == 1
    off = [replace(right[0], difference=right[0].difference + 0.001), *right[1:]]
    assert tsunami.wrong(expected, StationResult(off)) == 1


def test_the_histogram_counts_every_difference_once() -> None:
    rows = dict(tsunami.histogram([0.0, 0.5, 1.0, 29.9, 30.0, 5000.0]))
    assert sum(rows.values()) == 6
    assert (rows["0 to 1"], rows["10 to 30"], rows["30 to 100"], rows["1,000 and more"]) == (2, 1, 1, 1)


def test_all_of_the_papers_tests_are_run() -> None:
    assert [title.split(":")[0] for title, _, _ in ep.tests(True, None)] == ["Test 1", "Test 2", "Test 3", "Test 3"]


def test_the_table_of_figure_1(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.event_processing", "--events", "20", "--plot", str(tmp_path / "f.svg")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "(a) a window of ten days"
    assert lines[1].split() == ["query", "prices", "events", "complex", "seconds", "events/s", "wrong"]
    assert "(b) a window of n prices" in lines
    assert "<svg" in (tmp_path / "f.svg").read_text()
