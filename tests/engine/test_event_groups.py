"""EVENT: what one event says, as an operand of every operator and in every way to run a program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from etalis_compiler.diagnostics import QueryError
from etalis_compiler.explain import explain
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Event, Match, compile, event
from etalis_py.events import Retraction
from etalis_py.knowledge import load
from tests.draws import examples
from tests.engine.judge import agree, engine_for, in_rows_and_columns
from tests.engine.judge import run as run_engine
from tests.oracle import event_strategies
from tests.oracle.strategies import Case
from tests.oracle.traces import at, background, in_short, queries, run

SECOND = 1_000_000
READINGS = (at(1, "s temp 20 ; s hum 40"), at(2, "s temp 21 ; s hum 45"), at(3, "s temp 22"))
TRACES = {
    "columns": ("SELECT * { EVENT { ?s :temp ?t ; :hum ?h } }", READINGS),
    "a constant": ("SELECT * { EVENT { ?s :temp ?t ; :hum 40 } }", READINGS),
    "one variable twice": ("SELECT * { EVENT { ?s :low ?t ; :high ?t } }", (at(1, "s low 1 ; s high 1"), READINGS[0])),
    "the subject as a value": ("SELECT * { EVENT { ?s :is ?s ; :n ?n } }", (at(1, "s is s ; s n 1 ; t is s ; t n 2"),)),
    "several values": ("SELECT * { EVENT { ?s :p ?x ; :q ?y } }", (at(1, "s p 1 ; s p 2 ; s q 3 ; s q 4 ; t q 5"),)),
    "two subjects": ("SELECT * { EVENT { ?s :p ?x ; :q ?y } }", (at(1, "s p 1 ; s q 2 ; t p 3 ; t q 4 ; u p 5"),)),
    "one triple": ("SELECT * { EVENT { ?s :temp ?t } }", READINGS),
    "optional": ("SELECT * { EVENT { ?s :temp ?t OPTIONAL { ?s :hum ?h } } }", READINGS),
    "minus": ("SELECT * { EVENT { ?s :temp ?t MINUS { ?s :hum ?h } } }", READINGS),
    "not exists": ("SELECT * { EVENT { ?s :temp ?t FILTER NOT EXISTS { ?s :hum ?h } } }", READINGS),
    "union": ("SELECT * { EVENT { { ?s :temp ?t } UNION { ?s :hum ?t } FILTER (?t > 21) } }", READINGS),
    "a path": ("SELECT * { EVENT { ?s :p+ ?x } }", (at(1, "a p b ; b p c"), at(2, "c p d"))),
    "a negated path": ("SELECT * { EVENT { ?s !:p ?x } }", (at(1, "a p b ; a q b ; a r b"),)),
    "a sub-SELECT that groups": (
        "SELECT * { EVENT { ?s :q ?n { SELECT ?s (SUM(?x) AS ?sum) { ?s :p ?x } GROUP BY ?s } } }",
        (at(1, "s p 1 ; s p 2 ; s q 9 ; t p 4"), at(2, "s p 5 ; s q 8")),
    ),
    "a sub-SELECT without keys": ("SELECT * { EVENT { SELECT (COUNT(*) AS ?n) { ?s :hum ?h } } }", READINGS),
    "a sub-SELECT with a limit": (
        "SELECT * { EVENT { SELECT ?x { ?s :p ?x } ORDER BY DESC(?x) LIMIT 1 } }",
        (at(1, "s p 1 ; s p 2"), at(2, "s p 5 ; s p 3")),
    ),
    "the least of each event": (
        "SELECT * { EVENT { ?s :p ?x { SELECT (MIN(?y) AS ?x) { ?t :p ?y } } } }",
        (at(1, "s p 1 ; t p 2"), at(2, "s p 5 ; t p 3")),
    ),
    "the order of a concatenation": (
        'SELECT * { EVENT { SELECT (GROUP_CONCAT(?x; separator=",") AS ?all) { ?s :p ?x } } }',
        (at(1, "s p 3 ; s p 1 ; s p 2"),),
    ),
    "the order of a concatenation by the names of all variables": (
        "SELECT * { EVENT { SELECT (GROUP_CONCAT(?x) AS ?all) { ?x :p ?a } } }",
        (at(1, "a p a ; b p 1"),),
    ),
    "the first of a limit without an order": (
        "SELECT * { EVENT { SELECT ?x ?a { ?x :p ?a } LIMIT 1 } }",
        (at(1, "a p b ; b p a"),),
    ),
    "next": ("SELECT * { EVENT { ?s :temp ?t ; :hum ?h } NEXT EVENT { ?s :temp ?u } FILTER (?u > ?t) }", READINGS),
    "not": ("SELECT * { { { ?s :hum 40 } SEQ { ?s :temp 22 } } NOT { EVENT { ?s :temp 22 ; :hum 45 } } }", READINGS),
    "a deadline": (
        "SELECT * { EVENT { ?s :temp ?t ; :hum ?h } SEQ NOT { EVENT { ?s :temp ?u } } WITHIN 1 s }",
        (*READINGS, at(9, "s temp 23 ; s hum 41")),
    ),
    "repeat": (
        "SELECT * { EVENT { ?s :temp ?t ; :hum ?h } REPEAT 2 BY ?s WHERE (?t > PREVIOUS(?t)) AS (SUM(?h) AS ?sum) }",
        READINGS,
    ),
    "exists": ("SELECT * { ?s :temp 22 FILTER EXISTS { EVENT { ?s :temp ?t ; :hum 45 } } }", READINGS),
    "optional outside": ("SELECT * { ?s :temp ?t OPTIONAL { EVENT { ?s :temp ?t ; :hum ?h } } }", READINGS),
    "a bound": (
        "SELECT * { EVENT { ?s :temp ?t ; :hum ?h } WITHIN 1 s }",
        (*READINGS, at((2, 4), "s temp 1 ; s hum 2")),
    ),
    "a stream": (
        "SELECT * { STREAM :a { EVENT { ?s :temp ?t ; :hum ?h } } }",
        (at(1, "s temp 1 ; s hum 2", "a"), at(2, "s temp 3 ; s hum 4", "b"), at(3, "s temp 5 ; s hum 6")),
    ),
    "an aggregate": ("SELECT (AVG(?t * ?h) AS ?mean) { EVENT { ?s :temp ?t ; :hum ?h } } WITHIN 10 s", READINGS),
}


@pytest.mark.parametrize("name", TRACES)
def test_event_groups_as_defined(name: str) -> None:
    query, events = TRACES[name]
    expected = run(query, *events)
    assert expected
    assert in_rows_and_columns(query, *events) == [expected, expected]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_distinct_rows_of_one_event_are_one_whether_or_not_they_use_the_event(executor: Any) -> None:
    """The event and the background both say that something costs 5, and SPARQL's DISTINCT has 5 once."""
    text = "SELECT ?s ?x { EVENT { ?s :asks ?y { SELECT DISTINCT ?x { ?t :costs ?x } ORDER BY ?x LIMIT 2 } } }"
    known = background("a costs 5 ; b costs 7")
    asked = (at(1, "s asks 1 ; c costs 5 ; c costs 9"), at(2, "s asks 2"))
    case = Case(queries(text), asked, known)
    agree(case, executor=executor)
    engine = engine_for(case, executor=executor)
    found = [*engine.push_all(asked), *engine.close()]
    assert sorted((m.end_us, m["x"]) for m in found) == [(SECOND, 5), (SECOND, 7), (2 * SECOND, 5), (2 * SECOND, 7)]


