"""Routing in the JVM: which triples go to which shards, as Catalyst expressions.

A leaf becomes a test on the columns s, p, o and stream; constants reach a Parquet reader as pushed filters when the
events are flat.  The shard is ``pmod(crc32(key), shards)``.  A triple goes once to every shard
that some leaf wants it in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_, or_

import pyarrow as pa
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from etalis_py.spark.columns import term_of, time_of
from etalis_py.spark.errors import SparkError
from etalis_py.spark.nulls import dead_letter, has_null, has_null_within, may_be, no_null_list
from etalis_py.spark.parts import Lookup, Part, RoutedPart
from etalis_py.spark.schema import (
    DERIVED,
    END,
    END_OF_STREAM,
    EVENT,
    EVENTS,
    EVERY_SLOT,
    FLAT_EVENTS,
    ITEM,
    LAST,
    MATCHES,
    PASSED,
    RETRACT,
    TAKEN_BACK,
    TRIPLE,
)
from etalis_py.spark.slots import slots_of

_FEW = 16  # predicates that are sent as numbers
PLACES = {"subject": "s", "predicate": "p", "object": "o"}


def row_kinds(parts: Iterable[RoutedPart]) -> tuple[bool, bool]:
    """Do parts want events as rows of triples, and do they want them whole?"""
    wanted = {routed.items for routed in parts}
    return False in wanted, True in wanted


def flat_events(events: DataFrame, triples: bool = True, items: bool = False) -> DataFrame:
    """Any DataFrame of events as one row a triple: start, end, stream, s, p, o (and time, retract and arrived, when
    there).

    With ``items`` there is a column ``item``, and for each event also a row (without ``triples``: only this row) that
    holds it whole; the event that ends the stream is no such item.
    """
    have = set(events.columns)
    if "end" not in have:
        raise SparkError(
            f"the events have no column end, only {', '.join(events.columns)}; wanted is: {EVENTS}, or flat: "
            f"{FLAT_EVENTS}; the functions events_from_… make it"
        )
    if "triples" not in have and not {"s", "p", "o"} <= have:
        raise SparkError(
            f"the events have neither triples nor s, p and o, only {', '.join(events.columns)}; wanted is: {EVENTS}, "
            f"or flat: {FLAT_EVENTS}"
        )
    events = _with_types(events)
    kept = [
        (F.col("start") if "start" in have else F.col("end")).alias("start"),
        F.col("end"),
        (F.coalesce("stream", F.lit("")) if "stream" in have else F.lit("")).alias("stream"),
    ]
    if "time" in have:
        kept.append(F.col("time"))
    if "retract" in have:
        kept.append(F.coalesce("retract", F.lit(False)).alias("retract"))
        kept += [F.col("arrived")] if "arrived" in have else []
    if items:
        return _with_items(events, kept, triples)
    if "triples" in have:
        rows = events.select(*kept, F.explode(no_null_list("triples")).alias("t"))
        return rows.select(*[c for c in rows.columns if c != "t"], "t.s", "t.p", "t.o")
    return events.select(*kept, "s", "p", "o")


def _with_types(events: DataFrame) -> DataFrame:
    """The events with times in microseconds and terms as spellings, whatever types the columns have."""
    kinds = dict(events.dtypes)
    places = () if "triples" in kinds else ("s", "p", "o")
    for name, kind in {"stream": "string", "graph": "string", "retract": "boolean"}.items():
        if kinds.get(name, "void") not in (kind, "void"):
            raise SparkError(f"the column {name} is of type {kinds[name]}, not {kind}; convert it")
    if "triples" in kinds:
        missing = [c for c in ("s", "p", "o") if f"{c}:string" not in re.split(r"[<>,]", kinds["triples"])]
        if missing:
            raise SparkError(f"the column triples is of type {kinds['triples']}, not array<{TRIPLE}>; convert it")
    terms = {name: time_of(events, name, name) for name in ("start", "end") if kinds.get(name, "bigint") != "bigint"}
    terms |= {name: term_of(events, name, name) for name in places if kinds[name] != "string"}
    return events.withColumns(terms) if terms else events


def _with_items(events: DataFrame, kept: Sequence[Column], triples: bool) -> DataFrame:
    """Rows of triples, and of whole events: see ``flat_events``."""
    stated = no_null_list("triples") if "triples" in events.columns else F.array(F.struct("s", "p", "o"))
    graph = F.col("graph") if "graph" in events.columns else F.lit("")
    text, nothing = F.lit(None).cast("string"), F.lit(None).cast("string")
    row = "struct<s: string, p: string, o: string, item: string>"
    lists = F.transform("found", lambda t: F.array(t["s"], t["p"], t["o"]))
    item = F.to_json(F.struct(F.col("g").alias("g"), lists.alias("t")))
    flat = F.transform("found", lambda t: F.struct(t["s"].alias("s"), t["p"].alias("p"), t["o"].alias("o"), text))
    whole = F.array(F.struct(nothing, nothing, nothing, item))
    is_end = F.exists("found", lambda t: t["p"] == F.lit(END_OF_STREAM))
    rows = events.select(*kept, graph.alias("g"), stated.alias("found"))
    columns = [c for c in rows.columns if c not in ("g", "found")]
    flat, whole = flat.cast(f"array<{row}>"), whole.cast(f"array<{row}>")
    items = F.when(is_end | has_null_within("found"), flat).otherwise(F.concat(flat, whole) if triples else whole)
    return rows.select(*columns, F.explode(items).alias("t")).select(*columns, "t.s", "t.p", "t.o", "t.item")


def test_of(leaf: ir.Leaf, unnamed: str) -> Column | None:
    """Does a row match the leaf?  None: every row does.  ``unnamed``: the stream of events that name none."""
    if leaf.entailed:
        return None  # what follows from the triple may match where the triple itself does not
    tests: list[Column] = []
    seen: dict[str, str] = {}
    for place, column in PLACES.items():
        match getattr(leaf, place):
            case alg.Const(term):
                tests.append(F.col(column) == F.lit(term))
            case ir.OneOf(terms):
                tests.append(F.col(column).isin(list(terms)))
            case ir.NoneOf(terms):
                tests.append(~F.col(column).isin(list(terms)))
            case alg.Var(name):
                if name in seen:
                    tests.append(F.col(column) == F.col(seen[name]))
                seen.setdefault(name, column)
    if leaf.stream:
        same = F.col("stream") == F.lit(leaf.stream)
        tests.append(same | (F.col("stream") == F.lit("")) if leaf.stream == unnamed else same)
    return reduce(lambda a, b: a & b, tests) if tests else None


def _any(tests: Iterable[Column | None]) -> Column | None:
    every = list(tests)
    if any(test is None for test in every):
        return None
    return reduce(or_, [test for test in every if test is not None]) if every else F.lit(False)


def _wanted(routed: RoutedPart, partitions: int, items: bool = False) -> list[tuple[Column | None, Column]]:
    """Tests, each with the slot that a row that passes goes to; ``items``: whole events stand among the rows."""
    if items:
        kind = F.col("item").isNotNull() if routed.items else F.col("item").isNull()
        pairs = _wanted(routed, partitions)
        return [(kind if test is None else kind & test, slot) for test, slot in pairs]
    part = routed.part
    slots = slots_of(part, partitions)
    if part.divided:
        tests = [test_of(leaf, routed.unnamed) for leaf, position in routed.routes if not position]
        tests += [None] * routed.everything
        return [(_any(tests), F.lit(slot)) for slot in slots] if tests else []
    if part.shards == 1 or part.begins:
        test = None if routed.everything else _any(test_of(leaf, routed.unnamed) for leaf, _ in routed.routes)
        return [(test, _in_time(part, shard, F.lit(slot))) for shard, slot in enumerate(slots)]
    wanted = []
    for place, column in PLACES.items():
        leaves = [leaf for leaf, position in routed.routes if position == place]
        if leaves:
            shard = F.pmod(F.crc32(F.col(column)), F.lit(part.shards)).cast("int")
            slot = F.element_at(F.array(*map(F.lit, slots)), shard + 1)
            wanted.append((_any(test_of(leaf, routed.unnamed) for leaf in leaves), slot))
    return wanted


def _listed(routed: RoutedPart) -> list[tuple[Column, Column]]:
    """Tests, each with the slots that a row that passes goes to: those of its term in the table of ``with_slots``."""
    pairs = []
    for lookup in routed.lookups:
        slots = F.col(_slots_by(routed, lookup))
        test = slots.isNotNull() | F.col(PLACES[lookup.position]).isNull()
        asked = _any(test_of(leaf, routed.unnamed) for leaf in lookup.leaves)
        pairs.append((test if asked is None else asked & test, slots))
    return pairs


def _slots_by(routed: RoutedPart, lookup: Lookup) -> str:
    return f"slots_{routed.part.number}_{lookup.position}"


def with_slots(rows: DataFrame, parts: Iterable[RoutedPart], partitions: int) -> DataFrame:
    """The rows with the slots that their terms are for, where a part says so: a table that is broadcast."""
    schema = pa.schema([("term", pa.string()), ("slots", pa.list_(pa.int32()))])
    for routed in parts:
        slots = slots_of(routed.part, partitions)
        for lookup in routed.lookups:
            targets = [[slots[shard] for shard in sorted(own)] for own in lookup.shards.values()]
            table = pa.table([list(lookup.shards), targets], schema=schema)
            name, column = _slots_by(routed, lookup), PLACES[lookup.position]
            known = rows.sparkSession.createDataFrame(table).withColumnsRenamed({"term": f"{name}_of", "slots": name})
            rows = rows.join(F.broadcast(known), F.col(column) == F.col(f"{name}_of"), "left").drop(f"{name}_of")
    return rows


def keys_of(routed: RoutedPart) -> Column:
    """The term by which a row is routed to a shard of the part, or null where it is not."""
    keys = []
    for place, column in PLACES.items():
        leaves = [leaf for leaf, position in routed.routes if position == place]
        test = _any(test_of(leaf, routed.unnamed) for leaf in leaves)
        keys.append(F.col(column) if test is None else F.when(test, F.col(column)))
    return F.coalesce(*keys)


def _in_time(part: Part, shard: int, slot: Column) -> Column:
    """The slot where a row is one that the slice of time reads, else null."""
    read = reads(part, shard)
    return slot if read is None else F.when(read, slot)


def reads(part: Part, shard: int) -> Column | None:
    """Does a slice of time read a row?  None: the part has no slices."""
    begin, following = part.span(shard)
    tests = [] if begin is None else [F.col("end") >= F.lit(begin - part.overlap)]
    tests += [] if following is None else [F.col("end") < F.lit(following)]
    return reduce(and_, tests) if tests else None


def slice_of(flat: DataFrame, routed: RoutedPart, shard: int) -> DataFrame:
    """The rows that a slice of time reads, from a source that leaves out the others: no more columns than it needs.

    The predicate is a number: its place among ``predicates_of``; a single one is not sent at all.
    """
    read = reads(routed.part, shard)
    rows = flat if read is None else flat.where(read)
    wanted = [test_of(leaf, routed.unnamed) for leaf, _ in routed.routes]
    kept = None if routed.everything else _any(wanted)
    rows = rows.where(~has_null() if kept is None else ~has_null() & kept)
    columns = [F.col(name) for name in ("end", "start", "s", "o")]
    if any(leaf.stream for leaf, _ in routed.routes):
        columns.append(F.col("stream"))
    predicates = predicates_of(routed)
    if not predicates:
        columns.append(F.col("p"))
    elif len(predicates) > 1:
        code = F.lit(0)
        for place, predicate in enumerate(predicates[1:], 1):
            code = F.when(F.col("p") == F.lit(predicate), F.lit(place)).otherwise(code)
        columns.append(code.cast("byte").alias("p"))
    return rows.select(*columns)


def predicates_of(routed: RoutedPart) -> tuple[str, ...]:
    """The predicates that a part reads, where these are few and constant; else none."""
    selected: dict[str, None] = {}
    for leaf, _ in routed.routes:
        match leaf.predicate:
            case alg.Const(term) if not leaf.entailed:
                selected[term] = None
            case ir.OneOf(terms) if not leaf.entailed:
                selected |= dict.fromkeys(terms)
            case _:
                return ()
    return tuple(selected) if not routed.everything and len(selected) <= _FEW else ()


def refused(flat: DataFrame, parts: Sequence[RoutedPart]) -> DataFrame:
    """The dead letters for the rows with a null that some part may want, as matches are."""
    wanted = wanted_by(parts, 1)
    rows = flat if wanted is None else flat.where(wanted)
    return rows.where(has_null()).select(F.from_json(dead_letter(), MATCHES).alias("row")).select("row.*")


def _all_slots(parts: Sequence[RoutedPart], partitions: int) -> list[int]:
    return [slot for routed in parts for slot in slots_of(routed.part, partitions)]


def asked_by(parts: Sequence[RoutedPart], partitions: int) -> Column | None:
    """Does any of the parts ask for a row, as far as its columns are not null?  None: every row is asked for."""
    items = row_kinds(parts)[1]
    tests = [test for routed in parts for test, _ in _wanted(routed, partitions, items)]
    looked_up = [leaf for routed in parts for lookup in routed.lookups for leaf in lookup.leaves]
    return _any([*tests, *(test_of(leaf, "") for leaf in looked_up)])


def wanted_by(parts: Sequence[RoutedPart], partitions: int) -> Column | None:
    """Does any of the parts want a row?  None: every row is wanted."""
    items = row_kinds(parts)[1]
    kept = asked_by(parts, partitions)
    if kept is None:
        return None
    kept = may_be(kept | (F.col("p") == F.lit(END_OF_STREAM)))
    return kept | (has_null() & F.col("item").isNull()) if items else kept


def route(
    rows: DataFrame,
    parts: Sequence[RoutedPart],
    partitions: int,
    *,
    ending: bool,
    refusing: Sequence[RoutedPart] = (),
) -> DataFrame:
    """Flat events → the rows of the operator.  ``ending``: the row that ends the stream goes to EVERY_SLOT.

    Where rows have a ``time``, only the operator is spared the others, not what stands before: see ``pipeline``.
    ``refusing``: rows with a null that one of these parts may want go through the first shard to the dead letters;
    other rows with a null are left out.
    """
    items = "item" in rows.columns
    wanted = [pair for routed in parts for pair in _wanted(routed, partitions, items)]
    listed = [pair for routed in parts for pair in _listed(routed)]
    rows = with_slots(rows, parts, partitions)
    is_end = F.col("p") == F.lit(END_OF_STREAM)
    wrong = has_null() & F.col("item").isNull() if items else has_null()
    kind = F.when(F.col("item").isNull(), F.lit(EVENT)).otherwise(F.lit(ITEM)) if items else F.lit(EVENT)
    kept = _any([test for test, _ in (*wanted, *listed)])
    if kept is not None:
        if ending:
            kept = kept | is_end
        kept = may_be(kept)
        others = [routed for routed in refusing if routed not in parts]
        if items or others:
            asked = wanted_by(others, partitions) if others and not items else None
            kept = kept | (wrong if asked is None else wrong & asked)
        rows = rows.where(kept | F.col("time").isNull() if "time" in rows.columns else kept)
    if not refusing:
        rows = rows.where(~wrong)
    if "retract" in rows.columns:
        kind = F.when(F.col("retract"), F.lit(RETRACT)).otherwise(kind)
    first = F.lit(_all_slots(parts, partitions)[0])
    if len(wanted) == 1 and not listed:
        slot = wanted[0][1]
        if refusing:
            slot = F.when(wrong, first).otherwise(slot)
        if ending:
            slot = F.when(is_end, F.lit(EVERY_SLOT)).otherwise(slot)
    else:
        slots = _targets(wanted, listed)
        if refusing:
            slots = F.when(wrong, F.array(first)).otherwise(slots)
        if ending:
            slots = F.when(is_end, F.array(F.lit(EVERY_SLOT))).otherwise(slots)
        slot = F.explode(slots)
    mark = F.when(is_end, F.lit(END)).otherwise(kind) if ending else kind
    passed = F.col("item") if items else F.lit(None).cast("string")
    if refusing:
        mark = F.when(wrong, F.lit(PASSED)).otherwise(mark)
        passed = F.when(wrong, dead_letter()).otherwise(passed)
    return rows.select(
        slot.alias("slot"),
        mark.cast("int").alias("mark"),
        # Nulls would make floats of the whole column.
        F.coalesce("start", F.lit(0)).alias("start"),
        F.coalesce("end", F.lit(0)).alias("end"),
        "stream",
        "s",
        "p",
        "o",
        passed.alias("passed"),
        (F.col("arrived") if "arrived" in rows.columns else _unknown()).alias("arrived"),
    )


def _targets(wanted: Sequence[tuple[Column | None, Column]], listed: Sequence[tuple[Column, Column]] = ()) -> Column:
    slots = [slot if test is None else F.when(test, slot) for test, slot in wanted]
    more = [F.coalesce(F.when(test, some), F.array().cast("array<int>")) for test, some in listed]
    return F.array_distinct(F.concat(F.array_compact(F.array(*slots).cast("array<int>")), *more))


def ends(parts: Sequence[RoutedPart], partitions: int, like: DataFrame) -> DataFrame:
    """The rows that end a batch: one for every shard."""
    none = F.lit(None).cast("string")
    return shards_of(parts, partitions, like).select(
        "slot",
        F.lit(END).alias("mark"),
        F.lit(LAST).alias("start"),
        F.lit(LAST).alias("end"),
        none.alias("stream"),
        none.alias("s"),
        none.alias("p"),
        none.alias("o"),
        none.alias("passed"),
        _unknown().alias("arrived"),
    )


def shards_of(parts: Sequence[RoutedPart], partitions: int, like: DataFrame) -> DataFrame:
    """The slots of all shards."""
    slots = F.explode(F.array(*map(F.lit, _all_slots(parts, partitions))))
    return like.sparkSession.range(1).select(slots.alias("slot"))


def hand_on(
    out: DataFrame, parts: Sequence[RoutedPart], programs: Sequence[str], partitions: int, *, last: bool
) -> DataFrame:
    """The rows of one level as rows of the next: derived events are routed anew, matches and the like pass through.

    Unless this is the last level, derived events pass through as well: a later level may take them.
    """
    is_event = F.col("kind") == "event"
    nothing = F.array(F.lit(None).cast(TRIPLE))
    triples = F.col("triples") if last else F.concat(nothing, F.col("triples"))
    rows = out.select(
        "start",
        "end",
        "stream",
        "program",
        "query",
        "id",
        "retracted",
        F.to_json(F.struct(*[F.col(c) for c in out.columns])).alias("passed"),
        F.explode(F.when(is_event, triples).otherwise(nothing)).alias("t"),
    )
    flat = rows.select("*", "t.s", "t.p", "t.o", F.col("t").isNull().alias("passing"))
    passing = F.col("passing")
    everyone = _all_slots(parts, partitions)
    number = F.pmod(F.crc32(F.coalesce(F.col("id"), F.lit(""))), F.lit(len(everyone))).cast("int")
    anyone = F.element_at(F.array(*map(F.lit, everyone)), number + 1)
    wanted: list[tuple[Column | None, Column]] = []
    for routed in parts:
        if routed.part.takes:
            own = (F.col("program") == programs[routed.part.program]) & F.col("query").isin(list(routed.part.takes))
            wanted += [(own if test is None else own & test, slot) for test, slot in _wanted(routed, partitions)]
    slots = F.when(passing, F.array(anyone)).otherwise(_targets(wanted)) if wanted else F.array(anyone)
    return flat.select(
        F.explode(slots).alias("slot"),
        F.when(passing, F.lit(PASSED))
        .when(F.col("retracted"), F.lit(TAKEN_BACK))
        .otherwise(F.lit(DERIVED))
        .cast("int")
        .alias("mark"),
        # Nulls, as timeless matches have them, would make floats of the whole column.
        F.coalesce("start", F.lit(0)).alias("start"),
        F.coalesce("end", F.lit(0)).alias("end"),
        "stream",
        "s",
        "p",
        "o",
        F.when(passing, F.col("passed")).otherwise(F.col("id")).alias("passed"),
        _unknown().alias("arrived"),
    )


def _unknown() -> Column:
    """In which order something came."""
    return F.lit(None).cast("long")


__all__ = [
    "asked_by",
    "ends",
    "flat_events",
    "hand_on",
    "keys_of",
    "predicates_of",
    "reads",
    "refused",
    "route",
    "row_kinds",
    "shards_of",
    "slice_of",
    "test_of",
    "wanted_by",
]
