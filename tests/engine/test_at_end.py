"""CONSTRUCT … AT END: what a rule derives is a point, the end of the solution."""

from __future__ import annotations

import pytest

from etalis_py import Engine, QueryError, compile, event
from etalis_py.events import Event, Retraction
from tests.engine.judge import in_rows_and_columns, matches_whatever_snapshot
from tests.oracle.traces import at, run

RISE = "CONSTRUCT { ?c :up ?y } AT END WHERE { { ?c :p ?x } NEXT { ?c :p ?y FILTER (?y > ?x) } } "
HULL = RISE.replace(" AT END", "")
READ = "SELECT ?a ?b WHERE { { ?c :up ?a } NEXT { ?c :up ?b } }"
TRACE = at(1, "a p 1"), at(2, "a p 2"), at(3, "a p 3"), at(4, "a p 4")


def test_the_derived_event_is_the_end_of_the_solution() -> None:
    assert run(RISE, *TRACE) == [("a up 2", 2, 2), ("a up 3", 3, 3), ("a up 4", 4, 4)]
    assert in_rows_and_columns(RISE, *TRACE) == [[("a up 2", 2, 2), ("a up 3", 3, 3), ("a up 4", 4, 4)]] * 2


def test_neighbours_follow_one_another_only_as_points() -> None:
    """The hulls [1, 2], [2, 3], [3, 4] touch, so the next one after [1, 2] is [3, 4]."""
    rows = [("a=2 b=3", 2, 3), ("a=3 b=4", 3, 4)]
    assert run(RISE + READ, *TRACE) == rows
    assert in_rows_and_columns(RISE + READ, *TRACE) == [rows, rows]
    assert in_rows_and_columns(HULL + READ, *TRACE) == [[("a=2 b=4", 1, 4)]] * 2


def test_two_solutions_that_differ_in_their_starts_derive_one_event() -> None:
    rule = "CONSTRUCT { ?c :seen ?y } AT END WHERE { { ?c :p ?x } SEQ { ?c :q ?y } } "
    query = rule + "SELECT ?y WHERE { ?c :seen ?y }"
    events = at(1, "a p 1"), at(2, "a p 2"), at(3, "a q 7")
    assert run(query, *events) == [("y=7", 3, 3)]
    assert in_rows_and_columns(query, *events) == [[("y=7", 3, 3)]] * 2


def test_what_stands_in_where_sees_the_whole_interval() -> None:
    rule = "CONSTRUCT { ?c :lasted ?d } AT END WHERE { { ?c :p ?x } SEQ { ?c :q ?y } BIND (getDURATION() AS ?d) } "
    query = (
        rule + 'SELECT ?d WHERE { ?c :lasted ?t BIND (STR(?t) AS ?d) FILTER (getDURATION() = "PT0S"^^xsd:duration) }'
    )
    events = at(1, "a p 1"), at(3, "a q 7")
    assert in_rows_and_columns(query, *events) == [run(query, *events)] * 2 == [[("d=PT2S", 3, 3)]] * 2


AVERAGE = """CONSTRUCT {{ ?s :{0} ?a }} AT END WHERE {{
  {{ SELECT ?s (AVG(?p) AS ?a) WHERE {{ ?s :price ?p }} WITHIN {1} s GROUP BY ?s }} }} """
CROSSING = """CONSTRUCT { ?s :gap ?g } WHERE { { ?s :short ?a } EQUALS { ?s :long ?l } BIND (?a - ?l AS ?g) }
  SELECT ?g ?h WHERE { { ?s :gap ?g } NEXT { ?s :gap ?h } FILTER (?g <= 0 && ?h > 0) }"""


def test_a_crossing_of_two_averages() -> None:
    text = AVERAGE.format("short", 2) + AVERAGE.format("long", 4) + CROSSING
    events = [at(t, f"a price {p}") for t, p in enumerate((10, 8, 6, 9, 14, 15), 1)]
    assert run(text, *events) == [("g=-0.75 h=2.25", 4, 5)]
    assert in_rows_and_columns(text, *events) == [[("g=-0.75 h=2.25", 4, 5)]] * 2


