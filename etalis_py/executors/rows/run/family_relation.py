"""Families of queries at run time: their relation of parameters, and the look-up of the queries a solution matches.

Definition.  A family is a set of queries that are equal up to constants (``etalis_compiler.families``).  Its relation
has one row for each: the name of the query, its constants, the place of the query in the program, the values of the
constants that are numbers, and its identity.  A solution without a query is joined with the rows whose constants it
has; each result belongs to one query, whose name it carries.

Cost: a look-up is one hash for the constants that an event has, and one binary search if a number is compared with a
constant; then it is proportional to the rows that match.  ``add`` and ``remove`` cost the same for each index.  State:
the rows, and a reference to each from every index.

>>> relation = Relation("f", (False, True))
>>> for k, name in enumerate(("low", "high")): relation.add((name, "<a>", str(9 * k), k, None, 9 * k, name))
>>> [row[0] for row in relation.index((1,), 2).candidates(">")("<a>", 5)]
['low']
>>> relation.remove("low"); len(relation.index((1,), 2).candidates(">")("<a>", 5))
0
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, TypeVar, overload

from etalis_compiler.families import NAME
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.traversal import transform

from etalis_py.executors.rows.run.goals import GoalStore
from etalis_py.executors.rows.run.per_query import SlicingPerQuery, forget_groups, forget_keys, is_of_family
from etalis_py.executors.rows.run.slicing import canonical_key
from etalis_py.executors.rows.run.state import State
from etalis_py.kernel.batch import Row
from etalis_py.kernel.shapes import LazyShapes, Shape
from etalis_py.kernel.templates import template_triples
from etalis_py.values import NUMERIC, decode

T = TypeVar("T")
Member = tuple[Any, ...]
"""A row: the name of the query, its constants, its place in the program, the constants' values (None: not a number),
and what the ids of its matches begin with."""


def member(name: str, constants: Sequence[str], place: int, is_numeric: Sequence[bool], identity: str) -> Member:
    """The row of a query."""
    values = [decode(term) if number else None for term, number in zip(constants, is_numeric, strict=True)]
    return (name, *constants, place, *values, identity)


@dataclass(frozen=True, slots=True)
class Family:
    """A family as the executor knows it: its name, which of its parameters are numbers, and its queries."""

    name: str
    is_numeric: tuple[bool, ...]
    members: Sequence[Member]


@dataclass(frozen=True, slots=True)
class Gathered:
    """The families of a program, and the places in the program of its other queries, in the order of their outputs."""

    families: tuple[Family, ...]
    places: tuple[int, ...]


class Index:
    """The rows by the constants at the places ``equal``, then in the order of the number at ``compared`` (0: none)."""

    __slots__ = ("buckets", "compared", "equal")

    def __init__(self, equal: tuple[int, ...], compared: int) -> None:
        self.equal, self.compared = equal, compared
        self.buckets: dict[Any, Any] = {}

    def key_of(self, row: Member) -> Any:
        if not self.equal:
            return None
        return row[self.equal[0]] if len(self.equal) == 1 else tuple([row[i] for i in self.equal])

    def value_of(self, row: Member) -> float:
        return as_float(row[len(row) // 2 + self.compared])

    def add(self, row: Member) -> None:
        key = self.key_of(row)
        if self.compared:
            numbers, rows = self.buckets.setdefault(key, ([], []))
            number = self.value_of(row)
            place = bisect_right(numbers, number)
            numbers.insert(place, number)
            rows.insert(place, row)
            return
        bucket = self.buckets.get(key)
        if bucket is None:
            self.buckets[key] = (row,)
        elif isinstance(bucket, tuple):
            self.buckets[key] = [*bucket, row]
        else:
            bucket.append(row)

    def remove(self, row: Member) -> None:
        key = self.key_of(row)
        bucket = self.buckets[key]
        rows = bucket[1] if self.compared else bucket
        if len(rows) == 1:
            del self.buckets[key]
            return
        if not self.compared:
            bucket.remove(row)
            return
        place = bisect_left(bucket[0], self.value_of(row))
        while rows[place] is not row:
            place += 1
        del bucket[0][place], rows[place]

    def candidates(self, op: str) -> Callable[[Any, Any], Sequence[Member]]:
        """A function from a key and a value to the rows for which ``value op constant`` may hold.

        Numbers are compared as doubles here, which keeps their order, so equal ones are always among the candidates.
        """
        get = self.buckets.get
        from_below = op in (">", ">=")

        def candidates(key: Any, value: Any) -> Sequence[Member]:
            bucket = get(key)
            if bucket is None:
                return ()
            if value.__class__ not in NUMERIC:
                return bucket[1]  # type: ignore[no-any-return]
            numbers, rows = bucket
            number = as_float(value)
            if from_below:
                return rows[: bisect_right(numbers, number)]  # type: ignore[no-any-return]
            return rows[bisect_left(numbers, number) :]  # type: ignore[no-any-return]

        return candidates


def as_float(number: Any) -> float:
    """A number as a double; infinite if it is too large for one."""
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


class Relation:
    """The queries of a family while an engine runs; ``gone`` are those whose goals may still be there."""

    __slots__ = ("_given", "_longest", "gone", "indexes", "is_numeric", "name", "rows", "version")

    def __init__(self, name: str, is_numeric: tuple[bool, ...]) -> None:
        self.name, self.is_numeric = name, is_numeric
        self.rows: dict[str, Member] = {}
        self.indexes: dict[tuple[tuple[int, ...], int], Index] = {}
        self.gone: set[str] = set()
        self.version = 0  # grows with each change
        self._longest: dict[int, list[int]] = {}
        self._given: tuple[int, Sequence[Member]] = -1, ()  # the version after the last ``go_to``, and its argument

    @property
    def place(self) -> int:
        """The position in a row of its query's place in the program."""
        return 1 + len(self.is_numeric)

    def index(self, equal: tuple[int, ...], compared: int) -> Index:
        """An index, which is kept up to date from now on."""
        index = self.indexes.get((equal, compared))
        if index is None:
            index = self.indexes[equal, compared] = Index(equal, compared)
            for row in self.rows.values():
                index.add(row)
        return index

    def longest(self, place: int) -> list[int]:
        """A list of the greatest number at a place, which is kept up to date from now on."""
        self.index((), place)
        longest = self._longest.setdefault(place, [0])
        self._measure()
        return longest

    def _measure(self) -> None:
        for place, longest in self._longest.items():
            bucket = self.indexes[(), place].buckets.get(None)
            longest[0] = 0 if bucket is None else bucket[1][-1][self.place + place]

    def add(self, row: Member) -> None:
        self.version += 1
        self.rows[row[0]] = row
        for index in self.indexes.values():
            index.add(row)
        self._measure()

    def remove(self, name: str) -> None:
        self.version += 1
        row = self.rows.pop(name)
        for index in self.indexes.values():
            index.remove(row)
        self.gone.add(name)
        self._measure()

    def go_to(self, members: Sequence[Member]) -> None:
        """Change the relation to these queries."""
        if isinstance(members, RelationRows) and members.relation is self:
            return
        given = self.version, members
        if self._given[0] == given[0] and self._given[1] is members:
            return
        wanted = dict(zip(map(itemgetter(0), members), members, strict=True))
        others = [] if wanted == self.rows else [n for n, row in self.rows.items() if wanted.get(n) != row]
        for name in others:
            if name in wanted:  # its place has changed, not its goals
                kept = set(self.gone)
                self.remove(name)
                self.gone = kept
            else:
                self.remove(name)
        for name in [name for name in wanted if name not in self.rows] if len(wanted) > len(self.rows) else ():
            self.add(wanted[name])
        self._given = self.version, members


