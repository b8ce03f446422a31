"""What the pictures of the replays share: a figure without global state, its colours, and saving it whole."""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure

from etalis_py.events.errors import SinkError, sink_error

SUFFIXES = (".png", ".svg", ".pdf")
# Told apart also by those who see no red or green (Okabe and Ito's palette).
BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(time: int) -> float:
    """Microseconds since the epoch as matplotlib counts time."""
    return float(date2num(_EPOCH + timedelta(microseconds=time)))  # type: ignore[no-untyped-call]


def new_figure(width: float, height: float, title: str) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained", dpi=110)
    figure.suptitle(title, fontsize=13, fontweight="bold")
    return figure


def time_axis(axes: Axes) -> None:
    """Dates below, as short as they can be said."""
    locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.tick_params(labelsize=8)


def plain(axes: Axes) -> None:
    """Only the lines that say something."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def struck_out(axes: Axes, start: float, end: float, y: float) -> None:
    """A bar of something that does not hold any more."""
    axes.plot([start, end], [y, y], color=GREY, linewidth=5, solid_capstyle="round", alpha=0.35)
    axes.plot([start, end], [y, y], color=RED, marker="x", markersize=6, linewidth=1)


def empty(axes: Axes, text: str) -> None:
    """Say in the middle of the axes that there is nothing to draw."""
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes, color=GREY)
    axes.set_xticks([])
    axes.set_yticks([])


def save(figure: Figure, path: Path) -> None:
    """Write the picture whole or not at all; the ending of the name says what it is."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise SinkError(
            f"the ending {suffix or '(none)'} names no picture", target=str(path), hint=f"use {', '.join(SUFFIXES)}"
        )
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=suffix)
        os.close(handle)
        figure.savefig(temporary, format=suffix[1:])
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise sink_error(error, str(path)) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
