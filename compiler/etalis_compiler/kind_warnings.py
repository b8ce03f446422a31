"""Warnings about operations that are errors for every event, as their values are of kinds that they do not take.

``STRLEN(5)``, ``FLOOR("5")``, ``NOW() > 5`` and ``FILTER (getENDTIME())`` are errors; a filter with an error lets
nothing through, a BIND with one leaves its variable unbound, and neither says so.  Only what is certain is told: the
kind of a variable is known

* if every place that binds it gives it that kind: BIND, AS, VALUES (a triple of the stream may have any object);
* if a triple pattern has it as its subject;
* where a filter of the same group lets only that kind through: behind ``FILTER (?x > 3)``, ``?x`` is a number.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Any

from etalis_rules.terms import XSD, is_literal, literal, parts

from . import ast
from .ast.operators import mandatory_parts
from .diagnostics import Diagnostic, Source
from .scope import children, conjuncts, is_forgiving, variables
from .value_kinds import (
    CONDITION,
    DURATION,
    IRI,
    NUMBER,
    OTHER,
    SUBJECT,
    TEXT,
    TIME,
    TRIPLE,
    can_be_computed,
    datatype_of_time,
    kind_of,
    no_value,
    taken,
    takes,
)

Kinds = Mapping[str, str]
ORDERED = frozenset({"<", "<=", ">", ">="})
ARITHMETIC = frozenset({"+", "-", "*", "/"})
_UNORDERED = frozenset({IRI, SUBJECT, TRIPLE})
_NEVER_CALCULATED = frozenset({TEXT, "truth value", IRI, SUBJECT, TRIPLE, OTHER})
_WHITE = "\t\n\r "
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_ZONE = re.compile(r".*(Z|[+-]\d\d:\d\d)", re.DOTALL)
_WORDS = {IRI: "an IRI", SUBJECT: "the subject of a triple", OTHER: "a literal of another datatype"}
_CASTS = {
    TEXT: "STR",
    NUMBER: "xsd:decimal",
    TIME: "xsd:dateTime",
    "dateTime": "xsd:dateTime",
    DURATION: "xsd:duration",
}
_EXPRESSIONS = (ast.Unary, ast.Binary, ast.In, ast.Call, ast.FunctionCall, ast.Aggregate)
_TOLD = (*_EXPRESSIONS, ast.Query)


def bound_kinds(query: ast.Query) -> dict[str, str]:
    """The kinds of the variables of a query that have the same kind wherever they are bound."""
    binders: dict[str, list[Any]] = {}
    subjects, others = set[str](), set[str]()
    for node in ast.walk(query):
        match node:
            case ast.Bind(expression, variable) | ast.Projection(variable, expression) if expression is not None:
                binders.setdefault(variable.name, []).append(expression)
            case ast.Values(names, rows):
                for place, variable in enumerate(names):
                    terms = (row[place] for row in rows)
                    binders.setdefault(variable.name, []).extend(term for term in terms if term is not None)
            case ast.TriplePattern(subject, ast.Var() | ast.Term() as predicate, obj):
                subjects |= {node.name for node in (subject,) if isinstance(node, ast.Var)}
                others |= variables(predicate) | variables(obj)
                others |= set() if isinstance(subject, ast.Var) else variables(subject)
            case ast.TriplePattern():  # no step along a path may leave any term where it is
                others |= variables(node)
            case ast.GraphGroup(name) | ast.Service(name) | ast.StreamGroup(name) | ast.WindowGroup(name):
                others |= variables(name)
            case ast.EventGroup(graph=ast.Var(name)) | ast.EventDeclaration(ast.Var(name)):
                others.add(name)
    kinds = dict.fromkeys(subjects - others - binders.keys(), SUBJECT)
    computed = {name: found for name, found in binders.items() if name not in subjects | others}
    for _ in range(3):  # a BIND may read what another one binds
        for name, found in computed.items():
            each = {kind_of(expression, kinds) for expression in found}
            if len(each) == 1 and (kind := each.pop()):
                kinds[name] = kind
    return kinds


def kind_doubts(query: ast.Query, source: Source, bound: Kinds) -> Iterator[Diagnostic]:
    """The warnings about a query; ``bound`` are the kinds of its variables (``bound_kinds``)."""
    teller = _Teller(source)
    waiting: list[tuple[Any, Kinds]] = [(query, bound)]
    while waiting:
        node, kinds = waiting.pop()
        below = [part for part in ast.children(node) if part is not None and not isinstance(part, str | int)]
        match node:
            case ast.Query(where=where) if where is not None:
                passed = _narrowed(where, bound)
                waiting += [(part, bound if part is where else passed) for part in reversed(below)]
            case ast.Group():
                waiting += [(part, _narrowed(node, bound)) for part in reversed(below)]
            case tuple() | ast.Select() | ast.Projection() | ast.OrderKey() | ast.Filter() | ast.Bind():
                waiting += [(part, kinds) for part in reversed(below)]
            case _ if isinstance(node, _EXPRESSIONS):
                waiting += [(part, kinds) for part in reversed(below)]
            case _:
                waiting += [(part, bound) for part in reversed(below)]
        if isinstance(node, _TOLD) or hasattr(node, "condition"):
            yield from teller.told(node, kinds)


def _narrowed(pattern: Any, bound: Kinds) -> Kinds:
    """The kinds that variables have in the solutions of a pattern, as its filters let no others through."""
    narrower: dict[str, str] = {}
    waiting = [pattern]
    while waiting:
        match waiting.pop():
            case ast.Group(elements):
                waiting += reversed(elements)
            case ast.Filter(condition):
                for part in conjuncts(condition):
                    for name, kind in _asked_for(part, bound):
                        if name not in bound:
                            narrower.setdefault(name, kind)
            case other:
                waiting += reversed(mandatory_parts(other))
    return ChainMap(narrower, bound) if narrower else bound  # type: ignore[arg-type]  # neither is changed


def _asked_for(condition: Any, bound: Kinds) -> Iterator[tuple[str, str]]:
    """The variables that must be of a kind, or the condition is an error."""
    nodes = [condition]
    for node in nodes:
        nodes += children(node)
    if is_forgiving(condition) or any(isinstance(n, ast.In) or getattr(n, "operator", "") == "&&" for n in nodes):
        return
    for node in nodes:
        match node:
            case ast.Binary(operator, left, right) if operator in ORDERED | {"+", "-"}:
                for side, other in ((left, right), (right, left)):
                    kind = kind_of(other, bound)
                    ordered = operator in ORDERED and kind not in ("", OTHER, *_UNORDERED)
                    if isinstance(side, ast.Var) and (ordered or kind == NUMBER):
                        yield side.name, kind
            case ast.Call(_, arguments):
                for kinds, argument in zip(taken(node), arguments, strict=False):
                    if isinstance(argument, ast.Var) and len(kinds) == 1:
                        yield argument.name, next(iter(kinds))


class _Teller:
    """Says what is wrong with one node, given the kinds of the variables in it."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def told(self, node: Any, kinds: Kinds) -> Iterator[Diagnostic]:
        match node:
            case ast.Binary(operator) if operator in ARITHMETIC:
                yield from self.calculation(node, kinds)
            case ast.Binary("&&" | "||", left, right):
                yield from self.condition(left, kinds)
                yield from self.condition(right, kinds)
            case ast.Binary():
                yield from self.comparison(node, node.operator, node.left, node.right, kinds)
            case ast.Unary("!", operand):
                yield from self.condition(operand, kinds)
            case ast.Unary(_, operand) if (kind := kind_of(operand, kinds)) in _NEVER_CALCULATED | {TIME}:
                yield self._no_calculation(node, operand, kind)
            case ast.In(operand, choices):
                for choice in choices:
                    yield from self.comparison(choice, "=", operand, choice, kinds)
            case ast.Call() | ast.FunctionCall():
                yield from self.call(node, kinds)
            case ast.Aggregate("SUM" | "AVG", ast.Spanned() as operand):
                yield from self.added(node, operand, kinds)
            case ast.Query(having=having):
                for condition in having:
                    yield from self.condition(condition, kinds)
        asked = getattr(node, "condition", None)
        if isinstance(asked, ast.Spanned):
            yield from self.condition(asked, kinds)

    def condition(self, e: Any, kinds: Kinds) -> Iterator[Diagnostic]:
        """What is neither true nor false."""
        kind = kind_of(e, kinds)
        if kind and kind != OTHER and kind not in CONDITION:  # an ill-formed number is of another kind, and false
            yield self._wrong(e, f"{self._text(e)} is {_a(kind)}, which is neither true nor false")

    def call(self, call: ast.Call | ast.FunctionCall, kinds: Kinds) -> Iterator[Diagnostic]:
        """An argument that the function never takes."""
        for accepted, argument in zip(taken(call), call.arguments, strict=False):
            kind, text = kind_of(argument, kinds), self._text(argument)
            name = call.name if isinstance(call, ast.Call) else f"xsd:{call.iri[1:-1].removeprefix(XSD)}"
            if takes(accepted, argument, kind):
                if isinstance(call, ast.FunctionCall) and _reads_no_value(call, argument):
                    yield self._wrong(call, f"{text} is no {name}")
                continue
            given = datatype_of_time(argument) if kind == TIME else ""
            cast = next((_CASTS[wanted] for wanted in sorted(accepted) if wanted in _CASTS), "")
            hint = f"write {cast}({text})" if cast and (cast == "STR" or kind == TEXT) and kind != TRIPLE else ""
            yield self._wrong(argument, f"{text} is {_a(given or kind)}, and {name} takes {_one_of(accepted)}", hint)

    def calculation(self, node: ast.Binary, kinds: Kinds) -> Iterator[Diagnostic]:
        """A calculation with values that it is not defined for, or with a date that is a difference."""
        if node.operator == "-" and _DATE.fullmatch(text := self._text(node)):
            message = f"{text} is a number here, the difference of three"
            hint = f'a date is written "{text}"^^xsd:date, a time "{text}T00:00:00Z"^^xsd:dateTime'
            yield self._warning(node, message, hint)
            return
        left, right = kind_of(node.left, kinds), kind_of(node.right, kinds)
        for kind, side in ((left, node.left), (right, node.right)):
            if kind in _NEVER_CALCULATED:
                yield self._no_calculation(node, side, kind)
                return
        if left == right == TIME and node.operator == "-":
            one, other = datatype_of_time(node.left), datatype_of_time(node.right)
            if one and other and one != other:
                yield self._wrong(node, self._differ(node.left, node.right, one, other), _hint(one, other))
        elif not can_be_computed(left, node.operator, right):
            if left and right and left != right and node.operator in ("+", "-"):
                yield self._wrong(node, self._differ(node.left, node.right, left, right), _hint(left, right))
            else:
                message = f"{node.operator} is not defined for {_a(left or 'value')} and {_a(right or 'value')}"
                yield self._wrong(node, message)

    def comparison(self, node: Any, operator: str, one: Any, other: Any, kinds: Kinds) -> Iterator[Diagnostic]:
        """A comparison of values of kinds that have no order, or that are never equal."""
        left, right = kind_of(one, kinds), kind_of(other, kinds)
        if operator in ORDERED:
            for kind, side in ((left, one), (right, other)):
                if kind in _UNORDERED and (not left or not right or left == right or kind == IRI):
                    plural = {IRI: "IRIs", SUBJECT: "IRIs", TRIPLE: "triples"}.get(kind, "these")
                    yield self._wrong(node, f"{self._text(side)} is {_a(kind)}, and {plural} have no order")
                    return
        if left == right == TIME:
            left, right = datatype_of_time(one), datatype_of_time(other)
        if left and left == right and left in ("date", "time"):
            yield from self.zones(node, operator, one, other)
        if not left or not right or left == right or OTHER in (left, right) or {left, right} == {SUBJECT, IRI}:
            return
        if operator in ORDERED:
            yield self._wrong(node, self._differ(one, other, left, right), _hint(left, right))
        else:
            message = f"{self._differ(one, other, left, right)}: they are never equal"
            yield self._warning(node, message, _hint(left, right))

    def zones(self, node: Any, operator: str, one: Any, other: Any) -> Iterator[Diagnostic]:
        """A date or time with a zone and one without: within 14 hours, neither is known to be the earlier one."""
        zoned = _has_zone(one), _has_zone(other)
        if None in zoned or zoned[0] == zoned[1]:
            return
        with_zone, without = (one, other) if zoned[0] else (other, one)
        message = f"{self._text(with_zone)} has a time zone and {self._text(without)} has none: "
        message += (
            "this is an error if they are at most 14 hours apart" if operator in ORDERED else "they are never equal"
        )
        hint = "write the zone of the other, too, such as Z for UTC" if isinstance(without, ast.Term) else ""
        yield self._warning(node, message, hint)

    def added(self, aggregate: ast.Aggregate, operand: Any, kinds: Kinds) -> Iterator[Diagnostic]:
        """SUM and AVG of what is no number: they have no value then, and nothing else says so."""
        kind = kind_of(operand, kinds)
        if kind in ("", NUMBER):
            return
        text = self._text(operand)
        message = f"{text} is {_a(kind)}, and {aggregate.name} takes numbers only: it has no value"
        hint = f'divide it by a unit: {text} / "PT1S"^^xsd:dayTimeDuration' if kind == DURATION else ""
        yield self._warning(operand, message, hint)

    def _no_calculation(self, node: Any, side: Any, kind: str) -> Diagnostic:
        hint = _hint(SUBJECT, NUMBER) if kind == SUBJECT else ""
        return self._wrong(node, f"{self._text(side)} is {_a(kind)}, which cannot be calculated with", hint)

    def _differ(self, one: Any, other: Any, left: str, right: str) -> str:
        return f"{self._text(one)} is {_a(left)}, {self._text(other)} {_a(right)}"

    def _wrong(self, node: Any, message: str, hint: str = "") -> Diagnostic:
        return self._warning(node, f"{message}: this can only be an error", hint)

    def _warning(self, node: Any, message: str, hint: str = "") -> Diagnostic:
        span = node.span
        return self.source.diagnostic("warning", "type-error", message, span.start, span.end, hint=hint)

    def _text(self, node: Any) -> str:
        return self.source.excerpt(node.span.start, node.span.end)


