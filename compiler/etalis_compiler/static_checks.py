"""The rules of SPARQL 1.1 that need a whole query (scopes, aggregates, blank node labels), and those of the extensions.

Errors are collected, so that one run shows them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from etalis_rules.durations import parse_duration

from .ast import (
    Aggregate,
    Binary,
    Bind,
    Blank,
    Call,
    Construct,
    Document,
    Duration,
    EventDeclaration,
    EventName,
    Exists,
    Filter,
    Group,
    Match,
    Projection,
    Query,
    Repeat,
    Select,
    SeqNot,
    SeqOptional,
    Skip,
    Span,
    TriplePattern,
    Triples,
    Var,
    Within,
    keyword,
    spelling_of,
    walk,
)
from .diagnostics import Diagnostic, QueryError, Source, closest
from .last_bound import last_bounds
from .scope import aggregates, free_variables, in_scope
from .text_warnings import doubts

MAX_FINDINGS = 50


def check_document(document: Document) -> Document:
    """The document with the warnings of these checks; raises ``QueryError`` with every error found."""
    findings = _Findings(document.text)
    for query in document.queries:
        nodes = list(walk(query))  # walked only once, as a query may be large
        events = _events(nodes, findings)
        weighed = []
        for node in nodes:
            if isinstance(node, Binary | Bind | Projection):
                weighed.append(node)
            elif isinstance(node, Query):
                _check_select(node, events, findings)
            elif isinstance(node, Group):
                _check_group(node, events, findings)
                findings.warnings += last_bounds(node, document.text)
            elif isinstance(node, Match):
                _check_match(node, events, findings)
            elif isinstance(node, Within):
                _check_bound(node.bound, findings)
            elif isinstance(node, SeqNot | SeqOptional):
                _check_deadline(node, findings)
            elif isinstance(node, Repeat):
                _check_repeat(node, events, findings)
            elif isinstance(node, Skip):
                _check_skip(node, events, findings)
        _check_steps(nodes, findings)
        _check_blanks(nodes, findings)
        findings.warnings += islice(doubts(query, weighed, document.text, events), MAX_FINDINGS)
    if findings.errors:
        raise QueryError(findings.errors)
    if findings.warnings:
        return replace(document, warnings=document.warnings + tuple(findings.warnings))
    return document


class _Findings:
    """The errors and warnings found so far."""

    def __init__(self, source: Source):
        self.source = source
        self.errors: list[Diagnostic] = []
        self.warnings: list[Diagnostic] = []

    def error(self, code: str, message: str, node: Any, hint: str = "") -> None:
        self._add(self.errors, "error", code, message, node.span, hint)

    def warning(self, code: str, message: str, node: Any, hint: str = "") -> None:
        self._add(self.warnings, "warning", code, message, node.span, hint)

    def _add(
        self, diagnostics: list[Diagnostic], severity: str, code: str, message: str, span: Span, hint: str
    ) -> None:
        if len(diagnostics) < MAX_FINDINGS:
            diagnostics.append(self.source.diagnostic(severity, code, message, span.start, span.end, hint=hint))
        elif len(diagnostics) == MAX_FINDINGS:
            more = f"there are more than {MAX_FINDINGS} such findings; from here on they are not listed"
            diagnostics.append(self.source.diagnostic(severity, "limit", more, span.start, span.end))


# --- groups ---------------------------------------------------------------------------------------------------------


def _check_group(group: Group, events: dict[str, EventDeclaration], findings: _Findings) -> None:
    """BIND must introduce a new variable; FILTER and BIND must not contain aggregates."""
    known: set[str] = set()
    binds = any(isinstance(e, Bind) for e in group.elements)
    for element in group.elements:
        if isinstance(element, Bind):
            if element.variable.name in known:
                findings.error(
                    "scope",
                    f"?{element.variable.name} has a value already where BIND would give it one",
                    element.variable,
                    "bind a new variable, or compare with FILTER(?a = ?b)",
                )
            _no_aggregate(element.expression, "BIND", findings)
        elif isinstance(element, Filter):
            _no_aggregate(element.condition, "FILTER", findings)
        if binds:
            known |= in_scope(element, events)


def _check_bound(bound: Duration, findings: _Findings) -> None:
    """WITHIN after a group must be a length of time."""
    if bound.kind != "duration":
        findings.error(
            "within",
            f"WITHIN {bound.count} {bound.kind} cannot bound a group",
            bound,
            "a number of events bounds the window over the solutions: write it after the WHERE clause",
        )


def _no_aggregate(expression: Any, where: str, findings: _Findings) -> None:
    for aggregate in aggregates(expression):
        findings.error(
            "aggregate",
            f"the aggregate {aggregate.name} is not allowed in {where}",
            aggregate,
            "use HAVING, or compute it in a sub-SELECT" if where == "FILTER" else "compute it in a sub-SELECT",
        )


# --- absence and REPEAT -----------------------------------------------------------------------------------------------


def _check_deadline(node: SeqNot | SeqOptional, findings: _Findings) -> None:
    if node.bound is None:
        return
    _check_bound(node.bound, findings)
    if node.bound.kind == "duration" and parse_duration(node.bound.lexical) == (0, 0):
        hint = "give it a length, such as WITHIN 10 SECONDS"
        what = "be absent for no time at all" if isinstance(node, SeqNot) else "come in no time at all"
        findings.error("deadline", f"nothing can {what}", node.bound, hint)


def _check_repeat(repeat: Repeat, events: dict[str, EventDeclaration], findings: _Findings) -> None:
    """The clauses must name variables of the pattern; WHERE has conditions, AS has aggregates."""
    inside = in_scope(repeat.pattern, events)
    for variable in repeat.by:
        if variable.name not in inside:
            message = f"REPEAT goes BY ?{variable.name}, which its group does not bind"
            hint = _near(variable.name, inside) or "name variables that every element binds"
            findings.error("repeat", message, variable, hint)
    if repeat.gap is not None and repeat.gap.kind != "duration":
        findings.error("repeat", "GAP counts time, not events", repeat.gap, "write it like GAP 30 MINUTES")
    ends = {"LONGEST": repeat.longest, "MAXIMAL": repeat.maximal, "UNTIL": repeat.until is not None}
    if len(chosen := [word for word, stands in ends.items() if stands]) > 1:
        message = f"{' and '.join(chosen)} exclude each other"
        hint = "LONGEST reports a run at every element, MAXIMAL when it is over, UNTIL at what ends it"
        findings.error("repeat", message, repeat, hint)
    if repeat.condition is not None:
        _check_step(repeat.condition, inside, findings)
    taken = {v.name for v in repeat.by} | (set() if repeat.until is None else in_scope(repeat.until, events))
    for column in repeat.columns:
        _check_column(column, inside, taken, findings)


def _check_skip(skip: Skip, events: dict[str, EventDeclaration], findings: _Findings) -> None:
    """BY must name variables of the group; the time may only read them."""
    inside = in_scope(skip.pattern, events)
    if skip.length is not None and skip.length.kind != "duration":
        hint = "write it like THROTTLE 1 HOUR"
        findings.error("skip", "THROTTLE counts time, not events", skip.length, hint)
    for variable in (*skip.by, *(() if skip.after is None else free_variables(skip.after))):
        if variable.name not in inside:
            message = f"?{variable.name} is not bound by the group before {keyword(skip)}"
            findings.error("skip", message, variable, _near(variable.name, inside) or "name a variable of this group")
    if skip.after is not None:
        _no_aggregate(skip.after, keyword(skip), findings)


def _check_step(condition: Any, inside: set[str], findings: _Findings) -> None:
    for aggregate in aggregates(condition):
        for inner in aggregates(aggregate.operand):
            findings.error("aggregate", f"{inner.name} stands inside an aggregate", inner, "use a sub-SELECT")
        for node in walk(aggregate.operand):
            if isinstance(node, Call) and node.name in ("PREVIOUS", "FIRST", "LAST"):
                hint = f"{aggregate.name} goes over the elements of the run; compare {node.name}(…) with it outside"
                findings.error("repeat", f"{node.name}() stands inside an aggregate", node, hint)
    for node in walk(condition):
        if isinstance(node, Exists):
            hint = "put the FILTER with EXISTS into the group that is repeated"
            findings.error("repeat", "EXISTS is not allowed in the WHERE of REPEAT", node, hint)
        elif isinstance(node, Call) and node.name == "LAST":
            hint = "the value in the last element so far is PREVIOUS(?p), that in this element ?p"
            findings.error("repeat", "LAST() is known when the run is complete", node, hint)
    counted = [variable for aggregate in aggregates(condition) for variable in free_variables(aggregate.operand)]
    for variable in (*free_variables(condition), *counted):
        if variable.name not in inside:
            message = f"?{variable.name} is not bound by the group that is repeated"
            hint = _near(variable.name, inside) or "compare it with a FILTER after REPEAT"
            findings.error("repeat", message, variable, hint)


def _check_column(column: Projection, inside: set[str], taken: set[str], findings: _Findings) -> None:
    expression, name = column.expression, column.variable.name
    if name in taken:
        findings.error("scope", f"?{name} has a value already", column.variable, "use a new name after AS")
    taken.add(name)
    end = isinstance(expression, Call) and expression.name in ("FIRST", "LAST")
    if not isinstance(expression, Aggregate) and not end:
        hint = "write an aggregate, FIRST(?p) or LAST(?p); calculate with it in a BIND after REPEAT"
        findings.error("repeat", "AS takes what is counted over the run", column, hint)
        return
    for inner in aggregates(expression.operand) if isinstance(expression, Aggregate) else ():
        findings.error("aggregate", f"{inner.name} stands inside an aggregate", inner, "use a sub-SELECT")
    for variable in free_variables(expression.operand if isinstance(expression, Aggregate) else expression):
        if variable.name not in inside:
            message = f"?{variable.name} is not bound by the group that is repeated"
            findings.error("repeat", message, variable, _near(variable.name, inside))


def _check_steps(nodes: Sequence[Any], findings: _Findings) -> None:
    """PREVIOUS, FIRST and LAST refer to a run: they are allowed only in REPEAT."""
    repeats = [n for n in nodes if isinstance(n, Repeat)]
    within = {id(c) for r in repeats for part in (r.condition, r.columns) for c in walk(part)}
    for node in nodes:
        if isinstance(node, Call) and node.name in ("PREVIOUS", "FIRST", "LAST") and id(node) not in within:
            findings.error(
                "repeat",
                f"{node.name}() is not allowed here",
                node,
                f"{node.name} is only defined inside REPEAT: {{ … }} REPEAT 3 BY ?k WHERE (?p > PREVIOUS(?p))"
                " AS (FIRST(?p) AS ?low)",
            )


# --- SELECT and GROUP BY ----------------------------------------------------------------------------------------------


def _check_select(query: Query, events: dict[str, EventDeclaration], findings: _Findings) -> None:
    bound = in_scope(query.where, events) if query.where is not None else set()
    keys = _check_keys(query, bound, findings)
    select = query.form if isinstance(query.form, Select) else None
    expressions = [p.expression for p in select.projections if p.expression is not None] if select else []
    expressions += [*query.having, *(k.expression for k in query.order_by)]
    used = [a for e in expressions for a in aggregates(e)]
    for aggregate in used:
        for inner in aggregates(aggregate.operand):
            findings.error("aggregate", f"{inner.name} stands inside {aggregate.name}", inner, "use a sub-SELECT")
    grouped = bool(query.group_by or used or query.having)
    if query.values is not None:  # joined after grouping, before the columns are computed (SPARQL §18.2.4.3)
        keys |= {v.name for v in query.values.variables}
    if select is None:
        _check_template(query, bound | keys, findings)
        return
    if not select.projections:
        if grouped:
            findings.error(
                "aggregate", "SELECT * cannot be used with GROUP BY or aggregates", select, "name the variables"
            )
        return
    _check_projections(select, bound, keys, grouped, findings)


def _check_keys(query: Query, bound: set[str], findings: _Findings) -> set[str]:
    """The variables that GROUP BY makes available."""
    keys: set[str] = set()
    for key in query.group_by:
        expression = key.expression if isinstance(key, Projection) else key
        _no_aggregate(expression, "GROUP BY", findings)
        if isinstance(key, Projection):
            if key.variable.name in bound or key.variable.name in keys:
                findings.error("scope", f"?{key.variable.name} has a value already", key.variable, "use a new name")
            keys.add(key.variable.name)
        elif isinstance(key, Var):
            keys.add(key.name)
    return keys


def _check_projections(select: Select, bound: set[str], keys: set[str], grouped: bool, findings: _Findings) -> None:
    named: set[str] = set()  # variables that an AS further left has named
    bound = bound | keys
    for projection in select.projections:
        name = projection.variable.name
        if projection.expression is None:
            if grouped and name not in keys and name not in named:
                findings.error(
                    "aggregate",
                    f"?{name} is neither grouped by nor inside an aggregate",
                    projection,
                    f"add it to GROUP BY, or take one of its values: (SAMPLE(?{name}) AS ?any)",
                )
            elif name not in bound and name not in named:
                findings.warning(
                    "unbound",
                    f"?{name} is selected but nothing in WHERE gives it a value",
                    projection,
                    _near(name, bound),
                )
            continue
        if name in bound or name in named:
            findings.error("scope", f"?{name} has a value already", projection.variable, "use a new name after AS")
        if grouped:
            for variable in free_variables(projection.expression):
                if variable.name not in keys and variable.name not in named:
                    findings.error(
                        "aggregate",
                        f"?{variable.name} is neither grouped by nor inside an aggregate",
                        variable,
                        "add it to GROUP BY, or put it into an aggregate",
                    )
        named.add(name)


def _check_template(query: Query, bound: set[str], findings: _Findings) -> None:
    if not isinstance(query.form, Construct) or query.form.template is None:
        return
    reported: set[str] = set()
    for node in walk(query.form.template):
        if isinstance(node, Var) and node.name not in bound and node.name not in reported:
            reported.add(node.name)
            findings.warning(
                "unbound",
                f"?{node.name} is used in the CONSTRUCT template but nothing in WHERE gives it a value",
                node,
                _near(node.name, bound),
            )


def _near(name: str, bound: Iterable[str]) -> str:
    near = closest(name, bound)
    return f"did you mean ?{near}?" if near else ""


# --- blank nodes ------------------------------------------------------------------------------------------------------


def _check_blanks(nodes: Sequence[Any], findings: _Findings) -> None:
    """A blank node label belongs to one basic graph pattern (SPARQL §4.1.4); FILTER does not end one."""
    first: dict[str, int] = {}
    number = 0
    for node in nodes:
        if not isinstance(node, Group):
            continue
        number += 1
        for element in node.elements:
            if isinstance(element, Triples):
                for blank in walk(element):
                    if isinstance(blank, Blank) and first.setdefault(blank.label, number) != number:
                        findings.error(
                            "blank",
                            f"the blank node _:{blank.label} is used in two separate patterns",
                            blank,
                            "use a variable for what is to be the same in both",
                        )
            elif not isinstance(element, Filter):
                number += 1


# --- event patterns ---------------------------------------------------------------------------------------------------


def _events(nodes: Sequence[Any], findings: _Findings) -> dict[str, EventDeclaration]:
    """The events declared in the query by name."""
    declared: dict[str, EventDeclaration] = {}
    for node in nodes:
        if isinstance(node, EventDeclaration):
            if node.name in declared:
                findings.error("event", f"the event {node.name} is declared twice", node, "give it another name")
            declared[node.name] = node
    return declared


def _check_match(match: Match, events: dict[str, EventDeclaration], findings: _Findings) -> None:
    if isinstance(match.pattern, Group):
        for node in walk(match.pattern):
            named = _local_name(node.subject) if isinstance(node, TriplePattern) else ""
            if named in events:
                findings.error(
                    "event",
                    f"{named} is the name of an event, and here it is the subject of a triple pattern",
                    node,
                    "events are related by SEQ, FIRST and LAST; for any other operator write the groups themselves: "
                    "MATCH { { … } DURING { … } }",
                )
        return
    for node in walk(match.pattern):
        if isinstance(node, EventName) and node.name not in events:
            near = closest(node.name, events)
            findings.error(
                "event",
                f"no event is declared as {node.name}",
                node,
                f"did you mean {near}?" if near else f"declare it: EVENT ON :w {{ … }} AS {node.name}",
            )


def _local_name(node: Any) -> str:
    """The last part of an IRI; empty for anything else."""
    spelling = spelling_of(node)
    return re.split("[/#]", spelling[1:-1])[-1] if spelling[:1] == "<" else ""
