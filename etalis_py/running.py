"""Running a program over a stream from start to end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Unpack

from etalis_py.census import Census
from etalis_py.engine import Engine, Given
from etalis_py.events import Event
from etalis_py.inputs import columns_of as columns_of
from etalis_py.inputs import opened
from etalis_py.kernel.matches import Match, Matches, Revised, Tabular
from etalis_py.kernel.options import EngineOptions
from etalis_py.kernel.revision import as_one
from etalis_py.program import program_from
from etalis_py.streams import Burst, Idle, PassingTime, Punctuation, Stream, StreamError, up_to

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1024
_FEW = 3  # queries that are shown by name
_TAKEN = (
    "the matches of this run have been taken already; to use them several times, keep them: "
    "matches = run(…).collect(), then list(matches), matches.to_pandas(), matches.to_arrow(query=…)"
)


class Run(Tabular, Iterator[Match]):
    """The matches of a run as they arise, or all of them as a table."""

    def __init__(self, steps: Iterator[Matches], engine: Engine, census: Census, stream: object) -> None:
        self._steps = self._followed(steps)
        self._engine, self._census, self._stream = engine, census, stream
        self._matches = self._one_by_one()
        self._last: Matches | None = None  # what the last step gave
        self._gone = ""  # why some matches cannot be had again
        self._collected: Matches | None = None
        self._tables: dict[str | None, pa.Table] = {}

    def _followed(self, steps: Iterator[Matches]) -> Iterator[Matches]:
        try:
            for matches in steps:
                self._last = matches
                yield matches
        except Exception:
            self._gone = "this run has ended with an error: run it again over input without it"
            raise

    def _one_by_one(self) -> Iterator[Match]:
        for matches in self._steps:
            if len(matches):
                self._gone = _TAKEN
                yield from matches

    def __iter__(self) -> Iterator[Match]:
        """The matches that are still to come; once they have been collected, all of them, as often as wanted."""
        if self._collected is not None:
            return iter(self._collected)
        if self._tables:
            raise ValueError(_TAKEN)
        return self._matches

    def __next__(self) -> Match:
        return next(self._matches)

    def __repr__(self) -> str:
        """What runs over what, and how far it has got; nothing is run for it."""
        engine, stream = self._engine, self._stream
        queries = [query for program in engine.programs.values() for query in program.queries]
        named = ", ".join(queries[:_FEW]) + f", … ({len(queries):,} queries)" * (len(queries) > _FEW)
        over = stream.source if isinstance(stream, Stream) else f"a {type(stream).__name__}"
        counters = engine.counters
        how = "ended" if engine.finished else "iterate over it, or take all with .collect() or .to_pandas()"
        return f"<Run of {named} over {over}: {counters.events:,} events, {counters.matches:,} matches so far; {how}>"

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

        Called again, it gives the same matches, and so do iteration and all tables from then on.

        >>> from etalis_py import event
        >>> matches = run("SELECT ?x { ?c :p ?x }", [event(":c :p 1", 1), event(":c :p 2", 2)]).collect()
        >>> len(matches), matches.timeline()
        (2, <timeline of 2 matches>)
        """
        if self._collected is None:
            if self._gone == _TAKEN and not self._engine.finished:
                rest = list(self._matches)
                assert self._last is not None
                self._collected = Revised(self._last.shapes, rest)
            else:
                self._collected = as_one(list(self._rest()))
        return self._collected

    def _rest(self) -> Iterator[Matches]:
        """The steps that are still to come; if there are none, the last one, which had no matches."""
        if self._gone or self._tables:
            raise ValueError(self._gone or _TAKEN)
        return self._steps if self._last is None else chain((self._last,), self._steps)

    def to_arrow(self, *, query: str | None = None) -> pa.Table:
        """The matches that are still to come as a table, the same whenever it is called; see ``Matches.to_arrow``."""
        from etalis_py.kernel.tabular import arrow_table  # takes a while to import

        if self._collected is None and self._gone == _TAKEN and not self._engine.finished:
            self.collect()  # the rest of a step is no step
        if self._collected is not None:
            return self._collected.to_arrow(query=query)
        if query not in self._tables:
            self._tables[query] = arrow_table(self._rest(), query)
        return self._tables[query]


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

    A stream is what ``read_stream`` gives, a list or iterator of events, a path, a pattern, an address (``http://``,
    ``tcp://``, ``kafka://``), a frame (a table of pyarrow, pandas or polars) of the flat form (``end``, ``s``, ``p``,
    ``o``), or, with a ``mapping`` from its columns or keys to triples, any other frame and any list or iterator of
    dicts.

    ``until``, in microseconds, ends the run at this time: events after it are not read, and whatever depends on time
    alone (windows, absences) is reported if it falls due up to then.  While a live stream (``read_stream(…,
    idle=1.0)``) is silent, event time follows the wall clock: see ``streams.PassingTime``.

    An error in the input is raised after the matches of the events before it.

    >>> from etalis_py import event
    >>> [m["x"] for m in run("SELECT ?x { ?c :p ?x }", [event(":c :p 1", 1), event(":c :p 2", 2)])]
    [1, 2]
    """
    compiled = program_from(program)
    revise = bool(options.get("revise"))
    in_order = not (revise or options.get("lateness"))
    stream = opened(stream, mapping, revise=revise, in_order=in_order, prefixes=compiled.prefixes)
    if isinstance(stream, Stream):
        options.setdefault("render", lambda us: stream.clock.render(us))
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
