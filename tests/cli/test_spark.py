"""``--engine spark``: the matches of the local engine, byte for byte; what is refused; quiet, and stopped by Ctrl-C."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from etalis_py import Event, event
from etalis_py.cli.interrupt import Interrupt
from etalis_py.cli.spark import difference, failure_of, java_version, without_traces
from etalis_py.spark.stream_runs import InTime
from etalis_py.streams import Punctuation
from tests.cli.conftest import RISING, Folder, tick, until_it_listens
from tests.cli.test_windows import MIXED, ROOMS, SEEN
from tests.processes import PATIENCE, comes, ended
from tests.spark.interpreter import interpreter

ROOT = Path(__file__).parents[2]
SPARK = ("--engine", "spark", "--master", "local[2]", "--shards", "2")
needs_java = pytest.mark.skipif(java_version() < 17, reason="Spark needs Java 17 or newer, and there is none")

# Sharded, derived, ordered by itself, counted in a window, answered at the end, and known before the stream begins.
PROGRAM = {
    "rising.rq": RISING,
    "up.rq": "CONSTRUCT { ?c :up ?y } WHERE { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x)",
    "twice.rq": "SELECT ?c ?x ?y WHERE { ?c :up ?x } SEQ { ?c :up ?y }",
    "first.rq": "SELECT ?c ?x WHERE { ?c :price ?x } ORDER BY DESC(?x)",
    "count.rq": "SELECT ?c (COUNT(*) AS ?n) WHERE { ?c :price ?x } WITHIN 3 EVENTS GROUP BY ?c",
    "ask.rq": "ASK { ?c :nothing ?x }",
    "one.rq": "SELECT ?x WHERE { BIND (1 AS ?x) }",
    "firms.rq": "SELECT ?c ?k WHERE { ?c :kind ?k }",
    "kinds.rq": "SELECT ?c ?x ?k WHERE { ?c :price ?x OPTIONAL { ?c :kind ?k } }",
}
KINDS = "@prefix : <http://example.org/> . :acme :kind :big . :bolt :kind :small ."
LATE = [4, 9, 17]  # these events come after one that is later


def ticks() -> str:
    """Three companies; some events of one instant, some that come late."""
    lines = [tick(n // 3, (n * n * 5) % 13, ("acme", "bolt", "cord")[n % 3]) for n in range(30)]
    for place in LATE:
        lines[place], lines[place + 3] = lines[place + 3], lines[place]
    return "".join(lines)


def seen_lines() -> Iterator[str]:
    for at, who, room in SEEN:
        line = {"time": at, "triples": f"@prefix : <http://example.org/> . :{who} :isIn :{room} ."}
        yield json.dumps(line) + "\n"


COMMANDS: dict[str, tuple[str, ...]] = {
    "run": ("run", *PROGRAM, "--stream", "ticks.jsonl", "--background", "kinds.ttl", "--keep-order"),
    "in order": ("run", *PROGRAM, "--stream", "ticks.jsonl", "--background", "kinds.ttl", "--lateness", "1s"),
    "recent": ("run", "rising.rq", "twice.rq", "up.rq", "--stream", "ticks.jsonl", "--policy", "recent"),
    "skip": ("run", "rising.rq", "--stream", "broken.jsonl", "--on-error", "skip", "--format", "csv"),
    "from": ("run", "from.rq", "--stream", "ticks.jsonl"),
    "updates": ("run", *PROGRAM, "--stream", "ticks.jsonl", "-b", "kinds.ttl", "--background-stream", "u.jsonl"),
    "updates beside windows": ("run", "mixed.rq", "--stream", "social=seen.jsonl", "--background-stream", "u.jsonl"),
    "folder": ("run", "--queries", "alerts", "--stream", "ticks.jsonl"),
    "windows": ("run", "rooms.rq", "ranked.rq", "--stream", "social=seen.jsonl"),
    "windows and rules": ("run", "mixed.rq", "--stream", "social=seen.jsonl"),
    "stock": ("replay", "stock", "--companies", "20", "--events", "1500", "--format", "jsonl"),
    "tsunami": ("replay", "tsunami", "--stations", "1", "--days", "2", "--format", "jsonl"),
    "tsunami table": ("replay", "tsunami", "--stations", "1", "--days", "1"),
}
TOLD = ("--checkpoint", "told")
ALONE: dict[str, tuple[str, ...]] = {
    # The delivery replay has an answer-set program in the loop.
    "both": ("replay", "delivery", "--agents", "2", "--engine", "both", "--master", "local[2]"),
    "dead": ("run", "rising.rq", "--stream", "ticks.jsonl", "--keep-order", "--dead-letters", "spark.dead", *SPARK),
    "dead here": ("run", "rising.rq", "--stream", "ticks.jsonl", "--keep-order", "--dead-letters", "local.dead"),
    "day 1": ("run", "rising.rq", "--stream", "day1.jsonl", "--checkpoint", "days", "--revise", "2s", *SPARK),
    "day 2": ("run", "rising.rq", "--stream", "day2.jsonl", "--checkpoint", "days", "--revise", "2s", *SPARK[:4]),
    "days here": ("run", "rising.rq", "--stream", "days.jsonl", "--revise", "2s"),
    "days net": ("run", "rising.rq", "--stream", "days.jsonl", "--revise", "2s", "--format", "json", *SPARK),
    "days net here": ("run", "rising.rq", "--stream", "days.jsonl", "--revise", "2s", "--format", "json"),
    "other shards": ("run", "rising.rq", "--stream", "day2.jsonl", "--checkpoint", "days", *SPARK[:4], "--shards", "3"),
    "limited": ("run", "rising.rq", "--stream", "ticks.jsonl", *SPARK, "--limit", "goals=1"),
    "moved": ("checkpoint", "days", "rising.rq", "--revise", "2s", "--shards", "3", "--output", "days3", *SPARK[2:4]),
    "moved in bounds": (
        "checkpoint",
        "days",
        "rising.rq",
        "--revise",
        "2s",
        "--shards",
        "3",
        "--output",
        "days4",
        *SPARK[2:4],
        "--limit",
        "goals=1",
    ),
    "told 1": ("run", "kinds.rq", "--stream", "day1.jsonl", "--background-stream", "u1.jsonl", *SPARK, *TOLD),
    "told 2": ("run", "kinds.rq", "--stream", "day3.jsonl", "--background-stream", "u2.jsonl", *SPARK[:4], *TOLD),
    "told here": ("run", "kinds.rq", "--stream", "told.jsonl", "--background-stream", "u.jsonl"),
    "untold": ("run", "kinds.rq", "--stream", "day3.jsonl", *SPARK[:4], *TOLD),
    "bad update": ("run", "kinds.rq", "--stream", "day1.jsonl", "--background-stream", "bad.jsonl", *SPARK),
    "slip": ("run", "slip.rq", "--stream", "ticks.jsonl", *SPARK),
    "slip here": ("run", "slip.rq", "--stream", "ticks.jsonl"),
    "too much": ("run", "endless.rq", "--stream", "ticks.jsonl", *SPARK),
}

Done = dict[str, tuple[int, str, str]]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """Everything that needs Spark, in one process: name → exit code, output, errors; ``name`` + " here": local."""
    path = tmp_path_factory.mktemp("spark")
    for name, text in PROGRAM.items():
        (path / name).write_text(text)
    (path / "ticks.jsonl").write_text(ticks())
    (path / "broken.jsonl").write_text(tick(1, 10) + "nonsense\n" + tick(3, 12))
    (path / "day1.jsonl").write_text(tick(1, 10) + tick(3, 90) + tick(4, 5))
    back = tick(3, 90).replace("}", ', "retract": true}')
    (path / "day2.jsonl").write_text(
        back + tick(3, 90) + back + tick(3, 12) + tick(1, 99) + back + tick(2, 11) + tick(5, 13) + tick(6, 1)
    )
    (path / "days.jsonl").write_text((path / "day1.jsonl").read_text() + (path / "day2.jsonl").read_text())
    (path / "day3.jsonl").write_text(tick(5, 20) + tick(7, 21, "bolt") + tick(9, 22) + tick(30, 1))
    (path / "told.jsonl").write_text((path / "day1.jsonl").read_text() + (path / "day3.jsonl").read_text())
    updates = [(2, "acme", "big", "tiny"), (3, "cord", "", "new"), (6, "bolt", "small", "odd"), (8, "acme", "tiny", "")]
    lines_of = [
        json.dumps({"time": t, "remove": f":{c} :kind :{old} ." * bool(old), "add": f":{c} :kind :{new} ." * bool(new)})
        for t, c, old, new in updates
    ]
    for name, some in (
        ("u", lines_of),
        ("u1", lines_of[:2]),
        ("u2", lines_of[2:]),
        ("bad", ['{"time": 1, "add": "x"}']),
    ):
        (path / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in some))
    (path / "alerts").mkdir()
    for number, company in enumerate(("acme", "bolt", "cord", "acme", "dune")):
        body = f"{{ :{company} :price ?x }} SEQ {{ :{company} :price ?y }} FILTER (?y > ?x + {number})"
        (path / "alerts" / f"alert{number}.rq").write_text(f"SELECT ?x ?y WHERE {body}")
    (path / "rooms.rq").write_text(ROOMS)
    (path / "ranked.rq").write_text(f"{ROOMS} ORDER BY DESC(?room)")
    (path / "mixed.rq").write_text(MIXED)
    (path / "seen.jsonl").write_text("".join(seen_lines()))
    (path / "kinds.ttl").write_text(KINDS)
    (path / "from.rq").write_text("SELECT ?c ?x ?k FROM <kinds.ttl> WHERE { ?c :price ?x . ?c :kind ?k }")
    (path / "slip.rq").write_text("SELECT ?c ?x WHERE { ?c :pirce ?x }")
    (path / "endless.rq").write_text(
        "CONSTRUCT { ?c :price ?y } WHERE { ?c :price ?x BIND (?x + 1 AS ?y) } SELECT ?x WHERE { ?c :price ?x }"
    )
    lines = {name: (*command, *SPARK) for name, command in COMMANDS.items()}
    lines |= {name + " here": command for name, command in COMMANDS.items()} | ALONE
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "cli" / "many.py")],
        input=json.dumps(list(lines.values())),
        cwd=path,
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": interpreter(tmp_path_factory.mktemp("interpreter"))},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    results = json.loads(ran.stdout.splitlines()[-1])
    return path, dict(zip(lines, map(tuple, results), strict=True))


# --- the same matches ------------------------------------------------------------------------------------------------


@needs_java
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "tsunami table"])
def test_spark_writes_what_the_local_engine_writes(done: tuple[Path, Done], name: str) -> None:
    code, output, errors = done[1][name]
    assert (code, output) == done[1][name + " here"][:2], errors
    assert output


@needs_java
def test_the_program_of_these_tests_has_something_to_order(done: tuple[Path, Done]) -> None:
    found = [json.loads(line) for line in done[1]["in order"][1].splitlines()]
    counts = Counter(match["query"] for match in found)
    assert set(counts) == {name.removesuffix(".rq") for name in PROGRAM}
    assert [match["query"] for match in found if match["start"] is None] == ["one", "ask", "firms", "firms"]
    assert (found[0]["query"], [match["query"] for match in found[-3:]]) == ("one", ["ask", "firms", "firms"])
    assert counts["first"] == 30
    assert len({match["end"] for match in found}) < len(found) / 3


@needs_java
def test_late_events_are_counted_and_kept_as_by_the_local_engine(done: tuple[Path, Done]) -> None:
    path, results = done
    late = [[x for x in results[run][2].splitlines() if "too late" in x] for run in ("run", "run here")]
    assert late[0] == late[1]
    assert "events came too late and were left out" in late[0][-1]
    assert (path / "spark.dead").read_text() == (path / "local.dead").read_text()
    assert "came too late" not in results["in order"][2]


@needs_java
def test_what_runs_in_one_shard_is_one_line_of_errors(done: tuple[Path, Done]) -> None:
    line, *others = done[1]["in order"][2].splitlines()
    assert (
        others == done[1]["in order here"][2].splitlines() == ["etalis: warning: the predicate :nothing never occurred"]
    )
    assert line.startswith("etalis: first, ask, one: in one shard, whatever --shards says: ORDER BY")
    assert "ASK answers once for all shards" in line
    assert done[1]["skip"][2].splitlines() == done[1]["skip here"][2].splitlines()


@needs_java
def test_a_predicate_that_never_occurred_is_told_as_by_the_local_engine(done: tuple[Path, Done]) -> None:
    code, output, errors = done[1]["slip"]
    assert (code, output, errors) == done[1]["slip here"]
    assert (output, errors.count("the predicate :pirce never occurred; did you mean :price?")) == ("", 1)


@needs_java
def test_a_replay_has_the_same_table(done: tuple[Path, Done]) -> None:
    there, here = (done[1][name][1].splitlines() for name in ("tsunami table", "tsunami table here"))
    assert there[:-1] == here[:-1]
    assert "21418" in there[2]
    assert there[-1].endswith("(Spark, local[2], 2 shards)")


@needs_java
def test_both_engines_are_compared(done: tuple[Path, Done]) -> None:
    code, output, errors = done[1]["both"]
    lines = output.splitlines()
    assert (code, errors) == (0, "")
    count = lines[-3].split(" events, ")[1].split()[0]
    assert lines[-2] == "the same once more, on Spark"
    assert lines[-1].startswith(f"Spark found the same {count} matches, by their ids, in ")
    assert int(count) > 100


@needs_java
def test_a_run_goes_on_in_its_folder(done: tuple[Path, Done]) -> None:
    """The second call corrects what the first one had; the last instant of each is open."""
    first, second, here = (list(map(json.loads, done[1][n][1].splitlines())) for n in ("day 1", "day 2", "days here"))
    shown = [
        (m.get("retracted", False), *(m["bindings"][v]["value"] for v in ("low", "high"))) for m in (*first, *second)
    ]
    assert shown[0] == (False, "10", "90")
    assert sorted(shown[1:]) == [
        *((False, *pair) for pair in (("10", "11"), ("10", "12"), ("10", "13"), ("11", "12"), ("11", "13"))),
        *((False, *pair) for pair in (("12", "13"), ("5", "13"))),
        (True, "10", "90"),
    ]
    assert net_of([*first, *second]) == net_of(here)
    said = done[1]["day 2"][2], done[1]["days here"][2]
    assert ["2 events came too late, or withdrew what never was" in errors for errors in said] == [True, True]
    code, _, errors = done[1]["other shards"]
    assert (code, errors) == (
        2,
        "etalis: the checkpoint days was made with 2 shards, now 3 are asked for: go on with 2, or make a folder "
        "for 3 of it with etalis checkpoint\n",
    )


@needs_java
def test_a_failure_on_a_worker_is_said_in_the_words_of_the_engine(done: tuple[Path, Done]) -> None:
    code, output, errors = done[1]["too much"]
    first, second = errors.splitlines()[-2:]
    assert (code, output) == (1, "")
    assert first.startswith("etalis: the recursion through query q1 did not end within 100000 rounds")
    log = second.removeprefix("  Spark's own log is ")
    assert Path(log).exists()
    Path(log).unlink()


@needs_java
def test_updates_of_the_background_go_on_in_the_folder(done: tuple[Path, Done]) -> None:
    first, second, here = (list(map(json.loads, done[1][n][1].splitlines())) for n in ("told 1", "told 2", "told here"))
    # What is open at the end of the second call is reported here only.
    assert [m["id"] for m in (*first, *second)] == [m["id"] for m in here if m["end"] < 30]
    kinds = [m["bindings"].get("k", {}).get("value", "")[19:] for m in here]
    assert kinds == ["", "tiny", "tiny", "tiny", "odd", "", ""]
    code, _, errors = done[1]["untold"]
    assert (code, "the checkpoint told was made with updates of the background" in errors) == (2, True)


@needs_java
def test_an_update_that_cannot_be_read_stops_the_run(done: tuple[Path, Done]) -> None:
    code, output, errors = done[1]["bad update"]
    assert (code, output) == (1, "")
    assert errors.startswith("etalis: bad.jsonl:1: this is not Turtle")


def net_of(matches: list[dict[str, Any]]) -> set[str]:
    net: dict[str, bool] = {match["id"]: "retracted" not in match for match in matches}
    return {name for name, holds in net.items() if holds}


@needs_java
def test_a_corrected_stream_has_the_net_answer_of_the_local_engine(done: tuple[Path, Done]) -> None:
    there, here = done[1]["days net"], done[1]["days net here"]
    assert (there[0], json.loads(there[1])) == (0, json.loads(here[1]))
    assert [("2 events came too late" in errors) for _, _, errors in (there, here)] == [True, True]


# --- a process of its own --------------------------------------------------------------------------------------------


@needs_java
def test_control_c_ends_a_run_that_spark_has_not_finished(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(folder.path))
    process = folder.start("run", "rising.rq", "--stream", "ticks.jsonl", "--sink", "out.jsonl", *SPARK)
    logs = folder.path.glob
    assert comes(lambda: process.poll() is not None or any(log.stat().st_size for log in logs("etalis-spark-*.log")))
    assert process.poll() is None, process.communicate()
    started = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output, errors) == (0, "", "stopped before Spark was done: nothing was written\n")
    assert started
    assert ended(started), "Spark's JVM stayed behind"
    assert not (folder.path / "out.jsonl").exists()
    assert not list(folder.path.glob("etalis-*"))


@needs_java
def test_control_c_in_the_local_half_of_a_replay_on_both_ends_it(folder: Folder) -> None:
    process = folder.start("replay", "stock", "--companies", "200", "--events", "2000000", "--engine", "both")
    until_it_listens(process)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert "results cover only these\n" in errors
    assert " events, " in output.splitlines()[-1]  # no word of Spark after it


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--explain-matches"], "--explain-matches needs the events behind a match in one engine"),
        (["--timeline", "a.svg"], "--timeline draws the events behind a match"),
        (["--speed", "10x"], "--speed takes events at the speed of their own time"),
        (["--metrics", "9100"], "--metrics is for the local engine; from Python, etalis_py.spark.matches counts with"),
        (["--background-refresh", "0s"], "--background-refresh reads the tables of one engine again, and Spark has"),
        (["--checkpoint", "ticks.jsonl"], "checkpoint='ticks.jsonl' is a file, and a run keeps a folder: give a name"),
        (["--checkpoint", "damaged"], "etalis.json is damaged (Input data was truncated): restore the folder from a"),
        (["--stream", "s=http://localhost:1/s/"], "it has no end, and Spark begins when all events are there"),
        (["--queries", ".", "--watch"], "--watch is for the local engine, because Spark begins when all events are"),
        (["--master", "there"], "--master there: write local[2]"),
        (["--master", "local[0]"], "--master local[0]: write local[2]"),
        (["--shards", "0"], "from 1 to 1024 shards"),
    ],
)
def test_what_has_no_answer_on_spark_is_refused(folder: Folder, arguments: list[str], expected: str) -> None:
    (folder.path / "damaged").mkdir()
    (folder.path / "damaged" / "etalis.json").write_text("{")
    done = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--engine", "spark", *arguments, code=2)
    assert expected in done.stderr
    assert len(done.stderr.splitlines()) <= 2 or "usage" in done.stderr


@pytest.mark.parametrize("name", ["limited", "moved in bounds"])
def test_shards_have_the_limits_of_the_command(done: tuple[Path, Done], name: str) -> None:
    """A checkpoint was moved with the default limits, so one with more could not be moved."""
    assert done[1]["moved"][0] == 0, done[1]["moved"]
    code, _, errors = done[1][name]
    assert code == 1
    assert "goals are open, the limit is 1; " in errors
    assert "or raise the limit: --limit goals=N" in errors


def test_options_of_spark_want_spark(folder: Folder) -> None:
    for option in (["--master", "local"], ["--shards", "2"]):
        done = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", *option, code=2)
        assert done.stderr == f"etalis: {option[0]} is for Spark: add --engine spark\n"


def test_without_java_one_line_says_so(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    for command in (["run", "rising.rq", "--stream", "ticks.jsonl"], ["replay", "stock"]):
        done = folder.etalis(*command, "--engine", "spark", code=1)
        assert done.stderr.startswith("etalis: Spark needs Java 17 or newer, found none: install it")
        assert len(done.stderr.splitlines()) == 1


@needs_java
def test_windows_beside_a_program_that_reads_events_are_refused_with_the_reason(folder: Folder) -> None:
    (folder.path / "shut.lp").write_text(
        "%! event shut(X) from X <urn:is> <urn:shut> over slot(X)\n%! slots 9\n%! offers now(X) as X a <urn:Now>\n"
        "now(X) :- shut(X).\n"
    )
    (folder.path / "rooms.rq").write_text(ROOMS)
    (folder.path / "seen.jsonl").write_text("".join(seen_lines()))
    done = folder.etalis("run", "rooms.rq", "-s", "social=seen.jsonl", "-b", "shut.lp", "--engine", "spark", code=2)
    assert "an answer-set program that reads events, and the program has windows" in done.stderr
    assert len(done.stderr.splitlines()) == 1


# --- parts -----------------------------------------------------------------------------------------------------------


def in_time(items: list[object], lateness: int | None, over: int | None = None) -> tuple[list[int], list[int]]:
    """The ends of the events that pass and of those that are late, in seconds."""
    late: list[Event] = []
    passed = list(InTime(lateness, late.append, over).of(items))
    return [e.end // 1_000_000 for e in passed], [e.end // 1_000_000 for e in late]


def test_an_event_is_late_as_for_the_engine() -> None:
    events = [event(f":a :p {n}", t) for n, t in enumerate((1, 3, 2, 3, 5, 4, 1, 6))]
    assert in_time(events, None) == ([1, 3, 2, 3, 5, 4, 1, 6], [])
    assert in_time(events, 0) == ([1, 3, 3, 5, 6], [2, 4, 1])
    assert in_time(events, 1_000_000) == ([1, 3, 2, 3, 5, 4, 6], [1])
    assert in_time([events[0], Punctuation(3_000_000), events[1], events[4]], 0) == ([1, 5], [3])


def test_of_equal_events_the_one_that_came_late_is_left_out() -> None:
    one, two = event(":a :p 1", 1), event(":a :p 2", 2)
    late: list[Event] = []
    assert list(InTime(0, late.append).of([one, two, one])) == [one, two]
    assert late == [one]


def test_time_goes_on_from_the_call_before() -> None:
    events = [event(f":a :p {t}", t) for t in (3, 4, 5)]
    ordering = InTime(1_000_000, lambda _: None)
    list(ordering.of(events))
    assert ordering.over == 4_000_000
    assert in_time(events, 1_000_000, ordering.over) == ([4, 5], [3])


def test_after_control_c_what_py4j_logs_of_calls_that_were_cut_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    root, py4j = logging.getLogger(), logging.getLogger("py4j.clientserver")
    interrupt = Interrupt()
    with without_traces(interrupt):
        root.error("before")
        interrupt.asked = True
        root.error("KeyboardInterrupt while sending command.")
        py4j.warning("Exception occurred while shutting down connection")
    root.error("after")
    assert caplog.messages == ["before", "after"]


def test_of_a_failure_the_error_that_was_raised_is_said() -> None:
    traceback = "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n  File …\n"
    assert failure_of(traceback + "etalis_py.spark.plan.spec.SparkError: no\n  such thing\n\n SQLSTATE: 38000") == (
        "no such thing"
    )
    assert failure_of(traceback + "KeyError: 'x'\n\tat org.apache.spark…") == "Spark failed: KeyError: 'x'"
    assert failure_of("[CANNOT] it is so.\nmore") == "Spark failed: [CANNOT] it is so."


def test_engines_that_differ_are_told_by_query() -> None:
    one = Counter({("a", "1"): 1, ("a", "2"): 2, ("b", "3"): 1})
    assert difference(one, one) == ""
    assert difference(one, Counter({("a", "1"): 1, ("a", "2"): 1, ("b", "4"): 1})) == (
        "a: 1 only found by the local engine, 0 only on Spark; b: 1 only found by the local engine, 1 only on Spark"
    )
