"""Which nodes and outputs may have new solutions when some leaves do: only their blocks are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from etalis_compiler.stratify import is_delayed, output_id
from etalis_rules import program as ir
from etalis_rules.relations import LEFT_LAST


@dataclass(frozen=True, slots=True)
class Readers:
    """By the id of a node, readers that derive from its new solutions (``makers``) or only keep them (``keepers``)."""

    makers: Mapping[str, Sequence[str]]
    keepers: Mapping[str, Sequence[str]]

    def reach(self, leaves: Iterable[str]) -> frozenset[str]:
        """The nodes and outputs that may have new solutions when these leaves do, and those that keep them."""
        reached: set[str] = set()
        keeping: set[str] = set()
        stack = list(leaves)
        while stack:
            here = stack.pop()
            if here not in reached:
                reached.add(here)
                keeping.update(self.keepers.get(here, ()))
                stack.extend(self.makers.get(here, ()))
        return frozenset(reached | keeping)


def readers_of(
    nodes: Mapping[str, ir.Node],
    outputs: Iterable[ir.Output],
    fed: Mapping[str, Sequence[str]],
    is_late: Callable[[str], bool],
) -> Readers:
    """The readers of every node; ``fed`` are the leaves that see what an output derives.

    A node whose solutions may end before the instant in which they are known has no delayed reader.
    """
    makers: dict[str, list[str]] = {}
    keepers: dict[str, list[str]] = {}
    for name, node in nodes.items():
        for ref in ir.refs(node):
            if isinstance(node, ir.Outer) and ref is node.right:
                # Optional solutions are kept; they make nothing new by themselves.
                if node.op not in LEFT_LAST or is_late(name):
                    keepers.setdefault(ref.node, []).append(name)
            elif isinstance(node, ir.Absence) and node.deadline is not None and ref is node.absent:
                keepers.setdefault(ref.node, []).append(name)  # it cancels goals; the clock reports those that are due
            elif is_late(name) or not is_delayed(node, ref):
                makers.setdefault(ref.node, []).append(name)
    for output in outputs:
        if output.source is not None:
            makers.setdefault(output.source.node, []).append(output_id(output.query))
    for output_name, leaves in fed.items():
        makers.setdefault(output_name, []).extend(leaves)
    return Readers(makers, keepers)
