"""Generated code for REPEAT … MAXIMAL and UNTIL: the operator takes the elements of an instant and what ends runs.

Whether a run is over can only be said when all elements of the instant are known, so the block comes after theirs.
With GAP it runs also at times without an event, if a silence is over then.

Without GAP there may be runs that only the end of the stream ends.  Their solutions are known when it has ended, so
they are reported, and seen by whatever works on single solutions or counts them, but they join nothing that has a time
and derive no event: a longer stream would take both back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from graphlib import TopologicalSorter
from typing import TypeGuard

from etalis_rules import program as ir
from etalis_rules.clock import ends_by_clock, ends_with_stream
from etalis_rules.operator_words import reported_when
from etalis_rules.operators import passed_on_at_end

from etalis_py.executors.rows.generate import limit_checks
from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.runtime_objects import OfOperator
from etalis_py.executors.rows.generate.writer import Writer


def reports_ended(node: ir.Node | None) -> TypeGuard[ir.Run]:
    """Whether this node reports runs when they have ended."""
    return node is not None and bool(reported_when(node))


def go_on(w: Writer, code: Code, name: str, node: ir.Run, reached: frozenset[str], *, time_passes: bool) -> None:
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
    if time_passes and ends_by_clock(node):
        tests.append(f"{code.helper('is_due', name, OfOperator(name, 'is_due'))}(t)")
    w(f"{out} = ()")
    with code.guard(w, *tests):
        if absent:
            with nullcontext() if absent in code.single else w.block(f"if {absent}:"):
                code.log(w, name, absent, 1)
                w(f"{code.helper('interrupt', name, OfOperator(name, 'interrupt'))}(t, {absent})")
        code.log(w, name, child or "()")
        w(f"{out} = {code.helper('run', name, OfOperator(name))}(t, {child or '()'})")
        limit_checks.compare(w, code, name, out, limit_checks.FEW)


def known_at_end(nodes: Mapping[str, ir.Node]) -> list[str]:
    """The nodes that may have solutions which only the end of the stream ends, what they are made from first."""
    ended: dict[str, None] = {}
    below = {name: [ref.node for ref in ir.refs(node)] for name, node in nodes.items()}
    for name in TopologicalSorter(below).static_order():
        node = nodes[name]
        if ends_with_stream(node) or any(ref.node in ended for ref in passed_on_at_end(node)):
            ended[name] = None
    return list(ended)


def begin(w: Writer, code: Code, name: str, *, time_passes: bool) -> None:
    """Write the list of START: one solution at the instant before the first, and none at any other."""
    if not time_passes:
        w(f"{code.new(name)} = ()")
        return
    begins, provenance = code.helper("begins", name, OfOperator(name, "begins")), code.provenance(name)
    w(f"{code.new(name)} = [(t, t + 1{f', {provenance}' if provenance else ''})] if {begins}(t) else ()")


def finish(w: Writer, code: Code, ended: Iterable[str]) -> None:
    """Write the lists of the runs that the end of the stream ends."""
    for name in ended:
        if ends_with_stream(code.nodes[name]):
            w(f"{code.new(name)} = {code.helper('finish', name, OfOperator(name, 'finish'))}(t)")
