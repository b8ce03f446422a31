"""REPEAT … MAXIMAL: runs that can grow at neither end, each reported once, when that is certain.

Definition.  A run x₁ … x_k (see ``runs``) for which neither x₀ x₁ … x_k nor x₁ … x_{k+1} is a run, for any x₀ and
x_{k+1}.  That is certain at the first of: the end of those that come next after x_k; the end of an N that begins after
x_k; x_k.end + d with GAP d; the end of x_k if k = n.  The solution ends then.  If the stream ends before, the solution
has the hull of the run, and is known at the end.

State: for each key the elements that have no next one yet (mostly one), each with the runs that end in it.  A run can
grow at its beginning if a longer one ends in the same element, from which it differs only by the first element.  Where
the condition asks neither for FIRST nor for at most n, whatever continues it can, too, so it is not kept, and a key has
one run; ``PREVIOUS(?p, n)`` keeps the runs of up to n elements beside it.  With GAP a key is forgotten after the
silence.  Cost per solution: those runs.

A trace of ``{?u :click ?p} REPEAT 1 OR MORE BY ?u GAP 5 s MAXIMAL``: 1, 3, 20 → [1, 8] at 8, [20, 25] at 25.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from etalis_rules import program as ir
from etalis_rules.runs import sees_beginning

from etalis_py.executors.rows.generate.layout import Layout
from etalis_py.executors.rows.generate.limit_checks import MANY
from etalis_py.executors.rows.run.goals import rebuilt
from etalis_py.executors.rows.run.runs import (
    Run,
    RunFunctions,
    Runs,
    Solution,
    Totals,
    packed_run,
    unpacked_run,
)
from etalis_py.kernel.position import FOREVER, NEVER


class Growing:
    """A run, those of the same element that are longer by one at the beginning, and whether it has been continued.

    ``inner``: whether it can grow at the beginning; ``longer`` are those of its extensions that may still go on.
    """

    __slots__ = ("continued", "inner", "longer", "run")
    LINKS = ("longer",)

    def __init__(self, run: Run, longer: list[Growing]) -> None:
        self.run = run
        self.longer = longer
        self.inner = bool(longer)
        self.continued = False


class Open:
    """A solution that has no next one yet, the runs that end in it, and with GAP when the silence after it is over.

    If there is one run, and its number of elements and its first one are all that is known of it, it is kept as
    ``count`` and ``first``, and ``runs`` is empty: most keys have one such run, which then takes a single object.
    """

    __slots__ = ("count", "due", "first", "runs", "x")

    def __init__(self, x: Solution, runs: list[Growing], count: int = 0, first: Solution = ()) -> None:
        self.x = x
        self.runs = runs
        self.count = count
        self.first = first
        self.due = FOREVER

    def as_runs(self) -> list[Growing]:
        """The runs, the only one as others are kept."""
        return [Growing((self.count, self.first, Totals(), (), ()), [])] if self.count else self.runs

    def at_length(self) -> Open:
        """Keep the only run as others are kept."""
        self.runs, self.count, self.first = self.as_runs(), 0, ()
        return self

    def in_brief(self) -> Open:
        """Keep the only run as its length and its first element."""
        (only,) = self.runs
        self.count, self.first, *_ = only.run
        self.runs = []
        return self


class MaximalRuns(Runs):
    """The state of one ``Run`` node with ``maximal``.

    ``interrupt`` takes the N of an instant, ``advance`` then the elements; it has to be called at every time at which
    something is due.  ``alarm`` holds a time before which nothing is due, for all timers of the rules together.
    """

    def __init__(self, node: ir.Run, functions: RunFunctions) -> None:
        super().__init__(node, functions)
        self.alarm = [NEVER]
        self.waiting: dict[Any, Open | list[Open]] = {}
        """The elements of each key; a run that is kept as its length and its first element stands alone."""
        self._gone: list[Solution] = []
        self._made, self._most = 0, MANY  # the runs of this instant, and the number at which to weigh them
        self.queue: OrderedDict[Open, Any] = OrderedDict()
        """What waits for a silence to end, with its key, in the order of these ends: elements come by their ends."""
        self.to_end = self.queue.move_to_end
        self._freely = self._goes_on_freely and node.most is None
        """Whether a key has one run, which any element in time continues."""
        self._briefly = self._freely and not self.counted and self.because is None
        free = node.most is None and not sees_beginning(node)
        self._several = not free or self.back > 0
        self._sight = self.back + 1 if free and self.back else 0
        """From this length on, a run goes on whenever one does that is longer at the beginning; 0: there is none."""

    # --- an instant ---

    def interrupt(self, t: int, rows: list[Solution]) -> None:
        """Take the N of an instant; ``advance`` ends runs by them when it has the elements."""
        self._gone += rows

    def advance(self, t: int, rows: list[Solution]) -> list[Solution]:
        """The rows of the runs that are over in this instant, of which these are the elements."""
        if not self._gone and (not rows or (len(rows) == 1 and self._goes_on_alone(rows[0]))):
            return self.fall_due(t) if self.alarm[0] <= t else []
        arrived: dict[Any, list[Solution]] = {}
        self._made, self._most = 0, MANY
        for x in rows:
            arrived.setdefault(self.key_of(x), []).append(x)
        over: list[Solution] = []
        for key, some in arrived.items():
            over += self._arrive(t, key, some)
        for n in self._gone:
            for key in self._keys_of(n):
                over += self._end(t, key, lambda e, n=n: e.x[0] < n[1])  # type: ignore[misc]
        self._gone.clear()
        if self.node.gap is not None:
            over += self.fall_due(t)
        return over

    def _goes_on_alone(self, x: Solution) -> bool:
        """Extend the only run of a key in place, or begin its first, where nothing else can happen: the usual case."""
        if not self._freely:
            return False
        key = self.key_of(x)
        waiting = self.waiting.get(key)
        if waiting is None:
            self.begin(key, x)
            return True
        e = waiting if isinstance(waiting, Open) else waiting[0]
        begins = x[1]
        if e.x[0] >= begins or begins > e.due:
            return False
        if isinstance(waiting, Open):
            e.count += 1
        elif len(waiting) > 1 or len(e.runs) > 1:
            return False
        else:
            growing = e.runs[0]
            count, first, totals, because, back = growing.run
            if totals:
                self.count(totals, x)
            growing.run = count + 1, first, totals, because if self.because is None else (*because, x[-1]), back
        e.x = x
        self._await(key, e)
        return True

    def begin(self, key: Any, x: Solution) -> None:
        """Begin the first run of a key."""
        if self._briefly:
            e = self.waiting[key] = Open(x, [], 1, x)
        else:
            e = Open(x, [Growing(self._begun(x), [])])
            self.waiting[key] = [e]
        self._await(key, e)

    def _waiting_at(self, key: Any) -> list[Open]:
        """The elements of a key, each with its runs at length; ``_keep`` has to follow."""
        waiting = self.waiting.get(key, [])
        return [waiting.at_length()] if isinstance(waiting, Open) else waiting

    def _of_every_key(self) -> list[list[Open]]:
        """The elements of all keys, with their runs at length, to be read."""
        return [[Open(w.x, w.as_runs())] if isinstance(w, Open) else w for w in self.waiting.values()]

    def _arrive(self, t: int, key: Any, some: list[Solution]) -> list[Solution]:
        """Extend the runs of a key by the elements of an instant; the rows of those that end."""
        waiting = self._waiting_at(key)
        fresh = [Open(x, self._runs_to(x, [e for e in waiting if e.x[0] < x[1]], t)) for x in some]
        latest = max(x[1] for x in some)
        followed = [e for e in waiting if e.x[0] < latest]
        over = [row for e in followed for row in self._over(t, e)]
        kept = [e for e in waiting if e.x[0] >= latest]
        most = self.node.most
        if most is not None:
            for e in fresh:
                over += self._over(t, Open(e.x, [r for r in e.runs if r.run[0] == most]))
                e.runs = [r for r in e.runs if r.run[0] < most]
        self._keep(key, [*kept, *(e for e in fresh if e.runs)])
        for e in fresh:
            self._await(key, e)
        return over

    def _runs_to(self, x: Solution, before: list[Open], t: int) -> list[Growing]:
        """The runs that end in ``x``, which is next after these elements."""
        runs: list[Growing] = []
        from_one: list[Growing] = []
        for e in before:
            if self.node.gap is not None and not self._near(e.x, x):
                continue
            self._made += len(e.runs)
            if self._made > self._most:
                self._most = self.weigh(self._made, [r.run for r in e.runs])
            longer = {id(r): self.extended(r.run, e.x, x, t) for r in e.runs}
            made = {place: Growing(run, []) for place, run in longer.items() if run is not None}
            for r in e.runs:
                if id(r) in made:
                    r.continued = True
                    now = made[id(r)]
                    now.longer = [made[id(other)] for other in r.longer if id(other) in made]
                    now.inner = bool(now.longer) or (r.inner and 0 < self._sight <= r.run[0])
            from_one += [made[id(r)] for r in e.runs if r.run[0] == 1 and id(r) in made]
            runs += made.values()
        if self._several or not runs:
            runs.append(Growing(self._begun(x), from_one))
        return runs if not self._sight else [r for r in runs if not (r.inner and r.run[0] > self._sight)]

    def _over(self, t: int, e: Open) -> list[Solution]:
        """The rows, ending at ``t``, of the runs of an element that cannot grow."""
        over, least = (t,), self.node.least
        return [
            self._row_over(r.run, e.x, over) for r in e.runs if not r.continued and not r.inner and r.run[0] >= least
        ]

    def _row_over(self, r: Run, x: Solution, over: Solution) -> Solution:
        row = self.row(r[0], r[1], x, r[2], over)
        return row if self.because is None else (*row, self.because(r[3]))

    def _end(self, t: int, key: Any, ended: Callable[[Open], bool]) -> list[Solution]:
        """The rows of those elements of a key for which something has ended all runs; they are dropped."""
        waiting = self._waiting_at(key)
        over = [row for e in waiting if ended(e) for row in self._over(t, e)]
        self._keep(key, [e for e in waiting if not ended(e)])
        return over

    def _keep(self, key: Any, waiting: list[Open]) -> None:
        if not waiting:
            self.waiting.pop(key, None)
        elif self._briefly and len(waiting) == 1 and len(waiting[0].runs) == 1:
            self.waiting[key] = waiting[0].in_brief()
        else:
            self.waiting[key] = waiting

    def _keys_of(self, n: Solution) -> list[Any]:
        """The keys with which an N is compatible."""
        values = tuple([n[i] if i else "" for i in self.absent_keys])
        size = len(self.keys)
        if self.absent_of is not None and not self.may_be_unbound:
            return [self.absent_of(n)]

        def agrees(key: Any) -> bool:
            terms = () if size == 0 else (key,) if size == 1 else key
            return all(a == b or not a or not b for a, b in zip(terms, values, strict=True))

        return [key for key in self.waiting if agrees(key)]

    # --- time ---

    def _await(self, key: Any, e: Open) -> None:
        """Queue the time at which the silence after an element is over."""
        gap = self.node.gap
        if gap is None:
            return
        e.due = at = gap.after(e.x[0])
        self.queue[e] = key
        self.queue.move_to_end(e)
        if at < self.alarm[0]:
            self.alarm[0] = at

    def fall_due(self, t: int) -> list[Solution]:
        """The rows of the runs after which the silence is over by ``t``."""
        over: list[Solution] = []
        queue, waiting, row, least, now = self.queue, self.waiting, self.row, self.node.least, (t,)
        while queue and (e := next(iter(queue))).due <= t:
            key = queue.pop(e)
            there = waiting.get(key, ())
            if there is e:  # the usual case
                if e.count >= least:
                    over.append(row(e.count, e.first, e.x, (), now))
                del waiting[key]
            elif there.__class__ is list and e in there:
                over += self._end(t, key, lambda other, e=e: other is e)  # type: ignore[misc]
        return over

    def next(self) -> int | None:
        """The first time at which a silence is over."""
        queue, waiting = self.queue, self.waiting
        while queue:
            e = next(iter(queue))
            there = waiting.get(queue[e], ())
            if there is e or (there.__class__ is list and e in there):
                return e.due
            del queue[e]  # it has ended before
        return None

    def last(self) -> int | None:
        """The latest time at which a silence may be over; None when nothing waits."""
        return None if self.next() is None else next(reversed(self.queue)).due

    def at_end(self, t: int) -> list[Solution]:
        """The rows of the runs that only the end of the stream ends."""
        over = [
            self._row_over(r.run, e.x, e.x)
            for waiting in self._of_every_key()
            for e in waiting
            for r in e.runs
            if not r.inner and r.run[0] >= self.node.least
        ]
        self.waiting.clear()
        return over

    # --- state ---

    def held(self) -> list[Solution] | None:
        """The last element of the only run of each key, its first, their number, what ended it, and its aggregates.

        None if a key has several runs.
        """
        of_keys = self._of_every_key()
        several = any(len(w) > 1 or len(w[0].runs) > 1 or w[0].runs[0].inner for w in of_keys)
        if several:
            return None
        width = 2 + len(self.columns)
        waiting = ((e.x, e.runs[0].run) for (e,) in of_keys)
        return [(*x[:width], *first[:width], count, None, totals) for x, (count, first, totals, *_) in waiting]

    def last_rows(self) -> list[Any]:
        """A run is reported once."""
        return []

    def go_on(self, held: list[Solution], layout: Layout) -> None:
        """Continue from such runs; ``layout`` is that of the elements."""
        width = 2 + len(self.columns)
        for x in sorted(held, key=itemgetter(0)):
            last, first = rebuilt(layout, x[:width]), rebuilt(layout, x[width : 2 * width])
            key = self.key_of(last)
            e = Open(last, [Growing((x[-3], first, Totals(x[-1]), (), ()), [])])
            self._keep(key, [e])
            self._await(key, e)

    def live(self) -> int:
        return sum(1 if isinstance(waiting, Open) else len(waiting) for waiting in self.waiting.values())

    def clear(self) -> None:
        self.waiting.clear()
        self._gone.clear()
        self.queue.clear()
        self.alarm[0] = NEVER

    def snapshot(self, plain: Callable[[Solution], list[Any]], plain_why: Callable[[Any], Any]) -> list[Any]:
        """Plain data: for each element its runs, each with the places there of those that are longer."""

        def packed(e: Open) -> list[Any]:
            places = {id(r): i for i, r in enumerate(e.runs)}
            runs: list[list[Any]] = []
            for r in e.runs:
                longer = [places[id(other)] for other in r.longer if id(other) in places]
                runs.append([*packed_run(r.run, plain, plain_why), longer, r.inner])
            return [plain(e.x), runs]

        return [[*map(packed, waiting)] for waiting in self._of_every_key()]

    def restore(self, data: list[Any], rebuild: Callable[[list[Any]], Solution], reason: Callable[[Any], Any]) -> None:
        self.clear()
        waits: list[tuple[Open, Any]] = []
        for waiting in data:
            elements = [self._unpacked(raw, rebuild, reason) for raw in waiting]
            key = self.key_of(elements[0].x)
            self._keep(key, elements)
            waits += [(e, key) for e in elements]
        for e, key in sorted(waits, key=lambda wait: wait[0].x[0]):
            self._await(key, e)
        self.alarm[0] = NEVER

    def _unpacked(
        self, raw: Sequence[Any], rebuild: Callable[[list[Any]], Solution], reason: Callable[[Any], Any]
    ) -> Open:
        x, packed = raw
        runs = [Growing(unpacked_run(run, rebuild, reason), []) for *run, _, _ in packed]
        for r, (*_, longer, inner) in zip(runs, packed, strict=True):
            r.longer, r.inner = [runs[i] for i in longer], inner
        return Open(rebuild(x), runs)
