"""Random patterns and data to evaluate them over, and patterns printed as SPARQL."""

from __future__ import annotations

from typing import Any

from etalis_rules.algebra import (
    BGP,
    UNIT,
    AggregateCall,
    Apply,
    Bound,
    Chain,
    Choice,
    Const,
    Exists,
    Extend,
    Filter,
    GraphNames,
    Inverse,
    Join,
    Minus,
    NotAny,
    OrderKey,
    Outer,
    PathPattern,
    Repeated,
    Select,
    Step,
    SubSelect,
    Table,
    Triple,
    Union,
    Var,
    Within,
    scope,
)
from etalis_rules.relations import Op, OuterOp
from hypothesis import assume
from hypothesis import strategies as st

from etalis_py.values.time import TIMELESS_END, TIMELESS_START
from tests.engine.backward_by_definition import Data

INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
ONE, TWO = f'"1"^^<{INTEGER}>', f'"2"^^<{INTEGER}>'
NODES = ("<urn:a>", "<urn:b>", "<urn:c>")
EDGES = ("<urn:p>", "<urn:q>")
GRAPHS = ("<urn:g>", "<urn:h>")
NAMES = ("x", "y", "z", "w")


variable_nodes = st.sampled_from([Var(n) for n in NAMES])
iri_nodes = st.sampled_from([Const(n) for n in NODES])
subjects = st.one_of(variable_nodes, variable_nodes, iri_nodes)
objects = st.one_of(variable_nodes, variable_nodes, iri_nodes, st.sampled_from([Const(ONE), Const(TWO)]))
predicates = st.one_of(*[st.sampled_from([Const(e) for e in EDGES])] * 4, variable_nodes)
triple_patterns = st.builds(Triple, subjects, predicates, objects)
graphs = st.one_of(*[st.none()] * 5, variable_nodes, st.sampled_from([Const(g) for g in GRAPHS]))
steps = st.sampled_from([Step(e) for e in EDGES])
repeats = st.sampled_from([(0, True), (1, True), (0, False)])
inner_paths = st.recursive(
    steps,
    lambda inner: st.one_of(
        st.builds(Inverse, inner),
        st.builds(Chain, inner, inner),
        st.builds(Choice, inner, inner),
        st.builds(lambda p, r: Repeated(p, *r), inner, repeats),
        st.just(NotAny((EDGES[0],))),
    ),
    max_leaves=3,
)
paths = st.one_of(
    st.builds(lambda p, r: Repeated(p, *r), inner_paths, repeats),
    st.just(NotAny((EDGES[0],))),
    st.just(Inverse(NotAny(()))),
)
terms = st.sampled_from([*NODES, ONE, TWO])


@st.composite
def tables(draw: Any) -> Table:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
    cell = st.one_of(terms, terms, st.just(""))
    return Table(tuple(names), tuple(draw(st.lists(st.tuples(*[cell] * len(names)), min_size=1, max_size=3))))


leaves = st.one_of(
    *[st.builds(lambda ts, g: BGP(tuple(ts), "", g), st.lists(triple_patterns, min_size=1, max_size=2), graphs)] * 5,
    st.builds(PathPattern, subjects, paths, objects, st.just(""), graphs),
    tables(),
    st.just(UNIT),
    st.builds(GraphNames, st.one_of(variable_nodes, st.just(Const(GRAPHS[0])))),
)


@st.composite
def conditions_of(draw: Any, depth: int, exists: Any) -> Any:
    kinds = ["=", "=c", "<", "BOUND", "!", "&&", "||"] if depth else ["=", "=c", "<", "BOUND"]
    if exists is not None:
        kinds += ["EXISTS", "EXISTS"]
    kind = draw(st.sampled_from(kinds))
    one = draw(variable_nodes)
    match kind:
        case "=":
            return Apply("=", (one, draw(variable_nodes)))
        case "=c":
            return Apply("=", (one, Const(draw(terms))))
        case "<":
            return Apply("<", (one, Const(TWO)))
        case "BOUND":
            return Apply("BOUND", (one,))
        case "!":
            return Apply("!", (draw(conditions_of(depth - 1, exists)),))
        case "EXISTS":
            return Exists(draw(exists))
    return Apply(kind, (draw(conditions_of(depth - 1, exists)), draw(conditions_of(depth - 1, exists))))


