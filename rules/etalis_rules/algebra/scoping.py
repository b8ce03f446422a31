"""The variables that an expression reads, and those that a pattern binds."""

from __future__ import annotations

from collections.abc import Sequence

from ..roles import Role
from ..traversal import remembered
from .calls import VOLATILE, operators
from .nodes import (
    BGP,
    AggregateCall,
    Apply,
    Const,
    Exists,
    Expr,
    Extend,
    GraphNames,
    PathPattern,
    Pattern,
    Record,
    SubSelect,
    Table,
    Union,
    Var,
)
from .structure import agreed, children, expressions, own_variables, parts, subpatterns

TRIPLE_TERM = ".tt"
"""The prefix of hidden variables that stand for triple terms: a pattern binds them to nothing else."""
_PARTS = frozenset({"SUBJECT", "PREDICATE", "OBJECT"})


def is_visible(name: str) -> bool:
    """Whether it is a variable of the query's text, not a blank node or one that the compiler introduced."""
    return not name.startswith((".", "_:"))


def variables(expr: Expr) -> frozenset[str]:
    """The variables that an expression reads; an EXISTS reads all of its pattern that may be substituted in it."""
    match expr:
        case Var(name):
            return frozenset((name,))
        case Const():
            return frozenset()
        case Apply(_, args):
            return frozenset().union(*map(variables, args)) if args else frozenset()
        case Exists(pattern):
            read = (variables(e) for part in subpatterns(pattern) for e in expressions(part))
            return _substitutable(pattern).union(*read)


def _substitutable(pattern: Pattern) -> frozenset[str]:
    """The variables of a pattern, in scope or not (at the right of MINUS, in NOT), but of a sub-SELECT its own."""
    if isinstance(pattern, SubSelect):
        return scope(pattern)
    return scope(pattern).union(*map(_substitutable, children(pattern)))


def texts_after_having(having: Sequence[Expr], aggregates: Sequence[AggregateCall]) -> frozenset[str]:
    """The aggregates whose texts are made for the groups alone that HAVING lets through, by their variables.

    To make the text of a growing group at each event would take the square of its size.
    """
    if not having or any(operators(e) & {"EXISTS", *VOLATILE} for e in having):
        return frozenset()
    read = frozenset().union(*map(variables, having))
    return frozenset(a.variable for a in aggregates if a.name == "GROUP_CONCAT") - read


def node_variables(*nodes: Var | Const | None) -> frozenset[str]:
    return frozenset(n.name for n in nodes if isinstance(n, Var))


@remembered
def scope(pattern: Pattern) -> frozenset[str]:
    """The in-scope variables of a pattern (SPARQL 1.1 §18.2.1), blank-node ones included."""
    match pattern:
        case BGP(triples, _, graph):
            inner = (node_variables(t.subject, t.predicate, t.object) for t in triples)
            return node_variables(graph).union(*inner)
        case PathPattern(subject, _, object, _, graph):
            return node_variables(subject, object, graph)
        case GraphNames(graph, inner, child):
            return node_variables(graph) | (frozenset() if child is None else scope(child) - node_variables(inner))
        case Record(child, _, graph):
            return node_variables(graph) | scope(child)
    below = (scope(part.pattern) for part in parts(pattern) if part.binds)
    return frozenset(own_variables(pattern)).union(*below)


@remembered
def certain(pattern: Pattern) -> frozenset[str]:
    """The variables that every solution of the pattern binds."""
    match pattern:
        case GraphNames(graph, inner, child) if child is not None:
            return node_variables(graph) | (certain(child) - node_variables(inner))
        case Record(child, _, graph):
            return node_variables(graph) | certain(child)
        case BGP() | PathPattern() | GraphNames():
            return scope(pattern)
        case Table(names, rows):
            return frozenset(n for i, n in enumerate(names) if all(row[i] for row in rows))
        case Union(left, right):
            return certain(left) & certain(right)
        case Extend(child, variable, Apply(op, (Var(name),))) if op in _PARTS and name.startswith(TRIPLE_TERM):
            return certain(child) | {variable}
        case SubSelect(select):
            bound = certain(select.pattern)
            if select.grouped:
                bound &= frozenset(select.keys)
                bound |= {a.variable for a in select.aggregates if a.name == "COUNT"}
            return bound & frozenset(select.variables)
    # An error leaves the variable of a BIND unbound.
    below = parts(pattern)
    sides = (certain(part.pattern) for part in below if part.role is Role.SIDE)
    members = (certain(part.pattern).intersection(agreed(pattern)) for part in below if part.role is Role.MEMBER)
    return frozenset().union(*sides, *members)
