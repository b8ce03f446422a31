"""Webhooks with a real web server: what it gets, and how often."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from etalis_py.cli.farewell import waited_for
from etalis_py.connectors.registry import Request, open_sink
from etalis_py.streams import SinkError
from etalis_py.testing.connectors import check_sink, some_matches
from tests.cli import in_process
from tests.durable.peers import Receiver
from tests.processes import PATIENCE, comes, started

QUERY = "SELECT ?x { ?c :p ?x }"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_a_webhook_keeps_the_contract(receiver: Receiver) -> None:
    check_sink(lambda: open_sink(receiver.address), receiver.ids)


def test_a_webhook_gets_json_with_a_signature(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETALIS_WEBHOOK_SECRET", "s")
    sink = open_sink(receiver.address, Request())
    sink.write(some_matches(1))
    sink.commit(sink.prepare())
    (body,), (headers,) = receiver.bodies, receiver.headers
    record = json.loads(body)
    assert record["bindings"] == {"x": 0}
    assert headers["idempotency-key"] == record["id"]
    assert headers["x-etalis-signature"] == "sha256=" + hmac.new(b"s", body, hashlib.sha256).hexdigest()


def test_a_webhook_gets_cloudevents(receiver: Receiver) -> None:
    sink = open_sink(receiver.address + "?as=cloudevents")
    sink.write(some_matches(1))
    sink.commit(sink.prepare())
    record = json.loads(receiver.bodies[0])
    assert record["specversion"] == "1.0"
    assert record["id"] == record["data"]["id"]


@pytest.mark.parametrize("query", ["tag=a&tag=b", "key=&x", "sig=a%20b%2B/c"])
def test_what_else_an_address_says_goes_to_the_receiver_as_it_is(receiver: Receiver, query: str) -> None:
    for address in (f"?{query}", f"?{query}&as=json", f"?as=cloudevents&{query}"):
        sink = open_sink(receiver.address + address)
        sink.write(some_matches(1))
        sink.commit(sink.prepare())
    assert [path.partition("?")[2] for path in receiver.paths] == [query] * 3


def test_a_receiver_that_is_busy_is_asked_again(receiver: Receiver) -> None:
    receiver.answers = [503, 429]
    sink = open_sink(receiver.address)
    sink._sleep = lambda seconds: None  # type: ignore[attr-defined]
    sink.write(some_matches(2))
    sink.commit(sink.prepare())
    assert len(receiver.ids()) == 2


@pytest.mark.parametrize("code", [400, 404, 302])
def test_a_receiver_that_refuses_is_an_error_at_once(receiver: Receiver, code: int) -> None:
    receiver.answers = [code]
    sink = open_sink(receiver.address)
    sink.write(some_matches(1))
    with pytest.raises(SinkError, match=f"the answer was {code}"):
        sink.commit(sink.prepare())
    assert receiver.bodies == []


@pytest.mark.parametrize(
    "head", ["content-encoding: gzip\r\ncontent-length: 9", "content-length: 999", "connection: close"]
)
def test_a_match_has_arrived_whatever_follows_the_first_line_of_the_answer(head: str) -> None:
    """It was posted six times, and the run ended; an answer without an end was read to its end, into memory."""
    asked, sent = [], []

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            asked.append(connection.recv(65_536))
            connection.sendall(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode())
            for _ in range(1_000 if head == "connection: close" else 1):
                sent.append(connection.send(b"not gzip " * 10_000))

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=lambda: [answer(server.accept()[0]) for _ in range(2)], daemon=True).start()
        sink = open_sink(f"webhook+http://127.0.0.1:{server.getsockname()[1]}/hook")
        sink.write(some_matches(2))
        sink.commit(sink.prepare())
    assert len(asked) == 2
    assert sum(sent) < 50_000_000


@pytest.mark.parametrize("lasting", [False, True])
def test_a_run_that_is_stopped_says_what_it_waits_for(receiver: Receiver, folder: Path, lasting: bool) -> None:
    """A receiver that takes a match in ten seconds keeps a run of a hundred alive for a quarter of an hour."""
    (folder / "s.jsonl").write_text("".join(f'{{"time": {at}, "triples": ":c :p {at} ."}}\n' for at in range(3)))
    receiver.open.clear()
    given = ["run", "-q", QUERY, "-s", "s.jsonl", "--follow", "--idle", "100ms", "-o", receiver.address]
    more = ["--checkpoint", "ck", "--checkpoint-every", "0s"] if lasting else []
    with started([sys.executable, "-m", "etalis_py.cli.main", *given, *more], folder) as process:
        assert process.stderr is not None
        assert comes(lambda: receiver.asked > 0)
        process.send_signal(signal.SIGTERM)
        said = next(line for line in process.stderr if "stopping" in line)
        receiver.open.set()
        assert process.wait(PATIENCE) == 0
    assert said.startswith("etalis: stopping for 3 s: http://127.0.0.1:")
    assert re.search(" has yet to take [123] match", said)
    assert "; one that it does not take is tried for at most 76 s; a second signal ends the run, " in said
    assert said.endswith(", and the next one sends what is left\n" if lasting else ", without what is left\n")
    assert len(receiver.bodies) >= 1


def test_what_a_stopped_run_waits_for_names_the_last_problem(receiver: Receiver) -> None:
    sink: Any = open_sink(receiver.address)
    said: list[str] = []
    sink._sleep = lambda seconds: said.append(waited_for(sink, "w", writing=True, lasts=True))
    receiver.answers = [204, 503]
    sink.write(some_matches(3))
    sink.commit(sink.prepare())
    (one,) = said
    assert "w has yet to take 2 matches (the answer was 503 Service Unavailable); one that it" in one
    assert waited_for(sink, "w", writing=True, lasts=False) == "w has yet to take matches; a second signal ends the run"


def test_the_command_posts_matches(receiver: Receiver, folder: Path) -> None:
    (folder / "s.jsonl").write_text("".join(f'{{"time": {at}, "triples": ":c :p {at} ."}}\n' for at in range(3)))
    done = in_process.run(["run", "-q", QUERY, "-s", "s.jsonl", "-o", receiver.address], folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(body)["bindings"]["x"] for body in receiver.bodies] == [0, 1, 2]
