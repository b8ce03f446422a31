"""``mqtt://host:1883/topic/#``: the messages of topics, from now on.

With quality of service 1 (``?qos=1``, the default) and a client name (``?client=alerts``) the broker keeps what comes
while nobody reads.  A message is acknowledged when a checkpoint has it; after a crash the broker sends those again that
were not, so each comes at least once.  ``?inflight=N`` is how many the broker sends before one is acknowledged.  User
and password come from ``MQTT_USERNAME`` and ``MQTT_PASSWORD``.  Needs paho-mqtt: the extra ``mqtt``.
"""

from __future__ import annotations

import os
import queue
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from etalis_py.connectors.contracts import Message, Position
from etalis_py.connectors.registry import missing
from etalis_py.events.errors import StreamError

PORTION, MOST = 1_000, 20_000
IN_FLIGHT = 20  # messages that a broker sends before one of them is acknowledged, as mosquitto does by default
PATIENCE = 10.0
_LOOK = 0.05
AWAY = 20.0  # seconds for a broker to come back


class Broker(NamedTuple):
    """A broker and a topic, as an address says them."""

    host: str
    port: int
    secure: bool
    topic: str
    name: str

    @classmethod
    def of(cls, base: str, topic: str) -> Broker:
        split = urlsplit(base)
        secure = split.scheme == "mqtts"
        host, port = split.hostname or "localhost", split.port or (8883 if secure else 1883)
        return cls(host, port, secure, topic, f"{split.scheme}://{host}:{port}/{topic}")

    def client(self, paho: Any, name: str, **options: Any) -> Any:
        """A client that is not connected yet; user and password come from the environment."""
        made = paho.Client(paho.CallbackAPIVersion.VERSION2, name, clean_session=not name, **options)
        if user := os.environ.get("MQTT_USERNAME"):
            made.username_pw_set(user, os.environ.get("MQTT_PASSWORD"))
        if self.secure:
            made.tls_set()
        return made


def library(address: str, *, sink: bool) -> Any:
    try:
        import paho.mqtt.client as paho
    except ImportError:
        missing("paho-mqtt", "mqtt", address, sink=sink)
    return paho