PLAIN = ("join", "join", "union", "left", "left", "minus", "filter", "filter", "extend", "select")
TIMED = ("seq", "seq", "eq", "seqright", "eqleft", "within")
MODEST = ("join", "union", "left", "filter")


@st.composite
def patterns(draw: Any, kinds: tuple[str, ...], depth: int = 3, inside: tuple[str, ...] | None = None) -> Any:
    """A pattern of these operators; ``inside`` are the operators that may stand in an EXISTS."""
    if not depth or draw(st.integers(0, 4)) == 0:
        return draw(leaves)
    child = patterns(kinds, depth - 1, inside)
    exists = None if inside is None else patterns(inside, 1, inside if depth > 2 else None)
    conditions = st.lists(conditions_of(1, exists), min_size=0, max_size=1).map(tuple)
    kind = draw(st.sampled_from(kinds))
    left = draw(child)
    match kind:
        case "union":
            return Union(left, draw(child))
        case "join" | "seq" | "eq":
            return Join({"join": Op.AND, "seq": Op.SEQ, "eq": Op.EQUALS}[kind], left, draw(child))
        case "left" | "eqleft":
            op = OuterOp.OPTIONAL if kind == "left" else OuterOp.EQUALSOPTIONAL
            return Outer(op, left, draw(child), draw(conditions))
        case "seqright":
            return Outer(OuterOp.OPTIONALSEQ, draw(child), left, draw(conditions))
        case "minus":
            return Minus(left, draw(child), tuple(sorted(scope(left))))
        case "filter":
            return Filter(left, (draw(conditions_of(1, exists)),))
        case "within":
            return Within(left, Bound(micros=draw(st.integers(0, 3))))
        case "extend":
            free = sorted({*NAMES} - scope(left))
            assume(free)
            e = draw(st.one_of(variable_nodes, st.builds(Const, terms), st.builds(plus_one, variable_nodes)))
            return Extend(left, free[0], e)
        case "select":
            return SubSelect(draw(selects(left, plain="seq" not in kinds)))
    raise AssertionError(kind)


def plus_one(v: Var) -> Apply:
    return Apply("+", (v, Const(ONE)))


@st.composite
def selects(draw: Any, pattern: Any, plain: bool) -> Select:
    names = tuple(draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True)))
    distinct = draw(st.booleans())
    kind = draw(st.sampled_from(["project", "group", "slice"])) if plain else "project"
    if kind == "group":
        names = tuple(n for n in names if n in scope(pattern))
        free = sorted({*NAMES} - {*names} - scope(pattern))
        assume(free)
        operand = draw(st.one_of(st.none(), variable_nodes))
        call = AggregateCall(free[0], "COUNT", operand, operand is not None and draw(st.booleans()))
        return Select(pattern, (*names, free[0]), grouped=True, keys=names, aggregates=(call,), distinct=distinct)
    if kind == "slice":
        order = tuple(OrderKey(Var(n)) for n in names)
        return Select(
            pattern,
            names,
            distinct=distinct,
            order=order,
            limit=draw(st.integers(0, 3)),
            offset=draw(st.integers(0, 1)),
        )
    return Select(pattern, names, distinct=distinct)


triples = st.tuples(st.sampled_from(NODES), st.sampled_from(EDGES), st.sampled_from([*NODES, ONE, TWO]))
background = st.lists(triples, max_size=5, unique=True)
occurrence = st.builds(lambda t, a, d: (*t, a, a + d), triples, st.integers(0, 3), st.sampled_from([0, 0, 1, 2]))
named = st.fixed_dictionaries({g: st.lists(triples, max_size=3, unique=True) for g in GRAPHS})
BACK = (TIMELESS_START, TIMELESS_END)
plain_data = st.builds(lambda ts, n: Data([(*t, *BACK) for t in ts], n), background, named)
timed_data = st.builds(
    lambda ts, os, n: Data([(*t, *BACK) for t in ts] + os, n),
    st.lists(triples, max_size=2, unique=True),
    st.lists(occurrence, max_size=5, unique=True),
    named,
)


# --- as SPARQL ----


