"""Tables of Delta Lake and Iceberg on the command line, by a drafted or a given mapping."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from etalis_py.streams import StreamError
from etalis_py.streams.lake_tables import lake_table
from tests.cli import in_process

HOT = "SELECT ?s ?x { ?s :value ?x FILTER (?x > 30) }"
A = "http://example.org/a"
RISE = "SELECT ?x ?y { { :a :is ?x } SEQ { :a :is ?y } }"
MAPPING = 'time = "{at}"\n[[triple]]\nsubject = ":{sensor}"\npredicate = ":is"\nobject = "{value}"\n'


def readings(*values: tuple[int, str, int]) -> pa.Table:
    """Second, sensor and value of each."""
    times = [datetime(2026, 1, 31, 12, 0, second, tzinfo=UTC) for second, _, _ in values]
    at = pa.array(times, pa.timestamp("us", tz="UTC"))
    return pa.table({"at": at, "sensor": [name for _, name, _ in values], "value": [value for _, _, value in values]})


FIRST, MORE = readings((0, "a", 31), (2, "b", 3)), readings((1, "a", 99))


@pytest.fixture
def delta(tmp_path: Path) -> Path:
    """A folder with a table in two versions, the rows of which are in files by sensor."""
    library = pytest.importorskip("deltalake", reason="needs the extra delta: pip install 'etalis-py[delta]'")
    library.write_deltalake(tmp_path / "readings", FIRST, partition_by=["sensor"])
    library.write_deltalake(tmp_path / "readings", MORE, mode="append")
    return tmp_path


def rows_of(folder: Path, query: str, *more: str) -> list[list[str]]:
    done = in_process.run(["run", "-q", query, *more, "-f", "csv"], folder)
    assert done.returncode == 0, done.stderr
    return [line.split(",")[:2] for line in done.stdout.splitlines()[1:]]


def test_a_delta_table_is_read_in_the_order_of_its_times(delta: Path) -> None:
    assert rows_of(delta, HOT, "-s", "delta:readings") == [[A, "31"], [A, "99"]]
    assert rows_of(delta, HOT, "-s", "delta:readings?version=0") == [[A, "31"]]
    (delta / "m.toml").write_text(MAPPING)
    assert rows_of(delta, RISE, "-s", "delta:readings", "-m", "m.toml") == [["31", "99"]]
    assert rows_of(delta, RISE, "-s", "r=delta:readings", "-m", "r=m.toml") == [["31", "99"]]


def test_an_iceberg_table_is_read_by_its_name_and_by_its_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogs = pytest.importorskip("pyiceberg.catalog", reason="needs the extra iceberg")
    pytest.importorskip("sqlalchemy", reason="needs a catalog in SQLite")
    for name in ("DEFAULT", "OTHER"):
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{name}__TYPE", "sql")
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{name}__URI", f"sqlite:///{tmp_path}/{name}.db")
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{name}__WAREHOUSE", f"file://{tmp_path}")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", catalogs.Config())
    catalog = catalogs.load_catalog("other")
    catalog.create_namespace("plant")
    table = catalog.create_table("plant.readings", schema=FIRST.schema)
    table.append(FIRST)
    table.append(MORE)
    expected = [[A, "31"], [A, "99"]]
    assert rows_of(tmp_path, HOT, "-s", "iceberg:plant.readings?catalog=other") == expected
    assert rows_of(tmp_path, HOT, "-s", f"iceberg:{table.metadata_location}") == expected


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("delta:", "write delta:PATH, perhaps with [?]version="),
        ("delta:x?version=last", "this is not the address of a table"),
        ("iceberg:a.b?version=7", "write iceberg:NAMESPACE.TABLE, perhaps with [?]catalog="),
    ],
)
def test_an_address_says_what_is_wrong(address: str, said: str) -> None:
    with pytest.raises(StreamError, match=said):
        lake_table(address)


def test_a_table_that_is_not_there_is_told(tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="needs the extra delta: pip install 'etalis-py[delta]'")
    with pytest.raises(StreamError, match="the table cannot be read"):
        lake_table(f"delta:{tmp_path}/none")
