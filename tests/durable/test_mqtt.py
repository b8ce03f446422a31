"""MQTT with a broker: what is read again, what is published, and what happens while the broker is away."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from etalis_py import event, run
from etalis_py.connectors import connect
from etalis_py.connectors.registry import open_sink, open_source
from etalis_py.events import Event
from etalis_py.streams import Idle, SinkError, StreamError
from etalis_py.testing.connectors import MemorySink, check_sink, some_matches
from tests.cli import in_process
from tests.durable import services
from tests.durable.peers import Subscriber, publish

QUERY = "SELECT ?x { ?c :p ?x }"
EVENTS = [event(f":c :p {at}", at) for at in range(40)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def broker_of_mqtt(folder: Path) -> Iterator[str]:
    pytest.importorskip("paho.mqtt.client", reason="needs the extra mqtt: pip install 'etalis-py[mqtt]'")
    with services.mosquitto(folder, services.free_port()) as address:
        yield address


def test_mqtt_messages_are_read_by_a_mapping(broker_of_mqtt: str) -> None:
    source = open_source(f"{broker_of_mqtt}/sensors/#")
    mapping = {"time": "{at}", "triple": [{"subject": ":{id}", "predicate": ":value", "object": "{value}"}]}
    stream = connect(source, "mqtt://x", mapping=mapping, idle=0.2)
    items = iter(stream)
    next(items)  # silence: it has subscribed
    publish(broker_of_mqtt, "sensors/a", [json.dumps({"at": at, "id": "a", "value": at}) for at in range(3)])
    events = list(islice((item for item in items if isinstance(item, Event)), 3))
    assert [one.end for one in events] == [0, 1_000_000, 2_000_000]
    stream.close()


def test_mqtt_sends_again_what_no_checkpoint_has(broker_of_mqtt: str) -> None:
    address = f"{broker_of_mqtt}/t?client=alerts"
    source = open_source(address)
    source.open(None)
    publish(broker_of_mqtt, "t", ["1", "2", "3", "4"])
    got: list[bytes] = []
    while len(got) < 4:
        got += [message.value for message in source.read(5.0) or ()]  # type: ignore[union-attr]
    source.committed(2)
    time.sleep(0.3)
    source.close()
    again = open_source(address)
    again.open(None)
    rest: list[bytes] = []
    while len(rest) < 2:
        rest += [message.value for message in again.read(5.0) or ()]  # type: ignore[union-attr]
    assert sorted(rest) == [b"3", b"4"]
    again.close()


@pytest.mark.parametrize("name", ["", "?client=hot"])
@pytest.mark.parametrize("lasting", [False, True])
def test_many_mqtt_messages_are_read_though_the_broker_waits(
    broker_of_mqtt: str, folder: Path, name: str, lasting: bool
) -> None:
    """mosquitto sends twenty messages that nobody has acknowledged: no checkpoint was due, or there are none."""
    stream = connect(open_source(f"{broker_of_mqtt}/many{name}"), "mqtt://x", idle=0.1)
    publisher = threading.Timer(
        0.5, publish, (broker_of_mqtt, "many", [json.dumps({"time": n, "triples": f":c :p {n} ."}) for n in range(90)])
    )
    publisher.start()
    options: Any = {"checkpoint": folder / "ck", "sink": MemorySink([])} if lasting else {}
    with stream, run(QUERY, stream, **options) as matches:
        assert [match["x"] for match in islice(matches, 89)] == list(range(89))
    publisher.join()


def test_a_broker_that_sends_more_at_a_time_waits_for_fewer_checkpoints(broker_of_mqtt: str) -> None:
    """Half of what is in flight may wait for the next checkpoint: ten messages of mosquitto's 20, unless it is said."""
    for more, count in (("", 10), ("&inflight=18", 9)):
        source: Any = open_source(f"{broker_of_mqtt}/busy{count}?client=busy{count}{more}")
        source.open(None)
        got = 0
        while got < count:
            publish(broker_of_mqtt, f"busy{count}", ["x"])
            assert not source.pressing()
            got += len(source.read(5))
        assert source.pressing()
        source.close()


def test_an_mqtt_address_says_what_is_wrong() -> None:
    pytest.importorskip("paho.mqtt.client", reason="needs the extra mqtt: pip install 'etalis-py[mqtt]'")
    with pytest.raises(StreamError, match="it names no topic"):
        open_source("mqtt://host")
    with pytest.raises(StreamError, match="it says inflight=many, which is not a number from 2 to 65535"):
        open_source("mqtt://host/t?client=a&inflight=many")
    with pytest.raises(StreamError, match="the broker does not answer"):
        open_source(f"mqtt://127.0.0.1:{services.free_port()}/t").open(None)


