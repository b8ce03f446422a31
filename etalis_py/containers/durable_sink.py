"""A container as the sink of a run with a checkpoint: every match exactly once, by its name.

The graphs since the last checkpoint are in the token, each with the name of its member.  Whoever commits the token
again writes the same names, which are there already.  A server that chooses the names itself gets the graphs twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etalis_py.events.errors import without_password

from .client import ContainerSink


class DurableContainer:
    """State: the graphs since the last token; and how often each match was taken back, which decides its next name.

    The latter is forgotten when the report of a match can change no more, so it is bounded by the horizon.
    """

    def __init__(self, sink: ContainerSink) -> None:
        self._sink, self.name = sink, without_password(sink.url)
        self.guarantee = "exactly once" if sink.names_members else "at least once"
        self._held: list[list[Any]] = []

    def recover(self, token: Any | None) -> None:
        if token is not None:
            self._sink.names.go_to(token["taken back"])
            self.commit(token)

    def write(self, matches: Iterable[Any]) -> None:
        self._held += (list(self._sink.member_of(match)) for match in matches)

    def prepare(self) -> Any:
        held, self._held = self._held, []
        return {"members": held, "taken back": self._sink.names.state()}

    def commit(self, token: Any) -> None:
        for name, body in token["members"]:
            self._sink.put(name, body)

    def abort(self) -> None:
        self._held = []

    def close(self) -> None:
        self.abort()
        self._sink.close()