class RelationRows(Sequence[Member]):
    """A live view of the rows of a relation."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation

    @overload
    def __getitem__(self, place: int) -> Member: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Member]: ...
    def __getitem__(self, place: int | slice) -> Member | Sequence[Member]:
        return next(iter(self)) if place == 0 else list(self)[place]

    def __iter__(self) -> Iterator[Member]:
        return iter(self.relation.rows.values())

    def __len__(self) -> int:
        return len(self.relation.rows)


Arrange = Callable[[str, int, list[Row]], list[Row]]


def split(
    relation: Relation, output: ir.Output, shapes: Shapes, arrange: Arrange | None = None
) -> Callable[[int, list[Row]], list[tuple[int, list[Row]]]]:
    """A function from the rows of an instant to those of each query: queries in program order, rows in their query's
    order.

    ``arrange`` applies DISTINCT, ORDER BY, LIMIT and OFFSET to the rows of a query.
    """
    assert output.source is not None
    columns, at = output.source.columns, relation.place
    where = 2 + columns.index(NAME)
    key = canonical_key(columns, tuple(sorted(output.variables)))
    members, show = relation.rows, shapes.show

    def parted(t: int, rows: list[Row]) -> list[tuple[int, list[Row]]]:
        if len(rows) == 1 and arrange is None:
            row = members.get(rows[0][where])
            if row is None:
                return []
            show(row[at], output.query, row)
            return [(row[at], rows)]
        by_name: dict[str, list[Row]] = {}
        for x in rows:
            by_name.setdefault(x[where], []).append(x)
        parts = []
        for name, some in by_name.items():
            row = members.get(name)
            if row is not None:
                if arrange is not None:
                    some = arrange(name, t, some)
                    if not some:
                        continue
                elif len(some) > 1:
                    some.sort(key=key)
                show(row[at], output.query, row)
                parts.append((row[at], some))
        parts.sort(key=itemgetter(0))
        return parts

    return parted


class Shapes(LazyShapes):
    """The shapes by which the rows of each query are read, by the query's place in the program.

    For queries of a family they are made on demand.
    """

    def __init__(self, ordinary: Mapping[int, Shape]) -> None:
        self.ordinary = dict(ordinary)
        self.once = {place: shape.query for place, shape in ordinary.items() if shape.once}
        self.families: dict[str, tuple[Shape, Relation]] = {}
        self._shown: dict[int, tuple[str, Member]] = {}
        self._made: dict[int, Shape] = {}

    def show(self, place: int, family: str, row: Member) -> None:
        """Record that a query has something to report, so that its shape may be asked for."""
        if place not in self._shown:
            self._shown[place] = (family, row)
            if self.families[family][0].once:
                self.once[place] = row[0]

    def of_number(self, place: int) -> ir.Output:
        """The output of the family that a reported query belongs to."""
        return self.families[self._shown[place][0]][0].output

    @overload
    def __getitem__(self, place: int) -> Shape: ...
    @overload
    def __getitem__(self, place: slice) -> list[Shape]: ...
    def __getitem__(self, place: int | slice) -> Shape | list[Shape]:
        if isinstance(place, slice):
            return list(self)[place]
        shape = self.ordinary.get(place) or self._made.get(place)
        if shape is None:
            family, row = self._shown[place]
            shape = self._made[place] = member_shape(self.families[family][0], row)
        return shape

    def __len__(self) -> int:
        return len(self.ordinary) + sum(len(relation.rows) for _, relation in self.families.values())

    def __iter__(self) -> Iterator[Shape]:
        places = list(self.ordinary)
        for shape, relation in self.families.values():
            for row in relation.rows.values():
                self.show(row[relation.place], shape.query, row)
                places.append(row[relation.place])
        return (self[place] for place in sorted(places))

    @property
    def queries(self) -> frozenset[str]:
        """The names of the queries."""
        names = [shape.query for shape in self.ordinary.values()]
        return frozenset(names).union(*(relation.rows for _, relation in self.families.values()))


class Families:
    """The families that an executor runs.  Their outputs come after the others, which report under their places."""

    def __init__(self, gathered: Gathered, before: Families | None) -> None:
        self.relations: dict[str, Relation] = {}
        for family in gathered.families:
            known = None if before is None else before.relations.get(family.name)
            relation = self.relations[family.name] = known or Relation(family.name, family.is_numeric)
            relation.go_to(family.members)
        self.positions = (*gathered.places, *range(-len(gathered.families), 0))  # hidden ones are below these
        self.shapes: Shapes

    @property
    def is_numeric(self) -> dict[str, tuple[bool, ...]]:
        """For each family, which of its parameters are numbers."""
        return {name: relation.is_numeric for name, relation in self.relations.items()}

    def show(self, shapes: Sequence[Shape]) -> Shapes:
        """How rows are read, from the shapes of all outputs."""
        alone = zip(self.positions, shapes, strict=True)
        self.shapes = Shapes({place: shape for place, shape in alone if shape.query not in self.relations})
        for shape in shapes:
            if shape.query in self.relations:
                self.shapes.families[shape.query] = shape, self.relations[shape.query]
        return self.shapes

    @property
    def has_gone(self) -> bool:
        """Whether there may be goals of queries that are gone."""
        return any(relation.gone for relation in self.relations.values())

    def has(self, query: str) -> bool:
        """Whether a query of this name runs in a family."""
        return any(query in relation.rows for relation in self.relations.values())

    def add(self, family: str, row: Member, state: State) -> None:
        """Add a query to a family; it begins without goals."""
        if any(row[0] in relation.gone for relation in self.relations.values()):
            self.purge(state)
        self.relations[family].add(row)

    def split(
        self, output: ir.Output, arrange: Arrange | None
    ) -> Callable[[int, list[Row]], list[tuple[int, list[Row]]]]:
        """The function that divides rows among the queries of a family (the module's ``split``)."""
        return split(self.relations[output.query], output, self.shapes, arrange)

    def showing(self, output: ir.Output) -> Callable[[Iterable[Member]], None]:
        """A function that takes the rows of queries that have something to report."""
        at = self.relations[output.query].place

        def show(rows: Iterable[Member]) -> None:
            for row in rows:
                self.shapes.show(row[at], output.query, row)

        return show

    def all_shown(self, output: ir.Output) -> list[int]:
        """The places of all queries of a family, each of which has something to report."""
        return [place for place, _ in self.each(output)]

    def each(self, output: ir.Output) -> Iterator[tuple[int, Member]]:
        """The place and the row of each query of a family, whose reports can be read from now on."""
        relation = self.relations[output.query]
        for row in list(relation.rows.values()):
            self.shapes.show(row[relation.place], output.query, row)
            yield row[relation.place], row

    def access(self, family: str, equal: tuple[int, ...], compared: int, op: str) -> Callable[..., Iterable[Member]]:
        """The function with which generated code looks up parameters."""
        relation = self.relations[family]
        if compared:
            return relation.index(equal, compared).candidates(op)
        return relation.index(equal, 0).buckets.get if equal else relation.rows.values

    def purge(self, state: State) -> int:
        """Drop the goals and groups of queries that are gone; returns how many goals."""
        gone = {name for relation in self.relations.values() for name in relation.gone}
        if not gone:
            return 0
        dropped = 0
        for store in state.stores.values():
            dropped += _purge(store, gone)
        for group in state.groups.values():
            if is_of_family(group.node):
                forget_groups(group, gone)
        for runs in state.runs.values():
            if NAME in runs.node.keys:
                forget_keys(runs.partitions, runs.node.keys, gone)
        for sliced in state.slices.values():
            if isinstance(sliced, SlicingPerQuery):
                sliced.forget(gone)
        for relation in self.relations.values():
            relation.gone.clear()
        return dropped


def _purge(store: GoalStore, gone: set[str]) -> int:
    if NAME not in store.layout.head:
        return 0
    where = store.layout.column(NAME)
    goals = [x for x in store.dump() if x[where] in gone]
    for x in goals:
        store.retract(x)
    return len(goals)


def with_constants(part: T, row: Member) -> T:
    """A part of a family with the constants of one of its queries."""

    def constant(node: object) -> object:
        name = alg.variable_of(node)
        return alg.Const(row[1 + int(name[1:])]) if name[:1] == NAME else None

    return transform(part, constant)


def member_shape(shape: Shape, row: Member) -> Shape:
    """The shape of one query of a family: its own name and identity, its constants in the template."""
    output = shape.output
    own = replace(output, query=row[0], identity=row[-1], template=with_constants(output.template, row))
    assert own.source is not None
    triples = template_triples(own, own.source.columns, None) if own.form == "construct" else shape.triples
    return replace(shape, output=own, triples=triples)


__all__ = ["Family", "Member", "Relation", "Shapes", "member", "split", "with_constants"]
