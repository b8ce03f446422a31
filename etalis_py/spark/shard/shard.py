"""One shard: the embedded engine, the events that wait for the watermark, and the rows that come out.

It knows nothing of Spark's state; both the batch and the streaming operator drive it.  Its state is the engine's and
the waiting events.  Cost per event: the engine's, and a share of one sort by time.

A withdrawal waits like an event.  If events are numbered in order of arrival, a withdrawal affects those that arrived
before it; otherwise, while the instant is open, a withdrawn occurrence is gone, whichever arrived first.  A batch is
corrected in this way as a whole.  With ``revise`` the engine takes late events and withdrawals within that horizon.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from operator import itemgetter
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from etalis_py.engine.engine import Engine
from etalis_py.events import Event, Retraction
from etalis_py.kernel.batch import Batch, Columns, as_reported
from etalis_py.kernel.matches import Match, Matches, Revised
from etalis_py.kernel.position import NEVER
from etalis_py.kernel.tabular import pieces_of_columns
from etalis_py.kernel.withdraw_triples import withdraw
from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.schema import LAST
from etalis_py.spark.output.answers import Answer, ColumnTable, MatchTable, Row, are_timed
from etalis_py.spark.plan.family_shards import order_in, own_of
from etalis_py.spark.plan.parts import ShardPart
from etalis_py.spark.plan.spec import ProgramSpec, engine_of

# An Event, or a tuple like it; if events may be withdrawn, the arrival number may follow.
Plain = (
    tuple[int, int, tuple[tuple[str, str, str], ...], str, str]
    | tuple[int, int, tuple[tuple[str, str, str], ...], str, str, int | None]
)

_by_end = itemgetter(1)
LARGE = 13_000
"""With at least so many events, moving the goals from rows to columns pays off."""

TOO_LATE = "came after its instant was over"
AFTER_THE_END = "came after the end of the stream"
NEVER_WAS = "withdraws what never was, or what may no longer be corrected"


class Shard:
    """The state of one shard between two batches."""

    def __init__(
        self,
        spec: ProgramSpec,
        part: ShardPart,
        number: int,
        *,
        journal: bool = False,
        revise: int = 0,
        corrected: bool = False,
    ) -> None:
        self.part = part
        self.number = number
        self.name = spec.name
        self.engine = self._engine(spec, journal=journal, revise=revise)
        self.waiting: list[Plain] = []
        self.withdrawals: list[Plain] = []
        self.revise = revise
        self._corrected = corrected or bool(revise)
        self._reports = frozenset(part.reports)
        self._feeds = frozenset(part.feeds)
        self._keys = dict(part.keys)
        self._once = frozenset(part.once)
        # Families have many outputs, which are only made if the order of matches is asked for.
        outputs = self.engine.outputs if part.order or not part.divided else ()
        self._streams = {output.query: output.stream for output in outputs}
        self._ranks = {query: (number, rank) for number, (query, rank) in enumerate(order_in(spec, part))}
        self._arranged = frozenset(output.query for output in outputs if output.order)
        if self.engine.has_windows and (part.shards == 1 or part.begins):
            # Evaluations of a windowed query follow one another, and each has an order of its own.
            self._arranged = frozenset(part.reports)
        self._first = frozenset(output.query for output in outputs if output.source is None)
        self._told_so_far = 0
        self.until: int | None = None  # a slice of time ends here
        self.room = LAST  # more events than this are taken without a journal: they are ``unjournaled``
        self.unjournaled = False

    def _engine(self, spec: ProgramSpec, *, journal: bool, revise: int) -> Engine:
        """The engine for the queries of the part."""
        part = self.part
        own = own_of(part, self.number)
        share = self.number, part.shards
        return engine_of(spec, part.queries, live=part.live, share=share, journal=journal, revise=revise, own=own)

    @staticmethod
    def newest_of(events: Sequence[Plain]) -> int:
        """The latest end among events."""
        return max(map(_by_end, events), default=NEVER)

    def next_due(self) -> int | None:
        """The first time after which the shard has something to do."""
        times = [event[1] for event in (*self.waiting, *self.withdrawals)]
        if self._time_passes and (due := self.engine.next_due()) is not None:
            times.append(due)
        return min(times, default=None)

    @property
    def _time_passes(self) -> bool:
        """Whether time may advance: windows have to wait for the first event, which registers them."""
        return not self.engine.has_windows or self.engine.closed_at != NEVER

    # --- events ---

    def push(self, events: Sequence[Plain]) -> list[Answer]:
        """Take events in order of their ends."""
        if events and self.engine.goals_in_columns:
            return self.take(Batch(events, events[-1][1]).columns)  # type: ignore[arg-type]
        if len(events) <= self.room:
            return self._rows(self.engine.take_plain(self._items(events)))
        self.unjournaled = True
        with self.engine.without_journal():
            return self._rows(self.engine.take_plain(self._items(events)))

    def take(self, columns: Columns) -> list[Answer]:
        """Take columns in order of their ends, for an engine that reads columns."""
        return self._rows(self.engine.push_all(columns))

    def reads_at_once(self, size: int) -> bool:
        """Whether this many events should be taken in columns although a journal is wanted.

        If goals are the only state, columns write the journal: a large batch starts them, and later ones stay with
        them.  Otherwise a snapshot follows; its cost is proportional to the number of goals, and handing them back to
        the rows costs the same again.  That pays if the journal would be as long as the snapshot: most events are in it
        twice, when they become a goal and when the goal is used up.
        """
        if self.revise or self.withdrawals or self.engine.finished:
            return False
        if self.engine.reads_columns:
            return size >= LARGE or (size > 0 and self.engine.goals_in_columns)
        if 2 * size <= self.room:
            return False
        with self.engine.without_journal():
            return self.engine.reads_columns

    def take_at_once(self, columns: Columns) -> list[Answer]:
        """Take columns, without a journal if columns cannot write it."""
        if self.engine.reads_columns:
            return self.take(columns)
        self.unjournaled = True
        with self.engine.without_journal():
            return self.take(columns)

    def waiting_before(self, over: int) -> list[Plain]:
        """Remove and return the waiting events that end before ``over``, in order."""
        waiting = sorted(self.waiting, key=_by_end)
        first = bisect_left(waiting, over, key=_by_end)
        self.waiting = waiting[first:]
        return waiting[:first]

    def _items(self, events: Sequence[Plain]) -> Sequence[Event]:
        """The items for the engine: rules take tuples as they are, windows and corrections need events."""
        if self.revise:
            return [event if isinstance(event, Retraction) else Event._make(event[:5]) for event in events]
        return list(map(Event._make, events)) if self.engine.has_windows else events  # type: ignore[return-value]

    def wait(self, events: Sequence[Plain], over: int = NEVER) -> list[Row]:
        """Keep events until their instant is over; those that end before ``over`` are returned as dead letters.

        This holds even if this shard has not closed the instant yet: another one has, and together they would give only
        some of the matches.
        """
        if self.engine.finished:
            return [self._dead(event, AFTER_THE_END) for event in events]
        over = self._oldest(over)
        late = [event for event in events if event[1] < over]
        self.waiting += [event for event in events if event[1] >= over] if late else events
        self.engine.counters.late += len(late)
        return [self._dead(event, TOO_LATE) for event in late]

    def withdraw(self, events: Sequence[Plain], over: int = NEVER) -> list[Row]:
        """Withdraw occurrences, as soon as all events with the same end are there."""
        if not events:
            return []
        if self.part.fixed:
            raise SparkError(
                f"the events withdraw something, and {', '.join(self.part.queries)} has EVENT, whose events are sent "
                "by what they state: give matches(…, revise=…), which keeps them together in one shard"
            )
        if not self._corrected:
            triples = " . ".join(" ".join(triple) for triple in events[0][2])
            raise SparkError(
                f"the stream withdraws {triples}, which takes a horizon in which that is possible: matches(…, revise=…)"
            )
        if self.engine.finished:
            return [self._dead(_retraction(event), AFTER_THE_END) for event in events]
        over = self._oldest(over)
        late = [event for event in events if event[1] < over]
        self.withdrawals += [event for event in events if event[1] >= over]
        self.engine.counters.late += len(late)
        return [self._dead(_retraction(event), NEVER_WAS) for event in late]

    def _oldest(self, over: int) -> int:
        """The time before which events can no longer be corrected, in any shard."""
        return over if over == NEVER else over - self.revise

    @property
    def newest_waiting(self) -> int:
        """The latest end of what waits."""
        return max((event[1] for event in (*self.waiting, *self.withdrawals)), default=NEVER)

    def close_before(self, over: int) -> list[Answer]:
        """Every instant before ``over`` is over."""
        if self.engine.finished or over == NEVER:
            return []
        rows = [*self._take(self.waiting_before(over), over), *self.settle()]
        if over - 1 > self.engine.closed_at and self._time_passes:
            rows += self._rows(self.engine.advance(over - 1))
        return rows

    def _take(self, ready: list[Plain], over: int) -> list[Answer]:
        """Take the waiting events that end before ``over``, in order, without those that are withdrawn."""
        gone = list(dict.fromkeys(event for event in self.withdrawals if event[1] < over))
        if not gone:
            return self.push([event[:5] for event in ready] if self._corrected else ready) if ready else []
        self.withdrawals = [event for event in self.withdrawals if event[1] >= over]
        closed = self.engine.closed_at
        first = bisect_left(ready, closed + 1, key=_by_end)
        # Arrivals for instants that are over are corrections; the engine itself puts them in order.
        coming = [
            *((_came(event, False), Event._make(event[:5])) for event in ready[:first]),
            *((_came(event, True), _retraction(event)) for event in gone if event[1] <= closed),
        ]
        coming.sort(key=itemgetter(0))
        rows: list[Answer] = []
        events, missing = _without(ready[first:], [event for event in gone if event[1] > closed])
        for retraction in missing:
            rows.append(self._dead(retraction, NEVER_WAS))
            self.engine.counters.late += 1
        left: list[Plain] = [*(item for _, item in coming), *events]
        return rows + (self.push(left) if left else [])

    def finish(self) -> list[Answer]:
        """The stream has ended."""
        if self.engine.finished:
            return []
        ready, self.waiting = sorted(self.waiting, key=_by_end), []
        rows = [*self._take(ready, LAST), *self.settle(ended=True)]
        return rows + self._rows(self.engine.close(until=self.until), ended=True)

    def settle(self, *, ended: bool = False) -> list[Answer]:
        """Finish the work on the events taken so far, before time moves beyond them."""
        return []

    # --- rows ---

    def _rows(self, matches: Matches, *, ended: bool = False) -> list[Answer]:
        rows: list[Answer] = [*self._column_tables(matches)]
        if not rows:
            rows = list(self._placed(matches, ended) if self._ranks else self._tables(matches))
        if self.engine.dead_letters:
            rows += [
                self._dead(event, NEVER_WAS if isinstance(event, Retraction) else TOO_LATE)
                for event in self.engine.dead_letters
            ]
            self.engine.dead_letters.clear()
        return rows

    def _column_tables(self, matches: Matches) -> Iterator[ColumnTable]:
        """The matches of one SELECT that the engine reported in columns; nothing for any others."""
        for results, instants in pieces_of_columns(matches):
            if not self._reports_on(results.query):
                return
            if (key := self._keys.get(results.query)) is not None:
                keys = results.terms[results.variables.index(key)].cast(pa.string()).dictionary_encode()
                has = pa.array([self._has(term) for term in keys.dictionary.to_pylist()], pa.bool_())
                own = has.take(keys.indices)
                if own.false_count:
                    results, instants = results.filter(own), instants[np.asarray(own)]
            yield ColumnTable(self.name, self.number, results, self._places(results.query, instants))

    def _places(self, query: str, instants: np.ndarray[Any, Any]) -> pa.StringArray | None:
        """The places, as in ``_placed``, of matches that became known in these instants; None if not asked for."""
        if not self._ranks:
            return None
        first, size = self._told_so_far + 1, len(instants)
        self._told_so_far += size
        numbers = pa.array(range(first, first + size), pa.int64()).cast(pa.string())
        known = pa.array(instants, pa.int64()).cast(pa.string())
        rank = f",{self._ranks[query][1]},0,"
        return pc.binary_join_element_wise("[", known, rank, numbers, "]", "")

    def _tables(self, matches: Matches) -> Iterator[Answer]:
        """Matches of a SELECT stay together, unless they are reported once or fed to a later level."""
        for shape, rows, ordinals in matches.tables():
            query = shape.query
            whole = shape.output.form == "select" and self._reports_on(query) and are_timed(rows)
            if not whole:
                some = (Match(shape, row, n) for row, n in zip(rows, ordinals, strict=True))
                yield from self._reported((m.taken_back() for m in some) if shape.retracted else some)
                continue
            key = self._keys.get(query) if self._keys else None
            if key is not None:
                place = shape.places[shape.variables.index(key)]
                own = [self._has(row[place]) for row in rows]
                if not all(own):
                    rows, ordinals = list(compress(rows, own)), list(compress(ordinals, own))
            yield MatchTable(self.name, self.number, shape, rows, ordinals)

    def _reported(self, matches: Iterable[Match]) -> Iterator[Row]:
        for match in matches:
            query = match.query
            if match.is_timeless:
                if query in self._once and self.number != 0:
                    continue
            elif self._keys and not self._is_own(query, match):
                continue
            triples = match.triples
            if query in self._feeds and triples and not match.is_timeless:
                yield self._derived(match, triples)
            if self._reports_on(query):
                # The triples of a rule do not show its place in the order; the bindings that they are made from do.
                unbound = match.boolean is not None or (triples is not None and not self._ranks)
                bindings = None if unbound else match.bindings
                yield (
                    "match",
                    self.name,
                    query,
                    match.id,
                    bindings,
                    triples,
                    match.boolean,
                    match.start_us,
                    match.end_us,
                    None,
                    match.retracted,
                    self.number,
                    None,
                )

    def _placed(self, matches: Matches, ended: bool) -> Iterator[Row]:
        """The rows, each match with its place in the order of the embedded engine: four numbers, as a JSON list.

        The instant in which it became known; the rank of its query in an instant; its number, if the query has an order
        of its own (else 0: then its end, its start and its terms decide); its number.
        """
        for known, some in by_instant(matches):
            for row in self._reported(some):
                if row[0] == "match":
                    query, self._told_so_far = row[2], self._told_so_far + 1
                    (number, rank), instant = self._ranks[query], known if known is not None else row[8]
                    if row[8] is None and (ended or query in self._first):  # timeless: before or after everything else
                        instant, rank = (NEVER if query in self._first else LAST), number
                    own = self._told_so_far if query in self._arranged else 0
                    row = (*row[:-1], f"[{instant},{rank},{own},{self._told_so_far}]")
                yield row

    def _reports_on(self, query: str) -> bool:
        """Whether matches of a query are reported.  If queries are divided, all are."""
        return self.part.divided or query in self._reports

    def _is_own(self, query: str, match: Match) -> bool:
        """Whether a match belongs to this shard, by its key: a triple may also have come here for another leaf."""
        return self._has(match.bindings[self._keys[query]])

    def _has(self, term: str) -> bool:
        return crc32(term.encode()) % self.part.shards == self.number

    def _derived(self, match: Match, triples: tuple[tuple[str, str, str], ...]) -> Row:
        query, gone = match.query, match.retracted
        stream, start, end = self._streams[query], match.start_us, match.end_us
        name = match.id if self.revise else None  # a triple that was derived twice stands until both are taken back
        return ("event", self.name, query, name, None, triples, None, start, end, stream, gone, self.number, None)

    def _dead(self, event: Plain | Event, reason: str) -> Row:
        gone = isinstance(event, Retraction)
        start, end, triples, stream = (event.withdrawn() if isinstance(event, Retraction) else event)[:4]
        return (
            "dead_letter", self.name, None, None, None, triples, None, start, end, stream, gone, self.number, reason,
        )  # fmt: skip

    def metric(self, **more: int | str) -> Row:
        """The row of metrics for the shard after a batch."""
        counters = self.engine.counters
        kept = counters.kept()
        numbers = {
            "part": self.part.number,
            "events": counters.events,
            "late": counters.late,
            "matches": counters.matches,
            "goals": kept.goals,
            "waiting": len(self.waiting),
            **({"items": kept.items} if self.engine.has_windows else {}),
            **({"inconsistent": counters.inconsistent, "ignored": counters.ignored} if self.part.live else {}),
            **({"corrections": counters.corrections, "replayed": counters.replayed} if self.revise else {}),
            **more,
        }
        detail = msgspec.json.encode(numbers).decode()
        return ("metric", self.name, None, None, None, None, None, None, None, None, None, self.number, detail)


def _retraction(event: Plain) -> Retraction:
    return Retraction._make(event[:5])


def _came(event: Plain, withdraws: bool) -> tuple[int, int]:
    """A sort key by arrival: unnumbered events come before all others, unnumbered withdrawals after them."""
    number = event[5] if len(event) > 5 else None
    if number is not None:
        return 1, 2 * number + withdraws
    return (2, 0) if withdraws else (0, 0)


def _without(events: Sequence[Plain], gone: Iterable[Plain]) -> tuple[list[Event], list[Retraction]]:
    """Apply withdrawals to waiting events.

    Returns the events that remain, and the withdrawals that matched nothing.  A withdrawal only reaches events that
    arrived before it.
    """
    left = [Event._make(event[:5]) for event in events]
    places: defaultdict[Any, list[int]] = defaultdict(list)
    for i, event in enumerate(events):
        places[event[0], event[1], event[3]].append(i)
    never: list[Retraction] = []
    for withdrawal in sorted(gone, key=lambda event: _came(event, True)):
        came, retraction = _came(withdrawal, True), _retraction(withdrawal)
        before = [i for i in places[withdrawal[0], withdrawal[1], withdrawal[3]] if _came(events[i], False) < came]
        some = [left[i] for i in before]
        if missing := withdraw(some, retraction):
            never.append(retraction._replace(triples=missing))
        for i, event in zip(before, some, strict=True):
            left[i] = event
    return [event for event in left if event.triples], never


def by_instant(matches: Matches) -> Iterator[tuple[int | None, Iterable[Match]]]:
    """The matches of each instant; those of a correction come together, without an instant."""
    if isinstance(matches, Revised):
        yield None, matches
        return
    for report in as_reported(matches.reports, one_by_one=True):
        yield report[1], Matches(matches.shapes, [report])
