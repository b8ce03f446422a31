"""From syntax to a tree of operators: SPARQL §18.2 with the operators of [EP] §4.2.

``plan_group`` reads a group's elements from left to right: adjacent triples (filters between them do not part them)
are one block, each further element is joined to what stands before it, and the group's filters come last.  ``F``,
the filters at the top level of an optional group, goes to the operator (docs/semantics.md, Groups and filters).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, reduce
from typing import Any

from etalis_compiler import ast


@dataclass(frozen=True, slots=True)
class Unit:
    """The empty pattern: one empty timeless solution."""


@dataclass(frozen=True, slots=True)
class Block:
    patterns: tuple[ast.TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Lasting:
    """The condition end − start ≤ bound (or < when ``strict``); ``lexical`` is a duration."""

    lexical: str
    strict: bool = False


Condition = ast.Expression | Lasting


@dataclass(frozen=True, slots=True)
class Pair:
    """Inner joins: ``operator`` is AND, SEQ, EQUALS, one of Allen's relations, PAR or NEXT.

    ``when`` are the conditions that belong to this node, ``across`` those at the top level of the right group of NEXT.
    """

    operator: str
    left: Plan
    right: Plan
    when: tuple[Condition, ...] = ()
    across: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Outer:
    """LeftJoin, SeqRightJoin, EqLeftJoin: ``operator`` is OPTIONAL, OPTIONALSEQ or EQUALSOPTIONAL."""

    operator: str
    mandatory: Plan
    optional: Plan
    when: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Without:
    """Absence: ``left NOT absent``, ``left SEQ NOT absent SEQ right`` or ``left SEQ NOT absent WITHIN deadline``.

    ``across`` are the conditions at the top level of the group that is absent.
    """

    left: Plan
    absent: Plan
    right: Plan | None = None
    deadline: str = ""
    when: tuple[Condition, ...] = ()
    across: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Optionally:
    """``left SEQ OPTIONAL {…} … SEQ right``, or with a ``deadline`` in place of ``right``.

    Each of the ``parts`` has the conditions at the top level of its group.
    """

    left: Plan
    parts: tuple[tuple[Plan, tuple[Condition, ...]], ...]
    right: Plan | None = None
    deadline: str = ""


@dataclass(frozen=True, slots=True)
class Runs:
    """``child REPEAT …``: ``written`` has the clauses, ``absent`` is the plan of NOT, ``until`` that of UNTIL."""

    child: Plan
    absent: Plan | None
    written: ast.Repeat
    until: Plan | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """``child SKIP PAST (e)``, ``SKIP TO (e)``, ``DISJOINT`` or ``THROTTLE d``: ``written`` has the clauses."""

    child: Plan
    written: ast.Skip


@dataclass(frozen=True, slots=True)
class Beginning:
    """``{ START }``."""


@dataclass(frozen=True, slots=True)
class Difference:
    left: Plan
    right: Plan


@dataclass(frozen=True, slots=True)
class Union:
    left: Plan
    right: Plan


@dataclass(frozen=True, slots=True)
class Filtered:
    child: Plan
    when: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Extended:
    child: Plan
    variable: str
    expression: ast.Expression


@dataclass(frozen=True, slots=True)
class Rows:
    values: ast.Values


@dataclass(frozen=True, slots=True)
class InGraph:
    graph: ast.Var | ast.Term
    child: Plan


@dataclass(frozen=True, slots=True)
class InStream:
    stream: ast.Var | ast.Term
    child: Plan


@dataclass(frozen=True, slots=True)
class OneEvent:
    """EVENT: the child over the triples of one event and the background."""

    child: Plan
    graph: ast.Var | ast.Term | None


@dataclass(frozen=True, slots=True)
class Sub:
    query: ast.Query
    where: Plan


Plan = (
    Unit
    | Block
    | Pair
    | Outer
    | Without
    | Optionally
    | Runs
    | Skipped
    | Beginning
    | Difference
    | Union
    | Filtered
    | Extended
    | Rows
    | InGraph
    | InStream
    | OneEvent
    | Sub
)


class Unsupported(NotImplementedError):
    """The oracle does not define this construct (RSP-QL, SERVICE, DESCRIBE)."""


class Refused(Exception):
    """A side of NOT, NEXT or REPEAT has no time, or an EXISTS in EVENT reads the left."""


def plan_query(query: ast.Query) -> Plan:
    """The WHERE clause; a trailing VALUES of a query without aggregates is joined to it."""
    plan, plain = plan_group(query.where) if query.where else Unit(), not is_aggregated(query)
    if query.values and plain:
        plan = _joined(plan, Rows(query.values))
    return Filtered(plan, (_bound(query.within),)) if query.within and plain else plan


def plan_group(group: ast.Group) -> Plan:
    plan, conditions = _group_parts(group)
    return Filtered(plan, conditions) if conditions else plan


def _group_parts(group: ast.Group) -> tuple[Plan, tuple[Condition, ...]]:
    """The group without its own filters, and these as conjuncts."""
    plan: Plan = Unit()
    conditions: list[Condition] = []
    triples: list[ast.TriplePattern] = []
    for element in group.elements:
        if isinstance(element, ast.Filter):
            conditions += conjuncts(element.condition)
            continue
        if isinstance(element, ast.Triples):
            triples += element.patterns
            continue
        if triples:
            plan, triples = _joined(plan, Block(tuple(triples))), []
        plan = _extended_by(plan, element)
    if triples:
        plan = _joined(plan, Block(tuple(triples)))
    return plan, tuple(conditions)


def _extended_by(plan: Plan, element: ast.Element) -> Plan:
    match element:
        case ast.Bind(expression, variable):
            return Extended(plan, variable.name, expression)
        case ast.Optional(group):
            return Outer("OPTIONAL", plan, *_group_parts(group))
        case ast.Minus(group):
            return Difference(plan, plan_group(group))
        case _:
            return _joined(plan, _element(element))


def _joined(left: Plan, right: Plan) -> Plan:
    return right if isinstance(left, Unit) else Pair("AND", left, right)


def _element(element: Any) -> Plan:
    match element:
        case ast.Group():
            return plan_group(element)
        case ast.Values():
            return Rows(element)
        case ast.Query():
            return Sub(element, plan_query(element))
        case ast.GraphGroup(graph, group):
            return InGraph(graph, plan_group(group))
        case ast.StreamGroup(stream, group, None):
            return InStream(stream, plan_group(group))
        case ast.EventGroup(group, graph):
            return OneEvent(plan_group(group), graph)
        case ast.Within(pattern, bound):
            return Filtered(_element(pattern), (_bound(bound),))
        case ast.Combined(operator, left, right):
            return _combined(operator.value, left, right)
        case ast.SeqNot(left, absent, right, bound):
            first = _element(left)
            inner, across = _operand_parts(absent, first)
            deadline = "" if bound is None else _bound(bound).lexical
            return Without(first, inner, None if right is None else _element(right), deadline, across=across)
        case ast.SeqOptional():
            return _optionally(element)
        case ast.Start():
            return Beginning()
        case ast.Skip(pattern):
            return Skipped(_element(pattern), element)
        case ast.Repeat(pattern):
            child = _element(pattern)
            if element.maximal and (element.gap or element.absent):  # the elements are points
                child = Filtered(child, (_bound(ast.Duration("duration", "PT0S")),))
            absent, until = (part and _element(part) for part in (element.absent, element.until))
            return Runs(child, absent, element, until)
    raise Unsupported(f"{type(element).__name__} is not part of EP-SPARQL's definitions")


def _optionally(pattern: ast.SeqOptional) -> Plan:
    first = left = _element(pattern.left)
    parts = []
    for part in pattern.optionals:
        parts.append(_operand_parts(part, left))
        left = Pair("SEQ", left, parts[-1][0])
    right = None if pattern.right is None else _element(pattern.right)
    return Optionally(first, tuple(parts), right, "" if pattern.bound is None else _bound(pattern.bound).lexical)


def beginnings(left: Plan) -> tuple[Plan, ...]:
    """The left side of a sequence; of a UNION with START the branches."""
    if isinstance(left, Union):
        branches = (*beginnings(left.left), *beginnings(left.right))
        if Beginning() in branches:
            return branches
    return (left,)


def apart(plan: Any) -> Any:
    """What consumes as a sequence after a UNION with START does: the union of the sequences after each branch."""
    if isinstance(plan, tuple):
        return tuple(map(apart, plan))
    if type(plan).__module__ != __name__:
        return plan
    plan = replace(plan, **{f.name: apart(getattr(plan, f.name)) for f in fields(plan)})
    if not isinstance(plan, Pair | Without | Optionally):
        return plan
    sequences: list[Plan] = [replace(plan, left=left) for left in beginnings(plan.left)]
    return reduce(Union, sequences)


def alternatives(plan: Optionally) -> Plan:
    """What consumes as SEQ OPTIONAL does: the union of the two sequences, with and without the part."""
    if len(plan.parts) > 1 or plan.right is None:
        raise Unsupported("several optional parts, or a deadline, under a consuming policy")
    ((part, across),) = plan.parts
    pair = Pair("SEQ", plan.left, part)
    came = Pair("SEQ", Filtered(pair, across) if across else pair, plan.right)
    return Union(came, Without(plan.left, part, plan.right, across=across))


def _combined(operator: str, left: ast.Pattern, right: ast.Pattern) -> Plan:
    if operator == "OPTIONALSEQ":
        optional, conditions = _optional_parts(left)
        return Outer(operator, _element(right), optional, conditions)
    if operator == "EQUALSOPTIONAL":
        optional, conditions = _optional_parts(right)
        return Outer(operator, _element(left), optional, conditions)
    if operator == "UNION":
        return Union(_element(left), _element(right))
    first = _element(left)
    if operator == "NOT":
        inner, across = _operand_parts(right, first)
        return Without(first, inner, across=across)
    if operator == "NEXT":
        inner, across = _operand_parts(right, first)
        return Pair(operator, first, inner, across=across)
    return Pair(operator, first, _element(right))


def _optional_parts(pattern: ast.Pattern) -> tuple[Plan, tuple[Condition, ...]]:
    if isinstance(pattern, ast.Group):
        return _group_parts(pattern)
    if isinstance(pattern, ast.Within):
        plan, conditions = _optional_parts(pattern.pattern)
        return Filtered(plan, (_bound(pattern.bound),)), conditions
    return _element(pattern), ()


def _operand_parts(pattern: ast.Pattern, left: Plan) -> tuple[Plan, tuple[Condition, ...]]:
    """The right group of NEXT, or that of NOT, and the filters at its top level."""
    match pattern:
        case ast.EventGroup(group, graph):
            plan, conditions = _group_parts(group)
            # What looks into the event stays in it, and P's filters do not see the name of its graph.
            of_graph = [c for c in conditions if any(isinstance(n, ast.Var) and n == graph for n in ast.walk(c))]
            looking = [c for c in conditions if any(isinstance(n, ast.Exists) for n in ast.walk(c))]
            of_left = variables(left) - certain(plan)
            if any(of_left & mentioned(c) for c in looking if c not in of_graph):
                raise Refused("an EXISTS of an EVENT reads variables of the left")
            inside = tuple(c for c in conditions if c in of_graph or c in looking)
            plan = Filtered(plan, inside) if inside else plan
            return OneEvent(plan, graph), tuple(c for c in conditions if c not in inside)
        case ast.StreamGroup(stream, ast.Group((ast.EventGroup() as event,)), None):
            plan, conditions = _operand_parts(event, left)
            return InStream(stream, plan), conditions
        case ast.StreamGroup(stream, group, None):
            plan, conditions = _group_parts(group)
            return InStream(stream, plan), conditions
        case ast.Within(inner, bound):
            plan, conditions = _operand_parts(inner, left)
            return Filtered(plan, (_bound(bound),)), conditions
    return _optional_parts(pattern)


def _bound(bound: ast.Duration) -> Lasting:
    if bound.kind != "duration":
        raise Unsupported("WITHIN n EVENTS stands after the WHERE clause only")
    return Lasting(bound.lexical)


def conjuncts(expression: ast.Expression) -> list[Condition]:
    if isinstance(expression, ast.Binary) and expression.operator == "&&":
        return conjuncts(expression.left) + conjuncts(expression.right)
    return [expression]


def plain_walk(node: Any) -> Iterator[Any]:
    """An expression's nodes without those inside EXISTS, from the outside in and from left to right."""
    left = [node]
    while left:
        yield (part := left.pop())
        left += reversed(part) if isinstance(part, tuple) else [getattr(part, n) for n in _content(type(part))]


