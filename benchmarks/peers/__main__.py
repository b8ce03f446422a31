"""This engine beside Esper, Siddhi, Flink CEP, DuckDB and Polars, on one core and the same events.

    python -m benchmarks.peers [--only W1,W2] [--events N] [--rounds 3] [--json FILE]

``make bench-peers`` fetches the Java engines with Maven first.  Each engine runs in a process of its own, pinned to one
core, all engines in turn in every round, and the median counts.  The figures are events a second of processor time, all
threads of the process together, from objects in memory; those of ours in columns are from Arrow to Arrow.  The Java
engines are warmed up by half a million events in the deployment that is then measured.  If engines give a workload the
same meaning, their matches are counted against ours.

What Python can do bounds the rows: the plain loops of ``benchmarks.workloads``, which only answer the one question,
take about as long as the rows for W2 and W4, and two thirds of their time for W5, measured in turns on a busy machine.
Of W5 the loop alone takes 1.0 µs an event, and Esper 0.44. Fewer loops, calls and items of tuples for a single triple
have brought somewhat less than a tenth of the time of W4 and a sixth of that of W5, reading doubles with many digits
by a parser of JSON another tenth of that of W4. What is left of W4 is spread thinly: events are fed, a bucket and its
edge are looked up, 8.5 goals are looked at, a goal and a match are made. By itself, a search that does not test
classes takes 0.1 µs less, which is too little to keep.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.workloads import COMPARISONS, JAVA, Comparison, dump, expected

HERE = Path(__file__).resolve().parent
OUT = HERE.parents[1] / "out"
WARM = 500_000
OURS = ("rows", "columns")
SMALL = {"W1r": 20_000}  # the number of matches grows with the square of the events
OPENED = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.util", "java.time")]


def sizes(engine: str, comparison: Comparison, events: int) -> tuple[int, int]:
    """How many events an engine is given, and how many of them are for warm-up."""
    if comparison.name in SMALL:
        return SMALL[comparison.name], 0
    most = dict(comparison.most).get(engine)
    if most is not None:
        return most, most // 2
    return events + WARM, WARM if engine in JAVA else 0


def command(engine: str, comparison: Comparison, events: int, core: int) -> list[str]:
    """The command that runs one engine over one workload, on one core."""
    pinned = ["taskset", "-c", str(core)]
    size, warm = sizes(engine, comparison, events)
    if engine in OURS:
        return [*pinned, sys.executable, "-m", "benchmarks.peers.ours", engine, comparison.name, str(size)]
    file = dump(comparison.workload, size, OUT / "peers")
    if engine not in JAVA:
        return [*pinned, sys.executable, "-m", "benchmarks.peers.python_peers", engine, comparison.name, str(file)]
    return [*pinned, *java(), engine, comparison.name, str(file), str(warm)]


def java() -> list[str]:
    """The command that starts the Java engines."""
    target = HERE / "java" / "target"
    if not (target / "classpath").exists():
        raise SystemExit("the Java engines are not built: run make bench-peers, which fetches them with Maven")
    path = os.pathsep.join([str(target / "classes"), (target / "classpath").read_text().strip()])
    return ["java", "-Xmx6g", "-XX:+UseSerialGC", *OPENED, "-cp", path, "peers.Main"]


def run(engine: str, comparison: Comparison, events: int, core: int) -> dict[str, float]:
    """The figures of one run: events, matches, seconds."""
    done = subprocess.run(command(engine, comparison, events, core), capture_output=True, text=True, timeout=900)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise SystemExit(f"{engine} failed on {comparison.name}:\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    figures: dict[str, float] = json.loads(lines[-1])
    return figures


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="this engine beside others")
    parser.add_argument("--only", metavar="NAMES", help="these workloads, separated by commas: W1,W2u")
    parser.add_argument(
        "--engines", metavar="NAMES", help="these engines beside ours: esper,siddhi,flink,duckdb,polars"
    )
    parser.add_argument("--events", type=int, default=1_000_000, help="measured events of each (default 1,000,000)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each; the median counts (default 3)")
    parser.add_argument("--json", type=Path, default=OUT / "peers.json", metavar="FILE", help="where to write the JSON")
    options = parser.parse_args(arguments)
    names = None if options.only is None else set(options.only.split(","))
    wanted = None if options.engines is None else set(options.engines.split(","))
    core = max(os.sched_getaffinity(0))
    document: dict[str, dict[str, object]] = {}
    wrong = 0
    for comparison in COMPARISONS:
        if names is not None and comparison.name not in names:
            continue
        engines = [e for e in (*OURS, *comparison.engines) if wanted is None or e in wanted or e in OURS]
        speeds: dict[str, list[float]] = {engine: [] for engine in engines}
        matches: dict[str, int] = {}
        for _ in range(options.rounds):
            for engine in engines:
                figures = run(engine, comparison, options.events, core)
                speeds[engine].append(figures["events"] / figures["seconds"])
                matches[engine] = int(figures["matches"])
        medians = {engine: statistics.median(values) for engine, values in speeds.items()}
        print(f"{comparison.name}: {comparison.workload.title}")
        for engine, speed in medians.items():
            ratios = "".join(f"{medians[e] / speed:8.2f}" for e in OURS)
            size, _ = sizes(engine, comparison, options.events)
            print(
                f"  {engine:8}{speed:13,.0f} events/s   ours /{ratios}   {matches[engine]:,} matches of {size:,} events"
            )
        for engine in engines:
            if engine in OURS or engine in comparison.same:
                right = expected(comparison.workload, sizes(engine, comparison, options.events)[0])
                if matches[engine] != right:
                    print(f"  WRONG: {engine} has {matches[engine]:,} matches, by definition there are {right:,}")
                    wrong += 1
        if comparison.otherwise:
            print(f"  {comparison.otherwise}")
        document[comparison.name] = {"events/s": medians, "matches": matches}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
