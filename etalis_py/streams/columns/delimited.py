"""CSV → the flat form: Arrow cuts blocks of lines if every line is of the usual shape.

A usual line has as many cells as the header, each without quotes or entirely in quotes, and no line break in any.  A
block with any other line is cut by Python's csv module, and only rows that are none go through the row reader.
"""

from __future__ import annotations

import csv
import re
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from etalis_py.events.errors import StreamError
from etalis_py.streams.columns.mapped_tables import SourceRows, mapped
from etalis_py.streams.columns.merge_in_order import Chunk
from etalis_py.streams.columns.native_literals import Column, untyped
from etalis_py.streams.columns.shared_blocks import events_of
from etalis_py.streams.csv_mapping import (
    CsvRow,
    RowMapping,
    check_columns,
    csv_row_events,
    csv_rows,
    delimiter_of,
    header_columns,
)
from etalis_py.streams.elements import Item, StreamContext, in_lists
from etalis_py.streams.line_blocks import Block, line_blocks
from etalis_py.streams.sources import OpenedInput, decoded

BLOCK = 1 << 22
PART = 1 << 18


def csv_chunks(source: OpenedInput, mapping: RowMapping, context: StreamContext, tabs: bool) -> Iterator[Chunk]:
    """The events of a CSV file, in the order of its rows."""
    delimiter = delimiter_of(mapping, tabs)
    columns = list(mapping.columns)
    mapping = mapping.with_columns(columns)
    blocks = _Blocks(line_blocks(source, BLOCK, apart=context.blocks is not None, returns=True))
    for block in blocks:
        if not columns:
            whole, number = block.lines
            line, _, rest = whole.partition(b"\n")
            if _usual(line + b"\n", delimiter) and line.isascii() and line.strip():
                columns = header_columns(next(csv.reader([line.decode()], delimiter=delimiter, strict=True)))
                mapping = mapping.with_columns(columns)
                check_columns(columns, mapping, number)
                if not rest:
                    continue
                block = Block.of((rest, number + 1))
        usual = events_of(block, partial(_usual_rows, block, columns, delimiter, mapping, context), context)
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
            yield from mapped(_table_of(rows, columns, mapping, context), mapping, context)


class _Blocks:
    """The blocks of a file; one may be put back, in parts: whatever is unusual in it is in few of them."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        self._blocks = blocks
        self._parts: deque[Block] = deque()

    def __iter__(self) -> Iterator[Block]:
        return self

    def __next__(self) -> Block:
        return self._parts.popleft() if self._parts else next(self._blocks)

    def put_back(self, whole: bytes, number: int) -> int:
        """Put back a block, so that it comes next; returns in how many parts."""
        parts, first = [], 0
        while first < len(whole):
            last = whole.rfind(b"\n", first, first + PART) + 1 or whole.find(b"\n", first) + 1 or len(whole)
            part = whole[first:last]
            parts.append(Block.of((part, number)))
            number += part.count(b"\n") + part.count(b"\r") - part.count(b"\r\n")
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
    nothing = [""] * len(columns)
    cells = [row.cells if isinstance(row, CsvRow) and isinstance(row.cells, list) else [] for row in rows]
    odd = np.fromiter((len(row) < len(columns) for row in cells), bool, len(rows))
    if odd.any():
        cells = [row if len(row) >= len(columns) else nothing for row in cells]
    places = {name: place for place, name in enumerate(columns)}  # the last of several with one name
    terms = mapping.columns_of_terms
    made = {
        name: _cells(pa.array([row[places[name]] for row in cells], pa.string()), name in terms)
        for name in mapping.used
    }

    def by_rows(chosen: Sequence[int]) -> Iterator[Item]:
        return _by_rows([rows[place] for place in chosen], columns, mapping, context)

    return SourceRows(made, {}, len(rows), by_rows, odd)


@lru_cache
def _pattern(delimiter: str, breaks: bool) -> re.Pattern[bytes]:
    """Rows in which each cell is without quotes or entirely in quotes; ``breaks``: with line breaks in it."""
    mark = re.escape(delimiter.encode())
    quoted = rb'[^"]' if breaks else rb'[^"\r\n]'
    cell = rb'(?:"(?:' + quoted + rb'|"")*+"|[^"\r\n' + mark + rb"]*+)"
    return re.compile(rb"(?:" + cell + rb"(?:" + mark + cell + rb")*+\r?+\n)*+")


def _usual(lines: bytes, delimiter: str, *, breaks: bool = False) -> bool:
    """Whether every line is of the usual shape; ``breaks``: apart from line breaks in quotes."""
    if b"\0" in lines or lines.count(b"\r") != lines.count(b"\r\n"):
        return False
    return b'"' not in lines or _pattern(delimiter, breaks).fullmatch(lines) is not None


def _trimmed(lines: bytes, delimiter: bytes, width: int) -> bytes | None:
    """Lines without quotes, but not the blank ones, nor cells beyond the header's; None if one has too few cells."""
    kept = []
    for line in lines.split(b"\n"):
        if not line or line == b"\r":
            continue
        cells = line.count(delimiter) + 1
        if cells < width:
            return None
        kept.append(line if cells == width else delimiter.join(line.split(delimiter, width)[:width]))
    return b"\n".join((*kept, b""))


