"""The output for readers: the listing of a container, or the graphs of a window, piece by piece.

Both are generators of chunks, each read from the store when the one before has been sent: a window of millions of
graphs needs no more memory than one of five hundred.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pyoxigraph as ox
from etalis_rules.terms import literal

from etalis_py.events.clock import render_datetime

from . import spans
from . import vocabulary as v
from .catalogue import CatalogueEntry
from .graphs import DATE_TIME_STAMP, FORMATS, JSONLD, NDJSON, NTRIPLES, TRIG, TURTLE, Base, serialize
from .store import Store
from .transaction import StoredMember

CHUNK = 500
_CHUNK_BYTES = 256 * 1024
_PRETTY = 256 * 1024
_ARRIVALS_BYTES = 1024 * 1024


class Item(msgspec.Struct, omit_defaults=True):
    """A member as one line of JSON, the ``.jsonl`` form of a stream."""

    id: int
    time: str
    triples: str
    graph: str
    stream: str
    deletedUpTo: int = 0


def item(stored: StoredMember, base: Base, deleted: int = 0) -> bytes:
    """A member as JSON; ``deleted`` tells its reader that members up to this one were deleted before it came."""
    return msgspec.json.encode(
        Item(
            id=stored.id,
            time=render_datetime(stored.time),
            triples=base.out(stored.body).decode(),
            graph=base.out_iri(stored.path + stored.name),
            stream=base.out_iri(stored.path),
            deletedUpTo=deleted,
        )
    )


# -- the graphs of a span, or of the feed -----------------------------------------------------------------------


def span_members(
    store: Store, container: CatalogueEntry, span: spans.MemberSpan, newest: int
) -> Iterator[list[StoredMember]]:
    """The members of a span in stream order, no younger than ``newest``, by chunks of bounded number and size."""
    while True:
        members: list[StoredMember] = []
        size, seen, place = 0, 0, None
        with store.reading() as db:
            cursor = spans.select(db, span, "name, triples, version, body", limit=CHUNK)
            for time, number, name, triples, version, body in cursor:
                place, seen = (time, number), seen + 1
                if number <= newest:
                    members.append(
                        StoredMember(number, container.id, container.path, name, time, triples, version, body)
                    )
                    size += len(body)
                    if size > _CHUNK_BYTES:
                        cursor.close()
                        break
            else:
                # The cursor is exhausted: a partial chunk is the last one.
                place = place if seen == CHUNK else None
        if members:
            yield members
        if place is None:
            return
        span = spans.beyond(span, place)


def arrivals(store: Store, container: CatalogueEntry, after: int, limit: int) -> list[StoredMember]:
    """The members that arrived after the one with id ``after``, in order of arrival.

    There are at most ``limit`` of them, and fewer if they are large: the bytes read at once are bounded.
    """
    members: list[StoredMember] = []
    size = 0
    with store.reading() as db:
        cursor = db.execute(
            "SELECT id, name, time, triples, version, body FROM members INDEXED BY members_by_arrival "
            "WHERE container = ? AND id > ? ORDER BY id LIMIT ?",
            (container.id, after, limit),
        )
        for r in cursor:
            members.append(StoredMember(r[0], container.id, container.path, r[1], r[2], r[3], r[4], r[5]))
            size += len(r[5])
            if size > _ARRIVALS_BYTES:
                break
        cursor.close()
    return members


def arrivals_and_deleted(
    store: Store, container: CatalogueEntry, after: int, limit: int
) -> tuple[list[StoredMember], int]:
    """The members after a reader's place, and up to which one its retention has taken some of them; 0 if none."""
    with store.reading() as db:
        db.execute("BEGIN")  # both as of the same moment
        try:
            members = arrivals(store, container, after, limit)
            deleted = deleted_up_to(db, container)
        finally:
            db.execute("COMMIT")
    return members, deleted if deleted > after else 0


def deleted_up_to(db: sqlite3.Connection, container: CatalogueEntry) -> int:
    """The newest member that the retention of a container has deleted; 0 if there is none."""
    row = db.execute("SELECT deleted FROM containers WHERE id = ?", (container.id,)).fetchone()
    return int(row[0]) if row else 0


def end(store: Store, container: CatalogueEntry) -> int:
    """The place of a reader that has missed nothing: the last member that there is, or was."""
    last = latest(store, container, 1)
    with store.reading() as db:
        return max(deleted_up_to(db, container), last[-1].id if last else 0)


def latest(store: Store, container: CatalogueEntry, count: int) -> list[StoredMember]:
    """The last members to arrive, in order of arrival; fewer if they are large."""
    after, size = 0, 0
    with store.reading() as db:
        cursor = db.execute(
            "SELECT id, length(body) FROM members INDEXED BY members_by_arrival WHERE container = ? "
            "ORDER BY id DESC LIMIT ?",
            (container.id, count),
        )
        for number, length in cursor:
            if size and size + length > _ARRIVALS_BYTES:
                break
            after, size = number - 1, size + length
        cursor.close()
    return arrivals(store, container, after, count)


