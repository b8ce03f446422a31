"""A real server process for each test module, and an HTTP client for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.containers.browser import Browser
from tests.containers.server import Server
from tests.processes import PATIENCE


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Start servers; all are stopped, and must have written no traceback, when the module ends."""
    started: list[Server] = []
    folder = tmp_path_factory.mktemp("server")

    def make(**options: object) -> Server:
        options.setdefault("store", str(folder / f"{len(started)}.db"))
        started.append(Server(folder / f"{len(started)}.log", **options))
        return started[-1]

    yield make
    for server in started:
        if server.process.poll() is None:
            server.stop()
    for server in started:
        assert not server.errors(), server.log.read_text()[-4000:]


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    return start()


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        yield client


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()
