"""Aggregates that follow the window answer what an evaluation over the whole content answers."""

from __future__ import annotations

from random import Random

import pytest
from etalis_rules.terms import XSD
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, compile
from etalis_py.events import Event
from etalis_py.executors.windows import times
from etalis_py.executors.windows.executor import Evaluation
from etalis_py.executors.windows.groups import EarlyContent, GroupedContent, Groups, incremental
from tests.draws import examples
from tests.windows.small import EX, SECOND, evaluations, run

values = st.sampled_from(
    ['"1"', '"01"', '"-3"', '"2.50"', '"2.5"', '"1e1"', '"NaN"', '"x"', f'"7"^^<{XSD}integer>', f'"07"^^<{XSD}integer>']
    + [f'"{v}"^^<{XSD}{t}>' for v, t in (("2.50", "decimal"), ("0.1", "double"), ("INF", "double"), ("5", "decimal"))]
)
items = st.builds(
    lambda t, s, v: (t, f"<{EX}{s}>", v),
    st.integers(1, 30),
    st.sampled_from("abc"),
    st.one_of(values, st.just(f"<{EX}z>")),
)
streams = st.lists(items, max_size=20).map(
    lambda found: [
        Event(t * SECOND, t * SECOND, ((s, f"<{EX}p>", v),), f"<{EX}s>")
        for t, s, v in sorted(found, key=lambda x: x[0])
    ]
)


def reading(t: int, subject: str, number: str) -> Event:
    """An integer of a subject, at a second."""
    triple = (f"<{EX}{subject}>", f"<{EX}p>", f'"{number}"^^<{XSD}integer>')
    return Event(t * SECOND, t * SECOND, (triple,), f"<{EX}s>")


dense = st.lists(st.tuples(st.integers(1, 15), st.sampled_from("ab"), st.sampled_from("123")), max_size=30).map(
    lambda found: [reading(*one) for one in sorted(found)]
)
"""So many items of so few kinds that they repeat each other."""
WINDOWS = ["[RANGE 6 SLIDE 2]", "[RANGE 5 SLIDE 5]", "[RANGE 4 SLIDE 7]", "[LANDMARK 3]", "[RANGE 4 EVENTS]", ""]
QUERIES = [
    "SELECT ?x (AVG(?y) AS ?a) {} WHERE {{ WINDOW :w {{ ?x :p ?y }} }} GROUP BY ?x",
    "SELECT (COUNT(*) AS ?n) (SUM(?y) AS ?t) (MIN(?y) AS ?l) (MAX(?y) AS ?h) {} WHERE {{ WINDOW :w {{ ?x :p ?y }} }}",
    "SELECT ?y (COUNT(DISTINCT ?x) AS ?n) {} WHERE {{ WINDOW :w {{ ?x :p ?y FILTER(isLiteral(?y)) }} }} GROUP BY ?y",
    """SELECT ?x (SUM(?z) AS ?t) {} WHERE {{ WINDOW :w {{ ?x :p ?y BIND(?y * 2 AS ?z) FILTER(?z > 2) }} }} GROUP BY ?x
        HAVING (COUNT(?z) > 1) ORDER BY DESC(?t) ?x LIMIT 2""",
    "SELECT (SAMPLE(?y) AS ?any) (COUNT(?x) AS ?n) {} WHERE {{ WINDOW :w {{ ?x ?p ?y FILTER(?p = :p) }} }}",
]


@settings(max_examples=examples(1))
@given(st.sampled_from(QUERIES), st.sampled_from(WINDOWS), streams | dense)
def test_incremental_is_whole(query: str, window: str, stream: list[Event]) -> None:
    text = query.format(f"FROM NAMED WINDOW :w ON :s {window}")
    whole = text.replace("{ WINDOW", "{ VALUES ?one { 1 } WINDOW")
    assert incremental(compile(text).plans[0], False) is not None
    assert incremental(compile(whole).plans[0], False) is None
    assert run(text, stream) == run(whole, stream)


