"""Triple patterns and property paths to algebra: a written block is a set of solutions over all its variables.

Paths are expanded as in SPARQL 1.1 §18.2.2.4: a sequence gets a middle node, alternatives become a union; repeated and
negated paths stay paths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count
from typing import TypeVar

from etalis_rules import algebra as alg

from . import ast
from .quoting import quoted
from .unsupported import Fault


@dataclass(slots=True)
class FreshNames:
    """Makes fresh variable names; one instance for each query."""

    count: int = 0

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f".{kind}{self.count}"


@dataclass(frozen=True, slots=True)
class Scope:
    """The settings that a pattern inherits from the groups around it.

    ``timeless``: solutions have no interval there, as in a query over windows.
    """

    names: FreshNames
    stream: str = ""
    graph: alg.Var | alg.Const | None = None
    timeless: bool = False


def error(span: ast.Span, code: str, message: str, hint: str = "") -> Fault:
    """A fault at a place of the source text."""
    return Fault(code, message, hint, span)


def node_of(node: ast.Node) -> alg.Var | alg.Const:
    match node:
        case ast.Var(name):
            return alg.Var(name)
        case ast.Blank(label):
            return alg.Var("_:" + label)
        case ast.Term(spelling):
            return alg.Const(spelling)
        case ast.TripleTerm():
            raise TypeError(f"a triple term is expanded where it is written: {node!r}")


FEW_PARTS = 16  # associative operators over more parts than this become a balanced tree, to be less deep
MAX_ALTERNATIVES = 256  # each combination of the alternatives of a block's paths becomes a block of its own

_Tree = TypeVar("_Tree")
Item = alg.Triple | alg.PathPattern


def block_of(patterns: tuple[ast.TriplePattern, ...], scope: Scope) -> alg.Pattern:
    """Adjacent triple patterns: one set of solutions for each choice among the alternatives of their paths."""
    choices: list[tuple[Item, ...]] = [()]
    terms: dict[str, ast.TripleTerm] = {}
    for p in patterns:
        p = _hiding(p, terms, scope)
        if len(choices) * _count_ways(p) > MAX_ALTERNATIVES:
            raise error(
                p.span,
                "path-alternatives",
                f"the alternatives of the paths in this block multiply to more than {MAX_ALTERNATIVES} combinations",
                "put a path with many alternatives into a group of its own, or write the alternatives as a variable: "
                "?a ?p ?b FILTER (?p IN (…))",
            )
        ways = _expand(p, scope)
        choices = [(*before, *way) for before in choices for way in ways]
    return balanced(alg.Union, [_items(choice, terms, scope) for choice in choices])


def _hiding(p: ast.TriplePattern, terms: dict[str, ast.TripleTerm], scope: Scope) -> ast.TriplePattern:
    """The pattern with hidden variables for its triple terms, which are recorded in ``terms``."""

    def hidden(node: ast.Node) -> ast.Node:
        if not isinstance(node, ast.TripleTerm):
            return node
        name = scope.names.fresh(alg.TRIPLE_TERM[1:])
        terms[name] = node
        return ast.Var(name, span=node.span)

    if not isinstance(p.subject, ast.TripleTerm) and not isinstance(p.object, ast.TripleTerm):
        return p
    return replace(p, subject=hidden(p.subject), object=hidden(p.object))


def _in_order(items: tuple[Item, ...], terms: dict[str, ast.TripleTerm], scope: Scope) -> alg.Pattern:
    """The items in the order written, so that the bindings of a triple term are joined with the items around it."""
    fresh = (scope.names.fresh(alg.TRIPLE_TERM[1:]) for _ in count())
    result: alg.Pattern = alg.UNIT
    plain: list[alg.Triple] = []
    for item in items:
        names = [n.name for n in (item.subject, item.object) if isinstance(n, alg.Var) and n.name in terms]
        if isinstance(item, alg.Triple) and not names:
            plain.append(item)
            continue
        if plain:
            result = alg.conjoin(result, alg.BGP(tuple(plain), scope.stream, scope.graph))
            plain = []
        own: alg.Pattern = alg.BGP((item,), scope.stream, scope.graph) if isinstance(item, alg.Triple) else item
        for name in names:
            own = quoted(own, name, terms[name], fresh)
        result = alg.conjoin(result, own)
    if plain:
        result = alg.conjoin(result, alg.BGP(tuple(plain), scope.stream, scope.graph))
    return result


def _items(items: tuple[Item, ...], terms: dict[str, ast.TripleTerm], scope: Scope) -> alg.Pattern:
    if terms:
        ordered = _in_order(items, terms, scope)
        return alg.Block(ordered) if isinstance(ordered, alg.Join) else ordered
    triples = tuple(item for item in items if isinstance(item, alg.Triple))
    result: alg.Pattern = alg.BGP(triples, scope.stream, scope.graph) if triples else alg.UNIT
    for item in items:
        if isinstance(item, alg.PathPattern):
            result = alg.conjoin(result, item)
    return alg.Block(result) if isinstance(result, alg.Join) else result


def _expand(p: ast.TriplePattern, scope: Scope) -> list[tuple[Item, ...]]:
    subject, object = node_of(p.subject), node_of(p.object)
    if isinstance(p.predicate, (ast.Var, ast.Term)):
        return [(alg.Triple(subject, node_of(p.predicate), object),)]
    return _path(subject, path(p.predicate), object, scope)


def path(source: ast.Path) -> alg.Path:
    """A syntactic path as an algebraic one, with binary sequences and alternatives, and inverses pushed inwards."""
    match source:
        case ast.PathIri(iri):
            return alg.Step(iri)
        case ast.PathInverse(inner):
            return alg.invert(path(inner))
        case ast.PathSequence(parts):
            return balanced(alg.Chain, [path(part) for part in parts])
        case ast.PathAlternative(parts):
            return balanced(alg.Choice, [path(part) for part in parts])
        case ast.PathRepeat(inner, mark):
            repeated = path(inner)
            # One step may be none at all: (p*)+ is p*, with its rule for the way back to a constant.
            least = 1 if mark == "+" and not alg.may_be_empty(repeated) else 0
            return alg.Repeated(repeated, least, mark != "?")
        case ast.PathNegated(forward, inverse):
            if inverse and forward:
                return alg.Choice(alg.NotAny(forward), alg.Inverse(alg.NotAny(inverse)))
            return alg.Inverse(alg.NotAny(inverse)) if inverse else alg.NotAny(forward)
    raise TypeError(f"not a path: {source!r}")


def balanced(operator: Callable[[_Tree, _Tree], _Tree], parts: Sequence[_Tree]) -> _Tree:
    """The parts under an associative operator: a chain from the left, or a balanced tree if there are many."""
    if len(parts) <= FEW_PARTS:
        return reduce(operator, parts)
    middle = len(parts) // 2
    return operator(balanced(operator, parts[:middle]), balanced(operator, parts[middle:]))


def _count_ways(p: ast.TriplePattern) -> int:
    """The number of ways that ``_expand`` would find, without finding them: they multiply along a path."""
    return 1 if isinstance(p.predicate, (ast.Var, ast.Term)) else _ways(path(p.predicate))


def _ways(p: alg.Path) -> int:
    match p:
        case alg.Chain(first, second):
            return _ways(first) * _ways(second)
        case alg.Choice(first, second):
            return _ways(first) + _ways(second)
        case alg.Inverse(inner):
            return _ways(inner)
    return 1


def _path(
    subject: alg.Var | alg.Const, p: alg.Path, object: alg.Var | alg.Const, scope: Scope
) -> list[tuple[Item, ...]]:
    """SPARQL 1.1 §18.2.2.4: sequences get a middle node, alternatives become a union; the rest stays a path."""
    match p:
        case alg.Step(iri):
            return [(alg.Triple(subject, alg.Const(iri), object),)]
        case alg.Inverse(alg.Step(iri)):
            return [(alg.Triple(object, alg.Const(iri), subject),)]
        case alg.Inverse(inner):
            return _path(object, inner, subject, scope)
        case alg.Chain(first, second):
            middle = alg.Var("_:" + scope.names.fresh("p"))
            ahead, behind = _path(subject, first, middle, scope), _path(middle, second, object, scope)
            return [(*a, *b) for a in ahead for b in behind]
        case alg.Choice(first, second):
            return [*_path(subject, first, object, scope), *_path(subject, second, object, scope)]
    return [(alg.PathPattern(subject, p, object, scope.stream, scope.graph),)]
