"""The delivery agents' day: its stream, and the routes of a plain computation, found again from the stream alone."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from etalis_py.replays.deliveries import BECOMES, FROM, IS_CLOSED, TO, delivery_day
from etalis_py.replays.plot_delivery import Measurement, draw
from etalis_py.replays.roads import LINK, PLACE, Link, Roads, made_roads, read_roads, shortest
from etalis_py.streams import StreamError

REAL = Path(__file__).parents[3] / "shared" / "data" / "roads-osm"


def roads_of(*links):
    made = [Link(f"{a}_{b}", a, b, metres) for a, b, metres in links]
    places = sorted({p for link in made for p in (link.start, link.goal)})
    return Roads(dict.fromkeys(places, (0.0, 0.0)), {p: tuple(x for x in made if x.start == p) for p in places})


def ids(way):
    return None if way is None else [link.id for link in way]


def test_the_shortest_way_and_the_way_around():
    roads = roads_of(("a", "b", 1), ("b", "c", 1), ("a", "d", 2), ("d", "c", 2))
    assert ids(shortest(roads, "a", "c")) == ["a_b", "b_c"]
    assert ids(shortest(roads, "a", "c", {"b_c"})) == ["a_d", "d_c"]
    assert ids(shortest(roads, "a", "c", {"b_c", "a_d"})) is None
    assert ids(shortest(roads, "c", "a")) is None
    assert ids(shortest(roads, "a", "a")) == []


def replayed(day):
    """(request, from, to, links closed then) in order, from the events alone."""
    closed = set()
    for event in day.events:
        said = {predicate: value for _, predicate, value in event.triples}
        subject = event.triples[0][0]
        if BECOMES in said:
            link = subject[1:-1].removeprefix(LINK)
            (closed.add if said[BECOMES] == IS_CLOSED else closed.remove)(link)
        else:
            yield subject, *(said[p][1:-1].removeprefix(PLACE) for p in (FROM, TO)), frozenset(closed)


def distances(roads, goal, closed):
    """The length of the shortest open way from everywhere to the goal, by relaxing all links until nothing changes."""
    metres = {goal: 0}
    links = [link for link in roads.links() if link.id not in closed]
    changed = True
    while changed:
        changed = False
        for link in links:
            through = metres.get(link.goal)
            if through is not None and through + link.metres < metres.get(link.start, float("inf")):
                metres[link.start] = through + link.metres
                changed = True
    return metres


def test_every_answer_is_the_shortest_open_way():
    roads = made_roads(5, seed=1)
    day = delivery_day(roads, agents=4, locations=8, seed=3)
    requests = list(replayed(day))
    assert [r[0] for r in requests] == [answer.request for answer in day.answers]
    for answer, (_, start, goal, closed) in zip(day.answers, requests, strict=True):
        assert (answer.start, answer.goal) == (start, goal)
        best = distances(roads, goal, closed).get(start)
        assert (None if answer.open is None else sum(link.metres for link in answer.open)) == best
        if answer.open is not None:
            assert not {link.id for link in answer.open} & closed
            assert [answer.open[0].start, *(link.goal for link in answer.open)][-1] == goal
        assert answer.rerouted == any(link.id in closed for link in answer.usual)


def test_more_than_half_of_the_legs_meet_a_closed_link():
    day = delivery_day(made_roads(10, seed=1), agents=30, seed=1)
    assert day.legs == 30 * 19
    assert sum(answer.rerouted for answer in day.answers) > 0.5 * 30 * 19
    counted = Counter(answer.agent for answer in day.answers if answer.open is not None)
    assert set(counted.values()) == {19}


def test_a_day_is_in_order_and_the_same_for_the_same_seed():
    roads = made_roads(6, seed=1)
    day = delivery_day(roads, agents=5, seed=2)
    assert [e.end for e in day.events] == sorted(e.end for e in day.events)
    assert day == delivery_day(roads, agents=5, seed=2)
    assert day != delivery_day(roads, agents=5, seed=3)


def test_without_closings_everybody_takes_the_usual_way():
    day = delivery_day(made_roads(5, seed=1), agents=3, closed=0, seed=1)
    assert not any(answer.rerouted for answer in day.answers)
    assert len(day.events) == len(day.answers) == 3 * 19


def test_an_agent_without_a_way_asks_again():
    line = roads_of(*(link for a, b in ("ab", "bc", "cd") for link in ((a, b, 400), (b, a, 400))))
    day = delivery_day(line, agents=1, locations=4, closed=1, seed=1)
    stuck = [answer for answer in day.answers if answer.open is None]
    assert stuck
    assert day.legs == 3
    for answer in stuck:
        again = day.answers[day.answers.index(answer) + 1]
        assert (again.start, again.goal, again.time - answer.time) == (answer.start, answer.goal, 300_000_000)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"agents": 0}, "an agent and two locations"),
        ({"agents": 1, "locations": 26}, "25 places only"),
        ({"agents": 1, "closed": 2}, "from 0 to 1"),
    ],
)
def test_a_day_that_cannot_be_is_refused(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        delivery_day(made_roads(5, seed=1), **arguments)


def test_tables_of_roads(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,lat,lon\n1,48.1,15.1\n2,48.2,15.2\n3,48.3,15.3\n")
    (tmp_path / "edges.csv").write_text(
        "from,to,name,oneway,length_m\n1,2,Hauptstraße,no,99.6\n2,3,,yes,50\n3,1,,-1,70\n1,2,,no,80\n"
    )
    roads = read_roads(tmp_path / "nodes.csv", tmp_path / "edges.csv")
    assert {(link.id, link.metres) for link in roads.links()} == {("1_2", 80), ("2_1", 80), ("2_3", 50), ("1_3", 70)}
    assert (f"<{LINK}2_3>", "<http://example.org/delivery#goal>", f"<{PLACE}3>") in set(roads.triples())


@pytest.mark.parametrize(
    ("edges", "reason"),
    [
        ("from,to,oneway,length_m\n1,9,no,5\n", r"edges\.csv:2: a link of a place that is not in nodes\.csv"),
        ("from,to,oneway,length_m\n1,2,no,long\n", "the length is not a number"),
        ("from,to,oneway\n1,2,no\n", "the header names no column length_m"),
    ],
)
def test_a_table_that_is_none_is_an_error_with_file_and_line(tmp_path, edges, reason):
    (tmp_path / "nodes.csv").write_text("id,lat,lon\n1,48.1,15.1\n2,48.2,15.2\n")
    (tmp_path / "edges.csv").write_text(edges)
    with pytest.raises(StreamError) as caught:
        read_roads(tmp_path / "nodes.csv", tmp_path / "edges.csv")
    assert re.search(reason, str(caught.value))


@pytest.mark.skipif(not REAL.is_dir(), reason="needs the road graphs of ../shared/data")
def test_a_real_town():
    roads = read_roads(REAL / "krems_nodes.csv.gz", REAL / "krems_edges.csv.gz")
    assert len(roads.places) == 810
    assert all(link.goal in roads.places for link in roads.links())
    day = delivery_day(roads, agents=2, seed=1)
    assert day.legs == 38
    assert sum(answer.rerouted for answer in day.answers) > 19


def test_the_picture_of_the_costs(tmp_path):
    costs = [Measurement(n, 19 * n, 0.02 * n, 60_000_000 + 400_000 * n) for n in (1, 10, 100)]
    draw(costs, tmp_path / "costs.svg")
    drawn = (tmp_path / "costs.svg").read_text()
    assert all(f"<!-- {text} -->" in drawn for text in ("1,900 requests", "memory, MiB", "agents"))
    draw([], tmp_path / "nothing.svg")
    assert "nothing was measured" in (tmp_path / "nothing.svg").read_text()
