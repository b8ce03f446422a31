"""Lowers NOT, SEQ NOT, REPEAT, START and SKIP.  Solutions of their sides have a time: none is from the background."""

from __future__ import annotations

from dataclasses import replace

from etalis_rules import algebra as alg
from etalis_rules import program as ir

from ..known_at_end import may_end_with_stream
from ..unsupported import Fault
from .builder import Lowered, LoweringContext, NodeBuilder, map_ref, reads, steps
from .exists import watched


def timed(part: Lowered, operator: str) -> ir.Ref:
    """The node with the part's timed solutions; raises a ``Fault`` if the part may have timeless ones."""
    if part.timed is None or part.timeless is not None or part.late is not None:
        raise Fault(
            "timeless-side",
            f"a side of {operator} may come from the background alone, and what has no time is not before or after "
            "anything",
            "put a triple that only the stream holds into this group, or write STREAM <s> { … } around it",
        )
    return part.timed


def lower_absence(pattern: alg.Absence, above: LoweringContext, b: NodeBuilder) -> Lowered:
    """The absent side ignores consumption by a policy; it carries the variables it shares, and what is compared."""
    wanted, conditions, bound = above
    word = alg.only_forward(pattern)
    left_scope, absent_scope = alg.scope(pattern.left), alg.scope(pattern.absent)
    right_scope = frozenset() if pattern.right is None else alg.scope(pattern.right)
    around = left_scope | right_scope
    read = reads(pattern.condition)
    policy = b.policy if b.consuming and pattern.right is not None else ""
    with b.sides(policy):
        left = timed(b.lower(pattern.left, (wanted | read | right_scope | absent_scope) & left_scope), word)
    absent = timed(b.observing().lower(pattern.absent, (around | read) & absent_scope), word)
    right = None
    certain: frozenset[str] = frozenset()
    sure = alg.certain(pattern.left)
    if pattern.right is not None:
        with b.sides(policy):
            right = timed(b.lower(pattern.right, (wanted | left_scope | absent_scope) & right_scope), word)
        certain = sure & alg.certain(pattern.right)
        sure |= alg.certain(pattern.right)
    columns = frozenset(left.columns) | frozenset(() if right is None else right.columns)
    begins = alg.is_start(pattern.left)
    node = ir.Absence(
        head=tuple(sorted(columns if b.consuming else columns & wanted)),
        left=left,
        absent=absent,
        right=right,
        certain=tuple(sorted(certain)),
        shared=tuple(sorted(sure & alg.certain(pattern.absent))),
        deadline=_after_left(pattern),
        steps=steps(conditions, bound if right is None or begins else None),
        bound=longer(bound) if begins else None if may_end_with_stream(pattern.left) else bound,
        policy=policy,
        leaves=watched(filter(alg.has_exists, (*conditions, *pattern.condition)), b),
        condition=steps(pattern.condition),
        optional=pattern.optional,
    )
    return Lowered(b.add(node), None)


def _after_left(pattern: alg.Absence) -> alg.Bound | None:
    """How long after the end of the left side the deadline is; START ends one microsecond before the time it names."""
    return longer(pattern.bound) if alg.is_start(pattern.left) else pattern.bound


def longer(bound: alg.Bound | None) -> alg.Bound | None:
    """The bound for what waits since START, which ends one microsecond before the time that it names."""
    return bound and replace(bound, micros=bound.micros + 1)


def lower_start(pattern: alg.Start, above: LoweringContext, b: NodeBuilder) -> Lowered:
    """No window is too short for it."""
    return Lowered(map_ref(b.add(ir.Start()), above.needed, b, steps(above.conditions)), None)


def lower_runs(pattern: alg.Runs, above: LoweringContext, b: NodeBuilder) -> Lowered:
    """An element carries the variables that the clauses read; the result has the keys and the aggregates."""
    counted = (*pattern.aggregates, *pattern.totals)
    operands = reads(a.operand for a in counted if a.operand is not None)
    scope = alg.scope(pattern.child)
    read = frozenset(pattern.keys) | reads(pattern.condition) | operands
    if any(a.operand is None and a.distinct for a in counted):
        read |= frozenset(name for name in scope if alg.is_visible(name))
    child = timed(b.lower(pattern.child, read & scope), "REPEAT")
    absent = None
    if pattern.absent is not None:
        shared = frozenset(pattern.keys) & alg.scope(pattern.absent)
        absent = timed(b.observing().lower(pattern.absent, shared), "the NOT of REPEAT")
    until = None
    if pattern.until is not None:
        shown = (above.needed | frozenset(pattern.keys)) & alg.scope(pattern.until)
        until = timed(b.lower(pattern.until, shown), "the UNTIL of REPEAT")
    # A variable that the element never binds has no column: it is unbound in all elements.
    keys = tuple(key for key in pattern.keys if key in child.columns)
    aggregates = tuple(a for a in pattern.aggregates if not _is_unbound(a, child.columns))
    node = ir.Run(
        head=tuple(sorted({*keys, *(a.variable for a in aggregates), *(() if until is None else until.columns)})),
        child=child,
        absent=absent,
        least=pattern.least,
        most=pattern.most,
        keys=keys,
        condition=pattern.condition,
        longest=pattern.longest or until is not None,
        aggregates=aggregates,
        # Such runs are chosen first.
        bound=None if pattern.longest or pattern.maximal or until is not None else above.bound,
        gap=pattern.gap,
        maximal=pattern.maximal,
        until=until,
        totals=pattern.totals,
    )
    return Lowered(map_ref(b.add(node), above.needed, b, above.steps), None)


def _is_unbound(call: alg.AggregateCall, columns: tuple[str, ...]) -> bool:
    """Whether this is the FIRST or LAST of a variable that no element binds."""
    return call.takes_element and alg.variable_of(call.operand) not in ("", *columns)


def lower_skip(pattern: alg.Skip, above: LoweringContext, b: NodeBuilder) -> Lowered:
    """All visible variables of the group decide the order of its solutions."""
    scope = alg.scope(pattern.child)
    shown = frozenset(filter(alg.is_visible, scope))
    read = frozenset() if pattern.after is None else alg.variables(pattern.after)
    child = timed(b.lower(pattern.child, (above.needed | shown | read | frozenset(pattern.keys)) & scope), "SKIP")
    columns = frozenset(child.columns)
    node = ir.Skip(
        head=tuple(sorted(columns if b.consuming else columns & above.needed)),
        child=child,
        canonical=tuple(sorted(columns & shown)),
        keys=tuple(key for key in pattern.keys if key in columns),
        at=pattern.at,
        after=pattern.after,
        length=pattern.length,
    )
    return Lowered(map_ref(b.add(node), above.needed, b, above.steps), None)
