"""Computes how far back solutions reach: occurrences that ended earlier affect neither a solution nor its absence.

A query whose solutions reach back at most d can be answered in slices of time: the events that end in [a − d, b) give
exactly the solutions of [a, b).  Each node has three lengths; e is the end of a solution (for an aggregate: the instant
in which it is known), s its start:

* ``back``: whether it is a solution depends only on occurrences that end at e − back or later;
* ``before``: and only on those that end at s − before or later;
* ``span``: e − s is at most this.

The occurrences that a solution is made of lie inside its interval.  So the parts of a join, a run or a path end at s or
later, and so does what must be absent: only a bound on the whole matters, however many rules are involved, as a derived
triple has the interval of the solution it is made from.  Operators that look outside the interval add up: the optional
side of OPTIONAL with a bound in its condition, a deadline, a sliding window over solutions.

>>> from etalis_compiler.pipeline import compile_sources, rules_of
>>> from etalis_compiler.diagnostics import Source
>>> text = "SELECT * WHERE { { ?a :p ?x } SEQ { ?b :q ?y } } WITHIN 10 SECONDS"
>>> reaches(rules_of(compile_sources([Source(text)])))["q1"].back
10000000
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules import relations
from etalis_rules.clock import deadline
from etalis_rules.lateness import late_nodes
from etalis_rules.operator_words import keyword
from etalis_rules.operators import Input, Pairing, conditions, inputs, reads_stream, relation
from etalis_rules.printing import node_names
from etalis_rules.relations import ENDLESS, SAME_INTERVAL, TOGETHER
from etalis_rules.roles import Role
from etalis_rules.runs import chosen_by

from .stratify import StreamReaders


@dataclass(frozen=True, slots=True)
class Reach:
    """The lengths of the module's definition, in microseconds; if a solution reaches back without bound, the reason."""

    back: int = 0
    before: int = 0
    span: int = ENDLESS
    reason: str = ""

    @property
    def bounded(self) -> bool:
        return self.back < ENDLESS


def reaches(rules: ir.Rules) -> dict[str, Reach]:
    """How far back the solutions of each query reach, including the rules that feed it."""
    return ReachAnalysis(rules).of_outputs()


