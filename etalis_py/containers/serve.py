"""Run a server of stream containers: ``serve(...)`` is what the command line calls."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Unpack
from urllib.parse import urlsplit

import uvicorn

from . import changes
from .allocator import return_memory
from .app import Access, make_app
from .connections import guard
from .graphs import Base
from .limits import Limits
from .options import Options, ServerOptions
from .processes import Nursery
from .programs import Programs
from .push import Hub
from .schema import StoreError
from .store import Store
from .tracing import tracing

# Connections accepted in one turn of the event loop, so that a client opening hundreds holds up nobody.
_AT_ONCE = 8
_BACKLOG = 2_048
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


class ServeError(ValueError):
    """A server that cannot be started as asked: what was found and what to do."""


def serve(**options: Unpack[ServerOptions]) -> None:
    """Serve until interrupted (SIGINT or SIGTERM); ``options`` are those of ``containers.options.Options``."""
    asked = Options(**options)
    return_memory()
    host, store, ready = asked.host, asked.store, asked.ready
    access = _access(host, asked.token, asked.base_url, asked.allow_origins)
    listener = _listen(host, asked.port, asked.limits or Limits())
    try:
        opened = Store(Path(store) if store is not None else None, asked.limits)
    except StoreError as error:
        listener.close()
        raise ServeError(str(error)) from None
    opened.change(changes.ensure_root, alone=True)
    actual = listener.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    public = access.base_url or f"http://{shown}:{actual}/"
    nursery = Nursery(opened.limits, asked.runner_factory, dict(asked.runner_options))
    programs = Programs(opened, nursery, Base(opened.base, public), asked.idle, tracing())
    app = make_app(opened, programs, nursery, access)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=opened.limits.connections,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=30,
        backlog=_AT_ONCE,
        ws="websockets-sansio",
        ws_max_size=65_536,
        ws_max_queue=4,
        lifespan="on",
    )
    guard(config, opened.limits)
    logging.getLogger("uvicorn.error").addFilter(_Expected())
    logging.getLogger("etalis.containers").info("serving %s", public)
    # The writer's thread releases the interpreter at each statement; with Python's 5 ms it would wait that long each
    # time for a busy event loop to release it.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    server = _Server(config, app.state.hub, (lambda: ready(public)) if ready else None)
    try:
        asyncio.run(server.serve(sockets=[listener]))
    finally:
        sys.setswitchinterval(interval)
        opened.close()
        listener.close()


class _Expected(logging.Filter):
    """Drops records that uvicorn logs as errors but are not: refused WebSockets, and readers cut off or released."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith(("ASGI callable returned without completing", "Cancel %s running task"))


class _Server(uvicorn.Server):
    """Releases the push readers as soon as the server stops, since they would not leave by themselves."""

    def __init__(self, config: uvicorn.Config, hub: Hub, ready: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._hub, self._ready = hub, ready
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_BACKLOG)  # the kernel's queue, not how many are accepted from it at once
        if self.started and self._ready:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Unlike uvicorn's own, this does not raise the signal again afterwards: ``serve`` returns to its caller.
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._hub.stop)
        self.force_exit = self.should_exit
        self.should_exit = True


def _access(host: str, token: str | None, base_url: str | None, origins: Sequence[str]) -> Access:
    loopback = _is_loopback(host)
    if token is not None and (not token.strip() or not token.isascii()):
        raise ServeError("the token is empty or not ASCII; give one such as the output of 'openssl rand -hex 16'")
    if not loopback and token is None:
        raise ServeError(f"{host} can be reached from other machines: give a token for writing, or bind to 127.0.0.1")
    names = set(_LOOPBACK) | {f"[{host}]" if ":" in host else host.lower()}
    if base_url is not None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
            raise ServeError(
                f"the base URL is scheme and host only, such as https://streams.example.org/, found {base_url!r}"
            )
        base_url = f"{parts.scheme}://{parts.netloc}/"
        names.add(parts.hostname.lower())
    for origin in origins:
        if origin != "*" and (urlsplit(origin).path or not urlsplit(origin).netloc):
            raise ServeError(f"an origin is scheme and host only, such as https://example.org, found {origin!r}")
    return Access(token, frozenset(names) if loopback or base_url else None, base_url, tuple(origins))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int, limits: Limits) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With an explicit protocol, asyncio recognises TCP and turns Nagle's algorithm off: head and body go out at once.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # The kernel cuts off a reader that takes nothing, even in the middle of a large answer.
        milliseconds = int(limits.slow_reader_seconds * 1000)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ServeError(
            f"cannot listen on {host} port {port}: {error.strerror}; choose another port or host"
        ) from None
    return listener
