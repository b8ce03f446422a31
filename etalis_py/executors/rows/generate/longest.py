"""Generated code for the usual case of REPEAT … LONGEST, inlined in the function of the instant.

Most keys have a single run.  If the instant has one solution, and it follows the only element of its key, this code
continues the run or begins a new one; all other cases are left to ``runs``.  So does a solution of NOT that interrupts
a single run.
"""

from __future__ import annotations

from etalis_rules import program as ir

from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.inserting import key_of
from etalis_py.executors.rows.generate.runtime_objects import OfOperator
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.executors.rows.run.operands import is_loose, row_of, step_test
from etalis_py.executors.rows.run.runs import Single, counted, keeps_longest_alone, result


def is_inline(name: str, node: ir.Run, code: Code) -> bool:
    """Whether the inlined code can keep the run of a key: its rows carry nothing but terms."""
    calendar = node.gap is not None and not node.gap.is_fixed
    return (
        keeps_longest_alone(node) and node.until is None and not (code.explain or code.layouts[name].values or calendar)
    )


def go_on(w: Writer, code: Code, name: str, node: ir.Run, source: str) -> None:
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
