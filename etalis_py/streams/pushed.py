"""Records that come one by one: those of the same columns are read by the same mapping, and all have one clock.

``Engine.push`` comes here, so a mapping is read, or made of the names of columns, only for the first record of a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from etalis_py.events.clock import Clock
from etalis_py.events.errors import StreamError, warn_caller
from etalis_py.streams.drafting import Naming
from etalis_py.streams.elements import Item, StreamContext
from etalis_py.streams.formats import json_reading
from etalis_py.streams.jsonl import JsonOptions
from etalis_py.streams.options import ReadOptions
from etalis_py.streams.reader import context_of
from etalis_py.streams.records import as_dict, native_cell, record_event_items
from etalis_py.streams.samples import record_samples

_SOURCE = "the record"
_KINDS = 100
"""The number of kinds of records that are remembered."""


class PushedRecords:
    """Reads pushed records; ``shown`` is called with the clock of the first one.

    ``check`` is called with the ties of a mapping before it is used.  ``prefixes`` are known in mappings; the empty one
    begins the names of columns.
    """

    def __init__(
        self, shown: Callable[[Clock], None], check: Callable[[str], None], prefixes: Mapping[str, str]
    ) -> None:
        self._shown, self._check, self._prefixes = shown, check, prefixes
        self._clock: Clock | None = None
        self._mapping: Any = None
        self._by_mapping: tuple[StreamContext, JsonOptions] | None = None
        self._by_columns: dict[Any, tuple[StreamContext, JsonOptions]] = {}

    def change_prefixes(self, prefixes: Mapping[str, str]) -> None:
        """Read the next records by other prefixes."""
        self._prefixes, self._by_mapping = prefixes, None
        self._by_columns.clear()

    def items(self, given: Any, mapping: Any, naming: Naming) -> list[Item]:
        """The events of a record, by the mapping or else by the columns that are named."""
        record = as_dict(given)
        try:
            context, reading = self._of_mapping(mapping) if mapping is not None else self._of_columns(record, naming)
            lists = {*context.lists}
            items = list(record_event_items(record, 0, context, reading))
        except StreamError as error:
            raise error.at(_SOURCE, 0, repr(given)) from None
        if context.lists != lists:
            warn_caller(context.left_out)
        if self._clock is None and context.times.clock is not None:
            self._clock = context.times.clock
            self._shown(self._clock)
        return items

    def _of_mapping(self, mapping: Any) -> tuple[StreamContext, JsonOptions]:
        if self._by_mapping is None or self._mapping != mapping:
            opened = self._opened(mapping)
            self._check(opened[0].ties)
            self._by_mapping = opened
            self._mapping = deepcopy(mapping) if isinstance(mapping, dict) else mapping
        return self._by_mapping

    def _of_columns(self, record: dict[Any, Any], naming: Naming) -> tuple[StreamContext, JsonOptions]:
        kind = (naming, *record)
        found = self._by_columns.get(kind)
        if found is None:
            found = self._opened(naming.mapping(record_samples([record]), _SOURCE))
            if record.get(naming.time) not in (None, ""):  # the spelling of its time is known
                if len(self._by_columns) >= _KINDS:
                    self._by_columns.clear()
                self._by_columns[kind] = found
        return found

    def _opened(self, mapping: Any) -> tuple[StreamContext, JsonOptions]:
        options = ReadOptions(mapping=mapping, clock=self._clock, prefixes=self._prefixes)
        context = context_of(options, _SOURCE)
        return context, replace(json_reading(options, context), cell=native_cell)
