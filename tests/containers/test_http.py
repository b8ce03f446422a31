"""Requests byte by byte: where two readers of HTTP could see different requests, none is answered."""

from __future__ import annotations

import select
import socket
from contextlib import suppress

import httpx
import pytest

from tests.containers.server import Server
from tests.processes import PATIENCE

HOST = b"Host: 127.0.0.1\r\n"
TURTLE = HOST + b"Content-Type: text/turtle\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
SECOND = b"GET /-/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def answers(server: Server, *pieces: bytes) -> bytes:
    """Everything that comes back until the server closes the connection; pieces are sent one after the other."""
    host, port = server.url[7:-1].split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as raw:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            raw.sendall(piece)
            if len(pieces) > 1 and select.select([raw], [], [], 0.001)[0]:
                break  # it answers already: what is sent after a refusal would reset the connection
        received = b""
        with suppress(ConnectionResetError):  # it may answer and close a moment after the last piece but one
            while data := raw.recv(65_536):
                received += data
        return received


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (b"POST / HTTP/1.1\r\n" + TURTLE + CHUNKED + b"Content-Length: 3\r\n\r\n0\r\n\r\n", b"send one of them"),
        (
            b"POST / HTTP/1.1\r\n" + TURTLE + b"Content-Length: 0\r\ntransfer-ENCODING: chunked\r\n\r\n0\r\n\r\n",
            b"one of",
        ),
        (b"POST / HTTP/1.0\r\n" + TURTLE + CHUNKED + b"\r\n0\r\n\r\n", b"HTTP/1.0"),
        (b"POST / HTTP/1.1\r\n" + TURTLE + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n#", b"not HTTP/1.1"),
        (b"POST / HTTP/1.1\r\n" + TURTLE + b"Content-Length: +1\r\n\r\n#", b"not HTTP/1.1"),
        (b"POST / HTTP/1.1\r\n" + TURTLE + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", b"not HTTP/1.1"),
        (b"GET / HTTP/1.1\nHost: 127.0.0.1\n\n", b"line feed alone"),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\nX: y\r\n\r\n", b"line feed alone"),
        (b"GET / HTTP/1.1\r\n" + HOST + b"\n", b"line feed alone"),
        (b"\nGET / HTTP/1.1\r\n" + HOST + b"\r\n", b"line feed alone"),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n z\r\n\r\n", b"second line"),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n\tContent-Length: 5\r\n\r\n", b"second line"),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X : y\r\n\r\n", b"not HTTP/1.1"),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: a\rb\r\n\r\n", b"not HTTP/1.1"),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: a\x00b\r\n\r\n", b"not HTTP/1.1"),
    ],
)
@pytest.mark.parametrize("cut", [0, 1], ids=["at once", "byte by byte"])
def test_a_request_that_may_be_cut_elsewhere_is_refused_and_what_follows_is_not_read(
    server: Server, request_: bytes, words: bytes, cut: int
) -> None:
    whole = request_ + SECOND
    received = answers(server, *([bytes([byte]) for byte in request_] if cut else [whole]))
    assert received.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"connection: close" in received
    assert received.count(b"HTTP/1.1 ") == 1, "the second request was not answered"
    assert words in received


@pytest.mark.parametrize(
    "body",
    [
        b"3\n#ab\r\n0\r\n\r\n",
        b"3\r\n#ab\n0\r\n\r\n",
        b"3\r\n#abc\r\n0\r\n\r\n",
        b"0\r\nX: y\n\r\n",
        b"0\r\nX: y\r\n z\r\n\r\n",
    ],
)
def test_a_body_in_chunks_is_read_as_strictly(server: Server, body: bytes) -> None:
    received = answers(server, b"POST / HTTP/1.1\r\n" + TURTLE + CHUNKED + b"\r\n" + body + SECOND)
    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.count(b"HTTP/1.1 ") == 1


def test_what_is_unambiguous_is_answered(http: httpx.Client, server: Server) -> None:
    """Bodies with either framing, line feeds in a body, requests one behind the other, and a head in pieces."""
    turtle = b"# one line\n<#a> <#b> 1 .\n\n"
    lengths = b"POST / HTTP/1.1\r\n" + TURTLE + b"Content-Length: %d\r\n\r\n" % len(turtle) + turtle
    chunks = b"POST / HTTP/1.1\r\n" + TURTLE + CHUNKED + b"\r\n%x\r\n" % len(turtle) + turtle + b"\r\n0\r\nX: y\r\n\r\n"
    close = b"GET /-/constraints HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    together = lengths + chunks + close
    middle = len(lengths) - len(turtle) - 2  # between the two line feeds that end a head
    for pieces in ([together], [together[:middle], together[middle:]]):
        received = answers(server, *pieces)
        assert [received.count(status) for status in (b"HTTP/1.1 201 ", b"HTTP/1.1 200 ")] == [2, 1]


def asked(server: Server, method: bytes, target: bytes, host: bytes = b"127.0.0.1", body: bytes = b"") -> bytes:
    """The answer to one request with this target."""
    head = b"%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: %d\r\n" % (
        method,
        target,
        host,
        len(body),
    )
    return answers(server, head + b"Content-Type: text/turtle\r\nAccept: text/turtle\r\n\r\n" + body)


def test_a_target_may_be_a_whole_address(server: Server) -> None:
    """A client that takes the server for a proxy writes one, and every server must understand it (RFC 9112 §3.2.2)."""
    created = asked(server, b"POST", b"%s" % server.url.encode(), body=b"<> <urn:p> 5 .")
    assert created.startswith(b"HTTP/1.1 201 ")
    address = next(line[10:] for line in created.split(b"\r\n") if line.lower().startswith(b"location: "))
    assert address.startswith(server.url.encode())
    assert b"5" in asked(server, b"GET", address).partition(b"\r\n\r\n")[2]
    assert asked(server, b"HEAD", address.replace(b"http:", b"HTTP:")).startswith(b"HTTP/1.1 200 ")
    assert asked(server, b"GET", server.url[:-1].encode() + b"?newest=1").startswith(b"HTTP/1.1 200 ")


def test_the_host_of_an_address_counts(server: Server) -> None:
    """So a page of another site cannot name a host in one place that is not answered for in the other."""
    assert asked(server, b"GET", b"http://evil.example/", b"127.0.0.1").startswith(b"HTTP/1.1 421 ")
    assert asked(server, b"GET", server.url.encode(), b"evil.example").startswith(b"HTTP/1.1 200 ")
    assert asked(server, b"GET", b"http://user@127.0.0.1/").startswith(b"HTTP/1.1 400 ")


def test_the_server_as_a_whole_may_be_asked_for_its_options(server: Server) -> None:
    answer = asked(server, b"OPTIONS", b"*").lower()
    assert answer.startswith(b"http/1.1 204 ")
    assert b"allow: get, head, options" in answer


@pytest.mark.parametrize(("method", "target"), [(b"GET", b"*"), (b"CONNECT", b"e.org:443"), (b"GET", b"ftp://e.org/")])
def test_another_target_is_refused_as_any_other_request(server: Server, method: bytes, target: bytes) -> None:
    answer = asked(server, method, target)
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert b"application/problem+json" in answer


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"Content-Length: -3\r\n\r\nabc", b"bad Content-Length"),
        (b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"illegal chunk header"),
        (b"X: " + b"y" * 200_000, b"too long"),
    ],
)
def test_a_request_that_cannot_be_read_says_why(server: Server, head: bytes, reason: bytes) -> None:
    answer = answers(server, b"POST / HTTP/1.1\r\n" + TURTLE + head)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"the request is not HTTP/1.1: " in answer
    assert reason in answer
