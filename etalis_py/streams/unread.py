"""An iterator, opened without taking anything of it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from etalis_py.streams.drafting import UNNAMED, of_records
from etalis_py.streams.options import StreamOptions
from etalis_py.streams.reader import read_stream
from etalis_py.streams.records import Untyped, is_record
from etalis_py.streams.refusals import ITEMS, refusal_of_items
from etalis_py.streams.stream import Stream


class Unread:
    """The items of an iterator that nobody has touched yet: events, or, if ``reading`` is given, records to be drafted.

    The first item is looked at when it comes, the others of events cost nothing.  ``show`` is told how records spell
    their times.
    """

    source = "an iterator"

    def __init__(self, items: Iterator[Any], reading: StreamOptions | None) -> None:
        self._items, self._reading = items, reading
        self.show: Callable[[Callable[[int], int | str]], None] = lambda render: None

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._parts())

    def _parts(self) -> Iterator[Iterable[Any]]:
        for first in self._items:
            if self._reading is not None and is_record(first) and not isinstance(first, ITEMS):
                yield self._records(chain((first,), self._items), self._reading)
                return
            if not isinstance(first, ITEMS):
                raise TypeError(refusal_of_items(first, None))
            yield (first,)
            break
        yield self._items

    def _records(self, records: Iterator[Any], reading: StreamOptions) -> Stream:
        untyped = isinstance(self._items, csv.DictReader)
        given, mapping = of_records(Untyped(records) if untyped else records, UNNAMED)
        reading["mapping"] = mapping
        stream = read_stream(given, **reading)
        self.show(stream.render)
        return stream


__all__ = ["Unread"]
