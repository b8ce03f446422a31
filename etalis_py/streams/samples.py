"""The columns of a source and cells of its first rows: what a mapping can be drafted from (``draft``).

Cells stand row by row, as texts, "" where one is empty.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from itertools import islice
from typing import Any

import msgspec

from etalis_py.events.clock import is_number
from etalis_py.events.errors import StreamError
from etalis_py.streams.csv_rows import header_columns
from etalis_py.streams.draft import ROWS, Samples
from etalis_py.streams.formats import MARK, check_named, sniff, table_batches
from etalis_py.streams.json_arrays import is_array, texts_of
from etalis_py.streams.jsonl import NO_JSON, Number, has_triples, no_json
from etalis_py.streams.record_keys import TIME_KEYS, elements_of, named_values
from etalis_py.streams.sources import LONGEST_LINE, MAPPED, OpenedInput, format_of
from etalis_py.streams.templates import WITH_COMMA, WITH_SIGN, from_amount

_BYTES = 1 << 18
_DELIMITERS = ",;\t|"
_FLAT = ("end", "s", "p", "o")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+")
_decode = msgspec.json.Decoder(float_hook=Number).decode


def file_samples(name: str | os.PathLike[str]) -> Samples:
    """The samples of a file; StreamError if no mapping is for it."""
    with _opened(name) as (source, format):
        if format in ("parquet", "arrow"):
            from etalis_py.streams.columns.checked_tables import checked, checked_names
            from etalis_py.streams.columns.sample_rows import frame_samples

            schema, batches = table_batches(source, format)
            batch = next(checked(batches, checked_names(schema)), None)
            if batch is None or not len(batch):
                raise StreamError("no rows found")
            return frame_samples(batch)
        head = _head_of(source)
        text = head.decode("utf-8", "replace")
        if format == "jsonl":
            return object_samples(text)
        if format != "csv" or (not format_of(source.name) and not _is_table(text)):
            empty = text.strip() in ("", "[]")
            raise StreamError("no rows found" if empty else "a mapping is for CSV, JSON, Parquet and Arrow")
        return csv_samples(text, source.name)


def needs_mapping(name: str | os.PathLike[str]) -> bool:
    """Whether a file has plain rows: CSV, objects without ``triples``, or a table that is not of the flat form."""
    with _opened(name) as (source, format):
        if format in ("parquet", "arrow"):
            return is_plain(table_batches(source, format)[0].names)
        if format == "jsonl":
            first = next(_objects(_head_of(source).decode("utf-8", "replace")), None)
            return first is not None and not has_triples(first)
        named = format_of(source.name) == "csv"
        return named or (format == "csv" and _is_table(source.peek().decode("utf-8", "replace")))


def first_object(name: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The first object of a file of JSON, if it has any."""
    with _opened(name) as (source, format):
        return next(_objects(_head_of(source).decode("utf-8", "replace")), None) if format == "jsonl" else None


def is_plain(names: Iterable[str]) -> bool:
    """Whether a table with these columns is nothing like the flat form (``end``, ``s``, ``p``, ``o``).

    Rows with the keys of JSON lines are refused: they would be read as if their triples were a text.
    """
    names = list(names)
    if "triples" in names and set(TIME_KEYS) & set(names):
        raise StreamError(
            "its rows have a time and triples, as JSON lines do, and tables do not",
            hint="give the rows as dicts, such as frame.to_dict('records'), or write them as JSON lines; if triples is "
            "a value like any other, name the columns of time and subject",
        )
    return len(set(_FLAT) & set(names)) < len(_FLAT) - 1


@contextmanager
def _opened(name: str | os.PathLike[str]) -> Iterator[tuple[OpenedInput, str]]:
    source = OpenedInput(name)
    try:
        format = format_of(source.name) or sniff(source.peek())
        if format in ("csv", "jsonl"):
            check_named(source.peek(MARK))
        yield source, format if format in MAPPED or format_of(source.name) else "csv"
    except StreamError as error:
        raise error.at(source.name, 0) from None
    finally:
        source.close()


