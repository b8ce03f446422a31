"""REPEAT: runs of solutions, each the next of the one before it.

Definition.  x₁ … x_k, m ≤ k ≤ n, that agree on the BY variables; x_{i+1} is among the first that follow x_i (it starts
after x_i ends, and no other that does so ends earlier); the condition holds at every step; no N that is compatible on
the BY variables lies between two of them; with GAP d, x_{i+1} starts at most d after x_i ends.  LONGEST keeps, of the
runs with the same last element, those with the most.  ``PREVIOUS(?p, n)`` in the condition is the value n elements
back in the run, unbound where it has fewer.
A row is reported when its last element ends: the BY variables, the aggregates, and the hull.

State: for each key the elements that have no next one yet (mostly one), each with the runs that end in it: as many as
may still become longer, or with LONGEST the longest alone where the condition asks neither for FIRST nor for at most n;
with ``PREVIOUS(?p, n)`` the longest of those with the same last n elements.
Cost per solution: those runs, of whatever length: one hands its accumulators on to that with one more element.  One
element with one run is the usual state of LONGEST, a ``Single``, which generated code (``longest``) continues.

A trace of ``{?c :price ?x} REPEAT 3 BY ?c WHERE (?x > PREVIOUS(?x))``: 1@1, 2@2, 3@3 → [1, 3]; 4@4 → [2, 4].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.runs import counted, keeps_longest_alone, sees_beginning

from etalis_py.executors.rows.generate.layout import Layout
from etalis_py.executors.rows.generate.limit_checks import MANY
from etalis_py.executors.rows.run.goals import rebuilt
from etalis_py.values import SparqlError
from etalis_py.values.functions import Accumulator, accumulator, restore_accumulator, take_back

Solution = tuple[Any, ...]
Key = tuple[str, ...]
Step = Callable[..., bool]
"""From an element, the one before it, the first, the instant, the terms of the aggregates that it reads, and the
elements from the second before it back, as far as ``PREVIOUS(?p, n)`` looks."""
Operand = Callable[[Solution], tuple[Any, Any]]
Row = Callable[..., Solution]
"""From a run's length, first and last element, accumulators, and with UNTIL what ended it."""


class Totals(list[Accumulator]):
    """The accumulators of a run; ``since``: the element added to them since, for the run that goes on with it."""

    __slots__ = ("since",)

    def __init__(self, accumulators: Iterable[Accumulator] = ()) -> None:
        super().__init__(accumulators)
        self.since: Solution | None = None


Run = tuple[int, Solution, Totals, tuple[Any, ...], tuple[Solution, ...]]
"""One run so far: its length, its first element, its accumulators, its provenance if explanations are kept, and those
before its last element that the condition looks back to, the nearest first."""


class Element:
    """A solution without a next one, and the runs that end in it.

    ``blocked``: when the first N after it ended; ``ended``: whether the runs have been reported, for UNTIL.
    """

    __slots__ = ("blocked", "ended", "runs", "x")

    def __init__(self, x: Solution, runs: list[Run], blocked: int | None = None, ended: bool = False) -> None:
        self.x = x
        self.runs = runs
        self.blocked = blocked
        self.ended = ended


class Single:
    """A key of LONGEST with one element and one run: its length, its first element, and its accumulators."""

    __slots__ = ("blocked", "count", "first", "totals", "x")

    def __init__(
        self,
        x: Solution,
        totals: Totals,
        count: int = 1,
        first: Solution = (),
        blocked: int | None = None,
    ) -> None:
        self.x = x
        self.totals = totals
        self.count = count
        self.first = first or x
        self.blocked = blocked

    def element(self) -> Element:
        return Element(self.x, [(self.count, self.first, self.totals, (), ())], self.blocked)


