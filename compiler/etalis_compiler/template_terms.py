"""Triple terms in CONSTRUCT templates ([SPARQL 1.2 Query] §16.2): where their values come from.

Definition.  A term without blank nodes has the value of ``TRIPLE(?s, :p, ?o)`` in the solution: a hidden variable of
the pattern holds it.  A blank node in a template is a new node for each solution, so a term that holds one,
``<<( ?s :p _:b )>>``, is made together with the node (``ir.NewTerm``).  Where no triple could have the parts, the
template makes no triple.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.terms import is_iri

from . import ast
from .triple_blocks import node_of


def template_patterns(query: ast.Query) -> tuple[ast.TriplePattern, ...]:
    """The triples of the CONSTRUCT template; the short form repeats the pattern.

    A triple whose subject is a literal or a triple term is no RDF: no solution makes it (SPARQL §16.2).
    """
    if not isinstance(query.form, ast.Construct):
        return ()
    written: Iterable[ast.TriplePattern]
    if query.form.template is not None:
        written = query.form.template
    else:
        elements = query.where.elements if query.where is not None else ()
        written = (p for e in elements if isinstance(e, ast.Triples) for p in e.patterns)
    return tuple(p for p in written if _can_be_subject(p.subject))


def _can_be_subject(node: ast.Node) -> bool:
    return is_iri(node.spelling) if isinstance(node, ast.Term) else not isinstance(node, ast.TripleTerm)


def template_node(node: ast.Node) -> alg.Var | alg.Const:
    """A node of a template: the hidden variable of a triple term, or what makes it for each solution."""
    if not isinstance(node, ast.TripleTerm):
        return node_of(node)
    return new_term(node) if holds_blank(node) else alg.Var(template_variable(node))


def holds_blank(node: ast.Node) -> bool:
    """Whether a blank node stands in the node, at any depth."""
    if isinstance(node, ast.TripleTerm):
        return holds_blank(node.subject) or holds_blank(node.object)
    return isinstance(node, ast.Blank)


def new_term(term: ast.TripleTerm) -> ir.NewTerm:
    """What makes the triple term for each solution.  No blank node that a user names can have its name."""
    inner = (term.subject, term.predicate, term.object)
    subject, predicate, object = (new_term(n) if isinstance(n, ast.TripleTerm) else node_of(n) for n in inner)
    return ir.NewTerm("_:<<" + template_variable(term), (subject, predicate, object))


def template_variable(term: ast.TripleTerm) -> str:
    """The hidden variable that holds a triple term of a template: the same for equal terms."""
    return alg.TRIPLE_TERM + blake2b(repr(term).encode(), digest_size=6).hexdigest()


def with_terms(pattern: alg.Pattern, template: Iterable[ast.TriplePattern]) -> alg.Pattern:
    """The pattern with the triple terms of a template."""
    terms = [n for t in template for n in (t.subject, t.object) if isinstance(n, ast.TripleTerm)]
    for term in dict.fromkeys(t for t in terms if not holds_blank(t)):
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
    raise TypeError(f"a blank node is made for each solution: {node!r}")
