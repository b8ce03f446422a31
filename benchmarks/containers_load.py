"""Stream containers under load on loopback: posts and window reads at once, and push clients beside them.

The load is open-loop: each request has a time at which it is due, and its latency counts from then, so that a stalling
server does not look faster.  Every answer is checked: a window holds exactly the graphs whose times lie in (open,
close] of those acknowledged before it was asked for, and none twice; every push client gets every graph once, in order.

    python benchmarks/containers_load.py                  30 seconds
    python benchmarks/containers_load.py --ten-minutes    ten minutes
    python benchmarks/containers_load.py --members 10000000   first fill the container, then read windows of it

Exit code 1: an answer was wrong, p99 was above the limit, or memory grew.
"""

from __future__ import annotations

import argparse
import asyncio
import bisect
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from etalis_py.events.clock import parse_datetime, render_datetime

LDP = "http://www.w3.org/ns/ldp#"
SC = "https://solid.ti.rw.fau.de/public/ns/stream-containers#"
XSD = "http://www.w3.org/2001/XMLSchema#"
AT = "http://www.w3.org/ns/sosa/resultTime"
_SERVER = """
import sys
from pathlib import Path
from etalis_py.containers import serve
serve(port=0, store=Path(sys.argv[1]), ready=lambda url: print(url, flush=True))
"""
_NUMBER = re.compile(rb'<http://ex\.org/n> "(\d+)"')
_WINDOW = re.compile(rb'window: open="([^"]+)", close="([^"]+)"', re.IGNORECASE)


class Connection:
    """A kept-alive HTTP/1.1 connection with just enough of the protocol for answers that carry their length."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, headers: str = "", body: bytes = b"") -> tuple[int, bytes, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self.host, self.port)
        reader, writer = self._streams
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
        )
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)
        if length:
            content = await reader.readexactly(int(length[1]))
        else:
            content = b""
            while size := int(await reader.readuntil(b"\r\n"), 16):
                content += (await reader.readexactly(size + 2))[:-2]
            await reader.readexactly(2)
        return int(answer[9:12]), answer, content

    def close(self) -> None:
        if self._streams:
            self._streams[1].close()


@dataclass
class Tally:
    """What was measured and what went wrong."""

    posts: list[float] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)
    pushes: list[float] = field(default_factory=list)
    graphs_read: int = 0
    memory: list[float] = field(default_factory=list)
    cpu: tuple[float, float] = (0.0, 0.0)
    wrong: list[str] = field(default_factory=list)
    # Acknowledged posts in order of their times: (time, number, when acknowledged).
    times: list[int] = field(default_factory=list)
    acknowledged: list[tuple[int, int, float]] = field(default_factory=list)

    def acknowledge(self, at: int, number: int, when: float) -> None:
        place = bisect.bisect(self.times, at)
        self.times.insert(place, at)
        self.acknowledged.insert(place, (at, number, when))

    def forget(self, before: int) -> None:
        """Drop posts that no window reaches any more, so that this program's memory stays flat too."""
        place = bisect.bisect(self.times, before)
        del self.times[:place], self.acknowledged[:place]


def description(window: str, keep: int) -> bytes:
    return (
        f"<> a <{SC}StreamContainer> ; <urn:etalis:containers#retainCount> {keep} ; <{SC}window> [ "
        f"<{LDP}membershipResource> <#w> ; <{LDP}hasMemberRelation> <{LDP}member> ; "
        f'<{SC}contentTimestampRelation> <{AT}> ; <{SC}logical> "{window}"^^<{XSD}duration> ] .'
    ).encode()


def graph(number: int, at: int) -> bytes:
    return f'<> <http://ex.org/n> {number} ; <{AT}> "{render_datetime(at)}"^^<{XSD}dateTimeStamp> .'.encode()


async def paced(rate: float, seconds: float, connections: list[Connection], work: object) -> None:
    """Call ``work(connection, number, due)`` at the given rate, each on a free connection."""
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for connection in connections:
        free.put_nowait(connection)
    running: set[asyncio.Task[None]] = set()
    start = time.perf_counter()

    async def one(connection: Connection, number: int, due: float) -> None:
        try:
            await work(connection, number, due)  # type: ignore[operator]
        finally:
            free.put_nowait(connection)

    for number in range(int(rate * seconds)):
        due = start + number / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        task = asyncio.create_task(one(await free.get(), number, due))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)


