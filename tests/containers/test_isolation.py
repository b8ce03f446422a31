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
from tests.processes import PATIENCE, ended

TTL = {"Content-Type": "text/turtle"}
MERGE = {"Content-Type": "application/merge-patch+json"}
LIMITS = {
    "step_seconds": 0.5,
    "compile_seconds": 0.5,
    "program_bytes": 64 * 2**20,
    "document_seconds": 1.0,
    "header_seconds": 0.5,
    "connections_per_address": 20,
    "programs": 64,
    "queries_per_client": 6,
    "standing_rules": 9,
    "matches_per_graph": 4_000,
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
    deadline = time.monotonic() + PATIENCE
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
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as http:
        stream = http.post("/", content=STREAM, headers=TTL | {"Slug": "s"}).headers["location"]
        register(http, stream, "SPIN push")
        http.post(stream, content=HOT, headers=QUERY | {"Slug": "hot"})
        post(http, stream, 40, 20)
        until(http, "/s/program-1", "state", "stopped")
        queries_before_a_restart(http, stream)
    server.kill()
    server.start()
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as http:
        until(http, "/s/hot", "pushed", 4)
        state = http.get("/s/program-1", headers=JSON).json()
        assert (state["state"], "step_seconds" in state["error"], state["pushed"]) == ("stopped", True, 0)
        assert http.patch("/s/program-1", content='{"paused": false}', headers=MERGE).status_code == 204
        assert http.get("/s/program-1", headers=JSON).json()["state"] == "running"
        until(http, "/s/program-1", "state", "stopped")
        queries_after_a_restart(http)


def queries_before_a_restart(http: httpx.Client, stream: str) -> None:
    """Three queries of one program that begin at different times; one of them was ended for what it found."""
    many = http.post(stream, params={"queries": "many"}, headers=QUERY | {"Slug": "alerts"}).headers["location"]
    add(http, many, "first", ROWS)
    post(http, stream, 41)
    until(http, "/s/alerts/first", "matches", 1)
    add(http, many, "second", ROWS)
    add(http, many, "rogue", "LONG push")
    post(http, stream, 42)
    until(http, "/s/alerts/rogue", "state", "stopped")
    until(http, "/s/alerts/second", "matches", 1)


def queries_after_a_restart(http: httpx.Client) -> None:
    """Each has found what it had found, and goes on."""
    post(http, "/s/", 43)
    until(http, "/s/alerts/second", "matches", 2)
    until(http, "/s/alerts/first", "matches", 3)
    assert (values(http, "/s/alerts/first"), values(http, "/s/alerts/second")) == (["41", "42", "43"], ["42", "43"])
    rogue = http.get("/s/alerts/rogue", headers=JSON).json()
    assert (rogue["state"], "match_bytes" in rogue["error"]) == ("stopped", True)
    again = http.post("/s/alerts", content=ROWS, headers=QUERY | {"Slug": "first"})
    assert again.headers["location"].endswith("/s/alerts/first-2")


def test_a_program_is_paused_and_goes_on_without_losing_or_repeating_anything(http: httpx.Client, stream: str) -> None:
    program = register(http, stream, HOT)
    post(http, stream, 40, 20)
    until(http, program, "written", 1)
    assert http.patch(program, content='{"paused": true}', headers=MERGE).status_code == 204
    assert http.get(program, headers=JSON).json()["state"] == "paused"
    post(http, stream, 50, 10)
    assert http.patch(program, content='{"paused": false}', headers=MERGE).status_code == 204
    state = until(http, program, "pushed", 4)
    assert (state["repeated"], state["written"]) == (1, 1)
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


def test_nothing_waits_for_a_busy_program_to_be_deleted_and_no_process_is_left_of_its_server(
    start: Callable[..., Server],
) -> None:
    server = start(store=None, limits={"step_seconds": 10 * PATIENCE})
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as http:
        *_, busy, _ = (register(http, "/", query) for query in ("SPIN push", "SLEEP push", "SLEEP push", HOT))
        post(http, "/", 1)
        time.sleep(0.2)
        family = psutil.Process(server.process.pid).children(recursive=True)
        assert len(family) >= 5
        assert http.delete(busy).status_code == 204
    assert server.stop() == 0
    assert ended(family)


def test_the_processes_of_a_killed_server_end(start: Callable[..., Server]) -> None:
    server = start(store=None, limits={"step_seconds": 60.0})
    register(httpx.Client(base_url=server.url, timeout=PATIENCE), "/", "SPIN push")
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
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as http:
        program = register(http, "/", HOT)
        (nursery,) = psutil.Process(server.process.pid).children()
        nursery.send_signal(signal.SIGKILL)
        assert "starts programs ended" in until(http, program, "state", "stopped")["error"]
        assert http.patch(program, content='{"paused": false}', headers=MERGE).status_code == 204
        post(http, "/", 40, 20)
        until(http, program, "written", 1)


# -- many queries in one process ------------------------------------------------------------------------------------

ROWS = HOT.replace("HOT", "ROWS")


@pytest.fixture
def many(http: httpx.Client, stream: str) -> Iterator[str]:
    """A program of many queries on the stream, which has none yet."""
    answer = http.post(stream, params={"queries": "many"}, headers=QUERY | {"Slug": "alerts"})
    assert answer.status_code == 201, answer.text
    yield answer.headers["location"]
    assert http.delete(answer.headers["location"]).status_code == 204


def add(http: httpx.Client, many: str, name: str, text: str) -> str:
    answer = http.post(many, content=text, headers=QUERY | {"Slug": name})
    assert (answer.status_code, answer.headers["location"]) == (201, f"{many}/{name}"), answer.text
    return answer.headers["location"]


def values(http: httpx.Client, query: str) -> list[str]:
    """The values of the matches of a query."""
    found = http.get(query, headers=JSON).json()["found"]
    return [match["match"]["bindings"]["value"].split('"')[1] for match in found]


def test_queries_come_and_go_while_their_program_runs(http: httpx.Client, stream: str, many: str) -> None:
    low = add(http, many, "low", ROWS)
    post(http, stream, 40)
    until(http, low, "matches", 1)
    high = add(http, many, "high", ROWS.replace("30", "60"))
    post(http, stream, 50, 70)
    until(http, high, "matches", 1)
    until(http, low, "matches", 3)
    assert (values(http, low), values(http, high)) == (["40", "50", "70"], ["70"]), "each with its own matches"
    state = http.get(low, headers=JSON).json()
    assert (state["state"], state["query"], state["program"]) == ("running", ROWS, httpx.URL(many).path)
    assert [match["match"]["query"] for match in state["found"]] == ["low"] * 3
    assert len(http.get(low, params={"after": state["found"][1]["number"]}).json()["found"]) == 1
    assert http.get(many, params={"names": ""}).json() == {"queries": ["high", "low"]}
    assert http.get(many, params={"names": "high"}).json() == {"queries": ["low"]}
    assert http.delete(low).status_code == 204
    assert http.get(low).status_code == 404
    post(http, stream, 80)
    until(http, high, "matches", 2)
    assert http.get(many, headers=JSON).json()["queries"] == 1


def test_a_query_of_many_has_a_tag_and_is_changed_by_it(http: httpx.Client, stream: str, many: str) -> None:
    url = f"{many}/mine"
    assert http.put(url, content=ROWS, headers=QUERY | {"If-None-Match": "*"}).status_code == 201
    assert http.put(url, content=ROWS, headers=QUERY | {"If-None-Match": "*"}).status_code == 412
    answer = http.get(url)
    tag = answer.headers["etag"]
    assert (answer.text, answer.headers["content-type"]) == (ROWS, QUERY["Content-Type"])
    assert http.get(url, headers={"If-None-Match": tag}).status_code == 304
    post(http, stream, 40)
    until(http, url, "matches", 1)
    changed = http.put(url, content=ROWS.replace("30", "60"), headers=QUERY | {"If-Match": tag})
    assert (changed.status_code, changed.headers["etag"] != tag) == (204, True)
    assert http.get(url, headers=JSON).json()["matches"] == 0, "it begins anew"
    assert http.delete(url, headers={"If-Match": tag}).status_code == 412
    post(http, stream, 50, 70)
    until(http, url, "matches", 1)
    assert values(http, url) == ["70"]
    assert http.patch(url, content="{}", headers=MERGE).status_code == 405
    assert http.options(url).headers["allow"] == "GET, HEAD, OPTIONS, PUT, DELETE"
    assert http.delete(url).status_code == 204
    assert add(http, many, "mine", ROWS) == url, "a client chooses the names, and may choose one again"


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("SPIN compile", 422, "compile_seconds"),
        ("EAT compile", 422, "program_bytes"),
        ("nonsense", 400, "expected HOT"),
        (HOT.replace("30", "666"), 400, "666 is refused"),
        ("", 400, "the body is empty"),
        ("ROWS " + "x" * 4_000, 413, "standing_characters"),
    ],
)
def test_a_query_that_is_refused_touches_no_other(
    http: httpx.Client, stream: str, many: str, text: str, status: int, words: str
) -> None:
    honest = add(http, many, "honest", HOT)
    answer = http.post(many, content=text, headers=QUERY)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["detail"]
    post(http, stream, 40)
    until(http, honest, "matches", 1)
    assert http.get(many, params={"names": ""}).json() == {"queries": ["honest"]}


