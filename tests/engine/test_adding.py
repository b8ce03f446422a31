"""Programs that are added to an engine while it runs, and taken out of it again."""

from __future__ import annotations

import pytest

from etalis_py import Engine, event

PAIRS = "REGISTER QUERY pairs AS SELECT * WHERE { {{ ?c :p ?x } SEQ { ?c :q ?y }} SEQ { ?c :r ?z } }"
RISING = "REGISTER QUERY rising AS SELECT * WHERE { {{ ?c :p ?x } SEQ { ?c :q ?y }} SEQ { ?c :r ?z } FILTER (?x < ?z) }"
SUMS = "REGISTER QUERY sums AS SELECT ?c (SUM(?x) AS ?s) WHERE { ?c :p ?x } WITHIN 10 s GROUP BY ?c"
LONGEST = (
    "REGISTER QUERY runs AS SELECT * WHERE { { ?c :p ?x } REPEAT 2 OR MORE BY ?c WHERE (?x > PREVIOUS(?x)) LONGEST }"
)
BY_TEXT = "REGISTER QUERY texts AS SELECT * WHERE { ?c :p ?x FILTER (STR(?x) = '1') }"
DOUBLED = "REGISTER QUERY doubled AS SELECT * WHERE { ?c :p ?x FILTER (?c != :b && ?x + 1 < 3) }"
EVENTS = [
    event(":a :p 1", 1),
    event(":a :q 2", 2),
    event(":a :p 2", 3),
    event(":a :r 9", 4),
    event(":a :p 7", 5),
    event(":a :r 0", 6),
]


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize(("first", "second"), [(PAIRS, RISING), (SUMS, DOUBLED), (BY_TEXT, SUMS), (LONGEST, DOUBLED)])
def test_what_waits_goes_on_where_another_program_reads_other_values_of_it(first, second, executor, explain):
    """The goals of a shared node, and what an operator has taken in, lack the values that only the new one reads."""
    expected = ids(first, EVENTS, executor, explain)
    for cut in range(len(EVENTS) + 1):
        engine = Engine(first, executor=executor, explain=explain)
        matches = [*engine.push_all(EVENTS[:cut])]
        added = engine.add(second)
        half = cut + (len(EVENTS) - cut) // 2
        matches += engine.push_all(EVENTS[cut:half])
        engine.remove(added)
        matches += [*engine.push_all(EVENTS[half:]), *engine.close()]
        assert {m.id for m in matches if m.query in first} == expected


def ids(program, events, executor, explain):
    engine = Engine(program, executor=executor, explain=explain)
    return {m.id for m in [*engine.push_all(events), *engine.close()]}


# --- any mixture of rules and windows ------------------------------------------------------------------------------

FALLS = "REGISTER QUERY falls AS SELECT ?c WHERE { { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?x > ?y) }"
DOWN = (
    "REGISTER STREAM :t AS CONSTRUCT { ?c :fell ?y } WHERE { { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?x > ?y) }"
)
MEANS = """
REGISTER STREAM :means AS CONSTRUCT RSTREAM { ?c :mean ?x } FROM NAMED WINDOW :w ON :s [RANGE PT3S]
WHERE { WINDOW :w { ?c :price ?x } }
"""
COUNTS = """
REGISTER QUERY counts AS
SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT4S] { WINDOW :w { ?c :price ?x } }
"""
FALLEN = """
REGISTER QUERY fallen AS
SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :t [RANGE PT4S] { WINDOW :w { ?c :fell ?x } }
"""
HIGHER = "REGISTER QUERY higher AS SELECT ?c ?m ?n WHERE { { ?c :mean ?m } SEQ { ?c :mean ?n } FILTER (?n > ?m) }"
PRICES = [
    event(f":c{n % 2} :price {(n * 7) % 11}", n, stream="<http://example.org/s>")
    for n in range(1, 16)
    for _ in range(1)
]


def matches_of(engine, events):
    return [*engine.push_all(events), *engine.close()]


@pytest.mark.parametrize(
    "texts", [(FALLS, COUNTS), (COUNTS, FALLS), (DOWN, FALLEN), (FALLEN, DOWN), (HIGHER, COUNTS, FALLS)]
)
def test_what_is_added_before_the_stream_runs_as_if_compiled_together(texts):
    engine = Engine()
    for text in texts:
        engine.add(text)
    assert sorted(m.id for m in matches_of(engine, PRICES)) == sorted(
        m.id for m in matches_of(Engine(list(texts)), PRICES)
    )


