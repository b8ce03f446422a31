"""What the server refuses: tokens, hosts, origins, sizes, remote contexts, paths; and how it says so (RFC 9457)."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
from collections.abc import Callable

import httpx
import pytest

from tests.containers.server import Server
from tests.processes import PATIENCE

TURTLE = {"Content-Type": "text/turtle"}
JSONLD = {"Content-Type": "application/ld+json"}


def problem(response: httpx.Response, status: int, kind: str) -> dict:
    """A problem document with everything that RFC 9457 and this server promise of it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["type"] == f"/-/constraints#{kind}"
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    assert document["hint"]
    assert document["instance"] == response.request.url.path
    return document


def test_with_a_token_reading_is_free_and_writing_is_not(start: Callable[..., Server]) -> None:
    server = start(store=None, host="127.0.0.1", token="s3cret")
    with httpx.Client(base_url=server.url) as http:
        assert http.get("/").status_code == 200
        assert http.get("/-/status").json()["writable"] is False
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic s3cret"}):
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                answer = http.request(method, "/", content="", headers=TURTLE | headers)
                problem(answer, 401, "unauthorized")
                assert answer.headers["www-authenticate"] == "Bearer"
        allowed = {"Authorization": "Bearer s3cret"}
        assert http.post("/", content="", headers=TURTLE | allowed).status_code == 201
        assert http.get("/-/status", headers=allowed).json()["writable"] is True


def test_a_server_for_other_machines_needs_a_token(start: Callable[..., Server]) -> None:
    server = start(store=None, host="0.0.0.0", token="s3cret")
    port = server.url.rstrip("/").rpartition(":")[2]
    url = f"http://127.0.0.1:{port}/"
    assert httpx.get(url, headers={"Host": "streams.example.org"}).status_code == 200
    assert httpx.post(url, content="", headers=TURTLE).status_code == 401


def test_behind_a_proxy_addresses_begin_with_the_base_url(start: Callable[..., Server]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = start(store=None, base_url="https://streams.example.org", port=port)
    assert server.url == "https://streams.example.org/"
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as http:
        answer = http.post("/", content="<> <x:p> <#it> .", headers=TURTLE)
        assert answer.headers["location"] == "https://streams.example.org/0"
        text = http.get("/0", headers={"Accept": "application/n-triples", "Host": "streams.example.org"}).text
        assert "<https://streams.example.org/0> <x:p> <https://streams.example.org/0#it> ." in text


def test_a_loopback_server_answers_for_no_other_host(http: httpx.Client) -> None:
    problem(http.get("/", headers={"Host": "evil.example.org"}), 421, "wrong-host")
    problem(http.get("/", headers={"Host": "a b"}), 400, "bad-request")
    assert http.get("/", headers={"Host": "localhost:1234"}).text.startswith("@base <http://localhost:1234/>")


def test_pages_of_other_sites_may_not_write(http: httpx.Client, server: Server, start: Callable[..., Server]) -> None:
    problem(http.post("/", content="", headers=TURTLE | {"Origin": "https://evil.org"}), 403, "forbidden")
    assert http.post("/", content="", headers=TURTLE | {"Origin": server.url.rstrip("/")}).status_code == 201
    assert "access-control-allow-origin" not in http.get("/", headers={"Origin": "https://evil.org"}).headers
    open_server = start(store=None, allow_origins=["https://good.org"])
    answer = httpx.post(open_server.url, content="", headers=TURTLE | {"Origin": "https://good.org"})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (201, "https://good.org")
    preflight = {"Origin": "https://good.org", "Access-Control-Request-Method": "PUT"}
    assert "PUT" in httpx.options(open_server.url, headers=preflight).headers["access-control-allow-methods"]


def test_sizes_are_limited(start: Callable[..., Server]) -> None:
    server = start(
        store=None, limits={"body_bytes": 2000, "triples_per_graph": 10, "nesting_depth": 2, "containers": 4}
    )
    container = TURTLE | {"Link": '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'}
    with httpx.Client(base_url=server.url) as http:
        said = problem(http.post("/", content="#" * 2001, headers=TURTLE), 413, "too-large")
        assert "body_bytes" in said["detail"]
        chunked = http.post("/", content=iter([b"#" * 1500, b"#" * 1500]), headers=TURTLE)
        problem(chunked, 413, "too-large")
        many = "".join(f"<> <x:p> {i} ." for i in range(11))
        assert "triples_per_graph" in problem(http.post("/", content=many, headers=TURTLE), 413, "too-large")["detail"]
        url = http.post("/", content="", headers=container).headers["location"]
        url = http.post(url, content="", headers=container).headers["location"]
        assert "nesting_depth" in problem(http.post(url, content="", headers=container), 429, "limit")["detail"]
        http.post("/", content="", headers=container)
        assert "(containers)" in problem(http.post("/", content="", headers=container), 429, "limit")["detail"]


@pytest.mark.parametrize("length", [101, 1000])
def test_a_query_that_is_too_long_names_its_own_limit(start: Callable[..., Server], length: int) -> None:
    """Also one that is not read to its end."""
    server = start(store=None, limits={"query_characters": 100})
    query = {"Content-Type": "application/sparql-query"}
    said = problem(httpx.post(f"{server.url}-/check?stream=/", content="#" * length, headers=query), 413, "too-large")
    assert "(query_characters)" in said["detail"]
    assert said["hint"] == "Send less at once, or raise the limit."


def test_a_body_that_does_not_come_is_not_waited_for(start: Callable[..., Server]) -> None:
    server = start(store=None, limits={"body_seconds": 0.3})
    host, port = server.url[7:-1].split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as slow:
        slow.sendall(
            f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/turtle\r\n".encode()
            + b"Content-Length: 100\r\n\r\n<> <x:p>"
        )
        assert b"408" in slow.recv(65536).split(b"\r\n")[0]


def test_open_connections_are_limited(start: Callable[..., Server]) -> None:
    server = start(store=None, limits={"connections": 3})
    host, port = server.url[7:-1].split(":")
    held = [socket.create_connection((host, int(port))) for _ in range(4)]
    assert httpx.get(server.url).status_code == 503
    for connection in held:
        connection.close()


def test_remote_contexts_are_never_fetched(http: httpx.Client) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.5)
        context = f"http://127.0.0.1:{listener.getsockname()[1]}/context.jsonld"
        for document in ({"@context": context, "@id": ""}, {"@context": {"@import": context}, "@id": ""}):
            answer = http.post("/", content=json.dumps(document), headers=JSONLD)
            assert "remote context" in problem(answer, 422, "constraint")["detail"]
        with pytest.raises(TimeoutError):
            listener.accept()


