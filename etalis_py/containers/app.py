"""The web application: the guard that every request passes, and the routing to its handler."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from importlib import resources
from typing import Any

import msgspec
from etalis_compiler.parser import keywords
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from . import container_handlers as containers
from . import graphs, manual, metrics
from . import member_handlers as members
from . import query_program_handlers as standing
from .access import SAFE, Access, Caller
from .audit import Audit
from .documents import DocumentParsers
from .exchange import CONTAINER_METHODS, MEMBER_METHODS, PROGRAM_METHODS, QUERY_TYPE, Exchange
from .graphs import Base
from .problems import Problem, constraints_page
from .processes import Nursery
from .programs import Programs
from .push import Hub
from .push_responses import websocket
from .status import status
from .store import Store
from .target import PathTargets
from .vocabulary import LDP

_LOG = logging.getLogger("etalis.containers")
_HTML = containers.HTML
_MODULES = (
    "page",
    "basics",
    "charts",
    "completion",
    "events",
    "forms",
    "matches",
    "programs",
    "rows",
    "sample",
    "streams",
    "timeline",
    "why",
)
_ASSETS = ("page.css", *(f"{name}.js" for name in _MODULES))
_MANUAL = "docs/"
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Application:
    """The handlers of one server over its store."""

    def __init__(
        self, store: Store, hub: Hub, programs: Programs, documents: DocumentParsers, access: Access, audit: Audit
    ) -> None:
        self.store, self.hub, self.programs, self.access = store, hub, programs, access
        self.documents, self.audit = documents, audit
        folder = resources.files(__package__).joinpath("page")
        self.page = folder.joinpath("index.html").read_bytes()
        words = msgspec.json.encode(sorted(keywords()))
        self.assets = {name: folder.joinpath(name).read_bytes() for name in _ASSETS}
        self.assets["words.js"] = b"// The words of the language.\nexport const KEYWORDS = " + words + b";\n"
        self._status: tuple[float, dict[str, Any]] = (-10.0, {})
        self._status_lock = asyncio.Lock()

    # -- the guard ------------------------------------------------------------------------------------------------

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        caller = self._caller(request)
        exchange = Exchange(
            request,
            self.store,
            self.store.limits,
            Base(self.store.base, "http://invalid/"),
            self.store.clock(),
            self.documents,
            self.access,
            caller,
        )
        try:
            exchange.base = Base(self.store.base, self.access.outer(request.headers.get("host"), scope["scheme"]))
            self.access.check_origin(request.headers.get("origin"), exchange.base, request.method)
            response = await self._admitted(exchange)
        except Problem as problem:
            response = self._refusal(exchange, problem)
        except Exception:
            _LOG.exception("%s %s failed", request.method, request.url.path)
            response = self._refusal(exchange, Problem("failed", "an unexpected error; see the log of the server"))
        if request.method not in SAFE:
            self.audit.note(exchange.arrival, caller, request.method, exchange.path, response.status_code)
        await response(scope, receive, send)

    def _caller(self, request: HTTPConnection) -> Caller:
        address = request.client.host if request.client else ""
        return self.access.caller(address, request.headers.get("authorization"))

    async def _admitted(self, exchange: Exchange) -> Any:
        """The response, if the caller has the right to it."""
        path, caller = exchange.path, exchange.caller
        if exchange.method not in SAFE:
            parameters = exchange.request.query_params
            if path in ("/-/check", "/-/rows"):
                self.access.check_write(caller, parameters.get("stream", "/"))
            else:
                self.access.check_write(caller, path, *parameters.getlist("output"))
        elif not path.startswith("/-/") and not self.access.may_read(caller, path):
            # A browser cannot send a token for the page, which holds nothing; what the page then asks for needs one.
            if path.endswith("/") and _HTML in (exchange.header("accept") or "") and not exchange.request.url.query:
                return self._as_page(exchange.reply(200, self.page, _HTML, Cache_Control="no-store"))
            self.access.check_read(caller, path)
        return await self._route(exchange)

    def _as_page(self, response: Response) -> Response:
        response.headers["Content-Security-Policy"] = _PAGE_POLICY
        return response

    def _refusal(self, exchange: Exchange, problem: Problem) -> Response:
        container = self.store.catalogue.by_path.get(exchange.path)
        if not exchange.links and container is not None and exchange.base.outer != "http://invalid/":
            containers.describe(exchange, container)
        if 400 <= problem.status < 500:
            exchange.links.append(f'</-/constraints>; rel="{LDP}constrainedBy"')
        body = msgspec.json.encode(problem.document(exchange.path))
        headers = exchange.headers() | problem.headers | {"Cache-Control": "no-store"}
        if problem.status == 405 and "Allow" not in headers:
            headers["Allow"] = "GET, HEAD, OPTIONS"
        return Response(body, problem.status, headers, "application/problem+json")

    # -- routing --------------------------------------------------------------------------------------------------

    async def _route(self, exchange: Exchange) -> Any:
        path = exchange.path
        if path.startswith("/-/"):
            return await self._service(exchange, path[3:])
        if path.endswith("/"):
            return await self._container(exchange)
        row = members.program_at(exchange)
        if row is not None:
            return await (standing if row.many else members).program(exchange, row, self.programs)
        if (many := standing.program_of(exchange)) is not None:
            return await standing.query(exchange, many, self.programs)
        if path == "/metrics" and exchange.method in ("GET", "HEAD") and not members.exists(exchange):
            return await self._service(exchange, "metrics")
        handlers: dict[str, Callable[[Exchange], Awaitable[Response]]] = {
            "GET": members.get,
            "HEAD": members.get,
            "OPTIONS": members.options,
            "PUT": members.put,
            "PATCH": members.patch_member,
            "DELETE": members.delete,
        }
        handler = handlers.get(exchange.method)
        if handler is None:
            members.load(exchange)
            exchange.is_member()
            raise Problem("no-method", f"{exchange.method} is not taken here; taken: {MEMBER_METHODS}")
        return await handler(exchange)

    async def _container(self, exchange: Exchange) -> Any:
        method = exchange.method
        if method in ("GET", "HEAD"):
            response = await containers.get(exchange, self.hub, self.page)
            return self._as_page(response) if getattr(response, "media_type", None) == _HTML else response
        if method == "POST":
            return await containers.post(exchange, self.programs)
        if method == "PUT":
            return await containers.put(exchange)
        if method == "PATCH":
            return await containers.patch_container(exchange)
        if method == "DELETE":
            return await containers.delete(exchange, self.hub)
        containers.describe(exchange, containers.find(exchange, exchange.path))
        if method == "OPTIONS":
            return exchange.reply(204)
        raise Problem("no-method", f"{method} is not taken here; taken: {CONTAINER_METHODS}")

    async def _service(self, exchange: Exchange, name: str) -> Response:
        """The server's own folder: the parts of the page, the state, the constraints, and the check of a query."""
        if name == "check" and exchange.method == "POST":
            return await self._check(exchange)
        if name == "rows" and exchange.method == "POST":
            return await self._first_row(exchange)
        if exchange.method not in ("GET", "HEAD"):
            raise Problem("no-method", f"{exchange.method} is not taken here; taken: GET, HEAD")
        exchange.query()
        if name in self.assets:
            tag = containers.digest(self.assets[name])
            reply = exchange.not_modified(tag)
            kind = "text/css" if name.endswith(".css") else "text/javascript"
            return reply or exchange.reply(200, self.assets[name], kind, ETag=f'"{tag}"', Cache_Control="no-cache")
        if name.startswith(_MANUAL) and name.removeprefix(_MANUAL) in manual.files():
            return await self._manual(exchange, name.removeprefix(_MANUAL))
        if name == "constraints":
            text = constraints_page(asdict(self.store.limits)).encode()
            return exchange.reply(200, text, "text/plain", Cache_Control="no-cache")
        if name == "metrics":
            self.access.check_read(exchange.caller, "/")
            text = metrics.metrics(await self._current_status(exchange)).encode()
            return exchange.reply(200, text, metrics.TYPE, Cache_Control="no-store")
        if name == "status":
            document = self._readable(exchange.caller, await self._current_status(exchange))
            return exchange.reply(200, msgspec.json.encode(document), "application/json", Cache_Control="no-store")
        shown = ", ".join(("status", "constraints", "metrics", "check", "rows", "docs/index.md", *self.assets))
        raise Problem("not-found", f"there is no /-/{name}; there are: {shown}")

    async def _manual(self, exchange: Exchange, name: str) -> Response:
        """A page or a picture of the documentation."""
        data, kind = await exchange.read(manual.read, name)
        tag = containers.digest(data)
        if (unchanged := exchange.not_modified(tag)) is not None:
            return unchanged
        return self._as_page(exchange.reply(200, data, kind, ETag=f'"{tag}"', Cache_Control="no-cache"))

    async def _check(self, exchange: Exchange) -> Response:
        """Compile a query without running it: its rules and warnings, or a problem that holds its faults."""
        exchange.content_type((QUERY_TYPE,))
        path = exchange.query("stream").get("stream", "/")
        compiled = await self.programs.check(await containers.query_of(exchange), path)
        document = {"rules": msgspec.Raw(compiled.rules), "warnings": compiled.warnings}
        return exchange.reply(200, msgspec.json.encode(document), "application/json", Cache_Control="no-store")

    async def _first_row(self, exchange: Exchange) -> Response:
        """The graph that the first row of a body would become, in Turtle; nothing is stored."""
        media_type = exchange.content_type(graphs.ROWS)
        columns = exchange.query("stream", "time", "subject")
        path = columns.pop("stream", "/")
        spec, data = containers.find(exchange, path).spec, await exchange.body()
        rows = await exchange.documents.rows(data, media_type, path + graphs.SELF, spec, columns, exchange.base)
        name = f"{path}row"
        body = rows.graphs[0].settled(f"<{exchange.base.inner}{name[1:]}>", "row")
        text = graphs.serialize(body, graphs.TURTLE, exchange.base, name)
        return exchange.reply(200, text, graphs.TURTLE, Cache_Control="no-store")

    async def _current_status(self, exchange: Exchange) -> dict[str, Any]:
        """The state, computed at most once a second however many clients watch."""
        async with self._status_lock:
            since, document = self._status
            now = asyncio.get_running_loop().time()
            if now - since >= 1.0:
                document = await exchange.read(status, self.store, self.hub, self.programs)
                self._status = (now, document)
        return dict(document)

    def _readable(self, caller: Caller, status: dict[str, Any]) -> dict[str, Any]:
        """What of the state this caller may read, and whether it may write anything."""
        if caller.token is None:
            self.access.check_read(caller, "/")
        writable = not self.access.tokens or (caller.token is not None and bool(caller.token.write))
        if self.access.may_read(caller, "/"):
            return status | {"writable": writable}
        return status | {
            "containers": [c for c in status["containers"] if self.access.may_read(caller, c["path"])],
            "programs": [p for p in status["programs"] if self.access.may_read(caller, p["input"])],
            "writable": writable,
        }

    async def socket(self, socket: WebSocket) -> None:
        """A WebSocket on a container's address."""
        try:
            outer = self.access.outer(socket.headers.get("host"), socket.scope["scheme"])
            base = Base(self.store.base, outer)
            self.access.check_origin(socket.headers.get("origin"), base, "WEBSOCKET")
            self.access.check_read(self._caller(socket), socket.url.path)
            container = self.store.catalogue.by_path.get(socket.url.path)
            if container is None:
                raise Problem("not-found", f"there is no container {socket.url.path}")
            await websocket(socket, self.hub, container, base)
        except Problem as problem:
            document = msgspec.json.encode(problem.document(socket.url.path))
            await socket.send_denial_response(
                Response(document, problem.status, problem.headers, "application/problem+json")
            )


