"""An indexed RDF graph over spellings, made for many look-ups and small changes.

The graph is one *table* for each predicate: pairs (subject, object) indexed by subject (``forward``) and by object
(``backward``).  An index is built on first use and maintained from then on, by adding or removing single entries: the
dictionaries that ``forward`` and ``backward`` give stay the same objects for the life of the graph, so generated code
may keep them.  Their values are tuples while small and dictionaries without values when larger (``in``, ``len`` and
iteration in order of entry work on both); a value must not be kept across a change.

A look-up with a bound predicate costs one or two dictionary accesses; with an unbound one, that for each predicate.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from etalis_py.events import Triple
from etalis_py.values import decode
from etalis_py.values.equality_keys import equality_key

Pair = tuple[str, str]
Index = dict[str, Collection[str]]
ValueIndex = dict[Hashable, Collection[str]]

Key = TypeVar("Key", bound=Hashable)

_SMALL = 8  # with more than this, an entry's values are a dict, so that membership and removal take constant time
_NONE: tuple[str, ...] = ()


def _insert(index: dict[Key, Collection[str]], key: Key, value: str) -> bool:
    """Enter a value under a key; returns false if it was there already."""
    values = index.get(key)
    if values is None:
        index[key] = (value,)
        return True
    if value in values:
        return False
    if isinstance(values, dict):
        values[value] = None
    elif len(values) < _SMALL:
        index[key] = (*values, value)
    else:
        grown = dict.fromkeys(values)
        grown[value] = None
        index[key] = grown
    return True


def _delete(index: dict[Key, Collection[str]], key: Key, value: str) -> bool:
    """Remove a value from under a key; returns false if it was not there."""
    values = index.get(key)
    if values is None or value not in values:
        return False
    if len(values) == 1:
        del index[key]
    elif isinstance(values, dict):
        del values[value]
    else:
        index[key] = tuple(v for v in values if v != value)
    return True


def _value_key(term: str) -> Hashable:
    """The key of a term's value."""
    return equality_key(decode(term))


def _grouped(pairs: Iterable[Pair]) -> Index:
    groups: dict[str, list[str]] = {}
    for key, value in pairs:
        group = groups.get(key)
        if group is None:
            groups[key] = [value]
        else:
            group.append(value)
    result: Index = {}
    for key, group in groups.items():
        if len(group) == 1:
            result[key] = (group[0],)
        else:
            unique = dict.fromkeys(group)
            result[key] = unique if len(unique) > _SMALL else tuple(unique)
    return result


class PairColumns:
    """The pairs of a table as two columns of numbers into a list of terms: the form in a cache, decoded on demand.

    If the pairs of each subject are together, as in a cache, grouping them costs a third.
    """

    __slots__ = ("objects", "subjects", "terms")

    def __init__(self, terms: Sequence[str], subjects: array[int], objects: array[int]) -> None:
        self.terms, self.subjects, self.objects = terms, subjects, objects

    def __len__(self) -> int:
        return len(self.subjects)

    def __iter__(self) -> Iterator[Pair]:
        term = self.terms.__getitem__
        return zip(map(term, self.subjects), map(term, self.objects), strict=True)

    def grouped(self) -> Index:
        """Subject to objects."""
        term, objects = self.terms.__getitem__, self.objects
        result: Index = {}
        start = 0
        for number, run in groupby(self.subjects):
            end = start + len(list(run))
            subject = term(number)
            every = [*result.get(subject, ()), *map(term, objects[start:end])]
            result[subject] = dict.fromkeys(every) if len(every) > _SMALL else tuple(every)
            start = end
        return result


class PredicatePairs:
    """The pairs of one predicate.  ``PairColumns`` hold no pair twice, and go when the forward index is built."""

    __slots__ = ("_backward", "_by_value", "_columns", "_forward", "_size")

    def __init__(self, pairs: Iterable[Pair] | PairColumns = ()) -> None:
        self._by_value: ValueIndex | None = None
        self._columns: PairColumns | None = None
        self._forward: Index | None = None
        self._backward: Index | None = None
        if isinstance(pairs, PairColumns):
            self._columns, self._size = pairs, len(pairs)
        else:
            self._forward = _grouped(pairs)
            self._size = sum(map(len, self._forward.values()))

    @property
    def forward(self) -> Index:
        """Subject to objects."""
        if self._forward is None:
            assert self._columns is not None
            self._forward = self._columns.grouped()
            self._columns = None
        return self._forward

    @property
    def backward(self) -> Index:
        """Object to subjects."""
        if self._backward is None:
            self._backward = _grouped((o, s) for s, o in self)
        return self._backward

    def objects_equal_to(self, key: Hashable) -> Collection[str]:
        """The objects whose values have this key, among which are all that ``=`` finds equal to a value that has it."""
        if self._by_value is None:
            self._by_value = {}
            for o in self.backward:
                _insert(self._by_value, _value_key(o), o)
        return tuple(self._by_value.get(key, _NONE))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Pair]:
        if self._columns is not None:
            return iter(self._columns)
        return ((s, o) for s, objects in self.forward.items() for o in objects)

    def __contains__(self, pair: Pair) -> bool:
        return pair[1] in self.forward.get(pair[0], _NONE)

    @classmethod
    def of_objects(cls, objects: Iterable[tuple[str, dict[str, None]]]) -> PredicatePairs:
        """A table from each subject's objects; the dictionaries given become the table's."""
        table = cls()
        table._forward = {s: values if len(values) > _SMALL else tuple(values) for s, values in objects}
        table._size = sum(map(len, table._forward.values()))
        return table

    def copy(self) -> PredicatePairs:
        return PredicatePairs(self)

    def add(self, s: str, o: str) -> bool:
        """Add a pair; returns false if it was there already."""
        if not _insert(self.forward, s, o):
            return False
        if self._backward is not None:
            _insert(self._backward, o, s)
        if self._by_value is not None:
            _insert(self._by_value, _value_key(o), o)
        self._size += 1
        return True

    def remove(self, s: str, o: str) -> bool:
        """Remove a pair; returns false if it was not there."""
        if not _delete(self.forward, s, o):
            return False
        if self._backward is not None:
            _delete(self._backward, o, s)
        if self._by_value is not None and o not in self.backward:
            _delete(self._by_value, _value_key(o), o)
        self._size -= 1
        return True


