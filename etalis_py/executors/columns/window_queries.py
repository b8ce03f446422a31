"""Decides which queries ``window_solutions`` can answer over windows, with the reason for the others."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from etalis_compiler.rsp import WindowPlan
from etalis_rules import algebra as alg
from etalis_rules.relations import Op

from etalis_py.executors.columns.supported_rules import is_timed
from etalis_py.executors.windows.source import GENERATED_AT

_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE")


def unsuited_query(plan: WindowPlan) -> str | None:
    """The reason why the query cannot be answered over columns of its windows; None if it can."""
    if is_timed(plan.select) or alg.is_volatile(alg.SubSelect(plan.select)):
        return "it reads times, or an expression changes while nothing comes"
    if not plan.variables and plan.form != "ask":
        return "it shows no variable"
    streams = {use.name for use in plan.windows}
    if sum(use.default for use in plan.windows) == 1:  # of several, the default graph is the merge
        streams.add("")
    return _of_select(plan.select, streams)


def _of_select(select: alg.Select, streams: Collection[str]) -> str | None:
    for call in select.aggregates:
        if call.name not in _AGGREGATES or (call.operand is None and call.distinct):
            return f"{call.name} over a window has no columnar form"
    exprs = [*select.having, *(e for _, e in select.extends), *(key.expression for key in select.order)]
    exprs += [call.operand for call in select.aggregates if call.operand is not None]
    return _of_expressions(exprs) or _of_pattern(select.pattern, streams)


def _of_expressions(exprs: Sequence[alg.Expr]) -> str | None:
    return "it has an EXISTS" if any(map(alg.has_exists, exprs)) else None


def _of_pattern(pattern: alg.Pattern, streams: Collection[str]) -> str | None:
    match pattern:
        case alg.BGP(triples, stream, None) if triples and stream in streams:
            times = any(triple.predicate == alg.Const(GENERATED_AT) for triple in triples)
            return "it asks for times of graphs" if times else None
        case alg.Record(inner, stream, None) if stream in streams:
            return _of_event(inner)
        case alg.Filter(child, conditions):
            return _of_expressions(conditions) or _of_pattern(child, streams)
        case alg.Extend(child, _, expression):
            return _of_expressions([expression]) or _of_pattern(child, streams)
        case alg.Join(Op.AND, left, right, (), None):
            shared = alg.scope(left) & alg.scope(right)
            if not shared <= alg.certain(left) & alg.certain(right):
                return "a variable by which it joins may be unbound"
            return _of_pattern(left, streams) or _of_pattern(right, streams)
        case alg.Table():
            return None
        case alg.Union(left, right):
            return _of_pattern(left, streams) or _of_pattern(right, streams)
        case alg.SubSelect(select):
            return _of_select(select, streams)
    return "its pattern is more than triples, EVENT with these, FILTER, BIND, VALUES, UNION and sub-SELECTs"


def _of_event(pattern: alg.Pattern) -> str | None:
    match pattern:
        case alg.BGP(triples, _, None) if triples:
            return None
        case alg.Filter(child, conditions):
            return _of_expressions(conditions) or _of_event(child)
        case alg.Extend(child, _, expression):
            return _of_expressions([expression]) or _of_event(child)
    return "an EVENT of it has more than triples, FILTER and BIND"
