"""The operators of the temporal algebra as lazy iterators over solutions.

Every operator is a function of incoming bindings: of the solutions that the pattern has bottom-up, it gives those
compatible with the bindings, joined with them.  Bindings that must not be passed in (see ``scoping``) are held back and
compared afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from etalis_rules.algebra import (
    BGP,
    ONLY_FORWARD,
    Block,
    Const,
    Expr,
    Extend,
    Filter,
    GraphNames,
    Join,
    Minus,
    Outer,
    PathPattern,
    Pattern,
    Record,
    SubSelect,
    Table,
    Union,
    Var,
    Within,
    certain,
    equal_pairs,
    only_forward,
    pinned,
    scope,
    transform,
)
from etalis_rules.relations import Op, OuterOp, Relation, holds

from etalis_py.sparql.bgp import compile_bgp, smallest_first
from etalis_py.sparql.errors import Unsupported
from etalis_py.sparql.kept_solutions import keep
from etalis_py.sparql.paths import compile_path
from etalis_py.sparql.run import Bindings, EvaluationRun, Runner, Solution
from etalis_py.sparql.scoping import Env, Names, hidden_from_outer_join, loose, mentioned_in, receives
from etalis_py.sparql.selects import compile_select
from etalis_py.sparql.shared_state import SharedState
from etalis_py.sparql.whole_events import compile_event
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

if TYPE_CHECKING:
    from etalis_py.sparql.equal_terms import Compile, Equality

Temporal = Callable[[int, int, int, int], bool]
"""A condition on the intervals [start, end] of the left and of the right side."""


@cache
def temporal(op: Relation) -> Temporal:
    """The test of a temporal relation between two intervals; it always holds if one of them is timeless."""
    relation = holds(op)
    timeless = TIMELESS_START, TIMELESS_END
    if relation(*timeless, 0, 0) and relation(0, 0, *timeless):
        return relation  # its empty interval does so by itself
    return lambda s1, e1, s2, e2: e1 == TIMELESS_END or e2 == TIMELESS_END or relation(s1, e1, s2, e2)


def compile_pattern(pattern: Pattern, env: Env, registry: SharedState) -> Runner:
    """The operator for a pattern, given what is known about the bindings that will be passed in."""
    match pattern:
        case BGP():
            return compile_bgp(pattern, env)
        case PathPattern():
            return compile_path(pattern, env)
        case Block(child):
            return _block(child, compile_pattern(child, env, registry))
        case GraphNames(_, _, child) if child is not None:
            return _each_graph(pattern, env, registry)
        case GraphNames():
            return _graph_names(pattern, env)
        case Table():
            return _table(pattern, env)
        case Join(Op.AND):
            return _join(_flat(pattern), env, registry)
        case _ if only_forward(pattern):
            raise Unsupported(
                f"{ONLY_FORWARD} are not looked for backwards; make a rule of them, CONSTRUCT {{ … }} WHERE {{ … }}, "
                "and ask for the triple that it derives"
            )
        case Join(op, left, right):
            return _pair(left, right, temporal(op), env, registry)
        case Record():
            return compile_event(pattern, env, registry, compile_pattern)
        case Union(left, right):
            return _union(compile_pattern(left, env, registry), compile_pattern(right, env, registry))
        case Outer():
            return _outer_join(pattern, env, registry)
        case Minus():
            return _minus(pattern, env, registry)
        case Filter(child, conditions):
            return _filter(child, conditions, env, registry)
        case Extend():
            return _extend(pattern, env, registry)
        case Within():
            return _within(pattern, env, registry)
        case SubSelect(select):
            return compile_select(select, env, registry, compile_pattern)
    raise TypeError(f"not a pattern: {pattern!r}")


def enter(pattern: Pattern, env: Env, registry: SharedState) -> Runner:
    """The operator for a pattern that is evaluated once for each solution of another one.

    If binding variables first does not help (a sub-SELECT with LIMIT, an unconnected part), its solutions are computed
    once and kept in a hash index.  A variable that is only perhaps bound, such as one of BIND or OPTIONAL, helps where
    it is.
    """
    if receives(pattern, env.certain):
        return compile_pattern(pattern, env, registry)
    kept = keep(pattern, compile_pattern(pattern, env.only(frozenset()), registry), env)
    helping = [v for v in sorted(scope(pattern) & env.seen) if receives(pattern, env.certain | {v})]
    if not helping:
        return kept
    direct: Runner | None = None  # compiled when it is first needed: both ways of each part in a nest are very many

    def run_entered(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        nonlocal direct
        if not any(v in mu for v in helping):
            return kept(mu, run)
        if direct is None:
            direct = compile_pattern(pattern, env, registry)
        return direct(mu, run)

    return run_entered


# --- joins -----------------------------------------------------------------------------------------------------


def _flat(pattern: Pattern) -> Iterator[Pattern]:
    """The parts of joins inside one another, from left to right."""
    waiting = [pattern]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Join) and part.op is Op.AND:
            waiting += (part.right, part.left)
        else:
            yield part


def _opening(part: Pattern) -> Pattern:
    """The leaf of a part that is evaluated first, if it has one."""
    match part:
        case Extend(inner) | Filter(inner) | Within(inner) | Block(inner) | Minus(inner) | Outer(_, inner):
            return _opening(inner)
    return part


def _rank(part: Pattern, env: Env) -> int:
    """The sort key of the parts of a join: small parts come first, then connected ones, paths with open ends last.

    What is connected may bind what connects the others, so even a small part that is not connected waits for it.
    """
    connected = bool(scope(part) & env.seen) or not scope(part)
    match part:
        case Table():
            return 0
        case BGP() | GraphNames():
            return 1 if connected else 3
        case PathPattern(subject, _, object_, _, _):
            anchored = any(isinstance(n, Const) or n.name in env.seen for n in (subject, object_))
            return 1 if anchored else 6
    opening = _opening(part)
    return 2 if connected or isinstance(opening, Table) else 3 if isinstance(opening, BGP | Union) else 4


def _cheapest(parts: Sequence[Pattern], env: Env) -> int:
    """The place of the first part with the least rank; tables stand before the others, so none has less than 1."""
    least, found = 7, 0
    for place, part in enumerate(parts):
        rank = _rank(part, env)
        if rank < least:
            least, found = rank, place
            if rank <= 1:
                break
    return found


def _join(parts: Iterable[Pattern], env: Env, registry: SharedState, given: Sequence[Equality] = ()) -> Runner:
    """Join parts in the cheapest order, as Join is associative and commutative; what is ``given`` will be tested."""
    parts = sorted(parts, key=lambda part: not isinstance(part, Table))
    result: Runner | None = None
    while parts:
        part = parts.pop(_cheapest(parts, env))
        if result is None:
            result = _looked_up(part, given, env, registry, compile_pattern)
        else:
            result = _paired(result, _looked_up(part, given, env, registry, enter))
        env = env.after(part)
    assert result is not None
    return result


def _paired(first: Runner, second: Runner) -> Runner:
    def run_join(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        for m1, s1, e1 in first(mu, run):
            for m2, s2, e2 in second(m1, run):
                yield m2, s1 if s1 < s2 else s2, e1 if e1 > e2 else e2

    return run_join


def _pair(left: Pattern, right: Pattern, relation: Temporal, env: Env, registry: SharedState) -> Runner:
    """A join whose sides are related in time."""
    first = compile_pattern(left, env, registry)
    second = enter(right, env.after(left), registry)

    def run_pair(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        for m1, s1, e1 in first(mu, run):
            for m2, s2, e2 in second(m1, run):
                if relation(s1, e1, s2, e2):
                    yield m2, s1 if s1 < s2 else s2, e1 if e1 > e2 else e2

    return run_pair


def _outer_join(pattern: Outer, env: Env, registry: SharedState) -> Runner:
    """A mandatory solution with every partner that satisfies both conditions, or alone if there is none."""
    mandatory, optional, condition = pattern.mandatory, pattern.optional, pattern.condition
    relation = temporal(pattern.op)
    hidden = (hidden_from_outer_join(mandatory, optional, condition) & env.seen) - env.given
    env = env.hiding(hidden)
    first = compile_pattern(mandatory, env, registry)
    second = _looked_up(optional, tuple(equal_pairs(condition)), env.after(mandatory), registry, enter)
    visible = scope(mandatory) | scope(optional)
    test = registry.test(condition, visible, env.after(mandatory).after(optional))

    def run_outer(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        for m1, s1, e1 in first(mu, run):
            alone = True
            for m2, s2, e2 in second(m1, run):
                if not relation(s1, e1, s2, e2):
                    continue
                start, end = (s1 if s1 < s2 else s2), (e1 if e1 > e2 else e2)
                if test is None or test(m2, start, end, run):
                    alone = False
                    yield m2, start, end
            if alone:
                yield m1, s1, e1

    return holding_back(run_outer, hidden)


def _minus(pattern: Minus, env: Env, registry: SharedState) -> Runner:
    """Left solutions without a right one that is compatible, shares a bound variable, and ends no later.

    The right side is evaluated by itself: only variables that it certainly binds are passed in; those that it may bind
    are compared here, since whether a variable is shared depends on what the right solution itself binds.
    """
    left, right = pattern.left, pattern.right
    shared = frozenset(pattern.scope) & scope(right)
    if not shared:
        return compile_pattern(left, env, registry)
    hidden = ((shared - certain(left)) & env.seen) - env.given
    env = env.hiding(hidden)
    first = compile_pattern(left, env, registry)
    compared = tuple(sorted(loose(right, shared) - env.given))
    passed = tuple(sorted((shared & certain(right)) | env.given))
    second = enter(right, env.after(left).only(frozenset(passed)), registry)
    sharing = tuple(sorted(shared - frozenset(compared)))
    ended = temporal(OuterOp.MINUS)

    def run_minus(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        for solution in first(mu, run):
            m1, s1, e1 = solution
            shares = any(v in m1 for v in sharing)
            own = [(v, m1[v]) for v in compared if v in m1]
            if shares or own:
                inner = {v: m1[v] for v in passed if v in m1}
                if any(ended(s1, e1, s2, e2) and _excludes(m2, own, shares) for m2, s2, e2 in second(inner, run)):
                    continue
            yield solution

    return holding_back(run_minus, hidden)


def _excludes(mu: Bindings, own: list[tuple[str, str]], shares: bool) -> bool:
    for variable, value in own:
        other = mu.get(variable)
        if other is not None:
            if other != value:
                return False
            shares = True
    return shares


def _union(first: Runner, second: Runner) -> Runner:
    def run_union(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        yield from first(mu, run)
        yield from second(mu, run)

    return run_union


def holding_back(runner: Runner, hidden: Names) -> Runner:
    """An operator that does not pass the hidden bindings in, but joins them with the solutions afterwards."""
    if not hidden:
        return runner
    names = tuple(sorted(hidden))

    def run_hidden(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        own = [(v, mu[v]) for v in names if v in mu]
        if not own:
            yield from runner(mu, run)
            return
        rest = {v: t for v, t in mu.items() if v not in hidden}
        for m, s, e in runner(rest, run):
            if all(m.get(v, t) == t for v, t in own):
                yield {**m, **dict(own)}, s, e

    return run_hidden


# --- one child -------------------------------------------------------------------------------------------------


def _filter(child: Pattern, conditions: tuple[Expr, ...], env: Env, registry: SharedState) -> Runner:
    hidden = (loose(child, mentioned_in(conditions)) & env.seen) - env.given
    env = env.hiding(hidden)
    test = registry.test(conditions, scope(child), env.after(child))
    if test is None:
        return compile_pattern(child, env, registry)
    inner = _narrowed(child, conditions, env, registry)

    def run_filter(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        for solution in inner(mu, run):
            m, s, e = solution
            if test(m, s, e, run):
                yield solution

    return holding_back(run_filter, hidden)


def _narrowed(child: Pattern, conditions: tuple[Expr, ...], env: Env, registry: SharedState) -> Runner:
    """The solutions that may satisfy the conditions, found without reading all others where that is possible."""
    if any(map(pinned, conditions)):
        from etalis_py.sparql.equal_terms import one_by_one

        if (found := one_by_one(child, conditions, env, registry, compile_pattern)) is not None:
            return found
    given = tuple(equal_pairs(conditions))
    return _equated(child, given, env, registry) if given else compile_pattern(child, env, registry)


def _equated(child: Pattern, given: Sequence[Equality], env: Env, registry: SharedState) -> Runner:
    from etalis_py.sparql.equal_terms import unconnected

    match child:
        case Block(inner):
            return _block(inner, _equated(inner, given, env, registry))
        case Join(Op.AND):
            return _join(_flat(child), env, registry, given)
    if parts := unconnected(child, given):
        joined = smallest_first(parts, lambda order: _join(order, env, registry, given))
        return _block(child, joined) if registry.timed else joined
    return _looked_up(child, given, env, registry, compile_pattern)


def _looked_up(part: Pattern, given: Sequence[Equality], env: Env, registry: SharedState, how: Compile) -> Runner:
    """A part of which only solutions that may satisfy the equalities are needed."""
    if not given:
        return how(part, env, registry)
    from etalis_py.sparql.equal_terms import looked_up  # few patterns have any

    return looked_up(part, given, env, registry, how)


def _extend(pattern: Extend, env: Env, registry: SharedState) -> Runner:
    """BIND: an error leaves the variable unbound; a binding passed in must have the same term."""
    child, name = pattern.child, pattern.variable
    hidden = (loose(child, mentioned_in((pattern.expression,))) & env.seen) - env.given
    env = env.hiding(hidden)
    inner = compile_pattern(child, env, registry)
    value = registry.value(pattern.expression, scope(child), env.after(child))

    def run_extend(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        for m, s, e in inner(mu, run):
            term = value(m, s, e, run)
            if not term:
                yield m, s, e
            elif m.get(name, term) == term:
                yield {**m, name: term}, s, e

    return holding_back(run_extend, hidden)


def _block(child: Pattern, inner: Runner) -> Runner:
    """A block of triples and paths that was written together: its solutions are a set over variables and interval."""
    names = tuple(sorted(scope(child)))

    def run_block(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        seen = set()
        for solution in inner(mu, run):
            m, s, e = solution
            key = (*[m[n] for n in names], s, e)
            if key not in seen:
                seen.add(key)
                yield solution

    return run_block


def _within(pattern: Within, env: Env, registry: SharedState) -> Runner:
    """WITHIN: solutions with end − start ≤ bound; a timeless solution has no duration and passes."""
    bound = pattern.bound
    if bound.events:
        raise Unsupported(
            f"WITHIN {bound.events} EVENTS bounds a number of solutions, not the duration of a group; "
            "write it after the WHERE clause"
        )
    inner = compile_pattern(pattern.child, env, registry)

    def run_within(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        for solution in inner(mu, run):
            _, s, e = solution
            if e == TIMELESS_END or e <= bound.after(s):
                yield solution

    return run_within


# --- leaves ----------------------------------------------------------------------------------------------------


def _graph_names(pattern: GraphNames, env: Env) -> Runner:
    graph = pattern.graph

    def run_graph_names(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        wanted = graph.term if isinstance(graph, Const) else mu.get(graph.name)
        for g in run.source.graph_names():
            if wanted is None:
                yield {**mu, graph.name: g}, TIMELESS_START, TIMELESS_END  # type: ignore[union-attr]
            elif g == wanted:
                yield mu, TIMELESS_START, TIMELESS_END

    return run_graph_names


def _each_graph(pattern: GraphNames, env: Env, registry: SharedState) -> Runner:
    """The child evaluated for each named graph by itself; its solutions are then joined with the incoming bindings.

    The graph is a constant in the child, which is compiled when the graph is first met.
    """
    graph, inner, child = pattern.graph, pattern.inner, pattern.child
    assert isinstance(graph, Var)
    assert inner is not None
    assert child is not None
    own = env.only(frozenset())
    compiled: dict[str, Runner] = {}
    shared = tuple(sorted(scope(child) & env.seen))
    given = tuple(sorted(env.given))

    def run_each_graph(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        wanted = mu.get(graph.name)
        into = {v: mu[v] for v in given if v in mu}
        for g in run.source.graph_names():
            if wanted is not None and g != wanted:
                continue
            runner = compiled.get(g)
            if runner is None:
                runner = compiled[g] = compile_pattern(_in_graph(child, inner, g), own, registry)
            for solution, s, e in runner(into, run):
                if solution.get(graph.name, g) == g and all(
                    mu.get(v, solution[v]) == solution[v] for v in shared if v in solution
                ):
                    yield {**mu, **solution, graph.name: g}, s, e

    return run_each_graph


def _in_graph(pattern: Pattern, inner: Var, graph: str) -> Pattern:
    """The pattern with a graph's name in the place of the variable that stands for it."""
    return transform(pattern, lambda node: Const(graph) if node == inner else None)


def _table(pattern: Table, env: Env) -> Runner:
    rows = [{v: t for v, t in zip(pattern.variables, row, strict=True) if t} for row in pattern.rows]
    if rows == [{}]:
        return lambda mu, run: iter(((mu, TIMELESS_START, TIMELESS_END),))
    may_clash = bool(env.seen & frozenset(pattern.variables))

    def run_table(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        for row in rows:
            if not may_clash or all(mu.get(v, t) == t for v, t in row.items()):
                yield {**mu, **row}, TIMELESS_START, TIMELESS_END

    return run_table
