"""Names of files are bytes: those that are not UTF-8 work wherever a file is read or written."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from tests.cli.conftest import RISING, Folder, rows, tick

CAFE = "caf\udce9"  # as Python spells b"caf\xe9"
PRICES = ["--time", "at", "--subject", "company"]


@pytest.fixture
def cafe(folder: Folder) -> Folder:
    """The query and a stream under such a name."""
    folder.write(f"{CAFE}.rq", RISING)
    folder.write(f"{CAFE}.jsonl", tick(1, 10) + tick(3, 12))
    return folder


def test_a_query_is_named_after_its_file(cafe: Folder) -> None:
    for format in ("jsonl", "json", "csv", "table", "trig"):
        out = cafe.etalis("run", f"{CAFE}.rq", "--stream", f"{CAFE}.jsonl", "--format", format).stdout
        assert "12" in out, format
    jsonl = cafe.etalis("run", f"{CAFE}.rq", "--stream", f"{CAFE}.jsonl").stdout
    assert json.loads(jsonl)["query"] == r"caf\udce9"  # as messages spell it


@pytest.mark.parametrize("format", ["csv", "trig", "jsonl", "parquet", "arrow", "sqlite"])
def test_sinks_have_such_names(cafe: Folder, format: str) -> None:
    out = cafe.path / f"{CAFE}-out.{format}"
    cafe.etalis("run", f"{CAFE}.rq", "--stream", f"{CAFE}.jsonl", "--sink", out.name)
    assert out.stat().st_size > 0
    if format == "parquet":
        assert parquet.read_table(pa.py_buffer(out.read_bytes()))["high"].to_pylist() == [12]
    if format == "arrow":
        assert ipc.open_file(out.read_bytes()).read_all()["high"].to_pylist() == [12]


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_tables_are_read_under_such_names(cafe: Folder, format: str) -> None:
    table = pa.table({"at": [1, 3], "company": ["acme", "acme"], "price": [10, 12]})
    sink = pa.BufferOutputStream()
    with parquet.ParquetWriter(sink, table.schema) if format == "parquet" else ipc.new_file(sink, table.schema) as out:
        out.write_table(table)
    (cafe.path / f"{CAFE}.{format}").write_bytes(sink.getvalue())
    found = cafe.etalis("run", "rising.rq", "--stream", f"{CAFE}.{format}", *PRICES)
    assert rows(found.stdout) == [("10", "12", 1, 3)]


def test_blank_nodes_of_a_document_with_such_a_name(cafe: Folder) -> None:
    cafe.write(f"{CAFE}.nq", "_:x <http://example.org/price> \"1\" <http://g/1> .\n"
               '<http://g/1> <http://www.w3.org/ns/prov#generatedAtTime> "1" .\n')  # fmt: skip
    found = cafe.etalis("run", "-q", "SELECT ?c { ?c :price ?x }", "--stream", f"{CAFE}.nq").stdout
    assert json.loads(found)["bindings"]["c"]["type"] == "bnode"


def test_a_run_with_a_checkpoint_goes_on(cafe: Folder) -> None:
    command = ["run", f"{CAFE}.rq", "-s", f"{CAFE}.jsonl", "-o", f"{CAFE}-out.jsonl", "--checkpoint", f"{CAFE}-run",
               "--dead-letters", f"{CAFE}-late.jsonl"]  # fmt: skip
    cafe.etalis(*command)
    assert rows(cafe.read(f"{CAFE}-out.jsonl")) == [("10", "12", 1, 3)]
    assert "has come to its end; nothing is left to do" in cafe.etalis(*command).stderr


def test_another_such_name_is_another_sink(cafe: Folder) -> None:
    command = ["run", "rising.rq", "-s", f"{CAFE}.jsonl", "--checkpoint", "run", "-o"]
    cafe.etalis(*command, f"{CAFE}.out.jsonl")
    other = cafe.etalis(*command, "caf\udce8.out.jsonl", code=1).stderr
    assert r"matches went to caf\udce9.out.jsonl, and would go to caf\udce8.out.jsonl now" in other


def test_dead_letters_name_such_a_source(cafe: Folder) -> None:
    cafe.write(f"{CAFE}.jsonl", tick(1, 10) + "nonsense\n")
    cafe.etalis("run", "rising.rq", "-s", f"{CAFE}.jsonl", "--on-error", "skip", "--dead-letters", "late.jsonl")
    assert json.loads(cafe.read("late.jsonl"))["source"] == r"caf\udce9.jsonl"


def test_a_draft_for_such_a_table_can_be_read(cafe: Folder) -> None:
    """Whatever the locale: a mapping is UTF-8, so the name in its comment must be."""
    cafe.write(f"{CAFE}.csv", "at,company,price\n1,acme,10\n3,acme,12\n")
    draft = cafe.process("map", f"{CAFE}.csv").stdout
    assert r"caf\udce9.csv" in draft
    cafe.write("draft.toml", draft)
    found = cafe.etalis("run", "rising.rq", "-s", f"{CAFE}.csv", "-m", "draft.toml").stdout
    assert rows(found) == [("10", "12", 1, 3)]
