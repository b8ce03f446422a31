"""Many standing queries here and in Esper: the alerts of ``benchmarks.many_queries``, and the same events.

    python -m benchmarks.peers.many [--counts 1000,10000] [--events N]

``make bench-peers`` fetches Esper first.  It runs on one core; the time is that of the processor, all threads together.
Ours are measured in rows and in columns, from Arrow.  All are warmed up by as many events in the deployment that is
then measured.  Compiling and deploying is timed separately.  All must have the same number of matches.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from etalis_rules.terms import parts

from benchmarks.many_queries import BATCH, alerts, column_batches, prices
from benchmarks.peers.__main__ import OUT, java
from etalis_py import Engine, Event, compile

PRICE = "predicate='price'"
HALT = "predicate='halt'"
THEN = "select * from pattern [every x=Event({first}) -> (every y=Event({then})) where timer:within({time})]"
KINDS = (
    "select * from Event(subject='c{a}', predicate='price', value > {k})",
    "select * from Event(subject='c{a}', predicate='price', value < {k})",
    THEN.format(
        first="subject='c{a}', " + PRICE, then="subject='c{a}', " + PRICE + ", value > x.value + {k}", time="{long}"
    ),
    THEN.format(
        first="subject='c{a}', " + PRICE, then="subject='c{b}', " + PRICE + ", value > x.value + {k}", time="{long}"
    ),
    THEN.format(
        first="subject='c{a}', " + PRICE, then="subject='c{b}', " + PRICE + ", value < x.value - {k}", time="{short}"
    ),
    "select * from pattern [every x=Event(subject='c{a}', predicate='price') -> y=Event(subject='c{a}',"
    " predicate='price') where timer:within(9 sec 1 msec)] where x.value > y.value + {k}",
    "select * from Event(subject='c{a}', predicate='halt', value > {k})",
    THEN.format(first="subject='c{a}', " + PRICE + ", value > {k}", then="subject='c{a}', " + HALT, time="{long}"),
    THEN.format(first="subject='c{a}', " + HALT, then="subject='c{b}', " + PRICE + ", value > {k}", time="{short}"),
    "select * from Event(subject='c{a}', predicate='price', value > {k})",
)
"""The queries of ``many_queries.KINDS`` in EPL; its windows are open at the end, hence a millisecond more."""
WITHIN = {"long": "60 sec 1 msec", "short": "10 sec 1 msec"}


def statements(constants: Sequence[tuple[int, int, int]]) -> str:
    """The alerts with these constants as a module of Esper."""
    texts = (KINDS[n % len(KINDS)].format(a=a, b=b, k=k, **WITHIN) for n, (a, b, k) in enumerate(constants))
    return "".join(f"@name('q{n + 1}') {text};\n" for n, text in enumerate(texts))


def dump(events: Sequence[Event], path: Path) -> None:
    """The events as the Java engines read them."""
    with path.open("w", encoding="utf-8") as out:
        for start, _, ((s, p, o),), _, _ in events:
            subject, predicate = (term[1:-1].rsplit("/", 1)[-1] for term in (s, p))
            out.write(f"{start // 1000},{subject},{predicate},{parts(o)[0]}\n")


def ours(count: int, companies: int, events: int, executor: Literal["rows", "columns"]) -> dict[str, float]:
    """The matches, and the seconds for loading and for the events."""
    texts, _ = alerts(count, companies)
    some = prices(2 * events, companies)
    batches: Sequence[Any]
    if executor == "columns":
        batches = column_batches(some)
    else:
        batches = [some[first : first + 1000] for first in range(0, len(some), 1000)]
    begun = time.process_time()
    engine = Engine(compile(texts), executor=executor)
    loading = time.process_time() - begun
    matches = 0
    for half in (batches[: len(batches) // 2], batches[len(batches) // 2 :]):
        begun = time.process_time()
        matches += sum(len(engine.push_all(batch)) for batch in half)
    matches += len(engine.close())
    return {"matches": matches, "loading": loading, "seconds": time.process_time() - begun}


def esper(count: int, companies: int, events: int) -> dict[str, float]:
    """The same in Esper."""
    OUT.joinpath("peers").mkdir(parents=True, exist_ok=True)
    module, stream = OUT / "peers" / f"many-{count}.epl", OUT / "peers" / f"many-{count}-{events}.csv"
    module.write_text(statements(alerts(count, companies)[1]), encoding="utf-8")
    dump(prices(2 * events, companies), stream)
    pinned = ["taskset", "-c", str(max(os.sched_getaffinity(0)))]
    line = [*pinned, *java(), "esper", f"@{module}", str(stream), str(events)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=1800)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise SystemExit(f"Esper failed with {count} statements:\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    figures: dict[str, float] = json.loads(lines[-1])
    return figures


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.many", description=__doc__)
    parser.add_argument("--counts", default="1000,10000", help="so many statements (default 1000,10000)")
    parser.add_argument("--events", type=int, default=4 * BATCH, help=f"so many twice, in multiples of {BATCH:,}")
    options = parser.parse_args(arguments)
    if not options.events or options.events % BATCH:
        parser.error(f"--events {options.events}: columns take {BATCH:,} at a time, so give a multiple of that")
    print(f"{'queries':>8} {'':12} {'loading s':>10} {'events/s':>10} {'to Esper':>9} {'matches':>9}")
    wrong = 0
    for count in map(int, options.counts.split(",")):
        companies = min(50_000, max(500, count // 2))
        given = count, companies, options.events
        found = {"Esper": esper(*given), "ours, rows": ours(*given, "rows"), "ours, columns": ours(*given, "columns")}
        for name, one in found.items():
            speed, ratio = options.events / one["seconds"], found["Esper"]["seconds"] / one["seconds"]
            loading, matches = one["loading"], int(one["matches"])
            print(f"{count:>8,} {name:13} {loading:>9.2f} {speed:>10,.0f} {ratio:>9.2f} {matches:>9,}", flush=True)
        if len({one["matches"] for one in found.values()}) > 1:
            print("  WRONG: the numbers of matches differ")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
