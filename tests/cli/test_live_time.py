"""Time that passes without events, on the command line: alerts while nothing is typed, replays that end at a time."""

from __future__ import annotations

import json
import os
import pty
import queue
import subprocess
import threading
import time
from collections.abc import Iterable

import pytest

from tests.cli.conftest import Folder

ABSENT = "SELECT ?o WHERE { ?o :placed ?x } SEQ NOT { ?o :shipped ?y } WITHIN 2 SECONDS"
WINDOW = (
    "SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT2S] WHERE { WINDOW :w { ?o :placed ?x } }"
)
GENEROUS = 30.0


def placed(time: object, order: str = "a") -> str:
    return json.dumps({"time": time, "triples": f":{order} :placed 1 ."}) + "\n"


class Lines:
    """What a process prints, line by line, each within a generous time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._lines: queue.Queue[str] = queue.Queue()
        assert process.stdout is not None
        threading.Thread(target=self._read, args=(process.stdout,), daemon=True).start()

    def _read(self, out: Iterable[str]) -> None:
        for line in out:
            self._lines.put(line)

    def match(self) -> dict:
        return json.loads(self._lines.get(timeout=GENEROUS))

    def is_empty(self) -> bool:
        return self._lines.empty()


@pytest.mark.parametrize(("query", "ends"), [(ABSENT, (103, 113)), (WINDOW, (102, 112))], ids=["absence", "window"])
@pytest.mark.parametrize("idle", [(), ("--idle", "100ms")], ids=["default", "idle"])
def test_it_is_printed_while_nothing_is_written(folder: Folder, query: str, ends: tuple[int, int], idle: tuple) -> None:
    folder.write("q.rq", query)
    process = folder.start("run", "q.rq", "--stream", "s=-", *idle)
    assert process.stdin is not None
    lines = Lines(process)
    for at, end in zip((101, 111), ends, strict=True):
        process.stdin.write(placed(at))
        process.stdin.flush()
        began = time.monotonic()
        assert lines.match()["end"] == end
    assert ends[1] - 111.1 < time.monotonic() - began < GENEROUS
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(timeout=GENEROUS) == 0


def test_the_alert_is_printed_while_nothing_is_typed(folder: Folder) -> None:
    """At a terminal."""
    folder.write("absent.rq", ABSENT)
    keyboard, terminal = pty.openpty()
    process = folder.start("run", "absent.rq", "--stream", "-", stdin=terminal)
    os.close(terminal)
    try:
        os.write(keyboard, placed("2026-01-31T10:00:00Z").encode())
        match = Lines(process).match()
        assert (match["start"], match["end"]) == ("2026-01-31T10:00:00Z", "2026-01-31T10:00:02Z")
        assert process.poll() is None
        os.write(keyboard, b"\x04")  # the end of what is typed
        assert process.wait(timeout=GENEROUS) == 0
    finally:
        process.kill()
        os.close(keyboard)


def test_what_comes_in_time_is_no_alert(folder: Folder) -> None:
    folder.write("absent.rq", ABSENT)
    process = folder.start("run", "absent.rq", "--stream", "-", "--idle", "100ms")
    assert process.stdin is not None
    lines = Lines(process)
    process.stdin.write(placed(100, "warm"))
    process.stdin.flush()
    assert lines.match()["end"] == 102
    process.stdin.write(placed(110) + '{"time": 111, "triples": ":a :shipped 1 ."}\n' + placed(112, "b"))
    process.stdin.flush()
    assert (lines.match()["start"], lines.is_empty()) == (112, True)
    process.communicate(timeout=GENEROUS)


@pytest.mark.parametrize(("until", "ends"), [("6", [3]), ("11", [3, 11]), ("2", []), ("99", [3, 11, 22])])
def test_a_replay_ends_at_a_time(folder: Folder, until: str, ends: list[int]) -> None:
    folder.write("absent.rq", ABSENT)
    folder.write("orders.jsonl", placed(1, "a") + placed(9, "b") + placed(20, "c"))
    done = folder.etalis("run", "absent.rq", "--stream", "orders.jsonl", "--until", until)
    assert [json.loads(line)["end"] for line in done.stdout.splitlines()] == ends


def test_a_live_run_ends_at_a_time(folder: Folder) -> None:
    folder.write("absent.rq", ABSENT)
    process = folder.start("run", "absent.rq", "--stream", "-", "--until", "103")
    assert process.stdin is not None
    process.stdin.write(placed(100))
    process.stdin.flush()
    assert Lines(process).match()["end"] == 102
    assert process.wait(timeout=GENEROUS) == 0  # with its input still open


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--until", "tomorrow"), "--until tomorrow: expected an xsd:dateTime"),
        (("--until", "5", "--engine", "spark"), "--until is for the local engine"),
        (("--idle", "0"), "a silence of more than 0 is wanted"),
    ],
)
def test_what_cannot_be_meant_is_refused(folder: Folder, options: tuple[str, ...], said: str) -> None:
    done = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", *options, code=2)
    assert said in done.stderr
