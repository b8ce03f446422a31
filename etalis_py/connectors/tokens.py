"""Tokens that hold the output itself, with a number by which the system behind the sink knows what it has.

    prepare ──▶ [run, number, records] ── commit ──▶ in one transaction: the records, and «run is at number»

Whoever goes on from a token that was committed finds its number there, and does nothing.  A system that is ahead of the
token, or more than one behind, belongs to another state of the folder: that is refused.  So is a number that is there
before this process has committed it: a copy of the folder is at work, too, and has put other records there.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from etalis_py.events.errors import SinkError
from etalis_py.streams.sinks import Match


class Numbered(ABC):
    """A sink of records with transactions: objects as JSON has them, unless ``record_of`` makes something else.

    State: the records since the last token.
    """

    guarantee = "exactly once"

    def __init__(self, name: str) -> None:
        self.name = name
        self.run, self.number = "", 0
        self._held: list[Any] = []
        self._last = 0  # the number that this process has committed last

    @abstractmethod
    def at(self) -> int:
        """Up to which number of this run the system has everything; 0: nothing."""

    @abstractmethod
    def put(self, records: list[Any], number: int) -> None:
        """The records and the number, in one transaction, in which ``check_free`` is called as well where possible."""

    @abstractmethod
    def close(self) -> None:
        """Release connections."""

    def recover(self, token: Any | None) -> None:
        if token is None:
            self.run, self.number = uuid.uuid4().hex, 0
            self.at()  # an address that is wrong is told now
            return
        self.run, self.number, _ = token
        there = self.at()
        if there > self.number or there < self.number - 1:
            raise SinkError(
                f"it has everything up to portion {there} of this run, and the checkpoint is at {self.number}",
                target=self.name,
                hint="put back the newest checkpoint folder, or begin anew with an empty one",
            )
        if there < self.number:
            self.commit(token)

    def write(self, matches: Iterable[Match]) -> None:
        self._held += map(self.record_of, matches)

    def record_of(self, match: Match) -> Any:
        """What is held of a match, as plain data."""
        return match.to_dict()

    def prepare(self) -> Any:
        held, self._held = self._held, []
        self.number += bool(held)
        return [self.run, self.number, held]

    def commit(self, token: Any) -> None:
        _, number, records = token
        if not records or number == self._last:
            return
        self.put(records, number)
        self._last = number

    def check_free(self, there: int, number: int) -> None:
        """Refuse to write a portion if the system has everything up to it or a later one, written by somebody else."""
        if there >= number:
            raise SinkError(
                f"it has everything up to portion {there} of this run already, and this process has not written "
                f"portion {number}: another one goes on with a copy of the checkpoint folder",
                target=self.name,
                hint="end one of the two, and go on with the folder of the other",
            )

    def abort(self) -> None:
        self._held = []
