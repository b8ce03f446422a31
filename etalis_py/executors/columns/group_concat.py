"""GROUP_CONCAT: the texts of a stretch of each group, in a sliding window or of all solutions so far.

Each term is written once, as it stands in a literal, so that texts are only joined.  Without a window a group keeps its
text and its terms.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from etalis_rules import algebra as alg
from etalis_rules.terms import is_blank, literal

from etalis_py.executors.columns.arguments import Ranks, Summands, Unfit
from etalis_py.executors.columns.frames import Bindings
from etalis_py.executors.columns.kernels import grouping as k
from etalis_py.executors.columns.kernels.windows import arrange
from etalis_py.executors.columns.running_aggregate import NO_RANK, Prepared, RunningAggregate, State
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.rows.run.sizes import measured_bytes
from etalis_py.values.bounds import BOUNDS
from etalis_py.values.functions.terms import str_


@dataclass(frozen=True, slots=True)
class Members:
    """The solutions by their groups, and for each answer which of them it is about: ``places[first : last]``."""

    places: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray

    @classmethod
    def of(
        cls, numbers: np.ndarray, groups: int, ends: np.ndarray, at: np.ndarray, group: np.ndarray, held: np.ndarray
    ) -> Members:
        """The last ``held`` members of the ``group`` of each answer by the instant ``at``; members have numbers."""
        bounds, places = np.zeros(groups + 2, np.int64), np.empty(len(numbers), np.int64)
        arrange(numbers, bounds, places)
        size = len(numbers) + 1
        lasts = np.searchsorted(numbers[places] * size + places, group * size + np.searchsorted(ends, at, "right"))
        return cls(places, lasts - held, lasts)


MOST_IN_A_BATCH = 1 << 26
"""So many characters in all texts of a batch are left to rows, which have one instant's texts at a time."""


def joined_texts(terms: Terms, ids: np.ndarray, members: Members, separator: str) -> np.ndarray:
    """The terms of the joined texts of each answer; raises ``Unfit`` if one is too long."""
    spelled, which = _written(terms, ids[members.places])
    sizes = np.append(0, np.cumsum(np.array([len(text) for text in spelled], np.int64)[which]))
    between = literal(separator)[1:-1]
    longest = sizes[members.lasts] - sizes[members.firsts] + len(between) * (members.lasts - members.firsts)
    if longest.max(initial=0) > BOUNDS.characters:
        raise Unfit
    texts = [spelled[i] for i in which.reshape(-1).tolist()]
    join = between.join
    answers = [f'"{join(texts[i:j])}"' for i, j in zip(members.firsts.tolist(), members.lasts.tolist(), strict=True)]
    return terms.append(pa.array(answers, pa.large_string()))


