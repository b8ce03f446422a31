"""NOAA's algorithm in rules, against the same written down plainly."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import dart_by_definition as plain
import pytest
from running import run

from etalis_py.replays import replay_tsunami
from etalis_py.replays.dart_files import read_station
from etalis_py.replays.tides import made_records
from etalis_py.replays.tsunami_results import collect

REAL = Path(__file__).parents[3] / "shared" / "data" / "dart-2011-tohoku"
EARTHQUAKE = int(datetime(2011, 3, 11, 5, 46, 24, tzinfo=UTC).timestamp())
SECOND = 1_000_000


def assert_agree(result, expected):
    """Every prediction, every threshold crossing and the largest difference; decimals against exact fractions."""
    got = {p.time // SECOND: p for p in result.predicted}
    assert got.keys() == {d.second for d in expected}
    for d in expected:
        assert got[d.second].prediction == pytest.approx(float(d.prediction), abs=1e-8)
        assert got[d.second].difference == pytest.approx(float(d.metres), abs=1e-8)
    alarms = [d.second for d in expected if abs(d.metres) > plain.THRESHOLD]
    assert sorted(a.time // SECOND for a in result.alarms) == alarms
    largest = max(expected, key=lambda d: abs(d.metres))
    assert result.largest.time == largest.second * SECOND


def write_ndbc(path, rows):
    """An NDBC file, newest row first: (second, T, height as text)."""
    lines = ["#YY  MM DD hh mm ss T   HEIGHT", "#yr  mo dy hr mn  s -        m"]
    for second, kind, height in sorted(rows, reverse=True):
        lines.append(f"{datetime.fromtimestamp(second, UTC):%Y %m %d %H %M %S} {kind} {height}")
    with gzip.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")


def test_a_straight_rise_is_predicted_and_a_step_is_an_alarm(tmp_path):
    # One millimetre a minute for five hours, then 50 mm more at once.
    start = 1_300_000_020
    rows = [(start + 60 * i, 2, f"{4000 + i / 1000 + (0.05 if i >= 300 else 0):.3f}") for i in range(310)]
    write_ndbc(tmp_path / "21418_x.txt.gz", rows)
    replay = replay_tsunami(input=tmp_path)
    result = collect(run(replay))["21418"]
    before = [p for p in result.predicted if p.time < rows[300][0] * SECOND]
    # t' is 5.5 minutes with a reading a minute, the coefficients are for 5.25: a quarter of a minute of the rise.
    assert {round(p.difference * 1000, 6) for p in before} == {0.25}
    first = result.alarms[0]
    assert first.time == rows[300][0] * SECOND
    assert first.difference == pytest.approx(0.05025)
    assert result.tsunamis == [first.time]
    # Ten minutes later the mean has risen as far, so nothing is wrong any more.
    assert len(result.alarms) == 4


def test_fifteen_seconds_are_noaas_own_sampling(tmp_path):
    # The cubic formula extrapolates a parabola; t' is 5.125 minutes instead of 5.25, an eighth of a minute of its slope
    # (5.8 mm a minute at the end), and a mean of ten minutes lies a little inside of the curve.
    start = 1_300_000_020
    rows = [(start + 15 * i, 3, f"{4000 + (i / 240 - 2) ** 2 * 0.1:.6f}") for i in range(900)]
    write_ndbc(tmp_path / "21418_x.txt.gz", rows)
    result = collect(run(replay_tsunami(input=tmp_path)))["21418"]
    assert len(result.predicted) > 150
    assert max(abs(p.difference) for p in result.predicted) < 0.0015
    assert_agree(result, plain.differences(plain.read(tmp_path / "21418_x.txt.gz")))


def test_one_reading_in_fifteen_minutes_predicts_nothing(tmp_path):
    rows = [(1_300_000_020 + 900 * i, 1, f"{4000 + (i % 7):.3f}") for i in range(60)]
    write_ndbc(tmp_path / "21418_x.txt.gz", rows)
    assert collect(run(replay_tsunami(input=tmp_path))) == {}


@pytest.mark.parametrize(
    ("before", "after", "predicted"),
    [
        (900, 60, [m * 60 for m in (5, 6, 7, *range(11, 31))]),
        (60, 900, []),
        (60, 15, [n * 15 for n in range(1, 31)]),
    ],
)
def test_a_change_of_the_sampling_interval_is_as_the_help_says(tmp_path, before, after, predicted):
    start = 1_300_000_500
    changed = start + 5 * 3600
    rows = [(second, 1, "4000.000") for second in range(start, changed + 1, before)]
    rows += [(changed + after * i, 2, "4000.000") for i in range(1, 31)]
    write_ndbc(tmp_path / "21418_x.txt.gz", rows)
    results = collect(run(replay_tsunami(input=tmp_path)))
    seconds = [p.time // SECOND - changed for p in results["21418"].predicted] if results else []
    assert sorted(second for second in seconds if second > 0) == predicted


def test_nothing_is_concluded_from_a_gap(tmp_path):
    start = 1_300_000_500
    changed = start + 5 * 3600
    rows = [(start + 60 * i, 2, "4000.000") for i in range(301)]
    rows += [(changed + 1200 + 60 * i, 2, "4000.000") for i in range(100)]
    write_ndbc(tmp_path / "21418_x.txt.gz", rows)
    result = collect(run(replay_tsunami(input=tmp_path)))["21418"]
    predicted = {(p.time // SECOND - changed - 1200) // 60 for p in result.predicted}
    assert sorted(set(range(100)) - predicted) == [*range(9), *range(42, 67)]


def test_irregular_sampling_with_gaps_agrees_with_the_plain_computation(tmp_path):
    # The made-up sea changes between 15 minutes, one minute and 15 seconds, and loses readings; here also long gaps.
    for number, record in zip(("21418", "21413"), made_records(2, 2, seed=5), strict=True):
        kept = [r for i, r in enumerate(record.readings) if not 300 <= i < 330 and i % 41]
        write_ndbc(tmp_path / f"{number}_x.txt.gz", [(r.time // SECOND, r.kind, r.level) for r in kept])
    results = collect(run(replay_tsunami(input=tmp_path)))
    assert results.keys() == {"21418", "21413"}
    for number, result in results.items():
        assert_agree(result, plain.differences(plain.read(tmp_path / f"{number}_x.txt.gz")))


def test_one_wave_is_detected_once_at_each_station_in_the_order_of_distance():
    replay = replay_tsunami(stations=3, seed=2)
    results = collect(run(replay))
    detected = [results[row["station"]].tsunamis for row in replay.summary([])]
    assert [len(times) for times in detected] == [1, 1, 1]
    assert detected == sorted(detected)
    assert detected[0][0] // SECOND > EARTHQUAKE


def test_the_places_within_the_radius_are_warned():
    results = collect(run(replay_tsunami(stations=1)))
    [(station, result)] = results.items()
    assert station == "21418"
    assert (680, "Sendai") in result.places
    assert max(km for km, _ in result.places) <= 1500
    assert "Naha" not in {name for _, name in result.places}  # 2403 km


# --- the real thing ---------------------------------------------------------------------------------------------

first_firing = pytest.mark.skipif(not REAL.is_dir(), reason="needs the NDBC files of ../shared/data")


@first_firing
@pytest.mark.parametrize(
    ("station", "first"),
    [("21418", "2011-03-11 05:49:00"), ("51407", "2011-03-11 13:26:00"), ("32412", "2011-03-12 00:51:00")],
)
def test_tohoku(station, first):
    path = REAL / f"{station}_raw.txt.gz"
    expected = plain.differences(plain.read(path))
    result = collect(run(replay_tsunami(input=path)))[station]
    assert_agree(result, expected)
    fired = min(a.time for a in result.alarms if a.time // SECOND >= EARTHQUAKE) // SECOND
    assert f"{datetime.fromtimestamp(fired, UTC):%Y-%m-%d %H:%M:%S}" == first


@pytest.mark.nightly
@first_firing
def test_the_whole_directory_agrees_at_every_station():
    results = collect(run(replay_tsunami(input=REAL)))
    files = {path.name[:5]: path for path in REAL.glob("*_raw.txt.gz")}
    assert results.keys() == files.keys()
    for station, path in files.items():
        assert_agree(results[station], plain.differences(plain.read(path)))


@first_firing
def test_a_broken_gauge_is_told():
    record = read_station(REAL / "21416_raw.txt.gz")
    assert record.report.implausible == 138
    assert any("the gauge is broken" in note for note in record.report.notes())
