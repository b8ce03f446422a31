"""CSV → the flat form: a compiled loop cuts blocks of lines into cells, and only rows that are none are read as rows.

Blocks with text that is not UTF-8, and the end of a cell that is open for long, are cut by Python's csv module.  Until
the loops are compiled, Arrow cuts blocks without quotes whose lines all have as many cells as the header.
"""

from __future__ import annotations

import csv
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from etalis_py.events.errors import StreamError
from etalis_py.numba_cache import ready
from etalis_py.streams.columns.mapped_tables import SourceRows, mapped
from etalis_py.streams.columns.merge_in_order import Chunk
from etalis_py.streams.columns.native_literals import Column, each_its_own, untyped
from etalis_py.streams.columns.shared_blocks import events_of
from etalis_py.streams.csv_mapping import RowMapping
from etalis_py.streams.csv_rows import (
    LONGEST_CELL,
    CsvRow,
    check_columns,
    csv_row_events,
    csv_rows,
    delimiter_of,
    header_columns,
    one_row,
)
from etalis_py.streams.elements import Item, StreamContext, in_lists
from etalis_py.streams.line_blocks import Block, Lines, line_blocks
from etalis_py.streams.sources import OpenedInput, count_lines, decoded

if TYPE_CHECKING:
    from etalis_py.streams.columns.csv_cells import CsvCells  # compiles

BLOCK = 1 << 22
PART = 1 << 18


def csv_chunks(source: OpenedInput, mapping: RowMapping, context: StreamContext, tabs: bool) -> Iterator[Chunk]:
    """The events of a CSV file, in the order of its rows."""
    delimiter = delimiter_of(mapping, tabs)
    columns = list(mapping.columns)
    mapping = mapping.with_columns(columns)
    apart, numbered = context.blocks is not None, not context.reads_ahead
    blocks = _Blocks(line_blocks(source, BLOCK, apart=apart, among=context.among, numbered=numbered, returns=True))
    for block in blocks:
        if not columns:
            whole, number = block.lines
            line, _, rest = whole.partition(b"\n")
            columns = _header(line, delimiter)
            if columns:
                mapping = mapping.with_columns(columns)
                check_columns(columns, mapping, number)
                if not rest:
                    continue
                block = Block.of((rest, number + 1))
        read = partial(_in_columns, blocks, block, columns, delimiter, mapping, context)
        usual = events_of(block, read, context)
        if usual is not None:
            yield from usual
            continue
        if blocks.put_back(*block.lines) > 1:
            continue
        rows = _rows((more.lines for more in blocks), delimiter)
        while not columns and rows:
            header = rows.pop(0)
            if isinstance(header, CsvRow) and not isinstance(header.cells, csv.Error):
                columns = header_columns(header.cells)
                mapping = mapping.with_columns(columns)
                check_columns(columns, mapping, header.line)
            else:
                yield from in_lists(_by_rows([header], columns, mapping, context))
        if rows:
            yield from _events(_table_of(rows, columns, mapping, context), mapping, context)


def _events(table: SourceRows, mapping: RowMapping, context: StreamContext) -> Iterator[Chunk]:
    """The events of a table.  Cells beyond the header are noted, unless an error stops the stream before them."""
    last: float = inf
    try:
        yield from mapped(table, mapping, context)
    except StreamError as error:
        last = error.line
        raise
    finally:
        if 0 < table.surplus < last:
            context.surplus = min(table.surplus, context.surplus or table.surplus)


def _header(line: bytes, delimiter: str) -> list[str]:
    """The columns that the first line names, if the header is all of it."""
    if not line.isascii() or not line.strip() or b"\r" in line[:-1]:
        return []
    try:
        return header_columns(next(csv.reader([line.decode()], delimiter=delimiter, strict=True)))
    except csv.Error:  # such as a cell that goes on in the next line
        return []


