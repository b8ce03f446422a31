"""``mqtt://host:1883/topic`` as a sink: each match a message of plain JSON, at least once.

``?qos=1`` (the default) waits until the broker has each message, ``?qos=2`` until it has it once; ``?retain=yes`` keeps
the newest match for those who subscribe later.  User and password come from ``MQTT_USERNAME`` and ``MQTT_PASSWORD``.
Needs paho-mqtt: the extra ``mqtt``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from etalis_py.connectors.mqtt import PATIENCE, Broker, library, parsed
from etalis_py.connectors.posting import Posting
from etalis_py.connectors.registry import Request
from etalis_py.events.errors import SinkError

_TOGETHER = 1_000  # messages that the client holds at once; few of them are on their way, as brokers want it
_LOOK = 0.002
_ACKNOWLEDGED = 30.0  # seconds for the broker to come back, and to take them


class MqttSink(Posting):
    """A client with a thread of its own, which connects again and repeats what the broker has not acknowledged."""

    longest = PATIENCE + _ACKNOWLEDGED

    def __init__(self, address: str, topic: str, settings: dict[str, str]) -> None:
        super().__init__()
        self._paho, self._broker = library(address, sink=True), Broker.of(address, topic)
        self.name = self._broker.name
        self._qos, self._retain = int(settings.get("qos", "1")), settings.get("retain") == "yes"
        self._client: Any = None
        self._problem = ""
        self._arrived: set[int] = set()  # the numbers of the messages of a part that the broker has

    def recover(self, token: Any | None) -> None:
        self._connected()  # an address that is wrong is told now
        super().recover(token)

    def _failure(self, reason: str) -> SinkError:
        hint = "start the broker, or check the address, MQTT_USERNAME and MQTT_PASSWORD"
        return SinkError(reason, target=self.name, hint=hint)

    def _connected(self) -> Any:
        if self._client is None:
            client = self._broker.client(self._paho, "")
            client.reconnect_delay_set(0.5, 5.0)
            client.on_connect = self._answered
            client.on_publish = lambda *given: self._arrived.add(given[2])
            try:
                client.connect(self._broker.host, self._broker.port)
            except OSError as error:
                raise self._failure(f"the broker does not answer ({error.strerror or error})") from None
            client.loop_start()
            self._client = client
        self._until(self._client.is_connected, PATIENCE, "the broker did not answer in time")
        return self._client

    def _answered(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._problem = f"the broker refuses the connection: {reason}" if reason.is_failure else ""

    def _until(self, done: Callable[[], bool], seconds: float, reason: str) -> None:
        end = time.monotonic() + seconds
        while not done():
            if self._problem or time.monotonic() > end:
                raise self._failure(self._problem or reason)
            time.sleep(_LOOK)

    def post(self, records: Sequence[dict[str, Any]]) -> None:
        for begin in range(0, len(records), _TOGETHER):
            client, part = self._connected(), records[begin : begin + _TOGETHER]
            self._arrived.clear()
            for record in part:
                client.publish(self._broker.topic, msgspec.json.encode(record), self._qos, self._retain)
            self._until(partial(self._has, len(part)), _ACKNOWLEDGED, "the broker has not taken a match")

    def _has(self, count: int) -> bool:
        return len(self._arrived) >= count

    def close(self) -> None:
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()
            self._client = None


def open_sink(address: str, request: Request) -> MqttSink:
    base, topic, settings, wrong = parsed(address, {"qos": "12", "retain": ("yes", "no")})
    if topic and any(sign in topic for sign in "+#"):
        wrong = wrong or "a topic to write to has no wildcards"
    if wrong:
        raise SinkError(
            f"this is not the address of an MQTT topic: {wrong}",
            target=address,
            hint="write mqtt://host:1883/alerts, perhaps with ?qos=2&retain=yes",
        )
    return MqttSink(base, topic, settings)