class Mqtt:
    """A client with a thread of its own.  Beyond ``MOST`` messages that nobody has read, the broker must wait.

    The position counts the messages of this process; the broker knows no places, so they do not come ``again``.  It
    sends only a few (``inflight``) before the first of them is acknowledged, so a checkpoint follows after half of
    them.
    """

    again = False

    def __init__(self, address: str, topic: str, settings: dict[str, str]) -> None:
        self._paho = library(address, sink=False)
        self._broker = Broker.of(address, topic)
        self.name, self._topic = self._broker.name, topic
        self._qos, self._client_name = int(settings.get("qos", "1")), settings.get("client", "")
        self._window = int(settings.get("inflight", IN_FLIGHT)) // 2
        self._waiting: queue.Queue[Any] = queue.Queue(maxsize=MOST)
        self._unacknowledged: deque[tuple[int, int]] = deque()  # the mid and the quality of each
        self._read = 0
        self._client: Any = None
        self._problem = ""
        self._lost: float | None = None  # since when there is no connection
        self.sent_again = bool(self._client_name and self._qos)
        self.hurried: Callable[[], bool] = bool  # whether the run is to stop, which waits for no broker

    def pressing(self) -> bool:
        """Whether the broker may wait for acknowledgements."""
        return len(self._unacknowledged) >= self._window

    def open(self, position: Position | None) -> None:
        client = self._client = self._broker.client(self._paho, self._client_name, manual_ack=self.sent_again)
        client.on_connect, client.on_message = self._connected, lambda *given: self._waiting.put(given[-1])
        client.on_subscribe, client.on_disconnect = self._subscribed, self._disconnected
        client.reconnect_delay_set(1, 4)
        try:
            client.connect(self._broker.host, self._broker.port)
        except OSError as error:
            reason = f"the broker does not answer ({error.strerror or error})"
            raise StreamError(reason, source=self.name, hint="start the broker, or check the address") from None
        client.loop_start()
        end = time.monotonic() + PATIENCE
        while not self._problem and not self._subscribed_at and time.monotonic() < end:
            time.sleep(0.01)
        if not self._subscribed_at:
            raise self._refused(self._problem or "the broker did not answer in time")

    _subscribed_at = 0.0

    def _connected(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._problem = f"the broker refuses the connection: {reason}"
        else:
            client.subscribe(self._topic, qos=self._qos)

    def _subscribed(self, client: Any, data: Any, mid: int, reasons: Any, properties: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            self._problem = f"the broker refuses the topic: {reasons[0]}"
        else:
            self._subscribed_at, self._lost = time.monotonic(), None

    def _disconnected(self, *_: Any) -> None:
        self._lost = self._lost or time.monotonic()

    def _refused(self, reason: str) -> StreamError:
        return StreamError(reason, source=self.name, hint="check the topic, and MQTT_USERNAME and MQTT_PASSWORD")

    def _next(self, seconds: float) -> Any:
        """The next message, or queue.Empty.  A broker that is away is not silent: what it keeps is from before."""
        while True:
            try:
                wait = seconds or (_LOOK if self._lost else 0.0)
                return self._waiting.get(timeout=wait) if wait else self._waiting.get_nowait()
            except queue.Empty:
                if self._problem:
                    raise self._refused(self._problem) from None
                if self._lost is None or self.hurried():
                    raise
                if time.monotonic() > self._lost + AWAY:
                    hint = "start the broker; with --checkpoint the run goes on from here"
                    raise StreamError("the broker does not come back", source=self.name, hint=hint) from None

    def read(self, seconds: float) -> Sequence[Message] | None:
        messages: list[Message] = []
        try:
            one = self._next(seconds)
            while True:
                self._read += 1
                if self.sent_again:
                    self._unacknowledged.append((one.mid, one.qos))
                messages.append(Message(bytes(one.payload), f"{self.name}, {one.topic}"))
                if len(messages) == PORTION:
                    break
                one = self._waiting.get_nowait()
        except queue.Empty:
            pass
        return messages

    def position(self) -> Position:
        return self._read

    def committed(self, position: Position) -> None:
        """Acknowledge what this process has read up to here."""
        while self._unacknowledged and self._read - len(self._unacknowledged) < position:
            self._client.ack(*self._unacknowledged.popleft())

    def close(self) -> None:
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()
            self._client = None


def parsed(address: str, allowed: Mapping[str, Collection[str]]) -> tuple[str, str, dict[str, str], str]:
    """The broker, the topic, the settings, and what is wrong; ``allowed``: the values of a setting, any if none."""
    base, _, query = address.partition("?")
    split = urlsplit(base.replace("#", "%23"))
    topic, settings = unquote(split.path.lstrip("/")), dict(parse_qsl(query))
    wrong = "" if topic else "it names no topic"
    for name, value in settings.items():
        if name not in allowed:
            wrong = wrong or f"it says {name!r}"
        elif allowed[name] and value not in allowed[name]:
            wrong = wrong or f"it says {name + '=' + value!r}"
    return base, topic, settings, wrong


def open_source(address: str) -> Mqtt:
    base, topic, settings, wrong = parsed(address, {"qos": "012", "client": "", "inflight": ""})
    inflight = settings.get("inflight", "20")
    if not (inflight.isdecimal() and 2 <= int(inflight) <= 65_535):
        wrong = wrong or f"it says inflight={inflight}, which is not a number from 2 to 65535"
    if wrong:
        raise StreamError(
            f"this is not the address of an MQTT topic: {wrong}",
            source=address,
            hint="write mqtt://host:1883/sensors/+/temperature, perhaps with ?qos=1&client=NAME",
        )
    return Mqtt(base, topic, settings)
