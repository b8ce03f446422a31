"""The first rows of a table as samples to draft a mapping from."""

from __future__ import annotations

import pyarrow as pa

from etalis_py.streams.columns.native_literals import NotNative, spelled
from etalis_py.streams.draft import ROWS, Samples


def frame_samples(batch: pa.RecordBatch) -> Samples:
    """The samples of a table."""
    head = batch.slice(0, ROWS)
    cells: dict[str, list[str]] = {}
    moments, remarks = [], []
    for place, (column_field, column) in enumerate(zip(head.schema, head.columns, strict=True), 1):
        if column_field.name.startswith("__"):
            continue
        if not column_field.name.strip():
            remarks.append(f"column {place} has no name and is left out: give it one")
        try:
            cells[column_field.name] = ["" if cell is None else cell for cell in spelled(column).cells()]
        except NotNative:
            continue
        if pa.types.is_timestamp(column_field.type):
            moments.append(column_field.name)
    indexes = (one for one in head.schema if one.name.startswith("__index_level_"))  # as pandas calls them
    if not moments and any(pa.types.is_timestamp(one.type) for one in indexes):
        remarks.append("the index has times, but no name: frame.rename_axis('at') gives it one, and it is the time")
    return Samples(cells, moments, remarks=tuple(remarks))
