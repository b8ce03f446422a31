"""Which nodes of new rules stand where nodes of the rules before them stood, so that they take over the state.

An update of the background may change what a leaf asks for: a predicate that the background has now, a sub-class.  A
node is named by all that is below it, so the nodes above such a leaf get other names.  What they have seen is still
right, because a solution uses the background as it was at its end.

Definition.  Beginning at the outputs of one query in both, two nodes correspond if they differ in nothing but the names
of their inputs, and stand at the same place; their inputs are compared in the same way.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from etalis_rules import program as ir
from etalis_rules.operators import keeps_state

from etalis_py.kernel.position import Counters


def counterparts(before: ir.Rules, after: ir.Rules) -> dict[str, str]:
    """The nodes that keep state and have another name now: for each new name the one before."""
    old, new = dict(before.nodes), dict(after.nodes)
    sources = {output.query: output.source.node for output in before.outputs if output.source is not None}
    found: dict[str, str] = {}
    for output in after.outputs:
        if output.source is not None and output.query in sources:
            for here, there in _pairs(sources[output.query], output.source.node, old, new):
                if there not in old:
                    found.setdefault(there, here)
    return found


def _pairs(one: str, other: str, old: Mapping[str, ir.Node], new: Mapping[str, ir.Node]) -> Iterator[tuple[str, str]]:
    """The nodes below these two that correspond, keep state and have different names: the old and the new name."""
    pending = [(one, other)]
    while pending:
        here, there = pending.pop()
        if here == there:
            continue
        mine, theirs = old[here], new[there]
        refs = ir.refs(mine), ir.refs(theirs)
        names = {ref.node: "" for ref in refs[0]}, {ref.node: "" for ref in refs[1]}
        if _unnamed(mine, names[0]) != _unnamed(theirs, names[1]):
            continue
        if keeps_state(mine):
            yield here, there
        pending += [(a.node, b.node) for a, b in zip(*refs, strict=True)]


def _unnamed(node: ir.Node, names: Mapping[str, str]) -> str:
    """The node without the names of its inputs."""
    text = repr(node)
    for name in names:
        text = text.replace(repr(name), "''")
    return text


def renamed(state: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A dump with the state of these nodes alone, under their new names (the keys)."""
    parts = ("groups", "closures", "slices", "runs")
    moved = {part: {new: state[part][old] for new, old in names.items() if old in state[part]} for part in parts}
    goals = [[new, *entry[1:]] for new, old in names.items() for entry in state["goals"] if entry[0] == old]
    return {**moved, "goals": goals, "log": {}}


def forget_others(
    before: ir.Rules, after: ir.Rules, moved: Collection[str], kept: Mapping[str, int], counters: Counters
) -> None:
    """Warn and count if queries that go on lose goals; ``kept``: how many each node of the rules before has."""
    going_on = {output.query for output in after.outputs}
    stay = {name for name, _ in after.nodes} | set(moved)
    lost = sum(kept.get(name, 0) for name in _below(before, going_on) - stay)
    if lost:
        counters.forgotten += lost
        warnings.warn(
            f"an update of the background gave other rules, in which {lost} goal{'s have' if lost > 1 else ' has'} no "
            "place: what these have seen is forgotten; load a triple of each predicate, and the schema, that later "
            "updates bring before the stream begins",
            stacklevel=2,
        )


def _below(rules: ir.Rules, queries: Collection[str]) -> set[str]:
    """The nodes of these queries."""
    nodes = dict(rules.nodes)
    found: set[str] = set()
    pending = [o.source.node for o in rules.outputs if o.source is not None and o.query in queries]
    while pending:
        if (name := pending.pop()) not in found:
            found.add(name)
            pending += [ref.node for ref in ir.refs(nodes[name])]
    return found