@cache
def _content(kind: type) -> tuple[str, ...]:
    """The fields of a class of nodes, the last one first; where it stands in the text is none, and EXISTS is closed."""
    shown = fields(kind) if is_dataclass(kind) and kind is not ast.Exists else ()
    return tuple(f.name for f in reversed(shown) if f.name != "span")


def is_aggregated(query: ast.Query) -> bool:
    """Whether a SELECT groups: GROUP BY, HAVING or an aggregate in its projection or order."""
    if query.group_by or query.having:
        return True
    shown = query.form.projections if isinstance(query.form, ast.Select) else ()
    return any(isinstance(n, ast.Aggregate) for n in plain_walk((shown, query.order_by)))


def variables(plan: Plan) -> set[str]:
    """The variables in scope (SPARQL §18.2.1)."""
    match plan:
        case Block(patterns):
            return {n.name for n in plain_walk(patterns) if isinstance(n, ast.Var)}
        case Pair(_, left, right) | Union(left, right) | Outer(_, left, right):
            return variables(left) | variables(right)
        case Without(left, _, None) | Difference(left, _):
            return variables(left)
        case Optionally(left, parts, right):
            return variables(left).union(*(variables(part) for part, _ in parts), variables(right or Unit()))
        case Without(left, _, right):
            return variables(left) | variables(right)
        case Runs(_, _, written, until):
            own = {v.name for v in written.by} | {c.variable.name for c in written.columns}
            return own if until is None else own | variables(until)
        case Filtered(child) | Skipped(child):
            return variables(child)
        case Extended(child, variable):
            return variables(child) | {variable}
        case Rows(values):
            return {v.name for v in values.variables}
        case InGraph(name, child) | InStream(name, child):
            return variables(child) | ({name.name} if isinstance(name, ast.Var) else set())
        case OneEvent(child, graph):
            return variables(child) | ({graph.name} if isinstance(graph, ast.Var) else set())
        case Sub(query, where):
            return projected(query, where)
    return set()


