"""The pictures hold what was found, and are written whole or not at all."""

from __future__ import annotations

import re

import pytest
from running import run

from etalis_py.replays import replay_stock, replay_tsunami
from etalis_py.streams import SinkError


@pytest.fixture(scope="module")
def sea():
    replay = replay_tsunami(stations=2)
    return replay, run(replay)


@pytest.fixture(scope="module")
def market():
    replay = replay_stock(companies=60, events=5000, seed=3)
    return replay, run(replay)


def texts(path):
    """The texts of an SVG, which matplotlib leaves as comments beside the glyphs."""
    return re.findall(r"<!-- (.*?) -->", path.read_text())


def test_the_sea_has_a_panel_for_each_station_and_the_histogram(sea, tmp_path):
    replay, matches = sea
    replay.plot(matches, tmp_path / "sea.svg")
    said = texts(tmp_path / "sea.svg")
    for number, row in enumerate(replay.summary(matches), 1):
        first = row["tsunami detected"].split()[1]
        assert f"made-up buoy {number}: {row['alarms']} alarms, the first at {first}" in said
        assert not any(row["station"] in text for text in said)  # it is the number of a real one
    predicted = sum(int(row["predicted"]) for row in replay.summary(matches))
    alarms = sum(int(row["alarms"]) for row in replay.summary(matches))
    expected = f"All stations: {alarms:,} of {predicted:,} predicted readings are more than 30 mm off "
    assert any(text.startswith(expected) for text in said)
    assert {"reading", "prediction", "alarms", "difference of reading and prediction, mm"} <= set(said)


def test_the_market_shows_the_strongest_matches_of_each_query(market, tmp_path):
    replay, matches = market
    replay.plot(matches, tmp_path / "market.svg")
    said = texts(tmp_path / "market.svg")
    strongest = replay.summary(matches)[0]
    assert f"{strongest['company']} fell by more than 30 %, then rose: {strongest['matches']} matches" in said
    assert any("rose by more than half" in text for text in said)
    assert "ACME: average price over ten days" in said


@pytest.mark.filterwarnings("error")
def test_nothing_found_is_still_a_picture(sea, market, tmp_path):
    for replay, _ in (sea, market):
        replay.plot([], tmp_path / "nothing.svg")
    assert "ACME: no average over ten days" in texts(tmp_path / "nothing.svg")


@pytest.mark.parametrize(("ending", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_the_ending_says_what_is_written(sea, tmp_path, ending, start):
    replay, matches = sea
    replay.plot(matches, tmp_path / f"sea{ending}")
    assert (tmp_path / f"sea{ending}").read_bytes().startswith(start)
    assert [p.name for p in tmp_path.iterdir()] == [f"sea{ending}"]


def test_another_ending_and_an_absent_folder_are_errors_that_say_what_to_do(sea, tmp_path):
    replay, matches = sea
    with pytest.raises(SinkError, match="names no picture") as caught:
        replay.plot(matches, tmp_path / "sea.bmp")
    assert ".png, .svg, .pdf" in str(caught.value)
    with pytest.raises(SinkError, match="folder does not exist"):
        replay.plot(matches, tmp_path / "absent" / "sea.png")
    assert list(tmp_path.iterdir()) == []
