"""The fixed programs and streams of these tests, and what the embedded engine says of them."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from etalis_py import Engine, Event, compile
from etalis_py.spark.stream_runs import write_events

PREDICATES = ("<urn:p>", "<urn:q>", "<urn:r>")
SECOND = 1_000_000

SHARDED = {
    "seq": "SELECT * { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z }",
    "recent": "SELECT * { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } USING POLICY recent",
    "within": "SELECT ?x ?z { { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } } WITHIN PT5S",
    "two positions": "SELECT * { ?x <urn:p> ?y } SEQ { ?y <urn:q> ?z }",
    "tagged": "SELECT * { ?x <urn:p> ?y } SEQ { ?y <urn:p> ?z }",
    "absence": "SELECT * { ?x <urn:p> ?y FILTER NOT EXISTS { ?x <urn:q> ?z } }",
    "optional": "SELECT * { ?x <urn:p> ?y } OPTIONALSEQ { ?x <urn:q> ?z }",
    "counts": "SELECT ?x (COUNT(*) AS ?n) { ?x <urn:p> ?y } GROUP BY ?x",
    "rules": "CONSTRUCT { ?x <urn:d> ?z } { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } "
    "SELECT * { ?x <urn:d> ?y } SEQ { ?x <urn:p> ?z }",
    "two levels": "CONSTRUCT { ?z <urn:d> ?x } { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } "
    "SELECT * { ?x <urn:d> ?y } OPTIONALSEQ { ?x <urn:r> ?z }",
    "points": "CONSTRUCT { ?x <urn:d> ?z } AT END { { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } } WITHIN 6 SECONDS "
    "SELECT * { { ?x <urn:d> ?y } NEXT { ?x <urn:d> ?z } } WITHIN 6 SECONDS",
    "points of two levels": "CONSTRUCT { ?z <urn:d> ?x } AT END { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } "
    "SELECT * { ?x <urn:d> ?y } NEXT { ?x <urn:d> ?z }",
    "hidden rule": "CONSTRUCT { ?y <urn:d> ?z } { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } "
    "SELECT * { ?x <urn:d> ?y } SEQ { ?x <urn:r> ?z }",
    "next, during and not": "SELECT * { ?x <urn:p> ?y } NEXT { ?x <urn:q> ?z } "
    "SELECT * { ?x <urn:p> ?y } DURING { ?x <urn:q> ?z } "
    "SELECT * { { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } } NOT { ?x <urn:r> ?w } "
    "SELECT * { ?x <urn:p> ?y } SEQ NOT { ?x <urn:r> ?w } SEQ { ?x <urn:q> ?z }",
    "deadline and runs": "SELECT * { ?x <urn:p> ?y } SEQ NOT { ?x <urn:q> ?z } WITHIN 3 SECONDS "
    "SELECT * { ?x <urn:p> ?y } REPEAT 2 OR MORE BY ?x NOT { ?x <urn:r> ?w } LONGEST AS (COUNT(*) AS ?n)",
    "runs that are over": "SELECT * { ?x <urn:p> ?y } REPEAT 1 OR MORE BY ?x GAP 2 SECONDS MAXIMAL AS (COUNT(*) AS ?n) "
    "SELECT * { ?x <urn:p> ?y } REPEAT 2 OR MORE BY ?x MAXIMAL AS (LAST(?y) AS ?l) "
    "SELECT * { ?x <urn:p> ?y } REPEAT 1 TO 3 BY ?x UNTIL { ?x <urn:q> ?z } AS (FIRST(?y) AS ?f)",
    "optional parts": "SELECT * { ?x <urn:p> ?y } SEQ OPTIONAL { ?x <urn:q> ?z } SEQ { ?x <urn:r> ?w } "
    "SELECT * { ?x <urn:p> ?y } SEQ OPTIONAL { ?x <urn:q> ?z } WITHIN 3 SECONDS",
    "late, and late again": "CONSTRUCT { ?y <urn:d> ?x } { ?x <urn:p> ?y } SEQ NOT { ?x <urn:q> ?z } WITHIN 3 SECONDS "
    "SELECT * { ?x <urn:d> ?y } SEQ NOT { ?x <urn:r> ?z } WITHIN 2 SECONDS",
    "triple terms": "CONSTRUCT { ?x <urn:d> <<( ?x <urn:p> ?y )>> } { ?x <urn:p> ?y } "
    "SELECT * { ?x <urn:d> <<( ?x <urn:p> ?y )>> } SEQ { ?x <urn:q> ?z }",
    "recursion": "CONSTRUCT { ?x <urn:d> ?y } { ?x <urn:p> ?y } "
    "CONSTRUCT { ?x <urn:d> ?z } { ?x <urn:d> ?y } SEQ { ?x <urn:q> ?z }",
}
GLOBAL = {
    "ask": "ASK { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z }",
    "never": "ASK { ?x <urn:none> ?y }",
    "total": "SELECT (COUNT(*) AS ?n) { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z }",
    "limit": "SELECT * { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } LIMIT 3",
    "limited rule": "CONSTRUCT { ?x <urn:d> ?z } { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } LIMIT 3 "
    "SELECT * { ?x <urn:d> ?y } SEQ { ?x <urn:p> ?z }",
    "no key": "SELECT * { ?x <urn:p> ?y } SEQ { ?d <urn:q> ?y }",
    "hidden": "SELECT ?y { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z }",
    "path": "SELECT * { ?x <urn:p>+ ?y }",
    "deadline and runs of all": "SELECT * { ?x <urn:p> ?y } SEQ NOT { ?w <urn:q> ?z } WITHIN 1 SECOND "
    "SELECT * { ?x <urn:p> ?y } REPEAT 2 TO 3 WHERE (?y != PREVIOUS(?y)) AS (LAST(?x) AS ?l)",
    "since the start": "SELECT * { { START } NEXT { ?x <urn:q> ?y } } "
    "SELECT * { { START } SEQ NOT { ?x <urn:q> <urn:x3> } WITHIN 4 SECONDS BIND (1 AS ?n) } "
    "SELECT * { { { START } UNION { ?x <urn:p> ?z } } SEQ { ?x <urn:q> ?y } } ",
    "started, then sharded": "CONSTRUCT { ?x <urn:d> ?y } { { START } NEXT { ?x <urn:q> ?y } } "
    "SELECT * { ?x <urn:d> ?y } SEQ { ?x <urn:p> ?z }",
    "unshared, then sharded": "CONSTRUCT { ?x <urn:d> ?d } { ?x <urn:p> <urn:x1> } SEQ { ?d <urn:q> <urn:x2> } "
    "SELECT * { ?x <urn:d> ?n } SEQ { ?x <urn:q> ?z }",
    "global, then sharded": "CONSTRUCT { <urn:x1> <urn:d> ?n } { SELECT (COUNT(*) AS ?n) { ?x <urn:p> ?y } } "
    "SELECT * { ?x <urn:d> ?n } SEQ { ?x <urn:q> ?z }",
}
PROGRAMS = SHARDED | GLOBAL


def stream(seed: int, size: int = 60) -> list[Event]:
    """Events ordered by end: ties, intervals, several triples; few nodes, so that much joins."""
    rng = random.Random(seed)
    found = []
    for _ in range(size):
        end = rng.randrange(1, 30)
        triples = tuple(
            (f"<urn:x{rng.randrange(5)}>", rng.choice(PREDICATES), f"<urn:x{rng.randrange(5)}>")
            for _ in range(rng.choice((1, 1, 2)))
        )
        found.append(Event((end - rng.choice((0, 0, 1))) * SECOND, end * SECOND, triples))
    return sorted(found, key=lambda e: e.end)


def embedded(text: str, events: Iterable[Event], **options: Any) -> list[str]:
    """The ids of the embedded engine's matches."""
    if options.keys() <= {"policy"}:
        return list(_without_background(text, tuple(events), **options))
    return _ids(text, events, **options)


