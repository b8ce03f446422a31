"""Drawing random groups, filters and paths as syntax trees.

What may occur is a ``Palette``.  The vocabulary is small so that joins happen, and a budget of triple patterns per
query keeps an evaluation at a few milliseconds.  The drawn queries are valid: a BIND's variable is fresh, and a
mandatory side always holds a triple pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeVar

from etalis_compiler import ast
from etalis_compiler.scope import in_scope
from etalis_rules.terms import TRUE, XSD, literal
from hypothesis import strategies as st

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]

SUBJECTS = ("<urn:a>", "<urn:b>", "<urn:c>")
PREDICATES = ("<urn:p>", "<urn:q>", "<urn:r>")
NUMBERS = tuple(literal(n, XSD + "integer") for n in ("1", "01", "2", "3"))
LIKELY = (*PREDICATES[:1] * 6, *PREDICATES[1:2] * 4, PREDICATES[2])
NODES = (*SUBJECTS[:1] * 4, *SUBJECTS[1:2] * 2, SUBJECTS[2])
VALUES = (*NODES[2:], *NUMBERS, *NUMBERS[:3])
STREAMS = ("<urn:s1>", "<urn:s2>")
GRAPHS = ("<urn:g1>", "<urn:g2>")
VARIABLES = ("x", "y", "z", "v")  # ?x mostly a subject, ?y a subject or an object
COMPARISONS = ("!=", "!=", "!=", "<=", ">=", "<=", ">=", "<", ">", "=")


@dataclass(frozen=True, slots=True)
class Palette:
    """Which constructs may be drawn; predicates other than the stream's are those of derived triples."""

    pairs: tuple[str, ...] = ("SEQ", "SEQ", "EQUALS", "AND", "UNION")
    # Of GAP (SEQ NOT … SEQ), DEADLINE (SEQ NOT … WITHIN), MAYBE (SEQ OPTIONAL … SEQ), SOON (… WITHIN), REPEAT, SKIP
    absence: tuple[str, ...] = ()
    in_a_row: tuple[int, ...] = (1, 1, 1, 2, 2, 3)  # how many optional parts of MAYBE
    optionals: tuple[str, ...] = ()  # of OPTIONAL, OPTIONALSEQ, EQUALSOPTIONAL
    minus: bool = False
    exists: bool = False
    nested: bool = False  # most of EXISTS and MINUS hold another of the two
    bind: bool = True
    values: bool = True
    within: bool = True
    paths: bool = False
    graphs: bool = False
    streams: bool = False
    events: bool = False  # EVENT {…}
    blanks: bool = True
    subselect: bool = True
    gathering: bool = False  # a sub-SELECT may group, aggregate or have a LIMIT
    times: bool = True  # getDURATION and its like
    open: bool = True  # variables for predicates
    apart: bool = False  # subjects are mostly ?x and objects mostly differ, so that most sides have partners
    predicates: tuple[str, ...] = LIKELY
    start: bool = False  # { START } at the left of many a SEQ, NEXT and SEQ NOT
    ends: tuple[str, ...] = ("", "LONGEST", "MAXIMAL", "UNTIL")  # which runs of REPEAT are reported


@cache
def one_of_these(choices: tuple[T, ...]) -> st.SearchStrategy[T]:
    """``sampled_from``, made and validated once: a program takes some two hundred draws."""
    return st.sampled_from(choices)


@cache
def once_in(number: int) -> st.SearchStrategy[bool]:
    return st.sampled_from((False,) * (number - 1) + (True,))


