"""The dictionary of terms: a spelling has a number, and a number has a spelling and a value.

Ids are int32, given in order of first appearance; 0 is the unbound term.  They never leave the process: stored and
reported data use spellings.  A new spelling costs about a hundred nanoseconds, a known one half of that; a term takes
its bytes plus eight, and a term that can be looked up 13 to 26 more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from etalis_rules.terms import UNBOUND, XSD

from etalis_py.executors.columns.growable_array import GrowableArray, free_slots, zeros
from etalis_py.executors.columns.kernels import interning, parsing
from etalis_py.executors.columns.kernels.keys import FULL, slots_for
from etalis_py.values import DateTime, decode
from etalis_py.values.errors import SparqlError

_DOUBLE_TAIL = len(f'"^^<{XSD}double>')
_INTEGER_TAIL = np.frombuffer(f'"^^<{XSD}integer>'.encode(), np.uint8)
_INTEGER_DIGITS = len('"-9223372036854775808')
_KEPT_DICTIONARIES = 8
_TERMS, _BYTES = 1 << 18, 1 << 24
"""The initial room: untouched memory costs nothing, but growing costs a copy."""
_SLOT = 20
"""The bytes that a term takes in the hash table, about."""
_LARGEST = 2**63 - 1


class Terms:
    """Spellings, their numbers, and their values.

    >>> terms = Terms()
    >>> terms.intern(["<urn:a>", '"1"', "<urn:a>"]).tolist(), terms.spelling(1)
    ([1, 2, 1], '<urn:a>')
    """

    def __init__(self) -> None:
        self._spelled = GrowableArray(_BYTES, np.uint8)
        self._places = GrowableArray(_TERMS + 1, np.int64)
        self._numbers = zeros(_TERMS, np.int32)  # scratch space for ``dictionary``
        self._kinds = np.zeros(0, np.int8)
        self._doubles = np.zeros(0, np.float64)
        self._mantissas = np.zeros(0, np.int64)
        self._scales = np.zeros(0, np.int8)
        self.count = 0
        self._found = 0  # how many terms the hash table has; appended terms are not in it
        self._table = free_slots(slots_for(0), np.int64)
        self._interned: list[tuple[Any, np.ndarray]] = []
        self._appended: list[tuple[Any, np.ndarray]] = []
        self._decoded = 0
        self._constants: dict[str, int] = {}
        self.remembered: dict[Any, Any] = {}
        """A place where expressions keep answers by term ids; it is emptied when terms are forgotten."""
        self.intern([UNBOUND])

    @property
    def _arena(self) -> np.ndarray:
        """The bytes of all spellings."""
        return self._spelled.array

    @property
    def _offsets(self) -> np.ndarray:
        """Where each spelling begins, and where the last one ends."""
        return self._places.array

    # --- spellings to numbers ---

    def intern(self, column: Any) -> np.ndarray:
        """The ids (int32) of a column of spellings: an Arrow array, dictionary-encoded or not, or any iterable.

        A missing value is the unbound term.  The values of an Arrow dictionary are looked up once, however often the
        dictionary comes.
        """
        if isinstance(column, pa.ChunkedArray):
            chunks = [self.intern(chunk) for chunk in column.chunks]
            return np.concatenate(chunks) if chunks else np.zeros(0, np.int32)
        if not isinstance(column, pa.Array):
            column = pa.array(column, pa.large_string())
        if pa.types.is_dictionary(column.type):
            return self._indexed(column, self._interned, self.intern)
        data, ends = _bytes_of(column.fill_null(UNBOUND) if column.null_count else column)
        ids = np.empty(len(ends) - 1, np.int32)
        if len(ids):
            self._make_room(len(ids), int(ends[-1] - ends[0]), len(ids))
            before = self.count
            arrays = (self._arena, self._offsets, self._table)
            self.count = interning.intern(data, ends[:-1], ends[1:], *arrays, self.count, ids)
            self._found += self.count - before
        return ids

    def _indexed(
        self, column: Any, known: list[tuple[Any, np.ndarray]], look_up: Callable[[Any], np.ndarray]
    ) -> np.ndarray:
        """The ids of a dictionary-encoded column; the last few dictionaries are remembered in ``known``."""
        values = column.dictionary
        ids = next((ids for other, ids in known if _same_memory(other, values)), None)
        if ids is None:
            ids = look_up(values)
            known.insert(0, (values, ids))
            del known[_KEPT_DICTIONARIES:]
        indices = column.indices
        if indices.null_count:
            ids = np.append(ids, np.int32(0))
            indices = indices.cast(pa.int64()).fill_null(len(ids) - 1)
        return ids[indices.to_numpy(zero_copy_only=False)]

    def append(self, column: Any) -> np.ndarray:
        """Ids for a column of spellings that need not be compared: each becomes a new term, and none is looked up.

        It costs a copy of the bytes.  An Arrow dictionary is copied once, however often it comes.
        """
        if isinstance(column, pa.ChunkedArray):
            chunks = [self.append(chunk) for chunk in column.chunks]
            return np.concatenate(chunks) if chunks else np.zeros(0, np.int32)
        if not isinstance(column, pa.Array) or column.null_count:
            return self.intern(column)
        if pa.types.is_dictionary(column.type):
            return self._indexed(column, self._appended, self.append)
        data, ends = _bytes_of(column)
        rows, size = len(ends) - 1, int(ends[-1] - ends[0])
        self._make_room(rows, size, 0)
        used, first, last = int(self._offsets[self.count]), self.count, self.count + rows
        self._arena[used : used + size] = data[ends[0] : ends[-1]]
        np.add(ends[1:], used - ends[0], out=self._offsets[first + 1 : last + 1])
        self.count = last
        return np.arange(first, last, dtype=np.int32)

    def append_integers(self, numbers: np.ndarray) -> np.ndarray:
        """Append the literals of these numbers (int64) without a look-up; each gets an id of its own."""
        first = self.count
        self._make_room(len(numbers), len(numbers) * (_INTEGER_DIGITS + len(_INTEGER_TAIL)), 0)
        digits = np.empty(_INTEGER_DIGITS, np.uint8)
        self.count = interning.spell_integers(numbers, _INTEGER_TAIL, digits, self._arena, self._offsets, self.count)
        return np.arange(first, self.count, dtype=np.int32)

    def distinguished(self, ids: np.ndarray) -> np.ndarray:
        """Look these terms up: their ids in the hash table, which are equal if the spellings are."""
        return self.intern(self.column(ids))

    def _make_room(self, terms: int, size: int, looked_up: int) -> None:
        """Make room for new terms with ``size`` bytes; ``looked_up`` of them go into the hash table."""
        used = int(self._offsets[self.count])
        if used + size > len(self._arena):
            self._spelled.grow(2 * (used + size))
        if self.count + terms > len(self._numbers):
            room = 2 * (self.count + terms)
            self._places.grow(room + 1)
            self._numbers = zeros(room, np.int32)
        if self._found + looked_up > FULL * len(self._table):
            self._rehash(self._found + looked_up, np.zeros(0, np.int32))

    def _rehash(self, most: int, renumbered: np.ndarray) -> None:
        """Make a table for ``most`` terms; see ``interning.rehash``."""
        table = free_slots(slots_for(most), np.int64)
        self._found = interning.rehash(self._table, renumbered, table)
        self._table = table

    def estimated_bytes(self, number: int) -> int:
        """About how much memory so many terms take; there may be fewer."""
        each = 8 + _SLOT + int(self._offsets[self.count]) // max(1, self.count)
        return min(number, self.count) * each

    def id_of(self, spelling: str) -> int:
        """The id of a constant of a rule; it is looked up only the first time."""
        known = self._constants.get(spelling)
        if known is None:
            known = self._constants[spelling] = int(self.intern([spelling])[0])
        return known

    # --- numbers to spellings ---

    def spelling(self, term: int) -> str:
        """The spelling of one term."""
        return self._arena[self._offsets[term] : self._offsets[term + 1]].tobytes().decode()

    def column(self, ids: np.ndarray) -> Any:
        """The spellings of these terms as an Arrow array."""
        ids = np.ascontiguousarray(ids, np.int32)
        ends = np.empty(len(ids) + 1, np.int64)
        out = np.empty(interning.lengths(self._offsets, ids, ends), np.uint8)
        interning.gather(self._arena, self._offsets, ids, ends, out)
        return pa.LargeStringArray.from_buffers(len(ids), pa.py_buffer(ends), pa.py_buffer(out))

    def spellings(self, ids: np.ndarray) -> list[str]:
        """The spellings of these terms as Python strings; equal terms share one."""
        distinct, indices = np.unique(ids, return_inverse=True)
        texts = self.column(distinct).to_pylist()
        return [texts[i] for i in indices.tolist()]

    def spelled(self, ids: np.ndarray) -> Any:
        """The spellings as an Arrow array, dictionary-encoded where terms may be repeated; unbound ones are null."""
        return self._run(int(ids[0]), len(ids)) if interning.is_run(ids) else self.dictionary(ids)

    def _run(self, first: int, size: int) -> Any:
        """The spellings of ``size`` terms with successive ids."""
        ends = self._offsets[first : first + size + 1]
        data = self._arena[ends[0] : ends[-1]].copy()
        return pa.LargeStringArray.from_buffers(size, pa.py_buffer(ends - ends[0]), pa.py_buffer(data))

    def dictionary(self, ids: np.ndarray) -> Any:
        """The spellings as a dictionary-encoded Arrow array; unbound ones are null."""
        indices = np.array(ids, np.int32)
        distinct = np.empty(min(len(indices), self.count), np.int32)
        distinct = distinct[: interning.number_distinct(indices, self._numbers, distinct)]
        unbound = None
        if not distinct.all():
            unbound = np.asarray(ids) == 0
        return pa.DictionaryArray.from_arrays(pa.array(indices, mask=unbound), self.column(distinct))

    def ranks(self, ids: np.ndarray) -> np.ndarray:
        """The rank of each of these terms in the order of their spellings; equal terms have equal ranks."""
        distinct, indices = np.unique(ids, return_inverse=True)
        return pc.rank(self.column(distinct), tiebreaker="dense").to_numpy()[indices]

    def first_bytes(self, ids: np.ndarray) -> np.ndarray:
        """The first byte of each spelling, which tells literals and blank nodes apart; any for the unbound term."""
        return self._arena[self._offsets[ids]]

    def are_iris(self, ids: np.ndarray) -> np.ndarray:
        """A mask of the terms that are IRIs: they begin with one ``<``, while triple terms begin with two."""
        second = np.minimum(self._offsets[ids] + 1, len(self._arena) - 1)
        return (self.first_bytes(ids) == ord("<")) & (self._arena[second] != ord("<"))

    def are_plain_strings(self, ids: np.ndarray) -> np.ndarray:
        """A mask of the terms that are strings without a language: they begin and end with a quotation mark."""
        last = np.maximum(self._offsets[ids + 1] - 1, 0)
        return (ids != 0) & (self.first_bytes(ids) == ord('"')) & (self._arena[last] == ord('"'))

    # --- values ---

    def values(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """``(kinds, doubles, mantissas, scales)`` of these terms (``kernels.parsing``).

        An INTEGER is its mantissa, a DECIMAL mantissa / 10 ** scale, a DOUBLE its double, a TIME (xsd:dateTime) its
        mantissa in microseconds.  A value that fits none of these exactly is OTHER: use ``values.decode``.
        """
        kinds, doubles, mantissas, scales = self.decoded()
        return kinds[ids], doubles[ids], mantissas[ids], scales[ids]

    def decoded(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Kinds, doubles, mantissas and scales of all terms, indexed by their ids."""
        if self._decoded < self.count:
            self._decode()
        return self._kinds, self._doubles, self._mantissas, self._scales

    def _decode(self) -> None:
        if len(self._kinds) < self.count:
            room = len(self._numbers)
            self._kinds = _grown(self._kinds, room)
            self._doubles = _grown(self._doubles, room)
            self._mantissas = _grown(self._mantissas, room)
            self._scales = _grown(self._scales, room)
        first, self._decoded = self._decoded, self.count
        long, undecided = parsing.decode(
            self._arena,
            self._offsets,
            first,
            self.count,
            self._kinds,
            self._doubles,
            self._mantissas,
            self._scales,
        )
        if long:
            self._decode_long(first + np.flatnonzero(self._kinds[first : self.count] == parsing.LONG_DOUBLE))
        if undecided:
            for term in first + np.flatnonzero(self._kinds[first : self.count] == parsing.UNDECIDED):
                self._decode_one(int(term))

    def _decode_long(self, terms: np.ndarray) -> None:
        """Decode doubles with many digits by Arrow, which rounds as Python does; their lexical forms are valid."""
        ends = np.empty(len(terms) + 1, np.int64)
        out = np.empty(int((self._offsets[terms + 1] - self._offsets[terms]).sum()), np.uint8)
        parsing.lexical_forms(self._arena, self._offsets, terms, _DOUBLE_TAIL, ends, out)
        texts = pa.LargeStringArray.from_buffers(len(terms), pa.py_buffer(ends), pa.py_buffer(out))
        try:
            self._doubles[terms] = texts.cast(pa.float64()).to_numpy()
        except pa.ArrowInvalid:  # one of them is beyond the range of doubles
            self._doubles[terms] = [float(text) for text in texts.to_pylist()]
        self._kinds[terms] = parsing.DOUBLE

    def _decode_one(self, term: int) -> None:
        try:
            value = decode(self.spelling(term))
        except SparqlError:
            value = None
        kind, number, mantissa, scale = _number(value)
        self._kinds[term] = kind
        self._doubles[term], self._mantissas[term], self._scales[term] = number, mantissa, scale

    # --- housekeeping ---

    def unmarked(self) -> np.ndarray:
        """An array of marks for ``retain``, in which only the unbound term is marked."""
        marked = zeros(self.count, np.bool_)
        marked[0] = True
        return marked

    def retain(self, marked: np.ndarray) -> np.ndarray:
        """Forget all terms that are not marked; returns for each old id the new one (0 for forgotten terms)."""
        decoded = np.flatnonzero(marked[: self._decoded])
        for values in (self._kinds, self._doubles, self._mantissas, self._scales):
            values[: len(decoded)] = values[decoded]
        renumbered = zeros(self.count, np.int32)
        self.count = interning.compact(marked, renumbered, self._arena, self._offsets)
        self._decoded = len(decoded)
        self._rehash(min(self._found, self.count), renumbered)
        self._interned.clear()
        self._appended.clear()
        self._constants.clear()
        self.remembered.clear()
        return renumbered


