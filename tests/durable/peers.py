"""Who stands at the other end of a connector in the tests: clients and servers that keep what they get."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

import pytest

from etalis_py.events.errors import SinkError
from etalis_py.testing.connectors import some_matches
from tests.processes import comes


def line(at: int) -> str:
    return json.dumps({"time": at, "triples": f":c :p {at} ."})


def rows(address: str, statement: str) -> list[Any]:
    import psycopg

    with psycopg.connect(address) as connection:
        return connection.execute(statement).fetchall()


def add(address: str, stream: str, entries: list[dict[str, str]]) -> None:
    import redis

    client = redis.Redis.from_url(address)
    for entry in entries:
        client.xadd(stream, entry)  # type: ignore[arg-type]
    client.close()


def entries(address: str, stream: str) -> list[dict[str, Any]]:
    """The values of the entries of a stream."""
    import redis

    with redis.Redis.from_url(address) as client:
        return [json.loads(fields[b"value"]) for _, fields in client.xrange(stream)]  # type: ignore[union-attr]


def refuse_what_a_copy_has_written(one: Any, copy: Any) -> None:
    """Two processes go on from one checkpoint; the second has read the number of portions before the first wrote."""
    one.recover(None)
    one.write(some_matches(1))
    one.commit(token := one.prepare())
    copy.recover(token)
    number = copy.at()
    for sink, count in ((one, 3), (copy, 6)):
        sink.write(some_matches(6)[1:count])
    one.commit(one.prepare())
    copy.at = lambda: number
    with closing(one), closing(copy), pytest.raises(SinkError, match="another one goes on with a copy"):
        copy.commit(copy.prepare())


def publish(address: str, topic: str, texts: list[str]) -> None:
    import paho.mqtt.client as paho

    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", urlsplit(address).port or 0)
    client.loop_start()
    for text in texts:
        client.publish(topic, text, qos=1).wait_for_publish(10)
    client.disconnect()
    client.loop_stop()


class Subscriber:
    """Keeps what a topic gets."""

    def __init__(self, address: str, topic: str) -> None:
        import paho.mqtt.client as paho

        self.payloads: list[bytes] = []
        self.ready = threading.Event()
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, "subscriber", clean_session=False)
        self.client.reconnect_delay_set(0.1, 0.5)  # type: ignore[arg-type]
        self.client.on_connect = lambda client, *_: client.subscribe(topic, qos=1)
        self.client.on_subscribe = lambda *_: self.ready.set()
        self.client.on_message = lambda client, data, message: self.payloads.append(message.payload)
        self.client.connect("127.0.0.1", urlsplit(address).port or 0)
        self.client.loop_start()
        assert self.ready.wait(10)

    def ids(self, least: int = 0) -> list[str]:
        """The ids so far, at least so many, when no more come."""
        count, end = -1, time.monotonic() + 20
        while count != len(self.payloads) or (count < least and time.monotonic() < end):
            count = len(self.payloads)
            time.sleep(0.2)
        return [json.loads(one)["id"] for one in self.payloads]

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


class Receiver:
    """A web server that keeps what is posted, and first gives the answers that it is told to give.

    It answers only while it is ``open``.
    """

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[Any] = []
        self.paths: list[str] = []
        self.answers: list[int] = []
        self.retry_after = ""
        self.asked, self.open = 0, threading.Event()
        self.open.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = self.rfile.read(length)
                if len(body) < length:
                    return  # who posted it was killed meanwhile
                receiver.asked += 1
                receiver.open.wait(60)
                code = receiver.answers.pop(0) if receiver.answers else 204
                if code == 204:
                    receiver.bodies.append(body)
                    receiver.headers.append(self.headers)
                    receiver.paths.append(self.path)
                self.send_response(code)
                if code != 204 and receiver.retry_after:
                    self.send_header("retry-after", receiver.retry_after)
                self.send_header("content-length", "0")
                self.send_header("location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"webhook+http://127.0.0.1:{self.server.server_address[1]}/hook"

    def ids(self) -> list[str]:
        return [json.loads(body)["id"] for body in self.bodies]


class EventServer:
    """Keeps numbered events, goes on after ``Last-Event-ID``, and hangs up after so many; or answers with a code.

    ``more``: further headers of each answer.  ``beats``: so often it sends a comment; without them it is silent when it
    has sent everything.
    """

    def __init__(self, events: Iterable[str] = (), numbered: bool = True) -> None:
        self.events = list(events)
        self.hang_up_after, self.code, self.closes, self.kind = 10**9, 200, False, "text/event-stream"
        self.asked: list[dict[str, str]] = []
        self.more: dict[str, str] = {}
        self.beats = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append({name.lower(): value for name, value in self.headers.items()})
                known = self.headers.get("last-event-id", "")
                last = int(known) if known.isdecimal() else 0
                code = 204 if outer.closes and last == len(outer.events) else outer.code
                self.send_response(code)
                self.send_header("content-type", outer.kind)
                self.send_header("location", "/elsewhere")
                for name, value in outer.more.items():
                    self.send_header(name, value)
                self.end_headers()
                if code != 200:
                    return
                for _ in range(outer.beats):
                    self.wfile.write(b": still here\n\n")
                    time.sleep(0.1)
                until = last + outer.hang_up_after
                while not outer.stopped.is_set():
                    for number, data in islice(enumerate(outer.events, 1), last, until):
                        name = f"id: {number}\n" if numbered else ""
                        self.wfile.write(f": a comment\n{name}data: {data}\n\n".encode())
                        last = number
                    if outer.closes or last == until or outer.stopped.wait(0.02):
                        return

            def log_message(self, *_: object) -> None: ...

        self.stopped = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"sse+http://127.0.0.1:{self.server.server_address[1]}/events"

    def close(self) -> None:
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()


class Topic:
    """A topic of Kafka: writes to its first partition, and keeps what transactions have committed."""

    def __init__(self, servers: str, name: str) -> None:
        self._kafka = pytest.importorskip("confluent_kafka", reason="needs the extra kafka")
        self._servers, self._name = servers, name
        self._reader: Any = None
        self._values: list[str] = []

    def put(self, texts: Iterable[str]) -> None:
        """Write these messages; the topic is there afterwards, also if there are none."""
        producer = self._kafka.Producer(
            {"bootstrap.servers": self._servers, "enable.idempotence": True, "log_level": 0}
        )
        for text in texts:
            producer.produce(self._name, text.encode(), partition=0)
        assert producer.flush(60) == 0
        there = lambda: producer.list_topics(self._name, timeout=60).topics[self._name]  # noqa: E731
        assert comes(lambda: there().error is None and there().partitions), "the broker does not make the topic"

    def committed(self) -> list[str]:
        """The values so far."""
        if self._reader is None:
            settings = {"bootstrap.servers": self._servers, "group.id": "reader", "isolation.level": "read_committed"}
            self._reader = self._kafka.Consumer({**settings, "auto.offset.reset": "earliest", "log_level": 0})
            self._reader.subscribe([self._name])
        while (message := self._reader.poll(0.2)) is not None:
            if message.error() is None:
                self._values.append(message.value().decode())
        return list(self._values)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


class Peer:
    """A WebSocket server: it sends what it has to everybody who comes, and keeps what it is sent."""

    def __init__(self, answer: Callable[[Any], None] | None = None, port: int = 0) -> None:
        server = pytest.importorskip("websockets.sync.server", reason="needs the extra websocket")
        self.received: list[str] = []
        self.headers: list[Any] = []
        self.paths: list[str] = []
        self.server = server.serve(answer or self._keep, "127.0.0.1", port)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"ws://127.0.0.1:{self.server.socket.getsockname()[1]}/alerts"

    def _keep(self, connection: Any) -> None:
        self.headers.append(connection.request.headers)
        self.received.extend(connection)

    def ids(self) -> list[str]:
        """The ids so far, when some have come and no more do."""
        comes(lambda: self.received)
        count = -1
        while count != len(self.received):
            count = len(self.received)
            time.sleep(0.2)
        return [json.loads(one)["id"] for one in self.received]
