"""Native Arrow values → RDF literals.

| Arrow | literal |
|---|---|
| integers | xsd:integer |
| float32 and smaller, float64 | xsd:float, xsd:double, canonical: ``1.5E0`` |
| decimals | xsd:decimal, canonical: ``1.5`` |
| bool | xsd:boolean |
| timestamps | xsd:dateTime; with a zone in UTC (``…Z``), without one as they are |
| dates, times, durations | xsd:date, xsd:time, xsd:dayTimeDuration |
| strings | plain literals |

``literal_of`` is the definition, value by value.  ``spelled`` does the same for a column: each distinct value once, and
in bulk if Arrow's own spelling is certainly the same.  Each value also has a *text*, for use inside an IRI or a quoted
template: a number as XPath casts it to a string, so that 7.0 is ``7``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from etalis_rules.terms import XSD, literal

from etalis_py.streams.templates import Typed
from etalis_py.values import Date, DateTime, Duration, Time, XsdFloat, encode
from etalis_py.values.canonical import double_as_string

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_SAMPLE = 1 << 11
DAY_SECONDS = 86_400
_TRUTHS = "arrow.bool8"
"""The extension whose integers are truth values."""
SIMPLE_TEXT = r"^[ !#-\[\]-~\x{a0}-\x{d7ff}\x{e000}-\x{10ffff}]*$"
"""Texts that a literal has unchanged."""


class NotNative(TypeError):
    """A column of a type without literals."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of cells: ``index`` points into ``texts`` (mostly distinct) and, where the source has types, ``terms``.

    A null cell has a null index.
    """

    index: pa.Int32Array
    texts: pa.StringArray
    terms: pa.StringArray | None = None

    def cells(self) -> list[str | None]:
        """The cells of the rows, for reading row by row."""
        texts: list[Any] = self.texts.to_pylist()
        if self.terms is not None:
            texts = [Typed(text, term) for text, term in zip(texts, self.terms.to_pylist(), strict=True)]
        return [None if i is None else texts[i] for i in self.index.to_pylist()]


def untyped(column: pa.Array) -> Column:
    """The cells of a source that has no types (CSV)."""
    if _mostly_differ(column):
        return each_its_own(column)
    encoded = column.dictionary_encode()
    return Column(encoded.indices, encoded.dictionary)


def _mostly_differ(column: pa.Array) -> bool:
    """Whether hardly any cell is like another, by a sample: to look for those that are would be in vain."""
    if len(column) < 4 * _SAMPLE:
        return False
    sample = column.take(pa.array(np.arange(0, len(column), len(column) // _SAMPLE)))
    return len(sample.unique()) > len(sample) * 0.97


def each_its_own(column: pa.Array) -> Column:
    """Cells that are hardly ever repeated, such as those of times: each row has its own text."""
    return Column(pa.array(np.arange(len(column), dtype=np.int32)), column)


def spelled(column: pa.Array) -> Column:
    """The cells of an Arrow column with their literals.

    >>> column = spelled(pa.array([7.0, 2.5, 7.0]))
    >>> column.index.to_pylist(), column.texts.to_pylist(), column.terms.to_pylist()[1]
    ([0, 1, 0], ['7', '2.5'], '"2.5E0"^^<http://www.w3.org/2001/XMLSchema#double>')
    """
    column = plain(column)
    if pa.types.is_null(column.type):
        return Column(pa.nulls(len(column), pa.int32()), pa.array([], pa.string()), pa.array([], pa.string()))
    if pa.types.is_dictionary(column.type):
        distinct, index = column.dictionary, column.indices.cast(pa.int32())
    elif pa.types.is_nested(column.type) or isinstance(column.type, pa.BaseExtensionType):
        raise NotNative(f"values of type {column.type} are no literals")
    else:
        encoded = column.dictionary_encode()
        distinct, index = encoded.dictionary, encoded.indices
    bulk = _bulk(distinct)
    if bulk is not None:
        return Column(index, *bulk)
    cells = [literal_of(scalar) for scalar in distinct]
    return Column(index, pa.array(cells, pa.string()), pa.array([cell.term for cell in cells], pa.string()))


def plain(column: pa.Array) -> pa.Array:
    """A column in one of the types handled here.

    These are no large strings, string views, decimals of less than 128 bits, run-end encoding or, if they have
    literals, extensions.
    """
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == _TRUTHS:
            return column.storage.cast(pa.bool_())
        return plain(column.storage) if has_literals(kind) else column
    if pa.types.is_dictionary(kind):
        inner = plain(column.dictionary)
        if pa.types.is_dictionary(inner.type):
            inner = inner.dictionary_decode()
        if column.dictionary.null_count:  # a null may be in the dictionary as well
            return plain(inner.take(column.indices))
        return pa.DictionaryArray.from_arrays(column.indices, inner)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(column))
    if pa.types.is_decimal(kind) and kind.bit_width < 128:  # of which Arrow finds no distinct values
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    return column


def literal_of(scalar: Any) -> Typed:
    """The cell of one Arrow value (which is not null)."""
    kind = scalar.type
    types = pa.types
    if types.is_string(kind):
        return Typed(scalar.as_py(), literal(scalar.as_py()))
    if types.is_boolean(kind) or types.is_integer(kind):
        term = encode(scalar.as_py())
        return Typed(_text(term), term)
    if types.is_floating(kind):
        number = scalar.as_py() if types.is_float64(kind) else XsdFloat(scalar.as_py())
        term = encode(number)
        finite = number - number == 0
        return Typed(double_as_string(number) if finite else _text(term), term)
    if types.is_decimal(kind):
        term = encode(Decimal(scalar.as_py()))
        return Typed(_text(term), term)
    if types.is_timestamp(kind):
        seconds, rest = divmod(scalar.value, _PER_SECOND[kind.unit])
        zone = None if kind.tz is None else 0
        return _finer("dateTime", seconds, rest, kind.unit, lambda us: encode(DateTime(us, zone)))
    if types.is_date(kind):
        term = encode(Date((_days(scalar)) * DAY_SECONDS * 1_000_000, None))
        return Typed(_text(term), term)
    if types.is_time(kind):
        seconds, rest = divmod(scalar.value, _PER_SECOND[kind.unit])
        return _finer("time", seconds, rest, kind.unit, lambda us: encode(Time(us, None)))
    if types.is_duration(kind):
        return _duration(scalar.value, kind.unit)
    raise NotNative(f"values of type {kind} are no literals")


def has_literals(kind: pa.DataType) -> bool:
    """Whether values of this type are literals; the integers that stand for values of another type are none."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        counts = types.is_integer(kind.storage_type) and kind.extension_name != _TRUTHS
        return not counts and has_literals(kind.storage_type)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return has_literals(kind.value_type)
    texts = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    times = types.is_temporal(kind) and not types.is_interval(kind)
    return texts or numbers or times or types.is_boolean(kind) or types.is_null(kind)


