"""``etalis`` on a terminal (a pseudo-terminal here): the line of progress, the live table, Ctrl-C."""

from __future__ import annotations

import os
import pty
import select
import shlex
import signal
import subprocess
import time
from pathlib import Path

from tests.cli.conftest import COMMAND, Folder, tick


def on_terminal(folder: Folder, *arguments: str, interrupt_at: str = "", output: Path | None = None) -> str:
    """What a terminal shows of standard error (and of standard output, when it goes to no file).

    ``interrupt_at``: Ctrl-C half a second after this text has been shown.
    """
    controller, terminal = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    stdout = output.open("w") if output else os.dup(terminal)
    process = subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder.path, stdin=terminal, stdout=stdout, stderr=terminal, env=environment
    )
    os.close(terminal)
    if isinstance(stdout, int):
        os.close(stdout)
    shown = b""
    while True:
        if not select.select([controller], [], [], 60)[0]:
            process.kill()
            raise AssertionError(f"nothing more was shown for a minute after {shown.decode()!r}")
        try:
            part = os.read(controller, 65_536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
        if interrupt_at and interrupt_at in shown.decode(errors="ignore"):
            interrupt_at = ""
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
    os.close(controller)
    assert process.wait(20) == 0, shown.decode()
    return shown.decode()


def test_progress_tells_events_rate_matches_goals_and_event_time(folder: Folder) -> None:
    folder.write("dated.jsonl", "".join(tick(f"2026-01-01T00:00:{i:02d}Z", 10 + i) for i in range(4)))
    out = folder.path / "out.jsonl"
    shown = on_terminal(folder, "run", "rising.rq", "--stream", "dated.jsonl", "--speed", "1.5x", output=out)
    pictures = shown.split("\r\x1b[2K")
    lines = [p for p in pictures if "live goals" in p]
    assert lines, shown
    assert all(word in lines[-1] for word in ("events", "/s", "matches", "at 2026-01-01T00:00:0")), lines[-1]
    assert "4 events, 6 matches in" in pictures[-1]
    assert len(out.read_text().splitlines()) == 6


def test_a_line_of_progress_never_stands_in_a_line_of_output(folder: Folder) -> None:
    folder.write("slow.jsonl", "".join(tick(i, 10 + i) for i in range(4)))
    shown = on_terminal(folder, "run", "rising.rq", "--stream", "slow.jsonl", "--speed", "2x")
    matches = [line for line in shown.replace("\r\x1b[2K", "\n").splitlines() if line.startswith('{"query"')]
    assert len(matches) == 6
    assert all(line.endswith("}") for line in matches)


def test_a_table_on_a_terminal_stays_as_the_last_picture(folder: Folder) -> None:
    shown = on_terminal(folder, "run", "rising.rq", "--stream", "ticks.jsonl", "--format", "table")
    assert "2 matches" in shown
    assert "│ :acme" in shown
    assert "live goals" not in shown


def test_control_c_on_a_terminal_reports_and_ends_with_success(folder: Folder) -> None:
    folder.write("endless.jsonl", tick(1, 10) + tick(3, 12) + tick(100_000, 13))
    out = folder.path / "out.jsonl"
    shown = on_terminal(
        folder, "run", "rising.rq", "--stream", "endless.jsonl", "--speed", "4x", interrupt_at="2 events", output=out
    )
    assert "stopped: 2 events, 1 match in" in shown
    assert len(out.read_text().splitlines()) == 1


def test_a_dumb_terminal_gets_no_control_characters(folder: Folder) -> None:
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "run", "rising.rq", "--stream", "ticks.jsonl", "--sink", "out.jsonl"],
        cwd=folder.path, stdin=terminal, stdout=terminal, stderr=terminal, env=os.environ | {"TERM": "dumb"},
    )  # fmt: skip
    os.close(terminal)
    assert process.wait(20) == 0
    try:
        shown = os.read(controller, 65_536)
    except OSError:
        shown = b""
    os.close(controller)
    assert shown == b""


def test_a_run_without_a_match_says_what_refused_it_and_how_to_ask_why(folder: Folder) -> None:
    folder.write("falling.csv", "at,company,price,volume\n1,acme,12,5\n3,acme,10,7\n5,acme,9,8\n")
    query = "SELECT * { { EVENT { ?c :price ?x } SEQ EVENT { ?c :price ?y } } WITHIN 10 s FILTER (?y > ?x) }"
    shown = on_terminal(folder, "run", "-q", query, "--stream", "falling.csv", "--format", "csv", "--time=at")
    line = next(text for text in shown.splitlines() if "no matches" in text)
    assert "3 events read, most refused by FILTER (?y > ?x); why: etalis why-not " in line
    assert shown.count("there is no mapping") == 1, "reading again for this line says nothing"
    command = shlex.split(line.partition("why: ")[2])
    assert "--format" not in command
    asked = folder.etalis(*command[1:])
    assert "9 > 10 fails by 1" in asked.stdout


def test_a_run_with_a_match_ends_without_that_line(folder: Folder) -> None:
    assert "no matches" not in on_terminal(folder, "run", "rising.rq", "--stream", "ticks.jsonl")
