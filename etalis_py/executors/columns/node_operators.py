"""The operators of nodes and outputs in columns: by kernels where the node has that form, else by those of rows."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, assert_never

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.clock import shown_within

from etalis_py.executors.columns.absence import DeadlineOperator, GapOperator, InsideOperator
from etalis_py.executors.columns.aggregation import Aggregation, Reported
from etalis_py.executors.columns.chains import ChainOperator
from etalis_py.executors.columns.cumulative import CumulativeOperator
from etalis_py.executors.columns.family_columns import Sources
from etalis_py.executors.columns.grouped import GroupedOperator
from etalis_py.executors.columns.instants import InstantOperator, NodeOperator
from etalis_py.executors.columns.joins import DeadlineJoinOperator, JoinOperator
from etalis_py.executors.columns.leaves import LeafOperator
from etalis_py.executors.columns.maps_and_unions import MapOperator, StartOperator, UnionOperator
from etalis_py.executors.columns.next_where import NextWhereOperator
from etalis_py.executors.columns.occurrence_history import LookingOperator
from etalis_py.executors.columns.open_runs import EndedRunOperator, MaximalRunOperator, OpenRunOperator
from etalis_py.executors.columns.outer import OuterOperator
from etalis_py.executors.columns.outputs import FamilyOutput, OutputOperator, SliceOperator
from etalis_py.executors.columns.records import RecordOperator
from etalis_py.executors.columns.runs import RunOperator
from etalis_py.executors.columns.summed_groups import SummedGroups
from etalis_py.executors.columns.supported_rules import (
    aggregates_by_kernel,
    by_instant,
    has_one_open_run,
    is_windowed,
    looks_back,
    steps_by_pairs,
    waits_for_condition,
)
from etalis_py.executors.columns.tables import SolutionTable
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.columns.window_sums import WindowedOperator
from etalis_py.executors.rows.generate.runtime_objects import OfOutput, OfRecord
from etalis_py.executors.rows.generate.single_node import NodeFunction
from etalis_py.executors.rows.run.runtime import Runtime
from etalis_py.executors.rows.run.slicing import Slicing
from etalis_py.kernel.batch import Row

KEEPING_GOALS = (
    LeafOperator,
    MapOperator,
    UnionOperator,
    JoinOperator,
    ChainOperator,
    OuterOperator,
    InsideOperator,
    DeadlineOperator,
)
"""The operators that may keep goals."""
Keeping = Aggregation | OpenRunOperator | RunOperator
"""The operators whose windows, groups or runs are kept in columns."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the operators of a program share: terms, parameters, background and limits, and what rows give them.

    ``operator`` gives the operator of rows for a node, with the state, ``apart`` the function of a single node.
    ``give`` puts solutions into the window of an operator of rows; ``watch`` fails if a node has too many solutions.
    ``summed`` are the aggregations of which rows or columns sum up the matches of a chain.
    """

    terms: Terms
    sources: Sources
    runtime: Runtime
    operator: Callable[..., Any]
    apart: Callable[[str], NodeFunction]
    give: Callable[[str, list[Row], list[Reported]], None]
    watch: Callable[[str, list[SolutionTable]], None]
    summed: Container[str] = ()


def output_operator(
    number: int,
    output: ir.Output,
    sources: Sources,
    runtime: Runtime,
) -> OutputOperator | FamilyOutput:
    families = runtime.families
    if families is None:
        return OutputOperator(number, output, sources.terms, runtime.arrangement(number))
    if output.query in families.relations:
        arranged = runtime.arrangement_of_family(number) is not None
        split = runtime.provide(OfOutput(number, "split")) if arranged else None
        return FamilyOutput(families.positions[number], output, sources, families.showing(output), split)
    return OutputOperator(families.positions[number], output, sources.terms, runtime.arrangement(number))


def _by_instant(node: ir.Node, nodes: Mapping[str, ir.Node], function: NodeFunction, terms: Terms) -> NodeOperator:
    if looks_back(node):
        return LookingOperator(node, nodes, function, terms)
    return NodeOperator(node, function, terms)


def node_operator(
    name: str, nodes: Mapping[str, ir.Node], around: Surroundings, *, late: bool, lateness: int, compared: bool
) -> Any:
    """The operator of a node; ``late`` and the reasons to go from instant to instant are those of ``by_instant``.

    ``lateness``: how long after their end its solutions may become known.
    """
    node, terms, sources, runtime = nodes[name], around.terms, around.sources, around.runtime
    watch = partial(around.watch, name)
    give = partial(around.give, name)
    if by_instant(node, late) and not isinstance(node, ir.Record | ir.Group):
        return _by_instant(node, nodes, around.apart(name), terms)
    match node:
        case ir.Leaf():
            return LeafOperator(node, terms, runtime.entailed)
        case ir.Record():
            return RecordOperator(node, terms, lambda: runtime.provide(OfRecord(name)), runtime.limits.derivations)
        case ir.Map():
            return MapOperator(node, terms, sources, lateness)
        case ir.Union():
            return UnionOperator(node, terms, lateness)
        case ir.Join(deadline=alg.Bound()):
            return DeadlineJoinOperator(node, terms, sources, watch)
        case ir.Start():
            return StartOperator(runtime.state.beginning(name).begins_by)
        case ir.Join() if waits_for_condition(node):
            return NextWhereOperator(node, terms, sources, watch)
        case ir.Join():
            return JoinOperator(node, terms, sources, watch)
        case ir.Chain():
            return ChainOperator(node, terms, sources, watch)
        case ir.Absence(right=ir.Ref()):
            return GapOperator(node, terms, sources, watch)
        case ir.Absence(deadline=None):
            return InsideOperator(node, terms, sources)
        case ir.Absence():
            return DeadlineOperator(node, terms, sources)
        case ir.Outer():
            return OuterOperator(node, shown_within(name, nodes), terms, sources)
        case ir.Group() if late:
            return InstantOperator(around.operator(name), len(node.head), terms)
        case ir.Group() if name in around.summed and node.window is not None and aggregates_by_kernel(node):
            return SummedGroups(node, terms, around.operator(name), give, compared=compared)
        case ir.Group() if aggregates_by_kernel(node):
            of_window = WindowedOperator if is_windowed(node) else GroupedOperator
            aggregation = CumulativeOperator if node.window is None else of_window
            return aggregation(node, terms, around.operator(name), give, compared=compared)
        case ir.Group() | ir.Skip() | ir.Closure():
            return InstantOperator(around.operator(name), len(node.head), terms)
        case ir.Slice():
            advance, slicing = around.operator(name), runtime.state.slices[name]
            if isinstance(slicing, Slicing):
                return SliceOperator(node, slicing, terms)
            return InstantOperator(advance, len(node.head), terms)
        case ir.Run() if has_one_open_run(node):
            slow, advance = runtime.runs_of(name), around.operator(name)
            if node.until is None:
                return MaximalRunOperator(node, terms, slow, advance, give, compared=compared)
            ends = runtime.ends_of(name)
            return EndedRunOperator(node, terms, slow, advance, give, ends=ends, compared=compared)
        case ir.Run() if steps_by_pairs(node):
            by_rows = NodeOperator(node, around.apart(name), terms)
            return RunOperator(node, terms, by_rows, runtime.runs_of(name), give, compared=compared)
        case ir.Run() | ir.Recall():
            raise TypeError(f"{name} goes from instant to instant")
        case _:
            assert_never(node)
