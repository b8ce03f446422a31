"""Server-sent events and WebSockets, with real servers and clients at the other end."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from etalis_py import Engine, event, run
from etalis_py.connectors import connect, sse_sink
from etalis_py.connectors.http_server import Handler
from etalis_py.connectors.registry import open_sink, open_source
from etalis_py.connectors.sse import EventParser
from etalis_py.connectors.sse_sink import Feed
from etalis_py.events import Event
from etalis_py.streams import SinkError, StreamError
from etalis_py.testing.connectors import check_sink, check_source, some_matches
from tests.cli import in_process
from tests.durable import services
from tests.durable.peers import EventServer, Peer, line
from tests.processes import PATIENCE, comes

QUERY = "SELECT ?x { ?c :p ?x }"


def read_all(source: Any, count: int) -> list[bytes]:
    """The values of so many messages, waiting for them."""
    got: list[bytes] = []
    end = time.monotonic() + 20
    while len(got) < count and time.monotonic() < end:
        portion = source.read(0.2)
        if portion is None:
            break
        got += [message.value for message in portion]
    return got


# --- server-sent events, in ---


@pytest.fixture
def events() -> Iterator[EventServer]:
    server = EventServer(map(line, range(7)))
    yield server
    server.close()


def test_server_sent_events_keep_the_contract(events: EventServer) -> None:
    check_source(lambda: open_source(events.address), arrivals=False)


def test_a_lost_connection_goes_on_after_the_last_event(events: EventServer) -> None:
    events.hang_up_after = 2
    source = open_source(events.address)
    source.open(None)
    assert read_all(source, 7) == [text.encode() for text in events.events]
    source.close()
    assert [asked.get("last-event-id") for asked in events.asked][:3] == [None, "2", "4"]


def test_an_id_that_is_not_ascii_is_sent_back_in_utf8(events: EventServer) -> None:
    """The thread that receives ended with a traceback, and the run waited for ever."""
    events.code = 503
    with pytest.raises(StreamError, match="the answer was 503"):
        open_source(events.address).open("größe-7")
    assert events.asked[0]["last-event-id"].encode("latin-1").decode() == "größe-7"


def test_what_ends_the_thread_that_receives_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSE_TOKEN", "Zürich\n")
    with pytest.raises(StreamError, match="there are no server-sent events: "):
        open_source("sse+http://127.0.0.1:1/x").open(None)
    with pytest.raises(StreamError, match="there are no server-sent events: "):
        open_source("sse+http://127.0.0.1:abc/x").open(None)


@pytest.mark.parametrize("size", [1, 2, 3, 1_000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_are_the_same_in_pieces_of_any_size(size: int, end: str) -> None:
    body = end.join(
        ["\ufeffdata: a", "data:b", "", ": a comment", "id: 7", "data: c", "", "", "data", "", "data: d"]
    ).encode()
    parser, pieces = EventParser(""), [body[at : at + size] for at in range(0, len(body), size)]
    got = [tuple(event) for piece in (*pieces, b"") for event in parser.events(piece)]
    assert got == [("", b"a\nb"), ("7", b"c"), ("7", b"")]


def test_the_kind_of_an_answer_is_told_apart_as_http_does() -> None:
    events = EventServer([line(0)])
    events.kind = "Text/Event-Stream ; charset=utf-8"
    with closing(events), closing(open_source(events.address)) as source:
        source.open(None)
        assert read_all(source, 1) == [line(0).encode()]


def test_an_answer_of_204_is_the_end(events: EventServer, tmp_path: Path) -> None:
    events.closes = True
    arguments = ["run", "-q", QUERY, "-s", events.address, "-o", "out.jsonl", "--checkpoint", "ck"]
    done = in_process.run(arguments, tmp_path)
    assert done.returncode == 0, done.stderr
    found = [json.loads(one)["bindings"]["x"]["value"] for one in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert found == [str(at) for at in range(7)]


def test_events_without_ids_are_refused_beside_a_checkpoint(tmp_path: Path) -> None:
    server = EventServer(map(line, range(7)), numbered=False)
    try:
        arguments = ["run", "-q", QUERY, "-o", "out.jsonl", "--checkpoint-every", "0s"]
        done = in_process.run([*arguments, "-s", server.address, "--checkpoint", "ck"], tmp_path)
        assert done.returncode == 1
        assert "have no ids" in done.stderr
        assert "add resume=no to the address" in done.stderr
        with (
            connect(open_source(server.address + "?resume=no"), server.address, idle=0.1) as stream,
            run(QUERY, stream, checkpoint=tmp_path / "other", checkpoint_every=0) as matches,
        ):
            assert [match["x"] for match in islice(matches, 7)] == list(range(7))
    finally:
        server.close()


@pytest.mark.parametrize(("code", "told"), [(404, "the answer was 404"), (302, "the answer was 302")])
def test_an_address_without_events_says_so(events: EventServer, code: int, told: str) -> None:
    events.code = code
    with pytest.raises(StreamError, match=told):
        open_source(events.address).open(None)
    assert len(events.asked) == 1


def test_a_token_goes_along(events: EventServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSE_TOKEN", "secret")
    source = open_source(events.address)
    source.open(None)
    source.close()
    assert events.asked[0]["authorization"] == "Bearer secret"


def test_nobody_there_is_an_error_at_once() -> None:
    for address in (f"sse+http://127.0.0.1:{services.free_port()}/x", f"ws://127.0.0.1:{services.free_port()}/x"):
        with pytest.raises(StreamError, match="check the address"):
            open_source(address).open(None)


# --- server-sent events, out ---


def test_a_reader_of_server_sent_events_gets_every_match_over_crashes() -> None:
    """The contract, with a reader that listens from time to time and goes on after its last event."""
    port = services.free_port()
    position: list[Any] = [None]
    got: list[str] = []

    def content() -> list[str]:
        source = open_source(f"sse+http://127.0.0.1:{port}/alerts")
        source.open(position[0])
        while portion := source.read(0.5):
            got.extend(json.loads(message.value)["id"] for message in portion)  # type: ignore[union-attr]
            position[0] = source.position()
        source.close()
        return got

    check_sink(lambda: open_sink(f"sse://127.0.0.1:{port}/alerts"), content)


def test_a_reader_that_fell_behind_gets_what_is_kept() -> None:
    port = services.free_port()
    sink = open_sink(f"sse://127.0.0.1:{port}/alerts?keep=4")
    sink.recover(None)
    sink.write(matches := some_matches(9))
    sink.commit(sink.prepare())
    with httpx.stream("GET", f"http://127.0.0.1:{port}/alerts", timeout=5) as answer:
        lines = list(islice(answer.iter_lines(), 16))
    kept = [json.loads(text.removeprefix("data: "))["id"] for text in lines if text.startswith("data: ")]
    assert kept == [match.id for match in matches[5:]]
    assert [text for text in lines if text.startswith("event: ")] == ["event: match"] * 4
    sink.close()


def test_a_reader_that_missed_events_is_told_and_so_is_who_runs_it() -> None:
    feed = Feed(keep=4)
    feed.go_to(feed.after([("match", str(number)) for number in range(1, 7)]))
    assert "no longer kept" not in (feed.wait("new", 0) or ("",))[0]
    assert "no longer kept" not in (feed.wait("back", 2) or ("",))[0]
    with pytest.warns(UserWarning, match=r"a reader has missed 1 of the events, .*; \?keep=N keeps more"):
        text, last = feed.wait("late", 1) or ("", 0)
    assert text.startswith(f": missed 1 of the events, which are no longer kept\n\nid: {feed.run}-3\n")
    assert last == 6


def test_a_reader_is_given_little_at_once() -> None:
    """It may take nothing of it, and there may be many such readers."""
    feed, number, got = Feed(keep=100), 0, ""
    feed.go_to(feed.after([("match", str(at) * 20_000) for at in range(9)] + [("match", "x" * 200_000)]))
    while number < 10:
        text, number = feed.wait(feed, number) or ("", 10)
        assert text.count("data: ") == 1 or len(text) < 100_000
        got += text
    assert [line[6] for line in got.splitlines() if line.startswith("data: ")] == list("012345678x")


def test_a_client_that_does_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Handler, "timeout", 0.2)
    monkeypatch.setattr(sse_sink, "READERS", 1)
    sink = sse_sink.SseSink("sse://127.0.0.1", "127.0.0.1", 0, "/alerts")
    sink.recover(None)
    url = f"http://127.0.0.1:{sink.port}/alerts"
    with socket.create_connection(("127.0.0.1", sink.port)) as silent:
        silent.settimeout(PATIENCE)
        assert silent.recv(1) == b""
    with socket.create_connection(("127.0.0.1", sink.port)) as idle:
        idle.sendall(b"GET /alerts HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert comes(lambda: httpx.get(url).status_code == 503)
        sink.commit(sink.feed.after([("match", "x" * 50_000)] * 1_000))

        def is_free() -> bool:
            with httpx.stream("GET", url) as answer:
                return answer.status_code == 200

        assert comes(is_free)
    sink.close()


def test_readers_need_the_token_and_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    port = services.free_port()
    monkeypatch.setenv("SSE_TOKEN", "secret")
    sink = open_sink(f"sse://127.0.0.1:{port}/alerts?origin=https://page.example.org")
    sink.recover(None)
    url, key = f"http://127.0.0.1:{port}/alerts", {"Authorization": "Bearer secret"}
    assert httpx.get(url).status_code == 401
    assert httpx.get(url, headers={"Authorization": "Bearer other"}).status_code == 401
    assert httpx.get(f"http://127.0.0.1:{port}/other", headers=key).status_code == 404
    head = httpx.head(url, headers=key, timeout=PATIENCE)  # it ends, though the events do not
    assert (head.status_code, head.headers["content-type"]) == (200, "text/event-stream")
    with httpx.stream("GET", url, headers=key) as answer:
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "https://page.example.org"
    sink.close()


def test_a_match_that_is_taken_back_is_told_to_readers() -> None:
    port = services.free_port()
    engine = Engine(QUERY, revise=10_000_000)
    events = [event(f":c :p {at}", at) for at in range(4)]
    found = [
        match for one in [*events, event(":c :p 1", 1, retract=True)] for match in engine.push(one)
    ] + engine.close()
    sink = open_sink(f"sse://127.0.0.1:{port}/alerts")
    sink.recover(None)
    sink.write(found)
    sink.commit(sink.prepare())
    with httpx.stream("GET", f"http://127.0.0.1:{port}/alerts", timeout=5) as answer:
        texts = list(islice(answer.iter_lines(), 20))
    kinds = [text.removeprefix("event: ") for text in texts if text.startswith("event: ")]
    data = [json.loads(text.removeprefix("data: ")) for text in texts if text.startswith("data: ")]
    told = [(kind, one["bindings"]["x"]) for kind, one in zip(kinds, data, strict=True)]
    assert sorted(told) == [("match", 0), ("match", 1), ("match", 2), ("match", 3), ("retracted", 1)]
    assert [one.get("retracted", False) for one in data] == [kind == "retracted" for kind in kinds]
    sink.close()


def connected(address: str) -> Any:
    """A source that is open, as soon as somebody answers there."""
    end = time.monotonic() + 20
    while True:
        source = open_source(address)
        try:
            source.open(None)
        except StreamError:
            assert time.monotonic() < end
            time.sleep(0.02)
        else:
            return source


def test_the_command_waits_until_its_readers_have_everything(tmp_path: Path) -> None:
    """The run ends as soon as its sender does; a reader that was there has every match."""
    port, sender = services.free_port(), socket.create_server(("127.0.0.1", 0))
    got: list[int] = []

    def listen() -> None:
        source = connected(f"sse+http://127.0.0.1:{port}/alerts")
        with sender, sender.accept()[0] as connection:
            connection.sendall("".join(line(at) + "\n" for at in range(300)).encode())
        got.extend(json.loads(value)["bindings"]["x"] for value in read_all(source, 300))
        source.close()

    reader = threading.Thread(target=listen)
    reader.start()
    source, sink = f"tcp://127.0.0.1:{sender.getsockname()[1]}", f"sse://127.0.0.1:{port}/alerts"
    done = in_process.run(["run", "-q", QUERY, "-s", source, "-o", sink], tmp_path)
    reader.join(30)
    assert (done.returncode, done.stderr) == (0, "")
    assert got == list(range(300))


def test_a_run_answers_at_an_address_of_ipv6() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("needs IPv6")
    with closing(open_sink("sse://[::1]:0/alerts")) as sink:
        sink.recover(None)
        answer = httpx.get(f"http://[::1]:{sink.port}/elsewhere")  # type: ignore[attr-defined]
    assert answer.status_code == 404


def test_an_address_to_listen_at_says_what_is_wrong() -> None:
    for address in ("sse://localhost/alerts", "sse://localhost:1/x?keep=0", "sse://localhost:1/x?other=1"):
        with pytest.raises(SinkError, match="write sse://localhost:8090/alerts"):
            open_sink(address)
    with services.listening() as port, pytest.raises(SinkError, match="nobody can listen there"):
        open_sink(f"sse://127.0.0.1:{port}/alerts").recover(None)


# --- WebSockets ---


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.server.shutdown()


def test_a_websocket_keeps_the_contract_of_a_sink(peer: Peer) -> None:
    check_sink(lambda: open_sink(peer.address), peer.ids)


def test_a_portion_without_an_answer_is_sent_again(peer: Peer) -> None:
    """The first connection breaks after its first frames, before the answer to the ping."""
    seen: list[bytes] = []

    def cut(data: bytes) -> bool:
        seen.append(data)
        return len(seen) == 2

    with services.between(peer.server.socket.getsockname()[1], cut) as through:
        sink = open_sink(f"ws://127.0.0.1:{through}/alerts")
        sink.write(matches := some_matches(3))
        sink.commit(sink.prepare())
        sink.close()
    ids, got = [match.id for match in matches], peer.ids()
    assert len(got) > 3
    assert got[-3:] == ids


def test_the_token_goes_along(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBSOCKET_TOKEN", "secret")
    sink = open_sink(peer.address)
    sink.write(some_matches(1))
    sink.commit(sink.prepare())
    assert comes(lambda: peer.headers)
    assert peer.headers[0]["authorization"] == "Bearer secret"
    sink.close()


def test_frames_are_read_over_a_lost_connection() -> None:
    """The server sends three frames to each that comes, and hangs up."""
    sent = iter(range(100))

    def answer(connection: Any) -> None:
        for at in islice(sent, 3):
            connection.send(line(at) if at % 2 else line(at).encode())

    peer = Peer(answer)
    stream = connect(open_source(peer.address), peer.address, idle=0.1)
    with stream, pytest.warns(UserWarning, match="has been made again, and what was sent meanwhile is missing") as told:
        read = list(islice((item for item in stream if isinstance(item, Event)), 7))
    peer.server.shutdown()
    assert len(told) == 1
    assert [one.triples for one in read] == [event(f":c :p {at}", at).triples for at in range(7)]


def test_a_websocket_does_not_follow_a_redirect(events: EventServer) -> None:
    events.code = 302
    address = events.address.replace("sse+http", "ws")
    pytest.importorskip("websockets", reason="needs the extra websocket")
    with pytest.raises(StreamError, match="no WebSocket is opened there"):
        open_source(address).open(None)
    assert len(events.asked) == 1


def test_a_server_that_stays_away_is_an_error(peer: Peer) -> None:
    peer.server.shutdown()
    sink = open_sink(peer.address)
    sink._sleep = lambda seconds: None  # type: ignore[attr-defined]
    sink.write(some_matches(1))
    with pytest.raises(SinkError, match="a match could not be sent"):
        sink.commit(sink.prepare())
