"""START by itself: alone, in a UNION, joined, taken away, looked back at, and as what a rule derives first."""

from __future__ import annotations

from dataclasses import replace

from etalis_compiler import ast
from hypothesis import strategies as st

from .drawing import NODES, Palette, one_of_these
from .strategies import EVERYTHING, LONG, RULES, Case, document, programs, selects, streams

PLAIN = Palette(pairs=("SEQ", "AND", "UNION"), bind=False, values=False, subselect=False, optionals=())
WAYS = ("alone", "union", "join", "minus", "exists", "not exists")


def begun(query: ast.Query, way: str, node: str) -> ast.Query:
    """The query with START by itself beside its pattern."""
    point = ast.Group((ast.Start(), ast.Bind(ast.Term(node), ast.Var("x"))))
    assert query.where is not None
    match way:
        case "alone":
            where = ast.Group((point,))
        case "union":
            where = ast.Group((ast.Combined(ast.Operator.UNION, point, query.where),))
        case "join":
            where = ast.Group((ast.Group((ast.Start(),)), query.where))
        case "minus":
            where = ast.Group((query.where, ast.Minus(point)))
        case _:
            where = ast.Group((query.where, ast.Filter(ast.Exists(point, way == "not exists"))))
    return replace(query, where=where)


def start_by_itself() -> st.SearchStrategy[Case]:
    ways, nodes = one_of_these(WAYS), one_of_these(NODES)
    query = st.one_of(selects(PLAIN), selects(PLAIN, depth=2), selects(replace(EVERYTHING, start=True)))
    ruling = one_of_these(("unrestricted", "recent", "chronological"))
    events = st.one_of(streams(1, 8), streams(1, 8, lengths=LONG))
    one = st.builds(begun, query, ways, nodes).map(document)
    plain = st.builds(begun, selects(PLAIN), ways, nodes).map(document)
    several = st.builds(_rules_begun, programs(RULES), ways, nodes)
    return st.one_of(
        st.builds(Case, one, events),
        st.builds(Case, plain, events, policy=ruling),
        st.builds(Case, several, events),
    )


def _rules_begun(program: ast.Document, way: str, node: str) -> ast.Document:
    """The first rule derives from START, too."""
    first, *others = program.queries
    assert isinstance(first, ast.Query)
    return ast.Document((begun(first, way, node), *others))
