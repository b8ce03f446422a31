"""Windowed queries at the command line: ``run``, ``explain``, ``check`` and ``oracle``."""

from __future__ import annotations

import json
import subprocess

import pytest

from etalis_py import Engine, compile, event, run
from tests.cli.conftest import Folder

ROOMS = """\
PREFIX : <http://example.org/>
SELECT ?room (COUNT(DISTINCT ?who) AS ?people)
FROM NAMED WINDOW :w ON :social [RANGE PT10S SLIDE PT5S]
WHERE { WINDOW :w { ?who :isIn ?room } } GROUP BY ?room
"""
WHO = """\
PREFIX : <http://example.org/>
SELECT ?floor ?who %s FROM NAMED WINDOW :w ON :social [RANGE PT10S]
WHERE { WINDOW :w { ?who :isIn ?room } ?room :floor ?floor }
"""
MIXED = """\
PREFIX : <http://example.org/>
REGISTER STREAM :moves AS CONSTRUCT { ?who :moved ?b } WHERE { { ?who :isIn ?a } SEQ { ?who :isIn ?b } }
REGISTER QUERY busy AS SELECT ?who FROM NAMED WINDOW :w ON :moves [RANGE PT30S] WHERE { WINDOW :w { ?who :moved ?x } }
"""
SEEN = [(2, "axel", "red"), (4, "darko", "red"), (8, "minh", "blue"), (19, "axel", "blue")]
FLOORS = "@prefix : <http://example.org/> . :red :floor 1 . :blue :floor 2 ."
ANSWERS = ["blue,1,0,10", "red,2,0,10", "blue,1,5,15", "blue,1,10,20", "blue,1,15,25"]


