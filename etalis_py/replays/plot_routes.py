"""The picture of a delivery day: a map of the town, each road as wide as it was often driven."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from matplotlib.collections import LineCollection

from etalis_py.replays.figures import BLUE, GREY, empty, new_figure, save
from etalis_py.replays.roads import Link, Roads


def draw(roads: Roads, routes: Mapping[str, Mapping[str, Collection[str]]], path: Path) -> None:
    """``routes``: for each agent the links of the route of each request."""
    driven = Counter(link for mine in routes.values() for links in mine.values() for link in links)
    figure = new_figure(8, 7, "Deliveries: the roads that were driven")
    axes = figure.subplots()
    if not driven:
        empty(axes, "no route was found")
        save(figure, path)
        return
    links = list(roads.links())
    used = [link for link in links if link.id in driven]
    most = max(driven.values())
    widths = [0.8 + 4 * driven[link.id] / most for link in used]
    axes.add_collection(LineCollection([_line(roads, link) for link in links], colors=GREY, linewidths=0.4))
    axes.add_collection(LineCollection([_line(roads, link) for link in used], colors=BLUE, linewidths=widths))
    axes.autoscale()
    axes.set_xlabel(f"longitude; the widest road was driven {most} times")
    axes.set_ylabel("latitude")
    axes.tick_params(labelsize=8)
    save(figure, path)


def _line(roads: Roads, link: Link) -> list[tuple[float, float]]:
    return [roads.places[place][::-1] for place in (link.start, link.goal)]
