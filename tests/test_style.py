"""Style and types: what ``make lint`` checks, as tests, so that all that fails in a run stands in one summary."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import types_cache

ROOT = Path(__file__).parents[1]
CHECKS = ("ruff check .", "ruff format --check .", "mypy")


def test_make_lint_runs_the_same_checks() -> None:
    recipe = "".join(f"\t$(BIN)/{check}\n" for check in CHECKS)
    assert f"lint: $(READY)\n{recipe}\n" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("check", CHECKS)
def test_style_and_types(check: str) -> None:
    is_fresh = check == "mypy" and types_cache.begin()
    done = subprocess.run([sys.executable, "-m", *check.split()], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if is_fresh:
        types_cache.keep()
