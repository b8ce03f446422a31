"""Stations and coastal places on the globe, and how far apart they are.

The distances are background knowledge of the tsunami replay (``data/tsunami/distances.ttl``), because SPARQL has no
trigonometry.  ``distances_turtle`` is how that file was made; run it again when stations or places change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import asin, cos, radians, sin, sqrt
from pathlib import Path

import pyoxigraph
from etalis_rules.terms import RDFS

from etalis_py.replays.resources import data

EARTH_RADIUS_KM = 6371.0
FARTHEST_KM = 3000
TSUNAMI = "http://example.org/tsunami#"
STATION = "http://example.org/tsunami/station/"
PLACE = "http://example.org/tsunami/place/"
_GEO = "http://www.w3.org/2003/01/geo/wgs84_pos#"


@dataclass(frozen=True, slots=True)
class NamedPoint:
    """A named point: its IRI, its label, degrees north and degrees east (-180 to 180)."""

    iri: str
    label: str
    latitude: float
    longitude: float


def distance_km(a: NamedPoint, b: NamedPoint) -> float:
    """The great-circle distance, by the haversine formula on a sphere."""
    north = sin(radians(b.latitude - a.latitude) / 2) ** 2
    east = sin(radians(b.longitude - a.longitude) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * asin(sqrt(north + cos(radians(a.latitude)) * cos(radians(b.latitude)) * east))


def read_positions(path: Path) -> tuple[NamedPoint, ...]:
    """What has a position and a label in a Turtle file, in the order of the IRIs."""
    stations: dict[str, dict[str, str]] = {}
    for quad in pyoxigraph.parse(path.read_bytes(), pyoxigraph.RdfFormat.TURTLE):
        if isinstance(quad.subject, pyoxigraph.NamedNode) and isinstance(quad.object, pyoxigraph.Literal):
            stations.setdefault(quad.subject.value, {})[quad.predicate.value] = quad.object.value
    label, latitude, longitude = RDFS + "label", _GEO + "lat", _GEO + "long"
    return tuple(
        NamedPoint(iri, properties[label], float(properties[latitude]), float(properties[longitude]))
        for iri, properties in sorted(stations.items())
        if label in properties and latitude in properties and longitude in properties
    )


def stations() -> tuple[NamedPoint, ...]:
    return read_positions(data("tsunami/stations.ttl"))


def places() -> tuple[NamedPoint, ...]:
    return read_positions(data("tsunami/places.ttl"))


def near(around: Iterable[NamedPoint], who: Iterable[NamedPoint]) -> Iterator[tuple[NamedPoint, NamedPoint, int]]:
    """The places within ``FARTHEST_KM`` of each station, nearest first, with the distance in whole kilometres."""
    who = tuple(who)
    for station in around:
        measured = sorted(((distance_km(station, place), place) for place in who), key=lambda pair: pair[0])
        yield from ((station, place, round(km)) for km, place in measured if km <= FARTHEST_KM)


def distances_turtle() -> str:
    """The text of ``distances.ttl``."""
    lines = [
        f"# Places within {FARTHEST_KM} km of a station, along great circles; made from stations.ttl and places.ttl.",
        f"@prefix : <{TSUNAMI}> .",
        f"@prefix station: <{STATION}> .",
        f"@prefix place: <{PLACE}> .",
        "",
    ]
    for station, place, km in near(stations(), places()):
        there = place.iri.removeprefix(PLACE)
        lines.append(f"station:{station.iri.removeprefix(STATION)} :near [ :place place:{there} ; :km {km} ] .")
    return "\n".join(lines) + "\n"
