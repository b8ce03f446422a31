"""Sinks without transactions: a token holds the records, and whoever commits it again sends them again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from etalis_py.connectors.plain import plain_record
from etalis_py.streams.sinks import Match


class Posting(ABC):
    """Matches leave when a checkpoint is committed, in order, as plain objects.  State: those since the last token.

    ``left``: the matches of a commit that have not arrived yet.  ``problem``: why the last of them was not taken.
    ``longest``: the seconds for which a match is tried that is not taken.
    """

    guarantee = "at least once"
    name: str
    longest: float

    def __init__(self) -> None:
        self._held: list[dict[str, Any]] = []
        self.left, self.problem = 0, ""

    @abstractmethod
    def post(self, records: Sequence[dict[str, Any]]) -> None:
        """Send the records, and return when they have arrived; SinkError if they cannot be sent."""

    @abstractmethod
    def close(self) -> None:
        """Release connections."""

    def recover(self, token: Any | None) -> None:
        if token is not None:
            self.commit(token)

    def write(self, matches: Iterable[Match]) -> None:
        self._held += (plain_record(match.to_dict()) for match in matches)

    def prepare(self) -> Any:
        held, self._held = self._held, []
        return held

    def commit(self, token: Any) -> None:
        if token:
            self.left = len(token)
            self.post(token)
            self.left, self.problem = 0, ""

    def abort(self) -> None:
        self._held = []
