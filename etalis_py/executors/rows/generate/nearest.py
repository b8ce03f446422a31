"""Generated code for goals that wait for the nearest solution: which it is, and that they wait no longer."""

from __future__ import annotations

from functools import partial

from etalis_rules import program as ir
from etalis_rules.clock import waits
from etalis_rules.steps import conditions_of

from etalis_py.executors.rows.generate.blocks import Code, comprehension, in_time
from etalis_py.executors.rows.generate.frames import Frame, merge
from etalis_py.executors.rows.generate.inserting import use_bisect
from etalis_py.executors.rows.generate.joins import Search, all_matches, candidate_tests, frame_of, look_up, seq_check
from etalis_py.executors.rows.generate.marks import marks_of
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.executors.rows.run.goals import take_out, write_prune


def check(w: Writer, code: Code, name: str, node: ir.Join, source: str) -> None:
    """The checking rule: each new solution ``y`` of the right side is the nearest of the goals that it finds.

    These goals are dropped at once if ``y`` is the only solution of the instant, else at its end, since other solutions
    of the instant are their nearest, too.
    """
    if node.policy:
        seq_check(w, code, name, node, source, before=partial(_list, w, code, name, node))
    elif not _by_key(code, node):
        _check_conditions(w, code, name, node, source)
    elif _is_alone(code, node):
        seq_check(w, code, name, node, source, before=partial(_drop_here, w, code, name))
    else:
        seq_check(w, code, name, node, source, before=partial(_note_start, w, code, name))


def drop_followed(w: Writer, code: Code, name: str, node: ir.Join) -> None:
    """At the end of an instant, retract the goals that found their nearest solution, if they are still there."""
    if not node.policy and _is_alone(code, node):
        return
    goals, done = code.goals(name, "G"), code.of_instant("D", name, "dict")
    use_bisect(code)
    with w.block(f"for k, followed in {done}.items():"):
        w(f"b = {goals}.get(k)")
        with w.block("if b is None:"):
            w("continue")
        if _by_key(code, node):
            w("i = len(b) if b and b[-1][0] < followed else bisect_left(b, (followed,))", "rest, b = b[i:], b[:i]")
            _leave(w, code, name, node)
        else:
            _take_out(w, code, name, node, "followed")


def _by_key(code: Code, node: ir.Join) -> bool:
    """Whether the key alone decides which goals a solution is next to: those that ended before it started."""
    _, tests = merge(code.names, node.left, node.right, code.layouts, node.certain, "x", "y")
    return not tests and not node.condition


def _is_alone(code: Code, node: ir.Join) -> bool:
    """Whether the right side has only one solution in this instant."""
    right = code.new(node.right.node)
    return right in code.single or right in code.at_most_one


def _note_start(w: Writer, code: Code, name: str, frame: Frame, tests: list[str], skip: str) -> bool:
    """Note the latest start: the goals under the key that ended before it are dropped."""
    done = code.of_instant("D", name, "dict")
    with w.block(f"if {done}.get(k, y[1]) <= y[1]:"):
        w(f"{done}[k] = y[1]")
    return False


def _list(w: Writer, code: Code, name: str, node: ir.Join, frame: Frame, tests: list[str], skip: str) -> bool:
    """List the goals to be dropped, or note the latest start, before the policy takes one of them."""
    across = [frame.emitter().test(condition) for condition in conditions_of(node.condition)]
    if not tests and not across:
        return _note_start(w, code, name, frame, tests, skip)
    w(f"followed = {code.of_instant('D', name, 'dict')}.setdefault(k, [])")
    comprehension(w, "followed", "x", "for x in b", ["x[0] < y[1]", *tests, *across])
    return False


def _drop_here(w: Writer, code: Code, name: str, frame: Frame, tests: list[str], skip: str) -> bool:
    """Drop the goals that ended before ``y`` started; ``b`` becomes these goals."""
    goals = code.goals(name, "G")
    with w.block("if b[-1][0] < y[1]:"):
        w(f"del {goals}[k]")
    with w.block("else:"):
        w("i = bisect_left(b, (y[1],))")
        with w.block("if not i:"):
            w(skip)
        w(f"{goals}[k], b = b[i:], b[:i]")
    if code.journaled:
        number = code.store(name, "G").number
        w(f"{code.journal}.extend([({-number - 1}, x) for x in b])")
    return True


def _check_conditions(w: Writer, code: Code, name: str, node: ir.Join, source: str) -> None:
    """The checking rule where a condition on both sides decides which goals ``y`` is next to."""
    frame, tests = frame_of(code, name, node, "y")
    alone, marks = _is_alone(code, node), None if tests else marks_of(code, name, node)
    done = "" if alone else code.of_instant("D", name, "dict")
    with code.each(w, "y", source) as skip:
        look_up(w, code, name, node, "y", skip)
        with w.block("if b:"):
            write_prune(w, code.longest(name, waits(node)))
            decisive, _ = candidate_tests(w, code, name, node, node.condition, frame, node.left, "y", skip)
            w("begun, found = y[1], []")
            if marks is not None:
                # Goals that another solution of the instant has found are still there, whatever the marks say.
                marks.look_up(w, code, unless=f"k in {done}" if done else "")
            with w.block("for x in reversed(b):"):
                if marks is not None:
                    marks.stop(w)
                with w.block("try:"):
                    with w.block(f"if {' and '.join([*tests, *decisive, 'x[0] < begun'])}:"):
                        w("found.append(x)")
                    if marks is not None:
                        marks.stays(w, code)
                with w.block("except SparqlError:"):
                    w("continue")
            if marks is not None:
                marks.leave(w)
            with w.block("if not found:"):
                w(skip)
            w("found.reverse()")
            if alone:
                _take_out(w, code, name, node, "found")
            else:
                w(f"{done}.setdefault(k, []).extend(found)")
            conditions, rest = candidate_tests(w, code, name, node, node.steps, frame, node.left, "y", skip)
            due = [] if node.deadline is None else [in_time(node.deadline, "x[0]", frame.end, code.names)]
            all_matches(w, code, name, node, frame, Search(due, conditions, rest, node.left), "for x in found")


def _take_out(w: Writer, code: Code, name: str, node: ir.Join, found: str) -> None:
    """Take the goals that were ``found`` out of bucket ``b`` of key ``k``; ``b`` becomes these goals."""
    w(f"rest, b = {code.names.use('take_out', take_out)}(b, {found})")
    _leave(w, code, name, node)


def _leave(w: Writer, code: Code, name: str, node: ir.Join) -> None:
    """Leave the ``rest`` in the bucket of key ``k``; ``b`` are the goals that go."""
    goals, number = code.goals(name, "G"), code.store(name, "G").number
    if code.journaled:
        w(f"{code.journal}.extend([({-number - 1}, x) for x in b])")
    with w.block("if rest:"):
        w(f"{goals}[k] = rest")
    with w.block("else:"):
        w(f"del {goals}[k]")
        if (marks := marks_of(code, name, node)) is not None:
            w(f"{marks.by_key}.pop(k, None)")
