"""Lines of N-Quads → the places of canonical terms in bytes, one row for each statement, in bulk.

A line that is not usual (``scanning``) is read by itself, and its canonical terms are put behind the lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from etalis_py.events.errors import StreamError
from etalis_py.streams.columns import scanning
from etalis_py.streams.columns.flat_form import bytes_of
from etalis_py.streams.columns.gather_terms import gathered, respelled
from etalis_py.streams.columns.scanning import BEGIN, LINE, NOTHING, RESPELLED
from etalis_py.streams.quads import read_line
from etalis_py.streams.sources import decoded

_TAIL = b"\0\0\0\0"
CONSTANTS = (scanning.CLASSES, scanning.STRING, scanning.LANG_STRING, scanning.DIR_LANG_STRING)


@dataclass(slots=True)
class StatementRows:
    """Statements as rows of ``scanning.cut_lines`` into the bytes ``data``; and the errors in other lines, in order.

    ``LINE`` is the number of the line in the document.
    """

    data: Any
    rows: Any
    errors: list[StreamError]

    def text(self, row: int, place: int) -> str:
        """A term, or a whole line (``BEGIN``)."""
        begin, end = self.rows[row, place : place + 2].tolist()
        return self.data[begin:end].tobytes().decode()


def cut(parts: Sequence[bytes], numbers: Any, number: int, messages: bool | None) -> tuple[StatementRows, int]:
    """Cut lines: the first ones have these numbers, those after them count from ``number``.

    Also returns the number after the last line.
    """
    ending = b"" if parts[-1].endswith(b"\n") else b"\n"
    data = np.frombuffer(b"".join((*parts, ending, _TAIL)), np.uint8)
    size = int(np.count_nonzero(data == 10))
    rows, unusual = np.empty((size, scanning.WIDTH), np.int64), np.empty(size, np.int64)
    count, others = scanning.cut_lines(data, *CONSTANTS, scanning.MESSAGE, np.empty(9, np.int64), rows, unusual)
    rows = rows[:count]
    rows[len(numbers) :, LINE] += number - len(numbers)
    rows[: len(numbers), LINE] = numbers
    lines = StatementRows(data, rows, [])
    more: list[bytes] = []
    _respell(lines, more)
    if others:
        _read(lines, unusual[:others].tolist(), messages, more)
    if more:
        lines.data = np.frombuffer(b"".join((data.tobytes(), *more, _TAIL)), np.uint8)
    return lines, number + size - len(numbers)


def usual_lines(lines: bytes, number: int, on_error: Callable[[StreamError], None]) -> bytes:
    """Lines of UTF-8 that end with a line feed; those of something else are reported and become empty."""
    if b"\r" in lines:
        lines = lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not lines.isascii():
        try:
            lines.decode()
        except UnicodeDecodeError:
            return "".join(text for text, _ in decoded(lines, number, on_error)).encode()
    return lines


def _respell(lines: StatementRows, more: list[bytes]) -> None:
    """Put the objects that are not canonical behind the lines, in canonical spelling."""
    rows = lines.rows
    marked = np.flatnonzero(rows[:, RESPELLED] == 1)
    if not len(marked):
        return
    spelled = respelled(gathered(lines.data, rows[marked], 4))
    text, ends = bytes_of(spelled)
    rows[marked, 4], rows[marked, 5] = ends[:-1] + len(lines.data), ends[1:] + len(lines.data)
    more.append(text[: ends[-1]].tobytes())


def _read(lines: StatementRows, unusual: list[int], messages: bool | None, more: list[bytes]) -> None:
    """Read the lines that are not usual one by one."""
    rows, data = lines.rows, lines.data
    at = len(data) + sum(map(len, more))
    for row in unusual:
        line = lines.text(row, BEGIN)
        rows[row, RESPELLED] = NOTHING
        try:
            quad = read_line(line, messages=messages)
        except StreamError as error:
            lines.errors.append(error.at("", int(rows[row, LINE]), line))
            continue
        if quad is None:
            continue
        rows[row, RESPELLED] = 0
        for place, term in enumerate(quad):
            spelled = term.encode()
            rows[row, 2 * place] = at
            at += len(spelled)
            rows[row, 2 * place + 1] = at
            more.append(spelled)
