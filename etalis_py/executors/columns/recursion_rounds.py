"""Rules that feed each other without keeping anything: round by round over a whole batch.

    CONSTRUCT { ?y :knows ?x } WHERE { ?x :knows ?y }

The triples derived in one round go to the leaves in the next, except to leaves that have had them before.  This goes on
until no triple is new.  Such rules never look at another instant, so a round takes all instants of a batch together.

Cost: that of the nodes, for each round; there are as many rounds as the instant that needs the most.  State: none.

A trace of the rule above: a knows b@1 and c knows d@2 give b knows a@1 and d knows c@2 in the first round; the second
gives a knows b@1 and c knows d@2 again, and is the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from etalis_rules import program as ir

from etalis_py.executors.columns.constructs import derived, with_nodes
from etalis_py.executors.columns.network import Network, RecursiveRules
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.tables import SolutionTable, concat_tables
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.rows.run.runtime import Runtime


class Seen:
    """The rows that a node has had, as a set over their times and terms."""

    def __init__(self, width: int) -> None:
        self._keys = Keys(3 + width, np.int64)

    def new(self, table: SolutionTable) -> SolutionTable:
        """The rows that the node has not had yet, each once."""
        rows = np.empty((len(table), 3 + len(table.columns)), np.int64)
        for i, column in enumerate((table.at, table.end, table.start, *table.columns)):
            rows[:, i] = column
        before = self._keys.count
        numbers = self._keys.numbers(rows, create=True)
        _, firsts = np.unique(numbers, return_index=True)
        return table.take(np.sort(firsts[numbers[firsts] >= before]))


class RoundsOperator:
    """Evaluates rules that feed each other; ``operators`` has the operators of their nodes."""

    def __init__(self, rounds: RecursiveRules, net: Network, operators: Mapping[str, Any], terms: Terms) -> None:
        self.rounds = rounds
        self._net = net
        self._operators = operators
        self._terms = terms

    def advance(self, given: Mapping[str, SolutionTable], tables: dict[str, SolutionTable], runtime: Runtime) -> None:
        """Evaluate all rounds and add the tables of these nodes to ``tables``, which has all others that they read.

        ``given`` are the occurrences (s, p, o) that each leaf reads; ``runtime`` has the limit on rounds.
        """
        nodes = {name: self._net.nodes[name] for name in self.rounds.nodes}
        seen = {name: Seen(_width(node)) for name, node in nodes.items()}
        parts: dict[str, list[SolutionTable]] = {name: [] for name in nodes}
        news = self._new(given, seen)
        outside: Mapping[str, SolutionTable] = tables
        count = 0
        while any(map(len, news.values())) or not count:
            count += 1
            if count > runtime.limits.rounds:
                runtime.too_deep(self.rounds.nodes[0])
            there: dict[str, SolutionTable] = {}
            for name, node in nodes.items():
                if isinstance(node, ir.Leaf):
                    table = self._operators[name].solutions(news[name]) if name in news else None
                else:
                    table = self._advanced(name, node, there, outside, seen[name])
                there[name] = SolutionTable.empty(len(node.head)) if table is None else table
                parts[name].append(there[name])
            news = self._new(self._derived(there), seen)
            outside = {}
        tables.update({name: concat_tables(some, len(nodes[name].head)) for name, some in parts.items()})

    def _new(self, occurrences: Mapping[str, SolutionTable], seen: Mapping[str, Seen]) -> dict[str, SolutionTable]:
        """The matching occurrences of each leaf that it has not had yet."""
        return {leaf: seen[leaf].new(self._operators[leaf].matching(table)) for leaf, table in occurrences.items()}

    def _advanced(
        self,
        name: str,
        node: ir.Node,
        there: Mapping[str, SolutionTable],
        outside: Mapping[str, SolutionTable],
        seen: Seen,
    ) -> SolutionTable | None:
        """The output of a node for new input; DISTINCT applies across all rounds."""
        inputs = []
        for ref in ir.refs(node):
            table = there.get(ref.node, outside.get(ref.node))
            inputs.append(SolutionTable.empty(len(ref.columns)) if table is None else table)
        if not any(map(len, inputs)):
            return None
        if isinstance(node, ir.Map) and node.distinct and not node.steps:
            inputs = [seen.new(inputs[0])]
        given: SolutionTable = self._operators[name].advance(*([inputs] if isinstance(node, ir.Union) else inputs))
        return seen.new(given) if isinstance(node, ir.Union) and node.distinct else given

    def _derived(self, there: Mapping[str, SolutionTable]) -> dict[str, SolutionTable]:
        """The occurrences that the outputs make for the leaves of the next round."""
        more: dict[str, list[SolutionTable]] = {}
        for name in self.rounds.outputs:
            _, output = self._net.outputs[name]
            assert output.source is not None
            solutions = there[output.source.node]
            if not len(solutions):
                continue
            columns = with_nodes(output, solutions, self._terms)
            for template, targets in self._net.fed[name]:
                inside = [target for target in targets if target in self.rounds.nodes]
                if inside:
                    occurrences = derived(output, template, solutions, columns, self._terms)
                    for leaf in inside:
                        more.setdefault(leaf, []).append(occurrences)
        return {leaf: self._of_stream(leaf, some) for leaf, some in more.items()}

    def _of_stream(self, leaf: str, occurrences: list[SolutionTable]) -> SolutionTable:
        """The occurrences in the stream that a leaf reads, with the columns s, p and o."""
        node, table = self._net.nodes[leaf], concat_tables(occurrences, 4)
        assert isinstance(node, ir.Leaf)
        if node.stream:
            table = table.take(table.columns[3] == self._terms.id_of(node.stream))
        return SolutionTable(table.at, table.end, table.start, table.columns[:3])


def _width(node: ir.Node) -> int:
    """The width of the rows that a node takes as a set: those of a triple, of its input, or of its output."""
    match node:
        case ir.Leaf():
            return 3
        case ir.Map(child=child):
            return len(child.columns)
    return len(node.head)