def projected(query: ast.Query, where: Plan) -> set[str]:
    """The variables a query hands out; all in scope for ``*`` and the other forms."""
    if isinstance(query.form, ast.Select) and query.form.projections:
        return {p.variable.name for p in query.form.projections}
    return variables(where)


def certain(plan: Plan) -> set[str]:
    """The variables that every solution of the plan binds; a BIND may fail, so its variable is not among them."""
    match plan:
        case Block(patterns):
            return {n.name for n in plain_walk(patterns) if isinstance(n, ast.Var)}
        case Pair(_, left, right):
            return certain(left) | certain(right)
        case Without(left, _, right) if right is not None:
            return certain(left) | certain(right)
        case Outer(_, child, _) | Difference(child, _) | Filtered(child) | Skipped(child):
            return certain(child)
        case Extended(child) | Without(child):
            return certain(child)
        case Optionally(left, _, right):
            return certain(left) | certain(right or Unit())
        case Runs(child, _, written, until):
            own = certain(child) & {v.name for v in written.by}
            return own if until is None else own | certain(until)
        case Union(left, right):
            return certain(left) & certain(right)
        case Rows(values):
            return {v.name for i, v in enumerate(values.variables) if all(row[i] is not None for row in values.rows)}
        case InGraph(name, child) | InStream(name, child):
            return certain(child) | ({name.name} if isinstance(name, ast.Var) else set())
        case OneEvent(child, graph):
            return certain(child) | ({graph.name} if isinstance(graph, ast.Var) else set())
        case Sub(query, where):
            return _certain_of_query(query, where)
    return set()


def _certain_of_query(query: ast.Query, where: Plan) -> set[str]:
    """Plain variables that the WHERE clause certainly binds; of a grouped query those among the keys."""
    inside = certain(where)
    if is_aggregated(query):
        inside &= {k.name for k in query.group_by if isinstance(k, ast.Var)}
    if isinstance(query.form, ast.Select) and query.form.projections:
        inside &= {p.variable.name for p in query.form.projections if p.expression is None}
    return inside


def mentioned(c: Condition) -> set[str]:
    """All variables of a conjunct, those inside EXISTS too."""
    return {n.name for n in ast.walk(c) if isinstance(n, ast.Var)}
