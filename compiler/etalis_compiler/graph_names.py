"""GRAPH ?g: a group that is evaluated over each named graph by itself (SPARQL 1.1 §18.6)."""

from __future__ import annotations

from etalis_rules import algebra as alg


def by_name(
    graph: alg.Var, inner: alg.Var, pattern: alg.Pattern, filters: tuple[alg.Expr, ...]
) -> tuple[alg.Pattern, tuple[alg.Expr, ...]]:
    """A group whose parts are bound to the graph ``inner``, for each value of ``graph``.

    If every part of it is bound to the graph, joining the parts by ?g is equivalent, and can use an index.
    """
    whole = alg.filtered(pattern, filters)
    read = frozenset(n for part in alg.subpatterns(whole) for e in alg.expressions(part) for n in alg.variables(e))
    named = read.union(*map(alg.scope, alg.subpatterns(whole)))
    if graph.name not in named and all(map(_is_bound_to_graph, alg.subpatterns(whole))):
        names = {inner.name: graph.name}
        return alg.rename(pattern, names), alg.rename(filters, names)
    return alg.GraphNames(graph, inner, whole), ()


def _is_bound_to_graph(pattern: alg.Pattern) -> bool:
    """Whether a constant graph in this pattern means the same as a variable shared by all its parts."""
    match pattern:
        case alg.Minus() | alg.SubSelect() | alg.Table():
            return False
        case alg.GraphNames(_, _, child):
            return child is None
    return True
