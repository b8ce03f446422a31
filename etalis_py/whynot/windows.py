"""Why a query over windows has no match: the query is run without each of its conditions, and with longer windows.

A solution exists in an evaluation whose windows hold all of its parts, so the solutions of all evaluations are counted.
Patterns in MATCH are not analysed.  Cost: a run of the program for each part of the pattern, for each condition, and
for each length of window that is tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from etalis_compiler.rsp import Sliding, WindowPlan
from etalis_rules import algebra as alg
from etalis_rules.spelling import Spelling

from etalis_py.engine.engine import Engine
from etalis_py.engine.program import Program
from etalis_py.events import Event
from etalis_py.events.clock import Clock
from etalis_py.kernel.matches import Match
from etalis_py.sparql import BackgroundSource
from etalis_py.sparql.run import Solution
from etalis_py.values.expressions import condition as test_of
from etalis_py.whynot.condition import PlanCondition
from etalis_py.whynot.conditions import conditions, without_conditions
from etalis_py.whynot.explaining import split_filters
from etalis_py.whynot.other_streams import NEAREST, empty_stream, missing_graph
from etalis_py.whynot.question import Question
from etalis_py.whynot.refusal_margins import Measure, Measurer
from etalis_py.whynot.report import Blame, Count, Miss, Node, Report
from etalis_py.whynot.search import solution_of
from etalis_py.whynot.titles import Titles, length

PART = ".part"
LONGEST = 10  # how many times the length of a window is doubled


@dataclass(frozen=True, slots=True)
class Asked:
    """The part of a query that ``conditions_of`` needs."""

    name: str
    base: str
    prefixes: dict[str, str]
    algebra: alg.Select


def asked_of(program: Program, plan: WindowPlan) -> Any:
    """The windowed query, as far as a question needs it."""
    base = program.documents[-1][0].base if program.documents else ""
    return Asked(plan.name, base, program.prefixes, plan.select)


@dataclass(frozen=True, slots=True)
class Windowed:
    """One question about one windowed query, over the events of a finite stream."""

    program: Program
    plan: WindowPlan
    where: tuple[alg.Expr, ...]
    span: tuple[int, int] | None
    events: tuple[Event, ...]
    clock: Clock
    options: dict[str, Any]
    titles: Titles

    # --- running ---

    def matches(self, plan: WindowPlan) -> list[Match]:
        """The matches of a plan that replaces the one in question."""
        plans = tuple(plan if other is self.plan else other for other in self.program.plans)
        engine = Engine(replace(self.program, plans=plans), **{"render": self.clock.render, **self.options})
        every = [*engine.push_all(self.events), *engine.close()]
        return [match for match in every if match.query == plan.name and match.boolean is not False]

    def rows(self, select: alg.Select, windows: tuple[Any, ...] | None = None) -> list[Solution]:
        """The solutions of a pattern, or of a SELECT, in all evaluations."""
        part = replace(
            self.plan,
            name=PART,
            form="select",
            select=select,
            variables=select.variables,
            windows=self.plan.windows if windows is None else windows,
            r2s="RSTREAM",
            template=(),
            subjects=(),
            feeds="",
            ordered=False,
        )
        return [solution_of(match) for match in self.matches(part)]

    def pattern(self, pattern: alg.Pattern) -> list[Solution]:
        return self.rows(alg.Select(pattern, tuple(sorted(alg.scope(pattern)))))

    def wanted(self, rows: Iterable[Solution], names: frozenset[str]) -> list[Solution]:
        """The solutions that fulfil the question, as far as these variables tell."""
        tests = [test_of(c) for c in self.where if alg.variables(c) <= names]
        return [
            (mu, start, end)
            for mu, start, end in rows
            if (self.span is None or self.span[0] <= end <= self.span[1])
            and all(test(mu, start, end, None) for test in tests)
        ]

    # --- the report ---

    @property
    def question(self) -> Question:
        """The question, about the content of the windows."""
        return Question(
            asked_of(self.program, self.plan), split_filters(self.plan.select.pattern), self.where, self.span
        )

    def report(self) -> Report:
        select = self.plan.select
        pattern = split_filters(select.pattern)
        shown = frozenset(self.plan.variables)
        matches = self.matches(self.plan)
        fitting = [m for m in matches if self.wanted([solution_of(m)], shown)]
        select = replace(select, pattern=pattern)
        measurer = Measurer(self.titles, self.clock, lambda *_: ())
        blames = [*self._conditions(pattern, measurer), *self._having(select), *self._windows(select)]
        return Report(
            query=self.plan.name.strip("<>").rsplit("/", 1)[-1],
            asked=self._asked(),
            matches=tuple(self._shown(solution_of(match)) for match in fitting),
            blames=tuple(sorted(blames, key=lambda b: (not b.likely, not b.slip, b.kinds == ("term",), b.refused))),
            plan=self._root(select, len(matches), len(fitting)),
            notes=tuple(self._notes()),
            restricted=bool(self.where or self.span),
        )

    def _notes(self) -> Iterator[str]:
        if not self.events:
            yield "The stream is empty."
        for use in self.plan.windows:
            for note in empty_stream(use.name, use.stream, self.events, self.program, self.titles):
                yield f"{note}."

    def _graphs(self) -> Iterable[str]:
        """The names of the background's graphs that the query sees."""
        knowledge = Engine(self.program, **self.options).knowledge
        known = () if knowledge is None else BackgroundSource(knowledge).graph_names()
        return self.plan.named if self.plan.restricted else known

    def _asked(self) -> str:
        words = [f"with {self.titles.conditions(self.where)}"] if self.where else []
        if self.span is not None:
            start, end = map(self.clock.render, self.span)
            words.append(f"at {start}" if start == end else f"ending from {start} to {end}")
        return " ".join(words)

    def _shown(self, solution: Solution) -> str:
        mu, start, end = solution
        names = sorted(name for name in mu if alg.is_visible(name) and mu[name])
        words = ", ".join(f"?{name} = {self.titles.term(mu[name])}" for name in names)
        return f"{words} [{self.clock.render(start)}, {self.clock.render(end)}]".strip()

    def _miss(self, solution: Solution, measure: Measure) -> Miss:
        mu, start, end = solution
        bound = {name: term for name, term in mu.items() if alg.is_visible(name) and term}
        return Miss(
            self._shown(solution),
            (measure.text,),
            bound,
            (self.clock.render(start), self.clock.render(end)),
            (measure.data,),
        )

    def _root(self, select: alg.Select, every: int, fitting: int) -> Node:
        below = self._node(select.pattern)
        if not (select.grouped or select.having):
            return below
        having = f" {self._having_text(select, select.having)}" if select.having else ""
        title = self.titles.pattern(alg.SubSelect(select)) + having
        return Node(
            title,
            Count(every),
            Count(fitting),
            (below,),
            broken=not fitting and bool(below.wanted.number),
        )

    def _node(self, pattern: alg.Pattern) -> Node:
        every = self.pattern(pattern)
        wanted = self.wanted(every, alg.scope(pattern))
        triples = alg.one_by_one(pattern) or alg.columns_of_event(pattern)
        parts = tuple(map(self._node, triples if len(triples) > 1 else alg.children(pattern)))
        broken = not wanted and all(part.wanted.number for part in parts)
        notes = () if every or not broken else tuple(missing_graph(pattern, self._graphs(), self.titles))
        return Node(self.titles.pattern(pattern), Count(len(every)), Count(len(wanted)), parts, broken, notes)

    # --- blames ---

    def _conditions(self, pattern: alg.Pattern, measurer: Measurer) -> Iterator[Blame]:
        solutions = self.pattern(pattern)
        merged: set[tuple[str, str]] = set()
        for condition in conditions(pattern, self.titles):
            if condition.kind in ("stream", "order", "interval", "window"):
                continue  # only the content of a window counts
            relaxed = without_conditions(pattern, (condition,))
            names = alg.scope(relaxed)
            known = {_key(solution, names) for solution in solutions}
            rows = self.wanted(self.pattern(relaxed), alg.scope(pattern))
            refused = [
                (solution, measure)
                for solution in rows
                if _key(solution, names) not in known
                and (measure := self._measure(condition, solution, measurer)) is not None
            ]
            title = _title(condition, self.titles)
            if refused and (condition.kind, title) not in merged:
                merged.add((condition.kind, title))
                refused.sort(key=lambda item: item[1].distance)
                slip = refused[0][1].slip
                misses = _different(self._miss(s, m) for s, m in refused)
                likely = slip or condition.kind not in ("key", "term")
                yield Blame((condition.kind,), (title,), len(refused), True, misses, likely, slip)

    def _measure(self, condition: PlanCondition, solution: Solution, measurer: Measurer) -> Measure | None:
        if not condition.marks and condition.kind != "column":
            return Measure("it has solutions without it")
        return measurer.measure(condition, solution)

    def _having(self, select: alg.Select) -> Iterator[Blame]:
        names = frozenset(select.variables)
        known = {_key(solution, names) for solution in self.rows(select)} if select.having else set()
        for i, test in enumerate(select.having):
            rest = replace(select, having=select.having[:i] + select.having[i + 1 :])
            rows = self.wanted(self.rows(rest), names)
            refused = [row for row in rows if _key(row, names) not in known]
            if refused:
                text = self._having_text(select, (test,))
                misses = _different(self._miss(row, Measure("the group is refused by it")) for row in refused)
                yield Blame(("having",), (text,), len(refused), True, misses)

    def _having_text(self, select: alg.Select, tests: tuple[alg.Expr, ...]) -> str:
        text = self.titles.conditions(tests)
        for call in select.aggregates:
            operand = "*" if call.operand is None else self.titles.expression(call.operand)
            text = text.replace(f"?{call.variable}", f"{call.name}({operand})")
        return f"HAVING ({text})"

    def _windows(self, select: alg.Select) -> Iterator[Blame]:
        """Windows that are too short: the least length, by doubling, at which there is one more answer."""
        known = {_bindings(row) for row in self.rows(select)}
        for place, use in enumerate(self.plan.windows):
            shape = use.shape
            if not isinstance(shape, Sliding):
                continue
            for doubled in range(LONGEST):
                more = shape.slide * max(1, shape.width // shape.slide) * 2**doubled
                longer = replace(use, shape=replace(shape, width=shape.width + more))
                windows = (*self.plan.windows[:place], longer, *self.plan.windows[place + 1 :])
                rows = self.wanted(self.rows(select, windows), frozenset(select.variables))
                if refused := [row for row in rows if _bindings(row) not in known]:
                    yield self._too_short(use.name, shape, more, refused)
                    break

    def _too_short(self, name: str, shape: Sliding, more: int, refused: Sequence[Solution]) -> Blame:
        text = f"WINDOW {self.titles.term(name)}, {length(shape.width)} long"
        measure = Measure(f"a window of {length(shape.width + more)} would hold it", float(more))
        misses = _different(self._miss(row, measure) for row in refused)
        return Blame(("window",), (text,), len(refused), True, misses)


def windowed(
    program: Program,
    plan: WindowPlan,
    where: tuple[alg.Expr, ...],
    span: tuple[int, int] | None,
    events: tuple[Event, ...],
    clock: Clock,
    options: dict[str, Any],
) -> Windowed:
    titles = Titles(Spelling(program.prefixes), windows=frozenset(use.name for use in plan.windows))
    return Windowed(program, plan, where, span, events, clock, options, titles)


def plan_asked(program: Program, name: str) -> WindowPlan | None:
    """The windowed query named, or the only query that feeds no others; None if that has no windows."""
    if name:
        known = (plan for plan in program.plans if name in (plan.name, plan.name.strip("<>").rsplit("/", 1)[-1]))
        return next(known, None)
    readers = [plan for plan in program.plans if not plan.feeds]
    others = [q.name for q in program.compilation.queries if q.syntax.kind != "construct"]
    if not (readers or others):
        readers = list(program.plans)
    if len(readers) + len(others) > 1:
        raise ValueError(f"name the query that is meant: {', '.join((*(plan.name for plan in readers), *others))}")
    return readers[0] if readers else None


def _title(condition: PlanCondition, titles: Titles) -> str:
    if condition.kind == "key":
        return f"the same {condition.text} in both parts"
    triple = condition.about[2:] if condition.kind == "term" else ()
    return f"{condition.text} in {titles.triple(triple[0])}" if triple else condition.text


def _different(misses: Iterable[Miss]) -> tuple[Miss, ...]:
    shown: dict[str, Miss] = {}
    for miss in misses:
        shown.setdefault(miss.shown, miss)
    return tuple(shown.values())[:NEAREST]


def _bindings(solution: Solution) -> frozenset[tuple[str, str]]:
    return frozenset((name, term) for name, term in solution[0].items() if alg.is_visible(name))


def _key(solution: Solution, names: frozenset[str]) -> object:
    return frozenset(binding for binding in _bindings(solution) if binding[0] in names), solution[2]
