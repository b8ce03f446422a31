"""The delivery replay ([EP] §6, Test 3): agents ask for routes in a town whose roads close and open.

The reasoning is the answer-set program ``programs/delivery/routes.lp``; the queries beside it tell each agent the links
of its route, or that there is none.  Here a day of deliveries becomes events, and the matches become a table and a map.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path

from etalis_rules.terms import iri_value

from etalis_py.events.clock import Clock
from etalis_py.events.errors import StreamError
from etalis_py.replays.deliveries import AGENTS, Day, delivery_day
from etalis_py.replays.replay import Replay, ReplayMatch, Row
from etalis_py.replays.resources import program, reasoning
from etalis_py.replays.roads import LINK, Link, Roads, made_roads, read_roads

QUERIES = ("routes", "unreachable")
SIDE = 12
LOCATIONS = 20


@dataclass(slots=True)
class AgentResult:
    """What one agent was told: the links of the route of each request, and the requests without a route."""

    routes: dict[str, set[str]] = field(default_factory=dict)
    unreachable: set[str] = field(default_factory=set)


def replay_delivery(
    *, agents: int = 5, seed: int = 1, input: str | Path | Iterable[str | Path] | None = None
) -> Replay:
    """A day of deliveries in a made-up town, or in that of two CSV files of nodes and edges (or their folder)."""
    roads = made_roads(SIDE, seed) if input is None else read_roads(*_tables(input))
    day = delivery_day(roads, agents, locations=LOCATIONS, seed=seed)
    return Replay(
        name="delivery",
        programs=tuple(program(f"delivery/{name}") for name in QUERIES),
        background=(list(roads.triples()), reasoning("delivery/routes")),
        clock=Clock("datetime"),
        shown=QUERIES,
        reads=QUERIES,
        notes=(),
        make_events=lambda: iter(day.events),
        tell=lambda matches: summary(roads, day, collect(matches)),
        draw=lambda matches, path: _plot(roads, day, collect(matches), path),
    )


def _tables(input: str | Path | Iterable[str | Path]) -> tuple[Path, Path]:
    """The table of nodes and the one of edges among what is given: files, patterns or a folder."""
    sources = [input] if isinstance(input, str | Path) else list(input)
    paths: list[Path] = []
    for source in map(str, sources):
        inside = sorted(Path(source).iterdir()) if Path(source).is_dir() else [Path(p) for p in sorted(glob(source))]
        paths += inside or [Path(source)]
    tables = []
    for kind in ("nodes", "edges"):
        fitting = [path for path in paths if kind in path.name]
        if len(fitting) != 1:
            raise StreamError(
                f"{len(fitting)} files named …{kind}… among the input",
                source=", ".join(map(str, sources)),
                hint="give the two tables of one town, as town_nodes.csv and town_edges.csv",
            )
        tables += fitting
    return tables[0], tables[1]


def collect(matches: Iterable[ReplayMatch]) -> dict[str, AgentResult]:
    """The matches by agent."""
    results: dict[str, AgentResult] = {}
    for match in matches:
        b = match.bindings
        result = results.setdefault(iri_value(b["agent"]).removeprefix(AGENTS), AgentResult())
        if match.query == "routes":
            result.routes.setdefault(b["request"], set()).add(iri_value(b["link"]).removeprefix(LINK))
        else:
            result.unreachable.add(b["request"])
    return results


def route(roads: Roads, links: Iterable[str], start: str, goal: str) -> tuple[Link, ...] | None:
    """The links in the order in which they are driven; None when they are no way from start to goal."""
    chosen = frozenset(links)
    leaving = {link.start: link for link in roads.links() if link.id in chosen}
    way: list[Link] = []
    while start != goal and start in leaving:
        way.append(leaving.pop(start))
        start = way[-1].goal
    return tuple(way) if start == goal and len(way) == len(chosen) else None


def summary(roads: Roads, day: Day, results: dict[str, AgentResult]) -> list[Row]:
    """A row for each agent."""
    metres = {link.id: link.metres for link in roads.links()}
    rows = []
    for agent in sorted({answer.agent for answer in day.answers}):
        name = str(agent + 1)
        result = results.get(name, AgentResult())
        driven = sum(metres[link] for links in result.routes.values() for link in links)
        rows.append(
            {
                "agent": name,
                "requests": str(sum(answer.agent == agent for answer in day.answers)),
                "routes": str(len(result.routes)),
                "usual way closed": str(sum(a.rerouted for a in day.answers if a.agent == agent)),
                "no way": str(len(result.unreachable)),
                "kilometres": f"{driven / 1000:.1f}",
            }
        )
    return rows


def _plot(roads: Roads, day: Day, results: dict[str, AgentResult], path: Path) -> None:
    from etalis_py.replays.plot_routes import Tour, draw  # matplotlib takes a while to import

    tours = []
    for agent in sorted({answer.agent for answer in day.answers}):
        asked = [answer for answer in day.answers if answer.agent == agent]
        result = results.get(str(agent + 1), AgentResult())
        links = tuple(link for links in result.routes.values() for link in sorted(links))
        stops = tuple(dict.fromkeys(answer.goal for answer in asked))
        tours.append(Tour(str(agent + 1), asked[0].start, stops, links))
    draw(roads, tours, day.closed, path)
