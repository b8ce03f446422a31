"""Queries that are added, changed and removed while a job on Spark runs.

They come as rows of a DataFrame: ``name``, ``text`` (null: the query is gone) and ``end``, the time from which that
holds.  Each query is in one shard, chosen by its name, which sees all events; so a query begins and ends at the same
position in the stream wherever it runs, and adding one touches no other shard.  A row travels and waits like an event,
and is applied before the first event that ends at its time or later.  A text that differs from others only in constants
is one more row of a family in the engine of its shard.

None of them affects the matches of another, so a CONSTRUCT is refused, as on a server: only the queries of its own
shard would read its triples.  A text that is refused, or does not compile, becomes a dead letter.

State: the engine's, and the texts.  A journal consists of the engine's journals with the changes between them.
"""

from __future__ import annotations

import msgspec
from etalis_compiler.ast.query_kinds import reads_whole_events
from etalis_compiler.diagnostics import QueryError, Source
from etalis_compiler.reach import endless
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from etalis_py.engine.program import Program, compile, family_of
from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.columns import time_of
from etalis_py.spark.input.schema import CHANGE, STANDING
from etalis_py.spark.output.answers import Row
from etalis_py.spark.plan.parts import RoutedPart, ShardPart
from etalis_py.spark.plan.slots import slots_of
from etalis_py.spark.plan.spec import ProgramSpec, changing_knowledge
from etalis_py.spark.shard.shard import Plain
from etalis_py.spark.shard.updates_in_shard import BEGINNING, ChangingEngine, ChangingShard

NAME = "queries"
"""The name of the program that the standing queries form."""
QUERY_NAMES = ("name", "text", "end")
"""The names of the columns of queries."""


class StandingEngine(ChangingEngine):
    """An engine whose snapshots and journals know which queries it has."""

    def __init__(self, spec: ProgramSpec, *, journal: bool) -> None:
        self.texts: dict[str, str] = {}
        background = changing_knowledge(spec)
        super().__init__(
            None,
            policy=spec.policy,
            background=background,
            journal=journal,
            changes=spec.updates,
            limits=spec.engine_limits,
        )

    @property
    def reads_columns(self) -> bool:
        """False: changes of queries come among the events, so events cannot be taken as columns."""
        return False

    def _change(self, *change: str) -> None:
        """Give the query of this name this text (empty: remove it), or change the background."""
        if len(change) > 2:
            super()._change(*change)
            return
        name, text = change
        if not name:
            raise ValueError(f"this row of the queries has no name: {text!r}")
        if not text:
            if name not in self.texts:
                raise ValueError(f"there is no query named {name} to be removed")
            self.remove(name)
            del self.texts[name]
            return
        source = Source(text.rstrip(), f"{name}.rq", named=True)
        program = source if self.knows(source) else self._checked(source, name)
        if name in self.texts:
            self.remove(name)
            del self.texts[name]
        self.add(program, name=name)
        self.texts[name] = text

    def _checked(self, source: Source, name: str) -> Program:
        """The program of a text of a new kind, if it is allowed as a standing query."""
        policy = self.options.policy or "unrestricted"
        program = family_of(source, policy) or compile(source, policy=policy)
        if program.windowed:
            raise ValueError(f"{name} has windows, which queries that come while the job runs may not have")
        queries = [query for document, _ in program.documents for query in document.queries]
        if any(map(reads_whole_events, queries)):
            raise ValueError(
                f"{name} has EVENT, which needs whole events: put it into the program that the job begins with"
            )
        if any(query.kind == "construct" for query in queries):
            raise ValueError(f"{name} is a CONSTRUCT: queries that come while the job runs select, ask or describe")
        if list(program.queries) != [name]:
            found = ", ".join(program.queries)
            raise ValueError(f"the text of {name} must be one query without a name, or of this name; it has {found}")
        return program

    # --- state ---

    def apply_journal(self, data: bytes, *, fitted: bool = False) -> None:
        super().apply_journal(data, fitted=True)

    def snapshot(self) -> bytes:
        return msgspec.msgpack.encode([list(self.texts.items()), super().snapshot()])

    def restore(self, data: bytes, *, fitted: bool = False) -> None:
        texts, state = msgspec.msgpack.decode(data)
        for name, text in texts:
            self._change(name, text)
        # The state may still have rules of queries that were removed.
        super().restore(state, fitted=True)


class StandingShard(ChangingShard):
    """A shard of standing queries."""

    engine: StandingEngine

    def _changing(self, spec: ProgramSpec, *, journal: bool) -> StandingEngine:
        return StandingEngine(spec, journal=journal)

    def _taken(self, change: Plain) -> list[Row]:
        ((name, predicate, text),) = change[2]
        if predicate != STANDING:
            return super()._taken(change)
        try:
            self.engine.take_change(name, text)
        except (QueryError, ValueError) as error:
            return [self._refused(change, str(error))]
        return []


def standing_part(number: int, program: int, shards: int) -> RoutedPart:
    """The part of standing queries."""
    reason = "the queries that come are divided among the shards by their names"
    part = ShardPart(number, program, shards, (), (), reason=reason, standing=True)
    return RoutedPart(part, (), everything=True, reach=endless("queries come and go"))


def changes_of(queries: DataFrame, events: DataFrame, part: ShardPart, partitions: int, revise: int) -> DataFrame:
    """The rows of queries as routed rows, each to the shard of its query."""
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
    name = F.coalesce("name", F.lit(""))
    number = F.pmod(F.crc32(name), F.lit(part.shards)).cast("int")
    time = time_of(queries, "end", "end") if "end" in kinds else F.lit(None)
    end = F.coalesce(time.cast("long"), F.lit(BEGINNING))
    nothing = F.lit(None)
    no_query = F.when(F.col("text") == "", F.lit(" "))  # an empty text is no query, and only a null removes one
    return queries.select(
        F.element_at(F.array(*map(F.lit, slots_of(part, partitions))), number + 1).alias("slot"),
        F.lit(CHANGE).alias("mark"),
        end.alias("start"),
        end.alias("end"),
        F.lit("").alias("stream"),
        name.alias("s"),
        F.lit(STANDING).alias("p"),
        F.coalesce(no_query, "text", F.lit("")).alias("o"),
        nothing.cast("string").alias("passed"),
        nothing.cast("long").alias("arrived"),
    )


__all__ = ["NAME", "QUERY_NAMES", "StandingEngine", "StandingShard", "changes_of", "standing_part"]
