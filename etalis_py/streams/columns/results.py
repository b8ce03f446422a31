"""Matches in columns: as an Arrow table with native types.

A SELECT gives a row for each match: a column for each variable, then ``start``, ``end`` and ``id``, which have longer
names where variables are called so (``added_columns``).  An ASK has the
column ``boolean``.  A CONSTRUCT gives a row for each triple, with the columns ``s``, ``p`` and ``o`` as N-Triples
spellings: the flat form, which can be read again.  The matches of several SELECT queries have a first column ``query``;
a variable that a query does not have is null.  If matches are taken back there is a column ``retracted``.

The type of a column is that of its values: integers int64, decimals decimal128, integers and decimals together
decimal128, numbers with a double among them float64, booleans, dateTimes timestamps (with a zone: in UTC), dates.
Everything else, and any mixture, is text: IRIs without angle brackets, literals without quotes.  Where a mixture
shows only after some rows have been made, their values are spelled as a cast to a string spells them.  Times are
timestamps if the stream has dates, otherwise the stream's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from etalis_rules.terms import iri_value, is_iri, is_literal, parts

from etalis_py.events import Triple
from etalis_py.events.clock import is_date
from etalis_py.streams.added_columns import bounds, free
from etalis_py.values import Date, DateTime, XsdFloat, decode, encode
from etalis_py.values.canonical import double_as_string

INSTANT = pa.timestamp("us", "UTC")
LOCAL = pa.timestamp("us")
EXACT = pa.decimal128(38, 18)
_ORDER = (pa.int64(), EXACT, pa.float64())
_INT64, _WHOLE, _FRACTION = 2**63, 10**20, 18
_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Results:
    """Some matches of one query.  ``terms`` are spellings, one array for each of ``variables``, null where unbound;
    ``start`` and ``end`` are microseconds, null for timeless ones; ``triples`` has those that each match constructs.
    """

    query: str
    variables: tuple[str, ...]
    terms: tuple[pa.Array, ...]
    start: pa.Int64Array
    end: pa.Int64Array
    ids: pa.StringArray
    triples: Sequence[Sequence[Triple]] | None
    render: Callable[[int], int | str]
    prefixes: Mapping[str, str] = field(default_factory=dict)
    retracted: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    def filter(self, chosen: pa.BooleanArray) -> Results:
        """Some of the matches of a SELECT."""
        terms = tuple(column.filter(chosen) for column in self.terms)
        start, end, ids = (column.filter(chosen) for column in (self.start, self.end, self.ids))
        return replace(self, terms=terms, start=start, end=end, ids=ids)


class Look(Protocol):
    """How values are shown (``kernel.frames.Look``)."""

    @property
    def terms(self) -> str: ...
    @property
    def decimals(self) -> str: ...


def table_of(
    results: Sequence[Results], look: Look | None = None, *, named: bool = False, variables: Iterable[str] = ()
) -> pa.Table:
    """The matches of some queries as one table; raises ValueError if triples and rows are mixed.

    ``look``: IRIs may be short, decimals floats.  With ``named`` there is a column for the query even if there is only
    one.  ``variables`` are those of further queries in the same table: no column that is added is called like one.
    """
    constructing = [one for one in results if one.triples is not None]
    if constructing and len(constructing) < len(results):
        other = next(one for one in results if one.triples is None)
        raise ValueError(
            f"{constructing[0].query} constructs triples and {other.query} selects rows, which are no one table; "
            "name a query: to_arrow(query=…)"
        )
    queries = dict.fromkeys(one.query for one in results)
    revised = any(one.retracted for one in results)
    taken = set() if constructing else {*variables, *(name for one in results for name in one.variables)}
    tables = [_constructed(one, look) if one.triples is not None else _selected(one, look, taken) for one in results]
    if revised:
        tables = [
            table.append_column(free("retracted", taken), pa.array([one.retracted] * len(table), pa.bool_()))
            for one, table in zip(results, tables, strict=True)
        ]
    if len(queries) > 1 or named:
        tables = [
            table.add_column(0, free("query", taken), _repeated(one.query, len(table)))
            for one, table in zip(results, tables, strict=True)
        ]
    return tables[0] if len(tables) == 1 else concatenated(tables)


def _repeated(text: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text]))


def _selected(one: Results, look: Look | None, taken: Container[str]) -> pa.Table:
    text = _text_by(one, look)
    floats = look is not None and look.decimals == "float"
    columns = {
        name: values_of(terms, text, floats=floats) for name, terms in zip(one.variables, one.terms, strict=True)
    }
    start, end = bounds(taken)
    columns |= {start: times_of(one.start, one.render), end: times_of(one.end, one.render)}
    columns[free("id", taken)] = one.ids
    return pa.table(columns)


def _text_by(one: Results, look: Look | None) -> Callable[[str], str] | None:
    """How terms become short texts, if they do."""
    return shortened(one.prefixes) if look is not None and look.terms == "short" else None


def _constructed(one: Results, look: Look | None) -> pa.Table:
    triples = one.triples or ()
    short = _text_by(one, look)
    if short is not None:
        triples = [[(short(s), short(p), short(o)) for s, p, o in each] for each in triples]
    row = np.repeat(np.arange(len(triples)), [len(each) for each in triples])
    s, p, o = zip(*(triple for each in triples for triple in each), strict=True) if len(row) else ((), (), ())
    terms = {name: pa.array(column, pa.string()) for name, column in zip("spo", (s, p, o), strict=True)}
    times = {
        "end": times_of(one.end.take(pa.array(row)), one.render),
        "start": times_of(one.start.take(pa.array(row)), one.render),
    }
    return pa.table({**times, **terms, "id": one.ids.take(pa.array(row))})


def times_of(micros: pa.Int64Array, render: Callable[[int], int | str]) -> pa.Array:
    """Times in the form of the stream: timestamps, or numbers."""
    first = next((i for i, value in enumerate(micros) if value.is_valid), None)
    if first is None:
        return micros.cast(INSTANT) if isinstance(render(0), str) else micros
    if is_date(render(micros[first].as_py())):
        return micros.cast(INSTANT)
    encoded = micros.dictionary_encode()
    numbers = [render(us) for us in encoded.dictionary.to_pylist()]
    whole = all(isinstance(number, int) for number in numbers)
    column = pa.array(numbers, pa.int64()) if whole else pa.array([Decimal(n) for n in numbers], EXACT)
    return column.take(encoded.indices)


def shortened(prefixes: Mapping[str, str]) -> Callable[[str], str]:
    """A function that shows a term as a short text: IRIs by their prefixes, of which the empty one is left out.

    >>> short = shortened({"": "http://example.org/", "s": "http://shop/"})
    >>> short("<http://example.org/Ann%20Lee>"), short("<http://shop/x>"), short("<urn:y>"), short('"z"')
    ('Ann Lee', 's:x', 'urn:y', 'z')
    """
    longest = sorted(((base, name) for name, base in prefixes.items() if base), key=lambda one: -len(one[0]))

    def short(term: str) -> str:
        text = text_of(term)
        if not is_iri(term):
            return text
        base, name = next(((base, name) for base, name in longest if text.startswith(base) and text != base), ("", ""))
        return text if not base else f"{name}:" * bool(name) + unquote(text[len(base) :])

    return short


def values_of(terms: pa.Array, text: Callable[[str], str] | None = None, *, floats: bool = False) -> pa.Array:
    """Terms as values of the type that they have in common; ``floats``: a float64 in place of decimals.

    >>> values_of(pa.array(['"1"^^<http://www.w3.org/2001/XMLSchema#integer>', None])).to_pylist()
    [1, None]
    """
    if isinstance(terms, pa.ChunkedArray):
        terms = terms.combine_chunks()
    encoded = terms if pa.types.is_dictionary(terms.type) else terms.dictionary_encode()
    spelled = encoded.dictionary.to_pylist()
    values = [None if term is None else decode(term) for term in spelled]
    kind = _common(_kind(value) for value in values if value is not None)
    if floats and kind == EXACT:
        kind = pa.float64()
    if kind is None or kind == pa.string():
        column = pa.array([None if term is None else (text or text_of)(term) for term in spelled], pa.string())
        if kind is None:
            column = pa.nulls(len(spelled))
    else:
        column = pa.array([None if value is None else _native(value, kind) for value in values], kind)
    return column.take(encoded.indices)


def text_of(term: str) -> str:
    """A term as text: an IRI without its brackets, a literal without its quotes."""
    if is_iri(term):
        return iri_value(term)
    return parts(term)[0] if is_literal(term) else term


def _kind(value: Any) -> pa.DataType:
    match value:
        case bool():
            return pa.bool_()
        case int():
            return pa.int64() if -_INT64 <= value < _INT64 else pa.string()
        case Decimal():
            return EXACT if abs(value) < _WHOLE and 10**_FRACTION % value.as_integer_ratio()[1] == 0 else pa.string()
        case XsdFloat() | float():
            return pa.float64()
        case DateTime():
            return pa.string() if abs(value.us) >= _INT64 else LOCAL if value.offset is None else INSTANT
        case Date() if value.offset is None and abs(value.us) < _DAY * 2**31:
            return pa.date32()
        case _:
            return pa.string()


def _common(kinds: Iterable[pa.DataType]) -> pa.DataType | None:
    """A type for values of all these types; None if there are none."""
    common = None
    for kind in set(kinds):
        common = kind if common is None else wider(common, kind)
    return common


def wider(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """A type that holds the values of both."""
    if a == b or pa.types.is_null(b):
        return a
    if pa.types.is_null(a):
        return b
    if a in _ORDER and b in _ORDER:
        return max(a, b, key=_ORDER.index)
    return pa.string()


def _native(value: Any, kind: pa.DataType) -> Any:
    if kind in (INSTANT, LOCAL):
        return value.us
    if kind == pa.date32():
        return value.us // _DAY
    if kind == pa.float64():
        return float(value)
    return Decimal(value) if kind == EXACT else value


def widened(column: Any, kind: pa.DataType) -> Any:
    """A column converted to another type that can hold its values."""
    if column.type == kind:
        return column
    if kind == pa.string() and not (pa.types.is_dictionary(column.type) or pa.types.is_null(column.type)):
        return _spelled(column)
    # An integer above 2**53 becomes the nearest double, as it does beside one.
    return column.cast(kind, safe=kind != pa.float64())


def _spelled(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Values as texts, as a cast to a string spells them.

    >>> _spelled(pa.array([1.5, 1e22, float("inf")])).to_pylist()
    ['1.5', '1.0E22', 'INF']
    """
    encoded = (column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column).dictionary_encode()
    values = encoded.dictionary
    if pa.types.is_timestamp(values.type):  # as numbers: Python's datetime ends in the year 9999, and its date as well
        offset = None if values.type == LOCAL else 0
        moments: list[Any] = [DateTime(us, offset) for us in values.cast(pa.int64()).to_pylist()]
    elif pa.types.is_date(values.type):
        moments = [Date(day * _DAY) for day in values.cast(pa.int32()).to_pylist()]
    else:
        moments = values.to_pylist()
    texts = [double_as_string(v) if isinstance(v, float) else text_of(encode(v)) for v in moments]
    return pa.array(texts, pa.string()).take(encoded.indices)


def concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables one after another; missing columns are null, and types are widened where they differ."""
    kinds: dict[str, pa.DataType] = {}
    for table in tables:
        for column in table.schema:
            kinds[column.name] = wider(kinds.get(column.name, pa.null()), column.type)
    order = list(kinds)
    for last in ("start", "end", "id"):
        if last in kinds:
            order.append(order.pop(order.index(last)))
    schema = pa.schema([(name, kinds[name]) for name in order])
    return pa.concat_tables([conformed(table, schema) for table in tables])


def conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the columns of a schema that can hold it."""
    columns = [
        widened(table.column(field.name), field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