@pytest.mark.parametrize("policy", ["recent", "chronological"])
def test_a_record_is_consumed_as_a_whole(policy: str) -> None:
    query = "SELECT * { EVENT { ?s :temp ?t ; :hum ?h } SEQ EVENT { ?s :alarm ?n } }"
    events = (*READINGS[:2], at(4, "s alarm 1"), at(5, "s alarm 2"), at(6, "s alarm 3"))
    expected = run(query, *events, policy=policy)
    assert len(expected) == 2
    assert in_rows_and_columns(query, *events, policy=policy) == [expected, expected]


def graph(name: str, text: str) -> Event:
    return at(1, text)._replace(graph=name and f"<urn:{name}>")


def test_the_graph_of_an_event_is_bound_or_chosen() -> None:
    events = at(0, "g q 0"), graph("g", "s p 1"), graph("h", "s p 1"), graph("", "s p 2")
    for query, rows in {
        "SELECT * { EVENT ?g { ?s :p ?x } }": ["g=g s=s x=1", "g=h s=s x=1"],
        "SELECT * { EVENT :h { ?s :p ?x } }": ["s=s x=1"],
        "SELECT * { EVENT ?g { ?s :p ?x FILTER (!BOUND(?g)) } }": ["g=g s=s x=1", "g=h s=s x=1"],
        "SELECT * { EVENT ?g { ?g :p ?x } }": [],
        # In the event ?g is another variable, also where the group to the left binds it.
        "SELECT * { { ?g :q ?x } NEXT EVENT ?g { ?s :p ?y FILTER EXISTS { ?g :p 1 } } }": ["g=g s=s x=0 y=1"],
    }.items():
        expected = run(query, *events)
        assert [text for text, _, _ in expected] == rows
        assert in_rows_and_columns(query, *events) == [expected, expected]


