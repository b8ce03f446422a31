"""Computes how far back the answers of windowed queries reach.  Sliding windows forget: [RANGE d] looks back d.

A network of queries can be answered in slices of time if the answer at t depends only on the items of (t − d, t]:

* its windows slide by time, or hold the items of the instant; a window over a window adds its width, and so does a
  window over another query's triples;
* evaluations need an item, not the clock alone, which would run on where a slice has no items;
* it is RSTREAM, because ISTREAM and DSTREAM compare with the previous evaluation, which may be any time ago.

Everything else may look at the whole content of a window: ORDER BY, LIMIT and aggregates without GROUP BY work within
one evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence

from etalis_rules import algebra as alg

from ..reach import Reach, endless
from .plan import Now, Sliding, WindowPlan, WindowUse
from .sharding import waits_for_items


def reach_of(plans: Sequence[WindowPlan]) -> Reach:
    """The reach of the answers of a network of queries; if it is unbounded, with the reason."""
    for plan in plans:
        if reason := _unsliced(plan):
            return endless(f"{plan.name}: {reason}")
    known = dict.fromkeys((plan.name for plan in plans), 0)
    for _ in range(len(plans) + 1):
        before = dict(known)
        for plan in plans:
            makers = [known[maker.name] for maker in plans if maker.feeds and maker.feeds in plan.streams]
            known[plan.name] = max(_looks_back(plan, window) for window in plan.windows) + max(makers, default=0)
        if known == before:
            return Reach(max(known.values()))
    return endless(f"{', '.join(known)} feed each other, ever further back")


def _unsliced(plan: WindowPlan) -> str:
    """The reason why a query cannot be answered in slices of time; empty if it can."""
    if plan.form == "ask":
        return "ASK answers once for the whole stream"
    if plan.form == "describe":
        return "DESCRIBE asks for all that is known of a node"
    if plan.matches:
        return "event patterns (MATCH) may have used up items at any time"
    for window in plan.windows:
        if not isinstance(window.shape, Sliding | Now):
            return f"the window {window.name} does not slide with time, so it may hold items of any age"
    if plan.r2s != "RSTREAM":
        return f"{plan.r2s} compares with the evaluation before, which may lie back any time"
    if not waits_for_items(plan):
        return "it is evaluated by the clock even where there are no items"
    if alg.is_volatile(alg.SubSelect(plan.select)):
        return "RAND, UUID, STRUUID, BNODE and NOW change with every evaluation"
    return ""


def _looks_back(plan: WindowPlan, window: WindowUse) -> int:
    """The length of time that a window looks back, including the windows that it is defined on."""
    own = window.shape.width + window.shape.offset if isinstance(window.shape, Sliding) else 0
    return own + (_looks_back(plan, plan.window(window.inner)) if window.inner else 0)


__all__ = ["reach_of"]
