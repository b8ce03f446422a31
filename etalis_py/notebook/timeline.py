"""Intervals over time as a small picture (SVG): the matches of a run, or the events behind one match.

The axis counts as the stream does: numbers, or dates with the step that fits what is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any

from etalis_rules.calendar import SECOND

from etalis_py.events.clock import is_date, parse_datetime
from etalis_py.streams.write_table import show_term

SHOWN = 40
ROW, LABEL, WIDTH, AXIS, LETTER = 22, 250, 860, 34, 6.6
# Told apart also by those who see no red or green (Okabe and Ito's palette).
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9")
GREY = "#888888"
_MINUTE, _HOUR, _DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
_STEPS = (
    *(n * unit for unit in (1, 1000) for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 28, 91, 182, 365, 730, 1825, 3650, 36_500)),
)
_ERA = 146_097 * _DAY
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Time = int | str


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of the picture: an interval, and points in it."""

    label: str
    start: Time
    end: Time
    colour: str
    details: str = ""
    points: tuple[tuple[Time, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Timeline:
    """A picture: ``svg`` is its text, a notebook shows it, ``save`` writes it."""

    svg: str
    title: str

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto;max-width:100%">{self.svg}</div>'

    def save(self, path: str | Path) -> None:
        """Write the picture to a file that ends with ``.svg``."""
        if Path(path).suffix.lower() != ".svg":
            raise ValueError(f"{path}: a timeline is written as SVG; end the name with .svg")
        Path(path).write_text(self.svg, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<timeline of {self.title}>"


def timeline_of(matches: Iterable[Any]) -> Timeline:
    """The first matches that have a time, a row for each; their events are points, where matches can say why."""
    timed = [match for match in matches if match.start is not None]
    colours: dict[str, str] = {}
    bars = [
        Bar(
            _label(match),
            match.start,
            match.end,
            colours.setdefault(match.query, COLOURS[len(colours) % len(COLOURS)]),
            f"{match.query} {_label(match)} [{match.start}, {match.end}]",
            tuple((leaf.interval[1], _triple(leaf.triple, _prefixes(match))) for leaf in _events(match)),
        )
        for match in islice(timed, SHOWN)
    ]
    what = f"{len(timed):,} match{'es' * (len(timed) != 1)}"
    title = f"the first {SHOWN} of {what}" if len(timed) > SHOWN else what
    legend = tuple(colours.items()) if len(colours) > 1 else ()
    return Timeline(_drawn(bars, title, legend), title)


def why_html(explanation: Any) -> str:
    """Why a match holds: its events in time below it, and the tree of rules."""
    bars = []
    if explanation.interval is not None:
        bars.append(Bar(explanation.rule, *explanation.interval, COLOURS[0], explanation.rule))  # type: ignore[call-arg]
    leaves = list(dict.fromkeys(explanation.events()))
    bars += [
        Bar(shown := _triple(leaf.triple, explanation.spelling.prefixes), *leaf.interval, GREY, shown)  # type: ignore[call-arg]
        for leaf in sorted(leaves, key=lambda leaf: (_place(leaf.interval[1]), leaf.triple))[:SHOWN]
    ]
    picture = _drawn(bars, f"why {explanation.rule}", ()) if bars else ""
    tree = f"<pre>{escape(str(explanation))}</pre>"
    return f'<div style="overflow-x:auto;max-width:100%">{picture}{tree}</div>'


def _events(match: Any) -> Iterator[Any]:
    why = match.why() if match.shape.explain is not None else None
    # What windows and facts give as a reason has no single events.
    return why.events() if hasattr(why, "events") else iter(())  # type: ignore[union-attr]


def _prefixes(match: Any) -> Any:
    return match.shape.prefixes


def _label(match: Any) -> str:
    if match.triples is not None:
        return " . ".join(_triple(triple, _prefixes(match)) for triple in match.triples[:2])
    if match.boolean is not None:
        return f"{match.query}: {'yes' if match.boolean else 'no'}"
    known = match.bindings
    names = [name for name in match.shape.output.variables if name in known]
    return " ".join(f"?{name} {show_term(known[name], _prefixes(match))}" for name in names) or match.query


def _triple(triple: Sequence[str], prefixes: Any) -> str:
    return " ".join(show_term(term, prefixes) for term in triple)


# --- drawing ---------------------------------------------------------------------------------------------------------


def _place(time: Time) -> float:
    """Where a time is: what the stream counts, or microseconds of a date."""
    return float(parse_datetime(str(time)) if is_date(time) else time)


def _drawn(bars: Sequence[Bar], title: str, legend: Sequence[tuple[str, str]]) -> str:
    height = 30 + ROW * max(len(bars), 1) + AXIS
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" '
        f'style="max-width:100%;height:auto;background:#ffffff" font-family="sans-serif" font-size="11">',
        f"<title>{escape(title)}</title>",
        f'<text x="8" y="17" font-weight="bold">{escape(title)}</text>',
    ]
    x = LABEL
    for name, colour in legend:
        parts.append(f'<rect x="{x}" y="8" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{x + 14}" y="17">{escape(name)}</text>')
        x += 30 + int(len(name) * LETTER)
    if not bars:
        parts.append('<text x="8" y="42">no matches with a time</text>')
        return "".join((*parts, "</svg>"))
    low = min(_place(bar.start) for bar in bars)
    high = max(_place(bar.end) for bar in bars)
    dated = any(is_date(bar.start) for bar in bars)
    span = (high - low) or (float(SECOND) if dated else 1.0)

    def across(place: float) -> float:
        return LABEL + (place - low) / span * (WIDTH - LABEL - 30)

    bottom = 30 + ROW * len(bars)
    for tick, text in _ticks(low, low + span, dated):
        parts.append(f'<path d="M{across(tick):.1f} 26V{bottom}" stroke="#dddddd"/>')
        parts.append(f'<text x="{across(tick):.1f}" y="{bottom + 15}" text-anchor="middle">{escape(text)}</text>')
    if dated:
        moment, year = _moment(low)
        parts.append(f'<text x="{LABEL}" y="{bottom + 29}" fill="#555555">from {moment:%-d %B} {year}</text>')
    for number, bar in enumerate(bars):
        parts += _row(bar, 30 + ROW * number, across)
    return "".join((*parts, "</svg>"))


def _row(bar: Bar, y: int, across: Any) -> Iterator[str]:
    most = int((LABEL - 16) / LETTER)
    label = bar.label if len(bar.label) <= most else bar.label[: most - 1] + "…"
    x1, x2 = across(_place(bar.start)), across(_place(bar.end))
    yield f'<g><title>{escape(bar.details or bar.label)}</title><text x="8" y="{y + 14}">{escape(label)}</text>'
    if x2 - x1 < 1:
        yield f'<circle cx="{x1:.1f}" cy="{y + 10.5}" r="4.5" fill="{bar.colour}"/></g>'
    else:
        wide = x2 - x1 + 6
        yield f'<rect x="{x1 - 3:.1f}" y="{y + 6}" width="{wide:.1f}" height="9" rx="4" fill="{bar.colour}"/></g>'
    for time, words in bar.points:
        yield f'<circle cx="{across(_place(time)):.1f}" cy="{y + 10.5}" r="3.2" fill="#ffffff" stroke="#333333">'
        yield f"<title>{escape(words)} at {escape(str(time))}</title></circle>"


def _ticks(low: float, high: float, dated: bool) -> Iterator[tuple[float, str]]:
    """Five or so round places between two, with what stands below them."""
    wanted = (high - low) / 5
    if dated:
        step = float(next((s for s in _STEPS if s >= wanted), wanted))
    else:
        power = 10.0 ** len(str(int(wanted))) / 10 if wanted >= 1 else 1.0
        step = next(power * n for n in (1, 2, 5, 10) if power * n >= wanted)
    tick = -(-low // step) * step
    while tick <= high:
        yield tick, _dated(tick, step) if dated else f"{tick:g}" if abs(tick) < 1e6 else f"{int(tick):,}"
        tick += step


def _moment(us: float) -> tuple[datetime, str]:
    """A moment of the calendar, which repeats after 400 years, and its year, which Python has from 1 to 9999 only."""
    eras, within = divmod(us, _ERA)
    moment = _EPOCH + timedelta(microseconds=within)
    year = moment.year + 400 * int(eras)
    return moment, f"{year:05d}" if year < 0 else f"{year:04d}"


def _dated(us: float, step: float) -> str:
    moment, year = _moment(us)
    if step >= 365 * _DAY:
        return year
    if step >= _DAY or us % _DAY == 0:
        return f"{moment:%-d %b}" if step < 28 * _DAY else f"{moment:%b} {year}"
    if step >= _MINUTE:
        return f"{moment:%H:%M}"
    return f"{moment:%H:%M:%S}" if step >= SECOND else f"{moment:%H:%M:%S.%f}"
