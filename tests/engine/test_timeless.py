"""Solutions from the background alone: neutral in time, reported once; an absence is decided at the end."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from etalis_py import Engine, QueryError, compile, event
from etalis_py.knowledge import load

EX = "http://example.org/"
COMPANIES = [(f"<{EX}{c}>", f"<{EX}is>", f"<{EX}Company>") for c in ("a", "b")]
PRICES = [event(":a :price 1", 1), event(":a :price 2", 2)]


def answers(query: str, background: list[tuple[str, str, str]] | None = None) -> list[tuple[object, ...]]:
    engine = Engine(compile(query), background=[COMPANIES if background is None else background])
    found = [*engine.push_all(PRICES), *engine.close()]
    return [
        (*(m.get(v, "").removeprefix(EX) if isinstance(m.get(v, ""), str) else m[v] for v in "cp"), m.start, m.end)
        for m in found
    ]


def test_an_optional_over_the_stream_is_missed_only_at_the_end() -> None:
    assert answers("SELECT ?c ?p { ?c :is :Company OPTIONAL { ?c :price ?p } }") == [
        ("a", 1, 1, 1),
        ("a", 2, 2, 2),
        ("b", "", None, None),
    ]


@pytest.mark.parametrize("absence", ["FILTER NOT EXISTS { ?c :price ?p }", "MINUS { ?c :price ?p }"])
def test_absence_of_events_for_a_known_thing_is_decided_at_the_end(absence: str) -> None:
    assert answers(f"SELECT ?c {{ ?c :is :Company {absence} }}") == [("b", "", None, None)]


SIDES = {
    "nothing else": "?c :is :Company OPTIONAL { ?c :price ?p } FILTER NOT EXISTS { ?c :price ?q }",
    "beside events, at any time": "{ VALUES ?c { :a } } UNION { ?c :price ?p }",
    "beside events, known at the end": "?c :is :Company OPTIONAL { ?c :price ?p }",
}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    "pattern",
    [
        "{{ {} }} SEQ NOT {{ ?c :q ?z }} WITHIN 2 SECONDS",
        "{{ ?c :q ?z }} SEQ NOT {{ {} }} SEQ {{ ?c :r ?w }}",
        "{{ {} }} REPEAT 2 BY ?c AS (COUNT(*) AS ?n)",
    ],
)
def test_a_side_of_an_absence_or_of_runs_has_a_time(side: str, pattern: str) -> None:
    with pytest.raises(QueryError, match="may come from the background alone"):
        Engine(compile(f"SELECT ?c {{ {pattern.format(SIDES[side])} }}"), background=[COMPANIES])


def test_what_is_known_at_the_end_cannot_be_joined_with_events() -> None:
    with pytest.raises(QueryError, match="background alone") as caught:
        Engine(compile("SELECT ?c { { ?c :is :Company MINUS { ?c :price ?p } } ?c :q ?z }"), background=[COMPANIES])
    assert "top level" in caught.value.diagnostics[0].hint


@pytest.mark.parametrize(
    ("word", "pattern"),
    [
        ("NOT", "{ ?c :price ?p } SEQ NOT { ?c :q ?z } SEQ { ?c :price ?y }"),
        ("NEXT", "{ ?c :price ?p } NEXT { ?c :price ?y }"),
        ("REPEAT", "{ ?c :price ?p } REPEAT 2 BY ?c"),
    ],
)
def test_what_looks_forward_only_cannot_be_missing_at_the_end(word: str, pattern: str) -> None:
    """Whether it is absent would have to be found out backwards, from the end of the stream."""
    with pytest.raises(QueryError, match=f"{word} stands in a pattern that is looked for backwards"):
        Engine(compile(f"SELECT ?c {{ ?c :is :Company OPTIONAL {{ {pattern} }} }}"), background=[COMPANIES])


def test_a_sequence_can_be_missing_at_the_end() -> None:
    query = "SELECT ?c ?p { ?c :is :Company OPTIONAL { { ?c :price ?p } SEQ { ?c :price ?y } } }"
    assert answers(query) == [("a", 1, 1, 2), ("b", "", None, None)]


def test_a_timeless_side_satisfies_every_temporal_condition() -> None:
    for operator in ("SEQ", "EQUALS", "AND"):
        query = f"SELECT ?c ?p {{ {{ ?c :is :Company }} {operator} {{ ?c :price ?p }} }}"
        assert answers(query) == [("a", 1, 1, 1), ("a", 2, 2, 2)], operator


def test_values_beside_a_stream_need_no_background() -> None:
    assert answers("SELECT ?c ?p { ?c :price ?p VALUES ?p { 2 3 } }", []) == [("a", 2, 2, 2)]


def test_a_rule_over_the_background_adds_to_it_before_the_stream_starts() -> None:
    rules = (
        "CONSTRUCT { ?c :listed true } { ?c :is :Company } ; SELECT ?c ?p { { ?c :listed true } SEQ { ?c :price ?p } }"
    )
    engine = Engine(compile(rules), background=[COMPANIES])
    found = [m for m in [*engine.push_all(PRICES), *engine.close()] if m.query == "q2"]
    assert [(m["p"], m.start, m.end) for m in found] == [(1, 1, 1), (2, 2, 2)]


def test_an_explanation_shows_the_background_triples_it_rests_on() -> None:
    engine = Engine(compile("SELECT ?c ?p { ?c :price ?p . ?c :is :Company }"), background=[COMPANIES], explain=True)
    found = [*engine.push_all(PRICES[:1]), *engine.close()]
    assert str(found[0].why()).splitlines()[-1] == "   └─ background :a :is :Company"


@pytest.mark.parametrize(
    ("modifiers", "companies"), [("LIMIT 2", ["a", "b"]), ("ORDER BY ?p OFFSET 1 LIMIT 2", ["b", "c"])]
)
def test_limit_counts_in_canonical_order_however_the_background_stands(modifiers: str, companies: list[str]) -> None:
    graph = [(f"<{EX}{c}>", f"<{EX}is>", '"1"') for c in "hcgfaedb"]
    knowledge = load([], named={f"{EX}g": [graph]}, entailment="rdf", cache=False)
    engine = Engine(compile(f"SELECT ?c ?p {{ GRAPH :g {{ ?c :is ?p }} }} {modifiers}"), background=knowledge)
    assert [m["c"].removeprefix(EX) for m in engine.close()] == companies


STAFF = ":hr :has :ann , :bob . :it :has :cid ."
JOINS = [event(":hr :has :dan", 1), event(":new :has :eve", 2), event(":hr :has :fay", 9)]


def counted(query: str, *, cut: int | None = None, executor: Literal["rows", "columns"] = "rows") -> list[Any]:
    """The rows, of an engine that goes on from a snapshot after so many events."""
    engine = Engine(query, background=STAFF, executor=executor)
    found = list(engine.push_all(JOINS[:cut]))
    if cut is not None:
        first, engine = engine, Engine(query, background=STAFF, executor=executor)
        engine.restore(first.snapshot())
        found += engine.push_all(JOINS[cut:])
    return [(*m.values(), m.start, m.end) for m in [*found, *engine.close()]]


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("cut", [None, 0, 1, 2, 3])
def test_an_aggregate_counts_what_the_background_alone_answers(
    cut: int | None, executor: Literal["rows", "columns"]
) -> None:
    rows = counted("SELECT (COUNT(*) AS ?n) { ?d :has ?x }", cut=cut, executor=executor)
    assert rows == [(4, 1, 1), (5, 1, 2), (6, 1, 9)]
    rows = counted("SELECT ?d (COUNT(*) AS ?n) { ?d :has ?x } GROUP BY ?d", cut=cut, executor=executor)
    assert rows == [(f"{EX}hr", 3, 1, 1), (f"{EX}new", 1, 2, 2), (f"{EX}hr", 4, 1, 9), (f"{EX}it", 1, None, None)]
    window = "SELECT ?d (COUNT(*) AS ?n) { ?d :has ?x } WITHIN 2 s GROUP BY ?d HAVING (COUNT(*) > 1)"
    assert counted(window, cut=cut, executor=executor) == [(f"{EX}hr", 3, 1, 1), (f"{EX}hr", 3, 9, 9)]
    last = 'SELECT (GROUP_CONCAT(STRAFTER(STR(?x), "org/")) AS ?all) { ?d :has ?x } WITHIN 1 EVENTS'
    assert counted(last, cut=cut, executor=executor) == [
        ("ann bob cid dan", 1, 1),
        ("ann bob cid eve", 2, 2),
        ("ann bob cid fay", 9, 9),
    ]


def test_an_aggregate_of_rows_that_are_written_in_the_query() -> None:
    rows = counted("SELECT (SUM(?n) AS ?sum) { { VALUES ?n { 10 20 } } UNION { ?d :has ?x BIND (1 AS ?n) } }")
    assert rows == [(34, 1, 1), (35, 1, 2), (36, 1, 9)]


def test_an_aggregate_follows_the_background() -> None:
    """An update by itself reports no row."""
    engine = Engine("SELECT ?d (GROUP_CONCAT(?x) AS ?all) { ?d :has ?x } GROUP BY ?d", background=":a :has 1, 2 .")
    found = [*engine.push(event(":a :has 5", 1))]
    engine.update(add=":a :has 3 . :b :has 4 .", remove=":a :has 1 .")
    found += [*engine.push(event(":b :has 6", 2)), *engine.push(event(":a :has 7", 3)), *engine.close()]
    assert [(m["d"], m["all"], m.start, m.end) for m in found] == [
        (f"{EX}a", "1 2 5", 1, 1),
        (f"{EX}b", "4 6", 2, 2),
        (f"{EX}a", "2 3 5 7", 1, 3),
    ]


FIRMS = {f"{EX}firms": [[(f"<{EX}{c}>", f"<{EX}is>", f"<{EX}Company>") for c in ("a", "b", "c")]]}
UNPRICED = "GRAPH :firms { ?c :is :Company } FILTER NOT EXISTS { ?c :price ?p }"


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT ?c {{ {UNPRICED} }}", ["b", "c"]),
        ("SELECT ?c { GRAPH :firms { ?c :is :Company } MINUS { ?c :price ?p } }", ["b", "c"]),
        (f"SELECT ?c {{ {UNPRICED} }} ORDER BY DESC(?c) LIMIT 1", ["c"]),
        (f"SELECT ?c {{ {UNPRICED} }} OFFSET 1", ["c"]),
        (f"SELECT ?c {{ {{ {UNPRICED} }} UNION {{ GRAPH :firms {{ ?c :is ?x }} }} }} LIMIT 3", ["a", "b", "b"]),
        (f"SELECT DISTINCT ?c {{ {{ {UNPRICED} }} UNION {{ GRAPH :firms {{ ?c :is ?x }} }} }}", ["a", "b", "c"]),
        (f"SELECT (COUNT(*) AS ?n) {{ {UNPRICED} }}", [2]),
        (f"SELECT (COUNT(?p) AS ?n) ?c {{ {UNPRICED} }} WITHIN 2 EVENTS GROUP BY ?c", ["b", "c"]),
    ],
)
def test_what_stored_graphs_lack_in_the_stream_is_known_at_its_end(
    query: str, expected: list[object], executor: Literal["rows", "columns"]
) -> None:
    engine = Engine(query, named=FIRMS, executor=executor)
    assert [*engine.push_all(PRICES)] == []
    found = engine.close()
    assert all(m.is_timeless for m in found)
    assert [m["c"].removeprefix(EX) if "c" in m else m["n"] for m in found] == expected


def test_whether_something_is_missing_is_asked_at_the_end() -> None:
    engine = Engine(f"ASK {{ {UNPRICED} }}", named=FIRMS)
    prices = [event(f":{c} :price 1", 1) for c in "abc"]
    assert [(m.boolean, m.end) for m in [*engine.push_all(prices), *engine.close()]] == [(False, None)]


@pytest.mark.parametrize("window", ["WITHIN 2 EVENTS", "WITHIN 1 s"])
def test_stored_graphs_leave_no_window(window: str) -> None:
    engine = Engine(f"SELECT (COUNT(*) AS ?n) {{ GRAPH :firms {{ ?c :is ?x }} }} {window}", named=FIRMS)
    assert [m["n"] for m in [*engine.push_all(PRICES), *engine.close()]] == [3]


@pytest.mark.parametrize("query", ["SELECT (COUNT(*) AS ?n) { ?d :left ?x }", "SELECT ?d { ?d :has ?x }"])
def test_an_explanation_of_what_has_no_time_shows_none(query: str) -> None:
    engine = Engine(query, background=STAFF, explain=True)
    for match in [*engine.push(event(":hr :hires :dan", 1)), *engine.close()]:
        why = match.why()
        assert str(why).splitlines()[0] == "q1"
        assert why.to_dict().keys() <= {"rule", "because"}
        assert "q1" in why._repr_html_()


@pytest.mark.parametrize("operator", ["OPTIONAL", "MINUS"])
@pytest.mark.parametrize(
    ("asked", "clauses"),
    [
        ("SELECT ?c (COUNT(*) AS ?n) { ?c :price ?p } GROUP BY ?c", "GROUP BY or aggregates"),
        ("SELECT ?c { ?c :price ?p } LIMIT 1", "LIMIT or OFFSET"),
    ],
)
def test_a_count_of_the_stream_beside_what_has_no_time_is_refused_in_words(
    operator: str, asked: str, clauses: str
) -> None:
    with pytest.raises(QueryError, match=f"a sub-SELECT with {clauses} over the stream") as caught:
        answers(f"SELECT * {{ ?c :is :Company {operator} {{ {{ {asked} }} }} }}")
    assert caught.value.diagnostics[0].code == "not-backwards"
    with pytest.raises(QueryError, match=f"a sub-SELECT with {clauses} over the stream"):
        compile(f"SELECT * {{ VALUES ?c {{ :a }} {operator} {{ {{ {asked} }} }} }}")


def test_a_count_inside_an_exists_that_reads_the_solution_around_it_is_refused_by_compile() -> None:
    with pytest.raises(QueryError, match="looked for backwards"):
        compile(
            "SELECT ?c { ?c :price ?p FILTER EXISTS "
            "{ { SELECT ?d (COUNT(*) AS ?n) { ?d :price ?q } GROUP BY ?d } MINUS { ?d :price ?p } } }"
        )


def test_a_count_of_the_background_may_stand_there() -> None:
    counted = "{ SELECT (COUNT(*) AS ?p) { GRAPH :g { ?x :is :Company } } }"
    assert answers(f"SELECT ?c ?p {{ ?c :is :Company OPTIONAL {{ {counted} }} }}") == [
        ("a", 0, None, None),
        ("b", 0, None, None),
    ]
