"""What a node does, in words: for plans, why and messages."""

from __future__ import annotations

from typing import assert_never

from .algebra import Apply, Bound, with_totals
from .clauses import GONE, LEFT, Clauses, hull_of, resumes
from .clock import as_written, is_start_by_itself
from .program import (
    Absence,
    Chain,
    Closure,
    Group,
    Join,
    Leaf,
    Map,
    Node,
    Outer,
    Recall,
    Record,
    Run,
    Skip,
    Slice,
    Start,
    Union,
)
from .relations import Op, words
from .sides import equal_sides, tested_after
from .spelling import limit

ONE_EVENT = "EVENT: what one event says"


def keyword(node: Node) -> str:
    """The operator as it is written; empty where no single word stands for it."""
    match node:
        case Join(deadline=Bound()) | Absence(optional=True):
            return "SEQ OPTIONAL"
        case Join() | Outer():
            return node.op.upper()
        case Absence():
            return "NOT" if node.right is None and node.deadline is None else "SEQ NOT"
        case Run():
            return "REPEAT"
        case Skip(after=Apply("GETENDTIME"), at=False):
            return "DISJOINT"
        case Skip():
            return "SKIP" if node.length is None else "THROTTLE"
    return ""


def why_in_words(node: Node) -> str:
    """Why a solution of a node holds, given those that it is made of."""
    match node:
        case Join(op=Op.AND):
            return "joined"
        case Join(deadline=Bound()):
            return "SEQ OPTIONAL: the optional part came in time"
        case Join(op=op):
            return f"{op.upper()}: {words(op)}"
        case Outer(op=outer):
            return outer.upper()
        case Absence() if is_start_by_itself(node):
            return "START by itself: the stream starts at this time"
        case Absence(optional=True, deadline=None):
            return "SEQ OPTIONAL: nothing of the optional part lies between them"
        case Absence(optional=True):
            return "SEQ OPTIONAL … WITHIN: nothing of the optional part came in time"
        case Absence(deadline=None, right=None):
            return "NOT: nothing that is excluded lies inside"
        case Absence(deadline=None):
            return "SEQ NOT: nothing that is excluded lies between them"
        case Absence():
            return "SEQ NOT … WITHIN: nothing that is excluded came in time"
        case Run(maximal=True):
            return "REPEAT … MAXIMAL: each is the next of the one before, and no other one goes on from either end"
        case Run(until=None):
            return "REPEAT: each is the next of the one before"
        case Run():
            return "REPEAT … UNTIL: each is the next of the one before, and then came what ends the run"
        case Start():
            return "START: the stream begins"
        case Skip(after=Apply("GETENDTIME"), at=False):
            return "DISJOINT: it overlaps none that was kept before"
        case Skip(length=None):
            return "SKIP: it begins no earlier than the last one kept allows"
        case Skip():
            return "THROTTLE: none that was kept ended shortly before"
        case Map():
            return "joined with the background"
        case Group(window=None):
            return "aggregated over solutions that are not kept, for the query has no window"
        case Group():
            return "aggregated over"
        case Record():
            return ONE_EVENT
        case Leaf() | Union() | Chain() | Recall() | Closure() | Slice():
            return "derived"
        case _:
            assert_never(node)


def window_in_words(node: Node) -> str:
    """What a node does with its window; ``{0}`` stands for the limit, ``≤ 5 s``, ``{1}`` for its length, ``5 s``."""
    match node:
        case Map():
            return "passes what lasts {0}"
        case Group():
            return "counts the last {1}"
        case Run(maximal=True):
            return "ends runs after a silence of {1}"
        case Run():
            return "makes runs that last {0}, and drops those that last longer"
    if isinstance(node, Join) and node.deadline is not None:
        return "joins what ends {0} after its left side, and drops the goals that are older"
    if isinstance(node, Absence) and node.deadline is not None:
        return "keeps what waits for its deadline, {1} each"
    return "joins what lasts {0}, and drops the goals that are older"


