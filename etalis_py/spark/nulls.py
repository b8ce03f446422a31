"""Rows with a null where an event has none: they become dead letters, with the reason, and are never just left out.

A filter of SQL leaves out what it cannot tell, so a null would make a triple disappear that somebody may want.  Here a
row stays when some triple pattern *might* want it, were the null filled; it then goes through one shard to the dead
letters.  What nobody can want is still left out by the reader.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F

from etalis_py.spark.schema import TRIPLE

TERMS = ("s", "p", "o")
TIMES = ("start", "end")


def has_null(columns: tuple[str, ...] = (*TERMS, *TIMES)) -> Column:
    return reduce(or_, [F.col(column).isNull() for column in columns])


def has_null_within(triples: str) -> Column:
    """Has an event, whose triples are in this column, a null anywhere?"""
    return has_null(TIMES) | F.exists(triples, lambda t: t["s"].isNull() | t["p"].isNull() | t["o"].isNull())


def no_null_list(triples: str) -> Column:
    """The triples of an event; where there is no list, a list of one triple of nulls, so that the event is not lost."""
    nothing = F.lit(None).cast("string")
    one = F.array(F.struct(nothing.alias("s"), nothing.alias("p"), nothing.alias("o")).cast(TRIPLE))
    return F.coalesce(F.col(triples), one)


def may_be(test: Column) -> Column:
    """Rows that pass, and those of which a null keeps one from knowing.

    The first half says nothing that the second does not; it is there because a Parquet reader understands it.
    """
    return (test | has_null(TERMS)) & F.coalesce(test, F.lit(True))


def dead_letter() -> Column:
    """The row as a row of matches, in JSON, as rows travel that only pass through an operator."""
    missing = F.concat_ws(", ", *[F.when(F.col(c).isNull(), F.lit(c)) for c in (*TERMS, *TIMES)])
    triple = F.struct(*[F.col(c).cast("string").alias(c) for c in TERMS])
    values = {
        "kind": F.lit("dead_letter"),
        "triples": F.array(triple),
        "start": F.col("start"),
        "end": F.col("end"),
        "stream": F.col("stream"),
        "detail": F.concat(F.lit("an event must have all of s, p, o, start and end, and here is null: "), missing),
    }
    return F.to_json(F.struct(*[value.alias(name) for name, value in values.items()]), {"ignoreNullFields": "false"})
