"""The aggregates of runs of which a key has one at a time, which may have begun batches ago.

A run that begins and ends in a batch is a range of it, which kernels aggregate.  Any other one has accumulators, as the
operator of rows has: what a run has of the batch is added to them, each distinct term of the batch decoded once.

Cost: some steps for each element, more for those of runs that last beyond the batch.  State: the accumulators of the
open runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from etalis_rules import algebra as alg

from etalis_py.executors.columns.arguments import Unfit
from etalis_py.executors.columns.kernels.windows import arrange
from etalis_py.executors.columns.run_aggregates import aggregated
from etalis_py.executors.columns.terms import Terms
from etalis_py.values import SparqlError, decode_or_none
from etalis_py.values.functions import Accumulator, accumulator, add_all, restore_accumulator

Totals = list[Accumulator]


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of a batch key by key, those of a key in order of time.

    ``places`` are those of the rows of the batch, ``bounds`` where the elements of each key begin.  ``columns`` has the
    terms of the elements, in this order; ``decoded`` the spellings and values of those that were asked for.
    """

    places: np.ndarray
    bounds: np.ndarray
    columns: dict[str, np.ndarray]
    decoded: dict[int, tuple[str, Any]] = field(default_factory=dict)

    @classmethod
    def arranged(cls, keys: np.ndarray, count: int, columns: dict[str, np.ndarray]) -> Elements:
        """These elements, given the numbers of their keys, of which there are ``count``."""
        bounds, rows, places = (
            np.zeros(count + 2, np.int64),
            np.empty(len(keys), np.int64),
            np.empty(len(keys), np.int64),
        )
        arrange(keys, bounds, rows)
        places[rows] = np.arange(len(rows))
        return cls(places, bounds[:-1], {name: column[rows] for name, column in columns.items()})

    def decode(self, ids: list[int], terms: Terms) -> list[tuple[str, Any]]:
        """The spelling and the value of each term, None for one that has no value."""
        known = self.decoded
        if new := [i for i in dict.fromkeys(ids) if i not in known]:
            spelled = terms.spellings(np.array(new))
            known |= zip(new, ((term, decode_or_none(term)) for term in spelled), strict=True)
        return [known[i] for i in ids]


class RunTotals:
    """The aggregates that count what a run has; ``held`` has those of the open runs.

    Runs are rows as ``go_on`` writes them.  Elements are numbered: the last ones of the open runs, the first ones, then
    the batch.
    """

    def __init__(self, calls: Sequence[alg.AggregateCall], terms: Terms) -> None:
        self.calls = calls
        self.terms = terms
        self.held: list[Totals] = []

    def results(self, runs: np.ndarray, held: int, elements: Elements) -> dict[str, np.ndarray]:
        """The terms of the aggregates of these runs, which are over; an error is unbound."""
        fresh = runs[:, 0] >= 2 * held
        shown = {call.variable: np.zeros(len(runs), np.int32) for call in self.calls}
        firsts, lasts = (elements.places[runs[fresh, i] - 2 * held] for i in (0, 1))
        try:
            found = {
                call.variable: aggregated(call, self.terms, elements.columns, firsts, lasts) for call in self.calls
            }
        except Unfit:
            fresh[:] = False
        else:
            for name, ids in found.items():
                shown[name][fresh] = ids
        rest = list(self.of_runs(runs[~fresh], held, elements, copied=True))
        for i, call in enumerate(self.calls):
            shown[call.variable][~fresh] = self.terms.intern([_result(totals[i]) for totals in rest])
        return shown

    def of_runs(self, runs: np.ndarray, held: int, elements: Elements, *, copied: bool = False) -> Iterator[Totals]:
        """The accumulators of these runs: those that are held, with what the runs have of the batch, or new ones."""
        for first, last, _, _, key, *_ in runs.tolist():
            if first >= 2 * held:
                totals = [accumulator(call.name) for call in self.calls]
                begin = int(elements.places[first - 2 * held])
            else:
                totals = self.held[first - held]
                if copied:
                    totals = [restore_accumulator(total.state()) for total in totals]
                begin = int(elements.bounds[key])
            if last >= 2 * held:
                self._add(totals, elements, begin, int(elements.places[last - 2 * held]) + 1)
            yield totals

    def _add(self, totals: Sequence[Accumulator], elements: Elements, begin: int, end: int) -> None:
        """Add the elements from ``begin`` to before ``end``."""
        for call, total in zip(self.calls, totals, strict=True):
            ids = elements.columns.get(alg.variable_of(call.operand))
            bound = [] if ids is None else [i for i in ids[begin:end].tolist() if i]
            known = [(term, value) for term, value in elements.decode(bound, self.terms) if value is not None]
            add_all(total, [value for _, value in known], [term for term, _ in known])
            for _ in range(end - begin - len(known)):
                total.fail()


def _result(total: Accumulator) -> str:
    try:
        return total.result()
    except SparqlError:
        return ""
