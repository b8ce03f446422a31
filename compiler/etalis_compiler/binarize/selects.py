"""Lowers SELECT to nodes that group, project and slice."""

from __future__ import annotations

from dataclasses import replace

from etalis_rules import algebra as alg
from etalis_rules import program as ir

from ..known_at_end import settled
from ..unsupported import Fault
from .builder import MARK, Lowered, LoweringContext, NodeBuilder, mapped, reads
from .exists import filter_exists, mark_all, watched


def lower_select(select: alg.Select, b: NodeBuilder, top: bool = False) -> Lowered:
    """A SELECT as a goal: grouped, or projected (at the ``top`` of a query its output does that)."""
    select = _asked_before(select, b)
    outputs = frozenset(select.variables)
    calls = tuple(e for _, e in select.extends)
    order = tuple(k.expression for k in select.order)
    operands = tuple(a.operand for a in select.aggregates if a.operand is not None)
    named = frozenset(name for name, _ in select.extends)
    if any(map(alg.has_exists, order)):
        raise Fault(
            "exists-in-order",
            "EXISTS is not allowed in ORDER BY",
            "bind it in the WHERE clause, BIND(EXISTS {…} AS ?found), and order by ?found",
        )
    needed = outputs | reads(calls) | reads(order) | reads(operands) | frozenset(select.keys)
    if select.grouped and _needs_order(select):
        needed |= frozenset(name for name in alg.scope(select.pattern) if alg.is_visible(name))
    inner = b.lower(select.pattern, needed & alg.scope(select.pattern))
    late = None if inner.late is None else alg.SubSelect(replace(select, pattern=inner.late))
    if inner.timed is None:
        return _of_background(select, inner)
    if select.grouped:
        settled(inner.late)
        node = ir.Group(
            head=tuple(sorted(outputs | reads(order))),
            child=inner.timed,
            canonical=tuple(sorted(name for name in inner.timed.columns if alg.is_visible(name))),
            shown=tuple(sorted(outputs)),
            keys=select.keys,
            aggregates=select.aggregates,
            having=select.having,
            extends=select.extends,
            distinct=select.distinct,
            order=select.order,
            limit=select.limit,
            offset=select.offset,
            window=select.window,
            background=inner.timeless,
            leaves=watched((*calls, *select.having), b),
        )
        return Lowered(b.add(node), None)
    ref = inner.timed
    for name, e in select.extends:
        plain = e
        if alg.has_exists(e):
            ref, plain = mark_all(ref, alg.certain(select.pattern), b, e)
        columns = frozenset(ref.columns) | {name}
        ref = b.add(ir.Map(tuple(sorted(columns)), ref, (ir.Assign(name, plain),)))
    keep = (outputs | (reads(order) & (frozenset(ref.columns) | named))) & frozenset(ref.columns)
    if frozenset(ref.columns) != keep and not top:
        ref = b.add(ir.Map(tuple(sorted(keep)), ref))
    untimed = [p for p in (inner.timeless, late) if p is not None]
    only_there = (outputs & frozenset().union(*map(alg.scope, untimed))) - frozenset(ref.columns)
    if only_there:
        # A variable that only timeless solutions bind is unbound in timed ones.
        ref = b.add(ir.Union(tuple(sorted(frozenset(ref.columns) | only_there)), (ref,), False))
    timeless = None
    if inner.timeless is not None:
        timeless = alg.SubSelect(replace(select, pattern=inner.timeless))
    return Lowered(ref, timeless, late)


def _of_background(select: alg.Select, inner: Lowered) -> Lowered:
    """A SELECT over the background alone, where a window has nothing to leave out.

    If some of its solutions are only known at the end, all are counted, ordered and compared then.
    """
    select = replace(select, window=None)
    parts = inner.timeless, inner.late
    if inner.timeless is not None and inner.late is not None and _compares(select):
        parts = None, alg.Union(alg.Known(inner.timeless), inner.late)
    timeless, late = (None if part is None else alg.SubSelect(replace(select, pattern=part)) for part in parts)
    return Lowered(None, timeless, late)


def _compares(select: alg.Select) -> bool:
    """Whether a row depends on the other ones."""
    return bool(select.grouped or select.distinct or select.order or select.limit is not None or select.offset)


def _asked_before(select: alg.Select, b: NodeBuilder) -> alg.Select:
    """The same with the arguments of aggregates bound before if they contain EXISTS.

    So they are evaluated once for each solution, at its end, and have the same value when it leaves the window.
    """
    pattern, calls = select.pattern, []
    for call in select.aggregates:
        asked = call
        if call.operand is not None and alg.has_exists(call.operand):
            name = f"{MARK}{next(b.marks)}"
            pattern = alg.Extend(pattern, name, call.operand)
            asked = replace(call, operand=alg.Var(name))
        calls.append(asked)
    return replace(select, pattern=pattern, aggregates=tuple(calls))


def _needs_order(select: alg.Select) -> bool:
    """Whether it matters which of the solutions of an instant comes first."""
    counted = select.window is not None and select.window.events > 0
    ordered = any(a.name in ("GROUP_CONCAT", "SAMPLE", "MIN", "MAX") or a.operand is None for a in select.aggregates)
    return counted or ordered


def _shown(select: alg.Select, ref: ir.Ref) -> tuple[str, ...]:
    return tuple(name for name in sorted(select.variables) if name in ref.columns)


def _slice(select: alg.Select, ref: ir.Ref, b: NodeBuilder) -> ir.Ref:
    """DISTINCT, LIMIT and OFFSET of a sub-SELECT without aggregates."""
    if select.grouped or not (select.distinct or select.limit is not None or select.offset):
        return ref
    head, shown = tuple(sorted(select.variables)), _shown(select, ref)
    node = ir.Slice(head, ref, shown, select.distinct, select.order, select.limit, select.offset)
    return b.add(node)


def lower_subselect(pattern: alg.SubSelect, above: LoweringContext, b: NodeBuilder) -> Lowered:
    """A SELECT inside a group."""
    part = lower_select(pattern.select, b)
    if part.timed is not None:
        part = Lowered(_slice(pattern.select, part.timed, b), part.timeless, part.late)
    settled(part.late)
    if any(map(alg.has_exists, above.conditions)):
        return filter_exists(part, alg.certain(pattern), b, above.conditions)
    return mapped(part, above, b)