def test_what_the_schema_derives_from_an_event_is_in_it(tmp_path: Path) -> None:
    schema = tmp_path / "schema.ttl"
    schema.write_text(
        "@prefix : <urn:> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
        ":temp rdfs:subPropertyOf :value . :temp rdfs:domain :Sensor ."
    )
    program = compile("PREFIX : <urn:> SELECT ?v ?h { EVENT { ?s a :Sensor ; :value ?v ; :hum ?h } }")
    engine = Engine(program, background=load([schema], entailment="rdfs"))
    matches = [*engine.push_all(READINGS), *engine.close()]
    assert [(m["v"], m["h"]) for m in matches] == [(20, 40), (21, 45)]


REFUSED = {
    "{ ?s :p ?x } SEQ { ?s :q ?y }": "event-temporal",
    "{ ?s :p ?x } NEXT { ?s :q ?y }": "event-temporal",
    "{ ?s :p ?x } NOT { ?s :q ?y }": "event-temporal",
    "{ ?s :p ?x } EQUALS { ?s :q ?y }": "event-temporal",
    "{ ?s :p ?x } SEQ NOT { ?s :q ?y } WITHIN 1 s": "event-temporal",
    "{ ?s :p ?x } REPEAT 2": "event-temporal",
    "{ ?s :p ?x } WITHIN 1 s": "event-within",
    "STREAM :a { ?s :p ?x }": "event-stream",
    "EVENT { ?s :p ?x }": "event-event",
    "{ SELECT ?s { ?s :p ?x } WITHIN 1 s }": "event-within",
    "?s :p ?x OPTIONAL { ?s :q ?y BIND (RAND() AS ?r) }": "event-drawn",
    "{ SELECT (RAND() AS ?r) { ?s :p ?x } }": "event-drawn",
}


@pytest.mark.parametrize("group", REFUSED)
def test_what_has_no_meaning_for_one_event_is_refused_with_a_hint(group: str) -> None:
    with pytest.raises(QueryError) as caught:
        compile(f"SELECT * {{ EVENT {{ {group} }} }}")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == REFUSED[group]
    assert diagnostic.hint


def test_a_rule_whose_join_is_ordered_by_a_filter_derives_events() -> None:
    program = (
        "CONSTRUCT { ?s :low ?t ; :high ?u } WHERE { { ?s :temp ?t } SEQ { ?s :temp ?u } FILTER (?u > ?t) } "
        "SELECT ?t ?u { EVENT { ?s :low ?t ; :high ?u } }"
    )
    expected = run(program, *READINGS)
    assert [text for text, _, _ in expected] == ["t=20 u=21", "t=20 u=22", "t=21 u=22"]
    assert in_rows_and_columns(program, *READINGS) == [expected, expected]


def test_a_value_at_the_top_level_of_event_is_drawn_for_each_solution() -> None:
    query = "PREFIX : <urn:> SELECT ?t ?r { EVENT { ?s :temp ?t BIND (RAND() AS ?r) FILTER (?r < 2) } }"
    first, again = (Engine(query), Engine(query, executor="columns"))
    drawn = [[m["r"] for m in [*engine.push_all(READINGS), *engine.close()]] for engine in (first, again)]
    assert len(set(drawn[0])) == 3
    assert drawn[0] == drawn[1]


