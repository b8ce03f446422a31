"""The tsunami replay ([EP] §6, Test 3): NOAA's DART algorithm in EP-SPARQL rules over sea levels.

The algorithm is in ``programs/tsunami/*.rq``, each with the reading it takes of NOAA's description where the published
data are sampled irregularly.  Here the levels become events, and the matches become a table and a picture.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from etalis_rules.terms import XSD, iri_value, literal, parts

from etalis_py.events import Event
from etalis_py.replays.dart_files import StationRecord, read_station, station_files
from etalis_py.replays.gazetteer import STATION, TSUNAMI, stations
from etalis_py.replays.replay import Found, Replay, Row
from etalis_py.replays.resources import data, program
from etalis_py.replays.tides import made_records
from etalis_py.streams.clock import Clock, render_datetime

PROGRAMS = ("readings", "means", "minutes", "hours", "predictions", "alarms", "tsunamis", "warnings")
BACKGROUND = ("stations", "places", "distances")
THRESHOLD_M = 0.030

_WATER_LEVEL = f"<{TSUNAMI}waterLevel>"
_PREDICTION, _DIFFERENCE = f"<{TSUNAMI}prediction>", f"<{TSUNAMI}difference>"


def replay_tsunami(
    *,
    stations: int = 6,
    days: int = 2,
    seed: int = 1,
    input: str | Path | Iterable[str | Path] | None = None,
) -> Replay:
    """Sea levels of NDBC files (a file, a folder, a glob, or several), or of a made-up sea with one tsunami."""
    notes: list[str] = []
    if input is None:
        records = made_records(stations, days, seed)
    else:
        sources = [input] if isinstance(input, str | Path) else list(input)
        files, notes = station_files(sources)
        records = tuple(map(read_station, files))
    for record in records:
        notes += record.report.notes()
    notes += _unplaced(records)
    return Replay(
        name="tsunami",
        programs=tuple(program(f"tsunami/{name}") for name in PROGRAMS),
        background=tuple(data(f"tsunami/{name}.ttl") for name in BACKGROUND),
        clock=Clock("datetime"),
        shown=("warnings", "alarms"),
        reads=("predictions", "alarms", "tsunamis", "warnings"),
        notes=tuple(notes),
        make_events=lambda: events(records),
        tell=lambda matches: _summary(records, collect(matches)),
        draw=lambda matches, path: _plot(records, collect(matches), path),
    )


def _unplaced(records: Iterable[StationRecord]) -> list[str]:
    known = {position.iri for position in stations()}
    unknown = [r.station for r in records if STATION + r.station not in known]
    if not unknown:
        return []
    return [f"no position is known of {', '.join(unknown)}: tsunamis are detected there, but no places are warned"]


def events(records: Iterable[StationRecord]) -> Iterator[Event]:
    """One triple a reading, the stations merged in order of time."""

    def of(record: StationRecord) -> Iterator[Event]:
        station = f"<{STATION}{record.station}>"
        for reading in record.readings:
            level = literal(reading.level, XSD + "decimal")
            yield Event(reading.time, reading.time, ((station, _WATER_LEVEL, level),))

    return heapq.merge(*map(of, records), key=lambda event: event.end)


# --- what was found ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Predicted:
    """A reading that was predicted: when, and the prediction and the difference in metres."""

    time: int
    prediction: float
    difference: float


@dataclass(slots=True)
class StationResult:
    """What the rules found at one station; ``places`` are (kilometres, name), ``broken`` counts impossible levels."""

    predicted: list[Predicted] = field(default_factory=list)
    alarms: list[Predicted] = field(default_factory=list)
    tsunamis: list[int] = field(default_factory=list)
    places: set[tuple[int, str]] = field(default_factory=set)
    broken: int = 0

    @property
    def largest(self) -> Predicted | None:
        return max(self.predicted, key=lambda p: abs(p.difference), default=None)


def _number(term: str) -> float:
    return float(parts(term)[0])


def _station(term: str) -> str:
    return iri_value(term).removeprefix(STATION).split("/")[0]


def collect(matches: Iterable[Found]) -> dict[str, StationResult]:
    """The matches by station."""
    results: dict[str, StationResult] = {}
    for match in matches:
        if match.end_us is None:
            continue
        match match.query:
            case "predictions":
                said = {predicate: (subject, value) for subject, predicate, value in match.triples or ()}
                reading, prediction = said[_PREDICTION]
                result = results.setdefault(_station(reading), StationResult())
                difference = _number(said[_DIFFERENCE][1])
                result.predicted.append(Predicted(match.end_us, _number(prediction), difference))
            case "alarms":
                b = match.bindings
                result = results.setdefault(_station(b["station"]), StationResult())
                alarm = Predicted(match.end_us, _number(b["prediction"]), _number(b["difference"]))
                result.alarms.append(alarm)
                result.broken += parts(b["broken"])[0] == "true"
            case "tsunamis":
                for subject, _, _ in match.triples or ():
                    results.setdefault(_station(subject), StationResult()).tsunamis.append(match.end_us)
            case "warnings":
                b = match.bindings
                result = results.setdefault(_station(b["station"]), StationResult())
                result.places.add((int(parts(b["km"])[0]), parts(b["name"])[0]))
    return results


def _summary(records: Iterable[StationRecord], results: dict[str, StationResult]) -> list[Row]:
    return [_row(record, results.get(record.station, StationResult())) for record in records]


def _row(record: StationRecord, result: StationResult) -> Row:
    largest = result.largest
    names = [name for _, name in sorted(result.places)]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    odd = []
    if result.broken:
        odd.append(f"broken gauge: {result.broken} differences above 5 m")
    if record.report.missing:
        odd.append(f"{record.report.missing} readings missing")
    if record.report.bad:
        odd.append(f"{record.report.bad} bad rows")
    return {
        "station": record.station,
        "readings": str(len(record.readings)),
        "predicted": str(len(result.predicted)),
        "alarms": str(len(result.alarms)),
        "tsunami detected": ", ".join(map(_short, result.tsunamis)) or "no",
        "largest difference": f"{largest.difference:+.3f} m at {_short(largest.time)}" if largest else "none",
        "places warned": shown or "none",
        "remarks": "; ".join(odd),
    }


def _short(time: int) -> str:
    """``03-11 05:49:00``: month, day and time of day."""
    text = render_datetime(time)
    return f"{text[5:10]} {text[11:19]}"


def _plot(records: tuple[StationRecord, ...], results: dict[str, StationResult], path: Path) -> None:
    from etalis_py.replays.plot_tsunami import draw  # matplotlib takes a while to import

    draw(records, results, path)
