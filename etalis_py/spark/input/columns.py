"""Columns of a DataFrame as times and terms, whatever Spark's type of them is.

=========================== ===================================== =============================================
Spark's type                as a time                             as an object
=========================== ===================================== =============================================
string                      refused                               an N-Triples spelling, as it is
timestamp, timestamp_ntz    the instant; without a zone: in UTC   xsd:dateTime, in UTC or without a zone
date                        midnight in UTC                       xsd:date
byte, short, int, long      that many units                       xsd:integer
decimal                     that many units, whole microseconds   xsd:decimal
float, double               refused: they are not exact           xsd:float, xsd:double
boolean                     refused                               xsd:boolean
time, day-time interval     refused                               xsd:time, xsd:dayTimeDuration
void                        null                                  null
=========================== ===================================== =============================================

Any other type is refused when the query is planned, and so is any type but string for a subject or a predicate.  The
literals are those that ``streams.columns.native_literals`` makes of the same Arrow values.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
from etalis_rules.durations import RATIOS
from etalis_rules.terms import XSD
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from etalis_py.events.clock import MAX_TIME, UNITS
from etalis_py.spark.errors import SparkError
from etalis_py.spark.sessions import use_this_python
from etalis_py.spark.versions import TimeType, arrow_udf
from etalis_py.streams.columns.native_literals import spelled

_IN_ARROW = (
    T.FractionalType,
    T.TimestampType,
    T.TimestampNTZType,
    T.DateType,
    T.DayTimeIntervalType,
    TimeType,
)
LITERALS = (*_IN_ARROW, T.StringType, T.BooleanType, T.IntegralType, T.NullType)
"""The types of columns whose values are literals."""
_DAY = 86_400_000_000


def time_of(rows: DataFrame, given: str | Column, name: str, unit: str = "us") -> Column:
    """A column as microseconds since the epoch; ``name`` is its name in errors, ``unit`` the unit of its numbers."""
    column, kind = typed(rows, given, name)
    if unit not in UNITS:
        raise SparkError(f"{unit!r} is not a unit of time, but one of {', '.join(UNITS)}")
    match kind:
        case T.LongType() if unit == "us":
            return column
        case T.TimestampType():
            return F.unix_micros(column)
        case T.TimestampNTZType():
            return F.unix_micros(F.to_timestamp(F.concat(column.cast("string"), F.lit("Z"))))
        case T.DateType():
            return F.unix_date(column).cast("long") * _DAY
        case T.IntegralType() | T.DecimalType():
            return _micros(column.cast("decimal(20,0)") if isinstance(kind, T.IntegralType) else column, name, unit)
        case T.NullType():
            return column.cast("long")
    raise SparkError(
        f"the {name} is a column of type {kind.simpleString()}, but times are timestamps, dates, integers or decimals; "
        f"convert it, such as with to_timestamp"
    )


def _micros(number: Column, name: str, unit: str) -> Column:
    """A decimal number of units in microseconds.

    One that is not whole, or farther from 1970 than the times of events, stops the job with its value: without ANSI
    mode Spark would make another time of it, by leaving out the digits that do not fit.
    """
    many, one = RATIOS[unit]
    # Of all of the number times the unit, Spark would round away the last of many digits.
    remains = number % one if many == 1 else number % 1 * many % 1
    shown = number.cast("string")
    refused = F.concat(F.lit(f"the {name} "), shown, F.lit(f" {unit} is not a whole number of microseconds"))
    too_far = f" {unit} is more than 146,000 years from 1970; correct it, or the unit that it counts in"
    far = F.concat(F.lit(f"the {name} "), shown, F.lit(too_far))
    farthest = Decimal(MAX_TIME * one // many)  # py4j has no whole number that long
    return (
        F.when(F.abs(number) > farthest, F.raise_error(far).cast("long"))
        .when(remains == 0, (number * many / one).cast("long"))
        .when(remains != 0, F.raise_error(refused).cast("long"))
    )


def term_of(rows: DataFrame, given: str | Column, name: str) -> Column:
    """A column as N-Triples spellings; ``name`` is its place in the triple: s, p or o."""
    column, kind = typed(rows, given, name)
    if isinstance(kind, T.StringType | T.NullType):
        # A collation would take different terms for equal ones.
        return column if kind == T.StringType() else column.cast("string")
    if name != "o":
        raise SparkError(
            f"{name} is a column of type {kind.simpleString()}, but a subject or predicate is a string that holds an "
            f"IRI, <http://…>; events_from_columns makes one of each value: {name}=iri(…, base)"
        )
    if isinstance(kind, T.BooleanType | T.IntegralType):
        datatype = "boolean" if isinstance(kind, T.BooleanType) else "integer"
        return F.concat(F.lit('"'), column.cast("string"), F.lit(f'"^^<{XSD}{datatype}>'))
    if isinstance(kind, _IN_ARROW):
        use_this_python(rows.sparkSession)
        literals: Column = arrow_udf(_literals, T.StringType())(column)
        return literals
    raise no_literal(name, kind)


def no_literal(name: str, kind: T.DataType) -> SparkError:
    """The error for a column whose values are no literals."""
    return SparkError(f"{name} is a column of type {kind.simpleString()}, which is not a literal; {_advice(kind)}")


def _advice(kind: T.DataType) -> str:
    """What to do with a column whose values are no literals."""
    match kind:
        case T.ArrayType() | T.MapType():
            return "make a row of each of its values, with explode"
        case T.StructType(fields=[first, *_]):
            return f"choose one of its fields, such as {first.name}"
        case T.BinaryType():
            return "make a string of it, with base64 or hex"
    return 'make a string of it, with cast("string"), and a literal in events_from_columns: o=literal(…, datatype=…)'


def typed(rows: DataFrame, given: str | Column, name: str) -> tuple[Column, T.DataType]:
    """The column and its type; ``name`` is the argument that names it, for errors."""
    if not isinstance(given, str | Column):
        raise SparkError(f"{name}= is {given!r}, and must be the name of a column, or a Column such as F.lit(…)")
    column = F.col(given) if isinstance(given, str) else given
    try:
        return column, rows.select(column).schema[0].dataType
    except AnalysisException as error:
        if not isinstance(given, str) or not (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
            raise
    raise SparkError(
        f"there is no column {given!r} among {', '.join(rows.columns)}, which {name}= names; what is the same in all "
        "rows is given as F.lit(…), and a name with dots in backticks"
    )


def _literals(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
    for values in batches:
        cells = spelled(values)
        assert cells.terms is not None, "typed values have terms"
        yield cells.terms.take(cells.index)
