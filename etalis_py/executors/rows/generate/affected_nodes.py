"""Finds the nodes and outputs that some leaves can affect in an instant, so that only their code is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from etalis_compiler.stratify import output_id
from etalis_rules import program as ir
from etalis_rules.clock import reports_what_is_over
from etalis_rules.operators import inputs
from etalis_rules.roles import Role


@dataclass(frozen=True, slots=True)
class Readers:
    """The readers of each node: ``makers`` derive something from its new solutions, ``keepers`` only store them."""

    makers: Mapping[str, Sequence[str]]
    keepers: Mapping[str, Sequence[str]]

    def reach(self, leaves: Iterable[str]) -> frozenset[str]:
        """The nodes and outputs that may have new solutions when these leaves do, and the nodes that store these."""
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
    """The readers of every node; ``fed`` has, for each output, the leaves that read its derived triples.

    A node whose solutions may end before the instant in which they are known has no delayed reader.
    """
    makers: dict[str, list[str]] = {}
    keepers: dict[str, list[str]] = {}
    for name, node in nodes.items():
        for part in inputs(node):
            if part.role is Role.PAST or (part.earlier and not is_late(name)):
                continue
            # An optional or negated input makes nothing new by itself, unless it ends runs; deadlines are reported by
            # the clock.
            makes = part.role in (Role.SIDE, Role.MEMBER) or reports_what_is_over(node)
            readers = makers if makes else keepers
            readers.setdefault(part.ref.node, []).append(name)
    for output in outputs:
        if output.source is not None:
            makers.setdefault(output.source.node, []).append(output_id(output.query))
    for output_name, leaves in fed.items():
        makers.setdefault(output_name, []).extend(leaves)
    return Readers(makers, keepers)
