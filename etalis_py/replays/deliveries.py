"""Delivery agents in a town whose roads close and open ([EP] §6, Test 3), and the routes they should be given.

Every agent delivers to a list of locations.  At each it asks for the route to the next one and drives it at 8 m/s.
While it drives there, in most cases a link of the usual (shortest) route after that is closed, and opens again some
minutes after the agent has asked.  An agent to whom no route is open asks again after five minutes.

The stream holds the requests, ``?request :agent ?a ; :from ?p ; :to ?q``, and the traffic updates, ``?link :becomes
:closed`` or ``:open``.  ``RouteAnswer`` is what a plain computation gives each request: what rules have to find, too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random

from etalis_rules.calendar import SECOND
from etalis_rules.terms import iri_value

from etalis_py.events import Event
from etalis_py.events.clock import parse_datetime
from etalis_py.replays.roads import DELIVERY, LINK, PLACE, Link, Roads, shortest

BEGIN = parse_datetime("2011-03-28T06:00:00Z")
METRES_PER_SECOND = 8
ASK_AGAIN = 300
CLOSED = 0.6

REQUEST = "http://example.org/delivery/request/"
AGENTS = "http://example.org/delivery/agent/"
AGENT, FROM, TO = f"<{DELIVERY}agent>", f"<{DELIVERY}from>", f"<{DELIVERY}to>"
BECOMES, IS_CLOSED, IS_OPEN = f"<{DELIVERY}becomes>", f"<{DELIVERY}closed>", f"<{DELIVERY}open>"


@dataclass(frozen=True, slots=True)
class RouteAnswer:
    """A request and its routes: the usual one, and the shortest that is open (None when there is none)."""

    request: str
    agent: int
    time: int
    start: str
    goal: str
    usual: tuple[Link, ...]
    open: tuple[Link, ...] | None

    @property
    def rerouted(self) -> bool:
        """Is a link of the usual route closed?"""
        return self.open != self.usual


@dataclass(frozen=True, slots=True)
class Day:
    """A day of deliveries: the stream in order of time, and the answer to every request."""

    events: tuple[Event, ...]
    answers: tuple[RouteAnswer, ...]

    @property
    def legs(self) -> int:
        """The ways that were driven."""
        return sum(answer.open is not None for answer in self.answers)

    @property
    def closed(self) -> frozenset[str]:
        """The links that are closed at some time of the day."""
        triples = (triple for event in self.events for triple in event.triples)
        return frozenset(iri_value(s).removeprefix(LINK) for s, p, o in triples if (p, o) == (BECOMES, IS_CLOSED))


def delivery_day(roads: Roads, agents: int, *, locations: int = 20, closed: float = CLOSED, seed: int = 1) -> Day:
    """A day of so many agents with so many locations each; ``closed`` is the share of legs that meet a closed link."""
    if agents < 1 or locations < 2:
        raise ValueError(f"there must be an agent and two locations or more, found {agents} and {locations}")
    if locations > len(roads.places):
        raise ValueError(f"there are {len(roads.places)} places only, and {locations} locations to visit")
    if not 0 <= closed <= 1:
        raise ValueError(f"the share of closed legs must be from 0 to 1, found {closed}")
    return _Simulation(roads, agents, locations, closed, Random(f"deliveries {seed}")).run()


class _Simulation:
    """What happens next is at the top of ``agenda``: (time, order, what, of whom)."""

    def __init__(self, roads: Roads, agents: int, locations: int, closed: float, random: Random) -> None:
        self.roads, self.closed, self.random = roads, closed, random
        self.agenda: list[tuple[int, int, str, int | str]] = []
        self.planned = 0
        self.closings: Counter[str] = Counter()  # a link may be closed for several reasons at a time
        self.tours = [self._tour(locations) for _ in range(agents)]
        self.reached = [0] * agents
        self.events: list[Event] = []
        self.answers: list[RouteAnswer] = []
        for agent in range(agents):
            self._plan(BEGIN + random.randrange(600) * SECOND, "ask", agent)

    def run(self) -> Day:
        while self.agenda:
            time, _, what, whom = heappop(self.agenda)
            if what == "ask":
                assert isinstance(whom, int)
                self._ask(time, whom)
            else:
                assert isinstance(whom, str)
                self._turn(time, whom, what)
        return Day(tuple(self.events), tuple(self.answers))

    def _plan(self, time: int, what: str, whom: int | str) -> None:
        self.planned += 1
        heappush(self.agenda, (time, self.planned, what, whom))

    def _tour(self, locations: int) -> list[str]:
        """Places that can be driven to one after the other while all roads are open."""
        places = sorted(self.roads.places)
        for _ in range(100):
            tour = [self.random.choice(places)]
            for _ in range(5 * locations):  # a one-way street may lead into a corner that no road leaves
                following = self.random.choice(places)
                if following not in tour and shortest(self.roads, tour[-1], following):
                    tour.append(following)
                if len(tour) == locations:
                    return tour
        raise ValueError(f"no tour of {locations} locations can be driven from {tour[0]}: is the road graph connected?")

    def _ask(self, time: int, agent: int) -> None:
        tour, at = self.tours[agent], self.reached[agent]
        start, goal = tour[at], tour[at + 1]
        usual = shortest(self.roads, start, goal)
        assert usual is not None, "tours are made of places that can be reached"
        way = shortest(self.roads, start, goal, {link for link, n in self.closings.items() if n})
        request = f"<{REQUEST}{len(self.answers) + 1}>"
        self.answers.append(RouteAnswer(request, agent, time, start, goal, usual, way))
        triples = (
            (request, AGENT, f"<{AGENTS}{agent + 1}>"),
            (request, FROM, f"<{PLACE}{start}>"),
            (request, TO, f"<{PLACE}{goal}>"),
        )
        self.events.append(Event(time, time, triples))
        if way is None:
            self._plan(time + ASK_AGAIN * SECOND, "ask", agent)
            return
        seconds = max(2, sum(link.metres for link in way) // METRES_PER_SECOND)
        self.reached[agent] += 1
        if self.reached[agent] + 1 == len(tour):
            return
        arrival = time + seconds * SECOND
        self._plan(arrival, "ask", agent)
        if self.random.random() < self.closed:
            after = shortest(self.roads, goal, tour[at + 2])
            assert after, "tours are made of different places that can be reached"
            link = self.random.choice(after).id
            self._plan(time + self.random.randint(1, seconds - 1) * SECOND, "close", link)
            self._plan(arrival + self.random.randint(60, 900) * SECOND, "open", link)

    def _turn(self, time: int, link: str, what: str) -> None:
        """Close or open a link; an update tells only what changes."""
        before = self.closings[link] > 0
        self.closings[link] += 1 if what == "close" else -1
        now = self.closings[link] > 0
        if before != now:
            iri = f"<{LINK}{link}>"
            self.events.append(Event(time, time, ((iri, BECOMES, IS_CLOSED if now else IS_OPEN),)))
