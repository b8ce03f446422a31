"""``kill -9`` at the points of a checkpoint, for each source and each sink, with services that are started again.

``python -m tests.durable.connector_kills KILLS SEED [SOURCE SINK]`` kills so many runs of each pair, or of one.  A run
is a fork of this process whose sink ends it: before ``prepare``, before the checkpoint is written, when it is on the
disk and nothing is committed, a few milliseconds into ``commit``, or behind it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import etalis_py.cli.lasting
import etalis_py.cli.outputs
import etalis_py.cli.paced_steps
import etalis_py.cli.progress
import etalis_py.connectors.kafka
import etalis_py.connectors.mqtt_sink
import etalis_py.connectors.posting
import etalis_py.connectors.redis_sink
import etalis_py.connectors.sse
import etalis_py.connectors.sse_sink
import etalis_py.connectors.webhook
import etalis_py.connectors.websocket_sink
import etalis_py.engine.unseen_names
from etalis_py.connectors.registry import open_source
from etalis_py.streams import StreamError
from tests.durable import kills, services
from tests.durable.peers import EventServer, Peer, Receiver, Subscriber, Topic, add, entries, publish, rows
from tests.kafka.artifacts import KAFKA
from tests.kafka.broker import Broker
from tests.processes import PATIENCE

STEP, KEYS, PORTION = 1_000, 3, 30
QUERY = f"SELECT ?x ?y {{ {{ {{ ?c :p ?x }} SEQ {{ ?c :p ?y }} }} WITHIN {KEYS * STEP} SECONDS }}"
POINTS = ("before prepare", "before the checkpoint", "before commit", "within commit", "behind commit")
MOMENT = 0.004  # seconds into a commit, for each number of a death
# Events are further apart than anybody has patience, so silence makes none of them late.
assert STEP > PATIENCE


def line(at: int) -> str:
    return json.dumps({"time": at * STEP, "triples": f":c{at % KEYS} :p {at} ."})


class Death(NamedTuple):
    """Where a run ends: at the n-th time that its sink comes by a point, or n moments into its first commit."""

    point: str
    number: int


class Doomed:
    """A sink in front of another one, which ends the process."""

    def __init__(self, sink: Any, death: Death) -> None:
        self._sink, self._death, self._seen = sink, death, 0

    def _at(self, point: str) -> None:
        self._seen += point == self._death.point
        if point == self._death.point and self._seen == self._death.number:
            os.kill(os.getpid(), signal.SIGKILL)

    def prepare(self) -> Any:
        self._at("before prepare")
        token = self._sink.prepare()
        self._at("before the checkpoint")
        return token

    def commit(self, token: Any) -> None:
        self._at("before commit")
        if self._death.point == "within commit":
            threading.Timer(self._death.number * MOMENT, os.kill, (os.getpid(), signal.SIGKILL)).start()
        self._sink.commit(token)
        self._at("behind commit")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)


def forked(arguments: Sequence[str], folder: Path, death: Death | None) -> int:
    """The process of a command that ends where it is told to."""

    before = etalis_py.cli.outputs.DurableOutlet

    class Outlet(before):  # type: ignore[misc,valid-type]
        def __init__(self, sink: Any, skipped: Sequence[str] = ()) -> None:
            super().__init__(sink if death is None else Doomed(sink, death), skipped)

    etalis_py.cli.outputs.DurableOutlet = Outlet  # type: ignore[misc]
    try:
        return kills.forked(arguments, folder)
    finally:
        etalis_py.cli.outputs.DurableOutlet = before  # type: ignore[misc]


@dataclass
class End:
    """A source or a sink: its address, how to fill or to read it, and what starts its service again."""

    address: str
    fill: Callable[[Sequence[str]], None] = lambda lines: None
    read: Callable[[], Iterable[str]] = lambda: ()
    restart: Callable[[], None] = lambda: None
    once: bool = True
    more: list[str] = field(default_factory=list)


@contextmanager
def file_source(folder: Path) -> Iterator[End]:
    path = folder / "s.jsonl"
    path.write_text("")

    def fill(lines: Sequence[str]) -> None:
        with path.open("a") as file:
            file.write("".join(text + "\n" for text in lines))

    yield End("s.jsonl", fill, more=["--follow"])


@contextmanager
def redis_source(folder: Path) -> Iterator[End]:
    service = services.Restartable(services.redis, folder)
    yield End(f"{service.address}?stream=s", lambda lines: add(service.address, "s", [{"value": x} for x in lines]),
              restart=service.restart)  # fmt: skip
    service.close()


@contextmanager
def mqtt_source(folder: Path) -> Iterator[End]:
    """The broker keeps messages for the client from its first visit on."""
    service = services.Restartable(services.mosquitto, folder)
    address = f"{service.address}/s?client=kills"
    first = open_source(address)
    first.open(None)
    first.close()
    fill = lambda lines: publish(service.address, "s", list(lines))  # noqa: E731
    yield End(address, fill, restart=service.restart, once=False)
    service.close()


@contextmanager
def sse_source(folder: Path) -> Iterator[End]:
    server = EventServer()
    yield End(server.address, server.events.extend)
    server.close()


@contextmanager
def kafka_source(folder: Path) -> Iterator[End]:
    """One partition has everything: the order of the others would depend on when they are read."""
    broker = Broker(folder)
    topic = Topic(broker.servers, "s")
    topic.put([])
    yield End(f"kafka://{broker.servers}/s", topic.put, restart=broker.restart)
    broker.stop()


@contextmanager
def file_sink(folder: Path) -> Iterator[End]:
    path = folder / "out.jsonl"
    yield End("out.jsonl", read=lambda: path.read_text().splitlines() if path.exists() else [])


@contextmanager
def postgres_sink(folder: Path) -> Iterator[End]:
    with services.open_folder() as place:
        service = services.Restartable(services.postgres, place)

        def read() -> list[str]:
            known = rows(service.address, "SELECT 1 FROM pg_tables WHERE tablename = 't'")
            found = rows(service.address, "SELECT bindings::text FROM t") if known else []
            return [f'{{"bindings": {one}}}' for (one,) in found]

        yield End(f"{service.address}?table=t", read=read, restart=service.restart)
        service.close()


@contextmanager
def redis_sink(folder: Path) -> Iterator[End]:
    service = services.Restartable(services.redis, folder)
    read = lambda: [json.dumps(one) for one in entries(service.address, "out")]  # noqa: E731
    yield End(f"{service.address}?stream=out", read=read, restart=service.restart)
    service.close()


@contextmanager
def mqtt_sink(folder: Path) -> Iterator[End]:
    service = services.Restartable(services.mosquitto, folder)
    subscriber = Subscriber(service.address, "out")
    read = lambda: [one.decode() for one in subscriber.payloads]  # noqa: E731
    yield End(f"{service.address}/out", read=read, restart=service.restart, once=False)
    subscriber.close()
    service.close()


@contextmanager
def webhook_sink(folder: Path) -> Iterator[End]:
    receiver = Receiver()
    yield End(receiver.address, read=lambda: [body.decode() for body in receiver.bodies], once=False)
    receiver.server.shutdown()
    receiver.server.server_close()


@contextmanager
def websocket_sink(folder: Path) -> Iterator[End]:
    peer = Peer()
    yield End(peer.address, read=lambda: list(peer.received), once=False)
    peer.server.shutdown()


@contextmanager
def sse_sink(folder: Path) -> Iterator[End]:
    """A reader that comes back, as a browser does, until the run is over.

    It may miss all runs but the last, so the sink keeps more than a thousand matches for it.
    """
    port, stopped, got = services.free_port(), threading.Event(), list[str]()

    def listen() -> None:
        last = None
        while not stopped.is_set():
            source = open_source(f"sse+http://127.0.0.1:{port}/out")
            try:
                source.open(last)
                while not stopped.is_set():
                    got.extend(message.value.decode() for message in source.read(0.05) or ())  # type: ignore[union-attr]
                    last = source.position()
            except StreamError:
                stopped.wait(0.05)
            finally:
                source.close()

    reader = threading.Thread(target=listen, daemon=True)
    reader.start()
    yield End(f"sse://127.0.0.1:{port}/out?keep=100000", read=lambda: list(got), once=False)
    stopped.set()
    reader.join(10)


_LAKE_ROWS = """import json, os, sys
from etalis_py.streams.lake_tables import lake_table
print(json.dumps(lake_table(sys.argv[1])["bindings"].to_pylist()), flush=True)
os._exit(0)"""


def lake_rows(address: str) -> list[str]:
    """The bindings in a table, read by a process of its own: the threads of deltalake would not outlive a fork."""
    done = subprocess.run([sys.executable, "-c", _LAKE_ROWS, address], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [f'{{"bindings": {one}}}' for one in json.loads(done.stdout)]


@contextmanager
def delta_sink(folder: Path) -> Iterator[End]:
    address, log = f"delta:{folder}/matches", folder / "matches" / "_delta_log"
    yield End(address, read=lambda: lake_rows(address) if [*log.glob("*.json")] else [])


@contextmanager
def iceberg_sink(folder: Path) -> Iterator[End]:
    """The catalog is a database of SQLite."""
    address, table = "iceberg:plant.matches?catalog=here", folder / "plant" / "matches" / "metadata"
    for name, value in {"TYPE": "sql", "URI": f"sqlite:///{folder}/c.db", "WAREHOUSE": f"file://{folder}"}.items():
        os.environ[f"PYICEBERG_CATALOG__HERE__{name}"] = value
    yield End(address, read=lambda: lake_rows(address) if [*table.glob("*.json")] else [])


@contextmanager
def kafka_sink(folder: Path) -> Iterator[End]:
    broker = Broker(folder)
    topic = Topic(broker.servers, "out")
    yield End(f"kafka://{broker.servers}/out", read=topic.committed, restart=broker.restart)
    topic.close()
    broker.stop()


SOURCES = {"file": file_source, "redis": redis_source, "mqtt": mqtt_source, "sse": sse_source, "kafka": kafka_source}
SINKS = {
    "file": file_sink,
    "postgres": postgres_sink,
    "redis": redis_sink,
    "mqtt": mqtt_sink,
    "webhook": webhook_sink,
    "websocket": websocket_sink,
    "sse": sse_sink,
    "kafka": kafka_sink,
    "delta": delta_sink,
    "iceberg": iceberg_sink,
}


def pairs(texts: Iterable[str]) -> list[tuple[int, int]]:
    """The values of the matches, in their order."""
    found = (json.loads(text)["bindings"] for text in texts)
    return [tuple(int(one[name]["value"] if isinstance(one[name], dict) else one[name]) for name in "xy")
            for one in found]  # type: ignore[misc]  # fmt: skip


def survive(source: End, sink: End, folder: Path, count: int, draw: Random) -> None:
    """Kill a run so many times, and a last time not; then the sink holds what the definition says."""
    (folder / "q.rq").write_text(QUERY)
    arguments = ["run", "q.rq", "-s", source.address, *source.more, "-o", sink.address, "--checkpoint", "ck",
                 "--checkpoint-every", "0s", "--idle", "60s"]  # fmt: skip
    total = (count + 1) * PORTION
    for number in range(count + 1):
        death = None if number == count else Death(draw.choice(POINTS), draw.randrange(1, 6))
        process = forked(arguments, folder, death)
        feeder = threading.Thread(target=_feed, args=(source, number * PORTION, draw.random() * 0.02))
        feeder.start()
        try:
            if death is None:
                feeder.join()
                _complete(process, source, sink, folder, total)
            else:
                _wait(lambda: not kills.runs(process) or not feeder.is_alive(), folder)  # noqa: B023
                time.sleep(draw.random() * 0.1)
        finally:
            feeder.join()
            if kills.runs(process):
                os.kill(process, signal.SIGKILL)  # perhaps it did not come by that point so often
            code = kills.ended(process)
        assert code == (0 if death is None else -signal.SIGKILL), _errors(folder)
        if death is not None and draw.random() < 0.5:
            source.restart()
            sink.restart()


def _complete(process: int, source: End, sink: End, folder: Path, total: int) -> None:
    """Wait until the sink has everything, end the run, and compare with the definition of the query."""
    source.fill([line(at) for at in range(total, total + 3 * KEYS)])  # so that the last instant is complete
    expected = {(at, at + KEYS) for at in range(total - KEYS)}
    _wait_for_all(expected, sink, process, folder)
    os.kill(process, signal.SIGTERM)
    _wait(lambda: not kills.runs(process), folder)
    found = pairs(sink.read())
    assert expected <= {*found}, f"missing: {sorted(expected - {*found})}\n{_errors(folder)}"
    assert all(y == x + KEYS for x, y in found), found
    if source.once and sink.once:
        assert len(found) == len({*found}), f"twice: {sorted(one for one in found if found.count(one) > 1)}"


def _feed(source: End, begin: int, pause: float) -> None:
    for at in range(begin, begin + PORTION, 3):
        source.fill([line(at) for at in range(at, at + 3)])
        time.sleep(pause)


def _wait_for_all(expected: set[tuple[int, int]], sink: End, process: int, folder: Path) -> None:
    """Wait as long as more comes: each step is a checkpoint, and a busy disk takes its time for each."""
    left, end = len(expected) + 1, 0.0
    while (missing := expected - {*pairs(sink.read())}) and kills.runs(process):
        if len(missing) < left:
            left, end = len(missing), time.monotonic() + PATIENCE
        assert time.monotonic() < end, f"missing: {sorted(missing)}\n{_errors(folder)}"
        time.sleep(0.02)


def _wait(done: Callable[[], bool], folder: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, _errors(folder)
        time.sleep(0.02)


def _errors(folder: Path) -> str:
    """What the run has said at last."""
    return (folder / "errors").read_text()[-2000:]


def judged(source: str, sink: str, count: int, draw: Random, folder: Path) -> None:
    """The pair of a source and a sink, each with a folder of its own."""
    with ExitStack() as stack:
        ends = []
        for name, make in ((f"in-{source}", SOURCES[source]), (f"out-{sink}", SINKS[sink])):
            (folder / name).mkdir()
            own = folder if name in ("in-file", "out-file") else folder / name
            ends.append(stack.enter_context(make(own)))
        survive(ends[0], ends[1], folder, count, draw)


if __name__ == "__main__":
    kills_of_each, seed, *only = sys.argv[1:]
    every = [(one, other) for one in SOURCES for other in SINKS if "kafka" not in (one, other) or not KAFKA.missing()]
    for pair in [(only[0], only[1])] if only else every:
        with tempfile.TemporaryDirectory() as name:
            judged(*pair, int(kills_of_each), Random(int(seed)), Path(name))
            print(f"{pair[0]} to {pair[1]}: {kills_of_each} kills", flush=True)