@cache
def _without_background(text: str, events: tuple[Event, ...], **options: Any) -> list[str]:
    """Many tests ask for the same: those of different numbers of shards, of cuts, and of ways to read."""
    return _ids(text, events, **options)


def _ids(text: str, events: Iterable[Event], **options: Any) -> list[str]:
    engine = Engine(compile(text + "\n"), **options)
    ordered = sorted(events, key=lambda e: e.end)
    return sorted(m.id for m in [*engine.push_all(ordered), *engine.close()])


def ids_by_program(rows: Iterable[object]) -> dict[str, list[str]]:
    """program → the ids of its matches; nothing may be late."""
    found: dict[str, list[str]] = {}
    for row in rows:
        assert row["kind"] != "dead_letter", row  # type: ignore[index]
        if row["kind"] == "match":  # type: ignore[index]
            found.setdefault(row["program"], []).append(row["id"])  # type: ignore[index]
    return {name: sorted(ids) for name, ids in found.items()}


def solutions(rows: Iterable[object]) -> dict[tuple[str, str], tuple[object, ...]]:
    """Program and id of every SELECT's match → its query, bindings, start and end."""
    return {
        (r["program"], r["id"]): (r["query"], r["bindings"], r["start"], r["end"])  # type: ignore[index]
        for r in rows
        if r["kind"] == "match" and r["bindings"] is not None  # type: ignore[index]
    }


def expected_solutions(programs: dict[str, str], events: Sequence[Event]) -> dict[tuple[str, str], tuple[object, ...]]:
    """The same of the embedded engine."""
    found: dict[tuple[str, str], tuple[object, ...]] = {}
    for name, text in programs.items():
        engine = Engine(compile(text + "\n"))
        for m in [*engine.push_all(events), *engine.close()]:
            if m.triples is None and "ASK" not in text:
                found[name, m.id] = (m.query, m.bindings, m.start_us, m.end_us)
    return found


def expected(programs: dict[str, str], events: Sequence[Event]) -> dict[str, list[str]]:
    found = {name: embedded(text, events) for name, text in programs.items()}
    return {name: ids for name, ids in found.items() if ids}


def write_batches(folder: Path, batches: Sequence[Sequence[Event]], first: int = 0) -> None:
    """One file a batch, in an order that Spark's file source keeps."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, batch in enumerate(batches, first):
        part = folder.parent / f"{number}.part"
        write_events(part, batch, first=number << 40)
        os.utime(part, (1_700_000_000 + number, 1_700_000_000 + number))
        part.rename(folder / f"{number:04d}.parquet")
