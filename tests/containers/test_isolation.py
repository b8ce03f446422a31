"""Programs in processes of their own: each limit, the reason that is kept, and that everybody else goes on."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Callable, Iterator

import httpx
import psutil
import pytest

from etalis_py.containers.graphs import JSONLD, TURTLE
from etalis_py.containers.nesting import depth
from tests.containers.server import Server
from tests.containers.test_programs import HOT, JSON, QUERY, STREAM, post, until
from tests.processes import ended

TTL = {"Content-Type": "text/turtle"}
MERGE = {"Content-Type": "application/merge-patch+json"}
LIMITS = {
    "step_seconds": 0.5,
    "compile_seconds": 0.5,
    "program_bytes": 64 * 2**20,
    "document_seconds": 1.0,
    "header_seconds": 0.5,
    "connections_per_address": 20,
}


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    return start(limits=LIMITS)


@pytest.fixture
def stream(http: httpx.Client) -> Iterator[str]:
    """A stream with an honest program on it, which must run on, and with it the server."""
    url = http.post("/", content=STREAM, headers=TTL).headers["location"]
    honest = http.post(url, content=HOT, headers=QUERY).headers["location"]
    yield url
    before = http.get(honest, headers=JSON).json()["written"]
    post(http, url, 99, 98)
    deadline = time.monotonic() + 30
    # More than one may come: the state is at most a second old, and what the test has posted may not be in it yet.
    while (state := http.get(honest, headers=JSON).json())["written"] <= before:
        assert time.monotonic() < deadline, state
        time.sleep(0.02)
    assert state["state"] == "running"


def register(http: httpx.Client, stream: str, query: str) -> str:
    answer = http.post(stream, content=query, headers=QUERY)
    assert answer.status_code == 201, answer.text
    return answer.headers["location"]


@pytest.mark.parametrize(
    ("query", "reason"),
    [("SPIN compile", "compile_seconds"), ("EAT compile", "program_bytes"), ("CRASH compile", "SIGABRT")],
)
def test_a_query_that_costs_too_much_to_compile_is_refused(
    http: httpx.Client, stream: str, query: str, reason: str
) -> None:
    answer = http.post(stream, content=query, headers=QUERY)
    assert answer.status_code == 422
    assert reason in answer.json()["detail"]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SPIN push", "more than 0.5 s of processor time (step_seconds)"),
        ("SLEEP push", "step_seconds"),
        ("EAT push", "more than 64 MiB of memory (program_bytes)"),
        ("CRASH push", "SIGABRT"),
        ("LONG push", "match_bytes"),
    ],
)
def test_a_program_that_exceeds_a_limit_is_stopped_with_the_reason(
    http: httpx.Client, stream: str, query: str, reason: str
) -> None:
    program = register(http, stream, query)
    post(http, stream, 1)
    state = until(http, program, "state", "stopped")
    assert reason in state["error"]
    assert not state["running"]
    path = httpx.URL(program).path
    time.sleep(1.1)  # the state of the server is at most a second old
    shown = next(p for p in http.get("/-/status").json()["programs"] if p["program"] == path)
    assert shown["error"] == state["error"]


def test_a_stopped_program_stays_so_over_a_restart_until_somebody_resumes_it(start: Callable[..., Server]) -> None:
    server = start(limits=LIMITS)
    with httpx.Client(base_url=server.url, timeout=30) as http:
        stream = http.post("/", content=STREAM, headers=TTL | {"Slug": "s"}).headers["location"]
        register(http, stream, "SPIN push")
        http.post(stream, content=HOT, headers=QUERY | {"Slug": "hot"})
        post(http, stream, 40, 20)
        until(http, "/s/program-1", "state", "stopped")
    server.kill()
    server.start()
    with httpx.Client(base_url=server.url, timeout=30) as http:
        until(http, "/s/hot", "pushed", 2)
        state = http.get("/s/program-1", headers=JSON).json()
        assert (state["state"], "step_seconds" in state["error"], state["pushed"]) == ("stopped", True, 0)
        assert http.patch("/s/program-1", content='{"paused": false}', headers=MERGE).status_code == 204
        assert http.get("/s/program-1", headers=JSON).json()["state"] == "running"
        until(http, "/s/program-1", "state", "stopped")


def test_a_program_is_paused_and_goes_on_without_losing_or_repeating_anything(http: httpx.Client, stream: str) -> None:
    program = register(http, stream, HOT)
    post(http, stream, 40, 20)
    until(http, program, "written", 1)
    assert http.patch(program, content='{"paused": true}', headers=MERGE).status_code == 204
    assert http.get(program, headers=JSON).json()["state"] == "paused"
    post(http, stream, 50, 10)
    assert http.patch(program, content='{"paused": false}', headers=MERGE).status_code == 204
    state = until(http, program, "written", 1)
    assert (state["repeated"], state["pushed"]) == (1, 4)
    assert http.patch(program, content='{"paused": 1}', headers=MERGE).status_code == 400


def test_a_program_is_edited_and_the_old_one_runs_until_the_new_one_compiles(http: httpx.Client, stream: str) -> None:
    program = register(http, stream, HOT)
    tag = http.get(program).headers["etag"]
    assert http.put(program, content="nonsense", headers=QUERY).status_code == 400
    assert http.get(program, headers=JSON).json()["state"] == "running"
    answer = http.put(program, content=HOT.replace("30", "60"), headers=QUERY | {"If-Match": tag})
    assert answer.status_code == 204
    assert http.put(program, content=HOT, headers=QUERY | {"If-Match": tag}).status_code == 412
    assert http.get(program).text == HOT.replace("30", "60")
    post(http, stream, 50, 70, 10)
    assert until(http, program, "written", 1)["matches"] == 1


def test_a_busy_program_is_deleted_at_once(http: httpx.Client, stream: str) -> None:
    program = register(http, stream, "SLEEP push")
    post(http, stream, 1)
    begin = time.monotonic()
    assert http.delete(program).status_code == 204
    assert time.monotonic() - begin < 2


def test_a_server_with_a_busy_program_ends_within_two_seconds_and_leaves_no_process(
    start: Callable[..., Server],
) -> None:
    server = start(store=None, limits={"step_seconds": 60.0})
    with httpx.Client(base_url=server.url, timeout=30) as http:
        for query in ("SPIN push", "SLEEP push", HOT):
            register(http, "/", query)
        post(http, "/", 1)
        time.sleep(0.2)
        family = psutil.Process(server.process.pid).children(recursive=True)
        assert len(family) >= 4
    begin = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - begin < 2
    assert ended(family)


def test_the_processes_of_a_killed_server_end(start: Callable[..., Server]) -> None:
    server = start(store=None, limits={"step_seconds": 60.0})
    register(httpx.Client(base_url=server.url, timeout=30), "/", "SPIN push")
    httpx.post(server.url, content="<> <http://ex.org/v> 1 .", headers=TTL)
    family = psutil.Process(server.process.pid).children(recursive=True)
    server.kill()
    assert ended(family)


def test_of_many_rows_all_are_counted_and_the_last_thousand_kept(http: httpx.Client, stream: str) -> None:
    program = register(http, stream, "MANY push")
    post(http, stream, 1, 2)
    until(http, program, "matches", 10_000)
    kept = http.get(program, params={"after": 9_998}, headers=JSON).json()["found"]
    assert [k["number"] for k in kept] == [9_999, 10_000]
    assert kept[-1]["match"]["id"] == "many-4999"


def test_programs_start_again_after_the_process_that_starts_them_was_lost(start: Callable[..., Server]) -> None:
    server = start(store=None)
    with httpx.Client(base_url=server.url, timeout=30) as http:
        program = register(http, "/", HOT)
        (nursery,) = psutil.Process(server.process.pid).children()
        nursery.send_signal(signal.SIGKILL)
        assert "starts programs ended" in until(http, program, "state", "stopped")["error"]
        assert http.patch(program, content='{"paused": false}', headers=MERGE).status_code == 204
        post(http, "/", 40, 20)
        until(http, program, "written", 1)


# -- documents ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "media_type", "levels"),
    [
        ('{"a": [{"b": "}]{["}]}', JSONLD, 3),
        ('{"a": "\\"{{{"}', JSONLD, 1),
        ("<a[> <b> [ <c> ( 1 [] ) ] . # ((((", TURTLE, 3),
        ("<a> <b> \"\"\"((( \" \"\"\", '((', '''((' ''' .", TURTLE, 0),
        ("<a> <b> <<( <a> <b> <c> )>> .", TURTLE, 3),
        (r"@prefix e: <x:> . e:\( e:\( e:\( .", TURTLE, 0),
    ],
)
def test_how_deep_a_document_nests(text: str, media_type: str, levels: int) -> None:
    assert depth(text.encode(), media_type) == levels


@pytest.mark.parametrize(
    ("body", "media_type", "status", "reason"),
    [
        (b'{"http://e/p":' * 10_000, "application/ld+json", 413, "document_depth"),
        (b'{"http://e/p":' * 100 + b"1" + b"}" * 100, "application/ld+json", 201, ""),
        (b"<a> <b> " + b"[<b> " * 5_000 + b"1" + b"]" * 5_000 + b" .", "text/turtle", 413, "document_depth"),
        (b"<a> <b> " + b"<<(<a> <b> " * 60_000, "text/turtle", 413, "document_depth"),
        (
            b"@prefix p: <http://x/" + b"a" * 400_000 + b"> . " + b"p:b p:c p:d .\n" * 9_000,
            "text/turtle",
            413,
            "graph_bytes",
        ),
    ],
)
def test_a_document_is_refused_before_it_does_harm(
    http: httpx.Client, body: bytes, media_type: str, status: int, reason: str
) -> None:
    answer = http.post("/", content=body, headers={"Content-Type": media_type})
    assert answer.status_code == status, answer.text
    assert reason in answer.text
    assert status == 201 or answer.elapsed.total_seconds() < 5


def test_contexts_within_a_context_cost_one_second_of_another_process(http: httpx.Client, stream: str) -> None:
    context = {f"t{i}": f"http://e/{i}" for i in range(5_000)}
    graph = [{"@context": {"q": "http://q/"}, "t1": i} for i in range(9_000)]
    body = json.dumps([{"@context": context, "@graph": graph}])
    answer = http.post(stream, content=body, headers={"Content-Type": "application/ld+json"}, timeout=30)
    assert answer.status_code == 413
    assert "document_seconds" in answer.json()["detail"]


def test_a_large_honest_graph_is_stored_whole(http: httpx.Client, stream: str) -> None:
    """It is parsed in another process, and its blank nodes are named there."""
    lines = [f"<> <http://e/p> [ <http://e/v> {i} ] ." for i in range(2_000)]
    url = http.post(stream, content="\n".join(lines), headers=TTL).headers["location"]
    stored = http.get(url, headers={"Accept": "application/n-triples"}).text.splitlines()
    labels = {line.split(" ")[0] for line in stored if line.startswith("_:")}
    assert (len(stored), len(labels)) == (4_001, 2_000)
    assert all(label.startswith("_:m") for label in labels), "labels are those of the member"
    patch = "DELETE DATA { } ;\n" * 2_000 + "INSERT DATA { <#new> <http://e/p> [ <http://e/v> 7 ] }"
    headers = {"Content-Type": "application/sparql-update", "If-Match": http.get(url).headers["etag"]}
    assert http.patch(url, content=patch, headers=headers).status_code == 204
    stored = http.get(url, headers={"Accept": "application/n-triples"}).text.splitlines()
    assert len(stored) == 4_003


# -- connections ----------------------------------------------------------------------------------------------------


def test_a_head_that_does_not_end_is_not_waited_for(http: httpx.Client, server: Server) -> None:
    host, port = server.url[7:-1].split(":")
    for beginning in (b"", b"GET / HTTP/1.1\r\nHo", b"GET / HTTP/1.1\r\nHost: %b\r\n\r\nGET /" % host.encode()):
        with socket.create_connection((host, int(port)), timeout=5) as slow:
            slow.sendall(beginning)
            begin, received = time.monotonic(), b""
            while data := slow.recv(65_536):
                received += data
            assert b" 408 " in received
            assert 0.3 < time.monotonic() - begin < 3


def test_connections_from_one_address_are_limited_and_places_come_free(http: httpx.Client, server: Server) -> None:
    host, port = server.url[7:-1].split(":")
    assert http.get("/").status_code == 200
    held = [socket.create_connection((host, int(port)), timeout=5) for _ in range(25)]
    answers = []
    for connection in held:
        connection.settimeout(0.2)
        try:
            answers.append(connection.recv(65_536)[:12])
        except TimeoutError:
            answers.append(b"")
    assert answers.count(b"HTTP/1.1 429") >= 5
    for connection in held:
        connection.close()
    time.sleep(0.2)
    assert httpx.get(server.url).status_code == 200
