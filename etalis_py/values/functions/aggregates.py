"""COUNT, GROUP_CONCAT, DISTINCT, and the table of all aggregates ([SPARQL 1.1 Query] §18.5.1)."""

from __future__ import annotations

import difflib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from etalis_rules.terms import is_blank, literal

from etalis_py.values.bounds import check_length
from etalis_py.values.codec import encode
from etalis_py.values.errors import SparqlError
from etalis_py.values.functions.accumulators import Accumulator, Failing, State, not_added, pack_int, unpack_int
from etalis_py.values.functions.extremes import Max, Min, SampleAggregate
from etalis_py.values.functions.spec import UnknownFunction
from etalis_py.values.functions.sums import Avg, Sum
from etalis_py.values.functions.terms import str_


class CountAggregate:
    """COUNT: how many arguments are not errors.  For COUNT(*) any value and term will do."""

    __slots__ = ("_count",)

    name = "COUNT"

    def __init__(self) -> None:
        self._count = 0

    def add(self, value: Any, term: Any) -> None:
        self._count += 1

    def add_many(self, count: int) -> None:
        """Add so many arguments."""
        self._count += count

    def remove(self, value: Any, term: Any) -> None:
        self._count -= 1
        if self._count < 0:
            raise not_added(term)

    def fail(self) -> None:
        """An error is not counted."""

    def unfail(self) -> None:
        """An error was not counted."""

    def result(self) -> str:
        return encode(self._count)

    def state(self) -> State:
        return [self.name, pack_int(self._count)]

    def load(self, state: State) -> None:
        self._count = unpack_int(state[1])


class GroupConcat(Failing):
    """GROUP_CONCAT: the STR of the arguments in the order they were added, with a separator between them.

    For no arguments it is "".  A blank node or an error among the arguments makes it an error.  With ``distinct`` a
    term stands where it first occurs among those still held.
    """

    __slots__ = ("_distinct", "_next", "_places", "_separator", "_terms")

    name = "GROUP_CONCAT"

    def __init__(self, separator: str = " ", distinct: bool = False) -> None:
        self._separator = separator
        self._distinct = distinct
        self._terms: dict[int, str] = {}
        self._places: dict[str, deque[int]] = {}
        self._next = 0
        self._failures = 0

    def add(self, value: Any, term: str) -> None:
        if is_blank(term):
            self._failures += 1
            return
        self._terms[self._next] = term
        self._places.setdefault(term, deque()).append(self._next)
        self._next += 1

    def remove(self, value: Any, term: str) -> None:
        """Takes out the earliest occurrence."""
        if is_blank(term):
            self.unfail()
            return
        places = self._places.get(term)
        if not places:
            raise not_added(term)
        del self._terms[places.popleft()]
        if not places:
            del self._places[term]

    def take_back(self, term: str) -> None:
        """Takes out what was added last, which is this term."""
        if is_blank(term):
            self.unfail()
            return
        _, last = self._terms.popitem()
        if last != term:
            raise not_added(term)
        places = self._places[term]
        places.pop()
        if not places:
            del self._places[term]

    def result(self) -> str:
        if self._failures:
            raise SparqlError(f"GROUP_CONCAT over {self._failures} argument(s) that are an error or a blank node")
        terms = dict.fromkeys(self._terms.values()) if self._distinct else self._terms.values()
        texts = [str_(term) for term in terms]
        check_length(sum(map(len, texts)) + len(self._separator) * len(texts), "GROUP_CONCAT")
        return literal(self._separator.join(texts))

    def emptied(self) -> GroupConcat:
        """One without arguments that is otherwise the same."""
        return GroupConcat(self._separator, self._distinct)

    def followed_by(self, other: GroupConcat) -> GroupConcat:
        """This one with the arguments of another after its own."""
        for term in other._terms.values():
            self.add(None, term)
        self._failures += other._failures
        return self

    def state(self) -> State:
        return [self.name, self._separator, int(self._distinct), self._failures, list(self._terms.values())]

    def load(self, state: State) -> None:
        _, self._separator, distinct, self._failures, terms = state
        self._distinct = bool(distinct)
        self._terms, self._places, self._next = {}, {}, 0
        for term in terms:
            self.add(None, term)


