"""Which aggregates over a chain are computed without listing its matches.

All matches that a solution of the last part completes fall into one group if the keys of the group are variables of
that part.  So one row for each of these solutions is enough: what their matches amount to.

- Aggregates of all solutions so far, or over a window of time, which these matches enter and leave together: the number
  of matches, the sums over them, and their extremes.
- MIN, MAX and SAMPLE alone over a window of time: solutions with these terms, as others change no answer.

A window of months takes only the latter, one that counts solutions nothing.  The parts must find each other by the same
variables, and the operands be variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from etalis_compiler.families import NAME
from etalis_rules import algebra as alg
from etalis_rules import program as ir

SUMMED = frozenset(("COUNT", "SUM", "AVG"))
EXTREME = frozenset(("MIN", "MAX", "SAMPLE"))
Place = tuple[int, int]
"""A part of a chain, and a column of it."""


@dataclass(frozen=True, slots=True)
class SummedChain:
    """The group that reads a chain, with its name, and where the argument of each aggregate is; None counts solutions.

    ``extreme``: only extremes are asked for.
    """

    group: str
    reader: ir.Group
    arguments: tuple[Place | None, ...]
    extreme: bool


def places_of(node: ir.Chain) -> dict[str, Place]:
    """Where the variables of a chain are: in the last of the parts that have them."""
    return {name: (place, column) for place, ref in enumerate(node.parts) for column, name in enumerate(ref.columns)}


def aggregates_chain(node: ir.Node, nodes: Mapping[str, ir.Node]) -> TypeGuard[ir.Group]:
    """Whether a node aggregates the matches of a chain."""
    return isinstance(node, ir.Group) and isinstance(nodes[node.child.node], ir.Chain)


def _summed_chain(name: str, nodes: Mapping[str, ir.Node], group: str) -> SummedChain | None:
    """How the only reader of this chain sums up its matches; None if they have to be listed."""
    node = nodes[name]
    if not isinstance(node, ir.Chain) or node.steps or len(set(node.keys)) > 1:
        return None
    if not aggregates_chain(reader := nodes[group], nodes):
        return None
    named = dict(zip(reader.child.columns, node.head, strict=True))
    places = places_of(node)
    if any(places[named[key]][0] < len(node.parts) - 1 for key in reader.keys if key in named):
        return None
    arguments: list[Place | None] = []
    for call in reader.aggregates:
        operand = "" if call.operand is None else alg.variable_of(call.operand)
        if call.distinct or (call.operand is not None and operand not in named):
            return None
        arguments.append(places[named[operand]] if operand else None)
    window, names = reader.window, {call.name for call in reader.aggregates}
    if not names <= SUMMED | EXTREME or reader.background is not None or reader.leaves or NAME in reader.keys:
        return None
    extreme = window is not None and bool(names) and names <= EXTREME
    if window is not None and (window.events or (window.months and not extreme)):
        return None
    return SummedChain(group, reader, tuple(arguments), extreme)


def summed_chains(nodes: Mapping[str, ir.Node], outputs: Iterable[ir.Output]) -> dict[str, SummedChain]:
    """The chains whose only reader sums up their matches, and how."""
    readers = _only_readers(nodes, outputs)
    chains = [name for name, node in nodes.items() if isinstance(node, ir.Chain) and name in readers]
    plans = {name: _summed_chain(name, nodes, readers[name]) for name in chains}
    return {name: plan for name, plan in plans.items() if plan is not None}


def _only_readers(nodes: Mapping[str, ir.Node], outputs: Iterable[ir.Output]) -> dict[str, str]:
    """For each node that one other node alone reads, and no output, this node."""
    readers: dict[str, list[str]] = {}
    for reader, node in nodes.items():
        for name in set(ir.made_from(node)):
            readers.setdefault(name, []).append(reader)
    reported = {output.source.node for output in outputs if output.source is not None}
    return {name: found[0] for name, found in readers.items() if len(found) == 1 and name not in reported}
