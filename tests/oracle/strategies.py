"""Random programs and streams for Hypothesis, one strategy per group of features.

Each gives a ``Case``: a program, the events in order of their ends, the background and the policy.  A case is drawn so
that the oracle decides it in a few milliseconds.

>>> from hypothesis import given
>>> @given(core())
... def engine_agrees(case): ...
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from etalis_compiler import ast
from hypothesis import strategies as st

from etalis_py.events import Event

from . import printing, sharing
from .closure import Background
from .drawing import (
    GRAPHS,
    LIKELY,
    NODES,
    NUMBERS,
    STREAMS,
    SUBJECTS,
    VALUES,
    VARIABLES,
    Draw,
    Palette,
    Pen,
    one_of_these,
)

SECOND = 1_000_000
DERIVED = ("<urn:d>", "<urn:e>")
NO_BACKGROUND = Background()
OUTER = ("OPTIONAL", "OPTIONALSEQ", "EQUALSOPTIONAL")


@dataclass(frozen=True)
class Case:
    program: ast.Document
    events: tuple[Event, ...]
    background: Background = NO_BACKGROUND
    policy: str = "unrestricted"

    def __repr__(self) -> str:
        lines = [f"Case(policy={self.policy!r},", *printing.program(self.program).splitlines()]
        lines += [f"  {e!r}," for e in self.events]
        return "\n".join([*lines, f"  background={self.background!r})"])


# One draw from all combinations takes a third of the time of a draw for each part.
TRIPLES = st.sampled_from(tuple(product(NODES, LIKELY, VALUES)))
CHAINS = st.sampled_from(tuple(product(SUBJECTS, LIKELY, SUBJECTS)))
SIZES = (1, 1, 1, 2, 3)


@st.composite
def streams(
    draw: Draw[Any],
    least: int = 5,
    most: int = 12,
    names: tuple[str, ...] = ("",),
    triples: st.SearchStrategy[Any] = TRIPLES,
    lengths: tuple[int, ...] = (0, 0, 0, 1, 2),
) -> tuple[Event, ...]:
    """Events of one to three triples, ordered by end: points and intervals, ties and duplicates."""
    events = []
    frames = one_of_these(tuple(product(range(7), lengths, SIZES, names)))
    for _ in range(draw(one_of_these((*(*range(least, most + 1),) * 3, 0)))):
        end, length, size, name = draw(frames)
        content = tuple(draw(triples) for _ in range(size))
        events.append(Event((end - length) * SECOND, end * SECOND, content, name))
    return tuple(sorted(events, key=lambda e: e.end))


def backgrounds() -> st.SearchStrategy[Background]:
    graph = st.frozensets(TRIPLES, max_size=3)
    named = st.fixed_dictionaries({}, optional={g: graph.map(set) for g in GRAPHS})
    return st.builds(Background, graph, named)


def document(*queries: ast.Query) -> ast.Document:
    return ast.Document(queries)


@st.composite
def selects(draw: Draw[Any], palette: Palette, depth: int | None = None) -> ast.Query:
    """SELECT over a group: ``*`` or some variables, perhaps an expression, DISTINCT, LIMIT; ASK now and then."""
    pen = Pen(draw, palette, patterns=draw(one_of_these((2, 3, 3, 4))))
    where = pen.group(draw(st.sampled_from((1, 1, 2))) if depth is None else depth)
    if pen.chance(20):
        return ast.Query(ast.Ask(), where)
    shown = [ast.Projection(ast.Var(v)) for v in draw(st.permutations(VARIABLES))[: draw(st.sampled_from((0, 2, 3)))]]
    if shown and pen.chance(5):
        shown.append(ast.Projection(ast.Var(pen.fresh("e")), pen.value()))
    query = ast.Query(ast.Select(tuple(shown), "DISTINCT" if pen.chance(5) else ""), where)
    if pen.chance(8):
        query = replace(query, order_by=(ast.OrderKey(ast.Var(draw(st.sampled_from(VARIABLES))), pen.chance(2)),))
    if pen.chance(8):
        query = replace(query, limit=draw(st.integers(1, 4)), offset=draw(st.sampled_from((None, 1))))
    return query


CORE = Palette()
PLAIN = Palette(bind=False, values=False, within=False, subselect=False)
NEGATION = Palette(optionals=OUTER, minus=True, exists=True, bind=False, subselect=False)
PATHS = Palette(paths=True, pairs=("SEQ", "AND"), subselect=False, values=False)
CONSUMING = Palette(pairs=("SEQ", "SEQ", "SEQ", "EQUALS", "AND", "UNION"), bind=False, values=False, subselect=False)


def core() -> st.SearchStrategy[Case]:
    """Basic graph patterns, SEQ, EQUALS, AND, UNION, FILTER, BIND, VALUES, WITHIN, sub-SELECT."""
    query = st.one_of(selects(PLAIN), selects(CORE))
    return st.builds(Case, query.map(document), streams())


def negation() -> st.SearchStrategy[Case]:
    """The OPTIONAL family, MINUS, EXISTS and BOUND."""
    return st.builds(Case, selects(NEGATION).map(document), streams())


@st.composite
def nested(draw: Draw[Any]) -> Case:
    """EXISTS and MINUS inside EXISTS, over the stream and a background."""
    pen = Pen(
        draw,
        replace(NEGATION, optionals=(), nested=True, apart=draw(st.booleans()), graphs=draw(st.booleans())),
        patterns=draw(one_of_these((3, 4, 5))),
    )
    asked = ast.Filter(ast.Exists(pen.nesting(), pen.chance(2)))
    pen.patterns, pen.filters = 1, 0
    where = ast.Group((*pen.group(0).elements, asked))
    query = ast.Query(ast.Select(()), where)
    return Case(document(query), draw(streams(least=3, most=8)), draw(backgrounds()))


def several_streams() -> st.SearchStrategy[Case]:
    """STREAM <s> {…} beside patterns over all streams."""
    palette = replace(PLAIN, streams=True)
    return st.builds(Case, selects(palette).map(document), streams(names=("", *STREAMS)))


def background() -> st.SearchStrategy[Case]:
    """Triple patterns that match the stream or the background, GRAPH, timeless solutions."""
    return st.builds(Case, selects(replace(CORE, graphs=True)).map(document), streams(most=8), backgrounds())


def paths() -> st.SearchStrategy[Case]:
    """Property paths over the stream."""
    return st.builds(Case, selects(PATHS, depth=1).map(document), streams(most=6, triples=CHAINS))


def policies() -> st.SearchStrategy[Case]:
    """Consuming policies over SEQ, EQUALS, OPTIONALSEQ and EQUALSOPTIONAL, with filters at every level."""
    outer = replace(CONSUMING, optionals=("OPTIONALSEQ", "EQUALSOPTIONAL"))
    query = st.one_of(selects(CONSUMING), selects(CONSUMING, depth=3), selects(outer))
    return st.builds(
        Case,
        query.map(document),
        streams(most=11),
        st.just(NO_BACKGROUND),
        st.sampled_from(("recent", "chronological")),
    )


def policies_and_negation() -> st.SearchStrategy[Case]:
    """Consuming policies beside OPTIONAL, MINUS and EXISTS, which see the whole stream."""
    palette = replace(CONSUMING, optionals=OUTER, minus=True, exists=True)
    ruling = st.sampled_from(("recent", "chronological"))
    return st.builds(Case, selects(palette).map(document), streams(most=10), st.just(NO_BACKGROUND), ruling)


def open_sides() -> st.SearchStrategy[Case]:
    """Sides that share variables which either may leave unbound, with their values read above, under any policy."""
    queries = st.one_of(sharing.selects(), sharing.grouped(), sharing.grouped()).map(document)
    consuming = st.one_of(sharing.selects(sharing.CONSUMING), sharing.grouped(sharing.CONSUMING)).map(document)
    events = streams(least=3, most=9, triples=sharing.TRIPLES)
    ruling = st.sampled_from(("recent", "chronological"))
    return st.one_of(
        st.builds(Case, queries, events),
        st.builds(Case, queries, events),
        st.builds(Case, sharing.derived(), events),
        st.builds(Case, consuming, events, st.just(NO_BACKGROUND), ruling),
    )


# --- aggregates ------------------------------------------------------------------------------------------------

SLIDING = st.sampled_from(
    [None, None, ast.Duration("duration", "PT2S"), ast.Duration("EVENTS", "", 2), ast.Duration("EVENTS", "", 1)]
)


@st.composite
def aggregate_queries(draw: Draw[Any], palette: Palette = PLAIN, fresh: str = "a") -> ast.Query:
    """SELECT with GROUP BY, aggregates, HAVING, WITHIN, and now and then ORDER BY and LIMIT."""
    pen = Pen(draw, palette, patterns=draw(st.sampled_from((1, 2, 3))))
    where = pen.group(1)
    keys = [ast.Var(v) for v in draw(st.permutations(VARIABLES))[: draw(st.integers(0, 2))]]
    shown = [ast.Projection(k) for k in keys if not pen.chance(4)]
    for _ in range(draw(st.integers(1, 2))):
        shown.append(ast.Projection(ast.Var(pen.fresh(fresh)), _aggregate(pen)))
    query = ast.Query(ast.Select(tuple(shown)), where, group_by=tuple(keys), within=draw(SLIDING))
    if pen.chance(4):
        count = ast.Binary(">", ast.Aggregate("COUNT", None), ast.Term(NUMBERS[0]))
        query = replace(query, having=(count,))
    if pen.chance(4):
        order = ast.OrderKey(shown[-1].variable, pen.chance(2))
        query = replace(query, order_by=(order,), limit=draw(st.sampled_from((None, 1, 2))))
    return query


def _aggregate(pen: Pen) -> ast.Expression:
    name = pen.pick(("COUNT", "COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"))
    if name == "COUNT" and pen.chance(2):
        return ast.Aggregate("COUNT", None)
    return ast.Aggregate(name, ast.Var(pen.pick(VARIABLES)), pen.chance(4))


@st.composite
def reporting_subselects(draw: Draw[Any]) -> ast.Query:
    """An aggregating sub-SELECT after or before another group."""
    inner = ast.Group((draw(aggregate_queries(fresh="n")),))
    other = Pen(draw, replace(PLAIN, blanks=False), patterns=1).group(0)
    sides = (inner, other) if draw(st.booleans()) else (other, inner)
    operator = ast.Operator(draw(st.sampled_from(("SEQ", "AND", "EQUALS"))))
    return ast.Query(ast.Select(()), ast.Group((ast.Combined(operator, *sides),)))


def aggregates() -> st.SearchStrategy[Case]:
    """Grouping over sliding windows, reported at each instant."""
    query = st.one_of(aggregate_queries(), aggregate_queries(), reporting_subselects())
    return st.builds(Case, query.map(document), streams())


# --- rules -----------------------------------------------------------------------------------------------------


@st.composite
def rules(draw: Draw[Any], palette: Palette, recursive: bool = True) -> ast.Query:
    """CONSTRUCT {?x d ?y} over the stream and, when recursive, derived triples."""
    reads = LIKELY + DERIVED * 2 if recursive else LIKELY
    pen = Pen(draw, replace(palette, predicates=reads), patterns=draw(st.sampled_from((1, 2, 2, 3))))
    where = pen.group(draw(st.sampled_from((0, 1, 1))) if recursive else 0)
    used = sorted(set(pen.used)) or ["x"]
    subject, object_ = "x" if "x" in used else pen.pick(used), pen.pick(used)
    made = [ast.TriplePattern(ast.Var(subject), ast.Term(draw(st.sampled_from(DERIVED))), ast.Var(object_))]
    if pen.chance(6):
        predicate = draw(st.sampled_from(("<urn:made>", *DERIVED)))
        made.append(ast.TriplePattern(ast.Var(subject), ast.Term(predicate), ast.Blank("new")))
    register = None
    if palette.streams and pen.chance(2):
        register = ast.Register("STREAM", draw(st.sampled_from(STREAMS)))
    return ast.Query(ast.Construct(tuple(made), pen.chance(3)), where, register=register)


TRANSITIVE = ast.Query(
    ast.Construct((ast.TriplePattern(ast.Var("x"), ast.Term(DERIVED[0]), ast.Var("z")),)),
    ast.Group(
        (
            ast.Triples(
                (
                    ast.TriplePattern(ast.Var("x"), ast.Term(DERIVED[0]), ast.Var("y")),
                    ast.TriplePattern(ast.Var("y"), ast.Term(DERIVED[0]), ast.Var("z")),
                )
            ),
        )
    ),
)


@st.composite
def counting_rules(draw: Draw[Any]) -> ast.Query:
    """CONSTRUCT {?x d ?n}, ?n an aggregate over the stream's own triples or over the other derived ones."""
    pen = Pen(draw, replace(PLAIN, open=False, predicates=(*LIKELY, *DERIVED[1:] * 6)), patterns=2)
    where = pen.group(1)
    shown = (ast.Projection(ast.Var("x")), ast.Projection(ast.Var("n"), _aggregate(pen)))
    inner = ast.Query(ast.Select(shown), where, group_by=(ast.Var("x"),), within=draw(SLIDING))
    made = ast.TriplePattern(ast.Var("x"), ast.Term(DERIVED[0]), ast.Var("n"))
    return ast.Query(ast.Construct((made,), pen.chance(3)), ast.Group((inner,)))


