"""What the two sides of a join compare by ``=`` as a part of its key.

``?y = ?x + 998`` is true only of values with the same key (``values.equality_keys``), so goals are looked up by the
key's number, too.  The comparison is still tested on each pair, as different values may have the same number.  Numbers
are computed for a whole batch, other values once per distinct combination of terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from etalis_rules import algebra as alg

from etalis_py.executors.columns.costs import is_numeric
from etalis_py.executors.columns.evaluation import key_numbers
from etalis_py.executors.columns.frames import Bindings
from etalis_py.executors.columns.kernels.computing import number_keys_of
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.tables import SolutionTable
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.columns.vectors import value
from etalis_py.values.equality_keys import NO_KEY


@dataclass(frozen=True, slots=True)
class KeyOfSide:
    """The key of one side of a node: its variables, the places of the shared ones, and what is compared by ``=``."""

    names: tuple[str, ...]
    places: list[int]
    equal: Sequence[alg.Expr] = ()

    def numbers(self, keys: Keys, table: SolutionTable, terms: Terms, *, create: bool) -> np.ndarray:
        """The number of the key of each row; -1 for a row that pairs with nothing, or whose key is unknown."""
        rows = table.matrix(self.places)
        if not self.equal:
            return keys.numbers(rows, create=create)
        frame = Bindings.of(terms, table, self.names)
        computed = np.column_stack([numbers_of_keys(e, frame) for e in self.equal])
        numbers = keys.numbers(np.concatenate((rows, computed), axis=1), create=create)
        numbers[(computed == NO_KEY).any(axis=1)] = -1
        return numbers


def numbers_of_keys(e: alg.Expr, frame: Bindings) -> np.ndarray:
    """The numbers of the keys of an expression's values."""
    given = frame.given(e)
    if not is_numeric(e):
        return key_numbers(e, given)
    v = value(e, frame.columns, len(frame), frame.terms)
    keys, asked = np.empty(len(frame), np.int32), np.empty(len(frame), np.bool_)
    if number_keys_of(v.kinds, v.doubles, v.mantissas, keys.view(np.float32), keys, asked):
        rows = np.flatnonzero(asked)
        keys[rows] = key_numbers(e, given.only(e, rows))
    return keys
