"""``etalis run --trace QUERY``: what the nodes of a query do at each instant, on standard error.

A row for each instant and node at which something happens:

* ``in``: the solutions of its inputs (for a triple of the stream: how many events state it), and ``out``: its own;
* ``inserted``: the solutions that it keeps as goals, because they wait for a partner;
* ``taken``: the goals that go before they are too old, because a match or an absence has used them up;
* ``expired``: the goals that are too old to match within the window.
"""

from __future__ import annotations

import sys
from bisect import insort
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from etalis_compiler.explain import PlanStep, explain
from etalis_rules import program as ir
from etalis_rules.operators import windows
from etalis_rules.printing import sorted_nodes

from etalis_py.cli.errors import UsageError
from etalis_py.events import Event
from etalis_py.streams import Punctuation

if TYPE_CHECKING:
    from etalis_py import Engine
    from etalis_py.engine.driver import Step
    from etalis_py.engine.program import Program
    from etalis_py.kernel.matches import Match

Goal = tuple[str, str, tuple[Any, ...]]
"""Node, side, and end, start and terms."""


@dataclass(slots=True)
class Row:
    """What a node does at an instant."""

    solutions: int = 0
    inserted: int = 0
    taken: int = 0
    expired: int = 0


def check_trace(program: Program, query: str) -> None:
    """Refuse to trace what has no nodes."""
    if query in program.compilation.names:
        return
    if query in program.queries:
        raise UsageError(f"--trace {query}: it is evaluated over windows, and only rules have nodes: trace another one")
    raise UsageError(f"--trace {query}: there is no such query; there are: {', '.join(program.compilation.names)}")


class Trace:
    """Prints what the nodes of a query do, from an engine whose nodes report (``Engine(…, nodes=True)``)."""

    def __init__(self, engine: Engine, query: str, prefixes: Mapping[str, str]) -> None:
        explanation = explain(engine.rules, prefixes)
        self._engine, self._nodes = engine, explanation.nodes
        self._wanted = [name for name, _ in sorted_nodes(engine.rules) if query in explanation.used[name]]
        self._names = explanation.names
        self._goals: Counter[Goal] = Counter()
        self._rows: dict[int, dict[str, Row]] = {}  # of the instants that are not over
        self._closing: int | None = None  # the instant that the next step closes
        (output,) = (output for output in engine.outputs if output.query == query)
        plan = explanation.plan(output)
        print(f"trace of {query}", file=sys.stderr)
        for line in _lines(plan) if plan is not None else ["the background alone answers it"]:
            print(f"  {line}", file=sys.stderr)

    @property
    def outputs(self) -> tuple[ir.Output, ...]:
        """The queries themselves."""
        return tuple(output for output in self._engine.outputs if output.query not in self._nodes)

    def take(self, step: Step) -> list[Match]:
        """Print the rows of a step; returns the matches of the queries."""
        own = []
        for match in step.matches:
            if match.query not in self._nodes:
                own.append(match)
            elif match.end_us is not None:
                self._rows.setdefault(match.end_us, {}).setdefault(match.query, Row()).solutions += 1
        closed = step.newest if step.ended else self._closing
        if closed is not None or step.ended:
            self._tell(closed)
        self._closing = None
        return own

    def closing(self, items: Iterator[Any]) -> Iterator[Any]:
        """The items; each instant is closed by itself, before the event by which it is over, or at the end."""
        open_instants: list[int] = []
        for item in items:
            if isinstance(item, Event):
                yield from self._closed(open_instants, item.end - self._engine.lateness)
                if item.end not in open_instants:
                    insort(open_instants, item.end)
            yield item
        yield from self._closed(open_instants, None)

    def _closed(self, open_instants: list[int], before: int | None) -> Iterator[Punctuation]:
        """Close the instants before a time, and what falls due between them."""
        while open_instants and (before is None or open_instants[0] < before):
            yield from self._due(open_instants[0])
            self._closing = open_instants.pop(0)
            yield Punctuation(self._closing)
        if before is not None:
            yield from self._due(before)

    def _due(self, before: int) -> Iterator[Punctuation]:
        last: int | None = None
        while (due := self._engine.next_due()) is not None and due < before and due != last:
            self._closing = last = due
            yield Punctuation(due)

    def _tell(self, closed: int | None) -> None:
        """Print the rows of the instants that are over, of which the last has the changes of goals."""
        rows, self._rows = self._rows, {}
        last = max([*rows, *(() if closed is None else (closed,))], default=None)
        if last is not None:
            self._count_goals(rows.setdefault(last, {}), last)
        for instant in sorted(rows):
            self._print(instant, rows[instant])

    def _count_goals(self, rows: dict[str, Row], now: int) -> None:
        goals = Counter(
            (goals.node, goals.side, row) for goals in self._engine.goals() for row in zip(*goals.columns, strict=True)
        )
        for (node, _, _), times in (goals - self._goals).items():
            rows.setdefault(node, Row()).inserted += times
        for (node, _, (end, *_)), times in (self._goals - goals).items():
            row = rows.setdefault(node, Row())
            lengths = [bound.longest for bound in windows(self._nodes[node]) if not bound.events]
            if lengths and end < now - max(lengths):
                row.expired += times
            else:
                row.taken += times
        self._goals = goals

    def _print(self, instant: int, rows: dict[str, Row]) -> None:
        for name in self._wanted:
            parts = [ref.node for ref in ir.refs(self._nodes[name])]
            given = sum(rows[part].solutions for part in parts if part in rows)
            row = rows.get(name, Row())
            if not parts:
                given = row.solutions
            if given or row != Row():
                print(
                    f"{self._engine.render(instant)}  {self._names[name]:<4} in {given}  out {row.solutions}  "
                    f"inserted {row.inserted}  taken {row.taken}  expired {row.expired}",
                    file=sys.stderr,
                )


def _lines(step: PlanStep, indent: str = "") -> Iterator[str]:
    yield f"{indent}{step.node} {step.title}"
    for part in step.parts:
        yield from _lines(part, indent + "  ")
