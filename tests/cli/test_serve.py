"""``etalis serve`` with ``etalis run`` on both sides of it: containers as sinks and as streams."""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
from collections.abc import Iterator

import httpx
import pytest

from etalis_py import event
from etalis_py.cli.server_programs import runner_factory
from tests.cli.conftest import RISING, Folder
from tests.processes import PATIENCE


@pytest.fixture
def server(folder: Folder) -> Iterator[str]:
    process = folder.start("serve", "--port", "0", "--memory", stderr=sys.stderr)
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said.startswith("serving http://127.0.0.1:"), said
    yield said.split()[1]
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


def test_matches_written_to_a_container_are_the_stream_of_another_run(folder: Folder, server: str) -> None:
    folder.write("up.rq", "CONSTRUCT { ?c :up ?y } WHERE { ?c :price ?x } SEQ { ?c :price ?y } FILTER(?y > ?x)")
    folder.write("ups.rq", "SELECT ?c ?y WHERE { ?c :up ?y }")
    for _ in range(2):  # a repeated run writes nothing twice
        folder.etalis("run", "up.rq", "--stream", "ticks.jsonl", "--sink", f"{server}ups/")
    process = folder.start("run", "ups.rq", "--stream", f"{server}ups/")
    assert process.stdout is not None
    found = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [(m["bindings"]["y"]["value"], m["start"], m["end"]) for m in found] == [
        ("12", "1970-01-01T00:00:01Z", "1970-01-01T00:00:03Z"),
        ("11", "1970-01-01T00:00:01Z", "1970-01-01T00:00:05Z"),
    ]
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=PATIENCE)
    assert out == ""
    assert process.returncode == 0
    assert errors.startswith("stopped: 2 events, 2 matches")


def test_writing_asks_for_the_token(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETALIS_TOKEN", "open sesame")
    process = folder.start("serve", "--port", "0", "--memory", stderr=sys.stderr)
    assert process.stdout is not None
    url = process.stdout.readline().split()[1]
    try:
        folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--sink", f"{url}c/")
        monkeypatch.delenv("ETALIS_TOKEN")
        done = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--sink", f"{url}d/", code=1)
        assert "answers 401" in done.stderr
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)


def test_a_program_inside_the_server_reads_a_container(folder: Folder, server: str) -> None:
    folder.write("tick.rq", "CONSTRUCT { ?c :price ?x } WHERE { ?c :price ?x }")
    folder.etalis("run", "tick.rq", "--stream", "-", "--sink", f"{server}ticks/")  # makes the container
    made = httpx.post(
        f"{server}ticks/", content=RISING, headers={"Content-Type": "application/sparql-query"}, timeout=PATIENCE
    )
    assert made.status_code == 201, made.text
    folder.etalis("run", "tick.rq", "--stream", "ticks.jsonl", "--sink", f"{server}ticks/")
    program = made.headers["location"]
    deadline = time.monotonic() + PATIENCE
    state = {}
    while state.get("matches") != 2 and time.monotonic() < deadline:
        time.sleep(0.1)
        state = httpx.get(program, headers={"Accept": "application/json"}).json()
    assert (state["pushed"], state["matches"], state["error"]) == (3, 2, "")


def test_a_query_whose_prefix_is_not_that_of_posted_rows_is_told_so() -> None:
    made = runner_factory([], "rdfs", "unrestricted")
    row = event("<http://example.org/s> <http://example.org/celsius> 9", 1)
    query = "PREFIX : <{}> SELECT ?x {{ ?s :celsius ?x }}"
    mine, theirs = (made(query.format(name), "http://s/") for name in ("urn:mine:", "http://example.org/"))
    for runner in (mine, theirs):
        runner.push(row)
    never, told = mine.unseen()
    assert never.startswith("the predicate :celsius never occurred; did you mean <http://example.org/celsius>?")
    assert "begin with http://example.org/, and in this query with urn:mine:" in told
    assert theirs.unseen() == []


