"""Decides in the JVM which triples go to which shards, by Catalyst expressions.

A leaf becomes a test on the columns s, p, o and stream; if the events are flat, tests for constants are pushed down
into a Parquet reader.  The shard is ``pmod(crc32(key), shards)``.  A triple goes once to every shard in which some leaf
wants it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence

import pyarrow as pa
from etalis_rules import leaf_tests
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.columns import term_of, time_of
from etalis_py.spark.input.expressions import all_of, any_of, one_of, text
from etalis_py.spark.input.nulls import (
    NO_TERMS,
    dead_letter,
    is_no_term,
    is_no_term_pushed,
    is_wrong,
    is_wrong_anywhere,
    is_wrong_pushed,
    may_be,
    no_null_list,
)
from etalis_py.spark.input.schema import (
    ARROW_EVENTS,
    DERIVED,
    END,
    END_OF_STREAM,
    EVENT,
    EVENTS,
    EVERY_SLOT,
    FLAT_EVENTS,
    ITEM,
    LAST,
    NO_TERM,
    PASSED,
    RETRACT,
    TAKEN_BACK,
    TRIPLE,
)
from etalis_py.spark.input.triple_filters import (
    PLACES,
    Unknown,
    any_passes,
    array,
    in_slice,
    in_time,
    leaf_filter,
    one_of_slots,
    reads,
    shard_of,
    value_if,
)
from etalis_py.spark.input.whole_events import WHOLE, spread, spread_tests, wanted_whole, with_items
from etalis_py.spark.plan.parts import Lookup, RoutedPart
from etalis_py.spark.plan.slots import slots_of

_FEW = 16  # at most so many predicates are sent as numbers
_TRIPLES = f"array<{TRIPLE}>".replace(": ", ":").replace(", ", ",")
_BARE = "stream > '' AND NOT startswith(stream, '<')"
_STREAM = f"CASE WHEN {_BARE} THEN concat('<', stream, '>') ELSE coalesce(stream, '') END AS stream"
NAMES = {*ARROW_EVENTS.names, *PLACES.values(), "event"}
"""Of the columns of events."""


def row_kinds(parts: Iterable[RoutedPart]) -> tuple[bool, bool]:
    """Whether any part wants events as rows of triples, and whether any wants them whole."""
    wanted = {routed.items for routed in parts}
    return False in wanted, True in wanted


def with_plain_names(rows: DataFrame, names: Container[str] = NAMES) -> DataFrame:
    """The rows with these names in small letters, unless the session tells capital ones from them."""
    if rows.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return rows
    named = {name: name.lower() for name in rows.columns if name not in names and name.lower() in names}
    return rows.withColumnsRenamed(named) if named else rows


def flat_events(events: DataFrame, triples: bool = True, items: bool = False, *, timed: bool = True) -> DataFrame:
    """Any DataFrame of events as one row per triple: start, end, stream, s, p, o.

    Columns ``retract`` and ``arrived`` are kept if they exist; ``timed``: ``time`` as well.

    With ``items`` there are columns ``item`` and ``found``, and for each event also a row (without ``triples``: only
    this row) that holds it whole: as JSON, and the triples by which it is routed.  The event that ends the stream is no
    such item.
    """
    have = set(events.columns)
    if "end" not in have:
        raise SparkError(
            f"the events have no column end, only {', '.join(events.columns)}; wanted is: {EVENTS}, or flat: "
            f"{FLAT_EVENTS}; events_from_rows(rows, time=…, subject=…) makes it of a table with an event a row"
        )
    if "triples" not in have and not {"s", "p", "o"} <= have:
        raise SparkError(
            f"the events have neither triples nor s, p and o, only {', '.join(events.columns)}; wanted is: {EVENTS}, "
            f"or flat: {FLAT_EVENTS}"
        )
    events = _with_types(events)
    kept = [
        "start" if "start" in have else "`end` AS start",
        "`end`",
        _STREAM if "stream" in have else "'' AS stream",
    ]
    kept += ["`time`"] if timed and "time" in have else []
    kept += [NO_TERM] if NO_TERM in have and "triples" not in have else []
    if "retract" in have:
        kept.append("coalesce(retract, FALSE) AS retract")
        kept += ["arrived"] if "arrived" in have else []
    if items:
        return with_items(events, [F.expr(column) for column in kept], triples)
    if "triples" in have:
        rows = events.select(*map(F.expr, kept), F.explode(no_null_list("triples")).alias("t"))
        return rows.select(*[c for c in rows.columns if c != "t"], "t.s", "t.p", "t.o")
    return events.selectExpr(*kept, "s", "p", "o")


def _with_types(events: DataFrame) -> DataFrame:
    """The events with times in microseconds and terms as spellings, whatever types the columns have."""
    kinds = dict(events.dtypes)
    places = () if "triples" in kinds else ("s", "p", "o")
    for name, kind in {"stream": "string", "graph": "string", "retract": "boolean"}.items():
        if kinds.get(name, "void") not in (kind, "void"):
            raise SparkError(
                f"the column {name} is of type {kinds[name]}, not {kind}; "
                f"convert it, with cast({kind!r}), or give it another name if it is something else"
            )
    if "arrived" in kinds and not isinstance(events.schema["arrived"].dataType, T.NumericType | T.NullType):
        raise SparkError(
            f"the column arrived is of type {kinds['arrived']}, but numbers events in order of arrival: give a long, "
            "such as unix_micros of a timestamp, or another name if it is something else"
        )
    if "triples" in kinds:
        missing = [c for c in ("s", "p", "o") if f"{c}:string" not in re.split(r"[<>,]", kinds["triples"])]
        if missing:
            raise SparkError(
                f"the column triples is of type {kinds['triples']}, not array<{TRIPLE}>; give it another name, and "
                "state triples with events_from_columns, or with events_from_rows those of a row of a table"
            )
    terms = {name: time_of(events, name, name) for name in ("start", "end") if kinds.get(name, "bigint") != "bigint"}
    terms |= {name: term_of(events, name, name) for name in places if kinds[name] != "string"}
    if kinds.get("triples", _TRIPLES) != _TRIPLES:  # the fields in another order, or more of them
        terms["triples"] = F.transform("triples", lambda t: F.struct(*(t[place].alias(place) for place in "spo")))
    return events.withColumns(terms) if terms else events


def _wanted(routed: RoutedPart, partitions: int, items: bool = False) -> list[tuple[str | None, str]]:
    """Tests, each with the slot for rows that pass; ``items``: whole events are among the rows."""
    if items:
        pairs = wanted_whole(routed, partitions) if routed.items else _wanted(routed, partitions)
        kind = WHOLE if routed.items else f"NOT {WHOLE}"
        return [(kind if test is None else all_of([kind, test]), slot) for test, slot in pairs]
    part = routed.part
    slots = slots_of(part, partitions)
    if part.divided:
        tests = [leaf_filter(leaf, routed.unnamed) for leaf, position in routed.routes if not position]
        tests += [None] * routed.everything
        return [(any_passes(tests), str(slot)) for slot in slots] if tests else []
    if part.shards == 1 or part.begins:
        test = None if routed.everything else any_passes(leaf_filter(leaf, routed.unnamed) for leaf, _ in routed.routes)
        return [(test, in_time(part, shard, str(slot))) for shard, slot in enumerate(slots)]
    return [(test, one_of_slots(slots, shard)) for test, shard in _keyed(routed)]


def _keyed(routed: RoutedPart) -> list[tuple[str | None, str]]:
    """Tests, each with the shard of the key, for rows that pass."""
    wanted = []
    for place, column in PLACES.items():
        leaves = [leaf for leaf, position in routed.routes if position == place]
        if leaves:
            test = any_passes(leaf_filter(leaf, routed.unnamed) for leaf in leaves)
            wanted.append((test, shard_of(column, routed.part.shards)))
    return wanted


def _listed(routed: RoutedPart) -> list[tuple[str, str]]:
    """Tests, each with the slots for rows that pass: those of the row's term in the table of ``with_slots``."""
    pairs = []
    for lookup in routed.lookups:
        slots = _slots_by(routed, lookup)
        test = f"{slots} IS NOT NULL OR {PLACES[lookup.position]} IS NULL"
        asked = any_passes(leaf_filter(leaf, routed.unnamed) for leaf in lookup.leaves)
        pairs.append((test if asked is None else all_of([asked, test]), slots))
    return pairs


