"""What the clauses of REPEAT may say: which variables and functions they may name, and which conditions never hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from .ast import Aggregate, Call, EventDeclaration, Exists, Projection, Repeat, walk
from .diagnostics import Diagnostic, Findings, Source, variable_meant
from .scope import aggregates, conjuncts, free_variables, in_scope, is_forgiving, variables

_OF_THE_RUN = frozenset({"PREVIOUS", "FIRST", "LAST"})


def check_repeat(repeat: Repeat, events: dict[str, EventDeclaration], findings: Findings) -> None:
    """The clauses must name variables of the pattern; WHERE has conditions, AS has aggregates."""
    inside = in_scope(repeat.pattern, events)
    for variable in repeat.by:
        if variable.name not in inside:
            message = f"REPEAT goes BY ?{variable.name}, which its group does not bind"
            hint = variable_meant(variable.name, inside) or "name variables that every element binds"
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


def inside_a_run(name: str) -> str:
    """The hint where a variable of the elements is used outside the run."""
    return f"outside REPEAT there are the BY variables and what AS names: AS (LAST(?{name}) AS ?last)"


def _check_step(condition: Any, inside: set[str], findings: Findings) -> None:
    for aggregate in aggregates(condition):
        for inner in aggregates(aggregate.operand):
            findings.error("aggregate", f"{inner.name} stands inside an aggregate", inner, "use a sub-SELECT")
        for node in walk(aggregate.operand):
            if isinstance(node, Call) and node.name in _OF_THE_RUN:
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
            hint = variable_meant(variable.name, inside) or "compare it with a FILTER after REPEAT"
            findings.error("repeat", message, variable, hint)


def _check_column(column: Projection, inside: set[str], taken: set[str], findings: Findings) -> None:
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
            findings.error("repeat", message, variable, variable_meant(variable.name, inside))


def asks_of_a_run(expression: Any) -> bool:
    """Whether an expression has a call that is allowed only in REPEAT."""
    return any(isinstance(node, Call) and node.name in _OF_THE_RUN for node in walk(expression))


def check_calls_of_runs(nodes: Sequence[Any], findings: Findings) -> None:
    """PREVIOUS, FIRST and LAST refer to a run: they are allowed only in REPEAT."""
    repeats = [n for n in nodes if isinstance(n, Repeat)]
    within = {id(c) for r in repeats for part in (r.condition, r.columns) for c in walk(part)}
    for node in nodes:
        if isinstance(node, Call) and node.name in _OF_THE_RUN and id(node) not in within:
            findings.error(
                "repeat",
                f"{node.name}() is not allowed here",
                node,
                f"{node.name} is only defined inside REPEAT: {{ … }} REPEAT 3 BY ?k WHERE (?p > PREVIOUS(?p))"
                " AS (FIRST(?p) AS ?low)",
            )


def too_far_back(pattern: object, source: Source) -> Iterator[Diagnostic]:
    """At the second element of a run nothing lies two back, so a condition that needs it ends every run there.

    Other patterns than runs have no such condition.
    """
    condition = pattern.condition if isinstance(pattern, Repeat) else None
    for part in () if condition is None else conjuncts(condition):
        for node in () if is_forgiving(part) else walk(part):
            if isinstance(node, Call) and node.name == "PREVIOUS" and len(node.arguments) == 2:
                start, end = node.span.start, node.span.end
                message = f"{source.excerpt(start, end)} is unbound at the second element, so no run has more than one"
                hint = f"let the first steps pass: COALESCE({source.excerpt(part.span.start, part.span.end)}, true)"
                yield source.diagnostic("warning", "never", message, start, end, hint=hint)
                return


def asked_of_later_ones(pattern: object, source: Source) -> Iterator[Diagnostic]:
    """WHERE holds at each step from one element to the next, so alone it says nothing about the first.

    Other patterns than runs have no such condition.
    """
    if not isinstance(pattern, Repeat) or pattern.condition is None:
        return
    calls = [node for node in walk(pattern.condition) if isinstance(node, Call | Aggregate)]
    named = (variables(node) for node in calls if not isinstance(node, Call) or node.name in _OF_THE_RUN)
    compared = {variable.name for variable in pattern.by}.union(*named)
    for part in conjuncts(pattern.condition):
        names = variables(part)
        if names and not names & compared:
            start, end = part.span.start, part.span.end
            text = source.excerpt(start, end)
            before = re.sub(r"\?(\w+)", r"PREVIOUS(?\1)", text)
            hint = (
                f"if any other element ends the run, write WHERE ({before} && {text}); if it does not count, write "
                f"FILTER ({text}) into {source.excerpt(pattern.pattern.span.start, pattern.pattern.span.end)}"
            )
            message = f"{text} is asked of each element but the first: WHERE compares an element with earlier ones"
            yield source.diagnostic("warning", "first-element", message, start, end, hint=hint)
