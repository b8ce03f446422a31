"""One shard at work: the embedded engine, the events that wait for the watermark, and the rows that come out.

It knows nothing of Spark's state; both the batch and the streaming operator drive it.  Its state is the
engine's and the waiting events.  Cost per event: the engine's, and its part of one sort by time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from operator import itemgetter
from zlib import crc32

import msgspec

from etalis_py.engine.engine import NEVER, Engine
from etalis_py.engine.matches import Match, Matches
from etalis_py.events import Event
from etalis_py.spark.answers import Row, Table, are_timed
from etalis_py.spark.parts import Part
from etalis_py.spark.schema import LAST
from etalis_py.spark.spec import ProgramSpec, engine_of

Plain = tuple[int, int, tuple[tuple[str, str, str], ...], str, str]  # an Event, or a tuple like it

_by_end = itemgetter(1)


TOO_LATE = "came after its instant was over"
AFTER_THE_END = "came after the end of the stream"


class Shard:
    """The state of one shard between two batches."""

    def __init__(self, spec: ProgramSpec, part: Part, number: int, *, journal: bool = False) -> None:
        self.part = part
        self.number = number
        self.name = spec.name
        self.engine = self._engine_of(spec, part, journal)
        self.waiting: list[Plain] = []
        self._reports = frozenset(part.reports)
        self._feeds = frozenset(part.feeds)
        self._keys = dict(part.keys)
        self._once = frozenset(part.once)
        self._streams = {output.query: output.stream for output in self.engine.outputs}
        self._ranks = {query: (number, rank) for number, (query, rank) in enumerate(part.order)}
        self._arranged = frozenset(output.query for output in self.engine.outputs if output.order)
        self._first = frozenset(output.query for output in self.engine.outputs if output.source is None)
        self._told_so_far = 0
        self.room = LAST  # of more events than this no journal is kept: they are ``untold``
        self.untold = False

    def _engine_of(self, spec: ProgramSpec, part: Part, journal: bool) -> Engine:
        return engine_of(spec, part.queries, journal=journal)

    def next_due(self) -> int | None:
        """The first time that, once it is over, gives the shard something to do."""
        return min((event[1] for event in self.waiting), default=None)

    # --- events ---

    def push(self, events: Sequence[Plain]) -> list[Row | Table]:
        """Events in order of their ends."""
        if len(events) <= self.room:
            return self._rows(self.engine.push_all(events))  # type: ignore[arg-type]
        self.untold = True
        with self.engine.without_journal():
            return self._rows(self.engine.push_all(events))  # type: ignore[arg-type]

    def wait(self, events: Sequence[Plain], over: int = NEVER) -> list[Row]:
        """Keep events until their instant is over; those that end before ``over`` are given back as dead letters.

        That is so even where this shard has not closed the instant yet: another one has, and together they would find
        some of the matches only.
        """
        if self.engine.finished:
            return [self._dead(event, AFTER_THE_END) for event in events]
        late = [event for event in events if event[1] < over]
        self.waiting += [event for event in events if event[1] >= over] if late else events
        self.engine.counters.late += len(late)
        return [self._dead(event, TOO_LATE) for event in late]

    def close_before(self, over: int) -> list[Row | Table]:
        """Every instant before ``over`` is over."""
        if self.engine.finished or over == NEVER:
            return []
        waiting = sorted(self.waiting, key=_by_end)
        first = bisect_left(waiting, over, key=_by_end)
        ready, self.waiting = waiting[:first], waiting[first:]
        rows = self.push(ready) if ready else []
        if over - 1 > self.engine.closed_at:
            rows += self._rows(self.engine.advance(over - 1))
        return rows

    def finish(self) -> list[Row | Table]:
        """The stream has ended."""
        if self.engine.finished:
            return []
        ready, self.waiting = sorted(self.waiting, key=_by_end), []
        rows = self.push(ready) if ready else []
        return rows + self._rows(self.engine.close(), ended=True)

    # --- rows ---

    def _rows(self, matches: Matches, *, ended: bool = False) -> list[Row | Table]:
        rows: list[Row | Table] = list(self._placed(matches, ended) if self._ranks else self._tables(matches))
        if self.engine.dead_letters:
            rows += [self._dead(event, TOO_LATE) for event in self.engine.dead_letters]
            self.engine.dead_letters.clear()
        return rows

    def _tables(self, matches: Matches) -> Iterator[Row | Table]:
        """The matches of a SELECT stay together; what is told once, or fed to a later level, does not."""
        for shape, rows, ordinals in matches.tables():
            query = shape.query
            whole = shape.output.form == "select" and query in self._reports and are_timed(rows)
            if not whole:
                yield from self._told(Match(shape, row, n) for row, n in zip(rows, ordinals, strict=True))
                continue
            key = self._keys.get(query) if self._keys else None
            if key is not None:
                place = shape.places[shape.variables.index(key)]
                mine = [self._has(row[place]) for row in rows]
                if not all(mine):
                    rows, ordinals = list(compress(rows, mine)), list(compress(ordinals, mine))
            yield Table(self.name, self.number, shape, rows, ordinals)

    def _told(self, matches: Iterable[Match]) -> Iterator[Row]:
        for match in matches:
            query = match.query
            if match.is_timeless:
                if query in self._once and self.number != 0:
                    continue
            elif self._keys and not self._is_mine(query, match):
                continue
            triples = match.triples
            if query in self._feeds and triples and not match.is_timeless:
                yield self._derived(match, triples)
            if query in self._reports:
                # What a rule constructs does not tell where it stands in the order; what it is made from does.
                untold = match.boolean is not None or (triples is not None and not self._ranks)
                bindings = None if untold else match.bindings
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
                    self.number,
                    None,
                )

    def _placed(self, matches: Matches, ended: bool) -> Iterator[Row]:
        """The rows, each match with its place in the order of the embedded engine: four numbers, as a JSON list.

        The instant in which it was known; the rank of its query in an instant; its number, where the query has an order
        of its own (else 0: then come its end, its start and its terms); its number.
        """
        for report in matches.reports:
            for row in self._told(Matches(matches.shapes, [report])):
                if row[0] == "match":
                    query, self._told_so_far = row[2], self._told_so_far + 1
                    (number, rank), instant = self._ranks[query], report[1]
                    if row[8] is None and (ended or query in self._first):  # timeless: before all, or after all
                        instant, rank = (NEVER if query in self._first else LAST), number
                    own = self._told_so_far if query in self._arranged else 0
                    row = (*row[:-1], f"[{instant},{rank},{own},{self._told_so_far}]")
                yield row

    def _is_mine(self, query: str, match: Match) -> bool:
        """A triple may have come to this shard for another leaf; the key tells whose match it is."""
        return self._has(match.bindings[self._keys[query]])

    def _has(self, term: str) -> bool:
        return crc32(term.encode()) % self.part.shards == self.number

    def _derived(self, match: Match, triples: tuple[tuple[str, str, str], ...]) -> Row:
        stream = self._streams[match.query]
        start, end = match.start_us, match.end_us
        return ("event", self.name, match.query, None, None, triples, None, start, end, stream, self.number, None)

    def _dead(self, event: Plain | Event, reason: str) -> Row:
        start, end, triples, stream, _ = event
        return ("dead_letter", self.name, None, None, None, triples, None, start, end, stream, self.number, reason)

    def metric(self, **more: int) -> Row:
        """What there is to say about the shard after a batch."""
        counters = self.engine.count()
        numbers = {
            "part": self.part.number,
            "events": counters.events,
            "late": counters.late,
            "matches": counters.matches,
            "goals": counters.goals,
            "waiting": len(self.waiting),
            **more,
        }
        detail = msgspec.json.encode(numbers).decode()
        return ("metric", self.name, None, None, None, None, None, None, None, None, self.number, detail)