def _slots_by(routed: RoutedPart, lookup: Lookup) -> str:
    return f"slots_{routed.part.number}_{lookup.position}"


def with_slots(rows: DataFrame, parts: Iterable[RoutedPart], partitions: int) -> DataFrame:
    """The rows with the slots of their terms, for parts that have lookups: a table that is broadcast."""
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


def keys_of(routed: RoutedPart) -> str:
    """The term that routes a row to a shard of the part; null if none does."""
    keys = []
    for place, column in PLACES.items():
        leaves = [leaf for leaf, position in routed.routes if position == place]
        keys.append(value_if(any_passes(leaf_filter(leaf, routed.unnamed) for leaf in leaves), column))
    return f"coalesce({', '.join(keys)})"


def scanned(flat: DataFrame, routed: RoutedPart, shard: int, refusing: Sequence[RoutedPart] = ()) -> DataFrame:
    """The rows that a shard takes directly from the source, with no more columns than it needs.

    The predicate is a number: its place among ``predicates_of``; a single one is not sent at all.  ``refusing``: also
    the rows that are no events and that one of these parts may want, as dead letters in a column ``passed``.
    A slice of time has those of its time that are no terms; the first shard has all others.
    """
    part, read = routed.part, reads(routed.part, shard)
    asked = None if routed.everything else any_passes(leaf_filter(leaf, routed.unnamed) for leaf, _ in routed.routes)
    if part.begins or part.shards == 1:
        kept = asked
    else:
        owned = [(test, f"{own} = {shard}") for test, own in _keyed(routed)]
        kept = any_of(own if test is None else all_of([test, own]) for test, own in owned)
    tests = [test for test in (read, kept) if test is not None]
    columns = ["`end`", "start", "s", "o"]
    if any(leaf.stream for leaf, _ in routed.routes):
        columns.append("stream")
    predicates = predicates_of(routed)
    if not predicates:
        columns.append("p")
    elif len(predicates) > 1:
        codes = " ".join(f"WHEN p = {text(predicate)} THEN {n}Y" for n, predicate in enumerate(predicates[1:], 1))
        columns.append(f"CASE {codes} ELSE 0Y END AS p")
    if not refusing or (shard and not part.begins):
        return flat.where(all_of([*tests, f"NOT {is_wrong()}"])).selectExpr(*columns)
    wrong, pushed = _refused(refusing, read, asked, in_slice(part, shard), first=not shard)
    rows = flat.where(all_of([*pushed, any_of([wrong, all_of([f"NOT {is_wrong()}", *tests])])]))
    return rows.selectExpr(*columns, f"CASE WHEN {is_wrong()} THEN {dead_letter(flat)} END AS passed")


