"""Each limit of an engine stops what goes beyond it, with an error that names the limit; what is honest runs on."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path
from time import process_time
from typing import Any, Literal

import pytest

from etalis_py import Engine, Event, LimitExceeded, Limits, event, run
from etalis_py.knowledge import KnowledgeError, load

pytestmark = pytest.mark.usefixtures("still_heap")

PREFIX = "PREFIX : <http://example.org/> "
MANY = " . ".join(f":s{i} :p {i} ; :q :s{i + 1}" for i in range(200))
TRIANGLE = "{ ?a :p ?x . ?b :p ?y . ?c :p ?z }"
FAR = TRIANGLE[:-1] + "FILTER (%s) }"


def triples(text: str) -> list[Any]:
    return list(event(text, 0).triples)


def answers(source: str, *events: Event, **options: Any) -> int:
    engine = Engine(PREFIX + source, **options)
    return len(engine.push_all(events)) + len(engine.close())


# --- steps ---------------------------------------------------------------------------------------------------------

STEPS = {
    "timeless": "SELECT * " + TRIANGLE,
    "look-up beside an event": "SELECT * { ?e :is ?v . OPTIONAL " + FAR % "?x + ?y > ?z + 1000" + "}",
    "EXISTS": "SELECT * { ?e :is ?v FILTER EXISTS " + FAR % "?x + ?y + ?v > 5000" + "}",
    "MINUS": "SELECT * { ?e :is ?v MINUS " + FAR % "?x > ?y + ?z + 900" + "}",
    "path": "SELECT * { ?e :is ?v . ?a :q+ ?b . ?c :q+ ?d FILTER (?a = ?d) }",
    "rule before the stream": "CONSTRUCT { ?a :far ?c } { ?a :p ?x . ?b :p ?y . ?c :p ?z FILTER (?x + ?y < ?z - 900) }",
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_over_the_background(name: str) -> None:
    """10,000 steps are few for 200 triples cubed; the same pattern over a small background is answered."""
    with pytest.raises(LimitExceeded, match=r"more than 10000 steps.*Limits\(steps="):
        answers(STEPS[name], event(":e :is 1", 1), background=triples(MANY), limits=Limits(steps=10_000))
    answers(STEPS[name], event(":e :is 1", 1), background=triples(":s1 :p 1 ; :q :s2"), limits=Limits(steps=10_000))


WINDOW = "SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE PT1H STEP PT1H] WHERE { WINDOW :w %s }"


@pytest.mark.parametrize("form", ["pattern", "EXISTS"])
def test_steps_over_a_window(form: str) -> None:
    exists = "{ ?a :p ?v FILTER EXISTS { ?b :p ?y . ?c :p ?z FILTER (?y + ?v > 900) } }"
    inner = FAR % "?x + ?y < ?z - 900" if form == "pattern" else exists
    posted = event(MANY, 1, stream="<http://example.org/s>")
    with pytest.raises(LimitExceeded, match=r"more than 10000 steps"):
        answers(WINDOW % inner, posted, limits=Limits(steps=10_000))


def test_each_evaluation_has_its_own_steps() -> None:
    """A thousand look-ups of one step each are no evaluation of a thousand steps."""
    events = [event(f":e :is :s{t % 50}", t) for t in range(1_000)]
    found = answers(
        "SELECT * { ?e :is ?s . ?s :p ?x . ?s :q ?n }", *events, background=triples(MANY), limits=Limits(steps=10)
    )
    assert found == 1_000


# --- bytes ---------------------------------------------------------------------------------------------------------

DOUBLED = (
    "SELECT (STRLEN(?t9) AS ?n) { ?s :t ?t0 "
    + "".join(f"BIND(CONCAT(?t{i}, ?t{i}) AS ?t{i + 1}) " for i in range(9))
    + "}"
)


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_bytes_of_the_solutions_of_an_instant(executor: Literal["rows", "columns"]) -> None:
    """Few solutions, each with long texts."""
    texts = event(" . ".join(f':s{i} :t "{"x" * 100}{i}"' for i in range(300)), 1)
    with pytest.raises(
        LimitExceeded, match=r"300 solutions of query q1 in one instant take about \d+ bytes.*Limits\(bytes="
    ):
        answers(DOUBLED, texts, executor=executor, limits=Limits(bytes=10_000_000))
    assert answers(DOUBLED, texts, executor=executor) == 300


def test_bytes_of_goals() -> None:
    waiting = "SELECT * { ?s :t ?x } SEQ { ?s :never ?y }"
    events = [event(f':s{t} :t "{"x" * 10_000}"', t) for t in range(2_000)]
    with pytest.raises(LimitExceeded, match=r"goals take about \d+ bytes.*Limits\(bytes="):
        answers(waiting, *events, limits=Limits(bytes=10_000_000), sweep_every=100)
    assert answers(waiting, *events, limits=Limits(bytes=100_000_000), sweep_every=100) == 0


def compared(count: int) -> str:
    """A SEQ whose beginnings are compared, so that each of them is made and waits; a plain SEQ keeps only its parts."""
    whole = "{ ?a0 :t :k0 }"
    for i in range(1, count):
        whole = f"{{ {whole} SEQ {{ ?a{i} :t :k{i} }} FILTER (?a0 != ?a{i}) }}"
    return whole


CHAIN = f"SELECT * {compared(6)} WITHIN 400 s"


def in_turn(kinds: int, count: int) -> list[Event]:
    return [event(f":e{t} :t :k{t % kinds}", t) for t in range(count)]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_bytes_are_checked_within_a_batch(executor: Literal["rows", "columns"]) -> None:
    """A chain that never completes: its partial matches outgrow the limit long before the batch or a sweep is over."""
    engine = Engine(PREFIX + CHAIN, executor=executor, limits=Limits(bytes=5_000_000))
    with pytest.raises(LimitExceeded, match=r"take about (\d+) bytes, the limit is 5000000.*Limits\(bytes=") as error:
        engine.push_all(in_turn(5, 400))
    (size,) = re.findall(r"about (\d+) bytes", str(error.value))
    assert int(size) < 10_000_000


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_bytes_of_goals_and_of_new_solutions_count_together(executor: Literal["rows", "columns"]) -> None:
    """Neither the goals before the last instant nor its solutions alone are beyond the limit."""
    pairs = "SELECT * { { { ?a :p ?x } SEQ { ?b :q ?y } FILTER (?a != ?b) } SEQ { ?c :never ?z } }"
    wide = [
        event(" . ".join(f":a{i} :p {i}" for i in range(200)), 1),
        event(" . ".join(f":b{i} :q 1" for i in range(60)), 2),
    ]
    more = [event(" . ".join(f":b{i} :q 2" for i in range(60)), t) for t in range(3, 9)]
    limits = Limits(bytes=9_000_000 if executor == "rows" else 2_500_000)
    answers(pairs, *wide, executor=executor, limits=limits)
    with pytest.raises(LimitExceeded, match=r"goals (and new solutions )?take about"):
        answers(pairs, *wide, *more, executor=executor, limits=limits)


# --- goals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_goals_are_counted_as_they_come(executor: Literal["rows", "columns"]) -> None:
    waiting = "SELECT * { ?s :t ?x } SEQ { ?s :never ?y }"
    events = [event(f":s{t} :t 1", t) for t in range(20)]
    assert answers(waiting, *events[:5], executor=executor, limits=Limits(goals=5)) == 0
    with pytest.raises(LimitExceeded, match=r"[67] goals are open, the limit is 5"):
        answers(waiting, *events, executor=executor, limits=Limits(goals=5))
    engine = Engine(PREFIX + waiting, executor=executor, limits=Limits(goals=5))
    for each in events[:6]:
        engine.push(each)
    with pytest.raises(LimitExceeded, match=r"6 goals are open, the limit is 5"):
        engine.push(events[6])


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize(("limits", "said"), [
    (Limits(goals=300), r"goals are open, the limit is 300, and query <http://example.org/big> has the most; bound"),
    (Limits(bytes=40_000), r"bytes, the limit is 40000(, and query <http://example.org/big> has the most)?; bound"),
], ids=["goals", "bytes"])  # fmt: skip
def test_the_query_with_the_most_goals_is_named(
    limits: Limits, said: str, executor: Literal["rows", "columns"]
) -> None:
    """Goals and new solutions that count together, as bytes do within a batch in columns, belong to no query."""
    small = "REGISTER QUERY :small AS SELECT ?x { { { ?c :p ?x } SEQ { ?c :r ?y } } WITHIN 9 s }"
    big = "REGISTER QUERY :big AS SELECT ?x ?y { { ?c :p ?x } SEQ { ?c :q ?y } }"
    engine = Engine([small, big], limits=limits, executor=executor)
    with pytest.raises(LimitExceeded, match=said):
        engine.push_all([event(f":c{n} :p {n} .", n) for n in range(1000)])


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_goals_that_have_expired_do_not_count(executor: Literal["rows", "columns"]) -> None:
    """Of 3,000 goals, eleven or fewer are ever open."""
    waiting = "SELECT * { { ?s :t ?x } SEQ { ?s :never ?y } } WITHIN 10 s"
    events = [event(f":s{t % 7} :t 1", t) for t in range(3_000)]
    assert answers(waiting, *events, executor=executor, limits=Limits(goals=12)) == 0


# --- the matches before ----------------------------------------------------------------------------------------------

PAIRS = "SELECT ?a ?x ?b ?y { ?a :p ?x . ?b :p ?y }"
CROWD = [*(event(f":a :p {t}", t) for t in range(5)), event(" . ".join(f":a :p {i}" for i in range(99)), 9)]
WINDOWED = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT1S STEP PT1S] WHERE { WINDOW :w { ?a :p ?x } }"


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("limits", [Limits(derivations=1_000), Limits(matches=1_000)])
def test_what_earlier_instants_of_a_batch_gave_is_not_lost(
    executor: Literal["rows", "columns"], limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("etalis_py.executors.columns.piece_limits._FIRST", 1)  # in columns, of earlier pieces
    whole = [match.id for match in run(PREFIX + PAIRS, CROWD[:-1], executor=executor)]
    before = []
    with pytest.raises(LimitExceeded):
        before.extend(match.id for match in run(PREFIX + PAIRS, CROWD, executor=executor, limits=limits))
    assert before == whole
    assert len(whole) == 25
    engine = Engine(PREFIX + PAIRS, executor=executor, limits=limits)
    with pytest.raises(LimitExceeded) as error:
        engine.push_all([*CROWD, event(":a :p 1", 10)])
    assert [match.id for match in error.value.matches] == whole


def test_what_earlier_windows_gave_is_not_lost() -> None:
    events = [
        event(" . ".join(f":a :p {i}" for i in range(n)), t, stream="<http://example.org/s>")
        for t, n in ((1, 2), (2, 3), (5, 9))
    ]
    before = []
    with pytest.raises(LimitExceeded, match="9 rows at once"):
        before.extend(match.end for match in run(PREFIX + WINDOWED, events, limits=Limits(matches=5)))
    assert before == [1, 1, 2, 2, 2]


# --- derivations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_join_is_stopped_before_it_fills_the_memory(executor: Literal["rows", "columns"]) -> None:
    """81 million pairs of pairs would take seven gigabytes."""
    began = process_time()
    posted = event(" . ".join(f":s{i} :p {i}" for i in range(9_000)), 1)
    with pytest.raises(LimitExceeded, match="more than 100000 solutions"):
        answers("SELECT * " + TRIANGLE, posted, executor=executor, limits=Limits(derivations=100_000))
    assert process_time() - began < 10


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_matches_of_long_sequences_are_weighed_as_they_are_listed(executor: Literal["rows", "columns"]) -> None:
    """A batch has 11 million matches of six parts, which would take a gigabyte; arrays of Numpy count here as well."""
    steps = " SEQ ".join(f"{{ ?a{i} :p{i} ?x{i} }}" for i in range(6))
    events = [event(f":a :p{i % 6} {i}", i) for i in range(180)]
    answers(f"SELECT * {{ {steps} }}", *events[:12], executor=executor)  # loads the kernels
    tracemalloc.start()
    try:
        with pytest.raises(LimitExceeded, match="bytes"):
            answers(f"SELECT * {{ {steps} }}", *events, executor=executor, limits=Limits(bytes=40_000_000))
        assert tracemalloc.get_traced_memory()[1] < 160_000_000
    finally:
        tracemalloc.stop()


# --- answer-set programs -------------------------------------------------------------------------------------------

ENDLESS = "q(0). q(X+1) :- q(X).\n%! offers q(X:int) as <urn:a> <urn:b> X\n"


def test_grounding_that_does_not_end(tmp_path: Path) -> None:
    program = tmp_path / "endless.lp"
    program.write_text(ENDLESS)
    with pytest.raises(KnowledgeError, match=r"endless\.lp.*within 0\.4 s(.|\n)*Limits\(grounding_seconds="):
        load([program], cache=False, limits=Limits(grounding_seconds=0.4))
    with pytest.raises(KnowledgeError, match=r"within 60000000 bytes(.|\n)*Limits\(grounding_bytes="):
        load([program], cache=False, limits=Limits(grounding_bytes=60_000_000))


LIVE = """%! event at(X) from X <http://example.org/at> <http://example.org/home> over entity(X)
%! offers q(X:int) as <urn:a> <urn:b> X
q(0). q(X+1) :- q(X).
"""


def test_grounding_of_a_live_program_that_does_not_end(tmp_path: Path) -> None:
    program = tmp_path / "live.lp"
    program.write_text(LIVE)
    query = "SELECT * { ?s <urn:b> ?o }"
    for limits, message in (
        (Limits(grounding_seconds=0.2), r"within 0\.2 s"),
        (Limits(grounding_bytes=2_000_000), "within 2000000 bytes"),
    ):
        with pytest.raises(KnowledgeError, match=message):
            answers(query, event(":c :at :home", 1), background=[program], limits=limits)


# --- runs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("how", ["", "LONGEST", "MAXIMAL", "UNTIL { ?k :stop ?z }"])
def test_runs_that_multiply_where_elements_have_one_time(how: str, executor: Literal["rows", "columns"]) -> None:
    """Three elements at each of forty times make three to the fortieth runs; one at a time make few."""
    query = f"{PREFIX} SELECT ?n {{ {{ ?k :x ?v }} REPEAT 1 OR MORE BY ?k {how} AS (COUNT(*) AS ?n) }}"
    events = [event(f":k :x {3 * time + place}", time) for time in range(40) for place in range(3)]
    limits = Limits(derivations=50_000)
    with pytest.raises(LimitExceeded, match=r"more than 50000 runs of .*ties=….*Limits\(derivations="):
        list(run(query, events, executor=executor, limits=limits))
    with pytest.raises(LimitExceeded, match=r"Limits\(bytes="):
        list(run(query, events, executor=executor, limits=Limits(bytes=10_000_000)))
    ordered = list(run(query, events, executor="rows", limits=limits, ties="source"))
    assert len(ordered) == {"": 120 * 121 // 2, "LONGEST": 120, "MAXIMAL": 1}.get(how, 0)
