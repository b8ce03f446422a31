"""The executor of windows: RSP-QL, RSEP-QL and facts.

An evaluation at t sees all items of the instant t, so it happens when that instant is over.  Every time at which a
policy holds is an evaluation of its own, even when several lie between two events.  After the end of the stream time
runs on until no window holds anything unreported (``horizon``).

Cost of an event: one step for each window on its stream; of an evaluation: see ``query``.  State: the items in the
windows and those that wait for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

from etalis_compiler.rsp import Fact, Strategy, WindowPlan
from etalis_rules.durations import seconds

from etalis_py.events import Event
from etalis_py.executors.windows.facts import FactRun
from etalis_py.executors.windows.query import QueryRun
from etalis_py.executors.windows.refresh import TimeVarying
from etalis_py.executors.windows.source import StoredGraphs
from etalis_py.kernel.matches import Matches
from etalis_py.kernel.options import Options
from etalis_py.kernel.position import NEVER, Counters, event_of
from etalis_py.kernel.protocol import Batch, Report, Row, StateSize, WindowedExecutor
from etalis_py.kernel.reports import drop_reports
from etalis_py.kernel.shapes import Shape
from etalis_py.kernel.stored import SnapshotError
from etalis_py.knowledge.event_closure import EventClosure
from etalis_py.values.errors import LimitExceeded

if TYPE_CHECKING:
    from etalis_py.executors.windows.item_limits import Kept


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation of one query, as ``listen`` hears of it, the empty ones too."""

    query: str
    time: int
    opening: int
    matches: Matches


