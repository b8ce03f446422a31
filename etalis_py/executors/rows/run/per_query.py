"""One aggregation per query of a family, so that the input of one query never makes another one report.

An aggregation with a window of time looks at its window, and one with a slice (ORDER BY, LIMIT, OFFSET, DISTINCT) at
its whole result, in every instant in which a solution enters.  Only solutions of its own query may trigger this.  So
each query of a family has an aggregation of its own, created when its first solution comes; all share their functions.
Without a window of time or a slice, one aggregation has the groups of all queries, whose names are part of the keys.

    SELECT (COUNT(*) AS ?n) { :c1 :p ?x } WITHIN 10 s      a: :c1, b: :c2
    :c1@1 → a 1;  :c2@2 → b 1;  :c2@12 → b 1;  nothing for a, whose window is looked at when :c1 comes again
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from etalis_compiler.families import NAME
from etalis_rules import program as ir

from etalis_py.executors.rows.run.grouping import Grouping, Members, Solution
from etalis_py.executors.rows.run.slicing import Slicing
from etalis_py.values.functions import accumulator


def is_of_family(node: ir.Group) -> bool:
    """Whether an aggregation has the groups of many queries."""
    return NAME in node.keys


def has_grouping_per_query(node: ir.Group) -> bool:
    """Whether each query needs an aggregation of its own."""
    sliced = node.order or node.distinct or node.limit is not None or node.offset
    timed = node.window is not None and not node.window.events
    return is_of_family(node) and bool(sliced or timed)


class GroupingPerQuery:
    """The aggregations of the queries of a family, by the names of the queries."""

    def __init__(self, node: ir.Group, make: Callable[[], Grouping]) -> None:
        self.node, self._make = node, make
        self._where = 2 + node.child.columns.index(NAME)
        self.parts: dict[str, Grouping] = {}

    def advance(self, t: int, solutions: list[Solution]) -> list[Solution]:
        """The rows that each query reports."""
        by_query: dict[str, list[Solution]] = {}
        for x in solutions:
            by_query.setdefault(x[self._where], []).append(x)
        rows: list[Solution] = []
        for name, some in by_query.items():
            part = self.parts.get(name)
            if part is None:
                part = self.parts[name] = self._make()
            rows += part.advance(t, some)
        return rows

    def forget(self, gone: Collection[str]) -> None:
        """Drop the groups of queries that are gone."""
        for name in gone:
            self.parts.pop(name, None)

    def at_end(self, t: int) -> list[Solution]:
        """For each query by itself: see ``rows_at_end``."""
        return []

    def live(self) -> int:
        return sum(part.live() for part in self.parts.values())

    def clear(self) -> None:
        self.parts.clear()

    def snapshot(self) -> list[Any]:
        return [[name, part.snapshot()] for name, part in self.parts.items()]

    def restore(self, data: list[Any], rebuild: Callable[[Solution], Solution]) -> None:
        self.clear()
        for name, part in data:
            self.parts[name] = self._make()
            self.parts[name].restore(part, rebuild)


class SlicingPerQuery:
    """DISTINCT, ORDER BY, LIMIT and OFFSET of the queries of a family.  State: for each the number of rows passed."""

    def __init__(self, sliced: Slicing) -> None:
        self._sliced = sliced
        self._counts = sliced.stop is not None or bool(sliced.offset)
        self.passed: Any = {}

    def advance(self, query: str, t: int, rows: list[Solution]) -> list[Solution]:
        """The rows of one query in an instant that are reported, in order."""
        if not self._counts:
            return self._sliced.advance(t, rows)
        self.passed = self.passed or {}  # reading a dump without this slice sets 0
        self._sliced.passed = self.passed.get(query, 0)
        answers = self._sliced.advance(t, rows)
        self.passed[query] = self._sliced.passed
        return answers

    def answer(self, query: str, t: int, rows: list[Solution]) -> list[Solution]:
        """The answer of an ASK to these rows: true, with the times of the first one."""
        return [(*row[:2], "true") for row in self.advance(query, t, rows)[:1]]

    def forget(self, gone: Collection[str]) -> None:
        """Forget queries that are gone."""
        for name in gone:
            (self.passed or {}).pop(name, None)


def slicing_of(node: ir.Slice) -> Slicing | SlicingPerQuery:
    """The slicing of a sub-SELECT; in a family, separate for each query."""
    sliced = Slicing(node.child.columns, node.canonical, node.distinct, node.order, node.limit, node.offset)
    return SlicingPerQuery(sliced) if NAME in node.child.columns else sliced


def advance_of_slicing(
    sliced: Slicing | SlicingPerQuery, node: ir.Slice
) -> Callable[[int, list[Solution]], list[Solution]]:
    """A function from the solutions of an instant to those that pass."""
    if isinstance(sliced, Slicing):
        return sliced.advance
    where = 2 + node.child.columns.index(NAME)

    def advance(t: int, solutions: list[Solution]) -> list[Solution]:
        by_query: dict[str, list[Solution]] = {}
        for x in solutions:
            by_query.setdefault(x[where], []).append(x)
        return [x for name, some in by_query.items() for x in sliced.advance(name, t, some)]

    return advance


def forget_groups(group: Any, gone: Collection[str]) -> None:
    """Drop the groups of queries that are gone."""
    if isinstance(group, GroupingPerQuery):
        group.forget(gone)
        return
    for key in forget_keys(group.groups, group.node.keys, gone):
        group.reported.pop(key, None)
        if isinstance(group, Grouping):
            group.rows.pop(key, None)


def forget_keys(groups: dict[Any, Any], keys: tuple[str, ...], gone: Collection[str]) -> list[Any]:
    """Drop the entries of queries that are gone, and return their keys."""
    name = _name_in(keys)
    dropped = [key for key in groups if name(key) in gone]
    for key in dropped:
        del groups[key]
    return dropped


def _name_in(keys: tuple[str, ...]) -> Callable[[Any], str]:
    """A function from a group's key to the name of its query; a key of one term may be that term instead of a tuple."""
    place = keys.index(NAME)
    return lambda key: key if isinstance(key, str) else key[place]


def queries_with_groups(group: Any) -> Collection[str]:
    """The queries that have had a solution."""
    if isinstance(group, GroupingPerQuery):
        return group.parts
    return set(map(_name_in(group.node.keys), group.groups))


def rows_at_end(node: ir.Group, group: Any, rows: Iterable[tuple[Any, ...]], t: int) -> list[Solution]:
    """The rows at the end, ``t``, of ungrouped aggregates of queries without solutions; ``rows``: the relation's."""
    if any(key[0] != NAME for key in node.keys):
        return []
    seen = queries_with_groups(group)
    grouping = Grouping(node, node.child.columns, ())
    grouping.now = t
    rows_of_all = []
    for row in rows:
        if row[0] in seen:
            continue
        key = tuple(row[0] if name == NAME else row[1 + int(name[1:])] for name in node.keys)
        empty = [accumulator(a.name, distinct=a.distinct, separator=a.separator) for a in node.aggregates]
        answer = grouping.row(key, Members(empty, None))
        if answer is not None:
            rows_of_all.append(answer[: 2 + len(node.head)])
    return rows_of_all