class Distinct:
    """An aggregate over the distinct terms: each counts once, from its first addition to its last removal.

    For COUNT(DISTINCT *) the term is the tuple of the terms of the solution.
    """

    __slots__ = ("_counts", "_inner")

    name = "DISTINCT"

    def __init__(self, inner: Accumulator) -> None:
        self._inner = inner
        self._counts: dict[Any, int] = {}

    def add(self, value: Any, term: Any) -> None:
        count = self._counts.get(term, 0)
        self._counts[term] = count + 1
        if not count:
            self._inner.add(value, term)

    def remove(self, value: Any, term: Any) -> None:
        count = self._counts.get(term, 0)
        if not count:
            raise not_added(term)
        if count > 1:
            self._counts[term] = count - 1
        else:
            del self._counts[term]
            self._inner.remove(value, term)

    def fail(self) -> None:
        self._inner.fail()

    def unfail(self) -> None:
        self._inner.unfail()

    def result(self) -> str:
        return self._inner.result()

    def state(self) -> State:
        counts = [[list(term) if isinstance(term, tuple) else term, count] for term, count in self._counts.items()]
        return [self.name, counts, self._inner.state()]

    def load(self, state: State) -> None:
        _, counts, inner = state
        self._counts = {tuple(term) if isinstance(term, list | tuple) else term: count for term, count in counts}
        self._inner.load(inner)


_SIMPLE: dict[str, Callable[[], Accumulator]] = {
    "COUNT": CountAggregate,
    "SUM": Sum,
    "AVG": Avg,
    "MIN": Min,
    "MAX": Max,
    "SAMPLE": SampleAggregate,
}
_WITHOUT_DISTINCT = frozenset(("MIN", "MAX", "SAMPLE"))  # DISTINCT changes nothing in them

AGGREGATES: frozenset[str] = frozenset((*_SIMPLE, "GROUP_CONCAT"))
"""The names of the aggregates."""


def accumulator(name: str, *, distinct: bool = False, separator: str = " ") -> Accumulator:
    """A new, empty accumulator for an aggregate; the name in any case.

    >>> total = accumulator("sum")
    >>> total.add(2, "2"); total.add(3, "3"); total.remove(2, "2"); total.result()
    '"3"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    upper = name.upper()
    if upper == "GROUP_CONCAT":
        return GroupConcat(separator, distinct)
    make = _SIMPLE.get(upper)
    if make is None:
        near = difflib.get_close_matches(upper, AGGREGATES, n=1)
        raise UnknownFunction(f"{name} is not an aggregate{f'; did you mean {near[0]}?' if near else ''}")
    return Distinct(make()) if distinct and upper not in _WITHOUT_DISTINCT else make()


def add_all(total: Accumulator, values: Sequence[Any], terms: Sequence[Any]) -> None:
    """Add many arguments, faster than one by one."""
    if not (isinstance(total, Sum) and total.add_all(values)):
        for value, term in zip(values, terms, strict=True):
            total.add(value, term)


def add_several(total: Accumulator, given: int, missing: int, whole: int, extreme: tuple[Any, str] | None) -> None:
    """Add so many arguments of COUNT, SUM or AVG, integers with a total, or for MIN, MAX or SAMPLE their extreme.

    ``missing`` more are errors.  This is as good as adding them one by one as long as none is removed alone.
    """
    if isinstance(total, CountAggregate):
        total.add_many(given)
    elif isinstance(total, Sum):
        total.add_integers(whole, given)
    elif extreme is not None:
        total.add(*extreme)
    if missing:
        total.fail()


def remove_several(total: Accumulator, given: int, missing: int, whole: int, extreme: tuple[Any, str] | None) -> None:
    """Remove what was added as several."""
    if isinstance(total, CountAggregate):
        total.add_many(-given)
    elif isinstance(total, Sum):
        total.add_integers(-whole, -given)
    elif extreme is not None:
        total.remove(*extreme)
    if missing:
        total.unfail()


def remove_all(total: Accumulator, values: Sequence[Any], terms: Sequence[Any]) -> None:
    """Remove many arguments that were added."""
    if not (isinstance(total, Sum) and total.remove_all(values)):
        for value, term in zip(values, terms, strict=True):
            total.remove(value, term)


def take_back(total: Accumulator, value: Any, term: Any) -> None:
    """Undo the last addition, which was of this argument."""
    if isinstance(total, GroupConcat):
        total.take_back(term)
    else:
        total.remove(value, term)


def restore_accumulator(state: State) -> Accumulator:
    """The accumulator whose ``state()`` this is."""
    name = state[0]
    restored = accumulator(state[2][0], distinct=True) if name == Distinct.name else accumulator(name)
    restored.load(state)
    return restored
