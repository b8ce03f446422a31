"""Tables from outside, checked before anything looks into their buffers.

Arrow takes offsets, lengths and texts from a file as they are: with a wrong offset the process ends, or the bytes of
another value come out.  Each batch is checked once, in the columns that are used.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, TypeVar

import pyarrow as pa

from etalis_py.events.errors import StreamError

T = TypeVar("T")
FAILURES = (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError)
"""What Arrow raises if a file or a stream is damaged; ``pa.ArrowException`` includes its KeyError and MemoryError."""
DAMAGED = "is it cut off or damaged? fetch it again, or have the program that made it write it again"


def unreadable(error: Exception) -> StreamError:
    """The error to show if a table cannot be read on."""
    return StreamError(f"the table cannot be read to its end: {first_line(error)}", hint=DAMAGED)


def first_line(error: Exception) -> str:
    """What Arrow says, in one line."""
    if isinstance(error, UnicodeDecodeError):
        return f"a name or a text is not UTF-8 ({error.reason} at byte {error.start + 1})"
    if isinstance(error, pa.ArrowMemoryError):
        return f"it asks for more memory than there is ({error})"
    return (str(error.args[0]) if error.args else str(error)).strip().partition("\n")[0]


def guarded(action: Callable[[], T]) -> T:
    """The result of reading; what Arrow raises becomes a ``StreamError``."""
    try:
        return action()
    except StreamError:
        raise
    except FAILURES as error:
        raise unreadable(error) from None


def checked_names(schema: pa.Schema) -> list[str]:
    """The names of the columns; the same name twice is no error as long as nobody uses it."""
    return guarded(lambda: list(schema.names))


def checked(batches: Iterable[Any], used: Container[str]) -> Iterator[pa.RecordBatch]:
    """The batches with only the columns that are used; an error names the one that is damaged."""
    each = iter(batches)
    while (batch := guarded(lambda: next(each, None))) is not None:
        yield _checked(batch, used)


def _checked(batch: pa.RecordBatch, used: Container[str]) -> pa.RecordBatch:
    places = [place for place, name in enumerate(checked_names(batch.schema)) if name in used]
    names = [batch.schema.names[place] for place in places]
    for name in names:
        if names.count(name) > 1:
            raise StreamError(f"two columns are called {name!r}", hint="rename one of them, or leave it out")
    columns = []
    for place, name in zip(places, names, strict=True):
        try:
            column = batch.column(place)
            _check_zone(column.type)
            column.validate(full=True)
        except FAILURES as error:
            raise StreamError(f"the column {name!r} is damaged: {first_line(error)}", hint=DAMAGED) from None
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=names) if names else batch.select([])


def _check_zone(kind: pa.DataType) -> None:
    """The name of a time zone is read late, and may be damaged as well."""
    while pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    if pa.types.is_timestamp(kind):
        kind.tz  # noqa: B018 (raises UnicodeDecodeError)
