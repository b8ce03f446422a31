"""Triple terms with variables ([SPARQL 1.2 Query] §18.1.3): what they mean in patterns and in templates.

Definition.  ``?r :says <<( ?s :p ?o )>>`` matches the triples whose object is a triple term that the inner triple
matches.  A hidden variable stands for the term, and its parts are extracted:

    BGP{?r :says ?t} with isTRIPLE(?t), sameTerm(PREDICATE(?t), :p), ?s := SUBJECT(?t), ?o := OBJECT(?t)

A part that the rest of the pattern binds is joined by its variable.  In a CONSTRUCT template a hidden variable holds
the value of TRIPLE(?s, :p, ?o).  A triple term without a variable is a constant like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from etalis_rules import algebra as alg

from . import ast
from .unsupported import Fault

PARTS = ("SUBJECT", "PREDICATE", "OBJECT")


def quoted(inner: alg.Pattern, hidden: str, term: ast.TripleTerm, fresh: Iterator[str]) -> alg.Pattern:
    """The pattern, in which ``hidden`` stands for the term, with the variables of the term."""
    pattern = inner
    waiting = [(hidden, term)]
    while waiting:
        name, this = waiting.pop()
        whole = alg.Var(name)
        tests: list[alg.Expr] = [alg.Apply("ISTRIPLE", (whole,))]
        binds: list[tuple[str, alg.Expr]] = []
        same: list[alg.Expr] = []
        bound = set(alg.scope(pattern))
        for part, node in zip(PARTS, (this.subject, this.predicate, this.object), strict=True):
            value: alg.Expr = alg.Apply(part, (whole,))
            match node:
                case ast.Term(spelling):
                    tests.append(alg.Apply("SAMETERM", (value, alg.Const(spelling))))
                    continue
                case ast.TripleTerm():
                    variable = next(fresh)
                    waiting.append((variable, node))
                case ast.Blank(label):
                    variable = "_:" + label
                case ast.Var(variable):
                    pass
            if variable in bound:
                same.append(alg.Apply("SAMETERM", (value, alg.Var(variable))))
            else:
                bound.add(variable)
                binds.append((variable, value))
        pattern = alg.Filter(pattern, tuple(tests))
        for variable, taken in binds:
            pattern = alg.Extend(pattern, variable, taken)
        if same:
            pattern = alg.Filter(pattern, tuple(same))
    return pattern


def template_variable(term: ast.TripleTerm) -> str:
    """The hidden variable that holds a triple term of a template: the same for equal terms."""
    return alg.TRIPLE_TERM + blake2b(repr(term).encode(), digest_size=6).hexdigest()


def with_terms(pattern: alg.Pattern, template: Iterable[ast.TriplePattern]) -> alg.Pattern:
    """The pattern with the triple terms of a template."""
    terms = [n for t in template for n in (t.subject, t.object) if isinstance(n, ast.TripleTerm)]
    for term in dict.fromkeys(terms):
        pattern = alg.Extend(pattern, template_variable(term), _made(term))
    return pattern


def _made(node: ast.Node) -> alg.Expr:
    match node:
        case ast.Var(name):
            return alg.Var(name)
        case ast.Term(spelling):
            return alg.Const(spelling)
        case ast.TripleTerm(subject, predicate, object):
            return alg.Apply("TRIPLE", (_made(subject), _made(predicate), _made(object)))
    raise Fault(
        "template-triple",
        "a blank node inside a triple term of a template is not supported",
        "make the node in the pattern: BIND(BNODE() AS ?b), and write ?b",
        node.span,
    )
