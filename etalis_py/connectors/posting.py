"""Sinks without transactions: a token holds the records, and whoever commits it again sends them again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from etalis_py.connectors.plain import plain_record
from etalis_py.streams.sinks import Match


class Posting(ABC):
    """Matches leave when a checkpoint is committed, in order, as plain objects.  State: those since the last token."""

    guarantee = "at least once"

    def __init__(self) -> None:
        self._held: list[dict[str, Any]] = []

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
            self.post(token)

    def abort(self) -> None:
        self._held = []
