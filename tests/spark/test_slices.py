"""Slices of time: what they find together is what one engine finds."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from etalis_compiler import ast
from etalis_compiler.diagnostics import QueryError
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import etalis_py.executors.columns.executor
import etalis_py.spark.plan.local_cuts
from etalis_py import Engine, Event, LimitExceeded, Program, compile
from etalis_py.spark import events_from_events, matches
from etalis_py.spark.errors import SkewWarning
from etalis_py.spark.input.catalyst_filters import flat_events
from etalis_py.spark.input.local_files import local_files
from etalis_py.spark.input.schema import LAST
from etalis_py.spark.input.shards_that_scan import scan_operator
from etalis_py.spark.output.answers import single
from etalis_py.spark.output.results import order_columns
from etalis_py.spark.output.wire import wire_of
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.cut_points import AskedOfSpark, Measure, cut
from etalis_py.spark.plan.local_cuts import LookedUp
from etalis_py.spark.plan.parts import RoutedPart, ShardPart
from etalis_py.spark.shard.time_slices import SlicedShard, in_slices
from tests.draws import examples
from tests.engine.judge import engine_for
from tests.oracle import printing, strategies
from tests.oracle.strategies import Case
from tests.spark import windowed
from tests.spark.by_hand import public, routed
from tests.spark.programs import PROGRAMS, SECOND, embedded, stream

Reads = Callable[[Iterable[Event], RoutedPart, int], list[Event]]
LENGTHS = tuple(ast.Duration("duration", f"PT{n}S") for n in (1, 2, 3))


@st.composite
def bounded(draw: st.DrawFn) -> Case:
    """A drawn program whose queries have a bound, as far as aggregates without a window allow."""
    case = draw(st.one_of(*(strategies.ALL[name]() for name in DRAWN)))
    queries = []
    for query in case.program.queries:
        length = draw(st.sampled_from(LENGTHS))
        grouped = query.group_by or any(isinstance(p.expression, ast.Aggregate) for p in projections(query))
        kept = replace(query, within=query.within if grouped and query.within else length, limit=None, offset=None)
        queries.append(replace(kept, form=ast.Select(())) if isinstance(query.form, ast.Ask) else kept)
    return replace(case, program=ast.Document(tuple(queries)))


DRAWN = (
    "core", "negation", "several_streams", "paths", "policies", "aggregates", "recursion", "stratified", "relations",
    "timed", "timed_among_all", "timed_aggregates", "timed_rules",
)  # fmt: skip


def projections(query: ast.Query) -> Iterable[ast.Projection]:
    return query.form.projections if isinstance(query.form, ast.Select) else ()


def in_slices_by_hand(
    program: Program | str, events: Sequence[Event], begins: Sequence[int], reads: Reads = routed
) -> tuple[list[str], list[str]]:
    """The ids of the matches of all slices, and why parts cannot be cut: these are left whole.

    ``reads``: which of some events a slice takes.
    """
    specs, parts = plan(program, 1, None, "rdfs", None)
    found: list[str] = []
    reasons: list[str] = []
    for whole in parts:
        if whole.reach.bounded:
            part = in_slices(whole, begins)
        else:
            part = whole
            reasons.append(whole.reach.reason)
        for number in range(part.part.shards):
            shard = SlicedShard(specs[part.part.program], part.part, number)
            read = reads([e for e in events if is_read(part.part, number, e.end)], part, number)
            rows = [*single(shard.push(read)), *single(shard.finish())] if read else single(shard.finish())
            assert all(row[0] == "match" for row in rows)
            found += [row[3] for row in rows]
    return sorted(found), reasons


def is_read(part: ShardPart, number: int, end: int) -> bool:
    begin, following = part.span(number)
    return (begin is None or end >= begin - part.overlap) and (following is None or end < following)


@settings(max_examples=examples(2 / 5))
@given(bounded(), st.sets(st.integers(-1, 8), min_size=1, max_size=4))
def test_slices_of_any_bounded_program_find_what_one_engine_finds(case: Case, cuts: set[int]) -> None:
    try:
        engine_for(case)
    except QueryError:
        assume(False)
    program = compile(printing.program(case.program) + "\n", policy=case.policy)
    try:
        wanted = embedded(printing.program(case.program), case.events, policy=case.policy)
    except LimitExceeded:
        assume(False)
    assert in_slices_by_hand(program, case.events, [cut * SECOND for cut in sorted(cuts)])[0] == wanted


def test_points_reach_back_as_far_as_the_matches_that_they_end() -> None:
    """The points of AT END last no time, but what they depend on begins up to six seconds before them."""
    events = stream(5)
    begins = sorted({event.end for event in events})[1::2]
    found, reasons = in_slices_by_hand(PROGRAMS["points"], events, begins)
    assert found == embedded(PROGRAMS["points"], events)
    assert reasons == []


SLIDING = {
    *windowed.KEYED, "total", "top", "hidden", "path", "on change", "no common key", "either window",
    "a window that may be empty", "optional before it is bound", "absent before it is bound", "items by name",
    "timestamp", "network of the whole", "keys that do not meet",
} - {
    "interval", "window close", "at times", "new at the close", "new since the start", "gone since the start",
    "everything so far",
}  # fmt: skip


@pytest.mark.parametrize("name", windowed.PROGRAMS)
def test_slices_of_windows_find_what_one_engine_finds(name: str) -> None:
    events = windowed.stream(len(name))
    begins = [cut * SECOND for cut in (3, 11, 12, 24)]
    found, reasons = in_slices_by_hand(windowed.PROGRAMS[name], events, begins, windowed.routed)
    assert found == windowed.embedded(windowed.PROGRAMS[name], events)
    assert (not reasons) == (name in SLIDING), reasons


# --- on Spark ------------------------------------------------------------------------------------------------------

PAIRS = "SELECT * { { ?x <urn:p> ?y } SEQ { ?v <urn:q> ?z } FILTER (?x != ?v) } WITHIN PT10S"
KEYED = "SELECT * { { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } } WITHIN PT4S"
TOO_FAR = "SELECT * { ?x <urn:p> ?y MINUS { ?x <urn:q> ?z } }"


def flat(events: Iterable[Event]) -> pa.Table:
    """Events as the columns of a file, a triple a row."""
    rows = [(e.end, e.start, *triple) for e in events for triple in e.triples]
    return pa.table(dict(zip(("end", "start", "s", "p", "o"), zip(*rows, strict=True), strict=True)))


def test_in_any_number_of_slices_the_matches_and_their_order_are_those_of_one_engine(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A program without a key, one with a key, and one with a key that cannot be cut: rows are routed.

    The first two also from Parquet: every slice reads the file for itself, by Arrow or, where something stands
    before it, by Spark; and a null becomes a dead letter.
    """
    events, texts = stream(3, 200), {"pairs": PAIRS, "keyed": KEYED, "too far": TOO_FAR}
    null = pa.table({"end": [7], "start": [7], "s": ["<urn:x>"], "p": ["<urn:p>"], "o": pa.nulls(1, pa.string())})
    pq.write_table(pa.concat_tables([null, flat(events)]), tmp_path / "events.parquet")
    frame = events_from_events(spark, events)
    routed_by_time = matches(texts, frame, shards=2, slices=4, metrics=True, ordered=True)
    rows = routed_by_time.withColumn("run", F.lit(4))
    file = spark.read.parquet(str(tmp_path))
    for slices, read in ((2, file), (3, file.where("length(p) > 0"))):
        scanned = matches({"pairs": PAIRS, "keyed": KEYED}, read, shards=2, slices=slices, metrics=True, ordered=True)
        assert scanned._jdf.queryExecution().executedPlan().toString().count("Exchange") == 0
        rows = rows.union(scanned.withColumn("run", F.lit(slices)))
    found = rows.coalesce(1).sortWithinPartitions(*order_columns(["v", "x", "y", "z"])).collect()
    triples = sum(p != "<urn:r>" for e in events for _, p, _ in e.triples)
    for name, text in texts.items():
        engine = Engine(compile(text + "\n"))
        wanted = [(m.id, m.start_us, m.end_us) for m in [*engine.push_all(events), *engine.close()]]
        assert wanted
        for slices in (2, 3, 4) if name != "too far" else (4,):
            own = [row for row in found if row["program"] == name and row["run"] == slices]
            assert [(row["id"], row["start"], row["end"]) for row in own if row["kind"] == "match"] == wanted
            numbers = [json.loads(row["detail"]) for row in own if row["kind"] == "metric"]
            assert len(numbers) == (slices if name != "too far" else 2)
            assert sum(number["events"] - number.get("read_again", 0) for number in numbers) == triples
    letters = [row for row in found if row["kind"] == "dead_letter"]
    assert sorted((row["run"], row["end"], row["triples"][0]["p"]) for row in letters) == [
        (2, 7, "<urn:p>"),
        (3, 7, "<urn:p>"),
    ]