@st.composite
def programs(draw: Draw[Any], palette: Palette) -> ast.Document:
    """One to three rules, perhaps the transitive closure of one derived predicate, and a query over all."""
    made = [
        draw(rules(replace(PLAIN, open=False), recursive=False)),
        *draw(st.lists(rules(palette), min_size=1, max_size=2)),
    ]
    if palette.minus and draw(st.booleans()):
        made.append(draw(counting_rules()))
    elif draw(st.integers(1, 3)) == 1:
        made.append(TRANSITIVE)
    reader = Palette(
        bind=False, values=False, within=False, subselect=False, predicates=(*DERIVED * 2, "<urn:p>", "<urn:made>")
    )
    return ast.Document((*made, draw(selects(reader, depth=draw(st.sampled_from((0, 1)))))))


RULES = Palette(bind=False, values=False, subselect=False, blanks=False, open=False)


def recursion() -> st.SearchStrategy[Case]:
    """CONSTRUCT rules that read each other's triples."""
    return st.builds(Case, programs(RULES), streams(most=7))


def stratified() -> st.SearchStrategy[Case]:
    """Rules with negation and aggregates; the program may turn out to depend on its own absence (``Unstratified``)."""
    palette = replace(RULES, optionals=OUTER, minus=True, exists=True)
    return st.builds(Case, programs(palette), streams(most=7))


