"""EVENT over windows: what one item of the window says (docs/semantics.md, Events asked one by one)."""

from __future__ import annotations

from functools import cache

import pytest
from etalis_compiler.diagnostics import QueryError
from etalis_compiler.rsp.sharding import shard_keys_of
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Event, compile
from tests.draws import examples
from tests.windows.small import SECOND, evaluations, facts, item, run

READINGS = [item(1, ":s :temp 20 ; :hum 40"), item(2, ":s :temp 21 ; :hum 45"), item(3, ":s :temp 22")]
TUMBLING = "FROM NAMED WINDOW :w ON :s [RANGE PT5S TUMBLING]"


def over_window(pattern: str, shown: str = "*", more: str = "") -> str:
    return f"SELECT {shown} {TUMBLING} WHERE {{ WINDOW :w {{ {pattern} }} }} {more}"


def test_columns_of_one_item_are_not_paired_with_those_of_another() -> None:
    assert run(over_window("EVENT { ?s :temp ?t ; :hum ?h }", "?t ?h"), READINGS) == [
        "h=40 t=20 @[0, 5]",
        "h=45 t=21 @[0, 5]",
    ]


def test_an_item_leaves_with_the_window() -> None:
    query = over_window("EVENT { ?s :temp ?t ; :hum ?h }", "?t").replace("TUMBLING", "SLIDE PT1S")
    query = query.replace("PT5S", "PT2S")
    assert evaluations(query, READINGS) == [(2, ["t=20", "t=21"]), (3, ["t=21"]), (4, [])]


@pytest.mark.parametrize(
    ("query", "triples"),
    [
        (over_window("EVENT { ?s :temp ?t } EVENT { ?s :hum ?h }"), 0),
        (over_window("EVENT { ?s :temp ?t } ?s :hum ?h"), 3),
        (over_window("EVENT { ?s :temp ?t } FILTER EXISTS { ?s :hum ?h }"), 3),
        (over_window("EVENT { ?s :temp ?t }").replace("SELECT *", "DESCRIBE ?s"), 3),
    ],
)
def test_triples_are_indexed_only_if_something_besides_event_reads_them(query: str, triples: int) -> None:
    engine = Engine(query.replace("TUMBLING", "SLIDE PT1S"))
    engine.push_all([*READINGS, item(6, ":s :temp 9")])
    (held,) = engine._windows[0].in_rows().queries[0].windows.values()
    assert (held.content.size, len(held.content.counts)) == (2, triples)


def test_what_is_optional_looks_into_the_item_only() -> None:
    query = over_window("EVENT { ?s :temp ?t OPTIONAL { ?s :hum ?h } }", "?t ?h")
    assert run(query, READINGS) == ["h=40 t=20 @[0, 5]", "h=45 t=21 @[0, 5]", "t=22 @[0, 5]"]


def test_what_two_items_both_say_is_two_solutions_and_equal_items_are_one() -> None:
    query = over_window("EVENT { ?s :temp ?t }", "(COUNT(*) AS ?n)")
    assert run(query, [READINGS[0], item(2, ":s :temp 20")]) == ["n=2 @[0, 5]"]
    assert run(query, [READINGS[0], item(1, ":s :hum 40 ; :temp 20")]) == ["n=1 @[0, 5]"]


def test_the_stored_graph_is_seen_beside_the_item_but_is_no_solution_alone() -> None:
    query = over_window("EVENT { ?s a :Sensor ; :temp ?t }", "?t")
    assert run(query, READINGS[:1], background=facts(":s a :Sensor")) == ["t=20 @[0, 5]"]
    alone = over_window("EVENT { ?s a :Sensor }", "?s")
    assert run(alone, READINGS[:1], background=facts(":s a :Sensor")) == []


def test_the_time_inside_is_that_of_the_item() -> None:
    query = over_window(
        "EVENT { ?s :temp ?t FILTER (getENDTIME() > '1970-01-01T00:00:01Z'^^xsd:dateTime) "
        "BIND (SECONDS(getENDTIME()) AS ?at) }",
        "?t ?at",
    )
    assert run("PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> " + query, READINGS[:2]) == ["at=2 t=21 @[0, 5]"]


def test_the_graph_of_an_item_is_bound_or_chosen() -> None:
    items = [item(1, ":s :p 1", graph="g"), item(1, ":s :p 1", graph="h"), item(1, ":s :p 2")]
    assert run(over_window("EVENT ?g { ?s :p ?x }", "?g ?x"), items) == ["g=g x=1 @[0, 5]", "g=h x=1 @[0, 5]"]
    assert run(over_window("EVENT :h { ?s :p ?x }", "?x"), items) == ["x=1 @[0, 5]"]


def test_items_are_joined_with_items_of_other_windows_and_negated() -> None:
    both = (
        "SELECT ?t ?c FROM NAMED WINDOW :w ON :s [RANGE PT5S TUMBLING] FROM NAMED WINDOW :v ON :u [RANGE PT5S TUMBLING]"
        " WHERE { WINDOW :w { EVENT { ?s :temp ?t ; :hum 45 } } WINDOW :v { EVENT { ?s :calls ?c ; :at ?t } } }"
    )
    items = [*READINGS, item(4, ":s :calls 1 ; :at 20", "u"), item(4, ":s :calls 2 ; :at 21", "u")]
    assert run(both, items) == ["c=2 t=21 @[0, 5]"]
    without = over_window("?s :temp ?t FILTER NOT EXISTS { EVENT { ?s :temp ?t ; :hum ?h FILTER (?t < ?h) } }", "?t")
    assert run(without, READINGS) == ["t=22 @[0, 5]"]


