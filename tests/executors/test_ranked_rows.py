"""Rows kept in order are those that a sort by the keys of ORDER BY, and then in canonical order, would give."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py.executors.rows.run.grouping import sort_by
from etalis_py.executors.rows.run.ranked_rows import RankedRows, reverse
from etalis_py.values.ordering import rank_key
from tests.draws import examples

XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS = (
    "",
    "_:b1",
    "_:b2",
    "<urn:a>",
    "<urn:b>",
    '"a"',
    '"b"',
    '"a"@en',
    '"b"@de',
    *(f'"{n}"^^<{XSD}integer>' for n in ("-3", "0", "1", "01", "10", "123456789012345678901234567890123")),
    *(f'"{n}"^^<{XSD}decimal>' for n in ("1.0", "-0.5", "123456789012345678901234567890123.5")),
    *(f'"{n}"^^<{XSD}double>' for n in ("1.0E0", "NaN", "INF", "-INF", "-0.0E0")),
    *(f'"{n}"^^<{XSD}float>' for n in ("0.1", "2.5")),
    f'"0.1"^^<{XSD}double>',
    *(f'"{b}"^^<{XSD}boolean>' for b in ("true", "false")),
    *(f'"{t}"^^<{XSD}dateTime>' for t in ("2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z")),
    *(f'"{d}"^^<{XSD}duration>' for d in ("P1M", "PT5S")),
    '"x"^^<urn:datatype>',
    '"y"^^<urn:datatype>',
    '<<( <urn:a> <urn:p> "1" )>>',
    '<<( <urn:a> <urn:p> "2" )>>',
)
Change = tuple[int, Any]
CHANGES = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.none() | st.tuples(st.integers(0, 2), st.integers(0, 2), *[st.sampled_from(TERMS)] * 2),
    ),
    max_size=25,
)


@settings(max_examples=examples(1))
@given(CHANGES, st.lists(st.booleans(), max_size=2), st.integers(0, 4), st.none() | st.integers(0, 5))
def test_ranked_rows_are_sorted_rows(
    changes: list[Change], descending: list[bool], start: int, stop: int | None
) -> None:
    ranked: RankedRows[int] = RankedRows([3, 2], descending)
    rows: dict[int, Any] = {}
    for key, row in changes:
        ranks = [] if row is None else [rank_key(term) for term in row[2 : 2 + len(descending)]]
        ranked.put(key, row, ranks)
        rows.pop(key, None)
        if row is not None:
            rows[key] = (row, ranks)
    expected = sorted((row[0], row[1], row[3], row[2], key, row, ranks) for key, (row, ranks) in rows.items())
    sort_by(expected, lambda one: one[-1], descending)
    assert ranked.between(0, None) == [(row, key) for *_, key, row, _ in expected]
    assert ranked.between(start, stop) == ranked.between(0, None)[start:stop]


def test_every_rank_is_reversed() -> None:
    up = sorted(map(rank_key, TERMS))
    down = sorted(map(reverse, up))
    assert down == [reverse(rank) for rank in reversed(up)]
    assert sum(one < other for one, other in pairwise(up)) == sum(one < other for one, other in pairwise(down)) > 25
