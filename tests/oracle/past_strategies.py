"""Rules whose rows may end before the instant in which they are known, and what reads the events they derive."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from etalis_compiler import ast
from hypothesis import strategies as st

from .drawing import LIKELY, Draw, Palette, Pen, one_of_these
from .strategies import ABSENCE, DERIVED, LONG, NO_BACKGROUND, OUTER, RELATIONS, Case, selects, streams

SHORT = ("PT1S", "PT2S", "PT2S", "PT3S")
READ = (*DERIVED[:1] * 4, DERIVED[1], "<urn:p>")
INNER = Palette(bind=False, values=False, within=False, subselect=False, apart=True, open=False)


@st.composite
def leaving(draw: Draw[Any], reads: tuple[str, ...] = LIKELY, made: str = DERIVED[0]) -> ast.Query:
    """CONSTRUCT {?x d ?n} [AT END] over groups of a window in time, or over the first few of all groups."""
    pen = Pen(draw, replace(INNER, predicates=reads), patterns=draw(one_of_these((1, 1, 2))))
    where = pen.group(draw(one_of_these((0, 0, 1))))
    subject = ast.Var("x")
    function = draw(one_of_these(("COUNT", "COUNT", "SUM", "MIN", "MAX")))
    counted = ast.Aggregate(function, None if function == "COUNT" else ast.Var("y"))
    shown = (ast.Projection(subject), ast.Projection(ast.Var("n"), counted))
    inner = ast.Query(ast.Select(shown), where, group_by=(subject,))
    kind = draw(one_of_these(("window", "window", "window", "limit", "both")))
    if kind != "limit":
        inner = replace(inner, within=ast.Duration("duration", draw(one_of_these(SHORT))))
    if kind != "window":
        order = (ast.OrderKey(ast.Var("n"), draw(st.booleans())), ast.OrderKey(subject, False))
        inner = replace(inner, order_by=order, limit=draw(one_of_these((1, 1, 2))))
    template = [ast.TriplePattern(subject, ast.Term(made), ast.Var("n"))]
    if pen.chance(4):
        template.append(ast.TriplePattern(subject, ast.Term("<urn:also>"), ast.Var("n")))
    return ast.Query(ast.Construct(tuple(template), pen.chance(3)), ast.Group((inner,)))


@st.composite
def handing_on(draw: Draw[Any]) -> ast.Query:
    """CONSTRUCT {?x e ?y} over such events and others."""
    pen = Pen(draw, replace(INNER, predicates=READ, optionals=OUTER, minus=True), patterns=draw(one_of_these((1, 2))))
    where = pen.group(draw(one_of_these((0, 1))))
    used = sorted(set(pen.used)) or ["x"]
    made = ast.TriplePattern(ast.Var(used[0]), ast.Term(DERIVED[1]), ast.Var(pen.pick(used)))
    return ast.Query(ast.Construct((made,), pen.chance(3)), where)


def read_by(palette: Palette, policies: tuple[str, ...] = ("unrestricted",)) -> st.SearchStrategy[Case]:
    """One or two such rules, perhaps one that hands on, and a query over all."""
    first = st.tuples(leaving())
    again = leaving((*DERIVED[:1] * 3, "<urn:p>"), DERIVED[1])
    second = st.one_of(st.just(()), st.tuples(handing_on()), st.tuples(again))
    query = st.tuples(selects(replace(palette, predicates=READ), depth=1))
    program = st.builds(lambda *parts: ast.Document(tuple(q for part in parts for q in part)), first, second, query)
    events = st.one_of(streams(5, 10), streams(5, 10, lengths=LONG))
    return st.builds(Case, program, events, st.just(NO_BACKGROUND), one_of_these(policies))


def plainly() -> st.SearchStrategy[Case]:
    """Read by basic graph patterns, SEQ, AND, UNION, relations, BIND, WITHIN and sub-SELECTs."""
    palette = Palette(pairs=("SEQ", "SEQ", "AND", "UNION", "EQUALS", *RELATIONS), apart=True, gathering=True)
    return read_by(palette)


def by_negation() -> st.SearchStrategy[Case]:
    """Read by OPTIONAL and its like, MINUS and EXISTS."""
    return read_by(replace(INNER, optionals=OUTER, minus=True, exists=True))


def by_paths() -> st.SearchStrategy[Case]:
    return read_by(Palette(paths=True, pairs=("SEQ", "AND"), subselect=False, values=False))


def by_whole_events() -> st.SearchStrategy[Case]:
    return read_by(replace(INNER, events=True))


def by_what_decides() -> st.SearchStrategy[Case]:
    """Read by NEXT, NOT, SEQ NOT, SEQ OPTIONAL, REPEAT and SKIP, and by what stands beside them."""
    return read_by(
        replace(INNER, pairs=("SEQ", "NEXT", "NEXT", "NOT", "AND"), absence=ABSENCE, exists=True, optionals=OUTER)
    )


def by_policies() -> st.SearchStrategy[Case]:
    palette = replace(INNER, pairs=("SEQ", "SEQ", "EQUALS", "AND", "UNION"))
    return read_by(palette, ("recent", "chronological"))


@st.composite
def _aggregates_of_rows(draw: Draw[Any]) -> ast.Query:
    """An aggregate over the rows of one whose rows may end before their instant."""
    rule = draw(leaving())
    assert rule.where is not None
    function = draw(one_of_these(("COUNT", "SUM", "MAX", "AVG")))
    shown = (ast.Projection(ast.Var("m"), ast.Aggregate(function, ast.Var("n"))),)
    keys = draw(one_of_these(((), ("x",), ("n",))))
    shown = (*(ast.Projection(ast.Var(key)) for key in keys), *shown)
    within = draw(
        st.one_of(
            st.sampled_from(SHORT).map(lambda length: ast.Duration("duration", length)),
            st.integers(1, 3).map(lambda count: ast.Duration("EVENTS", count=count)),
            st.none(),
        )
    )
    return ast.Query(ast.Select(shown), rule.where, group_by=tuple(map(ast.Var, keys)), within=within)


def by_aggregates() -> st.SearchStrategy[Case]:
    """Aggregates over aggregates, without a rule between them."""
    events = st.one_of(streams(5, 10), streams(5, 10, lengths=LONG))
    return st.builds(Case, _aggregates_of_rows().map(lambda query: ast.Document((query,))), events)


ALL = {
    f.__name__: f
    for f in (plainly, by_negation, by_paths, by_whole_events, by_what_decides, by_policies, by_aggregates)
}