def _head_of(source: OpenedInput) -> bytes:
    """The first bytes of a file, however long its lines are: a header and a row, up to the end of a line.

    Of an array at least the first element, perhaps with a part of another one.
    """
    parts: list[bytes] = []
    size, ends, array = 0, 0, False
    try:
        while size < _BYTES or (size < LONGEST_LINE and not (_has_element(parts) if array else ends > 1)):
            for _ in range(len(parts) if array else 1):  # as much again, because what there is is parsed anew
                more = source.read_some(_BYTES)
                if not more:
                    return b"".join(parts)
                parts.append(more)
                size, ends = size + len(more), ends + more.count(b"\n")
            array = is_array(parts[0])
        head = b"".join(parts)
        return head if array else head[: head.rfind(b"\n") + 1] or head
    except (OSError, EOFError) as error:
        raise source.failure(error) from None


def _has_element(parts: list[bytes]) -> bool:
    return next(iter(texts_of(b"".join(parts).decode("utf-8", "replace"), cut_off=True)), None) is not None


def _is_table(text: str) -> bool:
    """Does a text without a telling name begin with a header of several columns, and a row of as many?"""
    header, _, rest = text.partition("\n")
    row = rest.partition("\n")[0]
    return any(header.count(mark) and header.count(mark) == row.count(mark) for mark in _DELIMITERS)


def csv_samples(text: str, name: str) -> Samples:
    """The samples of a text of CSV."""
    first = text.partition("\n")[0]
    _refuse_what_is_no_header(first)
    delimiter = max(_DELIMITERS, key=lambda mark: (first.count(mark), mark == ","))
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row][: ROWS + 1]
    if not rows:
        raise StreamError("the file is empty")
    columns = header_columns(rows[0])
    if not rows[1:]:
        raise StreamError(
            "no rows found below the header",
            hint="a mapping is drafted from rows: begin when there is one, or give a mapping",
        )
    usual = delimiter == ("\t" if ".tsv" in name.lower() else ",")
    whole = [row for row in rows[1:] if len(row) >= len(columns)]
    cells = {column: [row[i] for row in whole] for i, column in enumerate(columns)}
    commas = [name for name, column in cells.items() if _has_commas(column)]
    decimal = "," if commas and delimiter != "," else ""
    remarks = [*_header_remarks(columns, whole), *(_comma_remark(name, cells[name], decimal) for name in commas)]
    remarks += [remark for name, column in cells.items() if (remark := _sign_remark(name, column))]
    return Samples(
        cells,
        delimiter="" if usual else delimiter,
        decimal=decimal,
        remarks=tuple(remarks),
        refused=tuple(_names_twice(columns)),
    )


def _refuse_what_is_no_header(first: str) -> None:
    """Raise StreamError if the first line of CSV is JSON, or Excel's ``sep=;``."""
    line = first.removeprefix("\ufeff").strip()
    if line.startswith(('{"', '[{"')):
        raise StreamError("this is JSON, and not CSV", hint="give the file an ending that tells: .jsonl")
    if line.lower().startswith("sep=") and len(line) <= len("sep=;"):
        raise StreamError(f"the first line, {line}, tells Excel the delimiter: it names no columns", hint="remove it")


def _header_remarks(columns: list[str], rows: list[list[str]]) -> Iterator[str]:
    if any(map(is_number, columns)):
        yield (
            f"the first line, {', '.join(columns)}, is taken for the names of the columns; if it is a row, write a "
            "line of names above it"
        )
    for place, name in enumerate(columns):
        if not name and any(row[place].strip() for row in rows):
            yield f"column {place + 1} has no name and is left out: give it one in the first line"


def _names_twice(columns: list[str]) -> Iterator[str]:
    for place, name in enumerate(columns):
        if name and columns.index(name) < place:
            yield f"two columns are called {name}: rename one of them, as no mapping can tell them apart"


def _has_commas(column: list[str]) -> bool:
    """Whether a column has numbers, some of them with a comma."""
    there = [cell.strip() for cell in column if cell.strip()]
    return any("," in cell for cell in there) and all(map(WITH_COMMA.fullmatch, there))


