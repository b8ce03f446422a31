"""Functions that operators call for each solution: the operands of aggregates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.ending import known_at_end, untimed_at_end
from etalis_py.executors.rows.generate.frames import Frame
from etalis_py.executors.rows.generate.provenance import Provenance
from etalis_py.executors.rows.generate.runtime_objects import OfOperator
from etalis_py.executors.rows.generate.writer import Writer, load
from etalis_py.executors.rows.run.grouping import Grouping
from etalis_py.executors.rows.run.incremental_sums import (
    IncrementalSums,
    advance_by_one,
    is_running,
    running_source,
)
from etalis_py.executors.rows.run.per_query import GroupingPerQuery, has_grouping_per_query

if TYPE_CHECKING:
    from etalis_py.executors.rows.run.standing import StandingSolutions


@dataclass(frozen=True, slots=True)
class OperatorCode:
    """The source that an aggregation, or the operator of runs, calls.

    ``running``: the source of an aggregation that is generated as a whole.  Otherwise ``operands`` has, for each
    aggregate, a function from a solution to the value and term of its operand (empty for COUNT(*)), ``step`` tests
    whether a run may go on, and ``row`` makes the row of a run.  ``late``: what enters may have ended before.
    """

    running: str = ""
    operands: tuple[str, ...] = ()
    step: str = ""
    row: str = ""
    late: bool = False
    may_be_unbound: bool = False
    """Whether an element, what must be absent or what ends runs may leave a BY variable unbound."""


def group_code(node: ir.Group, code: Code) -> OperatorCode:
    """Write the functions that an aggregation calls."""
    if _is_incremental(node, code):
        return OperatorCode(running=running_source(node, code.names, code.layouts[node.child.node]))
    late = bool(code.lateness(node.child.node))
    return OperatorCode(operands=operands_of(node.child, node.aggregates, code), late=late)


def _is_incremental(node: ir.Group, code: Code) -> bool:
    # What the end of the stream ends may change no row, as what is known late.
    at_end = node.window is None and node.child.node in _at_end(code)
    late = bool(code.lateness(node.child.node))
    beside = node.background is not None or has_grouping_per_query(node)
    return is_running(node) and not (code.explain or late or at_end or beside)


def _at_end(code: Code) -> frozenset[str]:
    """The nodes that may have solutions at the end of the stream, looked for once."""
    if code.at_end is None:
        code.at_end = frozenset((*known_at_end(code.nodes), *untimed_at_end(code.nodes)))
    return code.at_end


def aggregate_one(w: Writer, code: Code, name: str, node: ir.Group, source: str) -> bool:
    """Write an aggregation of at most one new solution of a pattern, without a call; whether that is possible."""
    items, out, window = code.items.get(source), code.new(name), node.window
    if not items or code.layouts[name].values or not _is_incremental(node, code):
        return False
    if window is not None and not (window.events or window.is_fixed):
        return False

    def own(part: Any) -> str:
        return code.helper(f"{part}_of", name, OfOperator(name, part))

    code.log(w, name, source)
    with code.each(w, "x", source):
        gives_one = advance_by_one(w, node, code.names, code.layouts[node.child.node], own, items, out)
    if gives_one:
        (code.single if source in code.single else code.at_most_one).add(out)
    return True


def group_operator(
    name: str,
    node: ir.Group,
    code: OperatorCode,
    scope: Mapping[str, Any],
    standing: StandingSolutions | None,
    *,
    explain: bool,
) -> Grouping | GroupingPerQuery | IncrementalSums:
    """An aggregation with its generated functions; ``scope`` has the names in them."""
    if code.running:
        return IncrementalSums(node, code.running, scope)
    because = (lambda parts: Provenance(name, tuple(parts))) if explain else None
    operands = [loaded(text, "operand", scope) for text in code.operands]

    def make() -> Grouping:
        back = scope["look_back"]
        return Grouping(node, node.child.columns, operands, because, back, late=code.late, standing=standing)

    return GroupingPerQuery(node, make) if has_grouping_per_query(node) else make()


def loaded(text: str, name: str, scope: Mapping[str, Any]) -> Any:
    """The function of this name in a text; None where there is no text."""
    if not text:
        return None
    there = dict(scope)
    load(text, there)
    return there[name]


def operands_of(child: ir.Ref, aggregates: Iterable[alg.AggregateCall], code: Code) -> tuple[str, ...]:
    """For each aggregate, the source of a function from a solution to the value and term of its operand."""
    texts: list[str] = []
    layout = code.layouts[child.node]
    for call in aggregates:
        if call.operand is None:
            texts.append("")
            continue
        frame = Frame(code.names, end="x[0]")
        frame.read(child, layout, "x")
        emitter = frame.emitter(now=frame.end)
        needs_term = call.distinct or call.name in ("MIN", "MAX", "SAMPLE", "GROUP_CONCAT", "COUNT")
        value = emitter.value(call.operand)
        given = emitter.term(call.operand) if needs_term else "''"
        texts.append(f"def operand(x):\n    return {value}, {given}\n")
    return tuple(texts)
