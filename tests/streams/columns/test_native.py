"""Native values as literals: the column says of every value what the definition says of it alone."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from etalis_rules.terms import XSD
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py.streams.columns import native_literals
from etalis_py.streams.columns.native_literals import NotNative, literal_of, spelled
from tests.draws import examples


@pytest.mark.parametrize(
    ("value", "kind", "text", "datatype"),
    [
        (12, pa.int64(), "12", "integer"),
        (2**64 - 1, pa.uint64(), "18446744073709551615", "integer"),
        (True, pa.bool_(), "true", "boolean"),
        (7.0, pa.float64(), "7.0E0", "double"),
        (-0.0, pa.float64(), "-0.0E0", "double"),
        (float("nan"), pa.float64(), "NaN", "double"),
        (1e-7, pa.float64(), "1.0E-7", "double"),
        (0.1, pa.float32(), "1.0E-1", "float"),
        (Decimal("1.50"), pa.decimal128(10, 2), "1.5", "decimal"),
        (Decimal("-0.00"), pa.decimal128(10, 2), "0", "decimal"),
        (datetime(2026, 1, 31, 10), pa.timestamp("s"), "2026-01-31T10:00:00", "dateTime"),
        (
            datetime(2026, 1, 31, 10, 0, 0, 250_000, UTC),
            pa.timestamp("us", "Europe/Vienna"),
            "2026-01-31T10:00:00.25Z",
            "dateTime",
        ),
        (1_500_000_001, pa.timestamp("ns", "UTC"), "1970-01-01T00:00:01.500000001Z", "dateTime"),
        (date(2026, 1, 31), pa.date32(), "2026-01-31", "date"),
        (date(2026, 1, 31), pa.date64(), "2026-01-31", "date"),
        (time(10, 0, 0, 500_000), pa.time64("us"), "10:00:00.5", "time"),
        (timedelta(days=1, seconds=1), pa.duration("ms"), "P1DT1S", "dayTimeDuration"),
        (-1, pa.duration("ns"), "-PT0.000000001S", "dayTimeDuration"),
    ],
)
def test_a_value_is_its_literal(value, kind: pa.DataType, text: str, datatype: str) -> None:
    column = spelled(pa.array([value, None], kind))
    assert column.terms is not None
    assert column.terms.to_pylist() == [f'"{text}"^^<{XSD}{datatype}>']
    assert column.index.to_pylist() == [0, None]


def test_a_number_inside_a_template_is_short() -> None:
    assert spelled(pa.array([7.0, 2.5, 1e300])).texts.to_pylist() == ["7", "2.5", "1.0E300"]


def test_a_text_is_a_plain_literal_whatever_it_looks_like() -> None:
    assert spelled(pa.array(["12", 'a "b"\n'])).terms.to_pylist() == ['"12"', '"a \\"b\\"\\n"']


def test_a_list_is_no_literal() -> None:
    with pytest.raises(NotNative, match="list"):
        spelled(pa.array([[1]]))


EDGES = [
    0.0,
    -0.0,
    1.0,
    10.0,
    100000.0,
    99999.5,
    123456.0,
    1e15,
    1e16,
    1e17,
    1e22,
    0.1,
    0.001,
    1e-5,
    2.0**53 + 2,
    999999.5,
    1e6,
]
INT64 = st.integers(-(2**63), 2**63 - 1)
KINDS = {
    "int64": (INT64, pa.int64()),
    "uint8": (st.integers(0, 255), pa.uint8()),
    "double": (st.floats() | st.sampled_from(EDGES) | st.decimals(-999999, 999999, places=2).map(float), pa.float64()),
    "share": (st.floats(-1, 1), pa.float64()),
    "float": (st.floats(width=32), pa.float32()),
    "half": (st.sampled_from([0.1, 0.5, -7.0, float("inf")]), pa.float16()),
    "decimal": (st.decimals(-(10**20), 10**20, places=3), pa.decimal128(38, 3)),
    "bool": (st.booleans(), pa.bool_()),
    "text": (st.text(), pa.string()),
    "large text": (st.text(), pa.large_string()),
    "viewed text": (st.text(), pa.string_view()),
    "category": (st.sampled_from("abcdefghijkl"), pa.dictionary(pa.int8(), pa.string())),
    "date": (INT64.map(lambda n: n % (2**31)), pa.date32()),
    "time": (st.integers(0, 86_399_999_999), pa.time64("us")),
    "duration": (INT64.map(lambda n: n >> 12), pa.duration("us")),
} | {
    f"timestamp[{unit}, {zone}]": (
        INT64.map(lambda n, unit=unit: n >> (30 if unit == "s" else 0)),
        pa.timestamp(unit, zone),
    )
    for unit in ("s", "ms", "us", "ns")
    for zone in (None, "UTC", "America/New_York")
}


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=examples(1 / 6))
@given(data=st.data())
def test_a_column_is_spelled_as_its_values(name: str, data: st.DataObject) -> None:
    values, kind = KINDS[name]
    drawn = data.draw(st.lists(st.none() | values, min_size=10, max_size=30))
    column = pa.array(drawn, kind)
    found = spelled(column)
    plain = column.dictionary_decode() if pa.types.is_dictionary(kind) else column
    plain = plain.cast(pa.string()) if name.endswith("text") else plain
    expected = [literal_of(scalar) if scalar.is_valid else None for scalar in plain]
    assert found.cells() == expected
    assert [None if cell is None else cell.term for cell in found.cells()] == [  # type: ignore[attr-defined]
        None if cell is None else cell.term for cell in expected
    ]


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e6, 1e12])
def test_doubles_of_every_size_are_spelled_in_bulk(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares between 0 and 1, and large numbers, went through Python one by one, which took three times as long."""
    values = [scale * n / 97 for n in range(1, 97)]
    expected = [literal_of(pa.scalar(value)) for value in values]
    monkeypatch.setattr(native_literals, "encode", None)
    monkeypatch.setattr(native_literals, "double_as_string", None)
    found = spelled(pa.array(values)).cells()
    assert found == expected
    assert [cell.term for cell in found] == [cell.term for cell in expected]  # type: ignore[union-attr]
