"""Look-ups in the background for columns of terms.

Each distinct row of terms is looked up once per version of the background, and the answers are kept as numbers until
terms are forgotten.  Cost: a hash for each row, a look-up for each distinct one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from etalis_rules import algebra as alg

from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.supported_rules import is_timed
from etalis_py.executors.columns.terms import Terms
from etalis_py.sparql import BackgroundSource
from etalis_py.sparql.lookups import lookup

MOST_ROWS = 1 << 20
"""Once the answers to more distinct rows than this are kept, they are all forgotten, which bounds the memory."""


class PatternAnswers:
    """A cache of look-ups: from terms of the variables ``known`` to the solutions, as terms of ``wanted``."""

    def __init__(
        self,
        pattern: alg.Pattern,
        known: Sequence[str],
        wanted: Sequence[str],
        terms: Terms,
        background: BackgroundSource,
    ) -> None:
        self._background = background
        self._version = background.version
        self._lasts = not is_timed(pattern)
        self._look_up = lookup(lambda: background, pattern, tuple(known), tuple(wanted))
        self._terms = terms
        self._keys = Keys(len(known))
        self._begins = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)
        self._columns = tuple(np.zeros(0, np.int32) for _ in wanted)

    def __len__(self) -> int:
        """How many distinct rows were looked up."""
        return len(self._counts)

    @property
    def stand(self) -> bool:
        """Whether these answers may be used again: they depend on no time, are up to date, and are not too many."""
        return self._lasts and self._version == self._background.version and len(self) <= MOST_ROWS

    def of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
        """For each row, where its solutions begin and how many there are; and the columns that hold them."""
        numbers = self._keys.numbers(rows, create=True)
        if self._keys.count > len(self):
            self._ask(self._keys.rows()[len(self) :])
        return self._begins[numbers], self._counts[numbers], self._columns

    def _ask(self, rows: np.ndarray) -> None:
        """Look up rows that are new, and append their solutions."""
        texts = [self._terms.spellings(column) for column in rows.T]
        answers = [self._look_up(row, 0) for row in zip(*texts, strict=True)] if texts else [self._look_up((), 0)]
        counts = np.array([len(solutions) for solutions in answers], np.int64)
        found = [solution for solutions in answers for solution in solutions]
        first = len(self._columns[0]) if self._columns else int(self._counts.sum())
        self._begins = np.concatenate([self._begins, first + np.cumsum(counts) - counts])
        self._counts = np.concatenate([self._counts, counts])
        self._columns = tuple(
            np.concatenate([column, self._terms.intern([solution[i] for solution in found])])
            for i, column in enumerate(self._columns)
        )
