"""The page about the code names files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "how-it-is-built.md").read_text(encoding="utf-8")
ROOMS = {
    "The kernel": "etalis_py/kernel",
    "The executor of rows": "etalis_py/executors/rows",
    "The executor of columns": "etalis_py/executors/columns",
    "The executor of windows": "etalis_py/executors/windows",
}
PATHS = sorted(set(re.findall(r"`((?:etalis_py|compiler|rules|tests)/[\w./-]+)`", PAGE)))


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_is_named_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("title", ROOMS)
def test_the_files_of_a_room_exist(title: str) -> None:
    text = PAGE.split(f"### {title}\n")[1].split("\n### ")[0]
    names = re.findall(r"`(\w+\.py)`", text)
    assert len(names) > 3
    there = {file.name for file in (ROOT / ROOMS[title]).rglob("*.py")}
    assert set(names) <= there, set(names) - there
