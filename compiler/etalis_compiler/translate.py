"""Syntax to temporal algebra (SPARQL 1.1 §18.2, extended by [EP] §4.2).

[EP]'s SeqJoin and EqJoin are ``Join``, its SeqRightJoin and EqLeftJoin are ``Outer``; everything else as SPARQL
translates it.  Three points of interpretation:

* The condition F of the optional operators consists of the filters at the top level of the optional group, as in
  OPTIONAL.
* OPTIONAL, MINUS and BIND see the group so far, its solutions and their intervals; FILTER sees the whole group.
* Adjacent triple patterns are one block; neither a FILTER between them (SPARQL 1.1 §5.1) nor a path splits it.  The
  solutions of a block are a set over all its variables; alternatives of a path (``|``) are a union.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial, reduce

from etalis_rules import algebra as alg
from etalis_rules.relations import APART, OPTIONAL_FIRST, Op, OuterOp, relation_of
from etalis_rules.terms import literal

from . import ast
from .across import divided, passing_on_time
from .events import Chosen, check_drawn, check_event, of_event
from .functions import check_function
from .graph_names import by_name
from .optional_parts import in_sequence, in_time
from .points import of_points
from .random_seeds import seeded
from .skipping import check_skip
from .starts import beginnings, by_itself, check_deadline, check_starts, refuse_start
from .template_terms import template_patterns, with_terms
from .triple_blocks import FreshNames, Scope, block_of, error, node_of
from .unsupported import within_depth

MAX_PARTS = 200  # in a group: each is an operator above those before it


@dataclass(slots=True)
class _Group:
    """A group under translation: the pattern so far, and the parts that wait for its end."""

    pattern: alg.Pattern = alg.UNIT
    filters: list[alg.Expr] = field(default_factory=list)
    block: list[ast.TriplePattern] = field(default_factory=list)


def translate(query: ast.Query, *, timeless: bool = False) -> alg.Select:
    """The algebra of a query of any form; CONSTRUCT, ASK and DESCRIBE carry all visible variables.

    ``timeless``: only solutions inside EVENT have an interval.
    """
    for clause in query.dataset:
        if clause.rescan is not None:
            raise error(
                clause.span,
                "rescan",
                "RESCAN is for queries over windows; patterns of events see the background as it is at their end",
                "leave it out and change the graph while the query runs (update(), --background-stream), or give the "
                "query a window: FROM NAMED WINDOW :w ON <stream> [RANGE PT5M]",
            )
    with within_depth():
        check_starts(query)
        select = _select(query, Scope(FreshNames(), timeless=timeless))
        draws = any(isinstance(n, ast.Call) and n.name in alg.DRAWN for n in ast.walk(query))
        return seeded(select) if draws else select


# --- groups ----------------------------------------------------------------------------------------------------


def _group(group: ast.Group, scope: Scope) -> alg.Pattern:
    return alg.filtered(*_group_parts(group, scope))


def _group_parts(group: ast.Group, scope: Scope) -> tuple[alg.Pattern, tuple[alg.Expr, ...]]:
    """The group's pattern and, separately, the filters at its top level."""
    if len(group.elements) == 1 and isinstance(group.elements[0], ast.Query):
        return alg.SubSelect(_select(group.elements[0], scope)), ()
    if scope.graph is not None and not group.elements:
        return alg.GraphNames(scope.graph), ()
    state = _Group()
    _limit_parts(group)
    for element in group.elements:
        _element(element, state, scope)
    _flush(state, scope)
    return state.pattern, tuple(state.filters)


def _limit_parts(group: ast.Group) -> None:
    parts = [e for e in group.elements if not isinstance(e, ast.Triples | ast.Filter) or _has_exists(e)]
    if len(parts) > MAX_PARTS:
        raise error(
            parts[MAX_PARTS].span,
            "limit",
            f"the group has {len(parts)} parts (BIND, OPTIONAL, MINUS, EXISTS, groups …) beside its triples; "
            f"{MAX_PARTS} are possible",
            "use VALUES for many rows, several rules (CONSTRUCT), or sub-queries",
        )


def _has_exists(element: ast.Triples | ast.Filter) -> bool:
    return isinstance(element, ast.Filter) and any(isinstance(n, ast.Exists) for n in ast.walk(element))


def _flush(state: _Group, scope: Scope) -> None:
    if state.block:
        state.pattern = alg.conjoin(state.pattern, block_of(tuple(state.block), scope))
        state.block.clear()


