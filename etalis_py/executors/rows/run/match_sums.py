"""What the matches of a chain amount to for an aggregate, for one solution of its last part, without making them.

What the matches up to a solution of a part amount to is what those up to all solutions before it do; goals are in order
of their ends, so that is a line of running sums (``generate.chains`` has the definition of goals).

Cost: a look-up and about a microsecond for each goal with the key in the window, whatever the number of matches.  Where
that number cannot be large, the matches are listed: it is at most the product of the numbers of goals.

A trace of ``SELECT (COUNT(*) AS ?n) …`` over ``{?a :a 1} SEQ {?b :b 1} SEQ {?c :c 1}``: a@1, a@2, b@3 and b@4 wait; at
c@5 the lines are 1, 2 for a, and 2, 4 for b: four matches, [1, 5].
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import factorial, prod
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.rows.generate.layout import Layout
from etalis_py.executors.rows.generate.summed_chains import SummedChain, places_of
from etalis_py.executors.rows.run.several import Amount, Several
from etalis_py.values import decode
from etalis_py.values.functions.extremes import descending_key_of
from etalis_py.values.ordering import order_key_of

Solution = tuple[Any, ...]
Goals = Sequence[Solution]
Extreme = tuple[Any, Any, str] | None
"""The key by which a term is compared, its value, and the term."""
FEW = 8
"""Matches are listed up to so many times the number of goals, at most."""
_LATE = 2**62
_NEVER = -_LATE


class _Inexact(Exception):
    """A summand is no integer."""


@dataclass(slots=True)
class _Lines:
    """Running sums over the goals of a part: after each, how many matches there are, and their earliest start.

    Then for each variable, how many have it, the sum of its values and its extreme.
    """

    numbers: list[int] = field(default_factory=lambda: [0])
    earliest: list[int] = field(default_factory=lambda: [_LATE])
    given: list[list[int]] = field(default_factory=list)
    totals: list[list[int]] = field(default_factory=list)
    extremes: list[list[Extreme]] = field(default_factory=list)

    @classmethod
    def of(cls, variables: int) -> _Lines:
        every = range(variables)
        return cls(given=[[0] for _ in every], totals=[[0] for _ in every], extremes=[[None] for _ in every])

    def repeat(self) -> None:
        """A goal that completes nothing."""
        lines: list[list[Any]] = [self.numbers, self.earliest, *self.given, *self.totals, *self.extremes]
        for line in lines:
            line.append(line[-1])


@dataclass(frozen=True, slots=True)
class _Variable:
    """The argument of an aggregate: its part, its place among the items of a solution, and that of its value, or 0."""

    part: int
    column: int
    value: int
    summed: bool
    key: Callable[[Any, str], Any] | None

    def of(self, x: Solution) -> tuple[bool, int, Extreme]:
        """Whether it is bound in a solution of its part, the summand, and what is compared."""
        term = x[self.column]
        if not term:
            return False, 0, None
        if not self.summed and self.key is None:
            return True, 0, None
        value = x[self.value] if self.value else decode(term)
        if self.summed and value.__class__ is not int:
            raise _Inexact
        extreme = None if self.key is None else (self.key(value, term), value, term)
        return True, value if self.summed else 0, extreme


class MatchSums:
    """The sums of one chain, whose matches an aggregate sums up as ``plan`` says."""

    def __init__(
        self, node: ir.Chain, plan: SummedChain, calls: Sequence[alg.AggregateCall], layouts: Sequence[Layout]
    ) -> None:
        """``layouts`` are those of the goals of each part, then those of the last part and of the matches."""
        *goals, out = layouts
        self._last = len(node.parts) - 1
        self._owns = [0, *(2 + len(ref.columns) for ref in node.parts[1:-1])]
        self._paired = factorial(self._last - 1)  # of so many pairs of goals, one is in sequence
        self._variables: list[_Variable] = []
        self._calls: list[int | None] = []
        for call, place in zip(calls, plan.arguments, strict=True):
            if place is None:
                self._calls.append(None)
                continue
            part, column = place
            layout = goals[part]
            name = layout.head[column]
            value = layout.value(name) if name in layout.values else 0
            key = {"MIN": order_key_of, "SAMPLE": order_key_of, "MAX": descending_key_of}.get(call.name)
            self._calls.append(len(self._variables))
            self._variables.append(_Variable(part, 2 + column, value, call.name in ("SUM", "AVG"), key))
        places = places_of(node)
        shown = (places[name] for name in node.head)
        self._columns = [2 + column if part == self._last else 0 for part, column in shown]
        self._values = (None,) * len(out.values)

    def __call__(self, x: Solution, buckets: Sequence[Goals], least: int) -> list[Several] | None:
        """One solution for all matches of a solution of the last part, or none; None if they are to be listed.

        ``buckets`` are the goals of the other parts that have its key; a match starts at ``least`` or later.
        """
        ranges: list[Goals] = []
        before = x[1]
        for part in range(self._last - 1, -1, -1):
            goals = buckets[part]
            until = bisect_left(goals, (before,))
            ranges.append(goals[bisect_left(goals, (least,), 0, until) : until])
            if not ranges[-1]:
                return []
            before = self._latest(part, ranges[-1])
        sizes = list(map(len, ranges))
        if prod(sizes) <= min(self._paired, FEW) * sum(sizes):
            return None
        try:
            return self._summed(x, ranges[::-1], least)
        except _Inexact:
            return None

    def _own_start(self, part: int, goal: Solution) -> int:
        own = goal[self._owns[part]]
        start: int = decode(own) if own else goal[0]
        return start

    def _latest(self, part: int, goals: Goals) -> int:
        """The latest start of the solutions of a part in the middle."""
        latest = _NEVER
        if part:
            for goal in reversed(goals):
                if goal[0] <= latest:
                    break
                latest = max(latest, self._own_start(part, goal))
        return latest

    def _summed(self, x: Solution, parts: Sequence[Goals], least: int) -> list[Several]:
        before = _Lines.of(len(self._variables))
        before.numbers, earlier = [1], parts[0]
        for part, goals in enumerate(parts):
            lines = _Lines.of(len(self._variables))
            for goal in goals:
                source = bisect_left(earlier, (self._own_start(part, goal),)) if part else 0
                if goal[1] < least or not before.numbers[source]:
                    lines.repeat()
                    continue
                self._add(part, goal, lines, before, source, before.earliest[source] if part else goal[1])
            before, earlier = lines, goals
        every = _Lines.of(len(self._variables))
        if not before.numbers[-1]:
            return []
        self._add(self._last, x, every, before, -1, before.earliest[-1])
        solution = (x[0], every.earliest[-1], *(x[i] if i else "" for i in self._columns), *self._values)
        number = every.numbers[-1]
        return [Several.of(solution, number, (self._amount(every, v, number) for v in self._calls))]

    def _add(self, part: int, x: Solution, lines: _Lines, before: _Lines, source: int, start: int) -> None:
        """Add the matches that a solution of a part makes of those before it."""
        number = before.numbers[source]
        lines.numbers.append(lines.numbers[-1] + number)
        lines.earliest.append(min(lines.earliest[-1], start))
        for v, variable in enumerate(self._variables):
            given, total, extreme = 0, 0, None
            if variable.part == part:
                bound, value, extreme = variable.of(x)
                given, total = number * bound, number * value
            elif variable.part < part:
                given, total, extreme = before.given[v][source], before.totals[v][source], before.extremes[v][source]
            lines.given[v].append(lines.given[v][-1] + given)
            lines.totals[v].append(lines.totals[v][-1] + total)
            held = lines.extremes[v][-1]
            better = extreme is not None and (held is None or extreme[0] < held[0])
            lines.extremes[v].append(extreme if better else held)

    @staticmethod
    def _amount(lines: _Lines, v: int | None, number: int) -> Amount:
        if v is None:
            return number, 0, None
        extreme = lines.extremes[v][-1]
        return lines.given[v][-1], lines.totals[v][-1], None if extreme is None else extreme[1:]
