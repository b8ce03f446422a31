"""Random programs with EVENT among all other operators, over streams whose events have several triples.

>>> from hypothesis import given
>>> @given(of_events())
... def engine_agrees(case): ...
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from etalis_compiler import ast
from hypothesis import strategies as st

from etalis_py.events import Event

from .drawing import GRAPHS, LIKELY, NODES, STREAMS, VALUES, Draw, Palette, one_of_these
from .strategies import (
    CORE,
    DERIVED,
    EVERYTHING,
    LONG,
    NEGATION,
    NO_BACKGROUND,
    OF_POLICIES,
    OUTER,
    PLAIN,
    RULES,
    SECOND,
    TIMED,
    Case,
    aggregate_queries,
    backgrounds,
    document,
    rules,
    selects,
)

CELLS = st.sampled_from(tuple(product(LIKELY, VALUES)))


@st.composite
def record_streams(
    draw: Draw[Any],
    least: int = 4,
    most: int = 8,
    names: tuple[str, ...] = ("",),
    lengths: tuple[int, ...] = (0, 0, 0, 1),
    ends: int = 5,
) -> tuple[Event, ...]:
    """Events about one subject or about several, some of them equal, or equal but for their graph."""
    events: list[Event] = []
    frames = one_of_these(tuple(product(range(ends), lengths, (1, 2, 2, 3, 4), names, ("", "", *GRAPHS))))
    for _ in range(draw(one_of_these(tuple(range(least, most + 1))))):
        end, length, size, name, graph = draw(frames)
        subject = draw(one_of_these(NODES))
        content = []
        for _ in range(size):
            other = draw(one_of_these((subject, subject, subject, *NODES[-2:])))
            content.append((other, *draw(CELLS)))
        if events and draw(one_of_these((False, False, False, True))):
            content = list(draw(st.permutations(draw(st.sampled_from(events)).triples)))
        events.append(Event((end - length) * SECOND, end * SECOND, tuple(content), name, graph))
    return tuple(sorted(events, key=lambda e: e.end))


OF_EVENT = replace(CORE, events=True)
SEVERAL = replace(EVERYTHING, events=True, subselect=False)
CONSUMED = replace(
    PLAIN,
    events=True,
    apart=True,
    pairs=("SEQ", "SEQ", "NEXT", "EQUALS", "NOT", "AND"),
    absence=OF_POLICIES,
    in_a_row=(1,),
)


def of_events() -> st.SearchStrategy[Case]:
    """EVENT beside the operators of SPARQL, SEQ and EQUALS."""
    query = st.one_of(selects(OF_EVENT), selects(replace(NEGATION, events=True)), selects(OF_EVENT, depth=0))
    return st.builds(Case, query.map(document), record_streams())


def of_events_among_all() -> st.SearchStrategy[Case]:
    """EVENT as an operand of every operator."""
    query = st.one_of(selects(SEVERAL), selects(replace(TIMED, events=True)), selects(SEVERAL, depth=2))
    return st.builds(Case, query.map(document), record_streams(lengths=LONG))


def of_events_and_background() -> st.SearchStrategy[Case]:
    """EVENT beside and over background knowledge, GRAPH and streams."""
    query = st.one_of(
        selects(replace(OF_EVENT, graphs=True)),
        selects(replace(OF_EVENT, graphs=True, streams=True), depth=0),
    )
    return st.builds(Case, query.map(document), record_streams(names=("", *STREAMS)), backgrounds())


def of_events_under_policies() -> st.SearchStrategy[Case]:
    """A solution of EVENT is consumed as a whole."""
    outer = replace(CONSUMED, optionals=("OPTIONALSEQ", "EQUALSOPTIONAL"))
    query = st.one_of(selects(CONSUMED, depth=1), selects(outer, depth=2))
    ruling = st.sampled_from(("recent", "chronological"))
    return st.builds(Case, query.map(document), record_streams(5, 9), st.just(NO_BACKGROUND), ruling)


def of_events_aggregated() -> st.SearchStrategy[Case]:
    return st.builds(Case, aggregate_queries(replace(PLAIN, events=True)).map(document), record_streams())


@st.composite
def _programs(draw: Draw[Any], palette: Palette) -> ast.Document:
    """Rules that derive events and read them, and a query over all; one of the rules derives records."""
    made = draw(st.lists(rules(palette), min_size=1, max_size=2))
    record = draw(rules(replace(palette, events=False), recursive=False))
    assert isinstance(record.form, ast.Construct)
    more = ast.TriplePattern(ast.Var("x"), ast.Term("<urn:p>"), ast.Var("y"))
    record = replace(record, form=ast.Construct((*record.form.template, more)))
    reader = replace(
        palette, predicates=(*DERIVED * 2, "<urn:p>", "<urn:made>"), optionals=(), minus=False, exists=False
    )
    return ast.Document((record, *made, draw(selects(reader, depth=draw(st.sampled_from((0, 1)))))))


def of_derived_events() -> st.SearchStrategy[Case]:
    """EVENT over what rules derive: a solution of a rule is one event."""
    palettes = st.sampled_from(
        (replace(RULES, events=True), replace(RULES, events=True, optionals=OUTER, minus=True, exists=True))
    )
    return st.builds(Case, palettes.flatmap(_programs), record_streams(3, 5))


ALL = {
    "of_events": of_events,
    "of_events_among_all": of_events_among_all,
    "of_events_and_background": of_events_and_background,
    "of_events_under_policies": of_events_under_policies,
    "of_events_aggregated": of_events_aggregated,
    "of_derived_events": of_derived_events,
}
