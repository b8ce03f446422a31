"""Messages with the framing of a schema registry: which schema they name, and what becomes of their content."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from etalis_py.connectors.registry import open_sink
from etalis_py.streams import SinkError, StreamError
from etalis_py.streams.framed import Framed, Registry, RegistryUnavailable, SchemaFolder, framing_of
from etalis_py.streams.kafka import parse_topic

READING = {"type": "record", "name": "Reading", "fields": [
    {"name": "id", "type": "string"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "value", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
]}  # fmt: skip
AT = datetime(2026, 1, 31, 12, 0, 0, 5000, UTC)


def framed(number: int, content: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + content


def avro(schema: Any, value: Any) -> bytes:
    fastavro = pytest.importorskip("fastavro", reason="needs the extra avro: pip install 'etalis-py[avro]'")
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(schema), value)
    return buffer.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "7.avsc").write_text(json.dumps(READING))
    (tmp_path / "8.json").write_text('{"type": "object"}')
    (tmp_path / "9.avsc").write_text('{"type": "recor"}')
    return tmp_path


def test_avro_becomes_json_with_its_logical_types(folder: Path) -> None:
    content = avro(READING, {"id": "a", "at": AT, "value": Decimal("1.50"), "day": date(2026, 1, 31)})
    text = Framed(SchemaFolder(str(folder)))(framed(7, content))
    assert text == b'{"id":"a","at":"2026-01-31T12:00:00.005000Z","value":1.50,"day":"2026-01-31"}'
    nothing = avro(READING, {"id": "a", "at": AT, "value": None, "day": date(2026, 1, 31)})
    assert json.loads(Framed(SchemaFolder(str(folder)))(framed(7, nothing)))["value"] is None


def test_json_stays_as_it_is(folder: Path) -> None:
    assert Framed(SchemaFolder(str(folder)))(framed(8, b'{"a": 1}')) == b'{"a": 1}'


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"a": 1}', "this message has no number of a schema"),
        (b"\0\0\0", "this message has no number of a schema"),
        (framed(3, b"{}"), "has no schema 3"),
    ],
)
def test_what_cannot_be_read_is_said(folder: Path, data: bytes, said: str) -> None:
    with pytest.raises(StreamError, match=said) as raised:
        Framed(SchemaFolder(str(folder)))(data)
    assert raised.value.text == data.decode("utf-8", "backslashreplace")


def test_content_of_another_schema_is_no_message(folder: Path) -> None:
    content = avro(READING, {"id": "a", "at": AT, "value": None, "day": date(2026, 1, 31)})
    read = Framed(SchemaFolder(str(folder)))
    for bad in (content[:-1], b"", b"\xff" * 20):
        with pytest.raises(StreamError, match="this is no message of schema 7"):
            read(framed(7, bad))
    with pytest.raises(StreamError, match="2 bytes are left over"):
        read(framed(7, content + b"\0\0"))
    with pytest.raises(StreamError, match="schema 9 is no schema of Avro"):
        read(framed(9, content))


class SchemaServer:
    """A registry: schemas by number, and the answers that it is told to give first."""

    def __init__(self, schemas: dict[int, dict[str, Any]]) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.answers: list[int] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, self.headers["authorization"]))
                found = schemas.get(int(self.path.rpartition("/")[2]))
                code = outer.answers.pop(0) if outer.answers else 200 if found else 404
                body = json.dumps(found or {"error_code": 40403}).encode()
                self.send_response(code)
                self.send_header("content-length", str(len(body)))
                self.send_header("location", "/elsewhere/8")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def registry() -> Iterator[SchemaServer]:
    server = SchemaServer({
        7: {"schema": json.dumps(READING)},
        8: {"schema": "{}", "schemaType": "JSON"},
        10: {"schema": "syntax", "schemaType": "PROTOBUF"},
        11: {"schema": "{}", "schemaType": "JSON", "references": [{"name": "a"}]},
    })  # fmt: skip
    yield server
    server.server.shutdown()
    server.server.server_close()


def test_a_schema_is_asked_for_once(registry: SchemaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEMA_REGISTRY_USER", "me")
    monkeypatch.setenv("SCHEMA_REGISTRY_PASSWORD", "secret")
    read = Framed(Registry(registry.address))
    assert [read(framed(8, b"{}")) for _ in range(3)] == [b"{}"] * 3
    assert registry.asked == [("/schemas/ids/8", "Basic bWU6c2VjcmV0")]


def test_a_registry_that_is_busy_is_asked_again(registry: SchemaServer) -> None:
    registry.answers = [503, 429]
    waited: list[float] = []
    assert Framed(Registry(registry.address, waited.append))(framed(8, b"{}")) == b"{}"
    assert waited == [0.5, 1.0]


@pytest.mark.parametrize("answer", [401, 302])
def test_a_registry_that_refuses_says_nothing_about_the_message(registry: SchemaServer, answer: int) -> None:
    registry.answers = [answer] * 9
    with pytest.raises(RegistryUnavailable, match=f"is not to be had: it answers {answer}"):
        Framed(Registry(registry.address, lambda _: None))(framed(8, b"{}"))
    assert len(registry.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b'HTTP/1.1 200 OK\r\n\r\n{"schema": 7}',
        b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
    ],
)
def test_a_registry_that_answers_something_else_says_nothing_about_the_message(answer: bytes) -> None:
    """A proxy in front of it may answer 200 with a page, or half of an answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    with server.accept()[0] as connection, suppress(OSError):
                        connection.recv(65_536)
                        connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        registry = Registry(f"http://127.0.0.1:{server.getsockname()[1]}", sleep=lambda seconds: None)
        with pytest.raises(RegistryUnavailable, match="the schema registry is not to be had"):
            registry.schema(7)


@pytest.mark.parametrize(
    ("number", "said"), [(3, "knows no schema 3"), (10, "of the type PROTOBUF"), (11, "refers to other schemas")]
)
def test_a_number_that_cannot_be_used_is_about_the_message(registry: SchemaServer, number: int, said: str) -> None:
    with pytest.raises(StreamError, match=said) as raised:
        Framed(Registry(registry.address))(framed(number, b"{}"))
    assert not isinstance(raised.value, RegistryUnavailable)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("registry=http://h&schemas=.", "give registry= or schemas="),
        ("registry=h:8081", "not the address of a schema registry"),
        ("registry=http://me:secret@h", "a password does not belong in an address"),
        ("schemas=nowhere", "there is no such folder"),
        ("schemas=.&format=trig", "framed messages are JSON, not trig"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: str, said: str) -> None:
    with pytest.raises(StreamError, match=said) as raised:
        parse_topic(f"kafka://h:9092/t?{settings}")
    assert "secret" not in str(raised.value)
    assert framing_of("", "") is None


def test_a_sink_writes_no_framing(folder: Path) -> None:
    with pytest.raises(SinkError, match="matches are written as JSON without framing"):
        open_sink(f"kafka://h:9092/t?schemas={folder}")
