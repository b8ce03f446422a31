"""The goals that wait at one side of a node, as arrays, looked up by the numbers of their join keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from etalis_py.executors.columns.bands import banded_pairs
from etalis_py.executors.columns.growable_array import GrowableArray, free_slots, zeros
from etalis_py.executors.columns.kernels import goals as g
from etalis_py.executors.columns.kernels.consuming import BLOCK, NOTHING, OLDER, consume, remove_marked
from etalis_py.executors.columns.kernels.joining import UNBOUNDED, probe
from etalis_py.executors.columns.kernels.keys import FULL, number_keys, rehash_keys, slots_for
from etalis_py.executors.columns.kernels.ordering import distinct_numbers
from etalis_py.executors.columns.tables import NO_TIMES, doubled, ranges
from etalis_py.executors.columns.terms import Terms
from etalis_py.kernel.goals import goals_table
from etalis_py.values.errors import LimitExceeded

Asking = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rows that look for goals, in order of time: ends, starts and compared values."""
Goals = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""New goals, in order of time: ends, starts, terms and compared values."""
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Buckets, ends, starts, terms and values of all goals."""


MOST = 2**31 - 1
"""The most places an arena may have: buckets use 32-bit numbers."""


class Keys:
    """Numbers the join keys of a node from 0, for both of its sides.

    A key is a row of term ids, and after them of ``others`` numbers that are none.
    """

    def __init__(self, width: int, kind: type = np.int32, others: int = 0) -> None:
        self.width = width
        self._terms = width - others
        self.count = 0
        self._slots = free_slots(slots_for(0), np.int32)
        self._keys = GrowableArray(int(FULL * len(self._slots)), kind, width)

    def numbers(self, rows: np.ndarray, *, create: bool) -> np.ndarray:
        """The number of each row's key; -1 for an unknown key, if it is not to be created."""
        if not self.width:
            self.count = 1
            return np.zeros(len(rows), np.int64)
        if create:
            self.make_room(self.count + len(rows))
        rows, numbers = np.ascontiguousarray(rows, self._keys.kind), np.empty(len(rows), np.int64)
        self.count = number_keys(rows, self._keys.array, self._slots, self.count, create, numbers)
        return numbers

    @property
    def bytes(self) -> int:
        """About how much memory the keys take, with the table that finds them."""
        return self.count * (self.width * int(self._keys.array.itemsize) + 8)

    def clear(self) -> None:
        """Forget all keys."""
        self.count = 0
        self._slots[:] = -1

    def make_room(self, count: int) -> None:
        """Make room for ``count`` keys."""
        if count > len(self._keys.array):
            self._slots = free_slots(slots_for(count), np.int32)
            self._keys.grow(int(FULL * len(self._slots)))
            rehash_keys(self._keys.array, self.count, self._slots)

    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """The keys by their numbers, and the hash table that finds them (``kernels.keys``)."""
        return self._keys.array, self._slots

    def rows(self) -> np.ndarray:
        """The keys by their numbers."""
        return self._keys.array[: self.count]

    def retain(self, live: np.ndarray, renumbered: np.ndarray) -> None:
        """Forget the keys that are not live, and renumber the terms of the others."""
        if not self.width:
            return
        keys = self.rows()[live]
        keys[:, : self._terms] = renumbered[keys[:, : self._terms]]
        self.count = len(keys)
        self._keys.array[: self.count] = keys
        self._slots[:] = -1
        rehash_keys(self._keys.array, self.count, self._slots)


