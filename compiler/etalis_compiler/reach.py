"""How far back a solution reaches: occurrences that ended earlier affect neither it nor its absence.

A query whose solutions reach back at most d can be answered in slices of time: the events that end in [a − d, b) give
exactly the solutions of [a, b).  Each node has three lengths; e is the end of a solution (for an aggregate: the instant
in which it is known), s its start:

* ``back``: whether it is a solution depends only on occurrences that end at e − back or later;
* ``before``: and only on those that end at s − before or later;
* ``span``: e − s is at most this.

The occurrences that a solution is made of lie inside its interval.  So the parts of a join, NEXT, NOT or a path end at
s or later, and only a bound on the whole matters, however many rules are involved: a derived triple has the interval of
the solution it is made from.  Operators that look outside the interval add up: the optional side of OPTIONAL with a
bound in its condition, a deadline, a sliding window over solutions.

>>> from etalis_compiler.pipeline import compile_sources, rules_of
>>> from etalis_compiler.diagnostics import Source
>>> text = "SELECT * WHERE { { ?a :p ?x } SEQ { ?b :q ?y } } WITHIN 10 SECONDS"
>>> reaches(rules_of(compile_sources([Source(text)])))["q1"].back
10000000
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules import relations
from etalis_rules.printing import node_names
from etalis_rules.relations import ENDLESS, RIGHT_LAST, SAME_INTERVAL, TOGETHER, Op

from .rewrites.push_windows import longest
from .stratify import feeds, late_nodes


@dataclass(frozen=True, slots=True)
class Reach:
    """How far back solutions reach, in microseconds; if that is unbounded, ``reason`` says why."""

    back: int = 0
    before: int = 0
    span: int = ENDLESS
    reason: str = ""

    @property
    def bounded(self) -> bool:
        return self.back < ENDLESS


def reaches(rules: ir.Rules) -> dict[str, Reach]:
    """How far back the solutions of each query reach, including the rules that feed it."""
    return _Measure(rules).of_outputs()


class _Measure:
    def __init__(self, rules: ir.Rules):
        self.rules = rules
        self.nodes = dict(rules.nodes)
        self.names = node_names(rules)
        self.late = late_nodes(self.nodes)
        self.known = dict.fromkeys(self.nodes, Reach(span=0))
        self.runaway: set[str] = set()
        self.fed = {
            name: [o for o in rules.outputs if o.form == "construct" and any(feeds(t, o.stream, n) for t in o.template)]
            for name, n in self.nodes.items()
            if isinstance(n, ir.Leaf | ir.Record)
        }

    def of_outputs(self) -> dict[str, Reach]:
        """Iterate to a fixed point; a length that still grows after one round per node grows for ever."""
        turns = 0
        while changed := self._grown():
            turns += 1
            if turns > len(self.nodes):
                self.runaway.update(changed)
                self.known |= dict.fromkeys(changed, endless("its rules feed each other, ever further back"))
        return {output.query: self._output(output) for output in self.rules.outputs}

    def _grown(self) -> list[str]:
        changed = []
        for name, node in self.nodes.items():
            if name not in self.runaway and (found := self._of(name, node)) != self.known[name]:
                self.known[name] = found
                changed.append(name)
        return changed

    def _output(self, output: ir.Output) -> Reach:
        if output.form == "ask":
            return endless("ASK answers once for the whole stream")
        if output.form == "describe":
            return endless("DESCRIBE collects what the whole stream says of a resource")
        if output.limit is not None or output.offset:
            return endless("LIMIT and OFFSET count the matches of the whole stream")
        if output.late is not None:
            return endless("whether something is absent is decided when the whole stream has ended")
        return Reach() if output.source is None else self.known[output.source.node]

    # --- nodes ---

    def _of(self, name: str, node: ir.Node) -> Reach:
        if name in self.late and not isinstance(node, ir.Group):
            return self._late(node)
        match node:
            case ir.Leaf() | ir.Record():
                return self._leaf(name)
            case ir.Map():
                return self._stepped(self.known[node.child.node], node.steps)
            case ir.Union():
                return _hull([self.known[ref.node] for ref in node.branches])
            case ir.Join():
                return self._join(name, node)
            case ir.Outer():
                return self._outer(name, node)
            case ir.Absence():
                return self._absence(name, node)
            case ir.Run():
                return self._run(node)
            case ir.Recall():
                return endless("EXISTS looks back at all the past")
            case ir.Closure():
                return self._within([self.known[node.edge.node]], (), _micros(node.bound), "a path may take any time")
            case ir.Group():
                return self._group(node)
            case ir.Slice():
                if node.limit is not None or node.offset:
                    return endless("LIMIT and OFFSET count the solutions of the whole stream")
                return self.known[node.child.node]
            case _:
                assert_never(node)

    def _late(self, node: ir.Node) -> Reach:
        """The rows of an aggregate may be known later than they end; their readers compare the ends."""
        if isinstance(node, ir.Map) and not node.distinct:
            return self.known[node.child.node]
        return endless("the rows of an aggregate, which may be known later than they end, are used further")

    def _leaf(self, name: str) -> Reach:
        """An input occurrence reaches back only to its end; a derived one as far as its rule."""
        makers = []
        for output in self.fed[name]:
            if output.source is not None and output.source.node in self.late:
                makers.append(endless(f"{output.query} derives triples from an aggregate"))
            else:
                makers.append(self._output(output))
        return _hull([Reach(), *makers])

    def _stepped(self, child: Reach, steps: Iterable[ir.Step]) -> Reach:
        bounds = [_micros(step.bound) for step in steps if isinstance(step, ir.Duration)]
        span = min([child.span, *bounds])
        return _settled(min(child.back, span + child.before), child.before, span, child.reason)

    def _join(self, name: str, node: ir.Join) -> Reach:
        left, right = self.known[node.left.node], self.known[node.right.node]
        if node.policy and node.op not in TOGETHER:  # else the policy chooses among the solutions of one instant
            return endless(_consumes(node.policy))
        if node.leaves:
            return endless("EXISTS looks back at all the past")
        span = min(_micros(node.bound), relations.longest(node.op, left.span, right.span))
        at_end = (right,) if node.op in RIGHT_LAST else (left, right) if node.op in TOGETHER else ()
        inside = (left,) if node.op in RIGHT_LAST else () if node.op in TOGETHER else (left, right)
        if node.op is Op.NEXT:
            inside = (left, right)  # a different right side may have been the next
        first, second = self.names[node.left.node], self.names[node.right.node]
        both = f"two solutions of {first}" if first == second else f"{first} and {second}"
        why = f"nothing bounds how far {both} lie apart"
        return self._stepped(self._within(inside, at_end, span, why), node.steps)

    def _within(self, inside: Iterable[Reach], at_end: Iterable[Reach], span: int, why: str) -> Reach:
        """Parts that lie inside the interval of the whole; those of ``at_end`` end with it."""
        parts = [*inside, *at_end]
        before = max(part.before for part in parts)
        reason = next((part.reason for part in parts if part.before >= ENDLESS), "") or why
        back = max([span + part.before for part in inside] + [min(p.back, span + p.before) for p in at_end])
        return _settled(back, before, span, reason)

    def _outer(self, name: str, node: ir.Outer) -> Reach:
        left = self.known[node.left.node]
        if node.leaves:
            return endless("EXISTS looks back at all the past")
        if node.policy and node.op not in TOGETHER:
            return endless(_consumes(node.policy))
        if node.right is None:
            return self._stepped(left, node.steps)
        right = self.known[node.right.node]
        if node.op in SAME_INTERVAL:
            both = _hull([left, right])
            return self._stepped(Reach(both.back, both.before, left.span, both.reason), node.steps)
        bound = _micros(node.bound)
        if bound >= ENDLESS:
            return endless(f"{node.op.upper()} looks at all the past")
        # A partner starts at e − bound or later, and e is not before s.
        reason = left.reason or right.reason
        back = max(left.back, bound + right.before)
        settled = _settled(back, max(left.before, bound + right.before), max(left.span, bound), reason)
        return self._stepped(settled, node.steps)

    def _absence(self, name: str, node: ir.Absence) -> Reach:
        left, absent = self.known[node.left.node], self.known[node.absent.node]
        if node.policy:
            return endless(_consumes(node.policy))
        if node.deadline is not None:
            # The left ends at e − deadline; the absent side starts after that.
            deadline = _micros(node.deadline)
            reason = left.reason or absent.reason
            back, before = deadline + max(left.back, absent.before), max(left.before, absent.before)
            return self._stepped(_settled(back, before, left.span + deadline, reason), node.steps)
        why = "nothing bounds how long it lasts, and what must be absent may be anywhere in it"
        if node.right is None:
            span = min(_micros(node.bound), left.span)
            return self._stepped(self._within((absent,), (left,), span, why), node.steps)
        right = self.known[node.right.node]
        return self._stepped(self._within((left, absent), (right,), _micros(node.bound), why), node.steps)

    def _run(self, node: ir.Run) -> Reach:
        if node.longest:
            return endless("LONGEST looks at all that a run may have begun with")
        if any(map(alg.has_exists, node.condition)):
            return endless("EXISTS looks back at all the past")
        parts = [self.known[node.child.node], *([] if node.absent is None else [self.known[node.absent.node]])]
        return self._within(parts, (), _micros(node.bound), "nothing bounds how long a run of REPEAT lasts")

    def _group(self, node: ir.Group) -> Reach:
        """Whether a row is new depends on the row before it, whose window reaches back once more.

        A row that was reported before any solution of the present window had come has another interval, so it need not
        be known.
        """
        child = self.known[node.child.node]
        if not node.keys:
            return endless("an aggregate without GROUP BY also answers for a stream in which it found nothing")
        if node.window is None:
            return endless("an aggregate without a window counts from the beginning")
        if node.window.events:
            return endless("the last solutions that a window counts may lie back any time")
        if node.leaves:
            return endless("EXISTS looks back at all the past")
        if node.background is not None:
            return endless("its groups also hold what the background alone answers")
        if node.child.node in self.late:
            return endless("an aggregate counts the rows of another, which may be known later than they end")
        back = 2 * _micros(node.window) + child.back
        return _settled(back, back, ENDLESS, child.reason)


def _micros(bound: alg.Bound | None) -> int:
    """A bound at its longest; a family's window, which differs between queries, counts as unbounded."""
    return ENDLESS if bound is None or bound.events else min(longest(bound), ENDLESS)


