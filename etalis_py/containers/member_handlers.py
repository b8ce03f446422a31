"""Requests to the members of a container: the graphs of the stream, and its programs."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.responses import Response

from . import changes, graphs, negotiation, patch
from .catalogue import ProgramRow
from .container_handlers import digest, query_of
from .exchange import MERGE_TYPE, PROGRAM_METHODS, QUERY_TYPE, Exchange
from .graphs import FORMATS, POSTABLE, SHORT, ReceivedGraph
from .problems import Problem
from .programs import Programs
from .transaction import StoredMember

JSON = "application/json"
_MATCHES = 200


def split(path: str) -> tuple[str, str]:
    """A path split into the container's path and the name in it."""
    parent, _, name = path.rpartition("/")
    return f"{parent}/", name


def program_at(exchange: Exchange) -> ProgramRow | None:
    path, name = split(exchange.path)
    container = exchange.store.catalogue.by_path.get(path)
    return exchange.store.catalogue.programs.get((container.id, name)) if container else None


def load(exchange: Exchange) -> StoredMember:
    """The member at the request's path; a ``Problem`` that says whether it never existed or was deleted."""
    path, name = split(exchange.path)
    container = exchange.store.catalogue.by_path.get(path)
    with exchange.store.reading() as db:
        if container is not None:
            row = db.execute(
                "SELECT id, time, triples, version, body FROM members WHERE container = ? AND name = ?",
                (container.id, name),
            ).fetchone()
            if row is not None:
                return StoredMember(row[0], container.id, path, name, row[1], row[2], row[3], row[4])
        gone = db.execute("SELECT 1 FROM gone WHERE path = ?", (exchange.path,)).fetchone() is not None
    if container is not None and name.isascii() and name.isdigit() and len(name) < 19:
        gone = gone or (int(name) < container.next and name == str(int(name)))
    folder = exchange.path + "/"
    hint = f"; there is a container {folder}" if folder in exchange.store.catalogue.by_path else ""
    raise Problem("gone" if gone else "not-found", f"there is no {exchange.path}{hint}")


def exists(exchange: Exchange) -> bool:
    """Whether there is, or was, a member at the request's path."""
    try:
        load(exchange)
    except Problem as problem:
        return problem.kind != "not-found"
    return True


async def get(exchange: Exchange) -> Response:
    exchange.query()
    stored = load(exchange)
    exchange.is_member()
    media_type = negotiation.accepted(exchange.header("accept"), tuple(FORMATS))
    tag = f"{changes.member_tag(stored.id, stored.version)}-{SHORT[media_type]}"
    if (response := exchange.not_modified(tag)) is not None:
        return response
    data = graphs.serialize(stored.body, media_type, exchange.base, exchange.path)
    return exchange.reply(200, data, media_type, ETag=f'"{tag}"', Cache_Control="no-cache", Vary="Accept")


async def options(exchange: Exchange) -> Response:
    load(exchange)
    exchange.is_member()
    return exchange.reply(204)


def _conditions(exchange: Exchange, *, needed: bool) -> changes.Condition:
    return negotiation.condition(exchange.header("if-match"), exchange.header("if-none-match"), needed=needed)


async def put(exchange: Exchange) -> Response:
    """Replace a graph, or create it under a name chosen by the client (so a sink can write each match once)."""
    exchange.is_member()
    media_type = exchange.content_type(POSTABLE)
    exchange.query()
    path, name = split(exchange.path)
    changes.check_name(name)  # before the address is the base of what is in the body
    graph = await exchange.graph(await exchange.body(), media_type, exchange.path)
    change = changes.put_member(path, name, graph, exchange.arrival, _conditions(exchange, needed=True))
    stored, created = await asyncio.wrap_future(exchange.store.submit(change))
    tag = f'"{changes.member_tag(stored.id, stored.version)}-{SHORT[graphs.TURTLE]}"'
    if created:
        return exchange.reply(201, Location=exchange.base.out_iri(exchange.path), ETag=tag)
    return exchange.reply(204, ETag=tag)


async def patch_member(exchange: Exchange) -> Response:
    stored = load(exchange)
    exchange.is_member()
    exchange.content_type((patch.MEDIA_TYPE,))
    exchange.query()
    operations = await exchange.patch()
    triples = await exchange.read(patch.apply, operations, graphs.triples_of(stored.body))
    if len(triples) > exchange.limits.triples_per_graph:
        raise Problem("too-large", f"the graph would have more than {exchange.limits.triples_per_graph} triples")
    graph: ReceivedGraph = graphs.stamped(triples, f"<{exchange.base.inner}{exchange.path[1:]}>")
    judge, seen = _conditions(exchange, needed=True), changes.member_tag(stored.id, stored.version)

    def check(state: str | None) -> None:
        judge(state)
        if state != seen:
            raise Problem("stale", "the resource changed while the patch was applied; read it again")

    path, name = split(exchange.path)
    new, _ = await asyncio.wrap_future(
        exchange.store.submit(changes.put_member(path, name, graph, exchange.arrival, check))
    )
    return exchange.reply(204, ETag=f'"{changes.member_tag(new.id, new.version)}-{SHORT[graphs.TURTLE]}"')


