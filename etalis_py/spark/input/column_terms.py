"""What the columns of a table are: IRIs, literals, or spellings of terms.

A string column is a literal where an object stands, unless it is said to be something else; for a subject and a
predicate it holds N-Triples spellings.  A value that makes no term becomes null, and the reason goes to the dead letter
of its row.  Strings are spelled in the JVM, the same way as ``etalis_rules.terms`` spells them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from etalis_rules import terms
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.columns import term_of, typed
from etalis_py.streams.templates import ABSOLUTE, SAFE

_IN_IRI = r'[^\x00-\x20<>"{}|^`\\]*'
_IRI = f"^<{ABSOLUTE}{_IN_IRI}>$"
_BLANK = r"^_:[^\s<>\"]+$"
_LITERAL = rf'^"(?:[^\x00-\x1f\x7f"\\]|\\[^\s])*"(?:@[a-z]+(?:-[a-z0-9]+)*|\^\^<{ABSOLUTE}{_IN_IRI}>)?$'
_TRIPLE = r"^<<\( .* \)>>$"
_CONTROL = [chr(code) for code in (*range(0x20), 0x7F)]
_QUOTED = [character for character in SAFE if character not in "-._*"]
"""The characters that an IRI may have and that Spark's ``url_encode`` encodes."""


@dataclass(frozen=True, slots=True)
class ColumnTerm:
    """A column and the terms that its values are: ``iri``, ``literal`` or ``term``."""

    column: str | Column
    kind: str
    base: str = ""
    lang: str = ""
    datatype: str = ""


def iri(column: str | Column, base: str = "") -> ColumnTerm:
    """The values of a column as IRIs: after a ``base``, percent-encoded as by a mapping; without one as they are."""
    if base and not re.match(ABSOLUTE + _IN_IRI + "$", base):
        raise SparkError(f"{base!r} is not the beginning of an IRI, such as http://example.org/machine/")
    return ColumnTerm(column, "iri", base=base)


def literal(column: str | Column, *, lang: str = "", datatype: str = "") -> ColumnTerm:
    """The values of a column as literals, of a language or of a datatype (an IRI); else of their own type."""
    if lang and (datatype or not re.fullmatch(r"[A-Za-z]+(?:-[A-Za-z0-9]+)*", lang)):
        raise SparkError(f"{lang!r} is not the language of a literal, such as en or de-AT, or has a datatype beside it")
    datatype = datatype.removeprefix("<").removesuffix(">")
    if datatype and not re.match(ABSOLUTE + _IN_IRI + "$", datatype):
        raise SparkError(f"{datatype!r} is not the IRI of a datatype, such as {terms.XSD}decimal")
    return ColumnTerm(column, "literal", lang=lang, datatype=datatype)


def term(column: str | Column) -> ColumnTerm:
    """The values of a column as they are: N-Triples spellings, such as ``<urn:a>`` and ``"a"@en``."""
    return ColumnTerm(column, "term")


def spelled(rows: DataFrame, given: str | Column | ColumnTerm, place: str) -> tuple[Column, Column]:
    """The terms of a column at a place (s, p or o), null where there is none, and the reason; null where there is."""
    column, kind = typed(rows, given.column if isinstance(given, ColumnTerm) else given, place)
    text = isinstance(kind, T.StringType)
    known = given if isinstance(given, ColumnTerm) else ColumnTerm(column, "literal" if place == "o" else "term")
    if place != "o" and known.kind == "literal":
        raise SparkError(f"{place} is a literal, but a subject or a predicate is an IRI: say iri(…, base)")
    value = column.cast("string")
    match known:
        case ColumnTerm(kind="iri", base=base) if base:
            return F.concat(F.lit(f"<{base}"), _in_iri(value), F.lit(">")), _never()
        case ColumnTerm(kind="iri"):
            whole = F.concat(F.lit("<"), value, F.lit(">"))
            return _checked(whole, value, whole.rlike(_IRI), f"{place} is no IRI; iri(…, base) makes one of it: ")
        case ColumnTerm(kind="literal", lang=lang, datatype=datatype) if text or lang or datatype:
            end = f'"@{lang.lower()}' if lang else terms.literal("", datatype)[1:]
            return F.concat(F.lit('"'), _escaped(value), F.lit(end)), _never()
    if not text:
        return term_of(rows, column, place), _never()
    if place == "o":
        right = value.rlike("|".join((_IRI, _BLANK, _LITERAL, _TRIPLE)))
    else:
        right = value.rlike(_IRI if place == "p" else f"{_IRI}|{_BLANK}")
    made = "; iri(…, base) makes one of a value: " if place != "o" else "; literal(…) makes one of a value: "
    return _checked(value, value, right, f"{place} is no N-Triples spelling of {_wanted(place)}{made}")


def as_text(columns: Mapping[str, str | Column | ColumnTerm | None]) -> dict[str, str]:
    """Columns and what is made of them, as text; without expressions, which Spark spells differently in each run."""
    texts = {}
    for place, one in columns.items():
        known = one if isinstance(one, ColumnTerm) else ColumnTerm("" if one is None else one, "")
        if isinstance(known.column, str) and known.column:
            texts[place] = " ".join(filter(None, (known.column, known.kind, known.base, known.lang, known.datatype)))
    return texts


def _wanted(place: str) -> str:
    return {"s": "an IRI or a blank node", "p": "an IRI", "o": "a term"}[place]


def _never() -> Column:
    return F.lit(None).cast("string")


def _checked(made: Column, value: Column, right: Column, why: str) -> tuple[Column, Column]:
    return F.when(right, made), F.when(~right, F.concat(F.lit(why), value))


def _escaped(text: Column) -> Column:
    """A text as between the quotes of a literal."""
    out = F.replace(text, F.lit("\\"), F.lit("\\\\"))
    for character in ('"', *_CONTROL):
        out = F.replace(out, F.lit(character), F.lit(terms.escape(character)))
    return F.when(text.rlike(r'[\x00-\x1f\x7f"\\]'), out).otherwise(text)


def _in_iri(text: Column) -> Column:
    """A text as a part of an IRI, percent-encoded."""
    out = F.replace(F.url_encode(F.regexp_replace(text, r"^\s+|\s+$", "")), F.lit("+"), F.lit("%20"))
    for character in _QUOTED:
        out = F.replace(out, F.lit(f"%{ord(character):02X}"), F.lit(character))
    return F.when(text.rlike(r"^[A-Za-z0-9_.-]*$"), text).otherwise(out)


__all__ = ["ColumnTerm", "as_text", "iri", "literal", "spelled", "term"]
