"""Generated code for the operators with an optional side: OPTIONAL, OPTIONALSEQ, EQUALSOPTIONAL, MINUS, EXISTS.

The strata ensure that the optional side is complete for the instant before the mandatory side looks at it.  A
mandatory solution is decided once, when it arrives, and never taken back.
"""

from __future__ import annotations

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.relations import LEFT_LAST, TOGETHER, OuterOp, hull, sources
from etalis_rules.terms import FALSE, TRUE

from etalis_py.executors.rows.generate.blocks import Code, emit_steps
from etalis_py.executors.rows.generate.frames import Frame, merge
from etalis_py.executors.rows.generate.inserting import (
    comparison_of,
    compute_arriving,
    in_vain,
    insert,
    key_of,
    leave_edge,
    sought,
    stop_at_edge,
    use_bisect,
)
from etalis_py.executors.rows.generate.runtime_objects import MinusLookUp
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.executors.rows.run.goals import write_prune, write_prune_but_first, write_retract

# The mandatory side is y, the optional one x.
_BOUNDS = {"a": "y[1]", "a'": "y[0]", "b": "x[1]", "b'": "x[0]"}
_STARTS = {"a": "y[1]", "b": "x[1]", "min": "(x[1] if x[1] < y[1] else y[1])"}


def outer(w: Writer, code: Code, name: str, node: ir.Outer, left: str, right: str) -> None:
    """The block of an outer node; ``right`` is empty if the optional side cannot have new solutions."""
    if node.op in TOGETHER and node.policy and node.right is not None:
        if left:
            _pick_mandatory(w, code, name, node, left, right)
        return
    if node.right is not None and node.op in TOGETHER and not code.is_late(name):
        goals = code.of_instant("G", name, "dict")
        if right:
            with w.block(f"for x in {right}:"):
                w(f"{goals}.setdefault(({key_of(node.right, node.certain, 'x')}, x[1]), []).append(x)")
    elif node.right is not None and right and (node.op not in LEFT_LAST or code.is_late(name)):
        insert(w, code, name, "G", node.right, node.certain, right)
    if not left:
        return
    if node.policy:
        with w.block(f"if len({left}) > 1:"):
            w(f"{left} = sorted({left})")
    with w.block(f"for y in {left}:"):
        if node.op in (OuterOp.MINUS, OuterOp.EXISTS):
            _test(w, code, name, node)
        else:
            _optional(w, code, name, node)


def _bucket(w: Writer, code: Code, name: str, node: ir.Outer) -> tuple[str, list[str]]:
    """Write the look-up of ``b``, the candidates of ``y``; returns the loop over them and the tests it leaves open."""
    assert node.right is not None
    if node.op in TOGETHER and not code.is_late(name):
        goals = code.of_instant("G", name, "dict")
        w(f"b = {goals}.get(({key_of(node.left, node.certain, 'y')}, y[1]), ())")
        return "for x in b", []
    goals = code.goals(name, "G")
    w(f"k = {sought(w, code, name, node.left, node.certain, 'y', '')}", f"b = {goals}.get(k, ())")
    if node.bound is not None:
        use_bisect(code)
        with w.block("if b:"):
            write_prune(w, code.longest(name, node.bound), exactly=True)
    shown = code.shown_within(name)
    if shown is not None and code.is_decided_by_key(name):
        use_bisect(code)
        write_prune_but_first(w, str(shown.longest))
    # All candidates have ended by now.  A test is needed if they must end before ``y`` begins, or if ``y`` may be known
    # only after its end.
    tested = code.is_late(name) or node.op in LEFT_LAST
    loop = "for x in b" if shown is None else "for x in reversed(b)"
    if (compared := comparison_of(code, name, node.right)) is not None:
        with w.block("if b:"):
            compute_arriving(w, code, compared, node.left, "y", "b = ()")
            with w.block("else:"):
                stop_at_edge(w, code.edges(name, "G"), compared, "b = ()")
    return loop, sources(node.op, _BOUNDS) if tested else []


def _leave_edge(w: Writer, code: Code, name: str, node: ir.Outer) -> None:
    """Where a comparison is the condition, a search in vain tells that no goal lies beyond ``v0`` (see ``joins``)."""
    if node.right is None or comparison_of(code, name, node.right) is None:
        return
    all_ended = "b[-1][0] < y[1] and " if node.op in LEFT_LAST else ""
    with w.block(f"if b and not hit and {all_ended}{in_vain(code)}:"):
        leave_edge(w, code, name, node.right, code.edges(name, "G"))