def _element(element: ast.Element, state: _Group, scope: Scope) -> None:
    match element:
        case ast.Triples(patterns):
            state.block.extend(patterns)
            return
        case ast.Filter(condition):
            state.filters.extend(alg.conjuncts(expression(condition, scope)))
            return
    _flush(state, scope)
    match element:
        case ast.Bind(value, variable):
            state.pattern = alg.Extend(state.pattern, variable.name, expression(value, scope))
        case ast.Values():
            state.pattern = alg.conjoin(state.pattern, _table(element))
        case ast.Optional(inner):
            right, conditions = _group_parts(inner, scope)
            state.pattern = alg.Outer(OuterOp.OPTIONAL, state.pattern, right, conditions)
        case ast.Minus(inner):
            shared = tuple(sorted(alg.scope(state.pattern)))
            state.pattern = alg.Minus(state.pattern, _group(inner, scope), shared)
        case ast.EventDeclaration() | ast.Match():  # queries with these are windowed, and rewritten without them
            raise TypeError(f"not EP-SPARQL: {element!r}")
        case ast.Query():
            state.pattern = alg.conjoin(state.pattern, alg.SubSelect(_select(element, scope)))
        case _:
            state.pattern = alg.conjoin(state.pattern, _pattern(element, scope))


def _pattern(pattern: ast.Pattern | ast.Service, scope: Scope) -> alg.Pattern:
    return alg.filtered(*_pattern_parts(pattern, scope))


def _pattern_parts(pattern: ast.Pattern | ast.Service, scope: Scope) -> tuple[alg.Pattern, tuple[alg.Expr, ...]]:
    match pattern:
        case ast.Group():
            return _group_parts(pattern, scope)
        case ast.GraphGroup(graph, inner):
            return _in_graph(node_of(graph), inner, scope)
        case ast.StreamGroup(stream, inner, window):
            if window is not None:  # a query with one is windowed, and rewritten without it
                raise TypeError(f"not EP-SPARQL: {pattern!r}")
            if isinstance(stream, ast.Var):
                raise error(pattern.span, "stream", "STREAM needs the IRI of a stream", "name it: STREAM <s> {…}")
            return _group_parts(inner, replace(scope, stream=stream.spelling))
        case ast.EventGroup(inner, name):
            check_event(pattern, scope.graph is not None)
            inside = _group(inner, replace(scope, stream="", graph=None, timeless=False))
            named = None if name is None else node_of(name)
            asked = of_event(inside, Chosen(scope.stream, named, scope.timeless))
            check_drawn(pattern, asked)
            return asked, ()
        case ast.Within(inner, bound):
            return alg.Within(_pattern(inner, scope), _bound(bound, pattern.span)), ()
        case ast.Combined():
            return _combined(pattern, scope), ()
        case ast.SeqNot():
            return _begun(pattern.left, scope, partial(_seq_not, pattern, scope)), ()
        case ast.SeqOptional():
            return _begun(pattern.left, scope, partial(_seq_optional, pattern, scope)), ()
        case ast.Repeat():
            return _repeat(pattern, scope), ()
        case ast.Skip():
            return _skip(pattern, scope), ()
        case ast.Start():
            if scope.timeless:
                refuse_start(pattern.span)
            return by_itself(), ()
        case ast.Service():
            raise error(
                pattern.span,
                "service",
                "SERVICE is not executed: a federated call inside a stream has no bound on its time",
                "load the remote data as background knowledge (FROM, --background) instead",
            )
    raise TypeError(f"not a pattern: {pattern!r}")


def _in_graph(graph: alg.Var | alg.Const, group: ast.Group, scope: Scope) -> tuple[alg.Pattern, tuple[alg.Expr, ...]]:
    """SPARQL 1.1 §18.6: the group is evaluated over each named graph by itself."""
    if isinstance(graph, alg.Const):
        return _group_parts(group, replace(scope, graph=graph))
    inner = alg.Var(scope.names.fresh("g"))
    return by_name(graph, inner, *_group_parts(group, replace(scope, graph=inner)))


def _optional_parts(pattern: ast.Pattern, scope: Scope) -> tuple[alg.Pattern, tuple[alg.Expr, ...]]:
    """The filters of the group are the condition F, whether or not a WITHIN follows the group."""
    if isinstance(pattern, ast.Within):
        optional, condition = _optional_parts(pattern.pattern, scope)
        return alg.Within(optional, _bound(pattern.bound, pattern.pattern.span)), condition
    return _pattern_parts(pattern, scope)