# --- Allen's relations, absence, NEXT and REPEAT ----------------------------------------------------------------

RELATIONS = ("MEETS", "OVERLAPS", "STARTS", "DURING", "FINISHES", "PAR")
ABSENCE = ("GAP", "DEADLINE", "MAYBE", "SOON", "REPEAT", "SKIP")
OF_POLICIES = tuple(kind for kind in ABSENCE if kind != "SOON")
"""What the oracle defines under a consuming policy, one optional part at a time."""
APART = replace(PLAIN, apart=True)
ALLEN = replace(APART, pairs=(*RELATIONS, "SEQ", "EQUALS"))
TIMED = replace(APART, pairs=("SEQ", "NEXT", "NEXT", "NOT", "NOT", "PAR"), absence=ABSENCE)
REPEATS = replace(APART, pairs=("SEQ", "AND"), absence=("REPEAT",) * 4)
EVERYTHING = Palette(
    pairs=("SEQ", "NEXT", "NOT", "AND", "UNION", "EQUALS", *RELATIONS),
    absence=ABSENCE,
    optionals=OUTER,
    minus=True,
    exists=True,
    apart=True,
)
LONG = (0, 0, 1, 1, 2, 3, 4)


def relations() -> st.SearchStrategy[Case]:
    """Allen's relations and PAR beside SEQ and EQUALS, over intervals of all lengths."""
    query = st.one_of(selects(ALLEN, depth=1), selects(ALLEN, depth=2))
    return st.builds(Case, query.map(document), streams(least=8, most=14, lengths=LONG))


