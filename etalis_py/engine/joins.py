"""Generated code for joins: goal-insertion rules, checking rules, and what they do under a consuming policy.

A goal store maps the join key to a bucket: its solutions, ordered by their end because instants follow one another.
A goal that is alone is kept in a tuple, which costs the garbage collector nothing; with a second one it is a list.
The right side of a SEQ looks up the bucket of its key; goals that ended before it started are its candidates.  A bucket
is pruned by the window when it is looked at, and all of them now and then by a sweep.

Where a FILTER compares the two sides (``?p1 < ?p2``) a bucket has an *edge*: a number beyond which none of its goals
lies.  An arriving solution that does not reach the edge has no partner, and the goals are not looked at.  A search in
vain tells the edge for nothing: all goals are on the wrong side of the value that was looked for.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from etalis_compiler.rewrites.push_windows import longest
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.engine.blocks import Code, comprehension, emit_steps, in_time
from etalis_py.engine.expressions import Emitter
from etalis_py.engine.frames import Frame, merge
from etalis_py.engine.hoisting import Split, hoist_arriving, sides_of, split, stored_expressions, stored_position
from etalis_py.engine.values import NUMERIC
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
    compared = _compared(code, node, ref)
    with w.block(f"for x in {source}:"):
        frame = Frame(code.names)
        frame.read(ref, code.layouts[ref.node], "x")
        emitter = frame.emitter()
        if extra:
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
        if compared is not None:
            value = _waiting_value(code, emitter, compared, ref, extra)
            _stretch(w, code.helper(f"E{side}", node, store.edges), compared, value)


def stored(code: Code, name: str, waiting: ir.Ref) -> tuple[alg.Expr, ...]:
    """The expressions that are kept with the goals of one side of a node; none when explanations are on."""
    node = code.nodes[name]
    if code.explain or not isinstance(node, ir.Join):
        return ()
    if node.op == "equals" and not code.state.is_late(name):
        return ()  # its goals do not outlive the instant
    arriving = node.left if waiting is node.right else node.right
    return stored_expressions(node.steps, sides_of(waiting, arriving, node.certain))


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


def _compared(code: Code, name: str, waiting: ir.Ref) -> Split | None:
    """The one comparison by which the goals of a side are chosen, for which their buckets have edges; None otherwise.

    A search that finds nothing must mean that the comparison failed for every goal, or can never succeed: so there is
    no other condition, and nothing that may be known late.
    """
    node = code.nodes[name]
    if not isinstance(node, ir.Join) or node.op == "equals" or code.state.is_late(name) or len(node.steps) != 1:
        return None
    step = node.steps[0]
    arriving = node.left if waiting is node.right else node.right
    shared = frozenset(waiting.columns) & frozenset(arriving.columns)
    if not isinstance(step, ir.Condition) or shared - {*node.certain}:
        return None
    parted = split(step.expression, sides_of(waiting, arriving, node.certain))
    return parted if parted is not None and parted.op in ("<", "<=", ">", ">=") else None


def _waiting_value(code: Code, emitter: Emitter, compared: Split, waiting: ir.Ref, extra: tuple[alg.Expr, ...]) -> str:
    """Source of the value of goal ``x`` that is compared."""
    if compared.waiting in extra:
        return f"x[{stored_position(code.layouts[waiting.node], extra.index(compared.waiting))}]"
    return emitter.value(compared.waiting)


def _stretch(w: Writer, edges: str, compared: Split, value: str) -> None:
    """A new goal of value ``value``: the edge of its bucket, if there is one, must not lie before it."""
    w(f"e = {edges}.get(k)")
    with w.block("if e is not None:"):
        with w.block("try:"):
            w(f"w = {value}")
        with w.block("except SparqlError:"):
            w("continue")  # it will not be compared with success
        with w.block("if w.__class__ is not e.__class__:"):
            w(f"del {edges}[k]")
        with w.block(f"elif w {compared.op[0]} e:"):
            w(f"{edges}[k] = w")


def _stop_at_edge(w: Writer, edges: str, compared: Split) -> None:
    """The bucket is not searched when the arriving value ``v0`` of class ``c0`` does not reach its edge."""
    w(f"e = {edges}.get(k)")
    with w.block(f"if e.__class__ is c0 and not e {compared.op} v0:"):
        w("continue")


def _in_vain(code: Code) -> str:
    """Source of: ``v0`` may be an edge.  NaN is on no side of anything."""
    return f"c0 in {code.names.use('NUMERIC', NUMERIC)} and v0 == v0"


def prune(w: Writer, bound: alg.Bound | None, *, exactly: bool = False) -> None:
    """Drop the goals of bucket ``b`` that can no longer be in time: when they are half of it, or ``exactly`` all.

    Half a bucket at a time costs each goal little; those that stay behind are refused by the test of the window.
    """
    if bound is None:
        return
    with w.block(f"if b[{'0' if exactly else 'len(b) >> 1'}][0] < t - {longest(bound)}:"):
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
        w(f"k = {key_of(node.right, node.certain, 'y')}", f"b = {goals}.get(k)")
        with w.block("if b:"):
            search = _search(w, code, name, node, frame, tests, node.left, "G")
            prune(w, node.bound)
            w("s = y[1]")
            if node.policy:
                _consume(w, code, name, node, frame, search, "x[0] < s", store.number, goals)
                return
            # All goals of the bucket, unless some ended too late for this solution.
            if search.edges:
                w("whole = not b or b[-1][0] < s")
            with w.block("if not whole:" if search.edges else "if b and b[-1][0] >= s:"):
                w("b = b[:bisect_left(b, (s,))]")
            _all_matches(w, code, name, node, frame, search, "for x in b")


@dataclass(frozen=True, slots=True)
class _Search:
    """The tests of a candidate: those the index leaves open, the conditions, and the steps that bind something.

    ``edges``: the name of the store's edges, where it has them.
    """

    open: list[str]
    conditions: list[str]
    rest: list[ir.Step]
    edges: str = ""


def _search(
    w: Writer, code: Code, name: str, node: ir.Join, frame: Frame, open_: list[str], waiting: ir.Ref, side: str
) -> _Search:
    """Write what is computed before the candidates are looked at; gives what is left to test."""
    conditions, rest = _tests(w, code, name, node, frame, waiting, "continue")
    compared = _compared(code, name, waiting)
    if compared is None:
        return _Search(open_, conditions, rest)
    edges = code.helper(f"E{side}", name, code.state.store(name, side, waiting.node, code.layouts[waiting.node]).edges)
    _stop_at_edge(w, edges, compared)
    return _Search(open_, conditions, rest, edges)


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
    # What the arriving solution says is read from itself, also where both sides bind a variable.
    alone = Frame(code.names)
    alone.read(arriving, code.layouts[arriving.node], "y" if waiting is node.left else "x")
    its_own = alone.emitter()
    rest = list(node.steps)
    while rest and isinstance(rest[0], ir.Condition):
        condition = rest.pop(0).expression
        parted = split(condition, sides_of(waiting, arriving, node.certain))
        if parted is None:
            tests.append(emitter.test(condition))
        else:
            tests.append(hoist_arriving(w, code.names, its_own, emitter, parted, len(tests), skip))
    return tests, rest


def _all_matches(w: Writer, code: Code, name: str, node: ir.Join, frame: Frame, search: _Search, loop: str) -> None:
    out = code.new(name)
    layout = code.layouts[name]
    # Filters refuse more candidates than the window does: a bucket was pruned already.
    tests = [*search.open, *search.conditions]
    if node.bound is not None:
        tests.append(in_time(node.bound, frame.start, frame.end, code.names))
    if not search.rest and not search.conditions:
        comprehension(w, out, frame.solution(layout), loop, tests)
        return
    if search.edges:
        w(f"found = len({out})")
    with w.block(f"{loop}:"):
        if tests:
            with w.block("try:"), w.block(f"if not ({' and '.join(tests)}):"):
                w("continue")
            with w.block("except SparqlError:"):
                w("continue")
        steps = tuple(search.rest)
        emit_steps(w, code, name, steps, frame, "continue", lambda: w(f"{out}.append({frame.solution(layout)})"))
    if search.edges:
        whole = "whole and " if node.op == "seq" else ""
        with w.block(f"if {whole}len({out}) == found and {_in_vain(code)}:"):
            w(f"{search.edges}[k] = v0")


def retract(w: Writer, goals: str, key: str, edges: str = "") -> None:
    """Take goal ``i`` out of bucket ``b``; an empty bucket goes too, with its edge."""
    with w.block("if len(b) == 1:"):
        w(f"del {goals}[{key}]")
        if edges:
            w(f"{edges}.pop({key}, None)")
    with w.block("else:"):
        w("del b[i]")


def _consume(
    w: Writer,
    code: Code,
    name: str,
    node: ir.Join,
    frame: Frame,
    search: _Search,
    temporal: str,
    number: int,
    goals: str,
) -> None:
    """Take the earliest or the latest candidate of bucket ``b`` (of ``goals``, where it lasts) and retract its goal."""
    out = code.new(name)
    latest = node.policy == "recent"
    conditions = search.conditions
    required = [*search.open, *conditions]
    if temporal:
        required.append(temporal)
    if node.bound is not None:
        required.append(in_time(node.bound, frame.start, frame.end, code.names))
    w("i = len(b)" if latest else "i = -1")
    with w.block(f"for x in {'reversed(b)' if latest else 'b'}:"):
        w(f"i {'-' if latest else '+'}= 1")

        def take() -> None:
            w(f"{out}.append({frame.solution(code.layouts[name])})")
            if goals:
                retract(w, goals, "k", search.edges)
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
        emit_steps(w, code, name, tuple(search.rest), frame, "continue", take)
    if search.edges:
        with w.block("else:"), w.block(f"if (not b or b[-1][0] < s) and {_in_vain(code)}:"):
            w(f"{search.edges}[k] = v0")


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
                search = _search(w, code, name, node, frame, tests, node.left, "G")
                _consume(w, code, name, node, frame, search, "", 0, "")
                code.journal = journal
            else:
                search = _search(w, code, name, node, frame, tests, node.left, "G")
                _all_matches(w, code, name, node, frame, search, "for x in b")


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
        search = _search(w, code, name, node, frame, tests, node.right, "H")
        _all_matches(w, code, name, node, frame, search, f"for y in {other}.get({left_key}, ())")
    with w.block(f"for y in {right}:"):
        w(f"{other}.setdefault({right_key}, []).append(y)")
        search = _search(w, code, name, node, frame, tests, node.left, "G")
        _all_matches(w, code, name, node, frame, search, f"for x in {mine}.get({right_key}, ())")


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
            w(f"k = {key_of(node.left, node.certain, 'x')}", f"b = {other}.get(k)")
            with w.block("if b:"):
                search = _search(w, code, name, node, frame, tests, node.right, "H")
                prune(w, node.bound)
                _all_matches(w, code, name, node, frame, search, "for y in b")
        insert(w, code, name, "G", node.left, node.certain, left)
    if right:
        with w.block(f"for y in {right}:"):
            w(f"k = {key_of(node.right, node.certain, 'y')}", f"b = {mine}.get(k)")
            with w.block("if b:"):
                search = _search(w, code, name, node, frame, tests, node.left, "G")
                prune(w, node.bound)
                _all_matches(w, code, name, node, frame, search, "for x in b")
        insert(w, code, name, "H", node.right, node.certain, right)
