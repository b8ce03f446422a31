"""The memory of a goal, from a million that wait, in rows and in columns.

    python -m benchmarks.goal_memory [--goals 1000000]

The goals are those of W6: events a, each with an id of its own, that wait for their b.  They come from a generator, in
columns a batch at a time, so that nothing but the engine holds them.  Each form runs in a process of its own.  The
figures are the growth of the process: at its peak, and at the end, when memory has been released.  The answers are
checked: for some ids, the b finds its a.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import psutil

from benchmarks.columnar import arrow_columns
from benchmarks.workloads import w1_pairs, w6_idle_goals
from benchmarks.workloads.common import event, integer
from etalis_py import Engine, compile

FORMS = ("rows", "columns")
BAR = 100
"""Bytes, in columns."""
_AT_ONCE = 1 << 13
_WARM = 1 << 17
_ASKED = 1000
_STATUS = Path("/proc/self/status")


def measure(form: str, goals: int) -> tuple[float, float]:
    """Bytes per goal: at the peak, and at the end."""
    engine = Engine(compile(w1_pairs.QUERY), policy="recent", executor=form)
    _feed(engine, form, _WARM, first=goals)  # loads and touches what every engine needs
    before = _resident()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the current size
    _feed(engine, form, goals)
    highest = _highest()
    gc.collect()
    end = _resident()
    asked = range(0, goals, -(-goals // _ASKED))
    matches = engine.push_all(event(n + 1, f"<urn:x:idle{id_}>", w1_pairs.B, integer(n)) for n, id_ in enumerate(asked))
    found = len(list(matches)) + len(list(engine.close()))
    if found != len(asked):
        raise SystemExit(f"{found} matches in {form}, expected {len(asked)}")
    return (highest - before) / goals, (end - before) / goals


def _feed(engine: Engine, form: str, goals: int, first: int = 0) -> None:
    events = (event(n - goals - 10 * first, f"<urn:x:idle{first + n}>", w1_pairs.A, integer(n)) for n in range(goals))
    while some := list(islice(events, _AT_ONCE)):
        for part in arrow_columns(some) if form == "columns" else [some]:
            del some
            engine.push_all(part)
        some = None


def _resident() -> int:
    return int(psutil.Process().memory_info().rss)


def _highest() -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.goal_memory", description="The memory of a goal.")
    parser.add_argument("--goals", type=int, default=w6_idle_goals.MANY, help="so many that wait (1,000,000)")
    parser.add_argument("--form", choices=FORMS, help="only this, in this process")
    options = parser.parse_args(arguments)
    if options.form is not None:
        highest, end = measure(options.form, options.goals)
        asked = f" (asked: {BAR})" if options.form == "columns" else ""
        print(f"{options.form:<8} {highest:6.0f} bytes a goal at most{asked}, {end:.0f} in the end", flush=True)
        return 0
    command = (sys.executable, "-m", "benchmarks.goal_memory", "--goals", str(options.goals), "--form")
    return max(subprocess.run([*command, form], check=False).returncode for form in FORMS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
