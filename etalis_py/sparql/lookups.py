"""Look-ups in the background, by the terms of the stream.

Look-ups of a single triple go straight to the indexes of the knowledge: ``?x a :Plant`` beside a stream asks, for each
?x, whether it is in ``backward[:Plant]`` of the table of rdf:type.  The dictionaries of a table stay the same objects
in all versions of the knowledge, so they are fetched once.
"""

from __future__ import annotations

from collections.abc import Callable

from etalis_rules import algebra as alg

from etalis_py.knowledge.graph import Graph
from etalis_py.sparql.prepared import prepare
from etalis_py.sparql.sources import BackgroundSource

Row = tuple[str, ...]
Lookup = Callable[[Row, int], "list[Row] | tuple[Row, ...]"]


def lookup(
    background: Callable[[], BackgroundSource],
    pattern: alg.Pattern,
    known: tuple[str, ...],
    wanted: tuple[str, ...],
    *,
    direct: bool = True,
) -> Lookup:
    """A function from the terms of ``known``, some of which may be unbound, to rows of ``wanted``.

    ``direct``: use the indexes of the knowledge where possible.
    """
    prepared = prepare(pattern)

    def look_up(terms: Row, t: int) -> list[Row] | tuple[Row, ...]:
        mu = {name: value for name, value in zip(known, terms, strict=True) if value}
        solutions = prepared.solve(mu, background(), None)
        return [tuple(solution.get(name, "") for name in wanted) for solution, _, _ in solutions]

    direct_one = _direct(background().lasting, pattern, known, wanted, look_up) if direct else None
    return direct_one or look_up


def _direct(
    graph_of: Callable[[str | None], object],
    pattern: alg.Pattern,
    known: tuple[str, ...],
    wanted: tuple[str, ...],
    general: Lookup,
) -> Lookup | None:
    """The look-up of a pattern that is one triple with a constant predicate and a bound end; None for all others.

    ``general`` answers if a variable in ``known`` is unbound after all.
    """
    if not isinstance(pattern, alg.BGP) or len(pattern.triples) != 1 or pattern.stream:
        return None
    if isinstance(pattern.graph, alg.Var):
        return None
    s, p, o = pattern.triples[0].subject, pattern.triples[0].predicate, pattern.triples[0].object
    if not isinstance(p, alg.Const) or s == o:
        return None
    graph = graph_of(None if pattern.graph is None else pattern.graph.term)
    if not isinstance(graph, Graph):
        return None
    table = graph.table(p.term)
    here, there = _place(s, known), _place(o, known)
    if here is not None and isinstance(o, alg.Const) and wanted == known == (known[here],):
        return _is_subject(table.backward, o.term, general)
    if there is not None and isinstance(s, alg.Const) and wanted == known == (known[there],):
        return _is_subject(table.forward, s.term, general)
    names = tuple(sorted(n.name for n in (s, o) if isinstance(n, alg.Var)))
    if len(names) != 2 or wanted != names or len(known) != 1:
        return None
    first = isinstance(s, alg.Var) and wanted[0] == s.name
    if here is not None:
        return _others(table.forward, first, general)
    if there is not None:
        return _others(table.backward, not first, general)
    return None


def _place(node: alg.Var | alg.Const, known: tuple[str, ...]) -> int | None:
    return known.index(node.name) if isinstance(node, alg.Var) and node.name in known else None


def _is_subject(index: object, term: str, general: Lookup) -> Lookup:
    """Whether the bound term is in a triple with the constant."""
    get = index.get  # type: ignore[attr-defined]

    def look_up(terms: Row, t: int) -> list[Row] | tuple[Row, ...]:
        known = terms[0]
        if known in get(term, ()):
            return (terms,)
        return () if known else general(terms, t)

    return look_up


def _others(index: object, known_first: bool, general: Lookup) -> Lookup:
    """All terms in a triple with the bound one."""
    get = index.get  # type: ignore[attr-defined]

    def known_then_other(terms: Row, t: int) -> list[Row] | tuple[Row, ...]:
        x = terms[0]
        return [(x, y) for y in get(x, ())] if x else general(terms, t)

    def other_then_known(terms: Row, t: int) -> list[Row] | tuple[Row, ...]:
        x = terms[0]
        return [(y, x) for y in get(x, ())] if x else general(terms, t)

    return known_then_other if known_first else other_then_known
