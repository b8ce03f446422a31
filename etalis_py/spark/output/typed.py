"""Matches as a table of values: one column for each selected variable, with times as timestamps.

A variable has a type of SQL if its query alone determines one (a count, a truth value, a time) or if it is asked for;
otherwise it is a string: an IRI without its brackets, or the text of a literal.  A value that is not exactly one of the
type stops the job and is shown (``exact_casts``).  In a stream ``end`` is an event time: it has the watermark of the
events, so what comes behind may count matches by the minute or join them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from etalis_compiler import ast
from etalis_compiler.value_kinds import TIME, TRUTH, computed_columns, is_whole_number, kind_of
from etalis_rules.terms import escape
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from etalis_py.engine.program import Program
from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.schema import DELAY
from etalis_py.spark.output.exact_casts import exact

Typing: TypeAlias = bool | Mapping[str, str]
"""Whether matches are typed, or the SQL types of some variables."""

_FIRST = ("kind", "program", "query", "id")
_LAST = ("boolean", "triples", "start", "end", "retracted", "detail")
_TEXT = "_text_of_"  # and the name of a variable: its value as text, for the next step


def typed_matches(found: DataFrame, programs: Mapping[str, Program], asked: Typing) -> DataFrame:
    """The result of ``matches`` with typed columns; dead letters stay, with the same ``kind`` and ``detail``."""
    if not isinstance(asked, bool | Mapping):
        raise SparkError(f"typed={asked!r} says of no variable what it is: give True, or {{'price': 'double'}}")
    types = dict(asked) if isinstance(asked, Mapping) else {}
    variables = list(dict.fromkeys(name for program in programs.values() for name in variables_in(program)))
    _check(variables, types)
    forms = {query.kind for program in programs.values() for query in _queries(program)}
    kept = {"program": any(programs), "boolean": "ask" in forms, "triples": bool(forms & {"construct", "describe"})}
    known = _known_types(programs.values()) | types
    kinds = {name: _sql_type(found, name, known.get(name, "string")) for name in variables}
    # Columns of their own, because the protocol of Spark Connect takes no expression of more than a hundred levels.
    found = found.withColumns({_TEXT + name: _text(F.col("bindings")[name]) for name in variables})
    columns = [F.col(name) for name in _FIRST if kept.get(name, True)]
    columns += [_value(name, known.get(name, "string"), kinds[name]).alias(name) for name in variables]
    times = {name: F.timestamp_micros(name) for name in ("start", "end")}
    delay = {DELAY: 0} if found.isStreaming else {}
    for name in _LAST:
        if kept.get(name, True):
            column = times.get(name, F.col(name))
            columns.append(column.alias(name, metadata=delay) if name == "end" and delay else column.alias(name))
    return found.select(*columns)


def unknown_variables() -> SparkError:
    """The error for queries whose variables are not known when the job is planned."""
    return SparkError("typed matches have a column for each variable, and queries= brings any: leave one of them out")


def variables_in(program: Program) -> Iterator[str]:
    """The variables that matches of SELECT queries may bind, in their order."""
    for output in program.rules().outputs:
        yield from output.variables if output.form == "select" else ()
    for plan in program.plans:
        yield from plan.variables


def _queries(program: Program) -> Iterator[ast.Query]:
    return (query for document, _ in program.documents for query in document.queries)


def _check(variables: Iterable[str], types: Mapping[str, str]) -> None:
    names: dict[str, str] = {}
    for name in variables:
        if name.lower() in (*_FIRST, *_LAST):
            raise SparkError(
                f"typed matches have a column {name} of their own: rename the variable, SELECT (?{name} AS ?other)"
            )
        other = names.setdefault(name.lower(), name)
        if other != name:
            raise SparkError(f"Spark takes ?{other} and ?{name} for one column: rename one, SELECT (?{name} AS ?other)")
    unknown = [name for name in types if name not in names.values()]
    if unknown and unknown[0].startswith("?"):
        raise SparkError(f"typed= names variables without their question marks: {unknown[0][1:]!r} for {unknown[0]}")
    if unknown:
        raise SparkError(f"no query selects ?{unknown[0]}, for which typed= has a type; selected are {_list(names)}")


def _sql_type(found: DataFrame, name: str, kind: str) -> T.DataType:
    """The type of a variable; what is no type of SQL is refused, and so is a type that texts are not cast to."""
    if isinstance(kind, str):
        try:
            return found.select(F.lit("").try_cast(kind)).schema[0].dataType
        except AnalysisException:
            pass
    raise SparkError(
        f"typed= says that ?{name} is {kind!r}, which is no SQL type of a single value: give one such as 'double', "
        "'bigint', 'boolean', 'timestamp' or 'string'"
    )


def _list(names: Mapping[str, str]) -> str:
    return ", ".join(f"?{name}" for name in names.values()) or "no variables"


def _known_types(programs: Iterable[Program]) -> dict[str, str]:
    """The SQL types that the texts of the queries determine."""
    found: dict[str, set[str]] = {}
    for query in (query for program in programs for query in _queries(program)):
        for name, expression in computed_columns(query):
            found.setdefault(name, set()).add(_type_of(expression))
    return {name: types.pop() for name, types in found.items() if len(types) == 1}


def _type_of(expression: ast.Expression) -> str:
    if is_whole_number(expression):
        return "bigint"
    return {TRUTH: "boolean", TIME: "timestamp"}.get(kind_of(expression), "string")


def _value(variable: str, named: str, kind: T.DataType) -> Column:
    """The value of a variable; ``named`` is its type as somebody wrote it."""
    term, text = F.col("bindings")[variable], F.col(_TEXT + variable)
    if named == "string":
        return text
    why = F.concat(F.lit(f"?{variable} is "), term, F.lit(f", which is not of type {named}: choose another in typed="))
    value = exact(text, kind)
    return F.when(term.isNotNull() & value.isNull(), F.raise_error(why).cast(kind)).otherwise(value)


def _text(term: Column) -> Column:
    """An IRI without its brackets, or the text of a literal."""
    first = F.substring(term, 1, 1)
    within = F.regexp_extract(term, r'(?s)^"(.*)"(?:@[^"]*|\^\^<[^"]*>)?$', 1)
    iri = F.substring(term, F.lit(2), F.length(term) - 2)
    is_iri = (first == "<") & ~term.startswith("<<")
    return F.when(is_iri, iri).when(first == '"', _unescaped(within)).otherwise(term)


def _unescaped(text: Column) -> Column:
    """The text that is written so between the quotes of a literal; only U+0000 stays written out."""
    held = "\0"  # stands for a backslash meanwhile, because it never stands in a literal as it is
    out = F.replace(text, F.lit("\\\\"), F.lit(held))
    for character in ('"', *map(chr, (*range(1, 0x20), 0x7F))):
        out = F.replace(out, F.lit(escape(character)), F.lit(character))
    return F.when(text.contains("\\"), F.replace(out, F.lit(held), F.lit("\\"))).otherwise(text)


__all__ = ["Typing", "typed_matches", "variables_in"]
