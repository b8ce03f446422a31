"""Generated code for joins: goal-insertion rules, checking rules, and what they do under a consuming policy.

A goal store maps the join key to a bucket: its solutions, ordered by their end because instants follow one another.
A goal that is alone is kept in a tuple, which costs the garbage collector nothing; with a second one it is a list.
The right side of a SEQ looks up the bucket of its key; goals that ended before it started are its candidates.  A bucket
is pruned by the window when it is looked at, and all of them now and then by a sweep.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Any

from etalis_compiler.rewrites.push_windows import longest
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.engine.blocks import Code, comprehension, emit_steps, in_time
from etalis_py.engine.frames import Frame, merge
from etalis_py.engine.hoisting import hoist_arriving, split, stored_expressions, stored_position
from etalis_py.engine.writer import Writer


def key_of(ref: ir.Ref, certain: tuple[str, ...], variable: str) -> str:
    """Source of the join key of a solution: one term, a tuple of terms, or None when nothing is shared."""
    items = [f"{variable}[{2 + ref.columns.index(name)}]" for name in certain]
    if not items:
        return "None"
    return items[0] if len(items) == 1 else f"({', '.join(items)})"


def insert(w: Writer, code: Code, node: str, side: str, ref: ir.Ref, certain: tuple[str, ...], source: str) -> None:
    """The goal-insertion rule: every new solution waits in the bucket of its key."""
    store = code.state.store(node, side, ref.node, code.layouts[ref.node])
    goals = code.helper(side, node, store.buckets)
    extra = stored(code, node, ref)
    store.extend = extension(code, ref, extra)
    with w.block(f"for x in {source}:"):
        if extra:
            frame = Frame(code.names)
            frame.read(ref, code.layouts[ref.node], "x")
            emitter = frame.emitter()
            with w.block("try:"):
                w(f"x += ({', '.join(emitter.value(e) for e in extra)},)")
            with w.block("except SparqlError:"):
                w("continue")
        w(f"k = {key_of(ref, certain, 'x')}", f"b = {goals}.get(k)")
        with w.block("if b is None:"):
            w(f"{goals}[k] = (x,)")
        with w.block("elif b.__class__ is tuple:"):
            w(f"{goals}[k] = [*b, x]")
        with w.block("else:"):
            # What is known late ended earlier than what waits already.
            w(f"{code.names.use('insort', insort)}(b, x)" if code.state.is_late(ref.node) else "b.append(x)")
        if code.journal:
            w(f"{code.names.use('journal', code.state.journal)}.append(({store.number}, x))")


def stored(code: Code, name: str, waiting: ir.Ref) -> tuple[alg.Expr, ...]:
    """The expressions that are kept with the goals of one side of a node; none when explanations are on."""
    node = code.nodes[name]
    if code.explain or not isinstance(node, ir.Join):
        return ()
    if node.op == "equals" and not code.state.is_late(name):
        return ()  # its goals do not outlive the instant
    arriving = node.left if waiting is node.right else node.right
    return stored_expressions(node.steps, frozenset(waiting.columns), frozenset(arriving.columns))


def extension(code: Code, ref: ir.Ref, extra: tuple[alg.Expr, ...]) -> Callable[[Any], Any] | None:
    """A function that adds the stored expressions to a goal that was read back."""
    if not extra:
        return None
    frame = Frame(code.names)
    frame.read(ref, code.layouts[ref.node], "x")
    emitter = frame.emitter()
    text = f"def extend(x):\n    return x + ({', '.join(emitter.value(e) for e in extra)},)\n"
    scope = dict(code.names.objects)
    exec(compile(text, "<goal>", "exec"), scope)
    return scope["extend"]  # type: ignore[no-any-return]


def prune(w: Writer, bound: alg.Bound | None) -> None:
    """Drop the goals of bucket ``b`` that can no longer be in time."""
    if bound is None:
        return
    with w.block(f"if b[0][0] < t - {longest(bound)}:"):
        with w.block("if b.__class__ is tuple:"):
            w("b = ()")  # the sweep takes it out of the store
        with w.block("else:"):
            w(f"del b[:bisect_left(b, (t - {longest(bound)},))]")


def _earlier(code: Code) -> str:
    return code.names.use("bisect_left", bisect_left)


def seq_check(w: Writer, code: Code, name: str, node: ir.Join, source: str) -> None:
    """The checking rule of ``left SEQ right`` for each new solution ``y`` of the right."""
    store = code.state.store(name, "G", node.left.node, code.layouts[node.left.node])
    goals = code.helper("G", name, store.buckets)
    _earlier(code)
    frame, tests = merge(code.names, node.left, node.right, code.layouts, node.certain, "x", "y")
    frame.provenance = code.provenance(name, "x[-1]", "y[-1]")
    if node.policy and source not in code.single:
        with w.block(f"if len({source}) > 1:"):
            w(f"{source} = sorted({source})")
    with w.block(f"for y in {source}:"):
        w(f"b = {goals}.get({key_of(node.right, node.certain, 'y')})")
        with w.block("if b:"):
            prune(w, node.bound)
            w("s = y[1]")
            if node.policy:
                _consume(w, code, name, node, frame, tests, "x[0] < s", store.number, goals)
                return
            # All goals of the bucket, unless some ended too late for this solution.
            with w.block("if b and b[-1][0] >= s:"):
                w("b = b[:bisect_left(b, (s,))]")
            _all_matches(w, code, name, node, frame, tests, "for x in b", node.left)


def _tests(
    w: Writer, code: Code, name: str, node: ir.Join, frame: Frame, waiting: ir.Ref, skip: str
) -> tuple[list[str], list[ir.Step]]:
    """The tests of one candidate, cheapest first, with what can be computed beforehand written out.

    Returns them with the steps that are left (those that bind something).
    """
    arriving = node.left if waiting is node.right else node.right
    emitter = frame.emitter()
    for i, e in enumerate(stored(code, name, waiting)):
        variable = "x" if waiting is node.left else "y"
        emitter.ready[e] = f"{variable}[{stored_position(code.layouts[waiting.node], i)}]"
    tests = []
    rest = list(node.steps)
    while rest and isinstance(rest[0], ir.Condition):
        condition = rest.pop(0).expression
        parted = split(condition, frozenset(waiting.columns), frozenset(arriving.columns))
        if parted is None:
            tests.append(emitter.test(condition))
        else:
            tests.append(hoist_arriving(w, code.names, emitter, parted, len(tests), skip))
    return tests, rest


def _all_matches(
    w: Writer,
    code: Code,
    name: str,
    node: ir.Join,
    frame: Frame,
    compatible: list[str],
    loop: str,
    waiting: ir.Ref,
) -> None:
    out = code.new(name)
    layout = code.layouts[name]
    conditions, rest = _tests(w, code, name, node, frame, waiting, "continue")
    # Filters refuse more candidates than the window does: a bucket was pruned already.
    tests = [*compatible, *conditions]
    if node.bound is not None:
        tests.append(in_time(node.bound, frame.start, frame.end, code.names))
    if not rest:
        comprehension(w, out, frame.solution(layout), loop, tests)
        return
    with w.block(f"{loop}:"):
        if tests:
            with w.block("try:"), w.block(f"if not ({' and '.join(tests)}):"):
                w("continue")
            with w.block("except SparqlError:"):
                w("continue")
        emit_steps(w, code, name, tuple(rest), frame, "continue", lambda: w(f"{out}.append({frame.solution(layout)})"))


def retract(w: Writer, goals: str, key: str) -> None:
    """Take goal ``i`` out of bucket ``b``; an empty bucket goes too."""
    with w.block("if len(b) == 1:"):
        w(f"del {goals}[{key}]")
    with w.block("else:"):
        w("del b[i]")


def _consume(
    w: Writer,
    code: Code,
    name: str,
    node: ir.Join,
    frame: Frame,
    tests: list[str],
    temporal: str,
    number: int,
    goals: str,
) -> None:
    """Take the earliest or the latest candidate of bucket ``b`` (of ``goals``, where it lasts) and retract its goal."""
    out = code.new(name)
    latest = node.policy == "recent"
    conditions, rest = _tests(w, code, name, node, frame, node.left, "continue")
    required = [*tests, *conditions]
    if temporal:
        required.append(temporal)
    if node.bound is not None:
        required.append(in_time(node.bound, frame.start, frame.end, code.names))
    order = "zip(range(len(b) - 1, -1, -1), reversed(b))" if latest else "enumerate(b)"
    with w.block(f"for i, x in {order}:"):

        def take() -> None:
            w(f"{out}.append({frame.solution(code.layouts[name])})")
            if goals:
                retract(w, goals, key_of(node.right, node.certain, "y"))
            else:
                w("del b[i]")
            if code.journal:
                w(f"{code.names.use('journal', code.state.journal)}.append(({-number - 1}, x))")
            w("break")

        if conditions:
            with w.block("try:"), w.block(f"if not ({' and '.join(required)}):"):
                w("continue")
            with w.block("except SparqlError:"):
                w("continue")
        elif required:
            with w.block(f"if not ({' and '.join(required)}):"):
                w("continue")
        emit_steps(w, code, name, tuple(rest), frame, "continue", take)


def equals(w: Writer, code: Code, name: str, node: ir.Join, left: str, right: str) -> None:
    """EQUALS: both sides end in this instant; they meet by key and start, and no goal outlives the instant."""
    goals = code.helper("G", name, code.state.instant_dict(name))
    frame, tests = merge(code.names, node.left, node.right, code.layouts, node.certain, "x", "y")
    frame.provenance = code.provenance(name, "x[-1]", "y[-1]")
    for source in (left, right):
        if node.policy:
            with w.block(f"if len({source}) > 1:"):
                w(f"{source} = sorted({source})")
    with w.block(f"for x in {left}:"):
        w(f"{goals}.setdefault(({key_of(node.left, node.certain, 'x')}, x[1]), []).append(x)")
    with w.block(f"for y in {right}:"):
        w(f"b = {goals}.get(({key_of(node.right, node.certain, 'y')}, y[1]))")
        with w.block("if b:"):
            if node.policy:
                # The goals of one instant do not outlive it, so their retraction needs no journal.
                journal, code.journal = code.journal, False
                _consume(w, code, name, node, frame, tests, "", 0, "")
                code.journal = journal
            else:
                _all_matches(w, code, name, node, frame, tests, "for x in b", node.left)


def equals_again(w: Writer, code: Code, name: str, node: ir.Join, left: str, right: str) -> None:
    """EQUALS inside a recursion: both sides may grow while the instant lasts."""
    mine = code.helper("G", name, code.state.instant_dict(name))
    other = code.helper("H", name, code.state.instant_dict(name + "'"))
    frame, tests = merge(code.names, node.left, node.right, code.layouts, node.certain, "x", "y")
    frame.provenance = code.provenance(name, "x[-1]", "y[-1]")
    left_key = f"({key_of(node.left, node.certain, 'x')}, x[1])"
    right_key = f"({key_of(node.right, node.certain, 'y')}, y[1])"
    with w.block(f"for x in {left}:"):
        w(f"{mine}.setdefault({left_key}, []).append(x)")
        _all_matches(w, code, name, node, frame, tests, f"for y in {other}.get({left_key}, ())", node.right)
    with w.block(f"for y in {right}:"):
        w(f"{other}.setdefault({right_key}, []).append(y)")
        _all_matches(w, code, name, node, frame, tests, f"for x in {mine}.get({right_key}, ())", node.left)


def both(w: Writer, code: Code, name: str, node: ir.Join, left: str, right: str) -> None:
    """AND: each side checks the goals of the other and inserts its own; a pair within the instant is found once.

    Also SEQ and EQUALS where a side may be known late, so that either side can come last.
    """
    _earlier(code)
    mine = code.helper("G", name, code.state.store(name, "G", node.left.node, code.layouts[node.left.node]).buckets)
    other = code.helper("H", name, code.state.store(name, "H", node.right.node, code.layouts[node.right.node]).buckets)
    frame, tests = merge(code.names, node.left, node.right, code.layouts, node.certain, "x", "y")
    frame.start = "(x[1] if x[1] < y[1] else y[1])"
    if code.state.is_late(name):
        frame.end = "(x[0] if x[0] > y[0] else y[0])"
    tests += {"seq": ["x[0] < y[1]"], "equals": ["x[0] == y[0]", "x[1] == y[1]"]}.get(node.op, [])
    frame.provenance = code.provenance(name, "x[-1]", "y[-1]")
    if left:
        with w.block(f"for x in {left}:"):
            w(f"b = {other}.get({key_of(node.left, node.certain, 'x')})")
            with w.block("if b:"):
                prune(w, node.bound)
                _all_matches(w, code, name, node, frame, tests, "for y in b", node.right)
        insert(w, code, name, "G", node.left, node.certain, left)
    if right:
        with w.block(f"for y in {right}:"):
            w(f"b = {mine}.get({key_of(node.right, node.certain, 'y')})")
            with w.block("if b:"):
                prune(w, node.bound)
                _all_matches(w, code, name, node, frame, tests, "for x in b", node.left)
        insert(w, code, name, "H", node.right, node.certain, right)
