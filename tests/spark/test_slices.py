"""Slices of time: what they find together is what one engine finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce

import pytest
from etalis_compiler import ast
from etalis_compiler.diagnostics import QueryError
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from etalis_py import Engine, Event, LimitExceeded, Program, compile
from etalis_py.spark import events_from_events, matches
from etalis_py.spark.answers import single
from etalis_py.spark.parts import Part, RoutedPart
from etalis_py.spark.pipeline import plan
from etalis_py.spark.results import order_columns
from etalis_py.spark.slices import SlicedShard, in_slices
from tests.engine.judge import engine_for
from tests.oracle import printing, strategies
from tests.oracle.strategies import Case
from tests.spark import windowed
from tests.spark.by_hand import routed
from tests.spark.programs import SECOND, embedded, stream

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


def is_read(part: Part, number: int, end: int) -> bool:
    begin, following = part.span(number)
    return (begin is None or end >= begin - part.overlap) and (following is None or end < following)


@settings(max_examples=60)
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


def test_in_any_number_of_slices_the_matches_and_their_order_are_those_of_one_engine(spark: SparkSession) -> None:
    """A program without a key, one with a key, and one with a key that cannot be cut."""
    events, texts = stream(3, 200), {"pairs": PAIRS, "keyed": KEYED, "too far": TOO_FAR}
    frame = events_from_events(spark, events)
    runs = [
        matches(texts, frame, shards=2, slices=n, metrics=True, ordered=True).withColumn("slices", F.lit(n))
        for n in (1, 2, 4)
    ]
    rows = reduce(DataFrame.union, runs)
    found = rows.orderBy(*order_columns(["v", "x", "y", "z"])).collect()
    triples = sum(p != "<urn:r>" for e in events for _, p, _ in e.triples)
    for name, text in texts.items():
        engine = Engine(compile(text + "\n"))
        wanted = [(m.id, m.start_us, m.end_us) for m in [*engine.push_all(events), *engine.close()]]
        for slices in (1, 2, 4):
            own = [row for row in found if row["program"] == name and row["slices"] == slices]
            assert [(row["id"], row["start"], row["end"]) for row in own if row["kind"] == "match"] == wanted
            numbers = [json.loads(row["detail"]) for row in own if row["kind"] == "metric"]
            assert len(numbers) == {"pairs": slices, "keyed": max(slices, 2), "too far": 2}[name]
            assert sum(number["events"] - number.get("read_again", 0) for number in numbers) == triples
        assert wanted
