"""One aggregate of all solutions so far, for all groups: COUNT, SUM, AVG, MIN, MAX or SAMPLE, DISTINCT or not.

GROUP_CONCAT is in ``group_concat``.

A batch is prepared first, which changes nothing and fails where its values do not fit (``Unfit``), then entered.  Sums
are exact sums of numbers of one kind: integers, decimals as integers over a power of ten, doubles as integers over a
power of two.  Where a batch has a finer scale than those before, their sums change to it.

State: the fields of each group (``kernels.grouping``); for DISTINCT, also each term by group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from etalis_rules import algebra as alg

from etalis_py.executors.columns.arguments import LIMB, Ranks, Summands, Unfit, ranks_of, results_of, summands_of
from etalis_py.executors.columns.frames import Bindings
from etalis_py.executors.columns.kernels import grouping as k
from etalis_py.executors.columns.kernels.parsing import DECIMAL, DOUBLE, INTEGER
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.tables import SummedTable
from etalis_py.executors.columns.terms import Terms
from etalis_py.values.functions import PlainSum, restore_accumulator, unpack_int
from etalis_py.values.functions.extremes import Min

EXTREME = ("MIN", "MAX", "SAMPLE")
_FITS = 2.0**62
NO_RANK = np.iinfo(np.int64).max
"""The rank where there is no argument."""
_MUCH_FINER = 200
"""A sum other than 0 fits no scale that is finer by so much."""
_CARRIED = 1 << 30
"""After so many solutions the sums of the lower parts are carried into those of the others."""
_KINDS: dict[type, int] = {int: INTEGER, Decimal: DECIMAL, float: DOUBLE}
_NOTHING = np.zeros(0, np.int64)
State = list[Any]
"""The state of an accumulator in rows."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The arguments of a batch, one row each; ``size`` bounds the sums of all groups with them.

    ``ranks`` are those of the arguments, then of the terms that counted in the groups of this batch; ``ids`` are the
    arguments, for DISTINCT: whole solutions for COUNT(DISTINCT *).
    """

    given: np.ndarray
    missing: np.ndarray
    summands: Summands
    size: float
    ranks: Ranks
    ids: np.ndarray


class RunningAggregate:
    """One such aggregate; ``width`` is the number of keys of a group, ``place`` its own among the aggregates.

    ``names`` are the variables of a solution, all of which count for COUNT(DISTINCT *).
    """

    in_order = False
    """Whether simultaneous solutions must come in canonical order."""

    def __init__(self, call: alg.AggregateCall, place: int, width: int, terms: Terms, names: Sequence[str]) -> None:
        self.call = call
        self.terms = terms
        self.extreme = call.name in EXTREME
        self.at = k.SUMS + place * k.NUMBERS
        self._summed = call.name in ("SUM", "AVG")
        self._width = width
        self._whole = tuple(names) if call.operand is None else ()
        distinct = call.distinct and not self.extreme
        self._members = Keys(width + (len(names) if call.operand is None else 1)) if distinct else None
        self._kind: int | None = None
        self._scale, self._size, self._entered = 0, 0.0, 0

    @property
    def held_bytes(self) -> int:
        """About how much memory this keeps beside the numbers of the groups."""
        return 0 if self._members is None else self._members.bytes

    # --- a batch ---

    def prepared(self, frame: Bindings, numbers: np.ndarray, groups: np.ndarray, here: np.ndarray) -> Prepared:
        """The arguments of these solutions of the groups with these numbers, all of which are ``here``."""
        operand = self.call.operand
        if operand is None:
            none = np.zeros(len(frame), np.int64)
            ids = none if self._members is None else solutions_apart(frame, self._whole)
            return Prepared(none + 1, none, Summands(none), 0.0, Ranks(none), ids)
        ids = frame.bound(operand)
        if self._members is not None and not alg.variable_of(operand):
            ids = self.terms.distinguished(ids)
        given = ids != 0
        summands, size = Summands(np.zeros(len(ids), np.int64)), 0.0
        if self._summed:
            summands = summands_of(self.terms, ids, given, kind=self._kind, scale=self._scale)
            size = self._size_with(summands, groups)
        ranks = self._ranks(ids, groups[here])
        return Prepared(given.astype(np.int64), (~given).astype(np.int64), summands, size, ranks, ids)

    def prepared_sums(self, child: SummedTable, place: int, groups: np.ndarray, here: np.ndarray) -> Prepared:
        """The same, given what the arguments of several solutions amount to; their sums are those of integers."""
        given, sums, extremes = child.given[place], child.summands[place], child.extremes[place]
        summands, size = Summands(sums), 0.0
        if self._summed:
            if self._kind not in (None, INTEGER):
                raise Unfit
            size = self._size_with(summands, groups)
        return Prepared(given, child.weights - given, summands, size, self._ranks(extremes, groups[here]), extremes)

    def _size_with(self, summands: Summands, groups: np.ndarray) -> float:
        """A bound of all sums with these summands."""
        finer = (2.0 if summands.kind == DOUBLE else 10.0) ** min(summands.scale - self._scale, _MUCH_FINER)
        more = _size(summands.numbers, summands.low).sum()
        if self._size * finer + more >= _FITS:
            self._size = _size(groups[:, self.at + k.TOTALS], groups[:, self.at + k.REST]).max(initial=0.0)
        size = float(self._size * finer + more)
        if size >= _FITS:
            raise Unfit
        return size

    def _ranks(self, ids: np.ndarray, groups: np.ndarray) -> Ranks:
        if not self.extreme:
            return Ranks(np.zeros(len(ids) + len(groups), np.int64))
        every = np.concatenate([ids, groups[:, self.at + k.BEST].astype(np.int32)])
        ranks = ranks_of(self.terms, every, self.call.name == "MAX")
        return Ranks(np.where(every != 0, ranks.numbers, NO_RANK), ranks.terms)

    def enter(
        self, batch: Prepared, arguments: np.ndarray, keys: np.ndarray, groups: np.ndarray, here: np.ndarray
    ) -> None:
        """Write the arguments for the kernel, and bring the sums to their scale.

        ``keys`` are the keys of the solutions' groups, and ``here`` the numbers of these groups.
        """
        arguments[:, k.GIVEN], arguments[:, k.MISSING] = batch.given, batch.missing
        arguments[:, k.SUMMAND], arguments[:, k.PLACE] = batch.summands.numbers, batch.ranks.numbers[: len(arguments)]
        arguments[:, k.LOWER] = 0 if batch.summands.low is None else batch.summands.low
        if self.extreme:
            groups[here, self.at + k.RANK] = batch.ranks.numbers[len(arguments) :]
        if self._members is not None:
            self._drop_repeated(arguments, keys, batch.ids)
        if self._summed and batch.given.any():
            self._kind = batch.summands.kind
            self._entered += len(arguments)
            if batch.summands.scale > self._scale or self._entered >= _CARRIED:
                self._rescale(groups, batch.summands.scale)
            self._size = batch.size

    def _drop_repeated(self, arguments: np.ndarray, keys: np.ndarray, ids: np.ndarray) -> None:
        """Let only the first solution of a group with each argument count."""
        assert self._members is not None
        given = np.arange(len(ids)) if self.call.operand is None else np.flatnonzero(ids)
        before = self._members.count
        numbers = self._members.numbers(np.column_stack([keys[given], ids[given]]), create=True)
        reached = np.maximum.accumulate(np.append(before - 1, numbers))[:-1]
        repeated = given[numbers <= reached]
        arguments[repeated[:, None], [k.GIVEN, k.SUMMAND, k.LOWER]] = 0

    def _rescale(self, groups: np.ndarray, scale: int) -> None:
        totals, rest = groups[:, self.at + k.TOTALS], groups[:, self.at + k.REST]
        if self._kind != DOUBLE:
            totals *= 10 ** (scale - self._scale)
        else:
            _carry(totals, rest)
            for at in range(self._scale, scale, LIMB - 2):
                finer = min(LIMB - 2, scale - at)
                totals <<= finer
                rest <<= finer
                _carry(totals, rest)
        self._scale, self._entered = scale, 0

    def entered(self, batch: Prepared, groups: np.ndarray, here: np.ndarray) -> None:
        """Keep the terms that count in these groups."""
        if self.extreme:
            groups[here, self.at + k.BEST] = _ranked(batch.ranks.terms, groups[here, self.at + k.RANK])

    # --- results ---

    def results(self, answers: np.ndarray, batch: Prepared) -> np.ndarray:
        """The terms of the aggregate in these answers; an error is unbound."""
        counts = np.ascontiguousarray(answers[:, self.at + k.ARGUMENTS])
        if self.call.name == "COUNT":
            return self.terms.append_integers(counts)
        if self.extreme:
            ids = _ranked(batch.ranks.terms, answers[:, self.at + k.RANK])
            if self.call.name == "SAMPLE":
                return ids
        else:
            summed = Summands(_NOTHING, self._scale, self._kind or INTEGER)
            totals = [np.ascontiguousarray(answers[:, self.at + field]) for field in (k.TOTALS, k.REST)]
            spelled = results_of(
                summed,
                totals if summed.kind == DOUBLE else totals[:1],
                np.maximum(counts, 1),
                self.call.name == "AVG",
            )
            ids = self.terms.append(spelled)
        return np.where(answers[:, self.at + k.FAILED] > 0, np.int32(0), ids)

    # --- terms and states ---

    def mark_terms(self, groups: np.ndarray, marked: np.ndarray) -> None:
        """Mark the terms that are kept."""
        if self.extreme:
            marked[groups[:, self.at + k.BEST]] = True
        if self._members is not None:
            marked[self._members.rows()] = True

    def renumber(self, groups: np.ndarray, renumbered: np.ndarray) -> None:
        """Take over the new ids of these terms."""
        if self.extreme:
            groups[:, self.at + k.BEST] = renumbered[groups[:, self.at + k.BEST]]
        if self._members is not None:
            self._members.retain(np.ones(self._members.count, np.bool_), renumbered)

    def kept(self) -> int:
        """How many terms are kept by group."""
        return 0 if self._members is None else self._members.count

    def counted(self, groups: np.ndarray) -> float:
        """The greatest number of arguments, or of errors, of a group."""
        return float(groups[:, [self.at + k.ARGUMENTS, self.at + k.FAILED]].max(initial=0))

    def states(self, groups: np.ndarray, keys: Keys) -> list[State]:
        """The states of the accumulators of all groups."""
        fields = groups[:, self.at : self.at + k.NUMBERS]
        name = self.call.name
        if name == "COUNT":
            plain: list[State] = [[name, count] for count in fields[:, k.ARGUMENTS].tolist()]
        elif self.extreme:
            spelled = self.terms.spellings(fields[:, k.BEST].astype(np.int32))
            plain = [
                [name, failures, [[term, 1]] if term else []]
                for term, failures in zip(spelled, fields[:, k.FAILED].tolist(), strict=True)
            ]
        else:
            plain = [self._sum_of(*group).state(name) for group in fields.tolist()]
        if self._members is None:
            return plain
        members: list[list[list[Any]]] = [[] for _ in plain]
        rows = self._members.rows()
        numbers = keys.numbers(rows[:, : self._width], create=False).tolist()
        texts: list[Any] = [self.terms.spellings(column) for column in rows[:, self._width :].T]
        arguments = map(list, zip(*texts, strict=True)) if self.call.operand is None else texts[0]
        for number, argument in zip(numbers, arguments, strict=True):
            members[number].append([argument, 1])
        return [["DISTINCT", terms, inner] for terms, inner in zip(members, plain, strict=True)]

    def _sum_of(self, count: int, failures: int, total: int, rest: int) -> PlainSum:
        kind = next(kind for kind, number in _KINDS.items() if number == (self._kind or INTEGER))
        whole = (total << LIMB) + rest if kind is float else total
        return PlainSum(kind if count else int, count, whole if count else 0, self._scale if count else 0, failures)

    def load(self, states: Sequence[State], keys: np.ndarray, groups: np.ndarray) -> None:
        """Continue with these states of the groups with these keys."""
        inner = states
        if self._members is not None:
            inner = [state[2] for state in states]
            terms = [term for state in states for term, _ in state[1]]
            number = np.repeat(np.arange(len(states)), [len(state[1]) for state in states])
            parts = list(zip(*terms, strict=True)) if self.call.operand is None else [terms]
            columns = [self.terms.intern(list(part)) for part in parts]
            if columns:
                self._members.numbers(np.column_stack([keys[number], *columns]), create=True)
        fields = groups[:, self.at : self.at + k.NUMBERS]
        if self.call.name == "COUNT":
            counts = [unpack_int(state[1]) for state in inner]
            if max(counts, default=0) >= _FITS:
                raise Unfit
            fields[:, k.ARGUMENTS] = counts
        elif self.extreme:
            fields[:, k.BEST] = self.terms.intern(list(map(_best, inner)))
            fields[:, k.FAILED] = [state[1] for state in inner]
        else:
            self._load_sums(list(map(PlainSum.of, inner)), fields)

    def _load_sums(self, sums: list[PlainSum | None], fields: np.ndarray) -> None:
        plain = [one for one in sums if one is not None]
        kinds = {one.kind for one in plain if one.count}
        most = max((max(one.count, one.failures) for one in plain), default=0)
        if len(plain) < len(sums) or len(kinds) > 1 or most >= _FITS:
            raise Unfit
        self._kind = next((_KINDS[kind] for kind in kinds), None)
        self._scale = max((one.scale for one in plain), default=0)
        base = 2 if self._kind == DOUBLE else 10
        totals = [one.total * base ** (self._scale - one.scale) for one in plain]
        shift = LIMB if self._kind == DOUBLE else 0
        self._size = float(max(((abs(total) >> shift) + 1 for total in totals), default=0))
        if self._size >= _FITS:
            raise Unfit
        fields[:, k.ARGUMENTS], fields[:, k.FAILED] = [one.count for one in plain], [one.failures for one in plain]
        fields[:, k.TOTALS] = [total >> shift for total in totals]
        fields[:, k.REST] = [total & ((1 << shift) - 1) for total in totals]


def _size(numbers: np.ndarray, low: np.ndarray | None) -> np.ndarray:
    """The size of numbers with lower parts, rounded up."""
    size = np.abs(numbers.astype(np.float64))
    return size if low is None else size + np.ceil(low.astype(np.float64) / 2.0**LIMB)


def _carry(totals: np.ndarray, rest: np.ndarray) -> None:
    totals += rest >> LIMB
    rest &= (1 << LIMB) - 1


def _ranked(terms: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """The terms with these ranks; unbound where there is none."""
    known = ranks != NO_RANK
    ids = np.zeros(len(ranks), np.int32)
    ids[known] = terms[ranks[known]]
    return ids


def _best(state: State) -> str:
    """The term that counts for MIN, MAX or SAMPLE in this state."""
    extreme = restore_accumulator(state)
    assert isinstance(extreme, Min)
    return extreme.best()


def solutions_apart(frame: Bindings, names: Sequence[str]) -> np.ndarray:
    """The terms of these variables, side by side; equal terms have one id."""
    unbound = np.zeros(len(frame), np.int32)
    return np.column_stack([frame.terms.distinguished(frame.columns.get(name, unbound)) for name in names])
