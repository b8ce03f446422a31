"""``tcp://host:port``: events over a connection, time that passes on it, and what is said of wrong addresses."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

import pytest

from etalis_py import run
from etalis_py.streams import Idle, StreamError, read_stream
from etalis_py.streams.sockets import parse_address

ABSENT = "SELECT ?o { ?o :placed ?x } SEQ NOT { ?o :shipped ?y } WITHIN 300 ms"


def placed(order: str, time: int) -> bytes:
    return f'{{"time": {time}, "triples": ":{order} :placed 1 ."}}\n'.encode()


@pytest.fixture
def sender() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        yield server


def address(sender: socket.socket) -> str:
    return f"tcp://127.0.0.1:{sender.getsockname()[1]}"


def test_events_come_as_they_are_sent_and_time_passes_between_them(sender: socket.socket) -> None:
    with read_stream(address(sender), name="urn:s", idle=0.1) as stream:
        connection, _ = sender.accept()
        matches = run(ABSENT, stream)
        for order, at in (("a", 100), ("b", 110)):
            connection.sendall(placed(order, at))
            began = time.monotonic()
            match = next(matches)
            assert (match["o"], match.start, match.end) == (f"http://example.org/{order}", at, f"{at}.3")
            assert time.monotonic() - began > 0.29
        connection.close()
        assert list(matches) == []


def test_n_quads_are_known_by_their_first_line(sender: socket.socket) -> None:
    quads = '<urn:a> <urn:p> <urn:b> <urn:g> .\n<urn:g> <http://www.w3.org/ns/prov#generatedAtTime> "5" .\n'
    with read_stream(address(sender)) as stream:
        connection, _ = sender.accept()
        connection.sendall(quads.encode())
        connection.close()
        (event,) = (item for item in stream if not isinstance(item, Idle))
    assert (event.end, event.triples) == (5_000_000, (("<urn:a>", "<urn:p>", "<urn:b>"),))


def test_a_connection_that_breaks_is_an_error_after_what_came(sender: socket.socket) -> None:
    with read_stream(address(sender), idle=0.1) as stream:
        connection, _ = sender.accept()
        connection.sendall(placed("a", 100))
        assert next(item for item in stream if not isinstance(item, Idle)).end == 100_000_000
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close says "reset"
        connection.close()
        with pytest.raises(StreamError, match=r"tcp://.*: the connection was lost \(Connection reset by peer\)"):
            list(stream)


def test_who_stops_reading_gives_the_connection_back(sender: socket.socket) -> None:
    stream = read_stream(address(sender), idle=0.1)
    connection, _ = sender.accept()
    connection.sendall(placed("a", 100))
    next(stream)
    stream.close()
    connection.settimeout(10)
    assert connection.recv(1) == b""
    connection.close()


def test_nobody_listens() -> None:
    with socket.socket() as taken:  # bound, but not listening
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(StreamError, match=r"nobody listens there\n.*start the sender first"):
            read_stream(address(taken))


def test_there_is_no_such_host() -> None:
    with pytest.raises(StreamError, match=r"there is no host nowhere\.invalid"):
        read_stream("tcp://nowhere.invalid:99")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("tcp://localhost", "this address has no port"),
        ("tcp://localhost:", "this address has no port"),
        ("tcp://localhost:ftp", "a port is a number from 1 to 65535, found 'ftp'"),
        ("tcp://localhost:0", "found '0'"),
        ("tcp://localhost:70000", "found '70000'"),
        ("tcp://", "this is not the address of a socket"),
        ("tcp://:99", "this is not the address of a socket"),
        ("tcp://me@localhost:99", "this is not the address of a socket"),
        ("tcp://localhost:99/events", "this is not the address of a socket"),
        ("tcp://[::1:99", "this is not the address of a socket"),
    ],
)
def test_what_is_no_address(url: str, said: str) -> None:
    with pytest.raises(StreamError) as caught:
        parse_address(url)
    assert said in caught.value.reason
    assert "write tcp://host:port" in caught.value.hint
