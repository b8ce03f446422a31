"""How a run is watched and stopped: figures, health, signals."""

from __future__ import annotations

import ast
import http.client
import json
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from etalis_py import Engine
from etalis_py.cli.errors import UsageError
from etalis_py.cli.telemetry import Telemetry, parse_address
from etalis_py.connectors import connect
from etalis_py.durable.describing import described
from etalis_py.durable.keeper import Figures
from etalis_py.engine.driver import Driver
from etalis_py.testing.connectors import Memory
from tests.cli import in_process
from tests.durable.services import free_port
from tests.processes import PATIENCE, comes, started

QUERY = "SELECT ?x { ?c :p ?x }"


def got(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def asked(port: int, method: str, target: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with closing(connection):
        connection.request(method, target)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def figures(text: str) -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(r"^(\w+) (\S+)$", text, re.MULTILINE)}


def seen(port: int) -> dict[str, float]:
    """The figures of a run, none before it answers."""
    with suppress(OSError):
        return figures(got(port, "/metrics")[1])
    return {}


class Kept:
    """A keeper whose checkpoint is overdue by so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.figures = Figures()

    def overdue(self) -> float:
        return self.seconds


def test_figures_and_health_of_a_run() -> None:
    values = [json.dumps({"time": at, "triples": f":c :p {at} ."}).encode() for at in range(5)]
    engine, stream = Engine(QUERY), connect(Memory(values), "memory://m")
    telemetry: Any = Telemetry("0", engine, stream, None)
    for step in Driver(engine, stream).steps():
        telemetry.note(step, 0.5)
    code, text = got(telemetry.port, "/metrics")
    assert code == 200
    assert text.count("# TYPE") == text.count("# HELP") == len(figures(text))
    assert figures(text)["etalis_events_total"] == figures(text)["etalis_matches_total"] == 5
    assert figures(text)["etalis_event_time_seconds"] == 4
    assert figures(text)["etalis_sink_seconds_total"] > 2
    assert "etalis_lag_seconds" not in text, "numbers of the stream are no wall clock"
    assert got(telemetry.port, "/health") == (200, '{"status": "running", "events": 5}\n')
    assert got(telemetry.port, "/")[0] == 404
    assert asked(telemetry.port, "HEAD", "/health") == (200, "")
    assert asked(telemetry.port, "GET", f"http://127.0.0.1:{telemetry.port}/health?x")[0] == 200
    assert asked(telemetry.port, "POST", "/health") == (501, "Unsupported method ('POST')\n")
    telemetry.keeper = Kept(100)
    assert got(telemetry.port, "/health") == (
        503,
        '{"status": "late", "why": "a checkpoint has been due for 100 seconds"}\n',
    )
    telemetry.close()


def test_figures_are_exact() -> None:
    """Alerts subtract them from the clock: six digits of a time of this century are an hour and a half wide."""
    values = [json.dumps({"time": "2026-11-30T17:36:52.25Z", "triples": ":c :p 1 ."}).encode()]
    engine, stream = Engine(QUERY), connect(Memory(values), "memory://m")
    telemetry: Any = Telemetry("0", engine, stream, None)
    for step in Driver(engine, stream).steps():
        telemetry.note(step, 123_456.789)
    telemetry.keeper = Kept(0)
    telemetry.keeper.figures = Figures(at=1_796_060_212.125)
    seen = figures(telemetry.metrics())
    telemetry.close()
    assert seen["etalis_event_time_seconds"] == datetime(2026, 11, 30, 17, 36, 52, 250_000, tzinfo=UTC).timestamp()
    assert seen["etalis_checkpoint_timestamp_seconds"] == 1_796_060_212.125
    assert seen["etalis_sink_seconds_total"] == pytest.approx(3 * 123_456.789, abs=1e-3)


def test_figures_of_a_checkpoint_do_not_wait_for_the_next_step() -> None:
    """Between two steps a run writes checkpoints, and waits for its sink to take their matches."""
    telemetry: Any = Telemetry("0", Engine(QUERY), connect(Memory([]), "memory://m"), None)
    telemetry.note(None, 0.5)
    telemetry.keeper = Kept(0)
    telemetry.keeper.figures = Figures(count=3, bytes=700, seconds=2.0, at=1e9, waited=1.75)
    seen = figures(telemetry.metrics())
    telemetry.close()
    assert seen["etalis_checkpoints_total"] == 3
    assert seen["etalis_checkpoint_bytes"] == 700
    assert seen["etalis_checkpoint_seconds"] == 2
    assert seen["etalis_checkpoint_timestamp_seconds"] == 1e9
    assert seen["etalis_sink_seconds_total"] == 0.5 + 1.75


def test_who_goes_away_leaves_nothing_in_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    telemetry = Telemetry("0", Engine(QUERY), connect(Memory([]), "memory://m"), None)
    with socket.create_connection(("127.0.0.1", telemetry.port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closed by a reset
        client.sendall(b"GET /met")
        time.sleep(0.3)
    time.sleep(0.3)
    assert got(telemetry.port, "/health")[0] == 200
    telemetry.close()
    assert capfd.readouterr().err == ""


def test_memory_is_that_of_the_process_and_not_of_the_one_that_started_it() -> None:
    """What a system keeps for a child begins with the memory of the parent."""
    held = bytearray(256 * 2**20)
    command = "from etalis_py.cli.telemetry import _memory; print(sorted(_memory().items()))"
    out = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout
    (_, most), (_, now) = ast.literal_eval(out)
    assert 0 < now <= most < len(held)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="write a port, as 9100"):
        parse_address("localhost:http")


def test_a_live_run_says_at_once_that_its_mapping_makes_nothing(tmp_path: Path) -> None:
    """It may last for months, so it is no use to say so at the end; then it is not said again."""
    (tmp_path / "s.jsonl").write_text('{"at": 1, "id": "a", "value": 2}\n')
    mapping = ['time = "{at}"', "[[triple]]", 'subject = ":{id}"', 'predicate = ":p"', 'object = "{valeu}"']
    (tmp_path / "m.toml").write_text("\n".join(mapping))
    command = [sys.executable, "-m", "etalis_py.cli.main", "run", "-q", QUERY, "-s", "s.jsonl", "-m", "m.toml"]
    with started([*command, "--follow", "--idle", "100ms"], tmp_path) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        process.terminate()
        rest = process.communicate()[1]
    assert said.startswith("etalis: warning: s.jsonl: no event was made of it; the mapping uses valeu")
    assert "no event was made" not in rest
    assert process.returncode == 0


def test_a_signal_commits_and_ends_the_command_with_0(tmp_path: Path) -> None:
    """While it runs, it answers; once stopped, all that it has read is committed."""
    port = free_port()
    (tmp_path / "s.jsonl").write_text("".join(f'{{"time": {at}, "triples": ":c :p {at} ."}}\n' for at in range(9)))
    given = ["run", "-q", QUERY, "-s", "s.jsonl", "--follow", "-o", "out.jsonl", "--checkpoint", "ck"]
    more = ["--checkpoint-every", "1h", "--idle", "1h", "--metrics", str(port)]
    command = [sys.executable, "-m", "etalis_py.cli.main", *given, *more]
    with started(command, tmp_path) as process:
        assert comes(lambda: seen(port).get("etalis_events_total") == 9)
        assert seen(port)["etalis_checkpoints_total"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, "it does not wait for the hour of silence"
    values = [json.loads(line)["bindings"]["x"]["value"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert values == [str(at) for at in range(8)], "the last instant is open, so that more of it can come"


def until(text: str, process: subprocess.Popen[str]) -> list[str]:
    """The lines on standard error up to one with a text."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if text in line:
            return lines
    raise AssertionError("".join(lines))


class Followed:
    """A command that follows a file."""

    def __init__(self, process: subprocess.Popen[str], path: Path) -> None:
        self.process, self.path = process, path

    def grow(self, *times: int) -> None:
        with self.path.open("a") as file:
            file.writelines(f'{{"time": {at}, "triples": ":c :p {at} ."}}\n' for at in times)

    def next_match(self) -> tuple[str, str]:
        assert self.process.stdout is not None
        record = json.loads(self.process.stdout.readline())
        return record["query"], record["bindings"]["x"]["value"]

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        rest = self.process.communicate()[1]
        assert self.process.returncode == 0, rest


@contextmanager
def followed(folder: Path, *more: str) -> Iterator[Followed]:
    path = folder / "s.jsonl"
    path.write_text("")
    command = [sys.executable, "-m", "etalis_py.cli.main", "run", "-s", "s.jsonl", "--follow", *more]
    with started(command, folder) as process:
        yield Followed(process, path)


def test_sighup_reads_the_queries_again(tmp_path: Path) -> None:
    """The goals of a query that stays are kept; a file with a mistake runs on as it was."""
    (tmp_path / "alerts").mkdir()
    (tmp_path / "alerts/a.rq").write_text("SELECT ?x { { ?c :p 1 } SEQ { ?c :p ?x } }")
    (tmp_path / "alerts/b.rq").write_text("SELECT ?x { ?c :p ?x FILTER (?x = 2) }")
    with followed(tmp_path, "--queries", "alerts", "--idle", "100ms") as run:
        until("running alerts, 2 files; SIGHUP reads them again", run.process)
        run.grow(1, 2, 3)
        assert sorted([run.next_match(), run.next_match()]) == [("a", "2"), ("b", "2")]
        (tmp_path / "alerts/b.rq").write_text("SELECT ?x { ?c :p ?x FILTER (?x = 4) }")
        (tmp_path / "alerts/a.rq").write_text("SELECT")
        (tmp_path / "alerts/c.rq").write_text("SELECT ?x { ?c :p ?x FILTER (?x > 4) }")
        run.process.send_signal(signal.SIGHUP)
        said = until("alerts has been read again, 3 files run", run.process)
        assert any("alerts/a.rq: what it held before runs on" in line for line in said)
        run.grow(4, 5, 6)
        found = {run.next_match() for _ in range(5)}
        assert found == {("a", "3"), ("a", "4"), ("b", "4"), ("a", "5"), ("c", "5")}
        run.end()


def test_a_folder_with_a_mistake_does_not_start_where_only_sighup_would_mend_it(tmp_path: Path) -> None:
    (tmp_path / "alerts").mkdir()
    (tmp_path / "alerts/a.rq").write_text("SELECT")
    with followed(tmp_path, "--queries", "alerts") as run:
        assert "a.rq:1:" in run.process.communicate()[1]
        assert run.process.returncode == 2


def test_sighup_does_not_end_a_run_whose_queries_stay(tmp_path: Path) -> None:
    (tmp_path / "alerts").mkdir()
    (tmp_path / "alerts/a.rq").write_text(QUERY)
    port = free_port()
    with followed(
        tmp_path, "--queries", "alerts", "--checkpoint", "ck", "-o", "o.jsonl", "--metrics", str(port)
    ) as run:
        run.grow(1, 2)
        assert comes(lambda: seen(port).get("etalis_events_total") == 2)
        run.process.send_signal(signal.SIGHUP)
        run.grow(3)
        until("with --checkpoint the queries stay the same: the run goes on", run.process)
        run.end()


def test_messages_as_json(tmp_path: Path) -> None:
    """Each message is an object, whatever it is about; a query with a mistake is one, of several lines."""
    (tmp_path / "s.jsonl").write_text('{"time": 1, "triples": ":c :p 1 ."}\nbroken\n')

    def run(*more: str) -> tuple[int, list[dict[str, str]]]:
        command = [sys.executable, "-m", "etalis_py.cli.main", "run", "-s", "s.jsonl", "--log", "json", *more]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, [json.loads(line) for line in done.stderr.splitlines()]

    code, said = run("-q", QUERY)
    assert (code, said[-1]["level"]) == (1, "error")
    assert said[-1]["message"].startswith("s.jsonl:2:")
    code, said = run("-q", QUERY, "--on-error", "skip", "-o", "o.strange")
    assert code == 0
    assert [one["level"] for one in said] == ["warning", "info"]
    assert said[0]["message"].startswith("no format has the ending .strange")
    code, said = run("-q", "SELECT ?x { ?c }")
    assert (code, len(said), said[0]["level"]) == (2, 1, "error")
    assert "\n" in said[0]["message"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", said[0]["time"])


def test_a_checkpoint_says_from_where_only_what_can_be_read_again(tmp_path: Path) -> None:
    lines = "".join(f'{{"time": {at}, "triples": ":c :p {at} ."}}\n' for at in range(3))
    (tmp_path / "s.jsonl").write_text(lines)
    said = {}
    for source, more in (("-", ()), ("s.jsonl", ("--follow", "--until", "1"))):
        command = ["run", "-q", QUERY, "-s", source, *more, "-o", f"out{source}.jsonl", "--checkpoint", f"ck{source}"]
        assert in_process.run(command, tmp_path, lines).returncode == 0
        said[source] = "\n".join(described(tmp_path / f"ck{source}"))
    assert "source standard input: 3 events\n" in said["-"]
    assert "source s.jsonl: 3 events, read again from byte " in said["s.jsonl"]
