"""TEF-SPARQL: facts that hold from one event until another, and counts of those that hold now."""

from __future__ import annotations

from typing import Any

from etalis_rules.messages import closest

from ..ast import (
    Aggregate,
    Current,
    Expression,
    Fact,
    Group,
    Projection,
    Query,
    Register,
    ReportClause,
    ReportItem,
    Select,
    Span,
    Triples,
    Var,
)
from ..lexing import Token
from .patterns import PatternBuilder

FACTS = "a fact begins with an event and ends with one: (UNION (SINCE ?user :enter ?room) (TILL ?user :leave ?room))"


class FactBuilder(PatternBuilder):
    def fact_pattern(self, args: list[Any], start: int, end: int) -> Group:
        """Triples without braces, or with filters in braces."""
        (pattern,) = args
        return Group((pattern,), span=Span(start, end)) if isinstance(pattern, Triples) else pattern

    def since(self, args: list[Any], start: int, end: int) -> tuple[str, Group]:
        return "SINCE", args[0]

    def till(self, args: list[Any], start: int, end: int) -> tuple[str, Group]:
        return "TILL", args[0]

    def facts(self, args: list[Any], start: int, end: int) -> dict[str, tuple[Group, ...]]:
        parts = {word: tuple(group for keyword, group in args if keyword == word) for word in ("SINCE", "TILL")}
        for word, groups in parts.items():
            if not groups:
                self.fail(f"the fact has no {word}", start, end, code="fact", hint=FACTS)
        return parts

    def fact_query(self, args: list[Any], start: int, end: int) -> Query:
        name, template, parts = args
        register = None if name is None else Register("QUERY", name.text, span=Span(name.start, name.end))
        form = Fact(template, parts["SINCE"], parts["TILL"], span=Span(start, end))
        return Query(form, None, register=register, span=Span(start, end))

    # --- SELECT ?room AS ROOM (AGGREGATE ?room, COUNT ?user WHERE (CURRENT …) GROUP BY ?room EVERY d) ---

    def current_part(self, args: list[Any], start: int, end: int) -> Current:
        return Current(args[0], span=Span(start, end))

    def plain_value(self, args: list[Any], start: int, end: int) -> tuple[str, Expression]:
        return args[0].name, args[0]

    def aggregated_value(self, args: list[Any], start: int, end: int) -> tuple[str, Expression]:
        function, variable = args
        return variable.name, Aggregate(function.text.upper(), variable, span=Span(start, end))

    def counted_value(self, args: list[Any], start: int, end: int) -> tuple[str, Expression]:
        return args[0].name, Aggregate("COUNT", args[0], span=Span(start, end))

    def aggregated(self, args: list[Any], start: int, end: int) -> dict[str, Expression]:
        return dict(args)

    def column(self, args: list[Any], start: int, end: int) -> tuple[Expression, Token]:
        return args[0], args[1]

    def tef_query(self, args: list[Any], start: int, end: int) -> Query:
        """Each column is the result of AGGREGATE for its variable."""
        columns = [a for a in args if isinstance(a, tuple) and len(a) == 2 and isinstance(a[1], Token)]
        values, *rest = args[len(columns) :]
        currents = tuple(a for a in rest if isinstance(a, Current))
        group_by, every = rest[len(currents) :]
        projections = []
        for expression, name in columns:
            value = expression
            if values is not None and isinstance(expression, Var):
                if expression.name not in values:
                    near = closest(expression.name, values)
                    self.fail(
                        f"?{expression.name} is not among what AGGREGATE makes",
                        expression.span.start,
                        expression.span.end,
                        hint=f"did you mean ?{near}?" if near else "name it there: AGGREGATE ?room, COUNT ?user",
                    )
                value = values[expression.name]
            column = Var(name.text, span=Span(name.start, name.end))
            projections.append(Projection(column, value, span=Span(expression.span.start, name.end)))
        span = Span(start, end)
        return Query(
            Select(tuple(projections), span=span),
            Group(currents, span=span),
            group_by=group_by or (),
            report=ReportClause((ReportItem("P", period=every, span=every.span),), span=every.span),
            span=span,
        )