def test_a_stream_with_a_window_of_its_own_and_the_default_graph() -> None:
    ofstream = "SELECT ?t ?h WHERE { STREAM :s [RANGE PT5S TUMBLING] { EVENT { ?s :temp ?t ; :hum ?h } } }"
    default = "SELECT ?t ?h FROM STREAM :s [RANGE PT5S TUMBLING] WHERE { EVENT { ?s :temp ?t ; :hum ?h } }"
    for query in (ofstream, default):
        assert [row.split(" @")[0] for row in run(query, READINGS)] == ["h=40 t=20", "h=45 t=21"]


def test_an_aggregate_takes_each_record_once() -> None:
    query = over_window("EVENT { ?s :temp ?t ; :hum ?h }", "?s (SUM(?t * ?h) AS ?sum)", "GROUP BY ?s")
    assert run(query, READINGS) == ["s=s sum=1745 @[0, 5]"]


def test_in_a_match_event_asks_one_item_and_has_its_time() -> None:
    query = (
        f"SELECT ?t ?u ?at {TUMBLING} WHERE {{ WINDOW :w {{ MATCH {{ EVENT {{ ?s :temp ?t ; :hum ?h }} SEQ "
        "EVENT { ?s :temp ?u BIND (SECONDS(getENDTIME()) AS ?at) } } } }"
    )
    assert run(query, READINGS) == [
        "at=2 t=20 u=21 @[0, 5]",
        "at=3 t=20 u=22 @[0, 5]",
        "at=3 t=21 u=22 @[0, 5]",
    ]


def test_consequences_of_the_schema_are_in_the_item() -> None:
    from etalis_py.events import event
    from etalis_py.knowledge import load

    schema = ":temp rdfs:subPropertyOf :value . :temp rdfs:domain :Sensor ."
    text = "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . " + schema
    knowledge = load(list(event(text, 0).triples), entailment="rdfs", cache=False)
    query = over_window("EVENT { ?s a :Sensor ; :value ?v ; :hum ?h }", "?v ?h")
    assert run(query, READINGS, background=knowledge) == ["h=40 v=20 @[0, 5]", "h=45 v=21 @[0, 5]"]


REFUSED = {
    f"SELECT * {TUMBLING} {{ EVENT {{ WINDOW :w {{ ?s :p ?x }} }} }}": "event-window",
    f"SELECT * {TUMBLING} {{ EVENT {{ GRAPH :w {{ ?s :p ?x }} }} }}": "event-window",
    f"SELECT * {TUMBLING} {{ WINDOW :w {{ EVENT {{ ?s :p ?x FILTER (timestamp(?s :p ?x) > 1) }} }} }}": (
        "event-timestamp"
    ),
    f"SELECT * {TUMBLING} {{ WINDOW :w {{ GRAPH ?g {{ EVENT {{ ?s :p ?x }} }} }} }}": "event-graph",
    f"SELECT * {TUMBLING} {{ EVENT ON :w {{ EVENT {{ ?s :p ?x }} }} AS E1 MATCH {{ E1 }} }}": "event",
    "CONSTRUCT FACT { ?u :in ?r } (UNION (SINCE { EVENT { ?u :enter ?r } }) (TILL ?u :leave ?r))": "event",
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_has_no_meaning_for_one_item_is_refused_with_a_hint(query: str) -> None:
    with pytest.raises(QueryError) as caught:
        compile(query)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == REFUSED[query]
    assert diagnostic.hint


def test_a_key_of_the_pattern_does_not_divide_items() -> None:
    program = compile(over_window("EVENT { ?s :temp ?t ; :hum ?h }", "?s (MAX(?t) AS ?m)", "GROUP BY ?s"))
    assert "EVENT may join triples of different keys" in str(shard_keys_of(program.plans[0]))


@cache
def alone(pattern: str, one: Event) -> tuple[str, ...]:
    """The pattern over a window that holds nothing but this item."""
    return tuple(row.split(" @")[0] for row in run(over_window(pattern), [one._replace(start=SECOND, end=SECOND)]))


CELLS = st.tuples(st.integers(1, 12), st.lists(st.tuples(*map(st.sampled_from, ("ab", "pq", "ab"))), min_size=1))
PATTERNS = (
    "?x :p ?y ; :q ?z",
    "?x :p ?y . ?y :q ?z",
    "?x :p ?y OPTIONAL { ?x :q ?z }",
    "?x :p ?y MINUS { ?x :q ?y }",
    "?x :p ?y FILTER NOT EXISTS { ?y :p ?x }",
    "{ ?x :p ?y } UNION { ?x :q ?y } FILTER (?x != ?y)",
    "?x (:p|:q)+ ?y",
)


@settings(max_examples=examples(1 / 2))
@given(st.sampled_from(PATTERNS), st.lists(CELLS, min_size=1, max_size=5), st.integers(1, 4))
def test_over_a_window_event_is_the_sum_over_its_items(
    pattern: str, cells: list[tuple[int, list[tuple[str, str, str]]]], width: int
) -> None:
    said = [(t, " . ".join(sorted({f":{s} :{p} :{o}" for s, p, o in row}))) for t, row in cells]
    items = [item(t, text) for t, text in sorted(set(said))]
    query = over_window(f"EVENT {{ {pattern} }}").replace("PT5S TUMBLING", f"PT{width}S SLIDE PT1S")
    heard = [(int(t), sorted(rows)) for t, rows in evaluations(query, items)]
    for t, rows in heard:
        held = [one for one in items if (t - width) * SECOND < one.end <= t * SECOND]
        assert rows == sorted(row for one in held for row in alone(pattern, one)), t
