"""Decides which nodes can run in columns: for a whole batch, one instant at a time, or not at all, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeGuard

from etalis_compiler.families import NAME
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.clock import deadline
from etalis_rules.lateness import late_nodes, latenesses
from etalis_rules.operator_words import keyword
from etalis_rules.operators import Pairing, compares_times, decides_for_good, expressions, inputs, reads_stream
from etalis_rules.records import table_columns_of
from etalis_rules.relations import NEAREST, Op
from etalis_rules.roles import Role
from etalis_rules.runs import is_plain, keeps_longest_alone, reported_when, sees_beginning
from etalis_rules.traversal import walk


def taking_late(nodes: Mapping[str, ir.Node]) -> frozenset[str]:
    """The nodes to which solutions may come that ended before the instant; of aggregates, those to which some do."""
    late, longest = late_nodes(nodes), latenesses(nodes)
    return frozenset(n for n in late if not isinstance(group := nodes[n], ir.Group) or longest[group.child.node])


TIMED = frozenset(("GETSTARTTIME", "GETENDTIME", "GETDURATION", "NOW", "SEED"))


def is_timed(tree: object) -> bool:
    """Whether an expression, or one in a pattern, reads an interval or the instant."""
    return any(isinstance(part, alg.Apply) and part.op in TIMED for part in walk(tree))


def unsupported_node(node: ir.Node) -> str | None:
    """The reason why this node cannot run in columns, not even one instant at a time; None if it can."""
    if reads_stream(node) and node.late and (isinstance(node, ir.Record) or node.entailed):
        return PAST
    if isinstance(node, ir.Absence) and node.condition and node.deadline is not None:
        return "a SEQ NOT … WITHIN with a condition on both sides"
    if isinstance(node, ir.Run) and reported_when(node) and (beyond := _beyond_open_runs(node)):
        return beyond
    evaluated = (s.expression for s in _after(node)) if looks_back(node) else expressions(node)
    return next((reason for e in evaluated if (reason := unsupported_expression(e)) is not None), None)


PAST = "a pattern reads what a rule derives after its end, when something left its window or a LIMIT let more through"


def _after(node: ir.Node) -> Iterable[ir.Condition | ir.Assign]:
    """The conditions and BINDs of a node, which are evaluated after its look back at earlier occurrences."""
    return (step for step in getattr(node, "steps", ()) if isinstance(step, ir.Condition | ir.Assign))


def by_instant(node: ir.Node, late: bool) -> str | None:
    """The reason why the row operator must run this node one instant at a time; None if it can take a whole batch.

    ``late``: solutions that it is given may have ended before the instant (``taking_late``).
    """
    match node:
        case _ if looks_back(node):
            return "an EXISTS that looks back at single occurrences"
        case ir.Join(policy=policy) if decides_for_good(node) and (policy or is_open(node)):
            return f"a {keyword(node)} that consumes, or whose sides may leave a variable unbound"
        case ir.Join() if waits_for_condition(node):
            return None if not late else _LATE
        case ir.Join() | ir.Absence() if node.condition:
            return f"a {keyword(node)} with a condition on both sides"
        case ir.Join(op=Op.PAR, policy=policy) if policy:
            return f"a {keyword(node)} that consumes"
        case ir.Run() if not (has_one_open_run(node) or steps_by_pairs(node)):
            return _beyond_pairs(node)
        case ir.Record():
            columns = table_columns_of(node)
            if columns is None:
                return "an EVENT of more than triple patterns about one subject, with EXISTS or MINUS of such"
            return "an EVENT with OPTIONAL, unless its events are the rows of a table" if columns.optional else None
    if late and isinstance(node, ir.Group):
        return "an aggregate over the rows of another one, which may have ended before"
    if late and compares_times(node):
        return _LATE
    return _picked_by_instant(node) if isinstance(node, Pairing) and deadline(node) is None else None


_LATE = "a join with what an aggregate reports, which may have ended before"


def waits_for_condition(node: ir.Node) -> bool:
    """Whether a left side takes the first right one that satisfies a condition on both, which reads no times."""
    if not isinstance(node, ir.Join) or not node.condition or node.op not in NEAREST or node.deadline is not None:
        return False
    return not (node.policy or is_open(node) or is_timed(node.condition))


def looks_back(node: ir.Node) -> bool:
    """Whether a node looks back at single occurrences in the past, besides the solutions of its inputs.

    An EXISTS that is looked for backwards may ask stored graphs alone.
    """
    past = isinstance(node, ir.Recall) or any(part.role is Role.PAST for part in inputs(node))
    return past and not isinstance(node, Pairing | ir.Group)  # joins and aggregates that look back run in rows


def _picked_by_instant(node: Pairing) -> str | None:
    """The reason why a consuming policy must choose its goals one instant at a time; None if it can take a batch."""
    if node.policy and any(isinstance(step, ir.Background) for step in node.steps):
        return "a consuming join that looks into the background"
    if node.policy and any(isinstance(step, ir.Parameters) for step in node.steps):
        return "a consuming join that is divided among queries that differ in constants only"
    return None


def is_open(node: ir.Join) -> bool:
    """Whether a variable of both sides may be unbound in one of them."""
    return not set(node.left.columns) & set(node.right.columns) <= set(node.certain)


def unsupported_expression(e: alg.Expr) -> str | None:
    """The reason why an expression needs more than its solution, namely earlier occurrences; None if it does not."""
    return "EXISTS looks back at single occurrences" if alg.has_exists(e) else None


def is_windowed(node: ir.Group) -> bool:
    """Whether this aggregation can be computed from running totals."""
    window = node.window
    if window is None or window.months or node.keys or node.background is not None:
        return False
    if node.having or node.order or node.distinct or node.limit is not None or node.offset:
        return False
    names = {call.variable for call in node.aggregates}
    if not all(isinstance(e, alg.Var) and e.name in names for _, e in node.extends):
        return False
    return all(_is_simple(call) for call in node.aggregates)


def _is_simple(call: alg.AggregateCall) -> bool:
    if call.distinct:
        return False
    counted = call.operand is None and call.name == "COUNT"
    return counted or (call.name == "SUM" and isinstance(call.operand, alg.Var))


def is_grouped(node: ir.Group) -> bool:
    """Whether this aggregation is over a sliding window of solutions, and its rows are shown as they change."""
    window = node.window
    if window is None or window.months or not _is_plain_group(node):
        return False
    return all(map(_is_kept, node.aggregates))


def is_cumulative(node: ir.Group) -> bool:
    """Whether this aggregation is over all solutions so far, and its rows are shown as they change."""
    if not _is_plain_group(node) or (shows_best(node) and any(call.name == "GROUP_CONCAT" for call in node.aggregates)):
        return False
    return node.window is None and all(map(_is_kept, node.aggregates))


def shows_best(node: ir.Group) -> bool:
    """Whether rows are reported for the places that they have among those of all groups."""
    return node.limit is not None or bool(node.offset)


def _is_plain_group(node: ir.Group) -> bool:
    if node.background is not None or node.leaves or NAME in node.keys:
        return False  # in a family, a window must be looked at only when a solution of its own query enters
    chosen = node.distinct or node.limit is not None or node.offset
    if node.hides_keys and chosen:
        return False  # rows of several groups may be equal, and each counts
    return not ((chosen or node.order) and is_timed((node.having, node.extends, node.order)))


def _is_kept(call: alg.AggregateCall) -> bool:
    """Whether kernels keep what this aggregate needs: numbers, distinct terms, the one that counts, or texts."""
    return call.name != "GROUP_CONCAT" or not call.distinct


def has_one_open_run(node: ir.Node) -> TypeGuard[ir.Run]:
    """Whether a key has one run at a time, which is reported when something else than its last element ends it."""
    return isinstance(node, ir.Run) and bool(reported_when(node)) and not _beyond_open_runs(node)


def _beyond_open_runs(node: ir.Run) -> str:
    """What of a REPEAT that something else than its last element ends needs rows; empty if nothing does."""
    name = f"{keyword(node)} … {reported_when(node)}"
    if node.absent is not None:
        return f"a {name} with NOT"
    if node.until is not None and not set(node.keys) <= set(node.until.columns):
        return f"a {name} that has other variables than BY"
    if node.most is not None or node.bound is not None:
        return f"a {name} of at most so many elements, or of bounded length"
    return _beyond_pairs(node)


_LONG = 1 << 61  # a time and a gap below it add up in int64


def steps_by_pairs(node: ir.Node) -> TypeGuard[ir.Run]:
    """Whether an element and the one before it decide alone if a run goes on, and kernels aggregate the runs."""
    return isinstance(node, ir.Run) and not reported_when(node) and not _beyond_pairs(node)


def _beyond_pairs(node: ir.Run) -> str:
    """What of a REPEAT needs the operator of rows; empty if nothing does."""
    name = keyword(node)
    if sees_beginning(node) or alg.looks_back(node.condition) > 1:
        return f"a {name} whose WHERE reads more than two elements"
    if is_timed(node.condition):
        return f"a {name} whose WHERE reads times or draws"
    if any(bound is not None and (bound.months or bound.micros >= _LONG) for bound in (node.gap, node.bound)):
        return f"a {name} with a length of months"
    if node.most == 1:
        return f"a {name} of single elements"
    if node.absent is not None and not set(node.keys) <= set(node.absent.columns):
        return f"a {name} whose NOT has other variables than BY"
    others = [call for call in node.aggregates if not is_plain(call)]
    if others and keeps_longest_alone(node) and not reported_when(node):
        return f"a {name} of any length that aggregates its values"
    if any(call.distinct or call.name not in _OF_RUNS or not isinstance(call.operand, alg.Var) for call in others):
        return f"a {name} with an aggregate of distinct values, of an expression or of texts"
    return ""


_OF_RUNS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE")


def aggregates_by_kernel(node: ir.Group) -> bool:
    """Whether a kernel aggregates, as long as its summands are exact."""
    return is_windowed(node) or is_grouped(node) or is_cumulative(node)
