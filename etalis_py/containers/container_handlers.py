"""Requests to containers: the listing, windows and the feed; POST, PUT, PATCH and DELETE (LDP 1.0 §5, [SC] §3.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from typing import Any, Protocol
from urllib.parse import quote

import msgspec
from etalis_rules.terms import RDF_TYPE
from starlette.responses import Response

from etalis_py.events.clock import MAX_TIME, MIN_TIME, TimeError, parse_datetime, render_datetime

from . import changes, graphs, negotiation, patch, rendering, spans
from . import vocabulary as v
from .catalogue import CatalogueEntry, ProgramRow
from .exchange import QUERY_TYPE, Exchange, brackets
from .graphs import FORMATS, NDJSON, POSTABLE, ROWS, SELF, ReceivedGraph
from .problems import Problem
from .programs import Programs
from .push import Hub
from .push_responses import EVENT_STREAM, event_stream
from .tracing import Change, T
from .transaction import StoredMember

HTML = "text/html"
_IN_LINKS = ":/?#[]@!$&()*+,;=%~'"
_QUICK_TRIPLES = 5_000
_CONTENT_FORMATS = (graphs.TRIG, graphs.TURTLE, graphs.JSONLD, graphs.NTRIPLES, graphs.NQUADS, NDJSON)
_MODELS = (v.BASIC_CONTAINER, v.DIRECT_CONTAINER, v.STREAM_CONTAINER, v.CONTAINER)


class _Traced(Protocol):
    """Makes a change one that is traced."""

    def __call__(self, change: Change[T]) -> Change[T]: ...


def find(exchange: Exchange, path: str) -> CatalogueEntry:
    container = exchange.store.catalogue.by_path.get(path)
    if container is not None:
        return container
    with exchange.store.reading() as db:
        gone = db.execute("SELECT 1 FROM gone WHERE path = ?", (path,)).fetchone()
    raise Problem("gone" if gone else "not-found", f"there is no container {path}")


def describe(exchange: Exchange, container: CatalogueEntry) -> None:
    """Announce a container in the headers: types, the feed, and each window with the request for its content."""
    extra = [("?after=0", v.REL_FEED, "")]
    if container.spec.stream:
        for w in container.spec.windows:
            anchor = quote(exchange.base.out(w.resource.encode()).decode()[1:-1], safe=_IN_LINKS)
            name = quote(w.name, safe="")
            extra.append((f"?window={name}", v.REL_WINDOW, f'; title="{name}"; anchor="{anchor}"'))
    exchange.is_container(container.spec.interaction_model, container.spec.stream, extra)


def _time(text: str | None, default: int) -> int:
    if text is None:
        return default
    try:
        return parse_datetime(text)
    except TimeError as error:
        raise Problem("bad-request", f"at: {error}") from None


def _number(parameters: dict[str, str], name: str, default: int, most: int) -> int:
    text = parameters.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) <= most):
        raise Problem("bad-request", f"{name} needs a number from 0 to {most}, found {text[:40]!r}")
    return int(text)


# -- GET ----------------------------------------------------------------------------------------------------------


async def get(exchange: Exchange, hub: Hub, page: bytes) -> Any:
    """GET and HEAD: the request decides between the page, the listing, a window, the feed and push."""
    container = find(exchange, exchange.path)
    describe(exchange, container)
    parameters = exchange.query("window", "at", "after", "newest", "limit", "from", "upto")
    if parameters.keys() & {"window", "after", "newest"}:
        exchange.is_content(container.path)
    if "window" in parameters:
        return await _window(exchange, container, exchange.query("window", "at"))
    if EVENT_STREAM in (exchange.header("accept") or ""):
        return event_stream(exchange, hub, container, exchange.query("after"))
    if "after" in parameters or "newest" in parameters:
        return await _feed(exchange, container, parameters)
    offered = tuple(FORMATS) if parameters else (*FORMATS, HTML)
    media_type = negotiation.accepted(exchange.header("accept"), offered)
    if media_type == HTML:
        return exchange.reply(
            200, page, HTML, Cache_Control="no-cache", Vary="Accept, Prefer", ETag=f'"{digest(page)}"'
        )
    return await _listing(exchange, container, media_type, exchange.query("limit", "from", "at", "upto"))


def digest(*values: object) -> str:
    return blake2b(repr(values).encode(), digest_size=6).hexdigest()


async def _listing(
    exchange: Exchange, container: CatalogueEntry, media_type: str, parameters: dict[str, str]
) -> Response:
    prefer = negotiation.prefer(exchange.header("prefer"))
    limits = exchange.limits
    paged = "limit" in parameters or "from" in parameters
    large = prefer.containment and container.members > limits.listing_members
    if not paged and (prefer.page or large):
        size = min(prefer.page or limits.page_members, limits.page_members)
        headers = {"Location": f"{container.path}?limit={size}", "Vary": "Accept, Prefer"}
        return Response(b"", 303, exchange.headers() | headers)
    now = _time(parameters.get("at"), exchange.arrival)
    newest = _number(parameters, "upto", 2**63 - 1, 2**63 - 1)
    if "upto" not in parameters and paged:
        newest = await exchange.read(_last_id, exchange, container)
    listing = rendering.Listing(container, now, newest, prefer.containment, prefer.membership)

    def state() -> tuple[list[rendering.Section], str]:
        parts = rendering.sections(exchange.store, listing, exchange.base)
        moved = rendering.window_state(exchange.store, parts)
        shape = digest(moved, prefer.containment, prefer.membership, sorted(parameters.items()), exchange.base.outer)
        return parts, f"{changes.container_tag(container)}.{shape}-{graphs.SHORT[media_type]}"

    parts, tag = await exchange.read(state)
    if (response := exchange.not_modified(tag)) is not None:
        return response
    headers = {"ETag": f'"{tag}"', "Cache_Control": "no-cache", "Vary": "Accept, Prefer"}
    if prefer.applied:
        headers["Preference_Applied"] = prefer.applied
    if paged:
        chunks = await _page(exchange, listing, parts, parameters)
    else:
        chunks = rendering.listing_chunks(exchange.store, listing, parts, exchange.base)

    def encode(data: bytes, only: bool) -> bytes:
        return rendering.encode_listing(data, media_type, exchange.base, container.path, only=only)

    return await exchange.stream(chunks, encode, media_type, brackets(media_type), headers)


def _last_id(exchange: Exchange, container: CatalogueEntry) -> int:
    with exchange.store.reading() as db:
        sql = "SELECT max(id) FROM members INDEXED BY members_by_arrival WHERE container = ?"
        return db.execute(sql, (container.id,)).fetchone()[0] or 0


async def _page(
    exchange: Exchange, listing: rendering.Listing, parts: list[rendering.Section], parameters: dict[str, str]
) -> Iterator[bytes]:
    """One page of a listing (LDP Paging 1.0); its links fix the time and the newest member for all pages."""
    most = exchange.limits.page_members
    limit = _number(parameters, "limit", most, most)
    if not limit:
        raise Problem("bad-request", "limit needs a number from 1")
    start = None
    if "from" in parameters:
        pieces = parameters["from"].split("_")
        if len(pieces) != 3 or not all(
            p.removeprefix("-").isascii() and p.removeprefix("-").isdigit() and len(p) < 20 for p in pieces
        ):
            raise Problem("bad-request", "from comes from the rel=next link of the page before")
        section, time, number = (int(p) for p in pieces)
        if section < 0 or not MIN_TIME <= time <= MAX_TIME or not -(2**63) < number < 2**63:
            raise Problem("bad-request", "from comes from the rel=next link of the page before")
        start = (section, time, number)

    def read() -> tuple[bytes, rendering.Cursor | None]:
        data, following = rendering.page(exchange.store, listing, parts, exchange.base, start, limit)
        return (data if start else rendering.head(exchange.store, listing, exchange.base) + data), following

    data, following = await exchange.read(read)
    frozen = f"limit={limit}&at={render_datetime(listing.now)}&upto={listing.newest}"
    path = listing.container.path
    exchange.links += [f'<{v.LDP}Page>; rel="type"', f'<{path}>; rel="canonical"', f'<{path}?{frozen}>; rel="first"']
    if following is not None:
        exchange.link_next_page(f"{path}?{frozen}&from={'_'.join(map(str, following))}")
    return iter([data])


async def _window(exchange: Exchange, container: CatalogueEntry, parameters: dict[str, str]) -> Response:
    """A whole window in one request: the graphs with a time in (now − α, now], or the last n triples."""
    window = container.spec.window(parameters["window"])
    media_type = negotiation.accepted(exchange.header("accept"), _CONTENT_FORMATS)
    now = _time(parameters.get("at"), exchange.arrival)

    def state() -> tuple[spans.MemberSpan, str]:
        with exchange.store.reading() as db:
            span = spans.content(db, container.id, container.spec.order, window, now)
            ends = spans.ends(db, span)
        shape = digest(ends, exchange.base.outer, window)
        return span, f"w{container.id}.{container.version}.{container.changes}.{shape}-{graphs.SHORT[media_type]}"

    # An index look-up is faster than a switch to another thread and back; a long physical window is counted there.
    quick = (window.physical or 0) <= _QUICK_TRIPLES
    span, tag = state() if quick else await exchange.read(state)
    if (response := exchange.not_modified(tag)) is not None:
        return response
    chunks = rendering.span_members(exchange.store, container, span, 2**63 - 1)
    shown = f'close="{render_datetime(now)}"'
    if window.logical is not None:
        shown = f'open="{render_datetime(max(MIN_TIME, window.logical.before(now)))}", {shown}'
    headers = {"ETag": f'"{tag}"', "Cache_Control": "no-cache", "Vary": "Accept", "Window": shown}
    encode = _members_as(exchange, media_type)
    return await exchange.stream(chunks, encode, media_type, brackets(media_type), headers, small=True)


def _members_as(exchange: Exchange, media_type: str) -> Callable[[list[StoredMember], bool], bytes]:
    def encode(members: list[StoredMember], only: bool) -> bytes:
        return rendering.encode_members(members, media_type, exchange.base)

    return encode


async def _feed(exchange: Exchange, container: CatalogueEntry, parameters: dict[str, str]) -> Response:
    """The stream in order of arrival: after a cursor, or its newest members; rel=next leads on."""
    exchange.query("after", "limit") if "after" in parameters else exchange.query("newest")
    media_type = negotiation.accepted(exchange.header("accept"), _CONTENT_FORMATS)
    most = exchange.limits.page_members
    if "after" in parameters:
        after = _number(parameters, "after", 0, 2**63 - 1)
        limit = _number(parameters, "limit", min(1000, most), most)
        read = rendering.arrivals_and_deleted
        members, deleted = await exchange.read(read, exchange.store, container, after, max(1, limit))
    else:
        after, deleted, count = 0, 0, _number(parameters, "newest", 20, most)
        members = await exchange.read(rendering.latest, exchange.store, container, max(1, count))
    last = members[-1].id if members else after
    shape = digest([(m.id, m.version) for m in members], exchange.base.outer, deleted)
    tag = f"f{container.id}.{last}.{shape}-{graphs.SHORT[media_type]}"
    exchange.link_next_page(f"?after={last}")
    if (response := exchange.not_modified(tag)) is not None:
        return response
    headers = {"ETag": f'"{tag}"', "Cache_Control": "no-cache", "Vary": "Accept"}
    if deleted:
        headers["Deleted_Up_To"] = str(deleted)
    return await exchange.stream(
        iter([members]), _members_as(exchange, media_type), media_type, brackets(media_type), headers
    )


# -- POST ---------------------------------------------------------------------------------------------------------


def _model(exchange: Exchange) -> str | None:
    """The interaction model that the Link header asks for: a container type, ``RESOURCE``, or None if it has none."""
    asked = {
        f"<{t}>" for relation, t in negotiation.links(exchange.request.headers.getlist("link")) if relation == "type"
    }
    for refused in (v.INDIRECT_CONTAINER, v.NON_RDF_SOURCE):
        if refused in asked:
            raise Problem(
                "constraint", f"the interaction model {refused} is not offered; ask for a basic or direct container"
            )
    models = [m for m in _MODELS if m in asked]
    if v.DIRECT_CONTAINER in models and v.BASIC_CONTAINER in models:
        raise Problem("constraint", "the Link header asks for a basic and a direct container at once; ask for one")
    if models:
        order = (v.DIRECT_CONTAINER, v.STREAM_CONTAINER, v.BASIC_CONTAINER, v.CONTAINER)
        return next(m for m in order if m in models)
    return v.RESOURCE if asked & {v.RESOURCE, v.RDF_SOURCE} else None


def _model_of(graph: ReceivedGraph) -> str | None:
    """The kind of container that a graph declares, if the Link header says nothing."""
    types = {o for s, p, o in graph.triples if s == graph.me and p == RDF_TYPE}
    return next((m for m in _MODELS if m in types), None)


async def post(exchange: Exchange, programs: Programs) -> Response:
    """Create a member (or a container, or a program) in a container."""
    container = find(exchange, exchange.path)
    describe(exchange, container)
    media_type = exchange.content_type((*POSTABLE, *ROWS, QUERY_TYPE))
    if media_type == QUERY_TYPE:
        return await _post_program(exchange, container, programs)
    put = _post_rows if media_type in ROWS else _post_graph
    if (tracing := programs.tracing) is None:
        return await put(exchange, container, media_type, lambda change: change)
    with tracing.posting(container.path, exchange.request.headers) as span:
        return await put(exchange, container, media_type, partial(tracing.storing, span))


async def _post_graph(exchange: Exchange, container: CatalogueEntry, media_type: str, traced: _Traced) -> Response:
    exchange.query()
    data = await exchange.body()
    model, path, slug = _model(exchange), container.path, exchange.header("slug")
    graph = await exchange.graph(data, media_type, f"{path}{SELF}/" if model not in (None, v.RESOURCE) else path + SELF)
    if model is None and (model := _model_of(graph)) is not None:
        graph = await exchange.graph(data, media_type, f"{path}{SELF}/")
    if model in (None, v.RESOURCE):
        task = exchange.store.submit(traced(changes.add_member(path, graph, exchange.arrival, slug)))
        stored = await asyncio.wrap_future(task)
        return _created(
            exchange, path + stored.name, f"{changes.member_tag(stored.id, 1)}-{graphs.SHORT[graphs.TURTLE]}"
        )
    change = changes.add_container(path, graph, model, slug)
    created = await asyncio.wrap_future(exchange.store.submit(change, alone=True))
    return _created(exchange, created.path, f"{changes.container_tag(created)}.new")


async def _post_rows(exchange: Exchange, container: CatalogueEntry, media_type: str, traced: _Traced) -> Response:
    """Create a member for each row of CSV or JSON; all of them, or none."""
    columns = exchange.query("time", "subject")
    data, path = await exchange.body(), container.path
    rows = await exchange.documents.rows(data, media_type, path + SELF, container.spec, columns, exchange.base)
    in_order = sorted(rows.graphs, key=lambda graph: graph.stamps[container.spec.order].time)
    change = traced(changes.add_members(path, in_order, exchange.arrival))
    stored = await asyncio.wrap_future(exchange.store.submit(change))
    document: dict[str, object] = {
        "graphs": len(stored),
        "first": path + stored[0].name,
        "last": path + stored[-1].name,
    }
    if rows.warnings:
        document["warnings"] = rows.warnings
    location = exchange.base.out_iri(path + stored[-1].name)
    return exchange.reply(201, msgspec.json.encode(document), "application/json", Location=location)


def _created(exchange: Exchange, path: str, tag: str) -> Response:
    """201: the links of the response are those of the new resource's container, its address is in Location."""
    return exchange.reply(201, Location=exchange.base.out_iri(path), ETag=f'"{tag}"')


