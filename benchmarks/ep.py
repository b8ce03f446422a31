"""[EP] §6, Tests 1 to 3: the paper's tables and figures for this engine, one after the other.

    python -m benchmarks.ep [--quick] [--plots DIR]

Test 1 is ``benchmarks.event_processing`` (Figure 1), Test 2 ``benchmarks.taxonomy_stream`` (Figure 2), Test 3
``benchmarks.delivery`` (Figure 3) and ``benchmarks.tsunami`` (Figure 4); each can be run on its own.  Every answer is
checked against a computation without rules: fails when one of the tests does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import delivery, event_processing, taxonomy_stream, tsunami


def tests(quick: bool, plots: Path | None) -> list[tuple[str, Callable[[Sequence[str]], int], list[str]]]:
    """Title, command and arguments of each test."""

    def picture(name: str) -> list[str]:
        return ["--plot", str(plots / f"{name}.svg")] if plots else []

    return [
        (
            "Test 1: event processing",
            event_processing.main,
            ["--events", "2000" if quick else "20000", *picture("figure1")],
        ),
        ("Test 2: stream reasoning", taxonomy_stream.main, ["--events", "20000" if quick else "200000"]),
        (
            "Test 3: goods delivery",
            delivery.main,
            [*(["--agents", "1,2", "--locations", "5"] if quick else []), *picture("figure3")],
        ),
        (
            "Test 3: tsunami detection",
            tsunami.main,
            [*(["--made-up", "--stations", "2", "--days", "2"] if quick else []), *picture("figure4")],
        ),
    ]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ep", description="[EP] Tests 1 to 3")
    parser.add_argument("--quick", action="store_true", help="small sizes: do the tests run, are their answers right?")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="draw Figures 1, 3 and 4 into this folder")
    options = parser.parse_args(arguments)
    if options.plots:
        options.plots.mkdir(parents=True, exist_ok=True)
    failed = []
    for title, command, given in tests(options.quick, options.plots):
        print(f"\n{title}\n{'-' * len(title)}", flush=True)
        if command(given):
            failed.append(title)
    if failed:
        print(f"\nwrong answers in {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
