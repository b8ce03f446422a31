"""The WHERE clause of a windowed query as plain syntax.

Every window becomes a stream of its own (``WINDOW :w {…}`` ↦ ``STREAM :w {…}``), so that the same translation of
patterns serves here too.  Parts that SPARQL cannot express are evaluated separately and read as triples of a stream:
event patterns (``MATCH``), and the times of triples (``timestamp(s p o)``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules.messages import closest
from etalis_rules.terms import is_iri
from etalis_rules.traversal import descend, transform

from .. import ast
from ..events import check_event
from ..translate import translate
from ..unsupported import Fault
from .plan import (
    OBJECT,
    PREDICATE,
    ROW,
    SUBJECT,
    TIME,
    TIMES,
    Basic,
    Count,
    Current,
    EventExpr,
    Fact,
    First,
    Last,
    MatchPlan,
    Now,
    Sequence,
    WindowUse,
    column,
    event_variables,
)
from .shapes import shape_of

FACTS = ".facts"  # the window of CURRENT {…}
_TEMPORAL = ast.TIGHT | {ast.Operator.SEQ, ast.Operator.OPTIONALSEQ, ast.Operator.EQUALSOPTIONAL}


class Rewriter:
    """The windows, event patterns and triple times met so far in one query."""

    def __init__(self, facts: tuple[Fact, ...] = ()) -> None:
        self.facts = facts
        self.windows: dict[str, WindowUse] = {}
        self.matches: list[MatchPlan] = []
        self.times: dict[str, None] = {}
        self.events: dict[str, ast.EventDeclaration] = {}
        self.fresh = 0

    def query(self, query: ast.Query, here: str) -> ast.Query:
        form = query.form
        extra: list[ast.Element] = []
        aliases: dict[str, ast.Expression] = {}
        if isinstance(form, ast.Select):
            projections = []
            for p in form.projections:
                expression = None if p.expression is None else self._expression(p.expression, here, extra)
                if expression is not None:
                    aliases[p.variable.name] = expression
                projections.append(replace(p, expression=expression))
            form = replace(form, projections=tuple(projections))
        having = tuple(_aliased(self._expression(h, here, extra), aliases) for h in query.having)
        order = tuple(replace(k, expression=self._expression(k.expression, here, extra)) for k in query.order_by)
        keys = tuple(
            replace(g, expression=self._expression(g.expression, here, extra))
            if isinstance(g, ast.Projection) and g.expression is not None
            else self._expression(g, here, extra)
            if not isinstance(g, ast.Projection)
            else g
            for g in query.group_by
        )
        where = query.where
        if where is not None:
            where = self._group(where, here)
            where = replace(where, elements=(*where.elements, *extra))
        return replace(
            query,
            form=form,
            where=where,
            having=having,
            order_by=order,
            group_by=keys,
            dataset=(),
            events=(),
            policy="",
        )

    def _group(self, group: ast.Group, here: str) -> ast.Group:
        elements: list[ast.Element] = []
        for element in group.elements:
            self._element(element, here, elements)
        return replace(group, elements=tuple(elements))

    def _element(self, element: ast.Element, here: str, out: list[ast.Element]) -> None:
        match element:
            case ast.EventDeclaration():
                return
            case ast.Filter(condition):
                extra: list[ast.Element] = []
                changed = self._expression(condition, here, extra)
                out.extend(extra)
                out.append(replace(element, condition=changed))
            case ast.Bind(expression, _):
                extra = []
                changed = self._expression(expression, here, extra)
                out.extend(extra)
                out.append(replace(element, expression=changed))
            case ast.Match(pattern):
                out.extend(self._match(pattern, here))
            case ast.Query():
                out.append(self.query(element, here))
            case ast.Combined(operator, _, _) if operator in _TEMPORAL:
                out.extend(self._match(ast.Group((element,), span=element.span), here))
            case ast.Optional(group) | ast.Minus(group):
                out.append(replace(element, group=self._group(group, here)))
            case ast.Triples() | ast.Values() | ast.Service():
                out.append(element)
            case _:
                out.append(self._pattern(element, here))

    def _pattern(self, pattern: Any, here: str) -> Any:
        match pattern:
            case ast.Group():
                return self._group(pattern, here)
            case ast.WindowGroup(window, group):
                return self._window(window, group, pattern.span)
            case ast.EventGroup():
                self.check_event(pattern)
                return pattern
            case ast.Current(group):
                return self._current(group, pattern.span)
            case ast.GraphGroup(ast.Term(spelling), group) if spelling in self.windows and not here:
                return self._window(pattern.graph, group, pattern.span)  # [RSPQL] Box 10
            case ast.GraphGroup(graph, group):
                return self._graph(graph, group, here, pattern.span)
            case ast.StreamGroup(stream, group, window):
                return self.read_stream(stream, group, window, pattern.span)
            case _ if ast.is_only_forward(pattern):
                raise _forward_only(pattern)
            case ast.Combined(operator, _, _) if operator in _TEMPORAL:
                return ast.Group(tuple(self._match(ast.Group((pattern,), span=pattern.span), here)))
            case ast.Combined(_, left, right):
                return replace(pattern, left=self._pattern(left, here), right=self._pattern(right, here))
            case ast.Within(inner, _):
                return ast.Group(tuple(self._match(ast.Group((replace(pattern, pattern=inner),)), here)))
        return pattern

    def check_event(self, event: ast.EventGroup) -> None:
        """Refuse EVENT with a window inside it; it stays as it is, since it reads whole items."""
        check_event(event, inside_graph=False)
        for node in ast.walk(event):
            if isinstance(node, ast.GraphGroup) and getattr(node.graph, "spelling", "") in self.windows:
                raise Fault(
                    "event-window",
                    "GRAPH inside EVENT reads stored graphs, and this names a window",
                    "choose the window outside: WINDOW :w { EVENT {…} }",
                    node.span,
                )

    def _read(self, name: str, group: ast.Group) -> ast.StreamGroup:
        return ast.StreamGroup(ast.Term(name), self._group(group, name), span=group.span)

    def _window(self, window: ast.Var | ast.Term, group: ast.Group, span: ast.Span) -> Any:
        if isinstance(window, ast.Term):
            self.known_window(window.spelling, span)
            return self._read(window.spelling, group)
        named = [w.name for w in self.windows.values() if is_iri(w.name) and not w.default]
        if not named:
            raise Fault("window", "no named window is declared", "declare one: FROM NAMED WINDOW :w ON <s> […]", span)
        branches = [ast.Group((self._read(n, group), ast.Values((window,), ((ast.Term(n),),)))) for n in named]
        result: Any = branches[0]
        for branch in branches[1:]:
            result = ast.Combined(ast.Operator.UNION, result, branch)
        return result

    def known_window(self, name: str, span: ast.Span) -> None:
        if name not in self.windows:
            near = closest(name, self.windows)
            hint = f"did you mean {near}?" if near else "declare it: FROM NAMED WINDOW :w ON <stream> [RANGE PT5M]"
            raise Fault("window", f"no window is declared as {name}", hint, span)

    def _graph(self, graph: ast.Var | ast.Term, group: ast.Group, here: str, span: ast.Span) -> Any:
        if not group.elements:  # GRAPH ?g {}: the names of graphs: of items in a window, of stored graphs elsewhere
            any_triple = ast.TriplePattern(ast.Blank(".s"), ast.Var(".p"), ast.Blank(".o"))
            body = ast.Group((ast.GraphGroup(graph, ast.Group((ast.Triples((any_triple,)),))),))
            if isinstance(graph, ast.Term):
                return ast.Group((ast.Query(ast.Select((ast.Projection(ast.Var(".p")),)), body, limit=1),))
            return ast.Group((ast.Query(ast.Select((ast.Projection(graph),), "DISTINCT"), body),))
        return ast.GraphGroup(graph, self._group(group, here), span=span)

    def read_stream(
        self, stream: ast.Var | ast.Term, group: ast.Group, spec: ast.WindowSpec | None, span: ast.Span
    ) -> Any:
        if isinstance(stream, ast.Var):
            raise Fault("stream", "STREAM needs the IRI of a stream", "name it: STREAM <s> [RANGE PT5M] {…}", span)
        if spec is None and stream.spelling in self.windows:
            return self._read(stream.spelling, group)
        shape = Now() if spec is None else shape_of(spec, continuous=True)
        for window in self.windows.values():
            same = (window.stream, window.shape, window.inner) == (stream.spelling, shape, "")
            counts_patterns = isinstance(shape, Count) and shape.unit == "BGP"  # each has its own
            if same and window.name[0] == "." and not counts_patterns:
                return self._read(window.name, group)
        self.fresh += 1
        name = f".window{self.fresh}:{stream.spelling}"
        self.windows[name] = WindowUse(name, stream.spelling, shape)
        return self._read(name, group)

    # --- facts ---

    def _current(self, group: ast.Group, span: ast.Span) -> ast.StreamGroup:
        """``CURRENT {…}``: a window that holds the facts of the program that the pattern may match."""
        held = self.windows.get(FACTS)
        wanted = set(held.shape.facts) if held is not None and isinstance(held.shape, Current) else set[Fact]()
        for node in ast.walk(group):
            if isinstance(node, ast.TriplePattern):
                met = {fact for fact in self.facts if any(_may_match(node, t) for t in fact.template)}
                if not met:
                    raise Fault(
                        "fact",
                        "no fact of the program makes such a triple",
                        "define it: CONSTRUCT FACT { ?user :isIn ?room } (UNION (SINCE ?user :enter ?room) "
                        "(TILL ?user :leave ?room))",
                        node.span,
                    )
                wanted |= met
            elif isinstance(
                node,
                ast.WindowGroup | ast.StreamGroup | ast.GraphGroup | ast.EventGroup | ast.Match | ast.Current,
            ):
                raise Fault(
                    "fact",
                    "CURRENT {…} holds a pattern over facts alone",
                    "write CURRENT {…} beside WINDOW, GRAPH, EVENT and MATCH, not around them",
                    node.span,
                )
        self.windows[FACTS] = WindowUse(FACTS, "", Current(tuple(f for f in self.facts if f in wanted)))
        return ast.StreamGroup(ast.Term(FACTS), self._group(group, FACTS), span=span)

    # --- event patterns ---

    def _match(self, pattern: ast.EventPattern | ast.Group, here: str) -> list[ast.Element]:
        """A MATCH as the triples through which its solutions are read."""
        name = f".match{len(self.matches) + 1}"
        if isinstance(pattern, ast.Group):
            inner = self._temporal(pattern, here)
            matched: EventExpr | alg.Pattern = inner
            certain, names = alg.certain(inner), alg.scope(inner)
        else:
            matched = self._event(pattern)
            names = event_variables(matched)
            certain = _certain(matched)
        self.matches.append(MatchPlan(name, matched))
        shown = sorted(n for n in names if alg.is_visible(n))
        row = ast.Var(f"{name}.row")
        sure: list[tuple[ast.Var, ast.Term, ast.Node]] = [(row, ast.Term(ROW), ast.Term(ROW))]
        sure += [(row, ast.Term(column(v)), ast.Var(v)) for v in shown if v in certain]
        elements: list[ast.Element] = [ast.Triples(tuple(ast.TriplePattern(*t) for t in sure))]
        for v in shown:
            if v not in certain:
                one = ast.Triples((ast.TriplePattern(row, ast.Term(column(v)), ast.Var(v)),))
                elements.append(ast.Optional(ast.Group((one,))))
        return [ast.StreamGroup(ast.Term(name), ast.Group(tuple(elements)))]

    def _temporal(self, group: ast.Group, here: str) -> alg.Pattern:
        """The operators of EP-SPARQL, over the occurrences in the windows."""
        for node in ast.walk(group):
            if ast.is_only_forward(node):
                raise _forward_only(node)
        plain = _TimedReader(self).group(group)
        body: ast.Element = plain
        if here:
            body = ast.StreamGroup(ast.Term(here), plain)
        return translate(ast.Query(ast.Select(()), ast.Group((body,)))).pattern

    def _event(self, event: ast.EventPattern) -> EventExpr:
        match event:
            case ast.EventName(name):
                return self._basic(self.events[name])
            case ast.EventUnary(operator, operand):
                return (First if operator == "FIRST" else Last)(self._event(operand))
            case ast.EventSequence(left, right, policy):
                return Sequence(self._event(left), self._event(right), policy or "unrestricted")
        raise TypeError(f"not an event pattern: {event!r}")

    def _basic(self, declared: ast.EventDeclaration) -> Basic:
        if isinstance(declared.window, ast.Var):
            raise Fault(
                "event", "EVENT ON needs the IRI of a window", "name the window: EVENT ON :w {…}", declared.span
            )
        self.known_window(declared.window.spelling, declared.span)
        return Basic(declared.window.spelling, in_one_item(declared.group, "an event"))

    # --- expressions ---

    def _expression(self, expression: Any, here: str, extra: list[ast.Element]) -> Any:
        """The expression without ``timestamp``; ``extra`` gets the patterns that find the times."""
        match expression:
            case ast.TripleTime(pattern):
                return self._time(pattern, here, extra)
            case ast.Exists(group, _):
                return replace(expression, group=self._group(group, here))
        return descend(expression, lambda e: self._expression(e, here, extra))

    def _time(self, pattern: ast.TriplePattern, here: str, extra: list[ast.Element]) -> ast.Var:
        if not isinstance(pattern.predicate, ast.Var | ast.Term):
            raise Fault("timestamp", "timestamp() takes a triple, not a path", "name the predicate", pattern.span)
        for n in (pattern.subject, pattern.object):
            if isinstance(n, ast.Blank):
                raise Fault(
                    "timestamp", "timestamp() takes no blank node", "use a variable of the pattern", pattern.span
                )
        self.fresh += 1
        stream, row, time = f"{TIMES}{here}", ast.Var(f".time{self.fresh}.row"), ast.Var(f".time{self.fresh}")
        self.times[here] = None
        places = ((SUBJECT, pattern.subject), (PREDICATE, pattern.predicate), (OBJECT, pattern.object), (TIME, time))
        triples = ast.Triples(tuple(ast.TriplePattern(row, ast.Term(p), n) for p, n in places))
        extra.append(ast.Optional(ast.Group((ast.StreamGroup(ast.Term(stream), ast.Group((triples,))),))))
        return time


def _forward_only(node: ast.Spanned) -> Fault:
    """The fault for an operator that follows a stream as it comes, which is not evaluated over windows."""
    return Fault(
        "windows",
        f"{alg.ONLY_FORWARD} are not evaluated over windows",
        "make a rule of it over the stream, REGISTER STREAM :found AS CONSTRUCT { … } WHERE { … }, and open the window "
        "on that stream",
        node.span,
    )


def in_one_item(group: ast.Group, what: str) -> alg.Pattern:
    """The pattern of something found within one stream item."""
    for node in ast.walk(group):
        if isinstance(node, ast.EventGroup):
            raise Fault(
                "event",
                f"EVENT stands in {what}, which is asked of one item already",
                "leave EVENT and its braces out",
                node.span,
            )
        if isinstance(node, ast.WindowGroup | ast.StreamGroup | ast.Match | ast.TripleTime | ast.Query | ast.Current):
            raise Fault(
                "event",
                f"{what} is a pattern of triples in one stream item",
                "relate several in MATCH { E1 SEQ E2 }, or by a rule: CONSTRUCT {…} WHERE { {…} SEQ {…} }",
                node.span,
            )
    return alg.without_blocks(translate(ast.Query(ast.Select(()), group)).pattern)


def _may_match(pattern: ast.TriplePattern, given: Any) -> bool:
    """Whether a triple of the template can be one of the pattern."""
    nodes = (pattern.subject, pattern.predicate, pattern.object)
    pairs = zip(nodes, (given.subject, given.predicate, given.object), strict=True)
    return all(not (isinstance(n, ast.Term) and isinstance(m, alg.Const)) or n.spelling == m.term for n, m in pairs)


class _TimedReader:
    """A group under MATCH: windows become streams, the temporal operators stay."""

    def __init__(self, outer: Rewriter) -> None:
        self.outer = outer

    def group(self, group: ast.Group) -> ast.Group:
        return replace(group, elements=tuple(self.visit(e) for e in group.elements))

    def visit(self, node: Any) -> Any:
        match node:
            case ast.WindowGroup(ast.Term(spelling), group):
                self.outer.known_window(spelling, node.span)
                return ast.StreamGroup(ast.Term(spelling), self.group(group), span=node.span)
            case ast.StreamGroup(stream, group, window) if window is not None:
                read = self.outer.read_stream(stream, ast.Group(()), window, node.span)
                return replace(read, group=self.group(group))
            case ast.WindowGroup() | ast.Match() | ast.TripleTime() | ast.EventDeclaration() | ast.Current():
                raise Fault(
                    "event",
                    "this is not allowed inside MATCH {…}",
                    "use WINDOW :w {…} with a named window, SEQ, EQUALS and getSTARTTIME() there",
                    node.span,
                )
            case ast.EventGroup():
                self.outer.check_event(node)
                return node
            case ast.Group():
                return self.group(node)
            case ast.Query() if is_aggregated(node) or node.limit is not None or node.offset:
                raise Fault(
                    "event",
                    "a sub-SELECT with aggregates or LIMIT is not allowed inside MATCH {…}",
                    "put MATCH into the sub-SELECT: { SELECT (COUNT(*) AS ?n) { WINDOW :w { MATCH {…} } } }",
                    node.span,
                )
        return descend(node, self.visit)


def _aliased(expression: Any, aliases: dict[str, ast.Expression]) -> Any:
    """HAVING may name a column of the SELECT clause ([REQ] writes it so)."""
    return transform(expression, lambda e: aliases.get(e.name) if isinstance(e, ast.Var) else None)


def _certain(event: EventExpr) -> frozenset[str]:
    match event:
        case Basic(_, pattern):
            return alg.certain(pattern)
        case First(inner) | Last(inner):
            return _certain(inner)
        case Sequence(left, right, _):
            return _certain(left) | _certain(right)


def is_aggregated(query: ast.Query) -> bool:
    """Whether the query groups its solutions."""
    places = [query.form, query.having, query.order_by]
    return bool(query.group_by) or any(isinstance(n, ast.Aggregate) for p in places for n in ast.walk(p))