def timed() -> st.SearchStrategy[Case]:
    """NOT, SEQ NOT, deadlines, NEXT and REPEAT."""
    query = st.one_of(selects(TIMED), selects(TIMED, depth=2), selects(REPEATS, depth=1))
    return st.builds(Case, query.map(document), st.one_of(streams(8, 14), streams(8, 14, lengths=LONG)))


DENSE = replace(
    APART,
    pairs=("NEXT", "NEXT", "NEXT", "NOT", "SEQ"),
    absence=("GAP", "DEADLINE", *("SKIP",) * 3),
    exists=True,
    blanks=False,
    open=False,
    times=False,
    predicates=LIKELY[:7],
)
DENSE_RUNS = replace(DENSE, pairs=("SEQ",), absence=("REPEAT",) * 5, exists=False)
DENSE_ENDS = replace(DENSE, ends=("MAXIMAL", "UNTIL"), pairs=("SEQ", "NOT"), absence=("REPEAT",) * 8, exists=False)
SERIES = st.sampled_from(tuple(product(NODES[:5], LIKELY[:7], (*NUMBERS, *NUMBERS[2:]))))


DENSE_OPTIONAL = replace(DENSE, pairs=("SEQ",), absence=("MAYBE",) * 5 + ("SOON",) * 2, values=True)
CONSUMING_OPTIONAL = replace(DENSE, pairs=("SEQ", "EQUALS"), absence=("MAYBE",) * 4, in_a_row=(1,), exists=False)


