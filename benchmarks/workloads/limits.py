"""The limit: each workload as one loop over numbers, written by hand and compiled by Numba.

A loop is given the events as columns of numbers, made before the clock starts, and gives its answers as columns: start,
end and the numbers of the events that bind the variables.  It knows the query, so it has no dictionary, no general
store and no text: the difference to the engine in columns is the price of generality.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from etalis_rules.terms import is_literal, parts

from benchmarks.workloads.common import UNIT
from etalis_py.events import Event


@dataclass(frozen=True, slots=True)
class Codes:
    """Events of one triple as numbers; ``value`` is that of a literal, or the number of the object's term.

    ``nodes`` is the number of subjects, or of subjects and objects if objects are not literals.
    """

    end: np.ndarray
    subject: np.ndarray
    predicate: np.ndarray
    value: np.ndarray
    nodes: int

    @classmethod
    def of(cls, events: Sequence[Event]) -> Codes:
        terms: dict[str, int] = {}
        predicates: dict[str, int] = {}
        triples = [event.triples[0] for event in events]
        subject = [terms.setdefault(s, len(terms)) for s, _, _ in triples]
        predicate = [predicates.setdefault(p, len(predicates)) for _, p, _ in triples]
        value = [float(parts(o)[0]) if is_literal(o) else terms.setdefault(o, len(terms)) for _, _, o in triples]
        columns = [np.array(subject, np.int32), np.array(predicate, np.int32), np.array(value, np.float64)]
        return cls(np.array([event.end for event in events], np.int64), *columns, len(terms))


loop = numba.njit(cache=True, nogil=True)
Limit = Callable[[Codes], tuple[np.ndarray, ...]]
"""Starts, ends, and the other columns of an answer."""


def _sizes(subject: np.ndarray, nodes: int) -> np.ndarray:
    """Where the events of each subject begin if they are grouped by subject."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(np.bincount(subject, minlength=nodes))))


@loop
def _pairs(end, subject, predicate, nodes):
    latest = np.full(nodes, -1, np.int64)
    before = np.empty(len(end), np.int64)
    start, ended, who = np.empty(len(end), np.int64), np.empty(len(end), np.int64), np.empty(len(end), np.int32)
    n = 0
    for i in range(len(end)):
        s = subject[i]
        if predicate[i] == 0:
            before[i] = latest[s]
            latest[s] = i
        elif latest[s] >= 0:
            start[n], ended[n], who[n] = end[latest[s]], end[i], s
            latest[s] = before[latest[s]]
            n += 1
    return start[:n], ended[:n], who[:n]


@loop
def _all_pairs(end, subject, predicate, begins):
    counts = np.zeros(len(begins) - 1, np.int64)
    total = 0
    for i in range(len(end)):
        if predicate[i] == 0:
            counts[subject[i]] += 1
        else:
            total += counts[subject[i]]
    start, ended, who = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int32)
    goals = np.empty(len(end), np.int64)
    counts[:] = 0
    n = 0
    for i in range(len(end)):
        s = subject[i]
        if predicate[i] == 0:
            goals[begins[s] + counts[s]] = end[i]
            counts[s] += 1
            continue
        for k in range(begins[s], begins[s] + counts[s]):
            start[n], ended[n], who[n] = goals[k], end[i], s
            n += 1
    return start, ended, who


@loop
def _falls_and_rises(end, subject, value, begins, window):
    """``recent``: the latest fall that the event ends, then the latest price that it has fallen from."""
    size = len(end)
    first_low, first_high = begins[:-1].copy(), begins[:-1].copy()
    fall_high = begins[:-1].copy()
    firsts, falls, bottoms = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    one, two, three = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    n = 0
    for i in range(size):
        s, price, oldest = subject[i], value[i], end[i] - window
        k = fall_high[s] - 1
        while k >= begins[s]:
            fall = falls[k]
            expired = end[fall] < oldest
            fits = not expired and price > value[fall] * 1.05
            if fits:
                one[n], two[n], three[n] = fall, bottoms[k], i
                n += 1
            if expired or fits:
                for j in range(k, fall_high[s] - 1):
                    falls[j], bottoms[j] = falls[j + 1], bottoms[j + 1]
                fall_high[s] -= 1
            if fits:
                break
            k -= 1
        while first_low[s] < first_high[s] and end[firsts[first_low[s]]] < oldest:
            first_low[s] += 1
        for k in range(first_high[s] - 1, first_low[s] - 1, -1):
            if price < value[firsts[k]] * 0.7:
                falls[fall_high[s]], bottoms[fall_high[s]] = firsts[k], i
                fall_high[s] += 1
                for j in range(k, first_high[s] - 1):
                    firsts[j] = firsts[j + 1]
                first_high[s] -= 1
                break
        firsts[first_high[s]] = i
        first_high[s] += 1
    one, three = one[:n], three[:n]
    return end[one], end[three], one, two[:n], three


