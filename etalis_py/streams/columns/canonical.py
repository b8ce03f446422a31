"""Columns of terms in a user's spelling → the same in canonical N-Triples spelling; anything but a term is an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from etalis_py.events.errors import StreamError
from etalis_py.events.spelling import NOUNS, PATTERNS, spell_term
from etalis_py.numba_cache import ready
from etalis_py.streams.columns.flat_form import bytes_of
from etalis_py.streams.columns.native_literals import plain

MANY = 4096


def canonical(column: pa.Array, name: str, first: int) -> pa.Array:
    """A column of terms in canonical spelling; a dictionary, unless all are literals that are probably distinct.

    ``first`` is the number of the first row, for messages.
    """
    column = plain(column)
    encoded = pa.types.is_dictionary(column.type)
    if not pa.types.is_string(column.type.value_type if encoded else column.type):
        raise StreamError(
            f"the column {name!r} is of type {column.type}, but terms are texts in N-Triples spelling",
            hint="such as <http://example.org/acme>; native values need a mapping",
        )
    if not encoded:
        if _can_be_literals(column, name) and plain_literals(column).all():
            return column
        column = column.dictionary_encode()
    terms = column.dictionary
    if column.null_count and name not in ("stream", "graph"):
        row = int(np.flatnonzero(np.asarray(column.is_null()))[0])
        raise StreamError(f"there is no {NOUNS[name]}: the column {name!r} is null", line=first + row)
    sure = sure_terms(terms, name)
    if not sure.all():
        spelled: list[Any] = terms.to_pylist()
        for place in np.flatnonzero(~sure).tolist():
            try:
                spelled[place] = spell_term(spelled[place], name)
            except StreamError as error:
                rows = np.flatnonzero(np.asarray(pc.equal(column.indices, place)))
                if not len(rows):
                    spelled[place] = ""  # a term that no row has
                    continue
                raise error.at("", first + int(rows[0])) from None
        terms = pa.array(spelled, pa.string())
    index = column.indices.cast(pa.int32())
    if column.null_count:
        terms = pa.concat_arrays([terms, pa.array([""], pa.string())])
        index = pc.fill_null(index, len(terms) - 1)
    return pa.DictionaryArray.from_arrays(index, terms)


def sure_terms(terms: pa.StringArray, name: str) -> np.ndarray:
    """Which terms are certainly canonical as they are; if there are many, a compiled loop recognizes literals."""
    sure = np.zeros(len(terms), np.bool_)
    if _can_be_literals(terms, name):
        sure = plain_literals(terms)
        if sure.all():
            return sure
    matching = pc.match_substring_regex(terms.filter(pa.array(~sure)), PATTERNS[name])
    sure[~sure] = np.asarray(pc.fill_null(matching, False))
    return sure


def _can_be_literals(terms: pa.StringArray, name: str) -> bool:
    return name == "o" and len(terms) >= MANY and not terms.null_count and ready()


def plain_literals(terms: pa.StringArray) -> np.ndarray:
    """Which terms are printable literals without escapes, plain or of a common datatype."""
    from etalis_py.streams.columns import gather_terms  # takes a while to import

    plain = np.zeros(len(terms), np.bool_)
    gather_terms.mark_plain_literals(*bytes_of(terms), gather_terms.TYPES, gather_terms.TYPE_ENDS, plain)
    return plain
