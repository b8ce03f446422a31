"""``etalis run --cores``: the same output as on one core, and a line about what stays on one."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Folder, tick

PAIRS = "SELECT ?c ?x ?y { { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x) }"
TICKS = [tick(n, n * 7 % 5, f"c{n % 3}") for n in range(200)]


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_the_output_is_that_of_one_core(folder: Folder, format: str) -> None:
    folder.write("t.jsonl", "".join(TICKS))
    given = ["run", "-q", PAIRS, "-s", "t.jsonl", "-f", format, "--executor", "rows"]
    one = folder.etalis(*given)
    two = folder.etalis(*given, "--cores", "2")
    assert two.stdout == one.stdout
    assert len(one.stdout.splitlines()) > 100
    assert "reads on one core (its input is less than 16 MB, or packed, or CSV without a mapping)" in two.stderr
    assert "matches by ?c on all cores" in two.stderr
    assert folder.etalis(*given, "--cores", "1").stderr == one.stderr


@pytest.mark.parametrize(
    ("files", "source", "reason"),
    [
        (["t.nq"], "t.nq", "its input is less than 16 MB, or packed, or its times are not next to the graphs"),
        (["t.trig"], "t.trig", "its input is TriG, not CSV, JSON lines or N-Quads"),
        (["a.jsonl", "b.jsonl"], "*.jsonl", "its input is no single file of CSV, JSON lines or N-Quads"),
    ],
)
def test_it_is_told_why_one_core_reads(folder: Folder, files: list[str], source: str, reason: str) -> None:
    for name in files:
        folder.write(name, TICKS[0] if name.endswith(".jsonl") else "")
    done = folder.etalis("run", "-q", PAIRS, "-s", source, "--cores", "2")
    assert f"reads on one core ({reason})" in done.stderr or f"uses one core: {reason}" in done.stderr


def test_what_was_left_out_is_reported_once(folder: Folder) -> None:
    folder.write("t.jsonl", "".join([*TICKS[:50], "{\n", *TICKS[50:]]))
    given = ["run", "-q", PAIRS, "-s", "t.jsonl", "--executor", "rows", "--on-error", "skip", "--dead-letters"]
    one, two = folder.etalis(*given, "one"), folder.etalis(*given, "two", "--cores", "2")
    assert two.stdout == one.stdout
    assert folder.read("two") == folder.read("one") != ""
    assert two.stderr.splitlines()[1:] == one.stderr.splitlines()


def test_an_error_in_the_input_is_that_of_one_core(folder: Folder) -> None:
    folder.write("t.jsonl", "".join([*TICKS[:50], "{\n", *TICKS[50:]]))
    given = ["run", "-q", PAIRS, "-s", "t.jsonl", "--executor", "rows"]
    one, two = folder.etalis(*given, code=1), folder.etalis(*given, "--cores", "2", code=1)
    assert two.stdout == one.stdout != ""
    assert two.stderr.splitlines()[1:] == one.stderr.splitlines()


@pytest.mark.parametrize("option", [["--trace", "q1"], ["--executor", "both"], ["--speed", "real"]])
def test_what_does_not_go_together(folder: Folder, option: list[str]) -> None:
    folder.write("t.jsonl", "".join(TICKS))
    done = folder.etalis("run", "-q", PAIRS, "-s", "t.jsonl", "--cores", "2", *option, code=2)
    assert f"leave it out, or {option[0]}" in done.stderr
    wrong = folder.etalis("run", "-q", PAIRS, "-s", "t.jsonl", "--cores", "none", code=2)
    assert "from 1 to 1024 cores, found 'none'" in wrong.stderr


def test_ctrl_c_ends_all_processes(folder: Folder) -> None:
    folder.write("t.jsonl", "".join(tick(n, n * 7 % 5, f"c{n % 3}") for n in range(20_000)))
    process = folder.start("run", "-q", PAIRS, "-s", "t.jsonl", "--executor", "rows", "--cores", "3")
    assert process.stdout is not None
    assert process.stdout.readline()
    others = children(process.pid)
    assert len(others) == 2
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert not [pid for pid in others if Path(f"/proc/{pid}").exists()]


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