class ReachAnalysis:
    def __init__(self, rules: ir.Rules):
        self.rules = rules
        self.nodes = dict(rules.nodes)
        self.names = node_names(rules)
        self.late = late_nodes(self.nodes)
        self.known = dict.fromkeys(self.nodes, Reach(span=0))
        self.runaway: set[str] = set()
        self.fed: dict[str, list[ir.Output]] = {n: [] for n, node in self.nodes.items() if reads_stream(node)}
        readers = StreamReaders(self.nodes)
        for output in rules.outputs:
            for name in readers.fed_by(output):
                self.fed[name].append(output)

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
            case ir.Start():
                return endless("START is the beginning of the stream")
            case ir.Union():
                return _hull([self.known[ref.node] for ref in node.branches])
            case ir.Group():
                return self._group(node)
            case ir.Slice():
                if node.limit is not None or node.offset:
                    return endless("LIMIT and OFFSET count the solutions of the whole stream")
                return self.known[node.child.node]
        found = self._combined(node)
        # A point ends where it starts, so it depends on as much before its start as before its end.
        return replace(found, before=found.back, span=0) if isinstance(node, ir.Map) and node.at_end else found

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

    def _combined(self, node: ir.Node) -> Reach:
        """The reach of a node with one or more inputs, after its steps."""
        if (reason := _all_the_past(node)) is not None:
            return endless(reason)
        below = [part for part in inputs(node) if part.role is not Role.PAST]
        optional = next((part.ref for part in below if part.role is Role.OPTIONAL), None)
        if optional is not None:
            reach = self._outer(node, self._known(below[0]), self.known[optional.node])
        elif isinstance(node, ir.Join) and node.deadline is not None:
            reach = self._until(_micros(node.deadline), *map(self._known, below))
            reach = reach if node.bound is None else self._stepped(reach, (ir.Duration(node.bound),))
        elif (wait := deadline(node)) is not None:
            reach = self._until(_micros(wait), *map(self._known, below))
        elif len(below) == 1 and below[0].role is Role.SIDE:
            reach = self._known(below[0])
        else:
            at_end = [part for part in below if part.last and not part.decides]
            inside = [part for part in below if part not in at_end]
            span = min(_micros(getattr(node, "bound", None)), self._span(node, below))
            reach = self._within(map(self._known, inside), map(self._known, at_end), span, self._apart(node, below))
        steps: tuple[ir.Step, ...] = getattr(node, "steps", ())
        return self._stepped(reach, steps) if steps else reach

    def _known(self, part: Input) -> Reach:
        return self.known[part.ref.node]

    def _span(self, node: ir.Node, below: list[Input]) -> int:
        """The longest that a solution can last, by the lengths of the solutions of its sides."""
        spans = [self._known(part).span for part in below if part.role is Role.SIDE]
        if isinstance(node, Pairing) and len(spans) == 2:
            return relations.longest(relation(node), spans[0], spans[1])
        return spans[0] if spans else ENDLESS

    def _apart(self, node: ir.Node, below: list[Input]) -> str:
        """The reason, in words, why nothing bounds how long a solution lasts."""
        if below[0].role is Role.MEMBER:
            word = keyword(node)
            return f"nothing bounds how long a run of {word} lasts" if word else "a path may take any time"
        if any(part.role is Role.ABSENT for part in below):
            return "nothing bounds how long it lasts, and what must be absent may be anywhere in it"
        first, second = (self.names[part.ref.node] for part in below)
        both = f"two solutions of {first}" if first == second else f"{first} and {second}"
        return f"nothing bounds how far {both} lie apart"

    def _within(self, inside: Iterable[Reach], at_end: Iterable[Reach], span: int, why: str) -> Reach:
        """The reach of a whole whose parts lie inside its interval; parts in ``at_end`` end with it."""
        inside, at_end = list(inside), list(at_end)
        parts = [*inside, *at_end]
        before = max(part.before for part in parts)
        reason = next((part.reason for part in parts if part.before >= ENDLESS), "") or why
        back = max([span + part.before for part in inside] + [min(p.back, span + p.before) for p in at_end])
        return _settled(back, before, span, reason)

    @staticmethod
    def _outer(node: ir.Node, left: Reach, right: Reach) -> Reach:
        """The reach of an outer node, to which the optional side may add."""
        op = getattr(node, "op", None)
        if op in SAME_INTERVAL:
            both = _hull([left, right])
            return Reach(both.back, both.before, left.span, both.reason)
        bound = _micros(getattr(node, "bound", None))
        if bound >= ENDLESS:
            return endless(f"{keyword(node)} looks at all the past")
        # A partner starts at e − bound or later, and e is not before s.
        reason = left.reason or right.reason
        back = max(left.back, bound + right.before)
        return _settled(back, max(left.before, bound + right.before), max(left.span, bound), reason)

    @staticmethod
    def _until(wait: int, left: Reach, other: Reach) -> Reach:
        """The reach of a deadline: the left ends at e − wait or later, and the other side starts after that."""
        reason = left.reason or other.reason
        back, before = wait + max(left.back, other.before), max(left.before, other.before)
        return _settled(back, before, left.span + wait, reason)

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


def _all_the_past(node: ir.Node) -> str | None:
    """The reason why a node looks at all the past; None if it does not."""
    policy = getattr(node, "policy", "")
    if policy and getattr(node, "op", None) not in TOGETHER:  # else it chooses among the solutions of one instant
        consumes = f"under the policy {policy} a match uses up what it is made of, so all earlier ones matter"
        # In a pairing EXISTS looks back only because of the policy.
        return consumes if isinstance(node, Pairing) else _looks_at_all(node) or consumes
    return _looks_at_all(node)


def _looks_at_all(node: ir.Node) -> str | None:
    """Why the operator itself looks at all the past, however short its window; None if it does not."""
    if isinstance(node, ir.Skip):
        return f"{keyword(node)} goes by the last one kept, which may lie back any time"
    if word := chosen_by(node):
        return f"{word} looks at all that a run may have begun with"
    if any(part.role is Role.PAST for part in inputs(node)) or any(map(alg.has_exists, conditions(node))):
        return "EXISTS looks back at all the past"
    return None


def _micros(bound: alg.Bound | None) -> int:
    """A bound at its longest; a family's window, which differs between queries, counts as unbounded."""
    return ENDLESS if bound is None or bound.events else min(bound.longest, ENDLESS)


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
