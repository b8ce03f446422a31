"""How a program becomes stages: which executor runs its rules, which queries share it, how the outputs are numbered.

``Engine`` decides when to plan; this module makes the decisions, as functions of program, background and options.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from etalis_compiler.pipeline import Compilation, CompiledQuery
from etalis_compiler.rsp import Fact, WindowPlan
from etalis_compiler.rsp import WindowStage as Queries
from etalis_rules.spelling import PREFIXES

from etalis_py.engine.executor_choice import rules_in_rows, windows_in_rows
from etalis_py.engine.program import Program
from etalis_py.engine.query_families import GatheredQueries, join_families
from etalis_py.executors.columns.executor import ColumnExecutor
from etalis_py.executors.columns.window_executor import ColumnWindowExecutor
from etalis_py.executors.rows.run.executor import RowExecutor
from etalis_py.executors.windows.executor import WindowExecutor, reporting
from etalis_py.executors.windows.refresh import TimeVarying
from etalis_py.kernel.instants import Stage
from etalis_py.kernel.options import Options, TiesError
from etalis_py.kernel.position import Counters
from etalis_py.kernel.protocol import Executor, RuleExecutor, WindowedExecutor
from etalis_py.kernel.shapes import LazyShapes, Shape
from etalis_py.knowledge import Knowledge


def rule_executor(options: Options, counters: Counters) -> RuleExecutor:
    """An executor for rules."""
    if options.ties is not None:
        from etalis_py.executors.rows.run.places import PlacesExecutor  # few programs need it

        return PlacesExecutor(options, counters)
    reason = rules_in_rows(options)
    if reason is None:
        return ColumnExecutor(options, counters, always=options.executor == "columns")
    return RowExecutor(options, counters)


def window_executor(
    steps: Sequence[WindowPlan | Fact], graphs: TimeVarying, options: Options, counters: Counters, *, alone: bool
) -> WindowedExecutor:
    """An executor for windowed queries and facts; ``alone``: nothing else reads events."""
    if windows_in_rows(steps, options) is not None:
        return WindowExecutor(steps, graphs, options, counters, alone=alone)
    always = options.executor == "columns"
    return ColumnWindowExecutor(steps, graphs, options, counters, alone=alone, always=always)


def check_windows(program: Program, options: Options) -> None:
    """Refuse windowed queries where an option is of no use to them."""
    if program.windowed and options.eager:
        raise ValueError("windows are evaluated when their instant is over: leave eager out")
    if program.windowed and options.ties is not None:
        raise TiesError(
            f"ties put the events of rules in order, and {', '.join(plan.name for plan in program.plans)} reads "
            "windows, which have no order: run the windowed queries as a program of their own, without ties"
        )


_OF_WINDOWS = ("graphs", "report", "duplicates", "listen")


def without_use(program: Program, options: Options) -> str:
    """The options that only windowed queries need, of a program without any, as a sentence; or ""."""
    given = [name for name in _OF_WINDOWS if getattr(options, name)]
    if program.windowed or not given:
        return ""
    verb, pronoun = ("has", "it") if len(given) == 1 else ("have", "them")
    names = " and ".join(given)
    return f"{names} only {verb} an effect on queries with windows, and the program has none: leave {pronoun} out"


def merge_programs(programs: Iterable[Program]) -> Program:
    """Several programs as one; each query keeps the policy of its program."""
    every = tuple(programs)
    if len(every) == 1:
        return every[0]
    if any(isinstance(p.compilation, GatheredQueries) for p in every) and not any(p.windowed for p in every):
        return Program(join_families([(p.compilation, p.policy) for p in every]))
    return Program(
        Compilation(tuple(query for p in every for query in with_policy(p.compilation.queries, p.policy))),
        plans=tuple(plan for p in every for plan in p.plans),
        facts=tuple(fact for p in every for fact in p.facts),
        documents=tuple(document for p in every for document in p.documents),
        doubts=tuple(doubt for p in every for doubt in p.doubts),
    )


def with_policy(queries: Iterable[CompiledQuery], policy: str) -> tuple[CompiledQuery, ...]:
    """The queries, each with the policy that applies to it: its own, or this one."""
    return tuple(replace(q, syntax=replace(q.syntax, policy=q.syntax.policy or policy)) for q in queries)


@dataclass(frozen=True, slots=True)
class Carried:
    """What a stage of rules inherits: the stage whose executor it gets (None: a new one), and the state of others."""

    place: int | None
    states: tuple[Mapping[str, Any], ...] = ()


def carry_over(
    stages: Sequence[frozenset[str]], before: Sequence[tuple[frozenset[str], RuleExecutor]]
) -> list[Carried]:
    """For each stage, given by the names of its queries, the previous stage that shares most of them.

    A query that moves from another stage brings its state along.
    """
    carried = []
    free = set(range(len(before)))
    for names in stages:
        place = max(free, key=lambda n: (len(names & before[n][0]), -n), default=None)
        free.discard(-1 if place is None else place)
        homes = [executor for n, (queries, executor) in enumerate(before) if n != place and names & queries]
        carried.append(Carried(place, tuple(executor.dump() for executor in homes)))
    return carried


def entailed_by(knowledge: Knowledge) -> Any:
    """What else holds when a streamed triple does; None if nothing does."""
    if knowledge.entailment == "rdf" or not len(knowledge.default):
        return None
    return knowledge.schema.entailed


def reporting_plans(plans: Sequence[WindowPlan], report: Any) -> tuple[WindowPlan, ...]:
    """The plans with the report policies of the option ``report``, given by the name of the query."""
    if report is None:
        return tuple(plans)
    unknown = sorted(set(report) - {"", *(plan.name for plan in plans)})
    if unknown:
        names = ", ".join(plan.name for plan in plans) or "none"
        raise ValueError(f"report policies are given for {', '.join(unknown)}; the queries with windows are {names}")
    return tuple(reporting(plan, report) for plan in plans)


def groups_of(stages: Iterable[Queries]) -> list[tuple[str, list[str]]]:
    """The stages that executors run: consecutive windows and facts share one."""
    groups: list[tuple[str, list[str]]] = []
    for stage in stages:
        kind = "rules" if stage.kind == "rules" else "windows"
        if kind == "windows" and groups and groups[-1][0] == kind:
            groups[-1][1].extend(stage.names)
        else:
            groups.append((kind, list(stage.names)))
    return groups


def numbered_stages(executors: Sequence[Executor], program: Program) -> tuple[list[Stage], Sequence[Shape]]:
    """The stages with the numbers of their outputs: windowed queries come first, in the order of the program.

    The shapes of the outputs have the prefixes of the program, with which notebooks show terms.
    """
    place = {plan.name: number for number, plan in enumerate(program.plans)}
    if len(executors) == 1 and isinstance(executors[0].shapes, LazyShapes):
        return [Stage(executors[0], ())], executors[0].shapes
    every = [(executor, local) for executor in executors for local in range(len(executor.shapes))]
    every.sort(key=lambda one: place.get(one[0].shapes[one[1]].query, len(place)))
    number = {(id(executor), local): n for n, (executor, local) in enumerate(every)}
    stages = [Stage(e, tuple(number[id(e), local] for local in range(len(e.shapes)))) for e in executors]
    prefixes = {**PREFIXES, **program.prefixes}
    return stages, [replace(executor.shapes[local], prefixes=prefixes) for executor, local in every]