def _combined(pattern: ast.Combined, scope: Scope) -> alg.Pattern:
    relation = relation_of(pattern.operator.value)
    if isinstance(relation, OuterOp):
        mandatory, optional = pattern.left, pattern.right
        if relation in OPTIONAL_FIRST:
            mandatory, optional = optional, mandatory
        inside, condition = _optional_parts(optional, scope)
        return alg.Outer(relation, _pattern(mandatory, scope), inside, condition)
    related = partial(_related, pattern, relation, scope)
    return _begun(pattern.left, scope, related) if relation in APART else related(_pattern(pattern.left, scope))


def _related(pattern: ast.Combined, relation: Op | None, scope: Scope, left: alg.Pattern) -> alg.Pattern:
    if pattern.operator in ast.FORWARD:
        right, across = _right_side(pattern.right, left, scope)
        if relation is None:
            return alg.Absence(left, right, condition=across)
        return alg.Join(relation, left, right, across)
    right = _pattern(pattern.right, scope)
    if relation is None:  # NOT and UNION relate nothing in time
        return alg.Union(left, right)
    return alg.conjoin(left, right) if relation is Op.AND else alg.Join(relation, left, right)


def _seq_not(pattern: ast.SeqNot, scope: Scope, left: alg.Pattern) -> alg.Absence:
    absent, across = _right_side(pattern.absent, left, scope)
    if pattern.right is not None:
        return alg.Absence(left, absent, _pattern(pattern.right, scope), condition=across)
    assert pattern.bound is not None
    bound = _bound(pattern.bound, pattern.bound.span)
    check_deadline(left, bound, pattern.bound.span)
    return alg.Absence(left, absent, None, bound, across)


def _begun(pattern: ast.Pattern, scope: Scope, sequence: Callable[[alg.Pattern], alg.Pattern]) -> alg.Pattern:
    """The ``sequence`` after its left side, which may be START, or a UNION with START; windows have no start."""
    if scope.timeless:
        return sequence(_pattern(pattern, scope))
    lefts = (alg.Start() if ast.is_start(side) else _pattern(side, scope) for side in beginnings(pattern))
    return reduce(alg.Union, map(sequence, lefts))


def _seq_optional(pattern: ast.SeqOptional, scope: Scope, left: alg.Pattern) -> alg.Pattern:
    parts = [partial(_right_side, part, scope=scope) for part in pattern.optionals]
    if pattern.bound is not None:
        bound = _bound(pattern.bound, pattern.bound.span)
        check_deadline(left, bound, pattern.bound.span)
        return in_time(left, parts[0], bound)
    assert pattern.right is not None
    return in_sequence(left, parts, _pattern(pattern.right, scope), scope.names, pattern.span)


def _right_side(pattern: ast.Pattern, left: alg.Pattern, scope: Scope) -> tuple[alg.Pattern, tuple[alg.Expr, ...]]:
    """The right group of such an operator, and the filters at its top level that read variables of the left."""
    match pattern:
        case ast.Within(inner, bound):
            right, condition = _right_side(inner, left, scope)
            return alg.Within(right, _bound(bound, pattern.span)), condition
        case ast.StreamGroup(ast.Term(stream), ast.Group((ast.EventGroup() as event,)), None):
            return _right_side(event, left, replace(scope, stream=stream))
        case ast.EventGroup(inner, name):
            check_event(pattern, scope.graph is not None)
            graph = None if name is None else node_of(name)
            parts = _group_parts(inner, replace(scope, stream="", graph=None))
            right, condition = divided(*parts, left, scope.names, pattern.span, in_event=True, hidden=graph)
            return of_event(right, Chosen(scope.stream, graph)), condition
    return divided(*_pattern_parts(pattern, scope), left, scope.names, pattern.span)


def _repeat(pattern: ast.Repeat, scope: Scope) -> alg.Runs:
    lifted = _Aggregates(scope)
    condition = () if pattern.condition is None else alg.conjuncts(expression(lifted.lift(pattern.condition), scope))
    columns = tuple(_column(c, scope) for c in pattern.columns)
    child = _as_counted(_pattern(pattern.pattern, scope), (*columns, *lifted.calls.values()))
    if pattern.maximal and (pattern.gap is not None or pattern.absent is not None):
        child = of_points(child, pattern.pattern.span)
    return alg.Runs(
        child=child,
        least=pattern.least,
        most=pattern.most,
        keys=tuple(dict.fromkeys(v.name for v in pattern.by)),
        condition=tuple(condition),
        absent=None if pattern.absent is None else _pattern(pattern.absent, scope),
        longest=pattern.longest,
        aggregates=columns,
        gap=None if pattern.gap is None else _bound(pattern.gap, pattern.gap.span),
        maximal=pattern.maximal,
        until=None if pattern.until is None else _pattern(pattern.until, scope),
        totals=tuple(lifted.calls.values()),
    )


