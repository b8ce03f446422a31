"""What a stream gives: its items, counters, clock, and the error that ended it; read in bulk or row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from etalis_py.streams import Stream, StreamError
from etalis_py.streams.columns.flat_form import events_of


class Refused:
    """Keeps what was refused."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def refused(self, error: StreamError) -> None:
        self.errors.append(str(error))


def outcome(open_stream: Callable[[], Stream], *, bulk: bool) -> tuple[Any, ...]:
    """Everything that can be seen of a stream, whichever way it is read."""
    items: list[Any] = []
    error = ""
    stream = None
    try:
        stream = open_stream()
        if bulk:
            for chunk in stream.chunks(large=True):
                items += events_of(chunk) if isinstance(chunk, pa.RecordBatch) else chunk
        else:
            items += stream
    except StreamError as failure:
        error = str(failure)
    return items, stream and stream.counters, stream and stream.clock, error
