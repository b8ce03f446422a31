"""Casts: SPARQL 1.1 §17.5 and XPath Functions §17, as a table."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from etalis_rules.terms import XSD
from hypothesis import given
from hypothesis import strategies as st

from etalis_py.values import SparqlError, decode, encode
from etalis_py.values.functions import CASTS
from etalis_py.values.operators import add
from etalis_py.values.types import XsdFloat

ERROR = "error"


def term(cell: str) -> str:
    if cell[0] in '"<_':
        return cell
    lexical, _, name = cell.partition("^^")
    return f'"{lexical}"^^<{XSD}{name}>'


def cast(name: str, cell: str) -> str:
    spec = CASTS[XSD + name]
    try:
        result = spec.call(decode(term(cell)))
    except SparqlError:
        return ERROR
    return result if spec.gives == "term" else encode(result)


@pytest.mark.parametrize(
    ("name", "cell", "result"),
    [
        ("string", '"a"', '"a"'),
        ("string", "<urn:a>", '"urn:a"'),
        ("string", '"a"@en', '"a"'),
        ("string", "01^^integer", '"1"'),
        ("string", "1.50^^decimal", '"1.5"'),
        ("string", "2.0^^decimal", '"2"'),
        ("string", "1.0E0^^double", '"1"'),
        ("string", "1.5e300^^double", '"1.5E300"'),
        ("string", "0.000001^^double", '"0.000001"'),
        ("string", "0.1^^float", '"0.1"'),
        ("string", "P0M^^yearMonthDuration", '"P0M"'),
        ("string", "P0D^^dayTimeDuration", '"PT0S"'),
        ("string", "P0M^^duration", '"PT0S"'),
        ("string", "-0e0^^double", '"-0"'),
        ("string", "NaN^^double", '"NaN"'),
        ("string", "1^^boolean", '"true"'),
        ("string", "2011-01-10T00:00:00.50+00:00^^dateTime", '"2011-01-10T00:00:00.5Z"'),
        ("string", "_:b", ERROR),
        ("string", '"x"^^<urn:t>', ERROR),
        ("boolean", '"true"', "true^^boolean"),
        ("boolean", '" 0 "', "false^^boolean"),
        ("boolean", '"yes"', ERROR),
        ("boolean", "0.0^^decimal", "false^^boolean"),
        ("boolean", "NaN^^double", "false^^boolean"),
        ("boolean", "2^^float", "true^^boolean"),
        ("boolean", "<urn:a>", ERROR),
        ("integer", '"12"', "12^^integer"),
        ("integer", '" 12\\n"', "12^^integer"),
        ("integer", '"1.5"', ERROR),
        ("integer", '"12"@en', ERROR),
        ("integer", "true^^boolean", "1^^integer"),
        ("integer", "-1.9^^decimal", "-1^^integer"),
        ("integer", "-1.9^^double", "-1^^integer"),
        ("integer", "1e30^^double", "1000000000000000019884624838656^^integer"),
        ("integer", "NaN^^double", ERROR),
        ("integer", "INF^^float", ERROR),
        ("integer", "2011-01-10^^date", ERROR),
        ("decimal", '"1.50"', "1.5^^decimal"),
        ("decimal", '"1e3"', ERROR),
        ("decimal", "7^^byte", "7^^decimal"),
        ("decimal", "0.5^^double", "0.5^^decimal"),
        ("decimal", "false^^boolean", "0^^decimal"),
        ("decimal", "INF^^double", ERROR),
        ("double", '"1e3"', "1.0E3^^double"),
        ("double", '"INF"', "INF^^double"),
        ("double", '"inf"', ERROR),
        ("double", '"1"', "1.0E0^^double"),
        ("double", "0.1^^float", "1.0000000149011612E-1^^double"),
        ("double", "0.1^^decimal", "1.0E-1^^double"),
        ("double", "true^^boolean", "1.0E0^^double"),
        ("double", "<urn:a>", ERROR),
        ("float", "1e400^^double", "INF^^float"),
        ("float", "0.1^^double", "1.0E-1^^float"),
        ("float", '"abc"', ERROR),
        ("dateTime", '"2011-01-10T14:45:13Z"', "2011-01-10T14:45:13Z^^dateTime"),
        ("dateTime", "2011-01-10-05:00^^date", "2011-01-10T00:00:00-05:00^^dateTime"),
        ("dateTime", '"2011-01-10"', ERROR),
        ("dateTime", "1^^integer", ERROR),
        ("date", "2011-01-10T23:45:13-05:00^^dateTime", "2011-01-10-05:00^^date"),
        ("date", '"2011-02-30"', ERROR),
        ("time", "2011-01-10T23:45:13-05:00^^dateTime", "23:45:13-05:00^^time"),
        ("time", '"24:00:00"', "00:00:00^^time"),
        ("time", "2011-01-10^^date", ERROR),
        ("duration", '"P1D"', "P1D^^duration"),
        ("duration", "P1M^^yearMonthDuration", "P1M^^duration"),
        ("dayTimeDuration", "P1M2DT3H^^duration", "P2DT3H^^dayTimeDuration"),
        ("yearMonthDuration", "P2D^^duration", "P0M^^yearMonthDuration"),
        ("dayTimeDuration", '"P1M"', ERROR),
        ("duration", "1^^integer", ERROR),
        ("byte", '"-128"', "-128^^byte"),
        ("byte", "128^^integer", ERROR),
        ("nonNegativeInteger", "1.9^^decimal", "1^^nonNegativeInteger"),
        ("positiveInteger", '"0"', ERROR),
    ],
)
def test_a_cast(name: str, cell: str, result: str) -> None:
    assert cast(name, cell) == (result if result == ERROR else term(result))


def nearest_single(value: Fraction) -> float:
    """The definition (XML Schema Datatypes 1.1 §3.3.4.2): the nearest of all singles, of two as near the even one."""
    top = np.finfo(np.float32)
    low = np.float32(min(max(float(value), float(top.min)), float(top.max)))
    near = [np.nextafter(low, np.float32(-np.inf)), low, np.nextafter(low, np.float32(np.inf))]
    some = [x for x in near if np.isfinite(x)]
    return float(min(some, key=lambda x: (abs(Fraction(float(x)) - value), int(x.view(np.uint32)) & 1)))


def beside_a_midpoint(single: np.float32, offset: int, digits: int) -> Decimal:
    """A decimal close to the middle between a single and the next one, closer than any double."""
    upper = np.nextafter(single, np.float32(np.inf))
    with localcontext(Context(prec=2_000)):
        middle = (Decimal(float(single)) + Decimal(float(upper))) / 2
        return middle + Decimal(offset).scaleb(middle.adjusted() - digits)


singles = st.floats(width=32, allow_nan=False, allow_infinity=False, max_value=2.0**127, min_value=-(2.0**127))


@given(singles.map(np.float32), st.integers(-3, 3), st.integers(5, 40))
def test_a_decimal_becomes_the_nearest_float(single: np.float32, offset: int, digits: int) -> None:
    """XPath Functions §19.1.2.1 casts by way of the decimal's text, which is rounded once."""
    value = beside_a_midpoint(single, offset, digits)
    text = format(value, "f")
    wanted = nearest_single(Fraction(value))
    assert float(decode(cast("float", f"{text}^^decimal"))) == wanted
    assert float(decode(f'"{text}"^^<{XSD}float>')) == wanted
    assert float(decode(cast("float", f'"{text}"'))) == wanted


def test_a_double_becomes_the_float_nearest_to_it() -> None:
    """A double is its number exactly: half-way between two floats it becomes the even one."""
    assert cast("float", "1.000000059604644775390625^^double") == term("1.0E0^^float")
    assert cast("float", "1.0000000596046447753906250001^^decimal") == term("1.0000001E0^^float")
    assert cast("float", "1.0000000596046447753906250001^^double") == term("1.0E0^^float")


def test_a_sum_of_a_float_and_a_decimal_rounds_the_decimal_once() -> None:
    value = Decimal("1.0000000596046447753906250001")
    assert XsdFloat(value) == XsdFloat(1.0000001)
    assert add(XsdFloat(0.0), value) == XsdFloat(1.0000001)


@given(singles)
def test_the_shortest_text_of_a_float_reads_back(single: float) -> None:
    assert decode(encode(XsdFloat(single))) == XsdFloat(single)
