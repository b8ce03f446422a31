"""The two forms of push: server-sent events on the container's own address, or a WebSocket there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from . import rendering
from .catalogue import CatalogueEntry
from .exchange import Exchange
from .graphs import Base
from .problems import Problem
from .push import Hub, Reader

EVENT_STREAM = "text/event-stream"
_LOG = logging.getLogger("etalis.containers")


def _cursor(hub: Hub, container: CatalogueEntry, given: str | None) -> Callable[[], int]:
    """Where a reader starts: after the member it names, or now."""
    if given is None:
        return lambda: rendering.end(hub.store, container)
    if not (given.isascii() and given.isdigit() and len(given) < 19):
        raise Problem("bad-request", f"after (or Last-Event-ID) is the id of a member, found {given[:40]!r}")
    return lambda: int(given)


def event_stream(exchange: Exchange, hub: Hub, container: CatalogueEntry, parameters: dict[str, str]) -> Any:
    """GET with Accept: text/event-stream; each event is a member as JSON, its id the cursor to come back with."""
    start = _cursor(hub, container, parameters.get("after") or exchange.header("last-event-id"))
    if hub.readers >= hub.store.limits.push_clients:
        raise Problem("busy", "all places for push clients are taken (push_clients)", headers={"Retry-After": "10"})
    headers = exchange.headers(Content_Type=EVENT_STREAM, Cache_Control="no-store", X_Accel_Buffering="no")
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]

    async def respond(scope: Any, receive: Any, send: Any) -> None:
        begin = {"type": "http.response.start", "status": 200, "headers": raw}
        if scope["method"] == "HEAD":
            await send(begin)
            await send({"type": "http.response.body", "body": b""})
            return
        with hub.reader(container) as reader:
            # First the place, then the answer: who has the answer gets whatever is posted from then on.
            cursor = await exchange.read(start)
            await send(begin)
            await _put(send, f": after {cursor}\nretry: 1000\n\n".encode(), hub)
            gone = asyncio.ensure_future(_disconnected(receive))
            gone.add_done_callback(reader.leave)
            try:
                async for batch in hub.messages(reader, container, cursor):
                    parts = [
                        b"id: %d\nevent: member\ndata: %b\n\n" % (m.stored.id, m.text(exchange.base)) for m in batch
                    ]
                    await _put(send, b"".join(parts) or b": nothing new\n\n", hub)
                if not reader.gone:
                    await send({"type": "http.response.body", "body": b""})
            except TimeoutError:
                _LOG.info("cut off a reader of %s that does not read", container.path)
            finally:
                gone.cancel()

    return respond


async def _put(send: Any, data: bytes, hub: Hub) -> None:
    async with asyncio.timeout(hub.store.limits.slow_reader_seconds):
        await send({"type": "http.response.body", "body": data, "more_body": True})


async def _disconnected(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def websocket(socket: WebSocket, hub: Hub, container: CatalogueEntry, base: Base) -> None:
    """A WebSocket on a container: each message is a member as JSON; ``?after=ID`` starts after that member."""
    start = _cursor(hub, container, socket.query_params.get("after"))
    loop = asyncio.get_running_loop()
    with hub.reader(container) as reader:
        cursor = await loop.run_in_executor(hub.store.pool, start)
        await socket.accept()
        sender = asyncio.ensure_future(_send(socket, hub, reader, container, cursor, base))
        listener = asyncio.ensure_future(socket.receive())
        try:
            await asyncio.wait((sender, listener), return_when=asyncio.FIRST_COMPLETED)
            if listener.done() and listener.exception() is None and listener.result()["type"] == "websocket.receive":
                await socket.close(1003, "this socket only sends; POST to the container instead")
            elif sender.done():
                slow = isinstance(sender.exception(), TimeoutError)
                await socket.close(1008 if slow else 1001, "too slow" if slow else "the stream has ended")
        except (WebSocketDisconnect, RuntimeError):
            return  # gone before it could be closed
        finally:
            for task in (sender, listener):
                task.cancel()
            await asyncio.gather(sender, listener, return_exceptions=True)


async def _send(
    socket: WebSocket, hub: Hub, reader: Reader, container: CatalogueEntry, cursor: int, base: Base
) -> None:
    async for batch in hub.messages(reader, container, cursor):
        for message in batch:
            async with asyncio.timeout(hub.store.limits.slow_reader_seconds):
                await socket.send_text(message.text(base).decode())
            await asyncio.sleep(0)  # the loop notices a broken connection, to which asyncio would log each write
