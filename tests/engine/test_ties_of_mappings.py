"""``ties`` in a mapping (DESIGN §4.25): the run orders events of one time as with ``ties=``."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, compile, event, run
from etalis_py.streams import StreamError, read_stream
from etalis_py.streams.kafka import read_kafka
from etalis_py.streams.reference import reference_table
from tests.draws import examples
from tests.engine.test_ties_by_column import NEXT, QUERIES, ROWS, TABLE, pairs
from tests.streams.fake_topic import client

ORDER = {"predicate": ":no", "object": "{no}"}
IN_ORDER = [(10, 20), (20, 30), (30, 40)]
TOML = """time = "{at}"
ties = "no"

[[triple]]
subject = ":{c}"
predicate = ":p"
object = "{p}"

[[triple]]
predicate = ":no"
object = "{no}"
"""
CSV = "at,c,p,no\n1,c,20,2\n1,c,10,1\n2,c,40,10\n2,c,30,9\n"


def mapping(ties: Any = "no", *triples: dict[str, str], **others: Any) -> dict[str, Any]:
    price = {"subject": ":{c}", "predicate": ":p", "object": "{p}"}
    return {"time": "{at}", "ties": ties, "triple": [price, *(triples or (ORDER,))], **others}


# --- the order ---


@pytest.mark.parametrize("rows", [TABLE, TABLE.to_pylist(), iter(TABLE.to_pylist())])
def test_tables_and_rows(rows: Any) -> None:
    assert pairs(run(NEXT, rows, mapping=mapping())) == IN_ORDER


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_files_by_a_mapping_in_a_file(tmp_path: Path, format: str) -> None:
    (tmp_path / "m.toml").write_text(TOML)
    lines = [f'{{"at": {r["at"]}, "c": "c", "p": {r["p"]}, "no": {r["no"]}}}\n' for r in TABLE.to_pylist()]
    (tmp_path / f"t.{format}").write_text(CSV if format == "csv" else "".join(lines))
    assert pairs(run(NEXT, tmp_path / f"t.{format}", mapping=tmp_path / "m.toml")) == IN_ORDER


def test_the_order_of_the_source() -> None:
    assert pairs(run(NEXT, TABLE, mapping=mapping("source"))) == [(20, 10), (10, 40), (40, 30)]


def test_a_column_that_the_mapping_calls_otherwise() -> None:
    named = mapping("no", {"predicate": "<urn:order>", "object": '"{no}"^^xsd:integer'})
    assert pairs(run(NEXT, TABLE, mapping=named)) == IN_ORDER
    engine = Engine(NEXT, ties="<urn:order>")
    assert pairs([*engine.push_all(TABLE, mapping=named), *engine.close()]) == IN_ORDER


def test_what_the_run_says_counts_in_place_of_the_mapping() -> None:
    backwards = TABLE.append_column("back", pa.array([1, 2, 1, 2]))
    named = mapping("no", ORDER, {"predicate": ":back", "object": "{back}"})
    assert pairs(run(NEXT, backwards, mapping=named, ties="back")) == [(20, 10), (10, 40), (40, 30)]


@pytest.mark.parametrize("query", QUERIES)
@settings(max_examples=examples(0.3))
@given(ROWS, st.randoms())
def test_it_is_as_if_the_times_were_numbered_anew(query: str, rows: list[tuple[int, str, int]], random: Any) -> None:
    rows.sort(key=lambda row: row[0])
    coarse: list[dict[str, Any]] = [{"at": t, "c": c, "p": x, "no": n} for n, (t, c, x) in enumerate(rows)]
    random.shuffle(coarse)
    coarse.sort(key=lambda row: row["at"])
    fine = [event(f":{c} :p {x} ; :no {n}", n) for n, (_, c, x) in enumerate(rows)]
    as_mapped = sorted(tuple(match.values()) for match in run(query, coarse, mapping=mapping()))
    assert as_mapped == sorted(tuple(match.values()) for match in run(query, fine))


# --- several sources ---


ONE_THEN_TWO = "SELECT ?x ?y { STREAM :one { ?c :p ?x } SEQ STREAM :two { ?c :p ?y } }"
TWO = {name: pa.table({"at": [1], "c": ["c"], "p": [n], "no": [n]}) for name, n in (("two", 2), ("one", 1))}


def test_mappings_that_agree() -> None:
    assert pairs(run(ONE_THEN_TWO, TWO, mapping=mapping())) == [(1, 2)]


@pytest.mark.parametrize("other", [mapping("source"), {k: v for k, v in mapping().items() if k != "ties"}])
def test_mappings_that_differ_are_refused(other: dict[str, Any]) -> None:
    differ = {"one": mapping(), "two": other}
    with pytest.raises(ValueError, match=r"ties hold for a whole run, and the sources have .* and"):
        run(ONE_THEN_TWO, TWO, mapping=differ)
    assert pairs(run(ONE_THEN_TWO, TWO, mapping=differ, ties="no")) == [(1, 2)]


# --- what a mapping may say ---


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (mapping("noo"), r"(?s)no triple has the column 'noo' for its object, as \"\{noo\}\".*did you mean 'no'\?"),
        (mapping("at"), r"(?s)no triple has the column 'at' .*columns that are objects: p, no"),
        (mapping("c"), r"no triple has the column 'c' "),
        (mapping("{no}"), r"the name stands alone, without braces: ties = \"seq\""),
        (mapping(1), "must be the name of a column"),
        (mapping(""), "must be the name of a column"),
        (mapping("no", ORDER, {"predicate": ":rank", "object": "{no}"}), "'no' has no predicate of its own"),
        (mapping("no", {"predicate": ":{kind}", "object": "{no}"}), "'no' has no predicate of its own"),
    ],
)
def test_wrong_ones_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(StreamError, match=words):
        run(NEXT, TABLE, mapping=given)


def test_an_engine_without_them_refuses_the_mapping() -> None:
    engine = Engine(NEXT)
    for push in (engine.push_all, lambda rows, **named: engine.push(rows[0], **named)):
        for _ in range(2):
            with pytest.raises(ValueError, match=r"the mapping has ties='<http://example.org/no>', and .* ties=None"):
                push(TABLE.to_pylist(), mapping=mapping())
    assert engine.counters.events == 0


def test_pushed_rows_in_the_same_order() -> None:
    engine = Engine(NEXT, ties="no")
    matches = [m for row in TABLE.to_pylist() for m in engine.push(row, mapping=mapping())]
    assert pairs([*matches, *engine.close()]) == IN_ORDER


def test_why_not_refuses_them() -> None:
    with pytest.raises(ValueError, match="why-not takes events by their times alone"):
        compile(NEXT).why_not(read_stream(io.BytesIO(CSV.encode()), format="csv", mapping=mapping()))


def test_a_background_has_none() -> None:
    with pytest.raises(StreamError, match="a background has no order in time"):
        reference_table(TABLE, mapping={k: v for k, v in mapping().items() if k != "time"})


# --- sources that are opened when the run has begun ---


def test_messages_of_a_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", client([], 1))
    with read_kafka("kafka://h/t", mapping=mapping()) as stream:
        assert stream.ties == {"<http://example.org/no>"}


def test_lines_of_a_pipe() -> None:
    reading, writing = os.pipe()
    with open(writing, "w") as pipe:
        pipe.write(CSV)
    with open(reading, "rb") as lines:
        stream = read_stream(lines, format="csv", mapping=mapping(), idle=0.1)
        assert pairs(run(NEXT, stream)) == IN_ORDER
