"""Servers that say when to come back, and servers that say nothing any more."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import closing
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from etalis_py.connectors import sse
from etalis_py.connectors.registry import open_sink, open_source
from etalis_py.containers.client import ContainerSink, Follower
from etalis_py.containers.origin import ContainerError
from etalis_py.streams import SinkError, StreamError
from etalis_py.streams.framed import Registry
from etalis_py.streams.retries import LONGEST_ASKED, asked_pause
from etalis_py.testing.connectors import some_matches
from tests.durable.peers import EventServer, Receiver, line
from tests.processes import comes


@pytest.fixture
def busy() -> Iterator[ThreadingHTTPServer]:
    """A server that answers everything with 503, or 429, and wants to be left alone for 7 seconds."""

    class Busy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(429 if "limit" in self.path else 503)
            self.send_header("retry-after", "7")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def read_all(source: Any, count: int) -> list[bytes]:
    got: list[bytes] = []

    def came() -> bool:
        got.extend(message.value for message in source.read(0.05))
        return len(got) >= count

    assert comes(came)
    return got


def test_an_answer_asks_for_seconds_or_for_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_pause(None) == asked_pause("") == asked_pause("-1") == asked_pause("1.5") == asked_pause("²") == 0
    assert asked_pause(" 12 ") == 12
    monkeypatch.setattr(time, "time", lambda: 1_000.0)
    assert asked_pause(formatdate(1_040, usegmt=True)) == 40
    assert asked_pause("9" * 400) == LONGEST_ASKED
    assert asked_pause(formatdate(5_000, usegmt=True)) == LONGEST_ASKED
    assert asked_pause("Mon, 99 Jan 2026 00:00:00 GMT") == asked_pause(formatdate(0, usegmt=True)) == 0


@pytest.mark.parametrize("code", [429, 503])
def test_a_webhook_waits_as_long_as_its_receiver_asks(receiver: Receiver, code: int) -> None:
    waited: list[float] = []
    receiver.answers, receiver.retry_after = [code, code], "3"
    sink: Any = open_sink(receiver.address)
    longest = sink.longest
    sink._sleep = waited.append
    sink.write(some_matches(1))
    sink.commit(sink.prepare())
    assert waited == [3.0, 3.0]
    assert sink.longest == longest + 6.0
    receiver.answers, receiver.retry_after = [code] * 5, ""
    sink.write(some_matches(1))
    sink.commit(sink.prepare())
    assert waited[2:] == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert sink.longest == longest


def test_a_webhook_does_not_wait_for_who_refuses(receiver: Receiver) -> None:
    receiver.answers, receiver.retry_after = [404], "3"
    sink: Any = open_sink(receiver.address)
    sink._sleep = lambda seconds: pytest.fail("it waits")
    sink.write(some_matches(1))
    with pytest.raises(SinkError, match="the answer was 404"):
        sink.commit(sink.prepare())


def test_a_websocket_and_a_registry_wait_as_long_as_they_are_asked(busy: ThreadingHTTPServer) -> None:
    pytest.importorskip("websockets", reason="needs the extra websocket")
    waited: list[float] = []
    sink: Any = open_sink(f"ws://127.0.0.1:{busy.server_address[1]}/x")
    sink._sleep = waited.append
    sink.write(some_matches(1))
    with pytest.raises(SinkError, match="503"):
        sink.commit(sink.prepare())
    assert waited == [7.0, 7.0, 7.0, 7.0, 8.0]
    del waited[:]
    with pytest.raises(StreamError, match="it answers 503"):
        Registry(f"http://127.0.0.1:{busy.server_address[1]}", sleep=waited.append).schema(1)
    assert waited == [7.0, 7.0, 7.0, 7.0, 8.0]


@pytest.mark.parametrize("path", ["busy", "limit"])
def test_a_container_is_left_alone_as_long_as_it_asks(
    busy: ThreadingHTTPServer, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    url = f"http://127.0.0.1:{busy.server_address[1]}/{path}/"
    monkeypatch.setattr(time, "sleep", waited.append)
    with pytest.raises(ContainerError, match="was out of reach for 0"):
        ContainerSink(url, patience=0.2)
    assert waited[0] == 7.0
    del waited[:]
    monkeypatch.setattr(Follower, "_pause", lambda self, seconds: waited.append(seconds))
    with pytest.raises(ContainerError, match="was out of reach for 0"), Follower(url, patience=0.2) as follower:
        next(iter(follower))
    assert waited[0] == 7.0


def test_server_sent_events_say_when_to_connect_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server = EventServer(map(line, range(4)))
    server.hang_up_after, server.events[0] = 2, line(0) + "\nretry: 300"
    with closing(server), closing(open_source(server.address)) as source:
        waited: list[float] = []
        monkeypatch.setattr(source._stopped, "wait", waited.append)  # type: ignore[attr-defined]
        source.open(None)
        assert len(read_all(source, 4)) == 4
    assert set(waited[:2]) == {0.3}


def test_a_busy_server_of_events_is_left_alone_as_long_as_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    server = EventServer(map(line, range(4)))
    server.hang_up_after = 2
    with closing(server), closing(open_source(server.address)) as source:
        waited: list[float] = []

        def wait(seconds: float) -> None:
            waited.append(seconds)
            server.code = 503 if len(waited) == 1 else 200

        monkeypatch.setattr(source._stopped, "wait", wait)  # type: ignore[attr-defined]
        server.more = {"retry-after": "9"}
        source.open(None)
        assert len(read_all(source, 4)) == 4
    assert waited[:2] == [0.2, 9.0]


def test_a_server_that_falls_silent_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was waited for for ever, although nobody was there any more."""
    monkeypatch.setattr(sse, "_SILENCE", 0.2)
    server = EventServer(map(line, range(3)))
    with closing(server), closing(open_source(server.address)) as source, warnings.catch_warnings():
        warnings.simplefilter("error")
        source.open(None)
        assert comes(lambda: len(server.asked) > 1)
        server.events.append(line(3))
        assert read_all(source, 4) == [line(at).encode() for at in range(4)]
    assert {asked.get("last-event-id") for asked in server.asked[1:]} <= {"3", "4"}


