"""Checks the content of ``EVENT {…}``, and moves parts of it outside where that means the same.

Filters, BINDs and inline rows at the top level of EVENT mean the same beside it, since its solutions have the interval
of the event in either place.  Usually only a plain set of triple patterns remains inside, which is read like a row of a
table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from etalis_rules import algebra as alg
from etalis_rules.relations import Op

from . import ast
from .triple_blocks import error
from .unsupported import Fault

_BESIDE = "write it beside EVENT, between groups: EVENT {…} SEQ EVENT {…}"


def check_event(event: ast.EventGroup, inside_graph: bool) -> None:
    """Refuse patterns that have no meaning for a single event, or cannot be evaluated over one."""
    if inside_graph:
        raise error(
            event.span,
            "event-graph",
            "EVENT stands inside GRAPH, which reads stored graphs, not the stream",
            "write EVENT <graph> { … } for the events of one graph, or GRAPH inside EVENT for stored triples",
        )
    for node in ast.walk(event.group):
        if (fault := _refused(node)) is not None:
            raise fault


def _refused(node: object) -> Fault | None:
    if word := ast.keyword(node):
        message = f"{word} stands inside EVENT, and all triples of one event have the event's interval"
        return error(cast(ast.Spanned, node).span, "event-temporal", message, _BESIDE)
    match node:
        case ast.Within():
            message = "WITHIN stands inside EVENT, and all triples of one event have the event's interval"
            return error(node.span, "event-within", message, "write it after the braces: EVENT {…} WITHIN 10 s")
        case ast.StreamGroup():
            message = "STREAM stands inside EVENT, and an event comes in one stream"
            return error(node.span, "event-stream", message, "choose the events outside: STREAM <s> { EVENT {…} }")
        case ast.WindowGroup():
            message = "WINDOW stands inside EVENT, which reads one event and the background"
            return error(node.span, "event-window", message, "choose the window outside: WINDOW :w { EVENT {…} }")
        case ast.Current() | ast.Match() | ast.EventDeclaration():
            message = "a pattern over windows or facts stands inside EVENT, which reads one event and the background"
            return error(node.span, "event-window", message, "write it beside EVENT, after the braces")
        case ast.TripleTime():
            message = "timestamp() stands inside EVENT, and all triples of one event have the event's time"
            return error(node.span, "event-timestamp", message, "use getENDTIME() inside EVENT")
        case ast.Start():
            message = "START stands inside EVENT, which reads one event and the background"
            return error(node.span, "event-temporal", message, "write it before EVENT: { START } SEQ EVENT {…}")
        case ast.EventGroup():
            message = "EVENT stands inside EVENT, which reads one event and the background"
            return error(node.span, "event-event", message, "close the first one before: EVENT {…} EVENT {…}")
        case ast.Query(within=ast.Duration() as within):
            message = "WITHIN stands in a sub-SELECT inside EVENT, where there is only one event"
            return error(within.span, "event-within", message, "write it after the braces: EVENT {…} WITHIN 10 s")
        case ast.Service():
            return error(node.span, "service", "SERVICE is not executed", "load the data as background knowledge")
    return None


def check_drawn(event: ast.EventGroup, pattern: alg.Pattern) -> None:
    """Refuse values that are drawn (RAND) where they cannot be drawn beside EVENT."""
    inside = (part for record in alg.walk(pattern) if isinstance(record, alg.Record) for part in alg.walk(record))
    drawn = {part.op for part in inside if isinstance(part, alg.Apply) and part.op in alg.DRAWN}
    for call in ast.walk(event) if drawn else ():
        if isinstance(call, ast.Call) and call.name.upper() in drawn:
            message = f"{call.name}() draws a value, which is not done in a group or a SELECT inside EVENT"
            raise error(
                call.span, "event-drawn", message, "write the BIND or FILTER after the braces: EVENT {…} BIND(…)"
            )


@dataclass(frozen=True, slots=True)
class Chosen:
    """The events to read: of a stream (empty: of any), and of a graph, or with a variable for their graph's name.

    ``timeless``: the solutions have no interval outside of EVENT.
    """

    stream: str
    graph: alg.Var | alg.Const | None
    timeless: bool = False


def of_event(pattern: alg.Pattern, chosen: Chosen) -> alg.Pattern:
    """The algebra of EVENT over a pattern, with as few parts inside it as possible."""
    match pattern:
        case alg.Filter(child, conditions):
            apart = _has_parts_apart(child)
            beside = tuple(c for c in conditions if _may_leave(c, child, chosen) and not (apart and alg.pinned(c)))
            inside = tuple(c for c in conditions if c not in beside)
            if inside:
                event: alg.Pattern = alg.Record(alg.Filter(child, inside), chosen.stream, chosen.graph)
            else:
                event = of_event(child, chosen)
            return alg.filtered(event, beside)
        case alg.Extend(child, variable, expression):
            if _may_leave(expression, child, chosen) and alg.Var(variable) != chosen.graph:
                return alg.Extend(of_event(child, chosen), variable, expression)
        case alg.Union(left, right):
            return alg.Union(of_event(left, chosen), of_event(right, chosen))
        case alg.Join(Op.AND, left, alg.Table() as table) if not _has_parts_apart(left):
            return alg.Join(Op.AND, of_event(left, chosen), table)
        case alg.Join(Op.AND, alg.Table() as table, right) if not _has_parts_apart(right):
            return alg.Join(Op.AND, table, of_event(right, chosen))
    return alg.Record(pattern, chosen.stream, chosen.graph)


def _has_parts_apart(pattern: alg.Pattern) -> bool:
    """Whether some triples share no variable with the others, so that what holds a variable to a term may find them.

    >>> def triple(s, o): return alg.Triple(alg.Var(s), alg.Const("<p>"), alg.Var(o))
    >>> [_has_parts_apart(alg.BGP((triple("x", "y"), triple(s, "z")))) for s in "xw"]
    [False, True]
    """
    groups: list[frozenset[str]] = []
    for part in alg.walk(pattern):
        if not isinstance(part, alg.Triple | alg.PathPattern):
            continue
        names = alg.node_variables(part.subject, part.object)
        names |= alg.node_variables(part.predicate) if isinstance(part, alg.Triple) else frozenset()
        if names:
            joined = names.union(*(group for group in groups if group & names))
            groups = [*(group for group in groups if not group & names), joined]
    return len(groups) > 1


def _may_leave(expression: alg.Expr, child: alg.Pattern, chosen: Chosen) -> bool:
    """Whether an expression means the same beside EVENT.

    It does not if it has an EXISTS, if it reads the graph's name, which it would not see inside, or if it reads the
    event's time and there is none outside, or compares it with something outside.
    """
    timed = alg.operators(expression) & alg.INTERVAL
    if alg.has_exists(expression):
        return False
    if timed and (chosen.timeless or not alg.variables(expression) <= alg.scope(child)):
        return False
    graph = chosen.graph
    hidden = isinstance(graph, alg.Var) and graph.name not in alg.certain(child)
    return not (hidden and isinstance(graph, alg.Var) and graph.name in alg.variables(expression))
