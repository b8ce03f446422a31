"""Matches as JSON lines, SPARQL 1.1 results JSON and SPARQL 1.1 results CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from etalis_rules.terms import XSD, iri_value, is_iri, is_literal, parts

from etalis_py.events.errors import SinkError
from etalis_py.streams.added_columns import bounds, free
from etalis_py.streams.sinks import Match, is_construct, is_retracted, solution, spelled, time_type

if TYPE_CHECKING:
    from etalis_py.streams.columns.results import Results

_encode = msgspec.json.Encoder().encode


class JsonLines:
    """One object per line, ``Match.to_dict``; with ``explain`` also why the match holds."""

    def __init__(self, explain: bool = False) -> None:
        self._explain = explain

    def begin(self) -> str:
        return ""

    def render(self, match: Match) -> str:
        record = match.to_dict()
        if self._explain:
            record["why"] = match.why().to_dict()  # type: ignore[attr-defined]
        return _encode(record).decode() + "\n"

    def render_results(self, results: Results) -> str | None:
        """Matches in columns; None if they have to come one by one."""
        if self._explain or results.variables == ("boolean",):
            return None
        from etalis_py.streams.columns.rendering import json_lines  # takes a while to import

        return json_lines(results)

    def end(self) -> str:
        return ""


class SolutionColumns:
    """The columns of a table of solutions: the query, if ``named``, the variables, and two for the interval."""

    __slots__ = ("_given", "bounds", "named", "query", "variables")

    def __init__(self, variables: Sequence[str] | None, *, named: bool) -> None:
        self._given = variables is not None
        self.variables: tuple[str, ...] = ()
        self.bounds = ("start", "end")
        self.named, self.query = named, "query"
        if variables is not None:
            self._set(variables)

    def _set(self, variables: Sequence[str]) -> None:
        self.variables = tuple(variables)
        self._given = True
        self.bounds = bounds(variables)
        while self.query in variables:
            self.query += "_name"

    @property
    def names(self) -> tuple[str, ...]:
        return (*([self.query] if self.named else []), *self.variables, *self.bounds)

    def of(self, match: Match, format: str) -> list[str]:
        """The match's terms in the order of the variables, "" where unbound."""
        if is_construct(match):
            raise SinkError(
                f"query {match.query} constructs triples, which have no place in {format}",
                hint="write them as jsonl or trig",
            )
        bindings = solution(match)
        if not self._given or (not self.variables and "boolean" in bindings):
            self._set(sorted(bindings))
        extra = next((name for name in bindings if name not in self.variables), None)
        if extra is not None:
            raise SinkError(
                f"query {match.query} binds ?{extra}, which is not a column of this {format}",
                hint="write several queries to several outputs, or as jsonl",
            )
        return [bindings.get(name, "") for name in self.variables]


class ResultsCsv:
    """SPARQL 1.1 results CSV: terms without their kind, lines ended by CR LF."""

    def __init__(self, variables: Sequence[str] | None, *, named: bool = False, revised: bool = False) -> None:
        self._columns = SolutionColumns(variables, named=named)
        self._more = ("retracted",) if revised else ()

    def begin(self) -> str:
        return _csv_line((*self._columns.names, *(free(name, self._columns.variables) for name in self._more)))

    def render(self, match: Match) -> str:
        cells = [_plain(term) for term in self._columns.of(match, "CSV")]
        more = ("true" if is_retracted(match) else "" for _ in self._more)
        name = (match.query,) if self._columns.named else ()
        return _csv_line((*name, *cells, spelled(match.start), spelled(match.end), *more))

    def render_results(self, results: Results) -> str | None:
        """Matches in columns; None if they have to come one by one."""
        variables = self._columns.variables
        if self._more or results.triples is not None or not variables or not set(results.variables) <= set(variables):
            return None
        from etalis_py.streams.columns.rendering import csv_lines  # takes a while to import

        return csv_lines(results, variables, named=self._columns.named)

    def end(self) -> str:
        return ""


def _csv_line(cells: Sequence[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue()


def _plain(term: str) -> str:
    if is_iri(term):
        return iri_value(term)
    return parts(term)[0] if is_literal(term) else term


class ResultsJson:
    """SPARQL 1.1 results JSON; the terms as ``Match.to_dict`` has them, the interval as two more variables.

    The answer of an ASK query is the whole document.
    """

    def __init__(self, variables: Sequence[str] | None, *, named: bool = False) -> None:
        self._columns = SolutionColumns(variables, named=named)
        self._separator = "\n"
        self._answer: bool | None = None

    def begin(self) -> str:
        if self._answer is not None:
            return ""
        head = _encode({"vars": list(self._columns.names)}).decode()
        return f'{{"head": {head}, "results": {{"bindings": ['

    def render(self, match: Match) -> str:
        self._columns.of(match, "SPARQL results JSON")
        answer = getattr(match, "boolean", None)
        if answer is not None:
            self._answer = bool(answer)
            return ""
        row: dict[str, Any] = dict(match.to_dict()["bindings"])
        if self._columns.named:
            row = {self._columns.query: {"type": "literal", "value": match.query}, **row}
        for name, time in zip(self._columns.bounds, (match.start, match.end), strict=True):
            if time is not None:
                row[name] = {"type": "literal", "value": str(time), "datatype": XSD + time_type(time)}
        separator, self._separator = self._separator, ",\n"
        return separator + _encode(row).decode()

    def end(self) -> str:
        if self._answer is not None:
            return f'{{"head": {{}}, "boolean": {str(self._answer).lower()}}}\n'
        self._separator = "\n"
        return "\n]}}\n"
