"""``matches``: one plan for batch and for streaming DataFrames."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from etalis_py.engine.engine import Engine
from etalis_py.engine.program import Program, compile, program_of
from etalis_py.engine.query_families import GatheredQueries
from etalis_py.engine.rule_plans import knowledge_of
from etalis_py.engine.unseen_names import UnseenNames, asking_for_several
from etalis_py.knowledge import Knowledge
from etalis_py.spark.errors import SparkError, check_frame
from etalis_py.spark.input.catalyst_filters import (
    ends,
    flat_events,
    hand_on,
    route,
    row_kinds,
    shards_of,
    wanted_by,
    with_plain_names,
)
from etalis_py.spark.input.local_files import local_files
from etalis_py.spark.input.local_scans import local_answers
from etalis_py.spark.input.packed_rows import PACKED, packer
from etalis_py.spark.input.query_changes import NAME, QUERY_NAMES, changes_of, standing_part
from etalis_py.spark.input.schema import CHANGE, GIVEN, READING, RETRACT
from etalis_py.spark.input.shards_that_scan import answers_of, apart_of, prunes
from etalis_py.spark.input.update_rows import NAMES as UPDATE_NAMES
from etalis_py.spark.input.update_rows import check_updates, updates_for
from etalis_py.spark.input.watermarks import lateness_of, micros, nodes_above, operators_before, with_watermark
from etalis_py.spark.output.typed import typed_matches, unknown_variables
from etalis_py.spark.output.wire import wire_of, without_metrics
from etalis_py.spark.plan.asp_routing import offers_of
from etalis_py.spark.plan.checkpoint_match import JobIdentity, identity_of
from etalis_py.spark.plan.cut_points import AskedOfSpark, Measure, cut
from etalis_py.spark.plan.family_shards import with_families
from etalis_py.spark.plan.hot_keys_batch import telling_of
from etalis_py.spark.plan.hot_keys_stream import SkewWatch, measured, watch_of
from etalis_py.spark.plan.local_cuts import LookedUp
from etalis_py.spark.plan.options import Matching, MatchOptions
from etalis_py.spark.plan.parts import RoutedPart, parts_of
from etalis_py.spark.plan.replan_after_update import prepared
from etalis_py.spark.plan.slots import by_slot, check_shards
from etalis_py.spark.plan.spec import ProgramSpec, pack, spec_of, with_updates
from etalis_py.spark.plan.spec import compiled as compiled_spec
from etalis_py.spark.plan.windows import WindowOptions, check_window_options, plan_windows
from etalis_py.spark.session_kinds import cores_of, engines_of, is_connect
from etalis_py.spark.sessions import PARTITIONS, PROVIDER, ROCKSDB, SHARDS, use_this_python
from etalis_py.spark.shard.batch import batch_operator
from etalis_py.spark.shard.ship_background import Shipped, arrived, ship
from etalis_py.spark.versions import CONNECT_STREAMS
from etalis_py.values.keywords import check_keywords
from etalis_py.values.limits import LIMITS, Limits

One = Program | str | Path
Programs = One | Mapping[str, One]


_OF_SPARK = 200
"""The number of shuffle partitions that Spark has where nobody chose one."""


class Planned(NamedTuple):
    """The matches, the listener that watches the keys of a stream, if any, and what a checkpoint says of the job."""

    rows: DataFrame
    watch: SkewWatch | None
    job: JobIdentity


class ShardWarning(UserWarning):
    """Some queries run in a single shard, however many shards there are."""


def matches(program: Programs, events: DataFrame, **options: Unpack[MatchOptions]) -> DataFrame:
    """The matches of a program over a DataFrame of events, batch or streaming; ``schema`` lists the columns.

    ``program``: a program, its text or its file, or several by name, which then share one stateful operator; the name
    is in the column ``program``.  ``options`` are those of ``Matching``.

    Warns when something has to run in one shard.
    """
    check_keywords("matches", options, MatchOptions.__annotations__)
    check_frame("events", events, "matches", "events_from_rows(rows, time=…, subject=…) its events")
    return planned_matches(program, events, Matching(**options), stacklevel=3).rows


def planned_matches(program: Programs, events: DataFrame, asked: Matching, *, stacklevel: int = 2) -> Planned:
    """The matches, and what a run of them has to know; ``stacklevel`` is for warnings."""
    use_this_python(events.sparkSession)
    program = compiled_programs(program, asked.policy) if program or asked.queries is None else {}
    if asked.typed and asked.queries is not None:
        raise unknown_variables()
    lateness, behind = lateness_of(events, asked.lateness), operators_before(events)
    revise = micros("revise", asked.revise)
    events = with_plain_names(events)
    reading = events.schema["stream"].metadata.get(READING, {}) if "stream" in events.columns else {}
    _tell_of_slips(program.values(), events, asked, stacklevel + 1)
    count, partitions = _divided(events, asked.shards)
    if events.isStreaming and is_connect(events.sparkSession) and not CONNECT_STREAMS:
        raise SparkError(
            "clients of Spark Connect have the stateful operator of streams since PySpark 4.1: take that, or a session "
            "without Connect, session(master=…), or a batch"
        )
    _check_observe(asked.observe)
    windows = WindowOptions(asked.report, asked.duplicates, asked.updates is not None, bool(revise))
    if without_effect := check_window_options(program.values(), windows, asked.entailment):
        warnings.warn(without_effect, stacklevel=stacklevel)
    if asked.updates is not None:
        check_frame("updates", asked.updates, "matches", table=False)
        updates = with_plain_names(asked.updates, UPDATE_NAMES)
        check_updates(updates, events, revise)
        asked = replace(asked, updates=updates)
    if asked.queries is not None:
        check_frame("queries", asked.queries, "matches", table=False)
        asked = replace(asked, queries=with_plain_names(asked.queries, QUERY_NAMES))
    specs, parts = plan(
        program, count, asked.background, asked.entailment, asked.policy, windows, asked.queries, asked.limits
    )
    if not asked.ordered:
        parts = [replace(routed, part=replace(routed.part, order=())) for routed in parts]
    have = set(events.columns)
    if any(routed.items for routed in parts) and {"s", "p", "o"} <= have and not {"triples", "event"} & have:
        _tell_of_single_triples(specs, stacklevel + 1)
    names = [spec.name for spec in specs]
    levels = sorted({routed.part.level for routed in parts})
    flat = flat_events(events, *row_kinds(parts), timed=events.isStreaming)
    files = None
    if events.isStreaming:
        by_time = False
        flat = _with_watermark(flat, parts, partitions, lateness, len(levels))
        parts = measured(parts)
    else:
        files = local_files(events)
        by_time = files is not None or prunes(flat)
        measure: Measure = partial(AskedOfSpark, flat, parts) if files is None else partial(LookedUp, files, parts)
        parts = measured(cut(parts, count, asked.slices, by_time, measure))
    for routed in parts:
        if routed.part.shards == 1 and count > 1:
            why = "" if events.isStreaming or not routed.uncut else f"; no slices of time: {routed.uncut}"
            warnings.warn(
                f"{', '.join(routed.part.reports)}: {routed.part.reason}{why}", ShardWarning, stacklevel=stacklevel
            )
    changes = None if asked.queries is None else changes_of(asked.queries, events, parts[-1].part, partitions, revise)
    job = identity_of(specs, parts, count, partitions, reading, revise)
    specs = _shipped(events.sparkSession, specs)
    watch = watch_of(events.sparkSession, parts) if events.isStreaming else None
    telling = None if events.isStreaming else telling_of(events.sparkSession, parts)
    out: DataFrame | None = None
    apart = apart_of(flat, parts, files) if by_time and asked.updates is None else []
    others = [routed for routed in parts if routed not in apart]
    for level in levels if others else ():
        here = [routed for routed in others if routed.part.level == level]
        rows = route(flat, here, partitions, ending=events.isStreaming, refusing=parts if level == levels[0] else ())
        if not events.isStreaming:
            rows = rows.union(ends(here, partitions, events))
        if changes is not None and level == levels[0]:
            rows = rows.union(changes)
        if asked.updates is not None:
            rows = rows.union(updates_for(asked.updates, here, partitions))
        if out is not None:
            rows = rows.union(hand_on(out, here, names, partitions, last=level == levels[-1]))
        slots = by_slot([routed.part for routed in here], partitions)
        wire = wire_of([routed.part for routed in here], names)
        if events.isStreaming:
            from etalis_py.spark.shard.deferred import Deferred
            from etalis_py.spark.shard.streaming import LevelTask

            run = uuid.uuid4().hex
            work = LevelTask(specs, slots, level, run, asked.metrics, job, lateness, wire.tables, revise, behind)
            begin = shards_of(here, partitions, events).groupBy("slot")
            groups = rows.mapInArrow(packer(list(slots)), PACKED).groupBy("slot")
            data, backgrounds = work.encoded()
            processor = Deferred(ship(events.sparkSession, data), backgrounds, engines_of(events.sparkSession))
            taken = groups.transformWithStateInPandas(processor, wire.stream_schema, "append", "EventTime", begin)
            taken = taken if watch is None else watch.observed(taken, here)
            out = wire.read(taken if asked.metrics else without_metrics(taken))
        else:
            order = ["slot", "end", *([F.col("mark") != RETRACT] if "retract" in flat.columns else [])]
            order += [] if changes is None and asked.updates is None else [F.col("mark") != CHANGE]
            ordered = rows.repartition(partitions, "slot").sortWithinPartitions(*order)  # type: ignore[arg-type]
            out = wire.read(ordered.mapInArrow(batch_operator(specs, slots, wire, asked.metrics, telling), wire.schema))
    if apart:
        # Rows that are no events are reported once: by the routed parts, if there are any.
        refusing = apart if out is None else ()
        if files is None:
            answers = answers_of(flat, apart, specs, asked.metrics, telling, refusing)
        else:
            answers = local_answers(events.sparkSession, files, apart, specs, asked.metrics, telling, refusing)
        out = answers if out is None else answers.union(out)
    assert out is not None, "a program has at least one query"
    if _hands_on(parts):
        out = out.where(F.col("kind") != "event")
    out = out if asked.observe is None else out.observe(asked.observe, *_observed(asked.metrics))
    return Planned(typed_matches(out, program, asked.typed) if asked.typed else out, watch, job)


def _divided(events: DataFrame, shards: int | None) -> tuple[int, int]:
    """The number of shards, and of the partitions that hold them.

    A batch has a partition for each shard, whatever the session's setting is.  A stream's operators have as many as the
    session says; Spark's own 200 are refused, unless somebody asked for them.
    """
    spark = events.sparkSession
    configured = int(spark.conf.get(PARTITIONS) or _OF_SPARK)
    cores = cores_of(spark)
    enough = configured if cores is None else 2 * cores
    if shards is None and spark.conf.get(SHARDS, None) == str(configured):
        shards = configured  # session(shards=…) said so, and nobody has changed it since
    count = shards if shards is not None else configured if events.isStreaming else min(configured, enough)
    check_shards(count)
    if not events.isStreaming:
        return count, min(configured, max(count, enough))
    if spark.conf.get(PROVIDER) != ROCKSDB:
        raise SparkError(
            f"the session keeps state with {spark.conf.get(PROVIDER)}, but Spark's stateful Python operators need "
            f'RocksDB: set spark.conf.set("{PROVIDER}", "{ROCKSDB}") before'
        )
    wanted = max(2 * (cores or 1), shards or 0)
    if configured == _OF_SPARK > 2 * wanted and cores is not None:
        raise SparkError(
            f"the session has {configured} shuffle partitions, each of which costs time in every batch, for {wanted} "
            f'that are of use: set spark.conf.set("{PARTITIONS}", "{wanted}") before, or give shards={configured}'
        )
    return count, configured


def _shipped(spark: SparkSession, specs: Iterable[ProgramSpec]) -> tuple[ProgramSpec, ...]:
    """The specifications, in which a background that several programs have is broadcast only once."""
    shipped: dict[bytes | Shipped, bytes | Shipped] = {}
    with_background = []
    for spec in specs:
        if spec.background not in shipped:
            shipped[spec.background] = ship(spark, arrived(spec.background))
        with_background.append(replace(spec, background=shipped[spec.background]))
    return tuple(with_background)


def _tell_of_slips(programs: Iterable[Program], events: DataFrame, asked: Matching, stacklevel: int) -> None:
    """Warn of predicates, streams and values that are asked for and that rows read by a mapping cannot have."""
    given = events.schema["triples"].metadata.get(GIVEN) if "triples" in events.columns else None
    if given is None or asked.updates is not None or "Union" in nodes_above(events, "MapInArrow"):
        return  # a union has the metadata of its first part
    for census in map(UnseenNames, programs):
        if census.foreseen(given):
            for text in census.foreseen(given, _knowledge(asked.background, asked.entailment, asked.limits)):
                warnings.warn(text, stacklevel=stacklevel)


def _tell_of_single_triples(specs: Iterable[ProgramSpec], stacklevel: int) -> None:
    """Warn of EVENTs that can have no solution, because each row of s, p and o is an event of its own."""
    for query in (query for spec in specs for query in asking_for_several(compiled_spec(spec))):
        warnings.warn(
            f"{query} asks in EVENT for several triples, and each row of s, p and o is an event: give the rows of one "
            "event the same number in a column event, or take the table with events_from_rows",
            stacklevel=stacklevel,
        )


def _hands_on(parts: Iterable[RoutedPart]) -> bool:
    return any(routed.part.feeds for routed in parts)


def _check_observe(given: object) -> None:
    is_name = isinstance(given, str) and given != ""
    if given is not None and not is_name and type(given).__name__ != "Observation":  # Connect has one of its own
        raise SparkError(f"observe={given!r}: give the name under which Spark shows the counts, or an Observation")


def _observed(metrics: bool) -> list[Column]:
    """The columns that Spark should aggregate while rows pass (observed metrics)."""
    counts = [
        F.count_if(F.col("kind") == "match").alias("matches"),
        F.count_if(F.col("kind") == "dead_letter").alias("late"),
    ]
    if metrics:
        for name in ("goals", "waiting", "snapshot_bytes", "journal_bytes"):
            number = F.get_json_object("detail", f"$.{name}").cast("long")
            counts.append(F.coalesce(F.sum(F.when(F.col("kind") == "metric", number)), F.lit(0)).alias(name))
    return counts


def _with_watermark(
    flat: DataFrame, parts: Sequence[RoutedPart], partitions: int, lateness: int | None, levels: int
) -> DataFrame:
    """Put the watermark on a column that the operator does not get; if it got that column, Spark would drop late rows.

    Spark moves filters before the watermark, which then only counts the wanted rows.  With several levels every level
    reads the events, and the slowest of their watermarks holds for all: so all levels get the same filter, and each
    level's own filter mentions the watermark column, which keeps it after the watermark.
    """
    flat = with_watermark(flat, lateness, levels)
    if levels == 1:
        return flat.drop("time")
    wanted = wanted_by(parts, partitions)
    return flat if wanted is None else flat.where(wanted)


def plan(
    program: Programs,
    shards: int,
    background: Any,
    entailment: str,
    policy: str | None,
    options: WindowOptions = WindowOptions(),  # noqa: B008 - frozen
    queries: DataFrame | None = None,
    limits: Limits = LIMITS,
) -> tuple[tuple[ProgramSpec, ...], list[RoutedPart]]:
    """The specifications that travel to the executors, and the parts with their routing."""
    if options.updates and background is None:
        background = ()
    specs: list[ProgramSpec] = []
    parts: list[RoutedPart] = []
    there = {} if queries is not None and not program else compiled_programs(program, policy)
    for name, compiled in there.items():
        knowledge = _knowledge(background, entailment, limits)
        if compiled.windowed:
            more, further = plan_windows(
                compiled,
                name,
                knowledge,
                policy or compiled.policy,
                options,
                number=len(specs),
                first=len(parts),
                shards=shards,
                limits=limits,
            )
            specs += more
            parts += further
            continue
        compilation = compiled.compilation
        if isinstance(compilation, GatheredQueries):
            divided = None if knowledge is not None else with_families(compiled, name, len(specs), len(parts), shards)
            if divided is not None:
                specs.append(divided[0])
                parts += divided[1]
                continue
            compiled = program_of(compiled.documents, policy=compiled.policy)
        engine = Engine(compiled, background=knowledge, changes=options.updates, limits=limits)
        # The conclusions from the background alone are now in the engine's knowledge, and travel with it.
        spec = spec_of(compiled, name, engine.knowledge)
        specs.append(with_updates(spec, engine, shards) if options.updates else spec)
        offers = offers_of(engine.knowledge)
        parts += parts_of(engine.rules, len(specs) - 1, len(parts), shards, offers, corrected=options.corrected)
    if queries is not None:
        if NAME in there:
            raise SparkError(f"a program is named {NAME}, as those that come while the job runs; rename it")
        knowledge = _knowledge(background, entailment, limits)
        spec = ProgramSpec(NAME, (), policy or "unrestricted", pack(knowledge))
        engine = Engine(background=knowledge, changes=options.updates, limits=limits)
        specs.append(with_updates(spec, engine, shards) if options.updates else spec)
        parts.append(standing_part(len(parts), len(specs) - 1, shards))
    specs = [replace(spec, engine_limits=limits) for spec in specs]
    return tuple(specs), [prepared(routed, entailment) for routed in parts] if options.updates else parts


def compiled_programs(program: Programs, policy: str | None) -> dict[str, Program]:
    """The programs by name, compiled."""
    programs = program if isinstance(program, Mapping) else {"": program}
    if not programs:
        raise SparkError("there is no program to run: give at least one")
    for name in programs:
        if not isinstance(name, str):
            raise SparkError(f"a program is named {name!r} ({type(name).__name__}), but names are texts: {{'a': …}}")
    return {name: _program(given, policy) for name, given in programs.items()}


def _program(given: One, policy: str | None) -> Program:
    if isinstance(given, Program):
        return given if policy is None or given.windowed else replace(given, policy=policy)
    if not isinstance(given, (str, Path)):
        raise SparkError(
            f"{type(given).__name__} cannot run on Spark: give a program, its text or its file; compile([…]) makes one "
            "program of several texts"
        )
    return compile(given, policy=policy or "unrestricted")


def _knowledge(background: Any, entailment: str, limits: Limits) -> Knowledge | None:
    known: Knowledge | None = knowledge_of(background, entailment, limits=limits)
    return known


__all__ = ["ShardWarning", "SparkError", "matches", "plan"]
