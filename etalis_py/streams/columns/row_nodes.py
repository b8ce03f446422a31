"""The blank node of each row, for mappings that make one: the same labels as ``blanks.relabel`` gives to one row.

Such a label is a hash of the stream, the time and the triples of the row, so it needs the objects of all columns.  The
part of the hashed text that a column contributes is made once for each distinct object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from etalis_py.streams.columns.times import Times
from etalis_py.streams.csv_mapping import RowMapping


def makes_blanks(mapping: RowMapping) -> bool:
    """Whether a mapping makes blank nodes."""
    return any(template.kind == "blank" for template in mapping.templates)


def has_row_nodes(mapping: RowMapping) -> bool:
    """Whether a blank node is what each row is about, and all of its triples are of different predicates.

    The labels of other blank nodes are found row by row.
    """
    if mapping.graph is not None or mapping.stream is not None or not mapping.triples:
        return False
    subject = mapping.triples[0][0]
    others = [template for _, *pair in mapping.triples for template in pair]
    predicates = {p.fill({}) for _, p, _ in mapping.triples if not p.holes}
    return (
        subject.kind == "blank"
        and all(s == subject for s, _, _ in mapping.triples)
        and not any(template.kind == "blank" for template in others)
        and len(predicates) == len(mapping.triples)
    )


def by_predicate(mapping: RowMapping) -> RowMapping:
    """The mapping with its triples in the order in which the row reader gives them."""
    order = sorted(range(len(mapping.triples)), key=lambda place: mapping.triples[place][1].fill({}))
    triples = tuple(mapping.triples[place] for place in order)
    return replace(mapping, triples=triples, counted=tuple(mapping.counted[place] for place in order))


def row_nodes(mapping: RowMapping, objects: Sequence[pa.DictionaryArray], times: Times, stream: str) -> list[str]:
    """The label of each row, given the objects of the triples, which are in the order of their predicates."""
    parts = [_parts(p.fill({}), column) for (_, p, _), column in zip(mapping.triples, objects, strict=True)]
    stamps = [f"{start}/{end}" for start, end in zip(times.start.tolist(), times.end.tolist(), strict=True)]
    begin = _counted(stream)
    labels = []
    for stamp, *told in zip(stamps, *parts, strict=True):
        text = f"{begin}{_counted(stamp)}{''.join(told)}"
        labels.append(f"_:m{blake2b(text.encode(), digest_size=10).hexdigest()}x0")
    return labels


def _parts(predicate: str, objects: pa.DictionaryArray) -> list[str]:
    """What the triple of each row contributes; nothing where there is none."""
    told = ["" if term is None else _counted(f"_:0\n{predicate}\n{term}\n") for term in objects.dictionary.to_pylist()]
    index: Any = np.asarray(pc.fill_null(objects.indices, len(told)))
    told.append("")
    return [told[place] for place in index.tolist()]


def _counted(text: str) -> str:
    return f"{len(text)}:{text}"


__all__ = ["by_predicate", "has_row_nodes", "makes_blanks", "row_nodes"]
