"""The consequences of the triples of a graph by a closed schema: the tables of the closed graph."""

from __future__ import annotations

from collections.abc import Iterator

from etalis_rules.terms import RDF_TYPE

from etalis_py.knowledge.graph import Graph, PredicatePairs
from etalis_py.knowledge.schema import Schema
from etalis_py.knowledge.schema_closure import SchemaAnswer


def derive(asserted: Graph, closure: SchemaAnswer, schema: Schema, regime: str) -> dict[str, PredicatePairs]:
    """The complete tables of the closed graph that differ from the stated ones."""
    tables: dict[str, PredicatePairs] = {}
    stated = asserted.tables

    def put(s: str, p: str, o: str) -> None:
        table = tables.get(p)
        if table is None:
            old = stated.get(p)
            if old is not None and (s, o) in old:
                return
            table = tables[p] = old.copy() if old is not None else PredicatePairs()
        table.add(s, o)

    for p, columns in closure.schema.items():
        if len(columns) > len(asserted.pairs(p)):
            tables[p] = PredicatePairs(columns)
    if regime == "rdfs":
        if RDF_TYPE in stated and any(map(schema.super_classes, stated[RDF_TYPE].backward)):
            tables[RDF_TYPE] = PredicatePairs.of_objects(_with_super_classes(stated[RDF_TYPE], schema))
        for p in asserted.predicates():
            if p in schema.specimens:
                for s, o in stated[p]:
                    for triple in schema.entailed((s, p, o)):
                        put(*triple)
    for s, p, o in closure.derived:
        put(s, p, o)
    return tables


def _with_super_classes(types: PredicatePairs, schema: Schema) -> Iterator[tuple[str, dict[str, None]]]:
    """Each subject with its classes and all of their super-classes."""
    above = {c: dict.fromkeys(schema.super_classes(c)) for c in types.backward}
    for s, classes in types.forward.items():
        every = dict.fromkeys(classes)
        for c in classes:
            every |= above[c]
        yield s, every
