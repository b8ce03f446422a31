"""Conditions that can never hold, judging by the text alone: warnings that every compilation gives.

* A variable that is not in scope where an expression reads it.  ``{ ?c :p ?x } SEQ { ?c :q ?y FILTER (?y > ?x) }``
  finds nothing, because a FILTER sees only its own group (SPARQL 1.1 §18.2.2); only the filters of an optional group,
  of a group that decides what is next or absent, and EXISTS see variables outside it.
* A variable that one branch of a UNION does not bind: a filter that reads it lets nothing of that branch through.
* A value further back in a run than the run has elements; and a condition that looks at the new element alone, which
  the first one need not fulfil (``repeat_checks``).
* A variable inside REPEAT, NOT or SEQ NOT that has the name of one beside it, and is another one.
* An operation on values of kinds that it does not take (``kind_warnings``).
* A text that is in lower or upper case only, compared with a constant in other letters: ``LANG(?x) = "en-US"``.

Constructs that tolerate errors (BOUND, COALESCE, IF, ``||``) are left alone: an unbound variable may be intended there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

from etalis_rules.messages import closest
from etalis_rules.terms import is_literal, parts

from . import ast
from .diagnostics import Diagnostic, Source
from .repeat_checks import asked_of_later_ones, too_far_back
from .scope import aggregates, branch_without, conjuncts, free_variables, in_scope, is_forgiving, projected, variables
from .value_kinds import OTHER, kind_of

_NOTHING: frozenset[str] = frozenset()
_LETTERS: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(("LANG", "LANGDIR", "LCASE", "MD5", "SHA1", "SHA256", "SHA384", "SHA512"), str.lower),
    "UCASE": str.upper,
}
_PARTS = frozenset({"CONTAINS", "STRSTARTS", "STRENDS"})
_LOST = "this filter lets nothing through"
_LOST_OF_A_BRANCH = "this filter lets nothing of it through"
_SHARE = {
    "REPEAT": "outside there are the BY variables and what AS names: REPEAT 3 BY ?key AS (LAST(?x) AS ?last)",
    "NOT": "what is absent agrees with what the other groups of the operator bind: bind it in one of these",
}

_OF_A_RUN = (
    "it sees the BY variables alone; a step that fails WHERE ends a run, too, and what AS names is compared behind "
    "the run: AS (LAST(?x) AS ?last) FILTER (?y > ?last)"
)
_WHAT_FOLLOWS = (
    "it sees what stands to the left; with what follows it compares in { { A } SEQ { C } } NOT { N FILTER (…) }"
)
_WHAT_FOLLOWS_A_PART = (
    "it sees what stands to the left; to compare with what follows, join { A } SEQ { B } SEQ { C } FILTER (…) and "
    "{ A } SEQ { C } by UNION"
)
Events = Mapping[str, ast.EventDeclaration]
Names = frozenset[str]

_SINCE_START = (
    "START binds nothing; derive an event for each instead, and begin with it: "
    "CONSTRUCT { ?m :expected true } AT END WHERE { { START } ?m a :Machine }"
)


def doubts(query: ast.Query, nodes: list[Any], source: Source, events: Events) -> Iterator[Diagnostic]:
    """The warnings about one query; ``nodes`` are its filters, BINDs, columns, calls and operators."""
    if not nodes:
        yield from _Finder(query, source, events, {}).query(query, _NOTHING)
        return
    from .kind_warnings import bound_kinds, kind_doubts  # a query that computes nothing does without it

    kinds = bound_kinds(query)
    yield from _Finder(query, source, events, kinds).query(query, _NOTHING)
    yield from kind_doubts(query, source, kinds)
    for node in nodes:
        yield from _in_other_letters(node, source)


class _Finder:
    def __init__(self, query: ast.Query, source: Source, events: Events, kinds: dict[str, str]) -> None:
        self.syntax = query
        self.source = source
        self.events = events
        self.kinds = kinds

    @cached_property
    def bound(self) -> Names:
        """The variables that some group of the query binds."""
        groups = (n for n in ast.walk(self.syntax) if isinstance(n, ast.Group | ast.Query))
        return _NOTHING.union(*map(in_scope, groups))

    @cached_property
    def encloses(self) -> bool:
        """Whether some operator of the query keeps variables to itself."""
        return any(_enclosed(n)[0] for n in ast.walk(self.syntax))

    # --- scope ---

    def query(self, query: ast.Query, given: Names) -> Iterator[Diagnostic]:
        """``given`` are the variables for which EXISTS substitutes a term."""
        if isinstance(query.form, ast.Fact):
            for group in (*query.form.since, *query.form.till):
                yield from self.group(group, _NOTHING)
        if query.where is None:
            return
        yield from self.group(query.where, given)
        for event in query.events:
            yield from self.group(event.group, given)
        solution = given | in_scope(query.where, self.events)
        keys = {k.variable.name for k in query.group_by if isinstance(k, ast.Projection)}
        keys |= {k.name for k in query.group_by if isinstance(k, ast.Var)}
        columns = query.form.projections if isinstance(query.form, ast.Select) else ()
        heads = [c.expression for c in columns if c.expression is not None]
        modifiers = [*query.having, *(k.expression for k in query.order_by)]
        called = [a for e in (*heads, *modifiers) for a in aggregates(e)]
        grouped = bool(query.group_by or query.having or called)
        for key in query.group_by:
            expression = key.expression if isinstance(key, ast.Projection) else key
            yield from self.expression(expression, solution, "all solutions are one group")
        for aggregate in called:
            yield from self.expression(aggregate.operand, solution, f"{aggregate.name} has no value")
        visible = frozenset(keys) | given if grouped else solution
        visible |= frozenset(v.name for v in query.values.variables) if query.values is not None else _NOTHING
        before_select = visible
        for column in columns:
            if column.expression is not None:
                yield from self.expression(column.expression, visible, f"?{column.variable.name} stays unbound")
            visible |= {column.variable.name}
        for condition in query.having:
            yield from self.having(condition, before_select, columns)
        for order in query.order_by:
            yield from self.expression(order.expression, visible, "this orders nothing", grouped)

    def having(self, e: ast.Expression, visible: Names, columns: Sequence[ast.Projection]) -> Iterator[Diagnostic]:
        """HAVING stands before SELECT: the names that SELECT gives are unbound in it (SPARQL 1.1 §18.2.4)."""
        meant = {c.variable.name: c.expression for c in columns if c.variable.name not in visible}
        for variable in () if is_forgiving(e) else free_variables(e):
            if (expression := meant.get(variable.name)) is not None:
                message = f"?{variable.name} has no value in HAVING, which comes before SELECT: no group passes it"
                hint = f"write what it stands for: {self._text(expression)}"
                yield self._warning("never", message, variable, hint)
                return
        yield from self.expression(e, visible, "this condition never holds", grouped=True)

    def group(self, group: ast.Group, given: Names, beside: Names = _NOTHING) -> Iterator[Diagnostic]:
        """``beside``: the variables of another group that filters at the top level of this one see."""
        scopes = [in_scope(element, self.events) for element in group.elements]
        inside = given.union(*scopes)
        before = given
        for element, scope in zip(group.elements, scopes, strict=True):
            match element:
                case ast.Filter(condition):
                    for part in conjuncts(condition):
                        yield from self.expression(part, inside | beside, _LOST)
                        yield from self.in_a_branch(part, given, group.elements, _LOST_OF_A_BRANCH)
                case ast.Bind(expression, variable):
                    late = next((v for v in free_variables(expression) if v.name in inside - before), None)
                    if late is None or is_forgiving(expression):
                        yield from self.expression(expression, before, f"?{variable.name} stays unbound")
                    else:
                        yield self._too_early(late, variable)
                case ast.Optional(inner):
                    yield from self.group(inner, given, before)
                    yield from self.across(inner, given, group.elements, "this OPTIONAL adds nothing there")
                case ast.Query():
                    yield from self.query(element, given & projected(element, self.events))
                case _:
                    yield from self.pattern(element, given)
                    others = (s for e, s in zip(group.elements, scopes, strict=True) if e is not element)
                    yield from self.not_shared(element, scope, _NOTHING.union(*others))
            before |= scope

    def not_shared(self, element: Any, scope: set[str], beside: Names) -> Iterator[Diagnostic]:
        """Variables of the elements of a run, or of what is absent, that have the names of those ``beside`` it."""
        for node in ast.walk(element) if beside and self.encloses else ():
            word, inner = _enclosed(node)
            names = (variables(inner) - scope) & beside if word else _NOTHING
            for variable in (v for v in ast.walk(inner) if isinstance(v, ast.Var) and v.name in names):
                message = f"this ?{variable.name} is another one than the ?{variable.name} beside the {word}"
                hint = _SINCE_START if isinstance(node, ast.SeqNot) and ast.is_start(node.left) else _SHARE[word]
                yield self._warning("not-shared", f"{message}, so the two need not agree", variable, hint)
                return

    def pattern(self, pattern: Any, given: Names, beside: Names = _NOTHING) -> Iterator[Diagnostic]:
        match pattern:
            case ast.Group():
                yield from self.group(pattern, given, beside)
            case ast.StreamGroup(_, ast.Group((ast.EventGroup() as event,))):
                yield from self.pattern(event, given, beside)
            case ast.EventGroup(group, ast.Var(hidden)):
                yield from self.group(group, given, beside - {hidden})
            case ast.GraphGroup(_, group) | ast.WindowGroup(_, group) | ast.StreamGroup(_, group, _):
                yield from self.group(group, given, beside)
            case ast.EventGroup(group) | ast.Within(ast.Group() as group):
                yield from self.group(group, given, beside)
            case ast.Minus(group) | ast.Current(group) | ast.Service(_, group, _):
                yield from self.group(group, given)
            case ast.EventDeclaration(_, group, _) | ast.Match(ast.Group() as group):
                yield from self.group(group, given)
            case ast.Skip(inner, after=after):
                yield from self.pattern(inner, given)
                if after is not None and (kind := kind_of(after, self.kinds)) not in ("", "time", OTHER):
                    message = f"{self._text(after)} is a {kind} and no time, so only the first match is kept"
                    yield self._warning("type-error", message, after, "write a time of the match, such as getENDTIME()")
            case _:
                yield from too_far_back(pattern, self.source)
                yield from asked_of_later_ones(pattern, self.source)
                for side, seen in ast.seen_by_filters(pattern):
                    yield from self.pattern(side, given, _NOTHING.union(*(in_scope(s, self.events) for s in seen)))
                    yield from self.across(side, given, seen, f"no {self._text(side)} counts there")

    def across(self, side: Any, given: Names, seen: Sequence[Any], effect: str) -> Iterator[Diagnostic]:
        """The filters of one side of an operator that read what only a branch of the ``seen`` sides binds."""
        inner = ast.alone(side)
        group = inner.group if isinstance(inner, ast.EventGroup) else side
        elements = group.elements if seen and isinstance(group, ast.Group) else ()
        filters = [element for element in elements if isinstance(element, ast.Filter)]
        own = given | in_scope(side, self.events) if filters else given
        for element in filters:
            for part in conjuncts(element.condition):
                yield from self.in_a_branch(part, own, seen, effect)

    def in_a_branch(self, e: Any, given: Names, patterns: Sequence[Any], effect: str) -> Iterator[Diagnostic]:
        """A condition that is an error in one branch of a UNION, as that leaves a variable unbound."""
        for variable in () if is_forgiving(e) else free_variables(e):
            branch = None if variable.name in given else branch_without(patterns, variable.name, self.events)
            if branch is not None:
                name, text = variable.name, self._text(e)
                message = f"the branch {self._text(branch)} of UNION leaves ?{name} unbound, so {effect}"
                hint = f"if the condition is not for that branch, write FILTER (!BOUND(?{name}) || {text})"
                yield self._warning("never", message, variable, hint)
                return

    def expression(self, e: Any, visible: Names, effect: str, grouped: bool = False) -> Iterator[Diagnostic]:
        for node in _exists(e):
            yield from self.group(node.group, visible)
        if e is None or is_forgiving(e):
            return
        for variable in free_variables(e):
            if variable.name not in visible:
                yield self._unbound(variable, visible, effect, grouped)
                return

    def _unbound(self, variable: ast.Var, visible: Names, effect: str, grouped: bool) -> Diagnostic:
        name = variable.name
        if grouped and name in self.bound:
            message = f"?{name} is neither grouped by nor inside an aggregate, so {effect}"
            return self._warning("never", message, variable, f"add ?{name} to GROUP BY, or take SAMPLE(?{name})")
        if name in self.bound:
            message = f"?{name} is not in scope here: it is bound in another group, so {effect}"
            hint = f"move it behind the groups that bind its variables: {{ … }} SEQ {{ … }} FILTER (… ?{name} …)"
            return self._warning("never", message, variable, self._of_the_operator(variable) or hint)
        near = closest(name, visible | self.bound)
        hint = f"did you mean ?{near}?" if near else "bind it in a pattern of the same group"
        return self._warning("never", f"nothing binds ?{name}, so {effect}", variable, hint)

    def _too_early(self, late: ast.Var, variable: ast.Var) -> Diagnostic:
        message = f"?{late.name} gets its value behind this BIND, so ?{variable.name} stays unbound"
        return self._warning("never", message, late, f"move the BIND behind the pattern that binds ?{late.name}")

    def _of_the_operator(self, variable: ast.Var) -> str:
        """What a filter may read instead, if an operator hides the variable from it."""
        hint = ""
        for node in ast.walk(self.syntax):
            for part, binding, advice in _hidden(node):
                if variable.name in in_scope(binding, self.events) and (part is None or _inside(variable, part)):
                    hint = advice
        return hint

    def _warning(self, code: str, message: str, node: Any, hint: str = "") -> Diagnostic:
        return self.source.diagnostic("warning", code, message, node.span.start, node.span.end, hint=hint)

    def _text(self, node: Any) -> str:
        return self.source.excerpt(node.span.start, node.span.end)


def _in_other_letters(node: Any, source: Source) -> Iterator[Diagnostic]:
    """A warning for each constant that a text beside it, which is in lower or upper case, cannot equal or contain."""
    for computed, constant in _compared(node):
        if not (isinstance(computed, ast.Call) and computed.name in _LETTERS and isinstance(constant, ast.Term)):
            continue
        text = parts(constant.spelling)[0] if is_literal(constant.spelling) else ""
        if (meant := _LETTERS[computed.name](text)) == text:
            continue
        case = "upper" if computed.name == "UCASE" else "lower"
        call, written = (source.excerpt(part.span.start, part.span.end) for part in (computed, constant))
        never = "is never a part of it" if isinstance(node, ast.Call) else "is never equal to it"
        message = f"{call} is in {case} case, so {written} {never}"
        hint = f'write "{meant}"'
        if computed.name == "LANG" and not isinstance(node, ast.Call):
            hint += f', or LANGMATCHES({call}, "{text}"), which also takes the variants of that language'
        span = constant.span
        yield source.diagnostic("warning", "letters", message, span.start, span.end, hint=hint)


def _compared(node: Any) -> Iterator[tuple[Any, Any]]:
    """What the node compares with what, in both orders where it has no direction."""
    match node:
        case ast.Binary("=" | "!=", left, right):
            yield left, right
            yield right, left
        case ast.In(operand, choices):
            yield from product((operand,), choices)
        case ast.Call(name, (whole, part, *_)) if name in _PARTS:
            yield whole, part


def _hidden(node: Any) -> Iterator[tuple[Any, Any, str]]:
    """The groups of an operator whose filters do not see another one of its groups, that other one, and what to do.

    None stands for all that is outside the operator.
    """
    match node:
        case ast.SeqNot(absent=absent, right=right) if right is not None:
            yield absent, right, _WHAT_FOLLOWS
        case ast.SeqOptional(optionals=optionals, right=right) if right is not None:
            yield from ((part, right, _WHAT_FOLLOWS_A_PART) for part in optionals)
        case ast.Repeat(pattern=pattern, absent=absent, until=until):
            yield None, pattern, _SHARE["REPEAT"]
            yield from ((part, pattern, _OF_A_RUN) for part in (absent, until) if part is not None)


def _inside(node: Any, whole: Any) -> bool:
    return bool(whole.span.start <= node.span.start < whole.span.end)


def _enclosed(node: Any) -> tuple[str, tuple[Any, ...]]:
    """An operator, and its groups whose variables are not those outside it, unless its other groups bind them, too."""
    match node:
        case ast.Repeat(pattern=pattern, absent=absent):
            return "REPEAT", (pattern, absent)
        case ast.SeqNot(absent=absent) | ast.Combined(ast.Operator.NOT, _, absent):
            return "NOT", (absent,)
    return "", ()


def _exists(e: Any) -> Iterator[ast.Exists]:
    """The EXISTS of an expression, but not those nested inside them."""
    stack = [e]
    while stack:
        here = stack.pop()
        if isinstance(here, ast.Exists):
            yield here
        else:
            stack.extend(ast.children(here))
