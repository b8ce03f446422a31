"""Nodes that look back at single occurrences: EXISTS in the FILTER of an optional part.

Each such node has its own history of the occurrences that its inner leaves read.  The whole batch is added to it before
the node is evaluated; this is safe because a node looks no further than the end of its solution.

Cost: some microseconds for each such occurrence; for each solution, as in rows.  State: the occurrences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

import numpy as np
import pyarrow as pa
from etalis_rules import program as ir
from etalis_rules.leaf_tests import predicates_of
from etalis_rules.operators import inputs, leaves
from etalis_rules.roles import Role

from etalis_py.executors.columns.instants import NodeOperator, rows_of
from etalis_py.executors.columns.tables import SolutionTable, concat_tables
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.rows.generate.single_node import NodeFunction
from etalis_py.sparql import OccurrenceLog


class LeafHistory:
    """Selects the occurrences whose predicates these leaves read."""

    def __init__(self, leaves: Sequence[ir.Leaf], terms: Terms) -> None:
        self._terms = terms
        named = [predicates_of(leaf) for leaf in leaves]
        self._predicates: pa.Array | None = None  # None: a leaf reads any predicate
        if None not in named:
            self._predicates = pa.array(sorted({term for some in named for term in some or ()}), pa.large_string())

    def of(self, by_stream: SolutionTable) -> SolutionTable:
        """The occurrences (s, p, o, stream) of a batch that have these predicates."""
        if self._predicates is None:
            return by_stream
        wanted = self._terms.intern(self._predicates)
        marked = np.zeros(self._terms.count, np.bool_)
        marked[wanted] = True
        return by_stream.take(np.flatnonzero(marked[by_stream.columns[1]]))


class LookingOperator(NodeOperator):
    """A node that looks back, with its history."""

    def __init__(self, node: ir.Node, nodes: Mapping[str, ir.Node], function: NodeFunction, terms: Terms) -> None:
        super().__init__(node, function, terms)
        self.leaves = tuple(part.ref.node for part in inputs(node) if part.role is Role.PAST)
        self._reading = LeafHistory(leaves(nodes[name] for name in self.leaves), terms)

    def begin(self, log: OccurrenceLog | None) -> None:
        """Continue with this history."""
        self._function.state.log = deepcopy(log)

    def remember(self, by_stream: SolutionTable, derived: Sequence[SolutionTable]) -> None:
        """Add the occurrences of a batch, and those that other rules have derived."""
        history = self._function.state.history
        for end, start, s, p, o, stream in rows_of(
            concat_tables([self._reading.of(by_stream), *derived], 4), self._terms
        ):
            history.add(start, end, ((s, p, o),), stream)
