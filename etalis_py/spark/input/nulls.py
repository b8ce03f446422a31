"""Turns rows that are no events into dead letters, so that they are not silently dropped.

An SQL filter drops a row if the result is unknown, so a null would make a triple disappear that some pattern may want.
Here a row stays if some triple pattern *might* match it with the null filled in; it then goes through one shard to the
dead letters.  The reader still drops rows that no pattern can match.

A predicate that is no IRI in angle brackets, such as ``temp``, equals no predicate of a query, so a table of such
strings would have no matches and no errors: its rows are dead letters, whatever the patterns.  A subject or object that
is no term by its first character, such as ``m1``, counts as a null: the row is a dead letter if some pattern might
match it with another term there.
"""

from __future__ import annotations

from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from etalis_py.spark.input.expressions import all_of, any_of, text
from etalis_py.spark.input.schema import COLUMNS_OF, NO_TERM, TRIPLE

TERMS = ("s", "p", "o")
TIMES = ("start", "end")
WHY = "an event must have all of s, p, o, start and end, and here is null: "
"""The text of a dead letter before the names."""
NO_IRI = "NOT startswith(p, '<')"
_NO_IRI_PUSHED = "p < '<' OR p >= '='"
"""The same by comparisons that a Parquet reader understands.  Where both are needed they must differ: Spark would take
a common alternative out of a conjunction, which leaves nothing that a reader understands."""
_MADE = "; events_from_columns makes terms of values: "
NO_PREDICATE = f"p is no N-Triples spelling of an IRI, such as <http://…>{_MADE}"
NO_SUBJECT = f"s is no N-Triples spelling of an IRI or a blank node, such as <http://…>{_MADE}"
NO_OBJECT = f'o is no N-Triples spelling of a term, such as <http://…> or "90"{_MADE}'
"""The texts of a dead letter before the term."""
FIRST = {"s": "<_", "o": '"<_'}
"""What a term begins with, in the order of the characters."""


def is_no_term(name: str) -> str:
    """Whether the subject or object in this column is no term; null if it is null."""
    return all_of(f"NOT startswith({name}, {text(first)})" for first in FIRST[name.rpartition(".")[2]])


def is_no_term_pushed(name: str) -> str:
    """The same by comparisons that a Parquet reader understands: what lies between the terms, or around them."""
    firsts = FIRST[name]
    gaps = [f"{name} < {text(firsts[0])}", f"{name} >= {text(_after(firsts[-1]))}"]
    gaps += [f"{name} >= {text(_after(a))} AND {name} < {text(b)}" for a, b in pairwise(firsts)]
    return any_of(gaps)


def _after(character: str) -> str:
    return chr(ord(character) + 1)


NO_TERMS = any_of(map(is_no_term, FIRST))


def has_null(columns: tuple[str, ...] = (*TERMS, *TIMES)) -> str:
    return any_of(f"`{column}` IS NULL" for column in columns)


def is_wrong() -> str:
    """Whether a row is no event."""
    return any_of([has_null(), NO_IRI, NO_TERMS])


def is_wrong_anywhere() -> str:
    """Whether a row has a null, or a predicate that is no IRI: such rows are looked for outside slices of time."""
    return any_of([has_null(), NO_IRI])


def is_wrong_pushed() -> str:
    """``is_wrong_anywhere`` in the form that a Parquet reader understands."""
    return any_of([has_null(), _NO_IRI_PUSHED])


def is_wrong_within(triples: str, other: str) -> str:
    """Whether an event, whose triples are in this column, has a null, a predicate that is no IRI, or passes a test.

    ``other``: the test of one triple ``t``.  Spark interprets functions on arrays, so one pass finds it all.
    """
    terms = any_of([is_no_term("t.s"), is_no_term("t.o")])
    wrong = f"t.s IS NULL OR t.p IS NULL OR t.o IS NULL OR NOT startswith(t.p, '<') OR {terms} OR {other}"
    return any_of([has_null(TIMES), f"exists({triples}, t -> {wrong})"])


def no_null_list(triples: str) -> Column:
    """The triples of an event; if the list is null, a list of one triple of nulls, so that the event is not lost."""
    nothing = F.lit(None).cast("string")
    one = F.array(F.struct(nothing.alias("s"), nothing.alias("p"), nothing.alias("o")).cast(TRIPLE))
    return F.coalesce(F.col(triples), one)


def may_be(test: str, pushed: str) -> str:
    """The test that a row passes, or that its result is unknown because of a null, or that its predicate is no IRI.

    ``test`` and ``pushed`` take what is no term for any term (``triple_filters.Unknown``).  The half with the first
    would do, but a Parquet reader only understands the other one.
    """
    return all_of([any_of([pushed, has_null(TERMS), _NO_IRI_PUSHED]), any_of([f"coalesce({test}, TRUE)", NO_IRI])])


def dead_letter(rows: DataFrame) -> str:
    """The row as a row of matches, in the JSON form of rows that only pass through an operator.

    A column may say why a term is null, and the metadata of ``end`` which columns of a table are to blame for a null.
    """
    made_of = rows.schema["end"].metadata.get(COLUMNS_OF, {})
    named = {c: f"{c} (column {made_of[c]})" if made_of.get(c) else c for c in (*TERMS, *TIMES)}
    missing = ", ".join(f"IF(`{c}` IS NULL, {text(name)}, NULL)" for c, name in named.items())
    nulls = f"concat({text(WHY)}, concat_ws(', ', {missing}))"
    told = {NO_IRI: (NO_PREDICATE, "p"), is_no_term("s"): (NO_SUBJECT, "s"), is_no_term("o"): (NO_OBJECT, "o")}
    cases = " ".join(f"WHEN {test} THEN concat({text(why)}, {name})" for test, (why, name) in told.items())
    detail = f"CASE WHEN {has_null()} THEN {nulls} {cases} END"
    if NO_TERM in rows.columns:
        detail = f"coalesce({NO_TERM}, {detail})"
    triple = ", ".join(f"'{c}', CAST(`{c}` AS STRING)" for c in TERMS)
    values = f"'kind', 'dead_letter', 'triples', array(named_struct({triple})), 'start', start, 'end', `end`"
    row = f"named_struct({values}, 'stream', stream, 'detail', {detail})"
    return f"to_json({row}, map('ignoreNullFields', 'false'))"