def _combined(code: Code, name: str, node: ir.Outer) -> tuple[Frame, list[str]]:
    assert node.right is not None
    frame, tests = merge(code.names, node.left, node.right, code.layouts, node.certain, "y", "x")
    frame.start = _STARTS[hull(node.op)[0]]
    _end(code, node, frame)
    frame.provenance = code.provenance(name, "y[-1]", "x[-1]")
    return frame, tests


def _end(code: Code, node: ir.Outer, frame: Frame) -> None:
    if code.is_late(node.left.node):
        frame.end = "y[0]"  # the optional side ends no later


def _alone(code: Code, node: ir.Outer) -> Frame:
    frame = Frame(code.names, start="y[1]")
    frame.read(node.left, code.layouts[node.left.node], "y")
    _end(code, node, frame)
    frame.provenance = "y[-1]" if code.explain else ""
    return frame


def _optional(w: Writer, code: Code, name: str, node: ir.Outer) -> None:
    out, layout = code.new(name), code.layouts[name]
    w("hit = False")

    def keep(frame: Frame, skip: str) -> None:
        emit_steps(w, code, name, node.steps, frame, skip, lambda: w(f"{out}.append({frame.solution(layout)})"))

    if node.right is not None:
        loop, tests = _bucket(w, code, name, node)
        frame, compatible = _combined(code, name, node)
        tests = tests + compatible
        if node.policy:
            _consume_one(w, code, name, node, frame, tests)
        else:
            with w.block(f"{loop}:"):
                if (shown := code.shown_within(name)) is not None:
                    with w.block(f"if hit and x[0] < t - {shown.longest}:"):
                        w("break")  # older ones only tell that there is a partner
                if tests:
                    with w.block(f"if not ({' and '.join(tests)}):"):
                        w("continue")

                def positive() -> None:
                    w("hit = True")
                    keep(frame, "continue")

                emit_steps(w, code, name, node.condition, frame, "continue", positive)
            _leave_edge(w, code, name, node)
    _or_background_or_alone(w, code, name, node)


def _or_background_or_alone(w: Writer, code: Code, name: str, node: ir.Outer) -> None:
    """Join ``y`` with each partner in the background, which no policy consumes; without any partner it stands alone."""
    out, layout = code.new(name), code.layouts[name]

    def keep(frame: Frame) -> None:
        steps = node.steps
        emit_steps(w, code, name, steps, frame, "continue", lambda: w(f"{out}.append({frame.solution(layout)})"))

    if node.background is not None:
        frame = _alone(code, node)
        binds = tuple(sorted(alg.scope(node.background) - frozenset(frame.terms)))
        step = ir.Background(node.background, binds)

        def found_there() -> None:
            w("hit = True")
            keep(frame)

        emit_steps(w, code, name, (step, *node.condition), frame, "continue", found_there)
    with w.block("if not hit:"):
        keep(_alone(code, node))


def _pick_mandatory(w: Writer, code: Code, name: str, node: ir.Outer, left: str, right: str) -> None:
    """EQUALSOPTIONAL under a consuming policy: as in EQUALS the right side, here the optional one, picks its partner.

    The mandatory solutions that were not picked, and that have no partner in the background, are the negative half.
    """
    assert node.right is not None
    out, layout = code.new(name), code.layouts[name]
    w("waiting = {}", "picked = set()")
    with w.block(f"for y in sorted({left}):"):
        w(f"waiting.setdefault(({key_of(node.left, node.certain, 'y')}, y[1]), []).append(y)")
    frame, tests = _combined(code, name, node)
    if right:
        with w.block(f"for x in sorted({right}):"):
            w(f"b = waiting.get(({key_of(node.right, node.certain, 'x')}, x[1]), ())")
            order = "range(len(b) - 1, -1, -1)" if node.policy == "recent" else "range(len(b))"
            with w.block(f"for i in {order}:"):
                w("y = b[i]")
                if tests:
                    with w.block(f"if not ({' and '.join(tests)}):"):
                        w("continue")

                def take() -> None:
                    w("del b[i]", "picked.add(id(y))")
                    with w.block("while True:"):
                        solution = frame.solution(layout)
                        emit_steps(
                            w, code, name, node.steps, frame, "break", lambda: w(f"{out}.append({solution})", "break")
                        )
                    w("break")

                emit_steps(w, code, name, node.condition, frame, "continue", take)
    with w.block(f"for y in {left}:"):
        w("hit = id(y) in picked")
        _or_background_or_alone(w, code, name, node)