def test_windows_and_absences_are_decided_by_the_clock(folder: Folder, server: str) -> None:
    """Nothing is posted after them, and still the window closes and the absence is reported."""
    container = "<> a <https://solid.ti.rw.fau.de/public/ns/stream-containers#StreamContainer> ."
    with httpx.Client(base_url=server, timeout=PATIENCE) as http:
        stream = http.post("/", content=container, headers={"Content-Type": "text/turtle"}).headers["location"]
        window = (
            f"SELECT ?c (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON <{stream}> [RANGE PT1S STEP PT1S] "
            "WHERE { WINDOW :w { ?c :price ?x } } GROUP BY ?c"
        )
        absence = "SELECT ?c WHERE { ?c :price ?x } SEQ NOT { ?c :price ?y } WITHIN 1 s"
        programs = []
        for query in (window, absence):
            answer = http.post(stream, content=query, headers={"Content-Type": "application/sparql-query"})
            assert answer.status_code == 201, answer.text
            programs.append(answer.headers["location"])
        body = "<http://example.org/a> <http://example.org/price> 1 ."
        http.post(stream, content=body, headers={"Content-Type": "text/turtle"})
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            states = [http.get(p, headers={"Accept": "application/json"}).json() for p in programs]
            if all(state["matches"] for state in states):
                break
            time.sleep(0.2)
        assert [state["matches"] for state in states] == [1, 1], states


def test_from_in_a_program_inside_the_server_is_what_the_server_was_started_with(folder: Folder) -> None:
    folder.write("tick.rq", "CONSTRUCT { ?c :price ?x } WHERE { ?c :price ?x }")
    graphs = folder.write("graphs.trig", "@prefix : <http://example.org/> . :g { :acme :sector :tools }")
    secret = folder.write("secret.ttl", "@prefix : <http://example.org/> . :acme :sector :secret .")
    process = folder.start("serve", "--port", "0", "--memory", "--background", str(graphs), stderr=sys.stderr)
    assert process.stdout is not None
    url = process.stdout.readline().split()[1]
    query = "PREFIX : <http://example.org/>\nSELECT ?s FROM %s WHERE { ?c :price ?x . ?c :sector ?s }"
    kind = {"Content-Type": "application/sparql-query"}
    try:
        folder.etalis("run", "tick.rq", "--stream", "-", "--sink", f"{url}ticks/")  # makes the container
        for name in ("<secret.ttl>", f"<{secret.as_uri()}>"):  # no request makes the server read its files
            refused = httpx.post(f"{url}ticks/", content=query % name, headers=kind, timeout=PATIENCE)
            assert refused.status_code == 400
            assert "is loaded; there are: <http://example.org/g>" in refused.text
        made = httpx.post(f"{url}ticks/", content=query % ":g", headers=kind, timeout=PATIENCE)
        assert made.status_code == 201, made.text
        folder.etalis("run", "tick.rq", "--stream", "ticks.jsonl", "--sink", f"{url}ticks/")
        deadline = time.monotonic() + PATIENCE
        state = {}
        while state.get("matches") != 3 and time.monotonic() < deadline:
            time.sleep(0.1)
            state = httpx.get(made.headers["location"], headers={"Accept": "application/json"}).json()
        assert (state["matches"], state["error"]) == (3, "")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)


def test_a_query_with_a_fault_is_refused_with_its_place(folder: Folder, server: str) -> None:
    folder.write("tick.rq", "CONSTRUCT { ?c :price ?x } WHERE { ?c :price ?x }")
    folder.etalis("run", "tick.rq", "--stream", "-", "--sink", f"{server}ticks/")
    query = "SELECT ?x WHERE { ?x :p"
    refused = httpx.post(
        f"{server}ticks/", content=query, headers={"Content-Type": "application/sparql-query"}, timeout=PATIENCE
    )
    assert refused.status_code == 400
    assert ":1:24: error" in refused.text


