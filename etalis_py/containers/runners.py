"""What a server must know about an engine: how to run a program, feed it, and read its matches.

A server never runs a program itself: ``worker`` does, in a process of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from etalis_py.events import Event, Triple


class MatchLike(Protocol):
    """A match of a program.  Times are microseconds; terms are canonical N-Triples spellings."""

    @property
    def start_us(self) -> int | None:
        """The start of its interval; None for a timeless match."""

    @property
    def end_us(self) -> int | None:
        """The end of its interval; None for a timeless match."""

    @property
    def id(self) -> str:
        """Deterministic: the same match of the same input has the same id."""

    @property
    def query(self) -> str:
        """The name of its query."""

    @property
    def bindings(self) -> Mapping[str, str]:
        """Variable name → term, for SELECT; empty for CONSTRUCT."""

    @property
    def triples(self) -> Sequence[Triple] | None:
        """The triples derived by CONSTRUCT; None or empty for SELECT."""

    @property
    def retracted(self) -> bool:
        """Whether this retracts an earlier match, the one with the same id."""

    def to_dict(self) -> dict[str, object]:
        """The JSON object of the match."""

    def events(self, most: int) -> Sequence[tuple[Triple, int, int]]:
        """The first events behind it, each a triple with its start and end; none if it is not known."""

    def why(self) -> object:
        """The explanation: a text, or something with ``to_dict()``, or plain JSON."""


class Runner(Protocol):
    """Takes events and finds matches, fed by one thread."""

    def push(self, event: Event) -> Sequence[MatchLike]:
        """Take the next event; returns the matches of the instants it closed."""

    def idle(self) -> Sequence[MatchLike]:
        """No event has come for a while: close the open instant and return its matches."""

    def waits(self) -> float | None:
        """The seconds until ``idle`` must be called again: a window or an absence falls due by time alone."""

    def goals(self) -> int:
        """How many goals are open: the size of the state."""

    def unseen(self) -> list[str]:
        """What was left out, and what is asked for and no event so far has had, each a text for the user."""

    def close(self) -> None:
        """Release everything; no more matches are wanted."""


class ProgramRunner(Runner, Protocol):
    """A compiled program with its state."""

    @property
    def gathers(self) -> bool:
        """Whether events may correct earlier ones, so that a backlog is taken at once, with ``push_all``."""

    @property
    def writes(self) -> bool:
        """Whether its matches are graphs (CONSTRUCT, DESCRIBE), so that they need a container."""

    def settled(self) -> tuple[int, int]:
        """The time before which no match is taken back any more, and the newest time of one, in microseconds."""

    def push_all(self, events: Sequence[Event]) -> Sequence[MatchLike]:
        """Take events in order of arrival; all corrections among them are one replay."""

    def why_not(self, where: str, at: str) -> object:
        """Why there is no such match among the events it remembers; ValueError for an invalid question."""

    def graph(self) -> dict[str, object]:
        """The rules as a graph, called once, before the first event.

        ``{"nodes": [{"id", "label", "kind"}], "edges": [{"from", "to", "label"?}]}``
        """

    def warnings(self) -> list[str]:
        """Warnings about the query, each a text for the user."""


class QueriesRunner(Runner, Protocol):
    """Many queries with their state, each with its matches; they come and go while events are pushed.

    The text of a query comes from the network, and must never be taken as the path of a file.
    """

    def knows(self, query: str) -> bool:
        """Whether a query of this kind runs already, so that adding this one compiles nothing."""

    def prepare(self, name: str, query: str, size: int) -> None:
        """Begin to compile a query of a new kind while events are pushed; it has ``size`` rules and goals."""

    def is_ready(self, name: str, query: str) -> bool:
        """Whether the query can be added without compiling it first."""

    def add(self, name: str, query: str) -> None:
        """Run a query, replacing the one of this name; ValueError with a message for the user."""

    def remove(self, name: str) -> None:
        """Stop running a query, if it runs."""

    def rules(self) -> int:
        """How many rules and goals all queries have together."""


class RunnerFactory(Protocol):
    """Makes programs run."""

    def __call__(self, query: str, stream: str, name: str = "") -> ProgramRunner:
        """From the text of a query (never the path of a file), the IRI of its stream and, if it is to have one, the
        name of the query; ValueError for the user."""

    def queries(self, stream: str) -> QueriesRunner:
        """A program of many queries that has none yet; ValueError if that is impossible."""
