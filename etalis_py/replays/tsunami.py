"""The tsunami replay ([EP] §6, Test 3): NOAA's DART algorithm in EP-SPARQL rules over sea levels.

The algorithm is in ``programs/tsunami/*.rq``, each with the reading it takes of NOAA's description where the published
data are sampled irregularly.  Here the levels become events, and the matches become a table and a picture.

What the rules and a plain computation do where the sampling interval changes says ``etalis replay tsunami --help``.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from pathlib import Path

from etalis_rules.terms import XSD, literal

from etalis_py.events import Event
from etalis_py.events.clock import Clock
from etalis_py.replays.dart_files import StationRecord, read_station, station_files
from etalis_py.replays.gazetteer import STATION, TSUNAMI, stations
from etalis_py.replays.replay import Replay
from etalis_py.replays.resources import data, program
from etalis_py.replays.tides import made_records
from etalis_py.replays.tsunami_results import StationResult, collect, summary

PROGRAMS = ("readings", "means", "minutes", "hours", "predictions", "alarms", "tsunamis", "warnings")
BACKGROUND = ("stations", "places", "distances")

_WATER_LEVEL = f"<{TSUNAMI}waterLevel>"


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
        tell=lambda matches: summary(records, collect(matches)),
        draw=lambda matches, path: _plot(records, collect(matches), path, made_up=input is None),
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


def _plot(records: tuple[StationRecord, ...], results: dict[str, StationResult], path: Path, *, made_up: bool) -> None:
    from etalis_py.replays.plot_tsunami import draw  # matplotlib takes a while to import

    draw(records, results, path, made_up=made_up)
