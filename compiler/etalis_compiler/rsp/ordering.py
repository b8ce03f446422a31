"""Fixes orders that SPARQL leaves open, so that the order of simultaneous items does not affect an answer.

SPARQL leaves open which rows LIMIT keeps among ties of ORDER BY, and in which order GROUP_CONCAT takes its members.
Here both follow the order of ORDER BY over all variables, so that an answer is a function of the stream alone.
"""

from __future__ import annotations

from dataclasses import replace

from etalis_rules import algebra as alg


def in_fixed_order(select: alg.Select) -> alg.Select:
    """The select, and those inside it, with a fixed order."""
    pattern = alg.with_selects(select.pattern, in_fixed_order)
    every = tuple(alg.OrderKey(alg.Var(v)) for v in sorted(alg.scope(pattern)))
    if any(a.name == "GROUP_CONCAT" for a in select.aggregates):
        pattern = alg.SubSelect(alg.Select(pattern, tuple(sorted(alg.scope(pattern))), order=every))
    order = select.order
    if order or select.limit is not None or select.offset:
        order += tuple(alg.OrderKey(alg.Var(k)) for k in select.keys) if select.grouped else every
    return replace(select, pattern=pattern, order=order)
