"""CSV → the flat form: Arrow cuts blocks of lines if every line is of the usual shape.

A usual line has as many cells as the header, each without quotes or entirely in quotes, and no line break in any.  A
block with any other line goes through the row reader.
"""

from __future__ import annotations

import csv
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from etalis_py.streams.columns.mapped import Chunk, Table, mapped
from etalis_py.streams.columns.native import Column, untyped
from etalis_py.streams.csv_mapping import RowMapping, check_columns, csv_events, header_columns, row_events
from etalis_py.streams.elements import Context, Item, in_lists
from etalis_py.streams.sources import Source, byte_blocks, decoded, whole_lines

BLOCK = 1 << 22


def csv_chunks(source: Source, mapping: RowMapping, context: Context, tabs: bool) -> Iterator[Chunk]:
    """The events of a CSV file, in the order of its rows."""
    delimiter = mapping.delimiter or ("\t" if tabs else ",")
    columns = list(mapping.columns)
    blocks = (block for block in whole_lines(source, byte_blocks(source, BLOCK), returns=True) if block is not None)

    def by_rows(first: tuple[bytes, int], *, to_end: bool = False) -> Iterator[Chunk]:
        """Read a block with the row reader, and what follows up to the end of a row (or to the end)."""
        block = decoded(*first, context.report, returns=True)

        def texts() -> Iterator[tuple[str, int]]:
            nonlocal block
            yield from block
            for more in blocks:
                block = decoded(*more, context.report, returns=True)
                yield from block

        # The row reader stops where a row ends with a text, of which a block has several if it is not all UTF-8.
        for text in iter(lambda: next(block, None), None):
            yield from in_lists(csv_events(chain([text], texts()), mapping, context, tabs, columns, to_end=to_end))

    for whole, number in blocks:
        body, at = whole, number
        if not columns:
            line, _, body = whole.partition(b"\n")
            at += 1
            if not _usual(line + b"\n", delimiter) or not line.isascii() or not line.strip():
                yield from by_rows((whole, number), to_end=True)
                return
            columns = header_columns(next(csv.reader([line.decode()], delimiter=delimiter, strict=True)))
            check_columns(columns, mapping, number)
        if not body:
            continue
        table = _table(body, at, columns, delimiter, mapping, context)
        if table is None:
            yield from by_rows((body, at))
        else:
            yield from mapped(table, mapping, context)


@lru_cache
def _pattern(delimiter: str) -> re.Pattern[bytes]:
    mark = re.escape(delimiter.encode())
    cell = rb'(?:"(?:[^"\r\n]|"")*+"|[^"\r\n' + mark + rb"]*+)"
    return re.compile(rb"(?:" + cell + rb"(?:" + mark + cell + rb")*+\r?+\n)*+")


def _usual(lines: bytes, delimiter: str) -> bool:
    """Whether every line is of the usual shape, and UTF-8, also in columns that Arrow would leave out.

    At the beginning Arrow would drop the mark of UTF-8, here a character of a cell like any other.
    """
    if (
        not _is_text(lines)
        or lines.startswith(BOM_UTF8)
        or b"\0" in lines
        or lines.count(b"\r") != lines.count(b"\r\n")
    ):
        return False
    return b'"' not in lines or _pattern(delimiter).fullmatch(lines) is not None


def _is_text(lines: bytes) -> bool:
    if lines.isascii():
        return True
    try:
        lines.decode()
    except UnicodeDecodeError:
        return False
    return True


def _table(
    lines: bytes, number: int, columns: Sequence[str], delimiter: str, mapping: RowMapping, context: Context
) -> Table | None:
    """A block of lines as a table; None if the row reader must see it."""
    if not lines.endswith(b"\n"):
        lines += b"\n"
    if not _usual(lines, delimiter):
        return None
    size = lines.count(b"\n")
    places = {name: str(place) for place, name in enumerate(columns)}  # the last of several with one name
    names = [str(place) for place in range(len(columns))]
    used = sorted({places[name] for name in mapping.used}) or names[:1]
    try:
        table = arrow_csv.read_csv(
            pa.py_buffer(lines),
            arrow_csv.ReadOptions(use_threads=False, block_size=len(lines) + 1, column_names=names),
            arrow_csv.ParseOptions(delimiter=delimiter, quote_char='"' if b'"' in lines else False),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(used, pa.string()),
                include_columns=used,
                strings_can_be_null=False,
                null_values=[],
            ),
        )
    except pa.ArrowInvalid:  # a row of another length
        return None
    if table.num_rows != size:
        return None

    def by_rows(chosen: Sequence[int]) -> Iterator[Item]:
        texts = lines.decode().split("\n")
        for place in chosen:
            (cells,) = csv.reader([texts[place]], delimiter=delimiter, strict=True)
            row = dict(zip(columns, cells, strict=False))
            yield from row_events(row, mapping, context, number + place, ",".join(cells))

    terms = mapping.columns_of_terms
    cells = {name: _column(table, places[name], name in terms) for name in mapping.used}
    return Table(cells, {}, size, by_rows)


def _column(table: pa.Table, name: str, often: bool) -> Column:
    """A column; ``often``: its cells repeat, unlike those of times."""
    column = table.column(name).combine_chunks()
    texts = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    return untyped(texts) if often else Column(pa.array(np.arange(len(texts), dtype=np.int32)), texts)
