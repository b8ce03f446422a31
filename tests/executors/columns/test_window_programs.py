"""Windowed programs drawn at random: columns answer what rows answer, and what the definition says.

A program is a star of one to three triple patterns with filters, perhaps asked of one EVENT, grouped by one of its
variables or by none, with some aggregates and perhaps HAVING.  The definition looks at each window by itself: the set
of its triples, or each of its events, their solutions, the groups of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cmp_to_key
from typing import Any

import pytest
from etalis_compiler import ast
from etalis_compiler.parser import parse
from etalis_rules.terms import XSD
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Event, compile
from etalis_py.kernel.batch import Batch
from tests.draws import examples
from tests.executors.columns.judge import most_run_in_columns, windows_agree
from tests.oracle.expressions import Environment, holds, order, value_or_unbound
from tests.oracle.solutions import BEFORE, Solution
from tests.windows.literal import rspql
from tests.windows.small import EX, SECOND

FLOOR = 0.75
"""At least so many of the drawn programs, the same in each run, are answered in columns to the end."""


def typed(lexical: str, datatype: str) -> str:
    return f'"{lexical}"^^<{XSD}{datatype}>'


integers = st.integers(-30, 30).map(lambda n: typed(str(n), "integer"))
decimals = st.builds(lambda n, s: typed(f"{n / 10**s:.{s}f}", "decimal"), st.integers(-99, 99), st.integers(1, 3))
numbers = st.sampled_from(
    [typed(text, "integer") for text in ("1", "01", "+1", "0", "-0", "9007199254740993", "9" * 30)]
    + [typed(text, "decimal") for text in ("1.0", "1.00", "0.1", "2.5", "9007199254740992.5", "-0.0")]
    + [typed(text, "double") for text in ("1", "1e0", "0.1", "-0", "9007199254740992", "INF", "-INF", "1e308")]
    + [typed(text, "float") for text in ("1", "0.1", "2.5")]
)
strange = st.sampled_from(
    [
        '"x"',
        '"1"',
        '"x"@en',
        '"x"@de',
        "<urn:a>",
        "<urn:a/b>",
        "_:b",
        "_:c",
        typed("x", "integer"),
        typed("NaN", "double"),
    ]
    + [typed("NaN", "float"), typed("true", "boolean"), typed("2020-01-01", "date"), typed("PT1S", "duration")]
    + [typed(t, "dateTime") for t in ("2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00", "1900-01-01T00:00:00Z")]
    + [typed("2020-01-01T00:00:00.000001Z", "dateTime"), typed("9999999-01-01T00:00:00Z", "dateTime")]
)


def streams(values: st.SearchStrategy[str]) -> st.SearchStrategy[list[Event]]:
    """Items of one to three triples in order of their times; some on another stream, some stated twice.

    Of some at a fifth second there is another one whose triples are in another order.
    """
    triple = st.tuples(
        st.sampled_from("aabc").map(lambda n: f"<{EX}{n}>"),
        st.sampled_from("ppqqrs").map(lambda n: f"<{EX}{n}>"),
        values,
    )
    item = st.tuples(
        st.integers(-3, 30),
        st.lists(triple, min_size=1, max_size=3, unique=True),
        st.sampled_from(("s", "s", "s", "s", "", "t")),
    )
    return st.lists(item, max_size=25).map(
        lambda items: [
            Event((t - (t % 3 == 0)) * SECOND, t * SECOND, tuple(triples), stream and f"<{EX}{stream}>")
            for t, stated, stream in sorted(items, key=lambda x: x[0])
            for triples in (stated, stated[::-1])[: 1 + (len(stated) > 1 and t % 5 == 0)]
        ]
    )


@st.composite
def queries(draw: st.DrawFn) -> str:
    """The text of a query, with ``{}`` where its window stands."""
    objects = {"p": "?y", "q": "?z", "r": "?u"}
    chosen = draw(st.lists(st.sampled_from("pqr"), min_size=1, max_size=3, unique=True))
    patterns = [f"?x :{p} {objects[p]}" for p in chosen]
    if draw(st.integers(0, 7)) == 0 and len(chosen) > 1:
        patterns[-1] = f"?x :{chosen.pop()} <urn:a>"
    bound = ["?x", *(objects[p] for p in chosen)]
    some = st.sampled_from(bound)
    value, member = draw(some), draw(some)
    calls = ["COUNT(*)", f"COUNT({member})", f"COUNT(DISTINCT {member})"]
    calls += [f"{name}({member})" for name in ("MIN", "MAX", "SAMPLE")] * 2
    calls += [f"{name}({value})" for name in ("SUM", "AVG")]
    asked = draw(st.lists(st.sampled_from(calls), min_size=1, max_size=4, unique=True))
    key = draw(st.sampled_from([*bound, ""]))
    shown = [f"({call} AS ?a{n})" for n, call in enumerate(asked)]
    shown.insert(draw(st.integers(0, 1)), key)
    named = [*(f"a{n}" for n in range(len(asked))), *([key[1:]] if key else [])]
    filters = [f"FILTER({v} {condition})" for v in bound[1:] for condition in draw(st.sampled_from(CONDITIONS))]
    having = f"HAVING ({draw(st.sampled_from(asked))} > {draw(st.integers(-1, 3))})" if draw(st.booleans()) else ""
    by = f"GROUP BY {key}" if key else ""
    inside, outside = (filters, []) if draw(st.booleans()) else ([], filters)
    group = f"{' . '.join(patterns)} {' '.join(inside)}"
    if draw(st.integers(0, 2)) == 0:
        group = f"EVENT {{{{ {group} }}}}"
    where = f"{{{{ WINDOW :w {{{{ {group} {' '.join(outside)} }}}} }}}}"
    keys = [f"{draw(st.sampled_from(('', 'DESC')))}(?{name})" for name in draw(st.permutations(named))[:2]]
    chosen = f"ORDER BY {' '.join(keys[: draw(st.integers(1, 2))])} " if draw(st.integers(0, 2)) == 0 else ""
    chosen += draw(st.sampled_from(("", "", "LIMIT 2 ", "LIMIT 1 OFFSET 1 ", "OFFSET 1 ")))
    return f"SELECT {' '.join(shown)} {{}} {where} {by} {having} {chosen}"


CONDITIONS = ((), (), (), (), (), ("> 1",), ("!= 1", "< 9.5"), ("> 1 || true",))
WINDOWS = st.sampled_from(
    ("RANGE PT6S SLIDE PT2S", "RANGE PT5S SLIDE PT5S", "RANGE PT7S SLIDE PT3S", "RANGE PT9S SLIDE PT1S")
)
REPORTS = st.sampled_from(("", "REPORT ON WINDOW CLOSE ", "REPORT ON WINDOW CLOSE AND NON-EMPTY CONTENT "))
VALUES = st.sampled_from((integers, decimals, integers | decimals, numbers, integers | numbers | strange, strange))


@dataclass(frozen=True)
class Case:
    """A program and its stream."""

    text: str
    events: list[Event]


@st.composite
def cases(draw: st.DrawFn, values: st.SearchStrategy[st.SearchStrategy[str]] = VALUES) -> Case:
    text = draw(queries()).format(f"FROM NAMED WINDOW :w ON :s [{draw(WINDOWS)}] {draw(REPORTS)}WHERE")
    return Case(text, draw(streams(draw(values))))


@settings(max_examples=examples(1))
@given(cases())
def test_columns_are_rows(case: Case) -> None:
    windows_agree(case.text, case.events)


@settings(max_examples=examples(2 / 3))
@given(cases(st.sampled_from((integers, decimals, integers | decimals, numbers))))
def test_columns_are_the_definition(case: Case) -> None:
    engine = Engine(compile(case.text), executor="columns")
    matches = engine.push_all(Batch(case.events, 0).columns)
    found = [(m.end_us, m.start_us, sorted(m.bindings.items())) for m in [*matches, *engine.close()]]
    expected = [(end, start, sorted(row.items())) for end, start, row in defined(case)]
    assert sorted(found) == sorted(expected)


def defined(case: Case) -> Iterator[tuple[int, int, dict[str, str]]]:
    """The rows of each window that closes, by [RSPQL] and [SPARQL 1.1 Query] §18.5."""
    query = parse(case.text).queries[0]
    (clause,), (window,) = query.dataset, query.where.elements
    width, slide = (rspql.seconds(d) * SECOND for d in (clause.window.range, clause.window.slide))
    elements: tuple[Any, ...] = window.group.elements
    records = [e for e in elements if isinstance(e, ast.EventGroup)]
    elements += tuple(inside for e in records for inside in e.group.elements)
    patterns = tuple(p for e in elements if isinstance(e, ast.Triples) for p in e.patterns)
    filters = [e.condition for e in elements if isinstance(e, ast.Filter)]
    own = [e for e in case.events if e.stream != f"<{EX}t>" and e.end > 0]
    nonempty = query.report is None or any(item.kind == "NC" for item in query.report.items)
    close = width
    last = max([e.end for e in case.events[-1:]] + [e.end + width - 1 for e in own[-1:]], default=0)
    while close <= last:
        held = [e for e in own if close - width < e.end <= close]
        if (held or not nonempty) and close >= case.events[0].end:
            graphs = [{triple for e in held for triple in e.triples}]
            if records:
                graphs = [set(triples) for *_, triples in {(e.start, e.end, frozenset(e.triples)) for e in held}]
            solutions = [Solution(mu, None, None, BEFORE) for graph in graphs for mu in rspql.bgp(graph, patterns)]
            held_by_all = [s for s in solutions if all(holds(f, environment(s)) for f in filters)]
            for row in chosen(query, list(answer(query, held_by_all))):
                yield close, close - width, row
        close += slide


def answer(query: Any, solutions: list[Solution]) -> Iterator[dict[str, str]]:
    """A row for each group that HAVING lets pass."""
    keys = [v.name for v in query.group_by]
    groups: dict[tuple[str, ...], list[Solution]] = {} if keys else {(): []}
    for s in solutions:
        groups.setdefault(tuple(dict(s.mu)[k] for k in keys), []).append(s)
    for key, members in groups.items():
        env = replace(environment(Solution(tuple(zip(keys, key, strict=True)), None, None, BEFORE)), members=members)
        if all(holds(condition, env) for condition in query.having):
            shown = {p.variable.name: p.expression or p.variable for p in query.form.projections}
            row = {name: value_or_unbound(e, env) for name, e in shown.items()}
            yield {name: term for name, term in row.items() if term}


def chosen(query: Any, rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """ORDER BY, where rows that are equal in its keys come in the order of their terms; then OFFSET and LIMIT."""

    def compared(one: dict[str, str], other: dict[str, str]) -> int:
        for key in query.order_by:
            name = key.expression.name
            if found := order(one.get(name, ""), other.get(name, "")):
                return -found if key.descending else found
        return 0

    rows = sorted(rows, key=lambda row: [row.get(name, "") for name in sorted(row)])
    rows.sort(key=cmp_to_key(compared))
    offset = query.offset or 0
    return rows[offset:] if query.limit is None else rows[offset : offset + query.limit]


def environment(solution: Solution) -> Environment:
    """Where the expressions of one solution are evaluated."""
    return Environment(dict(solution.mu), None, None, BEFORE, lambda *_: False)


def test_most_are_answered_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    most_run_in_columns(cases(), 300, FLOOR, "windowed programs", capsys)
