"""Where push begins and ends: a reader that has its answer gets whatever is posted from then on, until it has gone."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from etalis_py.containers.catalogue import CatalogueEntry
from etalis_py.containers.push import Hub
from etalis_py.containers.push_responses import event_stream, websocket
from etalis_py.containers.store import Store
from tests.containers.test_store import base, make, open_store, post
from tests.processes import PATIENCE


class _Client:
    """A client of either kind that posts a member as soon as it hears from the server, and keeps what it is sent."""

    def __init__(self, store: Store, container: CatalogueEntry) -> None:
        self.store, self.container = store, container
        self.query_params: dict[str, str] = {}
        self.sent: list[str] = []
        self.pushed = asyncio.Event()

    async def accept(self) -> None:
        await asyncio.to_thread(post, self.store, self.container.path, 41)

    async def send_text(self, text: str) -> None:
        self.sent.append(text)
        self.pushed.set()

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            await self.accept()
        elif b"event: member" in message["body"]:
            await self.send_text(message["body"].decode())

    async def receive(self) -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError("nothing wakes it")


async def _over_websocket(client: _Client, hub: Hub) -> None:
    await websocket(client, hub, client.container, base(client.store))  # type: ignore[arg-type]


async def _over_events(client: _Client, hub: Hub) -> None:
    exchange = SimpleNamespace(
        header=lambda name: None, headers=lambda **headers: headers, base=base(client.store), read=asyncio.to_thread
    )
    respond = event_stream(exchange, hub, client.container, {})  # type: ignore[arg-type]
    await respond({"method": "GET"}, client.receive, client.send)


@pytest.mark.parametrize("read", [_over_websocket, _over_events])
def test_what_is_posted_once_the_server_has_answered_is_pushed(read: Any) -> None:
    store = open_store()

    async def run() -> list[str]:
        container = make(store)
        await asyncio.to_thread(post, store, container.path, 40)
        hub = Hub(store)
        hub.start()
        client = _Client(store, container)
        reader = asyncio.ensure_future(read(client, hub))
        async with asyncio.timeout(PATIENCE):
            await client.pushed.wait()
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        hub.stop()
        return client.sent

    try:
        sent = asyncio.run(run())
    finally:
        store.close()
    assert len(sent) == 1
    assert "00:00:00.000041Z" in sent[0]


def test_a_reader_that_has_vanished_is_noticed_between_two_batches() -> None:
    """Else all that is in memory would be written to a broken connection, and asyncio logs each of these writes."""
    store = open_store()

    async def batches() -> int:
        container, hub, count = make(store), Hub(store), 0
        hub.start()
        with hub.reader(container) as reader:
            posted = await asyncio.to_thread(post, store, container.path, *range(900))
            async with asyncio.timeout(PATIENCE):
                while reader.channel.floor is None or len(reader.channel.recent) < len(posted):
                    await asyncio.sleep(0)
            async for _ in hub.messages(reader, container, reader.channel.floor):
                count += 1
                asyncio.get_running_loop().call_soon(reader.leave)
        hub.stop()
        return count

    try:
        assert asyncio.run(batches()) == 1
    finally:
        store.close()


class _Vanishing(_Client):
    """A client that disconnects at its first message."""

    async def accept(self) -> None:
        """Post nothing."""

    async def receive(self) -> dict[str, Any]:
        await self.pushed.wait()
        return {"type": "websocket.disconnect"}


def test_a_socket_that_has_vanished_gets_little_more() -> None:
    store = open_store()

    async def sent() -> int:
        container, hub = make(store), Hub(store)
        await asyncio.to_thread(post, store, container.path, *range(200))
        hub.start()
        client = _Vanishing(store, container)
        client.query_params["after"] = "0"
        async with asyncio.timeout(PATIENCE):
            await _over_websocket(client, hub)
        hub.stop()
        return len(client.sent)

    try:
        assert 1 <= asyncio.run(sent()) < 5, "from the fifth write on asyncio logs each"
    finally:
        store.close()
