"""The definition of a workload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from etalis_py.events import Event
from etalis_py.knowledge import Knowledge, load

Answer = tuple[int, int, tuple]
"""A match as ``(start, end, row)``: the terms in alphabetical order of variables, or the triples of a CONSTRUCT."""

Feed = Callable[[Iterable[Event]], list[Answer]]
"""A hand-written program: takes events in order and returns the answers of their instants; it keeps its goals.

Fed nothing, it returns the answers that are only known at the end of the stream.
"""

Triple = tuple[str, str, str]

Unit = Literal["events/s", "seconds", "times", "× loop"]


@dataclass(frozen=True, slots=True)
class Bar:
    """The requirement: the least events per second, the most seconds, or the most times the reference time.

    The reference is the time with few goals, or that of the hand-written loop.
    """

    unit: Unit
    value: float

    def met(self, measured: float) -> bool:
        return measured >= self.value if self.unit == "events/s" else measured <= self.value


@dataclass(frozen=True, slots=True)
class Workload:
    """One row of the table.

    ``size`` is the number of events for which the bar is meant.  ``loop`` makes the hand-written program with an empty
    state.  ``triples``: a match's row is the triples of its CONSTRUCT.  With ``live``, ``idle(n)`` gives the events of
    n goals that wait before the clock starts; the figure is the time with the second number over that with the first.
    ``background`` has the named graphs of stored triples.
    """

    name: str
    title: str
    query: str
    policy: str
    size: int
    events: Callable[[int], list[Event]]
    loop: Callable[[], Feed]
    bar: Bar
    triples: bool = False
    idle: Callable[[int], Iterable[Event]] | None = None
    live: tuple[int, int] = (0, 0)
    background: Mapping[str, Callable[[], Iterable[Triple]]] = field(default_factory=dict)

    def knowledge(self) -> Knowledge | None:
        """The background, loaded."""
        named = {name[1:-1]: [list(triples())] for name, triples in self.background.items()}
        return load([], named=named, entailment="rdf", cache=False) if named else None
