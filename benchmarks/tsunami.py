"""[EP] Test 3, the second application: tsunami detection ([EP] Figure 4), its rate, and its answers.

    python -m benchmarks.tsunami [--stations 6] [--days 4] [--plot figure.png]

The readings are those of ``../shared/data/dart-2011-tohoku`` (nine DART stations, March 2011) or, without it, of a
made-up sea.  NOAA's algorithm is in EP-SPARQL rules (``programs/tsunami``); a plain version of the same algorithm
(``tests/replays/dart_by_definition.py``) says which readings are predicted, and how far off they are.  Printed are the
rate in processor time, the stations, and the distribution of the differences from the predictions.  Fails if a
prediction is missing, superfluous, or differs by more than a tenth of a millimetre.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from benchmarks.harness import keep_to_one_core
from etalis_py import Engine, compile
from etalis_py.events.clock import SECOND, render_datetime
from etalis_py.replays.dart_files import StationRecord, read_station, station_files
from etalis_py.replays.tides import made_records
from etalis_py.replays.tsunami import replay_tsunami
from etalis_py.replays.tsunami_results import THRESHOLD_M, StationResult, collect
from tests.replays.dart_by_definition import Level, differences

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "dart-2011-tohoku"
TOLERANCE_M = 0.0001
EDGES_MM = (1, 3, 10, 30, 100, 300, 1000)


def plainly(record: StationRecord) -> dict[int, float]:
    """The differences of a station by time, in metres."""
    levels = [Level(r.time // SECOND, Fraction(r.level)) for r in record.readings]
    return {d.second * SECOND: float(d.metres) for d in differences(levels)}


def wrong(expected: dict[int, float], result: StationResult) -> int:
    """The number of predictions that are missing, superfluous, or too far from the plain computation."""
    differences = {p.time: p.difference for p in result.predicted}
    return len(expected.keys() ^ differences.keys()) + sum(
        abs(differences[t] - expected[t]) > TOLERANCE_M for t in expected.keys() & differences.keys()
    )


def histogram(millimetres: Sequence[float]) -> list[tuple[str, int]]:
    """How many differences lie between two edges."""
    edges = [0, *EDGES_MM]
    rows = [(f"{low:,} to {high:,}", sum(low <= d < high for d in millimetres)) for low, high in pairwise(edges)]
    return [*rows, (f"{edges[-1]:,} and more", sum(d >= edges[-1] for d in millimetres))]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tsunami", description="[EP] Test 3: tsunamis")
    parser.add_argument("--stations", type=int, default=6, help="stations of a made-up sea (default 6)")
    parser.add_argument("--days", type=int, default=4, help="days of a made-up sea (default 4)")
    parser.add_argument("--made-up", action="store_true", help="the made-up sea even where there are real readings")
    parser.add_argument("--plot", type=Path, help="draw levels, predictions and [EP] Figure 4 into this file")
    options = parser.parse_args(arguments)
    keep_to_one_core()
    real = DATA.is_dir() and not options.made_up
    if real:
        records = tuple(map(read_station, station_files([DATA])[0]))
    else:
        records = made_records(options.stations, options.days, 1)
    replay = replay_tsunami(stations=options.stations, days=options.days, input=DATA if real else None)
    events = list(replay.events)
    engine = Engine(compile(list(replay.programs)), background=list(replay.background), render=replay.clock.render)
    began = time.process_time()
    matches = [*engine.push_all(events), *engine.close()]
    seconds = time.process_time() - began
    results = collect(matches)
    print(
        f"{len(events):,} readings of {len(records)} stations, {len(matches):,} matches in {seconds:.1f} s: "
        f"{len(events) / seconds:,.0f} readings/s"
    )
    print("station  readings  predicted  above 30 mm  first alarm           largest, mm  wrong")
    faults = 0
    for record in records:
        result = results.get(record.station, StationResult())
        fault = wrong(plainly(record), result)
        faults += fault
        above = [a.time for a in result.predicted if abs(a.difference) > THRESHOLD_M]
        first = render_datetime(above[0])[:19] if above else "none"
        largest = f"{result.largest.difference * 1000:+,.1f}" if result.largest else "none"
        print(
            f"{record.station:7}  {len(record.readings):8,}  {len(result.predicted):9,}  {len(above):11,}  {first:19}"
            f"  {largest:>11}  {fault:5}"
        )
    off = [abs(p.difference) * 1000 for result in results.values() for p in result.predicted]
    print(f"difference of reading and prediction (a tsunami is suspected above {THRESHOLD_M * 1000:g} mm)")
    for label, count in histogram(off):
        print(f"  {label:>14} mm  {count:7,}")
    if options.plot:
        replay.plot(matches, options.plot)
        print(f"the picture is {options.plot}")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
