"""[EP] Test 1: throughput of the sliding averages, by the size of the window ([EP] Figure 1).

    python -m benchmarks.event_processing [--events 20000] [--plot figure.svg]

The stream consists of prices of ACME at equal intervals, so that every triple contributes to complex events, as in the
paper.  Events are made before the clock starts (the paper pre-parses them too); rates are of processor time on one
core.

(a) A window of ten days that holds n prices.  *Queries (5), (6)* are those of the paper (``programs/stock``): a sum for
every two prices within the window, each from the one before, and the average once ten days are full.  Every price makes
n sums and is looked at between any two others, so a price costs about n × n.  *AVG WITHIN P10D* expresses the same in
one line.

(b) The last n prices: *AVG WITHIN n EVENTS*.

Every average (and every sum of query (5)) is checked against a loop over the prices.  Fails if one is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from etalis_rules.terms import XSD, parts

from benchmarks.harness import keep_to_one_core
from etalis_py import Engine, Event, Program, compile
from etalis_py.events.clock import DAY
from etalis_py.replays.market import HAS_PRICE, STOCK
from etalis_py.replays.resources import program

TEN_DAYS = 10 * DAY
PRINTED = ("first_sum", "next_sum", "average")
AVERAGE = f"PREFIX : <{STOCK}> SELECT (AVG(?price) AS ?average) WHERE {{ :ACME :hasStockPrice ?price }} WITHIN "
NARROW, WIDE = (2, 5, 10, 20), (2, 5, 10, 20, 100, 1000)
HAS_COUNT, HAS_SUM = f"<{STOCK}hasCount>", f"<{STOCK}hasSum>"
ROUNDING = Decimal(10) ** -12


@dataclass(frozen=True, slots=True)
class Measured:
    """One cell of the figure: a window of a number of prices, and its cost."""

    query: str
    window: int
    events: int
    complex_events: int
    seconds: float
    wrong: int

    @property
    def rate(self) -> float:
        return self.events / self.seconds


def price(number: int) -> int:
    return number * 37 % 101 + 1


def prices(count: int, window: int) -> list[Event]:
    """Prices so far apart that ten days hold ``window`` of them, and never end exactly at one."""
    apart = 2 * TEN_DAYS // (2 * window - 1)
    return [
        Event(n * apart, n * apart, ((f"<{STOCK}ACME>", HAS_PRICE, f'"{price(n)}"^^<{XSD}integer>'),))
        for n in range(count)
    ]


def averages(count: int, window: int, *, full: bool) -> Iterator[tuple[int, Decimal]]:
    """The average after each price, by its number; with ``full`` only if a price lies before the window."""
    for last in range(window if full else 0, count):
        held = [price(n) for n in range(max(last - window + 1, 0), last + 1)]
        yield last, Decimal(sum(held)) / len(held)


def sums(count: int, window: int) -> Counter[tuple[int, int]]:
    """The counts and sums of all runs of prices within the window."""
    results: Counter[tuple[int, int]] = Counter()
    for last in range(count):
        total = 0
        for held in range(min(window, last + 1)):
            total += price(last - held)
            results[held + 1, total] += 1
    return results


def measure(query: str, compiled: Program, count: int, window: int, *, printed: bool) -> Measured:
    events = prices(count, window)
    engine = Engine(compiled)
    began = time.process_time()
    matches = [*engine.push_all(events), *engine.close()]
    seconds = time.process_time() - began
    apart = events[1].end
    answers = [m for m in matches if "average" in m.bindings]
    reported = [(m.end_us // apart, Decimal(parts(m.bindings["average"])[0])) for m in answers]
    wanted = list(averages(count, window, full=printed))
    wrong = abs(len(reported) - len(wanted)) + sum(
        a != b or abs(x - y) > ROUNDING for (a, x), (b, y) in zip(reported, wanted, strict=False)
    )
    if printed:
        results: Counter[tuple[int, int]] = Counter()
        for match in matches:
            values = {p: int(parts(o)[0]) for _, p, o in match.triples or ()}
            if values:
                results[values[HAS_COUNT], values[HAS_SUM]] += 1
        expected = sums(count, window)
        wrong += ((results - expected) + (expected - results)).total()
    return Measured(query, window, count, len(matches), seconds, wrong)


def measured(events: int) -> Iterator[tuple[str, list[Measured]]]:
    """The two halves of the figure; the number of events is chosen so that each window takes about as long."""
    printed = compile([program(f"stock/{name}") for name in PRINTED])
    within = compile(AVERAGE + "P10D")
    yield (
        "(a) a window of ten days",
        [
            *(measure("queries (5), (6)", printed, max(events * 8 // (n * n), 3 * n), n, printed=True) for n in NARROW),
            *(measure("AVG WITHIN P10D", within, max(events, 2 * n), n, printed=False) for n in WIDE),
        ],
    )
    yield (
        "(b) a window of n prices",
        [
            measure("AVG WITHIN n EVENTS", compile(f"{AVERAGE}{n} EVENTS"), max(events, 2 * n), n, printed=False)
            for n in WIDE
        ],
    )


def draw(halves: Sequence[tuple[str, Sequence[Measured]]], path: Path) -> None:
    """[EP] Figure 1: events per second against the prices in the window."""
    from matplotlib.ticker import FuncFormatter

    from etalis_py.replays.figures import BLUE, ORANGE, new_figure, plain, save

    figure = new_figure(10, 4, "Throughput of sliding averages")
    rates = [r.rate for _, results in halves for r in results]
    numbers = FuncFormatter(lambda value, _: f"{value:,.0f}")
    for place, (title, results) in enumerate(halves, 1):
        axes = figure.add_subplot(1, len(halves), place)
        for colour, query in zip(
            (ORANGE, BLUE) if place == 1 else (BLUE,), dict.fromkeys(r.query for r in results), strict=True
        ):
            points = [(r.window, r.rate) for r in results if r.query == query]
            axes.plot(*zip(*points, strict=True), marker="o", color=colour, label=query)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(min(rates) / 2, max(rates) * 3)
        axes.xaxis.set_major_formatter(numbers)
        axes.yaxis.set_major_formatter(numbers)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("prices in the window")
        axes.set_ylabel("events/s")
        axes.legend(fontsize=8)
        plain(axes)
    save(figure, path)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.event_processing", description="[EP] Test 1")
    parser.add_argument("--events", type=int, default=20_000, help="events for the cheapest windows (default 20,000)")
    parser.add_argument("--plot", type=Path, help="draw [EP] Figure 1 into this file")
    options = parser.parse_args(arguments)
    keep_to_one_core()
    halves = []
    for title, results in measured(options.events):
        halves.append((title, results))
        print(
            f"{title}\n  {'query':20} {'prices':>6} {'events':>8} {'complex':>8} {'seconds':>8} {'events/s':>9}  wrong"
        )
        for r in results:
            print(
                f"  {r.query:20} {r.window:6,} {r.events:8,} {r.complex_events:8,} {r.seconds:8.2f} {r.rate:9,.0f}"
                f"  {r.wrong:5}"
            )
    if options.plot:
        draw(halves, options.plot)
        print(f"the picture is {options.plot}")
    return int(any(r.wrong for _, results in halves for r in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
