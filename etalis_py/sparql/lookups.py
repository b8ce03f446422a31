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

    ``direct``: use the indexes of the knowledge where possible.  A filter of the pattern sees all that is known, also
    variables that its triples do not have.
    """
    prepared = prepare(pattern, substitute=isinstance(pattern, alg.Filter) and not alg.scope(pattern).issuperset(known))

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
    if not alg.is_one_triple(pattern) or pattern.stream or alg.variable_of(pattern.graph):
        return None
    (triple,) = pattern.triples
    predicate = alg.constant_of(triple.predicate)
    if not predicate or triple.subject == triple.object:
        return None
    graph = graph_of(alg.constant_of(pattern.graph) or None)
    if not isinstance(graph, Graph):
        return None
    table = graph.table(predicate)
    s, o = alg.variable_of(triple.subject), alg.variable_of(triple.object)
    if s and o:
        if wanted != tuple(sorted((s, o))) or len(known) != 1:
            return None
        if s in known:
            return _others(table.forward, wanted[0] == s, general)
        return _others(table.backward, wanted[0] == o, general) if o in known else None
    if s in known and wanted == known == (s,):
        return _is_subject(table.backward, alg.constant_of(triple.object), general)
    if o in known and wanted == known == (o,):
        return _is_subject(table.forward, alg.constant_of(triple.subject), general)
    return None


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
