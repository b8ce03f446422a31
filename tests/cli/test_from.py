"""``FROM <file>``: background that a query names itself, relative to where it is."""

from __future__ import annotations

import json

from tests.cli.conftest import Folder, tick

QUERY = """\
PREFIX : <http://example.org/>
SELECT ?company ?sector FROM <sectors.ttl>
WHERE { ?company :price ?x ; :sector ?sector }
"""


def test_from_loads_a_file_beside_the_query(folder: Folder) -> None:
    (folder.path / "queries").mkdir()
    folder.write("queries/q.rq", QUERY)
    folder.write("queries/sectors.ttl", "@prefix : <http://example.org/> . :acme :sector :tools .")
    done = folder.etalis("run", "queries/q.rq", "--stream", "ticks.jsonl")
    found = [json.loads(line)["bindings"]["sector"]["value"] for line in done.stdout.splitlines()]
    assert found == ["http://example.org/tools"] * 3


def test_a_file_that_is_not_there_is_a_query_error(folder: Folder) -> None:
    folder.write("q.rq", QUERY)
    folder.write("one.jsonl", tick(1, 1))
    done = folder.etalis("run", "q.rq", "--stream", "one.jsonl", code=2)
    assert "no graph <http://example.org/sectors.ttl> is loaded" in done.stderr


def test_the_delivery_replay_tells_each_agent(folder: Folder) -> None:
    lines = folder.etalis("replay", "delivery", "--agents", "1").stdout.splitlines()
    assert lines[0].split("  ")[0] == "agent"
    assert lines[2].split()[:3] == ["1", "19", "19"]
