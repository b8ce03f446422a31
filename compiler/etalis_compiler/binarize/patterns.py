"""The lowering of every pattern, by its type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.relations import Op

from ..knowledge import KnowledgeSummary
from ..known_at_end import settled
from ..rewrites.push_windows import tighter
from .absence import lower_absence, lower_runs, lower_skip, lower_start
from .builder import Lowered, LoweringContext, Names, NodeBuilder, guard, map_ref, mapped, reads, unite
from .exists import filter_exists, is_streamed, mark_all
from .joins import lower_join
from .outer import lower_minus, lower_outer
from .paths import lower_path
from .records import lower_record
from .selects import lower_subselect
from .triples import lower_bgp, lower_block


def builder(
    summary: KnowledgeSummary, policy: str = "unrestricted", query: str = "", nodes: dict[str, ir.Node] | None = None
) -> NodeBuilder:
    """A builder that lowers all patterns; ``nodes`` are those of the queries before."""
    return NodeBuilder(lower_pattern, summary, policy, query, {} if nodes is None else nodes)


def lower_pattern(pattern: alg.Pattern, above: LoweringContext, b: NodeBuilder) -> Lowered:
    """Take filters and bounds off the pattern, then lower it by its type."""
    needed, conditions, bound = above
    match pattern:
        case alg.Filter(child, own):
            return b.lower(child, needed, own + conditions, bound)
        case alg.Within(child, own_bound):
            if bound is not None and bound.months != own_bound.months:
                return mapped(b.lower(child, needed | reads(conditions), (), own_bound), above, b)
            return b.lower(child, needed, conditions, tighter(bound, own_bound))
    if any(map(alg.has_exists, conditions)) and not isinstance(pattern, alg.SubSelect) and not takes(pattern, b):
        if isinstance(pattern, alg.Extend) and b.consuming:
            # What a join below may consume depends on every conjunct that does not read this variable.
            sunk = tuple(c for c in conditions if pattern.variable not in alg.variables(c) and not _is_volatile(c))
            pattern = replace(pattern, child=alg.Filter(pattern.child, sunk)) if sunk else pattern
            conditions = tuple(c for c in conditions if c not in sunk)
        plain = tuple(c for c in conditions if not alg.has_exists(c))
        marked = tuple(c for c in conditions if alg.has_exists(c))
        inner = b.lower(pattern, needed | reads(marked) & alg.scope(pattern), plain, bound)
        return filter_exists(inner, alg.certain(pattern), b, marked)
    lowering = _LOWERINGS.get(type(pattern))
    if lowering is None:
        raise TypeError(f"not a pattern: {pattern!r}")
    wanted = needed | reads(conditions)
    if b.consuming and not isinstance(pattern, _SPARING):
        wanted |= b.ordering(pattern)
    part: Lowered = lowering(pattern, LoweringContext(wanted, conditions, bound), b)
    return _without_hidden(part, needed, b) if b.consuming else part


def takes(pattern: alg.Pattern, b: NodeBuilder) -> bool:
    """Whether the pattern takes one of several candidates, so that its conditions help decide what is a candidate."""
    match pattern:
        case alg.Join(op):
            return b.consuming and op is not Op.AND
        case alg.Absence(right=right):
            return b.consuming and right is not None
    return False


def _without_hidden(part: Lowered, needed: Names, b: NodeBuilder) -> Lowered:
    """Drop the hidden variables that nothing above reads, because they must not decide the order of candidates."""
    if part.timed is None:
        return part
    kept = tuple(name for name in part.timed.columns if name in needed or b.orders(name))
    return part if kept == part.timed.columns else part._replace(timed=b.add(ir.Map(kept, part.timed)))


def _lower_timeless(pattern: alg.Pattern, above: LoweringContext, b: NodeBuilder) -> Lowered:
    return Lowered(None, guard(pattern, above.conditions))


def _lower_union(pattern: alg.Union, above: LoweringContext, b: NodeBuilder) -> Lowered:
    halves = [b.lower(side, above.needed & alg.scope(side)) for side in (pattern.left, pattern.right)]
    timed = unite([h.timed for h in halves if h.timed is not None], above.needed, b)
    timeless = _either([h.timeless for h in halves if h.timeless is not None])
    late = _either([h.late for h in halves if h.late is not None])
    return mapped(Lowered(timed, timeless, late), above, b)


def _either(sides: list[alg.Pattern]) -> alg.Pattern | None:
    if len(sides) == 2:
        return alg.Union(sides[0], sides[1])
    return sides[0] if sides else None


def _lower_extend(pattern: alg.Extend, above: LoweringContext, b: NodeBuilder) -> Lowered:
    child, variable, expression = pattern.child, pattern.variable, pattern.expression
    needed = (above.needed - {variable}) | alg.variables(expression) & alg.scope(child)
    # What a join below may consume depends on every conjunct that does not read this variable.
    kept = tuple(c for c in above.conditions if not b.consuming or variable in alg.variables(c) or _is_volatile(c))
    sunk = tuple(c for c in above.conditions if c not in kept)
    above = above._replace(conditions=kept)
    inner = b.lower(child, needed, sunk)
    timed, value = inner.timed, expression
    if alg.has_exists(expression) and timed is not None:
        timed, value = mark_all(timed, alg.certain(child), b, expression)
    if inner.timeless is not None and is_streamed(expression, b):
        settled(inner.late)
        inner = Lowered(timed, None, alg.Known(inner.timeless))
    timeless = None if inner.timeless is None else alg.Extend(inner.timeless, variable, expression)
    late = None if inner.late is None else alg.Extend(inner.late, variable, expression)
    return Lowered(
        map_ref(timed, above.needed, b, (ir.Assign(variable, value), *above.steps)),
        guard(timeless, above.conditions),
        guard(late, above.conditions),
    )


def _is_volatile(condition: alg.Expr) -> bool:
    return bool(alg.operators(condition) & alg.VOLATILE)


_SPARING = (alg.BGP, alg.Join)

# One line for each operator.  ``above`` gives a lowering the needed variables, those of the conditions included; under
# a consuming policy that is the whole scope of a pattern, unless it is _SPARING; a join decides itself what its sides
# need.
_LOWERINGS: dict[type, Any] = {
    alg.BGP: lower_bgp,
    alg.PathPattern: lower_path,
    alg.Block: lower_block,
    alg.Record: lower_record,
    alg.GraphNames: _lower_timeless,
    alg.Table: _lower_timeless,
    alg.Join: lower_join,
    alg.Absence: lower_absence,
    alg.Runs: lower_runs,
    alg.Start: lower_start,
    alg.Skip: lower_skip,
    alg.Union: _lower_union,
    alg.Extend: _lower_extend,
    alg.Outer: lower_outer,
    alg.Minus: lower_minus,
    alg.SubSelect: lower_subselect,
}
