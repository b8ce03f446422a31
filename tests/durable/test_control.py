"""How a run is watched and stopped: figures, health, signals."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from etalis_py import Engine
from etalis_py.cli.errors import UsageError
from etalis_py.cli.telemetry import Telemetry, parse_address
from etalis_py.connectors import connect
from etalis_py.engine.driver import Driver
from etalis_py.testing.connectors import Memory
from tests.durable.services import free_port

QUERY = "SELECT ?x { ?c :p ?x }"


def got(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def figures(text: str) -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(r"^(\w+) (\S+)$", text, re.MULTILINE)}


class Kept:
    """A keeper whose checkpoint is overdue by so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.figures = type("Figures", (), {"at": None})

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
    telemetry.keeper = Kept(100)
    assert got(telemetry.port, "/health") == (
        503,
        '{"status": "late", "why": "a checkpoint has been due for 100 seconds"}\n',
    )
    telemetry.close()


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="write a port, as 9100"):
        parse_address("localhost:http")


def test_a_signal_commits_and_ends_the_command_with_0(tmp_path: Path) -> None:
    """While it runs, it answers; once stopped, all that it has read is committed."""
    port = free_port()
    (tmp_path / "s.jsonl").write_text("".join(f'{{"time": {at}, "triples": ":c :p {at} ."}}\n' for at in range(9)))
    given = ["run", "-q", QUERY, "-s", "s.jsonl", "--follow", "-o", "out.jsonl", "--checkpoint", "ck"]
    more = ["--checkpoint-every", "1h", "--idle", "1h", "--metrics", str(port)]
    command = [sys.executable, "-m", "etalis_py.cli.main", *given, *more]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 40
        while True:
            assert time.monotonic() < end
            try:
                seen = figures(got(port, "/metrics")[1])
            except OSError:
                seen = {}
            if seen.get("etalis_events_total") == 9:
                break
            time.sleep(0.05)
        assert seen["etalis_checkpoints_total"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0, "it does not wait for the hour of silence"
    values = [json.loads(line)["bindings"]["x"]["value"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert values == [str(at) for at in range(8)], "the last instant is open, so that more of it can come"
