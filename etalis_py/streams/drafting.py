"""Rows without a mapping: they are read by the columns that the caller names, and otherwise by a draft.

Every column is a property of its name, ``:price``.  What was not given but drafted is told in one line.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from etalis_py.events.errors import StreamError, warn_caller
from etalis_py.streams.draft import ROW, ROWS, Samples, draft, in_one_line
from etalis_py.streams.draft_times import doubtful_days, exceptions_to_times
from etalis_py.streams.jsonl import has_triples
from etalis_py.streams.objects import is_object
from etalis_py.streams.records import Untyped, as_dict, is_record
from etalis_py.streams.samples import file_samples, is_plain, needs_mapping, record_samples
from etalis_py.streams.sources import expand
from etalis_py.streams.templates import HOLE


class Naming(NamedTuple):
    """The columns that have the time and the subject, "" where that is not known; a subject of None: one per row."""

    time: str = ""
    subject: str | None = ""

    def __bool__(self) -> bool:
        return bool(self.time) or self.subject != ""

    def mapping(self, samples: Samples, source: str, notice: Callable[[str], None] | None = None) -> dict[str, Any]:
        """The mapping for rows like these; what it guesses is told to ``notice``, or is a warning."""
        try:
            made = self.drafted(samples)
        except StreamError as error:
            raise error.at(source, 0) from None
        tell = notice or warn_caller
        if guess := self.told(made):
            tell(f"{source}: there is no mapping, so one is drafted: {guess}")
        for remark in (*samples.remarks, *doubts(made, samples)):
            tell(f"{source}: {remark}")
        return {**made, **samples.dialect(), "rest": True}

    def undrafted(self, source: str) -> dict[str, Any] | None:
        """The mapping for rows that have yet to come, None if no column is named: nothing is guessed of them."""
        if not self:
            return None
        if not self.time or self.subject == "":
            raise StreamError(
                "its rows have yet to come, so the columns of the time and of the subject cannot be guessed",
                source=source,
                hint="name both of them, or give a mapping",
            )
        subject = ROW if self.subject is None or self.subject.startswith("_:") else f":{{{self.subject}}}"
        return {"time": f"{{{self.time}}}", "subject": subject, "rest": True}

    def drafted(self, samples: Samples) -> dict[str, Any]:
        """The mapping, whatever is not named being guessed."""
        return draft(samples.cells, samples.moments, time=self.time, subject=self.subject)

    def told(self, made: dict[str, Any]) -> str:
        """What was guessed in a mapping, "" if nothing was."""
        return "" if self.time and self.subject != "" else in_one_line(made)


def doubts(made: dict[str, Any], samples: Samples) -> list[str]:
    """What a draft takes for granted of the spelling of times and of lists, though it might be otherwise.

    Also the columns that no mapping can name, so that they are left out.
    """
    times = made.get("time", ())
    columns = [HOLE.findall(one)[0] for one in ((times,) if isinstance(times, str) else times)]
    told = (doubtful_days(samples.cells.get(name, ()), made.get("time_format", "")) for name in columns[:1])
    odd = () if columns else exceptions_to_times(samples.cells)
    lists = dict.fromkeys(name.partition("[]")[0] for name in samples.cells if "[]" in name)
    return [
        *(remark for remark in told if remark),
        *odd,
        *names_with_braces(samples.cells),
        *(f"each element of {name} makes a row, which repeats the keys around the list" for name in lists),
    ]


def names_with_braces(names: Iterable[str]) -> Iterator[str]:
    """What is told of columns that are left out because of their names, which no mapping can spell."""
    for name in names:
        if "{" in name or "}" in name:
            yield f"the column {name!r} is left out: rename it, because {{ and }} stand around columns in mappings"


UNNAMED = Naming()


def naming_of(time: Any, subject: Any, mapping: Any = None) -> Naming:
    """The columns that a caller named, if these are names, and if no mapping says the same."""
    for key, name in (("time", time), ("subject", subject)):
        if not isinstance(name, str) and not (name is None and key == "subject"):
            raise TypeError(
                f"{key}= is the name of a column, not {name!r} ({type(name).__name__}); a time of two columns, and "
                "whatever else is not as simple, is for mapping=…"
            )
    naming = Naming(time, subject)
    if naming and mapping is not None:
        raise TypeError("a mapping says which columns have the time and the subject: leave time= and subject= out")
    return naming


def of_file(
    path: str | os.PathLike[str], naming: Naming, notice: Callable[[str], None] | None = None
) -> dict[str, Any] | None:
    """A mapping for a file, or for the files of a pattern by the first of them, if it has plain rows.

    Nothing else has columns to name.
    """
    first = expand(os.fspath(path))[0]
    if os.path.isfile(first) and (naming or needs_mapping(first)):
        try:
            return naming.mapping(file_samples(first), os.fspath(path), notice)
        except StreamError as error:
            raise error.at(first, 0) from None
    if naming and (is_object(first) or os.path.exists(first)) and not os.path.isdir(first):
        raise StreamError(
            "columns are named for files of CSV, JSON, Parquet or Arrow",
            source=os.fspath(path),
            hint="give a mapping here: etalis map FILE drafts one",
        )
    return None


def of_frame(
    frame: Any, naming: Naming, notice: Callable[[str], None] | None = None
) -> tuple[Any, dict[str, Any] | None]:
    """A frame that can still be read, and a mapping for it if its rows are plain."""
    import pyarrow as pa  # takes a while to import

    from etalis_py.streams.columns.checked_tables import checked, checked_names
    from etalis_py.streams.columns.frames import open_frame
    from etalis_py.streams.columns.sample_rows import frame_samples

    reader = open_frame(frame)
    names = checked_names(reader.schema)
    try:
        if not names or (not naming and not is_plain(names)):
            return reader, None
    except StreamError as error:
        raise error.at("the table", 0) from None
    first = next((batch for batch in reader if len(batch)), None)
    if first is None:  # so nothing is drafted, but the columns that are named must be there
        return reader, naming.drafted(Samples({name: [] for name in names}))
    whole = pa.RecordBatchReader.from_batches(reader.schema, chain((first,), reader))
    samples = frame_samples(next(iter(checked([first.slice(0, ROWS)], names))))
    for name in (naming.time, naming.subject):
        if name in names and name not in samples.cells:
            raise StreamError(
                f"the column {name!r} is of type {reader.schema.field(name).type}, whose values are no literals",
                source="the table",
                hint="make texts, numbers or timestamps of it; to_timestamp() makes timestamps of pandas' periods",
            )
    return whole, naming.mapping(samples, "the table", notice)


def named_rows(given: Any) -> Any:
    """The rows of a cursor of SQL (PEP 249), whose description names their columns; anything else as it is."""
    if not hasattr(type(given), "fetchone") or not getattr(given, "description", None):
        return given
    names = [column[0] for column in given.description]
    return (row if is_record(row) else dict(zip(names, row, strict=True)) for row in given)


def of_records(
    records: Iterable[Any],
    naming: Naming,
    notice: Callable[[str], None] | None = None,
    name: str = "the records",
) -> tuple[Iterable[Any], dict[str, Any] | None]:
    """Rows with names that can still be read, and a mapping for them if they are plain; ``name``: what messages say.

    An iterator may have to wait for its rows, so only the first of a list are looked at, and only one of an iterator.
    """
    if isinstance(records, Collection):
        some = list(islice(records, ROWS))
    else:
        rows = iter(records)
        some = list(islice(rows, 1))
        whole = chain(some, rows)
        records = Untyped(whole) if isinstance(records, (csv.DictReader, Untyped)) else whole
    known = [as_dict(one) for one in some if is_record(one)]
    if not known or (not naming and has_triples(known[0])):
        return records, None
    return records, naming.mapping(record_samples(known), name, notice)
