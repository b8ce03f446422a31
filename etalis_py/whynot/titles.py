"""Parts of a plan as the user wrote them: expressions, triple patterns and operators in the syntax of the query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from etalis_compiler.lexing import CAMEL
from etalis_rules import algebra as alg
from etalis_rules.spelling import Spelling, limit
from etalis_rules.terms import RDF_TYPE, XSD, is_iri, is_literal, parts
from etalis_rules.traversal import transform

_STRENGTH = {"||": 1, "&&": 2, "=": 3, "!=": 3, "<": 3, ">": 3, "<=": 3, ">=": 3, "+": 4, "-": 4, "*": 5, "/": 5}
_IN, _PRIMARY = 3, 7
_NUMBERS = frozenset({"integer", "decimal", "double", "float"})
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_LONGEST = 90
T = TypeVar("T")


def length(us: int) -> str:
    """A length of time as people write it.

    >>> length(3_000_000), length(1_500_000), length(70_000_000)
    ('3 s', '1.5 s', '1 min 10 s')
    """
    whole, fraction = divmod(us, 1_000_000)
    words = []
    for name, seconds in _UNITS:
        number, whole = divmod(whole, seconds)
        part = f"{number}.{fraction:06d}".rstrip("0") if fraction and name == "s" else str(number)
        if part != "0":
            words.append(f"{part} {name}")
    return " ".join(words) or "0 s"


def as_written(group: alg.Pattern, condition: T) -> T:
    """A condition on this group and another one, with the calls of getENDTIME() whose values the group passes on."""
    times: dict[str, alg.Expr] = {}
    while isinstance(group, alg.Extend | alg.Within):
        if isinstance(group, alg.Extend) and not alg.is_visible(group.variable):
            times[group.variable] = group.expression
        group = group.child
    return transform(condition, lambda node: times.get(node.name) if isinstance(node, alg.Var) else None)


@dataclass(frozen=True, slots=True)
class Titles:
    """Spells parts of a plan with the prefixes of the query."""

    spelling: Spelling
    windows: frozenset[str] = frozenset()
    """The names that refer to windows, not to streams."""

    def term(self, term: str) -> str:
        return self.spelling.term(term) if term else "unbound"

    def value(self, term: str) -> str:
        """A number without its datatype, any other term as it is."""
        lexical, datatype, _ = parts(term) if is_literal(term) else ("", "", "")
        return lexical if datatype.removeprefix(XSD) in _NUMBERS else self.term(term)

    def node(self, node: alg.Var | alg.Const) -> str:
        if isinstance(node, alg.Const):
            return self.term(node.term)
        return node.name if node.name[:2] == "_:" else f"?{node.name}"

    def triple(self, triple: alg.Triple) -> str:
        verb = "a" if triple.predicate == alg.Const(RDF_TYPE) else self.node(triple.predicate)
        return f"{self.node(triple.subject)} {verb} {self.node(triple.object)}"

    def conditions(self, conditions: tuple[alg.Expr, ...]) -> str:
        return " && ".join(self.expression(c, 2 if len(conditions) > 1 else 0) for c in conditions)

    def filter(self, condition: alg.Expr) -> str:
        """``FILTER (?x > 3)`` or ``FILTER NOT EXISTS { … }``."""
        text = self.expression(condition)
        return f"FILTER {text}" if text.startswith(("NOT EXISTS", "EXISTS")) else f"FILTER ({text})"

    def bound(self, bound: alg.Bound) -> str:
        relation, size = limit(bound)
        text = size.replace("events", "EVENTS") if bound.months or bound.events else length(bound.micros)
        return text if relation == "≤" else f"less than {size}"

    def pattern(self, pattern: alg.Pattern) -> str:
        """The operator alone, or a whole leaf."""
        word = alg.keyword(pattern) or type(pattern).__name__.upper()
        match pattern:
            case alg.BGP(triples, stream, graph):
                text = " . ".join(map(self.triple, triples))
                if stream:
                    word = "WINDOW" if stream in self.windows else "STREAM"
                    text = f"{word} {self.term(stream)} {{ {text} }}"
                return text if graph is None else f"GRAPH {self.node(graph)} {{ {text} }}"
            case alg.PathPattern(subject, path, target, _, _):
                return f"{self.node(subject)} {self.path(path)} {self.node(target)}"
            case alg.Record(asked, stream, graph):
                text = f"EVENT{'' if graph is None else ' ' + self.node(graph)} {{ {self.inner(asked)} }}"
                word = "WINDOW" if stream in self.windows else "STREAM"
                return f"{word} {self.term(stream)} {{ {text} }}" if stream else text
            case alg.Filter(_, conditions):
                return self.filter(conditions[0]) if len(conditions) == 1 else f"FILTER ({self.conditions(conditions)})"
            case alg.Extend(_, variable, expression):
                return f"BIND ({self.expression(expression)} AS ?{variable})"
            case alg.Within(_, bound):
                return f"WITHIN {self.bound(bound)}"
            case alg.Table(names, rows):
                return f"VALUES ({' '.join('?' + n for n in names)}), {len(rows)} rows" if names else "{ }"
            case alg.GraphNames(graph, _, _):
                return f"GRAPH {self.node(graph)}"
            case alg.SubSelect(select):
                grouped = f" GROUP BY {' '.join('?' + k for k in select.keys)}" if select.grouped else ""
                return f"SELECT {' '.join('?' + v for v in select.variables)}{grouped}"
            case alg.Block():
                return "triples and paths"
            case alg.Known():
                return "over the background alone"
            case alg.Join(right=right, deadline=alg.Bound() as bound):
                return f"{word} {{ {self.inner(right)} }} WITHIN {self.bound(bound)}"
            case alg.Absence(_, absent, right, bound, condition):
                deadline = "" if bound is None else f" WITHIN {self.bound(bound)}"
                return f"{word} {{ {self.group(absent, condition)} }}{deadline}" + " SEQ" * (right is not None)
            case alg.Runs():
                return self.repeat(pattern)
            case alg.Skip():
                return self.skip(pattern)
        inside = alg.expressions(pattern)
        return f"{word}, FILTER ({self.conditions(inside)}) inside" if inside else word

    def repeat(self, runs: alg.Runs) -> str:
        """``REPEAT 3 OR MORE BY ?c``."""
        least, most = runs.least, runs.most
        many = f"{least} OR MORE" if most is None else str(least) if most == least else f"{least} TO {most}"
        keys = "".join(f" ?{key}" for key in runs.keys)
        return f"{alg.keyword(runs)} {many}" + (f" BY{keys}" if keys else "")

    def skip(self, skip: alg.Skip) -> str:
        """``SKIP TO (?t) BY ?c``."""
        keys = "".join(f" ?{key}" for key in skip.keys)
        by = f" BY{keys}" if keys else ""
        word = alg.keyword(skip)
        if skip.length is not None:
            return f"{word} {self.bound(skip.length)}{by}"
        if skip.after is None or word == "DISJOINT":
            return f"{word}{by}"
        return f"{word} {'TO' if skip.at else 'PAST'} ({self.expression(skip.after)}){by}"

    def path(self, path: alg.Path) -> str:
        match path:
            case alg.Step(iri):
                return self.term(iri)
            case alg.Inverse(inner):
                return "^" + self.path(inner)
            case alg.Chain(first, second):
                return f"({self.path(first)}/{self.path(second)})"
            case alg.Choice(first, second):
                return f"({self.path(first)}|{self.path(second)})"
            case alg.Repeated(inner, minimum, many):
                return f"({self.path(inner)}){'+' if minimum else '*' if many else '?'}"
            case alg.NotAny(iris):
                return f"!({'|'.join(map(self.term, iris))})"

    def expression(self, expression: alg.Expr, strength: int = 0) -> str:
        """``strength`` is what the surroundings need: anything weaker gets parentheses."""
        text, own = self._expression(expression)
        return text if own >= strength else f"({text})"

    def _expression(self, e: alg.Expr) -> tuple[str, int]:
        match e:
            case alg.Var() | alg.Const():
                return self.node(e), _PRIMARY
            case alg.Exists(pattern):
                return f"EXISTS {{ {self.inner(pattern)} }}", _PRIMARY
            case alg.Apply("!", (alg.Exists() as inner,)):
                return f"NOT {self.expression(inner)}", _PRIMARY
            case alg.Apply("!", (alg.Apply("IN", (operand, *choices)),)):
                return f"{self.expression(operand, 4)} NOT IN ({', '.join(map(self.expression, choices))})", _IN
            case alg.Apply("IN", (operand, *choices)):
                return f"{self.expression(operand, 4)} IN ({', '.join(map(self.expression, choices))})", _IN
            case alg.Apply("!", (operand,)):
                return f"!{self.expression(operand, _PRIMARY)}", 6
            case alg.Apply("neg" | "pos" as op, (operand,)):
                return f"{'-' if op == 'neg' else '+'} {self.expression(operand, _PRIMARY)}", 6
            case alg.Apply(op, (left, right)) if op in _STRENGTH:
                own = _STRENGTH[op]
                lean = own + 1 if own == _IN else own
                return f"{self.expression(left, lean)} {op} {self.expression(right, own + 1)}", own
            case alg.Apply(op, args):
                name = self.term(op) if is_iri(op) else CAMEL.get(op, op)
                return f"{name}({', '.join(map(self.expression, args)) or '*' * name.startswith('COUNT')})", _PRIMARY
        raise TypeError(f"not an expression: {e!r}")

    def group(self, pattern: alg.Pattern, condition: tuple[alg.Expr, ...]) -> str:
        """A group with the filters in it that read another one, too."""
        return self.inner(alg.Filter(pattern, as_written(pattern, condition)) if condition else pattern)

    def inner(self, pattern: alg.Pattern) -> str:
        """A pattern on one line, for inside an EXISTS."""
        match pattern:
            case alg.BGP() | alg.PathPattern() | alg.Record():
                text = self.pattern(pattern)
            case alg.Filter(child, conditions):
                text = f"{self.inner(child)} FILTER ({self.conditions(conditions)})"
            case alg.Extend(child, name, _) if name[:1] == ".":
                text = self.inner(child)
            case alg.Within(child, bound):
                text = f"{{ {self.inner(child)} }} WITHIN {self.bound(bound)}"
            case alg.Join(left=left, deadline=alg.Bound()):
                text = f"{{ {self.inner(left)} }} {self.pattern(pattern)}"
            case alg.Join(condition=condition) if condition:
                followed_by = f"{alg.keyword(pattern)} {{ {self.group(pattern.right, condition)} }}"
                text = f"{{ {self.inner(pattern.left)} }} {followed_by}"
            case alg.Absence(left, _, right, _):
                after = "" if right is None else f" {{ {self.inner(right)} }}"
                text = f"{{ {self.inner(left)} }} {self.pattern(pattern)}{after}"
            case alg.Skip(child):
                text = f"{{ {self.inner(child)} }} {self.skip(pattern)}"
            case alg.Runs(alg.Within(elements, bound), maximal=True) if bound == alg.Bound():  # MAXIMAL takes points
                text = f"{{ {self.inner(elements)} }} {self.repeat(pattern)}"
            case alg.Runs(child):
                text = f"{{ {self.inner(child)} }} {self.repeat(pattern)}"
            case _ if len(alg.children(pattern)) == 2:
                left, right = alg.children(pattern)
                text = f"{{ {self.inner(left)} }} {alg.keyword(pattern)} {{ {self.inner(right)} }}"
            case _:
                text = self.pattern(pattern)
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
