"""The event-driven backward-chaining rules of a node, in the notation of [EP] §5.

A join of L and R into H is a pair of rules for each side that can arrive last ([EP] (11) and (12)): the goal-insertion
rule asserts ``goal(R, L, H)``, which says "L has happened, R is awaited, to detect H"; the checking rule finds it when
R arrives.  Intervals are ``[T1,T2]`` for the left and ``[T3,T4]`` for the right.  ``not(…)`` is negation as failure,
``latest`` and ``earliest`` pick the candidate that a consuming policy retracts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from . import algebra as alg
from . import program as ir
from .definitions import Definitions, is_infix
from .operators import decides_for_good
from .relations import RIGHT_LAST, OuterOp, Relation
from .relations import hull as hull_by_bounds
from .spelling import Spelling, limit

Times = tuple[str, str]
LEFT, RIGHT, GONE = ("T1", "T2"), ("T3", "T4"), ("T5", "T6")
_TIMES = {"a": "T1", "a'": "T2", "b": "T3", "b'": "T4", "min": "min(T1,T3)", "max": "max(T2,T4)"}
_PICKED = {"recent": "latest", "chronological": "earliest"}
_MIDDLE = "~2"  # the node between a path and the edge that goes on from it


def hull_of(op: Relation) -> Times:
    """The interval of the solutions that a left and a right side make together."""
    start, end = hull_by_bounds(op)
    return _TIMES[start], _TIMES[end]


def tests_of(op: Relation) -> list[str]:
    """The conditions on the intervals [T1,T2] of the left side and [T3,T4] of the right one."""
    return [f"{_TIMES[x]} {'≤' if test == '<=' else test} {_TIMES[y]}" for x, test, y in op.comparisons]


@dataclass(frozen=True, slots=True)
class Clauses:
    nodes: Mapping[str, ir.Node]
    names: Mapping[str, str]
    spelling: Spelling

    # --- atoms ---

    def atom(self, ref: ir.Ref, times: Times | None = None) -> str:
        """A goal or a streamed triple, as seen by the node that uses it."""
        at = "" if times is None else f"[{times[0]},{times[1]}]"
        node = self.nodes.get(ref.node)
        if isinstance(node, ir.Leaf):
            return self.triple(node, dict(zip(node.head, ref.columns, strict=True))) + at
        return f"{self.names[ref.node]}({self._variables(ref.columns)}){at}"

    def triple(self, leaf: ir.Leaf, columns: Mapping[str, str]) -> str:
        inner = ", ".join(self._position(p, columns) for p in (leaf.subject, leaf.predicate, leaf.object))
        text = f"{'entailed' if leaf.entailed else 'triple'}({inner})"
        return f"{text} in {self.spelling.text(leaf.stream)}" if leaf.stream else text

    def event(self, node: ir.Record) -> str:
        """The pattern over one event, with the stream or graph of the events if it has one."""
        graph = "" if node.graph is None else f"{self._written(node.graph)}, "
        text = f"event({graph}{self.pattern(node.pattern)})"
        return f"{text} in {self.spelling.text(node.stream)}" if node.stream else text

    def _position(self, position: ir.Position, columns: Mapping[str, str]) -> str:
        match position:
            case alg.Var(name):
                return self.spelling.variable(columns[name]) if name in columns else "_"
            case alg.Const(term):
                return self.spelling.term(term)
            case ir.OneOf(terms):
                return "|".join(map(self.spelling.term, terms))
            case ir.NoneOf(terms):
                return f"!({'|'.join(map(self.spelling.term, terms))})"
        return "_"

    def _variables(self, names: Iterable[str]) -> str:
        return ", ".join(map(self.spelling.variable, names))

    def _head(self, identifier: str, node: ir.Node, times: Times | None = None) -> str:
        at = "" if times is None else f"[{times[0]},{times[1]}]"
        return f"{self.names[identifier]}({self._variables(node.head)}){at}"

    # --- bodies ---

    def expression(self, e: alg.Expr, times: Times, nested: bool = False) -> str:
        start, end = times
        match e:
            case alg.Apply("GETDURATION", ()):
                return f"({end} − {start})" if nested else f"{end} − {start}"
            case alg.Apply("GETSTARTTIME", ()):
                return start
            case alg.Apply("GETENDTIME", ()):
                return end
            case alg.Apply("IN", (operand, *choices)) if choices:
                inner = ", ".join(self.expression(c, times) for c in choices)
                text = f"{self.expression(operand, times, True)} ∈ {{{inner}}}"
                return f"({text})" if nested else text
            case alg.Apply("neg", (operand,)):
                return f"−{self.expression(operand, times, True)}"
            case alg.Apply("!", (operand,)):
                return f"¬{self.expression(operand, times, True)}"
            case alg.Apply(op, args) if is_infix(e):
                text = f"{self.expression(args[0], times, True)} {op} {self.expression(args[1], times, True)}"
                return f"({text})" if nested else text
            case alg.Apply(op, args):
                inside = ", ".join(self.expression(a, times) for a in args) or "*" * op.startswith("COUNT")
                return f"{self.spelling.text(op)}({inside})"
            case alg.Exists(pattern):
                return f"exists({self.pattern(pattern)})"
        return self._written(e)

    def pattern(self, pattern: alg.Pattern) -> str:
        match pattern:
            case alg.BGP(triples, stream, graph) if not stream:
                text = "{" + " . ".join(map(self._written, triples)) + "}"
                return text if graph is None else f"{self._written(graph)} {text}"
        return self._written(pattern)

    def _written(self, value: object) -> str:
        return Definitions(self.spelling, self.names).value(value)

    def window(self, bound: alg.Bound | None, times: Times) -> list[str]:
        if bound is None or isinstance(bound, ir.Longest):
            return []
        relation, length = limit(bound)
        return [f"{times[1]} − {times[0]} {relation} {length}"]

    def steps(self, steps: tuple[ir.Step, ...], times: Times) -> Iterator[str]:
        for step in steps:
            match step:
                case ir.Condition(e):
                    yield self.expression(e, times)
                case ir.Assign(variable, e):
                    yield f"{self.spelling.variable(variable)} is {self.expression(e, times)}"
                case ir.Duration(bound):
                    yield from self.window(bound, times)
                case ir.Lasting(parameter):
                    yield f"{times[1]} − {times[0]} ≤ {self.spelling.variable(parameter)}"
                case ir.Background(pattern, _):
                    yield f"background({self.pattern(pattern)})"
                case ir.Parameters(family, equal, binds):
                    places = [f"{self.spelling.variable(name)} = {place}" for name, place in (*equal, *binds)]
                    yield f"parameters({family}: {', '.join(places)})"
                case _:
                    assert_never(step)

    # --- nodes ---

    def node(self, identifier: str, node: ir.Node) -> Iterator[str]:
        """The rules of a node; a leaf has none, as it stands for itself."""
        match node:
            case ir.Leaf():
                return
            case ir.Record():
                yield self._rule(self._head(identifier, node, LEFT), [f"{self.event(node)}[{LEFT[0]},{LEFT[1]}]"])
            case ir.Map(head, child, steps, distinct):
                body = [self.atom(child, LEFT), *self.steps(steps, LEFT)]
                if distinct:
                    body[0] = f"once({body[0]})"
                times = (LEFT[1], LEFT[1]) if node.at_end else LEFT
                yield self._rule(self._head(identifier, node, times), body)
            case ir.Union(head, branches, distinct):
                for branch in branches:
                    body = [f"once({self.atom(branch, LEFT)})" if distinct else self.atom(branch, LEFT)]
                    body += [f"{self.spelling.variable(v)} is unbound" for v in head if v not in branch.columns]
                    yield self._rule(self._head(identifier, node, LEFT), body)
            case ir.Join():
                yield from self._join(identifier, node)
            case ir.Chain():
                last, times = len(node.parts), ("T1", f"T{2 * len(node.parts)}")
                body = [self.atom(ref, (f"T{2 * i + 1}", f"T{2 * i + 2}")) for i, ref in enumerate(node.parts)]
                body += [f"T{2 * i} < T{2 * i + 1}" for i in range(1, last)]
                body += [*self.window(node.bound, times), *self.steps(node.steps, times)]
                yield self._rule(self._head(identifier, node, times), body)
            case ir.Outer():
                yield from self._outer(identifier, node)
            case ir.Absence():
                yield from self._absence(identifier, node)
            case ir.Run():
                yield from self._run(identifier, node)
            case ir.Recall():
                mark = f"{self.spelling.variable(node.mark)} is exists({self.pattern(node.pattern)})"
                yield self._rule(self._head(identifier, node, LEFT), [self.atom(node.child, LEFT), mark])
            case ir.Closure():
                yield from self._closure(identifier, node)
            case ir.Group():
                yield self._group(identifier, node)
            case ir.Start():
                yield self._rule(self._head(identifier, node, ("T1", "T2")), ["start(T1)", "T2 is T1 − 1 µs"])
            case ir.Skip():
                yield from self._skip(identifier, node)
            case ir.Slice():
                body = [self.atom(node.child, LEFT), *self._sliced(node.distinct, node.order, node.limit, node.offset)]
                yield self._rule(self._head(identifier, node, LEFT), body)
            case _:
                assert_never(node)

    @staticmethod
    def _rule(head: str, body: Iterable[str]) -> str:
        return f"{head} ← {', '.join(body)}."

    def _join(self, identifier: str, node: ir.Join) -> Iterator[str]:
        relation, hull = [*tests_of(node.op), *self.steps(node.condition, RIGHT)], hull_of(node.op)
        relation += self.window(node.deadline, ("T2", "T4"))
        yield from self._pair(identifier, node, node.left, LEFT, node.right, RIGHT, hull, relation)
        if node.op not in RIGHT_LAST:
            yield from self._pair(identifier, node, node.right, RIGHT, node.left, LEFT, hull, relation)
        if decides_for_good(node):
            goal = f"goal({self.atom(node.right)}, {self.atom(node.left, LEFT)}, {self._head(identifier, node)})"
            yield self._rule(f"after {self.atom(node.right, RIGHT)}", [goal, *relation, f"retract({goal})"])

    def _absence(self, identifier: str, node: ir.Absence) -> Iterator[str]:
        """An absent solution waits as a goal that rules out others; before a deadline it retracts them."""
        left, head = self.atom(node.left, LEFT), self._head(identifier, node)
        steps = list(self.steps(node.steps, LEFT))
        if node.deadline is not None:
            due = f"T2 + {limit(node.deadline)[1]}"
            goal = f"goal(time({due}), {left}, {head})"
            yield self._rule(left, [f"assert({goal})"])
            across = self.steps(node.condition, RIGHT)
            yield self._rule(self.atom(node.absent, RIGHT), [goal, "T2 < T3", *across, f"retract({goal})"])
            steps = list(self.steps(node.steps, ("T1", due)))
            report = self._head(identifier, node, ("T1", due))
            yield self._rule(f"time({due})", [goal, f"retract({goal})", *steps, report])
            return
        if node.right is None:
            gone = f"goal({self.atom(node.left)}, {self.atom(node.absent, RIGHT)}, {head})"
            yield self._rule(self.atom(node.absent, RIGHT), [f"assert({gone})"])
            inside = ", ".join([gone, "T1 < T3", "T4 < T2", *self.steps(node.condition, RIGHT)])
            yield self._rule(left, [f"not({inside})", *steps, self._head(identifier, node, LEFT)])
            return
        gone = f"goal({self.atom(node.right)}, {self.atom(node.absent, GONE)}, {head})"
        yield self._rule(self.atom(node.absent, GONE), [f"assert({gone})"])
        between = ", ".join([gone, "T2 < T5", "T6 < T3", *self.steps(node.condition, GONE)])
        relation = ["T2 < T3", f"not({between})"]
        yield from self._pair(identifier, node, node.left, LEFT, node.right, RIGHT, ("T1", "T4"), relation)

    def _run(self, identifier: str, node: ir.Run) -> Iterator[str]:
        """A run is a goal that each next element extends: N elements since T1, the last of which ended at T2."""
        keys = self._variables(node.keys)
        gone = [f"not({self.atom(r, GONE)}, T2 < T5, T6 < T3)" for r in (node.absent, node.until) if r is not None]
        goal = f"goal({self.atom(node.child)}, run([{keys}], N, T1, T2), {self._head(identifier, node)})"
        begun, longer = (goal.replace("N, T1, T2", words, 1) for words in ("1, T1, T2", "N + 1, T1, T4"))
        yield self._rule(self.atom(node.child, LEFT), [f"assert({begun})"])
        holds = (self.expression(e, RIGHT) for e in alg.with_totals(node.condition, node.totals))
        step = [goal, "T2 < T3", *gone, *holds, *([] if node.most is None else [f"N < {node.most}"])]
        step += [*self.window(node.gap, ("T2", "T3")), *self.window(node.bound, ("T1", "T4"))]
        yield self._rule(self.atom(node.child, RIGHT), [*step, f"assert({longer})"])
        yield self._rule(f"after {self.atom(node.child, RIGHT)}", [goal, "T2 < T3", f"retract({goal})"])
        chosen = f"longest({goal})" if node.longest else f"maximal({goal})" if node.maximal else goal
        body = [chosen, f"N ≥ {node.least}"]
        body += [f"{self.spelling.variable(a.variable)} is {self._counted(a)}" for a in node.aggregates]
        if not node.maximal and node.until is None:
            yield self._rule(self._head(identifier, node, LEFT), body)
            return
        for trigger, tests, end in ends_of_runs(self, node):
            yield self._rule(trigger, [*body, *tests, self._head(identifier, node, ("T1", end))])

    def _skip(self, identifier: str, node: ir.Skip) -> Iterator[str]:
        """A fact for each key says where to go on: ``from([X0], T0)``."""
        keys = f"[{self._variables(node.keys)}]"
        known, test, then = f"from({keys}, T0)", *resumes(self, node)
        head = self._head(identifier, node, LEFT)
        body = [f"inorder({self.atom(node.child, LEFT)})"]
        yield self._rule(self.atom(node.child, LEFT), [*body, f"not({known})", f"assert(from({keys}, {then}))", head])
        changed = [f"retract({known})", f"assert(from({keys}, {then}))"]
        yield self._rule(self.atom(node.child, LEFT), [*body, known, test, *changed, head])

    def _pair(
        self,
        identifier: str,
        node: ir.Join | ir.Absence,
        first: ir.Ref,
        then: Times,
        last: ir.Ref,
        now: Times,
        hull: Times,
        relation: list[str],
    ) -> Iterator[str]:
        """The goal-insertion rule and the checking rule for ``first`` before ``last``."""
        goal = f"goal({self.atom(last)}, {self.atom(first, then)}, {self._head(identifier, node)})"
        yield self._rule(self.atom(first, then), [f"assert({goal})"])
        body = [goal, *relation, *self.window(node.bound, hull), *self.steps(node.steps, hull)]
        if node.policy:
            body += [f"{_PICKED.get(node.policy, node.policy)}({then[0]},{then[1]})", f"retract({goal})"]
        yield self._rule(self.atom(last, now), [*body, self._head(identifier, node, hull)])

    def _outer(self, identifier: str, node: ir.Outer) -> Iterator[str]:
        """With the optional partner, and without: [EP]'s two halves."""
        left = self.atom(node.left, LEFT)
        relation, hull = tests_of(node.op), hull_of(node.op)
        shared = [f"shares({self._variables(node.scope)})"] if node.op is OuterOp.MINUS else []
        partners = []
        if node.right is not None:
            goal = f"goal({self.atom(node.left)}, {self.atom(node.right, RIGHT)}, {self._head(identifier, node)})"
            yield self._rule(self.atom(node.right, RIGHT), [f"assert({goal})"])
            tests = [*self.window(node.bound, hull), *self.steps(node.condition, hull)]
            partners.append(([goal, *relation, *shared, *tests], hull, goal))
        if node.background is not None:
            asked = [f"background({self.pattern(node.background)})", *shared, *self.steps(node.condition, LEFT)]
            partners.append((asked, LEFT, ""))
        mark = f"{self.spelling.variable(node.mark)} is " if node.mark else ""
        if node.op is not OuterOp.MINUS:
            for body, times, goal in partners:
                taken = []
                if node.op is OuterOp.EXISTS:
                    body, times = [f"once({', '.join(body)})", f"{mark}true"], LEFT
                elif node.policy and goal:
                    taken = [f"{_PICKED.get(node.policy, node.policy)}(T3,T4)", f"retract({goal})"]
                after = self.steps(node.steps, times)
                yield self._rule(left, [*body, *taken, *after, self._head(identifier, node, times)])
        absent = [f"not({', '.join(body)})" for body, _, _ in partners]
        if mark:
            absent.append(f"{mark}false")
        after = self.steps(node.steps, LEFT)
        yield self._rule(left, [*absent, *after, self._head(identifier, node, LEFT)])

    def _closure(self, identifier: str, node: ir.Closure) -> Iterator[str]:
        """``path+`` as its least relation: an edge, and an edge after a path."""
        source, target = node.ends
        hull = ("min(T1,T3)", "max(T2,T4)")

        def path(start: str, end: str, times: Times) -> str:
            ends = {source: start, target: end}
            return f"{self.names[identifier]}({self._variables(ends[c] for c in node.head)})[{times[0]},{times[1]}]"

        onward = {source: _MIDDLE, target: target}
        edge = ir.Ref(node.edge.node, tuple(onward[c] for c in node.edge.columns))
        first = [f"once({self.atom(node.edge, LEFT)})", *self.window(node.bound, LEFT)]
        yield self._rule(path(source, target, LEFT), first)
        both = f"once({path(source, _MIDDLE, LEFT)}, {self.atom(edge, RIGHT)})"
        yield self._rule(path(source, target, hull), [both, *self.window(node.bound, hull)])
        if node.background is not None:
            ahead = alg.rename(node.background, {source: _MIDDLE})
            behind = alg.rename(node.background, {target: _MIDDLE})
            for known, stored in ((path(source, _MIDDLE, LEFT), ahead), (path(_MIDDLE, target, LEFT), behind)):
                yield self._rule(path(source, target, LEFT), [f"once({known}, background({self._written(stored)}))"])

    def _group(self, identifier: str, node: ir.Group) -> str:
        child = self.atom(node.child, LEFT)
        if node.background is not None:
            child = f"({child} or background({self.pattern(node.background)}))"
        if node.window is not None:
            relation, length = limit(node.window)
            child = (
                f"last {node.window.events} of {child}"
                if node.window.events
                else f"{child} with T − T2 {relation} {length}"
            )
        hull = ("T5", "T6")
        body = [f"group([{self._variables(node.keys)}], {child}, hull [T5,T6])"]
        body += [f"{self.spelling.variable(call.variable)} is {self._counted(call)}" for call in node.aggregates]
        body += [self.expression(e, hull) for e in node.having]
        body += [f"{self.spelling.variable(name)} is {self.expression(e, hull)}" for name, e in node.extends]
        body += self._sliced(node.distinct, node.order, node.limit, node.offset, hull)
        return self._rule(self._head(identifier, node, hull), [*body, "changed"])

    def _counted(self, call: alg.AggregateCall) -> str:
        operand = "*" if call.operand is None else self.expression(call.operand, LEFT)
        separator = "" if call.separator == " " else f"; {self.spelling.quoted(call.separator)}"
        return f"{call.name}({'DISTINCT ' if call.distinct else ''}{operand}{separator})"

    def _sliced(
        self,
        distinct: bool,
        order: tuple[alg.OrderKey, ...],
        most: int | None,
        offset: int,
        times: Times = LEFT,
    ) -> list[str]:
        clauses = ["distinct"] if distinct else []
        for key in order:
            clauses.append(f"order({'descending ' if key.descending else ''}{self.expression(key.expression, times)})")
        if offset:
            clauses.append(f"offset({offset})")
        return clauses if most is None else [*clauses, f"limit({most})"]

    # --- queries ---

    def output(self, output: ir.Output) -> Iterator[str]:
        """The reports of a query: its matches, the triples of a CONSTRUCT, the answer of an ASK."""
        heads = self._heads(output)
        after = self._sliced(output.distinct, output.order, output.limit, output.offset)
        if output.source is not None:
            for head in heads:
                yield self._rule(f"{head}[T1,T2]", [self.atom(output.source, LEFT), *after])
        if output.timeless is not None:
            for head in heads:
                yield self._rule(head, [f"background({self.pattern(output.timeless)})"])

    def _heads(self, output: ir.Output) -> list[str]:
        name = self.spelling.text(output.query)
        if output.form == "construct":
            columns = () if output.source is None else output.source.columns
            heads = []
            for t in output.template:
                inner = ", ".join(self._made(n, columns) for n in (t.subject, t.predicate, t.object))
                suffix = f" in {self.spelling.text(output.stream)}" if output.stream else ""
                heads.append(f"triple({inner}){suffix}")
            return heads or [f"{name}()"]
        if output.form == "describe":
            return [f"describe({', '.join(map(self._written, output.subjects))})"]
        return [f"{name}({self._variables(output.variables)})"]

    def _made(self, node: alg.Var | alg.Const, columns: tuple[str, ...]) -> str:
        if isinstance(node, ir.NewTerm):
            return f"<<( {' '.join(self._made(part, columns) for part in node.parts)} )>>"
        if isinstance(node, alg.Var) and node.name.startswith("_:") and node.name not in columns:
            return f"{node.name}({self._variables(sorted(columns))})"
        return self._written(node)