def _consume_one(w: Writer, code: Code, name: str, node: ir.Outer, frame: Frame, tests: list[str]) -> None:
    """Under a consuming policy, join ``y`` with one candidate, and retract that goal."""
    assert node.right is not None
    number = code.store(name, "G").number
    layout = code.layouts[name]
    latest = node.policy == "recent"
    with w.block("for i in " + ("range(len(b) - 1, -1, -1):" if latest else "range(len(b)):")):
        w("x = b[i]")
        if tests:
            with w.block(f"if not ({' and '.join(tests)}):"):
                w("continue")

        def take() -> None:
            w("hit = True", f"pair = {frame.solution(layout)}")
            if node.op in LEFT_LAST:
                write_retract(w, code.goals(name, "G"), key_of(node.left, node.certain, "y"))
            else:
                w("del b[i]")
            if code.journaled and node.op in LEFT_LAST:
                w(f"{code.journal}.append(({-number - 1}, x))")
            with w.block("while True:"):
                emit_steps(
                    w, code, name, node.steps, frame, "break", lambda: w(f"{code.new(name)}.append(pair)", "break")
                )
            w("break")

        emit_steps(w, code, name, node.condition, frame, "continue", take)


def _test(w: Writer, code: Code, name: str, node: ir.Outer) -> None:
    """Write the test of MINUS and EXISTS: whether some solution of the right is compatible with ``y``."""
    out, layout = code.new(name), code.layouts[name]
    w("hit = False")
    if node.right is not None:
        loop, in_time = _bucket(w, code, name, node)
        frame, compatible = _combined(code, name, node)
        tests = [*in_time, *(_minus_tests(code, node) if node.op is OuterOp.MINUS else compatible)]
        with w.block(f"{loop}:"):
            if tests:
                with w.block(f"if not ({' and '.join(tests)}):"):
                    w("continue")
            emit_steps(w, code, name, node.condition, frame, "continue", lambda: w("hit = True", "break"))
        _leave_edge(w, code, name, node)
    if node.background is not None:
        with w.block("if not hit:"):
            _test_background(w, code, name, node)
    frame = _alone(code, node)
    if node.op is OuterOp.MINUS:
        with w.block("if hit:"):
            w("continue")
    else:
        frame.terms[node.mark] = f"({TRUE!r} if hit else {FALSE!r})"
        frame.values[node.mark] = "hit"
    emit_steps(w, code, name, node.steps, frame, "continue", lambda: w(f"{out}.append({frame.solution(layout)})"))


def _minus_tests(code: Code, node: ir.Outer) -> list[str]:
    """Compatible on the shared variables, and at least one of them bound on both sides."""
    assert node.right is not None
    own, other = Frame(code.names), Frame(code.names)
    own.read(node.left, code.layouts[node.left.node], "y")
    other.read(node.right, code.layouts[node.right.node], "x")
    # A sub-SELECT may show a variable that it never binds: there is no column for it.
    shared = [v for v in node.scope if v in own.terms and v in other.terms]
    open_ = [v for v in shared if v not in node.certain]
    tests = [f"({own.terms[v]} == {other.terms[v]} or not {own.terms[v]} or not {other.terms[v]})" for v in open_]
    if not shared:
        tests.append("False")  # without a shared variable MINUS removes nothing
    elif len(open_) == len(shared):  # in a family the name of the query is certain, and not in scope
        tests.append("(" + " or ".join(f"({own.terms[v]} and {other.terms[v]})" for v in open_) + ")")
    return tests


def _test_background(w: Writer, code: Code, name: str, node: ir.Outer) -> None:
    assert node.background is not None
    frame = _alone(code, node)
    pattern = node.background
    if node.op is OuterOp.MINUS:
        # Only the variables in scope count; each must be compared, not only looked up.
        shared = [v for v in node.scope if v in frame.terms]
        lookup = code.helper("M", name, MinusLookUp(pattern, tuple(shared)))
        w(f"hit = {lookup}(({''.join(frame.terms[v] + ', ' for v in shared)}), t)")
        return
    binds = tuple(sorted(alg.scope(pattern) - frozenset(frame.terms)))
    steps = (ir.Background(pattern, binds), *node.condition)
    emit_steps(w, code, name, steps, frame, "continue", lambda: w("hit = True", "break"))
