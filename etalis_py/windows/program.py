"""Programs of windowed queries, as a user holds them; EP-SPARQL queries may stand among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from etalis_compiler import ast
from etalis_compiler.diagnostics import Diagnostic, QueryError, Source
from etalis_compiler.parser import parse
from etalis_compiler.pipeline import Compilation, compile_documents, query_name
from etalis_compiler.rsp import (
    Circle,
    Entails,
    Fact,
    Identity,
    Landmark,
    Sliding,
    Stage,
    Unit,
    WindowPlan,
    is_windowed,
    plan_fact,
    plan_query,
    readers_of,
    stages_of,
    unit_of_fact,
    unit_of_plan,
    unit_of_rule,
    with_preset,
)
from etalis_compiler.rsp.shapes import MAX_OVERLAP
from etalis_rules.spelling import PREFIXES

from etalis_py.program import Program, source_of
from etalis_py.windows.explain import Explainer, plan_data


@dataclass(frozen=True, slots=True)
class WindowProgram:
    """The plans of the windowed queries in the order in which they are evaluated, the facts, and the other queries.

    A query that reads what another one makes comes after it.  ``documents`` are the texts as they were read, ``preset``
    is the one that they were compiled with.
    """

    plans: tuple[WindowPlan, ...]
    rules: Program | None = None
    warnings: tuple[Diagnostic, ...] = ()
    documents: tuple[tuple[ast.Document, Source], ...] = ()
    preset: str = ""
    facts: tuple[Fact, ...] = ()

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of all queries."""
        rules = () if self.rules is None else self.rules.queries
        return (*(p.name for p in self.plans), *(f.name for f in self.facts), *rules)

    @property
    def _units(self) -> list[Unit]:
        """The queries as they feed one another."""
        rules = () if self.rules is None else self.rules.compilation.queries
        return [*map(unit_of_rule, rules), *map(unit_of_fact, self.facts), *map(unit_of_plan, self.plans)]

    def stages(self, entails: Entails | None = None) -> tuple[Stage, ...]:
        """The order in which an instant passes the queries; ``entails``: what else holds where a triple does.

        Raises ``Circle`` where there is none.
        """
        return stages_of(self._units, entails)

    def rules_of(self, names: Iterable[str]) -> Program:
        """The EP-SPARQL queries of these names, as a program of their own."""
        assert self.rules is not None
        compilation = self.rules.compilation
        kept = tuple(q for q in compilation.queries if q.name in set(names))
        return replace(self.rules, compilation=replace(compilation, queries=kept))

    def explain(self) -> str:
        """What will be done, query by query."""
        say = Explainer(self.prefixes, readers_of(self._units))
        rules = () if self.rules is None else self.rules.queries
        return "\n".join([*map(say.fact, self.facts), *map(say.plan, self.plans), *map(say.rule, rules)])

    def to_dict(self) -> dict[str, Any]:
        """What ``explain`` says, as plain data: times and lengths in microseconds."""
        rules = None if self.rules is None else self.rules.explain().to_dict()
        facts = [{"query": f.name, "keys": list(f.keys), "stream": f.feeds} for f in self.facts]
        return {"windowed": [plan_data(plan) for plan in self.plans], "facts": facts, "rules": rules}

    def check(self) -> tuple[Diagnostic, ...]:
        """What is doubtful in the program."""
        found = [*self.warnings, *(() if self.rules is None else self.rules.check())]
        return tuple(dict.fromkeys(found))

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that the queries declare (those of the last one count), by which their terms are shown."""
        found = dict(PREFIXES)
        for document, _ in self.documents:
            found |= dict(document.prefixes)
        return found

    @property
    def inputs(self) -> frozenset[str]:
        """The streams that come from outside."""
        made = {q.feeds for q in (*self.plans, *self.facts) if q.feeds}
        if self.rules is not None:
            made |= {q.syntax.register.name for q in self.rules.compilation.queries if q.syntax.register is not None}
        return frozenset().union(*(p.streams for p in self.plans)) - made

    @property
    def unnamed(self) -> str:
        """The stream that events belong to which name none: the only one from outside, else none."""
        return next(iter(self.inputs)) if len(self.inputs) == 1 else ""


def compile_windows(
    source: str | Path | Iterable[str | Path],
    *,
    preset: str = "",
    base: str = "",
    prefixes: Mapping[str, str] | None = None,
) -> WindowProgram:
    """Make a program of query texts or files.  Raises ``QueryError`` for a query that cannot be used.

    ``preset`` (``c-sparql``, ``cqels``, ``sparqlstream``, ``ep-sparql-recent``, …) has every windowed query evaluated
    as that system does.  Without it a query is evaluated as it says, or as the language does whose spelling it uses.

    >>> text = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5M] { WINDOW :w { ?x :p ?y } }"
    >>> compile_windows(text).plans[0].r2s
    'RSTREAM'
    """
    items = [source] if isinstance(source, (str, Path)) else list(source)
    texts = [source_of(item) for item in items]
    given = dict(prefixes or {})
    return windows_of([(parse(t.text, source=t.name, base=base, prefixes=given), t) for t in texts], preset)


def windows_of(documents: Iterable[tuple[ast.Document, Source]], preset: str = "") -> WindowProgram:
    """Make a program of parsed texts, each with the source that its spans point into."""
    read = tuple(documents)
    windowed: list[tuple[ast.Query, str, Source]] = []
    facts: list[Fact] = []
    others: list[tuple[ast.Document, Source]] = []
    warnings: list[Diagnostic] = []
    names: dict[str, Source] = {}
    for document, text in read:
        warnings.extend(document.warnings)
        rest = []
        for query in document.queries:
            name = query_name(query, text, len(document.queries), len(names))
            if name in names:
                raise text.error("duplicate-name", f"two queries are named {name}", 0, 1, hint="rename one of them")
            names[name] = text
            if not is_windowed(query):
                rest.append(query if query.register is not None else _named(query, name))
                continue
            if isinstance(query.form, ast.Fact):
                facts.append(plan_fact(query, name, text))
            else:
                windowed.append((query, name, text))
        if rest:
            others.append((replace(document, queries=tuple(rest)), text))
    plans = []
    for query, name, text in windowed:
        plan = plan_query(query, name, text, tuple(facts))
        plan = _checked(_with_preset(plan, preset, text, query), text, query)
        warnings.extend(_unbounded(plan, text, query))
        plans.append(plan)
    rules = None
    if others:
        compilation: Compilation = compile_documents(others)
        rules = Program(compilation)
        rules.rules()
    program = WindowProgram(tuple(plans), rules, tuple(warnings), read, preset, tuple(facts))
    return replace(program, plans=_in_order(program, names))


def _named(query: ast.Query, name: str) -> ast.Query:
    """The query under the name it has in this program."""
    return replace(query, register=ast.Register("QUERY", name, span=query.span))


def _with_preset(plan: WindowPlan, preset: str, source: Source, query: ast.Query) -> WindowPlan:
    if not preset:
        return plan
    try:
        return with_preset(plan, preset)
    except ValueError as fault:
        raise source.error("preset", str(fault), query.span.start, query.span.end) from None


def _checked(plan: WindowPlan, source: Source, query: ast.Query) -> WindowPlan:
    """Windows that report when they close must not close all the time."""
    closing = {s.window for s in plan.report if s.kind == "WC"}
    for window in plan.windows:
        shape = window.shape
        if not isinstance(shape, Sliding) or not closing & {"", window.name}:
            continue
        if shape.width // shape.slide > MAX_OVERLAP:
            raise source.error(
                "limit",
                f"the window {window.name} is {shape.width // shape.slide:,} times as long as it slides, and would "
                "report each time",
                query.span.start,
                query.span.end,
                hint="let it slide further (SLIDE), or report on content change: REPORT ON CONTENT CHANGE",
            )
    return plan


def _unbounded(plan: WindowPlan, source: Source, query: ast.Query) -> list[Diagnostic]:
    """Windows that keep everything."""
    return [
        source.diagnostic(
            "warning",
            "unbounded",
            f"the window {window.name} of {plan.name} keeps every item of its stream as long as the query runs",
            query.span.start,
            query.span.start + 1,
            hint="bound it where that is meant: [RANGE PT1H SLIDE PT1M], [RANGE 1000 EVENTS]",
        )
        for window in plan.windows
        if isinstance(window.shape, Identity | Landmark)
    ]


def _in_order(program: WindowProgram, sources: Mapping[str, Source]) -> tuple[WindowPlan, ...]:
    """The plans, each after those that feed it."""
    try:
        stages = program.stages()
    except Circle as circle:
        raise sources[circle.names[0]].error(
            "cycle",
            f"{circle}, so that none can be evaluated first",
            0,
            1,
            hint="let one of them read a stream of its own, or write all of them as EP-SPARQL rules, which may be "
            "recursive",
        ) from None
    place = {name: number for number, name in enumerate(name for stage in stages for name in stage.names)}
    return tuple(sorted(program.plans, key=lambda plan: place[plan.name]))


__all__ = ["QueryError", "WindowProgram", "compile_windows"]
