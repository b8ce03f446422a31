"""N-Quads statements in a column of a table, one per cell → columns of terms, in bulk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from etalis_py.streams.columns import scanning
from etalis_py.streams.columns.gather_terms import gathered


def usual_statements(texts: pa.Array) -> tuple[list[pa.StringArray], Any]:
    """Subject, predicate, object and graph of the texts that are usual (``scanning``), and which texts are not.

    The terms of the others are empty: blank lines, comments, several lines, and anything to be read one by one.
    """
    nothing, line_break = (pa.scalar(text, pa.large_string()) for text in ("", "\n"))
    lines = pc.binary_join_element_wise(texts.cast(pa.large_string()), nothing, line_break)
    rows = np.zeros((len(lines), 8), np.int64)
    if not len(lines):
        return [pa.array([], pa.string())] * 4, np.zeros(0, np.bool_)
    ends = np.frombuffer(lines.buffers()[1], np.int64)[lines.offset : lines.offset + len(lines) + 1]
    data = np.frombuffer(lines.buffers()[2], np.uint8)
    data.flags.writeable = ends.flags.writeable = False
    scanning.scan_statements(
        data,
        ends,
        scanning.CLASSES,
        scanning.STRING,
        scanning.LANG_STRING,
        scanning.DIR_LANG_STRING,
        np.zeros(9, np.int64),
        rows,
    )
    return [gathered(data, rows, place) for place in (0, 2, 4, 6)], rows[:, 1] == rows[:, 0]
