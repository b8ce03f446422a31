"""OPTIONAL, OPTIONALSEQ, EQUALSOPTIONAL and MINUS."""

from __future__ import annotations

from dataclasses import replace

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.relations import OuterOp

from ..known_at_end import may_end_with_stream, only_forward, settled
from ..rewrites.push_windows import condition_bound
from .builder import Lowered, LoweringContext, NodeBuilder, guard, look_up, mapped, reads, steps, unite
from .exists import watched


def lower_outer(pattern: alg.Outer, above: LoweringContext, b: NodeBuilder) -> Lowered:
    """The positive and the negative half of an optional operator."""
    wanted, conditions, _ = above
    op, mandatory, optional, condition = pattern.op, pattern.mandatory, pattern.optional, pattern.condition
    own, other = alg.scope(mandatory), alg.scope(optional)
    read = wanted | reads(condition)
    policy = b.policy if b.consuming and op is not OuterOp.OPTIONAL else ""
    with b.sides(policy):
        left = b.lower(mandatory, (read | other) & own)
        right = b.lower(optional, (read | own) & other)
    settled(left.late)
    settled(right.late)
    if right.timed is None and right.timeless is None:
        return mapped(left, above, b)
    branches: list[ir.Ref] = []
    if left.timed is not None:
        names = frozenset(left.timed.columns) | other
        certain = alg.certain(mandatory) & alg.certain(optional)
        kept = b.kept_for(condition_bound(condition), left.timed, right.timed)
        node = ir.Outer(
            head=tuple(sorted(names if b.consuming else names & wanted)),
            op=op,
            left=left.timed,
            right=right.timed,
            background=right.timeless,
            certain=tuple(sorted(certain)),
            condition=steps(condition),
            bound=None if may_end_with_stream(mandatory) else kept,
            leaves=watched(condition, b),
            steps=above.steps,
            policy=policy,
        )
        branches.append(b.add(node))
    timeless = late = None
    if left.timeless is not None and right.timed is not None:
        combined = above._replace(conditions=condition + conditions)
        branches.append(look_up(right.timed, left.timeless, combined, b))
        late = guard(replace(pattern, mandatory=alg.Known(left.timeless), optional=only_forward(optional)), conditions)
    elif left.timeless is not None and right.timeless is not None:
        timeless = guard(alg.Outer(OuterOp.OPTIONAL, left.timeless, right.timeless, condition), conditions)
    return Lowered(unite(branches, wanted, b), timeless, late)


def lower_minus(pattern: alg.Minus, above: LoweringContext, b: NodeBuilder) -> Lowered:
    """The left solutions without a compatible right one that shares a variable."""
    wanted, conditions, _ = above
    shared = tuple(sorted(frozenset(pattern.scope) & alg.scope(pattern.right)))
    left = b.lower(pattern.left, (wanted | frozenset(shared)) & alg.scope(pattern.left))
    right = b.observing().lower(pattern.right, frozenset(shared))
    settled(left.late)
    settled(right.late)
    if not shared and right.timed is None:
        return mapped(left, above, b)
    timed = None
    if left.timed is not None:
        names = frozenset(left.timed.columns)
        certain = alg.certain(pattern.left) & alg.certain(pattern.right) & frozenset(shared)
        node = ir.Outer(
            head=tuple(sorted(names if b.consuming else names & wanted)),
            op=OuterOp.MINUS,
            left=left.timed,
            right=right.timed,
            background=right.timeless,
            certain=tuple(sorted(certain)),
            scope=shared,
            steps=above.steps,
        )
        timed = b.add(node)
    timeless = late = None
    if left.timeless is not None and right.timed is not None:
        late = guard(alg.Minus(alg.Known(left.timeless), only_forward(pattern.right), shared), conditions)
    elif left.timeless is not None and right.timeless is not None:
        timeless = guard(alg.Minus(left.timeless, right.timeless, shared), conditions)
    return Lowered(timed, timeless, late)