def test_the_queries_of_a_client_and_the_rules_of_a_program_are_limited(
    http: httpx.Client, stream: str, many: str
) -> None:
    for kind in ("ROWS <http://ex.org/a> 1", "ROWS <http://ex.org/b> 1", "ROWS <http://ex.org/c> 1"):
        assert http.post(many, content=kind, headers=QUERY).status_code == 201
    answer = http.post(many, content="ROWS <http://ex.org/d> 1", headers=QUERY)
    assert (answer.status_code, "standing_rules" in answer.json()["detail"]) == (422, True)
    for number in range(3):
        assert http.post(many, content=f"ROWS <http://ex.org/a> 1{number}", headers=QUERY).status_code == 201
    answer = http.post(many, content="ROWS <http://ex.org/a> 99", headers=QUERY)
    assert answer.status_code == 429
    assert "127.0.0.1 has 6 standing queries (queries_per_client); delete some" in answer.json()["detail"]
    assert http.put(f"{many}/query-1", content="ROWS <http://ex.org/a> 7", headers=QUERY).status_code == 204
    assert http.delete(f"{many}/query-2").status_code == 204
    assert http.post(many, content="ROWS <http://ex.org/a> 99", headers=QUERY).status_code == 201


@pytest.mark.parametrize(("text", "reason"), [("MANY push", "matches_per_graph"), ("LONG push", "match_bytes")])
def test_a_query_whose_matches_are_too_much_is_ended_and_the_others_run_on(
    http: httpx.Client, stream: str, many: str, text: str, reason: str
) -> None:
    honest, rogue = add(http, many, "honest", ROWS), add(http, many, "rogue", text)
    post(http, stream, 40)
    assert reason in until(http, rogue, "state", "stopped")["error"]
    post(http, stream, 50)
    until(http, honest, "matches", 2)
    assert values(http, honest) == ["40", "50"]


