"""``explain`` for windowed queries: windows, evaluation times, event patterns, and which query feeds which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules.durations import duration_text, seconds
from etalis_rules.spelling import Spelling

from . import (
    Basic,
    Count,
    Current,
    EventExpr,
    Fact,
    First,
    Identity,
    Interval,
    Landmark,
    Last,
    MatchPlan,
    Now,
    Shape,
    Sliding,
    Strategy,
    WindowPlan,
)
from . import Sequence as EventSequence

_CONDITIONS = {"WC": "closes", "CC": "takes an item", "NC": "is not empty"}


class WindowExplainer:
    """Plans as text, with names shortened by the prefixes of the program."""

    def __init__(self, prefixes: Mapping[str, str], readers: Mapping[str, Sequence[str]]) -> None:
        self._iri = Spelling(prefixes).iri
        self._readers = readers

    def name(self, name: str) -> str:
        """The name of a query, window or stream; a window written where it is used has none."""
        if name[0] != ".":
            return self._iri(name) if name[0] == "<" else name
        kind, _, stream = name.partition(":")
        return f"on {self._iri(stream)}" if stream else kind[1:]

    def fact(self, fact: Fact) -> str:
        keys = ", ".join(f"?{key}" for key in fact.keys)
        into = f" as stream {self.name(fact.feeds)}" if fact.feeds else ""
        head = f"{self.name(fact.name)}: a fact for each {keys}, from a SINCE until the next TILL{into}"
        return "\n".join([head, *self._fed(fact.name)])

    def rule(self, name: str) -> str:
        return "\n".join([f"{self.name(name)}: EP-SPARQL rules", *self._fed(name)])

    def _fed(self, name: str) -> list[str]:
        readers = self._readers.get(name)
        return ["  read by " + ", ".join(map(self.name, readers))] if readers else []

    def plan(self, plan: WindowPlan, *, kept: bool) -> str:
        """A query; ``kept``: its groups are kept up to date as items come and go."""
        into = f" as stream {self.name(plan.feeds)}" if plan.feeds else ""
        columns = "".join(f" ?{v}" for v in plan.variables) if plan.form == "select" else ""
        lines = [f"{self.name(plan.name)}: {plan.r2s} of {plan.form.upper()}{columns}{into}"]
        for window in plan.windows:
            if window.inner:
                on = f" on window {self.name(window.inner)}"
            else:
                on = f" on stream {self.name(window.stream)}" if window.stream else ""
            name = "" if window.name[0] == "." else f" {self.name(window.name)}"
            default = ", in the default graph" if window.default else ""
            lines.append(f"  window{name}{on}: {self.shape(window.shape)}{default}")
        lines.append("  evaluated " + self.report(plan.report))
        lines += [f"  {self.match(match, plan.consumption)}" for match in plan.matches]
        lines.append("  groups are kept up to date" if kept else "  each evaluation looks at the whole content")
        return "\n".join([*lines, *self._fed(plan.name)])

    def shape(self, shape: Shape) -> str:
        match shape:
            case Sliding(width, slide, t0, offset):
                text = f"{duration_text(0, width)} long, sliding by {duration_text(0, slide)}"
                text += f", the first opens at {seconds(t0)}" if t0 else ""
                return text + (f", seen {duration_text(0, offset)} later" if offset else "")
            case Landmark(start):
                return f"everything from {seconds(start)} on"
            case Interval(start, end):
                return f"from {seconds(start)} to {seconds(end)}"
            case Identity():
                return "everything so far"
            case Now():
                return "the items of the instant"
            case Count(unit, size, slide, _):
                return f"the last {size} {unit.lower() if unit != 'BGP' else 'solutions'}, sliding by {slide}"
            case Current(facts):
                return "what holds now of " + ", ".join(self.name(fact.name) for fact in facts)

    def report(self, strategies: Sequence[Strategy]) -> str:
        times = []
        for s in strategies:
            if s.kind == "P":
                times.append(f"every {duration_text(0, s.period)}")
            elif s.kind == "AT":
                times.append("at " + ", ".join(str(seconds(t)) for t in s.times))
        whens = [
            f"{self.name(s.window) if s.window else 'a window'} {_CONDITIONS[s.kind]}"
            for s in strategies
            if s.kind in _CONDITIONS
        ]
        return " and ".join(times) + (" " if times and whens else "") + ("when " + " and ".join(whens) if whens else "")

    def match(self, match: MatchPlan, consumption: str) -> str:
        if match.events is None:
            return "MATCH by the operators of EP-SPARQL, over the times of the items"
        used = "" if consumption == "unrestricted" else f", consumed ({consumption})"
        return f"MATCH {self._event(match.events)}{used}"

    def _event(self, event: EventExpr) -> str:
        match event:
            case Basic(window, pattern):
                triples = [t for p in alg.blocks_of_triples(pattern) for t in p.triples]
                patterns = " . ".join(self._triple(t) for t in triples)
                return f"{{{patterns}}} in {self.name(window)}"
            case First(inner):
                return f"FIRST ({self._event(inner)})"
            case Last(inner):
                return f"LAST ({self._event(inner)})"
            case EventSequence(left, right, policy):
                chosen = "" if policy == "unrestricted" else f" {policy.upper()}"
                second = f"({self._event(right)})" if isinstance(right, EventSequence) else self._event(right)
                return f"{self._event(left)} SEQ{chosen} {second}"

    def _triple(self, triple: alg.Triple) -> str:
        nodes = (triple.subject, triple.predicate, triple.object)
        return " ".join(alg.spelled(n, "?{}".format, self._iri) for n in nodes)


def plan_data(plan: WindowPlan) -> dict[str, Any]:
    """A plan as plain data: times and lengths in microseconds."""
    windows = [
        {
            "window": w.name,
            "on": w.inner or w.stream,
            "shape": type(w.shape).__name__.lower(),
            **_shape_data(w.shape),
            "default": w.default,
        }
        for w in plan.windows
    ]
    return {
        "query": plan.name,
        "form": plan.form,
        "operator": plan.r2s,
        "variables": list(plan.variables),
        "windows": windows,
        "report": [asdict(strategy) for strategy in plan.report],
        "graphs": list(plan.graphs),
        "named": list(plan.named),
        "patterns": len(plan.matches),
        "consumption": plan.consumption,
        "stream": plan.feeds,
    }


def _shape_data(shape: Shape) -> dict[str, Any]:
    if isinstance(shape, Current):
        return {"facts": [fact.name for fact in shape.facts]}
    return {name: value for name, value in asdict(shape).items() if name != "pattern"}
