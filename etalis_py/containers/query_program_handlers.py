"""Requests to a program of many queries, and to each of its queries."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.responses import Response

from . import member_handlers as members
from . import negotiation
from .catalogue import ProgramRow, QueryRow
from .changes import Condition, as_name, check_name
from .container_handlers import digest, query_of
from .exchange import MANY_METHODS, QUERY_METHODS, QUERY_TYPE, Exchange
from .member_handlers import JSON, split
from .problems import Problem
from .programs import Programs
from .query_changes import delete_query, find_query, names_after, query_tag
from .query_program import ManyQueries


def program_of(exchange: Exchange) -> ProgramRow | None:
    """The program of many queries above the request's path."""
    path, name = split(split(exchange.path)[0][:-1])
    container = exchange.store.catalogue.by_path.get(path)
    row = exchange.store.catalogue.programs.get((container.id, name)) if container else None
    return row if row is not None and row.many else None


async def program(exchange: Exchange, row: ProgramRow, programs: Programs) -> Response:
    """A program of many queries: POST adds one, ``?names=`` lists them; all else is as for any program."""
    exchange.is_many()
    running = _running(row, programs)
    match exchange.method:
        case "POST":
            return await _post(exchange, running)
        case "GET" | "HEAD" if "names" in exchange.request.query_params:
            return await _names(exchange, row)
        case "GET" | "HEAD" | "OPTIONS" | "PATCH":
            return await members.program(exchange, row, programs)
        case "DELETE":
            response = await members.program(exchange, row, programs)
            running.leave()
            return response
    raise Problem("no-method", f"{exchange.method} is not taken here; taken: {MANY_METHODS}")


def _running(row: ProgramRow, programs: Programs) -> ManyQueries:
    running = programs.get(row)
    if not isinstance(running, ManyQueries):
        raise Problem("busy", "the program starts", headers={"Retry-After": "1"})
    return running


async def _names(exchange: Exchange, row: ProgramRow) -> Response:
    after, limit = exchange.query("names")["names"], exchange.limits.page_members
    names = await exchange.read(names_after, exchange.store, row.id, after, limit)
    if len(names) == limit:
        exchange.link_next_page(f"?names={names[-1]}")
    data = msgspec.json.encode({"queries": names})
    tag = f"p{row.id}.{digest(data)}-json"
    return exchange.not_modified(tag) or exchange.reply(200, data, JSON, ETag=f'"{tag}"', Cache_Control="no-cache")


async def _post(exchange: Exchange, running: ManyQueries) -> Response:
    exchange.content_type((QUERY_TYPE,))
    exchange.query()
    text = await _text(exchange)
    name = running.free_name(as_name(exchange.header("slug") or ""))
    row = await running.add(name, text, exchange.client, None)
    return _created(exchange, row, f"{exchange.path}/{name}")


def _created(exchange: Exchange, row: QueryRow, path: str) -> Response:
    return exchange.reply(201, Location=exchange.base.out_iri(path), ETag=f'"{query_tag(row)}"')


async def _text(exchange: Exchange) -> str:
    text = await query_of(exchange)
    most = exchange.limits.standing_characters
    if len(text) > most:
        raise Problem("too-large", f"the query is longer than {most} characters (standing_characters)")
    if not text.strip():
        raise Problem("bad-query", "the body is empty; send the text of a SELECT or an ASK")
    return text


async def query(exchange: Exchange, program_row: ProgramRow, programs: Programs) -> Response:
    """One query: its text, or as JSON its state and matches."""
    name = split(exchange.path)[1]
    exchange.is_query()
    running = _running(program_row, programs)
    row = await exchange.read(find_query, exchange.store, program_row.id, name)
    if exchange.method == "PUT":
        return await _put(exchange, running, row)
    if row is None or name not in running.queries:
        raise Problem("not-found", f"the program has no query {name}")
    match exchange.method:
        case "OPTIONS":
            return exchange.reply(204)
        case "DELETE":
            exchange.query()
            _condition(exchange)(query_tag(row))
            await asyncio.wrap_future(exchange.store.submit(delete_query(row)))
            await running.remove(row)
            return exchange.reply(204)
        case "GET" | "HEAD":
            return _get(exchange, running, row)
    raise Problem("no-method", f"{exchange.method} is not taken here; taken: {QUERY_METHODS}")


def _condition(exchange: Exchange) -> Condition:
    return negotiation.condition(exchange.header("if-match"), exchange.header("if-none-match"), needed=False)


async def _put(exchange: Exchange, running: ManyQueries, row: QueryRow | None) -> Response:
    """Replace the text of the query, which begins again, or create a query of this name."""
    exchange.content_type((QUERY_TYPE,))
    exchange.query()
    name = split(exchange.path)[1]
    check_name(name)
    text = await _text(exchange)
    _condition(exchange)(None if row is None else query_tag(row))
    new = await running.add(name, text, exchange.client, None if row is None else row.id)
    if row is None:
        return _created(exchange, new, exchange.path)
    return exchange.reply(204, ETag=f'"{query_tag(new)}"')


def _get(exchange: Exchange, running: ManyQueries, row: QueryRow) -> Response:
    parameters = exchange.query("after")
    media_type = negotiation.accepted(exchange.header("accept"), (QUERY_TYPE, JSON))
    if media_type == QUERY_TYPE and not parameters:
        tag = query_tag(row)
        data = row.text.encode()
        return exchange.not_modified(tag) or exchange.reply(200, data, QUERY_TYPE, ETag=f'"{tag}"', Vary="Accept")
    after = members.number_after(parameters)
    document = {"query": row.text, "program": split(exchange.path)[0][:-1]}
    data = msgspec.json.encode(document | running.describe_query(row.name, after))
    tag = f"{query_tag(row)}.{digest(data)}-json"
    headers = {"ETag": f'"{tag}"', "Cache_Control": "no-cache", "Vary": "Accept"}
    return exchange.not_modified(tag) or exchange.reply(200, data, JSON, **headers)
