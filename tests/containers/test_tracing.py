"""Spans of OpenTelemetry: the way of a posted graph to its match, and from there to the next program."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.containers.server import Server
from tests.containers.test_programs import HOT, QUERY, STREAM, TURTLE, until
from tests.processes import PATIENCE

pytest.importorskip("opentelemetry.sdk", reason="OpenTelemetry's SDK is not installed (pip install opentelemetry-sdk)")


def test_a_graph_is_followed_to_its_match_and_on(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start(spans=str(tmp_path / "spans.json"))
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as http:
        stream = http.post("/", content=STREAM, headers=TURTLE | {"Slug": "s"}).headers["location"]
        assert http.post(stream, content=HOT, headers=QUERY | {"Slug": "hot"}).status_code == 201
        rows = "ROWS <http://ex.org/v> 30"
        assert http.post("/s/hot-matches/", content=rows, headers=QUERY | {"Slug": "next"}).status_code == 201
        trace = {"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}
        for value, headers in ((20, {}), (40, trace)):
            body = f"<> <http://ex.org/v> {value} ."
            assert http.post(stream, content=body, headers=TURTLE | headers).status_code == 201
        until(http, f"{stream}hot", "written", 1)
        until(http, "/s/hot-matches/next", "pushed", 1)
    server.stop()
    spans = json.loads((tmp_path / "spans.json").read_text())
    ways = [one for one in spans if one["context"]["trace_id"] == "0x" + "ab" * 16]
    by_id = {one["context"]["span_id"]: one for one in ways}

    def parent(span: dict) -> str:
        above = by_id.get(span["parent_id"])
        return above["name"] if above else span["parent_id"]

    written = "/s/hot-matches/p1-hot-1"
    hot = {"etalis.program": "/s/hot"}
    assert {
        one["name"]: (parent(one), one["attributes"])
        for one in ways
        if one["attributes"].get("etalis.program") != "/s/hot-matches/next"
    } == {
        "etalis.post": ("0x" + "cd" * 8, {"etalis.container": "/s/", "etalis.graph": "/s/1"}),
        "etalis.taken": ("etalis.post", hot | {"etalis.graph": "/s/1"}),
        "etalis.matched": ("etalis.taken", hot | {"etalis.match": "hot-1", "etalis.graph": "/s/1"}),
        "etalis.written": ("etalis.matched", hot | {"etalis.match": "hot-1", "etalis.graph": written}),
    }
    (last,) = [one for one in ways if one["attributes"].get("etalis.program") == "/s/hot-matches/next"]
    assert (last["name"], parent(last), last["attributes"]["etalis.graph"]) == (
        "etalis.taken",
        "etalis.written",
        written,
    )
    others = [
        one["attributes"].get("etalis.graph") for one in spans if one["name"] == "etalis.post" and one not in ways
    ]
    assert others == [None, "/s/0"], "a container, and the graph that came in no trace"
    assert all(one["start_time"] <= one["end_time"] for one in spans)