@dataclass(slots=True)
class RunsOfKey:
    """The elements of one key: those of earlier instants, and those of instant ``now``."""

    open: list[Element] = field(default_factory=list)
    fresh: list[Element] = field(default_factory=list)
    now: int = 0

    def settle(self, t: int) -> None:
        """Begin instant ``t``: drop the elements that have found their next one in instant ``now``, which is over."""
        fresh, before = self.fresh, self.open
        self.now = t
        if not fresh:
            return
        latest = fresh[0].x[1] if len(fresh) == 1 else max([e.x[1] for e in fresh])
        kept = [e for e in before if e.x[0] >= latest]
        if kept:
            self.open, self.fresh = kept + fresh, []
            return
        before.clear()
        self.open, self.fresh = fresh, before

    def single(self, t: int) -> Single | None:
        """The key as a ``Single`` for instant ``t``, if it has one element with one run; else None."""
        if self.now != t:
            self.settle(t)
        if self.fresh or len(self.open) != 1 or len(self.open[0].runs) != 1:
            return None
        (e,) = self.open
        ((count, first, totals, _, _),) = e.runs
        return Single(e.x, totals, count, first, e.blocked)


@dataclass(frozen=True, slots=True)
class RunFunctions:
    """What is generated for a ``Run`` node, and asked for each element.

    ``may_be_unbound``: whether an element, an N, or a B that ends runs may leave a BY variable unbound.  ``because``
    makes the provenance of a row, if explanations are kept.  ``weigh`` raises an error if so many runs, some of which
    it is given, are too many for an instant; it returns the number at which to ask again.
    """

    step: Step | None
    operands: Sequence[Operand | None]
    row: Row
    may_be_unbound: bool
    because: Callable[[tuple[Any, ...]], Any] | None
    weigh: Callable[[int, Sequence[Run]], int]


