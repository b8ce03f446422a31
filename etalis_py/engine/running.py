"""Running a program over a stream from start to end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Unpack, cast

from etalis_rules.messages import how_many

from etalis_py.durable.keeper import Keeper
from etalis_py.engine.driver import Driver
from etalis_py.engine.engine import Engine
from etalis_py.engine.inputs import opened
from etalis_py.engine.lasting import Lasting, kept, reading_of
from etalis_py.engine.program import Given, Program, program_from
from etalis_py.engine.stage_plans import without_use
from etalis_py.engine.tie_order import tie_order
from etalis_py.engine.unseen_names import UnseenNames
from etalis_py.events import Event
from etalis_py.events.clock import micros_of
from etalis_py.events.errors import warn_caller
from etalis_py.kernel.frames import Decimals, Look, Tabular, Terms
from etalis_py.kernel.matches import Match, Matches, Revised, join_matches
from etalis_py.kernel.options import EngineOptions
from etalis_py.streams import Stream
from etalis_py.streams.drafting import naming_of
from etalis_py.streams.elements import Counters
from etalis_py.streams.reference import updates_from
from etalis_py.streams.unread import Unread
from etalis_py.streams.updates import TimedUpdate, Updates
from etalis_py.values.keywords import check_keywords

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 20
"""The number of matches that a run shows of itself."""
KEPT = 1000
"""The number of late events that a run keeps."""
_FEW = 3  # queries that are shown by name
_TAKEN = (
    "the matches of this run have been taken already; to use them several times, keep them: "
    "matches = run(…).collect(), then list(matches), matches.to_pandas(), matches.to_arrow(query=…)"
)

_FAILED = "this run has ended with an error: run it again over input without it"


class RunOptions(EngineOptions, Lasting, total=False):
    """The keywords of ``run``: those of ``Engine``, and those of a run that lasts."""


class Run(Tabular, Iterator[Match]):
    """The matches of a run as they arise, or all of them as a table."""

    def __init__(
        self,
        program: Program,
        driver: Driver,
        census: UnseenNames,
        stream: object,
        on_late: Callable[[Event], None] | None,
        keeper: Keeper | None = None,
        *,
        ends: bool = False,
    ) -> None:
        self._program, self._keeper = program, keeper
        self._driver, self._engine = driver, driver.engine
        self._census, self._stream, self._on_late = census, stream, on_late
        self._dead_letters: list[Event] = []
        self._steps = self._followed(self._driven())
        self._matches = self._one_by_one()
        self._last: Matches | None = None  # what the last step gave
        self._gone = ""  # why some matches cannot be had again
        self._collected: Matches | None = None
        self._tables: dict[tuple[str | None, Look], pa.Table] = {}
        self._ends = ends  # whether the stream certainly has an end
        self._looked_at: list[Matches] | None = None  # the first steps, which have been shown
        self._showing = False  # whether they are being found
        self._undelivered = False  # whether nobody has taken some of them yet
        self._doubted = False  # whether it was told that times are probably counted in another unit

    def _followed(self, steps: Generator[Matches]) -> Generator[Matches]:
        with closing(steps):
            yield from self._watched(steps)

    def _watched(self, steps: Iterator[Matches]) -> Iterator[Matches]:
        try:
            for matches in steps:
                self._last = matches
                yield matches
        except Exception:
            self._gone = _FAILED
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

    def close(self) -> None:
        """Stop before the end: a run that lasts lets go of its folder, as it does at the end."""
        self._steps.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """At the prompt the first matches as a table; elsewhere, such as in a log, how far it has got."""
        return str(self) if hasattr(sys, "ps1") else self._progress()

    def __str__(self) -> str:
        """The first matches as a table, if nobody has taken them and the stream has an end.

        What is run for it is not lost: iteration and tables begin with these matches.
        """
        parts = self._shown()
        if parts is None:
            return self._progress()
        from etalis_py.notebook.tables import matches_text  # takes a while to import

        shapes = parts[-1].shapes if parts else ()
        return matches_text(chain.from_iterable(parts), SHOWN, shapes) or self._nothing(self.warnings)

    def _repr_html_(self) -> str:
        """The same in a notebook, with the matches over time."""
        from etalis_py.notebook import first_matches_html, text_html

        parts = self._shown()
        if not parts or not any(map(len, parts)):
            return text_html(self._progress() if parts is None else self._nothing(self.warnings))
        return first_matches_html(chain.from_iterable(parts), SHOWN, parts[-1].shapes)

    def _shown(self) -> Sequence[Matches] | None:
        """The steps with the first matches, if they can be shown."""
        if self._collected is not None:
            return [self._collected]
        return self._looked_at if self._begin_to_show() else None

    def _nothing(self, reasons: Iterable[str]) -> str:
        events = self._engine.counters.events
        return "\n".join((f"no matches: {events:,} event{'s' * (events != 1)}", *reasons))

    def _begin_to_show(self) -> bool:
        """Run until there is enough to show; False if that cannot be done, or if matches have been taken."""
        if not self._ends or self._last is not None or self._gone or self._tables:
            return False
        if self._looked_at is None:
            ahead: list[Matches] = []
            error: Exception | None = None
            self._showing = True
            try:
                for matches in self._steps:
                    ahead.append(matches)
                    if sum(map(len, ahead)) > SHOWN:
                        break
            except Exception as failure:  # raised again once the matches before it have been taken
                error = failure
            self._showing = False
            self._looked_at, self._last, self._gone = ahead, None, ""
            self._steps = self._again(ahead, error, self._steps)
        return True

    def _again(self, ahead: list[Matches], error: Exception | None, steps: Generator[Matches]) -> Generator[Matches]:
        """The steps that have been shown, then the others."""
        self._undelivered = True
        for matches in ahead:
            self._last = matches
            yield matches
        self._undelivered = False
        if error is not None:
            self._gone = _FAILED
            raise error
        yield from steps

    def _progress(self) -> str:
        """What runs over what, and how far it has got; nothing is run for it."""
        engine, stream = self._engine, self._stream
        queries = [query for program in engine.programs.values() for query in program.queries]
        named = ", ".join(queries[:_FEW]) + f", … ({len(queries):,} queries)" * (len(queries) > _FEW)
        over = stream.source if isinstance(stream, (Stream, Unread)) else f"a {type(stream).__name__}"
        counters = engine.counters
        how = "ended" if engine.finished else "iterate over it, or take all with .collect() or .to_pandas()"
        so_far = f"{how_many(counters.events, 'event')}, {how_many(counters.matches, 'match', 'matches')} so far"
        return f"<Run of {named} over {over}: {so_far}; {how}>"

    def _driven(self) -> Generator[Matches]:
        """The matches of each step; late events are set aside."""
        keeper = self._keeper
        if keeper is None:
            yield from self._stepped()
            return
        with closing(keeper):
            if keeper.ended:
                yield self._engine.push_all(())
                return
            for matches in self._stepped():
                if len(matches):
                    keeper.write(matches)
                yield matches

    def _stepped(self) -> Iterator[Matches]:
        for step in self._driver.steps():
            for event in step.late:
                if len(self._dead_letters) < KEPT:
                    self._dead_letters.append(event)
                if self._on_late is not None:
                    self._on_late(event)
            if step.ended:
                self._census.tell()
                self._tell_why_nothing()
            if not self._doubted and isinstance(self._stream, Stream):
                self._doubted = self._tell_doubts(self._stream)
            yield step.matches

    def _tell_why_nothing(self) -> None:
        """Without any match, tell what is probably not intended, as a loop over nothing says nothing."""
        if self._engine.counters.matches or self._showing:
            return
        program = self._program
        told = {*map(str, program.can_never_match(checked=False)), *self._census.told}
        if isinstance(self._stream, Stream):
            told.update(self._stream.doubts)
        every = dict.fromkeys((*map(str, program.can_never_match()), *self.warnings))
        if reasons := [reason for reason in every if reason not in told]:
            warn_caller(self._nothing(reasons))

    @staticmethod
    def _tell_doubts(stream: Stream) -> bool:
        """Whether times are probably counted in another unit, which is told at once.

        What is within an hour is a thousand hours apart then, so such a run finds nothing and waits for nothing.
        """
        doubts = stream.doubts
        for doubt in doubts:
            warn_caller(doubt)
        return bool(doubts)

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
        """What is probably not intended: in the program, in what was left out, and names that no event has had so far.

        A predicate is named with the most similar one that occurred.

        >>> from etalis_py import event
        >>> matches = run("SELECT ?x { ?c :pirce ?x }", [event(":acme :price 3", 1)])
        >>> list(matches), matches.warnings
        ([], ('the predicate :pirce never occurred; did you mean :price? (spelt a little differently)',))
        """
        unmade = self._stream.warnings if isinstance(self._stream, Stream) else ()
        of = self._stream if isinstance(self._stream, Stream) else None
        subjects, times = (frozenset(), frozenset()) if of is None else (of.subjects, of.times_of_rows)
        unmet = self._census.warnings(self._engine.knowledge, subjects=subjects, times=times)
        return (
            *map(str, self._program.warnings),
            *self._left_out(),
            *self._driver.warnings,
            *unmade,
            *self._engine.warnings,
            *unmet,
        )

    def _left_out(self) -> Iterator[str]:
        if late := self.late:
            events, were = ("event", "was") if late == 1 else ("events", "were")
            option, withdrew = (
                ("revise", ", or withdrew what never was,") if self._engine.options.revise else ("lateness", "")
            )
            yield (
                f"{late:,} {events} came too late{withdrew} and {were} left out: see dead_letters, or on_late=…; "
                f"{'start=…, if earlier, or ' * (self._engine.options.start is not None)}{option}=…, in microseconds, "
                "allows for more"
            )
        read = self._stream.counters if isinstance(self._stream, Stream) else Counters()
        if read.empty and read.events:  # else another warning says why there is no event at all
            records = how_many(read.empty, "record")
            yield f"{records} made no event, for want of a subject or of anything beside it"
        if read.errors:
            parts = how_many(read.errors, "part of the input was", "parts of the input were")
            yield f"{parts} skipped, which could not be read: dead_letters=… of read_stream keeps them"

    def collect(self) -> Matches:
        """All matches that are still to come: a notebook shows them as a table, or as a timeline.

        Called again, it gives the same matches, and so do iteration and all tables from then on.

        >>> from etalis_py import event
        >>> matches = run("SELECT ?x { ?c :p ?x }", [event(":c :p 1", 1), event(":c :p 2", 2)]).collect()
        >>> len(matches), matches.timeline()
        (2, <timeline of 2 matches>)
        """
        if self._collected is None:
            if self._gone == _TAKEN and not self._has_ended():
                rest = list(self._matches)
                assert self._last is not None
                self._collected = Revised(self._last.shapes, rest)
            else:
                self._collected = join_matches(list(self._rest()))
        return self._collected

    def _rest(self) -> Iterator[Matches]:
        """The steps that are still to come; if there are none, the last one, which had no matches."""
        if self._gone or self._tables:
            raise ValueError(self._gone or _TAKEN)
        return self._steps if self._last is None else chain((self._last,), self._steps)

    def _has_ended(self) -> bool:
        return self._engine.finished and not self._undelivered

    def to_arrow(self, *, query: str | None = None, terms: Terms = "full", decimals: Decimals = "exact") -> pa.Table:
        """The matches that are still to come as a table, the same whenever it is called; see ``Matches.to_arrow``."""
        look = Look(terms, decimals)
        from etalis_py.kernel.tabular import arrow_table  # takes a while to import

        if self._collected is None and self._gone == _TAKEN and not self._has_ended():
            self.collect()  # the rest of a step is no step
        if self._collected is not None:
            return self._collected.to_arrow(query=query, terms=terms, decimals=decimals)
        if (query, look) not in self._tables:
            self._tables[query, look] = arrow_table(self._rest(), query, look)
        return self._tables[query, look]


_OWN = ("mapping", "time", "subject", "until", "updates", "on_late", "cores")
_KEYWORDS = RunOptions.__annotations__ | dict.fromkeys(_OWN)


def run(
    program: Given,
    stream: Stream | Iterable[Event] | Any,
    /,
    *,
    mapping: Any = None,
    time: str = "",
    subject: str | None = "",
    until: int | str | datetime | None = None,
    updates: Updates | None = None,
    on_late: Callable[[Event], None] | None = None,
    cores: int = 1,
    **options: Unpack[RunOptions],
) -> Run:
    """The matches of a program over a stream, as the instants close; ``options`` are those of ``Engine``.

    A stream is what ``read_stream`` gives, a list or iterator of events, a path, a pattern, an address (``http://``,
    ``tcp://``, ``kafka://``), a frame (a table of pyarrow, pandas or polars) of the flat form (``end``, ``s``, ``p``,
    ``o``), or, with a ``mapping`` from its columns or keys to triples, any other frame and any list or iterator of
    dicts.  A dict of paths, frames or lists of dicts by the names of their streams is merged by time; then ``mapping``
    may be a dict of mappings by the same names.  A file or frame that is not in order of time is sorted first, with a
    warning, unless late events are allowed (``lateness``, ``revise``) or it was opened with ``in_order=False``.

    Without a mapping, ``time`` and ``subject`` are the columns of a table or the keys of dicts that say when a row was
    and what it is about; every other column is a property, ``:price``.  A ``subject`` of None makes each row a node of
    its own.  What is not given of them is drafted as ``etalis map`` does, and a warning says how.

    ``until`` ends the run: microseconds since the epoch, a datetime (without a zone: UTC), or a time as the stream
    spells it, such as ``"2026-01-31T10:00:00Z"``.  Events after it are not read, and whatever depends on time alone
    (windows, absences) is reported if it falls due up to then.  A time that the stream cannot have is an error, and one
    before its first event a warning.  While a live stream (``read_stream(…, idle=1.0)``) is silent, event time follows
    the wall clock: see ``streams.PassingTime``.

    ``updates`` change the background while the stream runs: a file of JSON lines, or dicts of the same form, in order
    of time: ``{"time": 10, "add": ":a a :Firm .", "remove": …, "graph": …}``, or a table with a time, each row of which
    replaces what its subject had in these columns (``table_updates``).  An update holds from the first instant after
    its time.

    ``checkpoint`` is a folder in which the run is kept: called again with the same arguments, it goes on there.  Every
    ``checkpoint_every`` seconds (10) it is written how far the sources have been read and what the engine knows.
    Matches that were taken before the last checkpoint do not come again; those after it come at least once, with the
    same ``id``.  They come exactly once in a ``sink`` that takes part (``connectors.Sink``).  What is no file must give
    the same events again, from its beginning.

    ``cores``: that many processes read and match, on Linux, as far as the input and the program allow; a warning says
    why if they do not.  The matches and their order are the same.

    Events that come too late are counted in ``Run.late``; ``on_late`` is called with each of them.

    What is probably not intended is in ``Run.warnings``.  If nothing matches, a warning says so at the end, with these
    reasons; a condition that lets nothing through is told at once.

    An error in the input, or of an iterator, is raised after the matches of the events before it.

    >>> from etalis_py import event
    >>> [m["x"] for m in run("SELECT ?x { ?c :p ?x }", [event(":c :p 1", 1), event(":c :p 2", 2)])]
    [1, 2]
    >>> rows = [{"at": 1, "city": "Wien", "amount": 10}, {"at": 2, "city": "Graz", "amount": 5}]
    >>> [m["city"] for m in run("SELECT ?city { ?row :city ?city ; :amount 5 }", rows, time="at", subject=None)]
    ['Graz']
    """
    check_keywords("run", options, _KEYWORDS)
    if not isinstance(cores, int) or isinstance(cores, bool) or cores < 1:
        raise TypeError(f"cores is the number of cores to use, 1 or more, not {cores!r}")
    lasting, settings = _parted(options)
    compiled = program_from(program)
    ends = not isinstance(stream, Iterator)
    given = stream
    for option in ("lateness", "revise"):
        if option in settings:
            settings[option] = micros_of(option, settings[option])
    revise = bool(settings.get("revise"))
    in_order = not (revise or settings.get("lateness"))
    stream = opened(
        stream, mapping, naming_of(time, subject, mapping), revise=revise, in_order=in_order, prefixes=compiled.prefixes
    )
    changes: Iterable[TimedUpdate] = ()
    if updates is not None:
        unit = stream.unit if isinstance(stream, Stream) else "s"
        changes = updates_from(updates, unit, compiled.prefixes)
        settings.setdefault("changes", True)
        if settings.get("background") is None:
            settings["background"] = []
    if isinstance(stream, Stream):
        settings.setdefault("render", stream.render)
    if (ties := tie_order(settings.get("ties"), compiled.prefixes, stream)) is not None:
        settings["ties"] = ties
    engine = Engine(compiled, **settings)
    make: Callable[..., Driver] = Driver
    if cores > 1:
        from etalis_py.engine.cores.choosing import driver_on_cores, engine_on_cores, sharing  # takes a while to import

        shared = sharing(engine, stream, cores, given, kept=bool(lasting))
        engine = engine_on_cores(engine, shared, cores, compiled)
        make = partial(driver_on_cores, shared)
        if not shared.is_any:
            warn_caller(str(shared))
    if idle := without_use(compiled, engine.options):
        warn_caller(idle)
    if isinstance(stream, Unread):
        stream.show = engine.show_times
    for slip in compiled.can_never_match(checked=False):
        warn_caller(str(slip))
    census = UnseenNames(compiled, warn_caller, ties=engine.options.ties)
    keeper = None
    if lasting.get("checkpoint") is not None:
        reading = reading_of(mapping, time, subject)
        keeper = kept(engine, compiled, stream, lasting, {"until": str(until), **settings}, reading)
    elif lasting:
        raise TypeError(f"{', '.join(lasting)}: name the folder as well, as checkpoint='run/'")
    driver = make(engine, stream, until=until, updates=changes, census=census)
    if keeper is not None:
        driver.keep_by(keeper)
        ends = False  # showing the first matches would run ahead of whoever takes them
    elif isinstance(stream, Stream):
        ends = stream.idle is None and (ends or stream.is_file)
    return Run(compiled, driver, census, stream, on_late, keeper, ends=ends)


def _parted(options: RunOptions) -> tuple[Lasting, EngineOptions]:
    """The options of a run that lasts, and those of its engine."""
    lasting = {name: value for name, value in options.items() if name in Lasting.__annotations__}
    rest = {name: value for name, value in options.items() if name not in lasting}
    return cast("Lasting", lasting), cast("EngineOptions", rest)
