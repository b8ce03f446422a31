"""Whole events as rows, and where they go: for windows in one shard, and for EVENT.

Such a row holds the event as text in ``item``: its graph, and the three terms of each triple, separated by a character
that no term has, so that Arrow takes the rows of a batch apart at once.  Its triples in ``found`` only decide to which
slots it goes.
An event that EVENT reads goes to the shards of all keys in its triples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from etalis_rules import program as ir
from etalis_rules.leaf_tests import OfStream, tests_of
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.expressions import all_of, any_of
from etalis_py.spark.input.expressions import text as text_of
from etalis_py.spark.input.nulls import is_wrong_within, no_null_list
from etalis_py.spark.input.schema import BETWEEN, END_OF_STREAM
from etalis_py.spark.input.triple_filters import PLACES, array, in_time, leaf_filter, one_of_slots, shard_of
from etalis_py.spark.plan.parts import RoutedPart
from etalis_py.spark.plan.slots import slots_of

WHOLE = "item IS NOT NULL"
"""The test whether a row is a whole event."""
_NO_NUMBER = (
    "a row has no value in the column event, which says of which event it is: number every row's event, or leave out "
    "the column if each row is an event of its own"
)


def with_items(events: DataFrame, kept: Sequence[Column], triples: bool) -> DataFrame:
    """The rows of triples, and the rows of whole events, that ``flat_events`` describes."""
    graph = F.col("graph") if "graph" in events.columns else F.lit("")
    text, nothing = F.lit(None).cast("string"), F.lit(None).cast("string")
    row = "struct<s: string, p: string, o: string, item: string>"
    kept = [*kept, *([] if "retract" in events.columns else [F.lit(False).alias("retract")])]
    between = F.lit(BETWEEN)
    terms = F.transform("found", lambda t: F.concat(between, t["s"], between, t["p"], between, t["o"]))
    item = F.concat(F.coalesce("g", F.lit("")), F.array_join(terms, ""))
    flat = F.transform("found", lambda t: F.struct(t["s"].alias("s"), t["p"].alias("p"), t["o"].alias("o"), text))
    whole = F.array(F.struct(nothing, nothing, nothing, item))
    rows = _with_lists(events, [*kept, graph.alias("g")])
    columns = [c for c in rows.columns if c not in ("g", "found")]
    flat, whole = flat.cast(f"array<{row}>"), whole.cast(f"array<{row}>")
    apart = F.expr(is_wrong_within("found", f"t.p = {text_of(END_OF_STREAM)}"))
    items = F.when(apart, flat).otherwise(F.concat(flat, whole) if triples else whole)
    rows = rows.select(*columns, "found", F.explode(items).alias("t"))
    return rows.select(*columns, "found", "t.s", "t.p", "t.o", "t.item")


def _with_lists(events: DataFrame, kept: Sequence[Column]) -> DataFrame:
    """These columns, and the triples of each event in ``found``."""
    if "triples" in events.columns:
        return events.select(*kept, no_null_list("triples").alias("found"))
    triple = F.struct("s", "p", "o")
    if "event" not in events.columns:
        return events.select(*kept, F.array(triple).alias("found"))
    if events.isStreaming:
        raise SparkError(
            "the rows of an event cannot be collected by their number, in the column event, while a stream is read: "
            "give each event as one row, with the column triples, or with events_from_rows"
        )
    number = F.when(F.col("event").isNull(), F.raise_error(F.lit(_NO_NUMBER))).otherwise(F.col("event"))
    rows = events.select(*kept, number.alias("event"), triple.alias("triple"))
    names = [name for name in rows.columns if name != "triple"]
    return rows.groupBy(*names).agg(F.collect_list("triple").alias("found")).drop("event")


def wanted_whole(routed: RoutedPart, partitions: int) -> list[tuple[str | None, str]]:
    """Tests of whole events, each with the slot for those that pass."""
    part = routed.part
    slots = slots_of(part, partitions)
    if part.shards > 1 and not part.begins:
        return []
    test = None if routed.everything else _stating((leaf for leaf, _ in routed.routes), routed.unnamed)
    if part.fixed and test is not None:
        test = any_of([test, "retract"])
    return [(test, in_time(part, shard, str(slot))) for shard, slot in enumerate(slots)]


def spread(routed: RoutedPart, partitions: int) -> list[tuple[str, str]]:
    """Tests of whole events, each with the slots for those that pass: those of the keys in their triples.

    The slots are an empty array for an event that states nothing the part asks for.
    """
    if not _spreads(routed):
        return []
    slots = slots_of(routed.part, partitions)
    pairs = [(all_of([WHOLE, "retract"]), array(slots[:1]))]
    for leaf, position in routed.routes:
        test = leaf_filter(leaf, routed.unnamed, "t.")
        slot = one_of_slots(slots, shard_of(f"t.{PLACES[position]}", routed.part.shards))
        asked = "found" if test is None else f"filter(found, t -> {test})"
        pairs.append((WHOLE, f"transform({asked}, t -> {slot})"))
    return pairs


def spread_tests(routed: RoutedPart) -> list[str]:
    """Tests of whole events; ``spread`` has slots for those that pass one of them."""
    if not _spreads(routed):
        return []
    tests = [leaf_filter(leaf, routed.unnamed, "t.") or "TRUE" for leaf, _ in routed.routes]
    return [all_of([WHOLE, test]) for test in ("retract", *(f"exists(found, t -> {test})" for test in tests))]


def _spreads(routed: RoutedPart) -> bool:
    return routed.items and routed.part.shards > 1 and not routed.part.begins


def _stating(leaves: Iterable[ir.Leaf], unnamed: str) -> str | None:
    """The test whether a whole event has a triple that one of the leaves matches; None if any event passes."""
    tests: list[str] = []
    of_triple: list[str] = []
    for leaf in leaves:
        test = leaf_filter(leaf, unnamed, "t.")
        if test is None:
            return None
        (tests if all(isinstance(one, OfStream) for one in tests_of(leaf)) else of_triple).append(test)
    return any_of([*tests, *([f"exists(found, t -> {any_of(of_triple)})"] if of_triple else [])])


__all__ = ["WHOLE", "spread", "spread_tests", "wanted_whole", "with_items"]
