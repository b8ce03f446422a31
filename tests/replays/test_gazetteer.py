"""Distances on the globe, and the background knowledge that was made of them."""

from __future__ import annotations

import pytest

from etalis_py.replays.gazetteer import NamedPoint, distance_km, distances_turtle, places, stations
from etalis_py.replays.resources import data, program


def test_great_circles():
    pole, null = NamedPoint("", "", 90, 0), NamedPoint("", "", 0, 0)
    assert distance_km(pole, null) == pytest.approx(10007.5, abs=0.1)  # a quarter of 40,030 km
    # Over the date line the short way: one degree of longitude on the equator.
    assert distance_km(NamedPoint("", "", 0, 179.5), NamedPoint("", "", 0, -179.5)) == pytest.approx(111.2, abs=0.1)


def test_the_shipped_distances_are_those_of_the_shipped_positions():
    assert data("tsunami/distances.ttl").read_text() == distances_turtle()


def test_positions_are_degrees_and_names_are_unique():
    for named in (stations(), places()):
        assert all(-90 <= p.latitude <= 90 and -180 <= p.longitude <= 180 for p in named)
        assert len({p.label for p in named}) == len(named)
    assert {"21418", "32412", "51407"} <= {s.label for s in stations()}


def test_what_is_not_shipped_is_an_error_that_names_it():
    with pytest.raises(FileNotFoundError, match=r"stock/nothing\.rq is not among the shipped programs"):
        program("stock/nothing")