def encode_members(members: list[StoredMember], media_type: str, base: Base) -> bytes:
    """Graphs in a syntax; if it has named graphs each keeps its own, with its time in the default graph."""
    if media_type == NDJSON:
        return b"".join(item(m, base) + b"\n" for m in members)
    if media_type in (TURTLE, NTRIPLES):
        return base.out(b"".join(m.body for m in members))
    inner = base.inner.encode()
    parts = []
    for m in members:
        name = b"<" + inner + f"{m.path[1:]}{m.name}>".encode()
        stamp = literal(render_datetime(m.time), DATE_TIME_STAMP)
        parts.append(name + f" {v.GENERATED_AT} {stamp} .\n".encode())
        if media_type == TRIG:
            parts += [name, b" {\n", m.body, b"}\n"]
        else:
            parts.append(m.body.replace(b" .\n", b" " + name + b" .\n"))
    data = base.out(b"".join(parts))
    if media_type != JSONLD:
        return data
    return _inside(ox.serialize(ox.parse(data, ox.RdfFormat.N_QUADS), format=FORMATS[JSONLD]) or b"[]")


def _inside(array: bytes) -> bytes:
    return array.strip()[1:-1]


# -- the listing of a container ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing of a container as of a time: its description, and sections of containment and membership triples."""

    container: CatalogueEntry
    now: int
    newest: int
    containment: bool = True
    membership: bool = True


@dataclass(frozen=True, slots=True)
class Section:
    """Members of one span, each giving the triple ``before`` member ``after``."""

    before: str
    after: str
    span: spans.MemberSpan


def sections(store: Store, listing: Listing, base: Base) -> list[Section]:
    """The sections of a listing: containment, the direct container's membership, then each window's (Figure 5)."""
    c = listing.container
    me = f"<{base.inner}{c.path[1:]}>"
    parts = []
    if listing.containment:
        parts.append(Section(f"{me} {v.CONTAINS} ", "", spans.whole(c.id)))
    if listing.membership and c.spec.direct:
        d = c.spec.direct
        before, after = ("", f" {d.relation} {d.resource}") if d.inverse else (f"{d.resource} {d.relation} ", "")
        parts.append(Section(before, after, spans.whole(c.id)))
    if listing.membership:
        with store.reading() as db:
            for w in c.spec.windows:
                span = spans.membership(db, c.id, c.spec.order, w, listing.now)
                parts.append(Section(f"{w.resource} {w.member_relation} ", "", span))
    return parts


def window_state(store: Store, parts: list[Section]) -> tuple[object, ...]:
    """The part of the listing that changes with time alone: the first and last member of each section."""
    with store.reading() as db:
        return tuple(spans.ends(db, part.span) for part in parts)


def head(store: Store, listing: Listing, base: Base) -> bytes:
    """The description, and the contained resources and direct members that are not members of the stream."""
    c = listing.container
    children = [path[1:] for path in list(store.catalogue.children.get(c.id, {}))]
    programs = [f"{c.path[1:]}{p.name}" for p in store.catalogue.programs_of(c.id)]
    me = f"<{base.inner}{c.path[1:]}>"
    lines = [c.config]
    for path in children + programs:
        resource = f"<{base.inner}{path}>"
        if listing.containment:
            lines.append(f"{me} {v.CONTAINS} {resource} .\n".encode())
        if listing.membership and (d := c.spec.direct):
            s, o = (resource, d.resource) if d.inverse else (d.resource, resource)
            lines.append(f"{s} {d.relation} {o} .\n".encode())
    return b"".join(lines)


Cursor = tuple[int, int, int]


def page(
    store: Store, listing: Listing, parts: list[Section], base: Base, start: Cursor | None, limit: int
) -> tuple[bytes, Cursor | None]:
    """Up to ``limit`` triples of the sections, the newest members first, and where the next page starts."""
    lines: list[str] = []
    index, place = (start[0], start[1:]) if start else (0, None)
    prefix = f"<{base.inner}{listing.container.path[1:]}"
    while index < len(parts):
        section = parts[index]
        span = spans.beyond(section.span, place, newest_first=True) if place else section.span
        room = limit - len(lines)
        with store.reading() as db:
            members = spans.rows(db, span, "name", newest_first=True, limit=room)
        lines += [
            f"{section.before}{prefix}{name}>{section.after} .\n" for _, i, name in members if i <= listing.newest
        ]
        if len(members) == room:
            return "".join(lines).encode(), (index, *members[-1][:2])
        index, place = index + 1, None
    return "".join(lines).encode(), None


def listing_chunks(store: Store, listing: Listing, parts: list[Section], base: Base) -> Iterator[bytes]:
    """The whole listing as N-Triples in chunks."""
    cursor: Cursor | None = None
    first = head(store, listing, base)
    while True:
        data, cursor = page(store, listing, parts, base, cursor, 4 * CHUNK)
        yield first + data
        if cursor is None:
            return
        first = b""


def encode_listing(data: bytes, media_type: str, base: Base, path: str, *, only: bool) -> bytes:
    """A chunk of a listing in a syntax; ``only``: it is the only one, so it can be formatted nicely."""
    if media_type == JSONLD:
        return _inside(serialize(data, JSONLD, base, path))
    if only and len(data) <= _PRETTY:
        return serialize(data, media_type, base, path)
    return base.out(data)
