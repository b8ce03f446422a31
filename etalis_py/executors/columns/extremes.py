"""The order of terms in MIN, MAX and SAMPLE as numbers, which kernels compare.

Each term gets a number that never falls along the order: the double of a number, the microseconds of an xsd:dateTime,
one of three fixed values for everything else.  Different terms may share a number, such as 0.1 as a decimal and as a
double, or 1 and 01.  Such terms also get two places: one in the order of ``values.ordering``, for MIN and SAMPLE, and
one in the order of MAX.  So they come in the same order as in rows.

Cost of a new term: some fifty nanoseconds, plus a sort of the terms with the same number if there are any.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from etalis_py.executors.columns.kernels.parsing import OTHER, TIME
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.terms import Terms
from etalis_py.values import DateTime, decode
from etalis_py.values.functions.extremes import descending_key_of
from etalis_py.values.ordering import order_key_of

_BELOW = -(2**63)
"""The number of NaN, and of terms that are not literals."""
# The bits of the double +∞: every number lies at or below it, so texts, times and the rest get numbers above it.
_INFINITE = 0x7FF0000000000000
_TEXTS = _INFINITE + 1
_TIMES = _INFINITE + 2
_LATEST = 2**52 - 4  # _TIMES + _LATEST is the last number below _ABOVE
_ABOVE = 2**63 - 1
MOST = 1 << 12
"""More terms than this that share their numbers are not put in order here; the aggregate then runs in rows."""


class TooMany(Exception):
    """More than ``MOST`` terms share their numbers with others."""


class TermOrder:
    """The numbers of the terms compared so far; ``table`` has the number and the two places of each."""

    def __init__(self) -> None:
        self.table = np.zeros((0, 3), np.int64)
        self._known = np.zeros(0, np.bool_)
        self._numbers = Keys(1, np.int64)

    def add(self, terms: Terms, ids: np.ndarray) -> None:
        """Make these terms comparable."""
        if len(self.table) < terms.count:
            room = 2 * terms.count
            self.table = np.concatenate([self.table, np.zeros((room - len(self.table), 3), np.int64)])
            self._known = np.concatenate([self._known, np.zeros(room - len(self._known), np.bool_)])
        new = ids[~self._known[ids]]
        if not len(new):
            return
        places = np.arange(len(new))
        self.table[new, 0] = places
        new = new[self.table[new, 0] == places]  # drops repeated ids: only the last place written for an id is equal
        numbers = numbers_of(terms, new)
        before = self._numbers.count
        shared = self._numbers.numbers(numbers[:, None], create=True)
        self.table[new, 0] = numbers
        self._known[new] = True
        if self._numbers.count < before + len(new):
            many = np.bincount(shared, minlength=self._numbers.count) > 1
            many[shared[shared < before]] = True
            self._tell_apart(terms, self._numbers.rows()[many, 0])

    def _tell_apart(self, terms: Terms, numbers: np.ndarray) -> None:
        """Give new places to all terms that have one of these numbers, in both orders."""
        known = np.flatnonzero(self._known)
        tied = known[np.isin(self.table[known, 0], numbers)]
        if len(tied) > MOST:
            raise TooMany
        keyed = [(decode(spelling), spelling) for spelling in terms.spellings(tied)]
        for column, key in ((1, order_key_of), (2, descending_key_of)):
            keys = [key(*pair) for pair in keyed]
            self.table[tied[sorted(range(len(tied)), key=keys.__getitem__)], column] = np.arange(len(tied))


def numbers_of(terms: Terms, ids: np.ndarray) -> np.ndarray:
    """A number for each term; along the order of the terms it never falls."""
    kinds, doubles, mantissas, _ = terms.values(ids)
    numbers = _of_doubles(doubles)
    times = kinds == TIME
    numbers[times] = _TIMES + np.clip(mantissas[times], 0, _LATEST)
    for place in np.flatnonzero(kinds == OTHER).tolist():
        spelling = terms.spelling(int(ids[place]))
        numbers[place] = _of_value(decode(spelling), spelling)
    return numbers


def _of_doubles(doubles: np.ndarray) -> np.ndarray:
    """Integers in the same order as these doubles, made of their bits; −0 and 0 are one number, and NaN comes first."""
    bits = (doubles + 0.0).view(np.int64)
    numbers: np.ndarray = np.where(np.isnan(doubles), _BELOW, bits ^ ((bits >> 63) & np.int64(_ABOVE)))
    return numbers


def _of_value(value: Any, spelling: str) -> int:
    kind, rank, *_ = order_key_of(value, spelling)
    if kind != 3 or rank < 0:
        return _BELOW if kind <= 3 else _ABOVE
    if isinstance(value, DateTime):
        return _TIMES + min(max(value.us, 0), _LATEST)
    if rank > 0:
        return _TEXTS if rank <= 3 else _ABOVE
    try:
        double = float(value)
    except OverflowError:
        double = float("inf") if value > 0 else float("-inf")
    return int(_of_doubles(np.array([double]))[0])
