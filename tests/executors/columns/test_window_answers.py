"""Windowed queries of all forms in columns: drawn at random, they answer what rows answer."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from etalis_compiler.parser import parse
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Event, compile, event, run
from etalis_py.executors.columns import window_answers, window_order, window_rows, window_solutions
from etalis_py.executors.columns.window_answers import WindowAnswers
from etalis_py.kernel.batch import Batch
from etalis_py.values.errors import LimitExceeded
from etalis_py.values.limits import Limits
from tests.draws import examples
from tests.executors.columns.judge import EVERYTHING, agree, most_run_in_columns, reason_of, windows_agree, windows_of
from tests.executors.columns.test_sliding import program
from tests.executors.columns.test_window_programs import Case, decimals, integers, numbers, strange
from tests.windows.literal import rspql
from tests.windows.small import EX, SECOND
from tests.windows.test_literal import events as literal_events
from tests.windows.test_literal import streams as literal_streams

FLOOR = 0.8
"""At least so many of the drawn programs, the same in each run, are answered in columns to the end."""
WINDOWS = st.sampled_from(
    (
        *("RANGE PT6S SLIDE PT2S", "RANGE PT5S SLIDE PT5S", "RANGE PT7S SLIDE PT3S", "RANGE PT9S SLIDE PT1S"),
        *("RANGE PT4S SLIDE PT2S OFFSET PT3S", "RANGE PT2S SLIDE PT5S"),
    )
)
COUNTING = st.builds(
    lambda unit, size, slide: f"RANGE {size} {unit} SLIDE {slide} {unit}",
    st.sampled_from(("EVENTS", "TRIPLES")),
    st.integers(1, 6),
    st.integers(1, 4),
)
REPORTS = st.sampled_from(("", "", "REPORT ON WINDOW CLOSE ", "REPORT ON WINDOW CLOSE AND NON-EMPTY CONTENT "))
PATTERNS = (
    "?x :p ?y",
    "?x :q ?z",
    "?u :p ?y",
    "?u :q ?x",
    "?y :q ?z",
    "?x :p :a",
    ":a ?r ?y",
    "?x ?r ?y",
    "?x :p ?x",
    "?x :p []",
    "?x :r ?x ; :p ?y",
)
STEPS = (
    "FILTER(?y != ?z)",
    "FILTER(?y > 1)",
    "FILTER(?y = ?z + 1)",
    "FILTER(STR(?y) = STR(?z) && ?u != ?x)",
    "FILTER(?z = ?y)",
    "BIND(STR(?x) AS ?v)",
    "BIND(?y + 1 AS ?w)",
    "FILTER(isIRI(?y) || ?y < 3)",
    "VALUES ?x { :a :b }",
)


def streams(values: st.SearchStrategy[str]) -> st.SearchStrategy[list[Event]]:
    """Items of one to three triples about few nodes, some of them objects too; some items are stated twice."""
    node = st.sampled_from("aabc").map(lambda n: f"<{EX}{n}>")
    triple = st.tuples(node, st.sampled_from("ppqqr").map(lambda n: f"<{EX}{n}>"), node | values)
    item = st.tuples(
        st.integers(-3, 30),
        st.lists(triple, min_size=1, max_size=3),
        st.sampled_from(("s", "s", "s", "s", "", "t")),
    )
    return st.lists(item, max_size=20).map(
        lambda items: [
            Event((t - (t % 3 == 0)) * SECOND, t * SECOND, tuple(triples), stream and f"<{EX}{stream}>")
            for t, stated, stream in sorted(items, key=lambda x: x[0])
            for triples in (stated, stated[::-1])[: 1 + (len(stated) > 1 and t % 5 == 0)]
        ]
    )


@st.composite
def groups(draw: st.DrawFn) -> str:
    """One to three patterns, each perhaps of one EVENT, with filters and BINDs, or two such groups united."""
    parts = draw(st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True))
    steps = draw(st.lists(st.sampled_from(STEPS), max_size=2, unique=True)) if draw(st.booleans()) else []
    form = draw(st.integers(0, 4))
    if form == 0:
        return f"EVENT {{ {' . '.join(parts)} {' '.join(steps)} }}"
    if form == 1:
        return f"{' '.join(f'EVENT {{ {part} }}' for part in parts)} {' '.join(steps)}"
    if form == 2 and len(parts) > 1:
        return f"{{ {parts[0]} {' '.join(steps)} }} UNION {{ {' . '.join(parts[1:])} }}"
    return f"{' . '.join(parts)} {' '.join(steps)}"


CALLS = (
    *("COUNT(*)", "COUNT(?y)", "COUNT(DISTINCT ?x)", "MIN(?y)", "MAX(?y)", "SAMPLE(?y)", "SUM(?y)", "AVG(?y)"),
    *("SUM(DISTINCT ?y)", "AVG(DISTINCT ?y)", "SUM(?y + 1)", "MAX(STR(?x))"),
)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


@st.composite
def queries(draw: st.DrawFn) -> str:
    """The text of a query, with ``{}`` where its window stands."""
    windows = (":w",) if draw(st.integers(0, 2)) else (":w", ":v")
    where = " ".join(f"WINDOW {window} {{{{ {_escaped(draw(groups()))} }}}}" for window in windows)
    form = draw(st.sampled_from(("rows", "rows", "groups", "groups", "nested", "ask", "construct")))
    stream = draw(st.sampled_from(("", "", "ISTREAM ", "DSTREAM ")))
    if form == "ask":
        return f"ASK {stream}{{}} {{{{ {where} }}}}"
    if form == "construct":
        return f"CONSTRUCT {stream}{{{{ ?x :is ?y . ?x :of ?u }}}} {{}} {{{{ {where} }}}}"
    shown = " ".join(draw(st.lists(st.sampled_from(("?x", "?y", "?z", "?u")), min_size=1, max_size=3, unique=True)))
    if form == "rows":
        distinct = draw(st.sampled_from(("", "DISTINCT ")))
        order = draw(st.sampled_from(("", "", "LIMIT 2", "ORDER BY DESC(?x) OFFSET 1", "ORDER BY STR(?y) ?z LIMIT 2")))
        return f"SELECT {stream}{distinct}{shown} {{}} {{{{ {where} }}}} {order}"
    asked = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=3, unique=True))
    calls = " ".join(f"({call} AS ?a{n})" for n, call in enumerate(asked))
    keys = draw(st.sampled_from(("", "?x", "?x", "?x ?u")))
    by = f"GROUP BY {keys}" if keys else ""
    if form == "nested":
        inner = f"{{{{ SELECT {keys} {calls} WHERE {{{{ {where} }}}} {by} }}}}"
        return f"SELECT {stream}(COUNT(*) AS ?n) (MAX(?a0) AS ?m) {{}} {{{{ {inner} }}}}"
    having = f"HAVING ({asked[0]} > 1)" if draw(st.integers(0, 2)) == 0 else ""
    return f"SELECT {stream}{keys} {calls} ((COUNT(*) + 1) AS ?n) {{}} {{{{ {where} }}}} {by} {having}"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    query = draw(queries())
    two = "WINDOW :v" in query
    windows = f"FROM NAMED WINDOW :w ON :s [{draw(WINDOWS if two else WINDOWS | COUNTING)}]"
    if two:
        windows += f" FROM NAMED WINDOW :v ON {draw(st.sampled_from((':s', ':t')))} [{draw(WINDOWS)}]"
    text = query.format(f"{windows} {draw(REPORTS)}WHERE")
    values = draw(st.sampled_from((integers, decimals, integers | decimals, numbers, integers | strange)))
    return Case(text, draw(streams(values)))


@settings(max_examples=examples(1))
@given(cases())
def test_columns_are_rows(case: Case) -> None:
    windows_agree(case.text, case.events)


sliding = st.sampled_from(
    ("[RANGE PT6S SLIDE PT2S]", "[RANGE PT3S SLIDE PT3S T0 1]", "[RANGE PT2S SLIDE PT5S]", "[RANGE PT5S SLIDE PT1S]")
)


@settings(max_examples=examples(1))
@given(
    sliding,
    sliding,
    st.sampled_from(("RSTREAM", "ISTREAM", "DSTREAM")),
    st.sampled_from(("", "REPORT ON WINDOW CLOSE ")),
    st.sampled_from(("?x :p ?y . ?y :q ?z", "?x :p ?y . ?u :p ?y", "?x :p ?y . ?y :p ?x")),
    st.sampled_from(("", "", "?y :q ?z", "?y :q ?x . ?x :q ?u")),
    literal_streams,
)
def test_columns_are_the_definition(
    one: str, other: str, r2s: str, report: str, group: str, second: str, stream: list[rspql.Item]
) -> None:
    """[RSPQL] Definition 24, over sets of triples of one window or two."""
    windows, where = f"FROM NAMED WINDOW :w ON :s {one}", f"WINDOW :w {{ {group} }}"
    if second:
        windows, where = f"{windows} FROM NAMED WINDOW :v ON :u {other}", f"{where} WINDOW :v {{ {second} }}"
    text = f"SELECT {r2s} ?x ?y {windows} {report}WHERE {{ {where} }}"
    engine = Engine(compile(text), executor="columns")
    matches = [*engine.push_all(Batch(literal_events(stream), 0).columns), *engine.close()]
    assert reason_of(engine) is None
    expected = rspql.run(rspql.read(parse(text).queries[0]), stream)
    assert sorted((m.end, m.start, (m.bindings["x"], m.bindings["y"])) for m in matches) == sorted(
        (now, opening, row) for now, opening, rows in expected for row in rows
    )


def test_most_are_answered_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    most_run_in_columns(cases(), 200, FLOOR, "queries over windows", capsys)


def moving(count: int) -> list[Event]:
    """Two events each second: where one of many things is, a new thing each time."""
    return [
        Event(
            n // 2 * SECOND, n // 2 * SECOND, ((f"<{EX}t{n // 3}>", f"<{EX}at>", f"<{EX}p{n * n % 17}>"),), f"<{EX}s>"
        )
        for n in range(2, count)
    ]


TOGETHER = "SELECT ISTREAM ?a ?b FROM NAMED WINDOW :w ON :s [{}] WHERE {{ WINDOW :w {{ ?a :at ?p . ?b :at ?p }} }}"


@pytest.mark.parametrize(
    "window", ["RANGE PT6S SLIDE PT2S", "RANGE 9 EVENTS SLIDE 4 EVENTS", "RANGE TRIPLES 5 TUMBLING"]
)
def test_what_has_left_is_forgotten(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_rows, "_SPARE", 4)
    asked, events = compile(TOGETHER.format(window)), moving(300)
    assert agree(lambda executor: Engine(asked, executor=executor), events, sizes=(9, 40)) is None
    engine = Engine(asked, executor="columns")
    for first in range(0, len(events), 10):
        engine.push_all(Batch(events[first : first + 10], 0).columns)
    held = windows_of(engine)._held
    assert isinstance(held, WindowAnswers)
    assert held.terms.count < 120


@pytest.mark.parametrize(("module", "limit"), [(window_solutions, "MOST"), (window_answers, "_AT_ONCE")])
@pytest.mark.parametrize("window", ["RANGE PT6S SLIDE PT2S", "RANGE 9 EVENTS SLIDE 4 EVENTS"])
def test_evaluations_with_many_solutions_are_looked_at_one_by_one(
    window: str, module: ModuleType, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, limit, 3)
    asked = compile(TOGETHER.format(window))
    assert agree(lambda executor: Engine(asked, executor=executor), moving(100), sizes=(9, EVERYTHING)) is None


def test_a_join_of_very_many_pairs_runs_in_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_solutions, "MOST", 3)
    monkeypatch.setattr(window_solutions, "MOST_OF_ONE", 30)
    asked, events = compile(TOGETHER.format("RANGE PT60S SLIDE PT20S")), moving(200)
    assert agree(lambda executor: Engine(asked, executor=executor), events, sizes=(9, EVERYTHING)) is None
    engine = Engine(asked, executor="columns")
    engine.push_all(Batch(events, 0).columns)
    assert windows_of(engine).reason == "an evaluation joins very many pairs"


EQUALITIES = [
    'STR(?a) = CONCAT(?b, "x")',
    "?a = ?b",
    "STRLEN(?a) > 1 && STRBEFORE(?a, 'x') = ?b",
    "?a = ?b + 1",
    "?a + ?s = ?b",
    "sameTerm(?a, ?b)",
]


@pytest.mark.parametrize("condition", EQUALITIES)
def test_what_two_windows_compare_by_equality_is_a_key(condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each triple of one window was compared with each of the other, where the two share no variable."""
    text = (
        "PREFIX : <http://ex.org/> SELECT ?a ?b FROM NAMED WINDOW :w ON <urn:l> [RANGE PT400S STEP PT400S] "
        "FROM NAMED WINDOW :v ON <urn:r> [RANGE PT400S STEP PT400S] "
        f"WHERE {{ WINDOW :w {{ ?s :a ?a }} WINDOW :v {{ ?t :b ?b }} FILTER ({condition}) }}"
    )
    left = ['"k%dx"', "%d", '"%d.0"^^<http://www.w3.org/2001/XMLSchema#double>', "<http://ex.org/n%d>", '"NaN"']
    right = ['"k%d"', "%d", '"k%dx"', "<http://ex.org/n%d>", '"NaN"']
    given = [
        event(f"<http://ex.org/{p}{n}> <http://ex.org/{p}> {terms[n % 5].replace('%d', str(n))}", n, stream=stream)
        for n in range(450)
        for p, terms, stream in (("a", left, "urn:l"), ("b", right, "urn:r"))
    ]
    steps = 0
    take = window_solutions.Evaluations._take

    def counted(self: window_solutions.Evaluations, more: int) -> None:
        nonlocal steps
        steps += more
        take(self, more)

    monkeypatch.setattr(window_solutions.Evaluations, "_take", counted)
    found = {
        executor: sorted((m.end, m.bindings["a"], m.bindings["b"]) for m in run(text, given, executor=executor))
        for executor in ("rows", "columns")
    }
    assert found["columns"] == found["rows"]
    assert 0 < steps < 20_000, "each with each would be 160,000"


