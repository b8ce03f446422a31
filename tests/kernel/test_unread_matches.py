"""Matches of instants that ``update`` closes: the next call returns them, whatever is stored and restored before it.

The net output is a function of the input, so an engine that is thrown away and restored at any point answers as one
that runs through.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from random import Random
from typing import Any

import pytest

from etalis_py import Engine, Match, Program, compile, event
from etalis_py.events import Retraction
from tests.draws import seeds

IN = "<http://example.org/in>"
PAIRS = "SELECT ?x ?y { { ?x :p ?y } SEQ { ?x :q ?z } }"
MEMBERS = "SELECT ?x ?y { ?x :p ?y . ?x :in ?g }"
PROGRAMS: dict[str, Any] = {
    "rows of one query": MEMBERS,
    "ASK": "ASK { ?x :p ?y . ?x :in ?g }",
    "CONSTRUCT and a query that reads it": [
        "CONSTRUCT { ?x :r _:n } { ?x :p ?y . ?x :in ?g }",
        "SELECT ?x { ?x :r ?n }",
    ],
    "DESCRIBE": "DESCRIBE ?x { ?x :p ?y }",
    "equal rows": "SELECT ?x { ?x :p ?y }",
    "groups": "SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y . ?x :in ?g } GROUP BY ?x",
    "a family": [f"SELECT ?x ?y {{ ?x :p ?y . ?x :in ?g FILTER(?y > {n}) }}" for n in range(5)],
    "windows": "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S] { WINDOW :w { ?x :p ?y } ?x :in ?g }",
    "windows and rules": [
        "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S] { WINDOW :w { ?x :p ?y } }",
        PAIRS,
    ],
}
OPTIONS: dict[str, dict[str, Any]] = {
    "rows": {"executor": "rows"},
    "columns": {"executor": "columns"},
    "explained": {"explain": True},
    "eager": {"eager": True},
    "lateness": {"lateness": 2_000_000},
    "horizon": {"revise": 20_000_000},
}


@cache
def compiled(program: str) -> Program:
    """The same for all engines of a test, which are made anew and anew."""
    return compile(PROGRAMS[program])


def engine_of(program: str, options: str) -> Engine:
    options_of = OPTIONS[options]
    known = [("<http://example.org/c>", IN, "<urn:g>")]  # never removed, so that the vocabulary stays
    return Engine(compiled(program), background=known, changes=True, journal=True, stream=":s", **options_of)


def steps_of(draw: Random, options: str) -> list[tuple[str, Any]]:
    """Input in order; in the horizon also corrections."""
    steps: list[tuple[str, Any]] = []
    time, there = 1, []
    for _ in range(draw.randint(3, 14)):
        time += draw.choice([0, 0, 1, 1, 3])
        subject, number = draw.choice("ab"), draw.randint(1, 4)
        kind = draw.choice(["push", "push", "push", "update", "update", "advance", "bad", "withdraw"])
        if kind == "push":
            there.append(event(f":{subject} :{draw.choice('ppq')} {number}", time))
            steps.append((kind, there[-1]))
        elif kind == "update":
            triple = f"<http://example.org/{subject}>", IN, draw.choice(["<urn:g>", "<urn:h>"])
            steps.append((kind, draw.choice([([triple], []), ([], [triple])])))
        elif kind == "advance":
            steps.append((kind, time * 1_000_000))
            time += 1
        elif kind == "bad":
            good = [event(f":{subject} :p {number}", t) for t in (time, time + 1)]
            there += good
            steps.append((kind, [*good, good[-1]._replace(start=10**12)]))
            time += 1
        elif options == "horizon" and there:
            gone = draw.choice(there)
            steps.append(("push", Retraction._make(gone)))
    return steps


def take(engine: Engine, kind: str, given: Any) -> list[Any]:
    if kind == "push":
        return seen(engine.push(given))
    if kind == "advance":
        return seen(engine.advance(given))
    if kind == "update":
        add, remove = given
        engine.update(add=add, remove=remove)
    else:
        with pytest.raises(ValueError, match="starts at"):
            engine.push_all(given)
    return []


def seen(matches: Iterable[Match]) -> list[Any]:
    return [
        (m.id, m.retracted, m.query, m.row, m.start, m.end, m.ordinal, m.triples, m.boolean, why(m)) for m in matches
    ]


def why(match: Match) -> str:
    return "" if match.shape.explain is None else str(match.why())


def differ(program: str, options: str, seed: int) -> None:
    """Compare an engine that runs through with those that take its place from its snapshots and journals."""
    draw = Random(f"{program} {options} {seed}")
    whole, part, follower = (engine_of(program, options) for _ in range(3))
    follower.restore(part.snapshot())
    expected: list[Any] = []
    found: list[Any] = []
    for kind, given in steps_of(draw, options):
        expected += take(whole, kind, given)
        found += take(part, kind, given)
        way = draw.choice(["", "snapshot", "snapshot", "same", "journal"])
        if way in ("snapshot", "same"):
            state = part.snapshot()
            part = engine_of(program, options) if way == "snapshot" else part
            part.restore(state)
            assert part.snapshot() == state or options in ("columns", "horizon")
            follower = engine_of(program, options)
            follower.restore(state)
        elif way == "journal":
            follower.apply_journal(part.take_journal())
            part, follower = follower, engine_of(program, options)
            follower.restore(part.snapshot())
            part.forget_journal()
    expected += seen(whole.close())
    found += seen(part.close())
    assert found == expected
    assert part.counters.matches == whole.counters.matches


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_an_engine_that_is_restored_anywhere_answers_as_one_that_runs_through(program: str, options: str) -> None:
    if "windows" in program and options == "eager":
        pytest.skip("windows are not evaluated eagerly")
    for seed in seeds(3):
        differ(program, options, seed)
