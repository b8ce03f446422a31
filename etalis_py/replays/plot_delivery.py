"""The picture of the delivery replay: delay and memory against the number of agents, as [EP] Figure 3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from etalis_py.replays.figures import BLUE, GREY, ORANGE, empty, new_figure, plain, save


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run: how many agents and requests, the time for all of them in seconds, and the memory in bytes."""

    agents: int
    requests: int
    seconds: float
    memory: int


def draw(measurements: Sequence[Measurement], path: Path) -> None:
    """Delay on the left, memory on the right, each beside what it would be if it grew with the number of agents."""
    ordered = sorted(measurements, key=lambda m: m.agents)
    figure = new_figure(11, 4.4, "Deliveries: what the number of agents costs")
    left, right = figure.subplots(1, 2)
    _curve(left, ordered, lambda m: m.seconds, "time for all requests, s", BLUE)
    _curve(right, ordered, lambda m: m.memory / 2**20, "memory, MiB", ORANGE)
    save(figure, path)


def _curve(
    axes: Axes, ordered: Sequence[Measurement], value: Callable[[Measurement], float], label: str, colour: str
) -> None:
    if not ordered:
        empty(axes, "nothing was measured")
        return
    agents, values = [m.agents for m in ordered], [value(m) for m in ordered]
    axes.plot(agents, values, "o-", color=colour, label="measured")
    if len(ordered) > 1:
        grown = [values[0] * n / agents[0] for n in agents]
        axes.plot(agents, grown, "--", color=GREY, linewidth=1, label="in proportion to the agents")
    for measurement, x, y in zip(ordered, agents, values, strict=True):
        axes.annotate(f"{measurement.requests:,} requests", (x, y), (5, -12), textcoords="offset points", fontsize=7.5)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(agents)
    axes.minorticks_off()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,g}"))
    axes.set_xlabel("agents")
    axes.set_ylabel(label)
    axes.margins(x=0.18, y=0.2)
    plain(axes)
    axes.legend(fontsize=8, loc="upper left")
