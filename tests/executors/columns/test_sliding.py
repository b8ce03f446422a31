"""Aggregates over a sliding window in columns: the same answers as in rows, and numbers spelled by the definition."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from etalis_rules.terms import XSD
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Event, compile
from etalis_py.engine.program import Program
from etalis_py.executors.columns import extremes, window_groups
from etalis_py.executors.columns.kernels.parsing import DECIMAL, INTEGER
from etalis_py.kernel.batch import Batch
from etalis_py.values.canonical import decimal_lexical
from etalis_py.values.errors import LimitExceeded
from etalis_py.values.exact import quotient
from etalis_py.values.limits import Limits
from tests.executors.columns.judge import EVERYTHING, agree, reason_of, windows_of
from tests.windows.small import EX, SECOND

integers = st.integers(-30, 30).map(lambda n: f'"{n}"^^<{XSD}integer>')
decimals = st.builds(lambda n, s: f'"{Decimal(n).scaleb(-s)}"^^<{XSD}decimal>', st.integers(-99, 99), st.integers(0, 3))
others = st.sampled_from(
    ['"x"', '"01"', f'"01"^^<{XSD}integer>', f'"0.5"^^<{XSD}double>', f'"9"^^<{XSD}int>', "<urn:a>"]
)


def streams(values: Any) -> st.SearchStrategy[list[Event]]:
    """Items in order of their times; some of another predicate or stream, some stated twice, a few of two triples."""
    item = st.tuples(
        st.integers(-3, 30),
        st.sampled_from("abc"),
        st.sampled_from("pppq"),
        values,
        st.sampled_from(("s", "s", "s", "", "t")),
    )
    return st.lists(item, max_size=25).map(
        lambda items: [
            Event(
                (t - (t % 3 == 0)) * SECOND,
                t * SECOND,
                ((f"<{EX}{s}>", f"<{EX}{p}>", o),),
                stream and f"<{EX}{stream}>",
            )
            for t, s, p, o, stream in sorted(items, key=lambda x: x[0])
        ]
    )


QUERIES = (
    "SELECT ?x (AVG(?y) AS ?a) (COUNT(*) AS ?n) {} {{ WINDOW :w {{ ?x :p ?y }} }} GROUP BY ?x",
    "SELECT (SUM(?y) AS ?t) (AVG(?y) AS ?a) (COUNT(?x) AS ?n) {} {{ WINDOW :w {{ ?x :p ?y }} }}",
    "SELECT (COUNT(*) AS ?n) ?y {} {{ WINDOW :w {{ ?x :p ?y }} }} GROUP BY ?y",
    "SELECT (SUM(?y) AS ?t) {} {{ WINDOW :w {{ ?x :p ?y }} }} GROUP BY ?x",
    "SELECT (SUM(?y) AS ?t) {} {{ WINDOW :w {{ EVENT {{ ?x :p ?y }} }} }} GROUP BY ?x",
)
WINDOWS = ("RANGE PT6S SLIDE PT2S", "RANGE PT5S SLIDE PT5S", "RANGE PT7S SLIDE PT3S")
REPORTS = ("", "REPORT ON WINDOW CLOSE ", "REPORT ON WINDOW CLOSE AND NON-EMPTY CONTENT ")


def program(query: str, window: str, report: str = "") -> Program:
    """The query over that window."""
    return compile(query.format(f"FROM NAMED WINDOW :w ON :s [{window}] {report}WHERE"))


@settings(deadline=None)
@given(st.sampled_from(QUERIES), st.sampled_from(WINDOWS), st.sampled_from(REPORTS), st.data())
def test_columns_are_rows(query: str, window: str, report: str, data: st.DataObject) -> None:
    asked = program(query, window, report)
    events = data.draw(streams(data.draw(st.sampled_from((integers, decimals, integers | decimals | others)))))
    assert agree(lambda executor: Engine(asked, executor=executor), events, sizes=(3, EVERYTHING)) is None
    rows, columns = Engine(asked, executor="rows"), Engine(asked, executor="columns")
    rows.push_all(events)
    columns.push_all(Batch(events, 0).columns)
    assert windows_of(columns).reason in (
        None,
        "values are neither all integers nor all decimals",
        "values are not all integers, all decimals or all doubles, or many texts are compared",
    )
    assert columns.next_due() == rows.next_due()
    assert columns.counters.kept().items == rows.counters.kept().items
    rows.close()
    columns.close()
    for name in ("events", "evaluations", "unrouted", "outside", "matches"):
        assert getattr(columns.counters, name) == getattr(rows.counters, name), name
    assert list(columns.warnings) == list(rows.warnings)


def items(count: int, keys: int = 7) -> list[Event]:
    """An item each second, each with a number of its own."""
    return [
        Event(n * SECOND, n * SECOND, ((f"<{EX}k{n * n % keys}>", f"<{EX}p>", f'"{n}"^^<{XSD}integer>'),), f"<{EX}s>")
        for n in range(1, count + 1)
    ]


def test_it_runs_in_columns_and_gives_the_items_back() -> None:
    asked, events = program(QUERIES[0], WINDOWS[0]), items(50)
    engine = Engine(asked, executor="columns")
    engine.push_all(Batch(events, 0).columns)
    assert windows_of(engine).form == "columns"
    before = engine.counters.kept().items
    engine.snapshot()
    assert windows_of(engine).form == "rows"
    assert engine.counters.kept().items == before


@pytest.mark.parametrize("query", [QUERIES[0], QUERIES[-1]])
def test_what_no_item_has_is_forgotten(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_groups, "_SPARE", 4)
    asked, events = program(query, WINDOWS[2]), items(300, keys=150)
    assert agree(lambda executor: Engine(asked, executor=executor), events, sizes=(9, 40)) is None
    engine = Engine(asked, executor="columns")
    for first in range(0, 300, 10):
        engine.push_all(Batch(events[first : first + 10], 0).columns)
    groups = windows_of(engine)._held
    assert isinstance(groups, window_groups.SlidingGroups)
    assert groups.terms.count < 60


def test_rows_that_come_one_by_one_are_taken_in_rows_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etalis_py.executors.columns.window_executor.ready", lambda: True)
    monkeypatch.setattr("etalis_py.executors.columns.window_executor.ENOUGH", 10)
    asked, events = program(QUERIES[0], WINDOWS[0]), items(40)
    engine = Engine(asked)
    engine.push_all(Batch(events[:20], 0).columns)
    assert windows_of(engine).form == "columns"
    for event in events[20:]:
        engine.push(event)
    assert windows_of(engine).form == "rows"


STAR = "SELECT ?k (MAX(?y) AS ?m) (COUNT(DISTINCT ?y) AS ?n) {} {{ WINDOW :w {{ ?x :k ?k ; :p ?y }} }} GROUP BY ?k"


def observations(count: int) -> list[Event]:
    """An item of two triples each second, about a node of its own; every fifth states a part of it later."""
    events = []
    for n in range(1, count + 1):
        triples = [(f"<{EX}o{n}>", f"<{EX}k>", f"<{EX}k{n % 3}>"), (f"<{EX}o{n}>", f"<{EX}p>", f'"{n * n % 101}"')]
        for offset, part in enumerate((triples,) if n % 5 else ([triple] for triple in triples)):
            events.append(Event((n + offset) * SECOND, (n + offset) * SECOND, tuple(part), f"<{EX}s>"))
    return sorted(events, key=lambda e: e.end)


@pytest.mark.parametrize("window", WINDOWS)
def test_members_and_subjects_are_forgotten(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_groups, "_SPARE", 4)
    asked, events = program(STAR, window), observations(300)
    assert agree(lambda executor: Engine(asked, executor=executor), events, sizes=(9, 40, EVERYTHING)) is None
    engine = Engine(asked, executor="columns")
    for first in range(0, 300, 10):
        engine.push_all(Batch(events[first : first + 10], 0).columns)
    groups = windows_of(engine)._held
    assert isinstance(groups, window_groups.SlidingGroups)
    assert groups._subjects.count < 60


def test_an_item_that_is_stated_twice_is_one() -> None:
    two = ((f"<{EX}o>", f"<{EX}k>", '"1"'), (f"<{EX}o>", f"<{EX}p>", '"2"'))
    items = [(1, two), (1, two[:1]), (1, two), (1, two[1:]), (1, two[::-1]), (2, two), (2, two)]
    events = [Event(t * SECOND, t * SECOND, triples, f"<{EX}s>") for t, triples in items]
    asked = program(STAR, WINDOWS[0])
    assert agree(lambda executor: Engine(asked, executor=executor), events, sizes=(2, EVERYTHING)) is None
    engines = Engine(asked, executor="rows"), Engine(asked, executor="columns")
    engines[0].push_all(events)
    engines[1].push_all(Batch(events, 0).columns)
    for engine in engines:
        engine.advance(6)
    assert [engine.counters.kept().items for engine in engines] == [5, 5]
    assert [list(engine.warnings) for engine in engines] == [[], []]


def test_items_without_triples_are_in_rows() -> None:
    asked = program("SELECT (COUNT(*) AS ?n) {} {{ WINDOW :w {{ ?x :p ?y }} }}", WINDOWS[1])
    events = [Event(SECOND, SECOND, (), f"<{EX}s>"), *items(1), Event(7 * SECOND, 7 * SECOND, (), f"<{EX}s>")]
    engines = Engine(asked, executor="rows"), Engine(asked, executor="columns")
    rows, columns = ([m["n"] for m in [*engine.push_all(events), *engine.close()]] for engine in engines)
    assert rows == columns == [1, 0]
    assert windows_of(engines[1]).reason == "items have no triples"


def test_many_texts_beside_numbers_are_compared_in_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extremes, "MOST", 20)
    asked = program("SELECT (MAX(?y) AS ?m) {} {{ WINDOW :w {{ ?x :p ?y }} }}", WINDOWS[0])
    events = items(90)
    for i, event in enumerate(events):
        (s, p, _) = event.triples[0]
        events[i] = event._replace(triples=((s, p, f'"t{i}"'),)) if i % 2 else event
    assert agree(lambda executor: Engine(asked, executor=executor), events, sizes=(7, EVERYTHING)) is None
    engine = Engine(asked, executor="columns")
    engine.push_all(Batch(events, 0).columns)
    assert "texts" in str(windows_of(engine).reason)


def test_an_answer_has_a_limit() -> None:
    engine = Engine(program(QUERIES[0], WINDOWS[0]), executor="columns", limits=Limits(matches=3))
    with pytest.raises(LimitExceeded, match="6 rows at once, the limit is 3"):
        engine.push_all(Batch(items(30, keys=101), 0).columns)


@given(
    st.lists(
        st.tuples(st.integers(-(2**62), 2**62) | st.integers(-1000, 1000), st.integers(1, 2**40) | st.integers(1, 99)),
        min_size=1,
    ),
    st.integers(0, 18),
)
def test_sums_and_means_are_spelled_as_they_are_defined(numbers: list[tuple[int, int]], scale: int) -> None:
    import numpy as np

    totals, counts = (np.array(column, np.int64) for column in zip(*numbers, strict=True))
    exact = [Decimal(total).scaleb(-scale) for total, _ in numbers]
    spelled = window_groups.spelled_results(totals, counts, False, scale, DECIMAL).to_pylist()
    assert spelled == [f'"{decimal_lexical(total)}"^^<{XSD}decimal>' for total in exact]
    means = [decimal_lexical(quotient(total, Decimal(n))) for total, (_, n) in zip(exact, numbers, strict=True)]
    spelled = window_groups.spelled_results(totals, counts, True, scale, DECIMAL).to_pylist()
    assert spelled == [f'"{mean}"^^<{XSD}decimal>' for mean in means]
    whole = window_groups.spelled_results(totals, counts, False, 0, INTEGER).to_pylist()
    assert whole == [f'"{total}"^^<{XSD}integer>' for total, _ in numbers]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT ?x (GROUP_CONCAT(?y) AS ?a) {} {{ WINDOW :w {{ ?x :p ?y }} }} GROUP BY ?x", "GROUP_CONCAT"),
        ("SELECT (COUNT(DISTINCT *) AS ?a) {} {{ WINDOW :w {{ ?x :p ?y }} }}", "COUNT"),
        (
            "SELECT ?x (AVG(?y) AS ?a) {} {{ WINDOW :w {{ ?x :p ?y OPTIONAL {{ ?x :q ?z }} }} }} GROUP BY ?x",
            "more than",
        ),
        ("SELECT ?x (AVG(?y) AS ?a) {} {{ WINDOW :w {{ ?x :p ?y FILTER(RAND() < 2) }} }} GROUP BY ?x", "changes"),
        ("SELECT ?x {} {{ WINDOW :w {{ ?x :p ?y FILTER EXISTS {{ ?x :q ?z }} }} }}", "EXISTS"),
        ("SELECT ?x {} {{ WINDOW :w {{ ?x :p+ ?y }} }}", "more than triples"),
        ("SELECT ?x {} {{ WINDOW :w {{ EVENT {{ ?x :p ?y OPTIONAL {{ ?x :q ?z }} }} }} }}", "an EVENT of it"),
        ("SELECT ?x {} {{ WINDOW :w {{ {{ ?x :p ?y }} UNION {{ ?y :q ?z }} ?x :r ?u }} }}", "may be unbound"),
        ("DESCRIBE ?x {} {{ WINDOW :w {{ ?x :p ?y }} }}", "describes"),
        ("CONSTRUCT {{ :a :b :c }} {} {{ WINDOW :w {{ ?x :p ?y }} }}", "no variable"),
    ],
)
def test_what_stays_in_rows(query: str, reason: str) -> None:
    assert reason in str(reason_of(Engine(program(query, WINDOWS[0]), executor="columns")))
