"""What each operator of the plan answers over a whole stream: [EP] §4.2, one function an operator.

Absence, NEXT and REPEAT are in ``absence`` and ``runs``.

Solutions are lists (multisets).  The two halves of the LeftJoin family are written as printed there, with
``t'ω ≤ tω`` for OPTIONAL and F on the combined solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from etalis_compiler import ast

from . import absence, optional_parts, policies, records, runs, skipping
from .beginning import answers_before, start_by_itself
from .expressions import Environment, holds, value_or_unbound
from .matching import Fact, Scope, match_block
from .plan import (
    Beginning,
    Block,
    Condition,
    Difference,
    Extended,
    Filtered,
    InGraph,
    InStream,
    OneEvent,
    Optionally,
    Outer,
    Pair,
    Plan,
    Rows,
    Runs,
    Skipped,
    Sub,
    Union,
    Unit,
    Without,
    beginnings,
    plain_walk,
    plan_group,
    variables,
)
from .reports import of_event, report
from .solutions import (
    AFTER,
    ALLEN,
    BEFORE,
    UNIT,
    Bindings,
    Instant,
    Solution,
    bindings,
    combine,
    compatible,
    in_time,
    not_after,
    related,
    simultaneous,
    strictly_before,
)
from .substitution import substituted


@dataclass(frozen=True)
class Dataset:
    """What patterns range over: the default scope, background graphs by IRI, streams by IRI."""

    default: Scope
    graphs: dict[str, Scope] = field(default_factory=dict)
    streams: dict[str, Scope] = field(default_factory=dict)
    records: Sequence[tuple[records.Record, Instant]] = ()


@dataclass(frozen=True)
class Place:
    """Where a pattern stands: its dataset, the scope of its triples, the policy, and the filters' environment."""

    dataset: Dataset
    scope: Scope
    policy: str = "unrestricted"
    timed: bool = True  # whether triples here may match occurrences
    stream: str | None = None  # the stream that they are restricted to
    moment: tuple[int, int, Instant] | None = None  # inside EVENT, that of the event
    looks_back: bool = False  # inside EXISTS
    given: Bindings = ()  # inside EXISTS, what the solutions around it have put into its patterns

    def environment(self, solution: Solution, plan_variables: frozenset[str] = frozenset()) -> Environment:
        mu, start, end, known = solution[:4]
        if self.moment is not None:
            start, end, known = self.moment
        return Environment(dict(mu), start, end, known, self.exists, None, plan_variables)

    def exists(self, group: ast.Group, outer: Solution) -> bool:
        """Some solution of ``substitute(group, μ)`` ends by the end of the group EXISTS is written in.

        It is looked for in what is there by then, so nothing that is absent may still come.
        """
        mu = dict(self.given) | dict(outer.mu)
        given = bindings(mu)
        plan = plan_group(substituted(group, mu))
        place = replace(self if outer.timeless else self.by(outer), policy="unrestricted", looks_back=True, given=given)
        return any(compatible(s.mu, given) and not_after(s, outer) for s in answers(plan, place))

    def by(self, outer: Solution) -> Place:
        """The same place with what is there by the end of a solution."""
        data = self.dataset
        streams = {name: scope.by(outer) for name, scope in data.streams.items()}
        events = [(r, known) for r, known in data.records if r.end <= outer.end and known <= outer.known]  # type: ignore[operator]
        dataset = replace(data, default=data.default.by(outer), streams=streams, records=events)
        return replace(self, dataset=dataset, scope=self.scope.by(outer))

    def in_time(self) -> Place:
        """The same place with what was known when it ended: all that a decision about what is next or absent sees."""
        data = self.dataset
        streams = {name: scope.in_time() for name, scope in data.streams.items()}
        events = [(record, known) for record, known in data.records if known <= record.end]
        dataset = replace(data, default=data.default.in_time(), streams=streams, records=events)
        return replace(self, dataset=dataset, scope=self.scope.in_time())

    @property
    def waits(self) -> bool:
        """Whether what is absent here may still come; an event is complete when it comes."""
        return self.moment is None and not self.looks_back

    def fulfils(self, solution: Solution, when: tuple[Condition, ...]) -> bool:
        env = self.environment(solution)
        return all(holds(c, env) for c in when)


