"""The picture of ``--timeline FILE``: intervals as bars, and each match tied by arcs to the events it is made of.

Matches are at the top, one row each; events are below, one row per predicate.  Only the first ``SHOWN`` matches are
kept and drawn, so memory does not grow with the run; the title says how many there were.  A match taken back by a
correction of the input stays in its place, struck out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from etalis_rules.messages import printable
from etalis_rules.terms import iri_value, is_iri, is_literal, parts

from etalis_py.cli.errors import UsageError
from etalis_py.events.clock import is_date, parse_datetime
from etalis_py.kernel.matches import Match
from etalis_py.replays.figures import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    SUFFIXES,
    moment,
    new_figure,
    plain,
    save,
    struck_out,
    time_axis,
)

SHOWN = 40
COLOURS = (BLUE, ORANGE, GREEN, RED, GREY)
_YEAR = 365.2425 * 86_400e6
_FIRST, _LAST = -1968 * _YEAR, 8028 * _YEAR  # microseconds from 1970; matplotlib has the years from 1 to 9999

Time = int | str


@dataclass(frozen=True, slots=True)
class Drawn:
    """An event of a match, or a match: its row (``lane``), its label, its interval as the stream spells it."""

    lane: str
    label: str
    start: Time
    end: Time


class Picture:
    """Keeps the first matches with their events; ``draw`` makes the picture."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.suffix.lower() not in SUFFIXES:
            raise UsageError(f"--timeline {path}: the name of a picture ends with {', '.join(SUFFIXES)}")
        self.count = 0
        self.matches: list[tuple[Drawn, tuple[Drawn, ...]]] = []
        self.retracted: set[int] = set()  # places in ``matches``
        self._places: dict[str, int] = {}

    def add(self, match: Match) -> None:
        place = self._places.get(match.id)
        if match.retracted:
            self.count -= 1
            if place is not None:
                self.retracted.add(place)
            return
        self.count += 1
        if place is not None:  # the match holds again
            self.retracted.discard(place)
        elif len(self.matches) < SHOWN and match.start is not None and match.end is not None:
            self._places[match.id] = len(self.matches)
            self.matches.append((Drawn(match.query, _words(match), match.start, match.end), tuple(_events(match))))

    def draw(self) -> None:
        from matplotlib.patches import FancyArrowPatch  # takes a while to import

        events = list(dict.fromkeys(event for _, constituents in self.matches for event in constituents))
        lanes = sorted({event.lane for event in events})
        rows = len(self.matches) + len(lanes)
        holding = len(self.matches) - len(self.retracted)
        of = f" (the first {holding} of {self.count:,})" if self.count > holding else ""
        if self.retracted:
            of += f", {len(self.retracted)} taken back"
        figure = new_figure(11, 1.6 + 0.32 * max(rows, 4), f"Matches and their events{of}")
        axes = figure.add_subplot()
        plain(axes)
        if not self.matches:
            axes.text(0.5, 0.5, "no matches with a time", ha="center", transform=axes.transAxes, color=GREY)
        queries = list(dict.fromkeys(bar.lane for bar, _ in self.matches))
        # Events are at the bottom, from the lowest up; matches are above them, the first at the top.
        axis = _axis([time for bar in (*events, *(bar for bar, _ in self.matches)) for time in (bar.start, bar.end)])
        for event in events:
            y = lanes.index(event.lane)
            _bar(axes, axis, event, y, GREY)
        for number, (match, constituents) in enumerate(self.matches):
            y = rows - 1 - number
            colour = COLOURS[queries.index(match.lane) % len(COLOURS)]
            if number in self.retracted:
                struck_out(axes, axis.place(match.start), axis.place(match.end), y)
                continue
            _bar(axes, axis, match, y, colour)
            for event in dict.fromkeys(constituents):
                ends = (axis.place(match.end), y), (axis.place(event.end), lanes.index(event.lane))
                axes.add_patch(
                    FancyArrowPatch(
                        *ends,
                        connectionstyle="arc3,rad=0.12",
                        arrowstyle="-",
                        color=colour,
                        linewidth=0.7,
                        alpha=0.55,
                    )
                )
        names = [f"{lane} (events)" for lane in lanes] + [bar.label for bar, _ in reversed(self.matches)]
        shown = [printable(name).replace("\n", "⏎") for name in names]
        axes.set_yticks(range(rows), shown, fontsize=7, parse_math=False)  # $ in a label is no formula
        axes.set_ylim(-0.7, rows - 0.3)
        if lanes:
            axes.axhline(len(lanes) - 0.5, color="#bbbbbb", linewidth=0.8)
        if axis.dated:
            time_axis(axes)
        axes.set_xlabel(axis.label)
        axes.margins(x=0.03)
        save(figure, self.path)


def _bar(axes: Any, axis: Axis, bar: Drawn, y: int, colour: str) -> None:
    start, end = axis.place(bar.start), axis.place(bar.end)
    axes.plot([start, end], [y, y], color=colour, linewidth=5, solid_capstyle="round", alpha=0.9)
    axes.plot([end], [y], marker="o", color=colour, markersize=5)


class Axis(NamedTuple):
    """The places of times on the axis; ``dated``: they are dates as matplotlib counts them."""

    place: Callable[[Time], float]
    label: str = "time"
    dated: bool = False


def _axis(times: Sequence[Time]) -> Axis:
    """The axis for times: numbers, dates, or years if some date is beyond those that matplotlib can show."""
    if not any(map(is_date, times)):
        return Axis(float)
    if all(_FIRST < _microseconds(time) < _LAST for time in times):
        return Axis(lambda time: moment(_microseconds(time)), dated=True)
    return Axis(lambda time: 1970 + _microseconds(time) / _YEAR, "year")


def _microseconds(time: Time) -> int:
    return parse_datetime(str(time)) if is_date(time) else int(float(time))


def _events(match: Match) -> Iterator[Drawn]:
    for leaf in match.why().events():
        subject, predicate, value = leaf.triple
        start, end = leaf.interval
        yield Drawn(_short(predicate), f"{_short(subject)} {_short(value)}", start, end)


def _words(match: Match) -> str:
    if match.triples is None:
        terms = " ".join(f"{name}={_short(term)}" for name, term in match.bindings.items())
    else:
        terms = " ".join(_short(term) for triple in match.triples[:1] for term in triple)
    text = f"{match.query}: {terms}"
    return text if len(text) <= 56 else text[:55] + "…"


def _short(term: str) -> str:
    """A short form of a term: the last part of an IRI, the lexical form of a literal."""
    if is_iri(term):
        value = iri_value(term)
        return value.rstrip("/#").replace("#", "/").rsplit("/", 1)[-1].rsplit(":", 1)[-1] or value
    return parts(term)[0] if is_literal(term) else term
