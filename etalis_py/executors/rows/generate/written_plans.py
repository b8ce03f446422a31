"""The plan of a program: its generated functions, written once for engines with the same rules."""

from __future__ import annotations

from functools import lru_cache

from etalis_rules import program as ir
from etalis_rules.lateness import late_nodes

from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.codegen import Generator
from etalis_py.executors.rows.generate.layout import layouts
from etalis_py.executors.rows.generate.plan import RowPlan
from etalis_py.values.limits import Limits


def write(rules: ir.Rules, code: Code) -> RowPlan:
    """Write the functions for these rules."""
    return Generator(rules, code).write()


@lru_cache(maxsize=64)
def first_plan(rules: ir.Rules, limits: Limits, *, explain: bool, journaled: bool) -> RowPlan:
    """The plan of an engine that has no state yet; engines with the same rules share it."""
    nodes = dict(rules.nodes)
    return write(rules, Code(nodes, layouts(nodes), late_nodes(nodes), limits, explain=explain, journaled=journaled))
