"""Generated code for REPEAT: what its operator calls, when it is called, and the usual case without it.

Whether a run of MAXIMAL or UNTIL is over can only be said when all elements of the instant are known, so the block
comes after theirs: the operator takes the elements of the instant and what ends runs.  With GAP it runs also at times
without an event, if a silence is over then.

With LONGEST most keys have a single run.  If the instant has one solution, and it follows the only element of its key,
code inlined in the function of the instant continues the run or begins a new one; all other cases are left to the
operator.  So does a solution of NOT that interrupts a single run.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TypeGuard

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.clock import ends_by_clock
from etalis_rules.runs import counted, is_plain, keeps_longest_alone, reported_when
from etalis_rules.terms import XSD

from etalis_py.executors.rows.generate import limit_checks
from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.frames import Frame
from etalis_py.executors.rows.generate.inserting import key_of
from etalis_py.executors.rows.generate.runtime_objects import OfOperator
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.executors.rows.run.maximal import Open
from etalis_py.executors.rows.run.operands import OperatorCode, operands_of
from etalis_py.executors.rows.run.runs import Single, result

# --- what the operator calls ---


def run_code(node: ir.Run, code: Code) -> OperatorCode:
    """Write the functions that the operator of the runs calls."""
    operands = operands_of(node.child, counted(node), code)
    row = f"def row(n, f, x, totals, b=()): return {row_of(node)}"
    return OperatorCode(operands=operands, step=_step(node, code), row=row, may_be_unbound=is_loose(node, code))


def row_of(node: ir.Run) -> str:
    """Source of the row of a run of ``n`` elements, the first ``f`` and the last ``x``, with its ``totals``.

    With UNTIL ``b`` is what has ended the run, with MAXIMAL something that ends when the run is over.
    """
    columns, ending = node.child.columns, () if node.until is None else node.until.columns
    shown = {key: f"x[{2 + columns.index(key)}]" for key in node.keys}
    for i, name in enumerate(ending):
        shown[name] = f"({shown[name]} or b[{2 + i}])" if name in shown else f"b[{2 + i}]"
    for a in node.aggregates:
        if a.takes_element:
            place = 2 + columns.index(alg.variable_of(a.operand))
            shown[a.variable] = f"{'f' if a.name == 'FIRST' else 'x'}[{place}]"
        elif is_plain(a):
            shown[a.variable] = f"""f'"{{n}}"^^<{XSD}integer>'"""
        else:
            shown[a.variable] = f"result(totals[{counted(node).index(a)}])"
    end = "x[0]" if node.until is None and not node.maximal else "b[0]"
    return f"({', '.join([end, 'f[1]', *(shown[c] for c in node.head)])})"


def is_loose(node: ir.Run, code: Code) -> bool:
    """Whether an element, what must be absent or what ends runs may leave a BY variable unbound."""
    bound = _bound_columns(node.child, code)
    for ref in (node.absent, node.until):
        if ref is not None:
            bound &= _bound_columns(ref, code)
    return not frozenset(node.keys) <= bound


def _bound_columns(ref: ir.Ref, code: Code) -> frozenset[str]:
    """The columns of a body goal that are bound in every solution, under their names here."""
    layout = code.layouts[ref.node]
    return frozenset(here for column, here in zip(layout.head, ref.columns, strict=True) if column in layout.certain)


def _step(node: ir.Run, code: Code) -> str:
    """Source that is true when a run may go on.

    ``x`` is the element, ``p`` the one before it, ``f`` the first, and ``b`` has those before ``p``, the nearest first;
    ``b2`` is the second before ``x``, or has nothing bound where the run is shorter.
    """
    if not node.condition:
        return ""
    layout = code.layouts[node.child.node]
    nothing = (0, 0, *("" for _ in layout.head), *(None for _ in layout.values))
    missing = code.names.constant(nothing, nothing)
    back = (f"    b{n} = b[{n - 2}] if len(b) > {n - 2} else {missing}" for n in _far(node))
    lines = ("def step(x, p, f, t, c=(), b=()):", *back, "    try:", f"        return bool({step_test(node, code)})")
    return "\n".join((*lines, "    except SparqlError:", "        return False"))


def _far(node: ir.Run) -> list[int]:
    """How many elements back the condition looks, beyond the one before."""
    back = {alg.back_of(part) for e in node.condition for part in alg.subexpressions(e)}
    return sorted(back - {1})


def step_test(node: ir.Run, code: Code) -> str:
    """Source of the condition itself."""
    layout, columns = code.layouts[node.child.node], node.child.columns
    frame = Frame(code.names, end="x[0]")
    frame.read(node.child, layout, "x")
    for variable, word in (("p", "PREVIOUS"), ("f", "FIRST")):
        frame.read(ir.Ref(node.child.node, tuple(f"{word} {c}" for c in columns)), layout, variable)
    for n in _far(node):
        names = tuple(f"PREVIOUS {n} {c}" for c in columns)
        frame.read(ir.Ref(node.child.node, names), layout, f"b{n}")
        frame.unsure |= frame.values.keys() & set(names)
    frame.terms |= {a.variable: f"c[{i}]" for i, a in enumerate(node.totals)}
    emitter = frame.emitter()
    return " and ".join(emitter.test(alg.elements_named(e)) for e in node.condition)


# --- runs that something else ends ---


def reports_ended(node: ir.Node | None) -> TypeGuard[ir.Run]:
    """Whether this node reports runs when they have ended."""
    return node is not None and bool(reported_when(node))


def end_runs(w: Writer, code: Code, name: str, node: ir.Run, reached: frozenset[str], *, time_passes: bool) -> None:
    """Write the block of the node; ``time_passes``: whether a silence may be over in this instant."""
    if node.until is not None:
        _until(w, code, name, node, node.until, reached)
    else:
        _maximal(w, code, name, node, reached, time_passes=time_passes)


def _until(w: Writer, code: Code, name: str, node: ir.Run, until: ir.Ref, reached: frozenset[str]) -> None:
    """The elements first, since a B ends no run that has an element at its own time."""
    out, side = code.new(name), 1 if node.absent is None else 2
    w(f"{out} = ()")
    if node.child.node in reached:
        child = code.new(node.child.node)
        with code.guard(w, child):
            code.log(w, name, child)
            w(f"{code.helper('run', name, OfOperator(name))}(t, {child})")
    if until.node in reached:
        ending = code.new(until.node)
        with code.guard(w, ending):
            code.log(w, name, ending, side)
            w(f"{out} = {code.helper('ends', name, OfOperator(name, 'ends'))}(t, {ending})")
            limit_checks.compare(w, code, name, out, limit_checks.FEW)


def _maximal(w: Writer, code: Code, name: str, node: ir.Run, reached: frozenset[str], *, time_passes: bool) -> None:
    out = code.new(name)
    child = code.new(node.child.node) if node.child.node in reached else ""
    absent = "" if node.absent is None or node.absent.node not in reached else code.new(node.absent.node)
    tests = [new for new in (child, absent) if new]
    due = f"{code.of_runtime('alarm')}[0] <= t" if time_passes and ends_by_clock(node) else ""
    w(f"{out} = []")
    if child in code.at_most_one | code.single and not absent and _goes_on_alone(name, node, code):
        with code.guard(w, child):
            code.log(w, name, child)
            _go_on_alone(w, code, name, node, child)
        if due:
            with w.block(f"if {due}:"):
                code.log(w, name, "()")
                w(f"{out} += {code.helper('fall_due', name, OfOperator(name, 'fall_due'))}(t)")
                limit_checks.compare(w, code, name, out, limit_checks.FEW)
        return
    with code.guard(w, *tests, *([due] if due else [])):
        if absent:
            with nullcontext() if absent in code.single else w.block(f"if {absent}:"):
                code.log(w, name, absent, 1)
                w(f"{code.helper('interrupt', name, OfOperator(name, 'interrupt'))}(t, {absent})")
        code.log(w, name, child or "()")
        w(f"{out} = {code.helper('run', name, OfOperator(name))}(t, {child or '()'})")
        limit_checks.compare(w, code, name, out, limit_checks.FEW)


def _goes_on_alone(name: str, node: ir.Run, code: Code) -> bool:
    """Whether each element in time continues the only run of its key, and its rows carry nothing but terms."""
    free = not (node.condition or node.bound or counted(node)) and node.most is None
    return free and (node.gap is None or node.gap.is_fixed) and not (code.explain or code.layouts[name].values)


def _go_on_alone(w: Writer, code: Code, name: str, node: ir.Run, source: str) -> None:
    """Write what ``MaximalRuns`` does with the only element of an instant that begins or continues an only run.

    The silence after an element is over later than that after the one before, so the alarm need not move.
    """
    waiting = code.helper("waiting", name, OfOperator(name, "waiting"))
    w(f"(x,) = {source}", f"k = {key_of(node.child, node.keys, 'x')}", f"e = {waiting}.get(k)")
    with w.block("if e is None:"):
        w(f"{code.helper('begin', name, OfOperator(name, 'begin'))}(k, x)")
    with w.block(f"elif e.__class__ is {code.names.use('Open', Open)} and e.x[0] < x[1] <= e.due:"):
        w("e.count += 1", "e.x = x")
        if node.gap is not None:
            w(f"e.due = x[0] + {node.gap.micros}")
            w(f"{code.helper('to_end', name, OfOperator(name, 'to_end'))}(e)")
    with w.block("else:"):
        w(f"{code.new(name)} = {code.helper('run', name, OfOperator(name))}(t, {source})")


# --- the longest run of a key ---


def is_inline(name: str, node: ir.Run, code: Code) -> bool:
    """Whether the inlined code can keep the run of a key: its rows carry nothing but terms."""
    calendar = node.gap is not None and not node.gap.is_fixed  # the length of a month depends on where it begins
    return (
        keeps_longest_alone(node) and node.until is None and not (code.explain or code.layouts[name].values or calendar)
    )


def go_on_with_longest(w: Writer, code: Code, name: str, node: ir.Run, source: str) -> None:
    """The rows of the runs that end in the solutions ``source``.  A ``break`` leaves the block with the rows so far."""
    out, general = code.new(name), code.helper("run", name, OfOperator(name))
    partitions, single = code.helper("kept", name, OfOperator(name, "partitions")), code.names.use("Single", Single)
    begun = f"{code.helper('begun', name, OfOperator(name, 'begun'))}(x)" if counted(node) else "()"

    def leave() -> None:
        w(f"{out} = {general}(t, {source})", "break")

    with w.block("while True:"):
        if source not in code.at_most_one | code.single:
            with w.block(f"if len({source}) != 1:"):
                leave()
        w(f"(x,) = {source}", f"k = {key_of(node.child, node.keys, 'x')}", f"e = {partitions}.get(k)")
        with w.block("if e is None:"):
            w(f"e = {partitions}[k] = {single}(x, {begun})", "n, f = 1, x")
        with w.block("else:"):
            with w.block(f"if e.__class__ is not {single}:"):
                w("e = e.single(t)")
                with w.block("if e is None:"):
                    leave()
                w(f"{partitions}[k] = e")
            w("p = e.x")
            with w.block("if p[0] >= x[1]:"):
                leave()
            _extend(w, code, name, node, begun)
        if counted(node):
            code.names.use("result", result)
            w("totals = e.totals")
        if node.least > 1:
            with w.block(f"if n < {node.least}:"):
                w("break")
        w(f"{out} = ({row_of(node)},)", "break")


def _extend(w: Writer, code: Code, name: str, node: ir.Run, begun: str) -> None:
    """Write the code that extends the only run of the key by ``x``, or begins a new run with ``x``."""
    counts = bool(counted(node))
    near = "" if node.gap is None else f" and x[1] <= p[0] + {node.gap.micros}"
    w(f"goes_on = (e.blocked is None or x[1] <= e.blocked){near}")
    if node.condition:
        with w.block("if goes_on:"):
            w("f = e.first")
            with w.block("try:"):
                w(f"goes_on = {step_test(node, code)}")
            with w.block("except SparqlError:"):
                w("goes_on = False")
    with w.block("if goes_on:"):
        count = [f"{code.helper('count', name, OfOperator(name, 'count'))}(e.totals, x)"] if counts else []
        w("n = e.count = e.count + 1", "f = e.first", *count)
    with w.block("else:"):
        w("n, f = e.count, e.first = 1, x", *([f"e.totals = {begun}"] if counts else []))
    w("e.x, e.blocked = x, None")


def interrupt(w: Writer, code: Code, name: str, node: ir.Run, reached: frozenset[str]) -> None:
    """REPEAT … NOT: a solution that must not be in a gap stops later elements from extending runs over it."""
    if node.absent is None or node.absent.node not in reached or node.maximal:
        return
    source = code.new(node.absent.node)
    with code.guard(w, source):
        code.log(w, name, source, 1)
        _interrupt(w, code, name, node, node.absent, source)


def _interrupt(w: Writer, code: Code, name: str, node: ir.Run, absent: ir.Ref, source: str) -> None:
    general = code.helper("interrupt", name, OfOperator(name, "interrupt"))
    seen = frozenset(node.keys) <= frozenset(absent.columns)
    if (
        source not in code.at_most_one | code.single
        or not seen
        or is_loose(node, code)
        or not is_inline(name, node, code)
    ):
        w(f"{general}(t, {source})")
        return
    partitions, single = code.helper("kept", name, OfOperator(name, "partitions")), code.names.use("Single", Single)
    w(f"(x,) = {source}", f"e = {partitions}.get({key_of(absent, node.keys, 'x')})")
    with w.block(f"if e.__class__ is {single}:"), w.block("if e.blocked is None and e.x[0] < x[1]:"):
        w("e.blocked = x[0]")
    with w.block("elif e is not None:"):
        w(f"{general}(t, {source})")