def make_app(store: Store, programs: Programs, nursery: Nursery, access: Access, audit: Audit) -> Starlette:
    """The application of a store; it starts the programs when it starts, and closes the store when it stops."""
    hub = Hub(store)
    application = Application(store, hub, programs, DocumentParsers(nursery, store.limits), access, audit)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        hub.start()
        nursery.start()
        programs.start_all()
        yield
        hub.stop()
        await programs.stop_all()
        await nursery.stop()
        await asyncio.to_thread(store.close)
        audit.close()

    cors = Middleware(
        CORSMiddleware,
        allow_origins=list(access.origins),
        allow_methods=sorted({*CONTAINER_METHODS.split(", "), *PROGRAM_METHODS.split(", ")}),
        allow_headers=[
            "Accept",
            "Authorization",
            "Content-Type",
            "If-Match",
            "If-None-Match",
            "Link",
            "Prefer",
            "Slug",
        ],
        expose_headers=["ETag", "Link", "Location", "Window", "Accept-Post", "Accept-Patch", "Allow"],
    )
    app = Starlette(
        routes=[WebSocketRoute("/{path:path}", application.socket), Route("/{path:path}", application)],
        middleware=[Middleware(PathTargets), *([cors] if access.origins else [])],
        lifespan=lifespan,
    )
    app.state.hub = hub
    return app
