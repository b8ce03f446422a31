"""Connections that do not finish the handshake of TLS: only so many from one address, and only for so long."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx
import pytest

from tests.processes import PATIENCE

from .server import Server
from .test_access import TLS

FEW, SECONDS = 3, 1.5


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    limits = {"header_seconds": SECONDS, "connections_per_address": FEW}
    return start(store=None, tls_cert=str(TLS / "cert.pem"), tls_key=str(TLS / "key.pem"), limits=limits)


@pytest.fixture
def silent(server: Server) -> Iterator[Callable[[], socket.socket]]:
    """Opens a connection that says nothing."""
    address = urlsplit(server.url)
    with ExitStack() as opened:
        yield lambda: opened.enter_context(socket.create_connection((address.hostname, address.port), timeout=PATIENCE))


def client(server: Server, address: str) -> httpx.Client:
    transport = httpx.HTTPTransport(
        local_address=address, verify=ssl.create_default_context(cafile=TLS / "cert.pem"), retries=0
    )
    return httpx.Client(base_url=server.url, transport=transport, timeout=PATIENCE)


def is_open(connection: socket.socket, within: float) -> bool:
    connection.settimeout(within)
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return True
    except ConnectionError:
        return False


def test_a_handshake_that_does_not_come_is_given_up(silent: Callable[[], socket.socket]) -> None:
    begun = time.monotonic()
    assert not is_open(silent(), within=PATIENCE)
    assert time.monotonic() - begun > SECONDS / 2


def test_only_so_many_of_one_address_wait(server: Server, silent: Callable[[], socket.socket]) -> None:
    connections = [silent() for _ in range(4 * FEW)]
    still = [connection for connection in connections if is_open(connection, within=0.02)]
    assert still == connections[:FEW]
    with client(server, "127.0.0.2") as other:
        assert other.get("/").status_code == 200
    with client(server, "127.0.0.1") as same, pytest.raises(httpx.TransportError):
        same.get("/")
    for connection in still:
        connection.close()
    time.sleep(0.2)
    with client(server, "127.0.0.1") as same:
        assert same.get("/").status_code == 200


def test_what_has_shaken_hands_counts_as_a_connection(server: Server) -> None:
    with ExitStack() as opened:
        clients = [opened.enter_context(client(server, "127.0.0.3")) for _ in range(FEW + 1)]
        assert [one.get("/").status_code for one in clients] == [*[200] * FEW, 429]