async def _post_program(exchange: Exchange, container: CatalogueEntry, programs: Programs) -> Response:
    if "queries" in exchange.request.query_params:
        return await _post_many(exchange, container, programs)
    parameters = exchange.query("output", "from")
    start = parameters.get("from", "now")
    if start not in ("now", "oldest"):
        raise Problem("bad-request", f"from is 'now' or 'oldest', found {start!r}")
    query = await query_of(exchange)
    if not query.strip():
        raise Problem("bad-query", "the body is empty; send the text of a query")
    row = await _registered(exchange, container, programs, query)
    if row.output:
        exchange.links.append(f'<{row.output}>; rel="{v.REL_OUTPUT}"')
    return _created(exchange, container.path + row.name, f"p{row.id}")


async def _registered(exchange: Exchange, container: CatalogueEntry, programs: Programs, query: str) -> ProgramRow:
    """Register and start a program; without a query, one of many queries."""
    parameters = exchange.request.query_params
    naming = changes.program_name(container.path, exchange.header("slug"), many=not query)
    while True:
        name = await asyncio.wrap_future(exchange.store.submit(naming, alone=True))
        process, compiled = await programs.compile(query, container.path, name=name, standing=not query)
        output, from_start = parameters.get("output"), parameters.get("from") == "oldest"
        change = changes.add_program(container.path, name, query, output, writes=compiled.writes, from_start=from_start)
        try:
            return await programs.run(change, process, compiled)
        except changes.NameTaken:  # by another program, while this one was compiled
            continue