class Runs:
    """The state of one ``Run`` node and its rules."""

    def __init__(self, node: ir.Run, functions: RunFunctions) -> None:
        self.node = node
        self.may_be_unbound = functions.may_be_unbound
        self.step = functions.step
        self.because = functions.because
        self.columns = node.child.columns
        self.keys = tuple(2 + self.columns.index(k) for k in node.keys)
        self.key_of = _getter(self.keys)
        self.counted = tuple(zip(counted(node), functions.operands, strict=True))
        seen = () if node.absent is None else node.absent.columns
        self.absent_keys = places_of(node.keys, seen)
        self.absent_of = _getter(self.absent_keys) if all(self.absent_keys) else None
        self.longest_alone = keeps_longest_alone(node)
        self.back = alg.looks_back(node.condition) - 1
        self.longest_alike = node.longest and node.most is None and not sees_beginning(node)
        self.row = functions.row
        self.weigh = functions.weigh
        self.partitions: dict[Any, RunsOfKey | Single] = {}
        self.waited = 0

    @property
    def warning(self) -> str:
        """What is probably unintended, judging by the solutions so far; mostly nothing."""
        return ""

    def advance(self, t: int, rows: list[Solution]) -> list[Solution]:
        """The rows of the runs that end in these solutions."""
        solutions: list[Solution] = []
        node, partitions, key_of, freely = self.node, self.partitions, self.key_of, self._goes_on_freely
        near, at_once = None if node.gap is None else self._near, node.until is None
        made, most = 0, MANY  # where several elements have one time, each may be next, and runs multiply
        for x in rows:
            key = key_of(x)
            partition = partitions.get(key)
            if partition.__class__ is not RunsOfKey:
                partition = partitions[key] = RunsOfKey([] if partition is None else [partition.element()], now=t)  # type: ignore[union-attr]
            elif partition.now != t:
                partition.settle(t)
            runs = [self._begun(x)]
            for e in partition.open:
                if e.x[0] < x[1] and (e.blocked is None or x[1] <= e.blocked) and (near is None or near(e.x, x)):
                    made += len(e.runs)
                    if made > most:
                        most = self.weigh(made, e.runs)
                    if freely:
                        runs += [self._extended(r, e.x, x) for r in e.runs]
                    else:
                        runs += [new for r in e.runs if (new := self.extended(r, e.x, x, t)) is not None]
            chosen = runs
            if node.longest and len(runs) > 1:
                most = max([r[0] for r in runs])
                chosen = [r for r in runs if r[0] == most]
            if at_once:
                solutions += [self._row(r, x) for r in chosen if r[0] >= node.least]
            if self.longest_alone:
                runs = chosen
            elif self.longest_alike:
                runs = _longest_alike(runs)
            elif node.most is not None and at_once:
                runs = [r for r in runs if r[0] != node.most]
            partition.fresh.append(Element(x, runs))
        return solutions

    def interrupt(self, t: int, rows: list[Solution]) -> None:
        """Solutions of N: no run goes on over them, from an element that ended before they started."""
        direct = self.absent_of if not self.may_be_unbound else None
        partitions = self.partitions
        for n in rows:
            if direct is None:
                for partition in self.compatible(n, self.absent_keys):
                    _block(partition, n)
                continue
            e = partitions.get(direct(n))
            if e.__class__ is not Single:
                _block(e, n)
            elif e.blocked is None and e.x[0] < n[1]:
                e.blocked = n[0]

    def compatible(self, n: Solution, places: tuple[int, ...]) -> Iterable[RunsOfKey | Single]:
        """The keys that a solution agrees with; ``places``: where it has the BY variables."""
        if all(places) and not self.may_be_unbound:
            only = self.partitions.get(_getter(places)(n))
            return () if only is None else (only,)
        values = tuple([n[i] if i else "" for i in places])
        keyed = ((_values(key, len(self.keys)), partition) for key, partition in self.partitions.items())
        return [p for key, p in keyed if all(a == b or not a or not b for a, b in zip(key, values, strict=True))]

    @property
    def _goes_on_freely(self) -> bool:
        """Whether every run may go on: there is no condition and no window, and those of n elements are not kept."""
        kept = self.node.until is not None and self.node.most is not None
        return self.step is None and self.node.bound is None and not kept

    def extended(self, r: Run, last: Solution, x: Solution, t: int) -> Run | None:
        """The run with one more element; None if the condition, the window or the most elements stop it."""
        bound, step, totals = self.node.bound, self.step, self.node.totals
        if r[0] == self.node.most or (bound is not None and x[0] > bound.after(r[1][1])):
            return None
        if step is not None and not totals and not step(x, last, r[1], t, (), r[4]):
            return None
        longer = self._extended(r, last, x)
        if totals and step is not None:
            counted = [result(a) for a in longer[2][-len(totals) :]]
            if not step(x, last, r[1], t, counted, r[4]):
                self._give_back(r[2], x)
                return None
        return longer

    def _near(self, last: Solution, x: Solution) -> bool:
        """Whether an element starts within the GAP of the one before it."""
        assert self.node.gap is not None
        return bool(x[1] <= self.node.gap.after(last[0]))

    def _begun(self, x: Solution) -> Run:
        because = () if self.because is None else (x[-1],)
        return 1, x, self.begun(x), because, ()

    def begun(self, x: Solution) -> Totals:
        """The accumulators of a run of one element."""
        if not self.counted:
            return Totals()
        totals = Totals(accumulator(a.name, distinct=a.distinct, separator=a.separator) for a, _ in self.counted)
        self.count(totals, x)
        return totals

    def _extended(self, r: Run, last: Solution, x: Solution) -> Run:
        count, first, totals, because, back = r
        if self.because is not None:
            because = (*because, x[-1])
        if totals:
            totals = self._longer(totals, x)
        return count + 1, first, totals, because, (last, *back)[: self.back]

    def _longer(self, totals: Totals, x: Solution) -> Totals:
        """The accumulators with one more element: the same ones, or copies if another one has been added to them."""
        since = totals.since
        if since is None:
            totals.since, longer = x, Totals(totals)
        else:
            longer = Totals(restore_accumulator(total.state()) for total in totals)
            self._take_back(longer, since)
        self.count(longer, x)
        return longer

    def _give_back(self, totals: Totals, x: Solution) -> None:
        """The run does not go on with this element after all."""
        if totals.since is x:
            self._take_back(totals, x)
            totals.since = None

    def count(self, totals: Sequence[Accumulator], x: Solution) -> None:
        """Add an element to the accumulators."""
        for total, (_, operand) in zip(totals, self.counted, strict=True):
            if operand is None:
                value: Any = x[2 : 2 + len(self.columns)]
                total.add(value, value)
                continue
            try:
                total.add(*operand(x))
            except SparqlError:
                total.fail()

    def _take_back(self, totals: Totals, x: Solution) -> None:
        """Undo ``count`` of the element that was added last."""
        for total, (_, operand) in zip(totals, self.counted, strict=True):
            if operand is None:
                value: Any = x[2 : 2 + len(self.columns)]
                take_back(total, value, value)
                continue
            try:
                argument = operand(x)
            except SparqlError:
                total.unfail()
            else:
                take_back(total, *argument)

    def _row(self, r: Run, x: Solution) -> Solution:
        row = self.row(r[0], r[1], x, r[2])
        return row if self.because is None else (*row, self.because(r[3]))

    # --- state ---

    def expire(self, now: int) -> int:
        """Drop the elements from which no run can go on within the window; returns how many.

        An element that began too long ago is dropped, since the runs that end in it began no later.
        """
        bound = self.node.bound
        if bound is None:
            return 0
        before, empty = self.live(), []
        for key, partition in self.partitions.items():
            if isinstance(partition, RunsOfKey):
                for elements in (partition.open, partition.fresh):
                    elements[:] = [e for e in elements if bound.after(e.x[1]) >= now]
            kept = _elements(partition)
            if not kept or bound.after(max([e.x[1] for e in kept])) < now:
                empty.append(key)
        for key in empty:
            del self.partitions[key]
        return before - self.live()

    def held(self) -> list[Solution] | None:
        """Of each run that may go on its last element, its first, their number, and what blocks it.

        None if a key has several elements, or runs of one length.
        """
        width = 2 + len(self.columns)
        held: list[Solution] = []
        for partition in self.partitions.values():
            if isinstance(partition, RunsOfKey):
                partition.settle(partition.now)
            for e in _elements(partition):
                runs = e.element().runs if isinstance(e, Single) else e.runs
                lengths = [r[0] for r in runs]
                alone = self.longest_alone and len(runs) == 1
                if len(_elements(partition)) > 1 or not (alone or lengths == [*range(1, len(runs) + 1)]):
                    return None
                held += [(*e.x[:width], *r[1][:width], r[0], e.blocked) for r in runs]
        return held

    def last_rows(self) -> list[Any]:
        """A run is reported once."""
        return []

    def go_on(self, held: list[Solution], layout: Layout) -> None:
        """Continue from such runs; ``layout`` is that of the elements."""
        width = 2 + len(self.columns)
        of_keys: dict[Any, list[Solution]] = {}
        for x in sorted(held, key=itemgetter(-2)):
            of_keys.setdefault(self.key_of(x), []).append(x)
        for key, some in of_keys.items():
            last = rebuilt(layout, some[0][:width])
            firsts = [rebuilt(layout, x[width : 2 * width]) for x in some]
            runs: list[Run] = [
                (x[-2], first, self._total(firsts[i::-1]), (), ())
                for i, (x, first) in enumerate(zip(some, firsts, strict=True))
            ]
            self.partitions[key] = RunsOfKey([Element(last, runs, some[0][-1])], now=last[0])

    def _total(self, elements: list[Solution]) -> Totals:
        """The accumulators of a run of these elements."""
        if not self.counted:
            return Totals()
        totals = self.begun(elements[0])
        for x in elements[1:]:
            self.count(totals, x)
        return totals

    def live(self) -> int:
        """How many elements wait for a next one."""
        return sum(len(_elements(p)) for p in self.partitions.values())

    def clear(self) -> None:
        self.partitions.clear()

    def snapshot(self, plain: Callable[[Solution], list[Any]], plain_why: Callable[[Any], Any]) -> list[Any]:
        """Plain data: what ``restore`` needs to make the same state again.

        ``plain`` gives the times, columns and provenance of a solution, ``plain_why`` a provenance alone.
        """
        for partition in self.partitions.values():
            if isinstance(partition, RunsOfKey):
                partition.settle(partition.now)

        def packed(e: Element) -> list[Any]:
            return [plain(e.x), [packed_run(r, plain, plain_why) for r in e.runs], e.blocked, e.ended]

        return [
            [p.x[0], [packed(p.element())], []]
            if isinstance(p, Single)
            else [p.now, [*map(packed, p.open)], [*map(packed, p.fresh)]]
            for p in self.partitions.values()
        ]

    def restore(self, data: list[Any], rebuild: Callable[[list[Any]], Solution], reason: Callable[[Any], Any]) -> None:
        """Take over a snapshot; the two functions undo those of ``snapshot``."""
        self.clear()

        def unpacked(raw: list[Any]) -> Element:
            x, runs, blocked, *ended = raw  # earlier versions knew no UNTIL
            return Element(rebuild(x), [unpacked_run(r, rebuild, reason) for r in runs], blocked, any(ended))

        for now, open_, fresh in data:
            partition = RunsOfKey([*map(unpacked, open_)], [*map(unpacked, fresh)], now)
            self.partitions[self.key_of((partition.open or partition.fresh)[0].x)] = partition