class Changes:
    """The changes to a store since recording began, for the journal.

    ``keys`` are the keys of inserted goals, ``gone`` the retracted goals that were there before, i.e. ended before
    ``since``.  ``whole``: other changes happened, too, so the journal has to list all goals.
    """

    def __init__(self, since: int, *, whole: bool) -> None:
        self.since = since
        self.whole = whole
        self.keys: list[np.ndarray] = []
        self.gone: list[pa.RecordBatch] = []

    def put_in(self, keys: np.ndarray, ends: np.ndarray) -> None:
        """Record that goals are inserted under these keys."""
        if len(ends):
            # An older goal would not be among the last of its bucket, where ``ColumnGoalStore.put_in`` looks.
            self.whole |= bool(ends.min() < self.since)
            self.keys.append(keys[keys >= 0])

    def take_out(self, ends: np.ndarray, starts: np.ndarray, ids: np.ndarray, terms: Terms) -> None:
        """Record that these goals are retracted."""
        old = np.flatnonzero(ends < self.since)
        if len(old):
            self.gone.append(goals_table(ends[old], starts[old], spelled_columns(ids[old], terms)))

    def renumber(self, live: np.ndarray) -> None:
        """Forget the keys that are not live."""
        numbers = np.cumsum(live) - 1
        self.keys = [numbers[keys[live[keys]]] for keys in self.keys]


