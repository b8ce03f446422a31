"""The function of a single node, for rules that run in columns but for this node.

``advance(t, …)`` takes what each part of the node gives in an instant, and returns what the node gives; its goals are
where rows keep them.  It is written by the code that writes the node among all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from etalis_rules import program as ir

from etalis_py.executors.rows.blocks import Code
from etalis_py.executors.rows.codegen import Generator
from etalis_py.executors.rows.goals import rebuilt
from etalis_py.executors.rows.plan import RowPlan
from etalis_py.executors.rows.runtime import Runtime
from etalis_py.executors.rows.state import State
from etalis_py.executors.rows.writer import Writer
from etalis_py.kernel.batch import Row


@dataclass(frozen=True, slots=True)
class NodeFunction:
    """What runs a node: ``advance``, and for each of its parts what adds decoded values to a row (None: nothing).

    ``state`` has the history that it looks back at.
    """

    advance: Callable[..., list[Any]]
    rebuild: tuple[Callable[[Row], Row] | None, ...]
    state: State


def parts_of(node: ir.Node) -> tuple[str, ...]:
    """The nodes whose solutions ``advance`` takes, in their order."""
    return tuple(dict.fromkeys(ref.node for ref in ir.refs(node)))


def function_of(name: str, runtime: Runtime) -> NodeFunction:
    """The function of a node, whose plan this runtime has."""
    layouts = [runtime.state.layouts[part] for part in parts_of(runtime.state.nodes[name])]
    rebuild = tuple(partial(rebuilt, layout) if layout.values else None for layout in layouts)
    return NodeFunction(runtime.advance_of_node(), rebuild, runtime.state)


def write_node(name: str, code: Code) -> RowPlan:
    """Write the function of a node; ``code`` is of all rules."""
    node = code.nodes[name]
    parts = parts_of(node)
    code = replace(code, nodes={other: code.nodes[other] for other in (*parts, name)})
    generator = Generator(ir.Rules(((name, node),), (), ((name,),)), code)
    w, reached = Writer(), frozenset((name, *parts))
    with w.block(f"def advance(t, {', '.join(map(code.new, parts))}):"):
        generator.block_of(w, name, reached, {})
        generator.insert_goals(w, reached)
        generator.end_instant(w, reached)
        w(f"return {code.new(name)}")
    stores = tuple(code.stores.values())
    return RowPlan(w.text() + "\n", {}, code.names.objects, code.needs, stores, generator.operators)