@dataclass
class Pen:
    """Draws the parts of one query; counts what must be fresh and how many triple patterns are left."""

    draw: Draw[Any]
    palette: Palette
    patterns: int = 3
    filters: int = 2
    values: int = 1
    serial: int = 0
    used: list[str] = field(default_factory=list)  # variables of the triple patterns so far

    def pick(self, choices: Sequence[T]) -> T:
        return self.draw(one_of_these(tuple(choices)))

    def chance(self, one_in: int) -> bool:
        return self.draw(once_in(one_in))

    def fresh(self, prefix: str) -> str:
        self.serial += 1
        return f"{prefix}{self.serial}"

    def mention(self, names: Sequence[str]) -> ast.Var:
        """A variable for a triple pattern."""
        self.used.append(self.pick(names))
        return ast.Var(self.used[-1])

    # --- triples ---------------------------------------------------------------------------------------------

    def subject(self) -> ast.Node:
        if self.palette.blanks and self.chance(12):
            return ast.Blank(self.fresh("n"))
        if self.palette.apart and not self.chance(8):
            return self.mention("x")
        return ast.Term(self.pick(NODES)) if self.chance(20) else self.mention("xxxxxxyv")

    def object(self) -> ast.Node:
        if self.palette.blanks and self.chance(12):
            return ast.Blank(self.fresh("n"))
        if self.palette.apart and not self.chance(8):
            return self.mention(next((v for v in "yzv" if v not in self.used), "v"))
        if self.chance(20):
            return ast.Term(self.pick(VALUES))
        return self.mention("yyyzzzvvx")

    def predicate(self) -> ast.Var | ast.Term | ast.Path:
        if self.palette.paths and not self.chance(3):
            return self.path(2)
        return (
            self.mention("w") if self.palette.open and self.chance(20) else ast.Term(self.pick(self.palette.predicates))
        )

    def path(self, depth: int) -> ast.Path:
        """A path that is more than one IRI."""
        kind = self.pick(("repeat", "repeat", "sequence", "alternative", "inverse", "negated"))
        if kind == "negated":
            forward = tuple(sorted(set(self.draw(st.lists(st.sampled_from(PREDICATES), min_size=1, max_size=2)))))
            return ast.PathNegated(forward, (self.pick(PREDICATES),) if self.chance(3) else ())
        if kind == "repeat":
            return ast.PathRepeat(self.step(depth - 1), self.pick(("*", "+", "?")))
        if kind == "inverse":
            return ast.PathInverse(self.step(depth - 1))
        parts = (self.step(depth - 1), self.step(depth - 1))
        return ast.PathSequence(parts) if kind == "sequence" else ast.PathAlternative(parts)

    def step(self, depth: int) -> ast.Path:
        return ast.PathIri(self.pick(LIKELY)) if depth <= 0 or self.chance(2) else self.path(depth)

    def triples(self) -> ast.Triples:
        size = 2 if self.patterns > 1 and self.chance(4) else 1
        self.patterns -= size
        return ast.Triples(
            tuple(ast.TriplePattern(self.subject(), self.predicate(), self.object()) for _ in range(size))
        )

    # --- groups ----------------------------------------------------------------------------------------------

    def group(self, depth: int) -> ast.Group:
        """Something with a triple in it, perhaps more elements, perhaps a filter."""
        elements: list[ast.Element] = [self.mandatory(depth)]
        while self.chance(3) and len(elements) < 4:
            more = self.extra(depth)
            if isinstance(elements[-1], ast.Triples) and isinstance(more, ast.Triples):
                more = ast.Triples(elements.pop().patterns + more.patterns)  # one block, as it would be read
            elements.append(more)
        if self.filters > 0 and self.chance(4):
            self.filters -= 1
            elements.insert(self.draw(st.integers(0, len(elements))), ast.Filter(self.condition(1)))
        return ast.Group(tuple(elements))

    def mandatory(self, depth: int) -> ast.Element:
        if depth <= 0 or self.patterns <= 1 or self.chance(3):
            return self.wrapped(self.triples())
        optionals = tuple(o for o in self.palette.optionals if o != "OPTIONAL")
        operator = self.pick(self.palette.pairs + optionals + self.palette.absence)
        match operator:
            case "GAP":
                self.patterns += 1
                left = self.first(depth - 1)
                return ast.SeqNot(left, self.compared(left, self.group(0)), self.side(depth - 1))
            case "DEADLINE":
                bound = ast.Duration("duration", self.pick(("PT1S", "PT2S", "PT1.5S")))
                left = self.first(depth - 1)
                return ast.SeqNot(left, self.compared(left, self.group(0)), None, bound)
            case "MAYBE" | "SOON":
                return self.seq_optional(operator == "SOON", depth)
            case "REPEAT":
                return self.repeat(depth)
            case "SKIP":
                return self.skip(depth)
        left = self.first(depth - 1) if operator in ("SEQ", "NEXT") else self.side(depth - 1)
        right = self.side(depth - 1)
        if operator in ("NEXT", "NOT"):
            right = self.compared(left, right)
        return ast.Combined(ast.Operator(operator), left, right)

    def first(self, depth: int) -> Any:
        """The left side of a sequence."""
        if not (self.palette.start and self.chance(2)):
            return self.side(depth)
        if self.patterns < 2 or not self.chance(3):
            return ast.Start()
        sides = (ast.Start(), self.side(depth))
        return ast.Group((ast.Combined(ast.Operator.UNION, *(sides if self.chance(2) else sides[::-1])),))

    def seq_optional(self, timed: bool, depth: int) -> ast.SeqOptional:
        left = self.first(depth - 1)
        parts: list[ast.Pattern] = []
        for _ in range(1 if timed else self.pick(self.palette.in_a_row)):
            self.patterns += 1
            before = ast.Group((left, *parts))
            part = self.event() if self.palette.events and self.chance(4) else self.group(0)
            parts.append(self.compared(before, part))
        if timed:
            lengths = ("PT1S", "PT2S", "PT1.5S", *("P1M",) * (not self.palette.start))
            bound = ast.Duration("duration", self.pick(lengths))
            return ast.SeqOptional(left, tuple(parts), None, bound)
        return ast.SeqOptional(left, tuple(parts), self.side(depth - 1))

    def compared(self, left: ast.Pattern, right: Any) -> Any:
        """The right group, perhaps with a filter that compares it with the left."""
        names, others = sorted(in_scope(left)), sorted(in_scope(right))
        if not (names and others) or self.chance(3):
            return right
        match right:
            case ast.Within(inner, bound):
                return ast.Within(self.compared(left, inner), bound)
            case ast.EventGroup(inner, graph):
                return ast.EventGroup(self.compared(left, inner), graph)
            case ast.StreamGroup(stream, inner):
                return ast.StreamGroup(stream, self.compared(left, inner))
            case ast.Group(elements):
                # Subjects are no numbers, so an order between two of them or one of them and a number tells little.
                one = ast.Var(self.pick([v for v in names if v != "x"] or names))
                other = ast.Var(self.pick([v for v in others if v != "x"] or others))
                test: ast.Expression = ast.Binary(self.pick(COMPARISONS), other, one)
                if self.palette.exists and self.chance(4):
                    seen = ast.TriplePattern(ast.Var("x"), ast.Term(self.pick(self.palette.predicates)), one)
                    test = ast.Exists(ast.Group((ast.Triples((seen,)),)), self.chance(2))
                if self.palette.times and self.chance(6):
                    lasting = ast.Binary("<", ast.Call("GETDURATION", ()), ast.Term(literal("PT2S", XSD + "duration")))
                    test = ast.Binary("||", test, lasting)
                if self.chance(6):
                    test = ast.Binary("||", test, ast.Unary("!", ast.Call("BOUND", (one,))))
                return ast.Group((*elements, ast.Filter(test)))
        return right

    def repeat(self, depth: int) -> ast.Repeat:
        """REPEAT with clauses over the variables of its group."""
        outside, self.used = self.used, []
        inner = self.side(depth - 1)
        inside = in_scope(inner)
        self.used = [v for v in self.used if v in inside]
        least = self.pick((1, 2, 2, 3))
        most = self.pick((None, None, least, least + 1))
        chosen = {self.pick(self.used) for _ in range(self.pick((0, 1, 1, 2)) if self.used else 0)}
        by = tuple(map(ast.Var, sorted(chosen)))
        condition, absent = None, None
        if self.used and self.chance(2):
            condition = self.comparison()
            if self.chance(4):
                condition = ast.Binary(self.pick(("&&", "||")), condition, self.comparison())
            if self.chance(3) and isinstance(total := self.counted(), ast.Aggregate):
                limit = ast.Binary(self.pick(("<", "<=", ">")), total, ast.Term(self.pick(NUMBERS)))
                condition = limit if self.chance(2) else ast.Binary(self.pick(("&&", "||")), condition, limit)
        bound = list(self.used)
        if self.patterns > 0 and self.chance(3):
            absent = self.group(0)
        self.used = bound  # no clause sees what is absent
        columns = []
        for _ in range(self.pick((0, 1, 2)) if self.used else 0):
            columns.append(ast.Projection(ast.Var(self.fresh("n")), self.counted()))
        self.used = outside + [v.name for v in by]
        ends = self.pick(self.palette.ends)
        longest, maximal = ends == "LONGEST", ends == "MAXIMAL"
        gap = ast.Duration("duration", self.pick(("PT0.5S", "PT1S", "PT1S", "PT2S", "P1M"))) if self.chance(2) else None
        if maximal and any(isinstance(n, ast.Combined | ast.SeqNot | ast.SeqOptional) for n in ast.walk(inner)):
            gap, absent = None, None  # such a group may have no points, which is an error
        until = None
        if ends == "UNTIL":
            self.patterns += 1
            until = self.group(0)
        return ast.Repeat(inner, least, most, by, condition, absent, longest, tuple(columns), gap, maximal, until)

    def skip(self, depth: int) -> ast.Skip:
        """SKIP PAST or TO the end, or a start inside; DISJOINT; THROTTLE; mostly BY a variable of the group."""
        inner = self.mandatory(depth - 1)
        group = ast.Group((inner,))
        names = sorted(v for v in in_scope(group) if v in VARIABLES)
        by = (ast.Var(self.pick(names)),) if names and not self.chance(3) else ()
        kind = self.pick(("PAST", "TO", "TO", "DISJOINT", "THROTTLE", "THROTTLE"))
        if kind == "THROTTLE":
            length = ast.Duration("duration", self.pick(("PT1S", "PT2S", "PT3S", "P1M")))
            return ast.Skip(group, kind, None, length, by)
        if kind == "DISJOINT":
            return ast.Skip(group, kind, by=by)
        after: ast.Expression = ast.Call(self.pick(("GETENDTIME", "GETENDTIME", "GETSTARTTIME")), ())
        if self.chance(3) and isinstance(inner, ast.Combined) and inner.operator is not ast.Operator.UNION:
            time = ast.Var(self.fresh("t"))
            first = ast.Group((inner.left, ast.Bind(ast.Call("GETENDTIME", ()), time)))
            if inner.operator in (ast.Operator.SEQ, ast.Operator.NEXT):
                group, after = ast.Group((replace(inner, left=first),)), time
        return ast.Skip(group, kind, after, by=by)

    def of_run(self) -> ast.Expression:
        """A value of this element, of the one before it, or of the first."""
        variable = ast.Var(self.pick(self.used))
        return self.pick((variable, ast.Call("PREVIOUS", (variable,)), ast.Call("FIRST", (variable,))))

    def comparison(self) -> ast.Expression:
        """With an earlier element; one further back may not exist, so that its value is often given a default."""
        variable = ast.Var(self.pick(self.used))
        if self.chance(3):
            back = ast.Term(f'"{self.pick((2, 2, 3))}"^^<{XSD}integer>')
            test = ast.Binary(self.pick(COMPARISONS), self.of_run(), ast.Call("PREVIOUS", (variable, back)))
            return ast.Call("COALESCE", (test, ast.Term(TRUE))) if self.chance(2) else test
        before = ast.Call(self.pick(("PREVIOUS", "PREVIOUS", "FIRST")), (variable,))
        return ast.Binary(self.pick(COMPARISONS), self.of_run(), before)

    def counted(self) -> ast.Expression:
        name = self.pick(("COUNT", "COUNT", "SUM", "MIN", "GROUP_CONCAT", "FIRST", "LAST"))
        variable = ast.Var(self.pick(self.used))
        if name in ("FIRST", "LAST"):
            return ast.Call(name, (variable,))
        if name == "COUNT" and self.chance(2):
            return ast.Aggregate("COUNT", None)
        return ast.Aggregate(name, variable, self.chance(4))

    def wrapped(self, triples: ast.Triples) -> ast.Element:
        """The triples, or within GRAPH or STREAM."""
        group = ast.Group((triples,))
        if self.palette.events and not self.chance(3):
            return self.event()
        if self.palette.graphs and self.chance(3):
            name: ast.Var | ast.Term = ast.Var("g") if self.chance(2) else ast.Term(self.pick(GRAPHS))
            return ast.GraphGroup(name, group)
        if self.palette.streams and self.chance(2):
            return ast.StreamGroup(ast.Term(self.pick(STREAMS)), group)
        return triples

    def event(self) -> ast.Element:
        """EVENT, perhaps with a graph or in a stream."""
        outside = self.palette
        self.palette = replace(
            outside,
            pairs=("UNION", "UNION", "AND"),
            absence=(),
            optionals=("OPTIONAL",),
            minus=True,
            exists=True,
            within=False,
            streams=False,
            subselect=True,
            gathering=True,
            events=False,
            paths=self.chance(8),
            apart=outside.apart or not self.chance(4),
        )
        self.patterns, self.filters = self.patterns + 2, self.filters + 1
        group = self.group(self.pick((0, 0, 0, 1)))
        self.palette = outside
        graph = self.pick((*(None,) * 6, ast.Var("g"), ast.Var("x"), ast.Term(GRAPHS[0])))
        event = ast.EventGroup(group, graph)
        if outside.streams and self.chance(2):
            return ast.StreamGroup(ast.Term(self.pick(STREAMS)), ast.Group((event,)))
        return event

    def side(self, depth: int) -> ast.Pattern:
        if self.palette.events and self.chance(4):
            event = self.event()
            assert isinstance(event, ast.EventGroup | ast.StreamGroup)
            return event
        group = self.group(depth)
        if self.palette.within and self.chance(8):
            return ast.Within(group, ast.Duration("duration", self.pick(("PT0S", "PT1S", "PT2S"))))
        return group

    def extra(self, depth: int) -> ast.Element:
        palette = self.palette
        kinds = ["triples"] if self.patterns > 0 else []
        kinds += ["bind"] * palette.bind + ["values"] * (palette.values and self.values > 0)
        if self.patterns > 0:
            kinds += ["optional"] * 2 * ("OPTIONAL" in palette.optionals)
            kinds += ["minus"] * 2 * palette.minus + ["subselect"] * palette.subselect
        match self.pick(kinds or ["bind"]):
            case "triples":
                return self.wrapped(self.triples())
            case "bind":
                return ast.Bind(self.value(), ast.Var(self.fresh("b")))
            case "optional":
                return ast.Optional(self.group(depth - 1))
            case "minus":
                return ast.Minus(self.group(depth - 1))
            case "subselect":
                return ast.Group((self.subselect(depth - 1),))
        self.values -= 1
        names = tuple(self.draw(st.permutations(VARIABLES[:3]))[: self.pick((1, 1, 2))])
        terms = st.sampled_from([*NODES, *NUMBERS, *[None] * 5]).map(lambda t: ast.Term(t) if t else None)
        row = st.tuples(*(terms for _ in names))
        rows = tuple(self.draw(st.lists(row, min_size=2, max_size=3)))
        return ast.Values(tuple(ast.Var(n) for n in names), rows)

    def subselect(self, depth: int) -> ast.Query:
        shown = self.draw(st.permutations(VARIABLES))[:2]
        modifier = "DISTINCT" if self.chance(3) else ""
        group = self.group(depth)
        if self.palette.gathering and self.chance(2):
            keys = tuple(ast.Var(v) for v in shown[: self.pick((0, 1, 1, 2))])
            name = self.pick(("COUNT", "MAX", "SUM", "GROUP_CONCAT"))
            call = ast.Aggregate(name, ast.Var(self.pick(VARIABLES)), self.chance(4))
            columns = (*map(ast.Projection, keys), ast.Projection(ast.Var(self.fresh("b")), call))
            return ast.Query(ast.Select(columns), group, group_by=keys)
        limit = self.pick((1, 1, 2)) if self.palette.gathering and self.chance(2) else None
        order = (ast.OrderKey(ast.Var(shown[1]), self.chance(2)),) if limit and self.chance(2) else ()
        columns = tuple(ast.Projection(ast.Var(v)) for v in shown)
        return ast.Query(ast.Select(columns, modifier), group, order_by=order, limit=limit)

    def nesting(self) -> ast.Group:
        """A group that mostly has an EXISTS or a MINUS in it, as long as patterns are left."""
        group = self.group(0)
        if self.patterns <= 0 or self.chance(5):
            return group
        inner = self.nesting()
        if self.chance(3):
            return ast.Group((*group.elements, ast.Minus(inner)))
        return ast.Group((*group.elements, ast.Filter(ast.Exists(inner, self.chance(2)))))

    # --- expressions -----------------------------------------------------------------------------------------

    def variable(self) -> ast.Var:
        """A variable for an expression: mostly one that some pattern binds."""
        if self.serial and self.chance(5):
            return ast.Var(f"b{self.serial}")
        return ast.Var(self.pick(VARIABLES if self.chance(6) else self.used or VARIABLES))

    def value(self) -> ast.Expression:
        kind = self.pick(
            ("variable", "constant", "sum", "if", "coalesce", "str", *("end", "start") * self.palette.times)
        )
        match kind:
            case "constant":
                return ast.Term(self.pick(SUBJECTS + NUMBERS))
            case "sum":
                return ast.Binary(self.pick(("+", "-", "*")), self.variable(), ast.Term(self.pick(NUMBERS)))
            case "end" | "start":
                return ast.Call("GETENDTIME" if kind == "end" else "GETSTARTTIME", ())
            case "if":
                condition = ast.Binary("<", self.variable(), ast.Term(NUMBERS[2]))
                return ast.Call("IF", (condition, self.variable(), ast.Term(NUMBERS[0])))
            case "coalesce" if self.palette.optionals or "UNION" in self.palette.pairs:
                return ast.Call("COALESCE", (self.variable(), ast.Term(NUMBERS[3])))
            case "str":
                return ast.Call("STR", (self.variable(),))
        return self.variable()

    def condition(self, depth: int) -> ast.Expression:
        kinds = ["compare"] * 3 + ["constant"] * 3 + ["in", "bound"]
        kinds += ["duration", "duration", "time"] * self.palette.times
        kinds += ["and", "or", "not"] * (depth > 0)
        kinds += ["exists"] * 3 * (self.palette.exists and self.patterns > 0)
        kinds += ["bound"] * 2 * bool(self.palette.optionals)
        match self.pick(kinds):
            case "compare":
                return ast.Binary(self.pick(COMPARISONS), self.variable(), self.value())
            case "duration":
                bound = literal(self.pick(("PT1S", "PT2S", "PT3S")), XSD + "dayTimeDuration")
                return ast.Binary(self.pick(("<=", "<=", "<=", "<", ">")), ast.Call("GETDURATION", ()), ast.Term(bound))
            case "time":
                times = (ast.Call("GETSTARTTIME", ()), ast.Call("GETENDTIME", ()))
                return ast.Binary(self.pick(("<", ">=")), self.variable(), self.pick(times))
            case "in":
                choices = (ast.Term(self.pick(NUMBERS)), ast.Term(self.pick(SUBJECTS)))
                return ast.In(self.variable(), choices, self.chance(2))
            case "bound":
                bound_call = ast.Call("BOUND", (ast.Var(self.pick(VARIABLES)),))
                return ast.Unary("!", bound_call) if self.chance(2) else bound_call
            case "and" | "or" as kind:
                operator = "&&" if kind == "and" else "||"
                return ast.Binary(operator, self.condition(depth - 1), self.condition(depth - 1))
            case "not":
                return ast.Unary("!", self.condition(depth - 1))
            case "exists":
                return ast.Exists(self.nesting() if self.palette.nested else self.group(0), self.chance(2))
        return ast.Binary(self.pick(COMPARISONS), self.variable(), ast.Term(self.pick(NUMBERS)))
