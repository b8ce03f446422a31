"""The sources: what is written to each of them, and how ``etalis run`` names it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from benchmarks.lasting.market import MAPPING, Quote


class Source(Protocol):
    """``options`` are those of ``etalis run``."""

    options: list[str]

    def put(self, quotes: Sequence[Quote]) -> None: ...
    def close(self) -> None: ...


class Lines:
    """A file of JSON lines that grows."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "quotes.jsonl"
        self._file = self.path.open("w")
        self.options = ["-s", str(self.path), "--follow"]

    def put(self, quotes: Sequence[Quote]) -> None:
        self._file.write("".join(one.line() + "\n" for one in quotes))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class Table:
    """A CSV that grows, read by a mapping."""

    def __init__(self, folder: Path) -> None:
        path = folder / "quotes.csv"
        self._file = path.open("w")
        self._file.write("time,c,price\n")
        self._file.flush()
        (folder / "quotes.toml").write_text(MAPPING)
        self.options = ["-s", str(path), "--follow", "-m", str(folder / "quotes.toml")]

    def put(self, quotes: Sequence[Quote]) -> None:
        self._file.write("".join(one.row() + "\n" for one in quotes))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class RedisStream:
    """Entries with fields, read by a mapping; a few minutes of them are kept."""

    def __init__(self, address: str, folder: Path) -> None:
        import redis

        self._client = redis.Redis.from_url(address)
        self._client.xadd("quotes", Quote(0, "1970-01-01T00:00:00Z", "none", 0).fields())  # type: ignore[arg-type]
        (folder / "redis.toml").write_text(
            MAPPING.replace('"{price}"', "'\"{price}\"^^xsd:integer'")
        )  # fields are texts
        self.options = ["-s", f"{address}?stream=quotes", "-m", str(folder / "redis.toml")]

    def put(self, quotes: Sequence[Quote]) -> None:
        pipeline = self._client.pipeline(transaction=False)
        for one in quotes:
            pipeline.xadd("quotes", one.fields(), maxlen=50_000)  # type: ignore[arg-type]
        pipeline.execute()

    def close(self) -> None:
        self._client.close()


class MqttTopic:
    """A topic whose messages the broker keeps for the client ``lasting``."""

    IN_FLIGHT = 10_000

    def __init__(self, address: str) -> None:
        import paho.mqtt.client as paho

        from etalis_py.connectors.registry import open_source

        name = f"{address}/quotes?client=lasting&inflight={self.IN_FLIGHT}"
        first = open_source(name)
        first.open(None)
        first.close()
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2)
        self._client.max_inflight_messages_set(self.IN_FLIGHT)
        self._client.connect("127.0.0.1", urlsplit(address).port or 0)
        self._client.loop_start()
        self.options = ["-s", name]

    def put(self, quotes: Sequence[Quote]) -> None:
        for one in quotes:
            self._client.publish("quotes", one.line(), qos=1)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


class KafkaTopic:
    """Plain JSON by company in the partitions of a topic, read by a mapping."""

    def __init__(self, servers: str, folder: Path) -> None:
        from confluent_kafka import Producer

        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
        self._producer.produce("quotes", Quote(0, "1970-01-01T00:00:00Z", "none", 0).plain())  # the topic is made
        self._producer.flush(30)
        (folder / "kafka.toml").write_text(MAPPING)
        self.options = ["-s", f"kafka://{servers}/quotes", "-m", str(folder / "kafka.toml")]

    def put(self, quotes: Sequence[Quote]) -> None:
        for one in quotes:
            self._producer.produce("quotes", one.plain(), key=one.company)
        self._producer.poll(0)

    def close(self) -> None:
        self._producer.flush(30)


class EventStream:
    """A server of server-sent events that keeps all of them, and goes on after ``Last-Event-ID``."""

    def __init__(self) -> None:
        self._events: list[str] = []
        self._news, self._ended = threading.Condition(), False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                try:
                    outer._answer(self.wfile, int(self.headers.get("last-event-id") or 0))
                except OSError:
                    return  # the reader has gone

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.options = ["-s", f"sse+http://127.0.0.1:{self._server.server_address[1]}/quotes"]

    def _answer(self, file: Any, last: int) -> None:
        while not self._ended:
            with self._news:
                self._news.wait_for(lambda: self._ended or len(self._events) > last)  # noqa: B023
                fresh = self._events[last:]
            file.write("".join(f"id: {last + n}\ndata: {data}\n\n" for n, data in enumerate(fresh, 1)).encode())
            last += len(fresh)

    def put(self, quotes: Sequence[Quote]) -> None:
        with self._news:
            self._events += (one.line() for one in quotes)
            self._news.notify_all()

    def close(self) -> None:
        with self._news:
            self._ended = True
            self._news.notify_all()
        self._server.shutdown()


class WebSocketFeed:
    """A server that sends what comes to whoever is connected, and nothing again.

    ``spans``: for each connection the numbers of the first quote that it was sent and of the last that a checkpoint
    has; nothing yet while the run goes on.
    """

    def __init__(self) -> None:
        from websockets.exceptions import ConnectionClosed
        from websockets.sync.server import serve

        self._closed = (ConnectionClosed, OSError)
        self._connections: list[tuple[Any, list[int | None]]] = []
        self.spans: list[list[int | None]] = []
        self._server = serve(self._keep, "127.0.0.1", 0)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.options = ["-s", f"ws://127.0.0.1:{self._server.socket.getsockname()[1]}/quotes"]

    def _keep(self, connection: Any) -> None:
        self._connections.append((connection, []))
        with suppress(*self._closed):
            for _ in connection:
                """The run sends nothing; this ends when it closes."""

    def put(self, quotes: Sequence[Quote]) -> None:
        for each in list(self._connections):
            connection, span = each
            try:
                for one in quotes:
                    connection.send(one.line())
                    if not span:
                        span += [one.number, None]
                        self.spans.append(span)
            except self._closed:
                self._connections.remove(each)

    def end_at(self, number: int) -> None:
        """The run has ended, and its checkpoint has the quotes up to this one."""
        for span in self.spans:
            span[1] = number if span[1] is None else span[1]

    def close(self) -> None:
        self._server.shutdown()
