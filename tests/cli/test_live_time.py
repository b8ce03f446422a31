"""Time that passes without events, on the command line: alerts while nothing is typed, replays that end at a time."""

from __future__ import annotations

import json
import os
import pty
import queue
import socket
import subprocess
import threading
import time
from collections.abc import Iterable

import pytest

from tests.cli.conftest import Folder
from tests.processes import PATIENCE

ABSENT = "SELECT ?o WHERE { ?o :placed ?x } SEQ NOT { ?o :shipped ?y } WITHIN 2 SECONDS"
WINDOW = (
    "SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT2S] WHERE { WINDOW :w { ?o :placed ?x } }"
)


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
        return json.loads(self._lines.get(timeout=PATIENCE))

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
    assert ends[1] - 111.1 < time.monotonic() - began < PATIENCE
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(timeout=PATIENCE) == 0


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
        assert process.wait(timeout=PATIENCE) == 0
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
    process.communicate(timeout=PATIENCE)


@pytest.mark.parametrize(("until", "ends"), [("6", [3]), ("11", [3, 11]), ("2", []), ("99", [3, 11, 22])])
def test_a_replay_ends_at_a_time(folder: Folder, until: str, ends: list[int]) -> None:
    folder.write("absent.rq", ABSENT)
    folder.write("orders.jsonl", placed(1, "a") + placed(9, "b") + placed(20, "c"))
    done = folder.etalis("run", "absent.rq", "--stream", "orders.jsonl", "--until", until)
    assert [json.loads(line)["end"] for line in done.stdout.splitlines()] == ends


@pytest.mark.parametrize(
    ("time", "until", "said"),
    [
        ('"2026-01-30T08:00:00Z"', "8", "the times of the stream are dateTimes, such as 2026-01-30T08:00:00Z"),
        ("8", "2026-01-30T08:00:00Z", "the times of the stream are numbers, such as 8"),
    ],
)
def test_a_time_that_is_not_spelled_as_the_stream_spells_its_times_ends_nothing(
    folder: Folder, time: str, until: str, said: str
) -> None:
    folder.write("ticks.jsonl", f'{{"time": {time}, "triples": ":a :price 1 ."}}\n')
    done = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--until", until, code=2)
    assert (done.stdout, done.stderr) == ("", f"etalis: --until {until}: {said}\n")


def test_the_end_counts_as_the_mapping_of_the_stream_counts(folder: Folder) -> None:
    folder.write("m.toml", 'subject = ":{o}"\npredicate = ":price"\nobject = "{x}"\ntime = "{t}"\ntime_unit = "ms"\n')
    folder.write("t.csv", "t,o,x\n1000,acme,1\n2000,acme,2\n3000,acme,3\n")
    run = ("run", "-q", "SELECT ?x { ?o :price ?x }", "-s", "t.csv", "-m", "m.toml", "--format", "csv")
    assert folder.etalis(*run, "--until", "2500").stdout == "x,start,end\n1,1000,1000\n2,2000,2000\n"


def test_an_end_before_the_first_event_is_told(folder: Folder) -> None:
    done = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--until", "0")
    assert (done.stdout, done.stderr) == (
        "",
        "etalis: warning: the run ends at 0, before the first event, which is at 1: no event was read\n",
    )


def test_a_live_run_ends_at_a_time(folder: Folder) -> None:
    folder.write("absent.rq", ABSENT)
    process = folder.start("run", "absent.rq", "--stream", "-", "--until", "103")
    assert process.stdin is not None
    process.stdin.write(placed(100))
    process.stdin.flush()
    assert Lines(process).match()["end"] == 102
    assert process.wait(timeout=PATIENCE) == 0  # with its input still open


def test_a_file_that_grows_is_followed(folder: Folder) -> None:
    """Its deadlines fall due by the clock, and what is appended is read."""
    folder.write("absent.rq", ABSENT.replace("2 SECONDS", "300 ms"))
    file = folder.write("orders.jsonl", placed(100, "a"))

    def append() -> None:
        with file.open("a") as orders:
            orders.write(placed(101, "b"))

    timer = threading.Timer(0.9, append)
    timer.start()
    options = ("--follow", "--idle", "100ms", "--until", "101.5", "--format", "csv")
    done = folder.etalis("run", "absent.rq", "--stream", "orders.jsonl", *options)
    timer.join()
    assert done.stdout.splitlines() == [
        "o,start,end",
        "http://example.org/a,100,100.3",
        "http://example.org/b,101,101.3",
    ]