def _comma_remark(name: str, column: list[str], decimal: str) -> str:
    shown = next(cell for cell in column if "," in cell)
    if not decimal and all(map(_THOUSANDS.fullmatch, (cell.strip() for cell in column if "," in cell))):
        return (
            f"{name} has commas in its numbers, as in {shown}: such values are texts; take the commas out if they part "
            'thousands, and write decimal = "," in a mapping if they are decimal ones'
        )
    read = (
        "they are read as numbers"
        if decimal
        else 'its values are texts; decimal = "," in a mapping reads them as numbers'
    )
    return f"{name} has decimal commas, as in {shown}: {read}"


def _sign_remark(name: str, column: list[str]) -> str:
    """What is told of amounts of money and of percentages, "" if a column has something else."""
    there = [cell.strip() for cell in column if cell.strip()]
    if not there or not all(map(WITH_SIGN.fullmatch, there)):
        return ""
    number = max((from_amount(cell, "?x") for cell in there), key=len)  # that of decimal commas, if any cell has one
    return (
        f"{name} has a sign beside its numbers, as in {there[0]}: such values are texts; leave the sign out, or take "
        f"the number in the query: {number}"
    )


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The objects of JSON lines, or of an array; the last may be cut off."""
    for line in _texts(text):
        try:
            record = _decode(line)
        except NO_JSON:
            continue
        if isinstance(record, dict):
            yield record


def _texts(text: str, *, cut_off: bool = True) -> Iterable[str]:
    text = text.removeprefix("\ufeff")
    return texts_of(text, cut_off=cut_off) if is_array(text[:1000].encode()) else text.split("\n")


def object_samples(text: str) -> Samples:
    """The samples of JSON lines, or of an array of objects."""
    samples = record_samples(_objects(text))
    if not samples.cells:
        raise _no_rows(text)
    if "triples" in samples.cells:
        raise StreamError("these lines have their triples: they need no mapping")
    return samples


def _no_rows(text: str) -> StreamError:
    """Why there is no object: the first thing that is not JSON, unless the text may have been cut off there."""
    try:
        for line in _texts(text, cut_off=False) if len(text) < _BYTES else ():
            if line.strip():
                _decode(line)
    except NO_JSON as error:
        return no_json(line, error)
    except StreamError as error:
        return error
    return StreamError(
        "no rows found", hint="write one JSON object per line, or one array of objects, each with a value"
    )


def _apart(record: Mapping[Any, Any]) -> list[dict[Any, Any]]:
    """A record for each element of its first list of objects, with names such as ``items[].sku``."""
    record = dict(record)
    lists = (k for k, v in record.items() if isinstance(v, list) and v and all(isinstance(one, dict) for one in v))
    for key in lists:
        names = dict.fromkeys(f"{key}[].{inner}" for element in record[key] for inner in element)
        return elements_of(record, names)
    return [record]


def _sample(value: Any) -> str:
    """A value of Python as the text of a cell; a NaN differs even from itself, and pandas' NA cannot be compared."""
    try:
        if value is None or value != value:
            return ""
    except (TypeError, ArithmeticError):
        return ""
    return str(value).lower() if value in (True, False) else str(value)


def record_samples(records: Iterable[Mapping[Any, Any]]) -> Samples:
    """The samples of dicts; the keys of one inside another are written with dots, ``sensor.id``.

    A list of dicts makes a row of each of them: ``items[].sku``.
    """
    cells: dict[str, list[str]] = {}
    moments: dict[str, None] = {}
    lists: dict[str, None] = {}
    count = 0
    for row in islice((row for record in records for row in _apart(record)), ROWS):
        for name, value in named_values(row):
            if isinstance(value, (Mapping, list)):
                if isinstance(value, list):
                    lists[name] = None
                continue
            column = cells.setdefault(name, [])
            column += [""] * (count - len(column))
            column.append(_sample(value))
            if isinstance(value, date):
                moments[name] = None
        count += 1
    for column in cells.values():
        column += [""] * (count - len(column))
    inside = [column for name, column in cells.items() if "[]" in name]
    made = [row for row in range(count) if not inside or any(column[row] for column in inside)]
    outer = {name[:end] for name in cells for end in (name.find("."), name.find("[]")) if end > 0}
    usable = {name: column for name, column in cells.items() if any(column) or name not in outer}
    left_out = tuple(name for name in lists if name not in outer)
    return Samples({name: [column[row] for row in made] for name, column in usable.items()}, [*moments], lists=left_out)
