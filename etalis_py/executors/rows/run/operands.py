"""Functions that operators call for each solution: the operands of aggregates, and the condition of a REPEAT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.terms import XSD

from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.frames import Frame
from etalis_py.executors.rows.generate.provenance import Provenance
from etalis_py.executors.rows.generate.writer import load
from etalis_py.executors.rows.run.grouping import Grouping
from etalis_py.executors.rows.run.incremental_sums import IncrementalSums, is_running, running_source
from etalis_py.executors.rows.run.maximal import MaximalRuns
from etalis_py.executors.rows.run.per_query import PartedGrouping, is_parted
from etalis_py.executors.rows.run.runs import Runs, counted, is_plain, result
from etalis_py.executors.rows.run.until import EndedRuns


@dataclass(frozen=True, slots=True)
class OperatorCode:
    """The source that an aggregation or a REPEAT calls.

    ``running``: the source of an aggregation that is generated as a whole.  Otherwise ``operands`` has, for each
    aggregate, a function from a solution to the value and term of its operand (empty for COUNT(*)), and ``step`` tests
    whether a run may go on.
    """

    running: str = ""
    operands: tuple[str, ...] = ()
    step: str = ""
    may_be_unbound: bool = False
    """Whether an element, what must be absent or what ends runs may leave a BY variable unbound."""


def operator_code(node: ir.Group | ir.Run, code: Code) -> OperatorCode:
    """Write the functions that an operator calls."""
    if isinstance(node, ir.Group):
        if is_running(node) and not code.explain and not is_parted(node):
            return OperatorCode(running=running_source(node, code.names, code.layouts[node.child.node]))
        return OperatorCode(operands=_operands(node, code))
    operands = _operands(replace(node, aggregates=counted(node)), code)
    return OperatorCode(operands=operands, step=_step(node, code), may_be_unbound=is_loose(node, code))


def group_operator(
    name: str, node: ir.Group, code: OperatorCode, scope: Mapping[str, Any], *, explain: bool
) -> Grouping | PartedGrouping | IncrementalSums:
    """An aggregation with its generated functions; ``scope`` has the names in them."""
    if code.running:
        return IncrementalSums(node, code.running, scope)
    because = (lambda parts: Provenance(name, tuple(parts))) if explain else None
    operands = [loaded(text, "operand", scope) for text in code.operands]

    def make() -> Grouping:
        return Grouping(node, node.child.columns, operands, because, scope["look_back"])

    return PartedGrouping(node, make) if is_parted(node) else make()


def runs_operator(name: str, node: ir.Run, code: OperatorCode, scope: Mapping[str, Any], *, explain: bool) -> Runs:
    """The operator of a REPEAT with the functions that its clauses ask for."""
    because = (lambda parts: Provenance(name, parts)) if explain else None
    operands = [loaded(text, "operand", scope) for text in code.operands]
    row = loaded(f"def row(n, f, x, totals, b=()): return {row_of(node)}", "row", {"result": result})
    operator = MaximalRuns if node.maximal else Runs if node.until is None else EndedRuns
    return operator(node, loaded(code.step, "step", scope), operands, row, code.may_be_unbound, because)


def loaded(text: str, name: str, scope: Mapping[str, Any]) -> Any:
    """The function of this name in a text; None where there is no text."""
    if not text:
        return None
    there = dict(scope)
    load(text, there)
    return there[name]


def row_of(node: ir.Run) -> str:
    """Source of the row of a run of ``n`` elements, the first ``f`` and the last ``x``, with its ``totals``.

    With UNTIL ``b`` is what has ended the run.
    """
    columns, ending = node.child.columns, () if node.until is None else node.until.columns
    shown = {key: f"x[{2 + columns.index(key)}]" for key in node.keys}
    for i, name in enumerate(ending):
        shown[name] = f"({shown[name]} or b[{2 + i}])" if name in shown else f"b[{2 + i}]"
    for a in node.aggregates:
        if a.takes_element and isinstance(a.operand, alg.Var):
            shown[a.variable] = f"{'f' if a.name == 'FIRST' else 'x'}[{2 + columns.index(a.operand.name)}]"
        elif is_plain(a):
            shown[a.variable] = f"""f'"{{n}}"^^<{XSD}integer>'"""
        else:
            shown[a.variable] = f"result(totals[{counted(node).index(a)}])"
    end = "x[0]" if node.until is None else "b[0]"
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

    def named(part: Any) -> Any:
        match part:
            case alg.Apply("PREVIOUS" | "FIRST" as word, (alg.Var(name),)):
                return alg.Var(f"{word} {name}")
            case alg.Apply("PREVIOUS", (alg.Var(name), alg.Const())):
                return alg.Var(f"PREVIOUS {alg.back_of(part)} {name}")
        return None

    emitter = frame.emitter()
    return " and ".join(emitter.test(alg.transform(e, named)) for e in node.condition)


def _operands(node: ir.Group | ir.Run, code: Code) -> tuple[str, ...]:
    """For each aggregate, the source of a function from a solution to the value and term of its operand."""
    texts: list[str] = []
    layout = code.layouts[node.child.node]
    for call in node.aggregates:
        if call.operand is None:
            texts.append("")
            continue
        frame = Frame(code.names, end="x[0]")
        frame.read(node.child, layout, "x")
        emitter = frame.emitter()
        emitter.bindings = replace(emitter.bindings, now="x[0]")
        needs_term = call.distinct or call.name in ("MIN", "MAX", "SAMPLE", "GROUP_CONCAT", "COUNT")
        value = emitter.value(call.operand)
        given = emitter.term(call.operand) if needs_term else "''"
        texts.append(f"def operand(x):\n    return {value}, {given}\n")
    return tuple(texts)