def _consumes(policy: str) -> str:
    return f"under the policy {policy} a match uses up what it is made of, so all earlier ones matter"


def _settled(back: int, before: int, span: int, reason: str) -> Reach:
    """The reach with ``before`` at most ``back``, as s ≤ e; it has a reason only if it is unbounded."""
    back, span = min(back, ENDLESS), min(span, ENDLESS)
    return Reach(back, min(before, back), span, reason if back >= ENDLESS else "")


def endless(reason: str) -> Reach:
    """A reach back to the beginning of the stream, with the reason."""
    return Reach(ENDLESS, ENDLESS, ENDLESS, reason)


def _hull(parts: list[Reach]) -> Reach:
    """The reach that covers all parts."""
    back, before, span = (max(getattr(part, name) for part in parts) for name in ("back", "before", "span"))
    reason = next((part.reason for part in parts if part.reason), "")
    return Reach(back, before, span, reason)


def furthest(reached: Mapping[str, Reach], queries: Iterable[str]) -> Reach:
    """How far back some queries reach together; the first unbounded one gives the reason."""
    worst = Reach()
    for query in queries:
        reach = reached[query]
        if not reach.bounded:
            return endless(f"{query}: {reach.reason}")
        worst = _hull([worst, reach])
    return worst


__all__ = ["ENDLESS", "Reach", "endless", "furthest", "reaches"]
