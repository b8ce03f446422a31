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
    """The readers of each node: ``makers`` derive something from its new solutions, ``keepers`` only store them.

    ``goals`` are all of them, also those that store its solutions as goals for later instants.  ``nodes`` has the place
    of each node, ``strata`` that of its stratum.
    """

    makers: Mapping[str, Sequence[str]]
    keepers: Mapping[str, Sequence[str]]
    goals: Mapping[str, Sequence[str]]
    nodes: Mapping[str, int]
    strata: Mapping[str, int]

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

    def storing(self, reached: Iterable[str]) -> list[str]:
        """The nodes that may store new solutions of these as goals, in the order of the program."""
        return sorted({reader for name in reached for reader in self.goals.get(name, ())}, key=self.nodes.__getitem__)

    def strata_of(self, reached: Iterable[str]) -> list[int]:
        """The places of the strata that have one of these nodes and outputs, in order."""
        return sorted({self.strata[name] for name in reached})


def readers_of(
    rules: ir.Rules,
    fed: Mapping[str, Sequence[str]],
    is_late: Callable[[str], bool],
) -> Readers:
    """The readers of every node; ``fed`` has, for each output, the leaves that read its derived triples.

    A node whose solutions may end before the instant in which they are known has no delayed reader.
    """
    makers: dict[str, list[str]] = {}
    keepers: dict[str, list[str]] = {}
    goals: dict[str, list[str]] = {}
    for name, node in rules.nodes:
        for ref in ir.refs(node):
            goals.setdefault(ref.node, []).append(name)
        for part in inputs(node):
            if part.role is Role.PAST or (part.earlier and not is_late(name)):
                continue
            # An optional or negated input makes nothing new by itself, unless it ends runs; deadlines are reported by
            # the clock.
            makes = part.role in (Role.SIDE, Role.MEMBER) or reports_what_is_over(node)
            readers = makers if makes else keepers
            readers.setdefault(part.ref.node, []).append(name)
    for output in rules.outputs:
        if output.source is not None:
            makers.setdefault(output.source.node, []).append(output_id(output.query))
    for output_name, leaves in fed.items():
        makers.setdefault(output_name, []).extend(leaves)
    places = {name: place for place, (name, _) in enumerate(rules.nodes)}
    strata = {name: place for place, stratum in enumerate(rules.strata) for name in stratum}
    return Readers(makers, keepers, goals, places, strata)