@settings(max_examples=examples(1))
@given(
    st.sampled_from(QUERIES),
    st.sampled_from(["[RANGE 6 SLIDE 2]", "[RANGE 5 SLIDE 5]", "[RANGE 9 SLIDE 3]", "[RANGE 4 SLIDE 7]"]),
    st.sampled_from(["", "REPORT ON WINDOW CLOSE", "REPORT ON CONTENT CHANGE", "REPORT PERIODIC PT3S"]),
    dense,
    st.integers(0, 20),
)
def test_items_that_come_one_by_one(query: str, window: str, report: str, stream: list[Event], cut: int) -> None:
    """They update the groups before their window closes: answers, warnings and snapshots are those of a batch."""
    program = compile(query.format(f"FROM NAMED WINDOW :w ON :s {window} {report}"))
    together, single, restored = (Engine(program, executor="rows") for _ in range(3))
    expected = [match.id for match in (*together.push_all(stream), *together.close())]
    found = []
    for event in stream[cut:]:
        restored.push(event)  # which it forgets
    for event in stream[:cut]:
        found += [match.id for match in single.push(event)]
    restored.restore(single.snapshot())
    rest = [match.id for event in stream[cut:] for match in restored.push(event)]
    rest += [match.id for match in restored.close()]
    for event in stream[cut:]:
        found += [match.id for match in single.push(event)]
    found += [match.id for match in single.close()]
    assert found == expected
    assert found[len(found) - len(rest) :] == rest
    assert single.warnings == together.warnings
    assert single.counters.items == together.counters.items


@settings(max_examples=examples(1))
@given(st.sampled_from(QUERIES[:2]), st.integers(1, 3), dense, st.sets(st.integers(1, 15)), st.integers(1, 3))
def test_what_updates_early_is_never_seen_early(
    query: str, width: int, stream: list[Event], restored: set[int], batch: int
) -> None:
    """The content of windows of ``width`` times 3 s, asked at each closing and now and then between: one is late."""
    plan = compile(query.format("FROM NAMED WINDOW :w ON :s [RANGE 3]")).plans[0]
    followed = incremental(plan, False)
    assert followed is not None
    both = [(Groups(plan.select, followed), kind) for kind in (EarlyContent, GroupedContent)]
    contents = [kind(of) for of, kind in both]
    taken = 0
    for t in range(1, 16):
        for event in stream:
            if event.end == t * SECOND:
                taken += 1
                for content in contents:
                    content.push(event)
                    if isinstance(content, EarlyContent) and taken % batch == 0:
                        content.settle()
        if t in restored:
            for content in contents:
                content.restore(content.items(), content.waiting())
        if t % 3 == 0:
            for content in contents:
                content.move((t - 3 * width) * SECOND, t * SECOND)
        early, late = contents
        if t % 3 == 0:
            one, other = ([str(row) for row in of.rows()] for of, _ in both)
            assert sorted(one) == sorted(other)
            for content in contents:
                content.forget((t + 3 - 3 * width) * SECOND)
        seen = [(c.repeated, c.changes_in, c.remembers(), c.last_end(), len(list(c.each()))) for c in contents]
        assert seen[0] == seen[1]
        if t % 2:
            assert (early.remembered, early.items()) == (late.remembered, late.items())


def test_what_is_forgotten_while_it_waits_never_updates() -> None:
    plan = compile(QUERIES[0].format("FROM NAMED WINDOW :w ON :s [RANGE 3]")).plans[0]
    followed = incremental(plan, False)
    assert followed is not None
    groups = Groups(plan.select, followed)
    content = EarlyContent(groups)
    for t in (1, 2, 5):
        content.push(reading(t, "a", str(t)))
    content.forget(2 * SECOND)
    content.settle()
    content.move(2 * SECOND, 5 * SECOND)
    ((row, _, _),) = groups.rows()
    assert [item.end for item in content.items()] == [5 * SECOND]
    assert '"5"^^' in str(row)


EVENTS = [
    "SELECT ?x (AVG(?y) AS ?a) (COUNT(*) AS ?n) {} WHERE {{ WINDOW :w {{ EVENT {{ ?x :p ?y }} }} }} GROUP BY ?x",
    """SELECT ?y (COUNT(*) AS ?n) {} WHERE {{ WINDOW :w {{ EVENT {{ ?x :p ?y ; :q ?z FILTER(?y != ?z) }} }} }}
        GROUP BY ?y""",
    """SELECT (SUM(?y) AS ?t) (MIN(?z) AS ?l) {} WHERE {{
        WINDOW :w {{ EVENT {{ ?x :p ?y . ?u :q ?z BIND(?y + 1 AS ?v) }} FILTER(?v > 2) }} }}""",
]
records = st.lists(
    st.builds(lambda s, p, v: (f"<{EX}{s}>", f"<{EX}{p}>", v), st.sampled_from("ab"), st.sampled_from("pqr"), values),
    min_size=1,
    max_size=3,
)


