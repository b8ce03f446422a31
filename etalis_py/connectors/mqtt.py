"""``mqtt://host:1883/topic/#``: the messages of topics, from now on.

With quality of service 1 (``?qos=1``, the default) and a client name (``?client=alerts``) the broker keeps what comes
while nobody reads.  A message is acknowledged when a checkpoint has it; after a crash the broker sends those again that
were not, so each comes at least once.  User and password come from ``MQTT_USERNAME`` and ``MQTT_PASSWORD``.  Needs
paho-mqtt: the extra ``mqtt``.
"""

from __future__ import annotations

import os
import queue
import time
from collections import deque
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from etalis_py.connectors.contracts import Message, Position
from etalis_py.connectors.registry import missing
from etalis_py.events.errors import StreamError

PORTION, MOST = 1_000, 20_000
_PATIENCE = 10.0


class Mqtt:
    """A client with a thread of its own.  Beyond ``MOST`` messages that nobody has read, the broker must wait.

    The position counts the messages of this process; the broker knows no places, so they do not come ``again``.
    """

    again = False

    def __init__(self, address: str, topic: str, settings: dict[str, str]) -> None:
        try:
            import paho.mqtt.client as paho
        except ImportError:
            missing("paho-mqtt", "mqtt", address, sink=False)
        split = urlsplit(address)
        self._paho, self._topic = paho, topic
        self._host, self._secure = split.hostname or "localhost", split.scheme == "mqtts"
        self._port = split.port or (8883 if self._secure else 1883)
        self.name = f"{split.scheme}://{self._host}:{self._port}/{topic}"
        self._qos, self._client_name = int(settings.get("qos", "1")), settings.get("client", "")
        self._waiting: queue.Queue[Any] = queue.Queue(maxsize=MOST)
        self._unacknowledged: deque[tuple[int, int]] = deque()  # the mid and the quality of each
        self._read = self._acknowledged = 0
        self._client: Any = None
        self._problem = ""

    def open(self, position: Position | None) -> None:
        paho = self._paho
        client = self._client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, self._client_name, clean_session=not self._client_name, manual_ack=True
        )
        if user := os.environ.get("MQTT_USERNAME"):
            client.username_pw_set(user, os.environ.get("MQTT_PASSWORD"))
        if self._secure:
            client.tls_set()
        client.on_connect, client.on_message = self._connected, lambda *given: self._waiting.put(given[-1])
        client.on_subscribe = self._subscribed
        try:
            client.connect(self._host, self._port)
        except OSError as error:
            reason = f"the broker does not answer ({error.strerror or error})"
            raise StreamError(reason, source=self.name, hint="start the broker, or check the address") from None
        client.loop_start()
        end = time.monotonic() + _PATIENCE
        while not self._problem and not self._subscribed_at and time.monotonic() < end:
            time.sleep(0.01)
        if not self._subscribed_at:
            reason = self._problem or "the broker did not answer in time"
            raise StreamError(reason, source=self.name, hint="check the topic, and MQTT_USERNAME and MQTT_PASSWORD")

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
            self._subscribed_at = time.monotonic()

    def read(self, seconds: float) -> Sequence[Message] | None:
        messages: list[Message] = []
        try:
            one = self._waiting.get(timeout=seconds) if seconds else self._waiting.get_nowait()
            while True:
                self._read += 1
                self._unacknowledged.append((one.mid, one.qos))
                messages.append(Message(bytes(one.payload), f"{self.name}, {one.topic}", time.time_ns() // 1000))
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
        while self._acknowledged < position and self._unacknowledged:
            self._client.ack(*self._unacknowledged.popleft())
            self._acknowledged += 1

    def close(self) -> None:
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()
            self._client = None


def open_source(address: str) -> Mqtt:
    base, _, query = address.partition("?")
    split = urlsplit(base.replace("#", "%23"))
    topic, settings = unquote(split.path.lstrip("/")), dict(parse_qsl(query))
    unknown = [name for name in settings if name not in ("qos", "client")]
    if not topic or unknown or settings.get("qos", "1") not in ("0", "1", "2"):
        wrong = "it names no topic" if not topic else f"it says {unknown[0] if unknown else 'qos=' + settings['qos']!r}"
        raise StreamError(
            f"this is not the address of an MQTT topic: {wrong}",
            source=address,
            hint="write mqtt://host:1883/sensors/+/temperature, perhaps with ?qos=1&client=NAME",
        )
    return Mqtt(base, topic, settings)
