"""Terms, paths and expressions as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from etalis_rules.terms import RDF_TYPE, XSD, is_iri, is_triple, literal, parts, triple_parts

from ..ast import (
    Aggregate,
    Binary,
    Blank,
    Call,
    Exists,
    Expression,
    FunctionCall,
    Group,
    In,
    Node,
    Path,
    PathAlternative,
    PathInverse,
    PathIri,
    PathNegated,
    PathRepeat,
    PathSequence,
    Term,
    TriplePattern,
    TripleTerm,
    TripleTime,
    Unary,
    Var,
)
from ..lexing import CAMEL

_LOCAL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*")
_BARE = {
    "integer": re.compile(r"[+-]?[0-9]+"),
    "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    "double": re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)[eE][+-]?[0-9]+"),
    "boolean": re.compile(r"true|false"),
}
_STRENGTH = {"||": 1, "&&": 2, "=": 3, "!=": 3, "<": 3, ">": 3, "<=": 3, ">=": 3, "+": 4, "-": 4, "*": 5, "/": 5}
_IN, _UNARY, _PRIMARY = 3, 6, 7


class TermPrinter:
    def __init__(self, prefixes: Mapping[str, str]):
        longest = sorted(prefixes.items(), key=lambda item: -len(item[1]))
        self._prefixes = [(namespace, prefix) for prefix, namespace in longest if namespace]

    # --- terms ---

    def iri(self, spelling: str) -> str:
        inner = spelling[1:-1]
        for namespace, prefix in self._prefixes:
            if inner.startswith(namespace) and _LOCAL.fullmatch(inner, len(namespace)):
                return f"{prefix}:{inner[len(namespace) :]}"
        return spelling

    def term(self, spelling: str) -> str:
        if is_iri(spelling):
            return self.iri(spelling)
        if is_triple(spelling):
            return f"<<( {' '.join(map(self.term, triple_parts(spelling)))} )>>"
        lexical, datatype, language = parts(spelling)
        if not datatype or language:
            return spelling
        if datatype.startswith(XSD):
            bare = _BARE.get(datatype[len(XSD) :])
            if bare and bare.fullmatch(lexical):
                return lexical
        return f"{literal(lexical)}^^{self.iri(f'<{datatype}>')}"

    def node(self, node: Node) -> str:
        match node:
            case Var(name=name):
                return f"?{name}"
            case Blank(label=label):
                return f"_:{label}"
            case Term(spelling=spelling):
                return self.term(spelling)
            case TripleTerm(subject=subject, predicate=predicate, object=object):
                return f"<<( {self.node(subject)} {self.node(predicate)} {self.node(object)} )>>"

    def triple(self, pattern: TriplePattern) -> str:
        return f"{self.node(pattern.subject)} {self.verb(pattern.predicate)} {self.node(pattern.object)}"

    # --- paths ---

    def verb(self, verb: Var | Term | Path) -> str:
        if isinstance(verb, Term):
            return "a" if verb.spelling == RDF_TYPE else self.iri(verb.spelling)
        return self.node(verb) if isinstance(verb, Var) else self.path(verb, 0)

    def path(self, path: Path, strength: int) -> str:
        """``strength`` is that of the surroundings: 1 inside ``|``, 2 inside ``/``, 3 after ``^``, 4 before a mark."""
        match path:
            case PathIri(iri=iri):
                return "a" if iri == RDF_TYPE else self.iri(iri)
            case PathAlternative(parts=several):
                text, own = "|".join(self.path(p, 1) for p in several), 0
            case PathSequence(parts=several):
                text, own = "/".join(self.path(p, 2) for p in several), 1
            case PathInverse(path=inner):
                text, own = "^" + self.path(inner, 3), 2
            case PathRepeat(path=inner, mark=mark):
                text, own = self.path(inner, 4) + mark, 3
            case PathNegated(forward=forward, inverse=inverse):
                names = [self.path(PathIri(i), 4) for i in forward] + ["^" + self.path(PathIri(i), 4) for i in inverse]
                return f"!({'|'.join(names)})"
        return text if own >= strength else f"({text})"

    # --- expressions ---

    def expression(self, expression: Expression, strength: int = 0) -> str:
        """``strength`` is what the surroundings need: anything weaker gets parentheses."""
        text, own = self._expression(expression)
        return text if own >= strength else f"({text})"

    def _expression(self, expression: Expression) -> tuple[str, int]:
        match expression:
            case Var() | Term():
                return self.node(expression), _PRIMARY
            case Binary(operator=operator, left=left, right=right):
                own = _STRENGTH[operator]
                lean = own + 1 if own == _IN else own  # comparisons do not chain, the others lean to the left
                return f"{self.expression(left, lean)} {operator} {self.expression(right, own + 1)}", own
            case In(operand=operand, choices=choices, negated=negated):
                word = "NOT IN" if negated else "IN"
                return f"{self.expression(operand, _IN + 1)} {word} ({self._list(choices)})", _IN
            case Unary(operator=operator, operand=operand):
                gap = "" if operator == "!" else " "  # "-5" is a number, "- 5" an operation on one
                return f"{operator}{gap}{self.expression(operand, _PRIMARY)}", _UNARY
            case Call(name=name, arguments=arguments):
                return f"{CAMEL.get(name, name)}({self._list(arguments)})", _PRIMARY
            case FunctionCall(iri=iri, arguments=arguments, distinct=distinct):
                return f"{self.iri(iri)}({'DISTINCT ' if distinct else ''}{self._list(arguments)})", _PRIMARY
            case Aggregate():
                return self._aggregate(expression), _PRIMARY
            case Exists(group=group, negated=negated):
                return f"{'NOT ' if negated else ''}EXISTS {self.inline(group)}", _PRIMARY
            case TripleTime(pattern=pattern):
                return f"timestamp({self.triple(pattern)})", _PRIMARY

    def _list(self, expressions: Iterable[Expression]) -> str:
        return ", ".join(self.expression(e) for e in expressions)

    def _aggregate(self, aggregate: Aggregate) -> str:
        inner = "*" if aggregate.operand is None else self.expression(aggregate.operand)
        if aggregate.separator is not None:
            inner += f" ; SEPARATOR = {literal(aggregate.separator)}"
        return f"{aggregate.name}({'DISTINCT ' if aggregate.distinct else ''}{inner})"

    def inline(self, group: Group) -> str:
        """A group on one line."""
        return " ".join(line.strip() for line in self.group(group))

    def group(self, group: Group) -> list[str]:
        raise AssertionError("PatternPrinter gives it")