@pytest.mark.parametrize("cut", [1, 4, 9])
@pytest.mark.parametrize(
    ("first", "second"), [(FALLS, COUNTS), (COUNTS, FALLS), (FALLS, FALLEN), ([DOWN, FALLEN], COUNTS)]
)
def test_neither_notices_that_the_other_comes_and_goes(first, second, cut):
    engine = Engine(first)
    matches = [*engine.push_all(PRICES[:cut])]
    added = engine.add(second)
    matches += engine.push_all(PRICES[cut : cut + 4])
    engine.remove(added)
    matches += [*engine.push_all(PRICES[cut + 4 :]), *engine.close()]
    mine = Engine(first)
    expected = [*mine.push_all(PRICES), *mine.close()]
    assert [m.id for m in matches if m.query in mine.programs["program1"].queries] == [m.id for m in expected]
    # The one that was added sees the instant that was open, and what came after it.
    other = Engine(second)
    seen = other.push_all(PRICES[cut - 1 : cut + 4])
    assert [m.id for m in matches if m.query not in mine.programs["program1"].queries] == [m.id for m in seen]


def test_a_rule_goes_on_when_a_window_begins_to_feed_it():
    """It runs after the window from then on, with the goals that it had."""
    engine = Engine(HIGHER)
    before = [event(":c0 :mean 1", 1), event(":c0 :mean 0", 2)]
    assert not engine.push_all(before)
    engine.add(MEANS)
    assert [m["n"] for m in engine.push_all([event(":c0 :mean 2", 3)]) + engine.advance(3_000_000)] == [2, 2]
    engine.push_all([event(":c0 :price 7", 4, stream="<http://example.org/s>")])
    assert [m["n"] for m in engine.close() if m.query == "higher"] == [7, 7, 7]


@pytest.mark.parametrize("texts", [(FALLS, COUNTS), (COUNTS, FALLS), (FALLEN, DOWN)])
def test_a_snapshot_after_an_addition_is_taken_up_by_an_engine_with_the_same_programs(texts):
    first, second = texts
    engine = Engine(first)
    engine.push_all(PRICES[:5])
    engine.add(second)
    engine.push_all(PRICES[5:9])
    data = engine.snapshot()
    rest = [m.id for m in matches_of(engine, PRICES[9:])]
    again = Engine(first)
    again.add(second)
    again.restore(data)
    assert [m.id for m in matches_of(again, PRICES[9:])] == rest
    assert rest


def test_a_program_that_cannot_join_leaves_the_others_as_they_were():
    engine = Engine([DOWN, FALLEN])
    matches = [*engine.push_all(PRICES[:6])]
    circle = "REGISTER STREAM :s AS CONSTRUCT RSTREAM { ?c :price ?n } FROM NAMED WINDOW :w ON :t [RANGE PT4S] "
    with pytest.raises(ValueError, match="let one of them"):
        engine.add(circle + "WHERE { WINDOW :w { ?c :fell ?n } }")
    matches += [*engine.push_all(PRICES[6:]), *engine.close()]
    assert [m.id for m in matches] == [m.id for m in matches_of(Engine([DOWN, FALLEN]), PRICES)]


def test_what_was_reported_before_another_program_came_keeps_its_name():
    """An update closes the open instant; its matches come with the next call."""
    engine = Engine(FALLS, background=[])
    engine.push_all([PRICES[0], PRICES[2], event(":c1 :price -1", 4)])
    engine.update("", [("<urn:a>", "<urn:b>", "<urn:c>")])
    added = engine.add(COUNTS)
    engine.remove(added)
    engine.remove("program1")
    assert [m.query for m in engine.push(event(":c1 :price 0", 5))] == ["falls", "falls"]


def test_an_added_query_over_the_background_alone_is_answered_at_once():
    known = [("<http://example.org/a>", "<http://example.org/p>", "<http://example.org/b>")]
    engine = Engine("SELECT * { ?c :price ?x }", background=[known])
    engine.push_all(PRICES[:2])
    engine.add("REGISTER QUERY known AS ASK { :a :p :b FILTER NOT EXISTS { :a :q :b } }")
    answers = [m.boolean for m in [*engine.push_all(PRICES[2:3]), *engine.close()] if m.query == "known"]
    assert answers == [True]
