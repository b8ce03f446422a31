"""What one node does, on one line: the titles of a plan."""

from __future__ import annotations

from typing import assert_never

from . import algebra as alg
from . import program as ir
from .clauses import GONE, LEFT, Clauses, hull_of, resumes
from .clock import is_start_by_itself
from .operator_words import keyword
from .sides import equal_sides, tested_after
from .spelling import limit


def title_of(clauses: Clauses, node: ir.Node) -> str:
    """What one node does, on one line; its parts follow below it."""

    def listed(names: tuple[str, ...]) -> str:
        return ", ".join(map(clauses.spelling.variable, names))

    match node:
        case ir.Leaf():
            return clauses.triple(node, {v: v for v in node.head})
        case ir.Record():
            return f"EVENT: {clauses.event(node)}"
        case ir.Map():
            done = [*clauses.steps(node.steps, LEFT), *(["a set"] if node.distinct else [])]
            done += ["AT END"] if node.at_end else []
            return ", ".join(done) or f"only {listed(node.head)}"
        case ir.Start():
            return "START, just before the first event"
        case ir.Union():
            return "UNION, a set" if node.distinct else "UNION"
        case ir.Join() | ir.Outer():
            hull = hull_of(node.op)
            keys = [*map(clauses.spelling.variable, node.certain)]
            keys += [f"{clauses.expression(a, hull)} = {clauses.expression(b, hull)}" for a, b in equal_sides(node)]
            parts = [keyword(node), f"on {', '.join(keys)}" if keys else "on nothing: a cross product"]
            after = tested_after(node) if isinstance(node, ir.Join) else (*node.condition, *node.steps)
            parts += [*clauses.window(node.bound, hull), *clauses.steps(after, hull)]
            if isinstance(node, ir.Join):
                parts += clauses.window(node.deadline, ("T2", "T4"))
            if isinstance(node, ir.Outer) and node.background is not None:
                parts.append(f"or background({clauses.pattern(node.background)})")
            return ", ".join([*parts, node.policy] if node.policy else parts)
        case ir.Chain():
            times = ("T1", f"T{2 * len(node.parts)}")
            parts = [f"SEQ of {len(node.parts)}", *clauses.window(node.bound, times)]
            return ", ".join([*parts, *clauses.steps(node.steps, times)])
        case ir.Absence() if is_start_by_itself(node):
            return "START by itself, the time at which the stream starts"
        case ir.Absence():
            return _absence_title(clauses, node)
        case ir.Run():
            return _run_title(clauses, node)
        case ir.Recall():
            return f"exists({clauses.pattern(node.pattern)}), evaluated backwards"
        case ir.Closure():
            stored = [] if node.background is None else [f"background({clauses.pattern(node.background)})"]
            return ", ".join(["path+", *clauses.window(node.bound, LEFT), *stored])
        case ir.Group():
            window = "" if node.window is None else f" within {' '.join(limit(node.window))}"
            calls = ", ".join(f"{clauses.spelling.variable(a.variable)} is {a.name}" for a in node.aggregates)
            return f"GROUP BY {listed(node.keys) or 'nothing'}{window}: {calls or 'no aggregate'}"
        case ir.Skip():
            test, then = resumes(clauses, node)
            return f"{keyword(node)}, {test} with T0 = {then}, by {listed(node.keys) or 'nothing'}"
        case ir.Slice():
            return "DISTINCT, ORDER BY, LIMIT or OFFSET"
        case _:
            assert_never(node)


def _absence_title(clauses: Clauses, node: ir.Absence) -> str:
    shared = ", ".join(map(clauses.spelling.variable, node.shared))
    on = f"on {shared}" if shared else "on nothing: any solution keeps all others away"
    if node.optional:
        on = f"nothing of the optional part, {on}"
    if node.deadline is not None:
        parts, times = [f"{keyword(node)} within {limit(node.deadline)[1]}", on], ("T1", "T2 + d")
    else:
        parts = ["NOT" if node.right is None else f"{keyword(node)} … SEQ", on]
        times = LEFT if node.right is None else ("T1", "T4")
        parts += clauses.window(node.bound, times) if node.right is not None else []
    parts += [f"of those with {test}" for test in clauses.steps(node.condition, GONE)]
    return ", ".join([*parts, *clauses.steps(node.steps, times), *([node.policy] if node.policy else [])])


def _run_title(clauses: Clauses, node: ir.Run) -> str:
    most = "or more" if node.most is None else "" if node.most == node.least else f"to {node.most}"
    keys = ", ".join(map(clauses.spelling.variable, node.keys)) or "nothing: the whole stream is one"
    tests = (clauses.expression(e, LEFT) for e in alg.with_totals(node.condition, node.totals))
    parts = [f"REPEAT {node.least} {most}".rstrip(), f"by {keys}", *tests]
    gap = [] if node.gap is None else [f"gap {' '.join(limit(node.gap))}"]
    word = "maximal" if node.maximal else "until" if node.until is not None else "longest" if node.longest else ""
    return ", ".join(filter(None, [*parts, *gap, *clauses.window(node.bound, LEFT), word]))