def test_a_socket_and_a_file_are_merged_while_both_live(folder: Folder) -> None:
    """The order of the file is shipped in time over the connection, that of the connection never."""
    folder.write("absent.rq", ABSENT.replace("2 SECONDS", "900 ms"))
    folder.write("orders.jsonl", placed(100, "a"))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b'{"time": 100.2, "triples": ":a :shipped 1 ."}\n' + placed(100.2, "b").encode())
                connection.recv(1)  # until the run has ended

        thread = threading.Thread(target=send)
        thread.start()
        sources = ("--stream", f"tcp://127.0.0.1:{server.getsockname()[1]}", "--stream", "orders.jsonl", "--follow")
        done = folder.etalis("run", "absent.rq", *sources, "--idle", "100ms", "--until", "101.2", "--format", "csv")
        thread.join()
    assert done.stdout.splitlines() == ["o,start,end", "http://example.org/b,100.2,101.1"]


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        ("tcp://localhost", "etalis: tcp://localhost: this address has no port\n  write tcp://host:port"),
        ("tcp://nowhere.invalid:99", "etalis: tcp://nowhere.invalid:99: there is no host nowhere.invalid"),
    ],
)
def test_a_wrong_address_is_said(folder: Folder, stream: str, said: str) -> None:
    assert said in folder.etalis("run", "rising.rq", "--stream", stream, code=1).stderr


def test_files_that_come_after_the_start_are_not_followed(folder: Folder) -> None:
    """Nobody would know why their events are missing, so it is said which files are read."""
    folder.write("absent.rq", ABSENT.replace("2 SECONDS", "300 ms"))
    for name in "ab":
        folder.write(f"orders-{name}.jsonl", placed(100, name))
    options = ("--follow", "--idle", "100ms", "--until", "101.5")
    done = folder.etalis("run", "absent.rq", "--stream", "orders-*.jsonl", *options)
    told = "--follow reads the 2 files that match 'orders-*.jsonl' now; files that come later are not read"
    assert done.stderr == f"etalis: {told}\n"
    assert len(done.stdout.splitlines()) == 2


def test_what_has_no_file_is_not_followed(folder: Folder) -> None:
    done = folder.etalis("run", "rising.rq", "--stream", "-", "--follow", code=2)
    assert "--follow is for files that grow" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--until", "tomorrow"), "--until tomorrow: expected an xsd:dateTime"),
        (("--until", "5", "--engine", "spark"), "--until is for the local engine"),
        (("--idle", "0"), "expected a silence longer than 0"),
        (("--follow", "--engine", "spark"), "--follow is for the local engine"),
        (("--follow", "--watch"), "--follow is for those that grow"),
        (("--follow", "--stream", "old.jsonl.gz"), "--follow: old.jsonl.gz cannot be read while it grows"),
        (("--follow", "--stream", "old.parquet"), "--follow: old.parquet cannot be read while it grows"),
    ],
)
def test_what_cannot_be_meant_is_refused(folder: Folder, options: tuple[str, ...], said: str) -> None:
    done = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", *options, code=2)
    assert said in done.stderr


def test_the_first_late_event_is_told_when_it_comes(folder: Folder) -> None:
    """Once: what comes too late after it is counted at the end, which may be months away."""
    folder.write("q.rq", "SELECT ?o { ?o :placed ?x }")
    process = folder.start("run", "q.rq", "--stream", "-")
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(placed(100) + placed(98) + placed(97))
    process.stdin.flush()
    assert process.stderr.readline() == (
        "etalis: an event of 98 was left out, as it came 2 s behind the newest; --lateness D allows for more; how many "
        "there were is said at the end, and by --metrics\n"
    )
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(timeout=PATIENCE) == 0
    assert process.stderr.read().startswith("etalis: 2 events came too late and were left out")