@settings(max_examples=examples(1))
@given(st.sampled_from(EVENTS), st.sampled_from(WINDOWS), st.lists(st.tuples(st.integers(1, 12), records), max_size=12))
def test_events_one_by_one_are_the_whole(
    query: str, window: str, items: list[tuple[int, list[tuple[str, str, str]]]]
) -> None:
    """Some items are repeated, with their triples in another order: as events these are equal."""
    stream = [Event(t * SECOND, t * SECOND, tuple(triples), f"<{EX}s>") for t, triples in items]
    stream += [event._replace(triples=event.triples[::-1]) for event in stream[::3]]
    stream.sort(key=lambda event: event.end)
    text = query.format(f"FROM NAMED WINDOW :w ON :s {window}")
    whole = text.replace("{ WINDOW", "{ VALUES ?one { 1 } WINDOW").replace(
        "{\n        WINDOW", "{ VALUES ?one { 1 } WINDOW"
    )
    assert incremental(compile(text).plans[0], False) is not None
    assert incremental(compile(whole).plans[0], False) is None
    assert run(text, stream) == run(whole, stream)


@pytest.mark.parametrize(
    "where",
    [
        "WINDOW :w { EVENT { ?x :p ?y } EVENT { ?x :q ?z } }",
        "WINDOW :w { EVENT ?g { ?x :p ?y } }",
        "WINDOW :w { ?x :p ?y . ?x :q ?z }",
        "WINDOW :w { ?x :p ?y } ?x :q ?z",
        "WINDOW :w { ?x :p ?y FILTER EXISTS { ?x :q ?y } }",
        "WINDOW :w { ?x :p ?y FILTER(RAND() < 2) }",
        "WINDOW :w { GRAPH ?g { ?x :p ?y } }",
        "WINDOW :w { ?x :p ?y } WINDOW :v { ?x :p ?y }",
    ],
)
def test_what_needs_the_whole_content(where: str) -> None:
    text = f"""SELECT ?x (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE 5] FROM NAMED WINDOW :v ON :s [RANGE 5]
        WHERE {{ {where} }} GROUP BY ?x"""
    if ":v {" not in where:
        text = text.replace("FROM NAMED WINDOW :v ON :s [RANGE 5]", "")
    assert incremental(compile(text).plans[0], False) is None


def test_the_default_graph_holds_stored_triples_too() -> None:
    text = "SELECT (COUNT(*) AS ?n) FROM STREAM :s [RANGE 5] { ?x :p ?y }"
    (plan,) = compile(text).plans
    assert incremental(plan, False) is not None
    assert incremental(plan, True) is None
    engine = Engine(text, background=[])
    engine.push(Event(SECOND, SECOND, ((f"<{EX}a>", f"<{EX}p>", '"1"'),), f"<{EX}s>"))
    engine.update("", [(f"<{EX}b>", f"<{EX}p>", '"2"')])
    assert [m["n"] for m in engine.close()] == [2]
    with pytest.raises(ValueError, match="background="):
        Engine(text).update("", [])


counts = st.builds(
    lambda size, slide, unit: (size, slide, unit),
    st.integers(1, 5),
    st.integers(1, 5),
    st.sampled_from(["EVENTS", "TRIPLES"]),
)


