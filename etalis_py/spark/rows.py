"""Routed rows, as a shard takes them from Spark's frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pandas as pd

from etalis_py.spark.answers import Row
from etalis_py.spark.schema import COLUMNS, DERIVED, END, EVENT, ITEM, PASSED
from etalis_py.spark.shard import Plain
from etalis_py.spark.spec import SparkError


def plain_events(frame: pd.DataFrame) -> list[Plain]:
    """The events of a frame of routed rows, all of mark EVENT."""
    ends = frame["end"]
    starts = frame["start"]
    if ends.dtype.kind == "f" or starts.dtype.kind == "f":
        raise SparkError(
            "an event has no start or no end: fill these columns, or leave the event out, before matches()"
        )
    triples = zip(frame["s"].tolist(), frame["p"].tolist(), frame["o"].tolist(), strict=True)
    streams = frame["stream"].tolist()
    return [
        (start, end, (triple,), stream or "", "")
        for start, end, triple, stream in zip(starts.tolist(), ends.tolist(), triples, streams, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Sorted:
    """A frame of routed rows by kind; ``in_order`` has events and derived events together, as they came."""

    in_order: list[Plain]
    derived: list[Plain]
    ended: bool
    passed: list[Row]


def sorted_out(frame: pd.DataFrame, *, apart: bool) -> Sorted:
    """What a frame of routed rows holds; ``apart``: ``in_order`` is without the derived events."""
    marks = frame["mark"]
    if (marks == EVENT).all():
        return Sorted(plain_events(frame), [], False, [])
    passed = [passed_row(text) for text in frame["passed"][marks == PASSED].tolist()]
    items = _items(frame[marks == ITEM])
    events = marks == EVENT
    derived = _events(frame[marks == DERIVED]) if apart else []
    if not apart:
        events |= marks == DERIVED
    return Sorted(_events(frame[events]) + items, derived, bool((marks == END).any()), passed)


def _events(frame: pd.DataFrame) -> list[Plain]:
    return plain_events(frame) if len(frame) else []


class _Item(msgspec.Struct):
    """The rest of a whole event: the name of its graph and its triples."""

    g: str = ""
    t: tuple[tuple[str, str, str], ...] = ()


_ITEMS = msgspec.json.Decoder(_Item)


def _items(frame: pd.DataFrame) -> list[Plain]:
    """Whole events, in the order of the frame."""
    if not len(frame):
        return []
    columns = (frame[c].tolist() for c in ("start", "end", "stream", "passed"))
    found = []
    for start, end, stream, text in zip(*columns, strict=True):
        rest = _ITEMS.decode(text)
        found.append((start, end, rest.t, stream or "", rest.g))
    return found


def passed_row(text: str) -> Row:
    """A row of an earlier level, which came as JSON."""
    found: dict[str, Any] = msgspec.json.decode(text)
    triples = found.get("triples")
    if triples is not None:
        # JSON leaves out what is null; dead letters may have it.
        found["triples"] = tuple((t.get("s"), t.get("p"), t.get("o")) for t in triples)
    return tuple(found.get(column) for column in COLUMNS)