@pytest.fixture
def rooms(folder: Folder) -> Folder:
    lines = [
        {"time": time, "triples": f"@prefix : <http://example.org/> . :{who} :isIn :{room} ."}
        for time, who, room in SEEN
    ]
    folder.write("rooms.rq", ROOMS)
    folder.write("mixed.rq", MIXED)
    folder.write("seen.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return folder


def table(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The rows of a CSV, without the header and the namespace."""
    return [line.replace("http://example.org/", "") for line in done.stdout.splitlines()[1:]]


# --- run ---


def test_run(rooms: Folder) -> None:
    done = rooms.etalis("run", "rooms.rq", "--stream", "seen.jsonl", "--format", "csv")
    assert (table(done), done.stderr) == (ANSWERS, "")


def test_run_from_pipes(rooms: Folder) -> None:
    seen = rooms.read("seen.jsonl")
    assert table(rooms.etalis("run", "rooms.rq", "--stream", "-", "--format", "csv", input=seen)) == ANSWERS
    query = rooms.read("rooms.rq")
    assert table(rooms.etalis("run", "-", "--stream", "seen.jsonl", "--format", "csv", input=query)) == ANSWERS


def test_streams_are_told_apart_by_name(rooms: Folder) -> None:
    named = rooms.etalis("run", "rooms.rq", "--stream", "social=seen.jsonl", "--format", "csv")
    assert (table(named), named.stderr) == (ANSWERS, "")
    other = rooms.etalis("run", "rooms.rq", "--stream", "other=seen.jsonl", "--format", "csv")
    assert table(other) == []
    assert "4 events were of a stream that no query reads; they read <http://example.org/social>" in other.stderr


def test_late_events_are_kept_and_lateness_puts_them_in_order(rooms: Folder) -> None:
    lines = rooms.read("seen.jsonl").splitlines(keepends=True)
    rooms.write("late.jsonl", lines[0] + lines[2] + lines[1] + lines[3])
    command = ("run", "rooms.rq", "--stream", "late.jsonl", "--format", "csv")
    done = rooms.etalis(*command, "--keep-order", "--dead-letters", "dead.jsonl")
    assert table(done)[1] == "red,1,0,10"
    assert "1 event came too late" in done.stderr
    assert "darko" in rooms.read("dead.jsonl")
    assert table(rooms.etalis(*command, "--lateness", "5s")) == ANSWERS


def test_a_stored_graph_beside_the_query(rooms: Folder) -> None:
    rooms.write("who.rq", WHO % "FROM <floors.ttl>")
    rooms.write("floors.ttl", FLOORS)
    command = ("run", "who.rq", "--stream", "seen.jsonl", "--format", "csv")
    assert table(rooms.etalis(*command)) == ["1,axel,0,10", "1,darko,0,10", "2,minh,0,10", "2,axel,10,20"]
    (rooms.path / "floors.ttl").unlink()
    assert (
        "asks for the graph <http://example.org/floors.ttl>, which is not loaded"
        in rooms.etalis(*command, code=2).stderr
    )


def test_background_that_changes(rooms: Folder) -> None:
    rooms.write("who.rq", WHO % "")
    rooms.write("floors.ttl", FLOORS)
    rooms.write("updates.jsonl", '{"time": 12, "remove": ":blue :floor 2 .", "add": ":blue :floor 3 ."}')
    background = ("--background", "floors.ttl", "--background-stream", "updates.jsonl")
    done = rooms.etalis("run", "who.rq", "--stream", "seen.jsonl", "--format", "csv", *background)
    assert table(done) == ["1,axel,0,10", "1,darko,0,10", "2,minh,0,10", "3,axel,10,20"]


def test_rules_feed_windows(rooms: Folder) -> None:
    done = rooms.etalis("run", "mixed.rq", "--stream", "seen.jsonl")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(m["query"], m["start"], m["end"]) for m in found] == [
        ("<http://example.org/moves>", 2, 19),
        ("busy", 0, 30),
    ]
    assert found[1]["bindings"] == {"who": {"type": "uri", "value": "http://example.org/axel"}}


def test_background_updates_reach_the_rules_beside_windows() -> None:
    rule = "REGISTER STREAM :t AS CONSTRUCT { ?x :q ?z } WHERE { ?x :p ?y . GRAPH :g { ?y :r ?z } }\n"
    read = "REGISTER QUERY w AS SELECT ?z FROM NAMED WINDOW :w ON :t [RANGE PT5S] WHERE { WINDOW :w { ?x :q ?z } }"
    engine = Engine(rule + read, background=[], changes=True)
    assert engine.push(event(":a :p :b", 1)) == []
    engine.advance(1_000_000)
    engine.update("http://example.org/g", [event(":b :r 7", 0).triples[0]])
    found = engine.push(event(":a :p :b", 2)) + engine.close()
    assert [(m.query, m["z"]) for m in found if m.query == "w"] == [("w", 7)]


def test_why_there_is_a_row(rooms: Folder) -> None:
    done = rooms.etalis("run", "rooms.rq", "--stream", "seen.jsonl", "--explain-matches")
    assert json.loads(done.stdout.splitlines()[2])["why"] == {
        "query": "rooms",
        "evaluated": 15,
        "windows": [{"window": "<http://example.org/w>", "after": 5, "until": 15}],
    }
    mixed = rooms.etalis("run", "mixed.rq", "--stream", "seen.jsonl", "--explain-matches").stdout.splitlines()
    assert json.loads(mixed[0])["why"]["because"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--timeline", "a.svg"], "leave --timeline out"),
        (["--policy", "recent"], "write USING POLICY recent"),
        (["--explain-matches", "--format", "trig"], "write jsonl"),
    ],
)
def test_options_that_make_no_sense_for_windows(rooms: Folder, options: list[str], said: str) -> None:
    done = rooms.etalis("run", "rooms.rq", "--stream", "seen.jsonl", *options, code=2)
    assert said in done.stderr
    assert done.stdout == ""


def test_a_run_says_what_is_kept() -> None:
    engine = Engine(ROOMS)
    engine.push_all([event(f":{who} :isIn :{room}", time) for time, who, room in SEEN[:3]])
    counted = engine.count()
    assert (counted.events, counted.items, counted.goals, counted.matches) == (3, 3, 0, 0)
    engine.push(event(":axel :isIn :blue", 40))
    assert engine.count().items == 1
    assert [(output.query, output.variables) for output in engine.outputs] == [("q1", ("room", "people"))]


# --- explain and check ---


def test_explain(rooms: Folder) -> None:
    text = rooms.etalis("explain", "rooms.rq").stdout
    assert "on stream :social: PT10S long, sliding by PT5S" in text
    both = rooms.etalis("explain", "mixed.rq").stdout
    assert "busy: RSTREAM of SELECT" in both
    assert "query :moves(?who, ?b): construct" in both
    data = json.loads(rooms.etalis("explain", "mixed.rq", "--json").stdout)
    assert [query["query"] for query in data["windowed"]] == ["busy"]
    assert [query["query"] for query in data["rules"]["queries"]] == ["<http://example.org/moves>"]


@pytest.mark.parametrize("option", ["--code", "--dot"])
def test_windows_have_no_code_and_no_goals(rooms: Folder, option: str) -> None:
    assert f"{option} " in rooms.etalis("explain", "rooms.rq", option, code=2).stderr


def test_check(rooms: Folder) -> None:
    assert "no errors, no warnings in rooms" in rooms.etalis("check", "rooms.rq").stderr
    rooms.write("all.rq", ROOMS.replace("[RANGE PT10S SLIDE PT5S]", "[IDENTITY]"))
    found = json.loads(rooms.etalis("check", "rooms.rq", "all.rq", "--json").stdout)
    assert found["queries"] == ["rooms", "all"]
    assert [(d["code"], d["source"]) for d in found["diagnostics"]] == [("unbounded", "all.rq")]
    rooms.write("bad.rq", ROOMS.replace("WINDOW :w {", "WINDOW :v {"))
    assert "1 error" in rooms.etalis("check", "bad.rq", code=2).stderr


# --- from Python ---


def test_run_takes_both_kinds_of_programs() -> None:
    events = [event(f":{who} :isIn :{room}", time) for time, who, room in SEEN]
    assert [(m["people"], m.end) for m in run(compile(ROOMS), events)][:2] == [(1, 10), (2, 10)]
    rule = compile("SELECT ?a { {?x :isIn ?a} SEQ {?x :isIn ?b} }")
    assert [(m["a"], m.start, m.end) for m in run(rule, events)] == [("http://example.org/red", 2, 19)]


# --- oracle ---

STEP = "PREFIX : <http://example.org/>\nSELECT ?x FROM STREAM :s [RANGE 5s STEP 2s] { ?x :p ?y }"
ITEMS = "".join(
    json.dumps({"time": t, "triples": f"<http://example.org/{x}> <http://example.org/p> 1 ."}) + "\n"
    for t, x in [(2, "a"), (7, "b")]
)


def answer(time: int | None, *rows: str) -> str:
    given = {"rows": [{"x": f"<http://example.org/{x}>"} for x in rows]}
    return json.dumps(given if time is None else {"time": time} | given) + "\n"


RIGHT = answer(5, "a") + answer(7, "b") + answer(9, "b") + answer(11, "b")


@pytest.fixture
def judged(folder: Folder) -> Folder:
    folder.write("step.rq", STEP)
    folder.write("items.jsonl", ITEMS)
    return folder


def judge(folder: Folder, recording: str, *options: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    folder.write("recorded.jsonl", recording)
    return folder.etalis(
        "oracle", "step.rq", "--stream", "items.jsonl", "--recorded", "recorded.jsonl", *options, code=code
    )


def test_a_right_recording(judged: Folder) -> None:
    assert judge(judged, RIGHT).stdout == "right with the window t0 = 0\n"


def test_a_wrong_recording(judged: Folder) -> None:
    assert judge(judged, RIGHT.replace("/b>", "/a>"), code=1).stdout.startswith("never right")
    assert judge(judged, answer(5, "a"), code=1).stdout.startswith("never right")


def test_a_recording_without_times(judged: Folder) -> None:
    assert "t0 = 0" in judge(judged, answer(None, "a") + answer(None, "b") * 3).stdout


def test_what_etalis_run_writes_is_a_recording(rooms: Folder) -> None:
    rooms.write("answers.jsonl", rooms.etalis("run", "rooms.rq", "--stream", "seen.jsonl").stdout)
    command = ("oracle", "rooms.rq", "--stream", "seen.jsonl", "--recorded", "answers.jsonl")
    assert rooms.etalis(*command).stdout == "right with <http://example.org/w> t0 = 0\n"


def test_terms_may_be_turtle_json_or_results_json(rooms: Folder) -> None:
    blue = {"type": "uri", "value": "http://example.org/blue"}
    rows = [(10, blue, 1), (10, "<http://example.org/red>", "2"), (15, blue, "1"), (20, blue, 1), (25, blue, 1)]
    times = sorted({time for time, _, _ in rows})
    answers = [{"time": t, "rows": [{"room": r, "people": n} for at, r, n in rows if at == t]} for t in times]
    rooms.write("answers.jsonl", "".join(json.dumps(a) + "\n" for a in answers))
    rooms.etalis("oracle", "rooms.rq", "--stream", "seen.jsonl", "--recorded", "answers.jsonl")


@pytest.mark.parametrize(
    ("recording", "options", "code", "said"),
    [
        ("{", (), 2, "recorded.jsonl:1: "),
        ('{"time": 5}', (), 2, "a line is an object with rows"),
        ('{"time": 5, "rows": [{"x": "acme"}]}', (), 2, "acme is not a term"),
        (RIGHT + answer(None, "a"), (), 2, "some answers have a time, others not"),
        (RIGHT, ("--registered", "noon"), 2, "--registered: expected an xsd:dateTime"),
        (RIGHT, ("--unit", "1us"), 2, "give a larger unit"),
        (RIGHT, ("--unit", "0s"), 2, "a unit above 0"),
        (RIGHT, ("--preset", "streams"), 2, "unknown preset"),
    ],
)
def test_what_cannot_be_judged(judged: Folder, recording: str, options: tuple[str, ...], code: int, said: str) -> None:
    assert said in judge(judged, recording, *options, code=code).stderr


def test_one_windowed_query_is_judged(rooms: Folder) -> None:
    rooms.write("empty.jsonl", "")
    command = ("--stream", "seen.jsonl", "--recorded", "empty.jsonl")
    assert "one windowed query is judged at a time" in rooms.etalis("oracle", "mixed.rq", *command, code=2).stderr
    assert "one windowed query is judged at a time" in rooms.etalis("oracle", "rising.rq", *command, code=2).stderr


def test_a_stream_that_the_query_does_not_read_is_reported(judged: Folder) -> None:
    judged.write("recorded.jsonl", RIGHT)
    command = ("oracle", "step.rq", "--stream", "other=items.jsonl", "--recorded", "recorded.jsonl")
    assert "of a stream that no query reads" in judged.etalis(*command, code=1).stderr
