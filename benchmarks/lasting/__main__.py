"""Starts services, feeds and runs; restarts the runs, reads their figures, and judges them."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from benchmarks.lasting import __doc__ as about
from benchmarks.lasting import sinks, sources
from benchmarks.lasting.judging import due, expected_in, not_flat, wrong_matches
from benchmarks.lasting.market import QUERY, Market
from benchmarks.lasting.runs import Reading, Run
from tests.containers.server import Server
from tests.durable import services
from tests.kafka import broker
from tests.kafka.artifacts import KAFKA

S = TypeVar("S", bound=sources.Source)
PARTS = ("plain", "redis", "mqtt", "kafka", "postgres")
TICK = 0.1
PATIENCE = 120.0


class World:
    """The services, the sources and the runs.  ``left_out``: what is not there."""

    def __init__(self, folder: Path, stack: ExitStack, only: Sequence[str]) -> None:
        self.folder, self._stack = folder, stack
        self.left_out: list[str] = []
        self.lines = sources.Lines(folder)
        self.feeds: list[sources.Source] = [self.lines]
        self.runs: list[Run] = []
        self.events = self._feed(sources.EventStream())
        for name in only:
            try:
                getattr(self, f"_{name}")()
            except pytest.skip.Exception as skipped:
                self.left_out.append(str(skipped))

    def _run(self, name: str, source: sources.Source, sink: sinks.Sink) -> None:
        self._stack.callback(sink.close)
        self.runs.append(Run(name, source, sink, self.folder))
        self._stack.callback(self.runs[-1].kill)

    def _feed(self, source: S) -> S:
        self.feeds.append(source)
        self._stack.callback(source.close)
        return source

    def _plain(self) -> None:
        """What needs no service."""
        folder = self.folder
        server = Server(folder / "server.log", store=str(folder / "server.db"), engine="")
        self._stack.callback(server.stop)
        self._run("lines-to-lines", self.lines, sinks.file_sink(folder / "matches.jsonl"))
        self._run("lines-to-container", self.lines, sinks.container_sink(server.url))
        self._run("csv-to-sqlite", self._feed(sources.Table(folder)), sinks.sqlite_sink(folder / "matches.sqlite"))
        self._run("websocket-to-webhook", self._feed(sources.WebSocketFeed()), sinks.webhook_sink())
        self._run("sse-to-websocket", self.events, sinks.websocket_sink())

    def _redis(self) -> None:
        address = self._stack.enter_context(services.redis(self._place("redis")))
        source = self._feed(sources.RedisStream(address, self.folder))
        self._run("redis-to-redis", source, sinks.redis_sink(address))
        self._run("redis-to-sse", source, sinks.sse_sink())

    def _mqtt(self) -> None:
        more = f"max_inflight_messages {sources.MqttTopic.IN_FLIGHT}\n"
        address = self._stack.enter_context(services.mosquitto(self._place("mqtt"), services.free_port(), more))
        self._run("mqtt-to-mqtt", self._feed(sources.MqttTopic(address)), sinks.mqtt_sink(address))

    def _kafka(self) -> None:
        if KAFKA.missing():
            pytest.skip(KAFKA.missing())
        one = broker.Broker(self._place("kafka"))
        self._stack.callback(one.stop)
        source = self._feed(sources.KafkaTopic(one.servers, self.folder))
        self._run("kafka-to-kafka", source, sinks.kafka_sink(one.servers))

    def _postgres(self) -> None:
        address = self._stack.enter_context(services.postgres(self._stack.enter_context(services.open_folder())))
        self._run("sse-to-postgres", self.events, sinks.postgres_sink(address))

    def _place(self, name: str) -> Path:
        place = self.folder / name
        place.mkdir()
        return place


def restarts(runs: list[Run], length: float, count: int) -> list[tuple[float, Run, signal.Signals]]:
    """When each run is ended, and how: spread over the first two thirds, no two at the same time."""
    step = 2 * length / 3 / max(1, count)
    plan = [
        (step * (number + (1 + place / len(runs)) / 2), run, (signal.SIGTERM, signal.SIGKILL)[number % 2])
        for number in range(count)
        for place, run in enumerate(runs)
    ]
    return sorted(plan, key=lambda one: one[0])


def processor(runs: list[Run]) -> float:
    """The processor time of this process, of the services and of all processes of the runs."""
    own = psutil.Process()
    total = sum(run.seconds for run in runs)
    for one in (own, *own.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            total += times.user + times.system
    return total


def restart(run: Run, how: signal.Signals, market: Market) -> None:
    run.end(how)
    if isinstance(run.source, sources.WebSocketFeed):
        newest = run.newest()
        run.source.end_at(-1 if newest is None else market.number_at(newest))
    run.start()


def drive(world: World, market: Market, begin: float, length: float, count: int) -> None:
    """Feed the runs, end them by the plan, and read their figures each minute."""
    plan, minute = restarts(world.runs, length, count), min(60.0, length / 20)
    read = minute
    used = processor(world.runs)
    for run in world.runs:
        run.start()
    with (world.folder / "readings.jsonl").open("w") as file:
        while (passed := time.time() - begin) < length:
            quotes = list(market.due(time.time()))
            for feed in world.feeds:
                feed.put(quotes)
            if plan and passed >= plan[0][0]:
                _, run, how = plan.pop(0)
                restart(run, how, market)
            if passed >= read:
                read += minute
                found = [one for run in world.runs if (one := run.read(passed)) is not None]
                file.writelines(json.dumps(one.plain()) + "\n" for one in found)
                file.flush()
                show(passed, market, found, (processor(world.runs) - used) / passed)
            time.sleep(max(0.0, TICK - (time.time() - begin - passed)))


def show(passed: float, market: Market, found: list[Reading], share: float) -> None:
    print(
        f"{passed:6.0f} s  {market.count:9,} events to each of {len(found)} runs, "
        f"{sum(one.matches for one in found):9,.0f} matches, {sum(one.goals for one in found):6,.0f} goals, "
        f"{sum(one.memory for one in found) / 2**20:6,.0f} MiB, lag at most "
        f"{max((one.lag for one in found), default=0):.1f} s, {share:.2f} of a core",
        flush=True,
    )


def finish(world: World, market: Market, length: float) -> int:
    """End the streams, wait for the matches, and judge; returns the number of runs that failed."""
    rest = list(market.rest())
    for feed in world.feeds:
        feed.put(rest)
    expected = expected_in(world.folder, world.lines.path)
    print(f"{market.count:,} events, {len(expected):,} matches", flush=True)
    failed = 0
    for run in world.runs:
        needed = due(run, expected, market)
        run.has(needed, PATIENCE)
        run.end(signal.SIGTERM)
        problems = [*wrong_matches(run, expected, needed), *not_flat(run.readings, length)]
        found, last = run.sink.ids(), run.readings[-1]
        first = max(one.memory for one in run.readings if one.process == run.readings[0].process)
        print(
            f"{run.name:21} {len(needed):6,} matches due, {len({*found}):6,} there, {len(found) - len({*found}):4,} "
            f"again; {run.starts - 1} restarts; at the end {last.goals:5,.0f} goals, {last.memory / 2**20:4.0f} MiB "
            f"({first / 2**20:.0f} MiB in the first process), lag "
            f"{last.lag:.1f} s, checkpoint {last.checkpoint / 1024:.0f} KiB; {run.processor():.0f} s of a core: "
            f"{'; '.join(problems) or 'as it should be'}",
            flush=True,
        )
        failed += bool(problems)
    return failed


@contextmanager
def place_of(keep: str | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="etalis-lasting-") as name:
            yield Path(name)
    else:
        shutil.rmtree(keep, ignore_errors=True)
        Path(keep).mkdir(parents=True)
        yield Path(keep).resolve()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lasting", description=(about or "").partition("\n")[0])
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--rate", type=int, default=100, help="events a second for each run (default: 100)")
    parser.add_argument("--restarts", type=int, default=10, help="how often each run is restarted (default: 10)")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="the services that take part")
    parser.add_argument("--keep", metavar="FOLDER", help="where everything is kept, emptied first")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # services and runs end as well
    with place_of(options.keep) as folder, ExitStack() as stack:
        (folder / "q.rq").write_text(QUERY)
        world = World(folder, stack, options.only)
        for reason in world.left_out:
            print(f"left out: {reason}")
        begin, length = time.time(), options.hours * 3600
        market = Market(begin, options.rate)
        drive(world, market, begin, length, options.restarts)
        return 1 if finish(world, market, length) else 0


if __name__ == "__main__":
    sys.exit(main())
