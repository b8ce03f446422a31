"""Which queries aggregate over a chain without a list of its matches, for ``explain``."""

from __future__ import annotations

from etalis_compiler.stratify import made_for
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.rows.generate.summed_chains import aggregates_chain, summed_chains
from etalis_py.executors.rows.run.chain_state import chained


def summed_queries(rules: ir.Rules) -> dict[str, tuple[alg.AggregateCall, ...] | None]:
    """The queries that aggregate over chains: what they ask for where no match is listed, None where some are."""
    chains = chained(rules, frozenset()).rules
    nodes = dict(chains.nodes)
    plans = summed_chains(nodes, chains.outputs)
    summed: dict[str, tuple[alg.AggregateCall, ...] | None] = {}
    for output in chains.outputs:
        for node in map(nodes.__getitem__, made_for([output], nodes)):
            if aggregates_chain(node, nodes):
                calls = summed.get(output.query, ())
                plan = plans.get(node.child.node)
                summed[output.query] = None if plan is None or calls is None else (*calls, *node.aggregates)
    return summed
