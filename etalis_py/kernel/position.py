"""The position of an engine in its stream, and its counters."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from etalis_py.events import Event, UnexpectedRetraction

NEVER = -(2**63)  # the least int64: before all times
FOREVER = 2**63 - 1  # the greatest int64: after all times


@dataclass(slots=True)
class Position:
    """The position of an engine in its stream.

    ``now`` is the time of the open instant, whose events are ``pending``; every instant up to ``closed`` is over.
    ``start`` is the start of the stream, where it is known; ``begun``: it has passed the executors.
    ``buffer`` holds the events that wait because of the lateness, by end and order of arrival; ``newest`` is the latest
    end that it has had.  ``answered`` has the ASK queries that have been answered.
    """

    now: int = NEVER
    closed: int = NEVER
    newest: int = NEVER
    arrivals: int = 0
    started: bool = False
    finished: bool = False
    start: int | None = None
    begun: bool = False
    pending: list[Any] = field(default_factory=list)
    buffer: list[tuple[int, int, Event]] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)

    def ordered(self, events: Iterable[Event], lateness: int) -> tuple[list[Event], list[Event], Exception | None]:
        """Put events into the lateness buffer; returns those to take now, those that are too late, and an error of the
        iterable or a retraction.

        To be taken are, in order, the waiting events whose time has come, and at once events that are invalid.  Too
        late is what ends more than the lateness before the newest event so far, even if nothing after it has been taken
        yet: otherwise it would depend on what lies between the two.
        """
        ready: list[Event] = []
        late: list[Event] = []
        there, error = drawn(events)
        for event in there:
            try:
                start, end = event[0], event[1]
            except UnexpectedRetraction as unexpected:
                return ready, late, unexpected
            if start > end:
                ready.append(event)
                continue
            if end < self.newest - lateness or end < self.now or end <= self.closed:
                late.append(event)
                continue
            self.arrivals += 1
            heapq.heappush(self.buffer, (end, self.arrivals, event))
            self.newest = max(self.newest, end)
            while self.buffer and self.buffer[0][0] < self.newest - lateness:
                ready.append(heapq.heappop(self.buffer)[2])
        return ready, late, error

    def release(self, t: int) -> list[Event]:
        """Take the events up to ``t`` out of the buffer."""
        ready = []
        while self.buffer and self.buffer[0][0] <= t:
            ready.append(heapq.heappop(self.buffer)[2])
        return ready

    def plain(self) -> dict[str, Any]:
        """The position as plain data."""
        buffer = [[end, n, list(event)] for end, n, event in sorted(self.buffer, key=lambda waiting: waiting[:2])]
        return {
            "now": self.now,
            "closed": self.closed,
            "newest": self.newest,
            "arrivals": self.arrivals,
            "started": self.started,
            "finished": self.finished,
            "start": self.start,
            "begun": self.begun,
            "pending": [list(event) for event in self.pending],
            "buffer": buffer,
            "answered": sorted(self.answered),
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Position:
        """The position that ``plain`` wrote."""
        return cls(
            now=plain["now"],
            closed=plain["closed"],
            newest=plain["newest"],
            arrivals=plain["arrivals"],
            started=plain["started"],
            finished=plain["finished"],
            start=plain.get("start"),
            begun=plain.get("begun", True),  # earlier versions knew no START
            pending=[event_of(fields) for fields in plain["pending"]],
            buffer=[(end, n, event_of(fields)) for end, n, fields in plain["buffer"]],
            answered=set(plain["answered"]),
        )


def drawn(events: Iterable[Event]) -> tuple[Sequence[Event], Exception | None]:
    """The events that an iterable gives until it ends or raises an error, and that error."""
    if isinstance(events, (list, tuple)):
        return events, None
    there: list[Event] = []
    try:
        for event in events:
            there.append(event)
    except MemoryError:
        raise
    except Exception as error:
        return there, error
    return there, None


def event_of(fields: Any) -> Event:
    """An event from the lists of stored state."""
    start, end, triples, stream, graph = fields
    return Event._make((start, end, tuple(tuple(triple) for triple in triples), stream, graph))


@dataclass(slots=True)
class StateSize:
    """The size of an engine's state: the numbers of goals and the like, of items in windows, of goals by rule node."""

    goals: int = 0
    items: int = 0
    per_rule: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Counters:
    """The counters of an engine: of the work it has done, and of the state it keeps now.

    ``events`` counts those taken in, ``triples`` the triples in instants that are over; ``late`` events are in
    ``dead_letters``.  ``unrouted``: events of streams that no windowed query reads (where there are only windowed
    ones); ``outside``: items that no window will ever hold.  ``evaluations`` are those of windowed queries.
    ``inconsistent`` counts how often an answer-set program had no answer set, ``ignored`` the events that are outside
    what such a program allows.

    ``corrections`` counts those of the input (a burst counts as one), ``replayed`` the events that were taken again for
    them.  ``forgotten`` counts the goals that had no place in rules which an update of the background gave.

    ``goals``, ``items`` (in windows) and ``per_rule`` are counted on demand.
    """

    events: int = 0
    triples: int = 0
    late: int = 0
    unrouted: int = 0
    outside: int = 0
    instants: int = 0
    evaluations: int = 0
    matches: int = 0
    pruned: int = 0
    inconsistent: int = 0
    ignored: int = 0
    corrections: int = 0
    replayed: int = 0
    forgotten: int = 0
    kept: Callable[[], StateSize] = field(default=StateSize, repr=False, compare=False)

    @property
    def goals(self) -> int:
        return self.kept().goals

    @property
    def items(self) -> int:
        return self.kept().items

    @property
    def per_rule(self) -> dict[str, int]:
        return self.kept().per_rule

    def plain(self) -> dict[str, int]:
        """The numbers as plain data."""
        return {name: getattr(self, name) for name in STORED}

    def go_to(self, plain: Mapping[str, int]) -> None:
        """The numbers that ``plain`` wrote; counters that are missing there stay as they are."""
        for name in STORED:
            setattr(self, name, plain.get(name, getattr(self, name)))


STORED = (
    "events",
    "triples",
    "late",
    "unrouted",
    "outside",
    "instants",
    "evaluations",
    "matches",
    "pruned",
    "inconsistent",
    "ignored",
    "corrections",
    "replayed",
    "forgotten",
)
