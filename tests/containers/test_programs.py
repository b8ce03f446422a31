"""Programs in the server, with a stand-in for the engine: registration, output, restart, explanation, failure."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import httpx
import psutil
import pytest

from etalis_py.containers.match_graphs import match_graph, match_name
from etalis_py.containers.running_program import RunningProgram
from etalis_py.containers.vocabulary import GENERATED_AT
from tests.containers.fake_runner import FakeMatch
from tests.containers.server import Server
from tests.processes import PATIENCE, comes

TURTLE = {"Content-Type": "text/turtle"}
QUERY = {"Content-Type": "application/sparql-query"}
JSON = {"Accept": "application/json"}
STREAM = "<> a <https://solid.ti.rw.fau.de/public/ns/stream-containers#StreamContainer> ."
MERGE = {"Content-Type": "application/merge-patch+json"}
HOT = "HOT <http://ex.org/v> 30"


@pytest.fixture
def stream(http: httpx.Client) -> str:
    return http.post("/", content=STREAM, headers=TURTLE).headers["location"]


def post(http: httpx.Client, url: str, *values: int) -> None:
    for value in values:
        assert http.post(url, content=f"<> <http://ex.org/v> {value} .", headers=TURTLE).status_code == 201


def members(http: httpx.Client, url: str) -> list[str]:
    """The addresses of the graphs in a container, in order of arrival."""
    lines = http.get(f"{url}?after=0", headers={"Accept": "application/x-ndjson"}).text.splitlines()
    return [json.loads(line)["graph"] for line in lines]


def until(http: httpx.Client, url: str, key: str, value: Any) -> dict:
    """The state of a program, once this much of it is so."""
    deadline = time.monotonic() + PATIENCE
    while True:
        state = http.get(url, headers=JSON).json()
        if state[key] == value or time.monotonic() > deadline:
            assert state[key] == value, state
            return state
        time.sleep(0.02)


def test_a_program_reads_a_container_and_writes_its_matches_into_another(http: httpx.Client, stream: str) -> None:
    post(http, stream, 50)
    answer = http.post(stream, content=HOT, headers=QUERY | {"Slug": "hot"})
    assert answer.status_code == 201
    program = answer.headers["location"]
    assert program == f"{stream}hot"
    post(http, stream, 20, 40)
    state = until(http, program, "written", 1)
    assert (state["pushed"], state["matches"], state["running"]) == (2, 1, True), "what came before it does not count"
    output = httpx.URL(stream).join(state["output"])
    (written,) = members(http, str(output))
    assert written.endswith("-hot-2")
    match = http.get(written, headers={"Accept": "application/n-triples"})
    assert f"<{stream}2> <http://ex.org/hotterThan> <{stream}1> ." in match.text
    assert "prov#startedAtTime" in match.text
    assert "prov#generatedAtTime" in match.text
    assert f"<{stream}hot>" in http.get(stream, headers={"Accept": "application/n-triples"}).text
    assert http.get(program).text == HOT
    assert http.get(program).headers["content-type"] == "application/sparql-query"


@pytest.mark.parametrize("kept", ["retainCount> 5", 'retainFor> "PT1S"^^<http://www.w3.org/2001/XMLSchema#duration>'])
def test_a_program_counts_the_graphs_that_were_deleted_before_it_read_them(http: httpx.Client, kept: str) -> None:
    content = f"{STREAM[:-1]} ; <urn:etalis:containers#{kept} ."
    stream = http.post("/", content=content, headers=TURTLE).headers["location"]
    program = http.post(stream, content="SLOW push", headers=QUERY).headers["location"]
    rows = "time,id,v\n" + "".join(f"2020-01-01T{n // 60:02}:{n % 60:02}:00Z,a,{n}\n" for n in range(1_440))
    posted = http.post(f"{stream}?time=time&subject=id", content=rows, headers={"Content-Type": "text/csv"})
    assert posted.json()["graphs"] == 1_440

    def told(state: dict) -> str:
        return " ".join(state["warnings"])

    deadline = time.monotonic() + PATIENCE
    while True:
        state = http.get(program, headers=JSON).json()
        lost = re.search(r"([0-9,]+) graphs were deleted before the program read them, as /", told(state))
        if lost is not None and state["pushed"] + int(lost[1].replace(",", "")) == 1_440:
            break
        assert time.monotonic() < deadline, state
        time.sleep(0.02)
    assert "raise its retainCount, or its retainFor, which counts from their times" in told(state)


def test_graphs_that_a_step_has_left_may_still_be_deleted() -> None:
    program = object.__new__(RunningProgram)
    program.row, program.expiring, program.cursor, program.overtaken = SimpleNamespace(name="p"), {1, 2, 3, 4, 5}, 0, 0
    program._count_overtaken([SimpleNamespace(id=number) for number in (1, 2, 3, 4)])
    assert program.overtaken == 0
    program.cursor = 2  # the step has taken two of them
    program._count_overtaken([SimpleNamespace(id=number) for number in (6, 7)])
    assert program.overtaken == 3
    assert not program.expiring


def test_a_program_may_start_with_the_oldest_member_and_write_into_a_given_container(
    http: httpx.Client, stream: str
) -> None:
    output = http.post("/", content=STREAM, headers=TURTLE).headers["location"]
    post(http, stream, 50, 20, 60)
    parameters = {"from": "oldest", "output": httpx.URL(output).path}
    program = http.post(stream, content=HOT, headers=QUERY, params=parameters).headers["location"]
    until(http, program, "written", 2)
    assert [name.rpartition("-hot-")[2] for name in members(http, output)] == ["0", "2"]
    assert http.delete(output).status_code == 409, "a program writes there"


def test_matches_are_listed_and_explained(http: httpx.Client, stream: str) -> None:
    program = http.post(stream, content=HOT.replace("HOT", "ROWS"), headers=QUERY).headers["location"]
    post(http, stream, 20, 40, 50)
    state = until(http, program, "matches", 2)
    assert state["written"] == 0, "a row of SELECT becomes no member"
    assert [f["number"] for f in state["found"]] == [1, 2]
    match = state["found"][0]["match"]
    assert match["bindings"]["value"].startswith('"40"')
    assert [f["number"] for f in http.get(program, params={"after": 1}, headers=JSON).json()["found"]] == [2]
    why = http.get(program, params={"match": match["id"]}, headers=JSON).json()["why"]
    assert [e["graph"] for e in why["events"]] == [f"<{stream}0>", f"<{stream}1>"]
    assert {node["kind"] for node in state["rules"]["nodes"]} == {"leaf", "goal", "rule"}
    unknown = http.get(program, params={"match": "none"}, headers=JSON)
    assert (unknown.status_code, unknown.json()["type"]) == (404, "/-/constraints#no-match")


def test_what_no_graph_has_is_among_the_warnings(http: httpx.Client, stream: str) -> None:
    program = http.post(stream, content="ROWS <http://ex.org/v> 1000", headers=QUERY).headers["location"]
    assert until(http, program, "state", "running")["warnings"] == []
    post(http, stream, 20)
    until(http, program, "warnings", ["no reading was above the limit"])


def test_why_a_match_did_not_come(http: httpx.Client, stream: str) -> None:
    program = http.post(stream, content=HOT, headers=QUERY).headers["location"]
    until(http, program, "state", "running")
    answer = http.get(program, params={"where": "?v = 3", "at": "5"}, headers=JSON).json()
    assert answer == {
        "where": "?v = 3",
        "at": "5",
        "whyNot": {"text": "nothing is hot where ?v = 3", "report": "nothing is hot where ?v = 3"},
    }
    refused = http.get(program, params={"where": "?"}, headers=JSON)
    assert (refused.status_code, "where is not a condition" in refused.text) == (400, True)


def test_of_all_that_replace_the_same_query_the_first_is_taken(http: httpx.Client, stream: str) -> None:
    """All have read it, and their new queries compile at the same time."""
    program = http.post(stream, content=HOT, headers=QUERY).headers["location"]
    read = QUERY | {"If-Match": http.get(program).headers["etag"]}
    texts = [f"HOT <http://ex.org/v> {n}" for n in range(8)]
    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(lambda text: http.put(program, content=text, headers=read).status_code, texts))
    assert sorted(answers) == [204] + 7 * [412]
    assert http.get(program).text == texts[answers.index(204)]


def test_a_program_that_is_deleted_while_it_is_resumed_leaves_no_process(
    http: httpx.Client, server: Server, stream: str
) -> None:
    def processes() -> set[int]:
        return {child.pid for child in psutil.Process(server.process.pid).children(recursive=True)}

    before = processes()
    for pause in range(10):
        program = http.post(stream, content=HOT, headers=QUERY).headers["location"]
        assert http.patch(program, content='{"paused": true}', headers=MERGE).status_code == 204
        with ThreadPoolExecutor() as clients:
            resumed = clients.submit(http.patch, program, content='{"paused": false}', headers=MERGE)
            time.sleep(0.003 * pause)
            assert http.delete(program).status_code == 204
            assert resumed.result().status_code in (204, 404, 410)
    assert comes(lambda: processes() <= before)


def test_a_member_that_is_withdrawn_takes_its_matches_back(start: Callable[..., Server]) -> None:
    with httpx.Client(base_url=start(engine="etalis", revise=3_600_000_000).url, timeout=PATIENCE) as http:
        stream = http.post("/", content=STREAM, headers=TURTLE).headers["location"]
        query = "CONSTRUCT { ?x <urn:hot> ?v } WHERE { ?x <http://ex.org/v> ?v FILTER (?v > 30) }"
        program = http.post(stream, content=query, headers=QUERY).headers["location"]
        post(http, stream, 20, 40, 10)
        output = until(http, program, "written", 1)["output"]
        [hot] = members(http, output)
        text = http.get(program, params={"where": "?v = 20"}, headers=JSON).json()["whyNot"]["text"]
        assert "FILTER (?v > 30)" in text
        assert "20 > 30 fails by 10" in text
        wrong = members(http, stream)[1]
        withdrawal = f"<> <urn:etalis:retracts> <{wrong}> ."
        assert http.post(stream, content=withdrawal, headers=TURTLE).status_code == 201
        state = until(http, program, "written", 2)
        assert [match["match"].get("retracted", False) for match in state["found"]] == [False, True]
        assert members(http, output) == [hot, f"{hot}-retracted"]
        back = http.get(f"{hot}-retracted", headers={"Accept": "application/n-triples"}).text
        assert f"<{hot}-retracted> <urn:etalis:retracts> <{hot}> ." in back


def test_only_a_program_that_makes_graphs_gets_a_container(http: httpx.Client, stream: str) -> None:
    rows, path = HOT.replace("HOT", "ROWS"), httpx.URL(stream).path
    answer = http.post(stream, content=rows, headers=QUERY | {"Slug": "hot"})
    program = answer.headers["location"]
    assert f"{path}hot-matches/" not in [c["path"] for c in http.get("/-/status").json()["containers"]]
    assert "output" not in answer.headers["link"] + http.get(program).headers["link"]
    post(http, stream, 40)
    assert until(http, program, "matches", 1)["output"] == ""
    assert http.put(program, content=HOT, headers=QUERY).status_code == 204
    post(http, stream, 50)
    assert until(http, program, "written", 1)["output"] == f"{path}hot-matches/"


def test_a_query_has_the_name_of_its_program(http: httpx.Client, stream: str) -> None:
    def register(_: int) -> str:
        return http.post(stream, content=HOT, headers=QUERY | {"Slug": "hot"}).headers["location"]

    with ThreadPoolExecutor(4) as pool:
        programs = sorted(pool.map(register, range(4)))
    names = [url.rpartition("/")[2] for url in programs]
    assert names == ["hot", "hot-2", "hot-3", "hot-4"]
    post(http, stream, 40)
    for url, name in zip(programs, names, strict=True):
        assert until(http, url, "matches", 1)["found"][0]["match"]["query"] == name


def test_two_programs_may_write_into_one_container(http: httpx.Client, stream: str) -> None:
    output = http.post("/", content=STREAM, headers=TURTLE).headers["location"]
    parameters = {"output": httpx.URL(output).path}
    programs = [http.post(stream, content=HOT, headers=QUERY, params=parameters).headers["location"] for _ in range(2)]
    post(http, stream, 50)
    for program in programs:
        until(http, program, "written", 1)
    assert len(members(http, output)) == 2, "both found a match of the same id"


def test_after_a_restart_the_program_goes_on_and_writes_nothing_twice(start: Callable[..., Server]) -> None:
    server = start()
    with httpx.Client(base_url=server.url) as http:
        stream = http.post("/", content=STREAM, headers=TURTLE | {"Slug": "s"}).headers["location"]
        program = http.post(stream, content=HOT, headers=QUERY | {"Slug": "hot"}).headers["location"]
        post(http, stream, 40, 20)
        until(http, program, "written", 1)
    server.kill()
    server.start()
    with httpx.Client(base_url=server.url) as http:
        state = until(http, "/s/hot", "pushed", 2)
        state = until(http, "/s/hot", "repeated", 1)
        assert state["written"] == 0
        post(http, "/s/", 60)
        until(http, "/s/hot", "written", 1)
        names = http.get("/s/hot-matches/", headers={"Accept": "application/n-triples"}).text
        assert names.count("ldp#contains") == 2


def test_a_query_that_does_not_compile_is_refused_with_the_compilers_words(http: httpx.Client, stream: str) -> None:
    answer = http.post(stream, content="SELECT nonsense", headers=QUERY)
    assert answer.status_code == 400
    assert "line 1, column 1: expected HOT" in answer.json()["detail"]
    assert http.post(stream, content=b"\xff", headers=QUERY).status_code == 400
    assert http.post(stream, content=HOT, headers=QUERY, params={"from": "tomorrow"}).status_code == 400
    assert http.post(stream, content=HOT, headers=QUERY, params={"output": "/none/"}).status_code == 404
    path = httpx.URL(stream).path
    assert http.post(stream, content=HOT, headers=QUERY, params={"output": path}).status_code == 409


def test_a_program_is_deleted(http: httpx.Client, stream: str) -> None:
    program = http.post(stream, content=HOT, headers=QUERY | {"Slug": "gone"}).headers["location"]
    assert http.delete(stream).status_code == 409
    assert http.put(program, content="", headers=TURTLE).status_code == 415
    assert http.post(program, content="", headers=TURTLE).status_code == 405
    assert http.options(program).headers["allow"] == "GET, HEAD, OPTIONS, PUT, PATCH, DELETE"
    assert http.delete(program).status_code == 204
    assert http.get(program).status_code == 410
    post(http, stream, 99)
    again = http.post(stream, content=HOT, headers=QUERY | {"Slug": "gone"}).headers["location"]
    assert again == f"{program}-2"


def test_a_program_that_fails_says_so_and_harms_nobody(http: httpx.Client, stream: str) -> None:
    program = http.post(stream, content=HOT, headers=QUERY).headers["location"]
    assert http.post(stream, content='<> <http://ex.org/v> "warm" .', headers=TURTLE).status_code == 201
    state = until(http, program, "running", False)
    assert "could not convert" in state["error"]
    assert http.get("/-/status").status_code == 200


@pytest.fixture(autouse=True)
def forget_the_expected_failure(server: Server) -> Any:
    yield
    text = server.log.read_text()
    if "could not convert" in text:
        server.log.write_text("")


def test_without_an_engine_programs_are_refused(start: Callable[..., Server]) -> None:
    server = start(store=None, engine="")
    answer = httpx.post(server.url, content=HOT, headers=QUERY)
    assert answer.status_code == 501
    assert "without an engine" in answer.json()["detail"]


def test_programs_are_limited(start: Callable[..., Server]) -> None:
    server = start(store=None, limits={"programs": 1})
    assert httpx.post(server.url, content=HOT, headers=QUERY).status_code == 201
    assert httpx.post(server.url, content=HOT, headers=QUERY).status_code == 429


def test_matches_as_graphs() -> None:
    row = FakeMatch("7", {"x": '"1"', "y": "<x:a>", "z": ""}, (), 0, 1_500_000)
    text = match_graph(row, GENERATED_AT).decode()
    assert 'result-set#variable> "x"' in text
    assert '"z"' in text, "an unbound variable is named, but has no binding"
    assert text.count("result-set#variable>") == 2
    assert f'<> {GENERATED_AT} "1970-01-01T00:00:01.5Z"' in text
    assert match_name("q-1f") == "q-1f"
    assert match_name("7").startswith("m-")
    assert match_name("a/b") != match_name("a/c")


def test_metrics_speak_the_format_of_prometheus(http: httpx.Client, stream: str) -> None:
    program = http.post(stream, content=HOT, headers=QUERY).headers["location"]
    post(http, stream, 40, 20)
    until(http, program, "written", 1)
    time.sleep(1.1)  # the state of the server is at most a second old
    answer = http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    labels = f'{{program="{httpx.URL(program).path}",input="{httpx.URL(stream).path}"}}'
    assert samples[f"etalis_program_matches_total{labels}"] == "1"
    assert samples[f"etalis_program_running{labels}"] == "1"
    assert samples[f'etalis_container_graphs{{container="{httpx.URL(stream).path}"}}'] == "2"
    kinds = [line.split(" ")[2] for line in answer.text.splitlines() if line.startswith("# TYPE")]
    assert len(kinds) == len(set(kinds))


def test_a_query_is_checked_without_running_it(http: httpx.Client, stream: str) -> None:
    path = httpx.URL(stream).path
    answer = http.post("/-/check", params={"stream": path}, content=HOT, headers=QUERY)
    assert answer.status_code == 200
    assert len(answer.json()["rules"]["nodes"]) == 3
    assert http.post("/-/check", content="nonsense", headers=QUERY).status_code == 400
    assert http.get(stream, headers={"Accept": "application/n-triples"}).text.count("ldp#contains") == 0
