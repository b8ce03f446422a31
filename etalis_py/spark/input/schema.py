"""The columns of events and of matches.

Events, one row per event (``EVENTS``) or per triple (``FLAT_EVENTS``).  ``start`` and ``end`` are microseconds since
the epoch, ``time`` is ``end`` as a timestamp (Spark's watermark needs one), terms are canonical N-Triples spellings,
``stream`` and ``graph`` IRIs in angle brackets or empty.  Two columns may be null or missing: if ``retract`` is true,
the event withdraws what an earlier one stated; ``arrived`` numbers events in order of arrival, which shows whether a
withdrawn event was stated before the withdrawal or again after it.

Matches, one row each, told apart by ``kind``:

=========== ========================================================================================================
match       ``query``, ``id`` and, as the query's form has it, ``bindings``, ``triples`` or ``boolean``; ``start`` and
            ``end`` are null for a timeless solution; ``retracted``: it takes back the match of the same id
dead_letter an event that came after its instant was over: ``triples``, ``stream``, ``start``, ``end``; ``detail``
            says why; ``retracted``: it was to withdraw something
metric      ``detail`` is a JSON object of numbers about the shard after a batch
=========== ========================================================================================================
"""

from __future__ import annotations

import pyarrow as pa

TRIPLE = "struct<s: string, p: string, o: string>"

EVENTS = (
    f"start long, end long, time timestamp, stream string, graph string, triples array<{TRIPLE}>, "
    "retract boolean, arrived long"
)
FLAT_EVENTS = (
    "start long, end long, time timestamp, stream string, graph string, s string, p string, o string, "
    "retract boolean, arrived long"
)

MATCHES = (
    "kind string, program string, query string, id string, bindings map<string, string>, "
    f"triples array<{TRIPLE}>, boolean boolean, start long, end long, stream string, retracted boolean, shard int, "
    "detail string"
)
# The input of an operator: one row per triple for one shard; ``mark`` says what kind of row it is. A whole event (mark
# ITEM, or RETRACT) has its graph and triples in ``passed``; a derived triple (DERIVED, TAKEN_BACK) has the id
# of its match there, if that may be taken back.
ROUTED = ("slot", "mark", "start", "end", "stream", "s", "p", "o", "passed", "arrived")
BETWEEN = "\x1e"
"""Separates the graph and the terms of a whole event; no term has it, because N-Triples escapes control characters."""
EVENT, END, PASSED, DERIVED, ITEM, RETRACT, TAKEN_BACK, CHANGE = 0, 1, 2, 3, 4, 5, 6, 7
NO_TERM = "no_term"
"""A further column of flat events: why one of the terms is null, for the dead letter."""
DELAY = "spark.watermarkDelayMs"
"""The metadata by which Spark recognizes a column of event times."""
GIVEN = "etalis.given"
"""The metadata of ``triples`` where a mapping makes them: the predicates, streams and subjects that events can have."""
COLUMNS_OF = "etalis.columns"
"""The metadata of ``end`` where events are made of other columns: those that start, end and subject are made of."""
READING = "etalis.reading"
"""The metadata of ``stream`` where rows are read by a specification: what must be the same after a restart."""
EVERY_SLOT = -1  # the slot of a row for all shards; packing copies the row to each of them

# The predicate of the row that ends a finite streaming run.
END_OF_STREAM = "<urn:etalis:end-of-stream>"
LAST = 2**63 - 1
STANDING = "<urn:etalis:standing-query>"
"""The predicate of a row that is not an event: the query of this name (s) has this text (o; empty: it is gone)."""
UPDATE = "update"
"""The predicate of a row that changes the background: o has, as JSON, the triples added to and removed from graph s."""

_TERM = pa.string()
ARROW_TRIPLE = pa.struct([("s", _TERM), ("p", _TERM), ("o", _TERM)])
ARROW_TRIPLES = pa.list_(ARROW_TRIPLE)
ARROW_EVENTS = pa.schema(
    [
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("stream", _TERM),
        ("graph", _TERM),
        ("triples", ARROW_TRIPLES),
        ("retract", pa.bool_()),
        ("arrived", pa.int64()),
    ]
)
ARROW_MATCHES = pa.schema(
    [
        ("kind", _TERM),
        ("program", _TERM),
        ("query", _TERM),
        ("id", _TERM),
        ("bindings", pa.map_(_TERM, _TERM)),
        ("triples", ARROW_TRIPLES),
        ("boolean", pa.bool_()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("stream", _TERM),
        ("retracted", pa.bool_()),
        ("shard", pa.int32()),
        ("detail", _TERM),
    ]
)
COLUMNS = tuple(ARROW_MATCHES.names)
