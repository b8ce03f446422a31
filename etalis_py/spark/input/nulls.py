"""Turns rows with a null in a place where events have none into dead letters, so that they are not silently dropped.

An SQL filter drops a row if the result is unknown, so a null would make a triple disappear that some pattern may want.
Here a row stays if some triple pattern *might* match it with the null filled in; it then goes through one shard to the
dead letters.  The reader still drops rows that no pattern can match.
"""

from __future__ import annotations

from collections.abc import Container

from pyspark.sql import Column
from pyspark.sql import functions as F

from etalis_py.spark.input.expressions import all_of, any_of, text
from etalis_py.spark.input.schema import NO_TERM, TRIPLE

TERMS = ("s", "p", "o")
TIMES = ("start", "end")
WHY = "an event must have all of s, p, o, start and end, and here is null: "
"""The text of a dead letter before the names."""


def has_null(columns: tuple[str, ...] = (*TERMS, *TIMES)) -> str:
    return any_of(f"`{column}` IS NULL" for column in columns)


def has_null_within(triples: str) -> str:
    """Whether an event, whose triples are in this column, has a null anywhere."""
    return any_of([has_null(TIMES), f"exists({triples}, t -> t.s IS NULL OR t.p IS NULL OR t.o IS NULL)"])


def no_null_list(triples: str) -> Column:
    """The triples of an event; if the list is null, a list of one triple of nulls, so that the event is not lost."""
    nothing = F.lit(None).cast("string")
    one = F.array(F.struct(nothing.alias("s"), nothing.alias("p"), nothing.alias("o")).cast(TRIPLE))
    return F.coalesce(F.col(triples), one)


def may_be(test: str) -> str:
    """The test that a row passes, or that its result is unknown because of a null.

    The second half alone would do, but a Parquet reader only understands the first.
    """
    return all_of([any_of([test, has_null(TERMS)]), f"coalesce({test}, TRUE)"])


def dead_letter(columns: Container[str]) -> str:
    """The row as a row of matches, in the JSON form of rows that only pass through an operator.

    ``columns``: those that rows have; one may say why a term is null.
    """
    missing = ", ".join(f"IF(`{c}` IS NULL, '{c}', NULL)" for c in (*TERMS, *TIMES))
    detail = f"concat({text(WHY)}, concat_ws(', ', {missing}))"
    if NO_TERM in columns:
        detail = f"coalesce({NO_TERM}, {detail})"
    triple = ", ".join(f"'{c}', CAST(`{c}` AS STRING)" for c in TERMS)
    values = f"'kind', 'dead_letter', 'triples', array(named_struct({triple})), 'start', start, 'end', `end`"
    row = f"named_struct({values}, 'stream', stream, 'detail', {detail})"
    return f"to_json({row}, map('ignoreNullFields', 'false'))"