def _same_memory(one: Any, other: Any) -> bool:
    """Whether two Arrow arrays are the same part of the same memory."""
    return (one.offset, len(one), [b and b.address for b in one.buffers()]) == (
        other.offset,
        len(other),
        [b and b.address for b in other.buffers()],
    )


def _bytes_of(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of an Arrow array of strings, where each begins and where the last ends; read-only."""
    if not pa.types.is_large_string(column.type):
        column = column.cast(pa.large_string())
    data, ends = np.zeros(0, np.uint8), np.zeros(1, np.int64)
    if len(column):
        ends = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
        if column.buffers()[2] is not None:
            data = np.frombuffer(column.buffers()[2], np.uint8)
    data.flags.writeable = ends.flags.writeable = False
    return data, ends


def _grown(array: np.ndarray, length: int) -> np.ndarray:
    grown = np.empty(length, array.dtype)
    grown[: len(array)] = array
    return grown


def _number(value: Any) -> tuple[int, float, int, int]:
    """``(kind, double, mantissa, scale)`` of a value."""
    kind = value.__class__
    if kind is int and abs(value) <= _LARGEST:
        return parsing.INTEGER, float(value), value, 0
    if kind is float:
        return parsing.DOUBLE, value, 0, 0
    if kind is DateTime and abs(value.us) <= _LARGEST:
        return parsing.TIME, float(value.us), value.us, 0
    if kind is Decimal:
        sign, digits, exponent = value.as_tuple()
        # An int64 holds any number of 18 digits.
        if isinstance(exponent, int) and -18 <= exponent <= 0 and len(digits) <= 18:
            mantissa = int("".join(map(str, digits)))
            return parsing.DECIMAL, float(value), -mantissa if sign else mantissa, -exponent
    return parsing.OTHER, math.nan, 0, 0
