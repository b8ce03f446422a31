"""The arguments of aggregates in columns: exact summands, and ranks in the order of MIN, MAX and SAMPLE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from etalis_rules.terms import XSD

from etalis_py.executors.columns.extremes import TermOrder, TooMany, numbers_of
from etalis_py.executors.columns.kernels import doubles
from etalis_py.executors.columns.kernels.parsing import DECIMAL, DOUBLE, INTEGER
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.columns.window_groups import spelled_results
from etalis_py.values.codec import encode
from etalis_py.values.ordering import rank_key

_FITS = 2.0**62
LIMB = 32
"""The lower part of a double's summand has this many bits."""
_MANTISSA = 53
_EXACT = 2**_MANTISSA
"""Integers below this are doubles."""
_LEAST = 2.0**-1022
"""The least double with all its digits."""
_INFINITE, _DOUBLE_TAIL = (np.frombuffer(text, np.uint8) for text in (b"INF", f'"^^<{XSD}double>'.encode()))
_ZERO = encode(0)  # the sum of nothing
_UNRANKED = np.zeros(0, np.int32)


class Unfit(Exception):
    """These solutions cannot be joined or aggregated in columns; the text is the reason, if it is not the values."""


@dataclass(frozen=True, slots=True)
class Summands:
    """Numbers as integers, and the kind that all have.

    Integers and decimals are value · 10**scale.  Doubles are value · 2**scale in two parts, which are added apart:
    ``numbers`` · 2**32 + ``low``.
    """

    numbers: np.ndarray
    scale: int = 0
    kind: int = INTEGER
    low: np.ndarray | None = None

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        """What is added apart."""
        return (self.numbers,) if self.low is None else (self.numbers, self.low)


@dataclass(frozen=True, slots=True)
class Ranks:
    """The rank of each term, and the terms by rank."""

    numbers: np.ndarray
    terms: np.ndarray = field(default_factory=lambda: _UNRANKED)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of an aggregate: which are no errors, and what tells them apart if only distinct ones count.

    ``terms`` are the arguments themselves, for GROUP_CONCAT.  A row that stands for several solutions has numbers of
    arguments in ``given``, and of errors in ``missing``; any other has an error where it has no argument.
    """

    given: np.ndarray
    summands: Summands
    ranks: Ranks
    distinct: np.ndarray | None
    terms: np.ndarray | None = None
    missing: np.ndarray | None = None

    @property
    def errors(self) -> np.ndarray:
        """The number of errors in each row."""
        return ~self.given if self.missing is None else self.missing


def added_apart(arguments: Arguments) -> list[Arguments]:
    """The arguments once for each part of their summands."""
    return [replace(arguments, summands=Summands(part)) for part in arguments.summands.parts]


def summands_of(
    terms: Terms, ids: np.ndarray, given: np.ndarray, *, kind: int | None = None, scale: int = 0
) -> Summands:
    """These terms as summands of one kind, whose sums fit; those that are not given count as 0.

    With ``kind``, they are of that kind; their scale is at least ``scale``.
    """
    kinds, values, mantissas, scales = terms.values(ids)
    own = kinds[given]
    if kind is None:
        kind = int(own[0]) if len(own) else INTEGER
    if kind not in (INTEGER, DECIMAL, DOUBLE) or (own != kind).any():
        raise Unfit
    if kind == DOUBLE:
        return _doubles(np.where(given, values, 0.0), scale)
    scale = int(scales[given].max(initial=scale))
    numbers, finer = np.where(given, mantissas, 0), scale - np.where(given, scales, scale).astype(np.int64)
    if (np.abs(numbers.astype(np.float64)) * 10.0**finer).sum() >= _FITS:
        raise Unfit
    return Summands(numbers * 10**finer, scale, kind)


def _doubles(values: np.ndarray, least: int) -> Summands:
    """Doubles as integers over a power of two: a double is one, and so is their sum."""
    if not np.isfinite(values).all():
        raise Unfit
    fractions, exponents = np.frexp(values)
    mantissas = (fractions * 2.0**_MANTISSA).astype(np.int64)
    lowest = (mantissas & -mantissas).astype(np.float64)
    zeros = np.where(mantissas == 0, 0, np.frexp(lowest)[1] - 1)
    mantissas >>= zeros
    shifts = np.where(mantissas == 0, 0, exponents.astype(np.int64) - _MANTISSA + zeros)
    scale = max(least, -int(shifts.min(initial=0)))
    with np.errstate(over="ignore"):  # what is infinite does not fit, either
        total = np.ldexp(np.abs(values).sum(), scale)
    if total >= np.ldexp(_FITS, LIMB - 1) or len(values) >= 2 ** (LIMB - 2):
        raise Unfit
    shifts += scale
    few = np.minimum(shifts, LIMB)
    low = (mantissas & ((np.int64(1) << (LIMB - few)) - 1)) << few
    numbers = np.where(shifts < LIMB, mantissas >> (LIMB - few), mantissas << np.maximum(shifts - LIMB, 0))
    return Summands(numbers, scale, DOUBLE, low)


def results_of(summands: Summands, totals: Sequence[np.ndarray], counts: np.ndarray, average: bool) -> Any:
    """The spellings of SUM or AVG, given the totals of the parts of the summands, as an Arrow array."""
    if summands.kind != DOUBLE:
        kind = DECIMAL if average else summands.kind
        return spelled_results(totals[0], counts, average, summands.scale, kind)
    high, low = totals
    sums = np.ldexp(high * 2.0**LIMB + low, -summands.scale)
    unsure = np.maximum(np.abs(high), np.abs(low)) >= _EXACT  # else both are doubles, so their sum is rounded once
    unsure |= (np.abs(sums) < _LEAST) & (sums != 0)  # may have been rounded twice
    divisor = 1 << summands.scale
    for i in np.flatnonzero(unsure).tolist():
        sums[i] = _divided((int(high[i]) << LIMB) + int(low[i]), divisor)
    spelled = spelled_doubles(sums / np.maximum(counts, 1) if average else sums)
    return spelled if counts.all() else pc.if_else(pa.array(counts != 0), spelled, _ZERO)


def spelled_doubles(values: np.ndarray) -> pa.LargeStringArray:
    """The literals of doubles, none of them NaN, in canonical form."""
    texts = pa.array(values).cast(pa.large_string())
    _, starts, read = texts.buffers()
    size = len(values) * (doubles.LONGEST + len(_DOUBLE_TAIL))
    ends, out = np.empty(len(values) + 1, np.int64), np.empty(size, np.uint8)
    digits = np.empty(doubles.LONGEST, np.uint8)
    places = np.frombuffer(starts, np.int64, len(ends))
    doubles.spell_doubles(np.frombuffer(read, np.uint8), places, _INFINITE, _DOUBLE_TAIL, digits, ends, out)
    return pa.LargeStringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(out[: ends[-1]].copy()))


def _divided(dividend: int, divisor: int) -> float:
    """The nearest double."""
    try:
        return dividend / divisor
    except OverflowError:
        return float("inf") if dividend > 0 else float("-inf")


def ranks_of(terms: Terms, ids: np.ndarray, greatest: bool) -> Ranks:
    """The ranks of these terms, in descending order for MAX."""
    distinct, which = np.unique(ids, return_inverse=True)
    unbound = int(len(distinct) > 0 and distinct[0] == 0)
    arranged = _texts_in_order(terms, distinct[unbound:])
    if arranged is None:
        arranged = _in_order(terms, distinct, greatest)
    else:
        arranged = np.append(np.arange(unbound), (arranged[::-1] if greatest else arranged) + unbound)
    ranks = np.empty(len(distinct), np.int64)
    ranks[arranged] = np.arange(len(distinct))
    return Ranks(ranks[which.reshape(-1)], distinct[arranged])


def value_ranks(terms: Terms, ids: np.ndarray) -> np.ndarray:
    """The rank of each term's value in the order of ORDER BY; equal values, such as 1 and 01, have one rank."""
    distinct, which = np.unique(ids, return_inverse=True)
    unbound = int(len(distinct) > 0 and distinct[0] == 0)
    bound = distinct[unbound:]
    ranks = np.zeros(len(distinct), np.int64)
    arranged = _texts_in_order(terms, bound)
    if arranged is None:
        ranks[unbound:] = _ranks_of_values(terms, bound) + unbound
    else:
        ranks[arranged + unbound] = np.arange(unbound, len(distinct))
    return ranks[which.reshape(-1)]


