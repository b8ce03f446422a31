"""The text of a literal as a value of an SQL type, or null where it is none: unlike ``CAST``, nothing is changed.

Spark's cast of a text rounds decimals, leaves out what does not fit of a time, and takes the zone of the session for a
time that has none.  Here such a text is no value of the type, and a time without a zone is in UTC.  Only ``float`` and
``double`` take the nearest number, which is what they are for; a finite number never becomes an infinite one.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_INFINITE = r"^[+-]?INF$"
_DAY = r"-?[0-9]{4,}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = r"[T ][0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6}0*)?)?"
_UTC = r"(?:Z|[+-]00:00)"
_ZONE = r" ?[A-Za-z+-]\S*"
"""What Spark knows of these, the cast decides."""


def exact(text: Column, kind: T.DataType) -> Column:
    """The value of the text; null if the type has no such value."""
    text = F.trim(text)
    match kind:
        case T.DecimalType():
            return F.when(text.rlike(_NUMBER) & (_places(text) <= kind.scale), text.try_cast(kind))
        case T.FloatType() | T.DoubleType():
            infinite = F.when(text.rlike(_INFINITE) | (text == "NaN"), text.try_cast(kind))
            number = text.try_cast(kind)
            finite = text.rlike(_NUMBER) & (F.abs(number) < F.lit("Infinity").cast(kind))
            return F.coalesce(infinite, F.when(finite, number))
        case T.DateType():
            return F.when(text.rlike(f"^{_DAY}$"), text.try_cast(kind))
        case T.TimestampType():
            midnight = F.when(text.rlike(f"^{_DAY}$"), F.concat(text, F.lit("T00:00:00Z")))
            in_utc = midnight.when(text.rlike(f"^{_DAY}{_CLOCK}$"), F.concat(text, F.lit("Z")))
            return in_utc.when(text.rlike(f"^{_DAY}{_CLOCK}{_ZONE}$"), text).try_cast(kind)
        case T.TimestampNTZType():
            without = F.regexp_replace(text, f"{_UTC}$", "")
            return F.when(text.rlike(f"^{_DAY}(?:{_CLOCK}{_UTC}?)?$"), without.try_cast(kind))
    return text.try_cast(kind)


def _places(number: Column) -> Column:
    """How many decimal places a number has, written without zeros at its end: 2 for 1.750 and for 175e-2."""
    whole = F.regexp_extract(number, r"^[+-]?([0-9]*)", 1)
    fraction = F.regexp_extract(number, r"\.([0-9]*)", 1)
    exponent = F.coalesce(F.regexp_extract(number, r"[eE]([+-]?[0-9]+)$", 1).try_cast("int"), F.lit(0))
    digits = F.regexp_replace(F.concat(whole, fraction), r"^0+$", "")
    zeros = F.length(digits) - F.length(F.regexp_replace(digits, "0+$", ""))
    return F.when(digits == "", 0).otherwise(F.length(fraction) - zeros - exponent)


__all__ = ["exact"]
