"""Messages of JSON → the flat form, many at once: joined by line breaks they are read as the lines of a file are.

A message that is no usual line (``json_lines``) is read by itself, as it is where few messages come at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from etalis_py.events import Event
from etalis_py.streams.columns.flat_form import event_starts, events_of
from etalis_py.streams.columns.json_lines import Lines, nothing_of, object_table, triple_rows
from etalis_py.streams.columns.mapped_tables import ReadRows, rows_of, with_others
from etalis_py.streams.columns.merge_in_order import with_events
from etalis_py.streams.columns.row_nodes import has_row_nodes, makes_blanks
from etalis_py.streams.columns.turtle import forms_of
from etalis_py.streams.elements import Item, StreamContext
from etalis_py.streams.jsonl import JsonOptions, is_turtle

ByPlaces = Callable[[Sequence[int]], Iterator[Item]]


def can_read(context: StreamContext, reading: JsonOptions) -> bool:
    """Whether messages are read in columns.

    They are not by a JSON-LD context, nor by a mapping that makes blank nodes or several events of a message; and not
    before the first message has shown what is made of it.
    """
    if reading.context or context.close_on_message:
        return False
    mapping = reading.mapping
    if mapping is None:
        return True
    several = any("[]" in name for name in mapping.used)
    blanks = makes_blanks(mapping) and not has_row_nodes(mapping)
    return not several and not blanks and bool(context.counters.events or context.unmade)


class JsonMessages:
    """Reads messages in columns."""

    def __init__(self, context: StreamContext, reading: JsonOptions) -> None:
        self._context, self._reading = context, reading
        self._nothing = nothing_of(reading.mapping)
        self._forms = forms_of(reading.names, is_turtle(reading.prefixes))

    def read(self, values: Sequence[bytes], odd: Sequence[int], by_places: ByPlaces) -> ReadRows:
        """The events of messages; ``by_places`` reads some one by one, as it has to read those that are ``odd``."""
        lines, records, marked = self._decoded(values, odd, by_places)
        if lines.mapping is None:
            rows, sure = triple_rows(records, marked, self._context, self._forms)
        else:
            table, mapping = object_table(records, marked, lines.mapping, lines)
            rows, sure = rows_of(table, mapping, self._context)
        return with_others(rows, sure, by_places, self._context)

    def _decoded(
        self, values: Sequence[bytes], odd: Sequence[int], by_places: ByPlaces
    ) -> tuple[Lines, Sequence[Any], Any]:
        """The messages as lines, their records, and which of them have to be read one by one."""
        whole = b"\n".join(values)
        others = {*odd}
        if others or whole.count(b"\n") >= len(values) or not all(values):
            others |= {place for place, value in enumerate(values) if b"\n" in value or not value.strip()}
            values = [self._nothing if place in others else value for place, value in enumerate(values)]
            whole = b"\n".join(values)
        lines = _Joined(whole, self._context, self._reading, by_places)
        records, marked = lines.records()
        if len(records) < len(values):  # a message of blanks is no line
            blank = [place for place, value in enumerate(values) if not value.strip()]
            return self._decoded(values, [*others, *blank], by_places)
        marked = marked.copy()
        marked[list(others)] = True
        return lines, records, marked


class _Joined(Lines):
    """Messages as lines; the row reader reads each as a message."""

    def __init__(self, whole: bytes, context: StreamContext, reading: JsonOptions, by_places: ByPlaces) -> None:
        super().__init__(whole, 1, context, reading)
        self._by_places = by_places

    def __call__(self, records: Sequence[int]) -> Iterator[Item]:
        return self._by_places(records)


def in_rows(read: ReadRows) -> Iterator[tuple[int, Event]]:
    """What was read in columns as events, each with the place of its message."""
    return zip(read.row[event_starts(read.batch)].tolist(), events_of(read.batch), strict=True)


def in_columns(read: ReadRows) -> tuple[pa.RecordBatch, Any]:
    """What was read as one batch, and an array with the place of its message for each event; there must be no
    retraction.
    """
    batch, row = read.batch, read.row
    alone = [(place, item) for place, items in read.others for item in items if isinstance(item, Event)]
    if alone:
        batch, row = with_events(batch, row, alone)
    return batch, row[event_starts(batch)]


__all__ = ["JsonMessages", "can_read", "in_columns", "in_rows"]