def _written(terms: Terms, ids: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The texts of distinct terms as they stand in a literal, and for each term which of them is its own."""
    distinct, which = np.unique(ids, return_inverse=True)
    spelled = [
        literal("" if term == 0 or is_blank(text) else str_(text))[1:-1]
        for term, text in zip(distinct.tolist(), terms.spellings(distinct), strict=True)
    ]
    return spelled, which.reshape(-1)


class RunningTexts(RunningAggregate):
    """The texts of all solutions so far.

    The rank of an argument is minus its row, so the least one of a group is that of its last row: an answer has the
    text up to there.
    """

    in_order = True

    def __init__(self, call: alg.AggregateCall, place: int, width: int, terms: Terms, names: Sequence[str]) -> None:
        super().__init__(call, place, width, terms, names)
        self.extreme = True
        self._between = literal(call.separator)[1:-1]
        self._texts: dict[int, str] = {}
        self._joined: list[tuple[np.ndarray, np.ndarray]] = []  # groups and terms of each batch

    @property
    def held_bytes(self) -> int:
        return measured_bytes(self._texts) + sum(numbers.nbytes + ids.nbytes for numbers, ids in self._joined)

    # --- a batch ---

    def prepared(self, frame: Bindings, numbers: np.ndarray, groups: np.ndarray, here: np.ndarray) -> Prepared:
        assert self.call.operand is not None
        ids = frame.bound(self.call.operand)
        given = (ids != 0) & (self.terms.first_bytes(ids) != ord("_"))
        spelled, which = _written(self.terms, ids)
        sizes = np.array([len(text) + len(self._between) for text in spelled], np.int64)[which] * given
        order = np.argsort(numbers, kind="stable")
        so_far = np.cumsum(sizes[order])
        first = np.searchsorted(numbers[order], here)
        before = np.array([len(self._texts.get(group, "")) for group in here.tolist()], np.int64)
        own = np.searchsorted(here, numbers[order])
        longest = before[own] + so_far - (so_far - sizes[order])[np.minimum(first, len(order) - 1)][own]
        if longest.max(initial=0) > BOUNDS.characters or longest.sum() > MOST_IN_A_BATCH:
            raise Unfit
        ranks = Ranks(np.append(-np.arange(len(ids)), np.full(len(here), NO_RANK)))
        none = np.zeros(len(ids), np.int64)
        self._batch = [spelled[i] for i in which.tolist()], numbers, given
        return Prepared(given.astype(np.int64), (~given).astype(np.int64), Summands(none), 0.0, ranks, ids)

    def entered(self, batch: Prepared, groups: np.ndarray, here: np.ndarray) -> None:
        """Add the terms to the texts of their groups; the text after each of them is written when it is asked for."""
        texts, numbers, given = self._batch
        rows = np.flatnonzero(given)
        self._rows: defaultdict[int, list[int]] = defaultdict(list)
        for row, group in zip(rows.tolist(), numbers[rows].tolist(), strict=True):
            self._rows[group].append(row)
        self._before = {group: [self._texts[group]] for group in self._rows if group in self._texts}
        for group, own in self._rows.items():
            self._texts[group] = self._between.join([*self._before.get(group, ()), *(texts[row] for row in own)])
        self._joined.append((numbers[rows], batch.ids[rows]))

    # --- results ---

    def results(self, answers: np.ndarray, batch: Prepared) -> np.ndarray:
        failed, last = answers[:, self.at + k.FAILED] > 0, answers[:, self.at + k.RANK]
        after = self._after(np.unique(-last[~failed]))
        rows = np.where(failed, -1, -last).tolist()
        texts = [f'"{after[row]}"' if row >= 0 else '""' for row in rows]
        return np.where(failed, np.int32(0), self.terms.append(pa.array(texts, pa.large_string())))

    def _after(self, rows: np.ndarray) -> dict[int, str]:
        """The text of its group after each of these rows, each of which goes on from the one before."""
        texts, numbers, _ = self._batch
        so_far = {group: (before, 0) for group, before in self._before.items()}
        after = {}
        for row, group in zip(rows.tolist(), numbers[rows].tolist(), strict=True):
            own, (before, first) = self._rows[group], so_far.get(group, ([], 0))
            last = bisect_right(own, row)
            after[row] = self._between.join([*before, *(texts[i] for i in own[first:last])])
            so_far[group] = [after[row]], last
        return after

    # --- terms and states ---

    def mark_terms(self, groups: np.ndarray, marked: np.ndarray) -> None:
        for _, ids in self._joined:
            marked[ids] = True

    def renumber(self, groups: np.ndarray, renumbered: np.ndarray) -> None:
        self._joined = [(numbers, renumbered[ids]) for numbers, ids in self._joined]

    def states(self, groups: np.ndarray, keys: Keys) -> list[State]:
        members: list[list[str]] = [[] for _ in groups]
        for numbers, ids in self._joined:
            for number, term in zip(numbers.tolist(), self.terms.spellings(ids), strict=True):
                members[number].append(term)
        failed = groups[:, self.at + k.FAILED].tolist()
        separator = self.call.separator
        return [["GROUP_CONCAT", separator, 0, n, terms] for n, terms in zip(failed, members, strict=True)]

    def load(self, states: Sequence[State], keys: np.ndarray, groups: np.ndarray) -> None:
        groups[:, self.at + k.ARGUMENTS] = [len(state[4]) for state in states]
        groups[:, self.at + k.FAILED] = [state[3] for state in states]
        numbers = np.repeat(np.arange(len(states)), [len(state[4]) for state in states])
        ids = self.terms.intern([term for state in states for term in state[4]])
        spelled, which = _written(self.terms, ids)
        for number, i in zip(numbers.tolist(), which.tolist(), strict=True):
            before = self._texts.get(number)
            self._texts[number] = spelled[i] if before is None else f"{before}{self._between}{spelled[i]}"
        self._joined = [(numbers, ids)]


def plan_of(
    calls: Iterable[alg.AggregateCall], width: int, terms: Terms, names: Sequence[str]
) -> list[RunningAggregate]:
    """The aggregates of groups with so many keys, over solutions with these variables."""
    kinds = [RunningTexts if call.name == "GROUP_CONCAT" else RunningAggregate for call in calls]
    return [kind(call, n, width, terms, names) for n, (kind, call) in enumerate(zip(kinds, calls, strict=True))]
