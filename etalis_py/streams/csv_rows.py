"""CSV → rows, and the events of each by a mapping."""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from etalis_py.events.errors import StreamError
from etalis_py.streams.csv_mapping import RowMapping, row_events
from etalis_py.streams.elements import Item, StreamContext
from etalis_py.streams.sources import Block, Burst, now
from etalis_py.streams.timing import Idle

LONGEST_CELL = 1 << 22
"""Characters of a cell: a quote that is never closed makes one of all rows up to here."""


def csv_events(
    blocks: Iterable[Block], mapping: RowMapping, context: StreamContext, tabs: bool, columns: Sequence[str] = ()
) -> Iterator[Item]:
    """The events of each row; a bad row is reported and left out whole.

    ``columns`` are given if the header has been read already.
    """
    columns = list(columns or mapping.columns)
    mapping = mapping.with_columns(columns)
    for row in csv_rows(blocks, delimiter_of(mapping, tabs)):
        if not isinstance(row, CsvRow):
            yield row
        elif columns or isinstance(row.cells, csv.Error):
            yield from csv_row_events(row, columns, mapping, context)
        else:
            columns = header_columns(row.cells)
            mapping = mapping.with_columns(columns)
            check_columns(columns, mapping, row.line)


def delimiter_of(mapping: RowMapping, tabs: bool) -> str:
    """What is between the cells."""
    return mapping.delimiter or ("\t" if tabs else ",")


class CsvRow(NamedTuple):
    """A row that is not empty, and the line where it ends; or why it cannot be read."""

    line: int
    cells: list[str] | csv.Error


def csv_rows(blocks: Iterable[Block], delimiter: str, *, to_end: bool = True) -> Iterator[CsvRow | Item]:
    """The rows of CSV; silences and bursts pass.

    Without ``to_end`` the blocks are read up to the first of them that ends with a row.
    """
    before = marked = 0
    marks: deque[Item] = deque()  # marks between the rows
    begun = False  # a row has begun that the last block did not end

    def lines() -> Iterator[str]:
        nonlocal before, marked, begun
        quotes = 0
        first = True
        for block in blocks:
            if block is None or isinstance(block, Burst):
                if quotes % 2 == 0:
                    yield mark(block or Idle(now()))
                continue
            if first:
                before, first = block[1] - 1, False
            quotes += block[0].count('"')
            for line in io.StringIO(block[0], newline=""):
                begun = True
                yield line
            if not to_end and not begun:
                return

    def mark(item: Item) -> str:
        """Keep a mark and return an empty line: to the csv module that is not a row, so the loop below sees it at once.

        (Not inside a quoted cell, where it would be text.)
        """
        nonlocal marked
        marked += 1
        marks.append(item)
        return "\n"

    reader = _reader(lines(), delimiter)
    while True:
        begun = False
        cells: list[str] | csv.Error
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            cells = error
        if cells:
            yield CsvRow(before + reader.line_num - (0 if isinstance(cells, csv.Error) else marked), cells)
        elif marks:
            yield marks.popleft()


def _reader(lines: Iterable[str], delimiter: str) -> Any:
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))  # of the process: Python's own is 128 KB
    return csv.reader(lines, delimiter=delimiter, strict=True)


def one_row(text: str, number: int, delimiter: str) -> CsvRow:
    """The row that lines are, of which the first has this number; they are not blank."""
    reader = _reader(io.StringIO(text, newline=""), delimiter)
    try:
        cells: list[str] | csv.Error = next(reader)
    except csv.Error as error:
        cells = error
    return CsvRow(number - 1 + reader.line_num, cells)


def csv_row_events(row: CsvRow, columns: Sequence[str], mapping: RowMapping, context: StreamContext) -> Iterator[Item]:
    """The events of a row; a bad one is reported."""
    cells, line = row.cells, row.line
    if isinstance(cells, csv.Error):
        context.report(StreamError(f"this is not CSV: {cells}", line=line, hint="check the quotes"))
    elif len(cells) < len(columns):
        reason = f"a row of {len(cells)} cells where the header has {len(columns)}"
        context.report(StreamError(reason, line=line, text=",".join(cells)))
    else:
        if any(cells[len(columns) :]):
            context.surplus = context.surplus or line
        yield from row_events(dict(zip(columns, cells, strict=False)), mapping, context, line, ",".join(cells))


def header_columns(cells: Iterable[str]) -> list[str]:
    """The names of the columns."""
    return [cell.strip().lstrip("\ufeff") for cell in cells]


def check_columns(columns: list[str], mapping: RowMapping, line: int) -> None:
    absent = sorted(mapping.used - set(columns))
    if absent:
        raise StreamError(
            f"the mapping uses the column {absent[0]!r}, which the file does not have",
            line=line,
            hint=f"the columns are {', '.join(columns)}",
        )
    twice = sorted(name for name in mapping.used if columns.count(name) > 1)
    if twice:
        raise StreamError(f"two columns are called {twice[0]!r}", line=line, hint="rename one of them")