def resumes(clauses: Clauses, node: ir.Skip) -> tuple[str, str]:
    """What one must satisfy that is kept, given the time T0 of the last one; and its own time."""
    if node.after is None:
        assert node.length is not None
        return "T2 ≥ T0", f"T2 + {limit(node.length)[1]}"
    return f"T1 {'≥' if node.at else '>'} T0", clauses.expression(node.after, LEFT)


def ends_of_runs(clauses: Clauses, node: ir.Run) -> list[tuple[str, list[str], str]]:
    """What makes it certain that a run is over, the tests of its times, and the end of the solution."""
    if (until := node.until) is not None:
        return [(f"after {clauses.atom(until, GONE)}", ["T2 < T5", f"first({clauses.atom(until, GONE)})"], "T6")]
    found = [(f"after {clauses.atom(node.child, RIGHT)}", ["T2 < T3"], "T4")]
    if node.absent is not None:
        found.append((f"after {clauses.atom(node.absent, GONE)}", ["T2 < T5"], "T6"))
    if node.most is not None:
        found.append((f"after {clauses.atom(node.child, LEFT)}", [f"N = {node.most}"], "T2"))
    due = "T2" if node.gap is None else f"T2 + {limit(node.gap)[1]}"
    return [*found, ("end of the stream" if node.gap is None else f"time({due})", [], due)]