async def delete(exchange: Exchange) -> Response:
    load(exchange)
    exchange.is_member()
    exchange.query()
    path, name = split(exchange.path)
    change = changes.delete_member(path, name, _conditions(exchange, needed=False))
    await asyncio.wrap_future(exchange.store.submit(change))
    exchange.links, exchange.allow = [], ""
    return exchange.reply(204)


# -- programs -----------------------------------------------------------------------------------------------------


async def program(exchange: Exchange, row: ProgramRow, programs: Programs) -> Response:
    """A program: its text, or as JSON its state and matches, or with ``?match=ID`` why that match was found.

    With ``?where=CONDITION`` (which may be empty) and ``at=TIME``, why such a match did not come.
    """
    if not row.many:
        exchange.is_program(row.output)
    if exchange.method == "OPTIONS":
        return exchange.reply(204)
    if exchange.method == "DELETE":
        return await _delete_program(exchange, row, programs)
    if exchange.method == "PUT":
        return await _put_program(exchange, row, programs)
    if exchange.method == "PATCH":
        return await _patch_program(exchange, row, programs)
    if exchange.method not in ("GET", "HEAD"):
        raise Problem("no-method", f"{exchange.method} is not taken here; taken: {PROGRAM_METHODS}")
    parameters = exchange.query("after", "match", "where", "at")
    if row.many and parameters.keys() - {"after"}:
        raise Problem("bad-request", "a program of many queries explains nothing; register the query by itself to ask")
    media_type = negotiation.accepted(exchange.header("accept"), (QUERY_TYPE, JSON))
    if media_type == QUERY_TYPE and not parameters:
        return exchange.reply(200, row.query.encode(), QUERY_TYPE, ETag=f'"{_program_tag(row)}"', Vary="Accept")
    running = programs.get(row)
    document: object
    if "match" in parameters:
        if running is None:
            raise Problem("not-found", "the program is not running, so it explains nothing")
        exchange.is_question()
        why = await running.why(parameters["match"], exchange.client)
        document = {"match": parameters["match"], "why": why}
    elif "where" in parameters or "at" in parameters:
        if running is None:
            raise Problem("not-found", "the program is not running, so it explains nothing")
        exchange.is_question()
        asked = parameters.get("where", ""), parameters.get("at", "")
        document = {"where": asked[0], "at": asked[1], "whyNot": await running.why_not(*asked, exchange.client)}
    else:
        after = number_after(parameters)
        document = await exchange.read(programs.describe, row) | {
            "rules": msgspec.Raw(running.rules if running else b'{"nodes":[],"edges":[]}'),
            "found": running.since(after, _MATCHES) if running else [],
        }
    data = msgspec.json.encode(document)
    tag = f"p{row.id}.{digest(data)}-json"
    if (response := exchange.not_modified(tag)) is not None:
        return response
    return exchange.reply(200, data, JSON, ETag=f'"{tag}"', Cache_Control="no-cache", Vary="Accept")


def number_after(parameters: dict[str, str]) -> int:
    """The number of the match after which to list matches."""
    after = parameters.get("after", "0")
    if not (after.isascii() and after.isdigit() and len(after) < 19):
        raise Problem("bad-request", f"after is the number of a match, found {after[:40]!r}")
    return int(after)


def _program_tag(row: ProgramRow) -> str:
    return f"p{row.id}.{digest(row.query)}"


def _program_conditions(exchange: Exchange) -> changes.ProgramCondition:
    check = _conditions(exchange, needed=False)
    return lambda program: check(_program_tag(program))


async def _delete_program(exchange: Exchange, row: ProgramRow, programs: Programs) -> Response:
    exchange.query()
    path, name = split(exchange.path)
    await programs.delete(changes.delete_program(path, name, _program_conditions(exchange)))
    exchange.links, exchange.allow = [], ""
    return exchange.reply(204)


async def _put_program(exchange: Exchange, row: ProgramRow, programs: Programs) -> Response:
    """Replace the program's query from now on; the old one runs until the new one has compiled."""
    exchange.content_type((QUERY_TYPE,))
    start = exchange.query("from").get("from", "now")
    if start not in ("now", "oldest"):
        raise Problem("bad-request", f"from is 'now' or 'oldest', found {start!r}")
    check = _program_conditions(exchange)
    check(row)  # and again when the new query has been compiled
    query = await query_of(exchange)
    process, compiled = await programs.compile(query, split(exchange.path)[0], name=row.name)
    from_start = start == "oldest"
    change = changes.replace_program(row.id, query, check, writes=compiled.writes, from_start=from_start)
    new = await programs.run(change, process, compiled)
    return exchange.reply(204, ETag=f'"{_program_tag(new)}"')


async def _patch_program(exchange: Exchange, row: ProgramRow, programs: Programs) -> Response:
    """``{"paused": true}`` ends the process of a program for a time, ``false`` starts it again."""
    exchange.content_type((MERGE_TYPE,))
    exchange.query()
    try:
        wanted = msgspec.json.decode(await exchange.body(1024, ""), type=_Pause).paused
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem("bad-request", f'the body is {{"paused": true}} or {{"paused": false}}: {error}') from None
    await (programs.pause(row) if wanted else programs.resume(row))
    return exchange.reply(204)


class _Pause(msgspec.Struct, forbid_unknown_fields=True):
    paused: bool
