"""The picture of the tsunami replay: level, prediction and alarms of each station; the histogram of [EP] Figure 4."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from statistics import median

from etalis_rules.calendar import SECOND
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from etalis_py.events.clock import render_datetime
from etalis_py.replays.dart_files import StationRecord
from etalis_py.replays.figures import BLUE, GREEN, GREY, RED, empty, moment, new_figure, plain, save, time_axis
from etalis_py.replays.tsunami_results import THRESHOLD_M, Predicted, StationResult

COLUMNS = 3
MOST = 12
BEFORE, AFTER = 3 * 3600 * SECOND, 9 * 3600 * SECOND
GAP = 20 * 60 * SECOND
# Powers of ten of millimetres, three bins to each: differences reach from a tenth of a millimetre to metres.
BINS_MM = [10 ** (k / 3) for k in range(-3, 16)]


def draw(
    records: tuple[StationRecord, ...], results: dict[str, StationResult], path: Path, *, made_up: bool = False
) -> None:
    """One panel a station around its strongest alarm, and below the distribution of all differences.

    ``made_up``: the picture says so, and calls no station by the number of a real one.
    """
    shown = records[:MOST]
    columns = min(COLUMNS, len(shown)) or 1
    rows = ceil(len(shown) / columns)
    left_out = f" ({len(shown)} of {len(records)} stations)" if len(shown) < len(records) else ""
    of = "made-up readings" if made_up else "readings"
    title = f"Tsunami detection: {of}, predictions and alarms{left_out}"
    figure = new_figure(max(5.0 * columns, 8), 2.9 * rows + 3.2, title)
    grid = figure.add_gridspec(rows + 1, columns, height_ratios=[*[1] * rows, 1.1])
    for i, record in enumerate(shown):
        axes = figure.add_subplot(grid[i // columns, i % columns])
        name = f"made-up buoy {i + 1}" if made_up else record.station
        _station(axes, name, record, results.get(record.station, StationResult()), legend=i == 0)
    _histogram(figure.add_subplot(grid[rows, :]), results)
    save(figure, path)


def _focus(record: StationRecord, result: StationResult) -> tuple[int, int]:
    """The hours around the detected tsunami with the largest difference; without one, the whole record."""
    if not result.tsunamis:
        return record.readings[0].time, record.readings[-1].time
    strongest = max(result.alarms, key=lambda a: abs(a.difference)).time if result.alarms else result.tsunamis[0]
    began = max((t for t in result.tsunamis if t <= strongest), default=result.tsunamis[0])
    return began - BEFORE, began + AFTER


def _station(axes: Axes, name: str, record: StationRecord, result: StationResult, legend: bool) -> None:
    first, last = _focus(record, result)
    readings = [(r.time, float(r.level)) for r in record.readings if first <= r.time <= last]
    if not readings:
        empty(axes, f"{name}: no readings")
        return
    middle = median(level for _, level in readings)
    predicted = [(p.time, p.prediction) for p in result.predicted if first <= p.time <= last]
    alarms = [a for a in result.alarms if first <= a.time <= last]
    _line(axes, readings, middle, BLUE, "reading", 1.1)
    _line(axes, predicted, middle, GREEN, "prediction", 1.1)
    plain(axes)
    _zoom(axes, [level - middle for _, level in readings])
    if alarms:
        bottom = [axes.get_ylim()[0]] * len(alarms)
        axes.plot(
            [moment(a.time) for a in alarms], bottom, "|", color=RED, markersize=11, label="alarms", clip_on=False
        )
    title = f"{name}: {len(alarms)} alarms"
    if result.broken:
        title = f"{name} (broken gauge): {len(alarms)} alarms"
    if began := [t for t in result.tsunamis if first <= t <= last]:
        axes.axvline(moment(began[0]), color=RED, linewidth=1, linestyle="--")
        title += f", the first at {render_datetime(began[0])[11:19]}"
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(f"level − {middle:.1f}, m", fontsize=8)
    axes.set_xlim(moment(first), moment(last))
    time_axis(axes)
    if legend:
        axes.legend(fontsize=8, loc="best", framealpha=0.9)


def _line(axes: Axes, points: list[tuple[int, float]], middle: float, colour: str, label: str, width: float) -> None:
    """A line that is broken where nothing was measured for a while."""
    times, levels = [], []
    for i, (time, level) in enumerate(points):
        if i and time - points[i - 1][0] > GAP:
            times.append(moment(points[i - 1][0] + 1))
            levels.append(float("nan"))
        times.append(moment(time))
        levels.append(level - middle)
    axes.plot(times, levels, color=colour, linewidth=width, label=label)


def _zoom(axes: Axes, heights: list[float]) -> None:
    """Leave single readings of a broken gauge outside when they would flatten everything else."""
    ordered = sorted(heights)
    low, high = ordered[len(ordered) // 50], ordered[-1 - len(ordered) // 50]
    if max(-ordered[0], ordered[-1]) > 5:
        low, high = max(low, -5), min(high, 5)
    else:
        low, high = ordered[0], ordered[-1]
    margin = max((high - low) * 0.12, 0.02)
    axes.set_ylim(low - margin, high + margin)


def _histogram(axes: Axes, results: dict[str, StationResult]) -> None:
    """[EP] Figure 4: how often a reading lay how far from its prediction."""
    differences: list[Predicted] = [p for result in results.values() for p in result.predicted]
    millimetres = [min(max(abs(p.difference) * 1000, BINS_MM[0]), BINS_MM[-1]) for p in differences]
    if not millimetres:
        empty(axes, "no reading was predicted")
        return
    threshold = THRESHOLD_M * 1000
    _, edges, _ = axes.hist(millimetres, bins=_edges(threshold), color=BLUE, edgecolor="white", linewidth=0.8)
    for left, bar in zip(edges, axes.patches, strict=False):
        bar.set_facecolor(RED if left >= threshold * 0.999 else BLUE)
    above = sum(abs(p.difference) > THRESHOLD_M for p in differences)
    axes.axvline(threshold, color=GREY, linestyle="--", linewidth=1.2)
    axes.set_xscale("log")
    axes.set_xlim(BINS_MM[0] * 0.9, next(e for e in BINS_MM if e >= max(millimetres)) * 1.1)
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.8)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes.set_xlabel("difference of reading and prediction, mm")
    axes.set_ylabel("readings")
    axes.set_title(
        f"All stations: {above:,} of {len(differences):,} predicted readings are more than {threshold:g} mm off "
        "(in the colour of alarms)",
        fontsize=10,
    )
    plain(axes)


def _edges(threshold: float) -> list[float]:
    """The bins, with the threshold as an edge, so that no bar stands on both sides of it."""
    return sorted({*(e for e in BINS_MM if abs(e / threshold - 1) > 0.1), threshold})