def node_text(n: Any) -> str:
    return n.term if isinstance(n, Const) else f"?{n.name}"


def path_text(path: Any) -> str:
    match path:
        case Step(iri):
            return iri
        case Inverse(NotAny(iris)):
            return "!(" + "|".join(f"^{i}" for i in iris or ("<urn:none>",)) + ")"
        case Inverse(inner):
            return f"^({path_text(inner)})"
        case Chain(first, second):
            return f"({path_text(first)}/{path_text(second)})"
        case Choice(first, second):
            return f"({path_text(first)}|{path_text(second)})"
        case Repeated(inner, minimum, many):
            return f"({path_text(inner)}){'?' if not many else '+' if minimum else '*'}"
        case NotAny(iris):
            return f"!({'|'.join(iris)})"
    raise TypeError(path)


def expression_text(e: Any) -> str:
    match e:
        case Var() | Const():
            return node_text(e)
        case Exists(pattern):
            return f"EXISTS {group_text(pattern)}"
        case Apply("!", (inner,)):
            return f"(!{expression_text(inner)})"
        case Apply("BOUND", (v,)):
            return f"BOUND({node_text(v)})"
        case Apply(op, (left, right)):
            return f"({expression_text(left)} {op} {expression_text(right)})"
    raise TypeError(e)


def group_text(pattern: Any) -> str:
    """The pattern as a SPARQL group, every sub-pattern in a group of its own."""
    match pattern:
        case BGP(ts, _, graph):
            body = " . ".join(" ".join(map(node_text, (t.subject, t.predicate, t.object))) for t in ts)
            return f"{{ {body} }}" if graph is None else f"{{ GRAPH {node_text(graph)} {{ {body} }} }}"
        case PathPattern(s, path, o, _, graph):
            body = f"{node_text(s)} {path_text(path)} {node_text(o)}"
            return f"{{ {body} }}" if graph is None else f"{{ GRAPH {node_text(graph)} {{ {body} }} }}"
        case GraphNames(graph):
            return f"{{ GRAPH {node_text(graph)} {{}} }}"
        case Table((), _):
            return "{}"
        case Table(names, rows):
            body = " ".join("(" + " ".join(t or "UNDEF" for t in row) + ")" for row in rows)
            return f"{{ VALUES ({' '.join('?' + n for n in names)}) {{ {body} }} }}"
        case Join(Op.AND, left, right):
            return f"{{ {group_text(left)} {group_text(right)} }}"
        case Union(left, right):
            return f"{{ {group_text(left)} UNION {group_text(right)} }}"
        case Outer(OuterOp.OPTIONAL, left, right, conditions):
            tests = " ".join(f"FILTER({expression_text(c)})" for c in conditions)
            return f"{{ {group_text(left)} OPTIONAL {{ {group_text(right)} {tests} }} }}"
        case Minus(left, right, _):
            return f"{{ {group_text(left)} MINUS {group_text(right)} }}"
        case Filter(child, (test,)):
            return f"{{ {group_text(child)} FILTER({expression_text(test)}) }}"
        case Extend(child, variable, e):
            return f"{{ {group_text(child)} BIND({expression_text(e)} AS ?{variable}) }}"
        case SubSelect(select):
            return f"{{ {select_text(select)} }}"
    raise TypeError(pattern)


def select_text(select: Select) -> str:
    calls = {a.variable: a for a in select.aggregates}
    head = []
    for v in select.variables:
        if v in calls:
            operand = calls[v].operand
            inner = "*" if operand is None else node_text(operand)
            head.append(f"(COUNT({'DISTINCT ' if calls[v].distinct else ''}{inner}) AS ?{v})")
        else:
            head.append(f"?{v}")
    parts = [f"SELECT {'DISTINCT ' if select.distinct else ''}{' '.join(head)} WHERE {group_text(select.pattern)}"]
    if select.keys:
        parts.append("GROUP BY " + " ".join(f"?{k}" for k in select.keys))
    if select.order:
        parts.append("ORDER BY " + " ".join(node_text(k.expression) for k in select.order))
    if select.limit is not None:
        parts.append(f"LIMIT {select.limit}")
    if select.offset:
        parts.append(f"OFFSET {select.offset}")
    return " ".join(parts)