def test_event_inside_graph_is_refused() -> None:
    with pytest.raises(QueryError) as caught:
        compile("SELECT * { GRAPH :g { EVENT { ?s :p ?x } } }")
    assert [d.code for d in caught.value.diagnostics] == ["event-graph"]


def test_event_that_would_be_looked_for_backwards_is_refused_at_its_query() -> None:
    texts = [
        "SELECT * { ?s :p ?x }",
        "SELECT * { ?s :p ?x FILTER EXISTS { EVENT { ?s :q ?y OPTIONAL { ?s :r ?x } } } }",
    ]
    with pytest.raises(QueryError, match="backwards") as caught:
        compile(texts).rules()
    assert "OPTIONAL" in str(caught.value)


def test_an_answer_set_program_that_reads_events_is_refused_beside_event(tmp_path: Path) -> None:
    routes = tmp_path / "routes.lp"
    routes.write_text(
        "%! prefix : <http://example.org/>\n%! event hot(S) from S :is :hot within PT10S over slot(S)\n%! slots 4\n"
        "%! offers risk(S) as S a :AtRisk\nrisk(S) :- hot(S).\n"
    )
    with pytest.raises(ValueError, match="answer-set program"):
        Engine(compile("SELECT * { EVENT { ?s :temp ?t ; :hum ?h } }"), background=load([routes]))


def test_why_names_the_triples_of_the_record() -> None:
    engine = Engine(compile("PREFIX : <urn:> SELECT * { EVENT { ?s :temp ?t ; :hum ?h } }"), explain=True)
    (match,) = [*engine.push_all(READINGS[:1]), *engine.close()]
    why = match.why()
    assert why is not None
    assert {e.triple for e in why.events()} == set(READINGS[0].triples)


def test_a_withdrawn_column_is_no_longer_in_the_record() -> None:
    program = compile("PREFIX : <urn:> SELECT ?t ?h { EVENT { ?s :temp ?t ; :hum ?h } }")
    engine = Engine(program, revise=100 * SECOND)
    net: dict[str, Match] = {}

    def take(matches: Iterable[Match]) -> None:
        for match in matches:
            net.pop(match.id) if match.retracted else net.update({match.id: match})

    take(engine.push_all(READINGS))
    start, end, triples, stream, graph_name = READINGS[1]
    take(engine.push_all([Retraction._make((start, end, triples[1:], stream, graph_name))]))
    take(engine.push_all([at(2, "s hum 50")]))
    take(engine.push_all([at(2, "s temp 21 ; s hum 50")]))
    take(engine.close())
    assert sorted((m["t"], m["h"]) for m in net.values()) == [(20, 40), (21, 50)]


@pytest.mark.parametrize(("named", "left"), [("", []), ("g", ["h", ""]), ("h", ["g", ""]), ("k", ["g", "h", ""])])
def test_a_withdrawal_that_names_a_graph_takes_from_no_other(named: str, left: list[str]) -> None:
    """Nor from events that have none; one that names none takes from all."""
    engine = Engine("PREFIX : <urn:> SELECT ?g { EVENT ?g { ?s :p 1 } }", revise=100 * SECOND)
    plain = Engine("PREFIX : <urn:> SELECT ?s { EVENT { ?s :p 1 } }", revise=100 * SECOND)
    said = [graph(name, "s p 1") for name in ("g", "h", "")]
    kept = []
    for one in (engine, plain):
        one.push_all(said)
        one.push(Retraction._make(graph(named, "s p 1")))
        kept.append([m.bindings for m in one.close()])
    assert [row["g"] for row in kept[0]] == [f"<urn:{name}>" for name in left if name]
    assert len(kept[1]) == len(left)


FEW = settings(max_examples=examples(1 / 5))
DRAWN = st.one_of(*(make() for make in event_strategies.ALL.values()))


def accepted(case: Case, **options: Any) -> Engine | None:
    try:
        return engine_for(case, **options)
    except QueryError:
        return None