def test_messages_as_json(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the server, of the process of a program, and the last one; nothing else is on standard error."""
    monkeypatch.setenv("ETALIS_TOKEN", "open sesame")
    folder.write("tick.rq", "CONSTRUCT { ?c :price ?x } WHERE { ?c :price ?x }")
    process = folder.start("serve", "--host", "0.0.0.0", "--port", "0", "--memory", "--log", "json")
    assert process.stdout is not None
    url = process.stdout.readline().split()[1].replace("0.0.0.0", "127.0.0.1")
    folder.etalis("run", "tick.rq", "--stream", "-", "--sink", f"{url}ticks/")  # makes the container
    allowed = {"Authorization": "Bearer open sesame"}
    with httpx.Client(base_url=url, headers=allowed, timeout=PATIENCE) as http:
        query = {"Content-Type": "application/sparql-query"}
        program = http.post("ticks/", content=RISING, headers=query).headers["location"]
        for pushed, second in enumerate((50, 10), start=1):
            time_of = f'"2026-01-01T00:00:{second}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
            body = f"<> <http://www.w3.org/ns/prov#generatedAtTime> {time_of} . <urn:a> <urn:p> 1 ."
            assert http.post("ticks/", content=body, headers={"Content-Type": "text/turtle"}).status_code == 201
            deadline = time.monotonic() + PATIENCE
            while http.get(program, headers={"Accept": "application/json"}).json()["pushed"] < pushed:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        late = "1 event came too late and was left out; post graphs in order of time"
        while late not in str(http.get(program, headers={"Accept": "application/json"}).json()["warnings"]):
            assert time.monotonic() < deadline, "it is counted where those look who read no log"
            time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    said = [json.loads(line) for line in errors.splitlines()]
    assert all(one.keys() == {"time", "level", "message"} for one in said)
    assert [(one["level"], one["message"].partition(": ")[0]) for one in said] == [
        ("warning", "tokens cross the network in clear"),
        ("warning", "http://0.0.0.0:" + url.rpartition(":")[2] + "ticks/"),
        ("info", "stopped"),
    ]
    assert "an event of 2026-01-01T00:00:10Z came too late" in said[1]["message"]


def test_a_server_stops_without_a_traceback_while_a_reader_takes_no_data(folder: Folder) -> None:
    process = folder.start("serve", "--memory", "--port", "0")
    assert process.stdout is not None
    url = httpx.URL(process.stdout.readline().split()[1])
    httpx.put(f"{url}ticks/", headers={"Content-Type": "text/turtle"}, timeout=PATIENCE)
    with socket.create_connection((url.host, url.port)) as reader, httpx.Client(base_url=url, timeout=PATIENCE) as http:
        head = f"GET /ticks/ HTTP/1.1\r\nHost: {url.netloc.decode()}\r\nAccept: text/event-stream\r\n\r\n"
        reader.sendall(head.encode())
        assert reader.recv(12) == b"HTTP/1.1 200"
        for _ in range(40):
            body = f'<urn:a> <urn:p> "{"x" * 500_000}" .'
            assert http.post("ticks/", content=body, headers={"Content-Type": "text/turtle"}).status_code == 201
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, "Traceback" in errors) == (0, False), errors


def test_a_server_that_cannot_start_says_why_as_json(folder: Folder) -> None:
    done = folder.process("serve", "--memory", "--log", "json", "--tls-key", "key.pem", "--port", "0", code=1)
    [said] = map(json.loads, done.stderr.splitlines())
    assert said["level"] == "error"
    assert "give --tls-cert, too" in said["message"]


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["--host", "0.0.0.0"], 2, "set ETALIS_TOKEN"),
        (["--port", "high"], 2, "a port is a number"),
        (["--base-url", "x", "--port", "0"], 1, "the base URL is scheme and host only"),
        (["--background", "no.ttl", "--port", "0"], 1, "no.ttl"),
        (["--limit", "nonsense"], 2, "a limit is NAME=NUMBER"),
        (["--limit", "pages=3"], 2, "there is no such limit; there are body_bytes, "),
        (["--limit", "programs=0"], 2, "programs must be above 0"),
        (["--limit", "programs=1.5"], 2, "it is a whole number, found 1.5"),
        (["--limit", "programs=-1"], 2, "the limit programs must be above 0, found -1"),
        (["--read-token", "--port", "0"], 1, "reading needs a token, but there is none"),
        (["--tokens", "nowhere.toml", "--port", "0"], 1, "nowhere.toml: the tokens cannot be read: No such file"),
        (["--tls-key", "key.pem", "--port", "0"], 1, "give --tls-cert, too"),
    ],
)
def test_a_server_that_cannot_start_says_why(folder: Folder, arguments: list[str], code: int, expected: str) -> None:
    done = folder.etalis("serve", "--memory", *arguments, code=code)
    assert expected in done.stderr
