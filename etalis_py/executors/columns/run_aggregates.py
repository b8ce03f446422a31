"""Aggregates over runs of elements that are ranges of places: by running totals, and the least rank of a range."""

from __future__ import annotations

import numpy as np
from etalis_rules import algebra as alg

from etalis_py.executors.columns.arguments import ranks_of, results_of, summands_of
from etalis_py.executors.columns.kernels.runs import least_in_runs
from etalis_py.executors.columns.terms import Terms

_LAST = 2**62  # a rank after all others


def aggregated(
    call: alg.AggregateCall, terms: Terms, columns: dict[str, np.ndarray], firsts: np.ndarray, lasts: np.ndarray
) -> np.ndarray:
    """The terms of an aggregate of a variable over the elements from ``firsts`` to ``lasts``; an error is unbound.

    Raises ``Unfit`` if kernels cannot aggregate the values.
    """
    ids = columns.get(alg.variable_of(call.operand))
    if ids is None:
        ids = np.zeros(len(next(iter(columns.values()), firsts)), np.int32)
    given = ids != 0
    counts = _totals(given.astype(np.int64), firsts, lasts)
    failed = counts < lasts - firsts + 1
    if call.name == "COUNT":
        return terms.append_integers(counts)
    if call.name in ("SUM", "AVG"):
        summands = summands_of(terms, ids, given)
        totals = [_totals(part, firsts, lasts) for part in summands.parts]
        spelled = results_of(summands, totals, np.maximum(counts, 1), call.name == "AVG")
        return np.where(failed, np.int32(0), terms.append(spelled))
    ranks = ranks_of(terms, ids, call.name == "MAX")
    least = np.empty(len(firsts), np.int64)
    least_in_runs(np.where(given, ranks.numbers, _LAST), firsts, lasts, least)
    if call.name == "SAMPLE":
        failed = counts == 0
    best = ranks.terms[np.where(failed, 0, least)] if len(ranks.terms) else np.zeros(len(firsts), np.int32)
    return np.where(failed, np.int32(0), best.astype(np.int32))


def _totals(numbers: np.ndarray, firsts: np.ndarray, lasts: np.ndarray) -> np.ndarray:
    totals = np.append(0, np.cumsum(numbers))
    return totals[lasts + 1] - totals[firsts]
