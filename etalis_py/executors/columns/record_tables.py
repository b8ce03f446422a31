"""Tables of records in columns: each row is an event, and EVENT reads its columns as they are.

Cost: a look-up of each distinct term of the columns that are read, and a copy of each cell; terms that nothing compares
are not looked up.  Where events share an instant, all of their columns are compared, since equal events are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np
import pyarrow as pa
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.records import Column, TableColumns, table_columns_of

from etalis_py.executors.columns.kernels.ordering import mark_ties
from etalis_py.executors.columns.tables import SolutionTable, firsts
from etalis_py.executors.columns.terms import Terms
from etalis_py.kernel.batch import Records


class RecordTable:
    """The events of a table of records, without repeated events of an instant; columns are looked up when read."""

    def __init__(self, records: Records, terms: Terms, compared: frozenset[str]) -> None:
        """``compared``: the predicates whose objects are compared and so need a look-up; "" stands for the subjects."""
        self._records, self._terms, self._compared = records, terms, compared
        self._columns: dict[str, np.ndarray] = {}
        self.end, self.start = (np.array(column, np.int64) for column in (records.end, records.start))
        self._kept = self._first_of_equal()
        if self._kept is not None:
            self.end, self.start = self.end[self._kept], self.start[self._kept]

    def __len__(self) -> int:
        return len(self.end)

    @property
    def subjects(self) -> np.ndarray:
        """The subject of each event."""
        return self._ids("", self._records.s)

    @property
    def streams(self) -> np.ndarray:
        """The stream of each event."""
        return self._names("stream", self._records.stream)

    @property
    def graphs(self) -> np.ndarray:
        """The graph of each event."""
        return self._names("graph", self._records.graph)

    def objects(self, predicate: str) -> np.ndarray:
        """The object of each event; the unbound term where it has none."""
        column = self._records.objects.get(predicate)
        return np.zeros(len(self), np.int32) if column is None else self._ids(predicate, column)

    def _ids(self, name: str, column: pa.Array) -> np.ndarray:
        ids = self._columns.get(name)
        if ids is None:
            terms = self._terms
            ids = terms.intern(column) if name in self._compared else terms.append(column)
            ids = self._columns[name] = ids if self._kept is None else ids[self._kept]
        return ids

    def _names(self, name: str, column: pa.Array | None) -> np.ndarray:
        if column is None:
            return np.zeros(len(self), np.int32)
        ids = self._columns.get(name)
        if ids is None:
            ids = self._terms.intern(column)
            ids = self._columns[name] = ids if self._kept is None else ids[self._kept]
        return ids

    def _first_of_equal(self) -> np.ndarray | None:
        """The rows that remain without repeated events of an instant; None if there are no repetitions."""
        tied = np.zeros(len(self), np.bool_)
        if not mark_ties(self.end, tied):
            return None
        records, places = self._records, np.flatnonzero(tied)
        rows = pa.array(places)
        named = (column for column in (records.stream, records.graph) if column is not None)
        columns = (records.s, *records.objects.values(), *named)
        ids = tuple(self._terms.intern(column.take(rows)) for column in columns)
        end, start = self.end[places], self.start[places]
        first = firsts(SolutionTable(end, end, start, ids), (start,))
        if first is None:
            return None
        tied[places[first]] = False
        return np.flatnonzero(~tied)


def compared_in_tables(nodes: Mapping[str, ir.Node], compared: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """The predicates whose objects are compared, by an EVENT itself or by a node above it; "" stands for subjects.

    ``compared`` has for each node the columns that nodes above it compare.
    """
    found: set[str] = set()
    for name, node in nodes.items():
        pattern = table_columns_of(node) if isinstance(node, ir.Record) else None
        if pattern is None or not isinstance(node, ir.Record):
            continue
        subject = pattern.subject
        columns = tuple(chain(pattern.columns, *pattern.optional, *(tested for _, tested in pattern.tests)))
        names = [subject, *(node.graph.name for _ in (0,) if isinstance(node.graph, alg.Var))]
        names += [term.name for _, term in columns if isinstance(term, alg.Var)]
        told_apart = {each for each in names if names.count(each) > 1} | set(compared[name])
        found |= {p for p, term in columns if isinstance(term, alg.Const) or term.name in told_apart}
        found |= {"" for _ in (0,) if subject in told_apart}
    return frozenset(found)


def solutions_of(node: ir.Record, pattern: TableColumns, table: RecordTable, terms: Terms) -> SolutionTable:
    """The rows that have a value in each column of the pattern; at most one solution each.

    The columns of an optional group are all unbound if the row lacks a value for any of them.
    """
    values = {pattern.subject: table.subjects}
    kept = np.ones(len(table), np.bool_)
    if node.stream:
        kept &= table.streams == terms.id_of(node.stream)
    if isinstance(node.graph, alg.Const):
        kept &= table.graphs == terms.id_of(node.graph.term)
    elif node.graph is not None:
        graphs = table.graphs
        kept &= graphs != 0
        kept &= values.setdefault(node.graph.name, graphs) == graphs
    kept &= _with_columns(pattern.columns, values, table, terms)
    for wanted, tested in pattern.tests:
        kept &= _with_columns(tested, dict(values), table, terms) == wanted
    for group in pattern.optional:
        there = np.ones(len(table), np.bool_)
        found = {}
        for predicate, term in group:
            objects = table.objects(predicate)
            there &= objects == terms.id_of(term.term) if isinstance(term, alg.Const) else objects != 0
            if isinstance(term, alg.Var):
                found[term.name] = objects
        values |= {name: np.where(there, objects, np.int32(0)) for name, objects in found.items()}
    chosen = tuple(values[name] for name in node.head)
    if kept.all():
        return SolutionTable(table.end, table.end, table.start, chosen)
    rows = np.flatnonzero(kept)
    return SolutionTable(table.end, table.end, table.start, chosen).take(rows)


def _with_columns(
    columns: Iterable[Column], values: dict[str, np.ndarray], table: RecordTable, terms: Terms
) -> np.ndarray:
    """A mask of the rows that have these columns; ``values`` are those of variables, and get those that are new."""
    kept = np.ones(len(table), np.bool_)
    for predicate, term in columns:
        objects = table.objects(predicate)
        if isinstance(term, alg.Const):
            kept &= objects == terms.id_of(term.term)
            continue
        kept &= objects != 0
        known = values.setdefault(term.name, objects)
        if known is not objects:
            kept &= known == objects
    return kept
