"""Matches in tables of Delta Lake and Iceberg: every one exactly once, and without those that are taken back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from etalis_py import run
from etalis_py.connectors import lake_sinks
from etalis_py.connectors.lake_sinks import Lake
from etalis_py.connectors.registry import open_sink
from etalis_py.events.errors import SinkError
from etalis_py.streams.lake_tables import lake_table
from etalis_py.testing.connectors import check_sink, some_matches, stored
from tests.cli import in_process

FORMATS = ("delta", "iceberg")


@pytest.fixture(params=FORMATS)
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table that is not there yet."""
    if request.param == "delta":
        pytest.importorskip("deltalake", reason="needs the extra delta: pip install 'etalis-py[delta]'")
        return f"delta:{tmp_path}/matches"
    catalogs = pytest.importorskip("pyiceberg.catalog", reason="needs the extra iceberg")
    pytest.importorskip("sqlalchemy", reason="needs a catalog in SQLite")
    for name, value in {"TYPE": "sql", "URI": f"sqlite:///{tmp_path}/c.db", "WAREHOUSE": f"file://{tmp_path}"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__HERE__{name}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", catalogs.Config())
    return "iceberg:plant.matches?catalog=here"


def opened(address: str) -> Lake:
    sink = open_sink(address)
    assert isinstance(sink, Lake)
    return sink


def rows(address: str) -> list[dict[str, Any]]:
    sink = opened(address)
    try:
        return sorted(lake_table(address).to_pylist(), key=lambda row: int(row["ended"]))
    except Exception:
        assert sink.at() == 0  # there is no table yet
        return []


def test_a_lake_keeps_the_contract(address: str) -> None:
    check_sink(lambda: opened(address), lambda: [row["id"] for row in rows(address)])


def test_a_row_is_a_match(address: str) -> None:
    write(opened(address), some_matches(1))
    [row] = rows(address)
    query = some_matches(1)[0].query
    [match] = some_matches(1)
    assert row == {
        "id": match.id,
        "query": query,
        "started": "0",
        "ended": "0",
        "bindings": '{"x": 0}',
        "triples": None,
    }


def write(sink: Lake, *portions: Any) -> None:
    sink.recover(None)
    for portion in portions:
        sink.write(portion)
        sink.commit(stored(sink.prepare()))


class Withdrawn:
    """A match that is taken back."""

    def __init__(self, match: Any) -> None:
        self._match, self.id = match, match.id

    def to_dict(self) -> dict[str, Any]:
        return {**self._match.to_dict(), "retracted": True}


@pytest.mark.parametrize(
    ("portions", "left"),
    [
        (lambda a, b, c: ([a, b], [Withdrawn(a), c]), "bc"),
        (lambda a, b, c: ([a, b], [Withdrawn(a)]), "b"),
        (lambda a, b, c: ([a], [Withdrawn(a), a]), "a"),
        (lambda a, b, c: ([a], [b, Withdrawn(b)], [c]), "ac"),
        (lambda a, b, c: ([a, Withdrawn(a)], [b]), "b"),
        (lambda a, b, c: ([a], [Withdrawn(a)], [a, b]), "ab"),
    ],
)
def test_what_is_taken_back_is_removed(address: str, portions: Callable[..., Any], left: str) -> None:
    a, b, c = some_matches(3)
    sink = opened(address)
    write(sink, *portions(a, b, c))
    assert [row["id"] for row in rows(address)] == [{"a": a, "b": b, "c": c}[name].id for name in left]
    token = [sink.run, sink.number, []]
    opened(address).recover(token)  # the table knows the number, also of a portion that changed nothing


def test_a_table_that_is_ahead_of_the_checkpoint_is_refused(address: str) -> None:
    sink = opened(address)
    write(sink, some_matches(1), some_matches(2)[1:])
    with pytest.raises(SinkError, match="it has everything up to portion 2 of this run"):
        opened(address).recover([sink.run, 1, []])


def older_states(address: str, commits: int, *, ours: bool = True) -> list[int]:
    """How many older states a table has after each commit of a row; ``ours``: it was made by the sink."""
    from pyiceberg.catalog import load_catalog

    sink, catalog, counts = opened(address), load_catalog("here"), []
    sink.recover(None)
    matches = some_matches(commits)
    for match in matches:
        sink.write([match])
        sink.commit(stored(sink.prepare()))
        table = catalog.load_table("plant.matches")
        counts.append(len(table.snapshots()) - 1)
        if not ours and len(counts) == 1:
            with table.transaction() as change:
                change.remove_properties(lake_sinks.OLDER_STATES)
    assert [row["id"] for row in rows(address)] == [match.id for match in matches]
    return counts


@pytest.mark.parametrize("address", ["iceberg"], indirect=True)
def test_a_table_of_iceberg_keeps_some_older_states(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lake_sinks._PROPERTIES, lake_sinks.OLDER_STATES, "3")
    assert older_states(address, 9) == [0, 1, 2, 3, 4, 5, 3, 4, 5]


@pytest.mark.parametrize("address", ["iceberg"], indirect=True)
def test_many_older_states_are_told_once(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_sinks, "_MANY", 3)
    with pytest.warns(UserWarning, match="has 3 older states, and each makes every commit slower") as told:
        assert older_states(address, 5, ours=False) == [0, 1, 2, 3, 4]
    assert sum("older states" in str(one.message) for one in told) == 1


def test_the_command_goes_on(address: str, tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text("SELECT ?x { { ?c :p ?x } SEQ { ?c :p ?y } }")
    lines = [json.dumps({"time": at, "triples": f":c :p {at} ."}) for at in range(1, 4)]
    (tmp_path / "s.jsonl").write_text("\n".join(lines) + "\n")
    command = ["run", "q.rq", "-s", "s.jsonl", "-o", address, "--checkpoint", "run"]
    for told in ("", "etalis: the run in run has come to its end; nothing is left to do\n"):
        done = in_process.run(command, tmp_path)
        assert (done.returncode, done.stderr) == (0, told)
        assert [(row["query"], row["ended"], row["bindings"]) for row in rows(address)] == [
            ("q", "2", '{"x": 1}'),
            ("q", "3", '{"x": 1}'),
            ("q", "3", '{"x": 2}'),
        ]


def test_python_reads_a_table_by_its_address(tmp_path: Path) -> None:
    library = pytest.importorskip("deltalake", reason="needs the extra delta: pip install 'etalis-py[delta]'")
    import pyarrow as pa

    library.write_deltalake(tmp_path / "t", pa.table({"at": [2, 1], "c": ["a", "a"], "p": [20, 10]}))
    query = "SELECT ?x ?y { { ?c :p ?x } SEQ { ?c :p ?y } }"
    with pytest.warns(UserWarning, match="not in order of time"):
        found = [(m["x"], m["y"]) for m in run(query, f"delta:{tmp_path}/t", time="at", subject="c")]
    assert found == [(10, 20)]


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("delta:", "this is not the address of a table"),
        ("delta:x?version=3", "an older state of a table cannot be written"),
        ("iceberg:x.metadata.json", "an older state of a table cannot be written"),
    ],
)
def test_addresses_that_cannot_be_written(address: str, words: str) -> None:
    with pytest.raises(SinkError, match=words):
        open_sink(address)