def test_no_path_leaves_the_store(http: httpx.Client, server: Server) -> None:
    host, port = server.url[7:-1].split(":")
    for path in (
        "/../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/-/../../etc/passwd",
        "/-/%2e%2e/app.py",
    ):
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as raw:
            raw.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            assert b" 404 " in raw.recv(65536).split(b"\r\n")[0]
    for name in ("-", "a b", "é", "a" * 200, "%2e%2e"):
        answer = http.put(f"/{name}", content="", headers=TURTLE | {"If-None-Match": "*"})
        assert answer.status_code in (400, 404, 405, 409, 415), (name, answer.text)
    problem(http.put("/123", content="", headers=TURTLE), 409, "conflict")


@pytest.mark.parametrize(
    ("request_", "status", "kind"),
    [
        (("GET", "/none", {}, ""), 404, "not-found"),
        (("GET", "/none/", {}, ""), 404, "not-found"),
        (("GET", "/", {"Accept": "image/png"}, ""), 406, "not-acceptable"),
        (("GET", "/?colour=red", {}, ""), 400, "bad-request"),
        (("GET", "/?window=w", {}, ""), 404, "not-found"),
        (("GET", "/?at=now", {}, ""), 400, "bad-request"),
        (("GET", "/?after=-1", {}, ""), 400, "bad-request"),
        (("GET", "/?from=1_2", {}, ""), 400, "bad-request"),
        (("GET", "/?limit=0", {}, ""), 400, "bad-request"),
        (("GET", "/?limit=5&limit=6", {}, ""), 400, "bad-request"),
        (("GET", "/", {"If-None-Match": "no quotes"}, ""), 400, "bad-request"),
        (("POST", "/", {}, "x"), 415, "wrong-type"),
        (("POST", "/", {"Content-Type": "text/turtle; charset=utf-16"}, ""), 415, "wrong-type"),
        (("POST", "/", TURTLE, "<> a"), 400, "bad-request"),
        (("POST", "/", TURTLE, b"\xff\xfe"), 400, "bad-request"),
        (
            ("POST", "/", {"Content-Type": "application/trig"}, "<x:g> { <> a <x:y> } <x:h> { <> a <x:z> }"),
            422,
            "constraint",
        ),
        (("POST", "/none/", TURTLE, ""), 404, "not-found"),
        (("POST", "/-/status", TURTLE, ""), 405, "no-method"),
        (("GET", "/-/nothing", {}, ""), 404, "not-found"),
        (("PROPFIND", "/", {}, ""), 405, "no-method"),
        (("PATCH", "/", TURTLE, ""), 415, "wrong-type"),
        (("DELETE", "/", {}, ""), 409, "conflict"),
    ],
)
def test_refusals_say_what_is_wrong(http: httpx.Client, request_: tuple, status: int, kind: str) -> None:
    method, path, headers, body = request_
    problem(http.request(method, path, headers=headers, content=body), status, kind)


def test_a_compressed_body_is_refused_rather_than_inflated(http: httpx.Client) -> None:
    body = gzip.compress(b"<> a <x:y> .")
    problem(http.post("/", content=body, headers=TURTLE | {"Content-Encoding": "gzip"}), 415, "wrong-type")


def test_a_time_that_cannot_be_read_is_refused_not_replaced(http: httpx.Client) -> None:
    for value in ('"yesterday"', '"2021-13-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>', "5", "<x:t>"):
        answer = http.post("/", content=f"<> <http://www.w3.org/ns/prov#generatedAtTime> {value} .", headers=TURTLE)
        assert "orders this container" in problem(answer, 422, "constraint")["detail"]


def test_signals_end_the_server_cleanly(start: Callable[..., Server]) -> None:
    server = start(store=None)
    with httpx.stream("GET", server.url, headers={"Accept": "text/event-stream"}) as response:
        assert response.status_code == 200
        assert server.stop() == 0


def test_a_port_that_is_taken_is_said(start: Callable[..., Server], server: Server) -> None:
    port = server.url.rstrip("/").rpartition(":")[2]
    program = f"from etalis_py.containers import serve; serve(port={port}, store=None)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert "choose another port or host" in done.stderr
