"""Webhooks with a real web server: what it gets, and how often."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from etalis_py.connectors.registry import Request, open_sink
from etalis_py.streams import SinkError
from etalis_py.testing.connectors import check_sink, some_matches
from tests.cli import in_process
from tests.durable.peers import Receiver

QUERY = "SELECT ?x { ?c :p ?x }"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


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


def test_the_command_posts_matches(receiver: Receiver, folder: Path) -> None:
    (folder / "s.jsonl").write_text("".join(f'{{"time": {at}, "triples": ":c :p {at} ."}}\n' for at in range(3)))
    done = in_process.run(["run", "-q", QUERY, "-s", "s.jsonl", "-o", receiver.address], folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(body)["bindings"]["x"] for body in receiver.bodies] == [0, 1, 2]