def _has_zone(e: Any) -> bool | None:
    """Whether a date or time has a zone; None if the text does not say so."""
    match e:
        case ast.Call("GETSTARTTIME" | "GETENDTIME" | "NOW"):
            return True
        case ast.Term(spelling) if is_literal(spelling):
            return _ZONE.fullmatch(parts(spelling)[0]) is not None
        case ast.FunctionCall(_, (argument,)):
            return _has_zone(argument)
    return None


def _reads_no_value(call: ast.FunctionCall, argument: Any) -> bool:
    """Whether a cast is given a text that is no value of its datatype; white space around it does not count."""
    if not isinstance(argument, ast.Term) or kind_of(argument) != TEXT:
        return False
    text, _, language = parts(argument.spelling)
    return not language and bool(no_value(literal(text.strip(_WHITE), call.iri[1:-1])))


def _a(kind: str) -> str:
    return _WORDS.get(kind, f"a {kind}")


def _one_of(kinds: frozenset[str]) -> str:
    """The kinds that a function takes, in words."""
    if OTHER in kinds:
        return "an IRI or a literal" if IRI in kinds else "a literal"
    *most, last = (_a(kind) for kind in sorted(kinds))
    return f"{', '.join(most)} or {last}" if most else last


def _hint(left: str, right: str) -> str:
    if SUBJECT in (left, right):
        return "the subject of a triple is an IRI: write :acme for <http://example.org/acme>"
    if {left, right} == {"duration", "text"}:
        return 'give the duration its type: "P30D"^^xsd:duration'
    if {left, right} == {"duration", NUMBER}:
        return 'write the number as a duration: "PT30S"^^xsd:duration'
    if {left, right} == {"dateTime", "date"}:
        return 'compare with a time of that day: "2024-01-01T00:00:00Z"^^xsd:dateTime'
    if {left, right} == {"time", "text"}:
        return 'give the time its type: "2024-01-01T00:00:00Z"^^xsd:dateTime'
    return ""
