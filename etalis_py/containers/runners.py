"""What a server must know of an engine: how to make a program run, feed it, and read its matches.

A server never runs a program itself: ``worker`` does, in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from etalis_py.events import Event, Triple


class MatchLike(Protocol):
    """What a program finds.  Times are microseconds; terms are canonical N-Triples spellings."""

    @property
    def start_us(self) -> int | None:
        """Where its interval begins; None for a match outside of time."""

    @property
    def end_us(self) -> int | None:
        """Where its interval ends; None for a match outside of time."""

    @property
    def id(self) -> str:
        """Deterministic: the same match of the same input has the same id."""

    @property
    def bindings(self) -> Mapping[str, str]:
        """Variable name → term, for SELECT; empty for CONSTRUCT."""

    @property
    def triples(self) -> Sequence[Triple] | None:
        """What CONSTRUCT derived; None or empty for SELECT."""

    @property
    def retracted(self) -> bool:
        """Whether this takes an earlier match back, the one of the same id."""

    def to_dict(self) -> dict[str, object]:
        """The JSON object of the match."""

    def why(self) -> object:
        """The explanation: a text, or something with ``to_dict()``, or plain JSON."""


class ProgramRunner(Protocol):
    """A compiled program with its state, fed by one thread."""

    def push(self, event: Event) -> Sequence[MatchLike]:
        """Take the next event; the answer is the matches of the instants it closed."""

    def idle(self) -> Sequence[MatchLike]:
        """No event has come for a while: close the open instant; the answer is its matches."""

    def why_not(self, where: str, at: str) -> object:
        """Why there is no such match among those of the events it remembers; ValueError for what cannot be asked."""

    def waits(self) -> float | None:
        """In how many seconds ``idle`` is wanted again: something falls due by time alone (a window, an absence)."""

    def graph(self) -> dict[str, object]:
        """The rules as a graph, asked for once, before the first event.

        ``{"nodes": [{"id", "label", "kind"}], "edges": [{"from", "to", "label"?}]}``
        """

    def warnings(self) -> list[str]:
        """What is doubtful about the query, each a text for the user."""

    def goals(self) -> int:
        """How many goals are open: the size of the state."""

    def close(self) -> None:
        """Let go of everything; no match is wanted any more."""


# From the text of a query (always a text, never to be taken for the path of a file: it comes from the network) and the
# IRI of the stream that it reads; raises ValueError with a message for the user.
RunnerFactory = Callable[[str, str], ProgramRunner]
