"""EVENT: the solutions of a pattern over the triples of one event, for all events of a batch.

A pattern about one subject can be read like a row of a table (``table_columns_of``): a kernel chooses a triple for each
of its columns; EXISTS and MINUS are look-ups of an event with terms.  Any other pattern is evaluated event by event, as
in rows, for the events that have the triples which every solution needs (``needed_triples``).

Cost: with columns, some nanoseconds for each triple of the event and each column; else some microseconds for each
event that may have a solution.  State: none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.records import Column, TableColumns, table_columns_of

from etalis_py.executors.columns.events import Events
from etalis_py.executors.columns.instants import table_of_rows
from etalis_py.executors.columns.kernels import records
from etalis_py.executors.columns.needed_triples import NeededTriples
from etalis_py.executors.columns.record_tables import RecordTable, solutions_of
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.tables import SolutionTable
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.rows.generate.records import Evaluate
from etalis_py.kernel.batch import Row

SUBJECT, OBJECT, STREAM, GRAPH = 0, 2, 3, 4
_ALL = 1 << 40
"""More solutions than any event has."""


class RecordOperator:
    """One EVENT; ``evaluate`` gives the row function, which is needed if the pattern is not about one subject only."""

    def __init__(self, node: ir.Record, terms: Terms, evaluate: Callable[[], Evaluate], most: int) -> None:
        """``most``: the limit on solutions of an instant; beyond it, the solutions of one event are not all listed."""
        self.node = node
        self.terms = terms
        self._of_table = pattern = table_columns_of(node)
        if pattern is None or pattern.optional:
            self._advance = self._event_by_event(evaluate(), NeededTriples(node, terms))
        else:
            self._advance = _Tested(node, pattern, terms, most).solutions

    def advance(self, events: Events | RecordTable) -> SolutionTable:
        """The solutions over these events."""
        if isinstance(events, RecordTable):
            assert self._of_table is not None
            return solutions_of(self.node, self._of_table, events, self.terms)
        return self._advance(self._asked(events))

    def _asked(self, events: Events) -> Events:
        """The events of the stream and the graph that the pattern names."""
        kept = None
        for place, wanted in ((STREAM, self.node.stream), (GRAPH, self.node.graph)):
            if not wanted:
                continue
            column = events.triples.columns[place][events.firsts]
            term = wanted if isinstance(wanted, str) else alg.constant_of(wanted)
            here = column == self.terms.id_of(term) if term else column != 0
            kept = here if kept is None else kept & here
        return events if kept is None or kept.all() else events.take(kept)

    def _event_by_event(self, evaluate: Evaluate, needed: NeededTriples) -> Callable[[Events], SolutionTable]:
        def advance(events: Events) -> SolutionTable:
            instants: list[int] = []
            rows: list[Row] = []
            for t, start, triples, stream, graph in spelled(needed.events(events), self.terms):
                given = evaluate(t, start, triples, stream, graph)
                instants += [t] * len(given)
                rows += given
            return table_of_rows(instants, rows, len(self.node.head), self.terms)

        return advance


def spelled(events: Events, terms: Terms) -> list[tuple[int, int, tuple[Any, ...], str, str]]:
    """Events one by one: end, start, triples, stream and graph."""
    table, firsts = events.triples, events.firsts
    s, p, o = (terms.spellings(column) for column in table.columns[:3])
    triples = list(zip(s, p, o, strict=True))
    bounds = events.begins.tolist()
    contents = (tuple(triples[begin:end]) for begin, end in pairwise(bounds))
    stream, graph = (terms.spellings(column[firsts]) for column in table.columns[3:])
    return list(zip(table.end[firsts].tolist(), table.start[firsts].tolist(), contents, stream, graph, strict=True))


class _Choosing:
    """Finds the solutions of a pattern about one subject: for each, the triple chosen for each column."""

    def __init__(self, node: ir.Record, subject: str, columns: tuple[Column, ...], terms: Terms, most: int) -> None:
        self._terms = terms
        self._most = most
        self._columns = columns
        graph = alg.variable_of(node.graph)
        self._named = graph == subject
        places = {subject: (SUBJECT, 0)}  # by variable: the column whose triple binds it, and the position there
        if graph:
            places.setdefault(graph, (GRAPH, 0))
        same = []
        for number, (_, term) in enumerate(columns):
            other = records.ANYTHING
            if variable := alg.variable_of(term):
                position, place = places.setdefault(variable, (OBJECT, number))
                own = (position, place) == (OBJECT, number)
                other = {SUBJECT: records.SUBJECT, GRAPH: records.GRAPH}.get(position, place)
                other = records.ANYTHING if own else other
            same.append(other)
        self._same = np.array(same, np.int64)
        self._head = [places[name] for name in node.head]
        self.width = len(self._head)

    def rows(self, events: Events) -> np.ndarray:
        """For each solution, by column, the place of the triple that is chosen."""
        terms, table, width = self._terms, events.triples, len(self._columns)
        s, p, o, _, graph = table.columns
        predicates = np.array([terms.id_of(predicate) for predicate, _ in self._columns], np.int32)
        wanted = np.array([_constant(term, terms) for _, term in self._columns], np.int32)
        most = int(np.diff(events.begins).max(initial=0))
        slots, chosen = np.empty(1 << int(4 * most + 16).bit_length(), np.int64), np.empty(width, np.int64)
        heads, after = np.empty(most, np.int64), np.empty(most, np.int64)
        found = []
        event, room = 0, len(events) + 1
        while event < len(events):
            rows = np.empty((width, room), np.int32)
            before = event
            event, count = records.choose(
                events.begins, s, p, o, graph, predicates, wanted, self._same, self._named, self._most + 1, event,
                slots, heads, after, chosen, rows,
            )  # fmt: skip
            found.append(rows[:, :count])
            if event == before:
                room *= 2
        return found[0] if len(found) == 1 else np.concatenate([np.empty((width, 0), np.int32), *found], axis=1)

    def columns(self, events: Events, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """The terms of the head, given the triples chosen."""
        return tuple(events.triples.columns[position][rows[number]] for position, number in self._head)


class _Tested:
    """The solutions of a pattern about one subject, of which tests keep some: see ``TableColumns``."""

    def __init__(self, node: ir.Record, pattern: TableColumns, terms: Terms, most: int) -> None:
        most = _ALL if pattern.tests else most
        self._chosen = _Choosing(node, pattern.subject, pattern.columns, terms, most)
        self._tests = []
        bound = {pattern.subject, *(alg.variable_of(term) for _, term in pattern.columns)} - {""}
        for wanted, columns in pattern.tests:
            named = (pattern.subject, *(alg.variable_of(term) for _, term in columns))
            head = tuple(dict.fromkeys(name for name in named if name in bound))
            asked, tested = (
                _Choosing(replace(node, head=head), pattern.subject, read, terms, most)
                for read in (pattern.columns, columns)
            )
            self._tests.append((wanted, asked, tested))

    def solutions(self, events: Events) -> SolutionTable:
        """The solutions over these events."""
        rows = self._chosen.rows(events)
        for wanted, asked, tested in self._tests:
            keys = Keys(1 + asked.width, np.int64)
            keys.numbers(_by_event(tested, events, tested.rows(events)), create=True)
            there = keys.numbers(_by_event(asked, events, rows), create=False) >= 0
            rows = rows[:, there == wanted]
        first, table = rows[0], events.triples
        end = table.end[first]
        return SolutionTable(end, end, table.start[first], self._chosen.columns(events, rows))


def _by_event(choosing: _Choosing, events: Events, rows: np.ndarray) -> np.ndarray:
    """The number of each solution's event, and the terms of its head."""
    numbers = np.searchsorted(events.begins, rows[0], "right")
    return np.column_stack([numbers, *choosing.columns(events, rows)])


def _constant(term: Any, terms: Terms) -> int:
    constant = alg.constant_of(term)
    return terms.id_of(constant) if constant else -1
