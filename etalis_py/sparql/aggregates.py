"""The aggregates of a whole group (SPARQL 1.1 §18.5), with the accumulators that are also used over windows."""

from __future__ import annotations

from collections.abc import Callable

from etalis_rules.algebra import AggregateCall
from etalis_rules.terms import UNBOUND

from etalis_py.sparql.run import EvaluationRun, Solution
from etalis_py.sparql.shared_state import Value
from etalis_py.values import SparqlError, decode
from etalis_py.values.functions import accumulator

Aggregate = Callable[[list[Solution], EvaluationRun], str]
"""From the solutions of a group to the term; unbound when the aggregate is an error."""


def compile_aggregate(call: AggregateCall, operand: Value | None) -> Aggregate:
    """The aggregate of a group; ``operand`` is its compiled expression, None for COUNT(*)."""
    accumulator(call.name)  # fail on an unknown name now, not in the middle of an evaluation

    def aggregate(members: list[Solution], run: EvaluationRun) -> str:
        total = accumulator(call.name, distinct=call.distinct, separator=call.separator)
        for mu, start, end in members:
            if operand is None:
                total.add(None, (*sorted(mu.items()), start, end))
                continue
            term = operand(mu, start, end, run)
            if term:
                total.add(decode(term), term)
            else:
                total.fail()
        try:
            return total.result()
        except SparqlError:  # an aggregate that is an error leaves its variable unbound
            return UNBOUND

    return aggregate
