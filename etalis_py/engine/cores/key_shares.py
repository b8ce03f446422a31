"""Which share a triple belongs to by its key: a hash of the term, the same for events one by one and in columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from etalis_py.engine.cores.ways import ByKey
from etalis_py.events import Event
from etalis_py.kernel.batch import Columns, InColumns, Records

AnyColumns = TypeVar("AnyColumns", Columns, Records)

_PLACES = {"subject": 0, "predicate": 1, "object": 2}
_OF_BYTE = [int.from_bytes(blake2b(bytes([n]), digest_size=8).digest()) for n in range(256)]
_SHIFT = 33
_WORD = (1 << 64) - 1


class KeyShare:
    """One of ``count`` shares: it picks its own triples."""

    def __init__(self, way: ByKey, number: int, count: int) -> None:
        self._way, self._number, self._count = way, number, count
        self._default = _PLACES[way.position]
        self._places = {predicate: _PLACES[position] for predicate, position in way.positions.items()}

    def events(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events with those of their triples that are its own."""
        number, count, places, default = self._number, self._count, self._places, self._default
        for event in events:
            triples = event.triples
            own = tuple(t for t in triples if hash_of(t[places.get(t[1], default)]) % count == number)
            if len(own) == len(triples):
                yield event
            elif own:
                yield event._replace(triples=own)

    def columns(self, columns: InColumns) -> InColumns:
        """The rows that are its own."""
        if isinstance(columns, Records):
            if self._places or self._default:
                return self.columns(columns.flat)
            own = pa.array(np.flatnonzero(self._mask(columns.s)))
            objects = {name: column.take(own) for name, column in columns.objects.items()}
            return replace(_timed(columns, own), s=columns.s.take(own), objects=objects)
        own = pa.array(np.flatnonzero(self._rows(columns)))
        terms = {name: getattr(columns, name).take(own) for name in "spo"}
        event = None if columns.event is None else np.asarray(columns.event)[own.to_numpy()]
        return replace(_timed(columns, own), event=event, **terms)

    def _rows(self, columns: Columns) -> Any:
        if not self._places:
            return self._mask((columns.s, columns.p, columns.o)[self._default])
        predicates = columns.p if pa.types.is_dictionary(columns.p.type) else columns.p.dictionary_encode()
        places = [self._places.get(name, self._default) for name in predicates.dictionary.to_pylist()]
        place = np.array(places, np.int8)[np.asarray(predicates.indices)]
        mask = np.zeros(len(columns), np.bool_)
        for chosen in dict.fromkeys(places):
            here = np.flatnonzero(place == chosen)
            mask[here] = self._mask((columns.s, predicates, columns.o)[chosen].take(pa.array(here)))
        return mask

    def _mask(self, terms: pa.Array) -> Any:
        """Which of some terms are its own."""
        encoded = terms if pa.types.is_dictionary(terms.type) else terms.dictionary_encode()
        shares = hashes(encoded.dictionary) % self._count
        return (shares == self._number)[np.asarray(encoded.indices)]


def _timed(columns: AnyColumns, own: pa.Array) -> AnyColumns:
    rows = own.to_numpy()
    stream, graph = (None if names is None else names.take(own) for names in (columns.stream, columns.graph))
    return replace(columns, end=columns.end[rows], start=columns.start[rows], stream=stream, graph=graph)


@lru_cache(1 << 16)
def hash_of(term: str) -> int:
    """A number that depends on the bytes of a term, whatever their order, so that Arrow's columns can be summed up."""
    return (sum(map(_OF_BYTE.__getitem__, term.encode())) & _WORD) >> _SHIFT


def hashes(terms: pa.Array) -> Any:
    """The same numbers for a column of terms."""
    if not len(terms):
        return np.zeros(0, np.int64)
    large = terms.cast(pa.large_string())
    ends = np.frombuffer(large.buffers()[1], np.int64)[large.offset : large.offset + len(large) + 1]
    data = np.frombuffer(large.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
    sums = np.concatenate(([np.uint64(0)], np.cumsum(np.array(_OF_BYTE, np.uint64)[data])))
    places = ends - ends[0]
    return ((sums[places[1:]] - sums[places[:-1]]) >> np.uint64(_SHIFT)).astype(np.int64)


__all__ = ["KeyShare", "hash_of", "hashes"]
