"""Lines of CSV in bytes → the places of rows and cells, as the csv module cuts them: loops compiled by Numba.

A row is *odd* if it has too few cells, or anything but a delimiter after a quoted cell, or is too long for a cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from etalis_py.numba_cache import kernel, part
from etalis_py.streams.columns.gather_terms import gathered
from etalis_py.streams.csv_rows import LONGEST_CELL
from etalis_py.streams.sources import count_lines

_BEGIN, _END, _LINE, _ODD, _WIDTH = 0, 1, 2, 3, 4  # of each row, before the places of its cells


@part
def _next_line(data, i):
    """The place after the line break at ``i``: a line feed, a carriage return, or both."""
    return i + 2 if data[i] == 13 and data[i + 1] == 10 else i + 1


@kernel
def cut_rows(data, size, delimiter, slots, longest, number, rows, state):
    """Cut ``data[:size]``, which ends with a line feed.

    ``slots[cell]`` is where in ``rows`` the places of a cell go, or 0 for a cell that nobody uses.  Returns the number
    of rows; ``state`` becomes the place and the line after them (a cell may be open there), whether a cell has quotes
    that are written twice, and the line where the first row ends that has a cell beyond the header, not
    an empty one, or 0.
    """
    count = i = 0
    line = number
    state[2] = state[3] = 0
    while i < size:
        begin, first, cell, odd, more = i, line, 0, False, False
        if data[i] == 10 or data[i] == 13:  # a blank line
            i, line = _next_line(data, i), line + 1
            continue
        while True:
            if data[i] == 34:
                i += 1
                at = i
                while True:
                    while i < size and data[i] != 34:
                        line += data[i] == 10 or (data[i] == 13 and data[i + 1] != 10)
                        i += 1
                    if i == size:
                        state[0], state[1] = begin, first
                        return count
                    if data[i + 1] != 34:
                        break
                    state[2] = 1
                    i += 2
                end = i
                i += 1
                odd = data[i] != delimiter and data[i] != 10 and data[i] != 13
            else:
                at = i
                while data[i] != delimiter and data[i] != 10 and data[i] != 13:
                    i += 1
                end = i
            if cell < len(slots) and slots[cell]:
                rows[count, slots[cell]], rows[count, slots[cell] + 1] = at, end
            elif cell >= len(slots) and end > at:
                more = True
            cell += 1
            if odd or data[i] != delimiter:
                break
            i += 1
        while data[i] != 10 and data[i] != 13:  # the csv module drops the rest of an odd line
            i += 1
        i = _next_line(data, i)
        rows[count, 0], rows[count, 1], rows[count, 2] = begin, i, first
        rows[count, 3] = odd or cell < len(slots) or i - begin > longest
        if more and not rows[count, 3] and not state[3]:
            state[3] = line
        line += 1
        count += 1
    state[0], state[1] = size, line
    return count


@kernel
def _copy(data, begin, end, out, to):
    """Copy a cell, with one quote for two if it is quoted; returns the place after it."""
    quoted = begin > 0 and data[begin - 1] == 34
    i = begin
    while i < end:
        out[to] = data[i]
        to += 1
        i += 2 if quoted and data[i] == 34 else 1
    return to


@kernel
def copy_cells(data, rows, count, place, ends, out):
    """The cells at one place of the rows, one after another."""
    ends[0] = 0
    for i in range(count):
        ends[i + 1] = _copy(data, rows[i, place], rows[i, place + 1], out, ends[i])


@dataclass(frozen=True, slots=True)
class CsvCells:
    """Rows of lines, with the places of those cells that somebody uses."""

    data: Any
    rows: Any
    slots: Any
    doubled: bool
    rest: int
    """Where a row begins that does not end here."""
    rest_line: int
    surplus: int
    """The line where the first row ends that has a cell beyond the header, not an empty one, or 0."""

    @property
    def odd(self) -> Any:
        return self.rows[:, _ODD] == 1

    def row(self, place: int) -> tuple[bytes, int]:
        """The lines of a row, and the number of the first."""
        begin, end, line = self.rows[place, :_ODD].tolist()
        return self.data[begin:end].tobytes(), line

    def column(self, cell: int) -> pa.StringArray:
        """A cell of each row; empty where the row is odd and has none."""
        place = int(self.slots[cell])
        if not self.doubled:
            return gathered(self.data, self.rows, place)
        count = len(self.rows)
        ends = np.empty(count + 1, np.int32)
        out = np.empty(int((self.rows[:, place + 1] - self.rows[:, place]).sum()), np.uint8)
        copy_cells(self.data, self.rows, count, place, ends, out)
        return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(out))


def cut_csv(lines: bytes, number: int, delimiter: str, used: Sequence[bool]) -> CsvCells:
    """Cut lines that end with a line feed."""
    data = np.frombuffer(lines, np.uint8)
    slots = np.cumsum(used) * 2 + _WIDTH - 2
    slots[~np.array(used, np.bool_)] = 0
    rows = np.zeros((count_lines(lines, returns=True), _WIDTH + 2 * sum(used)), np.int32)
    state = np.empty(4, np.int64)
    count = cut_rows(data, len(lines), ord(delimiter), slots, LONGEST_CELL, number, rows, state)
    rest, line, doubled, surplus = state.tolist()
    return CsvCells(data, rows[:count], slots, bool(doubled), rest, line, surplus)


__all__ = ["CsvCells", "cut_csv"]
