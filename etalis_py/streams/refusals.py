"""What is no stream, and what to give instead of it."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

from etalis_py.events import Event
from etalis_py.streams.drafting import Naming
from etalis_py.streams.records import as_dict, how_to_name, how_to_read, is_record
from etalis_py.streams.sources import Burst
from etalis_py.streams.stream import Stream
from etalis_py.streams.timing import Idle, Punctuation

_SIGNALS = (Punctuation, Idle, Burst)
ITEMS = (Event, *_SIGNALS)
_WANTED = (
    "give a list of event(':a :price 3', 5), the path or address of a stream, a table or frame, or a list of dicts, "
    "these with time=… and subject=…, or mapping=…; several by name, as {'clicks': clicks, 'buys': buys}"
)
MAPPED = "a mapping is for tables, frames, dicts, CSV, JSON lines, Parquet and Arrow"


def is_column(kind: type) -> bool:
    """Whether it is a class of arrays: of NumPy, Arrow, a series of pandas or polars."""
    array = hasattr(kind, "__arrow_c_array__") and not hasattr(kind, "schema")
    return array or any(hasattr(kind, name) for name in ("dtype", "to_frame", "num_chunks"))


def check_complete(naming: Naming) -> None:
    """Raise TypeError if a column is not named, and nobody drafts it."""
    if not naming.time or naming.subject == "":
        raise TypeError("name both columns, as time='at', subject='sensor'; subject=None makes a node of each row")


def check_items(items: Iterable[Any]) -> None:
    """Raise TypeError for the first of these items that is no event."""
    for number, item in enumerate(items, 1):
        if isinstance(item, _SIGNALS):
            raise TypeError(
                f"item {number} of the events is a {type(item).__name__}: tell the engine with advance(time)"
            )
        if not isinstance(item, Event):
            raise TypeError(f"item {number} of the events is none: {refusal_of_items(item, None)}")


def shown(given: object) -> str:
    """What was given, in a few characters on one line."""
    return f"{' '.join(reprlib.repr(given).split())} ({type(given).__name__})"


def refusal(given: Any) -> str:
    """What to give instead of something that is no stream."""
    if isinstance(given, Event):
        return f"{shown(given)} is a single event, not a stream: put it into a list, [event(…)]"
    if isinstance(given, (bytes, bytearray)):
        return "bytes are not read as they are; give them as a file: read_stream(io.BytesIO(data), format=…)"
    if is_record(given) and isinstance(given, dict):
        if given and all(isinstance(values, (list, tuple)) or is_column(type(values)) for values in given.values()):
            return (
                "this is a dict, and its values are lists, so it has columns: make a table of it, "
                "pyarrow.table(columns) or pandas.DataFrame(columns), and give it in place of the dict"
            )
        return f"a single dict is one record: put it into a list, [record], with {how_to_read([given])}"
    if is_column(type(given)):
        return f"{type(given).__name__} is no table: make a frame of it, with names for its columns, and give mapping=…"
    if type(given).__name__ == "LazyFrame":
        return "a LazyFrame of polars has no rows yet: give frame.collect(), with time=… and subject=…, or mapping=…"
    if hasattr(given, "__aiter__"):
        return (
            f"{shown(given)} is asynchronous, and nothing here waits for it: async for row in rows: "
            "engine.push(row, time=…, subject=…), or engine.push(event)"
        )
    if hasattr(given, "__await__"):
        return f"{shown(given)} is a coroutine that has not run: await it, and give what it returns"
    if hasattr(given, "queries") and hasattr(given, "explain"):
        return "expected a stream, found a program; the program comes first: run(program, stream)"
    return f"expected a stream of events, found {shown(given)}: {_WANTED}"


def refusal_of_items(item: Any, mapping: Any) -> str:
    """What to give instead of a list or iterator of such items."""
    if isinstance(item, ITEMS):
        return f"{MAPPED}; events are taken as they are: leave the mapping out"
    if isinstance(item, str):
        return (
            f"{reprlib.repr(item)} is a text, not an event: event(':a :price 3', 5) makes one of statements; a file is "
            "given by its name alone, several by a pattern or as merge([read_stream(…), read_stream(…)])"
        )
    if is_record(item):
        return f"{shown(item)} is a record, not an event: give records with {how_to_read([as_dict(item)])}"
    if isinstance(item, Stream):
        return "several streams are merged by time: from etalis_py.streams import merge; merge([…])"
    if hasattr(type(item), "__arrow_c_stream__") and not is_column(type(item)):
        return "give one table alone, several by the names of their streams: {'clicks': clicks, 'buys': buys}"
    if isinstance(item, (tuple, list)):
        return (
            f"{shown(item)} is no event: give event(':a :price 3', 5), or rows with names and a mapping, "
            "[dict(zip(names, row)) for row in rows]"
        )
    if mapping is not None:
        return f"{shown(item)} has no values by name: {how_to_name(item)}"
    return f"{shown(item)} is no event: {_WANTED}"


__all__ = ["ITEMS", "MAPPED", "check_complete", "check_items", "is_column", "refusal", "refusal_of_items", "shown"]
