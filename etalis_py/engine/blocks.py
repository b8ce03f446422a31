"""Generated code for the steps of a rule, and for nodes with one body goal.

Every node has a Python list of the solutions that are new in this instant.  A *block* reads the lists of the node's
body goals and fills the node's own; the blocks of an instant follow one another in the order of the strata.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.calendar import add_months

from etalis_py.engine.expressions import Names
from etalis_py.engine.frames import Frame
from etalis_py.engine.layout import Layout
from etalis_py.engine.state import State
from etalis_py.engine.values import SparqlError
from etalis_py.engine.writer import Writer


@dataclass(slots=True)
class Code:
    """What all blocks of one program share."""

    nodes: dict[str, ir.Node]
    layouts: dict[str, Layout]
    state: State
    names: Names = field(default_factory=Names)
    explain: bool = False
    journal: bool = False
    numbers: dict[str, int] = field(default_factory=dict)
    single: set[str] = field(default_factory=set)
    """Lists that hold exactly one solution in the function being written."""

    def __post_init__(self) -> None:
        self.numbers = {name: i for i, name in enumerate(self.nodes)}
        self.names.use("SparqlError", SparqlError)
        self.names.use("look_back", self.state.look_back)

    def new(self, node: str) -> str:
        """The list of a node's new solutions."""
        return f"n{self.numbers[node]}"

    def helper(self, kind: str, node: str, value: Any) -> str:
        """A run-time object that belongs to a node."""
        return self.names.use(f"{kind}{self.numbers[node]}", value)

    def provenance(self, node: str, *parts: str) -> str:
        """Source of the provenance of a solution, or nothing when explanations are off."""
        if not self.explain:
            return ""
        because = self.names.use("Because", self.state.because)
        return f"{because}({node!r}, ({', '.join(parts)},))"


def too_long(bound: alg.Bound, start: str, end: str, names: Names) -> str:
    """Source that is true when an interval is longer than the bound."""
    if bound.months:
        shifted = f"{names.use('add_months', add_months)}({start}, {bound.months})"
        return f"{end} > {shifted} + {bound.micros}"
    return f"{end} - {start} > {bound.micros}"


def in_time(bound: alg.Bound, start: str, end: str, names: Names) -> str:
    """Source that is true when an interval is no longer than the bound."""
    if bound.months:
        return f"not {too_long(bound, start, end, names)}"
    return f"{end} - {start} <= {bound.micros}"


def emit_steps(
    w: Writer, code: Code, node: str, steps: tuple[ir.Step, ...], frame: Frame, skip: str, then: Callable[[], None]
) -> None:
    """The steps in order, nested where a look-up gives several answers; ``then`` writes what follows a success.

    ``skip`` is the statement that abandons this solution (``continue`` inside a loop).
    """
    for i, step in enumerate(steps):
        match step:
            case ir.Condition(expression):
                with w.block("try:"), w.block(f"if not {frame.emitter().test(expression)}:"):
                    w(skip)
                with w.block("except SparqlError:"):
                    w(skip)
            case ir.Duration(bound):
                with w.block(f"if {too_long(bound, frame.start, frame.end, code.names)}:"):
                    w(skip)
            case ir.Assign(variable, expression):
                _assign(w, frame, variable, expression, f"a{code.numbers[node]}_{i}")
            case ir.Background(pattern, binds):
                _background(w, code, node, pattern, binds, frame, f"{code.numbers[node]}_{i}")
                depth = w.depth
                w.depth += 1
                emit_steps(w, code, node, steps[i + 1 :], frame, "continue", then)
                w.depth = depth
                return
    then()


def _assign(w: Writer, frame: Frame, variable: str, expression: alg.Expr, temporary: str) -> None:
    if isinstance(expression, alg.Var):
        frame.terms[variable] = frame.terms.get(expression.name, "''")
        if expression.name in frame.values:
            frame.values[variable] = frame.values[expression.name]
        return
    with w.block("try:"):
        w(f"{temporary} = {frame.emitter().term(expression)}")
    with w.block("except SparqlError:"):
        w(f"{temporary} = ''")
    frame.terms[variable] = temporary
    frame.values.pop(variable, None)


