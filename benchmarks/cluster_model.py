"""A model of one micro-batch on a cluster, from costs measured on one machine.

    python -m benchmarks.cluster_model [--measure] [--check] [--skew 0.0] [--goals 100000000] [--trigger 10]

A batch of N events on C cores in S shards takes, one after another,

    fixed     what a batch costs however small it is
    driver    a task for each core that reads and for each shard, which one thread of the driver hands out
    routing   N events, evenly over the cores, in the JVM
    shuffle   N times the bytes of an event, over the network, except for those that stay on their machine
    shards    the fullest core: keys are drawn (a share ``--skew`` of the events has one key) and hashed into shards as
              the pipeline does it, and each core takes the next shard when it is free, as Spark does

The highest rate is that at which a batch takes as long as the trigger.  It also prints the share from which a single
key fills a core, how much state the fullest core has, and how long that takes to restore after a failure.
``--measure`` measures the costs on this machine, in batches on one core, instead of using those below.  ``--check``
also measures batches on 1 and 2 cores in 2 to 8 shards, compares them with the predictions, and fails if one is wrong
by more than half.  ``--waiting`` prints how much longer a batch takes because the partitions of an executor share its
engine processes, one for each core, with shards of even size (10 % more or less) to very uneven ones.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapreplace
from itertools import product
from pathlib import Path
from zlib import crc32

from benchmarks.quiet import quiet_session
from benchmarks.spark_runs import SECOND, Case, batch_run, case, write_parquet
from benchmarks.workloads import w1_pairs
from benchmarks.workloads.common import integer
from etalis_py import Engine, Event, compile
from etalis_py.spark.plan.slots import MOST_SHARDS

CORES = (10, 32, 100, 320, 1_000, 3_200, 10_000)
COLUMNS = (
    *("cores", "shards", "million events/s", "limit", "one key may have"),
    *("MB of state a core", "back in s", "driver s/batch"),
)
KEYS = 100_000
WORKLOAD = "W1"
QUERY = "SELECT ?id WHERE { { ?id <urn:p:a> ?x } SEQ { ?id <urn:p:b> ?y } }"


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds and bytes, as in docs/spark-sizes.md for W1 as a stream.

    Assumed are ``task`` (the driver hands out a thousand a second), ``network`` (10 Gbit/s a machine) and the ``cores``
    of a machine.
    """

    event_routed: float = 0.6e-6  # 1.7 million rows/s on two cores, read and aggregated in the JVM
    event_in_shard: float = 4.1e-6
    fixed: float = 0.8
    task: float = 0.001
    bytes_of_event: float = 30.0
    bytes_of_goal: float = 35.0
    goal_restored: float = 2e-6
    network: float = 1.25e9
    cores: int = 16


@dataclass(frozen=True, slots=True)
class Batch:
    """The predicted time of a batch, by its parts."""

    fixed: float
    driver: float
    routing: float
    shuffle: float
    shards: float

    @property
    def seconds(self) -> float:
        return self.fixed + self.driver + self.routing + self.shuffle + self.shards


def weights(shards: int, skew: float, seed: int = 1) -> list[float]:
    """The share of the events that each shard gets."""
    draw = random.Random(seed)
    found = [0.0] * shards
    for _ in range(KEYS):
        found[crc32(f"<urn:{draw.getrandbits(48)}>".encode()) % shards] += (1 - skew) / KEYS
    found[0] += skew
    return found


def fullest(shares: Sequence[float], cores: int) -> float:
    """The share of the core that finishes last: each takes the next shard when it is free."""
    loads = [0.0] * min(cores, len(shares))
    for share in shares:
        heapreplace(loads, loads[0] + share)
    return max(loads)


def end_with_processes(durations: Sequence[float], cores: int, processes: int) -> float:
    """When the last task ends, if each core takes the next task, which waits until its engine process is free.

    The partitions of an executor take its processes in turn.
    """
    free, over = [0.0] * cores, [0.0] * processes
    for number, duration in enumerate(durations):
        process = number % processes
        over[process] = max(free[0], over[process]) + duration
        heapreplace(free, over[process])
    return max(over)


