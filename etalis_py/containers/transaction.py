"""The transaction that a change of the store runs in, and a member as it is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field

from etalis_py.events.clock import MIN_TIME

from .catalogue import Catalogue
from .limits import Limits

_OVERTAKEN = 60_000_000  # microseconds


@dataclass(frozen=True, slots=True)
class StoredMember:
    """A member as stored; ``path`` is its container's."""

    id: int
    container: int
    path: str
    name: str
    time: int
    triples: int
    version: int
    body: bytes


@dataclass(slots=True)
class Arrivals:
    """The times of arrival of what says no time itself, which follow the order of storing.

    One request overtakes another on its way here, and programs read in the order of storing, where an earlier time
    would be late.  A clock that was set back further than requests overtake each other is followed.
    """

    newest: int = MIN_TIME

    def at(self, arrival: int) -> int:
        """The time of what arrived then and is stored now."""
        if not 0 < self.newest - arrival < _OVERTAKEN:
            self.newest = arrival
        return self.newest


@dataclass(slots=True)
class Transaction:
    """The context of a change: the connection, the containers as of the last commit, and actions after the commit."""

    db: sqlite3.Connection
    catalogue: Catalogue
    limits: Limits
    base: str
    arrivals: Arrivals
    after: list[Callable[[], None]] = field(default_factory=list)
    stored: list[StoredMember] = field(default_factory=list)
    # By container: the members whose retention is over.
    expired: dict[int, list[int]] = field(default_factory=dict)
    # By container: changes, next, members, triples, as they are within this transaction; written once at its end.
    counts: dict[int, list[int]] = field(default_factory=dict)
