"""The rules of SPARQL 1.1 that need a whole query (scopes, aggregates, blank node labels), and those of the extensions.

Errors are collected, so that one run shows them all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any

from etalis_rules.durations import is_too_fine
from etalis_rules.messages import closest
from etalis_rules.spelling import PREFIXES
from etalis_rules.terms import XSD, iri, is_literal, parts

from .ast import (
    Binary,
    Bind,
    Blank,
    Call,
    Construct,
    Document,
    Duration,
    EventDeclaration,
    EventName,
    Filter,
    Group,
    In,
    Match,
    Projection,
    Query,
    Repeat,
    Select,
    SeqNot,
    SeqOptional,
    Skip,
    Term,
    TriplePattern,
    Triples,
    Unary,
    Var,
    Within,
    keyword,
    spelling_of,
    walk,
)
from .diagnostics import MAX_FINDINGS, Findings, QueryError, variable_meant
from .last_bound import last_bounds
from .repeat_checks import asks_of_a_run, check_calls_of_runs, check_repeat, inside_a_run
from .scope import aggregates, free_variables, in_scope
from .text_warnings import doubts
from .value_kinds import no_datatype, no_value

_EXAMPLES = {
    "boolean": "true",
    "date": "2026-03-01",
    "dateTime": "2026-03-01T13:00:00Z",
    "dateTimeStamp": "2026-03-01T13:00:00Z",
    "dayTimeDuration": "PT5S",
    "decimal": "1.5",
    "double": "1.5e3",
    "duration": "PT5S",
    "integer": "5",
}
_OF_TIME = frozenset(XSD + name for name in ("dateTime", "dateTimeStamp", "time", "duration", "dayTimeDuration"))


def check_document(document: Document) -> Document:
    """The document with the warnings of these checks; raises ``QueryError`` with every error found."""
    findings = Findings(document.text)
    for query in document.queries:
        nodes = list(walk(query))  # walked only once, as a query may be large
        events = _events(nodes, findings)
        weighed = []
        for node in nodes:
            if isinstance(node, Binary | Bind | Call | Filter | In | Projection | Unary):
                weighed.append(node)
            elif isinstance(node, Term):
                _check_datatype(node, findings)
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
                check_repeat(node, events, findings)
            elif isinstance(node, Skip):
                _check_skip(node, events, findings)
        check_calls_of_runs(nodes, findings)
        _check_blanks(nodes, findings)
        findings.warnings += islice(doubts(query, weighed, document.text, events), MAX_FINDINGS)
    if findings.errors:
        raise QueryError(findings.errors)
    if findings.warnings:
        return replace(document, warnings=document.warnings + tuple(findings.warnings))
    return document


# --- groups ---------------------------------------------------------------------------------------------------------


def _check_group(group: Group, events: dict[str, EventDeclaration], findings: Findings) -> None:
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


def _check_bound(bound: Duration, findings: Findings) -> None:
    """WITHIN after a group must be a length of time."""
    if bound.kind != "duration":
        findings.error(
            "within",
            f"WITHIN {bound.count} {bound.kind} cannot bound a group",
            bound,
            "a number of events bounds the window over the solutions: write it after the WHERE clause",
        )


def _no_aggregate(expression: Any, where: str, findings: Findings) -> None:
    for aggregate in aggregates(expression):
        findings.error(
            "aggregate",
            f"the aggregate {aggregate.name} is not allowed in {where}",
            aggregate,
            "use HAVING, or compute it in a sub-SELECT" if where == "FILTER" else "compute it in a sub-SELECT",
        )


def _check_datatype(term: Term, findings: Findings) -> None:
    """A datatype that XSD lacks, or a text that is no value of its datatype, is a slip: it equals no other value."""
    name, meant = no_datatype(term.spelling)
    if name:
        hint = f"did you mean xsd:{meant}?" if meant else ""
        findings.warning("datatype", f"XSD has no datatype {name}, so this is equal to no other value", term, hint)
    elif name := no_value(term.spelling):
        text = parts(term.spelling)[0]
        hint = f"such a value is written {_EXAMPLES[name]!r}" if name in _EXAMPLES else ""
        findings.warning("datatype", f"{text!r} is no xsd:{name}, so this is equal to no other value", term, hint)
    elif _is_finer_than_a_microsecond(term.spelling):
        message = "comparisons and calculations leave out the digits that are finer than a microsecond"
        findings.warning("datatype", message, term, "round it to microseconds")


def _is_finer_than_a_microsecond(term: str) -> bool:
    if not is_literal(term):
        return False
    text, datatype, _ = parts(term)
    return datatype in _OF_TIME and is_too_fine(text)


# --- deadlines and SKIP -----------------------------------------------------------------------------------------------


def _check_deadline(node: SeqNot | SeqOptional, findings: Findings) -> None:
    if node.bound is None:
        return
    _check_bound(node.bound, findings)
    if _is_nothing(node.bound):
        hint = "give it a length, such as WITHIN 10 SECONDS"
        what = "be absent for no time at all" if isinstance(node, SeqNot) else "come in no time at all"
        findings.error("deadline", f"nothing can {what}", node.bound, hint)


def _is_nothing(bound: Duration) -> bool:
    return bound.length == (0, 0)


def _check_skip(skip: Skip, events: dict[str, EventDeclaration], findings: Findings) -> None:
    """BY must name variables of the group; the time may only read them."""
    inside = in_scope(skip.pattern, events)
    if skip.length is not None and skip.length.kind != "duration":
        hint = "write it like THROTTLE 1 HOUR"
        findings.error("skip", "THROTTLE counts time, not events", skip.length, hint)
    for variable in (*skip.by, *(() if skip.after is None else free_variables(skip.after))):
        if variable.name not in inside:
            message = f"?{variable.name} is not bound by the group before {keyword(skip)}"
            findings.error(
                "skip", message, variable, variable_meant(variable.name, inside) or "name a variable of this group"
            )
    if skip.after is not None:
        _no_aggregate(skip.after, keyword(skip), findings)


# --- SELECT and GROUP BY ----------------------------------------------------------------------------------------------


def _check_select(query: Query, events: dict[str, EventDeclaration], findings: Findings) -> None:
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
    if grouped and query.within is not None and _is_nothing(query.within):
        hint = "for the solutions of a single instant, write WITHIN 1 us"
        findings.error("duration", "a sliding window of no length holds nothing", query.within, hint)
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
    _check_projections(query, select, bound, keys, grouped, findings)


def _check_keys(query: Query, bound: set[str], findings: Findings) -> set[str]:
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


def _check_projections(
    query: Query, select: Select, bound: set[str], keys: set[str], grouped: bool, findings: Findings
) -> None:
    named: set[str] = set()  # variables that an AS further left has named
    bound = bound | keys
    meant = _Meant(query, bound)
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
                    meant(name),
                )
            continue
        if name in bound or name in named:
            findings.error("scope", f"?{name} has a value already", projection.variable, "use a new name after AS")
        if grouped and not asks_of_a_run(projection.expression):  # those have an error of their own
            for variable in free_variables(projection.expression):
                if variable.name not in keys and variable.name not in named:
                    findings.error(
                        "aggregate",
                        f"?{variable.name} is neither grouped by nor inside an aggregate",
                        variable,
                        "add it to GROUP BY, or put it into an aggregate",
                    )
        named.add(name)


def _check_template(query: Query, bound: set[str], findings: Findings) -> None:
    if not isinstance(query.form, Construct) or query.form.template is None:
        return
    reported: set[str] = set()
    meant = _Meant(query, bound)
    for node in walk(query.form.template):
        if isinstance(node, Var) and node.name not in bound and node.name not in reported:
            reported.add(node.name)
            findings.warning(
                "unbound",
                f"?{node.name} is used in the CONSTRUCT template but nothing in WHERE gives it a value",
                node,
                meant(node.name),
            )


class _Meant:
    """What the writer of a variable that has no value may have meant; the query is looked through once."""

    def __init__(self, query: Query, bound: Set[str]) -> None:
        self._query, self._bound = query, bound

    def __call__(self, name: str) -> str:
        if name in self._of_elements:
            return inside_a_run(name)
        if Term(iri(PREFIXES[""] + name)) in self._things:
            return f"did you mean ?{name} instead of the name :{name}?"
        return variable_meant(name, self._bound)

    @cached_property
    def _of_elements(self) -> Set[str]:
        runs = (node for node in walk(self._query.where) if isinstance(node, Repeat))
        return set().union(*(in_scope(run.pattern) for run in runs))

    @cached_property
    def _things(self) -> Set[Any]:
        triples = (node for node in walk(self._query.where) if isinstance(node, TriplePattern))
        return {term for triple in triples for term in (triple.subject, triple.object) if isinstance(term, Term)}


# --- blank nodes ------------------------------------------------------------------------------------------------------


def _check_blanks(nodes: Sequence[Any], findings: Findings) -> None:
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


def _events(nodes: Sequence[Any], findings: Findings) -> dict[str, EventDeclaration]:
    """The events declared in the query by name."""
    declared: dict[str, EventDeclaration] = {}
    for node in nodes:
        if isinstance(node, EventDeclaration):
            if node.name in declared:
                findings.error("event", f"the event {node.name} is declared twice", node, "give it another name")
            declared[node.name] = node
    return declared


def _check_match(match: Match, events: dict[str, EventDeclaration], findings: Findings) -> None:
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