def answers(plan: Plan, place: Place) -> list[Solution]:
    """The solutions of a plan."""
    match plan:
        case Unit():
            return [UNIT]
        case Block(patterns):
            return match_block(patterns, place.scope)
        case Pair("NEXT"):
            return _pair(plan, place.in_time())
        case Pair():
            return _pair(plan, place)
        case Outer():
            return _outer(plan, place)
        case Without():
            return absence.without(plan, place.in_time())
        case Optionally():
            return optional_parts.optionally(plan, place.in_time())
        case Runs():
            return runs.runs(plan, place.in_time())
        case Beginning():
            return start_by_itself(place)
        case Skipped():
            return skipping.kept(plan, place.in_time())
        case Union(left, right):
            return answers(left, place) + answers(right, place)
        case Difference(left, right):
            return _difference(answers(left, place), right, place)
        case Filtered(child, when):
            kept = [s for s in answers(child, place) if place.fulfils(s, when)]
            asked = [n.group for n in plain_walk(when) if isinstance(n, ast.Exists)]
            waits = place.waits and any(may_match(group, place.timed) for group in asked)
            return [_decided_late(s) for s in kept] if waits else kept
        case Extended(child, variable, expression):
            return [_extended(s, variable, expression, place) for s in answers(child, place)]
        case Rows(values):
            return [_row(values, row) for row in values.rows]
        case InGraph(name, child):
            inner = replace(place, timed=False)
            return _scoped(name, child, inner, place.dataset.graphs)
        case InStream(name, child):
            inner = replace(place, timed=True)
            return _scoped(name, child, inner, place.dataset.streams, of_stream=True)
        case OneEvent():
            return records.of_one_event(plan, place, answers)
        case Sub(query, where):
            solutions = answers(where, replace(place, policy=query.policy or place.policy))
            if place.moment is not None:
                reports = of_event(query, where, solutions, place.exists, place.moment)
            else:
                reports = report(query, where, solutions, place.exists, may_match(where, place.timed))
            return [Solution(r.mu, r.start, r.end, r.known) for r in reports]
    raise TypeError(f"not a plan: {plan!r}")


def _decided_late(s: Solution) -> Solution:
    """A timeless solution that depends on what the stream holds is known when the stream has ended."""
    return s._replace(known=AFTER) if s.timeless else s


def may_match(plan: Plan | ast.Group, timed: bool = True) -> bool:
    """Whether some pattern, wherever it stands, can match an occurrence: a triple that is not inside GRAPH."""
    return any(True for _ in _timed_blocks(plan, timed))


def _timed_blocks(plan: object, timed: bool) -> Iterator[object]:
    match plan:
        case Block() | ast.Triples():
            if timed:
                yield plan
        case InGraph(_, child) | ast.GraphGroup(_, child):
            yield from _timed_blocks(child, False)
        case InStream(_, child) | ast.StreamGroup(_, child):
            yield from _timed_blocks(child, True)
        case _:
            for child in _children(plan):
                yield from _timed_blocks(child, timed)


def _children(node: object) -> Iterator[object]:
    if isinstance(node, tuple):
        yield from node
    elif hasattr(node, "__dataclass_fields__"):
        yield from (getattr(node, name) for name in node.__dataclass_fields__ if name != "span")


def _scoped(
    name: ast.Var | ast.Term, child: Plan, place: Place, scopes: dict[str, Scope], of_stream: bool = False
) -> list[Solution]:
    """GRAPH and STREAM: the child over one scope, or over each with its IRI bound to the variable."""

    def inside(iri: str) -> Place:
        return replace(place, scope=scopes.get(iri, Scope({})), stream=iri if of_stream else place.stream)

    if isinstance(name, ast.Term):
        return answers(child, inside(name.spelling))
    found = []
    for iri in sorted(scopes):
        here = UNIT._replace(mu=((name.name, iri),))
        for s in answers(child, inside(iri)):
            if compatible(here.mu, s.mu):
                found.append(combine(here, s))
    return found


def _row(values: ast.Values, row: tuple[ast.Term | None, ...]) -> Solution:
    mu = {v.name: t.spelling for v, t in zip(values.variables, row, strict=True) if t is not None}
    return UNIT._replace(mu=bindings(mu))


def _extended(s: Solution, variable: str, expression: ast.Expression, place: Place) -> Solution:
    """Extend(μ, var, expr): an error leaves the variable unbound."""
    value = value_or_unbound(expression, place.environment(s))
    return s._replace(mu=bindings(dict(s.mu) | {variable: value}))


