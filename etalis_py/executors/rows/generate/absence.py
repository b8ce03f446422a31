"""Generated code for absence: NOT, SEQ NOT … SEQ, and the deadline of SEQ NOT … WITHIN.

A solution of N that falls into an interval or a gap has ended before that interval or gap ends.  So solutions of N are
kept in a store of their own, under the variables that they share with the other side, ordered by end; two binary
searches find those that ended inside.

A deadline keeps the solutions that wait for it, under the variables that they share with N.  Each N that arrives
cancels the solutions before it; when the time is up the others are reported.  A cancelled solution costs nothing later,
as the queue holds only the keys to look at for each time.

    {?o :ordered ?p} SEQ NOT {?o :shipped ?d} WITHIN 2 HOURS: ordered a@1, b@2; shipped a@60 min → b [2, 2 + 2 h]
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.sides import tells_what_is_absent

from etalis_py.executors.rows.generate.blocks import Code, emit_steps
from etalis_py.executors.rows.generate.chains import latest_start
from etalis_py.executors.rows.generate.frames import Frame, merge
from etalis_py.executors.rows.generate.inserting import (
    comparison_of,
    compute_arriving,
    in_vain,
    insert,
    key_of,
    leave_edge,
    orders_of,
    stop_at_edge,
    use_bisect,
)
from etalis_py.executors.rows.generate.joins import Search, seq_check
from etalis_py.executors.rows.generate.runtime_objects import Deadline
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.executors.rows.run.goals import FEW

_AT_ONCE = 64
"""So many solutions are copied to be looked at; of more, mostly one of the first decides."""


def between(bucket: Any, after: int, before: int) -> Any:
    """The solutions of a bucket that end after the one time and before the other."""
    if not bucket or bucket[-1][0] <= after:
        return ()
    first = bisect_left(bucket, (after + 1,))
    last = bisect_left(bucket, (before,), first)
    return bucket[first:last] if last - first <= _AT_ONCE else map(bucket.__getitem__, range(first, last))


def inside(w: Writer, code: Code, name: str, node: ir.Absence, source: str) -> None:
    """``P NOT N`` for each new solution ``y`` of P."""
    frame = _alone(code, name, node)
    out, layout = code.new(name), code.layouts[name]
    _define_counts(w, code, node, "y")
    with w.block(f"for y in {source}:"):
        with w.block(f"if {_present(code, name, node, frame, 'y[1]', 'y[0]', 'y')}:"):
            w("continue")
        emit_steps(w, code, name, node.steps, frame, "continue", lambda: w(f"{out}.append({frame.solution(layout)})"))


def gap(w: Writer, code: Code, name: str, node: ir.Absence, source: str) -> None:
    """``A SEQ NOT N SEQ C`` for each new solution ``y`` of C; goals of A are stored and looked up as for SEQ."""
    _define_counts(w, code, node, "x")
    seq_check(w, code, name, node, source, lambda frame, search: _narrowed(w, code, name, node, frame, search))


def _narrowed(w: Writer, code: Code, name: str, node: ir.Absence, frame: Frame, search: Search) -> Search:
    """The search of bucket ``b`` for the goals after which no N has come.

    Where C tells which N agree, and each of them counts, these goals are the last ones: those that ended when the
    latest N started, or later.  Where A tells it, what is refused is remembered (see ``rows.run.open_gaps``).
    """
    assert node.right is not None
    if not node.condition and not compatible(node, frame, "n") and tells_what_is_absent(node, node.right, node.left):
        absent, key = code.goals(name, "N"), key_of(node.right, node.shared, "y")
        w(f"since = {code.names.use('latest_start', latest_start)}({absent}.get({key}), begun)")
        if node.policy:
            w(f"first = {use_bisect(code)}(b, (since,))")
            latest = node.policy == "recent"
            return replace(search, places="range(len(b) - 1, first - 1, -1)" if latest else "range(first, len(b))")
        with w.block("if b and b[0][0] < since:"):
            w(f"b = b[{use_bisect(code)}(b, (since,)):]")
        return search
    test = f"not {_present(code, name, node, frame, 'x[0]', 'y[1]', 'x')}"
    if search.bounds is not None or code.is_late(name) or not tells_what_is_absent(node, node.left, node.right):
        search.open.append(test)
        return search
    return _remembering(w, code, name, node, search, test)


def _remembering(w: Writer, code: Code, name: str, node: ir.Absence, search: Search, test: str) -> Search:
    """The same where A alone tells which N refuse it: of a bucket with many goals it is remembered what was refused."""
    from etalis_py.executors.rows.run.open_gaps import open_goals, open_places  # few programs need it

    goal, memory = _goal(code, name, node), orders_of(code, name, "G")
    tests = [*compatible(node, goal, "n"), *(["counts(x, n)"] if node.condition else [])]
    absent = f"lambda x: {code.goals(name, 'N')}.get({key_of(node.left, node.shared, 'x')})"
    asked = f"({memory}, k, b, begun, {absent}, lambda x, n: {' and '.join(tests) or True}"
    search.open.append(f"(many or {test})")
    w(f"many = len(b) > {FEW}")
    if not node.policy:
        with w.block("if many:"):
            w(f"b = {code.names.use('open_goals', open_goals)}{asked})")
        return search
    latest = node.policy == "recent"
    every = "range(len(b) - 1, -1, -1)" if latest else "range(len(b))"
    found = f"{code.names.use('open_places', open_places)}{asked}, {latest})"
    return replace(search, places=f"{found} if many else {every}", orders=memory)


def _define_counts(w: Writer, code: Code, node: ir.Absence, left: str) -> None:
    """``counts(left, n)``: whether a solution n of N satisfies the condition together with one of the left side."""
    if not node.condition:
        return
    # What N shares with the pair may be bound by C alone, and then A may leave it unbound.
    of_c = () if node.right is None else node.right.columns
    certain = tuple(v for v in node.shared if v in node.certain or v not in of_c)
    both, _ = merge(code.names, node.left, node.absent, code.layouts, certain, left, "n")
    both.start, both.end = "n[1]", "n[0]"
    with w.block(f"def counts({left}, n):"):
        emit_steps(w, code, "", node.condition, both, "return False", lambda: w("return True"))


def _alone(code: Code, name: str, node: ir.Absence) -> Frame:
    frame = Frame(code.names, start="y[1]")
    frame.read(node.left, code.layouts[node.left.node], "y")
    if code.is_late(name):
        frame.end = "y[0]"
    frame.provenance = code.provenance(name, "y[-1]")
    return frame


def _present(code: Code, name: str, node: ir.Absence, frame: Frame, after: str, before: str, left: str) -> str:
    """Source that is true when some N compatible with ``frame`` lies between two times."""
    absent = code.goals(name, "N")
    terms = [frame.terms[v] for v in node.shared]
    key = "None" if not terms else terms[0] if len(terms) == 1 else f"({', '.join(terms)})"
    tests = [f"n[1] > {after}", *compatible(node, frame, "n"), *([f"counts({left}, n)"] if node.condition else [])]
    if len(tests) == 1:  # an N that started after a time has ended after it, too
        return f"{code.names.use('latest_start', latest_start)}({absent}.get({key}), {before}) > {after}"
    candidates = f"{code.names.use('between', between)}({absent}.get({key}), {after}, {before})"
    return f"any({' and '.join(tests)} for n in {candidates})"


def compatible(node: ir.Absence, frame: Frame, variable: str) -> list[str]:
    """Tests that the N in ``variable`` is compatible; variables of the key need no test."""
    tests = []
    for i, column in enumerate(node.absent.columns):
        if column not in node.shared and column in frame.terms:
            term, own = f"{variable}[{2 + i}]", frame.terms[column]
            tests.append(f"({term} == {own} or not {term} or not {own})")
    return tests


def cancel(w: Writer, code: Code, name: str, node: ir.Absence, absent: str) -> None:
    """``A SEQ NOT N WITHIN d``: each N that arrives cancels the goals of A that ended before it.

    If a comparison is the condition, an N that has cancelled none tells that no goal lies beyond it (see ``joins``).
    """
    compared = comparison_of(code, name, node.left)
    edges = "" if compared is None else code.edges(name, "G")
    number, goals = code.store(name, "G").number, code.goals(name, "G")
    tests = ["x[0] < y[1]", *compatible(node, _goal(code, name, node), "y")]
    if node.condition:
        _define_counts(w, code, node, "x")
        tests.append("counts(x, y)")
    with w.block(f"for y in {absent}:"):
        w(f"k = {key_of(node.absent, node.shared, 'y')}", f"b = {goals}.get(k)")
        with w.block("if b and b[0][0] < y[1]:"):
            if compared is not None:
                compute_arriving(w, code, compared, node.absent, "y", "continue")
                stop_at_edge(w, edges, compared, "continue")
            if code.journaled:
                gone = f"[({-number - 1}, x) for x in b if {' and '.join(tests)}]"
                w(f"{code.journal}.extend({gone})")
            if len(tests) == 1:
                with w.block("if b[-1][0] < y[1]:"):
                    w(f"del {goals}[k]", "continue")
            w(f"rest = [x for x in b if not ({' and '.join(tests)})]")
            if edges:
                with w.block(f"if len(rest) == len(b) and b[-1][0] < y[1] and {in_vain(code)}:"):
                    leave_edge(w, code, name, node.left, edges)
            with w.block("if rest:"):
                w(f"{goals}[k] = rest")
            with w.block("else:"):
                w(f"del {goals}[k]", *([f"{edges}.pop(k, None)"] if edges else []))


def deadline(w: Writer, code: Code, name: str, node: ir.Absence) -> None:
    """``A SEQ NOT N WITHIN d``: the goals that are due are reported."""
    assert node.deadline is not None
    number = code.store(name, "G").number
    goal = _goal(code, name, node)
    out, layout = code.new(name), code.layouts[name]
    queue = code.helper("queue", name, Deadline(name, node.deadline, "queue"))
    take = code.helper("take", name, Deadline(name, node.deadline, "take"))
    with w.block(f"if {queue} and {queue}[0][0] <= t:"), w.block(f"for x in {take}(t):"):
        if code.journaled:
            w(f"{code.journal}.append(({-number - 1}, x))")
        emit_steps(w, code, name, node.steps, goal, "continue", lambda: w(f"{out}.append({goal.solution(layout)})"))


def _goal(code: Code, name: str, node: ir.Absence) -> Frame:
    """The variables that the steps of a deadline read: those of the goal ``x`` of A."""
    goal = Frame(code.names, start="x[1]")
    goal.read(node.left, code.layouts[node.left.node], "x")
    goal.provenance = code.provenance(name, "x[-1]")
    return goal


def await_later(w: Writer, code: Code, name: str, node: ir.Absence, reached: frozenset[str]) -> None:
    """The goal-insertion rules, at the end of an instant."""
    if node.deadline is None and node.absent.node in reached:
        new = code.new(node.absent.node)
        with code.guard(w, new):
            insert(w, code, name, "N", node.absent, node.shared, new)
    if node.left.node not in reached or (node.right is None and node.deadline is None):
        return
    new = code.new(node.left.node)
    with code.guard(w, new):
        if node.deadline is not None:
            _await_deadline(w, code, name, node, node.deadline, new)
            return
        if node.policy and new not in code.single:
            w(f"if len({new}) > 1: {new} = sorted({new})")
        insert(w, code, name, "G", node.left, node.certain, new)


def _await_deadline(w: Writer, code: Code, name: str, node: ir.Absence, bound: alg.Bound, new: str) -> None:
    """New goals of A, and when they are due."""
    if not bound.is_fixed:
        also = f"{code.helper('await', name, Deadline(name, bound, 'add'))}(x, k)"
    else:  # instants follow one another, and so do the times at which their goals are due
        alarm = code.of_runtime("alarm")
        w(f"at = t + {bound.micros}")
        with w.block(f"if at < {alarm}[0]:"):
            w(f"{alarm}[0] = at")
        also = f"{code.helper('queue', name, Deadline(name, bound, 'queue'))}.append((at, k))"
    insert(w, code, name, "G", node.left, node.shared, new, also)
