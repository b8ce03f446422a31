"""Random programs whose sides share variables that either side may leave unbound, with their values read above.

?x is a subject and mostly bound, ?w and ?z are values that an OPTIONAL, a UNION, an UNDEF or an error may leave
unbound, ?u and ?v are bound on one side.  ``OpenPen`` draws the sides, what combines them, and the clauses that read
the values: BIND, FILTER, aggregates, HAVING, ORDER BY, REPEAT and templates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from etalis_compiler import ast
from etalis_compiler.scope import in_scope
from etalis_rules.terms import XSD, literal
from hypothesis import strategies as st

from .drawing import COMPARISONS, LIKELY, NODES, NUMBERS, STREAMS, SUBJECTS, Draw, Palette, Pen

OPEN = ("w", "w", "w", "w", "z")
RARE = ("<urn:s>",) * 12  # a predicate that few events have
PAIRS = (*("SEQ", "AND") * 3, "EQUALS", "NEXT", "NEXT", "UNION", "NOT", "PAR", "PAR", "MEETS", "DURING")
OPTIONALS = ("OPTIONAL", "OPTIONALSEQ", "EQUALSOPTIONAL")
ODD = (NODES[0], *NUMBERS, *NUMBERS, '"t"', literal("t", XSD + "integer"), literal("0.5", XSD + "decimal"))
BOUNDS = tuple(ast.Duration("duration", text) for text in ("PT1S", "PT2S", "PT4S"))


@dataclass
class OpenPen(Pen):
    """Draws sides that leave variables unbound, and what reads these above."""

    timed: bool = True

    # --- sides ---

    def one(self, name: str, predicates: Sequence[str] = ()) -> ast.Group:
        """``{ ?x p ?name }``."""
        self.patterns -= 1
        subject = ast.Term(self.pick(NODES)) if self.chance(12) else ast.Var("x")
        predicate = ast.Term(self.pick(predicates or self.palette.predicates))
        return ast.Group((self.wrapped(ast.Triples((ast.TriplePattern(subject, predicate, ast.Var(name)),))),))

    def open_side(self, depth: int) -> ast.Group:
        """A group with a triple pattern in which ?w or ?z may be unbound."""
        own = self.fresh("v")
        kinds = ("optional",) * 4 + ("optionals", "union", "undefined", "error", "error", "bound", "outer", "select")
        kinds += ("pair", "pair", "repeat", "minus") * (depth > 0 and self.patterns > 1)
        match self.pick(kinds):
            case "optional":
                return ast.Group((*self.one(own).elements, self.optional(self.pick(OPEN))))
            case "optionals":
                return ast.Group((*self.one(own).elements, self.optional("w"), self.optional(self.pick("wz"))))
            case "union":
                union = ast.Combined(ast.Operator.UNION, self.one("w"), self.one(self.pick(("z", own))))
                return ast.Group((union,))
            case "undefined":
                terms = tuple(ast.Term(t) for t in NUMBERS[:2])
                rows = ((None,), *((t,) for t in terms[: self.pick((0, 1, 2))]))
                return ast.Group((*self.one(own).elements, ast.Values((ast.Var(self.pick(OPEN)),), rows)))
            case "error":
                made = ast.Bind(self.arithmetic(ast.Var(own)), ast.Var(self.pick(OPEN)))
                return ast.Group((*self.one(own).elements, made))
            case "bound":
                return self.one(self.pick(OPEN))
            case "outer":
                operator = ast.Operator(self.pick(OPTIONALS[1:]))
                sides = [self.one(own), self.one(self.pick(OPEN))]
                return ast.Group((ast.Combined(operator, *(sides[::-1] if "SEQ" in operator.value else sides)),))
            case "select":
                names = ("x", *dict.fromkeys((self.pick(OPEN), self.pick((own, "w")))))
                shown = tuple(ast.Projection(ast.Var(v)) for v in names)
                return ast.Group((ast.Query(ast.Select(shown, self.pick(("", "", "DISTINCT"))), self.open_side(0)),))
            case "pair":
                return ast.Group((self.combined(depth - 1),))
            case "minus":
                side = self.open_side(depth - 1)
                alone = any(isinstance(element, ast.Query) for element in side.elements)  # a sub-SELECT stands alone
                return ast.Group((*((side,) if alone else side.elements), ast.Minus(self.open_side(0))))
        return ast.Group((self.open_repeat(self.open_side(depth - 1)),))

    def optional(self, name: str) -> ast.Optional:
        group = self.one(name, self.palette.predicates + RARE)
        if self.chance(6):
            group = ast.Group((*group.elements, ast.Filter(self.reading(("x", name, name), 0))))
        return ast.Optional(group)

    def combined(self, depth: int) -> ast.Element:
        """Two sides that share what either may leave unbound."""
        left, right = self.bounded(self.open_side(depth)), self.bounded(self.open_side(depth))
        kinds = self.palette.pairs + self.palette.optionals[1:] + self.palette.absence
        match self.pick(kinds):
            case "GAP":
                return ast.SeqNot(left, self.open_side(0), right)
            case "MAYBE":
                parts = tuple(self.open_side(0) for _ in range(self.pick(self.palette.in_a_row)))
                return ast.SeqOptional(left, parts, right)
            case "DEADLINE":
                absent = right if isinstance(right, ast.Group) else ast.Group((right,))  # its WITHIN is its own
                return ast.SeqNot(left, absent, None, self.pick(BOUNDS[:2]))
            case "REPEAT":
                joined = ast.Group((ast.Combined(ast.Operator(self.pick(("AND", "SEQ"))), left, right),))
                return self.open_repeat(joined)
            case operator:
                return ast.Combined(ast.Operator(operator), left, right)

    def bounded(self, group: ast.Group) -> ast.Pattern:
        return ast.Within(group, self.pick(BOUNDS)) if self.chance(8) else group

    def open_repeat(self, inner: ast.Group) -> ast.Repeat:
        names = tuple(sorted(in_scope(inner)))
        least = self.pick((1, 1, 2))
        most = self.pick((None, None, least, least + 1))
        by = tuple(ast.Var(v) for v in sorted({self.pick(names) for _ in range(self.pick((0, 1, 1, 2)))}))
        kept, self.used = self.used, [v for v in ("w", "z", *names) if v in names]
        condition = self.step() if self.chance(2) else None
        columns = [ast.Projection(ast.Var(self.fresh("n")), self.counted()) for _ in range(self.pick((0, 1, 2)))]
        if not {*OPEN} & {v.name for v in by} and "w" in names and not self.chance(3):
            columns.append(ast.Projection(ast.Var("w"), ast.Call(self.pick(("LAST", "FIRST")), (ast.Var("w"),))))
        self.used = kept
        absent = self.open_side(0) if self.chance(4) else None
        return ast.Repeat(inner, least, most, by, condition, absent, self.chance(2), tuple(columns))

    def step(self) -> ast.Expression:
        condition = self.comparison()
        if self.chance(3):
            condition = ast.Binary(self.pick(("&&", "||")), condition, self.reading(self.used, 0))
        return condition

    # --- what reads the values ---

    def arithmetic(self, operand: ast.Expression) -> ast.Expression:
        return ast.Binary(self.pick(("+", "-", "*", "/")), operand, ast.Term(self.pick(NUMBERS)))

    def calculated(self, names: Any) -> ast.Expression:
        """An expression over variables that may be unbound."""
        one, other = ast.Var(self.pick(names)), ast.Var(self.pick(names))
        match self.pick(("arithmetic", "arithmetic", "both", "coalesce", "if", "variable", "str", "duration")):
            case "arithmetic":
                return self.arithmetic(one)
            case "both":
                return ast.Binary(self.pick(("+", "*", "/")), one, other)
            case "coalesce":
                return ast.Call("COALESCE", (self.arithmetic(one), other, ast.Term(self.pick(NUMBERS))))
            case "if":
                return ast.Call("IF", (ast.Binary("<", one, ast.Term(NUMBERS[2])), other, self.arithmetic(one)))
            case "str":
                return ast.Call("STR", (one,))
            case "duration" if self.timed:
                return ast.Call("GETDURATION", ())
        return one

    def reading(self, names: Any, depth: int = 1) -> ast.Expression:
        """A condition over variables that may be unbound."""
        kinds = ("compare", "compare", "constant", "bound", "in", "same") + ("duration",) * self.timed
        kinds += ("and", "or", "not") * (depth > 0)
        one = ast.Var(self.pick(names))
        match self.pick(kinds):
            case "constant":
                return ast.Binary(self.pick(COMPARISONS), one, ast.Term(self.pick(NUMBERS)))
            case "bound":
                call = ast.Call("BOUND", (one,))
                return ast.Unary("!", call) if self.chance(2) else call
            case "in":
                return ast.In(one, (ast.Term(self.pick(NUMBERS)), ast.Var(self.pick(names))), self.chance(2))
            case "same":
                return ast.Call("SAMETERM", (one, ast.Var(self.pick(names))))
            case "duration":
                bound = literal(self.pick(("PT1S", "PT2S", "PT3S")), XSD + "dayTimeDuration")
                return ast.Binary(self.pick(("<=", "<=", "<", ">")), ast.Call("GETDURATION", ()), ast.Term(bound))
            case "and" | "or" as kind:
                operator = "&&" if kind == "and" else "||"
                return ast.Binary(operator, self.reading(names, depth - 1), self.reading(names, depth - 1))
            case "not":
                return ast.Unary("!", self.reading(names, depth - 1))
        return ast.Binary(self.pick(COMPARISONS), one, self.calculated(names))

    def whole(self, depth: int) -> ast.Group:
        """Two sides, and above them what reads their values."""
        elements: list[ast.Element] = [self.combined(depth)]
        if self.patterns > 0 and self.chance(4):
            elements.append(self.optional(self.pick(OPEN)))
        for _ in range(self.pick((0, 1, 1, 1, 2))):
            names = self.names(elements)
            match self.pick(("bind", "bind", "bind", "filter", "exists")):
                case "bind":
                    elements.append(ast.Bind(self.calculated(names), ast.Var(self.fresh("b"))))
                case "exists" if self.palette.exists and self.patterns > 0:
                    group = ast.Group((*self.one(self.pick(OPEN)).elements, ast.Filter(self.reading(names, 0))))
                    elements.append(ast.Filter(ast.Exists(group, self.chance(2))))
                case _:
                    elements.append(ast.Filter(self.reading(names)))
        return ast.Group(tuple(elements))

    def names(self, elements: Any) -> tuple[str, ...]:
        """The variables of these elements; those that may be unbound more often."""
        bound = in_scope(ast.Group(tuple(elements)))
        return (*(v for v in OPEN * 2 if v in bound), *sorted(bound)) or ("w",)


PALETTE = Palette(
    pairs=PAIRS, optionals=OPTIONALS, absence=("GAP", "DEADLINE", "MAYBE", "REPEAT", "REPEAT"), exists=True, minus=True
)
CONSUMING = replace(PALETTE, pairs=(*PAIRS, "SEQ", "EQUALS", "NEXT"), exists=False, in_a_row=(1,))
TRIPLES = st.sampled_from(tuple(product((*SUBJECTS[:1] * 8, SUBJECTS[1]), (*LIKELY, RARE[0]), ODD)))


def _pen(draw: Draw[Any], palette: Palette) -> OpenPen:
    return OpenPen(draw, palette, patterns=draw(st.sampled_from((3, 4, 5))))


@st.composite
def selects(draw: Draw[Any], palette: Palette = PALETTE) -> ast.Query:
    """SELECT of expressions, ORDER BY an expression, DISTINCT and LIMIT; ASK now and then."""
    pen = _pen(draw, palette)
    where = pen.whole(draw(st.sampled_from((0, 0, 1))))
    if pen.chance(15):
        return ast.Query(ast.Ask(), where)
    names = pen.names(where.elements)
    shown = [ast.Projection(ast.Var(v)) for v in sorted({pen.pick(names) for _ in range(pen.pick((0, 2, 3)))})]
    if shown and pen.chance(2):
        shown.append(ast.Projection(ast.Var(pen.fresh("e")), pen.calculated(names)))
    query = ast.Query(ast.Select(tuple(shown), "DISTINCT" if pen.chance(5) else ""), where)
    if pen.chance(3):
        keys = (ast.OrderKey(pen.calculated(names), pen.chance(2)), ast.OrderKey(ast.Var(pen.pick(names)), False))
        query = replace(query, order_by=keys[: pen.pick((1, 2))], limit=pen.pick((None, 1, 2, 3)))
    if pen.chance(6):
        query = replace(query, within=pen.pick(BOUNDS))
    return query


def _aggregate(pen: OpenPen, names: Any) -> ast.Expression:
    name = pen.pick(("COUNT", "COUNT", "SUM", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"))
    if name == "COUNT" and pen.chance(4):
        return ast.Aggregate("COUNT", None)
    operand = pen.calculated(names) if pen.chance(3) else ast.Var(pen.pick(names))
    return ast.Aggregate(name, operand, pen.chance(4))


@st.composite
def grouped(draw: Draw[Any], palette: Palette = PALETTE) -> ast.Query:
    """Aggregates over, and keys and HAVING of, what may be unbound; sometimes as a sub-SELECT beside another side."""
    pen = _pen(draw, palette)
    pen.timed = False  # the interval of a group is no part of its solutions
    where = pen.whole(draw(st.sampled_from((0, 0, 1))))
    names = pen.names(where.elements)
    keys: list[Any] = [ast.Var(v) for v in sorted({pen.pick(names) for _ in range(pen.pick((0, 1, 2)))})]
    shown = [ast.Projection(k) for k in keys]
    if pen.chance(4):
        keys.append(ast.Projection(ast.Var(pen.fresh("k")), pen.calculated(names)))
        shown.append(ast.Projection(keys[-1].variable))
    shown += [ast.Projection(ast.Var(pen.fresh("a")), _aggregate(pen, names)) for _ in range(pen.pick((1, 2)))]
    window = pen.pick((None, None, *BOUNDS[:2], ast.Duration("EVENTS", "", 2)))
    query = ast.Query(ast.Select(tuple(shown)), where, group_by=tuple(keys), within=window)
    if pen.chance(3):
        limit = ast.Term(pen.pick(NUMBERS))
        query = replace(query, having=(ast.Binary(pen.pick(COMPARISONS), _aggregate(pen, names), limit),))
    if pen.chance(3):
        query = replace(query, order_by=(ast.OrderKey(_aggregate(pen, names), pen.chance(2)),), limit=pen.pick((1, 2)))
    if pen.patterns > 0 and pen.chance(4):
        renamed = replace(query.form, projections=(*shown[:-1], replace(shown[-1], variable=ast.Var("w"))))
        taken = {"w"} & {*names, *(p.variable.name for p in shown[:-1])}  # a name after AS must be new
        if not taken:
            sides = ast.Group((replace(query, form=renamed),)), pen.open_side(0)
            operator = ast.Operator(pen.pick(("AND", "SEQ")))
            above = ast.Bind(pen.calculated(("w",)), ast.Var(pen.fresh("b")))
            return ast.Query(ast.Select(()), ast.Group((ast.Combined(operator, *sides), above)))
    return query


@st.composite
def derived(draw: Draw[Any], palette: Palette = PALETTE) -> ast.Document:
    """A rule whose template has what may be unbound, and a query over what it derives."""
    pen = _pen(draw, palette)
    where = pen.whole(0)
    names = pen.names(where.elements)
    made = [
        ast.TriplePattern(ast.Var("x"), ast.Term(predicate), ast.Var(pen.pick(names)))
        for predicate in ("<urn:d>", "<urn:e>")[: pen.pick((1, 2))]
    ]
    register = ast.Register("STREAM", STREAMS[0]) if palette.streams else None
    rule = ast.Query(ast.Construct(tuple(made)), where, register=register)
    reader = replace(palette, predicates=("<urn:d>", "<urn:d>", "<urn:e>", *LIKELY[-3:]))
    return ast.Document((rule, draw(selects(reader))))


__all__ = ["CONSUMING", "PALETTE", "SUBJECTS", "TRIPLES", "derived", "grouped", "selects"]
