"""The members of a window as a range of an index: the cost depends on the members in it, never on the others.

Two readings, both of [SC], that differ at the edges:

* ``membership``: the rule of Figure 5 as printed, ``?timestamp >= NOW() - ?logicalWindow``: closed below, and a time
  in the future counts.  ``?resource ?relation ?timestamp``: only times stated about the resource itself.
* ``content``: the window of §3.3, (now − α, now]: open below, closed above; any subject's time (t_pred).

A physical window of n triples holds the newest graphs up to now with at most n triples in total.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from etalis_py.events.clock import MAX_TIME, MIN_TIME

from .spec import Window

_LAST = 2**63 - 1
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class MemberSpan:
    """Members with ``after`` < (time, id) ≤ ``until``, in the container's order, or by ``relation`` if given."""

    container: int
    after: Place
    until: Place
    relation: str = ""
    own: bool = False


def whole(container: int) -> MemberSpan:
    return MemberSpan(container, (MIN_TIME, -1), (MAX_TIME, _LAST))


def content(db: sqlite3.Connection, container: int, order: str, window: Window, now: int) -> MemberSpan:
    """The members of a window for the whole-window request: (now − α, now]."""
    relation = "" if window.relation == order else window.relation
    if window.logical is not None:
        return MemberSpan(container, (max(MIN_TIME, window.logical.before(now)), _LAST), (now, _LAST), relation)
    return _physical(db, container, relation, window.physical or 0, now, own=False)


def membership(db: sqlite3.Connection, container: int, order: str, window: Window, now: int) -> MemberSpan:
    """The members that the rule of [SC] Figure 5 relates to the window at ``now``."""
    relation = "" if window.relation == order else window.relation
    if window.logical is not None:
        low = max(MIN_TIME, window.logical.before(now))
        return MemberSpan(container, (low, -1), (MAX_TIME, _LAST), relation, own=bool(relation))
    return _physical(db, container, relation, window.physical or 0, now, own=bool(relation))


def _physical(db: sqlite3.Connection, container: int, relation: str, size: int, now: int, own: bool) -> MemberSpan:
    span = MemberSpan(container, (MIN_TIME, -1), (now, _LAST), relation, own)
    total = 0
    cursor = db.execute(*_select(span, "triples", newest_first=True))
    for time, number, triples in cursor:
        total += triples
        if total > size:
            cursor.close()
            return MemberSpan(container, (time, number), span.until, relation, own)
    return span


def _select(
    span: MemberSpan, columns: str, *, newest_first: bool = False, limit: int = -1
) -> tuple[str, tuple[object, ...]]:
    order = "DESC" if newest_first else "ASC"
    bounds = (*span.after, *span.until)
    if not span.relation:
        extra = f", {columns}" if columns else ""
        sql = (
            f"SELECT time, id{extra} FROM members INDEXED BY members_by_time WHERE container = ? "
            f"AND (time, id) > (?, ?) AND (time, id) <= (?, ?) ORDER BY time {order}, id {order} LIMIT ?"
        )
        return sql, (span.container, *bounds, limit)
    wanted = [c.strip() for c in columns.split(",") if c.strip()]
    extra = "".join(f", m.{c}" for c in wanted)
    own = "AND s.own " if span.own else ""
    sql = (
        f"SELECT s.time, s.member{extra} FROM stamps s CROSS JOIN members m ON m.id = s.member "
        f"WHERE s.container = ? AND s.relation = ? "
        f"AND (s.time, s.member) > (?, ?) AND (s.time, s.member) <= (?, ?) {own}"
        f"ORDER BY s.time {order}, s.member {order} LIMIT ?"
    )
    return sql, (span.container, span.relation, *bounds, limit)


def select(db: sqlite3.Connection, span: MemberSpan, columns: str, *, limit: int) -> sqlite3.Cursor:
    """The members of a span in stream order, as a cursor to read from."""
    return db.execute(*_select(span, columns, limit=limit))


def rows(
    db: sqlite3.Connection, span: MemberSpan, columns: str, *, newest_first: bool = False, limit: int = -1
) -> list[tuple[Any, ...]]:
    """The members of a span: (time, id, columns…), in stream order or the newest first."""
    return db.execute(*_select(span, columns, newest_first=newest_first, limit=limit)).fetchall()


def ends(db: sqlite3.Connection, span: MemberSpan) -> tuple[Place, Place] | None:
    """The first and last place of a span with a member: if no content changed, they show whether a window moved."""
    first = rows(db, span, "", limit=1)
    if not first:
        return None
    return first[0], rows(db, span, "", newest_first=True, limit=1)[0]


def beyond(span: MemberSpan, place: Place, *, newest_first: bool = False) -> MemberSpan:
    """The rest of a span after the member at ``place``."""
    if newest_first:
        time, number = place
        return MemberSpan(span.container, span.after, (time, number - 1), span.relation, span.own)
    return MemberSpan(span.container, place, span.until, span.relation, span.own)


def size(db: sqlite3.Connection, span: MemberSpan, most: int) -> int:
    """How many members a span holds, counted up to ``most``."""
    sql, arguments = _select(span, "", limit=most)
    return db.execute(f"SELECT count(*) FROM ({sql})", arguments).fetchone()[0]  # type: ignore[no-any-return]
