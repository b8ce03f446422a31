"""What a program asks of the background that is not there: a graph, a predicate in one, what only OWL's rules derive.

>>> from etalis_py import compile
>>> from etalis_py.knowledge import load
>>> asking = compile("SELECT ?x ?r { ?x :temp ?t GRAPH :rooms { ?x :in ?r } }")
>>> list(unmet_knowledge(asking, load([], named={"http://example.org/room": ":a :in :b ."})))
['the background has no graph :rooms; it has :room; did you mean :room? (spelt a little differently)']
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from etalis_rules import algebra as alg
from etalis_rules.spelling import Spelling
from etalis_rules.terms import OWL, RDF_TYPE

from etalis_py.values.term_likeness import did_you_mean

if TYPE_CHECKING:
    from etalis_py.engine.program import Program
    from etalis_py.knowledge import Knowledge
    from etalis_py.knowledge.graph import Graph

_SHOWN = 5
"""The graphs that a message names."""
_KINDS = ("TransitiveProperty", "SymmetricProperty", "FunctionalProperty", "InverseFunctionalProperty")
_LINKS = ("inverseOf", "equivalentProperty", "equivalentClass", "propertyChainAxiom", "intersectionOf", "unionOf")


def unmet_knowledge(program: Program, knowledge: Knowledge | None) -> Iterator[str]:
    """Why parts of the program can have no answer in the background.

    Nothing is said of one that has changed, or whose programs read events: it may have had the answer.
    """
    if knowledge is not None and (knowledge.programs or knowledge.version):
        return
    spelling = Spelling(program.prefixes)
    asked = list(dict.fromkeys(part for pattern in program.patterns for part in alg.read_of_graphs(pattern)))
    graphs = list(dict.fromkeys(part.graph for part in asked if part.graph is not None))
    if knowledge is not None:
        for graph in graphs:
            yield from _without_graph(graph, knowledge.names(), spelling)
        for part in asked:
            yield from _without_predicate(part, knowledge, spelling)
        if knowledge.entailment != "owlrl":
            yield from _only_by_owl(program, knowledge, spelling)
    elif graphs:
        yield (
            f"GRAPH {_text(graphs[0], spelling)} {{…}} asks the background, and there is none: --background FILE, "
            f"in Python background=; the graph of an event is EVENT {_text(graphs[0], spelling)} {{…}}"
        )


def _text(graph: alg.Var | alg.Const, spelling: Spelling) -> str:
    return alg.spelled(graph, spelling.variable, spelling.term)


def _without_graph(graph: alg.Var | alg.Const, names: list[str], spelling: Spelling) -> Iterator[str]:
    name = alg.constant_of(graph)
    if name in names or (not name and names):
        return
    if names:
        there = f"{', '.join(map(spelling.term, names[:_SHOWN]))}{', …' if len(names) > _SHOWN else ''}"
        slip = did_you_mean(name, names, spelling.term)
        yield f"the background has no graph {spelling.term(name)}; it has {there}{slip}"
    else:
        yield (
            f"GRAPH {_text(graph, spelling)} {{…}} asks graphs with a name, and the background has none: ask without "
            f"GRAPH, or give TriG or N-Quads; the graph of an event is EVENT {_text(graph, spelling)} {{…}}"
        )


def _without_predicate(
    part: alg.BGP | alg.PathPattern | alg.GraphNames, knowledge: Knowledge, spelling: Spelling
) -> Iterator[str]:
    """The predicates that no graph has which the part asks."""
    name = alg.constant_of(part.graph)
    graphs = [knowledge.graph(name)] if name else [knowledge.graph(one) for one in knowledge.names()]
    there = {predicate for graph in graphs for predicate in graph.predicates()}
    if not there:
        return  # the graph is told
    where = f"the graph {spelling.term(name)} has" if name else "the graphs of the background have"
    for triple in alg.triples_of(part) or ():
        predicate = alg.constant_of(triple.predicate)
        if predicate and predicate not in there:
            slip = did_you_mean(predicate, there, spelling.term)
            yield f"{where} no predicate {spelling.term(predicate)}{slip}"


def _only_by_owl(program: Program, knowledge: Knowledge, spelling: Spelling) -> Iterator[str]:
    """What the background says of predicates and classes of the program in words of OWL, which have no effect."""
    graphs = map(knowledge.stated, ("", *knowledge.names()))
    said = {term: word for graph in graphs for term, word in sorted(_said_in_owl(graph), reverse=True)}
    asked = _predicates_and_classes(program) if said else ()
    for term in sorted(said.keys() & {*asked}):
        yield (
            f"the background says {said[term]} of {spelling.term(term)}, which has no effect under the entailment "
            f"{knowledge.entailment}: --entailment owlrl"
        )


def _predicates_and_classes(program: Program) -> Iterator[str]:
    for pattern in program.patterns:
        for asked in (pattern, *(event.pattern for event in alg.events_in(pattern))):
            for triple in (triple for block in alg.blocks_of_triples(asked) for triple in block.triples):
                predicate = alg.constant_of(triple.predicate)
                yield from (predicate, alg.constant_of(triple.object) if predicate == RDF_TYPE else "")


def _said_in_owl(graph: Graph) -> Iterator[tuple[str, str]]:
    """Terms, each with a word of OWL that concerns it."""
    for kind in _KINDS:
        yield from ((term, f"owl:{kind}") for term in graph.subjects(RDF_TYPE, f"<{OWL}{kind}>"))
    for link in _LINKS:
        yield from ((term, f"owl:{link}") for pair in graph.pairs(f"<{OWL}{link}>") for term in pair)
