"""``etalis run`` between others: pipes that stay open, interrupts, readers that go away, full disks, a clock."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.conftest import COMMAND, RISES, Folder, rows, tick
from tests.processes import PATIENCE


def test_a_live_stream_shows_matches_as_they_come(folder: Folder) -> None:
    """The open instant closes after a moment of silence, so the match is seen before the input ends."""
    process = folder.start("run", "rising.rq", "--stream", "-")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(tick(1, 10) + tick(3, 12))
    process.stdin.flush()
    assert rows(process.stdout.readline()) == RISES[:1]
    out, errors = process.communicate(timeout=PATIENCE)
    assert (out, errors, process.returncode) == ("", "", 0)


def test_what_grows_without_bound_is_said_where_the_stream_has_no_end(folder: Folder) -> None:
    folder.write("grows.rq", "SELECT ?x WHERE { ?c :price ?x } SEQ { ?c :price ?y }")
    live = folder.etalis("run", "grows.rq", "--stream", "-")
    assert "warning: this keeps everything that may come first for ever" in live.stderr
    assert folder.etalis("run", "grows.rq", "--stream", "ticks.jsonl").stderr == ""


def test_control_c_closes_the_open_instant_and_reports(folder: Folder) -> None:
    process = folder.start("run", "rising.rq", "--stream", "-")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(tick(1, 10) + tick(3, 12) + tick(5, 11))
    process.stdin.flush()
    # The third event closes the instant of the second; its own is open now.
    assert rows(process.stdout.readline()) == RISES[:1]
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert errors.startswith("stopped: 3 events, 2 matches in "), errors
    assert rows(out) == RISES[1:]


def test_control_c_completes_the_file(folder: Folder) -> None:
    process = folder.start("run", "rising.rq", "--stream", "ticks.jsonl", "--speed", "0.5x", "--sink", "out.jsonl")
    while not list(folder.path.glob(".out.jsonl*")):
        time.sleep(0.05)
        assert process.poll() is None
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert errors.startswith("stopped: "), errors
    assert rows(folder.read("out.jsonl")) == []


def test_a_reader_that_goes_away_is_no_failure(folder: Folder) -> None:
    folder.write("many.jsonl", "".join(tick(i, i) for i in range(400)))
    process = folder.start("run", "rising.rq", "--stream", "many.jsonl")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(20) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        *(["run", "rising.rq", "--stream", "ticks.jsonl", "--format", f] for f in ("csv", "json", "table", "trig")),
        ["explain", "rising.rq"],
        ["replay", "stock", "--companies", "5", "--events", "100"],
        ["repl"],
    ],
    ids=["csv", "json", "table", "trig", "explain", "replay", "repl"],
)
def test_a_reader_that_is_gone_before_anything_is_said_is_no_failure(folder: Folder, arguments: list[str]) -> None:
    process = folder.start(*arguments)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate("SELECT ?x { ?c :p ?x }\n\n", timeout=PATIENCE)
    assert (errors, process.returncode) == ("", 0)


FULL_DISKS = {
    "sink": ["run", "rising.rq", "--stream", "ticks.jsonl", "--sink", "/dev/full"],
    "dead letters": ["run", "rising.rq", "--stream", "b.jsonl", "--on-error", "skip", "--dead-letters", "/dev/full"],
    "table": ["run", "rising.rq", "--stream", "ticks.jsonl", "--format", "table"],
    "explain": ["explain", "rising.rq"],
    "replay": ["replay", "stock", "--companies", "5", "--events", "100"],
    "repl": ["repl"],
} | {format: ["run", "rising.rq", "--stream", "ticks.jsonl", "--format", format] for format in ("jsonl", "csv")}


@pytest.mark.parametrize("arguments", FULL_DISKS.values(), ids=FULL_DISKS)
def test_a_full_disk_is_a_failure_with_a_message(folder: Folder, arguments: list[str]) -> None:
    folder.write("b.jsonl", "{nonsense\n")
    with open("/dev/full", "w") as full:
        process = folder.start(*arguments, stdout=full)
        _, errors = process.communicate("SELECT ?x { ?c :p ?x }\n\n", timeout=PATIENCE)
    assert process.returncode == 1
    assert "no space left on the device" in errors
    assert "Traceback" not in errors


CLOSED = {
    "stdin": (["run", "rising.rq", "--stream", "-"], "<&-", 1, "standard input: cannot be read"),
    "stdout": (["run", "rising.rq", "--stream", "ticks.jsonl"], ">&-", 1, "standard output: this is closed"),
    "stdout of explain": (["explain", "rising.rq"], ">&-", 1, "standard output: this is closed"),
    "all": (["run", "rising.rq", "--stream", "ticks.jsonl", "--sink", "out.jsonl"], "<&- >&- 2>&-", 0, ""),
}


@pytest.mark.parametrize(("arguments", "closed", "code", "said"), CLOSED.values(), ids=CLOSED)
def test_a_standard_stream_may_be_closed(
    folder: Folder, arguments: list[str], closed: str, code: int, said: str
) -> None:
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, *arguments]
    done = subprocess.run(command, cwd=folder.path, env=os.environ, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    if not code:
        assert rows(folder.read("out.jsonl")) == RISES


@pytest.mark.parametrize("form", ["csv", "table"])
def test_files_and_pipes_get_utf8_whatever_the_locale_has(folder: Folder, form: str) -> None:
    folder.write("named.jsonl", '{"time": 1, "triples": ":c :name \\"Zoë → 会\\" ."}\n')
    run = [*COMMAND, "run", "-q", "SELECT ?n { ?c :name ?n }", "-s", "named.jsonl", "-f", form]
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(run, cwd=folder.path, env=environment, capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "Zoë → 会" in done.stdout.decode("utf-8")


def test_speed_follows_the_time_of_the_stream(folder: Folder) -> None:
    """Four seconds of stream take two at twice its speed."""
    began = time.monotonic()
    done = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--speed", "2x")
    assert time.monotonic() - began > 1.9
    assert rows(done.stdout) == RISES


# --- what can be read once only, such as <(cat rising.rq) in a shell ---------------------------------------------


@contextmanager
def pipe_with(text: str) -> Iterator[str]:
    """The name of a pipe with a text in it: whoever reads it again finds nothing."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    try:
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)


