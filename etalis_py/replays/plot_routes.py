"""The picture of a delivery day: a map with the depots, the closed roads, and the ways that agents drove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import cos, hypot, radians
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from etalis_py.replays.figures import BLUE, GREEN, GREY, ORANGE, RED, empty, new_figure, save
from etalis_py.replays.roads import Link, Roads

AGENT_COLOURS = (BLUE, ORANGE, GREEN, "#cc79a7", "#56b4e9", "#000000")
ROAD = "#e3e3e3"
ASIDE = 0.03  # of the usual length of a link: how far beside one another the ways of agents are drawn


@dataclass(frozen=True, slots=True)
class Tour:
    """What one agent did: where it began, where it delivered, and the links of its routes."""

    agent: str
    depot: str
    stops: tuple[str, ...]
    links: tuple[str, ...]


def draw(roads: Roads, tours: Sequence[Tour], closed: Collection[str], path: Path) -> None:
    """``closed`` are the links that were closed at some time of the day."""
    figure = new_figure(9, 7.4, "Deliveries: the ways that were driven")
    axes = figure.subplots()
    if not any(tour.links for tour in tours):
        empty(axes, "no route was found")
        save(figure, path)
        return
    links = {link.id: link for link in roads.links()}
    lines = [_line(roads, link) for link in links.values()]
    axes.add_collection(LineCollection(lines, colors=ROAD, linewidths=10, capstyle="round", zorder=1))
    if len(tours) <= len(AGENT_COLOURS):
        marks = _ways(axes, roads, links, tours)
    else:
        marks = _traffic(figure, axes, roads, links, tours)
    middles = [_middle(_line(roads, links[name])) for name in sorted(closed)]
    axes.plot(*_columns(middles), "x", color=RED, markersize=8, markeredgewidth=2.2, zorder=4)
    marks.append(
        Line2D([], [], color=RED, marker="x", markeredgewidth=2.2, linestyle="none", label="closed for a while")
    )
    axes.margins(0.02)
    axes.autoscale()
    latitude = sum(place[0] for place in roads.places.values()) / len(roads.places)
    axes.set_aspect(1 / cos(radians(latitude)))
    _scale(axes, latitude, min(place[1] for place in roads.places.values()))
    axes.set_axis_off()
    figure.legend(handles=marks, loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    save(figure, path)


def _ways(axes: Axes, roads: Roads, links: Mapping[str, Link], tours: Sequence[Tour]) -> list[Line2D]:
    """The way of each agent in a colour of its own, one beside the other."""
    lengths = sorted(_length(_line(roads, link)) for link in links.values())
    step = ASIDE * lengths[len(lengths) // 2]
    marks = []
    for number, (tour, colour) in enumerate(zip(tours, AGENT_COLOURS, strict=False)):
        aside = step * (number - (len(tours) - 1) / 2)
        ways = [_beside(_line(roads, links[name]), aside) for name in dict.fromkeys(tour.links)]
        axes.add_collection(LineCollection(ways, colors=colour, linewidths=1.8, capstyle="round", zorder=2))
        stops = [roads.places[place][::-1] for place in tour.stops]
        axes.plot(*_columns(stops), "o", color=colour, markersize=5, markeredgecolor="white", zorder=3)
        marks.append(Line2D([], [], color=colour, marker="o", linewidth=1.8, label=f"agent {tour.agent} and its stops"))
        _depot(axes, roads, tour, colour)
    marks.append(Line2D([], [], color=GREY, marker="s", markersize=10, linestyle="none", label="depot of an agent"))
    return marks


def _traffic(
    figure: Figure, axes: Axes, roads: Roads, links: Mapping[str, Link], tours: Sequence[Tour]
) -> list[Line2D]:
    """Of many agents: how often each link was driven."""
    driven = Counter(link for tour in tours for link in tour.links)
    # What was driven most is drawn last: a road has two links, one on the other.
    used = sorted(driven, key=lambda name: driven[name])
    coloured = LineCollection([_line(roads, links[name]) for name in used], cmap="viridis_r", linewidths=3, zorder=2)
    coloured.set_array([driven[name] for name in used])
    coloured.set_clim(1, max(*driven.values(), 2))
    axes.add_collection(coloured)
    bar = figure.colorbar(coloured, ax=axes, shrink=0.6, label="times driven, in the direction driven most")
    bar.ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    for tour in tours:
        _depot(axes, roads, tour, GREY)
    return [Line2D([], [], color=GREY, marker="s", markersize=10, linestyle="none", label="depot of an agent")]


def _depot(axes: Axes, roads: Roads, tour: Tour, colour: str) -> None:
    x, y = roads.places[tour.depot][::-1]
    axes.plot([x], [y], "s", color=colour, markersize=15, markeredgecolor="white", zorder=5)
    axes.annotate(tour.agent, (x, y), ha="center", va="center", color="white", fontsize=8, fontweight="bold", zorder=6)


def _scale(axes: Axes, latitude: float, left: float) -> None:
    """A bar of 200 metres under the map, from its western edge; degrees say nothing to those who deliver."""
    bottom, top = axes.get_ylim()
    length = 200 / (111_320 * cos(radians(latitude)))
    y = bottom - 0.03 * (top - bottom)
    axes.plot([left, left + length], [y, y], color="#333333", linewidth=2, solid_capstyle="butt")
    axes.annotate("200 m", (left + length / 2, y), (0, 4), textcoords="offset points", ha="center", fontsize=8)


Place = tuple[float, float]


def _line(roads: Roads, link: Link) -> list[Place]:
    return [roads.places[place][::-1] for place in (link.start, link.goal)]


def _length(line: Sequence[Place]) -> float:
    (x1, y1), (x2, y2) = line
    return hypot(x2 - x1, y2 - y1)


def _beside(line: Sequence[Place], aside: float) -> list[Place]:
    """The line moved to its side; both directions of a road to the same one."""
    (x1, y1), (x2, y2) = sorted(line)
    length = _length(line) or 1.0
    dx, dy = -(y2 - y1) / length * aside, (x2 - x1) / length * aside
    return [(x1 + dx, y1 + dy), (x2 + dx, y2 + dy)]


def _middle(line: Sequence[Place]) -> Place:
    (x1, y1), (x2, y2) = line
    return (x1 + x2) / 2, (y1 + y2) / 2


def _columns(places: Sequence[Place]) -> tuple[list[float], list[float]]:
    return [x for x, _ in places], [y for _, y in places]
