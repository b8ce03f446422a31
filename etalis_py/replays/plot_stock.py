"""The picture of the stock replay: prices with the drops and rises that were matched, and the ten-day average."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from pathlib import Path

from etalis_rules.calendar import DAY
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from etalis_py.replays.figures import BLUE, GREEN, GREY, ORANGE, RED, empty, moment, new_figure, plain, save, time_axis
from etalis_py.replays.stock_findings import PRICE_QUERIES, Findings, PriceMatch, change, strongest

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
    retracted = _grouped(findings.retracted)
    chosen += retracted
    rows = ceil(len(chosen) / COLUMNS)
    figure = new_figure(15, 3.1 * rows + 3.1, "Stock prices and what the queries matched")
    if chosen:
        _legend(figure)
    grid = figure.add_gridspec(rows + 1, COLUMNS, height_ratios=[*[1] * rows, 1])
    for i, of_company in enumerate(chosen):
        axes = figure.add_subplot(grid[i // COLUMNS, i % COLUMNS])
        draw_panel = _struck_out if of_company in retracted else _panel
        draw_panel(axes, prices.get(of_company[0].company, []), of_company)
    _averages(figure.add_subplot(grid[rows, :]), prices.get(averaged, []), findings, averaged)
    save(figure, path)


def _grouped(matches: Iterable[PriceMatch]) -> list[list[PriceMatch]]:
    """The matches by query and company."""
    groups: dict[tuple[str, str], list[PriceMatch]] = {}
    for match in matches:
        groups.setdefault((match.query, match.company), []).append(match)
    return list(groups.values())


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
        taken |= {of_company[0].company for of_company in columns[-1]}
    return [column[i] for i in range(PANELS) for column in columns if i < len(column)]


def _panel(axes: Axes, series: list[tuple[int, float]], matches_here: list[PriceMatch]) -> None:
    match = strongest(matches_here)
    colour = COLOURS[match.query]
    points = _points(series, match)
    first, last = points[0][0] - MARGIN, points[-1][0] + MARGIN
    shown = [(time, price) for time, price in series if first <= time <= last]
    axes.plot([moment(t) for t, _ in shown], [p for _, p in shown], color=BLUE, linewidth=1.1)
    ends = {m.end for m in matches_here}
    others = [(time, price) for time, price in shown if time in ends]
    axes.plot([moment(t) for t, _ in others], [p for _, p in others], "o", color=colour, markersize=3.5)
    axes.plot(
        [moment(t) for t, _ in points], [p for _, p in points], "-", marker="o", markersize=8, linewidth=1.6,
        markerfacecolor="none", color=colour,
    )  # fmt: skip
    lowest = min(price for _, price in points)
    for time, price in points:
        # Low prices are labelled below the line, all others above it, the last one beside what goes on.
        below, last_one = price == lowest, time == points[-1][0]
        place = (0, -9) if below else (-2, 8) if last_one else (0, 9)
        axes.annotate(
            f"{price:,.2f}", (moment(time), price), place, textcoords="offset points", fontsize=8, bbox=BEHIND,
            ha="right" if last_one and not below else "center", va="top" if below else "bottom",
        )  # fmt: skip
    downrated = f", downrated by {match.agency}" if match.agency else ""
    matches = f"{len(matches_here):,} match{'es' if len(matches_here) > 1 else ''}"
    axes.set_title(f"{_label(match.company)} {TITLES[match.query]}{downrated}: {matches}", fontsize=10)
    axes.set_ylim(0, max(price for _, price in shown) * 1.18)
    plain(axes)
    time_axis(axes)


def _struck_out(axes: Axes, series: list[tuple[int, float]], matches_here: list[PriceMatch]) -> None:
    """Matches that a correction has taken back: the prices as they are, the strongest match crossed out."""
    match = strongest(matches_here)
    points = _points(series, match)
    first, last = points[0][0] - MARGIN, points[-1][0] + MARGIN
    shown = [(time, price) for time, price in series if first <= time <= last]
    axes.plot([moment(t) for t, _ in shown], [p for _, p in shown], color=BLUE, linewidth=1.1)
    axes.plot([moment(t) for t, _ in points], [p for _, p in points], "--", color=GREY, linewidth=1.2)
    time, price = points[-1]
    axes.plot([moment(time)], [price], marker="x", markersize=12, markeredgewidth=2.5, color=RED)
    axes.annotate(
        f"{price:,.2f} was wrong", (moment(time), price), (9, -3), textcoords="offset points", fontsize=8, bbox=BEHIND
    )
    count = f"{len(matches_here):,} match{'es' if len(matches_here) > 1 else ''}"
    title = axes.set_title(
        f"{_label(match.company)} {TITLES[match.query]}: {count} taken back", fontsize=10, color=GREY
    )
    axes.annotate(
        "", (0, 0.5), (1, 0.5), xycoords=title, textcoords=title, arrowprops={"arrowstyle": "-", "color": RED}
    )
    axes.set_ylim(0, max(price for _, price in (*shown, *points)) * 1.18)
    plain(axes)
    time_axis(axes)


def _legend(figure: Figure) -> None:
    marks = [
        Line2D([], [], color=BLUE, linewidth=1.1, label="price"),
        *(
            Line2D([], [], color=colour, marker="o", markersize=8, markerfacecolor="none", label=TITLES[query])
            for query, colour in COLOURS.items()
        ),
    ]
    figure.legend(
        handles=marks, loc="outside lower center", ncols=4, fontsize=9, frameon=False, title_fontsize=9,
        title="rings: the prices of the strongest match; dots: where other matches end",
    )  # fmt: skip


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