@pytest.mark.parametrize("command", [("run", "-s", "ticks.jsonl"), ("explain",), ("check",)])
def test_a_query_is_read_once(command: tuple[str, ...], folder: Folder) -> None:
    query = folder.read("rising.rq").replace("SELECT", "REGISTER QUERY rising AS SELECT")
    folder.write("rising.rq", query)
    wanted = folder.etalis(command[0], "rising.rq", *command[1:])
    with pipe_with(query) as pipe:
        found = folder.etalis(command[0], pipe, *command[1:])
    assert (found.stdout, found.stderr) == (wanted.stdout, wanted.stderr)


def test_a_query_from_a_pipe_is_named_as_one_without_a_file(folder: Folder) -> None:
    """The number of a descriptor changes from run to run; ids are those of the same query given as a text."""
    query = folder.read("rising.rq")
    wanted = folder.etalis("run", "-s", "ticks.jsonl", "-f", "jsonl", "-q", query)
    with pipe_with(query) as one, pipe_with(query) as other:
        assert one != other
        for pipe in (one, other):
            assert folder.etalis("run", pipe, "-s", "ticks.jsonl", "-f", "jsonl").stdout == wanted.stdout
    assert '"query":"q1"' in wanted.stdout.replace(" ", "")


def test_an_error_of_a_query_names_the_pipe(folder: Folder) -> None:
    with pipe_with("SELECT ?x { ?x") as pipe:
        assert f"{pipe}:1:15: error: the text ends here" in folder.etalis("check", pipe, code=2).stdout


def test_a_mapping_is_read_once_for_all_its_files(folder: Folder) -> None:
    for name, row in (("a", "1,acme,10"), ("b", "3,acme,12")):
        folder.write(f"{name}.csv", f"t,company,price\n{row}\n")
    mapping = 'time = "{t}"\nsubject = ":{company}"\npredicate = ":price"\nobject = "{price}"\n'
    for streams in (["-s", "a.csv", "-s", "b.csv"], ["-s", "*.csv"]):
        with pipe_with(mapping) as pipe:
            found = folder.etalis("run", "rising.rq", *streams, "-m", pipe)
        assert rows(found.stdout) == RISES[:1]
