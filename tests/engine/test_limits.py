"""Each limit of an engine stops what goes beyond it, with an error that names the limit; what is honest runs on."""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any, Literal

import pytest

from etalis_py import Engine, Event, LimitExceeded, Limits, event
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


# --- derivations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_join_is_stopped_before_it_fills_the_memory(executor: Literal["rows", "columns"]) -> None:
    """81 million pairs of pairs would take seven gigabytes."""
    began = process_time()
    posted = event(" . ".join(f":s{i} :p {i}" for i in range(9_000)), 1)
    with pytest.raises(LimitExceeded, match="more than 100000 solutions"):
        answers("SELECT * " + TRIANGLE, posted, executor=executor, limits=Limits(derivations=100_000))
    assert process_time() - began < 10


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