class Graph:
    """A set of triples by predicate.

    >>> g = Graph([("<urn:a>", "<urn:p>", "<urn:b>"), ("<urn:a>", "<urn:p>", "<urn:c>")])
    >>> g.objects("<urn:a>", "<urn:p>"), g.subjects("<urn:p>", "<urn:c>")
    (('<urn:b>', '<urn:c>'), ('<urn:a>',))
    >>> list(g.match(None, None, "<urn:c>"))
    [('<urn:a>', '<urn:p>', '<urn:c>')]
    """

    __slots__ = ("_tables",)

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        by_predicate: dict[str, list[Pair]] = {}
        for s, p, o in triples:
            pairs = by_predicate.get(p)
            if pairs is None:
                by_predicate[p] = [(s, o)]
            else:
                pairs.append((s, o))
        self._tables = {p: PredicatePairs(pairs) for p, pairs in by_predicate.items()}

    @classmethod
    def of_tables(cls, tables: dict[str, PredicatePairs]) -> Graph:
        graph = cls()
        graph._tables = tables
        return graph

    # ------------------------------------------------------------------------------------------- direct accessors

    def table(self, p: str) -> PredicatePairs:
        """The table of a predicate; if there is none, an empty one is made, which will hold later pairs."""
        table = self._tables.get(p)
        if table is None:
            table = self._tables[p] = PredicatePairs()
        return table

    @property
    def tables(self) -> dict[str, PredicatePairs]:
        """All tables by predicate, including empty ones."""
        return self._tables

    def forward(self, p: str) -> Index:
        """Subject to objects, as a dictionary that is maintained from now on."""
        return self.table(p).forward

    def backward(self, p: str) -> Index:
        """Object to subjects, as a dictionary that is maintained from now on."""
        return self.table(p).backward

    def objects(self, s: str, p: str) -> Collection[str]:
        table = self._tables.get(p)
        return _NONE if table is None else table.forward.get(s, _NONE)

    def subjects(self, p: str, o: str) -> Collection[str]:
        table = self._tables.get(p)
        return _NONE if table is None else table.backward.get(o, _NONE)

    def objects_equal_to(self, key: Hashable, p: str) -> Collection[str]:
        """The objects of a predicate whose values have this key (``values.equality_keys``)."""
        table = self._tables.get(p)
        return _NONE if table is None else table.objects_equal_to(key)

    def contains(self, s: str, p: str, o: str) -> bool:
        table = self._tables.get(p)
        return table is not None and o in table.forward.get(s, _NONE)

    def pairs(self, p: str) -> PredicatePairs | tuple[Pair, ...]:
        """All (subject, object) of a predicate."""
        table = self._tables.get(p)
        return _NO_PAIRS if table is None else table

    def predicates(self) -> list[str]:
        return [p for p, table in self._tables.items() if len(table)]

    # ------------------------------------------------------------------------------------------------- any binding

    def match(self, s: str | None, p: str | None, o: str | None) -> Iterator[Triple]:
        """The triples that match the given terms; ``None`` stands for any."""
        if p is not None:
            table = self._tables.get(p)
            if table is not None:
                yield from _match_table(table, s, p, o)
            return
        for name, table in list(self._tables.items()):
            yield from _match_table(table, s, name, o)

    def __iter__(self) -> Iterator[Triple]:
        return self.match(None, None, None)

    def __len__(self) -> int:
        return sum(map(len, self._tables.values()))

    def __contains__(self, triple: Triple) -> bool:
        return self.contains(*triple)

    def __repr__(self) -> str:
        return f"Graph({len(self)} triples, {len(self.predicates())} predicates)"

    # ----------------------------------------------------------------------------------------------------- changes

    def add(self, s: str, p: str, o: str) -> bool:
        """Add a triple; returns false if it was there already."""
        return self.table(p).add(s, o)

    def remove(self, s: str, p: str, o: str) -> bool:
        """Remove a triple; returns false if it was not there."""
        table = self._tables.get(p)
        return table is not None and table.remove(s, o)

    def detach(self, p: str) -> None:
        """Replace the table of a predicate by a copy, leaving the old one to the graph that shares it."""
        self._tables[p] = self._tables[p].copy()


_NO_PAIRS: tuple[Pair, ...] = ()


def _match_table(table: PredicatePairs, s: str | None, p: str, o: str | None) -> Iterator[Triple]:
    if s is not None:
        if o is not None:
            if (s, o) in table:
                yield s, p, o
        else:
            for x in table.forward.get(s, _NONE):
                yield s, p, x
    elif o is not None:
        for x in table.backward.get(o, _NONE):
            yield x, p, o
    else:
        for x, y in table:
            yield x, p, y
