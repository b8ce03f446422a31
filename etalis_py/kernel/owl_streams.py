"""OWL 2 RL over streamed triples: the rules of the knowledge become rules of the program.

Definition.  An axiom that reverses a streamed triple or joins two of them becomes a CONSTRUCT rule, whose
conclusions are occurrences over the hull of their premises.  Only the rules that some query needs, directly or through
others, are loaded; they report nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from etalis_compiler.diagnostics import Source
from etalis_compiler.pipeline import CompiledQuery, compile_sources
from etalis_compiler.stratify import feeds
from etalis_rules import program as ir
from etalis_rules.records import leaves_read

from etalis_py.knowledge import Knowledge
from etalis_py.knowledge.owl_rules import construct_rules

HIDDEN = ".owl"


def is_of_schema(output: ir.Output) -> bool:
    """Whether it is a rule of the knowledge's schema."""
    return output.query.startswith(HIDDEN)


def owl_queries(knowledge: Knowledge | None) -> tuple[CompiledQuery, ...]:
    """The rules of the knowledge's schema as queries named ``.owl1``, ``.owl2``, …; none under other regimes."""
    if knowledge is None or knowledge.entailment != "owlrl":
        return ()
    rules = construct_rules(knowledge.default)
    sources = [Source(text, f"{HIDDEN}{n}") for n, text in enumerate(rules, 1)]
    queries = compile_sources(sources).queries if sources else ()
    return tuple(
        CompiledQuery(source.name, q.syntax, q.algebra, q.source, q.template)
        for source, q in zip(sources, queries, strict=True)
    )


def needed(rules: ir.Rules) -> frozenset[str]:
    """The names of the hidden rules that feed a query, or a rule that does."""
    nodes = dict(rules.nodes)
    wanted = [o for o in rules.outputs if not o.query.startswith(HIDDEN)]
    others = [o for o in rules.outputs if o.query.startswith(HIDDEN)]
    names: set[str] = set()
    while wanted:
        leaves = list(_leaves(nodes, wanted))
        wanted = [o for o in others if any(feeds(t, o.stream, leaf) for t in o.template for leaf in leaves)]
        others = [o for o in others if o not in wanted]
        names.update(o.query for o in wanted)
    return frozenset(names)


def _leaves(nodes: dict[str, ir.Node], outputs: Iterable[ir.Output]) -> Iterable[ir.Leaf]:
    seen: set[str] = set()
    stack = [o.source.node for o in outputs if o.source is not None]
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        seen.add(name)
        node = nodes[name]
        yield from leaves_read([node])
        stack += ir.made_from(node)