def waiting(cores: int, partitions: int, spread: float, draws: int = 2_000, seed: int = 1) -> float:
    """How much longer the tasks of an executor take with a process for each core than with one for each partition.

    Their durations are drawn from a log-normal distribution with this standard deviation of the logarithm.
    """
    draw = random.Random(seed)
    cases = [[draw.lognormvariate(0, spread) for _ in range(partitions)] for _ in range(draws)]
    shared, own = (sum(end_with_processes(case, cores, n) for case in cases) for n in (cores, partitions))
    return shared / own - 1


def predict(costs: Costs, events: int, cores: int, shards: int, share: float) -> Batch:
    """One batch; ``share`` is that of the fullest core."""
    machines = max(1, cores // costs.cores)
    crossing = events * costs.bytes_of_event * (1 - 1 / machines)
    return Batch(
        costs.fixed,
        (cores + shards) * costs.task,
        events * costs.event_routed / cores,
        crossing / machines / costs.network,
        events * costs.event_in_shard * share,
    )


@dataclass(frozen=True, slots=True)
class Prediction:
    """A cluster at its highest rate."""

    cores: int
    shards: int
    rate: float
    limit: str
    hot: float
    state: float
    restore: float
    driver: float

    def __str__(self) -> str:
        return (
            f"| {self.cores:,} | {self.shards:,} | {self.rate / 1e6:.1f} | {self.limit} | {self.hot:.2%} | "
            f"{self.state / 1e6:,.1f} | {self.restore:.1f} | {self.driver:.2f} |"
        )


def cluster(costs: Costs, cores: int, skew: float, goals: int, trigger: float) -> Prediction:
    """The highest rate of a cluster and what limits it; the share from which one key alone does; its state.

    The state is that of the fullest core: its bytes, and the seconds in which it is restored.
    """
    shards = min(cores, MOST_SHARDS)
    share = fullest(weights(shards, skew), cores)
    sample = 1_000_000
    batch = predict(costs, sample, cores, shards, share)
    still = batch.fixed + batch.driver
    rate = max(0.0, (trigger - still) / (batch.seconds - still) * sample / trigger)
    at_work = predict(costs, round(rate * trigger), cores, shards, share)
    parts = {name: getattr(at_work, name) for name in ("driver", "routing", "shuffle", "shards")}
    limit = max(parts, key=lambda name: parts[name])
    if limit == "shards":
        if skew > 1 / shards:
            limit = "the hot key"
        elif cores > shards:
            limit = f"shards: no more than {MOST_SHARDS:,}"
    even = fullest(weights(shards, 0.0), cores)
    held = goals * even
    state, restored = held * costs.bytes_of_goal, held * costs.goal_restored
    return Prediction(cores, shards, rate, limit, even, state, restored, batch.driver)


# --- measuring -------------------------------------------------------------------------------------------------------


def measured(events: int) -> Costs:
    """The costs on this machine: one core, two sizes and two numbers of shards; goals in the engine alone."""
    small, large = case(WORKLOAD, events // 4), case(WORKLOAD, events)
    (few, _), (many, size) = runs([small, large], 1, [2])[2]
    in_all = max(0.0, many - few) / (events - events // 4)
    costs = Costs()
    bytes_of_goal, goal_restored = _state()
    in_shard = max(0.1e-6, in_all - costs.event_routed)
    fixed = max(0.0, few - in_all * (events // 4) - 3 * costs.task)
    return replace(
        costs,
        event_in_shard=in_shard,
        fixed=fixed,
        bytes_of_event=size,
        bytes_of_goal=bytes_of_goal,
        goal_restored=goal_restored,
    )


def runs(cases: Sequence[Case], cores: int, shards: Sequence[int]) -> dict[int, list[tuple[float, float]]]:
    """By number of shards, for each case: the fastest of three runs after a warm-up run, and the bytes per event."""
    found: dict[int, list[tuple[float, float]]] = {}
    with quiet_session(f"local[{cores}]", max(shards)) as spark, tempfile.TemporaryDirectory() as name:
        for number, some in enumerate(cases):
            file = Path(name) / f"{number}.parquet"
            write_parquet(file, some.events)
            # The shards cannot read the files through this, so the rows are routed and shuffled, as with many shards.
            frame = spark.read.parquet(str(file)).coalesce(2 * cores)
            for count in shards:
                spark.conf.set("spark.sql.shuffle.partitions", str(count))
                timed = [batch_run(some, frame, count) for _ in range(4)]
                if any(run.answers != some.answers for run in timed):
                    raise SystemExit(f"{some.name} in {count} shards: the answers are wrong")
                best = min(run.seconds for run in timed[1:])
                found.setdefault(count, []).append((best, file.stat().st_size / len(some.events)))
    return found


def _state(goals: int = 100_000) -> tuple[float, float]:
    """The bytes of a goal in a snapshot, and the seconds in which it is restored."""
    engine = Engine(compile(QUERY))
    engine.push_all(Event(n * SECOND, n * SECOND, ((f"<urn:idle:{n}>", w1_pairs.A, integer(n)),)) for n in range(goals))
    engine.advance(goals * SECOND)
    snapshot = engine.snapshot()
    began = time.perf_counter()
    Engine(compile(QUERY)).restore(snapshot)
    return len(snapshot) / goals, (time.perf_counter() - began) / goals


def check(costs: Costs, events: int) -> Iterator[tuple[str, bool]]:
    """Predictions beside measurements; each with whether it is wrong by no more than half."""
    some = case(WORKLOAD, events)
    for cores, shards in ((1, (2, 4, 8)), (2, (2, 4, 8))):
        for count, [(seconds, _)] in runs([some], cores, shards).items():
            share = fullest(weights(count, 0.0), cores)
            expected = predict(costs, events, cores, count, share).seconds
            ratio = expected / seconds
            where = f"{cores} core{'s' * (cores != 1)}, {count} shards"
            line = f"{where}: predicted {expected:.2f} s, measured {seconds:.2f} s ({ratio:.2f})"
            yield line, 1 / 1.5 <= ratio <= 1.5


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster_model", description="Plan a cluster for Spark.")
    parser.add_argument("--measure", action="store_true", help="take the costs from this machine")
    parser.add_argument("--check", action="store_true", help="hold predictions against measurement here")
    parser.add_argument("--events", type=int, default=800_000, help="events of a measured batch (800,000)")
    parser.add_argument("--waiting", action="store_true", help="what partitions that share engine processes wait")
    parser.add_argument("--skew", type=float, default=0.0, help="the share of the events that one key has (0)")
    parser.add_argument("--goals", type=int, default=100_000_000, help="live goals in all (100 million)")
    parser.add_argument("--trigger", type=float, default=10.0, help="seconds from batch to batch (10)")
    options = parser.parse_args(arguments)
    if options.waiting:
        for cores, spread in product((2, 4, 8), (0.1, 0.3, 1.0)):
            longer = waiting(cores, 2 * cores, spread)
            print(f"{cores} cores, {2 * cores} partitions, durations that vary by {spread:.0%}: {longer:.1%} longer")
        return 0
    costs = measured(options.events) if options.measure or options.check else Costs()
    print(f"{costs}\n")
    print(f"| {' | '.join(COLUMNS)} |")
    print("|---|---|---|---|---|---|---|---|")
    for cores in CORES:
        print(cluster(costs, cores, options.skew, options.goals, options.trigger))
    right = True
    if options.check:
        print()
        for line, close in check(costs, options.events):
            print(line + ("" if close else ": WRONG"), flush=True)
            right &= close
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
