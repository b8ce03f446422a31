"""A made-up sea for the tsunami replay: tides, noise and one tsunami, sampled as DART stations publish it.

The tide is a sum of harmonic constituents with amplitudes and phases drawn for each station.  The tsunami leaves the
epicentre with the earthquake and runs at the speed of long waves, √(g·depth); it is a damped wave train whose height
falls with the square root of the distance.  A station publishes one reading in 15 minutes; from two hours before the
wave until eight hours after it one a minute, and one in 15 seconds for the first ten minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, exp, pi, sin, sqrt
from random import Random

from etalis_rules.calendar import SECOND

from etalis_py.events.clock import parse_datetime
from etalis_py.replays.dart_files import FileReport, StationRecord, TideReading
from etalis_py.replays.gazetteer import STATION, NamedPoint, distance_km, stations

START = parse_datetime("2011-03-10T00:00:00Z") // SECOND
EARTHQUAKE = parse_datetime("2011-03-11T05:46:24Z") // SECOND
EPICENTRE = NamedPoint("", "epicentre", 38.30, 142.37)

# name: period in hours, typical amplitude in metres over the deep Pacific
CONSTITUENTS = {
    "M2": (12.4206012, 0.30),
    "S2": (12.0, 0.12),
    "N2": (12.65834751, 0.06),
    "K1": (23.93447213, 0.22),
    "O1": (25.81933871, 0.16),
    "P1": (24.06588766, 0.07),
}
WAVE_SPEED_KMH = 3.6 * sqrt(9.81 * 4200)
WAVE_PERIOD_S = 25 * 60
WAVE_DECAY_S = 90 * 60
NOISE_M = 0.0006
LOST = 0.004


@dataclass(frozen=True, slots=True)
class Sea:
    """The true level at one station, in metres, as a function of time (seconds since the epoch)."""

    depth: float
    tide: tuple[tuple[float, float, float], ...]  # period in seconds, amplitude, phase
    arrival: float
    height: float

    def level(self, second: float) -> float:
        level = self.depth + sum(a * cos(2 * pi * second / period + phase) for period, a, phase in self.tide)
        since = second - self.arrival
        if since > 0:
            level += self.height * sin(2 * pi * since / WAVE_PERIOD_S) * exp(-since / WAVE_DECAY_S)
        return level


def make_sea(station: NamedPoint, random: Random) -> Sea:
    """A sea at a station; what is drawn depends on the random numbers alone."""
    tide = tuple(
        (hours * 3600, typical * random.uniform(0.5, 1.5), random.uniform(0, 2 * pi))
        for hours, typical in CONSTITUENTS.values()
    )
    kilometres = max(distance_km(EPICENTRE, station), 50.0)
    arrival = EARTHQUAKE + kilometres / WAVE_SPEED_KMH * 3600
    return Sea(round(random.uniform(3000, 6000), 3), tide, arrival, 0.9 * sqrt(500 / kilometres))


def made_records(count: int, days: int, seed: int) -> tuple[StationRecord, ...]:
    """The records of the stations nearest to the epicentre."""
    known = sorted(stations(), key=lambda s: distance_km(EPICENTRE, s))
    if not 1 <= count <= len(known):
        raise ValueError(f"stations must be from 1 to {len(known)}, found {count}")
    if days < 1:
        raise ValueError(f"days must be 1 or more, found {days}")
    return tuple(_record(station, days, Random(f"{seed} {station.label}")) for station in known[:count])


def _record(station: NamedPoint, days: int, random: Random) -> StationRecord:
    sea = make_sea(station, random)
    readings = []
    lost = 0
    for second, kind in _moments(int(sea.arrival), days):
        level = f"{sea.level(second) + random.gauss(0, NOISE_M):.3f}"
        if random.random() < LOST:
            lost += 1
        else:
            readings.append(TideReading(second * SECOND, level, kind))
    name = station.iri.removeprefix(STATION)
    return StationRecord(name, tuple(readings), FileReport(name, "made up", len(readings), missing=lost))


def _moments(arrival: int, days: int) -> list[tuple[int, int]]:
    """When a station is read, and the kind of each reading."""
    end = START + days * 86_400
    first_minute = (arrival - 2 * 3600) // 60 * 60
    kinds = dict.fromkeys(range(START, end, 900), 1)
    kinds |= dict.fromkeys(range(first_minute, min(arrival + 8 * 3600, end), 60), 2)
    first_quarter = arrival // 15 * 15
    kinds |= dict.fromkeys(range(first_quarter, min(first_quarter + 600, end), 15), 3)
    return sorted(kinds.items())