def _background(
    w: Writer, code: Code, node: str, pattern: alg.Pattern, binds: tuple[str, ...], frame: Frame, tag: str
) -> None:
    """``for b in lookup(bindings, t):`` — the body is indented by the caller."""
    known = sorted(alg.scope(pattern) & frozenset(frame.terms))
    wanted = tuple(sorted(frozenset(binds) | frozenset(known)))
    lookup = code.names.use(f"B{tag}", code.state.lookup(pattern, tuple(known), wanted))
    arguments = ", ".join(frame.terms[name] for name in known)
    row = f"b{tag}"
    w(f"for {row} in {lookup}(({arguments}{',' if known else ''}), t):")
    for i, name in enumerate(wanted):
        # A look-up may bind what was unbound before: the value carried for it is then that of nothing.
        frame.terms[name] = f"{row}[{i}]"
        if name in binds or "present" in frame.values.get(name, ""):
            frame.values.pop(name, None)
    if code.explain:
        frame.provenance = code.provenance(node, frame.provenance or "x[-1]", f"Because('background', {row}[-1])")


def single_pass(w: Writer, code: Code, name: str, node: ir.Map, source: str) -> None:
    """Map: each new solution of the child through the steps."""
    layout = code.layouts[name]
    frame = Frame(code.names)
    frame.read(node.child, code.layouts[node.child.node], "x")
    if code.state.is_late(name):
        frame.end = "x[0]"
    out = code.new(name)
    if code.explain:
        frame.provenance = "x[-1]"
    if node.distinct and not node.steps:
        _distinct(w, code, name, node, source, frame)
        return
    conditions = [s for s in node.steps if isinstance(s, ir.Condition)]
    durations = [s for s in node.steps if isinstance(s, ir.Duration)]
    if len(conditions) + len(durations) == len(node.steps):
        tests = [f"not ({too_long(d.bound, 'x[1]', frame.end, code.names)})" for d in durations]
        emitter = frame.emitter()
        tests += [emitter.test(c.expression) for c in conditions]
        same = not code.explain and _identical(node, layout, code)
        made = "x" if same else frame.solution(layout)
        comprehension(w, out, made, f"for x in {source}", tests)
        return
    with w.block(f"for x in {source}:"):
        emit_steps(w, code, name, node.steps, frame, "continue", lambda: w(f"{out}.append({frame.solution(layout)})"))


def _identical(node: ir.Map, layout: Layout, code: Code) -> bool:
    """Does the solution pass through unchanged?"""
    child = code.layouts[node.child.node]
    return node.child.columns == layout.head and len(child.values) == len(layout.values) == 0


def comprehension(w: Writer, out: str, made: str, loop: str, tests: list[str]) -> None:
    """``out += [made …]``, and element by element where a condition of some element is an error."""
    if not tests:
        w(f"{out} += [{made} {loop}]")
        return
    with w.block("try:"):
        w(f"{out} += [{made} {loop} if {' and '.join(tests)}]")
    with w.block("except SparqlError:"), w.block(f"{loop}:"):
        with w.block("try:"), w.block(f"if {' and '.join(tests)}:"):
            w(f"{out}.append({made})")
        with w.block("except SparqlError:"):
            w("continue")


def _distinct(w: Writer, code: Code, name: str, node: ir.Map, source: str, frame: Frame) -> None:
    """The solutions of an instant as a set over all columns of the child."""
    layout = code.layouts[name]
    width = code.layouts[node.child.node].width
    seen = code.helper("seen", name, code.state.instant_set(name))
    with w.block(f"for x in {source}:"):
        w(f"k = x[1:{width}]")
        with w.block(f"if k not in {seen}:"):
            w(f"{seen}.add(k)", f"{code.new(name)}.append({frame.solution(layout)})")


def union(w: Writer, code: Code, name: str, node: ir.Union, sources: list[tuple[ir.Ref, str]]) -> None:
    """Union: every branch in turn, with its columns in the order of the head."""
    layout = code.layouts[name]
    out = code.new(name)
    seen = code.helper("seen", name, code.state.instant_set(name)) if node.distinct else ""
    for ref, source in sources:
        frame = Frame(code.names)
        frame.read(ref, code.layouts[ref.node], "x")
        if code.state.is_late(name):
            frame.end = "x[0]"
        if code.explain:
            frame.provenance = "x[-1]"
        if not node.distinct:
            comprehension(w, out, frame.solution(layout), f"for x in {source}", [])
            continue
        columns = ", ".join(frame.terms.get(c, "''") for c in layout.head)
        with w.block(f"for x in {source}:"):
            w(f"k = (x[1], {columns})")
            with w.block(f"if k not in {seen}:"):
                w(f"{seen}.add(k)", f"{out}.append({frame.solution(layout)})")
