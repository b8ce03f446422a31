"""From the syntax of a windowed query to its plan.

The dataset clauses become windows, REPORT a policy, the WHERE clause algebra in which each window is a stream
(``rewriting``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from etalis_rules import algebra as alg
from etalis_rules.messages import closest

from .. import ast
from ..diagnostics import Source
from ..pipeline import located, template_of
from ..translate import translate
from ..unsupported import Fault, within_depth
from .ordering import in_fixed_order
from .plan import (
    Count,
    Current,
    Fact,
    Identity,
    Landmark,
    Now,
    Strategy,
    WindowPlan,
    WindowUse,
)
from .presets import CHANGE, CLOSE, PRESETS
from .rewriting import Rewriter, in_one_item, is_aggregated
from .shapes import instant_of, length_of, shape_of


def plan_query(query: ast.Query, name: str, source: Source, facts: tuple[Fact, ...] = ()) -> WindowPlan:
    """The plan of a windowed query; ``facts`` are those of its program.  Raises ``QueryError``."""
    try:
        with within_depth():
            return _Lowering(query, name, facts).plan()
    except Fault as fault:
        raise located(fault, source, query) from None


def plan_fact(query: ast.Query, name: str, source: Source) -> Fact:
    """The plan of a CONSTRUCT FACT query.  Raises ``QueryError``."""
    try:
        return _fact(query, name)
    except Fault as fault:
        raise located(fault, source, query) from None


def _fact(query: ast.Query, name: str) -> Fact:
    form = cast(ast.Fact, query.form)
    template = template_of(replace(query, form=ast.Construct(form.template)))
    nodes = [n for t in template for n in (t.subject, t.predicate, t.object) if isinstance(n, alg.Var)]
    named = dict.fromkeys(n.name for n in nodes)
    if not template or any(n.startswith("_:") for n in named):
        raise Fault(
            "fact",
            "a fact is made of triples without blank nodes",
            "say which triples hold: CONSTRUCT FACT { ?user :isIn ?room }",
            form.span,
        )
    since, till = ([in_one_item(g, "a SINCE or TILL") for g in groups] for groups in (form.since, form.till))
    for group, pattern in zip(form.since, since, strict=True):
        for variable in named:
            if variable not in alg.certain(pattern):
                raise Fault(
                    "fact",
                    f"?{variable} of the fact has no value in this SINCE",
                    "a fact is known when it begins: match each of its variables in every SINCE",
                    group.span,
                )
    feeds = query.register.name if query.register is not None and query.register.kind == "STREAM" else ""
    return Fact(name, template, tuple(sorted(named)), tuple(since), tuple(till), feeds)


class _Lowering(Rewriter):
    """One query on its way to a plan."""

    def __init__(self, query: ast.Query, name: str, facts: tuple[Fact, ...]) -> None:
        super().__init__(facts)
        self.syntax = query
        self.name = name

    # --- the whole ---

    def plan(self) -> WindowPlan:
        query = self.syntax
        aggregated = is_aggregated(query)
        for clause in query.dataset:
            self._clause(clause, aggregated)
        for node in ast.walk(query):
            if isinstance(node, ast.EventDeclaration):
                self.events[node.name] = node
            if isinstance(node, ast.Start):
                raise Fault("start", "a window has no START", "use START in a query without windows", node.span)
        self._check_nesting()
        # windows hold plain triples, so a block of triples and paths is a join
        select = alg.without_blocks(translate(self._rewritten(query), timeless=True))
        if not self.windows and self.times:
            timed = next(node for node in ast.walk(query) if isinstance(node, ast.TripleTime))
            raise Fault(
                "timestamp",
                "timestamp() gives times in a window, and the query has none",
                "declare one: FROM STREAM <s> [RANGE PT5M]; without a window, what comes first is { … } SEQ { … }, and "
                "its time is getSTARTTIME() or getENDTIME()",
                timed.span,
            )
        if not self.windows:
            raise Fault(
                "window",
                "the query says how to report, but has no window",
                "declare one: FROM NAMED WINDOW :w ON <stream> [RANGE PT5M]",
                query.span,
            )
        self._check_consumption()
        self._check_times()
        self._give_patterns_to_counts(select.pattern)
        template = template_of(query)
        graphs = [c for c in query.dataset if c.kind == "graph"]
        report = self._report()
        feeds = query.register.name if query.register is not None and query.register.kind == "STREAM" else ""
        if feeds and not isinstance(query.form, ast.Construct | ast.Describe):
            feeds = ""  # only graphs can feed another query ([RSPQL], Query Form)
        select, variables, subjects = self._projected(select, template)
        select = in_fixed_order(select)
        return WindowPlan(
            name=self.name,
            form=query.kind,
            windows=tuple(self.windows.values()),
            select=select,
            variables=variables,
            report=report,
            r2s=query.r2s or PRESETS[query.dialect if query.dialect in PRESETS else "rsp-ql"].operators[0],
            asked=query.r2s,
            matches=tuple(self.matches),
            times=tuple(self.times),
            graphs=tuple(c.iri.spelling for c in graphs if not c.named),
            named=tuple(c.iri.spelling for c in graphs if c.named),
            restricted=bool(graphs),
            rescan=tuple((c.iri.spelling, length_of(c.rescan)) for c in graphs if c.rescan is not None),
            template=template,
            subjects=subjects,
            consumption=query.policy or "unrestricted",
            feeds=feeds,
            ordered=bool(query.order_by),
            dialect=query.dialect,
        )

    def _projected(
        self, select: alg.Select, template: tuple[Any, ...]
    ) -> tuple[alg.Select, tuple[str, ...], tuple[alg.Var | alg.Const, ...]]:
        """The columns of the answer, by the form of the query."""
        form, names = self.syntax.form, select.variables
        subjects: tuple[alg.Var | alg.Const, ...] = ()
        scope = alg.scope(select.pattern)
        match form:
            case ast.Construct(at_end=True):
                raise Fault(
                    "at-end",
                    "what a query derives from windows is a point already: the time at which they were evaluated",
                    "leave AT END out",
                )
            case ast.Construct():
                used = [n.name for t in template for n in (t.subject, t.predicate, t.object) if isinstance(n, alg.Var)]
                names = tuple(dict.fromkeys(n for n in used if n in scope))
                if any(n.startswith("_:") for n in used):  # a fresh node is a function of the whole solution
                    names = tuple(sorted(scope))
            case ast.Describe(asked):
                named = (alg.Var(s.name) if isinstance(s, ast.Var) else alg.Const(s.spelling) for s in asked)
                subjects = tuple(named) or tuple(map(alg.Var, select.variables))
                names = tuple(dict.fromkeys(s.name for s in subjects if isinstance(s, alg.Var)))
            case ast.Ask():
                names = ()
        return replace(select, variables=names), names, subjects

    # --- the dataset ---

    def _clause(self, clause: ast.DatasetClause, aggregated: bool) -> None:
        if clause.kind == "graph":
            return
        name = clause.iri.spelling
        if clause.kind == "stream":
            stream, name, default, inner = name, f".default:{name}", True, ""
            while name in self.windows:
                name += "'"
        else:
            stream = "" if clause.source is None else clause.source.spelling
            default, inner = not clause.named, clause.nested
        if name in self.windows:
            raise Fault("window", f"the window {name} is declared twice", "give it another name", clause.span)
        if clause.window is not None:
            shape = shape_of(clause.window)
        else:  # the stream itself: each instant by itself, or for aggregates everything so far ([REQ], S2S)
            shape = Identity() if aggregated else Now()
        self.windows[name] = WindowUse(name, stream, shape, inner, default)

    def _check_nesting(self) -> None:
        for window in self.windows.values():
            seen = [window.name]
            while window.inner:
                if window.inner not in self.windows:
                    near = closest(window.inner, self.windows)
                    hint = f"did you mean {near}?" if near else "declare it with FROM NAMED WINDOW"
                    raise Fault("window", f"{window.inner} names no window of the query", hint, self.syntax.span)
                window = self.windows[window.inner]
                if window.name in seen:
                    raise Fault(
                        "window",
                        f"the window {window.name} stands on itself",
                        "let the innermost stand on a stream",
                        self.syntax.span,
                    )
                seen.append(window.name)

    def _check_consumption(self) -> None:
        if self.syntax.policy in ("", "unrestricted"):
            return
        events = [m for m in self.matches if m.events is not None]
        if not events or len(events) < len(self.matches):
            raise Fault(
                "policy",
                f"USING POLICY {self.syntax.policy} says what event patterns use up, and the query has "
                + (
                    "none"
                    if not self.matches
                    else "a MATCH with the operators of EP-SPARQL, which consume nothing here"
                ),
                "declare events (EVENT ON :w {…} AS E1) and relate them in MATCH {E1 SEQ E2}, let a rule with the "
                "policy find them and put the window on its stream (REGISTER STREAM :found AS CONSTRUCT …), or leave "
                "the policy out",
                self.syntax.span,
            )

    def _check_times(self) -> None:
        """Variables in timestamp() must be bound by a pattern; WITHIN is only for EP-SPARQL matches."""
        if self.syntax.within is not None:
            raise Fault(
                "window",
                "WITHIN after WHERE is a window over matches as they come, and this query has windows of its own",
                "say how long the windows are in FROM NAMED WINDOW, or write MATCH { {…} WITHIN PT5M }",
                self.syntax.within.span,
            )
        bound = _bound_names(self.syntax)
        for node in ast.walk(self.syntax):
            if isinstance(node, ast.TripleTime):
                for var in ast.walk(node.pattern):
                    if isinstance(var, ast.Var) and var.name not in bound:
                        raise Fault(
                            "timestamp",
                            f"?{var.name} has no value in timestamp()",
                            "match the triple in the pattern too, or write the terms that are meant",
                            var.span,
                        )

    def _report(self) -> tuple[Strategy, ...]:
        clause, register = self.syntax.report, self.syntax.register
        if clause is None:
            if register is not None and register.every is not None:
                return (Strategy("P", period=length_of(register.every)),)
            if self.syntax.dialect == "cqels":
                return CHANGE
            closing = any(not isinstance(w.shape, Landmark | Identity | Current) for w in self.windows.values())
            return CLOSE if closing else CHANGE
        policies = []
        for item in clause.items:
            if item.window is not None:
                self.known_window(item.window.spelling, item.window.span)
            window = "" if item.window is None else item.window.spelling
            period = 0 if item.period is None else length_of(item.period)
            times = tuple(sorted({instant_of(t) for t in item.times}))
            policies.append(Strategy(item.kind, window, period, times=times))
        return tuple(policies)

    def _give_patterns_to_counts(self, pattern: alg.Pattern) -> None:
        """A window that counts BGPs counts the solutions of the pattern it is used with."""
        for window in self.windows.values():
            if not (isinstance(window.shape, Count) and window.shape.unit == "BGP"):
                continue
            reads = "" if window.default else window.name
            patterns = [
                p.triples
                for p in alg.subpatterns(pattern)
                if isinstance(p, alg.BGP) and p.stream == reads and p.graph is None
            ]
            if len(patterns) != 1:
                raise Fault(
                    "window",
                    f"the window {window.name} counts the solutions of a basic graph pattern, and is used with "
                    f"{len(patterns)}",
                    "use it with one pattern of triples, or count EVENTS or TRIPLES",
                    self.syntax.span,
                )
            self.windows[window.name] = replace(window, shape=replace(window.shape, pattern=patterns[0]))

    def _rewritten(self, query: ast.Query) -> ast.Query:
        """The query in plain syntax."""
        if query.where is None:
            raise Fault(
                "describe", "a windowed query needs a WHERE clause", "say what is looked for in WHERE {…}", query.span
            )
        return self.query(query, "")


def _bound_names(node: Any) -> set[str]:
    """The variables that occur outside timestamp()."""
    if isinstance(node, ast.TripleTime):
        return set()
    if isinstance(node, ast.Var):
        return {node.name}
    return set().union(*map(_bound_names, ast.children(node)))
