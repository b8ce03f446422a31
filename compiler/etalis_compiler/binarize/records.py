"""Lowers EVENT to a node without inputs, since it reads whole events of the stream."""

from __future__ import annotations

from etalis_rules import algebra as alg
from etalis_rules import program as ir

from ..unsupported import Fault
from .builder import Lowered, LoweringContext, NodeBuilder, mapped
from .triples import sources_of


def lower_record(pattern: alg.Record, above: LoweringContext, b: NodeBuilder) -> Lowered:
    """The node, and the filters above it.  It has no timeless solutions: each uses an occurrence of its event."""
    every = [alg.triples_of(part) for part in alg.read_of_event(pattern)]
    read = [triple for triples in every for triple in triples or ()]
    paths = None in every
    knows = b.summary.predicates is None or bool(b.summary.predicates)
    alone = not any(map(b.summary.may_hold, read)) and not (paths and knows)
    head = tuple(sorted(alg.scope(pattern) & above.needed))
    entailed = b.summary.entailed or b.summary.joins
    told = entailed and not b.summary.joins and not paths
    sources = tuple((triple, sources_of(triple, b.summary, pattern.stream)) for triple in read) if told else ()
    node = ir.Record(head, pattern.pattern, pattern.stream, pattern.graph, alone, entailed, sources=sources)
    return mapped(Lowered(b.add(node), None), above, b)


def holds_event(part: ir.Node | ir.Output) -> bool:
    """Whether a node or an output has EVENT in a pattern that it evaluates over the history."""
    return alg.has_event(part)


def backwards() -> Fault:
    """EVENT in a pattern that is evaluated over the history, in which events are taken apart."""
    return Fault(
        "not-backwards",
        "EVENT stands in a pattern that is looked for backwards, such as an EXISTS that reads variables from outside "
        "in a filter of its own, or beside a part that may come from the background alone",
        "make a rule of it, CONSTRUCT { … } WHERE { EVENT { … } }, and ask for the triple that it derives",
    )