class WindowExecutor:
    """Runs windowed queries and facts, each after those that feed it.

    ``graphs`` is the background with the graphs that vary over time; ``alone``: nothing else reads the stream, so
    events that no query reads are counted.
    """

    kind: Literal["rules", "windows"] = "windows"
    form: Literal["rows", "columns"] = "rows"
    reads: Literal["rows", "columns", "records"] = "rows"

    def __init__(
        self,
        steps: Sequence[WindowPlan | Fact],
        graphs: TimeVarying,
        options: Options,
        counters: Counters,
        *,
        alone: bool,
    ) -> None:
        self.graphs, self.options, self.counters = graphs, options, counters
        render = options.render or seconds
        self._steps = [
            FactRun(step, render)
            if isinstance(step, Fact)
            else QueryRun(
                step,
                StoredGraphs(graphs.knowledge, step.graphs, step.named, step.restricted, options.limits.steps),
                render,
                duplicates=options.duplicates,
                stored=graphs.has_any,
            )
            for step in steps
        ]
        self.queries = [step for step in self._steps if isinstance(step, QueryRun)]
        self._facts = [step for step in self._steps if isinstance(step, FactRun)]
        self._numbers = {id(step): number for number, step in enumerate([*self.queries, *self._facts])}
        self.shapes: list[Shape] = [step.shape for step in (*self.queries, *self._facts)]  # type: ignore[attr-defined]
        self.reports: list[Report] = []
        self.derived: list[Event] = []
        self.feeding = self.rows_next = False
        self.alone = alone and not self._facts
        self._readers: dict[str, list[QueryRun]] = {}
        for query in self.queries:
            for stream in query.plan.streams:
                self._readers.setdefault(stream, []).append(query)
        self._early = [early for query in self.queries if (early := query.early) is not None]
        self._everything = [query for query in self.queries if query.reads_all]
        self.done = NEVER if options.start is None else options.start - 1  # every evaluation up to here has happened
        self._next: int | None = None
        self.next_known = False
        self._repeating = False  # while replaying input that has been answered: only the state is wanted
        self.closure: EventClosure | None = None
        self._schema_version = -1
        self._journaling = options.journal
        self._journal: list[list[Any]] = []
        from etalis_py.executors.windows.item_limits import ItemLimits  # many programs have no windows

        self._limits = ItemLimits(options.limits)
        self.renew()

    @property
    def plans(self) -> tuple[WindowPlan, ...]:
        """The plans of the windowed queries."""
        return tuple(query.plan for query in self.queries)

    @property
    def warnings(self) -> Iterator[str]:
        """Warnings about probable mistakes, judging by the items so far."""
        counters = self.counters
        if counters.outside and not counters.evaluations:
            events = "event" if counters.outside == 1 else f"{counters.outside:,} events"
            yield (
                f"no window held the {events} that came: windows open from 1970 on, or from the T0 of the query; write "
                "[RANGE … SLIDE … T0 T] with a T before the first event"
            )
        for query in self.queries:
            yield from query.warnings

    def renew(self) -> None:
        """Take over the schema of a changed background: it decides what streamed triples entail from now on.

        Items in a window stay as they came.
        """
        knowledge = self.graphs.knowledge
        if knowledge.entailment != "rdf" and knowledge.schema_version != self._schema_version:
            self._schema_version = knowledge.schema_version
            self.closure = knowledge.event_closure() if len(knowledge.default) else None

    # --- time ---

    def begin(self, t: int) -> None:
        """Windowed queries answer when time has passed."""

    def started(self, t: int | None) -> None:
        """Windows have origins of their own."""

    def take(self, batch: Batch) -> None:
        rows = batch.rows
        if self._journaling:
            if not rows and self._journal:
                self._journal[-1][1] = batch.through
            else:
                self._journal.append([list(rows), batch.through])
        if self.done == NEVER:
            self.done = (rows[0][1] if rows else batch.through + 1) - 1  # the queries are registered now
        now, facts, readers, limits = NEVER, self._facts, self._readers, self._limits
        for event in rows:
            end = event[1]
            if end > now:
                if facts or not self.next_known or (self._next is not None and self._next < end):
                    if facts and now != NEVER:
                        self._evaluate(now)
                    self._pass(end - 1)
                elif self.done < end - 1:
                    self.done = end - 1  # nothing is due
                now = end
            for fact in facts:
                fact.push(self._with_entailed(event))
            self._route(event, readers)
            limits.left -= 1
            if limits.left <= 0:
                limits.compare(self._kept_items())
        if facts and now != NEVER:
            self._evaluate(now)
        self._pass(batch.through)
        for content in self._early:
            content.settle()
        self._merge()

    def next_due(self) -> int | None:
        if not self.next_known:
            times = [t for q in self.queries if (t := q.next_time(self.done)) is not None]
            self._next = min(times, default=None)
            self.next_known = True
        return self._next

    def horizon(self) -> int | None:
        if self.done == NEVER:
            return None
        return max((h for query in self.queries if (h := query.horizon()) is not None), default=None)

    def close(self, t: int) -> None:
        """Nothing to do: what the windows held has been reported, up to the horizon."""

    def dispatch(self) -> None:
        return None

    def _pass(self, t: int) -> None:
        """Go through all evaluation times up to and including ``t``."""
        due = self.next_due()
        while due is not None and due <= t:
            self._evaluate(due)
            due = self.next_due()
        self.done = max(self.done, t)

    # --- items ---

    def _route(self, event: Event, readers: Mapping[str, list[QueryRun]]) -> None:
        reading = readers.get(event[3], self._everything)
        if not reading:
            if self.alone:
                self.counters.unrouted += 1
            return
        event = self._with_entailed(event)
        taken = 0
        for query in reading:
            taken += query.push(event)
            if not query.due_known:
                self.next_known = False
        if not taken:
            self.counters.outside += 1

    def _with_entailed(self, event: Event) -> Event:
        if self.closure is None:
            return event
        return Event._make((event.start, event.end, self.closure.of(event.triples), event.stream, event.graph))

    def _kept_items(self) -> Iterator[Kept]:
        """The items of each query, and the facts and items of each rule for facts."""
        from etalis_py.executors.windows.item_limits import Kept

        for query in self.queries:
            yield Kept.of(query.plan.name, query.kept(), query.remembered())
        for run in self._facts:
            yield Kept.of(run.fact.name, (), run.remembered())

    # --- evaluations ---

    def _evaluate(self, t: int) -> None:
        """The instant t passes through the queries in order; later ones see the triples made by earlier ones."""
        try:
            self._evaluate_steps(t)
        except LimitExceeded:
            drop_reports(self.reports, t)
            raise
        self.done = max(self.done, t)
        self.next_known = False

    def _evaluate_steps(self, t: int) -> None:
        for place, step in enumerate(self._steps):
            if isinstance(step, FactRun):
                rows = step.advance(t)
                if rows:
                    self.reports.append((self._numbers[id(step)], t, rows))
                for event in step.events(rows):
                    self._derive(event, place)
            elif step.next_time(self.done) == t:
                self._evaluate_query(step, t, place)

    def _evaluate_query(self, query: QueryRun, t: int, place: int) -> None:
        number, limits = self._numbers[id(query)], self.options.limits
        if self.graphs.read(query.plan, t):
            self.renew()
        for answer in query.evaluate(t, repeating=self._repeating):
            self.counters.evaluations += 1
            if len(answer.rows) > limits.matches:
                raise too_many(query.plan.name, len(answer.rows), limits.matches)
            if self.options.listen is not None:
                report: list[Report] = [(number, t, answer.rows)] if answer.rows else []
                self.options.listen(Evaluation(query.plan.name, t, answer.opening, Matches(self.shapes, report)))
            if answer.rows:
                self.reports.append((number, t, answer.rows))
            if answer.derived:
                self._derive(Event._make((t, t, answer.derived, query.plan.feeds, "")), place)

    def _derive(self, event: Event, place: int) -> None:
        """Pass a triple made by a query on to those that come after it."""
        if self.feeding:
            self.derived.append(event)
        for fact in self._steps[place + 1 :]:
            if isinstance(fact, FactRun):
                fact.push(self._with_entailed(event))
        if event.stream in self._readers or self._everything:
            self._route(event, self._readers)

    def _merge(self) -> None:
        """Merge the answers of a query evaluated several times at one time; ordinals distinguish equal rows."""
        if len(self.reports) < 2:
            return
        together: dict[tuple[int, int], list[Row]] = {}
        for number, t, rows in self.reports:
            there = together.get((number, t))
            together[number, t] = rows if there is None else [*there, *rows]
        if len(together) < len(self.reports):
            self.reports[:] = [(number, t, rows) for (number, t), rows in together.items()]

    # --- state ---

    @property
    def meaning(self) -> str:
        """A digest of what the queries mean: state belongs to queries that mean the same."""
        steps = [step.fact if isinstance(step, FactRun) else step.plan for step in self._steps]
        return blake2b(repr((steps, self.options.duplicates)).encode(), digest_size=16).hexdigest()

    def dump(self) -> dict[str, Any]:
        return {
            "meaning": self.meaning,
            "done": self.done,
            "queries": {query.plan.name: query.snapshot() for query in self.queries},
            "facts": {run.fact.name: run.snapshot() for run in self._facts},
            "graphs": self.graphs.dump(),
        }

    def in_rows(self) -> WindowExecutor:
        """The executor that has all items in rows: this one."""
        return self

    def go_on_from(self, others: Iterable[WindowedExecutor]) -> None:
        """Take over the queries that others ran, with their state; queries that none of them ran are registered now."""
        queries = {query.plan.name: query for query in self.queries}
        facts = {run.fact.name: run for run in self._facts}
        for other in (one.in_rows() for one in others):
            for query in other.queries:
                if query.plan.name in queries:
                    queries[query.plan.name].restore(query.snapshot())
            for run in other._facts:
                if run.fact.name in facts:
                    facts[run.fact.name].restore(run.snapshot())
            self.done = max(self.done, other.done)
            if other.meaning == self.meaning:
                self._journal, self._journaling = other._journal, other._journaling
        self.next_known = False

    def load(self, state: Mapping[str, Any]) -> None:
        queries, facts = state["queries"], state["facts"]
        names = {q.plan.name for q in self.queries} | {run.fact.name for run in self._facts}
        if {*queries, *facts} != names:
            raise SnapshotError(
                f"the snapshot holds the queries {', '.join(sorted([*queries, *facts]))}, this engine "
                f"{', '.join(sorted(names))}: restore it into an engine with the same program"
            )
        if state["meaning"] not in ("", self.meaning):
            raise SnapshotError(
                f"the windows, patterns or reports of {', '.join(sorted(names))} are others than those that the "
                "snapshot was made with: restore it into an engine with the same program and options"
            )
        self.done = state["done"]
        for query in self.queries:
            query.restore(queries[query.plan.name])
        for run in self._facts:
            run.restore(facts[run.fact.name])
        self.graphs.load(state["graphs"])
        self.renew()
        self.next_known = False
        self._journal.clear()

    def journal(self) -> list[Any]:
        """The input: windows only slide, so the items say everything, and taking them again gives the same state.

        An engine that catches up moves the windows over the items but answers nothing, unless later answers depend on
        it.
        """
        entries, self._journal = self._journal, []
        return [self.meaning, entries]

    def fitted(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return state  # each query restores what it needs

    def fitted_journal(self, entries: Sequence[Any]) -> Sequence[Any]:
        return entries

    def replay(self, entries: Sequence[Any]) -> None:
        meaning, batches = entries
        if meaning not in ("", self.meaning):
            names = ", ".join(shape.query for shape in self.shapes)
            raise SnapshotError(f"the windows, patterns or reports of {names} are others than those it was made with")
        journaling, self._journaling, self._repeating = self._journaling, False, True
        for rows, through in batches:
            self.take(Batch([event_of(fields) for fields in rows], through))
            self.reports.clear()
            self.derived.clear()
        self._journaling, self._repeating = journaling, False

    def forget_journal(self) -> None:
        self._journal = []

    def journaling(self, on: bool) -> None:
        self._journaling = on

    @property
    def entries(self) -> int:
        return sum(len(rows) + 1 for rows, _ in self._journal)

    def kept(self) -> StateSize:
        return StateSize(items=sum(step.remembered() for step in self._steps))


def too_many(query: str, rows: int, limit: int) -> LimitExceeded:
    """The error for a query that answers with too many rows at once."""
    return LimitExceeded(
        f"the query {query} answers with {rows} rows at once, the limit is {limit}; make it more selective, or raise "
        "Limits(matches=…)"
    )


def reporting(plan: WindowPlan, report: Mapping[str, Any]) -> WindowPlan:
    """The plan with the report policy given for it, by its name or for all queries."""
    chosen = report.get(plan.name, report.get(""))
    if chosen is None:
        return plan
    known = {w.name for w in plan.windows}
    if not isinstance(chosen, Iterable) or not all(isinstance(strategy, Strategy) for strategy in chosen):
        raise TypeError(
            f'the report policy of {plan.name} is {chosen!r}: give a list such as [Strategy("WC")], with Strategy '
            "of etalis_compiler.rsp"
        )
    for strategy in chosen:
        if strategy.window and strategy.window not in known:
            raise ValueError(
                f"the report policy of {plan.name} looks at the window {strategy.window}; it has {', '.join(known)}"
            )
    return replace(plan, report=tuple(chosen))