def check_window(tally: Tally, asked: float, head: bytes, body: bytes) -> None:
    bounds = _WINDOW.search(head)
    if bounds is None:
        tally.wrong.append(f"no Window header: {head[:200]!r}")
        return
    low, high = (parse_datetime(t.decode()) for t in bounds.groups())
    numbers = [int(n) for n in _NUMBER.findall(body)]
    tally.graphs_read += len(numbers)
    given = set(numbers)
    if len(given) != len(numbers):
        tally.wrong.append("a graph is twice in a window")
    first, last = bisect.bisect_right(tally.times, low), bisect.bisect_right(tally.times, high)
    inside = tally.acknowledged[first:last]
    missing = [n for _, n, when in inside if when < asked and n not in given]
    if missing:
        tally.wrong.append(f"acknowledged graphs {missing[:5]} are missing from ({low}, {high}]")
    stamps = re.findall(rb'resultTime> "([^"]+)"', body)
    if any(not low < parse_datetime(s.decode()) <= high for s in stamps) or len(stamps) != len(numbers):
        tally.wrong.append(f"a graph outside of ({low}, {high}] is in the window")


async def push_client(
    host: str, port: int, tally: Tally, sent: dict[int, float], expected: int, ready: asyncio.Event
) -> None:
    """Follow /slow/ by server-sent events until everything expected has come, in order."""
    reader, writer = await asyncio.open_connection(host, port, limit=1_000_000)
    writer.write(f"GET /slow/ HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: text/event-stream\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    await reader.readuntil(b"retry: 1000\n\n")
    ready.set()
    for number in range(expected):
        text = await asyncio.wait_for(reader.readuntil(b"\n\n"), 60)
        while b"event: member" not in text:
            text = await asyncio.wait_for(reader.readuntil(b"\n\n"), 60)
        number_there = re.search(rb'ex\.org/n> \\"(\d+)\\"', text)
        if number_there is None or int(number_there[1]) != number:
            tally.wrong.append(f"a push client got {text[:120]!r} for graph {number}")
            break
        tally.pushes.append(time.perf_counter() - sent[number])
    writer.close()


async def load(url: str, process: psutil.Process, options: argparse.Namespace, tally: Tally) -> None:
    host, port = url[7:-1].split(":")
    setup = Connection(host, int(port))
    turtle = "Content-Type: text/turtle\r\n"
    for slug, window in (("s", f"PT{options.window}S"), ("slow", "PT1S")):
        status, _, body = await setup.ask("POST", "/", f"{turtle}Slug: {slug}\r\n", description(window, options.keep))
        assert status == 201, body
    if options.members:
        fill(options, setup)
    sent: dict[int, float] = {}
    expected = int(options.seconds * options.push_rate)
    ready = [asyncio.Event() for _ in range(options.push)]
    clients = [asyncio.create_task(push_client(host, int(port), tally, sent, expected, event)) for event in ready]
    for event in ready:
        await event.wait()
    # Measure whole minutes, not how fast five hundred connections are opened.
    await asyncio.sleep(1)

    async def post(connection: Connection, number: int, due: float) -> None:
        at = time.time_ns() // 1000
        status, _, body = await connection.ask("POST", "/s/", turtle, graph(number, at))
        now = time.perf_counter()
        tally.posts.append(now - due)
        if status == 201:
            tally.acknowledge(at, number, now)
        else:
            tally.wrong.append(f"POST answered {status}: {body[:200]!r}")

    async def read(connection: Connection, number: int, due: float) -> None:
        asked = time.perf_counter()
        status, head, body = await connection.ask("GET", "/s/?window=w", "Accept: application/n-triples\r\n")
        tally.reads.append(time.perf_counter() - due)
        if status != 200:
            tally.wrong.append(f"GET answered {status}: {body[:200]!r}")
        elif number % options.check == 0:
            check_window(tally, asked, head, body)

    async def push(connection: Connection, number: int, due: float) -> None:
        sent[number] = time.perf_counter()
        status, _, body = await connection.ask("POST", "/slow/", turtle, graph(number, time.time_ns() // 1000))
        if status != 201:
            tally.wrong.append(f"POST answered {status}: {body[:200]!r}")

    async def watch() -> None:
        while True:
            tally.memory.append(process.memory_info().rss / 2**20)
            tally.forget(time.time_ns() // 1000 - 5_000_000 - int(options.window * 1_000_000))
            await asyncio.sleep(1)

    used = process.cpu_times()
    started = (used.user + used.system, time.process_time())
    watcher = asyncio.create_task(watch())
    pools = [[Connection(host, int(port)) for _ in range(n)] for n in (options.connections, options.connections, 1)]
    work = [
        paced(options.posts, options.seconds, pools[0], post),
        paced(options.reads, options.seconds, pools[1], read),
    ]
    if options.push:
        work.append(paced(options.push_rate, options.seconds, pools[2], push))
    await asyncio.gather(*work)
    await asyncio.wait_for(asyncio.gather(*clients), 60)
    watcher.cancel()
    used = process.cpu_times()
    tally.cpu = (used.user + used.system - started[0], time.process_time() - started[1])
    for connection in [setup, *pools[0], *pools[1], *pools[2]]:
        connection.close()


def fill(options: argparse.Namespace, setup: Connection) -> None:
    """Put old members straight into the store's file, before any request reads it."""
    import sqlite3

    start = time.perf_counter()
    db = sqlite3.connect(options.file)
    db.execute("PRAGMA journal_mode = WAL")
    container = db.execute("SELECT id FROM containers WHERE path = '/s/'").fetchone()[0]
    oldest = time.time_ns() // 1000 - 10**12
    body = b'<http://ex.org/old> <http://ex.org/p> "old" .\n'
    step = 100_000
    for first in range(0, options.members, step):
        rows = (
            (container, f"old-{i}", oldest + i, 1, 1, body) for i in range(first, min(first + step, options.members))
        )
        with db:
            db.executemany(
                "INSERT INTO members (container, name, time, triples, version, body) VALUES (?, ?, ?, ?, ?, ?)", rows
            )
    db.execute(
        "UPDATE containers SET members = ?, triples = ? WHERE id = ?", (options.members, options.members, container)
    )
    db.commit()
    db.close()
    print(f"filled with {options.members:,} members in {time.perf_counter() - start:.0f} s", flush=True)


def percentile(values: list[float], share: float) -> float:
    return 1000 * sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def report(options: argparse.Namespace, tally: Tally) -> int:
    """Print the figures; the exit code."""
    bad = [f"wrong answer: {text}" for text in tally.wrong[:10]]
    if tally.wrong[10:]:
        bad.append(f"and {len(tally.wrong) - 10} more wrong answers")
    figures: dict[str, object] = {"seconds": options.seconds, "members before": options.members}
    for name, values in (("posts", tally.posts), ("window reads", tally.reads), ("pushes", tally.pushes)):
        p50, p99, worst = (percentile(values, share) for share in (0.5, 0.99, 1.0))
        figures[name] = {
            "number": len(values),
            "p50 ms": round(p50, 2),
            "p99 ms": round(p99, 2),
            "max ms": round(worst, 1),
        }
        print(f"{name:13} {len(values):>9,}   p50 {p50:7.2f} ms   p99 {p99:7.2f} ms   max {worst:8.1f} ms")
        if name != "pushes" and p99 > options.limit_ms:
            bad.append(f"p99 of {name} is {p99:.1f} ms, above {options.limit_ms} ms")
    print(f"graphs per window read: {tally.graphs_read / max(1, len(tally.reads) // options.check):.1f}")
    settled = tally.memory[len(tally.memory) // 3 :]
    third = max(1, len(settled) // 3)
    early, late = (sorted(part)[len(part) // 2] for part in (settled[:third], settled[-third:]))
    figures["memory MiB"] = {"early": round(early, 1), "late": round(late, 1), "max": round(max(tally.memory), 1)}
    print(f"memory: {early:.1f} MiB early, {late:.1f} MiB late, {max(tally.memory):.1f} MiB at most")
    if late > early * 1.1 + 5:
        bad.append(f"memory grew from {early:.1f} to {late:.1f} MiB")
    server, own = (seconds / options.seconds for seconds in tally.cpu)
    figures["cores used"] = {"server": round(server, 2), "load generator": round(own, 2)}
    print(f"cores used: {server:.2f} by the server, {own:.2f} by the load generator")
    if options.json:
        Path(options.json).write_text(json.dumps(figures | {"failures": bad}, indent=2) + "\n")
    for line in bad:
        print(f"FAILED  {line}")
    print("all answers were right" if not tally.wrong else f"{len(tally.wrong)} answers were wrong")
    return 1 if bad else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=30, help="how long (30)")
    parser.add_argument("--ten-minutes", action="store_true", help="the same as --seconds 600")
    parser.add_argument("--posts", type=float, default=500, help="posts per second (500)")
    parser.add_argument("--reads", type=float, default=500, help="window reads per second (500)")
    parser.add_argument("--window", type=float, default=0.1, help="size of the window in seconds (0.1)")
    parser.add_argument("--push", type=int, default=500, help="push clients (500)")
    parser.add_argument("--push-rate", type=float, default=1, help="posts per second that each of them gets (1)")
    parser.add_argument("--connections", type=int, default=16, help="connections for posts, and for reads (16)")
    parser.add_argument("--keep", type=int, default=20_000, help="members that the container retains (20000)")
    parser.add_argument("--members", type=int, default=0, help="members to fill the container with before (0)")
    parser.add_argument("--check", type=int, default=1, help="check every n-th window (1)")
    parser.add_argument("--limit-ms", type=float, default=50, help="the limit for p99 (50)")
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    if options.ten_minutes:
        options.seconds = 600
    if options.members:
        options.keep = options.members + 10_000_000
    with tempfile.TemporaryDirectory(prefix="containers-load-") as folder:
        options.file = Path(folder) / "load.db"
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(options.file)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        tally = Tally()
        try:
            asyncio.run(load(process.stdout.readline().strip(), psutil.Process(process.pid), options, tally))
        finally:
            process.terminate()
            process.wait(30)
    return report(options, tally)


if __name__ == "__main__":
    sys.exit(main())
