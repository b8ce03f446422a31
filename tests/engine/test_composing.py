"""The texts of many ids are those that one match after the other has, whatever the columns are made of."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etalis_py.kernel.match_id_text import texts_of_ids

TERMS = st.one_of(
    st.none(), st.sampled_from(["<urn:a>", "<urn:b>", "<urn:long:enough:for:words>", '"é"']), st.text(max_size=12)
)
TIMES = st.one_of(st.integers(0, 2), st.sampled_from([-(2**63) + 1, -1, 10, 2**63 - 2]))
KINDS = (
    pa.string(),
    pa.large_string(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
)


def wanted(rows: list[tuple[int, int, int, list[str | None]]]) -> list[str]:
    """By the definition of ``kernel.match_id``: a line for each term, then start, end and ordinal."""
    texts: list[str] = []
    ordinal = 0
    for n, (start, end, instant, terms) in enumerate(rows):
        spelled = [term or "" for term in terms]
        is_again = n > 0 and rows[n - 1][:3] == (start, end, instant) and [t or "" for t in rows[n - 1][3]] == spelled
        ordinal = ordinal + 1 if is_again else 0
        texts.append("".join(f"{term}\n" for term in spelled) + f"{start} {end} {ordinal}")
    return texts


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(st.data(), st.integers(0, 3), st.integers(0, 3))
def test_any_columns(kind: pa.DataType, data: st.DataObject, width: int, skipped: int) -> None:
    row = st.tuples(TIMES, TIMES, TIMES, st.lists(TERMS, min_size=width, max_size=width))
    drawn = data.draw(st.lists(row, max_size=12))
    rows = [each for each in drawn for _ in range(data.draw(st.integers(1, 3)))]  # equal ones stand together
    columns = [pa.array([each[3][k] for each in rows], kind) for k in range(width)]
    times = [np.array([each[k] for each in rows], np.int64)[skipped:] for k in range(3)]
    given_columns = [column.slice(skipped) for column in columns]
    assert texts_of_ids(given_columns, *times).to_pylist() == wanted(rows[skipped:])


def test_equal_matches_of_other_instants() -> None:
    """They are told apart by what they are, not by when they were known."""
    rows = [(1, 2, instant, ["<urn:a>"]) for instant in (5, 5, 6, 6, 6)]
    columns = [pa.array(["<urn:a>"] * 5)]
    times = [np.array([each[k] for each in rows], np.int64) for k in range(3)]
    texts = texts_of_ids(columns, *times).to_pylist()
    assert texts == ["<urn:a>\n1 2 0", "<urn:a>\n1 2 1", "<urn:a>\n1 2 0", "<urn:a>\n1 2 1", "<urn:a>\n1 2 2"]
