"""Shard analysis of windowed queries: the variables by which the content of windows may be divided.

A query can be divided by a variable *k* if the answers with k = x are those of the same query over the triples that
have x where their patterns have ?k, evaluated at the same times.  That takes two conditions.

**The pattern.**  Every triple pattern over a window has ?k; every solution uses at least one triple of a window; where
a solution depends on absence (the right of OPTIONAL and MINUS, EXISTS), ?k is bound before.  Then no solution looks at
triples with two values of ?k.  ?k must be in the answer, so that it identifies the shard of a row and keeps equal rows
together; groups must be by ?k; ORDER BY, LIMIT, ASK, DESCRIBE and aggregates over everything are not divisible, nor are
patterns that look at whole items (MATCH, names of graphs, timestamp()) or join triples in an unbounded way (paths).

**The evaluation times.**  A shard knows only its own items, so each time at which the whole query is evaluated must be
an evaluation time of the shard as well, or one at which the shard has nothing to report:

=================================== ===================================================================================
RSTREAM, WINDOW CLOSE, PERIODIC, AT by the clock, the same in every shard
… and NON-EMPTY CONTENT             when every solution uses every window: where there is an answer, the windows of its
                                    shard are not empty either
ISTREAM, WINDOW CLOSE, PERIODIC, AT the evaluation before was by the clock, too; with NON-EMPTY CONTENT it is the last
                                    one at which *any* key had something: not divisible
ISTREAM, DSTREAM on what enters     (CONTENT CHANGE, NON-EMPTY CONTENT alone) when all windows only ever grow: what
                                    other keys bring changes no answer, and so is never new
RSTREAM on what enters              gives everything again whenever any key brings something: divisible over the items
                                    of the instant only
DSTREAM by the clock                tells that a key has gone, maybe after the last item of that key: a shard does not
                                    know how long the stream goes on for the others
=================================== ===================================================================================

With evaluation by the clock, some window that every solution uses must forget (slide, or hold only the instant), or all
of them must be intervals that report when they close: a shard's stream ends with its own last item, and evaluations
after that must have nothing to report.  Windows that count are not divisible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.relations import Op, OuterOp

from .plan import Count, Identity, Interval, Landmark, Now, Sliding, Strategy, WindowPlan, WindowUse

POSITIONS = ("subject", "predicate", "object")
_CLOCK = frozenset(("WC", "P", "AT"))

Route = tuple[ir.Leaf, str]
"""Triples of a stream that a query reads, and the position by which they are routed."""


@dataclass(frozen=True, slots=True)
class WindowShards:
    """The division of queries that feed one another: by ``keys`` (query → variable), or not at all (``reason``)."""

    plans: tuple[WindowPlan, ...]
    keys: tuple[tuple[str, str], ...] = ()
    routes: tuple[Route, ...] = ()
    reason: str = ""


class _Undivided(Exception):
    """Raised if a query cannot be divided, with the reason in words for the user."""


def shard_keys_of(plan: WindowPlan, *, stored: bool = False) -> dict[str, tuple[Route, ...]] | str:
    """The variables by which a query may be divided, each with the routes of its shards; or why there is none.

    ``stored``: the stored default graph is not empty.
    """
    routes: dict[str, tuple[Route, ...]] = {}
    reasons: list[str] = []
    try:
        _check_query(plan)
        for variable in plan.variables:
            try:
                routes[variable] = _divided(plan, variable, stored)
            except _Undivided as why:
                reasons.append(f"?{variable}: {why}")
    except _Undivided as why:
        return str(why)
    return routes or "no variable of its answer divides it: " + ", ".join(reasons or ["it has none"])


def networks(plans: Sequence[WindowPlan]) -> list[tuple[WindowPlan, ...]]:
    """The plans in groups that feed one another, each in the order of the program."""
    group = list(range(len(plans)))
    for maker, producer in enumerate(plans):
        for reader, plan in enumerate(plans):
            if producer.feeds and producer.feeds in plan.streams:
                old, new = group[reader], group[maker]
                group = [new if g == old else g for g in group]
    return [tuple(p for p, g in zip(plans, group, strict=True) if g == n) for n in dict.fromkeys(group)]


def divide(plans: tuple[WindowPlan, ...], *, stored: bool = False) -> WindowShards:
    """Divide a network of queries, each by a key, so that derived triples stay in their shard."""
    networks_of = []
    for plan in plans:
        keys = shard_keys_of(plan, stored=stored)
        if isinstance(keys, str):
            return WindowShards(plans, reason=f"{plan.name}: {keys}" if len(plans) > 1 else keys)
        networks_of.append(list(keys.items()))
    reason = ""
    for chosen in islice(product(*networks_of), _MOST_CHOICES):
        divided = _meeting(plans, chosen)
        if not divided.reason:
            return divided
        reason = reason or divided.reason
    return WindowShards(plans, reason=reason)


def _meeting(plans: tuple[WindowPlan, ...], chosen: Sequence[tuple[str, tuple[Route, ...]]]) -> WindowShards:
    """The network divided by these keys, if the triples that each query makes are in the shard of their reader."""
    produced = {p.feeds: (p, key) for p, (key, _) in zip(plans, chosen, strict=True) if p.feeds}
    if sum(1 for p in plans if p.feeds) > len(produced):
        return WindowShards(plans, reason="several of its queries make the same stream")
    routes: dict[Route, None] = {}
    for plan, (key, leaves) in zip(plans, chosen, strict=True):
        for leaf, position in leaves:
            if leaf.stream not in produced:
                routes[(leaf, position)] = None
                continue
            maker, theirs = produced[leaf.stream]
            for template in maker.template:
                if _may_match(template, leaf) and getattr(template, position) != alg.Var(theirs):
                    reason = f"{plan.name} is keyed by ?{key}, but what {maker.name} makes for it by ?{theirs}"
                    return WindowShards(plans, reason=reason)
    keys = tuple((p.name, key) for p, (key, _) in zip(plans, chosen, strict=True))
    return WindowShards(plans, keys, tuple(routes))


_MOST_CHOICES = 1000  # combinations of keys that are tried: their number is exponential in that of the queries


def waits_for_items(plan: WindowPlan) -> bool:
    """Whether every evaluation needs an item that a window holds or takes, so that time alone gives no answer."""
    kinds = {s.kind for s in plan.report}
    if not kinds & {"P", "AT"}:
        same = len({s.window for s in plan.report}) == 1
        return "WC" not in kinds or ("NC" in kinds and same)
    return "NC" in kinds and all(isinstance(w.shape, Sliding | Now) for w in plan.windows)


# --- the query as a whole --------------------------------------------------------------------------------------


def _check_query(plan: WindowPlan) -> None:
    if plan.form == "ask":
        raise _Undivided("ASK answers once for all")
    if plan.form == "describe":
        raise _Undivided("DESCRIBE asks for all that is known of a node")
    if plan.matches:
        raise _Undivided("event patterns (MATCH) look at whole items and choose among all of them")
    if plan.times:
        raise _Undivided("timestamp() looks at the items in which a triple is stated")
    for window in plan.windows:
        if isinstance(window.shape, Count):
            raise _Undivided(f"the window {window.name} counts the items of all keys")
        if not isinstance(window.shape, Sliding | Landmark | Interval | Identity | Now):
            raise _Undivided(f"the window {window.name} is not one of times")
        if window.inner and isinstance(window.shape, Now):
            raise _Undivided(f"the window {window.name} holds what is new in another window")
    if alg.is_volatile(alg.SubSelect(plan.select)):
        raise _Undivided("RAND, UUID, STRUUID, BNODE and NOW change with every evaluation")
    select = plan.select
    if select.limit is not None or select.offset or plan.ordered:
        raise _Undivided("ORDER BY, LIMIT and OFFSET look at all rows of an answer")
    if select.grouped and not select.keys:
        raise _Undivided("an aggregate without GROUP BY is over everything")


def _divided(plan: WindowPlan, key: str, stored: bool) -> tuple[Route, ...]:
    reader = _Reader(plan, key, stored)
    used = reader.select(plan.select)
    if not used:
        raise _Undivided("not every solution uses a triple of a window")
    _check_times(plan, used)
    return tuple(reader.routes)


# --- the pattern -----------------------------------------------------------------------------------------------


class _Reader:
    """Checks a pattern for one key, and finds the windows that every solution uses."""

    def __init__(self, plan: WindowPlan, key: str, stored: bool) -> None:
        self.plan, self.key, self.stored = plan, key, stored
        self.windows = {w.name: w for w in plan.windows}
        self.default = [w for w in plan.windows if w.default]
        self.routes: dict[Route, None] = {}

    def select(self, select: alg.Select) -> frozenset[str]:
        used = self.pattern(select.pattern)
        if not self.reads(select.pattern):
            return used
        if select.limit is not None or select.offset:
            raise _Undivided("a sub-SELECT with LIMIT or OFFSET looks at all its rows")
        if select.grouped and self.key not in select.keys:
            raise _Undivided("it is not among the keys of GROUP BY")
        if self.key not in select.variables:
            raise _Undivided("a sub-SELECT does not give it")
        self._plain([e for _, e in select.extends])
        self._plain([a.operand for a in select.aggregates if a.operand is not None])
        self._plain([*select.having, *(k.expression for k in select.order)])
        return used

    def pattern(self, pattern: alg.Pattern) -> frozenset[str]:
        """The windows from which every solution uses a triple."""
        match pattern:
            case alg.BGP():
                return self._bgp(pattern)
            case alg.Join(Op.AND, left, right):
                return self.pattern(left) | self.pattern(right)
            case alg.Union(left, right):
                return self.pattern(left) & self.pattern(right)
            case alg.Outer(OuterOp.OPTIONAL, left, right, conditions):
                used = self.pattern(left)
                self._absent(left, right)
                for condition in conditions:
                    self._expression(condition, pattern)
                return used
            case alg.Minus(left, right, scope):
                used = self.pattern(left)
                if self.reads(right) and self.key not in scope:
                    raise _Undivided("MINUS does not compare it")
                self._absent(left, right)
                return used
            case alg.Filter(child, conditions):
                used = self.pattern(child)
                for condition in conditions:
                    self._expression(condition, child)
                return used
            case alg.Extend(child, _, expression):
                used = self.pattern(child)
                self._expression(expression, child)
                return used
            case alg.SubSelect(select):
                return self.select(select)
        if self.reads(pattern):
            raise _Undivided(f"{_WORDS.get(type(pattern), type(pattern).__name__)} may join triples of different keys")
        return frozenset()

    def reads(self, pattern: alg.Pattern) -> bool:
        """Whether the pattern looks at windows."""
        read = chain(alg.reads_of_triples(pattern), alg.read_of_stream(pattern))
        return any(self._read(part.stream, part.graph) for part in read)

    def _read(self, stream: str, graph: alg.Var | alg.Const | None) -> list[WindowUse]:
        """The windows that a pattern looks at."""
        if stream:
            return [self.windows[stream]] if stream in self.windows else []
        return self.default if graph is None else []

    def _bgp(self, bgp: alg.BGP) -> frozenset[str]:
        windows = self._read(bgp.stream, bgp.graph)
        if not windows or not bgp.triples:
            return frozenset()
        if bgp.graph is not None or any(t.predicate == alg.Const(_GENERATED_AT) for t in bgp.triples):
            raise _Undivided("the names and times of items are not those of a key")
        if not bgp.stream and self.stored:
            raise _Undivided("patterns outside WINDOW see the background too")
        for triple in bgp.triples:
            places = [p for p in POSITIONS if getattr(triple, p) == alg.Var(self.key)]
            if not places:
                raise _Undivided("a pattern over a window is without it")
            for window in windows:
                leaf = ir.Leaf((), triple.subject, triple.predicate, triple.object, self._stream(window))
                self.routes[(leaf, places[0])] = None
        return frozenset(self._chain(windows[0])) if len(windows) == 1 else frozenset()

    def _stream(self, window: WindowUse) -> str:
        return self.windows[list(self._chain(window))[-1]].stream

    def _chain(self, window: WindowUse) -> Iterator[str]:
        """A window, the window that it is defined on, and so on; each holds all items of the one before it."""
        yield window.name
        if window.inner:
            yield from self._chain(self.windows[window.inner])

    def _absent(self, left: alg.Pattern, right: alg.Pattern) -> None:
        """Check a right side that may be absent: whether it is absent for a row must not depend on other keys."""
        self.pattern(right)
        if self.reads(right) and self.key not in alg.certain(left):
            raise _Undivided("it may be unbound before OPTIONAL or MINUS")

    def _expression(self, expression: alg.Expr, child: alg.Pattern) -> None:
        for asked in alg.patterns_of_exists(expression):
            if self.reads(asked):
                self.pattern(asked)
                if self.key not in alg.certain(child):
                    raise _Undivided("it may be unbound before EXISTS")

    def _plain(self, expressions: Iterable[alg.Expr]) -> None:
        for expression in expressions:
            for asked in alg.patterns_of_exists(expression):
                if self.reads(asked):
                    raise _Undivided("EXISTS stands in SELECT, HAVING or an aggregate")


_GENERATED_AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
_WORDS = {alg.PathPattern: "a property path", alg.GraphNames: "GRAPH", alg.Record: "EVENT"}


# --- the evaluation times --------------------------------------------------------------------------------------


def _check_times(plan: WindowPlan, used: frozenset[str]) -> None:
    kinds = {s.kind for s in plan.report}
    shapes = [w.shape for w in plan.windows]
    everywhere = used >= {w.name for w in plan.windows}
    if not kinds & _CLOCK:
        growing = all(isinstance(s, Landmark | Identity) for s in shapes)
        instant = all(isinstance(s, Now) for s in shapes)
        if growing and plan.r2s in ("ISTREAM", "DSTREAM") and not any(s.window for s in plan.report):
            return
        if instant and plan.r2s == "RSTREAM" and everywhere:
            return
        raise _Undivided(f"{plan.r2s} is asked for whenever an item of any key comes")
    if "CC" in kinds:
        raise _Undivided("whether the content has changed depends on the items of all keys")
    if plan.r2s == "DSTREAM":
        raise _Undivided("DSTREAM may tell of a key after its last item")
    by_items = "NC" in kinds or any(isinstance(s, Now) for s in shapes)
    if by_items and plan.r2s == "ISTREAM":
        raise _Undivided("ISTREAM compares with the evaluation before, which the items of other keys may have caused")
    if by_items and not everywhere:
        raise _Undivided("a window that some solutions do not use decides when there is an evaluation")
    if not any(_forgets(plan, name) for name in used) and not (everywhere and _closes_once(shapes, plan.report)):
        raise _Undivided("its windows keep what they hold, and are looked at until the stream of all keys ends")


def _forgets(plan: WindowPlan, name: str) -> bool:
    """Whether a window is empty some time after the last item."""
    window = plan.window(name)
    return isinstance(window.shape, Sliding | Now) or (bool(window.inner) and _forgets(plan, window.inner))


def _closes_once(shapes: Iterable[object], report: tuple[Strategy, ...]) -> bool:
    return {s.kind for s in report} <= {"WC", "NC"} and all(isinstance(s, Interval) for s in shapes)


def _may_match(template: ir.Template, leaf: ir.Leaf) -> bool:
    """Whether a triple of the template may be one that the leaf asks for."""
    return all(
        not isinstance(given, alg.Const) or not isinstance(asked, alg.Const) or given == asked
        for given, asked in _places(template, leaf)
    )


def _places(template: ir.Template, leaf: ir.Leaf) -> Iterator[tuple[object, object]]:
    for position in POSITIONS:
        yield getattr(template, position), getattr(leaf, position)
