"""Filters rows on Arrow columns by the same tests as ``catalyst_filters``, for shards that read files themselves.

As in SQL, a test of a row with a null may give null, which means unknown.  In a dictionary-encoded column each distinct
term is tested once, not each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from etalis_rules import leaf_tests
from etalis_rules import program as ir

from etalis_py.spark.input.nulls import FIRST, NO_OBJECT, NO_PREDICATE, NO_SUBJECT, TERMS, TIMES, WHY
from etalis_py.spark.input.schema import COLUMNS
from etalis_py.spark.input.triple_filters import PLACES
from etalis_py.spark.output.answers import Row
from etalis_py.spark.plan.parts import RoutedPart

Test: TypeAlias = pa.BooleanArray | None
"""The result for each row; None: every row passes."""


def own_of(rows: pa.RecordBatch, routed: RoutedPart, shard: int) -> Test:
    """The test whether a shard takes a row.  The time range of a slice is not tested."""
    part = routed.part
    if part.begins or part.shards == 1:
        return asked_of(rows, routed)
    tests = []
    for place, name in PLACES.items():
        leaves = [leaf for leaf, position in routed.routes if position == place]
        if leaves:
            here = _of_terms(rows.column(name), lambda terms: _keys_of_shard(terms, shard, part.shards))
            tests.append(_all([_any(rows, (_matching(rows, leaf, routed.unnamed) for leaf in leaves)), here]))
    return _any(rows, tests)


def asked_of(rows: pa.RecordBatch, routed: RoutedPart) -> Test:
    """The test whether a part wants a row, whatever the row's key."""
    if routed.everything:
        return None
    return _any(rows, (_matching(rows, leaf, routed.unnamed) for leaf, _ in routed.routes))


def asked_by(rows: pa.RecordBatch, parts: Iterable[RoutedPart]) -> Test:
    """The test whether any of the parts wants a row."""
    return _any(rows, (asked_of(rows, routed) for routed in parts))


def looked_at(routed: RoutedPart) -> list[str]:
    """The names of the columns that decide whether a part wants a row, and of those that hold its key."""
    names = {PLACES[position] for _, position in routed.routes if position}
    for leaf, _ in routed.routes:
        names |= {"stream"} if leaf.stream else set()
        for test in () if leaf.entailed else leaf_tests.tests_of(leaf):
            match test:
                case leaf_tests.Among(place):
                    names.add(PLACES[place])
                case leaf_tests.Same(place, other):
                    names |= {PLACES[place], PLACES[other]}
    return sorted(names)


def keys_in(rows: pa.RecordBatch, routed: RoutedPart) -> pa.Array:
    """The term that routes a row to a shard of the part; null if none does."""
    keys = []
    for place, name in PLACES.items():
        leaves = [leaf for leaf, position in routed.routes if position == place]
        if leaves:
            test = _any(rows, (_matching(rows, leaf, routed.unnamed) for leaf in leaves))
            column = rows.column(name)
            keys.append(column if test is None else pc.if_else(test, column, pa.scalar(None, column.type)))
    return keys[0] if len(keys) == 1 else pc.coalesce(*(column.cast(pa.string()) for column in keys))


def wrong_in(rows: pa.RecordBatch) -> pa.BooleanArray | None:
    """A mask of the rows that are no events (see ``nulls``); None if there is no such row."""
    tests = [test for test in (_wrong_anywhere(rows), no_terms_in(rows)) if test is not None]
    return reduce(pc.or_, tests) if tests else None


def _wrong_anywhere(rows: pa.RecordBatch) -> pa.BooleanArray | None:
    """A mask of the rows that have a null, or a predicate that is no IRI; None if there is no such row."""
    columns = [rows.column(name) for name in (*TERMS, *TIMES)]
    tests = [column.is_null() for column in columns if column.null_count]
    if (no_iri := _no_term(rows, "p")).true_count:
        tests.append(no_iri)
    return reduce(pc.or_, tests) if tests else None


def no_terms_in(rows: pa.RecordBatch) -> pa.BooleanArray | None:
    """A mask of the rows that have no null, but a subject or object that is no term; None if there is no such row."""
    tests = [test for test in (_no_term(rows, name) for name in FIRST) if test.true_count]
    if not tests:
        return None
    anywhere, wrong = _wrong_anywhere(rows), reduce(pc.or_, tests)
    return wrong if anywhere is None else pc.and_(wrong, pc.invert(anywhere))


def _no_term(rows: pa.RecordBatch, name: str) -> pa.BooleanArray:
    """Where a term begins with what no term in this place begins with; false for a null."""
    firsts = pa.array(FIRST.get(name, "<"))

    def test(terms: pa.Array) -> pa.Array:
        return pc.invert(pc.is_in(pc.utf8_slice_codeunits(terms.cast(pa.string()), 0, 1), value_set=firsts))

    column = rows.column(name)
    return pc.and_(_of_terms(column, test).fill_null(False), column.is_valid())


