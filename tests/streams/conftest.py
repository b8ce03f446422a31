"""What the stream tests share: reading a text, events as short lines."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from etalis_py.events import Event
from etalis_py.streams import Stream, read_stream

PREFIXES = """@prefix : <urn:> .
@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rsp: <http://www.w3.org/ns/rsp#> .
"""


def short(term: str) -> str:
    """A term in few letters: urn:x as x, an integer as its digits."""
    if term.startswith("<urn:"):
        return term[5:-1]
    return term.removesuffix("^^<http://www.w3.org/2001/XMLSchema#integer>").strip('"')


def brief(items: Iterable[Any]) -> list[str]:
    """Each event as ``graph[start,end] s p o; …`` (the graph only where there is one), anything else as it prints."""
    return [
        f"{short(item.graph)}[{item.start},{item.end}] " + "; ".join(" ".join(map(short, t)) for t in item.triples)
        if isinstance(item, Event)
        else repr(item)
        for item in items
    ]


@pytest.fixture
def stream() -> Callable[..., Stream]:
    """Opens a text (or bytes) as a stream; arrival times are 1000, 1001, …."""

    def open_text(text: str | bytes, **options: Any) -> Stream:
        data = text.encode() if isinstance(text, str) else text
        options.setdefault("now", lambda: 1000)
        options.setdefault("time_unit", "us")
        return read_stream(io.BytesIO(data), **options)

    return open_text


@pytest.fixture
def events(stream: Callable[..., Stream]) -> Callable[..., list[str]]:
    """The items of a text, in brief."""
    return lambda text, **options: brief(stream(text, **options))
