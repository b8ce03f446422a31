"""Aggregates that follow a sliding window: a triple is added to its group when it enters and removed when it leaves.

It serves queries with GROUP BY or aggregates over one triple pattern in one window, or over an EVENT of triple
patterns, with filters and expressions on its solution alone: their answers are functions of sums that change only with
what enters and leaves.  The cost of an item is the same whatever range / slide is; the cost of an evaluation is that of
its groups.  Everything else is evaluated over the whole content.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, islice
from operator import itemgetter
from typing import Any

from etalis_compiler.rsp import Current, WindowPlan
from etalis_rules import algebra as alg

from etalis_py.events import Event, Triple
from etalis_py.executors.windows.content import Content
from etalis_py.executors.windows.times import BEGINNING
from etalis_py.sparql.prepared import shared_state
from etalis_py.sparql.run import Bindings, EvaluationRun, Runner, Solution
from etalis_py.sparql.scoping import Env
from etalis_py.sparql.selects import compile_select
from etalis_py.sparql.shared_state import SharedState
from etalis_py.sparql.whole_events import as_set
from etalis_py.values import SparqlError, decode
from etalis_py.values.expressions import condition, term
from etalis_py.values.functions import Accumulator, accumulator, add_all, remove_all
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

Totals = list[Accumulator]
Take = Callable[[Iterable[Event]], None]
"""A function that is called with items."""
Matcher = Callable[..., Bindings | None]
"""Extends bindings (none by default) by those under which a pattern is a given triple; None if there are none."""
Changes = defaultdict[str, tuple[list[Any], list[str]]]
"""The values, and their spellings, that enter or leave a group."""
_NOTHING: Bindings = {}
Step = tuple[str, alg.Expr] | alg.Expr


@dataclass(frozen=True, slots=True)
class Followed:
    """The triple patterns of a query, and the filters and BINDs on their solutions.

    There is one, unless the patterns are asked of one event (``of_event``).
    """

    triples: tuple[alg.Triple, ...]
    steps: tuple[Step, ...]
    of_event: bool


def incremental(plan: WindowPlan, stored: bool) -> Followed | None:
    """The patterns and steps of a query that can be followed; None if it has more.

    ``stored``: the stored default graph is not empty, so that patterns outside WINDOW see more than windows, and EVENT
    sees it everywhere.
    """
    select = plan.select
    if not select.grouped or plan.matches or plan.times or alg.is_volatile(alg.SubSelect(select)):
        return None
    steps: list[Step] = []
    pattern, of_event = select.pattern, False
    stream = ""
    while not isinstance(pattern, alg.BGP):
        match pattern:
            case alg.Filter(child, conditions):
                steps[:0] = conditions
                pattern = child
            case alg.Extend(child, variable, expression):
                steps.insert(0, (variable, expression))
                pattern = child
            case alg.Record(inner, of, None) if not of_event:
                pattern, stream, of_event = inner, of, True
            case _:
                return None
    exprs = [s[1] if isinstance(s, tuple) else s for s in steps]
    exprs += [a.operand for a in select.aggregates if a.operand is not None]
    if any(map(alg.has_exists, exprs)):
        return None
    if pattern.graph is not None or (stored if of_event else len(pattern.triples) != 1):
        return None
    stream = stream if of_event else pattern.stream
    if any(isinstance(w.shape, Current) for w in plan.windows):
        return None  # facts come and go, not items
    read = [w.name for w in plan.windows if (w.name == stream if stream else w.default)]
    if len(read) != 1 or len(plan.windows) != 1 or (not stream and stored):
        return None
    return Followed(pattern.triples, tuple(steps), of_event)


class GroupedContent(Content):
    """The content of a window without its triples and their index: items that enter or leave update the groups."""

    __slots__ = ("_enters", "_leaves", "_totals")

    def __init__(self, groups: Groups) -> None:
        super().__init__()
        self._totals = groups
        self._enters, self._leaves = groups.changes()

    def _enter_all(self, items: Sequence[Event]) -> None:
        self.changes_in += len(items)
        self._enters(items)
        self.repeated = self._totals.repeated

    def _leave_all(self, items: Sequence[Event]) -> None:
        self._leaves(items)


class EarlyContent(GroupedContent):
    """The same for windows of which each shows all that came before it closes: items update the groups as they come.

    So little is left to do when a window closes.  Nothing reads the groups in between.  What the next window does not
    show leaves them before anything enters, and not in the batch in which a window has closed, whose answer is waited
    for.  Items that come with a snapshot may be for later windows, and enter these one by one.
    """

    __slots__ = ("_early", "_has_closed", "_low", "_new", "_next_only")

    def __init__(self, groups: Groups) -> None:
        super().__init__(groups)
        self._early = 0  # so many of the first items that wait are in the groups
        self._new: list[Event] = []  # those that wait behind them, if all are for the next window
        self._next_only = True  # whether all that wait are for the next window
        self._low = BEGINNING  # what ends until then is still to be dropped
        self._has_closed = False  # whether a window has since the last batch

    def push(self, item: Event) -> None:
        self._waiting.append(item)
        self._new.append(item)

    def settle(self) -> None:
        """Update the groups after a batch of items."""
        if self._has_closed:
            self._has_closed = False
            return
        if self._new and self._next_only:
            self._catch_up()
            self._enters(self._new)
            self._early += len(self._new)
        self._new.clear()

    def move(self, low: int, high: int) -> None:
        waiting = self._waiting
        self._has_closed = True
        if not (self._next_only and waiting and low < waiting[0][1] and waiting[-1][1] <= high):
            self._take_back()
            super().move(low, high)
            self._next_only = not waiting
            self._new.clear()
            return
        self._drop(low)
        self._held.extend(waiting)
        waiting.clear()
        self.changes_in += self._early
        self._early = 0
        self._enter_all(self._new)
        self._new.clear()

    def forget(self, low: int) -> None:
        self._low = low
        if self._waiting and self._waiting[0][1] <= low:
            self._take_back()
            self._catch_up()
            self._new[:] = self._waiting

    def restore(self, held: Iterable[Event], waiting: Iterable[Event]) -> None:
        self._take_back()
        self._low = BEGINNING
        super().restore(held, waiting)
        self._next_only = not self._waiting
        self._new.clear()

    def _take_back(self) -> None:
        """Remove from the groups what waits."""
        if self._early:
            self._leaves(list(islice(self._waiting, self._early)))
            self._totals.repeated = self.repeated
            self._early, self._next_only = 0, False

    def _catch_up(self) -> None:
        """Forget what is still to be dropped."""
        super().forget(self._low)

    @property
    def remembered(self) -> int:
        self._catch_up()
        return super().remembered

    def items(self) -> list[Event]:
        self._catch_up()
        return super().items()

    def each(self) -> Iterator[Event]:
        low = self._low
        return dropwhile(lambda item: item[1] <= low, super().each())

    def remembers(self) -> bool:
        return bool(self._waiting) or (bool(self._held) and self._held[-1][1] > self._low)

    def last_end(self) -> int | None:
        return super().last_end() if self.remembers() else None


class Groups:
    """The groups of a query, kept up to date."""

    def __init__(self, select: alg.Select, followed: Followed) -> None:
        pattern = followed.triples[0]
        self._select = select
        self._groups: dict[tuple[str, ...], tuple[list[int], Totals]] = {}
        self._of_event = followed.of_event
        self._matches = [_matcher(triple) for triple in followed.triples]
        self._predicate = pattern.predicate.term if isinstance(pattern.predicate, alg.Const) else None
        self._steps = [(s[0], term(s[1])) if isinstance(s, tuple) else (None, condition(s)) for s in followed.steps]
        self._keys = select.keys
        self._operands = [
            None if a.operand is None else (a.operand.name if isinstance(a.operand, alg.Var) else term(a.operand))
            for a in select.aggregates
        ]
        self._context = _Context()
        self._places = None if self._of_event else _plain(pattern, self._steps, select, self._operands)
        self._show = _shower(select)
        self._runner = self._finish()
        self.repeated = 0  # how many triples came that the window held already

    # --- what enters and leaves ---

    def changes(self) -> tuple[Take, Take]:
        """The functions to call when items enter and leave; a triple leaves with the last item that has it."""
        if self._of_event:
            return self._by_event()
        return self._by_pattern() if self._places is None else self._by_place(*self._places)

    def _by_event(self) -> tuple[Take, Take]:
        """The solutions over each event by itself; of events that are equal, one counts."""
        matches, change = self._matches, self._change
        counts: dict[object, int] = {}

        def enter(items: Iterable[Event]) -> None:
            for item in items:
                event = as_set(item)
                number = counts[event] = counts.get(event, 0) + 1
                if number == 1:
                    for mu in _solutions(matches, item.triples):
                        change(mu, 1)

        def leave(items: Iterable[Event]) -> None:
            for item in items:
                event = as_set(item)
                number = counts.pop(event)
                if number > 1:
                    counts[event] = number - 1
                else:
                    for mu in _solutions(matches, item.triples):
                        change(mu, -1)

        return enter, leave

    def _by_pattern(self) -> tuple[Take, Take]:
        """Each triple as a solution of the pattern, then filters, key and operands."""
        predicate, (match,), change = self._predicate, self._matches, self._change
        counts: dict[Triple, int] = {}

        def enter(items: Iterable[Event]) -> None:
            for triple in _triples(items, predicate):
                number = counts[triple] = counts.get(triple, 0) + 1
                if number > 1:
                    self.repeated += match(triple) is not None
                elif (mu := match(triple)) is not None:
                    change(mu, 1)

        def leave(items: Iterable[Event]) -> None:
            for triple in _triples(items, predicate):
                number = counts.pop(triple)
                if number > 1:
                    counts[triple] = number - 1
                elif (mu := match(triple)) is not None:
                    change(mu, -1)

        return enter, leave

    def _by_place(self, key_at: int, operand_at: int) -> tuple[Take, Take]:
        """The same for ``?key <p> ?value`` without filters: key and operand are read off the triple.

        The value of a triple is kept beside it while it is held, and a group takes all of its changes at once.
        """
        predicate = self._predicate
        values: dict[Triple, Any] = {}
        more: dict[Triple, int] = {}  # triples in several items: how many

        def enter(items: Iterable[Event]) -> None:
            changes: Changes = defaultdict(lambda: ([], []))
            for triple in _triples(items, predicate):
                if triple in values:
                    more[triple] = more.get(triple, 1) + 1
                    self.repeated += 1
                    continue
                spelling = triple[operand_at]
                value = values[triple] = decode(spelling)
                of_group = changes[triple[key_at] if key_at >= 0 else ""]
                of_group[0].append(value)
                of_group[1].append(spelling)
            apply_changes(changes, 1)

        def leave(items: Iterable[Event]) -> None:
            changes: Changes = defaultdict(lambda: ([], []))
            for triple in _triples(items, predicate):
                if more and triple in more:
                    more[triple] -= 1
                    if more[triple] == 1:
                        del more[triple]
                    continue
                of_group = changes[triple[key_at] if key_at >= 0 else ""]
                of_group[0].append(values.pop(triple))
                of_group[1].append(triple[operand_at])
            apply_changes(changes, -1)

        groups, new = self._groups, self._new

        def apply_changes(changes: Changes, sign: int) -> None:
            tell = add_all if sign > 0 else remove_all
            for name, (numbers, spellings) in changes.items():
                key = (name,) if key_at >= 0 else ()
                group = groups.get(key)
                if group is None:
                    group = groups[key] = new()
                group[0][0] += sign * len(numbers)
                for total in group[1]:
                    tell(total, numbers, spellings)
                if not group[0][0]:
                    del groups[key]

        return enter, leave

    def _change(self, mu: Bindings, sign: int) -> None:
        for variable, step in self._steps:
            value = step(mu, TIMELESS_START, TIMELESS_END, self._context)
            if variable is not None and isinstance(value, str):
                mu = {**mu, variable: value} if value else mu
            elif not value:
                return
        key = tuple([mu.get(k, "") for k in self._keys])
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = self._new()
        group[0][0] += sign
        for operand, total in zip(self._operands, group[1], strict=True):
            self._count(mu, operand, total, sign)
        if not group[0][0]:
            del self._groups[key]

    def _count(self, mu: Bindings, operand: Any, total: Accumulator, sign: int) -> None:
        change = total.add if sign > 0 else total.remove
        if operand is None:
            change(None, (*sorted(mu.items()), TIMELESS_START, TIMELESS_END))
            return
        spelling = (
            mu.get(operand, "")
            if isinstance(operand, str)
            else operand(mu, TIMELESS_START, TIMELESS_END, self._context)
        )
        if not spelling:
            total.fail() if sign > 0 else total.unfail()
            return
        change(decode(spelling), spelling)

    def _new(self) -> tuple[list[int], Totals]:
        return [0], [accumulator(a.name, distinct=a.distinct, separator=a.separator) for a in self._select.aggregates]

    # --- the answer ---

    def rows(self) -> Iterator[Solution]:
        """One solution per group: its keys and the values of its aggregates."""
        groups = self._groups
        if not self._keys and not groups:
            yield self._row((), self._new()[1])
            return
        for key, (_, totals) in groups.items():
            yield self._row(key, totals)

    def _row(self, key: tuple[str, ...], totals: Totals) -> Solution:
        row = {k: t for k, t in zip(self._keys, key, strict=True) if t}
        for call, total in zip(self._select.aggregates, totals, strict=True):
            if result := _result(total):
                row[call.variable] = result
        return row, TIMELESS_START, TIMELESS_END

    def _finish(self) -> Runner:
        """HAVING, the columns, ORDER BY, DISTINCT and LIMIT, as the backward evaluator does them."""
        select = self._select
        names = (*select.keys, *(a.variable for a in select.aggregates))
        rest = replace(select, pattern=alg.Table(names, ()), grouped=False, keys=(), aggregates=())

        def grouped(pattern: alg.Pattern, env: Env, registry: SharedState) -> Runner:
            return lambda mu, run: self.rows()

        return compile_select(rest, Env(), self._registry, grouped)

    @property
    def _registry(self) -> SharedState:
        return shared_state(timed=False)

    def answers(self, run: EvaluationRun) -> list[tuple[str, ...]]:
        """The rows of the answer, with empty strings for what is unbound."""
        if (show := self._show) is not None:
            groups = self._groups.items() if self._keys or self._groups else [((), self._new())]
            return [show((*key, *map(_result, totals))) for key, (_, totals) in groups]
        names = self._select.variables
        return [tuple([mu.get(v, "") for v in names]) for mu, _, _ in self._runner({}, run)]


def _result(total: Accumulator) -> str:
    """The value of an aggregate; empty where it is an error, which leaves its variable unbound."""
    try:
        return total.result()
    except SparqlError:
        return ""


def _shower(select: alg.Select) -> Callable[[tuple[str, ...]], tuple[str, ...]] | None:
    """From keys and aggregates to the answer, if it shows nothing but these; None if it needs more."""
    if select.having or select.order or select.distinct or select.limit is not None or select.offset:
        return None
    if not all(isinstance(e, alg.Var) for _, e in select.extends):
        return None
    sources = alg.renamed(select.extends)
    there = (*select.keys, *(a.variable for a in select.aggregates))
    places = [there.index(source) for name in select.variables if (source := sources.get(name, name)) in there]
    if len(places) < len(select.variables):
        return None
    return itemgetter(*places) if len(places) > 1 else lambda row: tuple([row[place] for place in places])


class _Context:
    """The context of filter expressions, without anything that changes (the query is not volatile)."""

    now = 0

    def exists(self, pattern: alg.Pattern, mu: Bindings, start: int, end: int) -> bool:
        raise SparqlError("EXISTS is not allowed here")


def _triples(items: Iterable[Event], predicate: str | None) -> Iterator[Triple]:
    """The triples with that predicate."""
    if predicate is None:
        return (triple for item in items for triple in item[2])
    return (triple for item in items for triple in item[2] if triple[1] == predicate)


def _solutions(matches: Sequence[Matcher], triples: Sequence[Triple]) -> list[Bindings]:
    """The solutions of triple patterns over some triples."""
    different = dict.fromkeys(triples)
    found: list[Bindings] = [{}]
    for match in matches:
        found = [more for mu in found for triple in different if (more := match(triple, mu)) is not None]
    return found


def _matcher(pattern: alg.Triple) -> Matcher:
    nodes = (pattern.subject, pattern.predicate, pattern.object)

    def match(triple: Triple, given: Bindings = _NOTHING) -> Bindings | None:
        mu = given.copy()
        for node, there in zip(nodes, triple, strict=True):
            if isinstance(node, alg.Const):
                if node.term != there:
                    return None
            elif mu.setdefault(node.name, there) != there:
                return None
        return mu

    return match


def _plain(pattern: alg.Triple, steps: Any, select: alg.Select, operands: list[Any]) -> tuple[int, int] | None:
    """The places of key and operand, if the pattern is just ``?key <p> ?value`` without filters."""
    if steps or not isinstance(pattern.predicate, alg.Const) or len(select.keys) > 1 or not operands:
        return None
    places = {n.name: i for i, n in ((0, pattern.subject), (2, pattern.object)) if isinstance(n, alg.Var)}
    if len(places) != 2 or len(set(operands)) != 1 or operands[0] not in places:
        return None
    if select.keys and select.keys[0] not in places:
        return None
    return places[select.keys[0]] if select.keys else -1, places[operands[0]]
