"""What the background alone answers: before the first event, after an update, and at the end of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.rows.run.family_relation import Families, with_constants
from etalis_py.executors.rows.run.runtime import ExpressionContext, Runtime
from etalis_py.executors.rows.run.slicing import canonical_key
from etalis_py.executors.rows.run.state import State
from etalis_py.kernel.protocol import Row
from etalis_py.kernel.shapes import Shape
from etalis_py.kernel.templates import making
from etalis_py.sparql import HistorySource, prepare
from etalis_py.values.time import TIMELESS_END, TIMELESS_START


class Reporting(Protocol):
    """What answers from the background alone need of an executor."""

    state: State
    runtime: Runtime
    families: Families | None
    shapes: Sequence[Shape]
    reports: list[Any]
    makers: dict[str, Any]

    def place(self, number: int) -> int: ...


def report_timeless(executor: Reporting, number: int, output: ir.Output, t: int) -> None:
    """Report the answers from the background alone."""
    if executor.families is not None and output.query in executor.families.relations:
        for place, row in executor.families.each(output):
            if own := _of_one_query(executor, with_constants(output, row), t):
                executor.reports.append((place, t, own))
        return
    place = executor.place(number)
    columns = executor.shapes[place].variables
    if output.source is not None:
        columns = output.source.columns
    rows: list[Row] = []
    context = ExpressionContext(max(t, 0))
    if output.timeless is not None:
        solutions = prepare(output.timeless).solve({}, executor.state.background, None, context)
        rows += [(e, s, *(mu.get(n, "") for n in columns)) for mu, s, e in solutions]
    if output.late is not None:
        pattern = alg.with_known(output.late, lambda part: _table(executor, part, t))
        history = HistorySource(executor.state.background, executor.state.history)
        decided = prepare(pattern, timed=True).solve({}, history, None, context)
        rows += [(e, s, *(mu.get(n, "") for n in columns)) for mu, s, e in decided if e == TIMELESS_END]
    if output.form == "ask":
        if not rows and output.source is not None:
            return
        rows = [(TIMELESS_END, TIMELESS_START, "true" if rows else "false")]
    elif output.source is not None:
        arrange = executor.runtime.arrangement(number)
        rows = arrange.advance(t, rows) if arrange else sorted(rows, key=executor.runtime.sort_key(place))
    new = making(output, columns, executor.makers) if executor.makers else None
    if new is not None:
        rows = new.applied(rows)
    if rows:
        executor.reports.append((place, t, rows))


def _of_one_query(executor: Reporting, output: ir.Output, t: int) -> list[Row]:
    """The answers of one query of a family from the background alone."""
    assert output.source is not None
    assert output.timeless is not None
    columns = output.source.columns
    solutions = prepare(output.timeless).solve({}, executor.state.background, None, ExpressionContext(max(t, 0)))
    rows: list[Row] = [(e, s, *(mu.get(n, "") for n in columns)) for mu, s, e in solutions]
    if output.form == "ask":
        return [(TIMELESS_END, TIMELESS_START, "true")] if rows else []
    return sorted(rows, key=canonical_key(columns, tuple(sorted(output.variables))))


def _table(executor: Reporting, pattern: alg.Pattern, t: int) -> alg.Pattern:
    """The background's solutions of a pattern, as a table."""
    names = tuple(sorted(alg.scope(pattern)))
    solutions = prepare(pattern).solve({}, executor.state.background, None, ExpressionContext(max(t, 0)))
    return alg.Table(names, tuple(tuple(mu.get(n, "") for n in names) for mu, _, _ in solutions))
