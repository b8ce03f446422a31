"""Leaves: the occurrences of a batch that match a triple pattern.

Cost: a comparison for each occurrence and constant.  An occurrence counts once, however often and in however many
streams its triple comes with the same interval; in ``STREAM <s>``, once for that stream.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.lateness import ANY_TIME
from etalis_rules.leaf_tests import Among, OfStream, Same, tests_of

from etalis_py.executors.columns.equal_sides import KeyOfSide
from etalis_py.executors.columns.join_comparisons import Side
from etalis_py.executors.columns.joins import Waiting
from etalis_py.executors.columns.kernels.ordering import mark_ties
from etalis_py.executors.columns.occurrences import Occurrences
from etalis_py.executors.columns.store import ColumnGoalStore, Keys
from etalis_py.executors.columns.tables import SolutionTable, concat_tables, distinct, first_end
from etalis_py.executors.columns.terms import Terms

_FEW = 1 << 16
"""So many remembered solutions may be expired."""

Triple = tuple[str, str, str]
Entailed = Callable[[Triple], Iterable[Triple]]


def occurrence_tables(batch: Occurrences, terms: Terms, loose: Collection[int]) -> tuple[SolutionTable, SolutionTable]:
    """The distinct occurrences, once with the columns s, p, o and stream, and once with s, p and o only.

    At ``loose`` places equal terms may have different ids.  They are looked up only in instants with several
    occurrences, since no others can be equal.
    """
    table = SolutionTable(batch.end, batch.end, batch.start, (batch.s, batch.p, batch.o, batch.stream))
    tied = np.zeros(len(table), np.bool_)
    if not mark_ties(table.end, tied):
        return table, SolutionTable(table.at, table.end, table.start, table.columns[:3])
    identified = list(table.columns)
    rows = np.flatnonzero(tied)
    for place in loose:
        identified[place] = table.columns[place].copy()
        identified[place][rows] = terms.distinguished(table.columns[place][rows])
    table = distinct(SolutionTable(table.at, table.end, table.start, tuple(identified)))
    return table, distinct(SolutionTable(table.at, table.end, table.start, table.columns[:3]))


class KeyWithTimes(KeyOfSide):
    """All columns of a solution and its times, so that each solution is the only one of its key."""

    def numbers(self, keys: Keys, table: SolutionTable, terms: Terms, *, create: bool) -> np.ndarray:
        """The number of the key of each row."""
        rows = np.empty((len(table), len(self.places) + 2), np.int64)
        for i, column in enumerate((*table.columns, table.start, table.end)):
            rows[:, i] = column
        return keys.numbers(rows, create=create)


class OnceEach:
    """Lets each solution of a node through once, by its times and terms.

    Solutions that become known in the instant in which they end are compared with others of the instant.  Those that
    may become known later are remembered for as long as an equal one may still come.

    Cost: a look-up for each solution.  State: the remembered solutions.
    """

    def __init__(self, width: int, lateness: int, terms: Terms) -> None:
        self._terms = terms
        self._known: Waiting | None = None
        self._most = _FEW
        if lateness:
            names, keys = tuple(f"~{i}" for i in range(width)), Keys(width + 2, np.int64, 2)
            store = ColumnGoalStore(keys, width, 0, None if lateness >= ANY_TIME else lateness)
            self._known = Waiting(store, keys, KeyWithTimes(names, list(range(width))), Side((), (), ()))

    def of(self, table: SolutionTable) -> SolutionTable:
        """The first of each, in order of the instants in which they became known."""
        known = self._known
        if known is None or not len(table):
            return distinct(table)
        self._forget(known, int(table.at[0]))
        numbers = known.key.numbers(known.keys, table, self._terms, create=True)
        # A key may be there without a solution: of one that expired, or came before the state that was gone back to.
        new = np.flatnonzero(~known.store.met(numbers, table.end))
        new = np.sort(new[np.unique(numbers[new], return_index=True)[1]])
        if len(new) < len(table):
            table, numbers = table.take(new), numbers[new]
        none = np.zeros((len(table), 0))
        known.store.insert(numbers, table.end, table.start, table.matrix(), none, first_end(table))
        return table

    def sides(self) -> dict[str, Waiting]:
        """What is remembered, as the goals of a side that the rows have, too."""
        return {} if self._known is None else {"S": self._known}

    def _forget(self, known: Waiting, now: int) -> None:
        """Forget expired solutions with their keys, once there are twice as many keys as were left the last time."""
        if known.keys.count <= self._most:
            return
        known.store.sweep(now)
        live, same = known.store.live_keys(), np.arange(self._terms.count, dtype=np.int32)
        known.store.retain(live, same)
        known.keys.retain(live, same)
        self._most = 2 * known.keys.count + _FEW


class LeafOperator:
    """One leaf."""

    def __init__(self, node: ir.Leaf, terms: Terms, entailed: Entailed) -> None:
        self.once = OnceEach(3, node.late, terms) if node.late else None
        self.node = node
        self.terms = terms
        self.entailed = entailed
        self.positions = (node.subject, node.predicate, node.object)
        self._sets: dict[tuple[str, ...], Any] = {}

    def advance(self, occurrences: SolutionTable) -> SolutionTable:
        """The solutions of occurrences (columns s, p, o); a leaf of one stream must only be given that stream's."""
        matching = self.matching(occurrences)
        return self.solutions(matching if self.once is None else self.once.of(matching))

    def sides(self) -> dict[str, Waiting]:
        """What is remembered of occurrences that may be derived again."""
        return {} if self.once is None else self.once.sides()

    def solutions(self, matching: SolutionTable) -> SolutionTable:
        """The bindings of occurrences that match."""
        places = alg.variable_places(self.positions)
        columns = tuple(matching.columns[places[name]] for name in self.node.head)
        return SolutionTable(matching.at, matching.end, matching.start, columns)

    def matching(self, occurrences: SolutionTable) -> SolutionTable:
        """The occurrences that match the pattern; for an entailed leaf, the matching triples that they entail."""
        if self.node.entailed:
            occurrences = self._consequences(occurrences)
        kept = self.marks(occurrences.columns)
        return occurrences if kept.all() else occurrences.take(np.flatnonzero(kept))

    def marks(self, triples: Sequence[np.ndarray]) -> np.ndarray:
        """Which triples (columns s, p, o) pass the tests of the pattern."""
        kept = np.ones(len(triples[0]), np.bool_)
        columns = dict(zip(("subject", "predicate", "object"), triples, strict=False))
        for test in tests_of(self.node):
            match test:
                case Among(place, (term,), False):
                    kept &= columns[place] == self.terms.id_of(term)
                case Among(place, terms, negated):
                    kept &= self._among(columns[place], terms) != negated
                case Same(place, other):
                    kept &= columns[place] == columns[other]
                case OfStream():
                    pass  # the caller only gives occurrences of this stream
        return kept

    def _among(self, column: np.ndarray, terms: tuple[str, ...]) -> np.ndarray:
        known = self._sets.get(terms)
        if known is None:
            known = self._sets[terms] = pa.array(terms, pa.large_string()).dictionary_encode()
        # An Arrow dictionary is looked up only once: forty thousand classes would take as long as a batch.
        ids = self.terms.intern(known)
        marked = np.zeros(self.terms.count, np.bool_)
        marked[ids] = True
        return marked[column]

    def _consequences(self, occurrences: SolutionTable) -> SolutionTable:
        """The triples that the schema derives from these, each once; each distinct triple is asked for once."""
        triples, which = np.unique(occurrences.matrix(), axis=0, return_inverse=True)
        which = which.reshape(-1)
        texts = [self.terms.spellings(column) for column in triples.T]
        derived = [list(self.entailed(triple)) for triple in zip(*texts, strict=True)]
        rounds = max(map(len, derived), default=0)
        tables = []
        for i in range(rounds):
            some = np.array([i < len(each) for each in derived], np.bool_)
            rows = np.flatnonzero(some[which])
            spelled = [each[i] if i < len(each) else ("", "", "") for each in derived]
            columns = tuple(self.terms.intern([triple[k] for triple in spelled])[which[rows]] for k in range(3))
            part = occurrences.take(rows)
            tables.append(SolutionTable(part.at, part.end, part.start, columns))
        return distinct(concat_tables(tables, 3))