def _usual_rows(
    block: Block, columns: Sequence[str], delimiter: str, mapping: RowMapping, context: StreamContext
) -> Iterator[Chunk] | None:
    """The events of a block of lines, if it can be read as a table."""
    table = _table(*block.lines, columns, delimiter, mapping, context) if columns else None
    return None if table is None else mapped(table, mapping, context)


def _is_text(lines: bytes) -> bool:
    if lines.isascii():
        return True
    try:
        lines.decode()
    except UnicodeDecodeError:
        return False
    return True


def _table(
    lines: bytes, number: int, columns: Sequence[str], delimiter: str, mapping: RowMapping, context: StreamContext
) -> SourceRows | None:
    """A block of lines as a table; None if Arrow cannot read its rows, or a line is not UTF-8, also in columns that
    Arrow would leave out.
    """
    if not _is_text(lines):
        return None
    if not lines.endswith(b"\n"):
        lines += b"\n"
    if _usual(lines, delimiter):
        table = _read(lines, columns, delimiter, mapping)
        if table is None or table.num_rows != lines.count(b"\n"):
            trimmed = None if b'"' in lines else _trimmed(lines, delimiter.encode(), len(columns))
            table = _read(trimmed, columns, delimiter, mapping) if trimmed else None
            if table is not None and trimmed is not None and table.num_rows != trimmed.count(b"\n"):
                return None
    elif _usual(lines, delimiter, breaks=True):
        table = _read(lines, columns, delimiter, mapping, breaks=True)
    else:
        return None
    if table is None:
        return None
    a_line_each = table.num_rows == lines.count(b"\n")
    texts: list[bytes] = []
    rows: list[Row] = []

    def by_rows(chosen: Sequence[int]) -> Iterator[Item]:
        if a_line_each:
            if not texts:
                texts.extend(lines.split(b"\n"))
            some = [_rows(iter([(texts[place] + b"\n", number + place)]), delimiter)[0] for place in chosen]
            return _by_rows(some, columns, mapping, context)
        if not rows:
            rows.extend(_rows(iter([(lines, number)]), delimiter))
        return _by_rows([rows[place] for place in chosen], columns, mapping, context)

    terms = mapping.columns_of_terms
    places = {name: str(place) for place, name in enumerate(columns)}  # the last of several with one name
    cells = {name: _column(table, places[name], name in terms) for name in mapping.used}
    return SourceRows(cells, {}, table.num_rows, by_rows)


def _read(
    lines: bytes, columns: Sequence[str], delimiter: str, mapping: RowMapping, *, breaks: bool = False
) -> pa.Table | None:
    """The cells of lines, as Arrow reads them; None if it cannot."""
    if lines.startswith(BOM_UTF8):  # Arrow would drop the mark of UTF-8, here a character of a cell like any other
        return None
    places = {name: str(place) for place, name in enumerate(columns)}
    names = [str(place) for place in range(len(columns))]
    used = sorted({places[name] for name in mapping.used}) or names[:1]
    try:
        return arrow_csv.read_csv(
            pa.py_buffer(lines),
            arrow_csv.ReadOptions(use_threads=False, block_size=len(lines) + 1, column_names=names),
            arrow_csv.ParseOptions(
                delimiter=delimiter, quote_char='"' if b'"' in lines else False, newlines_in_values=breaks
            ),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(used, pa.string()),
                include_columns=used,
                strings_can_be_null=False,
                null_values=[],
            ),
        )
    except pa.ArrowInvalid:  # a row of another length
        return None


def _column(table: pa.Table, name: str, often: bool) -> Column:
    """A column of a table."""
    column = table.column(name).combine_chunks()
    return _cells(column.chunk(0) if isinstance(column, pa.ChunkedArray) else column, often)


def _cells(texts: pa.StringArray, often: bool) -> Column:
    """Texts as cells; ``often``: they repeat, unlike those of times."""
    return untyped(texts) if often else Column(pa.array(np.arange(len(texts), dtype=np.int32)), texts)
