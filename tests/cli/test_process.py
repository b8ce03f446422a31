"""What only a process shows: its exit code, its pipes, and that the entry point is the command."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Folder

RUN = ("run", "rising.rq", "--stream")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((*RUN, "ticks.jsonl"), 0),
        ((*RUN, "nowhere.jsonl"), 1),
        (("run",), 2),
        (("run", "broken.rq", "--stream", "ticks.jsonl"), 2),
        (("--help",), 0),
    ],
    ids=["done", "failed", "usage", "query", "help"],
)
def test_exit_codes(folder: Folder, arguments: tuple[str, ...], code: int) -> None:
    folder.write("broken.rq", "SELECT ?x WHERE { ?x :p }")
    done = folder.process(*arguments, code=code)
    assert bool(done.stderr) == (code > 0)


def test_a_pipe_goes_in_and_a_pipe_comes_out(folder: Folder) -> None:
    ticks = folder.read("ticks.jsonl")
    assert folder.process(*RUN, "-", input=ticks).stdout == folder.process(*RUN, "ticks.jsonl").stdout


@pytest.mark.parametrize(
    "arguments",
    [(*RUN, "ticks.jsonl"), (*RUN, "nowhere.jsonl"), ("check", "rising.rq"), ("run",)],
    ids=["run", "nowhere", "check", "usage"],
)
def test_inside_this_process_it_is_the_same(folder: Folder, arguments: tuple[str, ...]) -> None:
    code = {"ticks.jsonl": 0, "rising.rq": 0, "nowhere.jsonl": 1, "run": 2}[arguments[-1]]
    apart, inside = folder.process(*arguments, code=code), folder.etalis(*arguments, code=code)
    assert (inside.stdout, inside.stderr) == (apart.stdout, apart.stderr)
