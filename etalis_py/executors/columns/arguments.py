"""The arguments of aggregates in columns: exact summands, and ranks in the order of MIN, MAX and SAMPLE."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from etalis_py.executors.columns.extremes import TermOrder, TooMany
from etalis_py.executors.columns.kernels.parsing import DECIMAL, INTEGER
from etalis_py.executors.columns.terms import Terms

_FITS = 2.0**62
_UNRANKED = np.zeros(0, np.int32)


class Unfit(Exception):
    """These solutions cannot be joined or aggregated in columns; the text is the reason, if it is not the values."""


@dataclass(frozen=True, slots=True)
class Summands:
    """Numbers as integers value · 10**scale, and the kind that all have."""

    numbers: np.ndarray
    scale: int = 0
    kind: int = INTEGER


@dataclass(frozen=True, slots=True)
class Ranks:
    """The rank of each term, and the terms by rank."""

    numbers: np.ndarray
    terms: np.ndarray = field(default_factory=lambda: _UNRANKED)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of an aggregate: which are no errors, and what tells them apart if only distinct ones count."""

    given: np.ndarray
    summands: Summands
    ranks: Ranks
    distinct: np.ndarray | None


def summands_of(terms: Terms, ids: np.ndarray, given: np.ndarray) -> Summands:
    """These terms as summands: all integers or all decimals, whose sums fit; those that are not given count as 0."""
    kinds, _, mantissas, scales = terms.values(ids)
    own = kinds[given]
    kind = int(own[0]) if len(own) else INTEGER
    if kind not in (INTEGER, DECIMAL) or (own != kind).any():
        raise Unfit
    scale = int(scales[given].max()) if len(own) else 0
    if np.abs(mantissas[given].astype(np.float64)).sum() * 10.0**scale >= _FITS:
        raise Unfit
    summands = np.where(given, mantissas, 0) * 10 ** (scale - np.where(given, scales, scale).astype(np.int64))
    return Summands(summands, scale, kind)


def ranks_of(terms: Terms, ids: np.ndarray, greatest: bool) -> Ranks:
    """The ranks of these terms, in descending order for MAX."""
    order = terms.remembered.get(TermOrder)
    if order is None:
        order = terms.remembered[TermOrder] = TermOrder()
    distinct, which = np.unique(ids, return_inverse=True)
    try:
        order.add(terms, distinct[distinct != 0])
    except TooMany:
        raise Unfit from None
    table = np.where((distinct != 0)[:, None], order.table[distinct], 0)
    by = (table[:, 2], ~table[:, 0]) if greatest else (table[:, 1], table[:, 0])
    arranged = np.lexsort(by)
    ranks = np.empty(len(distinct), np.int64)
    ranks[arranged] = np.arange(len(distinct))
    return Ranks(ranks[which.reshape(-1)], distinct[arranged])
