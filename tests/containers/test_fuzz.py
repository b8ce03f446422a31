"""Random requests, from almost right to plain noise: never a 500, never a hang, and the server is well afterwards."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from contextlib import suppress

import httpx
import pytest

from tests.containers.server import Server
from tests.processes import PATIENCE

LDP = "http://www.w3.org/ns/ldp#"
SC = "https://solid.ti.rw.fau.de/public/ns/stream-containers#"
XSD = "http://www.w3.org/2001/XMLSchema#"
WINDOW = f"<{LDP}membershipResource> <#w> ; <{LDP}hasMemberRelation> <x:in> ; <{SC}contentTimestampRelation> <x:t>"
PARAMETERS = ["window", "at", "after", "newest", "limit", "from", "upto", "output", "match", "x"]
METHODS = ["GET", "GET", "HEAD", "OPTIONS", "POST", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"]
SEGMENTS = [
    "s",
    "t",
    "0",
    "1",
    "17",
    "-",
    "status",
    "hot",
    "a%00b",
    "%2e%2e",
    "..",
    "%ff",
    "x" * 300,
    "é",
    "a b",
    "*",
    "",
]
WORDS = [
    "<>",
    "<#w>",
    "a",
    f"<{LDP}contains>",
    f"<{SC}StreamContainer>",
    f"<{LDP}DirectContainer>",
    f"<{SC}window>",
    "[",
    "]",
    "(",
    ")",
]
WORDS += [
    f"<{SC}logical>",
    f"<{SC}physical>",
    f'"PT2M"^^<{XSD}duration>',
    f'"P9999999999999999Y"^^<{XSD}duration>',
    "5",
    "-1",
    "1e999",
]
WORDS += [
    f"<{LDP}membershipResource>",
    f"<{LDP}hasMemberRelation>",
    f"<{SC}contentTimestampRelation>",
    "<x:t>",
    ".",
    ";",
    ",",
    "_:b",
]
WORDS += [
    f'"{t}"^^<{XSD}dateTime>'
    for t in ("2021-07-20T10:51:08Z", "-99999999-01-01T00:00:00Z", "292277-01-01T00:00:00Z", "x")
]
WORDS += [
    "<urn:etalis:containers#retainCount>",
    "<urn:etalis:containers#retainFor>",
    '"\\uD800"',
    '"\\u0000"',
    "'",
    "{",
    "}",
    "\x00",
    "é",
]
TAGS = ["*", '"c1.1.1"', '"m1.1-ttl"', 'W/"m1.1-ttl"', '"', "x", '"a", "b"', "", "é"]
VALUES = [
    "",
    "0",
    "1",
    "-1",
    "9" * 18,
    "9" * 40,
    "now",
    "w",
    "2021-07-20T10:51:08Z",
    "292277-01-09T04:00:54Z",
    "0_0_0",
    "1_-5_9",
    "é",
    "%00",
    "٣",
]
HEADERS: dict[str, list[str]] = {
    "Content-Type": [
        "text/turtle",
        "application/ld+json",
        "application/trig",
        "application/n-quads",
        "application/sparql-update",
        "application/sparql-query",
        "text/turtle; charset=latin-1",
        "",
        ";;;",
        "text/turtle; charset",
    ],
    "Accept": [
        "*/*",
        "text/turtle",
        "application/ld+json",
        "text/html",
        "application/trig",
        "application/x-ndjson",
        "a/b;q=x",
        ",,,",
        "application/json",
    ],
    "If-Match": TAGS,
    "If-None-Match": TAGS,
    "Slug": ["s", "t", "..", "/", "a/../b", "é", "x" * 500, "7", ""],
    "Link": [f'<{LDP}{m}>; rel="type"' for m in ("BasicContainer", "DirectContainer", "Resource", "IndirectContainer")]
    + ["<", '<x>; rel="', ";"],
    "Prefer": [
        f'return=representation; include="{LDP}PreferMinimalContainer"',
        "return=representation; max-member-count=1",
        '="',
        ",;=",
        "return=minimal",
    ],
    "Host": ["127.0.0.1", "localhost:99999", "[::1]", "x", "a b", "\x01"],
    "Content-Encoding": ["gzip", "identity"],
    "Last-Event-ID": ["1", "x"],
    "Origin": ["null", "http://127.0.0.1", "x"],
    "Authorization": ["Bearer x", "é", ""],
}


def draw_body(r: random.Random) -> bytes:
    kind = r.random()
    if kind < 0.15:
        return b""
    if kind < 0.25:
        return r.randbytes(r.randrange(60))
    if kind < 0.35:
        return r.choice(
            [
                b"[" * 100_000,
                b"(" * 50_000,
                b'{"@id":"",' * 2000,
                b"<> <x:p> " + b"[ <x:p> " * 20_000,
                b'{"@graph":[[[{}]]]}',
            ]
        )
    if kind < 0.45:
        where = " ".join(
            r.choices(["?s", "?p", "?o", "<>", "<x:t>", ".", "{", "}", "FILTER", '"a"', "_:b"], k=r.randrange(12))
        )
        return (
            r.choice(["DELETE WHERE {", "INSERT DATA {", "LOAD", "DELETE {} INSERT {} WHERE {"]) + where + "}"
        ).encode()
    if kind < 0.5:
        return r.choice([b"HOT <http://ex.org/v> 30", b"ROWS <x:t> 1", b"HOT <x:t> 666", b"SELECT *"])
    if kind < 0.7:
        window = f"{WINDOW} ; "
        size = r.choice(
            [f'<{SC}logical> "{d}"^^<{XSD}duration>' for d in ("PT1S", "P9999Y", "-P1D", "P0D", "PT0.0000001S")]
            + [f"<{SC}physical> 2"]
        )
        return f"<> a <{SC}StreamContainer> ; <{SC}window> [ {window} {size} ] .".encode()
    return " ".join(r.choices(WORDS, k=r.randrange(1, 12))).encode(errors="replace")


def draw(r: random.Random, home: str) -> bytes:
    """One request as bytes, often to the container ``home``; Connection: close, so that its answer ends."""
    path = "/" + "/".join(r.choices(SEGMENTS, weights=[20, 8, 8] + [1] * (len(SEGMENTS) - 4) + [20], k=r.randrange(4)))
    if r.random() < 0.6:
        path = r.choice(
            ["/", home, home, home, f"{home}0", f"{home}1", f"{home}2", f"{home}hot", f"{home}s", f"{home}t/"]
        )
    if r.random() < 0.3:
        path += "?" + "&".join(f"{r.choice(PARAMETERS)}={r.choice(VALUES)}" for _ in range(r.randrange(1, 3)))
    body = draw_body(r)
    headers = {"Host": "127.0.0.1", "Connection": "close", "Content-Length": str(len(body))}
    headers |= {
        name: r.choice(HEADERS[name])
        for name in r.sample(list(HEADERS), k=r.randrange(5))
        if name != "Host" or r.random() < 0.2
    }
    if r.random() < 0.6:
        headers |= {"Content-Type": "text/turtle", "If-Match": r.choice(["*", "*", '"m1.1-ttl"'])}
        headers.pop("Content-Encoding", None)
    head = f"{r.choice(METHODS)} {path} HTTP/1.1\r\n" + "".join(f"{n}: {value}\r\n" for n, value in headers.items())
    return head.encode(errors="replace") + b"\r\n" + body


def ask(address: tuple[str, int], request: bytes) -> bytes:
    """The answer to a request; that none comes within five seconds is a failure."""
    with socket.create_connection(address, timeout=PATIENCE) as raw:
        answer = b""
        with suppress(BrokenPipeError, ConnectionResetError):
            raw.sendall(request)
        with suppress(ConnectionResetError):
            while data := raw.recv(65536):
                answer += data
        return answer


def prepare(server: Server) -> str:
    """A fresh container with a window, three members and a program."""
    size = f'<{SC}logical> "P1D"^^<{XSD}duration>'
    body = f"<> a <{SC}StreamContainer> ; <{SC}window> [ {WINDOW} ; {size} ] ."
    with httpx.Client(base_url=server.url) as http:
        for path in http.get("/-/status").json()["programs"]:
            http.delete(path["program"])
        home = http.post("/", content=body, headers={"Content-Type": "text/turtle"}).headers["location"]
        for i in range(3):
            http.post(home, content=f"<> <http://ex.org/v> {i} .", headers={"Content-Type": "text/turtle"})
        http.post(
            home, content="HOT <http://ex.org/v> 1", headers={"Content-Type": "application/sparql-query", "Slug": "hot"}
        )
        return httpx.URL(home).path


def fuzz(server: Server, seed: int, count: int) -> dict[int, int]:
    host, port = server.url[7:-1].split(":")
    r = random.Random(seed)
    statuses: dict[int, int] = {}
    for i in range(count):
        if i % 50 == 0:
            home = prepare(server)
        request = draw(r, home)
        try:
            answer = ask((host, int(port)), request)
        except TimeoutError:
            pytest.fail(f"no answer to request {i} of seed {seed}: {request[:500]!r}")
        first = answer.split(b"\r\n")[0]
        status = int(first.split(b" ")[1]) if first.startswith(b"HTTP/1.1 ") else 0
        assert status not in (500, 502), f"request {i} of seed {seed}: {request[:1000]!r}\n{answer[-600:]!r}"
        statuses[status] = statuses.get(status, 0) + 1
    return statuses


@pytest.mark.parametrize("seed", [7])
def test_random_requests(start: Callable[..., Server], seed: int) -> None:
    count = 2000
    server = start(store=None, limits={"containers": 2000, "programs": 8})
    statuses = fuzz(server, seed=seed, count=count)
    assert {200, 201, 204, 400, 404, 405, 409, 412, 415, 422, 428} <= statuses.keys(), statuses
    assert sum(statuses.values()) == count
    with httpx.Client(base_url=server.url) as http:
        assert http.get("/").status_code == 200
        assert http.get("/-/status").status_code == 200
        assert http.post("/", content="", headers={"Content-Type": "text/turtle"}).status_code == 201
    server.log.write_text("\n".join(line for line in server.log.read_text().splitlines() if "the program" not in line))