class _Blocks:
    """The blocks of a file; one may be put back, in parts: whatever is unusual in it is in few of them."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        self._blocks = blocks
        self._parts: deque[Block] = deque()
        self._begun: Lines | None = None

    def __iter__(self) -> Iterator[Block]:
        return self

    def __next__(self) -> Block:
        block = self._parts.popleft() if self._parts else next(self._blocks, None)
        if self._begun is not None:
            lines, number = self._begun
            self._begun = None
            return Block.of((lines if block is None else lines + block.lines[0], number))
        if block is None:
            raise StopIteration
        return block

    def continue_with(self, lines: bytes, number: int) -> None:
        """Put lines before the next block: a row that has begun at the end of one."""
        self._begun = lines, number

    def put_back(self, whole: bytes, number: int) -> int:
        """Put back a block, so that it comes next; returns in how many parts."""
        parts, first = [], 0
        while first < len(whole):
            last = whole.rfind(b"\n", first, first + PART) + 1 or whole.find(b"\n", first) + 1 or len(whole)
            part = whole[first:last]
            parts.append(Block.of((part, number)))
            number += count_lines(part, returns=True)
            first = last
        self._parts.extendleft(reversed(parts))
        return len(parts)


Row = CsvRow | StreamError


def _rows(blocks: Iterator[tuple[bytes, int]], delimiter: str) -> list[Row]:
    """The rows of a block, and what follows up to the end of a row; and lines that are not text, in their places."""
    errors: deque[StreamError] = deque()
    texts = (("".join(text for text, _ in decoded(*block, errors.append, returns=True)), block[1]) for block in blocks)
    rows: list[Row] = []
    for row in csv_rows(texts, delimiter, to_end=False):
        if isinstance(row, CsvRow):
            while errors and errors[0].line <= row.line:
                rows.append(errors.popleft())
            rows.append(row)
    return [*rows, *errors]


def _by_rows(
    rows: Sequence[Row], columns: Sequence[str], mapping: RowMapping, context: StreamContext
) -> Iterator[Item]:
    """What the row reader makes of rows."""
    for row in rows:
        if isinstance(row, StreamError):
            context.report(row)
        else:
            yield from csv_row_events(row, columns, mapping, context)


def _table_of(rows: Sequence[Row], columns: Sequence[str], mapping: RowMapping, context: StreamContext) -> SourceRows:
    """Rows as a table; those that are none are odd."""
    nothing, width = [""] * len(columns), len(columns)
    cells = [row.cells if isinstance(row, CsvRow) and isinstance(row.cells, list) else [] for row in rows]
    odd = np.fromiter((len(row) < width for row in cells), bool, len(rows))
    if odd.any():
        cells = [row if len(row) >= width else nothing for row in cells]
    more = (row.line for row, found in zip(rows, cells, strict=True) if len(found) > width and any(found[width:]))
    places = {name: place for place, name in enumerate(columns)}  # the last of several with one name
    terms = mapping.columns_of_terms
    made = {
        name: _cells(pa.array([row[places[name]] for row in cells], pa.string()), name in terms)
        for name in mapping.used
    }

    def by_rows(chosen: Sequence[int]) -> Iterator[Item]:
        return _by_rows([rows[place] for place in chosen], columns, mapping, context)

    return SourceRows(made, {}, len(rows), by_rows, odd, next(more, 0))


def _in_columns(
    blocks: _Blocks, block: Block, columns: Sequence[str], delimiter: str, mapping: RowMapping, context: StreamContext
) -> Iterator[Chunk] | None:
    """The events of a block of lines, if it can be read as a table."""
    if not columns:
        return None
    lines, number = block.lines
    if not _is_text(lines):
        return None
    if not lines.endswith(b"\n"):
        lines += b"\n"
    if not ready():
        table = _by_arrow(lines, number, columns, delimiter, mapping, context)
    elif delimiter in '"\r\n' or not delimiter.isascii():
        table = None
    else:
        from etalis_py.streams.columns.csv_cells import cut_csv  # takes a while to import

        cells = cut_csv(lines, number, delimiter, [name in mapping.used for name in columns])
        if cells.rest < len(lines):
            # A process that reads this block for others is not asked what comes after it.
            handed_over = context.blocks is not None and block.place is not None
            if handed_over or not len(cells.rows) or len(lines) - cells.rest > PART:
                return None
            blocks.continue_with(lines[cells.rest :], cells.rest_line)
        table = _cut_table(cells, columns, delimiter, mapping, context)
    return None if table is None else _events(table, mapping, context)


def _is_text(lines: bytes) -> bool:
    if lines.isascii():
        return True
    try:
        lines.decode()
    except UnicodeDecodeError:
        return False
    return True


def _cut_table(
    cells: CsvCells, columns: Sequence[str], delimiter: str, mapping: RowMapping, context: StreamContext
) -> SourceRows:
    """Rows that were cut as a table."""

    def by_rows(chosen: Sequence[int]) -> Iterator[Item]:
        rows = [one_row(lines.decode(), number, delimiter) for lines, number in map(cells.row, chosen)]
        return _by_rows(rows, columns, mapping, context)

    terms, places = mapping.columns_of_terms, _places(columns)
    made = {name: _cells(cells.column(places[name]), name in terms) for name in mapping.used}
    return SourceRows(made, {}, len(cells.rows), by_rows, cells.odd, cells.surplus)


def _by_arrow(
    lines: bytes, number: int, columns: Sequence[str], delimiter: str, mapping: RowMapping, context: StreamContext
) -> SourceRows | None:
    """Lines as a table, without compiled loops; None if one is blank or long, has quotes or another number of cells."""
    if b'"' in lines or lines.startswith(BOM_UTF8):  # Arrow would drop the mark of UTF-8, here a character of a cell
        return None
    texts = lines.split(b"\n")[:-1]
    if count_lines(lines, returns=True) != len(texts):
        return None
    if len(lines) > LONGEST_CELL and max(map(len, texts)) > LONGEST_CELL:  # perhaps in one cell, and Arrow has no limit
        return None
    table = _read(lines, columns, delimiter, mapping)
    if table is None or table.num_rows != len(texts):
        return None

    def by_rows(chosen: Sequence[int]) -> Iterator[Item]:
        some = [one_row(f"{texts[place].decode()}\n", number + place, delimiter) for place in chosen]
        return _by_rows(some, columns, mapping, context)

    terms, places = mapping.columns_of_terms, _places(columns)
    (batch,) = table.combine_chunks().to_batches()
    cells = {name: _cells(batch.column(str(places[name])), name in terms) for name in mapping.used}
    return SourceRows(cells, {}, table.num_rows, by_rows)


def _places(columns: Sequence[str]) -> dict[str, int]:
    """The places of columns by their names: the last of several with one name."""
    return {name: place for place, name in enumerate(columns)}


def _read(lines: bytes, columns: Sequence[str], delimiter: str, mapping: RowMapping) -> pa.Table | None:
    """The cells of lines, as Arrow reads them; None if it cannot."""
    places = _places(columns)
    used = sorted(str(places[name]) for name in mapping.used) or ["0"]
    try:
        return arrow_csv.read_csv(
            pa.py_buffer(lines),
            arrow_csv.ReadOptions(
                use_threads=False, block_size=len(lines) + 1, column_names=[str(n) for n in range(len(columns))]
            ),
            arrow_csv.ParseOptions(delimiter=delimiter, quote_char=False),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(used, pa.string()),
                include_columns=used,
                strings_can_be_null=False,
                null_values=[],
            ),
        )
    except pa.ArrowInvalid:  # a row of another length
        return None


def _cells(texts: pa.StringArray, often: bool) -> Column:
    """Texts as cells; ``often``: they repeat, unlike those of times."""
    return untyped(texts) if often else each_its_own(texts)