OPTIONAL = "SELECT * { ?x <urn:p> ?y OPTIONAL { ?x <urn:q> ?z FILTER (getDURATION() <= 'PT3S'^^xsd:duration) } }"


@pytest.mark.parametrize("text", [PAIRS, OPTIONAL])
@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_slice_takes_columns_in_any_order(monkeypatch: pytest.MonkeyPatch, text: str, executor: str) -> None:
    """In pieces of a few rows, the last first; the engine takes them in rows or in columns."""
    monkeypatch.setattr(etalis_py.executors.columns.executor, "ENOUGH", 1 if executor == "columns" else 1 << 30)
    monkeypatch.setattr(etalis_py.executors.columns.executor, "ready", lambda: True)
    events = stream(4, 120)
    specs, [whole] = plan(text, 1, None, "rdfs", None)
    part = in_slices(replace(whole, part=replace(whole.part, order=())), [9 * SECOND, 17 * SECOND])
    ids: list[str] = []
    for number in range(3):
        rows = flat(e for e in events if is_read(part.part, number, e.end))
        rows = rows.filter(pc.is_in(rows["p"], pa.array(["<urn:p>", "<urn:q>"])))
        codes = pc.index_in(rows["p"], pa.array(["<urn:p>", "<urn:q>"])).cast(pa.int8())
        pieces = rows.set_column(3, "p", codes).to_batches(max_chunksize=30)[::-1]
        wire = wire_of([part.part], [""])
        operate = scan_operator(specs[0], part.part, number, ("<urn:p>", "<urn:q>"), wire, metrics=False)
        ids += [str(public(row, wire)["id"]) for batch in operate(pieces) for row in batch.to_pylist()]
    assert sorted(ids) == embedded(text, events)


