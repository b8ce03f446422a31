"""ORDER BY, LIMIT and OFFSET over the rows of each closing of a window, as ``sparql.selects`` has them.

Rows are in the order of their shown terms, by the names of the variables; the keys of ORDER BY are compared by the
order of values, once for each distinct term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from etalis_rules import algebra as alg
from etalis_rules.terms import UNBOUND

from etalis_py.values.ordering import rank_key


def is_chosen(select: alg.Select) -> bool:
    """Whether some rows of a closing are left out, or all are in an order of the query's own."""
    return bool(select.order) or select.limit is not None or bool(select.offset)


def by_terms(closings: np.ndarray, columns: Sequence[Any]) -> np.ndarray:
    """The places of the rows, by closing and then by their terms."""
    names = [str(n) for n in range(len(columns) + 1)]
    texts = [column.cast(pa.large_string()).fill_null(UNBOUND) for column in columns]
    keys = [(name, "ascending") for name in names]
    return pc.sort_indices(pa.table([pa.array(closings), *texts], names), sort_keys=keys).to_numpy()


def may_be_chosen(select: alg.Select, closings: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """A mask of the rows of which LIMIT may keep some, by ``numbers``, the values of the first key of ORDER BY.

    So only few rows of many groups need be spelled and compared.  Rows are in the order of their closings.
    """
    assert select.limit is not None
    values = -numbers if select.order[0].descending else numbers
    first = np.flatnonzero(np.append(True, np.diff(closings) != 0))
    sizes = np.diff(np.append(first, len(closings)))
    kept = max(1, select.offset + select.limit)
    if kept == 1:
        return values <= np.repeat(np.minimum.reduceat(values, first), sizes)
    ordered = values[np.lexsort((values, closings))]
    return values <= np.repeat(ordered[first + np.minimum(sizes, kept) - 1], sizes)


def chosen(select: alg.Select, closings: np.ndarray, columns: Mapping[str, Any]) -> np.ndarray:
    """The places of the rows that the query keeps, in its order; its keys are variables."""
    keys = [(alg.variable_of(key.expression), key.descending) for key in select.order]
    places = ordered(select, closings, columns, keys)
    return places[sliced(select, closings[places])]


def ordered(
    select: alg.Select, closings: np.ndarray, columns: Mapping[str, Any], keys: Sequence[tuple[str, bool]]
) -> np.ndarray:
    """The places of the rows in the order of the query; a key is a column, and whether it descends."""
    places = by_terms(closings, [columns[name] for name in sorted(select.variables)])
    for name, descending in reversed(keys):
        ranks = _ranks(columns[name].take(pa.array(places)))
        places = places[np.argsort(-ranks if descending else ranks, kind="stable")]
    return places[np.argsort(closings[places], kind="stable")]


def sliced(select: alg.Select, closings: np.ndarray) -> np.ndarray:
    """A mask of the rows of each closing that LIMIT and OFFSET keep; rows are in the order of their closings."""
    place = np.arange(len(closings)) - np.searchsorted(closings, closings)
    kept: np.ndarray = place >= select.offset
    if select.limit is not None:
        kept &= place < select.offset + select.limit
    return kept


def _ranks(column: Any) -> np.ndarray:
    """A number for each term that orders them by their values; equal values have one number."""
    encoded = column.cast(pa.large_string()).fill_null(UNBOUND).dictionary_encode()
    keys = [rank_key(term) for term in encoded.dictionary.to_pylist()]
    numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
    ranks = np.array([numbers[key] for key in keys], np.int64)
    return ranks[encoded.indices.to_numpy()]
