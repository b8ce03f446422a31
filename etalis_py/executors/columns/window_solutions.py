"""SPARQL over windows as columns: the solutions of a pattern at many evaluation times at once.

A solution is a row of ``Bindings`` that holds at the evaluations from ``at`` to ``end``, by their numbers.  What only
narrows or extends solutions handles each once, however many evaluations it holds at; a join, an aggregate and DISTINCT
handle it once for each, with the evaluation as a part of the key.

Cost: some hundred nanoseconds for each triple of a window, and for each solution of a join, at each evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from etalis_rules import algebra as alg

from etalis_py.executors.columns.arguments import Unfit
from etalis_py.executors.columns.equal_sides import numbers_of_keys
from etalis_py.executors.columns.frames import Bindings
from etalis_py.executors.columns.kernels import windows as k
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.columns.window_aggregates import aggregated
from etalis_py.executors.columns.window_order import is_chosen, ordered, sliced
from etalis_py.values.equality_keys import NO_KEY

MOST = 1 << 23
"""How many pairs a join may have, unless they are all of one evaluation."""
MOST_OF_ONE = 1 << 25
"""With more pairs than this in one evaluation the query goes on in rows, which do not need memory for all of them."""
EVENT = ".event"
"""The column with the number of the event that a solution inside EVENT is of."""
_KEY = ".key of "
"""Begins the names of columns with the numbers of the keys of what is compared by ``=``, during a join."""


class TooWide(Exception):
    """The evaluations have too many solutions to be looked at together."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The rows that a window holds at some evaluations: their terms, their events, and where each is seen.

    ``ranges`` are the evaluations at which the triple of a row is there and no earlier row has it, first and last;
    ``of_event`` those at which the row's event is there and no earlier row of it has the triple.
    """

    terms: Mapping[str, np.ndarray]
    event: np.ndarray
    ranges: tuple[np.ndarray, np.ndarray]
    of_event: tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True)
class Evaluations:
    """Some evaluations, and what each window holds at them; window "" is the default graph.

    ``steps``: how many triples and pairs one evaluation may look at here; with more the query goes on in rows, which
    may need fewer, and otherwise fail.  ``taken`` counts those of all evaluations together.
    """

    terms: Terms
    number: int
    windows: Mapping[str, Seen]
    steps: int
    taken: list[int] = field(default_factory=lambda: [0])

    def _take(self, steps: int) -> None:
        """Count so many more steps."""
        self.taken[0] += steps
        if self.taken[0] > self.steps:
            if self.number > 1:
                raise TooWide
            raise Unfit("an evaluation takes very many steps")

    # --- patterns ---

    def solutions(self, pattern: alg.Pattern, conditions: Sequence[alg.Expr] = ()) -> Bindings:
        """The solutions of a pattern; those that do not satisfy the ``conditions`` on it may be left out."""
        match pattern:
            case alg.BGP(triples, stream):
                return self._together([self._triple(t, stream, of_event=False) for t in triples], conditions)
            case alg.Record(inner, stream):
                found = self._of_event(inner, stream)
                return replace(found, columns={name: ids for name, ids in found.columns.items() if name != EVENT})
            case alg.Filter(child, own):
                return _kept(self.solutions(child, (*own, *conditions)), own)
            case alg.Extend(child, variable, expression):
                return self._extended(self.solutions(child, conditions), variable, expression)
            case alg.Join(_, left, right):
                return self._together([self.solutions(part, conditions) for part in (left, right)], conditions)
            case alg.Union(left, right):
                return _united(self.solutions(left), self.solutions(right))
            case alg.SubSelect(select):
                return self.answers(select)
            case alg.Table(names, rows):
                return self._table(names, rows)
        raise TypeError(f"no columnar form: {pattern!r}")

    def _table(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Bindings:
        """Inline rows, which hold at all evaluations."""
        first = np.zeros(len(rows), np.int64)
        columns = {name: self.terms.intern([row[place] for row in rows]) for place, name in enumerate(names)}
        return _frame(self.terms, first, first + self.number - 1, columns)

    def _of_event(self, pattern: alg.Pattern, stream: str) -> Bindings:
        """The solutions over each event by itself."""
        match pattern:
            case alg.BGP(triples):
                found = self._triple(triples[0], stream, of_event=True)
                for triple in triples[1:]:
                    found = self._joined(found, self._triple(triple, stream, of_event=True))
                return found
            case alg.Filter(child, conditions):
                return _kept(self._of_event(child, stream), conditions)
            case alg.Extend(child, variable, expression):
                return self._extended(self._of_event(child, stream), variable, expression)
        raise TypeError(f"no columnar form inside EVENT: {pattern!r}")

    def _triple(self, triple: alg.Triple, stream: str, *, of_event: bool) -> Bindings:
        """The solutions of one triple pattern."""
        seen = self.windows[stream]
        first, last = seen.of_event if of_event else seen.ranges
        kept, bound = matching(triple, self.terms, seen.terms)
        kept &= first <= last
        rows = np.flatnonzero(kept)
        self._take(int((last[rows] - first[rows] + 1).sum()))
        columns = {name: ids[rows] for name, ids in bound.items()}
        if of_event:
            columns[EVENT] = seen.event[rows]
        return _frame(self.terms, first[rows], last[rows], columns)

    def _extended(self, found: Bindings, variable: str, e: alg.Expr) -> Bindings:
        """The solutions with one more variable; an error leaves it unbound."""
        ids = found.bound(e)
        if not isinstance(e, alg.Var | alg.Const):
            ids = self.terms.distinguished(ids)
        return replace(found, columns={**found.columns, variable: ids})

    # --- joins ---

    def _together(self, parts: Sequence[Bindings], conditions: Sequence[alg.Expr] = ()) -> Bindings:
        """The join of all parts; the next is one that shares a variable, and has the fewest solutions.

        If none does, it is one of which the ``conditions`` say that something in it equals something on the other side.
        """
        if len(parts) == 1:
            return parts[0]
        left = [each(part) for part in parts]
        found = left.pop(min(range(len(left)), key=lambda n: len(left[n])))
        while left:
            joined = found.columns.keys()
            equal = [_equated(conditions, joined, part.columns.keys()) for part in left]
            ranks = [(joined.isdisjoint(part.columns), not e, len(part)) for part, e in zip(left, equal, strict=True)]
            best = ranks.index(min(ranks))
            found = self._joined(found, left.pop(best), equal[best])
        return found

    def _joined(self, one: Bindings, other: Bindings, equal: Sequence[tuple[alg.Expr, alg.Expr]] = ()) -> Bindings:
        """The pairs that agree on all variables of both, and on the event, or else the evaluation.

        Those that differ in what ``equal`` says, with an expression of one and one of the other, are left out.
        """
        one = _with_keys(one, [mine for mine, _ in equal])
        other = _with_keys(other, [theirs for _, theirs in equal])
        few, many = (one, other) if len(one) < len(other) else (other, one)
        shared = sorted(few.columns.keys() & many.columns.keys())
        if EVENT not in shared:
            few, many, shared = each(few), each(many), ["", *shared]
        keys = Keys(len(shared), np.int64)
        matrices = (np.column_stack([f.columns[name] if name else f.at for name in shared]) for f in (few, many))
        numbers = keys.numbers(next(matrices), create=True)
        sought = keys.numbers(next(matrices), create=False)
        bounds, places = np.zeros(keys.count + 2, np.int64), np.empty(len(numbers), np.int64)
        k.arrange(numbers, bounds, places)
        sizes = np.append(np.diff(bounds[:-1]), 0)  # that of -1 is 0
        size = int(sizes[sought].sum())
        if size > MOST and self.number > 1:
            raise TooWide
        if size > MOST_OF_ONE:
            raise Unfit("an evaluation joins very many pairs")
        self._take(size)
        left, right = np.empty(size, np.int64), np.empty(size, np.int64)
        k.pairs(sought, bounds, places, left, right)
        more = {name: ids[right] for name, ids in few.columns.items() if name not in many.columns}
        found = many.keep(left)
        columns = {**found.columns, **more}
        return replace(found, columns={name: ids for name, ids in columns.items() if not name.startswith(_KEY)})

    # --- SELECT ---

    def answers(self, select: alg.Select) -> Bindings:
        """The rows of a SELECT, at each evaluation in its order, if it has one."""
        found = self.solutions(select.pattern)
        if select.grouped:
            found = aggregated(each(found), select, self.number)
        found = _kept(found, select.having)
        for variable, expression in select.extends:
            found = self._extended(found, variable, expression)
        if is_chosen(select):
            found = self._ordered(each(found), select)
        found = _shown(found, select.variables)
        if select.distinct:
            found = _distinct(each(found))
        if select.limit is not None or select.offset:
            found = found.keep(sliced(select, found.at))
        return found

    def _ordered(self, found: Bindings, select: alg.Select) -> Bindings:
        """The rows in the order of the query, at each evaluation."""
        keys = []
        for number, key in enumerate(select.order):
            keys.append((f".key{number}", key.descending))
            found = self._extended(found, keys[-1][0], key.expression)
        names = [*select.variables, *(name for name, _ in keys)]
        columns = {name: self.terms.dictionary(ids) for name, ids in _shown(found, names).columns.items()}
        return found.keep(ordered(select, found.at, columns, keys))


def _equated(conditions: Sequence[alg.Expr], own: Set[str], other: Set[str]) -> list[tuple[alg.Expr, alg.Expr]]:
    """What conditions compare by ``=`` of solutions with some variables, and of others."""
    return [
        (mine, theirs)
        for mine, theirs in alg.equal_pairs(conditions)
        if (reads := alg.variables(mine)) and reads <= own and (others := alg.variables(theirs)) and others <= other
    ]


def _with_keys(found: Bindings, compared: Sequence[alg.Expr]) -> Bindings:
    """The solutions with the numbers of the keys of some expressions; what has no key equals nothing."""
    for place, e in enumerate(compared):
        numbers = numbers_of_keys(e, found)
        found = replace(found, columns={**found.columns, f"{_KEY}{place}": numbers})
        found = found.keep(np.flatnonzero(numbers != NO_KEY))
    return found


def each(found: Bindings) -> Bindings:
    """A row for each evaluation at which a solution holds."""
    if found.at is found.end:
        return found
    counts = found.end - found.at + 1
    if (counts == 1).all():
        return _frame(found.terms, found.at, found.at, found.columns)
    rows = np.repeat(np.arange(len(counts)), counts)
    at = np.arange(len(rows)) + np.repeat(found.at - (np.cumsum(counts) - counts), counts)
    return _frame(found.terms, at, at, {name: ids[rows] for name, ids in found.columns.items()})


def matching(
    triple: alg.Triple, terms: Terms, columns: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """A mask of the triples, given as columns of ids, that match a pattern, and the columns that its variables get."""
    kept = np.ones(len(columns["s"]), np.bool_)
    bound: dict[str, np.ndarray] = {}
    for place, node in zip("pso", (triple.predicate, triple.subject, triple.object), strict=True):
        if isinstance(node, alg.Const):
            kept &= columns[place] == terms.id_of(node.term)
        elif node.name in bound:
            kept &= columns[place] == bound[node.name]
        else:
            bound[node.name] = columns[place]
    return kept, bound


def _frame(terms: Terms, first: np.ndarray, last: np.ndarray, columns: dict[str, Any]) -> Bindings:
    return Bindings(terms, first, last, first, columns, np.arange(len(first)))


def _kept(found: Bindings, conditions: Sequence[alg.Expr]) -> Bindings:
    for condition in conditions:
        found = found.keep(found.holds(condition))
    return found


def _united(one: Bindings, other: Bindings) -> Bindings:
    """The solutions of both; a variable that one side does not have is unbound there."""
    names = sorted(one.columns.keys() | other.columns.keys())
    parts = _shown(one, names), _shown(other, names)
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in names}
    first, last = (np.concatenate([getattr(part, name) for part in parts]) for name in ("at", "end"))
    return _frame(one.terms, first, last, columns)


def _shown(found: Bindings, names: Sequence[str]) -> Bindings:
    """The solutions with just these columns."""
    unbound = np.zeros(len(found), np.int32)
    return replace(found, columns={name: found.columns.get(name, unbound) for name in names})


def _distinct(found: Bindings) -> Bindings:
    """The first of equal rows of each evaluation."""
    keys = Keys(1 + len(found.columns), np.int64)
    numbers = keys.numbers(np.column_stack([found.at, *found.columns.values()]), create=True)
    first = np.full(keys.count, len(numbers))
    k.least_of(numbers, np.arange(len(numbers)), first)
    return found.keep(np.sort(first))
