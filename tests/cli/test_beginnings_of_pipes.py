"""What comes through a pipe has no name: its first bytes tell the format, also behind a byte order mark."""

from __future__ import annotations

import io
import json
import subprocess

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from tests.cli.conftest import COMMAND, Folder, tick
from tests.processes import PATIENCE

MARK = "\ufeff"
TIMED = '<http://g/1> <http://www.w3.org/ns/prov#generatedAtTime> "3" .\n'
QUAD = '<http://example.org/acme> <http://example.org/price> "12" <http://g/1> .\n'
RECORDS = [{"at": 1, "company": "acme", "price": 10}, {"at": 3, "company": "acme", "price": 12}]
NAMED = ("--time", "at", "--subject", "company")
FLAT: dict[str, list[object]] = {
    "end": [1, 3],
    "s": ["<http://example.org/acme>"] * 2,
    "p": ["<http://example.org/price>"] * 2,
    "o": ['"10"', '"12"'],
}


def piped(folder: Folder, data: bytes, *arguments: str) -> str:
    """What the prices in these bytes are, as CSV."""
    command = [*COMMAND, "run", "-q", "SELECT ?x { :acme :price ?x }", "-s", "-", "-f", "csv", *arguments]
    done = subprocess.run(command, cwd=folder.path, input=data, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def of_table(columns: dict[str, list[object]], format: str) -> bytes:
    table, sink = pa.table(columns), io.BytesIO()
    writer = parquet.ParquetWriter if format == "parquet" else ipc.new_file if format == "file" else ipc.new_stream
    with writer(sink, table.schema) as out:
        out.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (tick(3, 12), ()),
        (TIMED + QUAD, ()),
        (json.dumps(RECORDS), NAMED),
        ("\n".join(map(json.dumps, RECORDS)), NAMED),
        ("at,company,price\n3,acme,12\n", NAMED),
    ],
)
def test_a_byte_order_mark_hides_no_format(text: str, arguments: tuple[str, ...], folder: Folder) -> None:
    assert piped(folder, (MARK + text).encode(), *arguments) == piped(folder, text.encode(), *arguments)


@pytest.mark.parametrize("format", ["parquet", "file", "stream"])
def test_tables_come_through_a_pipe(format: str, folder: Folder) -> None:
    table: dict[str, list[object]] = {name: [record[name] for record in RECORDS] for name in RECORDS[0]}
    assert piped(folder, of_table(table, format), *NAMED).splitlines() == ["x,start,end", "10,1,1", "12,3,3"]


def test_triples_in_a_table_come_through_a_pipe(folder: Folder) -> None:
    assert piped(folder, of_table(FLAT, "stream")).splitlines() == ["x,start,end", "10,1,1", "12,3,3"]


@pytest.mark.parametrize("text", [json.dumps(RECORDS), json.dumps(RECORDS, indent=1), *map(json.dumps, RECORDS[:1])])
def test_a_mapping_is_drafted_behind_a_byte_order_mark(text: str, folder: Folder) -> None:
    folder.write("prices.json", MARK + text)
    found = folder.etalis("run", "-q", "SELECT ?x { :acme :price ?x }", "-s", "prices.json")
    assert json.loads(found.stdout.splitlines()[0])["bindings"]["x"]["value"] == "10"
    assert "so one is drafted: time {at}, subject :{company}" in found.stderr


def test_a_large_array_behind_a_byte_order_mark_is_an_array(folder: Folder) -> None:
    """Large files are read in columns, whose reader is only for lines."""
    many = [RECORDS[0] | {"at": at} for at in range(20_000)]
    folder.write("prices.json", MARK + json.dumps(many))
    query = "SELECT (COUNT(*) AS ?n) { :acme :price ?x }"
    found = folder.etalis("run", "-q", query, "-s", "prices.json", *NAMED, "-f", "csv")
    assert found.stdout.splitlines()[-1].startswith("20000,")
