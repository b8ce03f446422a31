"""Standard output, and other sinks that pass matches on at once: at least once.

After a crash the matches since the last checkpoint come again, with the same ids.  A token says whether the output has
begun, so that the header of CSV comes once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etalis_py.streams.sinks import Match, TextSink
from etalis_py.streams.sinks import Sink as Plain


class Immediate:
    """A sink of ``streams`` that has no transactions.  No state."""

    guarantee = "at least once"

    def __init__(self, sink: Plain) -> None:
        self._sink = sink

    def recover(self, token: Any | None) -> None:
        """Leave what was written as it is: it cannot be taken back."""
        if token and isinstance(self._sink, TextSink):
            self._sink.go_on()

    def write(self, matches: Iterable[Match]) -> None:
        for match in matches:
            self._sink.write(match)
        self._sink.flush()

    def prepare(self) -> Any:
        self._sink.flush()
        return isinstance(self._sink, TextSink) and self._sink.begun

    def commit(self, token: Any) -> None:
        """Do nothing: everything is out already."""

    def abort(self) -> None:
        """Do nothing: everything is out already."""

    def close(self) -> None:
        self._sink.close()
