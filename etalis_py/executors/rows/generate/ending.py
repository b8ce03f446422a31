"""Generated code for the beginning and the end of the stream.

There may be runs that only the end of the stream ends.  Their solutions are known when it has ended, so they are
reported, and seen by whatever works on single solutions or counts them, but they join nothing that has a time and
derive no event: a longer stream would take both back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter

from etalis_rules import program as ir
from etalis_rules.clock import ends_with_stream
from etalis_rules.operators import inputs, passed_on_at_end
from etalis_rules.roles import Role

from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.runtime_objects import OfOperator
from etalis_py.executors.rows.generate.writer import Writer


def known_at_end(nodes: Mapping[str, ir.Node]) -> list[str]:
    """The nodes that may have solutions which only the end of the stream ends, what they are made from first."""
    ended: dict[str, None] = {}
    below = {name: [ref.node for ref in ir.refs(node)] for name, node in nodes.items()}
    for name in TopologicalSorter(below).static_order():
        node = nodes[name]
        if ends_with_stream(node) or any(ref.node in ended for ref in passed_on_at_end(node)):
            ended[name] = None
    return list(ended)


def looks_at_end(nodes: Mapping[str, ir.Node]) -> bool:
    """Whether what only the end of the stream ends is compared with goals that have waited until then."""
    asked = (part.role for name in known_at_end(nodes) for part in inputs(nodes[name]))
    return any(role in (Role.OPTIONAL, Role.ABSENT) for role in asked)


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
