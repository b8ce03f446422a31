"""Running a program over a stream from start to end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, Unpack

from etalis_py.census import Census
from etalis_py.engine import Engine, Given
from etalis_py.events import Event
from etalis_py.kernel.batch import Columns
from etalis_py.kernel.matches import Match, Matches, Tabular
from etalis_py.kernel.options import EngineOptions
from etalis_py.kernel.revision import as_one
from etalis_py.program import program_from
from etalis_py.streams import Burst, Idle, PassingTime, Punctuation, Stream, StreamError, read_stream, up_to

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1024


class Run(Tabular, Iterator[Match]):
    """The matches of a run as they arise, or all of them as a table."""

    def __init__(self, steps: Iterator[Matches], engine: Engine, census: Census, stream: object) -> None:
        self._steps = steps
        self._engine, self._census, self._stream = engine, census, stream
        self._matches = (match for matches in steps for match in matches)

    def __iter__(self) -> Iterator[Match]:
        return self._matches

    def __next__(self) -> Match:
        return next(self._matches)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Streams and predicates that the program asks for but no event has had so far, with the most similar one.

        >>> from etalis_py import event
        >>> matches = run("SELECT ?x { ?c :pirce ?x }", [event(":acme :price 3", 1)])
        >>> list(matches), matches.warnings
        ([], ('the predicate :pirce never occurred; did you mean :price? (spelt a little differently)',))
        """
        unmade = self._stream.warnings if isinstance(self._stream, Stream) else ()
        return (*unmade, *self._engine.warnings, *self._census.warnings(self._engine.knowledge))

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
    until: int | None = None,
    **options: Unpack[EngineOptions],
) -> Run:
    """The matches of a program over a stream, as the instants close; ``options`` are those of ``Engine``.

    A stream is what ``read_stream`` gives, any events, or a frame (a table of pyarrow, pandas or polars): one of the
    flat form (``end``, ``s``, ``p``, ``o``), or any other with a ``mapping`` from its columns to triples.

    ``until``, in microseconds, ends the run at this time: events after it are not read, and whatever depends on time
    alone (windows, absences) is reported if it falls due up to then.  While a live stream (``read_stream(…,
    idle=1.0)``) is silent, event time follows the wall clock: see ``streams.PassingTime``.

    An error in the input is raised after the matches of the events before it.

    >>> from etalis_py import event
    >>> [m["x"] for m in run("SELECT ?x { ?c :p ?x }", [event(":c :p 1", 1), event(":c :p 2", 2)])]
    [1, 2]
    """
    if mapping is not None or hasattr(stream, "__arrow_c_stream__"):
        stream = read_stream(stream, mapping=mapping, in_order=True)
    if isinstance(stream, Stream):
        options.setdefault("render", lambda us: stream.clock.render(us))
    compiled = program_from(program)
    engine = Engine(compiled, **options)
    census = Census(compiled)
    return Run(_steps(engine, stream, census, until), engine, census, stream)


def fall_due(engine: Engine, passing: PassingTime) -> Iterator[Matches]:
    """What falls due by the wall clock, one time after the other; the engine never gets ahead of the reports."""
    reached = passing.reached()
    while reached is not None and (due := engine.next_due()) is not None and due <= reached:
        yield engine.advance(due)


def _steps(engine: Engine, stream: Stream | Iterable[Event], census: Census, until: int | None) -> Iterator[Matches]:
    """The matches of each step."""
    live = stream if isinstance(stream, Stream) and stream.idle is not None else None
    if isinstance(stream, Stream) and stream.in_bulk and until is None:
        yield from _steps_in_bulk(engine, stream, census)
        return
    passing = PassingTime(idle=(live and live.idle) or 0.0, lateness=engine.lateness, until=until)
    batch: list[Event] = []
    items = iter(stream) if until is None else up_to(stream, until, max(engine.lateness, engine.options.revise))
    newest: int | None = None
    size = at_once = BATCH if live is None else 1
    if live is not None and engine.options.revise:
        live.gather()  # corrections that arrive together are one replay
    while True:
        try:
            item = next(items, None)
        except (StreamError, OSError):
            yield engine.push_all(batch)
            if newest is not None:
                yield engine.advance(newest)
            raise
        if isinstance(item, Event):
            batch.append(item)
            if newest is None or item.end > newest:
                newest = item.end
            if live is not None:
                passing.arrived(item.end)
            if len(batch) < size:
                continue
        elif isinstance(item, Burst):
            size = BATCH if item.open else at_once
            if item.open or not batch:
                continue
        if batch:
            census.see(batch)
        yield engine.push_all(batch)
        batch.clear()
        if isinstance(item, Punctuation):
            passing.arrived(item.time)
            yield engine.advance(item.time)
        elif isinstance(item, Idle):
            yield from fall_due(engine, passing)
            if until is not None and passing.reached() == until:
                break
        elif item is None:
            break
        if live is not None:
            live.wake(passing.wake_at(engine.next_due()))
    yield engine.close(until=until)


def _steps_in_bulk(engine: Engine, stream: Stream, census: Census) -> Iterator[Matches]:
    """The same for a source that is read in columns."""
    chunks = stream.chunks()
    newest: int | None = None
    while True:
        try:
            chunk = next(chunks, None)
        except (StreamError, OSError):
            if newest is not None:
                yield engine.advance(newest)
            raise
        if chunk is None:
            break
        if not isinstance(chunk, list):
            if len(chunk):
                columns = columns_of(chunk)
                newest = max(int(columns.end[len(columns) - 1]), newest or -(2**63))
                census.see_columns(columns)
                yield engine.push_all(columns)
            continue
        for events, signals in groupby(chunk, key=lambda item: isinstance(item, Event)):
            items = list(signals)
            if events:  # all at once: corrections among them are one replay
                newest = max(newest or -(2**63), *(item.end for item in items))
                census.see(items)
                yield engine.push_all(items)
                continue
            for item in items:
                yield engine.advance(item.time if isinstance(item, Punctuation) else item.at)
    yield engine.close()


def columns_of(batch: pa.RecordBatch) -> Columns:
    """A batch in the flat form as columns of events."""
    times = (batch.column(name).to_numpy() for name in ("end", "start"))
    there = batch.schema.names
    more = (batch.column(name) if name in there else None for name in ("stream", "event", "graph"))
    return Columns(*times, *(batch.column(name) for name in "spo"), *more)
