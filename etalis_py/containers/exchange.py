"""One request and its answers: the handlers' input, and the headers of responses that LDP requires."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from . import negotiation
from . import vocabulary as v
from .access import Access, Caller
from .documents import DocumentParsers
from .graphs import POSTABLE, ROWS, Base, ReceivedGraph
from .limits import Limits
from .patch import MEDIA_TYPE as PATCH_TYPE
from .patch import Operation
from .problems import Problem
from .store import Store

T = TypeVar("T")
QUERY_TYPE = "application/sparql-query"
MERGE_TYPE = "application/merge-patch+json"
CONTAINER_METHODS = "GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE"
MEMBER_METHODS = "GET, HEAD, OPTIONS, PUT, PATCH, DELETE"
PROGRAM_METHODS = "GET, HEAD, OPTIONS, PUT, PATCH, DELETE"
MANY_METHODS = "GET, HEAD, OPTIONS, POST, PATCH, DELETE"
QUERY_METHODS = "GET, HEAD, OPTIONS, PUT, DELETE"


@dataclass(slots=True)
class Exchange:
    """A request that has passed the guard: its target, its time of arrival, and the client's name for this server."""

    request: Request
    store: Store
    limits: Limits
    base: Base
    arrival: int
    documents: DocumentParsers
    access: Access
    caller: Caller
    links: list[str] = field(default_factory=list)
    allow: str = ""
    accept_post: str = ""
    accept_patch: str = PATCH_TYPE

    @property
    def method(self) -> str:
        return self.request.method

    @property
    def client(self) -> str:
        """Whose limits count for this request."""
        return self.caller.client

    @property
    def path(self) -> str:
        return self.request.url.path

    def header(self, name: str) -> str | None:
        """A header's value; several lines form one list."""
        values = self.request.headers.getlist(name)
        return ", ".join(values) if values else None

    def query(self, *allowed: str) -> dict[str, str]:
        """The query parameters; unknown ones are refused rather than ignored."""
        items = self.request.query_params.multi_items()
        given = dict(items)
        unknown = sorted(set(given) - set(allowed))
        if unknown:
            raise Problem(
                "bad-request", f"unknown query parameter {unknown[0]!r}; here are: {', '.join(allowed) or 'none'}"
            )
        if len(items) != len(given):
            raise Problem("bad-request", "a query parameter is given twice")
        return given

    async def read(self, function: Callable[..., T], *arguments: object) -> T:
        """Run a reading function beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self.store.pool, function, *arguments)

    async def body(self, most: int | None = None, limit: str = "body_bytes") -> bytes:
        """The body within the limits of size and time; ``limit`` names the one that ``most`` follows from."""
        most = most or self.limits.body_bytes
        too_large = Problem("too-large", f"the body is larger than {most} bytes" + (f" ({limit})" if limit else ""))
        length = self.header("content-length")
        if length and length.isdigit() and (len(length) > 18 or int(length) > most):
            raise too_large
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                async for chunk in self.request.stream():
                    size += len(chunk)
                    if size > most:
                        raise too_large
                    parts.append(chunk)
        except TimeoutError:
            raise Problem(
                "timeout", f"the body did not arrive within {self.limits.body_seconds} s (body_seconds)"
            ) from None
        except ClientDisconnect:
            raise Problem("bad-request", "the connection closed before the body was complete") from None
        return b"".join(parts)

    async def graph(self, data: bytes, media_type: str, path: str) -> ReceivedGraph:
        """The graph of a body whose null relative IRI is ``path``."""
        return await self.documents.graph(data, media_type, path, self.base)

    async def patch(self) -> tuple[Operation, ...]:
        """The body as a patch of this resource."""
        return await self.documents.patch(await self.body(), self.path, self.base)

    def content_type(self, offered: tuple[str, ...]) -> str:
        """The media type of the body, one of those offered."""
        if (self.header("content-encoding") or "identity") != "identity":
            raise Problem("wrong-type", "compressed bodies are not taken; send it without Content-Encoding")
        name, *parameters = (p.strip() for p in (self.header("content-type") or "").lower().split(";"))
        if name not in offered:
            raise Problem("wrong-type", f"Content-Type is {name or 'missing'}; taken here: {', '.join(offered)}")
        charset = next((p.partition("=")[2].strip('"') for p in parameters if p.startswith("charset=")), "utf-8")
        if charset not in ("utf-8", "utf8", "us-ascii"):
            raise Problem("wrong-type", f"the charset {charset!r} is not taken; send UTF-8")
        return name

    # -- answers --------------------------------------------------------------------------------------------------

    def is_container(self, model: str, stream: bool, extra: list[tuple[str, str, str]]) -> None:
        """The headers of a container: its types, and links given as (target, relation, further parameters)."""
        types = [v.RESOURCE, v.RDF_SOURCE, v.CONTAINER, model] + ([v.STREAM_CONTAINER] if stream else [])
        self.links += [f'{t}; rel="type"' for t in types]
        self.links += [f'<{target}>; rel="{relation}"{more}' for target, relation, more in extra]
        self.allow, self.accept_post = CONTAINER_METHODS, ", ".join((*POSTABLE, *ROWS, QUERY_TYPE))

    def is_content(self, path: str) -> None:
        """The headers of a window or of the feed: resources to read, which belong to a container."""
        self.links = [f'<{path}>; rel="collection"']
        self.allow, self.accept_post = "GET, HEAD", ""

    def is_member(self) -> None:
        self.links += [f'{t}; rel="type"' for t in (v.RESOURCE, v.RDF_SOURCE)]
        self.allow = MEMBER_METHODS

    def is_program(self, output: str) -> None:
        self.links += [f'{t}; rel="type"' for t in (v.RESOURCE, v.NON_RDF_SOURCE)]
        if output:
            self.links.append(f'<{output}>; rel="{v.REL_OUTPUT}"')
        self.allow, self.accept_patch = PROGRAM_METHODS, MERGE_TYPE

    def is_question(self) -> None:
        """A question about a program, which a page of another site may not ask."""
        self.access.check_question(self.request.headers, self.base)

    def is_many(self) -> None:
        """The headers of a program of many queries."""
        self.links += [f'{t}; rel="type"' for t in (v.RESOURCE, v.NON_RDF_SOURCE)]
        self.allow, self.accept_patch, self.accept_post = MANY_METHODS, MERGE_TYPE, QUERY_TYPE

    def is_query(self) -> None:
        """The headers of one of the queries of a program."""
        self.links += [f'{t}; rel="type"' for t in (v.RESOURCE, v.NON_RDF_SOURCE)]
        self.links.append(f'<{self.path.rpartition("/")[0]}>; rel="collection"')
        self.allow = QUERY_METHODS

    def link_next_page(self, target: str) -> None:
        self.links.append(f'<{target}>; rel="next"')

    def headers(self, **more: str) -> dict[str, str]:
        """The headers that every response about this resource carries."""
        headers = {name.replace("_", "-"): value for name, value in more.items()}
        if self.links:
            headers["Link"] = ", ".join(self.links)
        if self.allow:
            headers["Allow"] = self.allow
        if self.accept_post:
            headers["Accept-Post"] = self.accept_post
        if "PATCH" in self.allow:
            headers["Accept-Patch"] = self.accept_patch
        return headers

    def reply(self, status: int, body: bytes = b"", media_type: str | None = None, **headers: str) -> Response:
        kind = media_type + "; charset=utf-8" if media_type and media_type.startswith("text/") else media_type
        return Response(body, status, self.headers(**headers), kind)

    def not_modified(self, tag: str) -> Response | None:
        """304 if the client has the representation with this tag."""
        if negotiation.unchanged(self.header("if-none-match"), tag):
            return self.reply(304, ETag=f'"{tag}"', Cache_Control="no-cache", Vary="Accept, Prefer")
        return None

    async def stream(
        self,
        chunks: Iterator[T],
        encode: Callable[[T, bool], bytes],
        media_type: str,
        brackets: tuple[bytes, bytes, bytes],
        headers: dict[str, str],
        *,
        small: bool = False,
    ) -> Response:
        """Chunks as a response; a single one is sent with its length.

        ``brackets``: the bytes that open, separate and close them.  ``small``: the first two chunks are read at once,
        on the event loop, since chunks are bounded and usually there is only one.
        """
        opening, comma, closing = brackets

        def begin() -> tuple[bytes, T | None]:
            first = next(chunks, None)
            second = next(chunks, None) if first is not None else None
            return (b"" if first is None else encode(first, second is None)), second

        def proceed(chunk: T) -> tuple[bytes, T | None]:
            return encode(chunk, False), next(chunks, None)

        piece, chunk = begin() if small else await self.read(begin)
        if chunk is None:
            return self.reply(200, opening + piece + closing, media_type, **headers)
        if self.method == "HEAD":
            return Response(b"", 200, self.headers(**headers), media_type)

        async def parts(piece: bytes, chunk: T | None) -> AsyncIterator[bytes]:
            yield opening + piece
            started = bool(piece)
            while chunk is not None:
                piece, chunk = await self.read(proceed, chunk)
                if piece:
                    yield comma + piece if started else piece
                    started = True
            yield closing

        return StreamingResponse(parts(piece, chunk), 200, self.headers(**headers), media_type)


def brackets(media_type: str) -> tuple[bytes, bytes, bytes]:
    """The bytes around and between chunks: only JSON-LD's array needs any."""
    return (b"[", b",", b"]") if media_type == "application/ld+json" else (b"", b"", b"")