@settings(max_examples=examples(2 / 3))
@given(counts, streams)
def test_count_windows_are_their_definition(count: tuple[int, int, str], stream: list[Event]) -> None:
    """At each time at which one closes; windows that do not overlap and close at once are shown one by one."""
    size, slide, unit = count
    stream = list({e.end: e for e in stream}.values())
    text = f"""SELECT ?x ?y FROM NAMED WINDOW :w ON :s [RANGE {size} {unit} SLIDE {slide} {unit}]
        WHERE {{ WINDOW :w {{ ?x :p ?y }} }}"""
    shape = compile(text).plans[0].windows[0].shape
    expected = {}
    for n, item in enumerate(stream, 1):
        if n % slide == 0:
            held = times.content(shape, stream, item.end)
            expected[item.end // SECOND] = len({t for i in held for t in i.triples})
    assert {t: len(rows) for t, rows in evaluations(text, stream)} == expected


@settings(max_examples=examples(2 / 3))
@given(st.sampled_from(["[RANGE 6 SLIDE 2]", "[RANGE 3 SLIDE 3]", "[RANGE 3 EVENTS]"]), streams)
def test_what_came_and_went_adds_up(window: str, stream: list[Event]) -> None:
    """ISTREAM and DSTREAM add up to RSTREAM, as sets."""
    text = f"SELECT {{}} ?x ?y FROM NAMED WINDOW :w ON :s {window} WHERE {{{{ WINDOW :w {{{{ ?x :p ?y }}}} }}}}"
    now: set[tuple[str, ...]] = set()
    answers = (answered(text.format(r2s), stream) for r2s in ("RSTREAM", "ISTREAM", "DSTREAM"))
    for (t, all_), (_, came), (_, went) in zip(*answers, strict=True):
        now = (now | came) - went
        assert now == all_, t


def answered(query: str, stream: list[Event]) -> list[tuple[int, set[tuple[str, ...]]]]:
    """The evaluation times and their rows, with the terms as they are spelled."""
    heard: list[Evaluation] = []
    engine = Engine(query, listen=heard.append)
    engine.push_all(stream)
    engine.close()
    return [(a.time, {m.row for m in a.matches}) for a in heard]


@settings(max_examples=examples(2 / 5))
@given(st.integers(1, 5), st.integers(-100, 100), streams)
def test_a_common_shift_of_all_times(slide: int, by: int, stream: list[Event]) -> None:
    """With t0 shifted too, everything is shifted."""
    window = f"[RANGE 5 SLIDE {slide} T0 {{}}]"
    text = f"SELECT ?x ?y FROM NAMED WINDOW :w ON :s {window} WHERE {{{{ WINDOW :w {{{{ ?x :p ?y }}}} }}}}"
    moved = [e._replace(start=e.start + by * SECOND, end=e.end + by * SECOND) for e in stream]
    shifted = [(t + by, rows) for t, rows in evaluations(text.format(0), stream)]
    assert evaluations(text.format(by), moved) == shifted


@settings(max_examples=examples(2 / 3))
@given(
    st.sampled_from(
        [
            "SELECT ?x ?y {} WHERE {{ WINDOW :w {{ ?x :p ?y }} }} LIMIT 2",
            "SELECT ?x ?y {} WHERE {{ WINDOW :w {{ ?x :p ?y }} }} ORDER BY ?x OFFSET 1",
            "SELECT ?x {} WHERE {{ {{ SELECT ?x {{ WINDOW :w {{ ?x :p ?y }} }} ORDER BY ?y LIMIT 1 }} }}",
            "SELECT (GROUP_CONCAT(?y; SEPARATOR='|') AS ?all) {} WHERE {{ WINDOW :w {{ ?x :p ?y }} }}",
            "SELECT ?x (COUNT(*) AS ?n) {} WHERE {{ WINDOW :w {{ ?x :p ?y }} }} GROUP BY ?x ORDER BY ?n LIMIT 1",
        ]
    ),
    st.sampled_from(["[RANGE 6 SLIDE 2]", "[RANGE 3 EVENTS]", "[RANGE 2 TRIPLES TUMBLING]", "[LANDMARK 0]"]),
    streams,
    st.randoms(),
)
def test_the_order_of_simultaneous_items_does_not_matter(
    query: str, window: str, stream: list[Event], any_: Random
) -> None:
    text = query.format(f"FROM NAMED WINDOW :w ON :s {window}")
    shuffled = stream[:]
    any_.shuffle(shuffled)
    shuffled.sort(key=lambda e: e.end)
    one, two = Engine(text), Engine(text)
    first = [m.id for m in [*one.push_all(stream), *one.close()]]
    cut = any_.randint(0, len(shuffled))
    second = [m.id for m in two.push_all(shuffled[:cut])]
    three = Engine(text)
    three.restore(two.snapshot())
    second += [m.id for m in [*three.push_all(shuffled[cut:]), *three.close()]]
    assert first == second


def test_events_that_say_the_same_are_counted_each() -> None:
    """So nothing is said of repeated triples, as there is where the window is asked as a set."""
    items = [Event(t * SECOND, t * SECOND, ((f"<{EX}a>", f"<{EX}p>", '"1"'),), f"<{EX}s>") for t in (1, 2, 3)]
    text = "SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE 5] WHERE {{ WINDOW :w {{ {} }} }}"
    for pattern, count, warned in (("EVENT { ?x :p ?y }", 3, 0), ("?x :p ?y", 1, 1)):
        engine = Engine(text.format(pattern))
        assert [m["n"] for m in [*engine.push_all(items), *engine.close()]] == [count]
        assert len(list(engine.warnings)) == warned