def ids(matches: Iterable[Match]) -> list[str]:
    return sorted(m.id for m in matches)


@FEW
@given(DRAWN, st.integers(0, 8))
def test_cuts_snapshots_and_single_events_change_nothing(case: Case, cut: int) -> None:
    whole = accepted(case, executor="rows")
    if whole is None:
        return
    expected = ids([*whole.push_all(case.events), *whole.close()])
    first = engine_for(case)
    before = [match for one in case.events[:cut] for match in first.push(one)]
    second = engine_for(case, executor="rows")
    second.restore(first.snapshot())
    assert ids([*before, *second.push_all(case.events[cut:]), *second.close()]) == expected


@FEW
@given(DRAWN)
def test_explanations_change_nothing(case: Case) -> None:
    plain, explained = accepted(case), accepted(case, explain=True)
    if plain is None or explained is None:
        return
    expected = ids([*plain.push_all(case.events), *plain.close()])
    assert ids([*explained.push_all(case.events), *explained.close()]) == expected


def rows_of(query: str, events: Sequence[Event]) -> Any:
    return in_short(run_engine(Case(queries(query), tuple(events)), executor="rows")["q1"])


ONE_BY_ONE = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from("stu"), st.sampled_from("pq"), st.integers(1, 3)), unique=True
)


@FEW
@given(ONE_BY_ONE)
def test_over_events_of_one_triple_event_is_the_group(cells: list[tuple[int, str, str, int]]) -> None:
    """Where no two events say the same triple."""
    events = [at(t, f"{s} {p} {o}") for t, s, p, o in sorted(cells)]
    event_, group = "EVENT { ?s :p ?x FILTER (?x > 1) }", "{ ?s :p ?x FILTER (?x > 1) }"
    for query in (
        "SELECT * {{ {0} SEQ {{ ?s :q ?y }} }}",
        "SELECT * {{ {0} NEXT {0} }}",
        "SELECT * {{ {0} REPEAT 2 BY ?s }}",
    ):
        assert rows_of(query.format(event_), events) == rows_of(query.format(group), events)


@FEW
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(1, 3)), max_size=8))
def test_over_records_with_a_subject_of_their_own_event_is_the_group(rows: list[tuple[int, int, int]]) -> None:
    events = [at(t, f"r{i} a {x} ; r{i} b {y}") for i, (t, x, y) in enumerate(sorted(rows))]
    query = "SELECT * {{ {0}{{ ?r :a ?x ; :b ?y FILTER (?x >= ?y) }} SEQ {0}{{ ?q :a ?y }} }}"
    assert rows_of(query.format("EVENT "), events) == rows_of(query.format(""), events)


def test_pushed_events_are_whole() -> None:
    engine = Engine(compile("SELECT ?t ?h { EVENT { ?s :temp ?t ; :hum ?h } }"))
    found = [m for i in range(3) for m in engine.push(event(f":s :temp {i} ; :hum {i} .", i))] + [*engine.close()]
    assert [(m["t"], m["h"]) for m in found] == [(0, 0), (1, 1), (2, 2)]


def test_every_push_closes_its_instant_where_that_is_asked_for() -> None:
    engine = Engine(compile("SELECT ?t ?h { EVENT { ?s :temp ?t ; :hum ?h } }"), eager=True)
    assert [len(engine.push(event(f":s :temp {i} ; :hum {i} .", i))) for i in range(3)] == [1, 1, 1]


def test_check_and_explain_know_that_event_reads_what_rules_derive() -> None:
    program = compile(
        "CONSTRUCT { ?s :low ?t ; :high ?u } WHERE { { { ?s :temp ?t } NEXT { ?s :temp ?u } } WITHIN 5 s }"
        "SELECT ?s ?t ?u { EVENT { ?s :low ?t ; :high ?u } }"
    )
    assert [d.code for d in program.check()] == []
    text = str(program.explain())
    assert "event({?s :low ?t . ?s :high ?u})" in text
    assert "large batches\n  run in columns" in text
    assert "q2: by ?s" in text
    assert "style=dashed" in explain(program.rules()).to_dot()
