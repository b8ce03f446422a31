"""A followed file that another one replaces while a run with a folder reads it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli import in_process
from tests.processes import comes, started


def lines(companies: str, count: int) -> str:
    return "".join(
        json.dumps({"time": at, "triples": f":{companies[at % 3]} :price {at * 7 % 11} ."}) + "\n"
        for at in range(count)
    )


@pytest.mark.parametrize(
    ("moved", "reason"),
    [(True, "another file took its place while it was followed"), (False, "its content differs")],
    ids=["a file in its place", "written anew"],
)
def test_nothing_of_the_other_file_is_matched(tmp_path: Path, moved: bool, reason: str) -> None:
    """The folder still knows the one that was read, so a run that goes on refuses the other one."""
    stream, out = tmp_path / "s.jsonl", tmp_path / "out.jsonl"
    stream.write_text(lines("abc", 30))
    given = ["run", "-q", "SELECT ?c ?x { ?c :price ?x }", "-s", "s.jsonl", "--follow", "-o", "out.jsonl",
             "--checkpoint", "ck", "--checkpoint-every", "50ms"]  # fmt: skip
    with started([sys.executable, "-m", "etalis_py.cli.main", *given], tmp_path) as process:
        assert comes(lambda: out.exists() and out.read_text().count("\n") > 7)
        if moved:
            stream.rename(tmp_path / "s.jsonl.1")
        stream.write_text(lines("abd", 90))
        assert reason in process.communicate()[1]
        assert process.returncode == 1
    assert "http://example.org/d" not in out.read_text()
    done = in_process.run(given, tmp_path, "")
    assert done.returncode == 1
    assert "its content differs" in done.stderr
