"""SKIP, DISJOINT and THROTTLE: the matches of a group one after the other.

The solutions come in canonical order: end, start, terms in alphabetical order of their variables.  One is kept if it
starts after the time that the last one kept has set, or for THROTTLE ends at that time or later; then it sets a time of
its own.  Cost: one look-up for each solution.  State: one time for each value of the BY variables.

    {?c :p ?x} THROTTLE 10 s: a at 1, 5, 11, 12 and 21 → those at 1, 11 and 21
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.rows.run.slicing import Solution, canonical_key
from etalis_py.values import DateTime, SparqlError, decode
from etalis_py.values.expressions import term

_BOUNDS: dict[alg.Expr, int] = {alg.Apply("GETENDTIME"): 0, alg.Apply("GETSTARTTIME"): 1}
"""Where a solution has its own end and start."""


class Skipping:
    """The state of one SKIP: ``passed`` has the time from which it goes on for each key, joined to one text."""

    def __init__(self, node: ir.Skip) -> None:
        self.node = node
        self.columns = node.child.columns
        self.order = canonical_key(self.columns, node.canonical)
        self.keys = tuple(2 + self.columns.index(name) for name in node.keys)
        self._bound = None if node.after is None else _BOUNDS.get(node.after)
        self._after = None if node.after is None else term(node.after)
        self._at_once = None if node.length is None else replace(node.length, micros=0, months=0)
        self._times: dict[str, int | None] = {}
        self.now = 0

    @property
    def passed(self) -> Any:
        return dict(self._times)

    @passed.setter
    def passed(self, times: Any) -> None:
        self._times = dict(times or {})  # a dump without this node has 0

    def exists(self, pattern: alg.Pattern, mu: dict[str, str], start: int, end: int) -> bool:
        raise LookupError("EXISTS in SKIP; the compiler refuses it")

    def advance(self, t: int, rows: list[Solution]) -> list[Solution]:
        """The solutions of an instant that are kept, in order."""
        self.now = t
        times, kept = self._times, []
        for x in sorted(rows, key=self.order) if len(rows) > 1 else rows:
            key = "\n".join([x[i] for i in self.keys])  # no spelling has a line break in it
            if key not in times or self._goes_on(x, times[key]):
                times[key] = self._time(x)
                kept.append(x)
        return kept

    def live(self) -> int:
        """How many times it remembers: one for each value of the BY variables."""
        return len(self._times)

    def _goes_on(self, x: Solution, last: int | None) -> bool:
        if last is None:
            return False  # a comparison with what is no time is an error
        if self._at_once is not None:
            return self._at_once.after(x[0]) >= last
        return bool(x[1] >= last if self.node.at else x[1] > last)

    def _time(self, x: Solution) -> int | None:
        """The time that a solution sets if it is kept; None if its expression gives no time."""
        if self.node.length is not None:
            return self.node.length.after(x[0])
        if self._bound is not None:
            return int(x[self._bound])
        assert self._after is not None
        mu = {name: x[2 + i] for i, name in enumerate(self.columns) if x[2 + i]}
        try:
            value = decode(self._after(mu, x[1], x[0], self))
        except SparqlError:
            return None
        return value.us if isinstance(value, DateTime) else None
