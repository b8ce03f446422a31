"""CONSTRUCT rules: the triples made from solutions, as occurrences of the same batch.

Cost: a copy of each column, and some microseconds for each solution that gets new blank nodes.
"""

from __future__ import annotations

import numpy as np
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.columns.instants import rows_of
from etalis_py.executors.columns.tables import SolutionTable
from etalis_py.executors.columns.terms import Terms
from etalis_py.kernel.templates import fresh_nodes_of


def with_nodes(output: ir.Output, solutions: SolutionTable, terms: Terms) -> dict[str, np.ndarray]:
    """The columns of the solutions by name, with those of the blank nodes that the template makes for each solution.

    The check of ``Making``, which guarantees termination, is not needed here: a rule to which nodes that it makes could
    come back runs in rows.
    """
    assert output.source is not None
    columns = dict(zip(output.source.columns, solutions.columns, strict=True))
    made = fresh_nodes_of(output, output.source.columns)
    if made is None or not len(solutions):
        return columns
    labels, fresh = made
    nodes = zip(*map(fresh, rows_of(solutions, terms)), strict=True)
    return columns | {label: terms.intern(list(some)) for label, some in zip(labels, nodes, strict=True)}


def derived(
    output: ir.Output, template: ir.Template, solutions: SolutionTable, columns: dict[str, np.ndarray], terms: Terms
) -> SolutionTable:
    """The occurrences (s, p, o, stream) of one triple of the template; triples that are not valid RDF are left out."""
    parts, kept = stated(output, template, solutions, columns, terms)
    table = SolutionTable(solutions.at, solutions.end, solutions.start, parts)
    return table if kept.all() else table.take(np.flatnonzero(kept))


def stated(
    output: ir.Output, template: ir.Template, solutions: SolutionTable, columns: dict[str, np.ndarray], terms: Terms
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """The columns s, p, o and stream of one triple of the template, and a mask of the solutions that state it.

    A solution states no triple if that would not be valid RDF.  ``columns`` are those of ``with_nodes``.
    """
    kept = np.ones(len(solutions), np.bool_)
    parts = []
    for place, position in enumerate((template.subject, template.predicate, template.object)):
        if constant := alg.constant_of(position):
            parts.append(np.full(len(solutions), terms.id_of(constant), np.int32))
            continue
        column = columns.get(alg.variable_of(position), np.zeros(len(solutions), np.int32))
        kept = kept & (column != 0)
        if place == 0:
            kept &= terms.are_iris(column) | (terms.first_bytes(column) == ord("_"))
        if place == 1:
            kept &= terms.are_iris(column)
        parts.append(column)
    parts.append(np.full(len(solutions), terms.id_of(output.stream), np.int32))
    return tuple(parts), kept
