"""Text that is held until a checkpoint; and standard output that gets it then: at least once.

If matches may be taken back, passing them on at once would not do: after a crash, an event and its correction may
arrive together, and a match that somebody has seen would then neither come again nor be taken back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from etalis_py.streams.outputs import TextOutput
from etalis_py.streams.sinks import Format, Match, TextSink

if TYPE_CHECKING:
    from etalis_py.streams.columns.results import Results


class Held:
    """An output that holds text until it is taken."""

    name = "held"

    def __init__(self) -> None:
        self._parts: list[str] = []

    def write(self, text: str) -> None:
        self._parts.append(text)

    def __bool__(self) -> bool:
        return any(self._parts)

    def take(self) -> bytes:
        text, self._parts = "".join(self._parts), []
        return text.encode()

    def flush(self) -> None:
        """Do nothing: the text is taken at a checkpoint."""

    def close(self) -> None:
        """Do nothing: the text is taken at a checkpoint."""

    def abandon(self) -> None:
        self._parts.clear()

    def full(self) -> bool:
        return False


class CheckpointedText:
    """What sinks of text share: they hold it until a checkpoint."""

    def __init__(self, name: str, format: Format) -> None:
        self.name = name
        self._held = Held()
        self._text = TextSink(format, self._held)

    def write(self, matches: Iterable[Match]) -> None:
        self._text.write_all(matches)

    def write_results(self, results: Results) -> bool:
        return self._text.write_results(results)

    def finish(self) -> None:
        """Without any match, the text is what the format writes around matches, such as the header of CSV."""
        self._text.close()

    def abort(self) -> None:
        self._held.abandon()

    def close(self) -> None:
        self.abort()


class HeldText(CheckpointedText):
    """Writes the text of each checkpoint to an output, once it is on the disk.  State: the text since the last.

    As long as the output has not begun, there is no token, so that the next process begins it.
    """

    guarantee = "at least once"

    def __init__(self, format: Format, output: TextOutput) -> None:
        super().__init__(output.name, format)
        self._output = output
        self._begun = False

    def recover(self, token: Any | None) -> None:
        if token is not None:
            self.commit(token)
            self._begun = True
            self._text.go_on()

    def prepare(self) -> Any:
        text = self._held.take()
        self._begun = self._begun or bool(text)
        return text if self._begun else None

    def commit(self, token: Any) -> None:
        if token is not None:
            self._output.write(token.decode())
            self._output.flush()
