"""Which events may have a solution of an EVENT that is evaluated event by event, as far as single triples tell.

A triple pattern that every solution needs, and that no triple of the background matches, is matched by a triple of the
event, or by one that the schema derives from such a triple.  Kernels look for these in the whole batch.

Cost: a comparison for each triple and each constant of these patterns.  State: none.
"""

from __future__ import annotations

import numpy as np
from etalis_rules import program as ir
from etalis_rules.records import needed_leaves

from etalis_py.executors.columns.events import Events
from etalis_py.executors.columns.leaves import LeafOperator
from etalis_py.executors.columns.terms import Terms


class NeededTriples:
    """The triples without which an event has no solution of one node."""

    def __init__(self, node: ir.Record, terms: Terms) -> None:
        self._needed = [
            [LeafOperator(leaf, terms, lambda triple: (triple,)) for leaf in leaves] for leaves in needed_leaves(node)
        ]

    def events(self, given: Events) -> Events:
        """The events that have one for each pattern."""
        for leaves in self._needed:
            if not len(given):
                break
            there = np.logical_or.reduce([leaf.marks(given.triples.columns) for leaf in leaves])
            given = given.take(np.logical_or.reduceat(there, given.firsts))
        return given
