"""Sinks that take matches in columns hold the same as if the matches had come one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from etalis_rules.terms import XSD

from etalis_py import Engine, event
from etalis_py.connectors.files import DurableFile, DurableFolder
from etalis_py.connectors.held import HeldText
from etalis_py.durable.disk import Disk
from etalis_py.kernel.matches import Matches
from etalis_py.kernel.tabular import results
from etalis_py.streams.outputs import StandardOutput
from etalis_py.streams.write_rows import JsonLines, ResultsCsv
from etalis_py.testing.connectors import stored

TERMS = (
    ":a", "5", "5.50", "1.5e300", "true", '"x\\"y"@en', f'"1"^^<{XSD}byte>', f'"NaN"^^<{XSD}double>', "<urn:é>",
    '"\\u0001"',
)  # fmt: skip
QUERIES = {
    "terms": "SELECT ?x ?y { ?x :p ?y OPTIONAL { ?x :q ?z } }",
    "no variables": "SELECT ?z { :s0 :p ?y }",
    "triples": "CONSTRUCT { ?x :r ?y } { ?x :p ?y }",
    "asked": "ASK { ?x :p ?y }",
}


def kafka(folder: Path, terms: bool) -> Any:
    pytest.importorskip("confluent_kafka", reason="needs the extra kafka")
    from etalis_py.connectors.kafka import KafkaSink

    return KafkaSink("kafka://h:1/t", terms=terms)


SINKS: dict[str, Callable[[Path], Any]] = {
    "kafka": lambda folder: kafka(folder, False),
    "kafka terms": lambda folder: kafka(folder, True),
    "jsonl": lambda folder: DurableFile(str(folder / "out.jsonl"), JsonLines(), Disk()),
    "csv": lambda folder: DurableFile(str(folder / "out.csv"), ResultsCsv(["x", "y", "z"]), Disk()),
    "folder": lambda folder: DurableFolder(str(folder / "out"), "jsonl", JsonLines(), Disk()),
    "held": lambda folder: HeldText(JsonLines(), StandardOutput()),
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("make", SINKS.values(), ids=SINKS)
def test_matches_in_columns_are_written_as_one_by_one(make: Callable[[Path], Any], query: str, tmp_path: Path) -> None:
    engine = Engine(query)
    events = [event(f":s{n % 4} :p {TERMS[n % len(TERMS)]}", n) for n in range(40)]
    matches = engine.push_all(events)
    assert isinstance(matches, Matches)
    assert len(matches)
    single, many = make(tmp_path), make(tmp_path)
    (one,) = results(matches)
    taken = many.write_results(one)
    in_rows = "ASK" in query or ("CONSTRUCT" in query and single.name.endswith(".csv"))
    assert taken is not in_rows
    if taken:
        single.write(list(matches))
        assert stored(many.prepare()) == stored(single.prepare())
