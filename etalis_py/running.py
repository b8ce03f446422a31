"""Running a program over a stream from start to end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

from etalis_py.census import Census
from etalis_py.driver import Driver
from etalis_py.engine import Engine, Given
from etalis_py.events import Event
from etalis_py.kernel.matches import Match, Matches, Tabular
from etalis_py.kernel.options import EngineOptions
from etalis_py.kernel.revision import as_one
from etalis_py.program import program_from
from etalis_py.streams import Stream, read_stream
from etalis_py.streams.updates import Updates, updates_of

if TYPE_CHECKING:
    import pyarrow as pa

KEPT = 1000
"""The number of late events that a run keeps."""


class Run(Tabular, Iterator[Match]):
    """The matches of a run as they arise, or all of them as a table."""

    def __init__(self, driver: Driver, census: Census, stream: object, on_late: Callable[[Event], None] | None) -> None:
        self._driver, self._engine = driver, driver.engine
        self._census, self._stream, self._on_late = census, stream, on_late
        self._dead_letters: list[Event] = []
        self._steps = self._driven()
        self._matches = (match for matches in self._steps for match in matches)

    def __iter__(self) -> Iterator[Match]:
        return self._matches

    def __next__(self) -> Match:
        return next(self._matches)

    def _driven(self) -> Iterator[Matches]:
        """The matches of each step; late events are set aside."""
        for step in self._driver.steps():
            for event in step.late:
                if len(self._dead_letters) < KEPT:
                    self._dead_letters.append(event)
                if self._on_late is not None:
                    self._on_late(event)
            yield step.matches

    @property
    def late(self) -> int:
        """The number of events so far that came after their instant was over (or withdrew nothing)."""
        return self._engine.counters.late

    @property
    def dead_letters(self) -> tuple[Event, ...]:
        """The late events themselves, the first thousand of them; ``run(…, on_late=…)`` is given all of them.

        >>> from etalis_py import event
        >>> matches = run("SELECT ?x { ?c :p ?x }", [event(":c :p 1", 5), event(":c :p 2", 3)])
        >>> [m["x"] for m in matches], matches.late, [late.end for late in matches.dead_letters]
        ([1], 1, [3000000])
        """
        return tuple(self._dead_letters)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is probably not intended: late events, and streams and predicates that no event has had so far.

        A predicate is named with the most similar one that occurred.

        >>> from etalis_py import event
        >>> matches = run("SELECT ?x { ?c :pirce ?x }", [event(":acme :price 3", 1)])
        >>> list(matches), matches.warnings
        ([], ('the predicate :pirce never occurred; did you mean :price? (spelt a little differently)',))
        """
        unmade = self._stream.warnings if isinstance(self._stream, Stream) else ()
        unmet = self._census.warnings(self._engine.knowledge)
        return (*self._left_out(), *self._driver.warnings, *unmade, *self._engine.warnings, *unmet)

    def _left_out(self) -> Iterator[str]:
        if late := self.late:
            events, were = ("event", "was") if late == 1 else ("events", "were")
            option, withdrew = (
                ("revise", ", or withdrew what never was,") if self._engine.options.revise else ("lateness", "")
            )
            yield (
                f"{late:,} {events} came too late{withdrew} and {were} left out: see dead_letters, or on_late=…; "
                f"{option}=…, in microseconds, allows for more"
            )

    def collect(self) -> Matches:
        """All matches that are still to come: a notebook shows them as a table, or as a timeline.

        >>> from etalis_py import event
        >>> matches = run("SELECT ?x { ?c :p ?x }", [event(":c :p 1", 1), event(":c :p 2", 2)]).collect()
        >>> len(matches), matches.timeline()
        (2, <timeline of 2 matches>)
        """
        return as_one(list(self._steps))

    def to_arrow(self, *, query: str | None = None) -> pa.Table:
        """The matches that are still to come as a table; see ``Matches.to_arrow``."""
        from etalis_py.kernel.tabular import arrow_table  # takes a while to import

        return arrow_table(self._steps, query)


def run(
    program: Given,
    stream: Stream | Iterable[Event] | Any,
    /,
    *,
    mapping: Any = None,
    until: int | str | datetime | None = None,
    updates: Updates | None = None,
    on_late: Callable[[Event], None] | None = None,
    **options: Unpack[EngineOptions],
) -> Run:
    """The matches of a program over a stream, as the instants close; ``options`` are those of ``Engine``.

    A stream is what ``read_stream`` gives, any events, or a frame (a table of pyarrow, pandas or polars): one of the
    flat form (``end``, ``s``, ``p``, ``o``), or any other with a ``mapping`` from its columns to triples.  A file or
    frame that is not in order of time is sorted first, with a warning, unless late events are allowed (``lateness``,
    ``revise``) or it was opened with ``in_order=False``.

    ``until`` ends the run: microseconds since the epoch, a datetime (without a zone: UTC), or a time as the stream
    spells it, such as ``"2026-01-31T10:00:00Z"``.  Events after it are not read, and whatever depends on time alone
    (windows, absences) is reported if it falls due up to then.  A time that the stream cannot have is an error, and one
    before its first event a warning.  While a live stream (``read_stream(…, idle=1.0)``) is silent, event time follows
    the wall clock: see ``streams.PassingTime``.

    ``updates`` change the background while the stream runs: a file of JSON lines, or dicts of the same form, in order
    of time: ``{"time": 10, "add": ":a a :Firm .", "remove": …, "graph": …}``.  An update holds from the first instant
    after its time.

    Events that come too late are counted in ``Run.late``; ``on_late`` is called with each of them.

    An error in the input, or of an iterator, is raised after the matches of the events before it.

    >>> from etalis_py import event
    >>> [m["x"] for m in run("SELECT ?x { ?c :p ?x }", [event(":c :p 1", 1), event(":c :p 2", 2)])]
    [1, 2]
    """
    if mapping is not None or hasattr(stream, "__arrow_c_stream__"):
        stream = read_stream(stream, mapping=mapping, in_order=True)
    if isinstance(stream, Stream):
        options.setdefault("render", lambda us: stream.clock.render(us))
    if updates is not None:
        options.setdefault("changes", True)
        if options.get("background") is None:
            options["background"] = []
    compiled = program_from(program)
    engine = Engine(compiled, **options)
    census = Census(compiled)
    changes = () if updates is None else updates_of(updates, stream.unit if isinstance(stream, Stream) else "s")
    driver = Driver(engine, stream, until=until, updates=changes, census=census)
    return Run(driver, census, stream, on_late)
