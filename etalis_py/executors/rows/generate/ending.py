"""Generated code for the beginning and the end of the stream.

There may be runs that only the end of the stream ends.  Their solutions are known when it has ended, so they are
reported, and seen by whatever works on single solutions or counts them, but they join nothing that has a time and
derive no event: a longer stream would take both back.

So do the rows of an aggregation over nothing, which have no time.  An output reports them by itself; what stands
between, such as a FILTER or UNION, takes them after everything else that the end of the stream has made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from graphlib import TopologicalSorter

from etalis_rules import program as ir
from etalis_rules.clock import answers_untimed, ends_with_stream, is_aggregation, passed_on_untimed
from etalis_rules.operators import inputs, passed_on_at_end
from etalis_rules.roles import Role

from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.runtime_objects import OfOperator
from etalis_py.executors.rows.generate.writer import Writer

WriteBlock = Callable[[Writer, str, frozenset[str], Mapping[str, str]], None]


def known_at_end(nodes: Mapping[str, ir.Node]) -> list[str]:
    """The nodes that may have solutions which only the end of the stream ends, what they are made from first."""
    ended: dict[str, None] = {}
    below = {name: [ref.node for ref in ir.refs(node)] for name, node in nodes.items()}
    for name in TopologicalSorter(below).static_order():
        node = nodes[name]
        if ends_with_stream(node) or any(ref.node in ended for ref in passed_on_at_end(node)):
            ended[name] = None
    return list(ended)


def untimed_at_end(nodes: Mapping[str, ir.Node]) -> list[str]:
    """The aggregations whose rows over nothing another node takes, and these nodes, what they are made from first."""
    passed = {name: [ref.node for ref in passed_on_untimed(node)] for name, node in nodes.items()}
    taken = {below for names in passed.values() for below in names}
    untimed: dict[str, None] = {}
    for name in TopologicalSorter({name: [ref.node for ref in ir.refs(n)] for name, n in nodes.items()}).static_order():
        if (name in taken and answers_untimed(nodes[name])) or any(below in untimed for below in passed[name]):
            untimed[name] = None
    return list(untimed)


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


def finish(w: Writer, code: Code, outputs: Mapping[str, str], write_block: WriteBlock) -> None:
    """Write the function for the end of the stream, with the blocks of what passes on what is known then.

    ``outputs``: the node that each output reports.
    """
    ended, untimed = known_at_end(code.nodes), untimed_at_end(code.nodes)
    if not (ended or untimed):
        return
    late, reports = code.late, code.of_runtime("reports")
    code.late = late | {*ended, *untimed}  # solutions may have ended before now
    over = frozenset(name for name in ended if ends_with_stream(code.nodes[name]))
    groups = frozenset(name for name in untimed if is_aggregation(code.nodes[name]))
    with w.block("def finish(t):"):
        w(f"first = len({reports})")
        for name in over:
            _at_end(w, code, name)
        for names, silent in ((ended, frozenset()), (untimed, groups)):
            for name in (*names, *(o for o, source in outputs.items() if source in {*names} - silent)):
                if name not in over:
                    write_block(w, name, frozenset(names), {})
                if name in silent:  # its output reports its rows without a time by itself
                    _at_end(w, code, name)
        with w.block(f"if len({reports}) > first:"):
            w(f"{code.of_runtime('settle')}(first)")
    code.late = late


def _at_end(w: Writer, code: Code, name: str) -> None:
    """Write the list of what an operator has when the stream has ended."""
    w(f"{code.new(name)} = {code.helper('at_end', name, OfOperator(name, 'at_end'))}(t)")
