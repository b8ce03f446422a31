"""Some rules of an executor, run apart from its others on the state that they all share.

While most rules run in columns, rules without a columnar form continue in rows.  They keep their goals in the row
executor's own state, so nothing has to be moved when the other rules return to rows.  They only have a history of their
own to look back at, because they see an instant before it is over for all rules.

Cost: writing and compiling the functions of these rules once; then as in rows.  State: that history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from etalis_rules import program as ir
from etalis_rules.clock import is_timed

from etalis_py.events import Triple
from etalis_py.executors.rows.generate.plan import GeneratedFunctions
from etalis_py.executors.rows.run.runtime import Runtime
from etalis_py.executors.rows.run.state import State
from etalis_py.kernel.batch import Report
from etalis_py.kernel.protocol import Occurrence
from etalis_py.sparql import OccurrenceLog

WholeEvent = tuple[int, int, tuple[Triple, ...], str, str]
"""End, start, triples, stream and graph."""


class PartialRules:
    """``rules`` are these rules alone; ``runtime`` has their functions, and the objects that these call."""

    def __init__(self, rules: ir.Rules, runtime: Runtime, state: State) -> None:
        """``state`` is the runtime's: a copy that shares all but the history."""
        self._state = state
        self._runtime = runtime
        self._generated: GeneratedFunctions = runtime.functions()
        nodes = dict(rules.nodes).items()
        self._timers = [state.timers[name] for name, node in nodes if is_timed(node)]

    def begin(self, log: OccurrenceLog | None) -> None:
        """Continue with these occurrences as the history."""
        self._state.log = deepcopy(log)

    def take(
        self, instants: Iterable[tuple[int, Sequence[Occurrence]]], events: Iterable[WholeEvent], through: int
    ) -> list[Report]:
        """The reports of the instants, and of deadlines due up to ``through``; EVENT reads ``events``."""
        get, other, instant = self._generated.single.get, self._generated.other, self._generated.instant
        whole: dict[int, list[tuple[Any, ...]]] = {}
        for end, *event in events:
            whole.setdefault(end, []).append(tuple(event))
        if whole:
            triples = dict(instants)
            instants = ((t, triples.get(t, ())) for t in sorted({*triples, *whole}))
        for t, occurrences in instants:
            self._fall_due(t - 1)
            if here := whole.get(t):
                self._runtime.arrived += here
                instant(t, occurrences)
            elif len(occurrences) == 1:
                s, p, o, start, stream = occurrences[0]
                get(p, other)(s, o, start, t, stream, p)
            else:
                instant(t, occurrences)
        self._fall_due(through)
        reports = list(self._runtime.reports)
        self._runtime.reports.clear()
        return reports

    def output_of(self, number: int) -> ir.Output:
        """The output that reports under a number."""
        return self._runtime.output_of(number)

    def _fall_due(self, t: int) -> None:
        """Report the deadlines due up to ``t``."""
        while (at := self._next_due()) is not None and at <= t:
            self._generated.due(at)

    def _next_due(self) -> int | None:
        return min((at for timer in self._timers if (at := timer.next()) is not None), default=None)