BY_OBJECT = "SELECT * { { ?x <urn:p> ?y } SEQ { ?v <urn:p> ?y } } WITHIN PT4S"
COUNTED = "SELECT ?x (COUNT(*) AS ?n) { ?x <urn:p> ?y } GROUP BY ?x"


def measures(file: DataFrame, parts: Sequence[RoutedPart]) -> tuple[Measure, Measure]:
    """Spark is asked about a batch, or its files are looked into."""
    files = local_files(file)
    assert files is not None
    return partial(AskedOfSpark, flat_events(file).drop("time"), parts), partial(LookedUp, files, parts)


def test_a_hot_key_is_cut_by_time_or_named(spark: SparkSession, tmp_path: Path) -> None:
    """Six of ten events have one key: a shard of it would do most of the work."""
    keys = ["<urn:hot>" if n % 10 < 6 else f"<urn:x{n}>" for n in range(40_000)]
    times = pa.array([n * SECOND for n in range(40_000)])
    predicates = ["<urn:p>" if n % 2 else "<urn:q>" for n in range(40_000)]
    objects = [f"<urn:o{n % 7}>" for n in range(40_000)]
    table = pa.table({"end": times, "s": keys, "p": predicates, "o": objects})
    pq.write_table(table, tmp_path / "events.parquet")
    events = spark.read.parquet(str(tmp_path))
    for measure in measures(events, (keyed := plan(KEYED, 2, None, "rdfs", None)[1])):
        assert [len(routed.part.begins) for routed in cut(keyed, 2, None, True, measure)] == [1]
    for measure in measures(events, (others := plan(BY_OBJECT, 2, None, "rdfs", None)[1])):
        assert cut(others, 2, None, True, measure) == others
    with warnings.catch_warnings():
        warnings.simplefilter("error", SkewWarning)
        matches(KEYED, events, shards=2).count()
    with pytest.warns(SkewWarning, match=r"q1: (5[89]|6[0-2])% of the events have the key <urn:hot>.*an aggregate"):
        matches(COUNTED, events, shards=2).count()
    with pytest.warns(SkewWarning, match=r"(5[89]|6[0-2])% of the events have the key <urn:hot>.*with slices=N"):
        matches(KEYED, events, shards=5, slices=1).count()


