"""CONSTRUCT rules: the triples that solutions make, as occurrences of the same batch."""

from __future__ import annotations

import numpy as np
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.columns.tables import Table
from etalis_py.executors.columns.terms import Terms


def derived(output: ir.Output, template: ir.Template, solutions: Table, terms: Terms) -> Table:
    """The occurrences (s, p, o, stream) that one triple of the template gives; what would be no RDF is left out.

    A row of an aggregate that ended before it was known makes none.
    """
    assert output.source is not None
    columns = dict(zip(output.source.columns, solutions.columns, strict=True))
    kept = solutions.end == solutions.at
    parts = []
    for place, position in enumerate((template.subject, template.predicate, template.object)):
        if isinstance(position, alg.Const):
            parts.append(np.full(len(solutions), terms.id_of(position.term), np.int32))
            continue
        column = columns.get(position.name, np.zeros(len(solutions), np.int32))
        kept = kept & (column != 0)
        if place == 0:
            kept &= terms.are_iris(column) | (terms.first_bytes(column) == ord("_"))
        if place == 1:
            kept &= terms.are_iris(column)
        parts.append(column)
    parts.append(np.full(len(solutions), terms.id_of(output.stream), np.int32))
    table = Table(solutions.at, solutions.end, solutions.start, tuple(parts))
    return table if kept.all() else table.take(np.flatnonzero(kept))
