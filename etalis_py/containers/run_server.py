"""Run a server of stream containers: ``serve(...)`` is what the command line calls."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Unpack
from urllib.parse import urlsplit

import uvicorn

from etalis_py.values.keywords import check_keywords

from . import changes
from .access import Access, AccessError, Token, read_tokens, token_for_all
from .allocator import return_memory
from .app import make_app
from .audit import Audit
from .connections import guard
from .graphs import Base
from .handshakes import Handshakes, Listener, PatientLoop
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
_LOG = logging.getLogger("etalis.containers")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


class ServeError(ValueError):
    """A server that cannot be started as asked: what was found and what to do."""


def serve(**options: Unpack[ServerOptions]) -> None:
    """Serve until interrupted (SIGINT or SIGTERM); ``options`` are those of ``containers.options.Options``."""
    check_keywords("serve", options, ServerOptions.__annotations__)
    asked = Options(**options)
    return_memory()
    host, store, ready = asked.host, asked.store, asked.ready
    access, tls = _access(asked), _tls(asked.tls_cert, asked.tls_key)
    if not _is_loopback(host) and tls is None and not (asked.base_url or "").startswith("https:"):
        _LOG.warning("tokens cross the network in clear: give --tls-cert and --tls-key, or let a proxy speak TLS")
    audit = _audit(asked.audit)
    listener = _listen(host, asked.port, asked.limits or Limits())
    try:
        opened = Store(Path(store) if store is not None else None, asked.limits)
    except StoreError as error:
        listener.close()
        raise ServeError(str(error)) from None
    opened.change(changes.ensure_root, alone=True)
    actual = listener.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    public = access.base_url or f"{'https' if tls else 'http'}://{shown}:{actual}/"
    nursery = Nursery(opened.limits, asked.runner_factory, dict(asked.runner_options))
    programs = Programs(opened, nursery, Base(opened.base, public), asked.idle, tracing())
    app = make_app(opened, programs, nursery, access, audit)
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
    handshakes = Handshakes(opened.limits)
    guard(config, opened.limits, handshakes)
    if tls is not None:
        config.ssl, listener = tls, Listener(listener, handshakes)
    logging.getLogger("uvicorn.error").addFilter(_Expected())
    _LOG.info("serving %s", public)
    # The writer's thread releases the interpreter at each statement; with Python's 5 ms it would wait that long each
    # time for a busy event loop to release it.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    server = _Server(config, app.state.hub, (lambda: ready(public)) if ready else None)
    try:
        with asyncio.Runner(loop_factory=lambda: PatientLoop(opened.limits.header_seconds)) as runner:
            runner.run(server.serve(sockets=[listener]))
    finally:
        sys.setswitchinterval(interval)
        opened.close()
        listener.close()


class _Expected(logging.Filter):
    """Drops records that uvicorn logs as errors but are not: refused WebSockets, and readers cut off or released."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError):
            return False  # a reader that takes no data, when the server stops
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


def _access(asked: Options) -> Access:
    host, base_url = asked.host, asked.base_url
    loopback = _is_loopback(host)
    tokens = _tokens(asked)
    closed = asked.reading_needs_token or asked.read_token is not None
    if not loopback and not any(token.write for token in tokens):
        raise ServeError(f"{host} can be reached from other machines: give a token for writing, or bind to 127.0.0.1")
    if closed and not tokens:
        raise ServeError("reading needs a token, but there is none: give a token, or a file of tokens")
    names = set(_LOOPBACK) | {f"[{host}]" if ":" in host else host.lower()}
    if base_url is not None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
            raise ServeError(
                f"the base URL is scheme and host only, such as https://streams.example.org/, found {base_url!r}"
            )
        base_url = f"{parts.scheme}://{parts.netloc}/"
        names.add(parts.hostname.lower())
    for origin in asked.allow_origins:
        if origin != "*" and (urlsplit(origin).path or not urlsplit(origin).netloc):
            raise ServeError(f"an origin is scheme and host only, such as https://example.org, found {origin!r}")
    served = frozenset(names) if loopback or base_url else None
    return Access(tokens, closed, served, base_url, tuple(asked.allow_origins))


def _tokens(asked: Options) -> tuple[Token, ...]:
    tokens: list[Token] = []
    try:
        if asked.token is not None:
            tokens.append(token_for_all("ETALIS_TOKEN", asked.token, write=True))
        if asked.read_token is not None:
            tokens.append(token_for_all("ETALIS_READ_TOKEN", asked.read_token, write=False))
        if asked.tokens is not None:
            tokens += read_tokens(Path(asked.tokens))
        return tuple(tokens)
    except AccessError as error:
        raise ServeError(str(error)) from None


def _tls(certificate: Path | str | None, key: Path | str | None) -> ssl.SSLContext | None:
    if certificate is None:
        if key is not None:
            raise ServeError("a key for TLS needs its certificate: give --tls-cert, too")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError is one
        found = f"the certificate {certificate} cannot be used with its key: {error}"
        raise ServeError(f"{found}; give two files in PEM format that belong together") from None
    return context


def _audit(file: Path | str | None) -> Audit:
    try:
        return Audit(None if file is None else Path(file))
    except OSError as error:
        raise ServeError(f"the audit cannot be written to {file}: {error.strerror}; choose another file") from None


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
