"""What a replay is: events, rule programs, background knowledge, and how its matches are listed and drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from etalis_py.events import Triple
from etalis_py.events.clock import Clock
from etalis_py.streams.elements import Item

Row = dict[str, str]


class ReplayMatch(Protocol):
    """What a replay reads of a match (``etalis_py.Match`` is one); times in microseconds since the epoch."""

    @property
    def query(self) -> str: ...
    @property
    def bindings(self) -> dict[str, str]: ...
    @property
    def triples(self) -> Sequence[tuple[str, str, str]] | None: ...
    @property
    def start_us(self) -> int | None: ...
    @property
    def end_us(self) -> int | None: ...
    @property
    def retracted(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Replay:
    """A worked example that runs as it is.

    ``programs`` are the files (or texts) that form the program, ``background`` its files and triples, ``clock``
    how the stream spells its times.  ``shown`` names the queries whose matches are the result, ``reads`` those that
    ``summary`` and ``plot`` look at; the matches of the others (rules in between) need not be kept.  ``notes`` says
    what was odd about the input, one line each.  ``revise``: how long, in microseconds, its events may correct others.
    """

    name: str
    programs: tuple[Path | str, ...]
    background: tuple[Path | list[Triple], ...]
    clock: Clock
    shown: tuple[str, ...]
    reads: tuple[str, ...]
    notes: tuple[str, ...]
    make_events: Callable[[], Iterator[Item]]
    tell: Callable[[Iterable[ReplayMatch]], list[Row]]
    draw: Callable[[Iterable[ReplayMatch], Path], None]
    revise: int = 0

    @property
    def events(self) -> Iterator[Item]:
        """The stream in order of time, from its beginning each time it is asked for."""
        return self.make_events()

    def summary(self, matches: Iterable[ReplayMatch]) -> list[Row]:
        """The result as rows of a table: column name → text, the same columns in every row."""
        return self.tell(matches)

    def plot(self, matches: Iterable[ReplayMatch], path: str | Path) -> None:
        """Draw the result into a file; its ending (.png, .svg or .pdf) says as what."""
        self.draw(matches, Path(path))