def test_a_comment_is_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "_SILENCE", 1.0)
    server = EventServer([line(0)])
    server.beats = 15
    with closing(server), closing(open_source(server.address)) as source:
        source.open(None)
        assert read_all(source, 1) == [line(0).encode()]
    assert len(server.asked) == 1


def test_a_server_that_takes_connections_and_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer was good, so the run would wait for ever for the second one."""
    monkeypatch.setattr(sse, "_SILENCE", 0.1)
    monkeypatch.setattr(sse, "_PATIENCE", 0.1)
    server = EventServer([line(0)])
    server.hang_up_after = 1
    with closing(server), closing(open_source(server.address)) as source:
        monkeypatch.setattr(sse, "pauses", lambda: iter([0.0, 0.01, 0.01]))
        source._connected.wait = lambda seconds: threading.Event.wait(source._connected, 20)  # type: ignore[attr-defined]
        source.open(None)
        assert len(read_all(source, 1)) == 1
        server.server.get_request = lambda: (_ for _ in ()).throw(OSError)  # type: ignore[method-assign]
        with pytest.raises(StreamError, match="there are no server-sent events: "):
            comes(lambda: source.read(0.05) is None)


def test_what_events_without_ids_may_lack_after_a_lost_connection_is_told() -> None:
    server = EventServer(map(line, range(4)), numbered=False)
    server.hang_up_after = 2
    with closing(server), closing(open_source(server.address + "?resume=no")) as source:
        source.open(None)
        with pytest.warns(UserWarning, match="what was sent meanwhile is missing, as the events have no ids") as told:
            read_all(source, 14)  # more than five connections, each of which brings something
    assert sum("as the events have no ids" in str(one.message) for one in told) == 1


@pytest.mark.parametrize("packed", ["br", "gzip, BR", "zstd"])
def test_an_answer_in_an_encoding_that_nobody_asked_for_is_refused(packed: str) -> None:
    """Its bytes were taken for lines, so that nothing ever came."""
    server = EventServer([line(0)])
    server.more = {"content-encoding": packed}
    with closing(server), pytest.raises(StreamError, match=r"the answer is encoded as (br|zstd), although only gzip, "):
        open_source(server.address).open(None)
    assert server.asked[0]["accept-encoding"] == "gzip, deflate"
    assert len(server.asked) == 1
