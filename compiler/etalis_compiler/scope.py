"""The variables that a pattern can bind (SPARQL 1.1 §18.2.1), and what an expression mentions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from etalis_rules.traversal import remembered

from .ast import (
    Aggregate,
    Binary,
    Bind,
    Call,
    Combined,
    Current,
    EventDeclaration,
    EventGroup,
    EventName,
    Exists,
    GraphGroup,
    Group,
    Match,
    Operator,
    Optional,
    Query,
    Select,
    Service,
    StreamGroup,
    Triples,
    Values,
    Var,
    WindowGroup,
    alone,
    shown,
    sides,
    walk,
)

Events = Mapping[str, EventDeclaration]
_FORGIVING = frozenset({"BOUND", "COALESCE", "IF"})


def in_scope(pattern: Any, events: Events = {}) -> set[str]:  # noqa: B006 (never changed)
    """The names of the variables in scope after the pattern; ``events`` are the declared ones that MATCH may name.

    Neither MINUS, NOT nor FILTER brings a variable into scope; a sub-SELECT brings what it projects.
    """
    names_in_scope: set[str] = set()
    waiting = [pattern]
    while waiting:
        here = waiting.pop()
        match here:
            case Group() if here is not pattern and not events:
                names_in_scope |= _of_group(here)
            case Group(elements=elements):
                waiting.extend(elements)
            case Triples():
                names_in_scope.update(variables(here))
            case Bind(variable=variable):
                names_in_scope.add(variable.name)
            case Values(variables=names):
                names_in_scope.update(v.name for v in names)
            case Optional(group=group) | Current(group=group):
                waiting.append(group)
            case GraphGroup(graph=name, group=group) | StreamGroup(stream=name, group=group):
                waiting += (name, group)
            case EventGroup(group=group, graph=name):
                waiting += (group,) if name is None else (name, group)
            case WindowGroup(window=name, group=group) | Service(endpoint=name, group=group):
                waiting += (name, group)
            case Match(pattern=Group() as group):
                waiting.append(group)
            case Match(pattern=inner):
                named = (n.name for n in walk(inner) if isinstance(n, EventName))
                waiting.extend(events[n].group for n in named if n in events)
            case Query():
                names_in_scope.update(projected(here, events))
            case Var(name=name):
                names_in_scope.add(name)
            case _:  # an operator; of FILTER, MINUS, an event declaration or a name nothing comes into scope
                waiting.extend(side for side, binds in sides(here) if binds)
                waiting.extend(shown(here))
    return names_in_scope


@remembered
def _of_group(group: Group) -> frozenset[str]:
    return frozenset(in_scope(group))


def projected(query: Query, events: Events = {}) -> set[str]:  # noqa: B006 (never changed)
    """The variables of a query's solutions."""
    if isinstance(query.form, Select) and query.form.projections:
        return {p.variable.name for p in query.form.projections}
    visible = in_scope(query.where, events) if query.where is not None else set()
    if query.values is not None:
        visible.update(v.name for v in query.values.variables)
    return visible


def branch_without(patterns: Iterable[Any], name: str, events: Events = {}) -> Any:  # noqa: B006 (never changed)
    """A branch of a UNION that never binds the variable, which only this UNION can bind in the joined patterns.

    None if there is none, or where an OPTIONAL decides as well.
    """
    binding = [pattern for pattern in patterns if name in in_scope(pattern, events)]
    return _lacking(binding[0], name, events) if len(binding) == 1 else None


def _lacking(pattern: Any, name: str, events: Events) -> Any:
    """A branch of a UNION in the pattern, which may bind the variable, that never does."""
    match alone(pattern):
        case Combined(Operator.UNION, left, right):
            branches = (b if name not in in_scope(b, events) else _lacking(b, name, events) for b in (left, right))
            return next((branch for branch in branches if branch is not None), None)
        case Group(elements):
            return branch_without(elements, name, events)
        case StreamGroup(_, inner) | EventGroup(inner) | GraphGroup(_, inner):
            return _lacking(inner, name, events)
        case other:
            below = sides(other)
    if not below or not below[0][1]:
        return None  # no operator, or one whose match takes many solutions of its first side
    return branch_without((side for side, binds in below if binds), name, events)


def variables(node: Any) -> set[str]:
    """Every variable mentioned in the node."""
    return {n.name for n in walk(node) if isinstance(n, Var)}


def free_variables(expression: Any) -> Iterator[Var]:
    """The variables of an expression outside its aggregates and EXISTS groups."""
    waiting = [expression]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Var):
            yield here
        elif not isinstance(here, Aggregate | Exists):
            waiting.extend(children(here))


def aggregates(expression: Any) -> Iterator[Aggregate]:
    """The aggregates of an expression, including those inside other aggregates but not those inside EXISTS groups."""
    waiting = [expression]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Aggregate):
            yield here
        if not isinstance(here, Exists):
            waiting.extend(children(here))


def children(node: Any) -> list[Any]:
    """The nodes directly below an expression."""
    below: list[Any] = []
    for name in ("operand", "left", "right", "choices", "arguments", "expression"):
        value = getattr(node, name, None)
        if isinstance(value, tuple):
            below.extend(value)
        elif value is not None and not isinstance(value, str):
            below.append(value)
    return below


def is_forgiving(expression: Any) -> bool:
    """Whether an error in a part of an expression may not be one of the whole."""
    return any(
        (isinstance(n, Call) and n.name in _FORGIVING) or (isinstance(n, Binary) and n.operator == "||")
        for n in walk(expression)
    )


def conjuncts(expression: Any) -> list[Any]:
    """The conditions that ``&&`` joins, in their order."""
    waiting, parts = [expression], []
    while waiting:
        here = waiting.pop()
        if isinstance(here, Binary) and here.operator == "&&":
            waiting += (here.right, here.left)
        else:
            parts.append(here)
    return parts