async def _post_many(exchange: Exchange, container: CatalogueEntry, programs: Programs) -> Response:
    """POST a program of many queries, which has none yet."""
    asked = exchange.query("queries")["queries"]
    if asked != "many":
        raise Problem("bad-request", f"queries is 'many', found {asked[:40]!r}")
    if await exchange.body():
        raise Problem("bad-request", "a program of many queries begins with an empty body; post the queries to it")
    row = await _registered(exchange, container, programs, "")
    return _created(exchange, container.path + row.name, f"p{row.id}")


# -- PUT, PATCH, DELETE -------------------------------------------------------------------------------------------


def _description_part(tag: str) -> str:
    """The part of a tag that a new description depends on: the old description, not the members."""
    return ".".join(tag.split(".")[:2])


def _whole_part(tag: str) -> str:
    return ".".join(tag.split(".")[:3])


async def put(exchange: Exchange) -> Response:
    """Replace the description of a container, or create one."""
    media_type = exchange.content_type(POSTABLE)
    exchange.query()
    data = await exchange.body()
    parent, _, name = exchange.path.rstrip("/").rpartition("/")
    if name:
        changes.check_name(name)  # before the address is the base of what is in the body
    graph = await exchange.graph(data, media_type, exchange.path)
    check = negotiation.condition(
        exchange.header("if-match"), exchange.header("if-none-match"), needed=True, part=_description_part
    )
    if exchange.path in exchange.store.catalogue.by_path:
        describe(exchange, find(exchange, exchange.path))
        change = changes.replace_container(exchange.path, graph, check)
        new = await asyncio.wrap_future(exchange.store.submit(change, alone=True))
        return exchange.reply(204, ETag=f'"{changes.container_tag(new)}.put"')
    check(None)
    model = _model(exchange) or _model_of(graph) or v.BASIC_CONTAINER
    change = changes.add_container(f"{parent}/", graph, v.BASIC_CONTAINER if model == v.RESOURCE else model, name=name)
    container = await asyncio.wrap_future(exchange.store.submit(change, alone=True))
    describe(exchange, container)
    return _created(exchange, container.path, f"{changes.container_tag(container)}.new")


