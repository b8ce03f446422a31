"""Terms to values and back: lexical spaces of XML Schema, canonical forms, bounded caches."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import pytest
from etalis_rules.terms import FALSE, TRUE, XSD, literal
from hypothesis import given
from hypothesis import strategies as st

from etalis_py.values import (
    BlankValue,
    Date,
    DateTime,
    Duration,
    IriValue,
    LangString,
    Opaque,
    Time,
    Unbound,
    XsdFloat,
    codec,
    decode,
    decode_number,
    encode,
    lexical,
)

HOUR = 3_600_000_000
DAY = 24 * HOUR


def typed(lexical: str, name: str) -> str:
    return literal(lexical, XSD + name)


@pytest.mark.parametrize(
    ("lexical", "datatype", "value"),
    [
        ("3", "integer", 3),
        ("01", "integer", 1),
        ("+7", "integer", 7),
        ("-0", "integer", 0),
        ("300", "short", 300),
        ("-128", "byte", -128),
        ("1.50", "decimal", Decimal("1.50")),
        ("-.5", "decimal", Decimal("-0.5")),
        ("1.", "decimal", Decimal(1)),
        ("123456789012345678901234567890.5", "decimal", Decimal("123456789012345678901234567890.5")),
        ("1e3", "double", 1000.0),
        ("-INF", "double", float("-inf")),
        ("+INF", "double", float("inf")),
        ("0.1", "float", XsdFloat(0.1)),
        ("true", "boolean", True),
        ("0", "boolean", False),
        ("P1Y2M", "yearMonthDuration", Duration(14, 0)),
        ("-P1DT2H", "dayTimeDuration", Duration(0, -26 * HOUR)),
        ("P1Y2DT0.5S", "duration", Duration(12, 2 * DAY + 500_000)),
        ("1970-01-02", "date", Date(DAY)),
        ("1970-01-02+01:00", "date", Date(23 * HOUR, 60)),
        ("24:00:00", "time", Time(0)),
        ("12:00:00Z", "time", Time(12 * HOUR, 0)),
    ],
)
def test_a_well_formed_literal_has_its_value_and_class(lexical: str, datatype: str, value: object) -> None:
    decoded = decode(typed(lexical, datatype))
    assert decoded == value
    assert decoded.__class__ is value.__class__


@pytest.mark.parametrize(
    ("lexical", "us", "offset"),
    [
        ("1970-01-01T00:00:00Z", 0, 0),
        ("1970-01-01T00:00:00", 0, None),
        ("1970-01-01T01:00:00+01:00", 0, 60),
        ("1969-12-31T24:00:00Z", 0, 0),
        ("1970-01-01T00:00:00.1234567Z", 123_456, 0),
        ("0000-03-01T00:00:00Z", -719_468 * DAY, 0),
        ("-0001-03-01T00:00:00Z", (-719_468 - 366) * DAY, 0),
        ("12000-01-01T00:00:00Z", 3_663_382 * DAY, 0),
    ],
)
def test_a_date_time_keeps_instant_and_zone(lexical: str, us: int, offset: int | None) -> None:
    decoded = decode(typed(lexical, "dateTime"))
    assert (decoded.us, decoded.offset) == (us, offset)


@pytest.mark.parametrize(
    ("lexical", "datatype"),
    [
        ("abc", "integer"),
        ("", "integer"),
        ("+", "integer"),
        ("1.0", "integer"),
        ("1_000", "integer"),
        (" 1", "integer"),
        ("١٢", "integer"),
        ("128", "byte"),
        ("0", "positiveInteger"),
        ("-1", "unsignedInt"),
        (".", "decimal"),
        ("1e5", "decimal"),
        ("1.2.3", "decimal"),
        ("NaN", "decimal"),
        ("inf", "double"),
        ("nan", "double"),
        ("1e", "double"),
        ("1_0", "double"),
        ("TRUE", "boolean"),
        ("2001-02-29", "date"),
        ("2001-13-01", "date"),
        ("2001-01-01+15:00", "date"),
        ("2001-01-01T24:00:01Z", "dateTime"),
        ("2001-01-01T23:59:60Z", "dateTime"),
        ("01-01-01T00:00:00Z", "dateTime"),
        ("2001-01-01T00:00:00+01:60", "dateTime"),
        ("P", "duration"),
        ("PT", "duration"),
        ("P1DT", "duration"),
        ("P1M", "dayTimeDuration"),
        ("P1D", "yearMonthDuration"),
        ("P1YT0S", "yearMonthDuration"),
    ],
)
def test_an_ill_formed_literal_is_opaque_and_no_number(lexical: str, datatype: str) -> None:
    term = typed(lexical, datatype)
    assert decode(term) == Opaque(term)
    assert decode_number(term) is None


def test_the_other_kinds_of_terms() -> None:
    assert decode('"a\\n\\"b\\""') == 'a\n"b"'
    assert decode('"chat"@fr') == LangString("chat", "fr")
    assert decode("<http://ex.org/a>").__class__ is IriValue
    assert decode("_:b0").__class__ is BlankValue
    unknown = '"x"^^<urn:t>'
    assert decode(unknown) == Opaque(unknown)
    assert (decode(unknown).lexical, decode(unknown).datatype) == ("x", "urn:t")
    with pytest.raises(Unbound):
        decode("")
    with pytest.raises(ValueError, match="N-Triples"):
        decode("nonsense")


@pytest.mark.parametrize("term", ["", "<http://ex.org/1>", "_:b1", '"1"', '"1"@en', TRUE, typed("P1D", "duration")])
def test_decode_number_gives_none_for_what_is_no_number(term: str) -> None:
    assert decode_number(term) is None


@pytest.mark.parametrize(
    ("value", "lexical", "datatype"),
    [
        (3, "3", "integer"),
        (Decimal("1.50"), "1.5", "decimal"),
        (Decimal("2.0"), "2", "decimal"),
        (Decimal("1E+3"), "1000", "decimal"),
        (Decimal("-0.0"), "0", "decimal"),
        (Decimal("0.000000001"), "0.000000001", "decimal"),
        (1.0, "1.0E0", "double"),
        (-1234.5, "-1.2345E3", "double"),
        (1e-7, "1.0E-7", "double"),
        (-0.0, "-0.0E0", "double"),
        (float("nan"), "NaN", "double"),
        (float("-inf"), "-INF", "double"),
        (XsdFloat(0.1), "1.0E-1", "float"),
        (XsdFloat(16777216), "1.6777216E7", "float"),
        (DateTime(0, 0), "1970-01-01T00:00:00Z", "dateTime"),
        (DateTime(-1, None), "1969-12-31T23:59:59.999999", "dateTime"),
        (DateTime(0, -300), "1969-12-31T19:00:00-05:00", "dateTime"),
        (Date(0), "1970-01-01", "date"),
        (Time(90_000_000, 0), "00:01:30Z", "time"),
        (Duration(0, 0), "PT0S", "dayTimeDuration"),
        (Duration(0, -DAY - 1_500_000), "-P1DT1.5S", "dayTimeDuration"),
        (Duration(25, 0), "P2Y1M", "yearMonthDuration"),
        (Duration(1, DAY), "P1M1D", "duration"),
    ],
)
def test_a_computed_value_is_written_canonically(value: object, lexical: str, datatype: str) -> None:
    assert encode(value) == typed(lexical, datatype)


def test_what_is_no_literal_with_datatype_is_written_as_its_term() -> None:
    assert encode(True) == TRUE
    assert encode(False) == FALSE
    assert encode("a\n") == '"a\\n"'
    assert encode(LangString("a", "en")) == '"a"@en'
    assert encode(IriValue("urn:a b")) == "<urn:a\\u0020b>"
    assert encode(BlankValue("_:x")) == "_:x"
    assert encode(Opaque('"x"^^<urn:t>')) == '"x"^^<urn:t>'
    with pytest.raises(TypeError, match="not a value of an RDF term"):
        encode(None)


SINGLES = st.binary(min_size=4, max_size=4).map(lambda raw: XsdFloat(struct.unpack("<f", raw)[0]))
MICROS = st.integers(-(10**18), 10**18)
OFFSETS = st.none() | st.integers(-840, 840)
VALUES = st.one_of(
    st.integers(),
    st.integers(-(10**50), 10**50),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False),
    SINGLES.filter(lambda value: value == value),
    st.booleans(),
    st.text(),
    st.builds(DateTime, MICROS, OFFSETS),
    st.builds(Duration, st.integers(0, 10**6), st.integers(0, 10**15)),
    st.builds(Duration, st.integers(-(10**6), 0), st.integers(-(10**15), 0)),
)


@given(VALUES)
def test_decode_after_encode_is_the_identity(value: object) -> None:
    decoded = decode(encode(value))
    assert decoded == value
    assert decoded.__class__ is value.__class__
    if isinstance(value, DateTime):
        assert decoded.offset == value.offset
    if isinstance(value, float):
        assert math.copysign(1, decoded) == math.copysign(1, value)


def test_numbers_of_any_length_are_exact() -> None:
    digits = "7" * 6000
    assert decode(typed(digits, "integer")) == int("7" * 3000) * (10**3000 + 1)
    assert encode(decode(typed("-" + digits, "integer"))) == typed("-" + digits, "integer")
    assert encode(decode(typed(digits + ".25", "decimal"))) == typed(digits + ".25", "decimal")


@pytest.mark.parametrize("lookup", [decode, decode_number])
def test_the_caches_are_bounded(lookup: object) -> None:
    cache = lookup.__self__  # type: ignore[attr-defined]
    for number in range(codec.CACHED_TERMS + 100):
        lookup(typed(str(number), "integer"))  # type: ignore[operator]
    assert 0 < len(cache) <= codec.CACHED_TERMS
    long = typed("1" * 1000, "integer")
    assert lookup(long) == int("1" * 1000)  # type: ignore[operator]
    assert long not in cache


@given(
    st.one_of(
        st.floats().map(repr),
        st.text("0123456789", min_size=1).map(lambda digits: f"-{digits}"),
        st.from_regex(r"[-+]?[0-9]{0,25}(\.[0-9]{0,25})?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
        st.text("0123456789+-.eE \t_infNaIy\\u\u0663\ud800", max_size=12),
        st.sampled_from(
            ["-0", "1E400", "1e-400", "9007199254740993", "5e-324", r"\u0031", "infinity", "nan", "true", "null"]
        ),
    )
)
def test_doubles_are_read_as_their_definition_says(text: str) -> None:
    """They are read by a parser of JSON where that may be."""
    by_definition = lexical.parse_double(text)
    term = f'"{text}"^^<{XSD}double>'
    value = decode(term)
    if by_definition is None:
        assert value == Opaque(term)
    else:
        assert isinstance(value, float)
        assert struct.pack("<d", value) == struct.pack("<d", by_definition)