def _ranks_of_values(terms: Terms, distinct: np.ndarray) -> np.ndarray:
    """The same for distinct terms: by the numbers that stand for them, and by their values where these are equal."""
    numbers, shared, times = np.unique(numbers_of(terms, distinct), return_inverse=True, return_counts=True)
    if len(numbers) == len(distinct):
        return shared
    tied = np.flatnonzero(times[shared] > 1)
    keys = [rank_key(text) for text in terms.spellings(distinct[tied])]
    places = {key: place for place, key in enumerate(sorted(set(keys)))}
    second = np.zeros(len(distinct), np.int64)
    second[tied] = [places[key] for key in keys]
    return np.unique(shared * (len(places) + 1) + second, return_inverse=True)[1]


def _in_order(terms: Terms, distinct: np.ndarray, greatest: bool) -> np.ndarray:
    """The order of terms of any kind."""
    order = terms.remembered.get(TermOrder)
    if order is None:
        order = terms.remembered[TermOrder] = TermOrder()
    try:
        order.add(terms, distinct[distinct != 0])
    except TooMany:
        raise Unfit from None
    table = np.where((distinct != 0)[:, None], order.table[distinct], 0)
    return np.lexsort((table[:, 2], ~table[:, 0]) if greatest else (table[:, 1], table[:, 0]))


def _texts_in_order(terms: Terms, distinct: np.ndarray) -> np.ndarray | None:
    """The order of terms that are all strings, or all IRIs, and written without escapes; else None.

    It is that of their bytes without the quotes or brackets, so these need not be remembered in a ``TermOrder``.
    """
    iris = terms.are_iris(distinct)
    if not len(distinct) or not (iris.all() or (terms.first_bytes(distinct) == ord('"')).all()):
        return None
    spelled = terms.column(distinct)
    if not iris.all() and not pc.all(pc.ends_with(spelled, '"')).as_py():
        return None
    if pc.any(pc.match_substring(spelled, "\\")).as_py():
        return None
    order: np.ndarray = pc.sort_indices(pc.utf8_slice_codeunits(spelled, 1, -1)).to_numpy().astype(np.int64)
    return order