def _skip(pattern: ast.Skip, scope: Scope) -> alg.Skip:
    """DISJOINT is SKIP PAST the end."""
    after: alg.Expr | None = alg.Apply("GETENDTIME") if pattern.kind == "DISJOINT" else None
    if pattern.after is not None:
        after = expression(pattern.after, scope)
    length = None if pattern.length is None else _bound(pattern.length, pattern.length.span)
    keys = tuple(dict.fromkeys(v.name for v in pattern.by))
    child = _pattern(pattern.pattern, scope)
    found = alg.Skip(child, pattern.kind == "TO", keys, after, length)
    check_skip(found, pattern.span)
    return found


def _column(column: ast.Projection, scope: Scope) -> alg.AggregateCall:
    """A column of REPEAT: an aggregate, or the value in its first or last element."""
    name, call = column.variable.name, column.expression
    if isinstance(call, ast.Aggregate):
        operand = None if call.operand is None else expression(call.operand, scope)
        separator = " " if call.separator is None else call.separator
        return alg.AggregateCall(name, call.name, operand, call.distinct, separator)
    assert isinstance(call, ast.Call)
    return alg.AggregateCall(name, call.name, expression(call.arguments[0], scope))


def _table(values: ast.Values) -> alg.Table:
    rows = tuple(tuple(t.spelling if t is not None else "" for t in row) for row in values.rows)
    return alg.Table(tuple(v.name for v in values.variables), rows)


def _bound(duration: ast.Duration, span: ast.Span) -> alg.Bound:
    if duration.kind == "EVENTS":
        return alg.Bound(events=duration.count)
    if duration.kind != "duration":
        raise error(span, "within-unit", f"WITHIN cannot count {duration.kind}", "use a duration or n EVENTS")
    parsed = duration.length
    if parsed is None:
        raise error(span, "duration", f"{duration.lexical!r} is not a duration", "write it like PT5M or P30D")
    if parsed[0] < 0 or parsed[1] < 0:
        raise error(span, "duration", "a window cannot have a negative length", "remove the minus sign")
    return alg.Bound(micros=parsed[1], months=parsed[0])


def _existence(group: ast.Group, scope: Scope) -> alg.Pattern:
    """The group of an EXISTS.

    A filter that compares the group's own time with something outside is evaluated outside, where both intervals are
    known, so the group passes its time on in a variable.
    """
    pattern, filters = _group_parts(group, scope)
    return passing_on_time(pattern, filters, scope.names)


# --- expressions -----------------------------------------------------------------------------------------------


def expression(e: ast.Expression, scope: Scope) -> alg.Expr:
    """A syntactic expression as an algebraic one; aggregates must have been removed before."""
    match e:
        case ast.Var(name):
            return alg.Var(name)
        case ast.Term(spelling):
            return alg.Const(spelling)
        case ast.Unary(operator, operand):
            name = {"-": "neg", "+": "pos"}.get(operator, operator)
            return alg.Apply(name, (expression(operand, scope),))
        case ast.Binary(operator, left, right):
            return alg.Apply(operator, (expression(left, scope), expression(right, scope)))
        case ast.In(operand, choices, negated):
            items = (expression(operand, scope), *(expression(c, scope) for c in choices))
            inside = alg.Apply("IN", items)
            return alg.Apply("!", (inside,)) if negated else inside
        case ast.Call("IRI", (argument,), base):
            return alg.Apply("IRI", (expression(argument, scope), alg.Const(literal(base))))
        case ast.Call(name, arguments):
            return alg.Apply(name, tuple(expression(a, scope) for a in arguments))
        case ast.FunctionCall(iri, arguments, _):
            check_function(e)
            return alg.Apply(iri, tuple(expression(a, scope) for a in arguments))
        case ast.Exists(inner, negated):
            exists = alg.Exists(_existence(inner, scope))
            return alg.Apply("!", (exists,)) if negated else exists
        case ast.Aggregate():
            raise error(
                e.span,
                "aggregate-place",
                f"{e.name} is not allowed here",
                "aggregates belong in SELECT, HAVING or ORDER BY; in a pattern use a sub-SELECT",
            )
    raise TypeError(f"not an expression: {e!r}")


# --- SELECT and what stands around it --------------------------------------------------------------------------