def optional_parts() -> st.SearchStrategy[Case]:
    """SEQ OPTIONAL over series of numbers, also inside other operators, and with what may be unbound."""
    events = st.one_of(
        streams(5, 10, triples=SERIES, lengths=(0,)),
        streams(5, 10, triples=SERIES, lengths=(0, 0, 1, 2)),
    )
    query = st.one_of(
        selects(DENSE_OPTIONAL, depth=1),
        selects(DENSE_OPTIONAL, depth=2),
        selects(replace(DENSE_OPTIONAL, optionals=("OPTIONAL",), pairs=("UNION", "SEQ")), depth=2),
    )
    consuming = selects(CONSUMING_OPTIONAL, depth=1).map(document)
    ruling = st.sampled_from(("recent", "chronological"))
    return st.one_of(
        *[st.builds(Case, query.map(document), events)] * 3,
        st.builds(Case, consuming, events, st.just(NO_BACKGROUND), ruling),
    )


def one_after_another() -> st.SearchStrategy[Case]:
    """NEXT, absence, SKIP and REPEAT over series of numbers: a condition, a tie or a gap decides about most matches."""
    query = st.one_of(selects(DENSE, depth=1), selects(DENSE, depth=2), selects(DENSE_RUNS, depth=1))
    events = st.one_of(
        streams(6, 12, triples=SERIES, lengths=(0,)),
        streams(6, 12, triples=SERIES, lengths=(0, 0, 1, 2)),
    )
    ruling = one_of_these(("unrestricted", "unrestricted", "unrestricted", "recent", "chronological"))
    return st.builds(Case, query.map(document), events, st.just(NO_BACKGROUND), ruling)


def ended_runs() -> st.SearchStrategy[Case]:
    """Runs that are reported when they are over, alone and inside other operators."""
    query = st.one_of(selects(DENSE_ENDS, depth=1), selects(DENSE_ENDS, depth=2))
    events = st.one_of(streams(5, 9, triples=SERIES, lengths=(0,)), streams(5, 9, triples=SERIES, lengths=(0, 0, 1)))
    return st.builds(Case, query.map(document), events)