def _refused(
    refusing: Sequence[RoutedPart], read: str | None, asked: str | None, own: str, *, first: bool
) -> tuple[str, list[str]]:
    """The test of the rows that a shard gives as dead letters, and what lets a file reader leave rows out.

    The latter follows from the whole test, but only this has a form that a file reader understands.
    """
    maybe, pushed = (_asked_with(unknown, refusing, items=False) for unknown in (is_no_term, is_no_term_pushed))
    anywhere = is_wrong_anywhere()
    wrong = all_of([f"NOT {anywhere}", NO_TERMS, own, *([] if maybe is None else [maybe])])
    outside = [is_wrong_pushed()] if first else []
    if first:
        wanted = asked_by(refusing, 1)
        theirs = anywhere if wanted is None else all_of([anywhere, _may_be_asked(wanted, refusing, items=False)])
        wrong = any_of([theirs, wrong])
    tests = [] if read is None else [any_of([read, *outside])]
    if asked is not None and pushed is not None:
        tests.append(any_of([asked, pushed, *outside]))
    return wrong, tests


def predicates_of(routed: RoutedPart) -> tuple[str, ...]:
    """The predicates that a part reads, if they are few and constant; else none."""
    selected: dict[str, None] = {}
    for leaf, _ in routed.routes:
        terms = leaf_tests.predicates_of(leaf)
        if terms is None:
            return ()
        selected |= dict.fromkeys(terms)
    return tuple(selected) if not routed.everything and len(selected) <= _FEW else ()


def _all_slots(parts: Sequence[RoutedPart], partitions: int) -> list[int]:
    return [slot for routed in parts for slot in slots_of(routed.part, partitions)]


def asked_by(parts: Sequence[RoutedPart], partitions: int) -> str | None:
    """The test whether any of the parts asks for a row, if nulls are ignored; None if every row is asked for."""
    items = row_kinds(parts)[1]
    tests = [test for routed in parts for test, _ in _wanted(routed, partitions, items)]
    tests += [test for routed in parts for test in spread_tests(routed)]
    looked_up = [leaf for routed in parts for lookup in routed.lookups for leaf in lookup.leaves]
    return any_passes([*tests, *(leaf_filter(leaf, "") for leaf in looked_up)])


