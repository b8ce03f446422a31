"""Queries that come, change and go while a job on Spark runs.

They come as rows of a DataFrame: ``name``, ``text`` (null: the query is gone) and ``end``, the time from which on that
holds.  Each query is in one shard, by its name, which sees all events; so a query begins and ends at one position in
the stream wherever it runs, and adding one more touches no other shard.  A row travels and waits like an event, and is
taken before the first event that does not end before its time.  Texts that differ in constants only are one more row of
a family in the engine of their shard.

None has a part in what another one finds, so they only select, as on a server: what a CONSTRUCT derives would be read
by those of its shard alone.  A text that is refused, or does not compile, becomes a dead letter.

State: the engine's, and the texts.  A journal is made of the engine's journals with the changes between them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from etalis_compiler import ast
from etalis_compiler.diagnostics import QueryError, Source
from etalis_compiler.reach import endless
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from etalis_py.engine import Engine
from etalis_py.kernel.position import NEVER
from etalis_py.program import Program, compile, family_of
from etalis_py.spark.answers import Answer, Row
from etalis_py.spark.columns import time_of
from etalis_py.spark.errors import SparkError
from etalis_py.spark.parts import Part, RoutedPart
from etalis_py.spark.schema import EVENT, STANDING
from etalis_py.spark.shard import Plain, Shard
from etalis_py.spark.slots import slots_of
from etalis_py.spark.spec import ProgramSpec, knowledge_of

NAME = "queries"
"""The name of the program that they are."""
BEGINNING = NEVER + 1


class StandingEngine(Engine):
    """An engine whose snapshots and journals know which queries it has."""

    def __init__(self, spec: ProgramSpec, *, journal: bool) -> None:
        background = knowledge_of(spec.background, spec.live, spec.limits)
        self.texts: dict[str, str] = {}
        self._told: list[bytes | tuple[str, str]] = []
        super().__init__(None, policy=spec.policy, background=background, journal=journal)

    @property
    def reads_columns(self) -> bool:
        """Changes stand among its events."""
        return False

    def take_change(self, name: str, text: str) -> None:
        """Have this text under this name; an empty one: no longer any.  Raises ``ValueError`` for what cannot be."""
        if not text and name not in self.texts:
            raise ValueError(f"there is no query named {name} to be removed")
        journal = self.take_own() if self.options.journal else b""
        self._change(name, text)
        self._told += [journal, (name, text)] if self.options.journal else []

    def _change(self, name: str, text: str) -> None:
        if not text:
            self.remove(name)
            del self.texts[name]
            return
        source = Source(text.rstrip(), f"{name}.rq")
        program = source if self.knows(source) else self._checked(source, name)
        if name in self.texts:
            self.remove(name)
            del self.texts[name]
        self.add(program, name=name)
        self.texts[name] = text

    def _checked(self, source: Source, name: str) -> Program:
        """A text of a new kind, if it can be one of many."""
        policy = self.options.policy or "unrestricted"
        program = family_of(source, policy) or compile(source, policy=policy)
        if program.windowed:
            raise ValueError(f"{name} has windows, which queries that come while the job runs may not have")
        if any(
            isinstance(query.form, ast.Construct) for document, _ in program.documents for query in document.queries
        ):
            raise ValueError(f"{name} is a CONSTRUCT: queries that come while the job runs select, ask or describe")
        if list(program.queries) != [name]:
            found = ", ".join(program.queries)
            raise ValueError(f"the text of {name} must be one query without a name, or of this name; it has {found}")
        return program

    # --- state ---

    def take_own(self) -> bytes:
        """The journal since the last change."""
        return super().take_journal()

    def take_journal(self) -> bytes:
        told, self._told = [*self._told, super().take_journal()], []
        return msgspec.msgpack.encode(told)

    def forget_journal(self) -> None:
        self._told.clear()
        super().forget_journal()

    @property
    def journal_entries(self) -> int:
        return super().journal_entries + sum(len(entry) for entry in self._told) // 40

    def apply_journal(self, data: bytes, *, fitted: bool = False) -> None:
        for entry in msgspec.msgpack.decode(data):
            if isinstance(entry, bytes):
                super().apply_journal(entry, fitted=True)
            else:
                self._change(*entry)

    def snapshot(self) -> bytes:
        return msgspec.msgpack.encode([list(self.texts.items()), super().snapshot()])

    def restore(self, data: bytes, *, fitted: bool = False) -> None:
        texts, state = msgspec.msgpack.decode(data)
        for name, text in texts:
            self._change(name, text)
        # Rules of queries that are gone may have been there still.
        super().restore(state, fitted=True)


class StandingShard(Shard):
    """A shard of such queries."""

    engine: StandingEngine

    def _engine(self, spec: ProgramSpec, *, journal: bool, revise: int) -> Engine:
        self._held: list[Plain] = []  # changes after the last event so far
        return StandingEngine(spec, journal=journal)

    @staticmethod
    def newest_of(events: Sequence[Plain]) -> int:
        return Shard.newest_of([event for event in events if not is_change(event)])

    def wait(self, events: Sequence[Plain], over: int = NEVER) -> list[Row]:
        """A change whose time is over holds from now on."""
        changes = [event for event in events if is_change(event)]
        if changes and not self.engine.finished:
            ends = [max(end, over) for _, end, *_ in changes]
            self.waiting += [(end, end, *change[2:]) for end, change in zip(ends, changes, strict=True)]
            events = [event for event in events if not is_change(event)]
        return super().wait(events, over)

    def push(self, events: Sequence[Plain]) -> list[Answer]:
        changed = any(map(is_change, events))
        if not (changed or self._held):
            return super().push(events)
        if changed:
            events = sorted(events, key=_change_first)
        rows: list[Answer] = []
        first = 0
        for place, event in enumerate(events):
            if not is_change(event):
                rows += self._apply_held()
                continue
            rows += super().push(events[first:place]) if first < place else []
            self._held.append(event)
            first = place + 1
        return rows + (super().push(events[first:]) if first < len(events) else [])

    def close_before(self, over: int) -> list[Answer]:
        rows = super().close_before(over)
        return rows + self._apply_held()

    def _apply_held(self) -> list[Answer]:
        """The changes before the next event: the instants before their time are over."""
        rows: list[Answer] = []
        for _, end, ((name, _, text),), *_ in self._held:
            if end - 1 > self.engine.closed_at and end > BEGINNING:
                rows += self._rows(self.engine.advance(end - 1))
            try:
                self.engine.take_change(name, text)
            except (QueryError, ValueError) as error:
                rows.append(self._refused(name, end, str(error)))
        self._held.clear()
        return rows

    def _refused(self, name: str, end: int, why: str) -> Row:
        known = None if end == BEGINNING else end
        return ("dead_letter", self.name, name, None, None, None, None, known, known, None, False, self.number, why)


def is_change(event: Plain) -> bool:
    """Is it no event, but a query that comes or goes?"""
    return event[2][0][1] == STANDING


def _change_first(event: Plain) -> tuple[int, bool, bool]:
    """Changes come before the events of their time, and what is removed before what comes."""
    return event[1], not is_change(event), is_change(event) and bool(event[2][0][2])


def standing_part(number: int, program: int, shards: int) -> RoutedPart:
    """The part of such queries."""
    reason = "the queries that come are divided among the shards by their names"
    part = Part(number, program, shards, (), (), reason=reason, standing=True)
    return RoutedPart(part, (), everything=True, reach=endless("queries come and go"))


def changes_of(queries: DataFrame, events: DataFrame, part: Part, partitions: int, revise: int) -> DataFrame:
    """The rows of queries as routed rows, each for the shard of its query."""
    kinds = dict(queries.dtypes)
    if kinds.get("name") != "string" or kinds.get("text") != "string":
        raise SparkError(
            f"the queries have the columns {', '.join(f'{n} {kind}' for n, kind in kinds.items())}; wanted is: name "
            "string, text string, and where they hold from a time on: end"
        )
    if queries.isStreaming != events.isStreaming:
        raise SparkError("the events and the queries must both be streams, or neither: read them in the same way")
    if revise:
        raise SparkError("queries that come while the job runs cannot be corrected: leave out revise, or the queries")
    number = F.pmod(F.crc32(F.col("name")), F.lit(part.shards)).cast("int")
    time = time_of(queries, "end", "end") if "end" in kinds else F.lit(None)
    end = F.coalesce(time.cast("long"), F.lit(BEGINNING))
    nothing = F.lit(None)
    return queries.where(F.col("name").isNotNull()).select(
        F.element_at(F.array(*map(F.lit, slots_of(part, partitions))), number + 1).alias("slot"),
        F.lit(EVENT).alias("mark"),
        end.alias("start"),
        end.alias("end"),
        F.lit("").alias("stream"),
        F.col("name").alias("s"),
        F.lit(STANDING).alias("p"),
        F.coalesce("text", F.lit("")).alias("o"),
        nothing.cast("string").alias("passed"),
        nothing.cast("long").alias("arrived"),
    )


__all__ = ["NAME", "StandingEngine", "StandingShard", "changes_of", "standing_part"]
