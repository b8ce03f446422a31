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
    """A sink of ``streams`` that has no transactions.  State: whether its text has begun."""

    guarantee = "at least once"

    def __init__(self, sink: Plain) -> None:
        self._sink = sink
        self._begun = False

    def recover(self, token: Any | None) -> None:
        """Leave what was written as it is: it cannot be taken back."""
        if token and isinstance(self._sink, TextSink):
            self._begun = True
            self._sink.go_on()

    def write(self, matches: Iterable[Match]) -> None:
        for match in matches:
            self._sink.write(match)
        self._sink.flush()

    def prepare(self) -> Any:
        self._sink.flush()
        self._begun = self._begun or (isinstance(self._sink, TextSink) and self._sink.begun)
        return self._begun

    def finish(self) -> None:
        """Without any match, the text is what the format writes around matches, such as the header of CSV."""
        if isinstance(self._sink, TextSink):
            self._sink.close()
            self._begun = True

    def commit(self, token: Any) -> None:
        """Do nothing: everything is out already."""

    def abort(self) -> None:
        """Do nothing: everything is out already."""

    def close(self) -> None:
        if isinstance(self._sink, TextSink):
            self._sink.abandon()  # the next process goes on with the text, unless it has been finished
        else:
            self._sink.close()
