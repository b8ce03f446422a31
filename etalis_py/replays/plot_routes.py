"""The picture of a delivery day: a map of the town, each road coloured by how often it was driven."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from math import cos, radians
from pathlib import Path

from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator

from etalis_py.replays.figures import GREY, empty, new_figure, save
from etalis_py.replays.roads import Link, Roads


def draw(roads: Roads, routes: Mapping[str, Mapping[str, Collection[str]]], path: Path) -> None:
    """``routes``: for each agent the links of the route of each request."""
    driven = Counter(link for mine in routes.values() for links in mine.values() for link in links)
    figure = new_figure(9, 6.5, "Deliveries: the roads that were driven")
    axes = figure.subplots()
    if not driven:
        empty(axes, "no route was found")
        save(figure, path)
        return
    links = list(roads.links())
    # What was driven most is drawn last: a road has two links, one on the other.
    used = sorted((link for link in links if link.id in driven), key=lambda link: driven[link.id])
    counts = [driven[link.id] for link in used]
    axes.add_collection(
        LineCollection([_line(roads, link) for link in links], colors=GREY, linewidths=0.5, linestyles=":")
    )
    coloured = LineCollection([_line(roads, link) for link in used], cmap="viridis_r", linewidths=2.5)
    coloured.set_array(counts)
    coloured.set_clim(1, max(*counts, 2))
    axes.add_collection(coloured)
    axes.autoscale()
    latitude = sum(place[0] for place in roads.places.values()) / len(roads.places)
    axes.set_aspect(1 / cos(radians(latitude)))
    axes.set_xlabel("longitude (dotted: not driven)")
    axes.set_ylabel("latitude")
    axes.tick_params(labelsize=8)
    bar = figure.colorbar(coloured, ax=axes, shrink=0.7, label="times driven, in the direction driven most")
    bar.ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    save(figure, path)


def _line(roads: Roads, link: Link) -> list[tuple[float, float]]:
    return [roads.places[place][::-1] for place in (link.start, link.goal)]