def test_the_default_graph_has_no_triples_of_a_named_window() -> None:
    text = "SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT6S SLIDE PT6S] WHERE { ?a :at ?p }"
    engine = Engine(text, executor="columns")
    engine.push_all(Batch(moving(30), 0).columns)
    assert reason_of(engine) is not None
    assert agree(lambda executor: Engine(text, executor=executor), moving(30), sizes=(9,)) is None


def test_an_answer_has_a_limit() -> None:
    engine = Engine(TOGETHER.format("RANGE PT6S SLIDE PT2S"), executor="columns", limits=Limits(matches=3))
    with pytest.raises(LimitExceeded, match="rows at once, the limit is 3"):
        engine.push_all(Batch(moving(30), 0).columns)


@pytest.mark.parametrize(("slide", "reason"), [("PT1S", None), ("PT0.5S", "more than 60 closings")])
def test_aggregates_of_windows_that_slide_often_follow_them_in_rows(slide: str, reason: str | None) -> None:
    text = "SELECT (SUM(?x + 1) AS ?n) {} {{ WINDOW :w {{ ?a :at ?x }} }}"
    found = reason_of(Engine(program(text, f"RANGE PT60S SLIDE {slide}"), executor="columns"))
    assert reason in str(found) if reason else found is None


@given(st.lists(st.integers(-3, 12), min_size=1, max_size=6).map(sorted), st.lists(st.integers(-5, 15), max_size=20))
def test_places_are_found_among_bounds(bounds: list[int], places: list[int]) -> None:
    low = np.array(bounds, np.int64)
    anywhere, rising = np.array(places, np.int64), np.array(sorted(places), np.int64)
    assert window_rows._first_from(low, rising).tolist() == np.searchsorted(low, rising).tolist()
    assert window_rows._first_after(low, anywhere).tolist() == np.searchsorted(low, anywhere).tolist()


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(-3, 3)), min_size=1, max_size=12).map(
        lambda rows: sorted(rows, key=lambda row: row[0])
    ),
    st.integers(0, 3),
    st.integers(0, 2),
    st.booleans(),
)
def test_what_limit_may_keep(rows: list[tuple[int, int]], limit: int, offset: int, descending: bool) -> None:
    order = "DESC(?n)" if descending else "?n"
    window = "FROM NAMED WINDOW :w ON :s [RANGE 2 SLIDE 2] WHERE { WINDOW :w { ?x :p ?y } }"
    text = f"SELECT (COUNT(*) AS ?n) {window} GROUP BY ?x ORDER BY {order} LIMIT {limit} OFFSET {offset}"
    select = compile(text).plans[0].select
    closings, numbers = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    kept = window_order.may_be_chosen(select, closings, numbers).tolist()
    sign = -1 if descending else 1
    for (closing, number), may in zip(rows, kept, strict=True):
        better = sum(other == closing and sign * value < sign * number for other, value in rows)
        assert may == (better < max(1, limit + offset))
