"""The picture of the stock replay: prices with the drops and rises that were matched, and the ten-day average."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from etalis_py.replays.figures import BLUE, GREEN, GREY, ORANGE, RED, empty, moment, new_figure, plain, save, time_axis
from etalis_py.replays.stock import PRICE_QUERIES, Findings, PriceMatch, change, strongest
from etalis_py.streams.clock import DAY

COLUMNS = 3
PANELS = 2  # of each query
TITLES = {
    "drop_and_rise": "fell by more than 30 %, then rose",
    "drop_with_rating": "fell by more than half",
    "rise_without_acquisition": "rose by more than half",
}
COLOURS = {"drop_and_rise": ORANGE, "drop_with_rating": RED, "rise_without_acquisition": GREEN}
MARGIN = 20 * DAY
BEHIND = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1}

Prices = Mapping[str, list[tuple[int, float]]]


def draw(prices: Prices, findings: Findings, averaged: str, path: Path) -> None:
    """The companies in which prices moved most, for each query; below the company that is averaged."""
    chosen = _chosen(findings)
    rows = ceil(len(chosen) / COLUMNS)
    figure = new_figure(15, 3.1 * rows + 3.1, "Stock prices and what the queries matched")
    if chosen:
        _legend(figure)
    grid = figure.add_gridspec(rows + 1, COLUMNS, height_ratios=[*[1] * rows, 1])
    for i, found in enumerate(chosen):
        axes = figure.add_subplot(grid[i // COLUMNS, i % COLUMNS])
        _panel(axes, prices.get(found[0].company, []), found)
    _averages(figure.add_subplot(grid[rows, :]), prices.get(averaged, []), findings, averaged)
    save(figure, path)


def _chosen(findings: Findings) -> list[list[PriceMatch]]:
    """The matches of each panel, column by column: one query a column, no company twice while there are others."""
    columns: list[list[list[PriceMatch]]] = []
    taken: set[str] = set()
    for query in PRICE_QUERIES:
        grouped: dict[str, list[PriceMatch]] = {}
        for match in findings.prices:
            if match.query == query:
                grouped.setdefault(match.company, []).append(match)
        ranked = sorted(grouped.values(), key=lambda m: (m[0].company in taken, -change(strongest(m)), m[0].company))
        columns.append(ranked[:PANELS])
        taken |= {found[0].company for found in columns[-1]}
    return [column[i] for i in range(PANELS) for column in columns if i < len(column)]


def _panel(axes: Axes, series: list[tuple[int, float]], found: list[PriceMatch]) -> None:
    match = strongest(found)
    colour = COLOURS[match.query]
    points = _points(series, match)
    first, last = points[0][0] - MARGIN, points[-1][0] + MARGIN
    shown = [(time, price) for time, price in series if first <= time <= last]
    axes.plot([moment(t) for t, _ in shown], [p for _, p in shown], color=BLUE, linewidth=1.1)
    ends = {m.end for m in found}
    others = [(time, price) for time, price in shown if time in ends]
    axes.plot([moment(t) for t, _ in others], [p for _, p in others], "o", color=colour, markersize=3.5)
    axes.plot(
        [moment(t) for t, _ in points], [p for _, p in points], "-", marker="o", markersize=8, linewidth=1.6,
        markerfacecolor="none", color=colour,
    )  # fmt: skip
    for time, price in points:
        axes.annotate(
            f"{price:,.2f}", (moment(time), price), (7, 7), textcoords="offset points", fontsize=8, bbox=BEHIND
        )
    downrated = f", downrated by {match.agency}" if match.agency else ""
    matches = f"{len(found):,} match{'es' if len(found) > 1 else ''}"
    axes.set_title(f"{_label(match.company)} {TITLES[match.query]}{downrated}: {matches}", fontsize=10)
    axes.set_ylim(0, max(price for _, price in shown) * 1.18)
    plain(axes)
    time_axis(axes)


def _legend(figure: Figure) -> None:
    marks = [
        Line2D([], [], color=BLUE, linewidth=1.1, label="price"),
        Line2D([], [], color=GREY, marker="o", markersize=3.5, linestyle="none", label="last price of a match"),
        Line2D([], [], color=GREY, marker="o", markersize=8, markerfacecolor="none", label="prices of the strongest"),
    ]
    figure.legend(handles=marks, loc="upper right", ncols=3, fontsize=9, frameon=False)


def _points(series: list[tuple[int, float]], match: PriceMatch) -> list[tuple[int, float]]:
    """When the prices of a match were: the last one at its end, each other the latest such price before the next."""
    points = [(match.end, match.prices[-1])]
    for price in reversed(match.prices[:-1]):
        before = [t for t, p in series if match.start <= t < points[0][0] and abs(p - price) < 1e-9]
        points.insert(0, (max(before, default=match.start), price))
    return points


def _averages(axes: Axes, series: list[tuple[int, float]], findings: Findings, averaged: str) -> None:
    if not series:
        empty(axes, f"no prices of {_label(averaged)}")
        return
    axes.plot([moment(t) for t, _ in series], [p for _, p in series], color=BLUE, linewidth=1.1, label="price")
    if averages := findings.averages:
        mark = "." if len(averages) <= 200 else ""
        axes.plot(
            [moment(a.end) for a in averages], [a.value for a in averages], color=ORANGE, linewidth=1.2, marker=mark,
            markersize=4, label=f"average of the last ten days ({len(averages):,} reports)",
        )  # fmt: skip
        axes.set_title(f"{_label(averaged)}: average price over ten days", fontsize=10)
    else:
        axes.set_title(f"{_label(averaged)}: no average over ten days", fontsize=10)
    plain(axes)
    time_axis(axes)
    axes.legend(fontsize=8, loc="best", framealpha=0.9)


def _label(company: str) -> str:
    return company.strip("<>").rsplit("#", 1)[-1]
