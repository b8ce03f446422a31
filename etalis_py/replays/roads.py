"""Road graphs of the delivery replay: made up, or read from tables of nodes and edges; and the shortest way."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from random import Random

from etalis_rules.terms import XSD, literal

from etalis_py.events import Triple
from etalis_py.events.errors import StreamError
from etalis_py.replays.texts import read_text

DELIVERY = "http://example.org/delivery#"
PLACE = "http://example.org/delivery/place/"
LINK = "http://example.org/delivery/link/"
START, GOAL, METRES = f"<{DELIVERY}start>", f"<{DELIVERY}goal>", f"<{DELIVERY}metres>"


@dataclass(frozen=True, slots=True)
class Link:
    """A road in one direction."""

    id: str
    start: str
    goal: str
    metres: int

    @property
    def iri(self) -> str:
        return f"<{LINK}{self.id}>"


@dataclass(frozen=True, slots=True)
class Roads:
    """Places with their positions, and the links that leave each of them."""

    places: Mapping[str, tuple[float, float]]
    leaving: Mapping[str, tuple[Link, ...]]

    def links(self) -> Iterator[Link]:
        for links in self.leaving.values():
            yield from links

    def triples(self) -> Iterator[Triple]:
        """The graph as background knowledge: start, goal and length of every link."""
        for link in self.links():
            yield (link.iri, START, f"<{PLACE}{link.start}>")
            yield (link.iri, GOAL, f"<{PLACE}{link.goal}>")
            yield (link.iri, METRES, literal(str(link.metres), XSD + "integer"))


def shortest(roads: Roads, start: str, goal: str, closed: Collection[str] = ()) -> tuple[Link, ...] | None:
    """The shortest way without the closed links (Dijkstra); None when there is none.

    Of two ways of one length it is the one whose last links come first by their ids, so that it never changes.
    """
    best: dict[str, int] = {}
    waiting: list[tuple[int, str, str, Link | None]] = [(0, start, "", None)]
    came: dict[str, Link] = {}
    while waiting:
        metres, place, _, link = heappop(waiting)
        if place in best:
            continue
        best[place] = metres
        if link is not None:
            came[place] = link
        if place == goal:
            break
        for following in roads.leaving.get(place, ()):
            if following.goal not in best and following.id not in closed:
                heappush(waiting, (metres + following.metres, following.goal, following.id, following))
    if goal not in best:
        return None
    way: list[Link] = []
    while goal != start:
        way.append(came[goal])
        goal = came[goal].start
    return tuple(reversed(way))


def made_roads(side: int, seed: int) -> Roads:
    """A town on a grid of ``side`` × ``side`` crossings, its streets 80 to 220 metres long and open both ways."""
    if side < 2:
        raise ValueError(f"a town has 2 crossings on a side or more, found {side}")
    random = Random(f"roads {seed}")
    links: dict[str, list[Link]] = {_crossing(x, y): [] for x in range(side) for y in range(side)}
    for x in range(side):
        for y in range(side):
            for right, up in ((1, 0), (0, 1)):
                if x + right < side and y + up < side:
                    _street(links, _crossing(x, y), _crossing(x + right, y + up), random.randint(80, 220), False)
    places = {_crossing(x, y): (y / 700, x / 500) for x in range(side) for y in range(side)}
    return _roads(places, links)


def _crossing(x: int, y: int) -> str:
    return f"{x}-{y}"


def _street(links: dict[str, list[Link]], a: str, b: str, metres: int, one_way: bool) -> None:
    for start, goal in ((a, b),) if one_way else ((a, b), (b, a)):
        links[start].append(Link(f"{start}_{goal}", start, goal, metres))


def _roads(places: Mapping[str, tuple[float, float]], links: Mapping[str, list[Link]]) -> Roads:
    """The graph; of parallel links the shortest is kept."""
    leaving = {}
    for place, going in links.items():
        kept: dict[str, Link] = {}
        for link in going:
            if link.id not in kept or link.metres < kept[link.id].metres:
                kept[link.id] = link
        leaving[place] = tuple(sorted(kept.values(), key=lambda link: link.id))
    return Roads(dict(places), leaving)


def read_roads(nodes: str | Path, edges: str | Path) -> Roads:
    """A town from two CSV files: ``id,lat,lon``, and ``from,to,…,oneway,…,length_m`` as OpenStreetMap says them."""
    places: dict[str, tuple[float, float]] = {}
    for line, row in _rows(Path(nodes), ("id", "lat", "lon")):
        try:
            places[row["id"]] = (float(row["lat"]), float(row["lon"]))
        except ValueError:
            raise _bad(nodes, line, row, "the position is not a number") from None
    links: dict[str, list[Link]] = {place: [] for place in places}
    for line, row in _rows(Path(edges), ("from", "to", "oneway", "length_m")):
        if row["from"] not in places or row["to"] not in places:
            raise _bad(edges, line, row, f"a link of a place that is not in {Path(nodes).name}")
        try:
            metres = max(1, round(float(row["length_m"])))
        except ValueError:
            raise _bad(edges, line, row, "the length is not a number") from None
        if row["oneway"] == "-1":
            _street(links, row["to"], row["from"], metres, one_way=True)
        else:
            _street(links, row["from"], row["to"], metres, one_way=row["oneway"] in ("yes", "true", "1"))
    return _roads(places, links)


def _bad(path: str | Path, line: int, row: Mapping[str, str], reason: str) -> StreamError:
    return StreamError(reason, source=str(path), line=line, text=",".join(row.values()), hint="correct the row")


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(io.StringIO(read_text(path)))
    absent = [c for c in columns if c not in (reader.fieldnames or ())]
    if absent:
        raise StreamError(f"the header names no column {absent[0]}", source=str(path), line=1)
    for row in reader:
        yield reader.line_num, {c: row[c] or "" for c in columns}
