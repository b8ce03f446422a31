"""Standard output, and other sinks that pass matches on at once: at least once.

After a crash the matches since the last checkpoint come again, with the same ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etalis_py.streams.sinks import Match
from etalis_py.streams.sinks import Sink as Plain


class Immediate:
    """A sink of ``streams`` that has no transactions.  No state."""

    guarantee = "at least once"

    def __init__(self, sink: Plain) -> None:
        self._sink = sink

    def recover(self, token: Any | None) -> None:
        """Do nothing: what was written cannot be taken back."""

    def write(self, matches: Iterable[Match]) -> None:
        for match in matches:
            self._sink.write(match)
        self._sink.flush()

    def prepare(self) -> Any:
        self._sink.flush()
        return None

    def commit(self, token: Any) -> None:
        """Do nothing: everything is out already."""

    def abort(self) -> None:
        """Do nothing: everything is out already."""

    def close(self) -> None:
        self._sink.close()