def packed_run(r: Run, plain: Callable[[Solution], list[Any]], plain_why: Callable[[Any], Any]) -> list[Any]:
    """Plain data of a run; the elements that the condition looks back to only where there are some."""
    count, first, totals, why, back = r
    rest = [[*map(plain, back)]] if back else []
    return [count, plain(first), [a.state() for a in totals], [*map(plain_why, why)], *rest]


def unpacked_run(raw: list[Any], rebuild: Callable[[list[Any]], Solution], reason: Callable[[Any], Any]) -> Run:
    """The run that ``packed_run`` was given."""
    count, first, totals, why, *rest = raw
    back = tuple(rebuild(x) for some in rest for x in some)
    return count, rebuild(first), Totals(map(restore_accumulator, totals)), tuple(map(reason, why)), back


def _longest_alike(runs: list[Run]) -> list[Run]:
    """Of the runs with the same last elements, as far as the condition sees, the longest: all may go on alike."""
    longest: dict[tuple[int, ...], Run] = {}
    for r in runs:
        seen = tuple(map(id, r[4]))
        if seen not in longest or longest[seen][0] < r[0]:
            longest[seen] = r
    return list(longest.values())


def _elements(partition: RunsOfKey | Single | None) -> Sequence[Element | Single]:
    """The elements of a key without a next one."""
    match partition:
        case None:
            return ()
        case Single():
            return (partition,)
    return (*partition.open, *partition.fresh)


def _block(partition: RunsOfKey | Single | None, n: Solution) -> None:
    """Mark the elements that ended before ``n`` started: their runs cannot go on beyond ``n``."""
    for e in _elements(partition):
        if e.blocked is None and e.x[0] < n[1]:
            e.blocked = n[0]


def places_of(keys: tuple[str, ...], columns: tuple[str, ...]) -> tuple[int, ...]:
    """Where a solution with these columns has the keys; 0 for one that it lacks."""
    return tuple(2 + columns.index(k) if k in columns else 0 for k in keys)


def _getter(places: tuple[int, ...]) -> Callable[[Solution], Any]:
    """A function from a solution to its key: the terms of the BY variables."""
    return itemgetter(*places) if places else lambda x: None


def _values(key: Any, size: int) -> Key:
    """The terms of a key."""
    return () if size == 0 else (key,) if size == 1 else key


def result(total: Accumulator) -> str:
    try:
        return total.result()
    except SparqlError:
        return ""