def test_keys_are_counted_in_all_of_the_time(spark: SparkSession, tmp_path: Path) -> None:
    """A key that has nothing but the beginning is not hot, and one that comes later is."""
    others = [f"<urn:x{n}>" for n in range(10_000)]
    for name, thirds in (
        ("early", (["<urn:a>"] * 10_000, others, others)),
        ("late", (others, *[["<urn:a>"] * 10_000] * 2)),
    ):
        keys = [key for third in thirds for key in third]
        times, same = [n * SECOND for n in range(30_000)], {"p": ["<urn:p>"] * 30_000, "o": ["<urn:o>"] * 30_000}
        pq.write_table(pa.table({"end": times, "s": keys, **same}), tmp_path / f"{name}.parquet", row_group_size=10_000)
        files = local_files(spark.read.parquet(str(tmp_path / f"{name}.parquet")))
        keyed = plan(KEYED, 2, None, "rdfs", None)[1]
        assert files is not None
        assert LookedUp(files, keyed, 2, keyed).hot(2) == ({0} if name == "late" else set())


@pytest.mark.parametrize("large", [False, True])
def test_cuts_divide_a_batch_evenly(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    """By the events that are asked for, which are more frequent at the end; one instant is not cut.

    The ends of a large batch in many pieces are told by what the file says of these.
    """
    monkeypatch.setattr(etalis_py.spark.plan.local_cuts, "MOST_ROWS", 0 if large else 1 << 18)
    ends = [n * SECOND for n in range(10_000) for _ in range(1 + 4 * (n >= 5_000))]
    names = {"s": ["<urn:x>"] * 30_000, "p": ["<urn:p>"] * 30_000, "o": ["<urn:o>"] * 30_000}
    pq.write_table(pa.table({"end": ends, **names}), tmp_path / "events.parquet", row_group_size=1_000)
    pq.write_table(pa.table({"end": [0] * 30_000, **names}), tmp_path / "at once.parquet")
    whole = plan(PAIRS, 1, None, "rdfs", None)[1]
    for measure in measures(spark.read.parquet(str(tmp_path / "events.parquet")), whole):
        [routed] = cut(whole, 1, 3, True, measure)
        bounds = [0, *routed.part.begins, LAST]
        sizes = [sum(first <= end < last for end in ends) for first, last in pairwise(bounds)]
        assert len(sizes) == 3
        assert all(9_000 < size < 11_000 for size in sizes), sizes
    for measure in measures(spark.read.parquet(str(tmp_path / "at once.parquet")), whole):
        assert cut(whole, 1, 3, True, measure) == whole