def after_the_start() -> st.SearchStrategy[Case]:
    """START, alone or in a UNION, left of sequences, in rules and under policies; some events began before it."""
    palette = replace(APART, pairs=("SEQ", "NEXT", "NEXT", "UNION"), absence=("GAP", "DEADLINE"), start=True)
    query = st.one_of(selects(palette, depth=1), selects(palette, depth=2), selects(replace(palette, exists=True)))
    optional = replace(palette, absence=("GAP", "MAYBE", "MAYBE", "SOON"), blanks=False)
    mixed = replace(EVERYTHING, start=True)
    ruling = one_of_these(("unrestricted", "unrestricted", "recent", "chronological"))
    events = st.one_of(streams(1, 8), streams(1, 8, lengths=LONG))
    several = programs(replace(RULES, pairs=palette.pairs, absence=palette.absence, start=True))
    return st.one_of(
        st.builds(Case, query.map(document), events, st.just(NO_BACKGROUND), ruling),
        st.builds(Case, several, events),
        st.builds(Case, st.one_of(selects(optional, depth=1), selects(mixed)).map(document), events),
    )


def timed_among_all() -> st.SearchStrategy[Case]:
    """The same among all other operators."""
    query = st.one_of(selects(EVERYTHING), selects(EVERYTHING, depth=2))
    return st.builds(Case, query.map(document), streams(most=10))


def timed_policies() -> st.SearchStrategy[Case]:
    """Consuming policies, of which the whole temporal relation is a condition."""
    palette = replace(CONSUMING, pairs=("SEQ", "NEXT", "NEXT", "NOT", *RELATIONS), absence=OF_POLICIES, apart=True)
    palette = replace(palette, in_a_row=(1,))
    query = st.one_of(selects(palette, depth=1), selects(palette, depth=2))
    ruling = st.sampled_from(("recent", "chronological"))
    return st.builds(Case, query.map(document), streams(8, 13, lengths=LONG), st.just(NO_BACKGROUND), ruling)


def timed_background() -> st.SearchStrategy[Case]:
    """Sides that may be timeless: refused beside NOT, NEXT and REPEAT."""
    palette = replace(TIMED, graphs=True, pairs=(*TIMED.pairs, *RELATIONS, "AND", "AND"))
    return st.builds(Case, selects(palette).map(document), streams(most=8), backgrounds())


def timed_streams() -> st.SearchStrategy[Case]:
    palette = replace(TIMED, streams=True)
    return st.builds(Case, selects(palette).map(document), streams(names=("", *STREAMS)))


def timed_aggregates() -> st.SearchStrategy[Case]:
    """Aggregates over what deadlines and runs report."""
    query = aggregate_queries(replace(TIMED, pairs=("SEQ", "NEXT", "NOT")))
    return st.builds(Case, query.map(document), streams())


def timed_rules() -> st.SearchStrategy[Case]:
    """Rules with the new operators that read each other's triples; they may derive for ever, or not be stratified."""
    palette = replace(RULES, pairs=("SEQ", "NEXT", "NOT", "DURING", "FINISHES", "PAR"), absence=ABSENCE)
    return st.builds(Case, programs(palette), streams(most=7))


def timed_stratified() -> st.SearchStrategy[Case]:
    palette = replace(RULES, pairs=("SEQ", "NEXT", "NOT", "MEETS"), absence=ABSENCE)
    palette = replace(palette, optionals=OUTER, minus=True, exists=True)
    return st.builds(Case, programs(palette), streams(most=7))


ALL = {
    "core": core,
    "negation": negation,
    "open_sides": open_sides,
    "several_streams": several_streams,
    "background": background,
    "paths": paths,
    "policies": policies,
    "policies_and_negation": policies_and_negation,
    "aggregates": aggregates,
    "recursion": recursion,
    "stratified": stratified,
    "relations": relations,
    "timed": timed,
    "optional_parts": optional_parts,
    "one_after_another": one_after_another,
    "ended_runs": ended_runs,
    "timed_among_all": timed_among_all,
    "timed_policies": timed_policies,
    "timed_background": timed_background,
    "timed_streams": timed_streams,
    "timed_aggregates": timed_aggregates,
    "timed_rules": timed_rules,
    "timed_stratified": timed_stratified,
}