def wanted_by(parts: Sequence[RoutedPart], partitions: int) -> str | None:
    """The test whether any of the parts wants a row; None if every row is wanted."""
    asked = asked_by(parts, partitions)
    return None if asked is None else _kept(any_of([asked, _IS_END]), parts, items=row_kinds(parts)[1])


def _may_be_asked(test: str, parts: Sequence[RoutedPart], *, items: bool) -> str:
    """The test, or that one of these parts asks for a row if its nulls, and what is no term, are any terms."""
    asked = [_asked_with(unknown, parts, items=items) for unknown in (is_no_term, is_no_term_pushed)]
    return may_be(*(test if maybe is None else any_of([test, maybe]) for maybe in asked))


def _asked_with(unknown: Unknown, parts: Sequence[RoutedPart], *, items: bool) -> str | None:
    """The test whether a part that takes triples asks for a row, if what is no term is any term.

    ``items``: some rows are whole events.
    """
    of_triples = [routed for routed in parts if not routed.items]
    if any(routed.everything for routed in of_triples):
        return None
    leaves = [(leaf, routed.unnamed) for routed in of_triples for leaf, _ in routed.routes]
    leaves += [(leaf, "") for routed in of_triples for lookup in routed.lookups for leaf in lookup.leaves]
    asked = any_passes(leaf_filter(leaf, unnamed, unknown=unknown) for leaf, unnamed in leaves)
    return asked if asked is None or not items else all_of([asked, "item IS NULL"])


def _kept(test: str, parts: Sequence[RoutedPart], *, items: bool) -> str:
    """The test whether a row passes one of these parts, or is no event; ``items``: some rows are whole events.

    Whole events have no nulls, so their tests have results.
    """
    triples, whole = row_kinds(parts)
    kept = _may_be_asked(test, parts, items=items) if triples else test
    return any_of([kept, _WRONG_ITEM]) if whole else kept


_IS_END = f"p = {text(END_OF_STREAM)}"
_WRONG_ITEM = all_of([is_wrong(), "item IS NULL"])


def route(
    rows: DataFrame,
    parts: Sequence[RoutedPart],
    partitions: int,
    *,
    ending: bool,
    refusing: Sequence[RoutedPart] = (),
) -> DataFrame:
    """Flat events → the rows of the operator.  ``ending``: the row that ends the stream goes to EVERY_SLOT.

    If rows have a ``time``, unwanted rows are kept from the operator but not from the steps before it: see
    ``pipeline``.  ``refusing``: rows that are no events (``nulls``) and that one of these parts may want go through the
    first shard to the dead letters; others are left out.
    """
    items = "item" in rows.columns
    wanted = [pair for routed in parts for pair in _wanted(routed, partitions, items)]
    looked_up = [pair for routed in parts for pair in _listed(routed)]
    listed = [*looked_up, *(pair for routed in parts for pair in spread(routed, partitions))]
    one = len(wanted) == 1 and not listed
    rows = with_slots(rows, parts, partitions)
    wrong = _WRONG_ITEM if items else is_wrong()
    tests = [*(test for test, _ in (*wanted, *looked_up)), *(test for routed in parts for test in spread_tests(routed))]
    asked = any_passes(tests)
    # Among whole events, explode drops those without a slot: a filter would look for the same triples again.  On a
    # stream the filter decides which rows count for the watermark.
    if asked is not None and (ending or one or not items):
        kept = _kept(any_of([asked, _IS_END]) if ending else asked, parts, items=items)
        others = [routed for routed in refusing if routed not in parts]
        if items or others:
            theirs = wanted_by(others, partitions) if others and not items else None
            kept = any_of([kept, wrong if theirs is None else all_of([wrong, theirs])])
        rows = rows.where(any_of([kept, "`time` IS NULL"]) if "time" in rows.columns else kept)
    if not refusing:
        rows = rows.where(f"NOT {wrong}")
    # Each case is a test and the value for rows that pass it; the first test that a row passes decides.
    marks = [(wrong, PASSED)] if refusing else []
    marks += [(_IS_END, END)] if ending else []
    marks += [("retract", RETRACT)] if "retract" in rows.columns else []
    marks += [("item IS NOT NULL", ITEM)] if items else []
    slots = [(_IS_END, str(EVERY_SLOT))] if ending else []
    slots += [(wrong, str(_all_slots(parts, partitions)[0]))] if refusing else []
    if one:
        slot = _first([*slots, (None, wanted[0][1])])
    else:
        slot = _first([*((test, f"array({number})") for test, number in slots), (None, _targets(wanted, listed))])
    passed = "item" if items else "CAST(NULL AS STRING)"
    return rows.selectExpr(
        f"{slot if one else f'explode({slot})'} AS slot",
        f"CAST({_first([*((test, str(mark)) for test, mark in marks), (None, str(EVENT))])} AS INT) AS mark",
        # PySpark's pandas columns of integers become floats if there is a null.
        "coalesce(start, 0L) AS start",
        "coalesce(`end`, 0L) AS `end`",
        "stream",
        "s",
        "p",
        "o",
        f"{_first([(wrong, dead_letter(rows)), (None, passed)]) if refusing else passed} AS passed",
        f"{'arrived' if 'arrived' in rows.columns else _UNKNOWN} AS arrived",
    )


