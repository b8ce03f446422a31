"""One Program and one Engine take every mixture of EP-SPARQL and windows."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any

import pytest

from etalis_py import Engine, compile, event, run
from etalis_py.events import Event
from etalis_py.kernel.batch import Batch
from etalis_py.kernel.options import EngineOptions, Options
from tests.draws import seeds

ROOT = Path(__file__).parents[2]
FALLS = "REGISTER QUERY falls AS SELECT ?c WHERE { { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?x > ?y) }"
COUNTS = """
REGISTER QUERY counts AS SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT4S] { WINDOW :w { ?c :price ?x } }
"""
STREAM = "<http://example.org/s>"
EVENTS = [event(f":c :price {9 - n % 4}", n, stream=STREAM) for n in range(1, 9)]


def test_rules_and_windows_are_one_program() -> None:
    program = compile([FALLS, COUNTS])
    assert program.queries == ("counts", "falls")
    both = [(m.query, m.end) for m in run(program, EVENTS)]
    apart = [(m.query, m.end) for text in (FALLS, COUNTS) for m in run(text, EVENTS)]
    assert sorted(both) == sorted(apart)
    assert [end for _, end in both] == sorted(end for _, end in both)


def test_texts_are_taken_where_programs_are() -> None:
    assert [m["x"] for m in run("SELECT ?x { ?c :price ?x }", EVENTS[:2])] == [8, 7]
    assert Engine([FALLS, COUNTS]).has_windows


@pytest.mark.parametrize("wrong", [42, 4.5, object(), [42]])
def test_what_is_no_program_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match="expected a program"):
        Engine(wrong)
    with pytest.raises(TypeError, match="expected a program"):
        compile(wrong)


def test_what_is_no_program_is_an_error_to_mypy(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("from etalis_py import Engine\n\nEngine(42)\nEngine('ASK {}', eager='yes')\nEngine('ASK {}')\n")
    command = [sys.executable, "-m", "mypy", str(file)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert "wrong.py:3: error" in said
    assert "wrong.py:4: error" in said
    assert "wrong.py:5" not in said


def test_every_option_is_a_keyword() -> None:
    assert {field.name for field in fields(Options)} == set(EngineOptions.__annotations__)


def test_next_due_says_when_something_may_be_reported() -> None:
    engine = Engine(COUNTS)
    assert engine.next_due() is None
    engine.push(EVENTS[0])
    assert engine.next_due() == EVENTS[0].end  # its instant is open
    engine.advance(EVENTS[0].end)
    assert engine.next_due() == 4_000_000
    assert [m["n"] for m in engine.advance(4_000_000)] == [1]
    assert engine.next_due() is None
    rules = Engine(FALLS)
    rules.push(EVENTS[0])
    assert rules.next_due() == EVENTS[0].end
    rules.close()
    assert rules.next_due() is None


def test_counters_tell_the_truth_at_any_time() -> None:
    engine = Engine(FALLS)
    engine.push_all([*EVENTS[:3], event(":a :price 1 . :b :price 2", 4, stream=STREAM)])
    assert (engine.counters.events, engine.counters.triples, engine.counters.goals) == (4, 3, 3)
    engine.push(event(":late :price 1", 2))
    assert (engine.counters.events, engine.counters.late) == (4, 1)
    engine.close()
    assert (engine.counters.triples, engine.counters.instants) == (5, 4)
    assert sum(engine.counters.per_rule.values()) == engine.counters.goals == 5


@pytest.mark.parametrize("queries", [[FALLS], [COUNTS], [FALLS, COUNTS]], ids=["rules", "windows", "both"])
def test_an_event_that_comes_twice_in_an_instant_counts_twice(queries: list[str]) -> None:
    """The stream is a set, so nothing else comes of the second one."""
    twice = event(":a :price 1 . :b :price 2", 4, stream=STREAM)
    engine, once = Engine(queries), Engine(queries)
    ids = [match.id for match in (*engine.push_all([EVENTS[0], twice, twice, EVENTS[7]]), *engine.close())]
    assert ids == [match.id for match in (*once.push_all([EVENTS[0], twice, EVENTS[7]]), *once.close())]
    assert (engine.counters.events, engine.counters.triples, engine.counters.instants) == (4, 6, 3)


@pytest.mark.parametrize("asked", [":price", ":name"])
def test_ask_answers_once_beside_what_is_reported_in_columns(asked: str) -> None:
    queries = [f"ASK {{ ?c {asked} ?x }}", "SELECT ?c ?x { ?c :price ?x }"]
    engine = Engine(queries, executor="columns")
    found = [*engine.push_all(Batch(EVENTS, EVENTS[-1].end).columns), *engine.close()]
    assert [match.boolean for match in found if match.boolean is not None] == [asked == ":price"]
    assert len(found) == 1 + len(EVENTS)


PUSHED = """
REGISTER QUERY absent AS SELECT ?c { ?c :p ?x } SEQ NOT { ?c :r ?z } WITHIN 2 s
REGISTER QUERY counted AS SELECT ?c (COUNT(?x) AS ?n) { ?c :p ?x } GROUP BY ?c
REGISTER QUERY pairs AS SELECT * { { ?c :p ?x } SEQ { ?c :q ?y } } USING POLICY chronological
"""


@pytest.mark.parametrize("seed", seeds(10))
def test_single_events_are_taken_as_batches_of_one(seed: int) -> None:
    """Simultaneous and late ones, also after time was advanced, and after the engine was restored."""
    draw, now = Random(seed), 1
    one, batches = Engine(PUSHED), Engine(PUSHED)
    advanced, restored = draw.sample(range(30), 2)
    for number in range(30):
        now += draw.choice((-1, 0, 0, 0, 1, 1, 2))
        given = event(
            f":{draw.choice('ab')} :{draw.choice('pqr')} {draw.randint(1, 3)}", (now - draw.randint(0, 1), now)
        )
        assert [m.id for m in one.push(given)] == [m.id for m in batches.push_all([given])]
        if number == advanced:
            assert [m.id for m in one.advance(given.end)] == [m.id for m in batches.advance(given.end)]
        if number == restored:
            kept, one = one.snapshot(), Engine(PUSHED)
            one.restore(kept)
    assert [m.id for m in one.close()] == [m.id for m in batches.close()]
    for name in ("events", "triples", "instants", "late", "matches"):
        assert getattr(one.counters, name) == getattr(batches.counters, name)


def test_an_event_that_ends_before_it_starts_keeps_nothing_back() -> None:
    for text in (FALLS, COUNTS):
        engine = Engine(text)
        wrong = Event(9_000_000, 3_000_000, EVENTS[0].triples, STREAM)
        with pytest.raises(ValueError, match="swap the two"):
            engine.push_all([EVENTS[0], wrong, EVENTS[3]])
        assert engine.counters.events == 2


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_columns_with_an_event_that_ends_before_it_starts_are_an_error(executor: Any) -> None:
    engine = Engine(FALLS, executor=executor)
    wrong = Event(9_000_000, 8_000_000, EVENTS[0].triples, STREAM)
    with pytest.raises(ValueError, match="swap the two"):
        engine.push_all(Batch([EVENTS[0], wrong], wrong.end).columns)
    assert engine.counters.events == 1


def test_windows_do_not_close_at_every_push() -> None:
    with pytest.raises(ValueError, match="leave eager out"):
        Engine(COUNTS, eager=True)


def test_a_program_is_lowered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from etalis_py.engine import program as module

    calls = []
    lower = module.rules_of
    monkeypatch.setattr(module, "rules_of", lambda *args: calls.append(args) or lower(*args))
    Engine(compile(textwrap.dedent(FALLS)))
    assert len(calls) == 1
