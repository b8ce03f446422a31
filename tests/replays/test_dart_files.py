"""NDBC's files: what is read, and what is told of the rest."""

from __future__ import annotations

import gzip

import pytest

from etalis_py.events.clock import parse_datetime
from etalis_py.replays import replay_tsunami
from etalis_py.replays.dart_files import TideReading, read_station, station_files
from etalis_py.replays.tides import made_records
from etalis_py.streams import StreamError

HEADER = "#YY  MM DD hh mm ss T   HEIGHT\n#yr  mo dy hr mn  s -        m\n"


def write(folder, name, rows):
    path = folder / name
    path.write_text(HEADER + "".join(row + "\n" for row in rows))
    return path


def test_the_newest_row_is_first_in_the_file_and_last_in_the_record(tmp_path):
    path = write(tmp_path, "21418_raw.txt", ["2011 03 11 05 49 00 2 5662.463", "2011 03 11 05 48 00 2 5662.317"])
    record = read_station(path)
    assert record.station == "21418"
    assert record.readings == (
        TideReading(parse_datetime("2011-03-11T05:48:00Z"), "5662.317", 2),
        TideReading(parse_datetime("2011-03-11T05:49:00Z"), "5662.463", 2),
    )
    assert record.report.notes() == []


def test_missing_and_corrupt_readings_are_told_and_not_fatal(tmp_path):
    rows = [
        "2011 03 11 06 30 00 1 4000.100",
        "2011 03 11 06 00 00 1 9999.000",
        "2011 03 11 05 45 00 1 4000.000",
        "2011 03 11 05 45 00 2 4000.001",
        "2011 13 11 05 30 00 1 4000.000",
        "2011 03 11 05 15 00 1 40x0.000",
        "2011 03 11 05 00 00 1 4020.000",
    ]
    record = read_station(write(tmp_path, "21418_raw.txt", rows))
    assert [r.level for r in record.readings] == ["4020.000", "4000.001", "4000.100"]
    assert record.report.notes() == [
        "station 21418 (21418_raw.txt): 1 reading missing",
        "station 21418 (21418_raw.txt): 2 rows are no readings (line 7: '2011 13 11 05 30 00 1 4000.000'; "
        "line 8: '2011 03 11 05 15 00 1 40x0.000')",
        "station 21418 (21418_raw.txt): 1 time given twice: the finer sampled reading was taken",
        "station 21418 (21418_raw.txt): gaps of more than 15 minutes: 2",
        "station 21418 (21418_raw.txt): 1 reading more than 5 m from the median: the gauge is broken",
    ]


def test_a_cut_off_file_is_read_as_far_as_it_goes(tmp_path):
    rows = "".join(f"2011 03 11 {h:02} {m:02} 00 2 5662.{h:02}{m % 10}\n" for h in range(24) for m in range(60))
    whole = gzip.compress((HEADER + rows).encode())
    path = tmp_path / "21418_raw.txt.gz"
    path.write_bytes(whole[: len(whole) // 2])
    record = read_station(path)
    assert 0 < len(record.readings) < 24 * 60
    assert any("the compressed file is damaged" in note for note in record.report.notes())


def test_a_folder_gives_its_stations_and_tells_what_else_it_holds(tmp_path):
    for name in ("21418_raw.txt", "21413.txt", "DART_locations.txt", "notes.md"):
        write(tmp_path, name, ["2011 03 11 05 48 00 2 5662.317"])
    files, notes = station_files([tmp_path])
    assert [f.name for f in files] == ["21413.txt", "21418_raw.txt"]
    assert notes == [f"{tmp_path}: not read, because the name is not that of a station: DART_locations.txt, notes.md"]


def test_a_glob_and_a_station_without_a_position(tmp_path):
    write(tmp_path, "99999_raw.txt", ["2011 03 11 05 48 00 2 5662.317"])
    replay = replay_tsunami(input=str(tmp_path / "*_raw.txt"))
    assert replay.notes == ("no position is known of 99999: tsunamis are detected there, but no places are warned",)
    [event] = replay.events
    assert event.triples[0][0] == "<http://example.org/tsunami/station/99999>"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("21418_raw.txt", "", "no reading is in this file"),
        ("absent_raw.txt", None, "cannot be read"),
    ],
)
def test_a_file_of_no_use_is_an_error_that_names_it(tmp_path, name, content, reason):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(StreamError, match=reason) as caught:
        read_station(path)
    assert str(path) in str(caught.value)


def test_an_empty_folder_and_an_empty_glob_are_errors(tmp_path):
    with pytest.raises(StreamError, match="no file of a station"):
        replay_tsunami(input=tmp_path)
    with pytest.raises(StreamError, match="no file fits"):
        replay_tsunami(input=str(tmp_path / "*.txt.gz"))


def test_the_made_up_sea_is_the_same_for_the_same_seed():
    assert made_records(2, 2, seed=3) == made_records(2, 2, seed=3)
    assert made_records(2, 2, seed=3) != made_records(2, 2, seed=4)
    assert {r.kind for r in made_records(1, 2, seed=3)[0].readings} == {1, 2, 3}


def test_a_sea_with_too_many_stations_is_refused():
    with pytest.raises(ValueError, match="stations must be from 1 to 15, found 16"):
        replay_tsunami(stations=16)
    with pytest.raises(ValueError, match="days must be 1 or more"):
        replay_tsunami(days=0)


def test_events_of_all_stations_come_in_order_of_time():
    times = [event.end for event in replay_tsunami(stations=4).events]
    assert times == sorted(times)
    assert len(times) > 2000
