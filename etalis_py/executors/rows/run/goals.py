"""The goals that wait at one side of a node: their store, and the generated code that uses it.

Definition.  A goal is a solution that has happened and awaits a partner ([EP] §5, rules (11) and (12)).  A store maps
the join key to a *bucket* of goals, in the order of their ends, because instants follow one another.  A single goal is
kept in a tuple, which costs the garbage collector nothing; with a second one the bucket becomes a list.  ``edges`` has,
for some keys, a number beyond which no goal of the bucket lies (see ``joins``), and ``orders`` their order
by value (see ``bands`` and ``first_fitting``); what is missing there can be found again.

Cost: ``insert`` and ``probe`` are one look-up, however many other goals there are; ``probe`` with a time adds a binary
search.  ``expire`` drops the goals older than the window allows, with one cut per bucket.  State: the goals within the
window.

Generated code does the same without a call: ``write_insert``, ``write_prune`` and ``write_retract`` are the only places
that write it, and the methods of the same names here define it.

>>> store = GoalStore(1, "j", "G", Layout(("k",), ()), key=(2,), longest=10)
>>> for goal in ((1, 1, "<a>"), (2, 2, "<b>"), (3, 3, "<a>")): store.insert(goal)
>>> store.probe("<a>"), store.probe("<a>", before=3)
([(1, 1, '<a>'), (3, 3, '<a>')], [(1, 1, '<a>')])
>>> store.expire(12), list(store.dump())
(1, [(3, 3, '<a>'), (2, 2, '<b>')])
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from etalis_py.executors.rows.generate.layout import Layout
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.values import SparqlError, decode_or_none

if TYPE_CHECKING:
    from etalis_py.executors.rows.run.first_fitting import Fits

Solution = tuple[Any, ...]
FEW = 32
"""So many goals, the first ones in the order of a policy, are looked at before ``GoalStore.fitting`` is asked."""

Buckets = dict[Any, list[Solution] | tuple[Solution, ...]]


@dataclass(slots=True)
class GoalStore:
    """The goals of one side of a node: who waits there, in which layout, and for how long.

    ``lasting`` has the length of the longest window while it may change.  ``first``: the first goal of each key stays,
    as it tells that there has been one.  ``number`` stands for the store in the journal.  ``explained``: the last item
    of a goal is its provenance.  ``extend`` adds the values computed when a goal is inserted.  ``changed`` is called
    when goals are put in or taken out by anything but generated code.
    """

    number: int
    node: str
    side: str
    layout: Layout
    key: tuple[int, ...]
    longest: int | None
    explained: bool = False
    first: bool = False
    buckets: Buckets = field(default_factory=dict)
    edges: dict[Any, Any] = field(default_factory=dict)
    orders: dict[Any, Any] = field(default_factory=dict)
    waited: int = 0
    lasting: list[int] | None = None
    extend: Callable[[Solution], Solution] | None = None
    changed: Callable[[], None] | None = None

    def key_of(self, x: Solution) -> Any:
        if not self.key:
            return None
        return x[self.key[0]] if len(self.key) == 1 else tuple(x[i] for i in self.key)

    def rebuild(self, x: Solution) -> Solution | None:
        """A stored solution with the values it carries computed again.

        None if one that is compared is an error: such a goal is never inserted, as it can pair with nothing.
        """
        whole = rebuilt(self.layout, x)
        if self.extend is None:
            return whole
        try:
            return self.extend(whole)
        except SparqlError:
            return None

    def _bare(self, x: Solution, width: int) -> Solution:
        """A goal as it is stored: its columns, and why it is there."""
        return (*x[:width], x[-1]) if self.explained else x[:width]

    def lay_out(self, layout: Layout) -> None:
        """Rewrite the goals in another layout, because new rules read other decoded values of them."""
        width = self.layout.width
        self.layout = layout
        goals = list(self.dump())
        self.clear()
        for x in goals:
            if (whole := self.rebuild(self._bare(x, width))) is not None:
                self.insert(whole)

    def insert(self, x: Solution) -> None:
        """Insert a goal in order of its end, which is mostly the last one under its key."""
        if self.changed is not None:
            self.changed()
        key = self.key_of(x)
        self._forget_order(key)
        bucket = self.buckets.get(key)
        if bucket is None:
            self.buckets[key] = (x,)
        elif x[0] < bucket[-1][0]:
            self.buckets[key] = sorted((*bucket, x))
        elif isinstance(bucket, tuple):
            self.buckets[key] = [*bucket, x]
        else:
            bucket.append(x)

    def insert_new(self, x: Solution) -> bool:
        """Insert a solution that may have become known late, unless it is there; whether it was not."""
        key, width = self.key_of(x), self.layout.width
        bucket = self.buckets.get(key)
        if bucket is None:
            self.buckets[key] = (x,)
            return True
        place = bisect_left(bucket, x[:width]) if x[0] <= bucket[-1][0] else len(bucket)
        if place < len(bucket) and bucket[place][:width] == x[:width]:
            return False
        if isinstance(bucket, tuple):
            self.buckets[key] = sorted((*bucket, x))
        else:
            bucket.insert(place, x)
        return True

    def insert_all(self, stored: Iterable[Solution]) -> None:
        """Insert many stored goals, without those whose compared values are errors: they can pair with nothing.

        This repeats ``insert`` with less work per goal, as the loop dominates the time to restore a large store.
        """
        if self.changed is not None:
            self.changed()
        buckets, whole = self.buckets, not self.layout.values and self.extend is None
        known = bool(self.edges or self.orders)
        key_of = itemgetter(*self.key) if self.key else self.key_of
        get = buckets.get
        for x in stored:
            if not whole:
                goal = self.rebuild(x)
                if goal is None:
                    continue
                x = goal
            key = key_of(x)
            if known:
                self._forget_order(key)
            bucket = get(key)
            if bucket is None:
                buckets[key] = (x,)
            elif bucket.__class__ is tuple:
                buckets[key] = [*bucket, x]
            else:
                bucket.append(x)  # type: ignore[union-attr]

    def probe(self, key: Any, before: int | None = None) -> Sequence[Solution]:
        """The goals under a key, in the order of their ends; ``before``: those that ended before it."""
        bucket = self.buckets.get(key, ())
        return list(bucket) if before is None else list(bucket[: bisect_left(bucket, (before,))])

    def fitting(
        self, key: Any, bucket: Sequence[Solution], place: int, fits: Fits, latest: bool, value: Any
    ) -> Iterator[int]:
        """The places in the bucket of a key of the goals that may fit a value, the latest (or earliest) first.

        ``fits`` compares the value at a ``place`` of a goal with it.  The first few goals may be missing.
        """
        tree = self.orders.get(key)
        if tree is None:
            from etalis_py.executors.rows.run.first_fitting import FirstFitting  # for large buckets only

            tree = self.orders[key] = FirstFitting(place, fits, latest=latest, passed=FEW)
        yield from tree.candidates(bucket, value)

    def retract(self, x: Solution) -> None:
        """Remove the goal with these times and columns."""
        if self.changed is not None:
            self.changed()
        width = self.layout.width
        goal = x if self.extend is None else self.rebuild(self._bare(x, width))
        if goal is None:
            return
        key = self.key_of(goal)
        bucket = self.buckets.get(key, ())
        for i, goal in enumerate(bucket):
            if goal[:width] == x[:width]:
                self.orders.pop(key, None)
                if len(bucket) == 1:
                    del self.buckets[key]
                    self.edges.pop(key, None)
                else:
                    del bucket[i]  # type: ignore[union-attr]
                return

    def dump(self) -> Iterator[Solution]:
        """Every goal, bucket by bucket; inserting them in this order gives the same store."""
        return (goal for bucket in self.buckets.values() for goal in bucket)

    def live(self) -> int:
        """How many goals wait."""
        return sum(map(len, self.buckets.values()))

    def live_at(self, now: int) -> int:
        """How many of the goals have not expired."""
        longest = self.longest if self.lasting is None else self.lasting[0]
        if longest is None:
            return self.live()
        oldest = (now - longest,)
        return sum(len(bucket) - self._stale(bucket, oldest) for bucket in self.buckets.values())

    def _stale(self, bucket: Sequence[Solution], oldest: tuple[int]) -> int:
        """How many goals of a bucket have expired."""
        ended = bisect_left(bucket, oldest)
        return max(ended - 1, 0) if self.first else ended

    def estimated_bytes(self) -> int:
        """About how much memory the goals take, from those of a few keys."""
        buckets = self.buckets
        sample = [x for bucket in islice(buckets.values(), _SAMPLE) for x in bucket[:_SAMPLE]]
        sample += [x for bucket in islice(reversed(buckets.values()), _SAMPLE) for x in bucket[-_SAMPLE:]]
        return 100 * len(buckets) + estimated_bytes(sample) * self.live() // max(1, len(sample))

    def expire(self, now: int) -> int:
        """Drop the goals too old to match within the window, and empty buckets; returns how many were dropped."""
        dropped = 0
        empty = []
        longest = self.longest if self.lasting is None else self.lasting[0]
        for key, bucket in self.buckets.items():
            if longest is not None and bucket and bucket[0][0] < now - longest:
                stale = self._stale(bucket, (now - longest,))
                dropped += stale
                if isinstance(bucket, list):
                    del bucket[self.first : self.first + stale]
                elif stale:
                    bucket = ()
            if not bucket:
                empty.append(key)
        for key in empty:
            del self.buckets[key]
            self._forget_order(key)
        return dropped

    def _forget_order(self, key: Any) -> None:
        self.edges.pop(key, None)
        self.orders.pop(key, None)

    def clear(self) -> None:
        if self.changed is not None:
            self.changed()
        self.buckets.clear()
        self.edges.clear()
        self.orders.clear()


_SAMPLE = 32  # the size of so many solutions is measured, as measuring all of them would take too long


def estimated_bytes(solutions: Sequence[Solution]) -> int:
    """About how much memory solutions take, judging by an evenly spread sample.

    A term shared by several solutions is counted each time.
    """
    sample = solutions[:: len(solutions) // _SAMPLE + 1]
    return sum(map(_bytes, sample)) * len(solutions) // max(1, len(sample))


def _bytes(x: Solution) -> int:
    return 56 + 8 * len(x) + sum([49 + len(term) for term in x if term.__class__ is str])


def rebuilt(layout: Layout, x: Solution) -> Solution:
    """The solution with the decoded values of its layout; any items it already has after its columns stay last."""
    width = layout.width
    values = [decode_or_none(x[layout.column(name)]) for name in layout.values]
    return (*x[:width], *values, *x[width:])


def computed_values(bucket: Sequence[Solution], value: Callable[[Solution], Any]) -> list[Any]:
    """The values of the goals, without those that are errors."""
    values = []
    for x in bucket:
        with suppress(SparqlError):
            values.append(value(x))
    return values


def edge_of(values: list[Any], best: Callable[..., Any], value: Any) -> Any:
    """The best of the values of goals, if all are of the class of a value that passes none; else that value.

    The best one bounds searches for values beyond this one, too.  NaN passes nothing.
    """
    if set(map(type, values)) != {type(value)}:
        return value
    if isinstance(value, float):
        values = [other for other in values if other == other]
    found = best(values, default=value)
    return found if best(found, value) == value else value  # what is better has expired


def take_out(bucket: Sequence[Solution], found: list[Solution]) -> tuple[Sequence[Solution], list[Solution]]:
    """The goals of a bucket that stay, and those that were found there, perhaps more than once.

    It costs as much as has been found, if that is what came last, and else as much as there is.
    """
    if isinstance(bucket, list):
        if len(found) == 1 and bucket[-1] is found[0]:
            bucket.pop()
            return bucket, found
        gone = {id(x) for x in found}
        last = bucket[-len(gone) :]
        if all(id(x) in gone for x in last):
            del bucket[-len(gone) :]
            return bucket, last
    gone = {id(x) for x in found}
    return [x for x in bucket if id(x) not in gone], [x for x in bucket if id(x) in gone]


# --- the same, written into generated code ---------------------------------------------------------------------


def write_insert(w: Writer, goals: str, insort: str = "") -> None:
    """Write ``insert`` of goal ``x`` under key ``k``, whose bucket is ``b``.

    ``insort`` is the name of the function that inserts in order; it is only given if goals may become known late.
    """
    with w.block("if b is None:"):
        w(f"{goals}[k] = (x,)")
    # A solution known late may have ended before goals that wait already.
    with w.block("elif b.__class__ is tuple:"):
        w(f"{goals}[k] = {'sorted((*b, x))' if insort else '[*b, x]'}")
    with w.block("else:"):
        w(f"{insort}(b, x)" if insort else "b.append(x)")


def write_prune(w: Writer, longest: str, *, exactly: bool = False) -> None:
    """Write ``expire`` of bucket ``b``: it drops the old goals once half of the bucket is too old.

    Dropping half a bucket at a time costs little per goal; expired goals that remain are refused by the test of the
    window.  ``exactly``: no expired goal may remain.  ``longest`` is the source of how long goals are kept; empty if
    they are kept for ever.
    """
    if not longest:
        return
    with w.block(f"if b[{'0' if exactly else 'len(b) >> 1'}][0] < t - {longest}:"):
        with w.block("if b.__class__ is tuple:"):
            w("b = ()")  # the empty bucket stays in the store until the next sweep
        with w.block("else:"):
            w(f"del b[:bisect_left(b, (t - {longest},))]")


def write_prune_but_first(w: Writer, longest: str) -> None:
    """Write the ``expire`` of bucket ``b`` that leaves its first goal there, and half of the others at most."""
    with w.block(f"if len(b) > 2 and b[len(b) >> 1][0] < t - {longest}:"):
        w(f"del b[1:bisect_left(b, (t - {longest},))]")


def write_retract(w: Writer, goals: str, key: str, *known: str) -> None:
    """Write ``retract`` of goal ``i`` of bucket ``b``; with a bucket goes what is ``known`` of it: edge and order."""
    with w.block("if len(b) == 1:"):
        w(f"del {goals}[{key}]")
        for by_key in filter(None, known):
            w(f"{by_key}.pop({key}, None)")
    with w.block("else:"):
        w("del b[i]")
