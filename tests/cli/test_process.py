"""What only a process shows: its exit code, its pipes, and that the entry point is the command."""

from __future__ import annotations

import subprocess
import sys

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


PRESSED = """
import signal, sys

class Pressed:
    def find_spec(self, name, *_):
        if name == {name!r}:
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores Ctrl-C
sys.meta_path.insert(0, Pressed())
sys.argv = ["etalis", *{arguments!r}]
from etalis_py.cli.main import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("etalis_py.cli.options", ("check", "rising.rq")),
        ("etalis_compiler.diagnostics", ("check", "rising.rq")),
        ("etalis_compiler.parser", ("explain", "rising.rq")),
        ("etalis_py.cli.local_run", (*RUN, "ticks.jsonl")),
        ("etalis_py.engine.driver", (*RUN, "ticks.jsonl")),
        ("etalis_py.containers.run_server", ("serve",)),
        ("starlette", ("serve",)),
    ],
)
def test_while_modules_are_imported_ctrl_c_needs_one_line(
    folder: Folder, name: str, arguments: tuple[str, ...]
) -> None:
    script = PRESSED.format(name=name, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", script], cwd=folder.path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "etalis: stopped\n")