@dataclass(slots=True)
class _Aggregates:
    """Replaces aggregates in expressions by variables: equal calls share one."""

    scope: Scope
    calls: dict[ast.Aggregate, alg.AggregateCall] = field(default_factory=dict)

    def lift(self, e: ast.Expression) -> ast.Expression:
        match e:
            case ast.Aggregate():
                call = self.calls.get(e)
                if call is None:
                    operand = None if e.operand is None else expression(e.operand, self.scope)
                    separator = " " if e.separator is None else e.separator
                    name = self.scope.names.fresh("a")
                    call = self.calls[e] = alg.AggregateCall(name, e.name, operand, e.distinct, separator)
                return ast.Var(call.variable, span=e.span)
            case ast.Unary():
                return replace(e, operand=self.lift(e.operand))
            case ast.Binary():
                return replace(e, left=self.lift(e.left), right=self.lift(e.right))
            case ast.In():
                return replace(e, operand=self.lift(e.operand), choices=tuple(map(self.lift, e.choices)))
            case ast.Call() | ast.FunctionCall():
                return replace(e, arguments=tuple(map(self.lift, e.arguments)))
        return e


def _as_counted(pattern: alg.Pattern, calls: Iterable[alg.AggregateCall]) -> alg.Pattern:
    """The pattern, without what has no name where COUNT(DISTINCT *) counts its solutions."""
    names = visible(alg.scope(pattern))
    if len(names) == len(alg.scope(pattern)) or all(c.operand is not None or not c.distinct for c in calls):
        return pattern
    return alg.SubSelect(alg.Select(pattern, names))


def visible(names: frozenset[str]) -> tuple[str, ...]:
    """The variables a user can name, in alphabetical order."""
    return tuple(sorted(n for n in names if alg.is_visible(n)))


def _select(query: ast.Query, scope: Scope) -> alg.Select:
    pattern: alg.Pattern = _group(query.where, scope) if query.where is not None else alg.UNIT
    if isinstance(query.form, ast.Construct):
        pattern = with_terms(pattern, template_patterns(query))
    lifted = _Aggregates(scope)
    projections = query.form.projections if isinstance(query.form, ast.Select) else ()
    outputs = [(p.variable.name, None if p.expression is None else lifted.lift(p.expression)) for p in projections]
    having = [lifted.lift(h) for h in query.having]
    order = [(lifted.lift(k.expression), k.descending) for k in query.order_by]
    grouped = bool(query.group_by) or bool(lifted.calls) or bool(query.having)
    pattern = _as_counted(pattern, lifted.calls.values())

    keys: list[str] = []
    for item in query.group_by:
        if isinstance(item, ast.Var):
            keys.append(item.name)
            continue
        if isinstance(item, ast.Projection):
            name, value = item.variable.name, item.expression
            if value is None:
                keys.append(name)
                continue
        else:
            name, value = scope.names.fresh("k"), item
        pattern = alg.Extend(pattern, name, expression(value, scope))
        keys.append(name)

    if query.values is not None and not grouped:
        pattern = alg.conjoin(pattern, _table(query.values))
    window = None if query.within is None else _bound(query.within, query.within.span)
    if window is not None and not grouped:
        if window.events:
            raise error(
                query.within.span,  # type: ignore[union-attr]
                "within",
                "a number of events bounds what is aggregated, and this query aggregates nothing",
                "to bound how long a match takes, write a length of time: WITHIN 10 SECONDS",
            )
        pattern, window = alg.Within(pattern, window), None
    if isinstance(query.form, ast.Select) and projections:
        names = tuple(dict.fromkeys(name for name, _ in outputs))
    elif grouped:
        names = tuple(keys)
    else:
        names = visible(alg.scope(pattern))
    select = alg.Select(
        pattern=pattern,
        variables=names,
        extends=tuple((n, expression(v, scope)) for n, v in outputs if v is not None),
        grouped=grouped,
        keys=tuple(dict.fromkeys(keys)),
        aggregates=tuple(lifted.calls.values()),
        having=tuple(part for h in having for part in alg.conjuncts(expression(h, scope))),
        distinct=isinstance(query.form, ast.Select) and query.form.modifier == "DISTINCT",
        order=tuple(alg.OrderKey(expression(e, scope), d) for e, d in order),
        limit=query.limit,
        offset=query.offset or 0,
        window=window,
    )
    if query.values is not None and grouped:
        joined = alg.Join(Op.AND, alg.SubSelect(select), _table(query.values))
        return alg.Select(joined, tuple(dict.fromkeys((*names, *(v.name for v in query.values.variables)))))
    return select
