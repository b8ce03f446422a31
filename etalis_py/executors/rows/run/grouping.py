"""Aggregation over a stream of solutions.

In each instant in which a solution enters, the full current result is computed over the solutions still in the window,
with HAVING, ORDER BY, DISTINCT, LIMIT and OFFSET applied; the rows that are new in it (as ⟨μ, start, end⟩) are
reported.  A row's interval is the hull of the solutions that contribute to it, so it may have ended before now, if old
solutions left a group that got no new one.  Solutions of the background alone count at every instant and never leave; a
row of nothing else is reported when the stream has ended.

Cost per solution: one ``add`` and, with a window, one ``remove`` for each aggregate; with ORDER BY, DISTINCT or LIMIT,
a search in the ranked rows for each group that has changed, and a pass over the rows up to LIMIT (over all of them
without LIMIT or with DISTINCT).  State: the accumulators of each group and, with a window, its solutions.

A trace of ``SELECT (SUM(?p) AS ?s) … WITHIN 10 SECONDS``: 1@1 → 1 [1,1]; 2@5 → 3 [1,5]; 4@12 → 6 [5,12].
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.rows.run.ranked_rows import RankedRows
from etalis_py.executors.rows.run.several import Several, count_several, packed, unpacked
from etalis_py.values import SparqlError, rank_key
from etalis_py.values.expressions import condition, term
from etalis_py.values.functions import Accumulator, GroupConcat, accumulator, restore_accumulator
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

if TYPE_CHECKING:
    from etalis_py.executors.rows.run.standing import StandingSolutions

Solution = tuple[Any, ...]
Key = tuple[str, ...]
Row = TypeVar("Row")
Operand = Callable[[Solution], tuple[Any, Any]]


@dataclass(slots=True)
class Members:
    """One group: its accumulators, the solutions in the window, and those of the background alone."""

    accumulators: list[Accumulator]
    window: deque[Solution] | None
    count: int = 0
    start: int = TIMELESS_START
    end: int = TIMELESS_END
    lows: deque[Solution] = field(default_factory=deque)
    standing: list[Solution] = field(default_factory=list)

    def enter(self, x: Solution, *, early: bool = False) -> None:
        """Take a solution, which leaves last, or if ``early`` before those that end after it."""
        self.count += 1
        self.end = max(self.end, x[0])
        if self.window is None:
            self.start = min(self.start, x[1])
            return
        if early:
            insort(self.window, x, key=itemgetter(0))
        else:
            self.window.append(x)
        # ``lows`` has the solutions that may become the one with the earliest start.  A solution that starts later than
        # one that leaves after it never will, so it is dropped; the first of the others has the earliest start.
        following = []
        while early and self.lows and self.lows[-1][0] > x[0]:
            following.append(self.lows.pop())
        if not following or following[-1][1] > x[1]:
            while self.lows and self.lows[-1][1] > x[1]:
                self.lows.pop()
            self.lows.append(x)
        self.lows.extend(reversed(following))

    def leave(self) -> Solution:
        assert self.window is not None
        x = self.window.popleft()
        if self.lows and self.lows[0] is x:
            self.lows.popleft()
        self.count -= 1
        return x

    def hull(self, floor: tuple[int, int]) -> tuple[int, int]:
        """The interval of the solutions in the window; ``floor`` is the hull of solutions that never leave."""
        if self.window is None:
            return min(self.start, floor[0]), max(self.end, floor[1])
        if not self.window:
            return floor
        return min(self.lows[0][1], floor[0]), max(self.window[-1][0], floor[1])

    def hull_of_all(self) -> tuple[int, int]:
        """The interval of the solutions in a window that they do not leave in the order of their ends."""
        assert self.window
        return self.lows[0][1], max(x[0] for x in self.window)


class Grouping:
    """The state of one ``Group`` node and its rules."""

    def __init__(
        self,
        node: ir.Group,
        columns: tuple[str, ...],
        operands: Iterable[Operand | None],
        because: Callable[[list[Any]], Any] | None = None,
        look_back: Callable[[alg.Pattern, dict[str, str], int, int], bool] | None = None,
        *,
        late: bool = False,
        standing: StandingSolutions | None = None,
    ) -> None:
        """``late``: what enters may have ended before the instant."""
        self.node = node
        self.standing = standing
        window = node.window
        self.by_end = late and window is not None and not window.events
        self.by_arrival = late and window is not None and bool(window.events)
        self.columns = columns
        self.operands = tuple(operands)
        self.key_columns = tuple(2 + columns.index(k) if k in columns else -1 for k in node.keys)
        self.groups: dict[Key, Members] = {}
        self.order: deque[tuple[int, Key]] = deque()
        self.rows: dict[Key, Solution] = {}
        self.reported: dict[Key, Solution] = {}  # the last row of each group, when every group has its own
        self.previous: Counter[Solution] = Counter()  # the last full result, when it is sliced
        self.extends = tuple((name, term(e)) for name, e in node.extends)
        self.having = tuple(condition(e) for e in node.having)
        calls = [(i, call.variable) for i, call in enumerate(node.aggregates)]
        after = alg.texts_after_having(node.having, node.aggregates)
        self.calls = [call for call in calls if call[1] not in after]
        self.calls_after_having = [call for call in calls if call[1] in after]
        self.order_by = tuple((term(k.expression), k.descending) for k in node.order)
        self.sliced = bool(node.order or node.distinct or node.limit is not None or node.offset)
        shown = [2 + node.head.index(name) for name in node.shown]
        self.ranked: RankedRows[Key] = RankedRows(shown, [key.descending for key in node.order])
        self.canonical = tuple(2 + columns.index(c) for c in node.canonical)
        self.windowed = node.window is not None
        self.now = 0
        self.because = because
        self.look_back = look_back

    def exists(self, pattern: alg.Pattern, mu: dict[str, str], start: int, end: int) -> bool:
        """Evaluate EXISTS for a row, over the occurrences that have ended by now."""
        if self.look_back is None:
            raise SparqlError("EXISTS cannot be asked here")
        return self.look_back(pattern, mu, self.now, self.now)

    # --- the rule ---

    def advance(self, t: int, solutions: list[Solution]) -> list[Solution]:
        """The rows to report in an instant in which these solutions entered."""
        if not solutions:
            return []
        self.now = t
        renewed = self._stand()
        touched = self._expire(t)
        solutions = self._in_order(solutions)
        if self.by_end:
            assert self.node.window is not None
            opening = self.node.window.before(t)
            solutions = [x for x in solutions if x[0] > opening]
        for x in solutions:
            touched.add(self._enter(x))
        return self._rows_of(touched, renewed - touched)

    def _rows_of(self, touched: set[Key], renewed: set[Key]) -> list[Solution]:
        """The rows to report, after these groups changed; an update of the background by itself reports no row."""
        for key in touched | renewed:
            self._refresh(key)
        return self._sliced(renewed) if self.sliced else self._changed(touched)

    def _in_order(self, solutions: list[Solution]) -> list[Solution]:
        if len(solutions) < 2:
            return solutions
        return sorted(solutions, key=lambda x: (x[0], x[1], *(x[i] for i in self.canonical)))

    def _stand(self) -> set[Key]:
        """Take what the background alone answers now; the keys of the groups that this changes."""
        touched: set[Key] = set()
        if self.standing is None or not self.standing.has_changed():
            return touched
        now: dict[Key, list[Solution]] = {}
        for x in self._in_order(self.standing.solutions()):
            now.setdefault(self._key(x), []).append(x)
        for key in now.keys() | {key for key, members in self.groups.items() if members.standing}:
            members = self.groups.get(key)
            if members is None:
                members = self.groups[key] = self._empty()
            before, members.standing = members.standing, now.get(key, [])
            if before != members.standing:
                touched.add(key)
                for x in before:
                    self._count(members, x, add=False, standing=True)
                for x in members.standing:
                    self._count(members, x, add=True, standing=True)
        return touched

    def _key(self, x: Solution) -> Key:
        return tuple(x[i] if i > 0 else "" for i in self.key_columns)

    def _enter(self, x: Solution) -> Key:
        key = self._key(x)
        members = self.groups.get(key)
        if members is None:
            members = self.groups[key] = self._empty()
        members.enter(x, early=self.by_end)
        self._count(members, x, add=True)
        window = self.node.window
        if window is not None and window.events:
            while members.count > window.events:
                self._count(members, members.leave(), add=False)
        elif self.by_end:
            insort(self.order, (x[0], key), key=itemgetter(0))
        elif window is not None:
            self.order.append((x[0], key))
        return key

    def _empty(self) -> Members:
        accumulators = [accumulator(a.name, distinct=a.distinct, separator=a.separator) for a in self.node.aggregates]
        return Members(accumulators, deque() if self.windowed else None)

    def _count(self, members: Members, x: Solution, add: bool, *, standing: bool = False) -> None:
        if x.__class__ is Several:
            count_several(members.accumulators, x, add=add)
            return
        for accumulated, operand in zip(members.accumulators, self.operands, strict=True):
            if standing and isinstance(accumulated, GroupConcat):
                continue  # they come first, whenever they came to be known: see ``_result_of``
            if operand is None:
                value: Any = x[2 : 2 + len(self.columns)]
                given: Any = value
            else:
                try:
                    value, given = operand(x)
                except SparqlError:
                    accumulated.fail() if add else accumulated.unfail()
                    continue
            if add:
                accumulated.add(value, given)
            else:
                accumulated.remove(value, given)

    def _expire(self, t: int) -> set[Key]:
        window = self.node.window
        touched: set[Key] = set()
        if window is None or window.events:
            return touched
        opening = window.before(t)
        while self.order and self.order[0][0] <= opening:
            _, key = self.order.popleft()
            members = self.groups[key]
            self._count(members, members.leave(), add=False)
            touched.add(key)
        return touched

    # --- rows ---

    def _refresh(self, key: Key) -> None:
        members, row = self.groups[key], None
        if members.count or members.standing or not self.node.keys:
            row = self.row(key, members)
        else:
            del self.groups[key]
        if self.sliced:
            width = 2 + len(self.node.head)
            self.ranked.put(key, *((None,) if row is None else (row[:width], *row[width:])))
        elif row is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = row

    def row(self, key: Key, members: Members) -> Solution | None:
        """The row of a group with these members; None where HAVING refuses it."""
        if self.by_arrival and members.window:
            start, end = members.hull_of_all()
        else:
            start, end = members.hull((TIMELESS_START, TIMELESS_END))
        mu = {name: value for name, value in zip(self.node.keys, key, strict=True) if value}
        self._aggregate(mu, members, self.calls)
        if not all(test(mu, start, end, self) for test in self.having):
            return None
        self._aggregate(mu, members, self.calls_after_having)
        for name, function in self.extends:
            value = function(mu, start, end, self)
            if value:
                mu[name] = value
        row: Solution = (end, start, *(mu.get(c, "") for c in self.node.head))
        if self.order_by:
            row = (*row, tuple(rank_key(function(mu, start, end, self)) for function, _ in self.order_by))
        return row

    def _aggregate(self, mu: dict[str, str], members: Members, calls: Iterable[tuple[int, str]]) -> None:
        """Bind the variables of these aggregates, but of those whose value is an error."""
        for number, variable in calls:
            try:
                mu[variable] = self._result_of(members, number)
            except SparqlError:
                continue

    def _result_of(self, members: Members, number: int) -> str:
        """The value of an aggregate; GROUP_CONCAT begins with what the background alone answers."""
        accumulated = members.accumulators[number]
        if not (members.standing and isinstance(accumulated, GroupConcat)):
            return accumulated.result()
        first, operand = accumulated.emptied(), self.operands[number]
        assert operand is not None
        for x in members.standing:
            try:
                first.add(*operand(x))
            except SparqlError:
                first.fail()
        return first.followed_by(accumulated).result()

    def _changed(self, touched: set[Key]) -> list[Solution]:
        """The rows of these groups that had no equal one before, in their own group or in another one of these."""
        changed = []
        if self.node.hides_keys and len(touched) > 1:
            before = Counter(self.reported[key] for key in touched if key in self.reported)
        else:
            before = None
        for key in touched:
            row = self.rows.get(key)
            if row is None:
                self.reported.pop(key, None)
                continue
            known = self.reported.get(key) == row if before is None else before[row] > 0
            self.reported[key] = row
            if not known:
                if row[0] != TIMELESS_END:
                    changed.append(self._explained(row, key))
            elif before is not None:
                before[row] -= 1
        return changed

    def _explained(self, row: Solution, key: Key) -> Solution:
        if self.because is None:
            return row
        members = self.groups[key]
        return (*row, self.because([x[-1] for x in members.window or ()]))

    def _sliced(self, renewed: set[Key]) -> list[Solution]:
        """The new rows of the full result after ORDER BY, DISTINCT and LIMIT, but for these groups."""
        rows, left = self._result(), self.previous.copy()
        changed = []
        for row, key in rows:
            if left[row] > 0:
                left[row] -= 1
            elif row[0] != TIMELESS_END and key not in renewed:
                changed.append(self._explained(row, key))
        self.previous = Counter(row for row, _ in rows)
        return changed

    def _result(self) -> list[tuple[Solution, Key]]:
        """The full result after ORDER BY, DISTINCT and LIMIT, and the groups of its rows."""
        node = self.node
        stop = None if node.limit is None else node.offset + node.limit
        if not node.distinct:
            return self.ranked.between(node.offset, stop)
        every = reversed(self.ranked.between(0, None))
        return list({row: (row, key) for row, key in every}.values())[::-1][node.offset : stop]

    def at_end(self, t: int) -> list[Solution]:
        """The rows of solutions without a time, or of none, after a stream that has ended at ``t``."""
        self.now = t
        touched = self._stand()
        if not (self.node.keys or self.groups):
            self.groups[()] = self._empty()
            touched.add(())
        for key in touched:
            self._refresh(key)
        rows = self._result() if self.sliced else [(row, key) for key, row in self.rows.items()]
        return [self._explained(row, key) for row, key in rows if row[0] == TIMELESS_END]

    # --- state ---

    def live(self) -> int:
        """The solutions that are kept."""
        return sum(len(m.window) if m.window is not None else 1 for m in self.groups.values())

    def clear(self) -> None:
        self.groups.clear()
        self.order.clear()
        self.rows.clear()
        self.ranked.clear()
        self.previous.clear()
        self.reported.clear()
        if self.standing is not None:
            self.standing.forget()

    def held(self) -> list[Solution]:
        """The plain solutions in the window, in the order in which they leave, which mostly is that of their ends.

        Without a window, the hull and key of each group, how many solutions it has, and the states of its accumulators.
        """
        if not self.windowed:
            return [
                (m.end, m.start, *key, m.count, *(a.state() for a in m.accumulators)) for key, m in self.groups.items()
            ]
        width = 2 + len(self.columns)
        held = [packed(x, width) for m in self.groups.values() for x in m.window or ()]
        return held if self.by_arrival else sorted(held, key=itemgetter(0))

    def last_rows(self) -> list[tuple[Key, Solution]]:
        """The last row of each group, with its key."""
        return list(self.reported.items())

    def go_on(self, solutions: list[Solution], reported: list[tuple[Key, Solution]]) -> None:
        """Continue with these solutions in the window, in order of their ends, and the last row of each group."""
        self.clear()
        if not self.windowed:
            self._set_states(solutions)
            return
        timed = self.node.window is not None and not self.node.window.events
        touched: dict[Key, None] = {}
        for x in solutions:
            key = self._key(x)
            members = self.groups.get(key)
            if members is None:
                members = self.groups[key] = self._empty()
            members.enter(x)
            self._count(members, x, add=True)
            touched[key] = None
            if timed:
                self.order.append((x[0], key))
        for key in touched:
            self._refresh(key)
        self._remember(reported)

    def _set_states(self, held: list[Solution]) -> None:
        width = len(self.node.keys)
        for end, start, *rest in held:
            key, (count, *states) = tuple(rest[:width]), rest[width:]
            self.groups[key] = Members(list(map(restore_accumulator, states)), None, count, start, end)
            self._refresh(key)
        self._remember(self.rows.items())

    def _remember(self, reported: Iterable[tuple[Key, Solution]]) -> None:
        """Take these rows, or those of the full result if it is sliced, for the last report."""
        if self.sliced:
            self.previous = Counter(row for row, _ in self._result())
        else:
            self.reported.update(reported)

    def snapshot(self) -> list[Any]:
        """Plain data from which ``restore`` rebuilds the same state."""
        width = 2 + len(self.columns)
        groups = []
        for key, m in self.groups.items():
            window = None if m.window is None else [list(packed(x, width)) for x in m.window]
            accumulated = None if m.window is not None else [a.state() for a in m.accumulators]
            standing = [[list(packed(x, width)) for x in m.standing]] if m.standing else []
            groups.append([list(key), accumulated, window, m.count, m.start, m.end, *standing])
        previous = [[list(row), n] for row, n in self.previous.items()]
        reported = [[list(key), list(row)] for key, row in self.reported.items()]
        return [groups, [[end, list(key)] for end, key in self.order], previous, reported]

    def restore(self, data: list[Any], rebuild: Callable[[Solution], Solution]) -> None:
        """Take over a snapshot; ``rebuild`` decodes the values that a solution carries."""
        self.clear()
        groups, order, previous, reported = data
        width = 2 + len(self.columns)
        for raw, accumulated, window, count, start, end, *standing in groups:
            key = tuple(raw)
            if window is None:
                accumulators = [restore_accumulator(a) for a in accumulated]
                members = self.groups[key] = Members(accumulators, None, count, start, end)
            else:
                members = self.groups[key] = self._empty()
            for stored in standing[0] if standing else ():
                x = unpacked(stored, width, rebuild)
                members.standing.append(x)
                if window is not None:
                    self._count(members, x, add=True, standing=True)
            if window is not None:
                for stored in window:
                    x = unpacked(stored, width, rebuild)
                    members.enter(x)
                    self._count(members, x, add=True)
            self._refresh(key)
        self.order.extend((end, tuple(key)) for end, key in order)
        self.previous.update({tuple(row): n for row, n in previous})
        self.reported.update({tuple(key): tuple(row) for key, row in reported})


def sort_by(rows: list[Row], ranks: Callable[[Row], Sequence[Any]], directions: Sequence[bool]) -> None:
    """Sort by the ranks of the keys of ORDER BY, True for descending; rows with equal ranks stay in their order."""
    for i in reversed(range(len(directions))):
        rows.sort(key=lambda row: ranks(row)[i], reverse=directions[i])
