"""Retention: deleting members that are too old or too many for their container, or belong to a deleted one.

A pass removes a few hundred rows within a transaction that happens anyway, so that no post waits long for it; the
writer comes back at once while there is more to remove and nothing else to do.
"""

from __future__ import annotations

from dataclasses import replace

from etalis_py.events.clock import MIN_TIME

from .catalogue import CatalogueEntry
from .transaction import Transaction

_ROWS = 200
_CONTAINERS = 64
_REMEMBERED = 100_000


class Tidier:
    """Goes through the containers in turn, some at each pass."""

    def __init__(self) -> None:
        self._turn = 0

    def tidy(self, transaction: Transaction, now: int) -> bool:
        """Remove the members that are due, up to a bound; returns whether there are more."""
        kept = [c for c in list(transaction.catalogue.by_id.values()) if c.spec.retain_for or c.spec.retain_count]
        start = self._turn if self._turn < len(kept) else 0
        self._turn = start + _CONTAINERS
        more = False
        for container in kept[start : self._turn]:
            more |= _expire(transaction, container, now)
        return _purge(transaction) or more


def _expire(transaction: Transaction, container: CatalogueEntry, now: int) -> bool:
    spec, db = container.spec, transaction.db
    known = transaction.counts.get(container.id)
    members = known[2] if known else container.members
    excess = max(0, members - spec.retain_count) if spec.retain_count else 0
    limit = max(MIN_TIME, spec.retain_for.before(now)) if spec.retain_for else MIN_TIME
    oldest = "SELECT id, name, triples, time FROM members WHERE container = ? ORDER BY time, id LIMIT ?"
    if not excess:
        first = db.execute(oldest, (container.id, 1)).fetchone()
        if first is None or first[3] > limit:
            return False
    rows = db.execute(oldest, (container.id, _ROWS)).fetchall()
    due = [row[:3] for i, row in enumerate(rows) if i < excess or row[3] <= limit]
    if due:
        numbers = [row[0] for row in due]
        transaction.expired.setdefault(container.id, []).extend(numbers)
        forget(transaction, container, due)
        db.execute("UPDATE containers SET deleted = max(deleted, ?) WHERE id = ?", (max(numbers), container.id))
    return len(due) == _ROWS


def forget(transaction: Transaction, container: CatalogueEntry, rows: list[tuple[int, str, int]]) -> None:
    """Delete members given as (id, name, triples); their names are not used again."""
    db = transaction.db
    db.executemany("DELETE FROM members WHERE id = ?", [(row[0],) for row in rows])
    db.executemany("DELETE FROM stamps WHERE member = ?", [(row[0],) for row in rows])
    remember_gone(transaction, [container.path + row[1] for row in rows if not row[1].isdigit()])
    count(transaction, container, -len(rows), -sum(row[2] for row in rows))


def remember_gone(transaction: Transaction, paths: list[str]) -> None:
    """Keep addresses from being used again; the oldest beyond a bound are forgotten (LDP 1.0 §5.2.3.11 is a SHOULD)."""
    if paths:
        transaction.db.executemany("INSERT OR IGNORE INTO gone (path) VALUES (?)", [(p,) for p in paths])
        transaction.db.execute("DELETE FROM gone WHERE id <= (SELECT max(id) FROM gone) - ?", (_REMEMBERED,))


def count(transaction: Transaction, container: CatalogueEntry, members: int, triples: int, used: int = 0) -> int:
    """Count a change of a container's content; returns the previous value of ``next``."""
    numbers = counts(transaction, container)
    following = numbers[1]
    numbers[0] += 1
    numbers[1] += used
    numbers[2] += members
    numbers[3] += triples
    return following


def counts(transaction: Transaction, container: CatalogueEntry) -> list[int]:
    """The changes, next, members and triples of a container as they are within the transaction."""
    known = transaction.counts.get(container.id)
    if known is None:
        known = [container.changes, container.next, container.members, container.triples]
        transaction.counts[container.id] = known
    return known


def write_counts(transaction: Transaction) -> None:
    """Write the counts of a transaction: at its end into the database, and once committed into the catalogue."""
    catalogue = transaction.catalogue
    for number, (changes, following, members, triples) in transaction.counts.items():
        transaction.db.execute(
            "UPDATE containers SET changes = ?, next = ?, members = ?, triples = ? WHERE id = ?",
            (changes, following, members, triples, number),
        )

    def apply() -> None:
        for number, (changes, following, members, triples) in transaction.counts.items():
            now = catalogue.by_id.get(number)
            if now is not None:
                catalogue.put(replace(now, changes=changes, next=following, members=members, triples=triples))

    transaction.after.append(apply)


def _purge(transaction: Transaction) -> bool:
    """Remove the members of deleted containers."""
    db = transaction.db
    purged = db.execute("SELECT container FROM purges LIMIT 1").fetchone()
    if purged is None:
        return False
    rows = db.execute("SELECT id FROM members WHERE container = ? LIMIT ?", (purged[0], _ROWS)).fetchall()
    db.executemany("DELETE FROM members WHERE id = ?", rows)
    db.executemany("DELETE FROM stamps WHERE member = ?", rows)
    if not rows:
        db.execute("DELETE FROM purges WHERE container = ?", purged)
    return True