def _days(scalar: Any) -> int:
    return int(scalar.value) // (86_400_000 if pa.types.is_date64(scalar.type) else 1)


def _text(term: str) -> str:
    return term[1 : term.rindex('"')]


def _finer(name: str, seconds: int, rest: int, unit: str, spell: Callable[[int], str]) -> Typed:
    """A time of day or of history; nanoseconds below a microsecond are written out."""
    term = spell(seconds * 1_000_000 + rest * 1_000_000 // _PER_SECOND[unit])
    if unit == "ns" and rest % 1000:
        text = spell(seconds * 1_000_000)
        at = text.index(":") + 6  # behind the seconds
        term = f"{text[:at]}.{f'{rest:09d}'.rstrip('0')}{text[at:]}"
    return Typed(_text(term), term)


def _duration(value: int, unit: str) -> Typed:
    if unit == "ns" and value % 1000:
        sign, (seconds, rest) = "-" if value < 0 else "", divmod(abs(value), 1_000_000_000)
        whole = _text(encode(Duration(0, seconds * 1_000_000))) if seconds else "PT0S"
        body = whole if whole.endswith("S") else whole + ("0S" if "T" in whole else "T0S")
        text = f"{sign}{body[:-1]}.{f'{rest:09d}'.rstrip('0')}S"
        return Typed(text, literal(text, XSD + "dayTimeDuration"))
    micros = value // 1000 if unit == "ns" else value * (1_000_000 // _PER_SECOND[unit])
    term = encode(Duration(0, micros))
    return Typed(_text(term), term)


# --- the same in bulk, where it is certainly the same ---


def _bulk(distinct: pa.Array) -> tuple[pa.StringArray, pa.StringArray] | None:
    """Texts and terms of distinct values, none of them null; None if they have to go one by one."""
    kind = distinct.type
    types = pa.types
    if len(distinct) < 8 or distinct.null_count:
        return None
    if types.is_integer(kind):
        texts = distinct.cast(pa.string())
        return texts, _join('"', texts, f'"^^<{XSD}integer>')
    if types.is_string(kind):
        return distinct, plain_literals(distinct)
    if types.is_float64(kind):
        return _doubles(distinct)
    if types.is_timestamp(kind):
        return _timestamps(distinct)
    return None


def _join(*parts: Any) -> pa.StringArray:
    return pc.binary_join_element_wise(*parts, "")


def plain_literals(texts: pa.StringArray) -> pa.StringArray:
    """Each text as a plain literal."""
    return patched(_join('"', texts, '"'), pc.match_substring_regex(texts, SIMPLE_TEXT), texts, literal)


def patched(bulk: pa.StringArray, sure: pa.BooleanArray, texts: pa.Array, make: Callable[[Any], str | None]) -> Any:
    """``bulk`` where ``sure``, and the result of ``make`` for the text elsewhere."""
    if pc.all(sure).as_py() is not False:
        return bulk
    odd = pc.invert(sure)
    return pc.replace_with_mask(
        bulk, odd, pa.array([make(text) for text in texts.filter(odd).to_pylist()], pa.string())
    )


def _doubles(distinct: pa.Array) -> tuple[pa.StringArray, pa.StringArray] | None:
    """Texts and terms of doubles: Arrow spells the same shortest digits, and only the point and the power differ."""
    values = np.asarray(distinct)
    sure = pa.array(np.isfinite(values) & (values != 0))
    texts = distinct.cast(pa.string())  # 12.5, 0.0125 or 1.25e-7
    mantissas, exponents = _split_off_exponents(texts)
    powers = exponents + _length_of(mantissas, r"^-?([0-9]+).*$") - 1
    below_one = (np.abs(values) < 1) & (values != 0) & (exponents == 0)
    if below_one.any():
        small = mantissas.filter(pa.array(below_one))
        powers[below_one] = -1 - _length_of(small, r"^-?0\.(0*)[0-9]*$")
    power = pa.array(powers).cast(pa.string())
    digits = pc.replace_substring_regex(mantissas, r"^(-?)(?:0\.0*)?([1-9])([0-9]*)\.?([0-9]*)$", r"\1\2.\3\4")
    digits = pc.replace_substring_regex(pc.replace_substring_regex(digits, r"0+$", ""), r"\.$", ".0")
    terms = patched(_join('"', digits, "E", power, f'"^^<{XSD}double>'), sure, distinct, encode)
    as_decimal = (np.abs(values) >= 1e-6) & (np.abs(values) < 1e6)
    short = pc.replace_substring_regex(texts, r"\.0$", "")
    short = short if as_decimal.all() else pc.if_else(pa.array(as_decimal), short, _join(digits, "E", power))
    return patched(short, sure, distinct, _double_text), terms


def _split_off_exponents(texts: pa.StringArray) -> tuple[pa.StringArray, Any]:
    """What stands before the ``e`` of each number, and the power of ten behind it."""
    if not pc.any(pc.match_substring(texts, "e")).as_py():
        return texts, np.zeros(len(texts), np.int64)
    powers = pc.replace_substring_regex(pc.replace_substring_regex(texts, r"^[^e]*$", "0"), r"^.*e\+?", "")
    return pc.replace_substring_regex(texts, r"e.*$", ""), np.asarray(powers.cast(pa.int64()))


def _length_of(texts: pa.StringArray, pattern: str) -> Any:
    """How long the part of each text is that stands in parentheses in the pattern."""
    return np.asarray(pc.binary_length(pc.replace_substring_regex(texts, pattern, r"\1"))).astype(np.int64)


def _double_text(value: float) -> str:
    return double_as_string(value) if value - value == 0 else _text(encode(value))


_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # the years 1 to 9999, in seconds


def _timestamps(distinct: pa.Array) -> tuple[pa.StringArray, pa.StringArray] | None:
    kind = distinct.type
    per = _PER_SECOND[kind.unit]
    values = np.asarray(distinct.cast(pa.int64()))
    if not len(values) or values.min() < _FIRST * per or values.max() > _LAST * per:
        return None
    # The zone is UTC by now, so the spelling is that of the instant.  %S has as many digits as the unit.
    instants = pa.Array.from_buffers(pa.timestamp(kind.unit), len(values), distinct.buffers(), 0, distinct.offset)
    texts = instants.cast(pa.string())  # 2026-01-31 10:00:00.250000
    texts = _join(pc.utf8_slice_codeunits(texts, 0, 10), "T", pc.utf8_slice_codeunits(texts, 11))
    if kind.unit != "s":
        texts = pc.replace_substring_regex(texts, r"(\.[0-9]*[1-9])0+$|\.0+$", r"\1")
    if kind.tz is not None:
        texts = _join(texts, "Z")
    return texts, _join('"', texts, f'"^^<{XSD}dateTime>')
