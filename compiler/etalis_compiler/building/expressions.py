"""Expressions: operators, built-in calls, aggregates."""

from __future__ import annotations

from typing import Any

from ..ast import (
    Aggregate,
    Binary,
    Call,
    Exists,
    Expression,
    FunctionCall,
    In,
    PathIri,
    Span,
    Term,
    Unary,
    Var,
)
from ..lexing import BUILTINS, Token
from .terms import DEFAULT_VOCABULARY, TermBuilder

_COUNTS = {0: "no arguments", 1: "one argument", 2: "two arguments", 3: "three arguments", 4: "four arguments"}


class ExpressionBuilder(TermBuilder):
    def _binary(self, operator: str, left: Expression, right: Expression, start: int, end: int) -> Binary:
        return Binary(operator, left, right, span=Span(start, end))

    def or_(self, args: list[Any], start: int, end: int) -> Binary:
        return self._binary("||", args[0], args[1], start, end)

    def and_(self, args: list[Any], start: int, end: int) -> Binary:
        return self._binary("&&", args[0], args[1], start, end)

    def comparison(self, args: list[Any], start: int, end: int) -> str:
        return str(args[0].text)

    def compare(self, args: list[Any], start: int, end: int) -> Binary:
        return self._binary(args[1], args[0], args[2], start, end)

    def in_(self, args: list[Any], start: int, end: int) -> In:
        return In(args[0], args[1], False, span=Span(start, end))

    def not_in(self, args: list[Any], start: int, end: int) -> In:
        return In(args[0], args[1], True, span=Span(start, end))

    def add(self, args: list[Any], start: int, end: int) -> Binary:
        return self._binary("+", args[0], args[1], start, end)

    def subtract(self, args: list[Any], start: int, end: int) -> Binary:
        return self._binary("-", args[0], args[1], start, end)

    def signed_product(self, args: list[Any], start: int, end: int) -> tuple[str, Expression]:
        """``-1 * ?x`` after a sum: the sign acts as the operator, as in ``?y - 1 * ?x``."""
        token: Token = args[0]
        product: Expression = self.number_of(token.text[1:], token.start + 1, token.end)
        for operator, factor in zip(args[1::2], args[2::2], strict=True):
            product = self._binary(operator, product, factor, token.start + 1, factor.span.end)
        return token.text[0], product

    def add_signed(self, args: list[Any], start: int, end: int) -> Binary:
        sign, term = args[1]
        return self._binary(sign, args[0], term, start, end)

    def times_or_over(self, args: list[Any], start: int, end: int) -> str:
        return str(args[0].text)

    def multiply(self, args: list[Any], start: int, end: int) -> Binary:
        return self._binary(args[1], args[0], args[2], start, end)

    def not_(self, args: list[Any], start: int, end: int) -> Unary:
        return Unary("!", args[0], span=Span(start, end))

    def negative(self, args: list[Any], start: int, end: int) -> Unary:
        return Unary("-", args[0], span=Span(start, end))

    def positive(self, args: list[Any], start: int, end: int) -> Unary:
        return Unary("+", args[0], span=Span(start, end))

    # --- calls ---

    def expression_list(self, args: list[Any], start: int, end: int) -> tuple[Expression, ...]:
        return tuple(a for a in args if a is not None)

    def function_call_empty(self, args: list[Any], start: int, end: int) -> FunctionCall:
        return FunctionCall(args[0], (), span=Span(start, end))

    def function_call(self, args: list[Any], start: int, end: int) -> Expression:
        return FunctionCall(args[0], tuple(args[2:]), args[1] is not None, span=Span(start, end))

    def builtin_call(self, args: list[Any], start: int, end: int) -> Call:
        token, given = args
        name = token.text.upper()
        least, most = BUILTINS[name]
        if len(given) < least or (most is not None and len(given) > most):
            wanted = _COUNTS[least] if most == least else f"{least} to {most} arguments"
            self.fail(f"{token.text} takes {wanted}, not {len(given)}", start, end, code="arguments")
        if name == "BOUND" and not isinstance(given[0], Var):
            self.fail("BOUND takes a variable", start, end, code="arguments", hint="write BOUND(?x)")
        if name in ("IRI", "URI"):
            return Call("IRI", given, self.base or DEFAULT_VOCABULARY, span=Span(start, end))
        return Call("ISIRI" if name == "ISURI" else name, given, span=Span(start, end))

    def primary_triple(self, args: list[Any], start: int, end: int) -> Expression:
        subject, verb, object = args
        predicate = Term(verb.iri, span=verb.span) if isinstance(verb, PathIri) else verb
        nodes = (subject, predicate, object)
        if all(isinstance(node, Term) for node in nodes):
            return self.triple_term(args, start, end)  # type: ignore[return-value]
        return Call("TRIPLE", nodes, span=Span(start, end))

    def distinct(self, args: list[Any], start: int, end: int) -> bool:
        return True

    def aggregate(self, args: list[Any], start: int, end: int) -> Aggregate:
        name, distinct, operand = args
        return Aggregate(name.text.upper(), operand, bool(distinct), span=Span(start, end))

    def count(self, args: list[Any], start: int, end: int) -> Aggregate:
        return Aggregate("COUNT", args[1], bool(args[0]), span=Span(start, end))

    def count_all(self, args: list[Any], start: int, end: int) -> Aggregate:
        return Aggregate("COUNT", None, bool(args[0]), span=Span(start, end))

    def group_concat(self, args: list[Any], start: int, end: int) -> Aggregate:
        distinct, operand, separator = args
        return Aggregate("GROUP_CONCAT", operand, bool(distinct), separator, span=Span(start, end))

    def separator(self, args: list[Any], start: int, end: int) -> str:
        return self.string(args[0])

    def exists(self, args: list[Any], start: int, end: int) -> Exists:
        return Exists(args[0], False, span=Span(start, end))

    def not_exists(self, args: list[Any], start: int, end: int) -> Exists:
        return Exists(args[0], True, span=Span(start, end))