@loop
def _all_falls_and_rises(end, subject, value, begins, window):
    size = len(end)
    nodes = len(begins) - 1
    first_low, first_high = begins[:-1].copy(), begins[:-1].copy()
    firsts = np.empty(size, np.int64)
    room = 64
    fall_low, fall_high = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    falls, bottoms = np.empty((nodes, room), np.int64), np.empty((nodes, room), np.int64)
    one, two, three = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    n = 0
    for i in range(size):
        s, price, oldest = subject[i], value[i], end[i] - window
        while fall_low[s] < fall_high[s] and end[bottoms[s, fall_low[s]]] < oldest:
            fall_low[s] += 1
        for k in range(fall_low[s], fall_high[s]):
            fall = falls[s, k]
            if price > value[fall] * 1.05 and end[fall] >= oldest:
                if n == len(one):
                    one, two = np.concatenate((one, np.empty_like(one))), np.concatenate((two, np.empty_like(two)))
                    three = np.concatenate((three, np.empty_like(three)))
                one[n], two[n], three[n] = fall, bottoms[s, k], i
                n += 1
        while first_low[s] < first_high[s] and end[firsts[first_low[s]]] < oldest:
            first_low[s] += 1
        waiting = first_high[s] - first_low[s]
        if fall_high[s] + waiting > room:
            live = fall_high[s] - fall_low[s]
            falls[s, :live] = falls[s, fall_low[s] : fall_high[s]].copy()
            bottoms[s, :live] = bottoms[s, fall_low[s] : fall_high[s]].copy()
            fall_low[s], fall_high[s] = 0, live
            if live + waiting > room:
                falls, bottoms = _wider(falls, live + waiting), _wider(bottoms, live + waiting)
                room = falls.shape[1]
        for k in range(first_low[s], first_high[s]):
            if price < value[firsts[k]] * 0.7:
                falls[s, fall_high[s]], bottoms[s, fall_high[s]] = firsts[k], i
                fall_high[s] += 1
        firsts[first_high[s]] = i
        first_high[s] += 1
    one, three = one[:n], three[:n]
    return end[one], end[three], one, two[:n], three


@loop
def _wider(table, needed):
    wider = np.empty((table.shape[0], 2 * needed), table.dtype)
    wider[:, : table.shape[1]] = table
    return wider


@loop
def _closure(end, subject, value, nodes):
    """``before[path]`` is the path of the same last node that came before it."""
    room = 1 << 16
    latest, seen = np.full(nodes, -1, np.int64), np.full(nodes, -1, np.int64)
    before, began = np.empty(room, np.int64), np.empty(room, np.int64)
    ended, first, last = np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int32)
    n = 0
    for i in range(len(end)):
        y, z = subject[i], np.int32(value[i])
        path, new = latest[y], n
        while True:
            if n == room:
                before, began = np.concatenate((before, before)), np.concatenate((began, began))
                ended, first = np.concatenate((ended, ended)), np.concatenate((first, first))
                last = np.concatenate((last, last))
                room *= 2
            x, start = (y, end[i]) if n == new else (first[path], began[path])
            if n > new:
                path = before[path]
            if n == new or seen[x] != i:
                seen[x] = i
                before[n], began[n], ended[n], first[n], last[n] = latest[z], start, end[i], x, z
                latest[z] = n
                n += 1
            if path < 0:
                break
    return began[:n], ended[:n], first[:n], last[:n]


@loop
def _rising(end, subject, value, begins):
    size = len(end)
    high = begins[:-1].copy()
    goals, one, two = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    n = 0
    for i in range(size):
        s, price = subject[i], value[i]
        for k in range(high[s] - 1, begins[s] - 1, -1):
            if value[goals[k]] < price:
                one[n], two[n] = goals[k], i
                n += 1
                for j in range(k, high[s] - 1):
                    goals[j] = goals[j + 1]
                high[s] -= 1
                break
        goals[high[s]] = i
        high[s] += 1
    one, two = one[:n], two[:n]
    return end[one], end[two], one, two


@loop
def _sums(end, value, most, span):
    start, totals = np.empty(len(end), np.int64), np.empty(len(end), np.int64)
    low = total = 0
    for i in range(len(end)):
        total += np.int64(value[i])
        while i - low >= most or end[low] <= end[i] - span:
            total -= np.int64(value[low])
            low += 1
        start[i], totals[i] = end[low], total
    return start, end, totals


def _with_begins(limit: Any, *more: Any) -> Limit:
    return lambda c: limit(c.end, c.subject, c.value, _sizes(c.subject, c.nodes), *more)


FOREVER = 2**62
WINDOW = 1_000 * UNIT
SPAN = 600 * UNIT
LIMITS: dict[str, Limit] = {
    "W1": lambda c: _pairs(c.end, c.subject, c.predicate, c.nodes),
    "W1r": lambda c: _all_pairs(c.end, c.subject, c.predicate, _sizes(c.subject, c.nodes)),
    "W2": _with_begins(_falls_and_rises, WINDOW),
    "W2u": _with_begins(_all_falls_and_rises, WINDOW),
    "W3": lambda c: _closure(c.end, c.subject, c.value, c.nodes),
    "W4": _with_begins(_rising),
    "W5": lambda c: _sums(c.end, c.value, 100, FOREVER),
    "W5t": lambda c: _sums(c.end, c.value, FOREVER, SPAN),
    "W6": lambda c: _pairs(c.end, c.subject, c.predicate, c.nodes),
}
"""By the name of the workload; workloads that are missing have no limit yet."""