def dead_letters(rows: pa.RecordBatch, refusing: Sequence[RoutedPart]) -> list[Row]:
    """The rows with a null, or a predicate that is no IRI, that one of the parts may want."""
    wrong = _wrong_anywhere(rows)
    if wrong is None:
        return []
    rows = rows.filter(wrong)
    wanted, no_iri = asked_by(rows, refusing), _no_term(rows, "p")
    if wanted is not None:
        chosen = pc.or_(wanted.fill_null(True), no_iri)
        rows, no_iri = rows.filter(chosen), no_iri.filter(chosen)
    return [
        _dead_letter(row, NO_PREDICATE + row["p"] if is_no_iri else _missing(row))
        for row, is_no_iri in zip(rows.to_pylist(), no_iri.to_pylist(), strict=True)
    ]


def letters_of_terms(rows: pa.RecordBatch, refusing: Sequence[RoutedPart]) -> list[Row]:
    """The rows whose subject or object is no term, and that one of the parts would want with some other term there."""
    wrong = no_terms_in(rows)
    if wrong is None:
        return []
    rows = rows.filter(wrong)
    masks = {name: _no_term(rows, name) for name in FIRST}
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    for name, mask in masks.items():
        column = columns[name].cast(pa.string())
        columns[name] = pc.if_else(mask, pa.scalar(None, pa.string()), column)
    wanted = asked_by(pa.RecordBatch.from_pydict(columns), refusing)
    letters = [
        _dead_letter(row, NO_SUBJECT + row["s"] if is_subject else NO_OBJECT + row["o"])
        for row, is_subject in zip(rows.to_pylist(), masks["s"].to_pylist(), strict=True)
    ]
    chosen = [True] * len(letters) if wanted is None else wanted.fill_null(True).to_pylist()
    return [letter for letter, is_wanted in zip(letters, chosen, strict=True) if is_wanted]


def _missing(row: Mapping[str, Any]) -> str:
    return WHY + ", ".join(name for name in (*TERMS, *TIMES) if row[name] is None)


def _dead_letter(row: Mapping[str, Any], detail: str) -> Row:
    values = {"kind": "dead_letter", "triples": (tuple(row[name] for name in TERMS),), "detail": detail}
    values |= {name: row[name] for name in (*TIMES, "stream")}
    return tuple(values.get(name) for name in COLUMNS)


def _matching(rows: pa.RecordBatch, leaf: ir.Leaf, unnamed: str) -> Test:
    if leaf.entailed:
        return None  # a triple that it entails may match even if it does not match itself
    return _all(_result(rows, test, unnamed) for test in leaf_tests.tests_of(leaf))


def _result(rows: pa.RecordBatch, test: leaf_tests.Test, unnamed: str) -> Test:
    match test:
        case leaf_tests.Among(place, terms, negated):
            among = _among(rows.column(PLACES[place]), terms)
            return pc.invert(among) if negated else among
        case leaf_tests.Same(place, other):
            return pc.equal(*(rows.column(PLACES[each]).cast(pa.string()) for each in (other, place)))
        case leaf_tests.OfStream(name):
            return _among(rows.column("stream"), [name, ""] if name == unnamed else [name])


def _among(column: pa.Array, terms: Iterable[str]) -> pa.BooleanArray:
    wanted = pa.array(terms, pa.string())
    test = _of_terms(column, lambda some: pc.is_in(some, value_set=wanted))
    return pc.if_else(column.is_valid(), test, pa.scalar(None, pa.bool_())) if column.null_count else test


def _of_terms(column: pa.Array, test: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The result of a test of terms for each row."""
    if isinstance(column, pa.DictionaryArray):
        return test(column.dictionary).take(column.indices)
    return test(column)


def _keys_of_shard(terms: pa.Array, shard: int, shards: int) -> pa.BooleanArray:
    """Whether terms are keys of a shard."""
    encoded = terms.dictionary_encode()
    spelled = encoded.dictionary.cast(pa.binary()).to_pylist()
    own = np.fromiter((crc32(term) % shards == shard for term in spelled), np.bool_, len(spelled))
    return pa.array(own).take(encoded.indices)


def _all(tests: Iterable[Test]) -> Test:
    given = [test for test in tests if test is not None]
    return reduce(pc.and_kleene, given) if given else None


def _any(rows: pa.RecordBatch, tests: Iterable[Test]) -> Test:
    """Whether any test passes; false if there are none."""
    every = list(tests)
    given = [test for test in every if test is not None]
    if len(given) < len(every):
        return None
    return reduce(pc.or_kleene, given) if given else pa.array(np.zeros(len(rows), np.bool_))


__all__ = [
    "Test",
    "asked_by",
    "asked_of",
    "dead_letters",
    "keys_in",
    "letters_of_terms",
    "looked_at",
    "own_of",
    "wrong_in",
]
