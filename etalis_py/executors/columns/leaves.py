"""Leaves: the occurrences of a batch that match a triple pattern.

Cost: a comparison for each occurrence and constant.  An occurrence counts once, however often and in however many
streams its triple comes with the same interval; in ``STREAM <s>``, once for that stream.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.leaf_tests import Among, OfStream, Same, tests_of

from etalis_py.executors.columns.kernels.ordering import mark_ties
from etalis_py.executors.columns.occurrences import Occurrences
from etalis_py.executors.columns.tables import SolutionTable, concat_tables, distinct
from etalis_py.executors.columns.terms import Terms

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


class LeafOperator:
    """One leaf."""

    def __init__(self, node: ir.Leaf, terms: Terms, entailed: Entailed) -> None:
        self.node = node
        self.terms = terms
        self.entailed = entailed
        self.positions = (node.subject, node.predicate, node.object)
        self._sets: dict[tuple[str, ...], Any] = {}

    def advance(self, occurrences: SolutionTable) -> SolutionTable:
        """The solutions of occurrences (columns s, p, o); a leaf of one stream must only be given that stream's."""
        return self.solutions(self.matching(occurrences))

    def solutions(self, matching: SolutionTable) -> SolutionTable:
        """The bindings of occurrences that match."""
        places = alg.variable_places(self.positions)
        columns = tuple(matching.columns[places[name]] for name in self.node.head)
        return SolutionTable(matching.at, matching.end, matching.start, columns)

    def matching(self, occurrences: SolutionTable) -> SolutionTable:
        """The occurrences that match the pattern; for an entailed leaf, the matching triples that they entail."""
        if self.node.entailed:
            occurrences = self._consequences(occurrences)
        kept = np.ones(len(occurrences), np.bool_)
        columns = dict(zip(("subject", "predicate", "object"), occurrences.columns, strict=False))
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
        return occurrences if kept.all() else occurrences.take(np.flatnonzero(kept))

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
