"""Tells queries that are evaluated over windows from EP-SPARQL queries."""

from __future__ import annotations

from . import ast


def is_windowed(query: ast.Query) -> bool:
    """Whether a query is evaluated over windows at evaluation times (else it is an EP-SPARQL query)."""
    if query.kind == "fact" or query.r2s or query.report is not None or any(c.kind != "graph" for c in query.dataset):
        return True
    marks = (ast.WindowGroup, ast.EventDeclaration, ast.Match, ast.TripleTime, ast.Current)
    return any(
        isinstance(n, marks) or (isinstance(n, ast.StreamGroup) and n.window is not None) for n in ast.walk(query)
    )
