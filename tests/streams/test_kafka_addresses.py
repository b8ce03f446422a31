"""Addresses of topics: brokers that can be, and what is said of others."""

from __future__ import annotations

import re

import pytest

from etalis_py.connectors.registry import open_sink
from etalis_py.streams import SinkError, StreamError
from etalis_py.streams.kafka import parse_topic, read_kafka


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        ("a:abc", "Port could not be cast"),
        ("a:99999", "Port out of range"),
        ("a:0", "port 0 is none"),
        ("::1:9092", "an IPv6 address stands in brackets"),
        ("a:9092:9093", "has more than one colon"),
        (":9092", "':9092' names no host"),
        ("a:1,", "'' names no host"),
        ("a:1;b:1", "commas between them"),
        ("a:1 b:1", "commas between them"),
    ],
)
def test_a_broker_that_cannot_be_is_told(servers: str, told: str) -> None:
    """It was looked for for ten seconds, and was one that does not answer; of ``a:abc`` port 9092 was asked."""
    for open_it in (read_kafka, open_sink):
        with pytest.raises((StreamError, SinkError), match=re.escape(told)) as raised:
            open_it(f"kafka://{servers}/t")  # type: ignore[operator]
        assert str(raised.value).startswith(f"kafka://{servers}/t: this is not the address of a topic: ")
        assert str(raised.value).endswith("\n  write kafka://host:9092/topic")


@pytest.mark.parametrize("servers", ["[::1]:9092", "[::1]", "a", "a:1,b:2", "a:1, b:2", "a:1,[::1]:2", "größe:1"])
def test_brokers_may_be_many_and_without_a_port(servers: str) -> None:
    assert parse_topic(f"kafka://{servers}/t").servers == servers
