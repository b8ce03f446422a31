"""Rows packed for the operator of a stream are the rows that went in, shard by shard and in order."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etalis_py.spark.input import packed_rows
from etalis_py.spark.input.packed_rows import packer, split, unpack
from etalis_py.spark.input.rows import in_order, sorted_out
from etalis_py.spark.input.schema import DERIVED, END, EVENT, EVERY_SLOT, LAST, PASSED, ROUTED

TYPES = dict(
    zip(
        ROUTED,
        [pa.int32(), pa.int32(), pa.int64(), pa.int64(), *[pa.string()] * 5, pa.int64()],
        strict=True,
    )
)
SCHEMA = pa.schema(list(TYPES.items()))

texts = st.sampled_from(["<urn:a>", "<urn:b>", '"é"', '""'])
times = st.integers(0, LAST)
rows = st.tuples(
    st.integers(0, 3),
    st.sampled_from([EVENT, DERIVED, END]),
    times,
    times,
    st.none() | texts,
    texts,
    texts,
    texts,
    st.none() | texts,
    st.none() | st.integers(0, 9),
)


def chunk(taken: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = (
        zip(*[(*row, *[None] * (len(ROUTED) - len(row))) for row in taken], strict=True)
        if taken
        else [[] for _ in ROUTED]
    )
    return pa.RecordBatch.from_arrays(
        [pa.array(list(values), type) for values, type in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA
    )


@pytest.fixture(params=[(1, 1 << 20), (5, 1 << 20), (50_000, 1), (50_000, 300)], ids=str)
def bounds(request: pytest.FixtureRequest) -> Iterator[None]:
    """So many rows, or bytes, at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_rows, "AT_ONCE", request.param[0])
        patch.setattr(packed_rows, "AT_MOST", request.param[1])
        yield


@pytest.mark.usefixtures("bounds")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(rows, max_size=6), max_size=4))
def test_what_is_packed_comes_out_by_shard_and_in_order(chunks: list[list[tuple[object, ...]]]) -> None:
    packed = list(packer([])(map(chunk, chunks)))
    found: dict[int, list[tuple[object, ...]]] = {}
    for batch in packed:
        assert batch.schema.names == ["slot", "rows"]
        for slot, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            found.setdefault(slot, []).extend(tuple(map(row.get, ROUTED[1:])) for row in unpack(data).to_pylist())
    wanted: dict[int, list[tuple[object, ...]]] = {}
    for slot, *rest in (row for taken in chunks for row in taken):
        wanted.setdefault(slot, []).append(tuple(rest))  # type: ignore[arg-type]
    assert found == wanted


def test_little_is_packed_at_once_and_nothing_out_of_nothing() -> None:
    row = (1, EVENT, 5, 5, "", "<urn:a>", "<urn:p>", '"1"', None)
    pack = packer([1, 2])
    assert list(pack([])) == []
    assert list(pack([chunk([])])) == []
    assert [batch.num_rows for batch in pack([chunk([row, (2, *row[1:])]), chunk([row])])] == [2]


def test_long_literals_are_sent_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_rows, "AT_MOST", 1 << 20)
    row = (1, EVENT, 5, 5, "", "<urn:a>", "<urn:p>", f'"{"x" * 600_000}"', None)
    assert len(list(packer([])([chunk([row])] * 4))) == 2


def test_the_end_of_the_stream_goes_to_every_shard() -> None:
    end = (EVERY_SLOT, END, 5, 5, "", "<urn:a>", "<urn:p>", '"1"', None)
    (packed,) = packer([4, 7])([chunk([end])])
    assert packed.column("slot").to_pylist() == [4, 7]
    assert [sorted_out(unpack(data), apart=True).ended for data in packed.column("rows").to_pylist()] == [True, True]


def test_rows_of_a_shard_by_their_kind() -> None:
    event = (7, EVENT, 4, 5, None, "<urn:a>", "<urn:p>", '"1"', None)
    derived = (7, DERIVED, 5, 6, "<urn:s>", "<urn:b>", "<urn:p>", '"2"', None)
    passed = (7, PASSED, 0, 0, None, None, None, None, '{"kind":"match","query":"q1","id":"x","start":1,"end":2}')
    end = (7, END, LAST, LAST, None, None, None, None, None)
    ((slot, mine),) = split(chunk([event, derived, passed, end]))
    assert slot == 7
    first, second = (
        (4, 5, (("<urn:a>", "<urn:p>", '"1"'),), "", ""),
        (5, 6, (("<urn:b>", "<urn:p>", '"2"'),), "<urn:s>", ""),
    )
    apart, together = sorted_out(mine, apart=True), sorted_out(mine, apart=False)
    assert (apart.in_order, apart.derived, apart.ended) == ([first], [second], True)
    assert (together.in_order, together.derived, together.ended) == ([first, second], [], True)
    assert apart.passed == together.passed
    assert apart.passed[0][:4] == ("match", None, "q1", "x")


def test_equal_terms_are_one_string() -> None:
    row = (1, EVENT, 5, 5, "", "<urn:a>", "<urn:p>", '"1"', None)
    found = sorted_out(chunk([row, row]), apart=True).in_order
    assert all(a is b for a, b in zip(found[0][2][0], found[1][2][0], strict=True))


@given(st.lists(st.lists(st.integers(0, 40), max_size=6), max_size=5), st.booleans())
def test_rows_by_time_are_the_same_rows(pieces: list[list[int]], in_runs: bool) -> None:
    """Whether whole runs are moved, as of files that are read one after the other, or single rows."""
    pieces = [sorted(piece) if in_runs else piece for piece in pieces]
    ends = [end for piece in pieces for end in piece]
    sizes = [len(piece) for piece in pieces]
    table = pa.table({"end": pa.array(ends, pa.int64()), "n": pa.array(range(len(ends)), pa.int64())})
    chunks = [table.slice(sum(sizes[:n]), size) for n, size in enumerate(sizes)]
    found = in_order(pa.concat_tables([table.slice(0, 0), *chunks])).to_pydict()
    assert found["end"] == sorted(ends)
    assert sorted(found["n"]) == list(range(len(ends)))
    assert all(ends[n] == end for n, end in zip(found["n"], found["end"], strict=True))
