"""The sinks: how ``etalis run`` names each, and the ids of the matches that it holds."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from tests.durable.services import free_port


class Sink(Protocol):
    """``once``: each match exactly once is promised."""

    address: str
    once: bool

    def ids(self) -> list[str]: ...
    def close(self) -> None: ...


class Stored:
    """A sink that keeps what it gets until it is read."""

    once = True

    def __init__(self, address: str, read: Callable[[], Iterator[str]]) -> None:
        self.address, self._read = address, read

    def ids(self) -> list[str]:
        return list(self._read())

    def close(self) -> None:
        """Nothing is open."""


class Heard:
    """A sink that only hands on: a listener keeps the ids."""

    once = False

    def __init__(self, address: str, stop: Callable[[], Any]) -> None:
        self.address, self._stop = address, stop
        self.got: list[str] = []

    def take(self, text: str | bytes) -> None:
        self.got.append(json.loads(text)["id"])

    def ids(self) -> list[str]:
        return list(self.got)

    def close(self) -> None:
        self._stop()


def file_sink(path: Path) -> Stored:
    return Stored(str(path), lambda: (json.loads(line)["id"] for line in path.open()) if path.exists() else iter(()))


def sqlite_sink(path: Path) -> Stored:
    def read() -> Iterator[str]:
        with closing(sqlite3.connect(path)) as database:
            tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            if "q" in tables:
                yield from (row[0] for row in database.execute("SELECT id FROM q"))

    return Stored(str(path), read)


def postgres_sink(address: str) -> Stored:
    import psycopg

    def read() -> Iterator[str]:
        with psycopg.connect(address) as connection:
            known = connection.execute("SELECT 1 FROM pg_tables WHERE tablename = 'matches'").fetchone()
            yield from (row[0] for row in connection.execute("SELECT id FROM matches") if known) if known else ()

    return Stored(f"{address}?table=matches", read)


def redis_sink(address: str) -> Stored:
    import redis

    def read() -> Iterator[str]:
        with redis.Redis.from_url(address) as client:
            yield from (fields[b"id"].decode() for _, fields in client.xrange("matches"))  # type: ignore[union-attr]

    return Stored(f"{address}?stream=matches", read)


def kafka_sink(servers: str) -> Stored:
    """The committed messages, as a consumer reads them until nothing comes."""
    from confluent_kafka import Consumer

    def read() -> Iterator[str]:
        consumer = Consumer({"bootstrap.servers": servers, "group.id": f"reader-{free_port()}",
                             "auto.offset.reset": "earliest", "isolation.level": "read_committed"})  # fmt: skip
        consumer.subscribe(["matches"])
        patience = 15.0
        while (message := consumer.poll(patience)) is not None:
            if message.error() is None:
                patience = 3.0
                yield message.key().decode()
        consumer.close()

    return Stored(f"kafka://{servers}/matches", read)


def container_sink(server: str) -> Stored:
    """A stream container of ``etalis serve``; members have the ids of matches as names."""
    import httpx

    address = f"{server}matches/"

    def read() -> Iterator[str]:
        after = 0
        while True:
            answer = httpx.get(f"{address}?after={after}", headers={"Accept": "application/x-ndjson"}, timeout=60)
            found = [json.loads(line) for line in answer.text.splitlines()] if answer.status_code == 200 else []
            yield from (one["graph"].rpartition("/")[2] for one in found)
            if not found:
                return
            after = found[-1]["id"]

    return Stored(address, read)


def mqtt_sink(address: str) -> Heard:
    import paho.mqtt.client as paho

    client = paho.Client(paho.CallbackAPIVersion.VERSION2, "reader-of-matches", clean_session=False)

    def stop() -> None:
        client.disconnect()
        client.loop_stop()

    sink = Heard(f"{address}/matches", stop)
    client.on_connect = lambda client, *_: client.subscribe("matches", qos=1)
    client.on_message = lambda client, data, message: sink.take(message.payload)
    client.connect("127.0.0.1", urlsplit(address).port or 0)
    client.loop_start()
    return sink


def webhook_sink() -> Heard:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            sink.take(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sink = Heard(f"webhook+http://127.0.0.1:{server.server_address[1]}/hook", server.shutdown)
    return sink


def websocket_sink() -> Heard:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.server import serve

    def keep(connection: Any) -> None:
        with suppress(ConnectionClosed):
            for text in connection:
                sink.take(text)

    server = serve(keep, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sink = Heard(f"ws://127.0.0.1:{server.socket.getsockname()[1]}/matches", server.shutdown)
    return sink


def sse_sink() -> Heard:
    """A reader that comes back after the last event that it got, as a browser does."""
    from etalis_py.connectors.registry import open_source
    from etalis_py.streams import StreamError

    port, stopped = free_port(), threading.Event()
    sink = Heard(f"sse://127.0.0.1:{port}/matches", stopped.set)

    def listen() -> None:
        last = None
        while not stopped.is_set():
            source = open_source(f"sse+http://127.0.0.1:{port}/matches")
            try:
                source.open(last)
                while not stopped.is_set():
                    for message in source.read(0.5) or ():
                        sink.take(message.value)  # type: ignore[union-attr]
                    last = source.position()
            except StreamError:
                stopped.wait(0.5)  # the run is not there
            finally:
                source.close()

    threading.Thread(target=listen, daemon=True).start()
    return sink