class ColumnGoalStore:
    """The goals that wait at one side of a node, in buckets by key, ordered by end (``kernels.goals``).

    Inserting costs a copy of the goal, and now and then one of its bucket.  A goal takes 16 bytes for its times, 4 for
    each column and 8 for each value that conditions compare, and up to twice that in a bucket that has grown; a key
    takes 20 bytes here and about 12 among the ``Keys``.
    """

    def __init__(
        self,
        keys: Keys,
        width: int,
        values: int,
        longest: int | None,
        lasting: list[int] | None = None,
        *,
        first: bool = False,
    ) -> None:
        """``longest``: how long a match may last, or None; ``lasting``: a list with the current value, if it varies.

        ``first``: the first goal of each key stays, as it tells that there has been one.
        """
        self.keys = keys
        self._first = first
        self._longest, self._lasting = longest, lasting
        self._buckets = GrowableArray(16, np.int32, 4)
        self._counts = np.zeros(16, np.int32)
        self.used = 0
        self.ends, self.starts, self.terms, self.values = _arena(16, width, values)
        self.odd = False
        """Whether some goal has a value that the kernels cannot compare."""
        self.changes: Changes | None = None
        """The changes, while a journal is kept."""
        self._known: int | None = 0  # how many goals wait; None after a kernel may have removed some
        self.version = 0
        """Changes whenever anything but the operator inserts or renumbers goals."""

    @property
    def buckets(self) -> np.ndarray:
        """The buckets of the keys, by their numbers (``kernels.goals``)."""
        return self._buckets.array

    @property
    def longest(self) -> int | None:
        """How long a goal is kept: one that ended longer ago can no longer join and has expired."""
        return self._longest if self._lasting is None else self._lasting[0]

    def reserve(self, keys: np.ndarray, now: int) -> None:
        """Make room for goals with these keys.  Goals are looked up at ``now`` or later."""
        self.fit()
        space = g.space_needed(keys, self.buckets, self._counts)
        if self.used + space > len(self.ends):
            self.repack(len(keys), now)
        self.used = g.make_room(
            keys, self.buckets, self._counts, self.used, self.ends, self.starts, self.terms, self.values
        )

    @property
    def bytes(self) -> int:
        """The memory that goals have been written to; some of it may be free again."""
        return self.used * (16 + 4 * self.terms.shape[1] + 8 * self.values.shape[1]) + 20 * self.keys.count

    def fit(self) -> None:
        """Make sure that every key has a bucket; keys may have been added for the other side of the node."""
        count = self.keys.count
        if count > len(self.buckets):
            self._buckets.grow(2 * count)
            self._counts = zeros(2 * count, np.int32)

    def repack(self, new: int, now: int) -> None:
        """Drop expired goals, and move to an arena with room for the goals to double, and for new ones."""
        self.sweep(now)
        live, packed = g.live_space(self.buckets, self._count)
        # Packing leaves the buckets little spare room, so each may have to move once more, to twice its size.
        room = packed + 2 * (live + new) + 16
        if room > MOST:
            raise LimitExceeded(
                f"{live} goals wait on one side of a rule, for which a store in columns has no more room; bound the "
                "pattern with WITHIN, use a consuming policy, or run it on Spark in more shards"
            )
        arena = _arena(room, self.terms.shape[1], self.values.shape[1])
        self.used = g.repack(
            self.buckets,
            self._count,
            self.ends,
            self.starts,
            self.terms,
            self.values,
            *arena,
        )
        self.ends, self.starts, self.terms, self.values = arena

    def insert(
        self, keys: np.ndarray, ends: np.ndarray, starts: np.ndarray, terms: np.ndarray, values: np.ndarray, now: int
    ) -> None:
        """Insert goals in order of their ends, except those with key -1.  They are looked up at ``now`` or later."""
        if not len(keys):
            return
        if self.changes is not None:
            self.changes.put_in(keys, ends)
        self.reserve(keys, now)
        g.append(keys, ends, starts, terms, values, *self._arrays)
        if self._known is not None:
            self._known += int(np.count_nonzero(keys >= 0))

    @property
    def arena(self) -> Arrays:
        """The arrays, for kernels that may remove goals; so the number of goals is no longer known."""
        self._known = None
        return self._arrays

    @property
    def _arrays(self) -> Arrays:
        return self.buckets, self.ends, self.starts, self.terms, self.values

    def pairs(
        self,
        relation: int,
        sought: np.ndarray,
        asking: Asking,
        bound: int,
        ops: np.ndarray,
        most: int = UNBOUNDED,
        since: np.ndarray = NO_TIMES,
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """The pairs of goals with the rows that look them up by key (``probe``).

        Gives portions of about ``most`` pairs: the slice of the rows, then for each pair the place of its goal and the
        number of its row in the slice.  ``since``: when the goals of each row ended at the earliest; or empty.
        """
        self.fit()
        first = row = n = 0
        size, asked = 2 * len(sought) + 64, (*asking, since)
        goals, rows = (np.empty(size if most == UNBOUNDED else min(size, max(64, most)), np.int64) for _ in range(2))
        notes = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.float64)
        arrays = self._arrays if bound == UNBOUNDED else self.arena  # with a bound, expired goals are removed
        while row < len(sought):
            row, n = probe(relation, row, n, sought, *asked, bound, ops, self._counts, notes, arrays, goals, rows)
            if row < len(sought) and n < most:
                goals, rows = doubled(goals), doubled(rows)
                continue
            yield slice(first, row), goals[:n], rows[:n] - first
            first, n = row, 0
            if row < len(sought):
                goals, rows = np.empty_like(goals), np.empty_like(rows)

    def banded(
        self,
        band: tuple[int, int],
        relation: int,
        sought: np.ndarray,
        asking: Asking,
        bound: int,
        ops: np.ndarray,
        most: int,
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """All these pairs, if two conditions bound the goals and it is faster to search them in order."""
        self.fit()
        buckets, ends, starts, terms, values = self._arrays
        arena = buckets[: self._count], ends, starts, terms, values
        return banded_pairs(band, relation, sought, asking, bound, ops, arena, most)

    def met(self, sought: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """A mask of the rows whose key has a goal that ended by then, where the first of each key never leaves."""
        self.fit()
        buckets = self.buckets[np.maximum(sought, 0)]
        held = (sought >= 0) & (buckets[:, g.HIGH] > buckets[:, g.LOW])
        firsts = np.where(held, buckets[:, g.AT] + buckets[:, g.LOW], 0)
        return held & (self.ends[firsts] <= ends)

    def taken(
        self,
        relation: int,
        latest: bool,
        keys: np.ndarray,
        arriving: Goals,
        sought: np.ndarray,
        asking: Asking,
        bound: int,
        ops: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Let each asking row take a goal (``consume``); arriving goals that are not taken stay and wait.

        Returns the numbers of the rows that took a goal, and the ends, starts and terms of these goals.
        """
        self.fit()
        many, count = len(keys), len(sought)
        ends, _, terms, values = arriving
        copies = np.empty(count, np.int64), np.empty(count, np.int64), np.empty((count, terms.shape[1]), np.int32)
        newer = np.empty(many, np.int64), np.empty(many, np.int64), np.empty((many, 1), np.int32), np.empty_like(values)
        size = many + count + 1
        notes = (
            *(np.empty(size, np.int64) for _ in range(3)),
            np.empty(size),
            np.empty(size),
            np.empty(size, np.int64),
        )
        arena = self._arrays if bound == UNBOUNDED else self.arena
        lowest = tuple(np.full(len(places) // BLOCK + 1, -np.inf) for places in (newer[0], arena[1]))
        taken, gone = np.full(count, NOTHING), np.zeros(many, np.bool_)
        some = consume(
            relation,
            latest,
            keys,
            arriving,
            sought,
            asking,
            bound,
            ops,
            self._counts,
            notes,
            lowest,
            newer,
            arena,
            taken,
            gone,
            copies,
        )
        if self._known is not None:
            self._known -= int(np.count_nonzero(taken == OLDER))
        keys[gone] = -1
        now = min((int(column.min()) for column in (ends, asking[0]) if len(column)), default=0)
        self.insert(keys, *arriving, now)
        ended, started, goals = (column[:some] for column in copies)
        return np.flatnonzero(taken != NOTHING), ended, started, goals

    @property
    def _count(self) -> int:
        return min(self.keys.count, len(self.buckets))

    def live(self) -> int:
        """How many goals wait, including expired ones that have not been swept yet."""
        if self.longest is not None:
            self._known = None
        if self._known is None:
            self._known = int(g.live_space(self.buckets, self._count)[0])
        return self._known

    def sweep(self, now: int) -> int:
        """Let expired goals go; returns how many."""
        if self.longest is None:
            return 0
        keys = np.flatnonzero(self.live_keys()) if self._first else np.zeros(0, np.int64)
        firsts = self.firsts(keys)
        gone = int(g.expire_all(self.buckets, self._count, self.ends, now - self.longest))
        return gone - self.keep_firsts(keys, firsts)

    def firsts(self, keys: np.ndarray) -> np.ndarray:
        """The places of the first goals of these keys."""
        return self._ranges(keys)[0]

    def keep_firsts(self, keys: np.ndarray, firsts: np.ndarray) -> int:
        """Let the goals stay that were the first of these keys, and have expired since; returns how many.

        What has expired is still in the arena: the first goal moves to the last of these places.
        """
        places = self.firsts(keys)
        expired = places > firsts
        source, target = firsts[expired], places[expired] - 1
        for column in (self.ends, self.starts, self.terms, self.values):
            column[target] = column[source]
        self.buckets[keys[expired], g.LOW] -= 1
        return len(source)

    def keep_from(self, keys: np.ndarray, firsts: np.ndarray) -> None:
        """Let all goals of these keys stay from these places on, although some have expired since."""
        self.buckets[keys, g.LOW] = firsts - self.buckets[keys, g.AT]

    def goals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ends, starts and terms of all goals, in order of their ends."""
        places = np.empty(self.live(), np.int64)
        g.places_of_all(self.buckets, self._count, places)
        return self._at(places)

    def goals_of(self, keys: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
        """The goals of these keys: their keys, ends, starts and terms; and their places."""
        first, last = self._ranges(keys)
        places = ranges(first, last - first)
        goals = np.repeat(keys, last - first), self.ends[places], self.starts[places], self.terms[places]
        return goals, places

    def put_in(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ends, starts and terms of the goals inserted since recording began.

        They are the last in the buckets of their keys, because goals arrive in order of their ends.
        """
        assert self.changes is not None
        keys = np.concatenate([np.zeros(0, np.int64), *self.changes.keys])
        touched, counts = np.unique(keys, return_counts=True)
        first, last = self._ranges(touched)
        counts = np.minimum(counts, last - first)
        places = ranges(last - counts, counts)
        return self._at(places[self.ends[places] >= self.changes.since])

    def retract(self, keys: np.ndarray, ends: np.ndarray, starts: np.ndarray, ids: np.ndarray, terms: Terms) -> None:
        """Remove the goals with these keys, times and spellings; of equal goals, only as many as are given."""
        touched = distinct_numbers(keys[keys >= 0])
        first, last = self._ranges(touched)
        places = ranges(first, last - first)
        times = Keys(2, np.int64)
        times.numbers(np.column_stack([ends, starts]), create=True)
        places = places[times.numbers(np.column_stack([self.ends[places], self.starts[places]]), create=False) >= 0]
        gone = Keys(2 + ids.shape[1], np.int64)
        numbers = gone.numbers(_rows(ends, starts, ids, terms), create=True)
        here = gone.numbers(_rows(self.ends[places], self.starts[places], self.terms[places], terms), create=False)
        places, here = places[here >= 0], here[here >= 0]
        order = np.argsort(here, kind="stable")
        places, here = places[order], here[order]
        among = np.arange(len(here)) - np.searchsorted(here, here, "left")
        taken = np.zeros(len(self.ends), np.bool_)
        taken[places[among < np.bincount(numbers, minlength=gone.count)[here]]] = True
        remove_marked(touched, taken, *self.arena)
        self.version += 1

    def _ranges(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the goals of these keys begin and end in the arena."""
        buckets = self.buckets[keys]
        return buckets[:, g.AT] + buckets[:, g.LOW], buckets[:, g.AT] + buckets[:, g.HIGH]

    def _at(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        places = places[np.argsort(self.ends[places], kind="stable")]
        return self.ends[places], self.starts[places], self.terms[places]

    def live_keys(self) -> np.ndarray:
        """A mask of the keys that have a goal."""
        held = self.buckets[: self._count, g.HIGH] > self.buckets[: self._count, g.LOW]
        return np.concatenate([held, np.zeros(self.keys.count - self._count, np.bool_)])

    def mark_terms(self, marked: np.ndarray) -> None:
        """Mark the terms of all goals."""
        g.mark_terms(self.buckets, self._count, self.terms, marked)

    def retain(self, live: np.ndarray, renumbered: np.ndarray) -> None:
        """Forget the keys that are not live and renumber the terms.  To be called before ``Keys.retain``."""
        if self.changes is not None and self.keys.width:
            self.changes.renumber(live)
        if self.keys.width and not live.all():
            kept = np.flatnonzero(live[: self._count])
            self.buckets[: len(kept)] = self.buckets[kept]
            self.buckets[len(kept) :] = 0
        g.renumber_terms(self.buckets, len(self.buckets), self.terms, renumbered)
        self.version += 1

    def clear(self) -> None:
        """Forget all goals."""
        self.buckets[:] = 0
        self.used = 0
        self._known = 0
        self.odd = False
        self.version += 1


def spelled_columns(ids: np.ndarray, terms: Terms) -> list[Any]:
    """The spellings of columns of terms."""
    if not len(ids):
        return [pa.array([], pa.large_string())] * ids.shape[1]
    return [terms.spelled(np.ascontiguousarray(column)) for column in ids.T]


def _rows(ends: np.ndarray, starts: np.ndarray, ids: np.ndarray, terms: Terms) -> np.ndarray:
    """The times and terms of goals as rows, with ids that are equal exactly if the spellings are."""
    rows = np.empty((len(ends), 2 + ids.shape[1]), np.int64)
    rows[:, 0], rows[:, 1] = ends, starts
    for i, column in enumerate(ids.T):
        rows[:, 2 + i] = terms.distinguished(column)
    return rows


def _arena(room: int, width: int, values: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    times = zeros(room, np.int64), zeros(room, np.int64)
    return *times, zeros(room, np.int32, width), zeros(room, np.float64, values)