def title_of(clauses: Clauses, node: Node) -> str:
    """What one node does, on one line; its parts follow below it."""

    def listed(names: tuple[str, ...]) -> str:
        return ", ".join(map(clauses.spelling.variable, names))

    node = as_written(node, clauses.nodes)
    match node:
        case Leaf():
            return clauses.triple(node, {v: v for v in node.head})
        case Record():
            return f"EVENT: {clauses.event(node)}"
        case Map():
            done = [*clauses.steps(node.steps, LEFT), *(["a set"] if node.distinct else [])]
            done += ["AT END"] if node.at_end else []
            return ", ".join(done) or f"only {listed(node.head)}"
        case Start():
            return "START, just before the first event"
        case Union():
            return "UNION, a set" if node.distinct else "UNION"
        case Join() | Outer():
            hull = hull_of(node.op)
            keys = [*map(clauses.spelling.variable, node.certain)]
            keys += [f"{clauses.expression(a, hull)} = {clauses.expression(b, hull)}" for a, b in equal_sides(node)]
            parts = [keyword(node), f"on {', '.join(keys)}" if keys else "on nothing: a cross product"]
            parts += [*clauses.window(node.bound, hull), *clauses.steps(tested_after(node), hull)]
            if isinstance(node, Join):
                parts += clauses.window(node.deadline, ("T2", "T4"))
            if isinstance(node, Outer) and node.background is not None:
                parts.append(f"or background({clauses.pattern(node.background)})")
            return ", ".join(dict.fromkeys([*parts, node.policy] if node.policy else parts))
        case Chain():
            times = ("T1", f"T{2 * len(node.parts)}")
            parts = [f"SEQ of {len(node.parts)}", *clauses.window(node.bound, times)]
            return ", ".join([*parts, *clauses.steps(node.steps, times)])
        case Absence() if is_start_by_itself(node):
            return "START by itself, the time at which the stream starts"
        case Absence():
            return _absence_title(clauses, node)
        case Run():
            return _run_title(clauses, node)
        case Recall():
            return f"exists({clauses.pattern(node.pattern)}), evaluated backwards"
        case Closure():
            stored = [] if node.background is None else [f"background({clauses.pattern(node.background)})"]
            return ", ".join(["path+", *clauses.window(node.bound, LEFT), *stored])
        case Group():
            window = "" if node.window is None else f" within {' '.join(limit(node.window))}"
            calls = ", ".join(f"{clauses.spelling.variable(a.variable)} is {a.name}" for a in node.aggregates)
            return f"GROUP BY {listed(node.keys) or 'nothing'}{window}: {calls or 'no aggregate'}"
        case Skip():
            test, then = resumes(clauses, node)
            return f"{keyword(node)}, {test} with T0 = {then}, by {listed(node.keys) or 'nothing'}"
        case Slice():
            return "DISTINCT, ORDER BY, LIMIT or OFFSET"
        case _:
            assert_never(node)


def _absence_title(clauses: Clauses, node: Absence) -> str:
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
    parts += [*clauses.steps(node.steps, times), *([node.policy] if node.policy else [])]
    return ", ".join(dict.fromkeys(parts))


def _run_title(clauses: Clauses, node: Run) -> str:
    most = "or more" if node.most is None else "" if node.most == node.least else f"to {node.most}"
    keys = ", ".join(map(clauses.spelling.variable, node.keys)) or "nothing: the whole stream is one"
    tests = (clauses.expression(e, LEFT) for e in with_totals(node.condition, node.totals))
    parts = [f"REPEAT {node.least} {most}".rstrip(), f"by {keys}", *tests]
    gap = [] if node.gap is None else [f"gap {' '.join(limit(node.gap))}"]
    word = "maximal" if node.maximal else "until" if node.until is not None else "longest" if node.longest else ""
    return ", ".join(filter(None, [*parts, *gap, *clauses.window(node.bound, LEFT), word]))