def test_an_interval_of_the_input_becomes_a_point() -> None:
    query = "CONSTRUCT { ?c :done ?x } AT END WHERE { ?c :p ?x }"
    assert run(query, at((1, 5), "a p 1")) == [("a done 1", 5, 5)]
    assert in_rows_and_columns(query, at((1, 5), "a p 1")) == [[("a done 1", 5, 5)]] * 2


def test_a_snapshot_goes_on_where_it_was_taken() -> None:
    program = compile(RISE + READ)
    events = [event(f":a :p {t}", t) for t in (1, 2, 3, 4)]
    assert [m.query for m in matches_whatever_snapshot(program, events)] == ["q1", "q1", "q2", "q1", "q2"]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_correction_takes_the_point_back(executor: str) -> None:
    engine = Engine(compile(RISE + READ), revise=60_000_000, executor=executor)  # type: ignore[arg-type]
    gone = event(":a :p 2", 2)
    engine.push_all([event(":a :p 1", 1), gone, event(":a :p 3", 3), event(":a :p 4", 4)])
    matches = [*engine.push_all([Retraction(gone.start, gone.end, gone.triples, "")]), *engine.close()]
    assert {(m.retracted, m.query, m.start, m.end) for m in matches} >= {(True, "q1", 2, 2), (True, "q2", 2, 3)}


def test_many_rules_that_differ_in_constants_answer_as_each_alone() -> None:
    texts = [
        RISE.replace("?y > ?x", f"?y > ?x + {n}").replace("?c :p ?x", f"?c :p ?x FILTER (?x != {n})") for n in range(6)
    ]
    events: list[Event] = [event(f":a :p {t * t % 11}", t) for t in range(20)]
    together = Engine(compile(texts))
    found = {(m.query, m.start, m.end) for m in [*together.push_all(events), *together.close()]}
    alone = set()
    for number, text in enumerate(texts, 1):
        engine = Engine(compile(text))
        alone |= {(f"q{number}", m.start, m.end) for m in [*engine.push_all(events), *engine.close()]}
    assert found == alone
    assert all(start == end for _, start, end in found)


def test_explain_and_why_say_it() -> None:
    program = compile(RISE + READ)
    assert "[T2,T2] ← g1(X0, X1)[T1,T2]" in str(program.explain())
    engine = Engine(program, explain=True)
    matches = [*engine.push_all([event(f":a :p {t}", t) for t in (1, 2)]), *engine.close()]
    assert str(matches[0].why()).startswith("q1 [2, 2]\n└─ NEXT: right is the first that starts after left has ended")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CONSTRUCT { :x :many true } AT END WHERE { ?c :p ?x } HAVING (COUNT(*) > 1)", "has no end"),
        ("CONSTRUCT { ?c :p ?x } AT END FROM STREAM <urn:s> [RANGE PT5S] WHERE { ?c :p ?x }", "is a point already"),
        ("SELECT ?c AT END WHERE { ?c :p ?x }", "AT"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError) as refused:
        compile(text)
    assert message in str(refused.value)


@pytest.mark.parametrize("operator", ["NEXT", "SEQ NOT", "SEQ OPTIONAL"])
def test_check_tells_of_hulls_where_something_is_next_or_absent(operator: str) -> None:
    within = "" if operator == "NEXT" else "WITHIN 5 s"
    reader = f"SELECT ?a WHERE {{ {{ ?c :up ?a }} {operator} {{ ?c :up ?b }} {within} }}"
    [warning] = [w for w in compile(HULL + reader).check() if w.code == "hull"]
    assert "q1 derives events that last as long as its matches" in warning.message
    assert f"{operator} goes by starts and ends" in warning.message
    assert "AT END" in warning.hint
    assert not [w for w in compile(RISE + reader).check() if w.code == "hull"]
    point = "CONSTRUCT { ?c :up ?y } WHERE { ?c :p ?y } "
    assert not [w for w in compile(point + reader).check() if w.code == "hull"]