async def patch_container(exchange: Exchange) -> Response:
    """Edit the description of a container."""
    container = find(exchange, exchange.path)
    describe(exchange, container)
    exchange.content_type((patch.MEDIA_TYPE,))
    exchange.query()
    operations = await exchange.patch()
    check = negotiation.condition(
        exchange.header("if-match"), exchange.header("if-none-match"), needed=True, part=_description_part
    )
    change = changes.replace_container(exchange.path, None, check, lambda triples: patch.apply(operations, triples))
    new = await asyncio.wrap_future(exchange.store.submit(change, alone=True))
    return exchange.reply(204, ETag=f'"{changes.container_tag(new)}.put"')


async def query_of(exchange: Exchange) -> str:
    """The body as the text of a query."""
    most = exchange.limits.query_characters
    data = await exchange.body(4 * most, "query_characters")
    try:
        query = data.decode()
    except UnicodeDecodeError as error:
        raise Problem("bad-request", f"the query is not UTF-8: {error}") from None
    if len(query) > most:
        raise Problem("too-large", f"the query is longer than {most} characters (query_characters)")
    return query


async def delete(exchange: Exchange, hub: Hub) -> Response:
    container = find(exchange, exchange.path)
    describe(exchange, container)
    exchange.query()
    check = negotiation.condition(
        exchange.header("if-match"), exchange.header("if-none-match"), needed=False, part=_whole_part
    )
    await asyncio.wrap_future(exchange.store.submit(changes.delete_container(container.path, check), alone=True))
    hub.forget(container.id)
    exchange.links, exchange.allow, exchange.accept_post = [], "", ""
    return exchange.reply(204)
