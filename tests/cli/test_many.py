"""Many queries inside a server: each has the matches that it would have alone, whichever engine runs it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable
from random import Random

import pytest

from etalis_py import Engine, event
from etalis_py.cli import server_query_sets
from etalis_py.cli.server_programs import StandingQueries
from etalis_py.cli.side_by_side import ROOM
from etalis_py.containers.runners import MatchLike
from etalis_py.events import Event
from etalis_py.events.clock import render_datetime
from tests.draws import seeds
from tests.processes import PATIENCE

SECOND = 1_000_000
PREFIX = "PREFIX : <http://example.org/> "


def kind(number: int, limit: int) -> str:
    """A query of one of a hundred kinds; those of a kind differ in a limit."""
    a, b = number % 10, number // 10
    pair = f"{{ {{ ?c :p{a} ?x }} SEQ {{ ?c :p{b} ?y }} }} WITHIN PT19S"
    return f"{PREFIX}SELECT ?x ?y {{ {pair} FILTER (?y > ?x + {limit}) }}"


def queries() -> StandingQueries:
    return StandingQueries(None, "<http://example.org/s>", "unrestricted")


def add(running: StandingQueries, name: str, text: str) -> None:
    """Add a query as the server does."""
    if not running.knows(text):
        running.prepare(name, text, 4)
        deadline = time.monotonic() + PATIENCE
        while not running.is_ready(name, text) and time.monotonic() < deadline:
            time.sleep(0.001)
    running.add(name, text)


def counted(matches: Iterable[MatchLike], begins: dict[str, int]) -> Counter[tuple[str, str]]:
    """The matches that begin after their query; goals that it shares with others may reach further back."""
    own = (match for match in matches if (match.start_us or 0) >= begins[match.query])
    return Counter((match.query, str(match.to_dict())) for match in own)


@pytest.mark.parametrize("seed", seeds(3))
def test_each_query_has_the_matches_that_it_would_have_alone(seed: int) -> None:
    draw, running, alone = Random(seed), queries(), dict[str, Engine]()
    total = 0
    now, instant, reached, begins = 0, list[Event](), -1, dict[str, int]()
    for step in range(200):
        if draw.random() < 0.2:
            name, text = f"q{draw.randrange(14)}", kind(10 * draw.randrange(4) + draw.randrange(4), draw.randrange(3))
            add(running, name, text)
            alone[name] = engine = Engine(server_query_sets._text_of(name, text), render=render_datetime)
            engine.advance(reached)
            begins[name] = now * SECOND if instant else reached + 1
            for before in instant:  # a query sees all of an instant that is open
                engine.push(before)
        elif draw.random() < 0.1 and alone:
            name = draw.choice(sorted(alone))
            running.remove(name)
            del alone[name]
        if draw.random() < 0.6 or not instant:
            now, instant = now + draw.randrange(1, 4), []
            reached = now * SECOND - 1
        one = event(f":c{draw.randrange(2)} :p{draw.randrange(4)} {draw.randrange(5)}", now)
        instant.append(one)
        expected = [match for engine in alone.values() for match in engine.push(one)]
        total += len(expected)
        assert counted(running.push(one), begins) == counted(expected, begins), step
        if draw.random() < 0.1:
            instant, reached = [], now * SECOND
            expected = [match for engine in alone.values() for match in engine.advance(reached)]
            assert counted(running.idle(), begins) == counted(expected, begins), step
    assert total > 20


def test_no_engine_grows_with_the_number_of_kinds() -> None:
    """So adding one more kind always takes about as long as adding the tenth."""
    running = queries()
    for number in range(30):
        add(running, f"q{number}", kind(number, 0))
    engines = running._queries.engines.engines
    assert running.rules() > 2 * ROOM
    assert all(len(engine.rules.nodes) <= ROOM for engine in engines)
    assert len(engines) <= 2 + running.rules() // (ROOM - 4), "and they are filled"
    for number in range(30):
        running.remove(f"q{number}")
    assert not running._queries.engines.engines, "an engine without queries is dropped"


def test_queries_run_on_while_another_one_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    running, begun, go_on = queries(), threading.Event(), threading.Event()
    running.add("first", f"{PREFIX}SELECT ?x {{ ?c :p1 ?x }}")
    compile_it = server_query_sets.family_of

    def slow(*given: object) -> object:
        begun.set()
        assert go_on.wait(30)
        return compile_it(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(server_query_sets, "family_of", slow)
    new = f"{PREFIX}SELECT ?y {{ ?c :p2 ?y }}"
    running.prepare("second", new, 4)
    assert begun.wait(30)
    found = [match.query for number in (1, 2, 3) for match in running.push(event(f":c :p1 {number}", number))]
    assert found == ["first", "first"]
    assert not running.is_ready("second", new)
    go_on.set()
    deadline = time.monotonic() + PATIENCE
    while not running.is_ready("second", new):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    running.add("second", new)
    running.push(event(":c :p1 4 ; :p2 4", 4))
    assert sorted(match.query for match in running.idle()) == ["first", "second"]


def test_of_more_queries_than_are_kept_each_gets_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred clients at once none takes the place of another for ever."""
    monkeypatch.setattr(server_query_sets, "_PREPARED", 4)
    running = queries()
    waiting = {f"q{number}": kind(number, 0) for number in range(12)}
    deadline = time.monotonic() + PATIENCE
    while waiting:
        assert time.monotonic() < deadline, waiting
        for name, text in list(waiting.items()):
            if running.is_ready(name, text):
                running.add(name, waiting.pop(name))
            else:
                running.prepare(name, text, 4)
        time.sleep(0.001)
    assert running.rules() > ROOM


def test_a_query_that_is_refused_leaves_the_one_of_its_name() -> None:
    running = queries()
    running.add("q", f"{PREFIX}SELECT ?x {{ ?c :p1 ?x }}")
    wrong = f"{PREFIX}CONSTRUCT {{ ?c a :x }} {{ ?c :p1 ?x }}"
    running.prepare("q", wrong, 4)
    with pytest.raises(ValueError, match="does not take CONSTRUCT"):
        running.add("q", wrong)
    running.push(event(":c :p1 1", 1))
    assert [match.query for match in running.idle()] == ["q"]


def test_what_comes_too_late_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    running = queries()
    for number in range(12):
        add(running, f"q{number}", kind(number, 0))
    assert len(running._queries.engines.engines) > 1
    running.push(event(":c :p1 1", 5))
    running.push(event(":c :p1 1", 3))
    assert caplog.text.count("came too late") == 1