def _first(cases: Iterable[tuple[str | None, str]]) -> str:
    """The value of the first test that a row passes; a test of None passes every row."""
    text = ""
    for test, value in cases:
        if test is None:
            return f"CASE{text} ELSE {value} END" if text else value
        text += f" WHEN {test} THEN {value}"
    return f"CASE{text} END"


def _targets(wanted: Sequence[tuple[str | None, str]], listed: Sequence[tuple[str, str]] = ()) -> str:
    slots = ", ".join(value_if(test, slot) for test, slot in wanted)
    nothing = "CAST(array() AS array<int>)"
    more = [f", coalesce({value_if(test, some)}, {nothing})" for test, some in listed]
    return f"array_distinct(concat(array_compact(CAST(array({slots}) AS array<int>)){''.join(more)}))"


_UNKNOWN = "CAST(NULL AS BIGINT)"
"""The arrival number, if it is not known."""


def ends(parts: Sequence[RoutedPart], partitions: int, like: DataFrame) -> DataFrame:
    """The rows that end a batch: one for every shard."""
    nothing = [f"CAST(NULL AS STRING) AS {name}" for name in ("stream", "s", "p", "o", "passed")]
    times = [f"{LAST}L AS start", f"{LAST}L AS `end`"]
    rows = shards_of(parts, partitions, like)
    return rows.selectExpr("slot", f"{END} AS mark", *times, *nothing, f"{_UNKNOWN} AS arrived")


def shards_of(parts: Sequence[RoutedPart], partitions: int, like: DataFrame) -> DataFrame:
    """The slots of all shards."""
    slots = array(_all_slots(parts, partitions))
    return like.sparkSession.range(1).selectExpr(f"explode({slots}) AS slot")


def hand_on(
    out: DataFrame, parts: Sequence[RoutedPart], programs: Sequence[str], partitions: int, *, last: bool
) -> DataFrame:
    """The rows of one level as rows of the next: derived events are routed again, matches and the like pass through.

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
    everyone = _all_slots(parts, partitions)
    anyone = one_of_slots(everyone, f"CAST(pmod(crc32(coalesce(id, '')), {len(everyone)}) AS INT)")
    wanted: list[tuple[str | None, str]] = []
    for routed in parts:
        if routed.part.takes:
            own = f"program = {text(programs[routed.part.program])} AND {one_of('query', routed.part.takes)}"
            pairs = _wanted(routed, partitions)
            wanted += [(own if test is None else all_of([own, test]), slot) for test, slot in pairs]
    slots = _first([("passing", f"array({anyone})"), (None, _targets(wanted))]) if wanted else f"array({anyone})"
    return flat.selectExpr(
        f"explode({slots}) AS slot",
        f"CASE WHEN passing THEN {PASSED} WHEN retracted THEN {TAKEN_BACK} ELSE {DERIVED} END AS mark",
        # Nulls, which timeless matches have, would turn the whole column into floats.
        "coalesce(start, 0L) AS start",
        "coalesce(`end`, 0L) AS `end`",
        "stream",
        "s",
        "p",
        "o",
        "CASE WHEN passing THEN passed ELSE id END AS passed",
        f"{_UNKNOWN} AS arrived",
    )


__all__ = [
    "asked_by",
    "ends",
    "flat_events",
    "hand_on",
    "keys_of",
    "predicates_of",
    "route",
    "row_kinds",
    "scanned",
    "shards_of",
    "wanted_by",
    "with_plain_names",
]
