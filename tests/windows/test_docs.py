"""The snippets of docs/rsp.md run, its queries parse, and the tests of windows that docs/conformance.md names exist."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from benchmarks import windows
from etalis_py import compile
from etalis_py.engine import engine, program
from etalis_py.executors.windows import times

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "rsp.md").read_text(encoding="utf-8")
CONFORMANCE = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("kept_sources")
def test_the_snippets_run() -> None:
    found = doctest.testfile(str(ROOT / "docs" / "rsp.md"), module_relative=False)
    assert found.attempted >= 7
    assert not found.failed


@pytest.mark.usefixtures("kept_sources")
@pytest.mark.parametrize("module", [engine, program, times])
def test_the_examples_in_the_code_run(module: object) -> None:
    found = doctest.testmod(module)  # type: ignore[arg-type]
    assert found.attempted
    assert not found.failed


def test_the_queries_can_be_used() -> None:
    queries = re.findall(r"```sparql\n(.*?)```", TEXT, re.S)
    assert queries
    for query in queries:
        assert compile(query).plans


def test_the_tests_that_are_named_exist() -> None:
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", CONFORMANCE)
    assert len(named) > 15
    for file, name in named:
        assert f"def {name}(" in (ROOT / "tests" / "windows" / file).read_text(encoding="utf-8"), name


def test_the_benchmarks_answer_right() -> None:
    assert windows.average(7_000, 10, runs=1).right
    assert windows.average(3_000, 1, runs=1).right
    measured = windows.csrbench(1, 8, runs=1)
    assert measured.right
    assert measured.evaluations == 8
