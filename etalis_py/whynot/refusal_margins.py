"""By how much a condition refused a solution: the sides of a filter, the seconds over a window, the order of two parts.

A measure is read from the marks that ``conditions`` left in the solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import eq, le, lt
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules.relations import Op
from etalis_rules.terms import TRUE

from etalis_py.events.clock import Clock
from etalis_py.sparql.run import Solution
from etalis_py.values import DateTime, Duration, SparqlError, decode, sub
from etalis_py.values.term_likeness import NEAR, differing, two_kinds
from etalis_py.values.time import TIMELESS_END, TIMELESS_START
from etalis_py.whynot.condition import PlanCondition
from etalis_py.whynot.conditions import sides_of
from etalis_py.whynot.titles import Titles, length

Span = tuple[int, int]
FAR = 1e30
_HOLDS: dict[str, Callable[[int, int], bool]] = {"<": lt, "<=": le, "=": eq}
_SHOULD = {"<": "before", "<=": "not after", "=": "at"}
_BOUNDS = {
    "a": "the start of the left",
    "a'": "the end of the left",
    "b": "the start of the right",
    "b'": "the end of the right",
}


@dataclass(frozen=True, slots=True)
class Measure:
    """``text`` says by how much it fails, ``distance`` orders misses of one condition, ``data`` is for ``--json``."""

    text: str
    distance: float = FAR
    data: dict[str, Any] = field(default_factory=dict)
    slip: bool = False
    """Whether it is likely a typing error."""


@dataclass(frozen=True, slots=True)
class Measurer:
    """Measures misses in the words of the query and the times of the stream."""

    titles: Titles
    clock: Clock
    blockers: Callable[[PlanCondition, Solution], tuple[Measure, ...]]

    def measure(self, condition: PlanCondition, solution: Solution) -> Measure | None:
        """How far the condition was from letting the solution pass; None if it passed."""
        mu = solution[0]
        if any(condition.mark + name not in mu for name in condition.certain):
            return None  # it came through the other branch of a UNION
        match condition.kind:
            case "filter":
                return self._filter(condition, mu)
            case "absence" if condition.gap is not None:
                return self._blocked(self.blockers(condition, solution))
            case "relation":
                return self._relation(condition, mu)
            case "repeat":
                return self._repeat(condition, mu)
            case "absence" | "existence":
                return None if mu.get(condition.mark + "ok") == TRUE else self._existence(condition, solution)
            case "minus":
                blocking = self.blockers(condition, solution)
                return blocking[0] if blocking else None
            case "window":
                return self._window(condition, mu)
            case "order":
                return self._order(condition, mu)
            case "interval":
                return self._interval(condition, mu)
            case "key":
                return self._key(condition, mu)
            case "term":
                return self._term(condition, mu)
            case "column":
                return self._column(condition, mu)
        return Measure("it has other solutions without it")

    # --- filters ---

    def _filter(self, condition: PlanCondition, mu: dict[str, str]) -> Measure | None:
        if mu.get(condition.mark + "ok") == TRUE:
            return None
        test: alg.Expr = condition.about
        if sides_of(test):
            left, right = mu.get(condition.mark + "a", ""), mu.get(condition.mark + "b", "")
            return self._comparison(condition.about, left, right, mu)
        missing = [name for name in sorted(alg.variables(test)) if not mu.get(name) and alg.is_visible(name)]
        if missing and condition.mark + "ok" not in mu:
            return Measure(f"?{missing[0]} is unbound", data={"unbound": missing})
        if condition.mark + "ok" not in mu:
            return Measure(f"it is an error for {self._values(test, mu)}", data={"error": True})
        return Measure(f"it is false for {self._values(test, mu)}" if alg.variables(test) else "it is false")

    def _values(self, test: alg.Expr, mu: dict[str, str]) -> str:
        shown = [f"?{v} = {self.titles.term(mu.get(v, ''))}" for v in sorted(alg.variables(test)) if alg.is_visible(v)]
        return ", ".join(shown)

    def _comparison(self, test: alg.Apply, left: str, right: str, mu: dict[str, str]) -> Measure:
        for side, expression in ((left, test.args[0]), (right, test.args[1])):
            if not side:
                absent = [v for v in sorted(alg.variables(expression)) if not mu.get(v)]
                because = f"?{absent[0]} is unbound" if absent else f"{self._values(expression, mu)} makes it an error"
                text = f"{self.titles.expression(expression)} has no value: {because}"
                return Measure(text, data={"left": left, "right": right, "error": True})
        relation = f"{self.titles.value(left)} {test.op} {self.titles.value(right)}"
        data: dict[str, Any] = {"left": left, "right": right, "operator": test.op}
        a, b = _value(left), _value(right)
        try:
            gap = sub(b, a)
        except SparqlError:
            difference = differing(left, right)
            alike = difference.text if difference.rank < NEAR else two_kinds(left, right)
            relation = f"{self.titles.term(left)} {test.op} {self.titles.term(right)}"
            text = f"{relation} does not hold" + (f": {alike}" if alike else "")
            return Measure(text, difference.rank, data, slip=bool(alike))
        if isinstance(gap, Duration):
            by = length(abs(gap.micros)) if not gap.months else str(gap)
            distance = float(abs(gap.micros))
        else:
            distance = abs(float(gap))
            by = _number(abs(gap))
        if distance == 0:
            return Measure(f"{relation} does not hold: the two are equal", 0.0, data | {"by": "0"})
        return Measure(f"{relation} fails by {by}", distance, data | {"by": by})

    def _existence(self, condition: PlanCondition, solution: Solution) -> Measure:
        if condition.kind == "existence":
            return Measure("nothing inside it holds", data={"blocking": []})
        blocking = self.blockers(condition, solution)
        return self._blocked(blocking) or Measure("something inside it holds")

    def _blocked(self, blocking: tuple[Measure, ...]) -> Measure | None:
        if not blocking:
            return None
        more = f", and {len(blocking) - 1} more" if len(blocking) > 1 else ""
        data = {"blocking": [b.data for b in blocking]}
        return Measure(blocking[0].text + more, float(len(blocking)), data)

    # --- times ---

    def _spans(self, condition: PlanCondition, mu: dict[str, str]) -> tuple[Span | None, Span | None]:
        def span(side: str) -> Span | None:
            start, end = mu.get(f"{condition.mark}{side}s"), mu.get(f"{condition.mark}{side}e")
            return None if start is None or end is None else (micros(start), micros(end))

        return span("l"), span("r")

    def _window(self, condition: PlanCondition, mu: dict[str, str]) -> Measure | None:
        left, right = self._spans(condition, mu)
        bound: alg.Bound = condition.about
        if left is None:
            return None
        start, end = left if right is None else (left[1], right[1])
        over = end - bound.after(start)
        if over <= 0:
            return None
        lasts, more = length(end - start), length(over)
        data = {"start": self.time(start), "end": self.time(end), "lasts": lasts, "over": more}
        text = f"it lasts {lasts}, {more} too long" if right is None else f"it ends {lasts} later, {more} too late"
        return Measure(text, float(over), data)

    def _order(self, condition: PlanCondition, mu: dict[str, str]) -> Measure | None:
        left, right = self._spans(condition, mu)
        if left is None or right is None:
            return None
        data: dict[str, Any] = {"left": self.interval(left), "right": self.interval(right)}
        a, b = self.shown(left), self.shown(right)
        if condition.operator == "OPTIONAL":
            over = right[1] - left[1]
            if over <= 0:
                return None
            return Measure(f"the optional part {b} ends {length(over)} after {a}", float(over), data)
        over = left[1] - right[0]
        if over < 0:
            return None
        data["by"] = length(over)
        if over == 0:
            text = f"the left part {a} ends at the moment the right part {b} starts"
        elif right[1] < left[0]:
            text = f"they come in the other order: the right part {b} is over before the left part {a} starts"
        else:
            text = f"they overlap by {length(over)}: the left part {a} ends after the right part {b} has started"
        return Measure(text, float(over), data)

    def _relation(self, condition: PlanCondition, mu: dict[str, str]) -> Measure | None:
        """Which bounds of the intervals violate Allen's relation."""
        left, right = self._spans(condition, mu)
        if left is None or right is None:
            return None
        times = {"a": left[0], "a'": left[1], "b": right[0], "b'": right[1]}
        wrong = [(x, op, y) for x, op, y in Op(condition.operator).comparisons if not _HOLDS[op](times[x], times[y])]
        if not wrong:
            return None
        gaps = [abs(times[x] - times[y]) for x, _, y in wrong]
        words = [
            f"{_BOUNDS[x]} should be {_SHOULD[op]} {_BOUNDS[y]}"
            + (
                f", and is {length(gap)} {'later' if times[x] > times[y] else 'earlier'}"
                if gap
                else ", and is the same"
            )
            for (x, op, y), gap in zip(wrong, gaps, strict=True)
        ]
        data = {"left": self.interval(left), "right": self.interval(right)}
        text = f"{self.shown(left)} and {self.shown(right)}: {'; '.join(words)}"
        return Measure(text, float(sum(gaps)), data)

    def _repeat(self, condition: PlanCondition, mu: dict[str, str]) -> Measure | None:
        """How many elements a run lacks."""
        number, least = int(_value(mu[condition.mark + "n"])), condition.about.least
        if number >= least:
            return None
        text = f"a run of {number}, {least} are asked for"
        return Measure(text, float(least - number), {"elements": number, "asked": least})

    def _interval(self, condition: PlanCondition, mu: dict[str, str]) -> Measure | None:
        left, right = self._spans(condition, mu)
        if left is None or right is None or left == right:
            return None
        apart = [abs(left[0] - right[0]), abs(left[1] - right[1])]
        where = [f"{word} {length(d)} apart" for word, d in zip(("starts", "ends"), apart, strict=True) if d]
        data = {"left": self.interval(left), "right": self.interval(right)}
        text = f"the intervals differ: {self.shown(left)} and {self.shown(right)}, {' and '.join(where)}"
        return Measure(text, float(sum(apart)), data)

    # --- terms ---

    def _key(self, condition: PlanCondition, mu: dict[str, str]) -> Measure | None:
        name, side = condition.about
        one, other = mu.get(name, ""), mu.get(condition.mark + "k", "")
        if one == other or not one or not other:
            return None
        difference = differing(one, other)
        there = self.titles.inner(side)
        text = f"{self.titles.term(one)} here, {self.titles.term(other)} in {there}"
        if difference.rank < NEAR:
            text += f": {difference.text}"
        data = {"variable": name, "terms": [one, other], "difference": difference.text}
        return Measure(text, difference.rank, data, slip=difference.rank < NEAR)

    def _term(self, condition: PlanCondition, mu: dict[str, str]) -> Measure | None:
        wanted = condition.about[0]
        other = mu.get(condition.mark + "t", "")
        if not other or other == wanted:
            return None
        difference = differing(wanted, other)
        text = f"{self.titles.term(other)} instead would match"
        if difference.rank < NEAR:
            text += f": {difference.text}"
        data = {"expected": wanted, "nearest": other, "difference": difference.text}
        return Measure(text, difference.rank, data, slip=difference.rank < NEAR)

    def _column(self, condition: PlanCondition, mu: dict[str, str]) -> Measure:
        triple: alg.Triple = condition.about
        nodes = (triple.subject, triple.predicate, triple.object)
        there = [mu.get(alg.variable_of(n)) for n in nodes]
        words = [self.titles.term(term) if term else self.titles.node(n) for term, n in zip(there, nodes, strict=True)]
        return Measure(f"the event does not say {' '.join(words)}", data={"column": self.titles.triple(triple)})

    # --- words ---

    def time(self, us: int) -> int | str:
        return self.clock.render(us)

    def interval(self, span: Span) -> list[int | str]:
        return [self.time(span[0]), self.time(span[1])]

    def shown(self, span: Span) -> str:
        if span == (TIMELESS_START, TIMELESS_END):
            return "(timeless)"
        start, end = map(self.time, span)
        return f"[{start}]" if start == end else f"[{start}, {end}]"


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.12g}"
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def micros(term: str) -> int:
    """The time that a mark holds."""
    value = decode(term)
    assert isinstance(value, DateTime)
    return value.us


def _value(term: str) -> Any:
    try:
        return decode(term)
    except SparqlError:
        return term
