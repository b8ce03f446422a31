"""A line that cannot be read: everything that was complete before it is read, then the error says where it is."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from etalis_py import run
from etalis_py.events import Event
from etalis_py.knowledge.errors import KnowledgeError
from etalis_py.streams import SinkError, Stream, StreamError, read_stream, reader

from .columns.reading import Refused
from .conftest import brief

GOOD = 1000
PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"
MAPPING = {"subject": "<urn:c>", "predicate": "<urn:p>", "object": "{x}", "time": "{t}"}


def time_of(x: int) -> str:
    return f'"2026-01-31T10:{x // 60:02}:{x % 60:02}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'


LINES: dict[str, Callable[[int], str]] = {
    "jsonl": lambda x: json.dumps({"time": x, "triples": f"<urn:c> <urn:p> {x} ."}),
    "csv": lambda x: f"{x},{x}",
    "nt": lambda x: f'<urn:c> <urn:p> "{x}" .',
    "ttl": lambda x: f'<urn:c> <urn:p> "{x}" .',
    "nq": lambda x: f'<urn:c> <urn:p> "{x}" <urn:g{x}> .\n<urn:g{x}> {PROV} {time_of(x)} .',
    "trig": lambda x: f'<urn:g{x}> {{ <urn:c> <urn:p> "{x}" }}\n<urn:g{x}> {PROV} {time_of(x)} .',
    "messages.nq": lambda x: f'<urn:c> <urn:p> "{x}" <urn:g{x}> .\n<urn:g{x}> {PROV} {time_of(x)} .\nMESSAGE',
    "messages.trig": lambda x: f'<urn:g{x}> {{ <urn:c> <urn:p> "{x}" }}\n<urn:g{x}> {PROV} {time_of(x)} .\nMESSAGE',
}
HEADS = {"csv": "t,x\n", "messages.nq": 'VERSION "1.2-messages"\n', "messages.trig": 'VERSION "1.2-messages"\n'}
BAD = {"encoding": b"<urn:c> \xff", "syntax": b"{ [ , this is no line of any format"}


def text(format: str, bad: bytes) -> bytes:
    """A thousand good lines (or elements), a bad one, and a good one more."""
    lines = "\n".join(map(LINES[format], range(1, GOOD + 1)))
    return f"{HEADS.get(format, '')}{lines}\n".encode() + bad + b"\n" + LINES[format](GOOD + 1).encode() + b"\n"


def opened(path: Path, **options: Any) -> Stream:
    return read_stream(path, **options, **({"mapping": MAPPING} if ".csv" in path.name else {}))


def read(stream: Stream) -> tuple[int, str]:
    """How many events a stream has, and its error."""
    count = 0
    try:
        for item in stream:
            count += isinstance(item, Event)
    except StreamError as error:
        return count, str(error)
    return count, ""


@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("format", LINES)
def test_what_was_complete_before_a_bad_line_is_matched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, kind: str, columns: bool
) -> None:
    """An element of a document is complete when the next begins, so the last one before the error is not."""
    if columns:
        monkeypatch.setattr(reader, "LARGE", 1)
    path = tmp_path / f"s.{format}"
    path.write_bytes(text(format, BAD[kind]))
    complete = GOOD - (format in ("nq", "trig"))
    matches = run("SELECT ?x { ?c <urn:p> ?x }", opened(path))
    assert len([next(matches) for _ in range(complete)]) == complete
    with pytest.raises(StreamError, match=r"s\.\w+(\.\w+)?:\d+: "):
        next(matches)


@pytest.mark.parametrize("format", ["jsonl", "csv", "nq"])
def test_a_line_that_is_not_utf_8_ends_the_reading_there_or_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    """Several of them, the first and the last line too; packed or not, in rows or in columns."""
    lines = [line.encode() for x in range(1, 60) for line in LINES[format](x).split("\n")]
    for place in (len(lines), 70, 30, 30, 0):
        lines.insert(place, b"\xff" * (1 + place))
    data = HEADS.get(format, "").encode() + b"\n".join(lines)
    first = 1 + data[: data.index(b"\xff")].count(b"\n")
    results = []
    for large in (16 << 20, 1):
        monkeypatch.setattr(reader, "LARGE", large)
        for name, form in ((f"s.{format}", data), (f"s.{format}.gz", gzip.compress(data))):
            path = tmp_path / name
            path.write_bytes(form)
            count, error = read(opened(path))
            assert (count, error.split("\n")[0]) == (0, f"{path}:{first}: byte 1 of the line is not UTF-8")
            stream = opened(path, on_error="skip")
            results.append((brief(list(stream)), stream.counters.errors))
    assert results[0][1] == 5
    assert len(results[0][0]) == 59
    assert all(result == results[0] for result in results)


RED = "\x1b[31m"
COLOURED = {
    "nq": f"<urn:a> <urn:p> nonsense{RED} .",
    "nt": f"<urn:a> <urn:p{RED}> <urn:b> .",
    "trig": f"<urn:g> {{ <urn:a> <urn:p> oops{RED} }}",
    "jsonl": f'{{"time": 1, "triples": "{RED}"}}',
    "csv": f"a,t\nb,soon{RED}",
}


@pytest.mark.parametrize("form", COLOURED)
def test_a_line_in_a_message_does_not_control_the_terminal(form: str) -> None:
    mapping = {"subject": ":x", "predicate": ":p", "object": "{a}", "time": "{t}"} if form == "csv" else None
    with pytest.raises(StreamError) as caught:
        list(read_stream(io.BytesIO(COLOURED[form].encode()), format=form, mapping=mapping))
    shown = str(caught.value)
    assert "\\x1b[31m" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("text", ["a\x1b[31mb", "a\rb", "a\x9b31mb", "a\x07b", "a\u202eb"])
def test_no_control_character_of_an_input_is_in_an_error(text: str) -> None:
    for error in (StreamError(text, text=text), SinkError(text), KnowledgeError(text)):
        shown = str(error)
        assert "a\\" in shown
        assert all(character.isprintable() or character == "\n" for character in shown)


@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("format", ["csv", "nq", "nt"])
def test_a_line_that_a_carriage_return_ends_is_left_out_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, columns: bool
) -> None:
    """Of lines that end with a carriage return, only the one that is not UTF-8 is left out, with its number."""
    if columns:
        monkeypatch.setattr(reader, "LARGE", 1)
    head = HEADS.get(format, "").replace("\n", "\r").encode()
    before, after = (LINES[format](x).replace("\n", "\r").encode() for x in (1, 2))
    path = tmp_path / f"s.{format}"
    path.write_bytes(head + before + b"\r\xff\r" + after + b"\r")
    letters = Refused()
    events = [item for item in opened(path, on_error="skip", dead_letters=letters) if isinstance(item, Event)]
    assert [event.triples[0][2][1:2] for event in events] == ["1", "2"]
    line = (head + before).count(b"\r") + 2
    assert [error.split("\n")[:2] for error in letters.errors] == [
        [f"{path}:{line}: byte 1 of the line is not UTF-8", "  \\xff"]
    ]


class FullDisk:
    """Cannot keep what is refused."""

    def refused(self, error: StreamError) -> None:
        raise SinkError("no space left on device", target="letters.jsonl")


@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("format", ["csv", "jsonl", "nq"])
def test_what_was_complete_before_a_bad_line_that_cannot_be_kept_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, columns: bool
) -> None:
    """The error is not one of the stream, but ends its reading as well."""
    if columns:
        monkeypatch.setattr(reader, "LARGE", 1)
    path = tmp_path / f"s.{format}"
    path.write_bytes(text(format, BAD["syntax"]))
    stream = opened(path, on_error="skip", dead_letters=FullDisk())
    items = iter(stream)
    complete = GOOD - (format == "nq")
    assert [type(next(items)) for _ in range(complete)] == [Event] * complete
    with pytest.raises(SinkError, match="no space left"):
        next(items)