def test_a_query_that_spins_stops_its_program_until_it_is_deleted(http: httpx.Client, stream: str, many: str) -> None:
    honest, rogue = add(http, many, "honest", ROWS), add(http, many, "rogue", "SPIN push")
    post(http, stream, 40)
    assert "step_seconds" in until(http, many, "state", "stopped")["error"]
    assert "step_seconds" in http.get(honest, headers=JSON).json()["error"]
    answer = http.post(many, content=ROWS, headers=QUERY)
    assert (answer.status_code, "resume it first" in answer.json()["detail"]) == (409, True)
    assert http.delete(rogue).status_code == 204
    assert http.patch(many, content='{"paused": false}', headers=MERGE).status_code == 204
    until(http, honest, "matches", 1)
    assert http.get(many, headers=JSON).json()["state"] == "running"


def test_what_a_program_of_many_does_not_take(http: httpx.Client, stream: str, many: str) -> None:
    assert http.put(many, content=ROWS, headers=QUERY).status_code == 405
    assert http.post(many, content="<> <x:p> 1 .", headers=TTL).status_code == 415
    assert http.get(many, params={"match": "m"}, headers=JSON).status_code == 400
    assert http.post(stream, params={"queries": "many"}, content=ROWS, headers=QUERY).status_code == 400
    assert http.post(stream, params={"queries": "few"}, headers=QUERY).status_code == 400
    assert http.post(stream, content="", headers=QUERY).status_code == 400
    assert http.put(f"{many}/a%20b", content=ROWS, headers=QUERY).status_code == 409
    assert http.get(f"{many}/none").status_code == 404
    assert http.delete(f"{many}/none").status_code == 404


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
    answer = http.post(stream, content=body, headers={"Content-Type": "application/ld+json"}, timeout=PATIENCE)
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
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as slow:
            slow.sendall(beginning)
            begin, received = time.monotonic(), b""
            while data := slow.recv(65_536):
                received += data
            assert b" 408 " in received
            assert time.monotonic() - begin > 0.3


def test_connections_from_one_address_are_limited_and_places_come_free(http: httpx.Client, server: Server) -> None:
    host, port = server.url[7:-1].split(":")
    assert http.get("/").status_code == 200
    held = [socket.create_connection((host, int(port)), timeout=PATIENCE) for _ in range(25)]
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
