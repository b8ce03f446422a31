"""GROUP BY and aggregates over the solutions of many evaluations of a windowed query (SPARQL 1.1 §18.5)."""

from __future__ import annotations

from typing import Any

import numpy as np
from etalis_rules import algebra as alg

from etalis_py.executors.columns.arguments import ranks_of, results_of, summands_of
from etalis_py.executors.columns.frames import Bindings
from etalis_py.executors.columns.kernels import windows as k
from etalis_py.executors.columns.kernels.parsing import INTEGER
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.columns.window_groups import spelled_results


def aggregated(found: Bindings, select: alg.Select, evaluations: int) -> Bindings:
    """One solution for each group of each evaluation; without keys exactly one, even over no solutions."""
    if select.keys:
        unbound = np.zeros(len(found), np.int32)
        named = [found.columns.get(name, unbound) for name in select.keys]
        keys = Keys(1 + len(named), np.int64)
        groups = keys.numbers(np.column_stack([found.at, *named]), create=True)
        rows = keys.rows().copy()
    else:
        groups, rows = found.at, np.arange(evaluations)[:, None]
    at = np.ascontiguousarray(rows[:, 0])
    columns = {name: rows[:, 1 + n].astype(np.int32) for n, name in enumerate(select.keys)}
    for call in select.aggregates:
        columns[call.variable] = _results(call, found, groups, len(rows))
    return Bindings(found.terms, at, at, at, columns, np.arange(len(at)))


def _results(call: alg.AggregateCall, found: Bindings, groups: np.ndarray, number: int) -> np.ndarray:
    """The terms of an aggregate, by group; an error is unbound."""
    terms = found.terms
    if call.operand is None:
        return _counts(terms, np.bincount(groups, minlength=number))
    ids = found.bound(call.operand)
    if not (alg.variable_of(call.operand) or alg.constant_of(call.operand)):
        ids = terms.distinguished(ids)
    failed = np.zeros(number, np.bool_)
    failed[groups[ids == 0]] = True
    groups, ids = groups[ids != 0], ids[ids != 0]
    if call.distinct:
        pairs = Keys(2, np.int64)
        pairs.numbers(np.column_stack([groups, ids]), create=True)
        groups, ids = (np.ascontiguousarray(column) for column in pairs.rows().T)
        ids = ids.astype(np.int32)
    counts = np.bincount(groups, minlength=number)
    if call.name == "COUNT":
        return _counts(terms, counts)
    if call.name in ("SUM", "AVG"):
        results = _sums(terms, call.name == "AVG", groups, ids, counts)
    else:
        results = _extremes(terms, call.name == "MAX", groups, ids, number)
    if call.name == "SAMPLE":
        return results
    return np.where(failed, np.int32(0), results)


def _counts(terms: Terms, counts: np.ndarray) -> np.ndarray:
    return terms.intern(spelled_results(counts, counts, False, 0, INTEGER))


def _sums(terms: Terms, average: bool, groups: np.ndarray, ids: np.ndarray, counts: np.ndarray) -> Any:
    summands = summands_of(terms, ids, np.ones(len(ids), np.bool_))
    totals = [np.zeros(len(counts), np.int64) for _ in summands.parts]
    for part, total in zip(summands.parts, totals, strict=True):
        k.add_up(groups, part, total)
    return terms.intern(results_of(summands, totals, counts, average))


def _extremes(terms: Terms, greatest: bool, groups: np.ndarray, ids: np.ndarray, number: int) -> np.ndarray:
    """The first term of each group in the order of the aggregate; unbound in a group without any."""
    ranks = ranks_of(terms, ids, greatest)
    least = np.full(number, len(ranks.terms))
    k.least_of(groups, ranks.numbers, least)
    return np.append(ranks.terms, 0).astype(np.int32)[least]
