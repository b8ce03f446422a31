"""The delivery replay: what the answer-set program tells the agents, against plain computations over the same day."""

from __future__ import annotations

from pathlib import Path

import pytest

from etalis_py import Engine, compile
from etalis_py.events import Event
from etalis_py.replays import replay_delivery
from etalis_py.replays.deliveries import AGENT, AGENTS, BECOMES, FROM, IS_CLOSED, TO, delivery_day
from etalis_py.replays.delivery import LOCATIONS, SIDE, collect, route
from etalis_py.replays.roads import LINK, PLACE, made_roads, read_roads
from etalis_py.streams import StreamError
from tests.replays.running import run

REAL = Path(__file__).parents[3] / "shared" / "data" / "roads-osm"


def fewest(roads, start, goal, closed):
    """The number of links of an open way with the fewest; None when there is none."""
    layer, seen, steps = {start}, {start}, 0
    while layer and goal not in layer:
        layer = {x.goal for p in layer for x in roads.leaving.get(p, ()) if x.id not in closed} - seen
        seen |= layer
        steps += 1
    return steps if goal in layer else None


def check(roads, day, results):
    """Every request has its answer: as few open links as lead from start to goal, or none when there is no way."""
    closed, told = set(), 0
    closings = iter([e for e in day.events if e.triples[0][1] == BECOMES])
    waiting = next(closings, None)
    for answer in day.answers:
        while waiting is not None and waiting.end <= answer.time:
            link, _, state = waiting.triples[0]
            (closed.add if state == IS_CLOSED else closed.discard)(link[1:-1].removeprefix(LINK))
            waiting = next(closings, None)
        result = results[str(answer.agent + 1)]
        if answer.request in result.unreachable:
            assert fewest(roads, answer.start, answer.goal, closed) is None
            assert answer.request not in result.routes
        else:
            links = result.routes[answer.request]
            way = route(roads, links, answer.start, answer.goal)
            assert way is not None, f"{links} do not lead from {answer.start} to {answer.goal}"
            assert not closed & set(links)
            assert len(way) == fewest(roads, answer.start, answer.goal, closed)
        told += 1
    assert told == len(day.answers)


def test_every_agent_gets_an_open_route_or_the_news_that_there_is_none():
    replay = replay_delivery(agents=2, seed=1)
    roads = made_roads(SIDE, 1)
    day = delivery_day(roads, 2, locations=LOCATIONS, seed=1)
    matches = run(replay)
    check(roads, day, collect(matches))
    rows = replay.summary(matches)
    assert [(row["agent"], row["requests"], row["routes"], row["no way"]) for row in rows] == [
        ("1", "19", "19", "0"),
        ("2", "19", "19", "0"),
    ]


@pytest.mark.skipif(not REAL.is_dir(), reason="needs the road graphs of ../shared/data")
def test_in_a_real_town_some_places_cannot_be_reached_for_a_while():
    replay = replay_delivery(agents=2, seed=1, input=[str(REAL / "krems*")])
    roads = read_roads(REAL / "krems_nodes.csv.gz", REAL / "krems_edges.csv.gz")
    day = delivery_day(roads, 2, locations=LOCATIONS, seed=1)
    results = collect(run(replay))
    check(roads, day, results)
    assert {r for result in results.values() for r in result.unreachable} == {
        answer.request for answer in day.answers if answer.open is None
    }


def test_a_hundred_requests_at_one_instant_are_all_answered():
    roads = made_roads(5, 1)
    places = sorted(roads.places)
    closed = {link.id for link in roads.leaving[places[0]]}  # no way leads out of the first place
    asked = [(places[n % 25], places[7 * n % 25]) for n in range(100)]
    triples = [(f"<{LINK}{link}>", BECOMES, IS_CLOSED) for link in closed]
    for n, (start, goal) in enumerate(asked):
        request = f"<urn:request:{n}>"
        triples += [(request, AGENT, f"<{AGENTS}{n}>"), (request, FROM, f"<{PLACE}{start}>")]
        triples.append((request, TO, f"<{PLACE}{goal}>"))
    replay = replay_delivery(agents=1)
    engine = Engine(compile(replay.programs), background=[list(roads.triples()), *replay.background[1:]])
    results = collect([*engine.push(Event(1, 1, tuple(triples))), *engine.close()])
    for n, (start, goal) in enumerate(asked):
        told, request = results.get(str(n)), f"<urn:request:{n}>"
        links = set() if told is None else told.routes.get(request, set())
        shortest = fewest(roads, start, goal, closed)
        assert (told is not None and request in told.unreachable) == (shortest is None)
        assert not links & closed
        assert len(links) == (shortest or 0)
        assert shortest is None or route(roads, links, start, goal) is not None
    assert engine.counters.ignored == 0


def test_snapshot_and_restore_keep_the_closed_roads():
    replay = replay_delivery(agents=1, seed=2)

    def engine():
        return Engine(compile(replay.programs), background=list(replay.background), render=replay.clock.render)

    def rows(matches):
        return [(m.query, m.bindings, m.end) for m in matches]

    events = list(replay.events)
    first = engine()
    before = rows(first.push_all(events[:20]))
    second = engine()
    second.restore(first.snapshot())
    after = rows(second.push_all(events[20:])) + rows(second.close())
    whole = engine()
    assert before + after == rows(whole.push_all(events)) + rows(whole.close())


def test_the_map_of_a_day(tmp_path):
    replay = replay_delivery(agents=1, seed=1)
    replay.plot(run(replay), tmp_path / "map.svg")
    drawn = (tmp_path / "map.svg").read_text()
    assert all(
        f"<!-- {text} -->" in drawn for text in ("agent 1 and its stops", "depot of an agent", "closed for a while")
    )
    replay.plot([], tmp_path / "nothing.svg")
    assert "no route was found" in (tmp_path / "nothing.svg").read_text()


def test_input_that_is_no_town_is_an_error(tmp_path):
    with pytest.raises(StreamError, match="give the two tables of one town"):
        replay_delivery(input=str(tmp_path))