def test_mqtt_keeps_the_contract_of_a_sink(broker_of_mqtt: str) -> None:
    subscriber = Subscriber(broker_of_mqtt, "alerts")
    check_sink(lambda: open_sink(f"{broker_of_mqtt}/alerts"), subscriber.ids)
    subscriber.close()


@pytest.mark.parametrize("qos", ["1", "2"])
def test_the_command_publishes_matches(broker_of_mqtt: str, folder: Path, qos: str) -> None:
    subscriber = Subscriber(broker_of_mqtt, "alerts")
    lines = (f'{{"time": {at}, "triples": ":c :p {at} ."}}\n' for at in range(2500))
    (folder / "s.jsonl").write_text("".join(lines))
    done = in_process.run(["run", "-q", QUERY, "-s", "s.jsonl", "-o", f"{broker_of_mqtt}/alerts?qos={qos}"], folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(set(subscriber.ids(2500))) == 2500
    subscriber.close()


def test_a_retained_match_waits_for_who_subscribes_later(broker_of_mqtt: str) -> None:
    sink = open_sink(f"{broker_of_mqtt}/newest?retain=yes")
    sink.recover(None)
    sink.write(matches := some_matches(3))
    sink.commit(sink.prepare())
    sink.close()
    subscriber = Subscriber(broker_of_mqtt, "newest")
    assert subscriber.ids() == [matches[-1].id]
    subscriber.close()


def test_a_broker_that_comes_back_gets_the_matches(folder: Path) -> None:
    pytest.importorskip("paho.mqtt.client", reason="needs the extra mqtt: pip install 'etalis-py[mqtt]'")
    port = services.free_port()
    with services.mosquitto(folder, port) as address:
        sink = open_sink(f"{address}/alerts")
        sink.recover(None)
        sink.write(matches := some_matches(6))
        sink.commit(token := sink.prepare())
        publisher = Subscriber(address, "alerts")
        publisher.close()  # a session of which the broker keeps the messages
    with services.mosquitto(folder, port) as address:
        sink.commit(token)  # the client connects again
        sink.close()
        subscriber = Subscriber(address, "alerts")
        assert set(subscriber.ids(6)) == {match.id for match in matches}
        subscriber.close()


def test_a_broker_that_is_away_for_a_while_is_not_silent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("paho.mqtt.client", reason="needs the extra mqtt: pip install 'etalis-py[mqtt]'")
    port = services.free_port()
    with services.mosquitto(folder, port) as address:
        source = open_source(f"{address}/t?client=away")
        source.open(None)
        assert source.read(0.0) == []
    time.sleep(0.5)
    with ThreadPoolExecutor() as threads:
        reading = threads.submit(source.read, 0.01)
        time.sleep(0.5)
        assert not reading.done(), "an answer would be silence, by which what the broker keeps comes too late"
        with services.mosquitto(folder, port) as address:
            publish(address, "t", ["1"])
            while not (got := reading.result(30)):
                reading = threads.submit(source.read, 0.01)
            assert [message.value for message in got] == [b"1"]  # type: ignore[union-attr]
    monkeypatch.setattr("etalis_py.connectors.mqtt.AWAY", 0.2)
    time.sleep(0.5)
    with pytest.raises(StreamError, match=r"the broker does not come back\n.*start the broker"):
        source.read(0.1)
    source.close()


def test_a_run_that_is_to_stop_does_not_wait_for_a_broker_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the broker keeps comes to the next run."""
    pytest.importorskip("paho.mqtt.client", reason="needs the extra mqtt: pip install 'etalis-py[mqtt]'")
    source: Any = open_source("mqtt://127.0.0.1/t?client=away")
    monkeypatch.setattr(source, "open", lambda position: source._disconnected())
    stream = connect(source, "mqtt://x", idle=0.1)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(next, iter(stream))
        time.sleep(0.5)
        assert not waiting.done()
        stream.hurry()
        assert isinstance(waiting.result(5), Idle)
    stream.close()


def test_an_mqtt_address_to_write_to_says_what_is_wrong() -> None:
    pytest.importorskip("paho.mqtt.client", reason="needs the extra mqtt: pip install 'etalis-py[mqtt]'")
    with pytest.raises(SinkError, match="a topic to write to has no wildcards"):
        open_sink("mqtt://host/alerts/#")
    with pytest.raises(SinkError, match=r"it says 'qos=0'"):
        open_sink("mqtt://host/alerts?qos=0")
    with pytest.raises(SinkError, match="the broker does not answer"):
        open_sink(f"mqtt://127.0.0.1:{services.free_port()}/t").recover(None)
