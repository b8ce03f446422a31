"""Triple terms with variables ([SPARQL 1.2 Query] §18.1.3): what they mean in patterns.

Definition.  ``?r :says <<( ?s :p ?o )>>`` matches the triples whose object is a triple term that the inner triple
matches.  A hidden variable stands for the term, and its parts are extracted:

    BGP{?r :says ?t} with isTRIPLE(?t), sameTerm(PREDICATE(?t), :p), ?s := SUBJECT(?t), ?o := OBJECT(?t)

A part that the rest of the pattern binds is joined by its variable.  A triple term without a variable is a constant
like any other.  A term whose subject is a literal or a triple term is none that RDF has, so it matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from etalis_rules import algebra as alg

from . import ast

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