Related = Callable[[Solution, Solution], bool]
RELATED: dict[str, Related] = {
    "AND": lambda left, right: True,
    "SEQ": strictly_before,
    "EQUALS": simultaneous,
    **{relation: partial(related, relation) for relation in ALLEN},
}


def _pair(plan: Pair, place: Place) -> list[Solution]:
    """All compatible pairs in the operator's temporal relation, or those that a policy picks."""
    before = answers_before if plan.operator in ("SEQ", "NEXT") else answers
    left, right = before(plan.left, place), answers(plan.right, place)
    if plan.operator == "NEXT":
        left, right = absence.in_stream(left), absence.in_stream(right)
        absence.timed(left, right)
        fits_across = partial(absence.across, when=plan.across, place=place)
        holds_between = partial(absence.next_of, right, fits=fits_across)
    else:
        if Beginning() in beginnings(plan.left):
            absence.timed(right)
        holds_between = RELATED[plan.operator]

    def fits(a: Solution, b: Solution) -> bool:
        if not (compatible(a.mu, b.mu) and in_time(a, b) and in_time(b, a) and holds_between(a, b)):
            return False
        return place.fulfils(combine(a, b), plan.when)

    if plan.operator == "AND" or place.policy == "unrestricted":
        return [combine(a, b) for a in left for b in right if fits(a, b)]
    pairs = policies.consumed(left, right, fits, place.policy, variables(plan.left), variables(plan.right))
    return [combine(left[i], right[j]) for i, j in pairs]


def _outer(plan: Outer, place: Place) -> list[Solution]:
    """LeftJoin, SeqRightJoin, EqLeftJoin: the positive half, then the mandatory solutions without a partner."""
    mandatory, optional = answers(plan.mandatory, place), absence.in_stream(answers(plan.optional, place))
    if plan.operator == "EQUALSOPTIONAL" or (plan.operator != "OPTIONAL" and place.policy != "unrestricted"):
        mandatory = absence.in_stream(mandatory)

    def fits(m: Solution, o: Solution) -> bool:
        if not compatible(m.mu, o.mu) or not place.fulfils(combine(m, o), plan.when):
            return False
        if plan.operator == "OPTIONAL":
            return not_after(o, m)
        if plan.operator == "OPTIONALSEQ":
            return strictly_before(o, m) and not_after(o, m)
        return simultaneous(m, o) and not_after(o, m)

    if plan.operator == "OPTIONAL" or place.policy == "unrestricted":
        pairs = [(i, j) for i, m in enumerate(mandatory) for j, o in enumerate(optional) if fits(m, o)]
    else:
        pairs = _picked(plan, place.policy, mandatory, optional, fits)
    partnered = {i for i, _ in pairs}
    late = place.waits and may_match(plan.optional, place.timed)
    alone = [_decided_late(m) if late else m for i, m in enumerate(mandatory) if i not in partnered]
    return [combine(mandatory[i], optional[j]) for i, j in pairs] + alone


def _picked(
    plan: Outer, policy: str, mandatory: list[Solution], optional: list[Solution], fits: Related
) -> list[tuple[int, int]]:
    """The positive half under a consuming policy is that of SEQ and EQUALS: the right side checks the left's goals."""
    names = variables(plan.mandatory), variables(plan.optional)
    if plan.operator == "EQUALSOPTIONAL":
        return policies.consumed(mandatory, optional, fits, policy, *names)
    turned = policies.consumed(optional, mandatory, lambda o, m: fits(m, o), policy, *reversed(names))
    return [(i, j) for j, i in turned]


def _difference(left: list[Solution], right: Plan, place: Place) -> list[Solution]:
    """Minus: without those that have a compatible solution with a shared variable, ended by their own end."""
    others = answers(right, replace(place, policy="unrestricted"))

    def removed(s: Solution) -> bool:
        domain = {v for v, _ in s.mu}
        return any(compatible(s.mu, o.mu) and not_after(o, s) and any(v in domain for v, _ in o.mu) for o in others)

    late = place.waits and may_match(right, place.timed)
    return [_decided_late(s) if late else s for s in left if not removed(s)]


def scope_of(facts: dict[Fact, Instant], background: set[tuple[str, str, str]]) -> Scope:
    """Occurrences and, timeless and known from the start, background triples."""
    return Scope(facts | {(s, p, o, None, None): BEFORE for s, p, o in background})
